/* elastic.c - jobs that can have more or fewer GPUs, resized once an epoch. */
#include "policy/shared/elastic.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/grow.h"
#include "base/sort.h"
#include "model/free.h"
#include "model/reasons.h"

#define EPOCH_PER_RESIZE 10
#define PRESSED_MAX 16 /* who wait, for whom room is made before the epoch */

struct member {
    job_id job;
    uint32_t generation; /* of the slot: another one means that this job is over */
};

void elastic_init(struct elastic *elastic, const struct view *view, struct arena *run)
{
    elastic->grow_ns = INT64_MAX;
    queue_init(&elastic->waiting, run, view->job_max);
    elastic->cpu_only = arena_array(run, bool, view->job_max);
}

void elastic_release(struct elastic *elastic)
{
    free(elastic->members);
    free(elastic->shares);
    free(elastic->jobs);
    free(elastic->heap);
    free(elastic->shrinks);
    free(elastic->grows);
    free(elastic->scratch);
}

/* --- who is there -------------------------------------------------------------------- */

static bool is_alive(const struct view *view, const struct member *member)
{
    const struct job *job = &view->jobs[member->job];
    return job->state != JOB_FREE && job->generation == member->generation;
}

static void forget_the_dead(struct elastic *elastic, const struct view *view)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < elastic->member_count; i++)
        if (is_alive(view, &elastic->members[i]))
            elastic->members[kept++] = elastic->members[i];
    elastic->member_count = kept;
}

/* Room for everybody is made here, so that a decision need not. */
static void join(struct elastic *elastic, const struct view *view, job_id job)
{
    if (elastic->member_count == elastic->member_room)
        forget_the_dead(elastic, view);
    uint32_t want = elastic->member_count + 1;
    elastic->members =
        grow(elastic->members, &elastic->member_room, want, sizeof *elastic->members);
    elastic->shares =
        grow(elastic->shares, &elastic->share_room, want, sizeof *elastic->shares);
    elastic->jobs =
        grow(elastic->jobs, &elastic->job_room, want, sizeof *elastic->jobs);
    elastic->heap =
        grow(elastic->heap, &elastic->heap_room, want, sizeof *elastic->heap);
    elastic->shrinks =
        grow(elastic->shrinks, &elastic->shrink_room, want, sizeof *elastic->shrinks);
    elastic->grows =
        grow(elastic->grows, &elastic->grow_room, want, sizeof *elastic->grows);
    elastic->scratch =
        grow(elastic->scratch, &elastic->scratch_room, want, sizeof *elastic->scratch);
    elastic->members[elastic->member_count++] =
        (struct member){ job, view->jobs[job].generation };
}

static void wait_in_line(struct elastic *elastic, const struct view *view, job_id job)
{
    if (elastic->waiting.links[job].inside)
        return;
    elastic->cpu_only[job] = view->jobs[job].gpus == 0;
    elastic->cpu_only_count += elastic->cpu_only[job];
    queue_add(&elastic->waiting, view, job);
}

static void leave_the_line(struct elastic *elastic, job_id job)
{
    if (!elastic->waiting.links[job].inside)
        return;
    elastic->cpu_only_count -= elastic->cpu_only[job];
    queue_remove(&elastic->waiting, job);
}

void elastic_observe(struct elastic *elastic, const struct view *view,
                     const struct event *event)
{
    if (event->kind == EVENT_SUBMITTED || event->kind == EVENT_ADOPTED)
        join(elastic, view, event->job);
    if (event_makes_waiting(event, view))
        wait_in_line(elastic, view, event->job);
    else if (event_ends_waiting(event, view))
        leave_the_line(elastic, event->job);
    /* A newcomer, or one who can be asked to make room for one who waits. */
    if (elastic->waiting.count <= PRESSED_MAX &&
        (event_makes_waiting(event, view) || event->kind == EVENT_LOADED ||
         event->kind == EVENT_RESIZED))
        elastic->arrived = true;
    bool ended = event->kind == EVENT_FINISHED || event->kind == EVENT_FAILED;
    if (ended && elastic->length_ns > elastic->epoch_ns)
        elastic->grow_ns = view->now_ns; /* the next epoch is too far */
    if (event->kind != EVENT_WAKE)
        elastic->changed = true;
}

/* --- an epoch ------------------------------------------------------------------------ */

/* Somebody has come and not half of an equal share is free. */
static bool is_pressed(const struct elastic *elastic, const struct view *view)
{
    if (!elastic->arrived || !elastic->any)
        return false;
    job_id id = elastic->waiting.first;
    while (id != JOB_NONE && elastic->cpu_only[id])
        id = queue_next(&elastic->waiting, id);
    return id != JOB_NONE &&
           view->free->gpu_count < fmin(elastic->fair, view->jobs[id].gpus_max) / 2;
}

bool elastic_begins(const struct elastic *elastic, const struct view *view)
{
    return (elastic->changed && view->now_ns >= elastic->next_ns) ||
           view->now_ns >= elastic->grow_ns || is_pressed(elastic, view);
}

static int64_t resize_ns(const struct job *job)
{
    return job->pause_ns + job->load_ns;
}

/* Its size is ours to set. */
static bool is_ours(const struct job *job)
{
    return job_is_elastic(job) && job_may_leave(job) && job->state != JOB_LOADING &&
           job->partner == JOB_NONE && job->coming == JOB_NONE && job->gpus_now > 0;
}

/* It will be ours at the next epoch, though nothing more may happen until then. */
static bool is_on_its_way(const struct job *job)
{
    return job_is_elastic(job) && (job->state == JOB_LOADING ||
                                   job->state == JOB_PLACED || job->next.count > 0);
}

static void add_share(struct elastic *elastic, const struct view *view, job_id job)
{
    elastic->jobs[elastic->count] = job;
    elastic->shares[elastic->count++] =
        (struct gains_job){ .least = view->jobs[job].gpus_min,
                            .most = view->jobs[job].gpus_max };
}

/* In order of submission, up to the first for whom there will be no room. */
static void gather_waiting(struct elastic *elastic, const struct view *view,
                           uint32_t units)
{
    for (job_id id = elastic->waiting.first; id != JOB_NONE;
         id = queue_next(&elastic->waiting, id)) {
        const struct job *job = &view->jobs[id];
        if (job->gpus == 0)
            continue;
        if (job->gpus_min > units)
            return;
        units -= job->gpus_min;
        add_share(elastic, view, id);
    }
}

void elastic_gather(struct elastic *elastic, const struct view *view)
{
    uint32_t least = 0;
    bool unsettled = false;
    elastic->any = false;
    elastic->count = 0;
    elastic->units = view->free->gpu_count;
    elastic->length_ns = elastic->epoch_ns;
    forget_the_dead(elastic, view);
    for (uint32_t i = 0; i < elastic->member_count; i++) {
        job_id id = elastic->members[i].job;
        const struct job *job = &view->jobs[id];
        elastic->any = elastic->any || job_is_elastic(job);
        int64_t enough_ns = EPOCH_PER_RESIZE * resize_ns(job);
        if (job_is_elastic(job) && enough_ns > elastic->length_ns)
            elastic->length_ns = enough_ns;
        if (!is_ours(job)) {
            unsettled = unsettled || is_on_its_way(job);
            continue;
        }
        elastic->units += job->gpus_now;
        least += job->gpus_min;
        add_share(elastic, view, id);
    }
    elastic->running = elastic->count;
    gather_waiting(elastic, view, elastic->units - least);
    elastic->fair =
        elastic->count > 0 ? (double)elastic->units / elastic->count : elastic->units;
    elastic->reason = view->now_ns >= elastic->next_ns   ? ELASTIC_EPOCH
                      : view->now_ns >= elastic->grow_ns ? ELASTIC_SHRUNK
                                                         : ELASTIC_ARRIVAL;
    if (elastic->reason != ELASTIC_EPOCH)
        return;
    elastic->began = true;
    elastic->next_ns = view->now_ns + elastic->length_ns;
    elastic->changed = unsettled;
}

/* --- between epochs ------------------------------------------------------------------ */

/* Jobs that idle since a lease was over, which another policy gave, go on. */
static void wake_idle(struct elastic *elastic, const struct view *view,
                      struct plan *plan)
{
    for (uint32_t i = 0; i < elastic->member_count; i++) {
        job_id id = elastic->members[i].job;
        const struct job *job = &view->jobs[id];
        if (job->state == JOB_IDLE && !plan_changes(plan, id)) {
            struct ask ask = ASK_DEFAULT;
            ask.gpus = job->gpus_now;
            ask.beside = job->partner;
            plan_grant(plan, id, &ask);
        }
    }
}

static bool start_at_once(const struct elastic *elastic, struct plan *plan,
                          const struct job *job, job_id id)
{
    double fair = fmin(fmax(elastic->fair, job->gpus_min), job->gpus_max);
    return !plan_is_full(plan) &&
           elastic_start(plan, id, (uint32_t)fair, job->gpus_min) > 0;
}

void elastic_between(struct elastic *elastic, const struct view *view,
                     struct plan *plan)
{
    bool blocked = false;
    for (job_id id = elastic->waiting.first;
         id != JOB_NONE && !(blocked && elastic->cpu_only_count == 0);
         id = queue_next(&elastic->waiting, id)) {
        const struct job *job = &view->jobs[id];
        if (plan_changes(plan, id))
            continue;
        if (job->gpus == 0)
            plan_grant(plan, id, NULL);
        else
            blocked = blocked || !start_at_once(elastic, plan, job, id);
    }
    if (elastic->began)
        wake_idle(elastic, view, plan);
    elastic->began = elastic->arrived = false;
    int64_t wake_ns = elastic->changed ? elastic->next_ns : INT64_MAX;
    if (elastic->grow_ns < wake_ns)
        wake_ns = elastic->grow_ns;
    if (wake_ns < INT64_MAX && elastic->member_count > 0)
        plan_wake(plan, wake_ns);
}

void elastic_explain(const struct elastic *elastic, const struct view *view, job_id job,
                     struct reasons *reasons)
{
    job_id first = queue_ahead(&elastic->waiting, view, job, reasons);
    if (first != JOB_NONE)
        reasons_add(reasons, "order",
                    "job %" PRIu64
                    " came before it and has not got room; nobody passes",
                    view->jobs[first].id);
    if (elastic->next_ns > view->now_ns)
        reasons_add(reasons, "round", "sizes are set anew in %.3g s",
                    (double)(elastic->next_ns - view->now_ns) * 1e-9);
}
