/* gains.c - units to jobs by what they gain: SLAQ's allocation, and the fair one. */
#include "policy/shared/gains.h"

#include <assert.h>
#include <math.h>

static uint32_t least_of(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* --- what a job gains ---------------------------------------------------------------- */

static double steps_in(const struct gains_job *job, double units, double seconds)
{
    double step_s = job->work_s / units + job->fixed_s;
    return fmin(step_s > 0 ? seconds / step_s : INFINITY, job->left);
}

double gains_of(const struct gains_job *job, double units, double seconds)
{
    if (units <= 0 || seconds <= 0 || job->family == FAMILY_FLAT)
        return 0;
    double steps = steps_in(job, units, seconds);
    if (job->family == FAMILY_EXP)
        return -job->scale * job->height * expm1(-job->rate * steps);
    if (steps == INFINITY)
        return job->scale / job->c;
    double ahead = (job->a * steps + job->b) * steps;
    return job->scale * ahead / (job->c * (ahead + job->c));
}

void gains_declared(struct gains_job *job, const struct learning *curve, double at,
                    double end)
{
    bool is_inv = curve->family == LEARNING_INV;
    double a = curve->a / curve->c;
    double b = curve->b / curve->c;
    double rest = 0; /* of its way, when it ends */
    job->family = is_inv ? FAMILY_INV : FAMILY_EXP;
    job->rate = curve->family == LEARNING_ACC ? 1 / curve->tau : -log(curve->mu);
    job->height = exp(-job->rate * at);
    if (is_inv) {
        job->a = a;
        job->b = 2 * a * at + b;
        job->c = (a * at + b) * at + 1;
    }
    if (end < INFINITY)
        rest = is_inv ? 1 / ((a * end + b) * end + 1) : exp(-job->rate * end);
    job->scale = 1 / (1 - rest);
    job->left = fmax(end - at, 0);
}

/* Its curve bends upwards from here on, so each further unit brings less. */
static bool is_concave(const struct gains_job *job)
{
    return job->family != FAMILY_INV || job->b * job->b >= job->a * job->c;
}

/* --- evenly -------------------------------------------------------------------------- */

static uint32_t clamped(const struct gains_job *job, uint32_t level)
{
    return level < job->least ? job->least : least_of(level, job->most);
}

static uint64_t needed(const struct gains_job *jobs, uint32_t count, uint32_t level)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < count; i++)
        sum += clamped(&jobs[i], level);
    return sum;
}

/* Give everybody its least; those who come too late for it get nothing, and no more. */
static uint32_t give_least(struct gains_job *jobs, uint32_t count, uint32_t units)
{
    for (uint32_t i = 0; i < count; i++) {
        assert(jobs[i].least <= jobs[i].most);
        bool fits = jobs[i].least <= units;
        if (!fits)
            jobs[i].least = jobs[i].most = 0;
        jobs[i].units = jobs[i].least;
        units -= jobs[i].least;
    }
    return units;
}

uint32_t gains_level(struct gains_job *jobs, uint32_t count, uint32_t units)
{
    uint32_t over = give_least(jobs, count, units);
    uint32_t low = 0; /* a level that can be had, and one that is too high */
    uint32_t high = units == UINT32_MAX ? units : units + 1;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (needed(jobs, count, middle) <= units)
            low = middle;
        else
            high = middle;
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t share = clamped(&jobs[i], low);
        over -= share - jobs[i].units;
        jobs[i].units = share;
    }
    for (uint32_t i = 0; i < count && over > 0; i++)
        if (jobs[i].units == low && jobs[i].units < jobs[i].most) {
            jobs[i].units++;
            over--;
        }
    return over;
}

/* --- by gain ------------------------------------------------------------------------- */

static bool is_before(const struct gains_heap *a, const struct gains_heap *b)
{
    return a->gain > b->gain || (a->gain == b->gain && a->job < b->job);
}

static void sift_down(struct gains_heap *heap, uint32_t count, uint32_t at)
{
    struct gains_heap moved = heap[at];
    for (uint32_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && is_before(&heap[child + 1], &heap[child]))
            child++;
        if (!is_before(&heap[child], &moved))
            break;
        heap[at] = heap[child];
    }
    heap[at] = moved;
}

/*
 * What a unit more brings, and how many at a time it is the average of; at most 'units'.
 */
static struct gains_heap offer(const struct gains_job *jobs, uint32_t index,
                               uint32_t units, double seconds)
{
    const struct gains_job *job = &jobs[index];
    struct gains_heap best = { .job = index };
    uint32_t room = least_of(job->most - job->units, units);
    if (job->family == FAMILY_FLAT || room == 0)
        return best;
    double now = gains_of(job, job->units, seconds);
    uint32_t furthest = is_concave(job) ? 1 : room;
    for (uint32_t step = 1;;) {
        double gain = (gains_of(job, (double)job->units + step, seconds) - now) / step;
        if (gain > best.gain) {
            best.gain = gain;
            best.step = step;
        }
        if (step >= furthest)
            return best;
        step = step > furthest / 2 ? furthest : 2 * step;
    }
}

uint32_t gains_share(struct gains_job *jobs, uint32_t count, uint32_t units,
                     double seconds, struct gains_heap *heap)
{
    units = give_least(jobs, count, units);
    uint32_t offers = 0;
    for (uint32_t i = 0; i < count; i++) {
        heap[offers] = offer(jobs, i, units, seconds);
        offers += heap[offers].step > 0;
    }
    for (uint32_t i = offers / 2; i-- > 0;)
        sift_down(heap, offers, i);
    while (units > 0 && offers > 0) {
        uint32_t job = heap[0].job;
        if (heap[0].step <= units) {
            jobs[job].units += heap[0].step;
            units -= heap[0].step;
        } /* else less is left than its offer was for */
        heap[0] = offer(jobs, job, units, seconds);
        if (heap[0].step == 0)
            heap[0] = heap[--offers];
        sift_down(heap, offers, 0);
    }
    if (units == 0)
        return 0;
    for (uint32_t i = 0; i < count; i++) {
        jobs[i].least = jobs[i].units;
        units += jobs[i].units;
    }
    return gains_level(jobs, count, units);
}
