/* pairs_problem.c - goals where pairs of jobs may share, by columns that pay. */
#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "solve/goal.h"
#include "solve/pairs.h"
#include "solve/lp/lp_goals.h"
#include "solve/programme_fast.h"

/* The programme as one for pairs: every job a class of its own. */
static struct pairing pairing_of(const struct frame *frame)
{
    const struct programme *p = frame->programme;
    return (struct pairing){ .class_count = p->job_count,
                             .type_count = p->type_count,
                             .pair_count = p->pair_count,
                             .capacity = p->capacity,
                             .gang = p->gang,
                             .rate = p->rate,
                             .pairs = p->pairs,
                             .pair_rate = p->pair_rate };
}

/* Of all shares that give every job its floor, the largest sum of normalised rates. */
static void tidy(const struct frame *frame, const struct fast_memory *memory,
                 const struct pairing *pairing, double *floor, struct shares *shares)
{
    size_t cells = (size_t)frame->line_count * pairing->type_count;
    double *x = arena_array(frame->arena, double, cells);
    double *rates = arena_array(frame->arena, double, pairing->class_count);
    for (uint32_t j = 0; j < pairing->class_count; j++)
        floor[j] *= 1 - FAST_FLOOR_SLACK;
    struct pairs_answer answer;
    int r = pairs_sum(memory->pairs, pairing, goal_normalised(frame), floor,
                      FAST_TOLERANCE, x, &answer, NULL);
    shares->iterations += answer.iterations;
    if (r < 0 || !answer.feasible)
        return;
    frame_tidy_up(frame, x);
    frame_rates(frame, x, rates);
    for (uint32_t j = 0; j < pairing->class_count; j++)
        if (rates[j] < floor[j] * (1 - FAST_KEPT))
            return;
    memcpy(shares->x, x, cells * sizeof *x);
}

/* What every job asks for per unit of the level: need, and ahead. */
static double *needs_of(const struct frame *frame, const struct demands *demands)
{
    uint32_t count = frame->programme->job_count;
    double *need = arena_array(frame->arena, double, count);
    for (uint32_t j = 0; j < count; j++)
        if (demands->unit[j] > 0)
            need[j] = demands->need ? demands->need[j] : 1 / demands->unit[j];
    return need;
}

static int pairs_least(const struct frame *frame, const struct fast_memory *memory,
                       struct shares *shares, struct error *err)
{
    const struct programme *p = frame->programme;
    struct demands demands = demands_of(frame);
    struct pairing pairing = pairing_of(frame);
    struct pairs_answer answer;
    int r = pairs_level(memory->pairs, &pairing, needs_of(frame, &demands),
                        demands.ahead, FAST_TOLERANCE, shares->x, &answer, err);
    if (r < 0)
        return r;
    frame_tidy_up(frame, shares->x);
    shares->iterations = answer.iterations;
    shares->objective = goal_reached(frame, shares->x);
    if (p->tidy) {
        double *floor = arena_array(frame->arena, double, p->job_count);
        for (uint32_t j = 0; j < p->job_count; j++)
            floor[j] = demands_rate(&demands, j, level_of(frame, shares->objective));
        tidy(frame, memory, &pairing, floor, shares);
        shares->objective = goal_reached(frame, shares->x);
    }
    shares->gap = relative_gap(answer.bound, level_of(frame, shares->objective));
    return 0;
}

static int pairs_water_filling(const struct frame *frame,
                               const struct fast_memory *memory, struct shares *shares,
                               struct error *err)
{
    const struct programme *p = frame->programme;
    struct demands demands = demands_of(frame);
    struct pairing pairing = pairing_of(frame);
    struct pairs_answer answer;
    double *level = arena_array(frame->arena, double, p->job_count);
    int r = pairs_fill(memory->pairs, &pairing, needs_of(frame, &demands),
                       FAST_TOLERANCE, shares->x, level, &answer, err);
    if (r < 0)
        return r;
    bool leftovers = false;
    frame_tidy_up(frame, shares->x);
    frame_rates(frame, shares->x, level);
    for (uint32_t j = 0; j < p->job_count; j++)
        if (!(demands.unit[j] > 0)) {
            leftovers = leftovers || frame->even[j] > 0;
            level[j] = 0;
        }
    shares->iterations = answer.iterations;
    if (p->tidy && leftovers)
        tidy(frame, memory, &pairing, level, shares);
    shares->objective = goal_reached(frame, shares->x);
    shares->gap = relative_gap(answer.bound, answer.reached);
    return 0;
}

static int pairs_largest_sum(const struct frame *frame,
                             const struct fast_memory *memory, struct shares *shares,
                             struct error *err)
{
    struct pairing pairing = pairing_of(frame);
    const double *floors, *values = goal_values(frame);
    struct pairs_answer answer = { .feasible = false };
    int r = 0;
    if (reachable_floors(frame, &floors))
        r = pairs_sum(memory->pairs, &pairing, values, floors, FAST_TOLERANCE,
                      shares->x, &answer, err);
    shares->iterations = answer.iterations;
    if (r == 0 && !answer.feasible) {
        floors_dropped(frame, shares);
        r = pairs_sum(memory->pairs, &pairing, values, NULL, FAST_TOLERANCE, shares->x,
                      &answer, err);
        shares->iterations += answer.iterations;
    }
    if (r < 0)
        return r;
    frame_tidy_up(frame, shares->x);
    shares->objective = goal_reached(frame, shares->x);
    shares->gap = relative_gap(answer.bound, shares->objective);
    return 0;
}

int fast_pairs(const struct frame *frame, const struct fast_memory *memory,
               struct shares *shares, struct error *err)
{
    switch (frame->programme->goal) {
    case GOAL_MAX_MIN:
    case GOAL_MAKESPAN:
    case GOAL_FINISH_TIME:
        return pairs_least(frame, memory, shares, err);
    case GOAL_WATER_FILLING:
        return pairs_water_filling(frame, memory, shares, err);
    case GOAL_SUM:
        return pairs_largest_sum(frame, memory, shares, err);
    default:
        return -ENOTSUP;
    }
}
