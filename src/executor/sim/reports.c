/* reports.c - when a simulated job reports progress, and with what loss. */
#include "executor/sim/reports.h"

#include <math.h>
#include <string.h>

#include "base/rng.h"

#define REPORTS 100 /* per job, besides those at its beginning and at marks */
#define MARKS (LEARNING_LEVELS + LEARNING_ACCURACIES)

static void sort_marks(double *marks)
{
    for (uint32_t i = 1; i < MARKS; i++)
        for (uint32_t k = i; k > 0 && marks[k - 1] > marks[k]; k--) {
            double swap = marks[k];
            marks[k] = marks[k - 1];
            marks[k - 1] = swap;
        }
}

/* Mix the bits of a number into a salt. */
static uint64_t mix_salt(uint64_t salt, double number)
{
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    salt = (salt ^ bits) * UINT64_C(0x9e3779b97f4a7c15);
    return salt ^ salt >> 29;
}

static uint64_t salt_of(const struct learning *curve, double steps)
{
    const double numbers[] = { curve->mu,  curve->a,     curve->b,    curve->c,
                               curve->tau, curve->first, curve->last, steps };
    uint64_t salt = curve->family;
    for (uint32_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        salt = mix_salt(salt, numbers[i]);
    return salt;
}

void reports_init(struct reports *reports, const struct learning *curve, double steps)
{
    *reports =
        (struct reports){ .every = fmax(ceil(steps / REPORTS), 1), .total = steps };
    for (uint32_t i = 0; i < MARKS; i++)
        reports->marks[i] = INFINITY;
    if (!curve || curve->family == LEARNING_NONE)
        return;
    reports->curve = *curve;
    reports->curve.points = NULL; /* jobs may move in memory: see reports_loss() */
    for (uint32_t i = 0; i < curve->point_count; i++)
        reports->points[i] = curve->points[i];
    reports->salt = salt_of(curve, steps);
    double first = learning_loss(curve, 0);
    double last = learning_loss(curve, steps);
    for (uint32_t i = 0; i < LEARNING_LEVELS; i++)
        reports->marks[i] =
            learning_step(curve, learning_level_loss(first, last, learning_levels[i]));
    for (uint32_t i = 0; i < LEARNING_ACCURACIES; i++)
        if (learning_is_accuracy(first, last))
            reports->marks[LEARNING_LEVELS + i] = learning_step(
                curve, learning_accuracy_loss(last, learning_accuracies[i]));
    sort_marks(reports->marks);
}

double reports_next(const struct reports *reports, double steps)
{
    double now = steps + 1e-6; /* a mark reached before is not reached again */
    double next = (floor(now / reports->every) + 1) * reports->every;
    if (reports->curve.family == LEARNING_NONE)
        return next;
    if (now < reports->every)
        next = fmin(next, exp2(floor(log2(fmax(now, 0.5))) + 1));
    for (uint32_t i = 0; i < MARKS; i++)
        if (reports->marks[i] > now)
            return fmin(next, reports->marks[i]);
    return next;
}

static double noise_at(const struct reports *reports, double steps)
{
    const struct learning *curve = &reports->curve;
    if (curve->noise == 0 || steps <= 0 || steps >= reports->total)
        return 0;
    struct rng rng;
    rng_init(&rng, mix_salt(reports->salt, steps), "reports");
    return curve->noise * fabs(curve->first - curve->last) * rng_normal(&rng);
}

double reports_loss(const struct reports *reports, double steps)
{
    if (reports->curve.family == LEARNING_NONE)
        return NAN;
    if (reports->curve.family != LEARNING_POINTS)
        return learning_loss(&reports->curve, steps) + noise_at(reports, steps);
    struct learning curve = reports->curve;
    curve.points = reports->points;
    return learning_loss(&curve, steps) + noise_at(reports, steps);
}
