/*
 * learning.h - how a simulated job's loss goes down with its steps.
 *
 *     exp   mu^k                        linear and superlinear methods
 *     inv   c / (a k^2 + b k + c)       gradient descent and its relatives
 *     acc   accuracy 1 - exp(-k / tau); its loss is 1 - accuracy
 *     points  losses of a training that was, evenly spaced from step 0 to kmax, and
 *             straight between them
 *
 * the first three each from 'first' at step 0 down (accuracy: up) to 'last', in the
 * limit or, where kmax is given, at that step.  In a simulation it is what is so: only
 * the simulated executor knows it, the rest hears what the job reports, which may be
 * noisy, unless jobs are asked to declare it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct error;

enum learning_family {
    LEARNING_NONE,
    LEARNING_EXP,
    LEARNING_INV,
    LEARNING_ACC,
    LEARNING_POINTS,
};

#define LEARNING_POINTS_MAX 128

struct learning {
    enum learning_family family;
    uint32_t point_count; /* at least 2 */
    double mu, a, b, c, tau;
    double first, last;  /* losses; of 'acc' accuracies */
    double kmax;         /* 0: none */
    double noise;        /* deviation of what is reported, in shares of first to last */
    const float *points; /* borrowed, as texts are: until the next job is read */
};

#define LEARNING_TEXT_BYTES 2560

/*
 * How far a job has come is asked at these shares of its whole loss reduction, and at
 * these of its last accuracy, where its losses are such that 1 - loss is one.
 */
#define LEARNING_LEVELS 6
#define LEARNING_ACCURACIES 2
extern const double learning_levels[LEARNING_LEVELS];
extern const double learning_accuracies[LEARNING_ACCURACIES];

/* The losses at which these are reached, by the first and the last one there is. */
static inline double learning_level_loss(double first, double last, double level)
{
    return first - level * (first - last);
}

static inline double learning_accuracy_loss(double last, double share)
{
    return 1 - share * (1 - last);
}

static inline bool learning_is_accuracy(double first, double last)
{
    return first <= 1 && last >= 0 && last < first;
}

/*
 * "exp:mu=0.9,kmax=100", "inv:a=0.01,b=0.2", "acc:tau=120,last=0.76",
 * "points:40/2.3/1.7/1.5": kmax and the losses.  These are put into 'points', if there is
 * room for them; without it they are refused.
 */
int learning_parse_points(struct learning *learning, const char *text,
                          float points[LEARNING_POINTS_MAX], struct error *err);

/* The same the other way round, to the last bit. */
const char *learning_text(const struct learning *learning,
                          char text[LEARNING_TEXT_BYTES]);

/* After so many steps. */
double learning_loss(const struct learning *learning, double steps);

/* The first whole number of steps after which the loss is at most so; or INFINITY. */
double learning_step(const struct learning *learning, double loss);
