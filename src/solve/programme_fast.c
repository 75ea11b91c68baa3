/* programme_fast.c - goals by prices: few types, many jobs. */
#include "solve/programme_fast.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "solve/classes.h"
#include "solve/goal.h"
#include "solve/market.h"

#define TOLERANCE 1e-8
#define SAMPLE 256 /* jobs that are looked at to see whether many are alike */

/* What the jobs ask for in a market: rate * unit >= need z / (1 - ahead z). */
struct demands {
    const double *unit;  /* [job]; 0: has no part in it */
    const double *need;  /* [job]; NULL: 1              */
    const double *ahead; /* [job]; NULL: 0              */
};

static struct demands demands_of(const struct frame *frame)
{
    const struct programme *p = frame->programme;
    if (p->goal != GOAL_FINISH_TIME)
        return (struct demands){ .unit = goal_units(frame) };
    struct finish_terms terms = goal_finish_terms(frame);
    double *unit = arena_array(frame->arena, double, p->job_count);
    for (uint32_t j = 0; j < p->job_count; j++)
        unit[j] = terms.need[j] > 0 ? 1 : 0;
    return (struct demands){ unit, terms.need, terms.ahead };
}

/* The job as a buyer; 'rate' has room for its rates. */
static struct buyer buyer_of(const struct frame *frame, const struct demands *demands,
                             uint32_t job, double *rate)
{
    const struct programme *p = frame->programme;
    const double *row = &p->rate[(size_t)job * p->type_count];
    for (uint32_t t = 0; t < p->type_count; t++)
        rate[t] = p->capacity[t] > 0 ? row[t] * demands->unit[job] : 0;
    return (struct buyer){ .rate = rate,
                           .gang = p->gang[job],
                           .need = demands->need ? demands->need[job] : 1,
                           .ahead = demands->ahead ? demands->ahead[job] : 0 };
}

/* Do a few jobs, taken from everywhere, hardly repeat each other? */
static bool hardly_alike(const struct frame *frame, const struct demands *demands)
{
    const struct programme *p = frame->programme;
    uint32_t count = p->job_count < SAMPLE ? p->job_count : SAMPLE;
    uint32_t alike = 0;
    for (uint32_t i = 1; i < count; i++) {
        uint32_t job = (uint32_t)((uint64_t)i * p->job_count / count);
        const double *row = &p->rate[(size_t)job * p->type_count];
        for (uint32_t k = 0; k < i; k++) {
            uint32_t other = (uint32_t)((uint64_t)k * p->job_count / count);
            if (p->gang[job] == p->gang[other] &&
                demands->unit[job] == demands->unit[other] &&
                (!demands->need || demands->need[job] == demands->need[other]) &&
                memcmp(row, &p->rate[(size_t)other * p->type_count],
                       p->type_count * sizeof *row) == 0) {
                alike++;
                break;
            }
        }
    }
    return alike < count / 8;
}

/* MAX_MIN, MAKESPAN, FINISH_TIME: the largest level that all can have. */
static int fast_least(const struct frame *frame, struct classes *classes, bool keeps,
                      struct shares *shares, struct error *err)
{
    const struct programme *p = frame->programme;
    struct demands demands = demands_of(frame);
    double rate[SOLVE_TYPES_MAX];
    uint32_t *place = arena_array(frame->arena, uint32_t, p->job_count);
    /* Where levels are kept for the next time, those who stay must be recognised. */
    bool apart = !(keeps && p->goal == GOAL_MAX_MIN) && hardly_alike(frame, &demands);
    classes_begin(classes, p->type_count, p->capacity, p->job_count, apart);
    for (uint32_t j = 0; j < p->job_count; j++)
        if (demands.unit[j] > 0) {
            struct buyer buyer = buyer_of(frame, &demands, j, rate);
            place[j] = classes_put(classes, &buyer);
        }
    struct market *market = classes_end(classes);
    struct market_answer answer;
    int r = market_solve(market, TOLERANCE, &answer, err);
    if (r < 0)
        return r;
    for (uint32_t j = 0; j < p->job_count; j++)
        if (demands.unit[j] > 0)
            market_share(market, place[j], &shares->x[(size_t)j * p->type_count]);
    frame_tidy_up(frame, shares->x);
    shares->iterations = answer.passes;
    shares->objective = goal_reached(frame, shares->x);
    double level = p->goal == GOAL_MAX_MIN ? shares->objective : 1 / shares->objective;
    shares->gap = answer.bound > 0 ? fmax(0, (answer.bound - level) / answer.bound) : 0;
    return 0;
}

int fast_solve(const struct frame *frame, struct classes *classes, bool keeps,
               struct shares *shares, struct error *err)
{
    const struct programme *p = frame->programme;
    if (p->pair_count > 0)
        return -ENOTSUP;
    switch (p->goal) {
    case GOAL_MAX_MIN:
    case GOAL_MAKESPAN:
    case GOAL_FINISH_TIME:
        return p->tidy ? -ENOTSUP : fast_least(frame, classes, keeps, shares, err);
    default:
        return -ENOTSUP;
    }
}
