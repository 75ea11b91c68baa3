/* elastic.c - jobs that can have more or fewer GPUs, resized once an epoch. */
#include "policy/elastic.h"

#include <math.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/grow.h"
#include "model/free.h"

#define EPOCH_PER_RESIZE 10

struct member {
    job_id job;
    uint32_t generation; /* of the slot: another one means that this job is over */
};

void elastic_init(struct elastic *elastic, const struct view *view, struct arena *run)
{
    queue_init(&elastic->waiting, run, view->job_max);
}

void elastic_release(struct elastic *elastic)
{
    free(elastic->members);
    free(elastic->shares);
    free(elastic->jobs);
    free(elastic->heap);
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
    elastic->members[elastic->member_count++] =
        (struct member){ job, view->jobs[job].generation };
}

void elastic_observe(struct elastic *elastic, const struct view *view,
                     const struct event *event)
{
    if (event->kind == EVENT_SUBMITTED || event->kind == EVENT_ADOPTED)
        join(elastic, view, event->job);
    if (event_makes_waiting(event, view))
        queue_add(&elastic->waiting, view, event->job);
    else if (event_ends_waiting(event, view))
        queue_remove(&elastic->waiting, event->job);
    if (event->kind != EVENT_WAKE)
        elastic->changed = true;
}

/* --- an epoch ------------------------------------------------------------------------ */

bool elastic_begins(const struct elastic *elastic, const struct view *view)
{
    return elastic->changed && view->now_ns >= elastic->next_ns;
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
    elastic->count = 0;
    elastic->units = view->free->gpu_count;
    elastic->length_ns = elastic->epoch_ns;
    forget_the_dead(elastic, view);
    for (uint32_t i = 0; i < elastic->member_count; i++) {
        job_id id = elastic->members[i].job;
        const struct job *job = &view->jobs[id];
        int64_t enough_ns = EPOCH_PER_RESIZE * resize_ns(job);
        if (job_is_elastic(job) && enough_ns > elastic->length_ns)
            elastic->length_ns = enough_ns;
        if (!is_ours(job))
            continue;
        elastic->units += job->gpus_now;
        least += job->gpus_min;
        add_share(elastic, view, id);
    }
    elastic->running = elastic->count;
    gather_waiting(elastic, view, elastic->units - least);
    elastic->fair =
        elastic->count > 0 ? (double)elastic->units / elastic->count : elastic->units;
    elastic->next_ns = view->now_ns + elastic->length_ns;
    elastic->changed = false;
}

/* --- what follows -------------------------------------------------------------------- */

static bool grant(struct plan *plan, job_id job, uint32_t units)
{
    struct ask ask = ASK_DEFAULT;
    ask.gpus = units;
    return plan_grant(plan, job, &ask);
}

/* Above 'least' as much as can be of 'units', halved until it fits; 0: not even that. */
static uint32_t grant_up_to(struct plan *plan, job_id job, uint32_t units,
                            uint32_t least)
{
    for (;;) {
        if (grant(plan, job, units))
            return units;
        if (units <= least)
            return 0;
        units = least + (units - least) / 2;
    }
}

static bool is_worth(const struct elastic *elastic, uint32_t now, uint32_t units)
{
    double by = fabs((double)units - now);
    return by > 0 && by >= elastic->hysteresis * now;
}

/* More units for the rest of the epoch are worth the time it takes to get them. */
static bool pays(const struct elastic *elastic, const struct job *job,
                 const struct gains_job *share, uint32_t units)
{
    double epoch_s = (double)elastic->length_ns * 1e-9;
    double rest_s = epoch_s - (double)resize_ns(job) * 1e-9;
    if (share->family == FAMILY_FLAT)
        return units * rest_s > job->gpus_now * epoch_s;
    return gains_of(share, units, rest_s) > gains_of(share, job->gpus_now, epoch_s);
}

static uint32_t shrink(struct elastic *elastic, const struct view *view,
                       struct plan *plan, bool needed)
{
    uint32_t room = view->free->gpu_count;
    for (uint32_t i = 0; i < elastic->running; i++) {
        uint32_t now = view->jobs[elastic->jobs[i]].gpus_now;
        uint32_t units = elastic->shares[i].units;
        if (units < now && (needed || is_worth(elastic, now, units)) &&
            grant(plan, elastic->jobs[i], units))
            room += now - units;
    }
    return room;
}

static uint32_t start(struct elastic *elastic, const struct view *view,
                      struct plan *plan, uint32_t room)
{
    for (uint32_t i = elastic->running; i < elastic->count; i++) {
        job_id id = elastic->jobs[i];
        uint32_t least = view->jobs[id].gpus_min;
        uint32_t units = elastic->shares[i].units;
        uint32_t got = 0;
        if (least <= room)
            got = grant_up_to(plan, id, units < room ? units : room, least);
        if (got == 0)
            break; /* nobody passes it */
        room -= got;
    }
    return room;
}

static void extend(struct elastic *elastic, const struct view *view, struct plan *plan,
                   uint32_t room)
{
    for (uint32_t i = 0; i < elastic->running && room > 0; i++) {
        const struct job *job = &view->jobs[elastic->jobs[i]];
        const struct gains_job *share = &elastic->shares[i];
        uint32_t now = job->gpus_now;
        uint32_t units = share->units < now + room ? share->units : now + room;
        if (units > now && is_worth(elastic, now, units) &&
            pays(elastic, job, share, units) && grant(plan, elastic->jobs[i], units))
            room -= units - now;
    }
}

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

void elastic_apply(struct elastic *elastic, const struct view *view, struct plan *plan)
{
    uint32_t room = shrink(elastic, view, plan, elastic->waiting.count > 0);
    room = start(elastic, view, plan, room);
    extend(elastic, view, plan, room);
    wake_idle(elastic, view, plan);
}

/* --- between epochs ------------------------------------------------------------------ */

void elastic_between(struct elastic *elastic, const struct view *view,
                     struct plan *plan)
{
    bool blocked = false;
    for (job_id id = elastic->waiting.first; id != JOB_NONE;
         id = queue_next(&elastic->waiting, id)) {
        const struct job *job = &view->jobs[id];
        if (plan_changes(plan, id))
            continue;
        if (job->gpus == 0) {
            plan_grant(plan, id, NULL);
            continue;
        }
        double fair = fmin(fmax(elastic->fair, job->gpus_min), job->gpus_max);
        uint32_t units = (uint32_t)fmin(fair, plan_is_full(plan) ? 0 : fair);
        blocked = blocked || units < job->gpus_min ||
                  grant_up_to(plan, id, units, job->gpus_min) == 0;
        if (blocked && elastic->waiting.count > 64)
            break;
    }
    if (elastic->changed && elastic->member_count > 0)
        plan_wake(plan, elastic->next_ns);
}
