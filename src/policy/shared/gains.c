/* gains.c - GPUs to jobs by what they gain: SLAQ's allocation, and the fair one. */
#include "policy/shared/gains.h"

#include <assert.h>
#include <math.h>

static uint32_t least_of(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* --- what a job gains ---------------------------------------------------------------- */

double gains_of(const struct gains_job *job, double gpus, double seconds)
{
    if (gpus <= 0 || seconds <= 0)
        return 0;
    if (job->second > 0)
        return job->second * seconds * (1 + job->half_gpus * (1 - 1 / gpus));
    if (job->ahead.family == FAMILY_FLAT)
        return 0;
    double step_s = job->work_s / gpus + job->fixed_s;
    return curve_ahead_drop(&job->ahead, step_s > 0 ? seconds / step_s : INFINITY);
}

/* A pause of a second costs a second, in which w/a + t0 of a step's time is not made. */
double gains_of_resize(const struct gains_job *job, double from, double to,
                       double seconds, double pause_s)
{
    if (job->second == 0)
        return gains_of(job, to, seconds - pause_s) - gains_of(job, from, seconds);
    double saved = job->half_gpus * (1 / from - 1 / to);
    double paused = 1 + job->half_gpus / from;
    return job->second * (saved * fmax(seconds - pause_s, 0) - paused * pause_s);
}

/* --- even shares ------------------------------------------------------------------ */

static uint32_t clamp_to_bounds(const struct gains_job *job, uint32_t level)
{
    return level < job->least ? job->least : least_of(level, job->most);
}

static uint64_t count_needed(const struct gains_job *jobs, uint32_t count,
                             uint32_t level)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < count; i++)
        sum += clamp_to_bounds(&jobs[i], level);
    return sum;
}

/*
 * Give each job its least; jobs for which not enough is left get nothing and no more.
 */
static uint32_t give_least(struct gains_job *jobs, uint32_t count, uint32_t gpus)
{
    for (uint32_t i = 0; i < count; i++) {
        assert(jobs[i].least <= jobs[i].most);
        bool fits = jobs[i].least <= gpus;
        if (!fits)
            jobs[i].least = jobs[i].most = 0;
        jobs[i].gpus = jobs[i].least;
        gpus -= jobs[i].least;
    }
    return gpus;
}

uint32_t gains_level(struct gains_job *jobs, uint32_t count, uint32_t gpus)
{
    uint32_t over = give_least(jobs, count, gpus);
    uint32_t low = 0; /* a feasible level, and one too high */
    uint32_t high = gpus == UINT32_MAX ? gpus : gpus + 1;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (count_needed(jobs, count, middle) <= gpus)
            low = middle;
        else
            high = middle;
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t share = clamp_to_bounds(&jobs[i], low);
        over -= share - jobs[i].gpus;
        jobs[i].gpus = share;
    }
    for (uint32_t i = 0; i < count && over > 0; i++)
        if (jobs[i].gpus == low && jobs[i].gpus < jobs[i].most) {
            jobs[i].gpus++;
            over--;
        }
    return over;
}

/* --- shares by gain --------------------------------------------------------------- */

static bool offers_more(const struct gains_heap *a, const struct gains_heap *b)
{
    return a->gain > b->gain || (a->gain == b->gain && a->job < b->job);
}

static void sift_down(struct gains_heap *heap, uint32_t count, uint32_t at)
{
    struct gains_heap moved = heap[at];
    for (uint32_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && offers_more(&heap[child + 1], &heap[child]))
            child++;
        if (!offers_more(&heap[child], &moved))
            break;
        heap[at] = heap[child];
    }
    heap[at] = moved;
}

/* The best average gain per further GPU, and over how many GPUs; at most 'gpus'. */
static struct gains_heap best_offer(const struct gains_job *jobs, uint32_t index,
                                    uint32_t gpus, double seconds)
{
    const struct gains_job *job = &jobs[index];
    struct gains_heap best = { .job = index };
    uint32_t room = least_of(job->most - job->gpus, gpus);
    if (gains_are_unknown(job) || room == 0)
        return best;
    double now = gains_of(job, job->gpus, seconds);
    bool concave = job->second > 0 || curve_ahead_is_convex(&job->ahead);
    uint32_t furthest = concave ? 1 : room;
    for (uint32_t step = 1;;) {
        double gain = (gains_of(job, (double)job->gpus + step, seconds) - now) / step;
        if (gain > best.gain) {
            best.gain = gain;
            best.step = step;
        }
        if (step >= furthest)
            return best;
        step = step > furthest / 2 ? furthest : 2 * step;
    }
}

uint32_t gains_share(struct gains_job *jobs, uint32_t count, uint32_t gpus,
                     double seconds, struct gains_heap *heap)
{
    gpus = give_least(jobs, count, gpus);
    uint32_t offers = 0;
    for (uint32_t i = 0; i < count; i++) {
        heap[offers] = best_offer(jobs, i, gpus, seconds);
        offers += heap[offers].step > 0;
    }
    for (uint32_t i = offers / 2; i-- > 0;)
        sift_down(heap, offers, i);
    while (gpus > 0 && offers > 0) {
        uint32_t job = heap[0].job;
        if (heap[0].step <= gpus) {
            jobs[job].gpus += heap[0].step;
            gpus -= heap[0].step;
        } /* else fewer are left than it was computed for */
        heap[0] = best_offer(jobs, job, gpus, seconds);
        if (heap[0].step == 0)
            heap[0] = heap[--offers];
        sift_down(heap, offers, 0);
    }
    if (gpus == 0)
        return 0;
    for (uint32_t i = 0; i < count; i++) {
        jobs[i].least = jobs[i].gpus;
        gpus += jobs[i].gpus;
    }
    return gains_level(jobs, count, gpus);
}
