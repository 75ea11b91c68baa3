/*
 * resizes.c - how many GPUs an elastic job gets: SLAQ's question.
 *
 * A job starts with what it asks for.  Then it is resized in three ways.
 *
 * Once an epoch, GPUs go where a second of a job's time is worth most (seconds.h, the same
 * as in the policy slaq): jobs that learn quickly get more, jobs with a good model less.  When
 * GPUs become free and no job waits, running jobs grow into them in the same way at once.  A
 * resize has to pay until the job ends:
 *
 *     seconds saved  >  stop + theta x price          stop = pause + load + lost, price.c
 *
 * While jobs wait, free GPUs are left to them, and GPUs only change hands.
 *
 * For a job that waits, an elastic one gives up GPUs if that pays, in seconds:
 *
 *     W x (wait - pause)  >  V x (slower x small + stop) + theta x price
 *     small = max(wait, epoch) x jobs that wait, and not longer than until it ends
 *
 * with W and V the weights of both, 'wait' until enough GPUs are free because jobs end,
 * 'slower' the share of its speed that the elastic job loses, and 'small' the time until it
 * gets its GPUs back: when all that wait now have started.  An elastic job may start
 * smaller in this way; it then counts for the share of its speed that it has.
 *
 * A job is shrunk below what it asks for, and for a job that waits, only if sizes will be set
 * PARTS times before it ends: only then does it get its GPUs back in time.  Where resizes
 * cost minutes, jobs that were shrunk stayed small, and the last ones ended late.
 *
 * No cycles.  An epoch lasts at least ten times as long as any resize, so what is lost in
 * resizes is at most a tenth.  Between epochs a job grows into free GPUs only, which become
 * fewer with each growth, and shrinks only so that a waiting job starts; that one waits again
 * only after a preemption, and those do not go round (berth.c).
 *
 * Source: Zhang, Stafman, Or, Freedman: SLAQ, SoCC 2017.
 */
#include <math.h>

#include "base/bits.h"
#include "model/cluster.h"
#include "model/free_index.h"
#include "model/throughput.h"
#include "policy/berth/berth_internal.h"

/*
 * Chosen on seeds 1 to 3 of slaq's workload with drawn curves, PARTS of mixed;
 * docs/policies/berth.md says what others would do.
 */
#define EPOCH_NS 1000000000
#define FINISH 0.07    /* worth of a second to the end, against one to a good model  */
#define YOUNG 0.3      /* part of what is left that a step brings, until reports say */
#define GOAL 0.9       /* part of its improvement at which a model is good           */
#define PARTS 10       /* times that sizes are set, or a shrink is not made          */
#define SCANNED_MAX 48 /* running jobs of a type that are looked at                  */
#define JOBS_EACH \
    16 /* elastic jobs, in the mean over decisions, looked at for growth */

void resizes_init(struct berth_policy *berth, const struct view *view,
                  struct arena *run)
{
    elastic_init(&berth->elastic, view, run);
    berth->elastic.epoch_ns = berth->elastic.length_ns = EPOCH_NS;
    berth->elastic.apart = true;
    berth->seconds = (struct seconds){ .floor = berth->floor,
                                       .young = YOUNG,
                                       .goal = GOAL,
                                       .finish = FINISH,
                                       .forecaster = &berth->forecaster };
}

static double epoch_s(const struct berth_policy *berth)
{
    return (double)berth->elastic.length_ns * 1e-9;
}

/* It will be resized again before long, against the time it still has. */
static bool can_regain(const struct berth_policy *berth, const struct view *view,
                       job_id id)
{
    return PARTS * epoch_s(berth) <= berth_left_s(berth, view, id);
}

/* --- room for a job that waits -------------------------------------------------------- */

/* An elastic job that gives up GPUs. */
struct shrink {
    job_id job; /* JOB_NONE: no job does, or none for which that pays */
    uint32_t gpus;
    double gain_s;
};

static bool can_shrink(const struct berth_policy *berth, const struct view *view,
                       const struct plan *plan, job_id id)
{
    const struct job *job = &view->jobs[id];
    return job_is_elastic(job) && job->state == JOB_RUNNING &&
           job_is_preemptible(job) && !plan_changes(plan, id) &&
           job->partner == JOB_NONE && job->coming == JOB_NONE &&
           can_regain(berth, view, id);
}

/* Seconds until jobs of that type with so many GPUs have ended. */
static double wait_for_ends_s(const struct berth_policy *berth, const struct view *view,
                              uint32_t type, uint32_t gpus)
{
    uint32_t id = lazy_trees_first(berth->running, type);
    double wait_s = 0;
    uint32_t freed = 0;
    for (uint32_t i = 0; id != TREE_NONE && i < SCANNED_MAX && freed < gpus; i++) {
        wait_s = berth_left_s(berth, view, id);
        freed += view->jobs[id].gpus_now;
        id = lazy_trees_next(berth->running, id);
    }
    return wait_s;
}

/* The share of its speed with 'from' GPUs that a job has with 'to'; at most 1. */
static double speed_share(const struct view *view, const struct job *job, uint32_t type,
                          uint32_t from, uint32_t to)
{
    double before = throughput_rate(view->rates, job, type, from, false);
    double after = throughput_rate(view->rates, job, type, to, false);
    return before > 0 ? fmin(after / before, 1) : 0;
}

/* What is saved if 'id' starts with so many GPUs, 'given' of them from the other job. */
static double gain_of_room_s(const struct berth_policy *berth, const struct view *view,
                             job_id id, uint32_t gpus, job_id other, uint32_t given)
{
    const struct job *job = &view->jobs[id];
    const struct job *giver = &view->jobs[other];
    uint32_t type = giver->type_now;
    double wait_s = wait_for_ends_s(berth, view, type, given);
    double pause_s = cost_model_pause_s(&berth->cost_test.model, view, other);
    double share = speed_share(view, job, type, job->gpus, gpus);
    double slower =
        1 - speed_share(view, giver, type, giver->gpus_now, giver->gpus_now - given);
    double small_s = fmax(wait_s, epoch_s(berth)) * fmax(berth->queue_count, 1);
    double lost_s = slower * fmin(small_s, berth_left_s(berth, view, other)) +
                    price_stop_s(berth, view, other);
    return value_of(berth, view, id).weight * share * (wait_s - pause_s) -
           value_of(berth, view, other).weight * lost_s -
           berth->theta * price_of_stopping(berth, view, other);
}

/* GPUs of that job's type that are free where 'job' could use them together with its own. */
static uint32_t free_beside(const struct view *view, const struct job *job,
                            job_id other)
{
    if (job->spread)
        return view->free->shelves[view->jobs[other].type_now].gpu_count;
    node_id node = view_seats(view, other)[0].node;
    return view->free->listed[node] ? bits_count(view->free->rooms[node].gpus) : 0;
}

static struct shrink find_shrink(const struct berth_policy *berth,
                                 const struct view *view, const struct plan *plan,
                                 job_id id, uint32_t type, uint32_t gpus)
{
    struct shrink best = { .job = JOB_NONE };
    uint32_t other = lazy_trees_first(berth->running, type);
    for (uint32_t i = 0; other != TREE_NONE && i < SCANNED_MAX; i++) {
        const struct job *giver = &view->jobs[other];
        uint32_t there = can_shrink(berth, view, plan, other)
                             ? free_beside(view, &view->jobs[id], other)
                             : gpus;
        if (there < gpus &&
            berth_gpus_least(berth, giver) + (gpus - there) <= giver->gpus_now) {
            double gain_s = gain_of_room_s(berth, view, id, gpus, other, gpus - there);
            if (gain_s > best.gain_s)
                best =
                    (struct shrink){ other, giver->gpus_now - (gpus - there), gain_s };
        }
        other = lazy_trees_next(berth->running, other);
    }
    return best;
}

static bool start_with(struct berth_policy *berth, const struct view *view,
                       struct plan *plan, job_id id, uint32_t type, uint32_t gpus)
{
    struct shrink shrink = find_shrink(berth, view, plan, id, type, gpus);
    if (shrink.job == JOB_NONE)
        return false;
    size_t mark = plan_mark(plan);
    struct ask less = ASK_DEFAULT;
    struct ask ask = ASK_DEFAULT;
    less.gpus = shrink.gpus;
    ask.gpus = job_is_elastic(&view->jobs[id]) ? gpus : 0;
    less.types = ask.types = 1u << type;
    ask.avoid = berth_nodes_to_avoid(berth);
    if (plan_grant(plan, shrink.job, &less) && plan_grant(plan, id, &ask))
        return true;
    plan_undo(plan, mark);
    return false;
}

bool resizes_make_room(struct berth_policy *berth, const struct view *view,
                       struct plan *plan, job_id id)
{
    const struct job *job = &view->jobs[id];
    if (job->gpus == 0 || berth->elastic.member_count == 0)
        return false;
    uint32_t least = job_is_elastic(job) ? berth_gpus_least(berth, job) : job->gpus;
    for (uint32_t type = 0; type < view->cluster->type_count; type++)
        for (uint32_t gpus = job->gpus; (job->types >> type & 1) && gpus >= least;
             gpus /= 2)
            if (start_with(berth, view, plan, id, type, gpus))
                return true;
    return false;
}

/* --- an epoch -------------------------------------------------------------------------- */

/* What a resize costs the job, as a part of the epoch: it has to pay until the job ends. */
static void set_bounds(const struct berth_policy *berth, const struct view *view,
                       uint32_t index)
{
    struct gains_job *share = &berth->elastic.shares[index];
    job_id id = berth->elastic.jobs[index];
    const struct job *job = &view->jobs[id];
    double cost_s = price_stop_s(berth, view, id) +
                    berth->theta * price_of_stopping(berth, view, id);
    share->resize_s = cost_s * epoch_s(berth) / berth_left_s(berth, view, id);
    if (!objective_grows(berth))
        share->most = job->gpus_now > job->gpus ? job->gpus_now : job->gpus;
    if (can_regain(berth, view, id) && !berth->programme)
        return;
    uint32_t kept = job->gpus_now < job->gpus ? job->gpus_now : job->gpus;
    share->least = share->least > kept ? share->least : kept;
}

void resizes_make(struct berth_policy *berth, const struct view *view,
                  struct plan *plan, bool others_wait, bool freed)
{
    struct elastic *elastic = &berth->elastic;
    elastic->closed = others_wait;
    elastic->avoid = berth_nodes_to_avoid(berth);
    berth->can_grow = berth->can_grow || freed;
    if (berth->can_grow && !others_wait &&
        ++berth->decisions >= elastic->member_count / JOBS_EACH)
        elastic->grow_ns = view->now_ns;
    if (!elastic_begins(elastic, view))
        return;
    berth->can_grow = berth->can_grow && others_wait;
    berth->decisions = 0;
    elastic_start(elastic, view);
    for (uint32_t type = 0; type < view->cluster->type_count; type++) {
        if (elastic->placed_count == 0)
            return;
        if (elastic->reason != ELASTIC_EPOCH &&
            view->free->shelves[type].gpu_count == 0)
            continue;
        elastic_gather(elastic, view, type);
        for (uint32_t i = 0; i < elastic->running; i++)
            set_bounds(berth, view, i);
        seconds_forecast(&berth->seconds, elastic, view);
        seconds_value(&berth->seconds, elastic, view);
        seconds_share(elastic, view, epoch_s(berth));
        elastic_apply(elastic, view, plan);
    }
}
