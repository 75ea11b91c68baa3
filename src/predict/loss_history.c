/* loss_history.c - a job's loss reports, and how much it still has to learn. */
#include "predict/loss_history.h"

#include <math.h>

#define WEIGHT_PER_POINT 0.95 /* of a report, for each one after it */
#define LOSS_HISTORY_NEW 8    /* newest reports that stay as they are */
#define AHEAD_MAX 1e9         /* steps: the search ends there */

void loss_history_init(struct loss_history *history)
{
    history->count = 0;
    history->fitted = history->stale = false;
}

/*
 * Merge two neighbours: those that lie closest for their age.  So points get sparser
 * with age as on a logarithmic scale, each a mean of several reports, and noise gets
 * less.  The first point stays as it is, and so do the newest.
 */
static void thin_out(struct loss_history *history)
{
    uint32_t last = history->count - 1;
    uint32_t best = 1;
    double least = INFINITY;
    for (uint32_t i = 1; i + LOSS_HISTORY_NEW < history->count; i++) {
        double apart = history->steps[i + 1] - history->steps[i - 1];
        double age = history->steps[last] - history->steps[i];
        if (apart < least * age) {
            least = apart / age;
            best = i;
        }
    }
    double all = history->many[best] + history->many[best + 1];
    double share = history->many[best + 1] / all;
    history->steps[best] += share * (history->steps[best + 1] - history->steps[best]);
    history->losses[best] +=
        share * (history->losses[best + 1] - history->losses[best]);
    history->many[best] = all;
    for (uint32_t i = best + 1; i < last; i++) {
        history->steps[i] = history->steps[i + 1];
        history->losses[i] = history->losses[i + 1];
        history->many[i] = history->many[i + 1];
    }
    history->count--;
}

void loss_history_add(struct loss_history *history, double steps, double loss)
{
    while (history->count > 0 && history->steps[history->count - 1] >= steps)
        history->count--;
    if (history->count == LOSS_HISTORY_POINTS)
        thin_out(history);
    if (history->count == 0)
        history->first = history->least = loss;
    history->least = fmin(history->least, loss);
    history->steps[history->count] = steps;
    history->many[history->count] = 1;
    history->losses[history->count++] = loss;
    history->stale = true;
}

bool loss_history_wants_fit(const struct loss_history *history)
{
    return history->stale && history->count >= LOSS_HISTORY_POINTS_LEAST;
}

void loss_history_fit(struct loss_history *history)
{
    if (!loss_history_wants_fit(history))
        return;
    double weights[LOSS_HISTORY_POINTS];
    family_weights(weights, history->count, WEIGHT_PER_POINT);
    for (uint32_t i = 0; i < history->count; i++)
        weights[i] *= history->many[i];
    struct family_points points = { .step = history->steps,
                                    .value = history->losses,
                                    .weight = weights,
                                    .count = history->count,
                                    .origin = fmin(history->steps[0], 0),
                                    .sign = 1 };
    history->best =
        family_fit_best(&points, &history->inv, &history->exp, history->fitted);
    history->fitted = true;
    history->stale = false;
}

bool loss_history_has_limit(const struct loss_history *history)
{
    return history->fitted && history->best.family != FAMILY_FLAT &&
           history->best.limit < history->first;
}

double loss_history_noise(const struct loss_history *history)
{
    double way = history->first - history->best.limit;
    return sqrt(history->best.sse / history->best.weight) / way;
}

double loss_history_share(const struct loss_history *history, double step)
{
    double way = history->first - history->best.limit;
    return (history->first - family_at(&history->best, step)) / way;
}

double loss_history_step_at(const struct loss_history *history, double share,
                            double step)
{
    double low = step;
    double ahead = 1;
    while (loss_history_share(history, step + ahead) < share) {
        low = step + ahead;
        ahead *= 2;
        if (ahead > AHEAD_MAX)
            return INFINITY;
    }
    double high = step + ahead;
    for (uint32_t i = 0; i < 20 && high - low > 0.5; i++) {
        double middle = (low + high) / 2;
        if (loss_history_share(history, middle) < share)
            low = middle;
        else
            high = middle;
    }
    return high;
}
