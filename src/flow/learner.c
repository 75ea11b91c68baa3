/* learner.c - what a job's own reports say about how much it still has to learn. */
#include "flow/learner.h"

#include <math.h>
#include <string.h>

#define WEIGHT_PER_POINT 0.95 /* of a report, for each one after it */
#define LEARNER_NEW 8         /* newest reports that stay as they are */
#define AHEAD_MAX 1e9         /* steps: nobody looks further */

void learner_init(struct learner *learner)
{
    learner->count = 0;
    learner->fitted = learner->stale = false;
}

/*
 * Put two neighbours together: those that lie closest for their age.  So points get
 * sparser with age as on a logarithmic scale, each a mean of all it stands for, and noise
 * gets less.  The first stays as it is, and so do the newest.
 */
static void thin_out(struct learner *learner)
{
    uint32_t last = learner->count - 1;
    uint32_t best = 1;
    double least = INFINITY;
    for (uint32_t i = 1; i + LEARNER_NEW < learner->count; i++) {
        double apart = learner->steps[i + 1] - learner->steps[i - 1];
        double age = learner->steps[last] - learner->steps[i];
        if (apart < least * age) {
            least = apart / age;
            best = i;
        }
    }
    double all = learner->many[best] + learner->many[best + 1];
    double share = learner->many[best + 1] / all;
    learner->steps[best] += share * (learner->steps[best + 1] - learner->steps[best]);
    learner->losses[best] +=
        share * (learner->losses[best + 1] - learner->losses[best]);
    learner->many[best] = all;
    for (uint32_t i = best + 1; i < last; i++) {
        learner->steps[i] = learner->steps[i + 1];
        learner->losses[i] = learner->losses[i + 1];
        learner->many[i] = learner->many[i + 1];
    }
    learner->count--;
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
    learner->many[learner->count] = 1;
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
    for (uint32_t i = 0; i < learner->count; i++)
        weights[i] *= learner->many[i];
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
