/* fast_pairs.c - goals where pairs of jobs may share, by columns that pay. */
#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "solve/goal.h"
#include "solve/pairs.h"
#include "solve/programme_clp.h"
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
    shares->gap = relative_gap(answer.bound, level_of(frame, shares->objective));
    return 0;
}

int fast_pairs(const struct frame *frame, const struct fast_memory *memory,
               struct shares *shares, struct error *err)
{
    if (frame->programme->tidy)
        return -ENOTSUP;
    switch (frame->programme->goal) {
    case GOAL_MAX_MIN:
    case GOAL_MAKESPAN:
    case GOAL_FINISH_TIME:
        return pairs_least(frame, memory, shares, err);
    default:
        return -ENOTSUP;
    }
}
