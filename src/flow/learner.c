/* learner.c - what a job's own reports say about how much it still has to learn. */
#include "flow/learner.h"

#include <math.h>
#include <string.h>

#define WEIGHT_PER_POINT 0.95 /* of a report, for each one after it */
#define AHEAD_MAX 1e9         /* steps: nobody looks further */

void learner_init(struct learner *learner)
{
    learner->count = 0;
    learner->fitted = learner->stale = false;
}

/* Every second point of the older half goes: recent ones stay dense. */
static void thin_out(struct learner *learner)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < learner->count; i++) {
        if (i > 0 && i < LEARNER_POINTS / 2 && i % 2 == 1)
            continue;
        learner->steps[kept] = learner->steps[i];
        learner->losses[kept++] = learner->losses[i];
    }
    learner->count = kept;
}

void learner_add(struct learner *learner, double steps, double loss)
{
    while (learner->count > 0 && learner->steps[learner->count - 1] >= steps)
        learner->count--;
    if (learner->count == LEARNER_POINTS)
        thin_out(learner);
    if (learner->count == 0)
        learner->first = learner->least = loss;
    learner->least = fmin(learner->least, loss);
    learner->steps[learner->count] = steps;
    learner->losses[learner->count++] = loss;
    learner->stale = true;
}

bool learner_wants_fit(const struct learner *learner)
{
    return learner->stale && learner->count >= LEARNER_POINTS_LEAST;
}

void learner_fit(struct learner *learner)
{
    if (!learner_wants_fit(learner))
        return;
    double weights[LEARNER_POINTS];
    family_weights(weights, learner->count, WEIGHT_PER_POINT);
    struct family_points points = { .step = learner->steps,
                                    .value = learner->losses,
                                    .weight = weights,
                                    .count = learner->count,
                                    .origin = fmin(learner->steps[0], 0),
                                    .sign = 1 };
    learner->best =
        family_fit_best(&points, &learner->inv, &learner->exp, learner->fitted);
    learner->fitted = true;
    learner->stale = false;
}

bool learner_knows(const struct learner *learner)
{
    return learner->fitted && learner->best.family != FAMILY_FLAT &&
           learner->best.limit < learner->first;
}

double learner_share(const struct learner *learner, double step)
{
    double way = learner->first - learner->best.limit;
    return (learner->first - family_at(&learner->best, step)) / way;
}

double learner_reaches(const struct learner *learner, double share, double step)
{
    double low = step;
    double ahead = 1;
    while (learner_share(learner, step + ahead) < share) {
        low = step + ahead;
        ahead *= 2;
        if (ahead > AHEAD_MAX)
            return INFINITY;
    }
    double high = step + ahead;
    for (uint32_t i = 0; i < 20 && high - low > 0.5; i++) {
        double middle = (low + high) / 2;
        if (learner_share(learner, middle) < share)
            low = middle;
        else
            high = middle;
    }
    return high;
}
