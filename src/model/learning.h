/*
 * learning.h - how a simulated job's loss goes down with its steps.
 *
 *     exp   mu^k                        linear and superlinear methods
 *     inv   c / (a k^2 + b k + c)       gradient descent and its relatives
 *     acc   accuracy 1 - exp(-k / tau); its loss is 1 - accuracy
 *
 * each from 'first' at step 0 down (accuracy: up) to 'last', in the limit or, where kmax
 * is given, at that step.  It is what is so: only the simulated executor knows it, the
 * rest hears what the job reports.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct error;

enum learning_family { LEARNING_NONE, LEARNING_EXP, LEARNING_INV, LEARNING_ACC };

struct learning {
    enum learning_family family;
    double mu, a, b, c, tau;
    double first, last; /* losses; of 'acc' accuracies */
    double kmax;        /* 0: none */
};

#define LEARNING_TEXT_BYTES 256

/* "exp:mu=0.9,kmax=100", "inv:a=0.01,b=0.2", "acc:tau=120,last=0.76". */
int learning_parse(struct learning *learning, const char *text, struct error *err);

/* The same the other way round, to the last bit. */
const char *learning_text(const struct learning *learning,
                          char text[LEARNING_TEXT_BYTES]);

/* After so many steps. */
double learning_loss(const struct learning *learning, double steps);

/* The first whole number of steps after which the loss is at most so; or INFINITY. */
double learning_step(const struct learning *learning, double loss);
