/* elastic.c - jobs that can have more or fewer GPUs, resized once an epoch. */
#include "policy/shared/elastic.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/grow.h"
#include "base/sort.h"
#include "model/free_index.h"
#include "model/node_set.h"
#include "model/reasons.h"

#define EPOCH_PER_RESIZE 10
#define ARRIVALS_MAX \
    16 /* waiting jobs, at most, for which others shrink between epochs */

/* A live job, by its slot. */
struct elastic_member {
    uint64_t number;   /* in order of arrival; 0: none */
    int64_t resize_ns; /* as it stands in 'resizes' */
    bool sizable;      /* it is in 'resizes' */
    bool listed;       /* it is among the jobs that are placed */
};

/* A job that is placed or holds seats; perhaps one that no longer does. */
struct elastic_placed {
    uint64_t number; /* of the member */
    job_id job;
};

void elastic_init(struct elastic *elastic, const struct view *view, struct arena *run)
{
    elastic->grow_ns = INT64_MAX;
    elastic->type = TYPE_NONE;
    fifo_queue_init(&elastic->waiting, run, view->job_max);
    elastic->cpu_only = arena_array(run, bool, view->job_max);
    elastic->members = arena_array(run, struct elastic_member, view->job_max);
    heap_pool_init(&elastic->resize_pool, run, view->job_max);
    heap_init(&elastic->resizes);
}

void elastic_release(struct elastic *elastic)
{
    free(elastic->placed);
    free(elastic->shares);
    free(elastic->jobs);
    free(elastic->heap);
    free(elastic->shrinks);
    free(elastic->grows);
    free(elastic->scratch);
}

/* --- known jobs ------------------------------------------------------------------- */

static int64_t resize_ns(const struct job *job)
{
    return job->pause_ns + job->load_ns;
}

/* It is placed or holds seats: only then can its size be set, now or soon. */
static bool is_placed(const struct job *job)
{
    return job->state >= JOB_PLACED;
}

/* Forget the ended jobs, and the places of those that have none any more. */
static void drop_ended_members(struct elastic *elastic, const struct view *view)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < elastic->placed_count; i++) {
        struct elastic_placed placed = elastic->placed[i];
        struct elastic_member *member = &elastic->members[placed.job];
        if (member->number != placed.number)
            continue; /* the slot is another job's */
        member->listed = is_placed(&view->jobs[placed.job]);
        if (member->listed)
            elastic->placed[kept++] = placed;
    }
    elastic->placed_count = kept;
    elastic->member_count = elastic->live_count;
}

/* In order of arrival; nearly always at the end.  Every entry is of another member. */
static void list_placed(struct elastic *elastic, job_id job)
{
    struct elastic_member *member = &elastic->members[job];
    uint32_t at = elastic->placed_count++;
    for (; at > 0 && elastic->placed[at - 1].number > member->number; at--)
        elastic->placed[at] = elastic->placed[at - 1];
    elastic->placed[at] = (struct elastic_placed){ member->number, job };
    member->listed = true;
}

/* Keep what a resize takes in order: the longest says how long an epoch is. */
static void order_resize(struct elastic *elastic, const struct job *job, job_id id)
{
    struct elastic_member *member = &elastic->members[id];
    bool sizable = job->state != JOB_FREE && job_is_elastic(job);
    if (sizable == member->sizable && (!sizable || resize_ns(job) == member->resize_ns))
        return;
    if (member->sizable)
        heap_remove(&elastic->resize_pool, &elastic->resizes, id);
    member->sizable = sizable;
    member->resize_ns = resize_ns(job);
    if (sizable)
        heap_push(&elastic->resize_pool, &elastic->resizes, id, -member->resize_ns, 0);
}

/* An event may have changed what is known of the job, or ended it. */
static void update_member(struct elastic *elastic, const struct view *view, job_id id)
{
    const struct job *job = &view->jobs[id];
    struct elastic_member *member = &elastic->members[id];
    if (member->number == 0)
        return;
    order_resize(elastic, job, id);
    if (job->state == JOB_FREE) {
        *member = (struct elastic_member){ 0 };
        elastic->live_count--;
    } else if (is_placed(job) && !member->listed) {
        list_placed(elastic, id);
    }
}

/* Arrays grow here, so that a decision need not allocate. */
static void add_member(struct elastic *elastic, const struct view *view, job_id job)
{
    if (elastic->member_count == elastic->member_room)
        drop_ended_members(elastic, view);
    uint32_t want = elastic->member_count + 1;
    elastic->placed = grow_array(elastic->placed, &elastic->member_room, want,
                                 sizeof *elastic->placed);
    elastic->shares = grow_array(elastic->shares, &elastic->share_room, want,
                                 sizeof *elastic->shares);
    elastic->jobs =
        grow_array(elastic->jobs, &elastic->job_room, want, sizeof *elastic->jobs);
    elastic->heap =
        grow_array(elastic->heap, &elastic->heap_room, want, sizeof *elastic->heap);
    elastic->shrinks = grow_array(elastic->shrinks, &elastic->shrink_room, want,
                                  sizeof *elastic->shrinks);
    elastic->grows =
        grow_array(elastic->grows, &elastic->grow_room, want, sizeof *elastic->grows);
    elastic->scratch = grow_array(elastic->scratch, &elastic->scratch_room, want,
                                  sizeof *elastic->scratch);
    elastic->members[job] =
        (struct elastic_member){ .number = ++elastic->member_number };
    elastic->member_count++;
    elastic->live_count++;
}

static void add_waiting(struct elastic *elastic, const struct view *view, job_id job)
{
    if (elastic->waiting.links[job].inside)
        return;
    elastic->cpu_only[job] = view->jobs[job].gpus == 0;
    elastic->cpu_only_count += elastic->cpu_only[job];
    fifo_queue_add(&elastic->waiting, view, job);
}

static void remove_waiting(struct elastic *elastic, job_id job)
{
    if (!elastic->waiting.links[job].inside)
        return;
    elastic->cpu_only_count -= elastic->cpu_only[job];
    fifo_queue_remove(&elastic->waiting, job);
}

/* An event after epochs that were left out: the next is when it would have been. */
static void catch_up(struct elastic *elastic, const struct view *view)
{
    int64_t late_ns = view->now_ns - elastic->next_ns;
    elastic->stuck = false;
    if (late_ns > 0)
        elastic->next_ns += (late_ns + elastic->length_ns - 1) / elastic->length_ns *
                            elastic->length_ns;
}

void elastic_inherit(struct elastic *elastic, const struct elastic *from)
{
    elastic->next_ns = from->next_ns;
    elastic->grow_ns = from->grow_ns;
    elastic->length_ns = from->length_ns;
}

void elastic_observe(struct elastic *elastic, const struct view *view,
                     const struct event *event)
{
    if (elastic->stuck && event->kind != EVENT_WAKE)
        catch_up(elastic, view);
    if ((event->kind == EVENT_SUBMITTED || event->kind == EVENT_ADOPTED) &&
        (!elastic->apart || job_is_elastic(&view->jobs[event->job])))
        add_member(elastic, view, event->job);
    if (event->job < view->job_max)
        update_member(elastic, view, event->job);
    bool waits = event_makes_waiting(event, view);
    if (waits && !elastic->apart)
        add_waiting(elastic, view, event->job);
    else if (event_ends_waiting(event, view))
        remove_waiting(elastic, event->job);
    /* A job that waits, or one that can now be halved for a waiting job. */
    if (elastic->waiting.count <= ARRIVALS_MAX &&
        (waits || event->kind == EVENT_LOADED || event->kind == EVENT_RESIZED))
        elastic->arrived = true;
    bool ended = event->kind == EVENT_FINISHED || event->kind == EVENT_FAILED;
    if (ended && !elastic->apart && elastic->length_ns > elastic->epoch_ns)
        elastic->grow_ns = view->now_ns; /* the next epoch is too far away */
    if (event->kind != EVENT_WAKE)
        elastic->changed = true;
}

/* --- an epoch ------------------------------------------------------------------------ */

/* A job waits, and less than half of an even share is free. */
static bool arrival_lacks_gpus(const struct elastic *elastic, const struct view *view)
{
    if (!elastic->arrived || !elastic->any)
        return false;
    job_id id = elastic->waiting.first;
    while (id != JOB_NONE && elastic->cpu_only[id])
        id = fifo_queue_next(&elastic->waiting, id);
    return id != JOB_NONE &&
           view->free->gpu_count < fmin(elastic->fair, view->jobs[id].gpus_max) / 2;
}

bool elastic_begins(const struct elastic *elastic, const struct view *view)
{
    return (elastic->changed && !elastic->stuck && view->now_ns >= elastic->next_ns) ||
           view->now_ns >= elastic->grow_ns || arrival_lacks_gpus(elastic, view);
}

/* The job's size can be set now. */
static bool can_resize(const struct job *job)
{
    return job_is_elastic(job) && job_is_preemptible(job) &&
           job->state != JOB_LOADING && job->partner == JOB_NONE &&
           job->coming == JOB_NONE && job->gpus_now > 0;
}

/* The job can be resized at the next epoch, perhaps without an event until then. */
static bool will_be_resizable(const struct job *job)
{
    return job_is_elastic(job) && (job->state == JOB_LOADING ||
                                   job->state == JOB_PLACED || job->next.count > 0);
}

static void add_share(struct elastic *elastic, const struct view *view, job_id job)
{
    elastic->jobs[elastic->count] = job;
    elastic->shares[elastic->count++] =
        (struct gains_job){ .least = view->jobs[job].gpus_min,
                            .most = view->jobs[job].gpus_max,
                            .resize_s = (double)resize_ns(&view->jobs[job]) * 1e-9 };
}

/* In order of submission, up to the first job for which no GPUs will be left. */
static void gather_waiting(struct elastic *elastic, const struct view *view,
                           uint32_t gpus)
{
    for (job_id id = elastic->waiting.first; id != JOB_NONE;
         id = fifo_queue_next(&elastic->waiting, id)) {
        const struct job *job = &view->jobs[id];
        if (job->gpus == 0)
            continue;
        if (job->gpus_min > gpus)
            return;
        gpus -= job->gpus_min;
        add_share(elastic, view, id);
    }
}

/* Of the epoch that begins: as long as the longest resize needs. */
static int64_t choose_length_ns(const struct elastic *elastic)
{
    if (elastic->resizes.count == 0)
        return elastic->epoch_ns;
    int64_t enough_ns =
        EPOCH_PER_RESIZE * elastic->members[elastic->resizes.top].resize_ns;
    return enough_ns > elastic->epoch_ns ? enough_ns : elastic->epoch_ns;
}

void elastic_start(struct elastic *elastic, const struct view *view)
{
    bool unsettled = false;
    bool resizable = false;
    elastic->any = elastic->resizes.count > 0;
    elastic->length_ns = choose_length_ns(elastic);
    drop_ended_members(elastic, view);
    for (uint32_t i = 0; i < elastic->placed_count && !(unsettled && resizable); i++) {
        const struct job *job = &view->jobs[elastic->placed[i].job];
        bool now = can_resize(job);
        resizable = resizable || now;
        unsettled = unsettled || (!now && will_be_resizable(job));
    }
    elastic->reason = view->now_ns >= elastic->next_ns   ? ELASTIC_EPOCH
                      : view->now_ns >= elastic->grow_ns ? ELASTIC_SHRUNK
                                                         : ELASTIC_ARRIVAL;
    if (elastic->reason != ELASTIC_ARRIVAL)
        elastic->grow_ns = INT64_MAX;
    if (elastic->reason != ELASTIC_EPOCH)
        return;
    elastic->began = true;
    elastic->next_ns = view->now_ns + elastic->length_ns;
    elastic->changed = unsettled;
    elastic->stuck = unsettled && !resizable;
}

void elastic_gather(struct elastic *elastic, const struct view *view, uint32_t type)
{
    uint32_t least = 0;
    elastic->type = type;
    elastic->count = 0;
    elastic->free = elastic->closed     ? 0
                    : type == TYPE_NONE ? view->free->gpu_count
                                        : view->free->shelves[type].gpu_count;
    elastic->gpus = elastic->free;
    for (uint32_t i = 0; i < elastic->placed_count; i++) {
        job_id id = elastic->placed[i].job;
        const struct job *job = &view->jobs[id];
        if (!can_resize(job) || (type != TYPE_NONE && job->type_now != type))
            continue;
        elastic->gpus += job->gpus_now;
        least += job->gpus_min;
        add_share(elastic, view, id);
    }
    elastic->running = elastic->count;
    gather_waiting(elastic, view, elastic->gpus - least);
    elastic->fair =
        elastic->count > 0 ? (double)elastic->gpus / elastic->count : elastic->gpus;
}

/* What the job gains by this size for the next seconds; negative: loses. */
static double gain_of_resize(const struct job *job, const struct gains_job *share,
                             uint32_t gpus, double seconds)
{
    return gains_of_resize(share, job->gpus_now, gpus, seconds, share->resize_s);
}

/* The change is large enough to be made at all. */
static bool is_large_change(const struct elastic *elastic, uint32_t now, uint32_t gpus)
{
    double by = fabs((double)gpus - now);
    return by > 0 && by >= elastic->hysteresis * now;
}

/* More GPUs for the rest of the epoch gain more than the resize costs. */
static bool growth_pays(const struct job *job, const struct gains_job *share,
                        uint32_t gpus, double seconds)
{
    if (gains_are_unknown(share))
        return gpus * (seconds - share->resize_s) > job->gpus_now * seconds;
    return gain_of_resize(job, share, gpus, seconds) > 0;
}

/* --- grants -------------------------------------------------------------------------- */

static bool grant_gpus(const struct elastic *elastic, struct plan *plan, job_id job,
                       uint32_t gpus)
{
    struct ask ask = ASK_DEFAULT;
    ask.gpus = gpus;
    ask.types = elastic->type == TYPE_NONE ? 0 : 1u << elastic->type;
    ask.avoid = elastic->avoid;
    return plan_grant(plan, job, &ask);
}

/* The newest change of the plan grants GPUs that other jobs have still to vacate. */
static bool has_pending_gpus(const struct plan *plan, job_id job)
{
    const struct change *change = plan_change(plan, plan_change_count(plan) - 1);
    const struct pending_part *pending_shares = plan_pending(plan, change);
    for (uint32_t i = 0; i < change->pending_count; i++)
        if (pending_shares[i].victim != job)
            return true;
    return false;
}

/*
 * Change the size of a running job.  For GPUs that others have to vacate it would be
 * stopped and restarted; a job whose grace period is too short for a checkpoint is
 * not.
 */
static bool resize_job(const struct elastic *elastic, const struct view *view,
                       struct plan *plan, job_id id, uint32_t gpus)
{
    const struct job *job = &view->jobs[id];
    size_t mark = plan_mark(plan);
    if (plan_changes(plan, id) || !grant_gpus(elastic, plan, id, gpus))
        return false;
    if (job->pause_ns <= job->grace_ns || !has_pending_gpus(plan, id))
        return true;
    plan_undo(plan, mark);
    return false;
}

/* Start a job with at most 'gpus', halved until it fits; returns how many, 0: not started. */
static uint32_t start_halved(const struct elastic *elastic, struct plan *plan,
                             job_id job, uint32_t gpus, uint32_t least)
{
    for (;;) {
        if (grant_gpus(elastic, plan, job, gpus))
            return gpus;
        if (gpus <= least)
            return 0;
        gpus = least + (gpus - least) / 2;
    }
}

/* --- half of one job's GPUs for another ------------------------------------------- */

/* What both gain if 'arrival' gets half of that job's GPUs; NAN: not possible. */
static double gain_of_halving(const struct elastic *elastic, const struct view *view,
                              uint32_t index, uint32_t arrival, uint32_t room,
                              double seconds)
{
    const struct job *job = &view->jobs[elastic->jobs[index]];
    const struct gains_job *share = &elastic->shares[index];
    const struct gains_job *other = &elastic->shares[arrival];
    uint32_t half = job->gpus_now - job->gpus_now / 2;
    bool silent = gains_are_unknown(share);
    if (half == job->gpus_now || half < job->gpus_min || share->resize_s >= seconds ||
        (silent && half < share->least))
        return NAN;
    if (silent && gains_are_unknown(other))
        return job->gpus_now; /* no curve is known: take from the largest job */
    double gpus = fmin((double)room + job->gpus_now / 2, other->most);
    return gains_of(other, gpus, seconds) + gain_of_resize(job, share, half, seconds);
}

/* The job holds GPUs on a node that 'arrival' may use. */
static bool is_on_allowed_node(const struct view *view, job_id arrival, job_id job)
{
    return node_set_touches(view->jobs[arrival].set, view_seats(view, job),
                            view->jobs[job].seats.count);
}

/* Shrink the running job to half for which both gain most; returns the free GPUs. */
static uint32_t halve_running_job(struct elastic *elastic, const struct view *view,
                                  struct plan *plan, uint32_t arrival, uint32_t room)
{
    double seconds = (double)(elastic->next_ns - view->now_ns) * 1e-9;
    uint32_t found = UINT32_MAX;
    double best = gains_of(&elastic->shares[arrival], room, seconds);
    for (uint32_t i = 0; i < elastic->running; i++) {
        double gain = gain_of_halving(elastic, view, i, arrival, room, seconds);
        if (gain > best && !plan_changes(plan, elastic->jobs[i]) &&
            is_on_allowed_node(view, elastic->jobs[arrival], elastic->jobs[i])) {
            best = gain;
            found = i;
        }
    }
    if (found == UINT32_MAX)
        return room;
    uint32_t now = view->jobs[elastic->jobs[found]].gpus_now;
    if (resize_job(elastic, view, plan, elastic->jobs[found], now - now / 2))
        room += now / 2;
    return room;
}

/* Free GPUs, of any type, on the nodes of the set. */
static uint32_t count_free_gpus(const struct view *view, const struct node_set *set)
{
    uint32_t gpus = 0;
    for (node_id node = bits_next(&set->allowed, 0); node != BITS_NONE;
         node = bits_next(&set->allowed, node + 1))
        if (view->free->listed[node])
            gpus += bits_count(view->free->rooms[node].gpus);
    return gpus;
}

/*
 * Start a job that fits on none of the nodes it may use: halve a job there, if that
 * helps.  Returns its GPUs, and adds to 'room' those left over.
 */
static uint32_t start_in_node_set(struct elastic *elastic, const struct view *view,
                                  struct plan *plan, uint32_t arrival, uint32_t *room)
{
    job_id id = elastic->jobs[arrival];
    uint32_t least = view->jobs[id].gpus_min;
    uint32_t gpus = elastic->shares[arrival].gpus;
    uint32_t before = count_free_gpus(view, view->jobs[id].set);
    size_t mark = plan_mark(plan);
    uint32_t there = halve_running_job(elastic, view, plan, arrival, before);
    uint32_t got = 0;
    if (there > before && there >= least)
        got = start_halved(elastic, plan, id, gpus < there ? gpus : there, least);
    if (got == 0)
        plan_undo(plan, mark);
    else
        *room += there - before;
    return got;
}

/* --- an epoch ------------------------------------------------------------------------ */

/* List the jobs that should shrink, by what one GPU costs them; the cheapest first. */
static uint32_t sort_shrinks(struct elastic *elastic, const struct view *view,
                             double seconds)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < elastic->running; i++) {
        const struct job *job = &view->jobs[elastic->jobs[i]];
        uint32_t gpus = elastic->shares[i].gpus;
        if (gpus >= job->gpus_now)
            continue;
        double cost = -gain_of_resize(job, &elastic->shares[i], gpus, seconds);
        elastic->shrinks[count++] =
            (struct sort_item){ cost / (job->gpus_now - gpus), i };
    }
    sort_items(elastic->shrinks, elastic->scratch, count);
    return count;
}

/*
 * List the jobs that should grow, by what one GPU brings them; jobs below their
 * minimum first.
 */
static uint32_t sort_grows(struct elastic *elastic, const struct view *view,
                           double seconds)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < elastic->running; i++) {
        const struct job *job = &view->jobs[elastic->jobs[i]];
        const struct gains_job *share = &elastic->shares[i];
        if (share->gpus <= job->gpus_now ||
            !is_large_change(elastic, job->gpus_now, share->gpus))
            continue;
        double gain = gain_of_resize(job, share, share->gpus, seconds);
        double worth = job->gpus_now < share->least
                           ? INFINITY
                           : gain / (share->gpus - job->gpus_now);
        elastic->grows[count++] = (struct sort_item){ -worth, i };
    }
    sort_items(elastic->grows, elastic->scratch, count);
    return count;
}

/*
 * Shrink jobs, the cheapest first, until 'want' GPUs are free or the price is reached.
 */
static uint32_t shrink_jobs(struct elastic *elastic, const struct view *view,
                            struct plan *plan, uint32_t room, uint32_t want,
                            double price)
{
    bool any = elastic->waiting.count > 0; /* then small changes are made as well */
    while (room < want && elastic->shrink_next < elastic->shrink_count &&
           elastic->shrinks[elastic->shrink_next].key <= price) {
        uint32_t i = elastic->shrinks[elastic->shrink_next++].value;
        uint32_t now = view->jobs[elastic->jobs[i]].gpus_now;
        uint32_t gpus = elastic->shares[i].gpus;
        if ((any || is_large_change(elastic, now, gpus)) &&
            resize_job(elastic, view, plan, elastic->jobs[i], gpus))
            room += now - gpus;
    }
    return room;
}

static uint32_t start_waiting_jobs(struct elastic *elastic, const struct view *view,
                                   struct plan *plan, uint32_t room)
{
    for (uint32_t i = elastic->running; i < elastic->count; i++) {
        job_id id = elastic->jobs[i];
        uint32_t least = view->jobs[id].gpus_min;
        uint32_t gpus = elastic->shares[i].gpus;
        uint32_t got = 0;
        room = shrink_jobs(elastic, view, plan, room, gpus, INFINITY);
        if (least <= room)
            got = start_halved(elastic, plan, id, gpus < room ? gpus : room, least);
        if (got == 0 && view->jobs[id].set)
            got = start_in_node_set(elastic, view, plan, i, &room);
        if (got == 0)
            break; /* no job overtakes it */
        room -= got < room ? got : room;
    }
    return room;
}

/*
 * Grow jobs, those that gain most first.  A job that would have to wait for others to
 * shrink runs on meanwhile; its GPUs are kept for it, and it grows when they are free.
 */
static void grow_jobs(struct elastic *elastic, const struct view *view,
                      struct plan *plan, uint32_t room, double seconds)
{
    uint32_t count = sort_grows(elastic, view, seconds);
    uint32_t coming = room > elastic->free ? room - elastic->free : 0;
    for (uint32_t g = 0; g < count; g++) {
        uint32_t i = elastic->grows[g].value;
        const struct job *job = &view->jobs[elastic->jobs[i]];
        const struct gains_job *share = &elastic->shares[i];
        uint32_t now = job->gpus_now;
        uint32_t before = room;
        room = shrink_jobs(elastic, view, plan, room, share->gpus - now,
                           -elastic->grows[g].key);
        coming += room - before;
        uint32_t gpus = share->gpus < now + room ? share->gpus : now + room;
        if (gpus <= now || !is_large_change(elastic, now, gpus) ||
            !growth_pays(job, share, gpus, seconds))
            continue;
        bool later = share->resize_s > 0 && coming > 0;
        if (later || resize_job(elastic, view, plan, elastic->jobs[i], gpus))
            room -= gpus - now;
    }
}

/* When all jobs told to shrink will have done so. */
static int64_t shrinks_done_ns(const struct elastic *elastic, const struct view *view,
                               const struct plan *plan)
{
    int64_t at_ns = view->now_ns;
    for (uint32_t s = 0; s < elastic->shrink_next; s++) {
        job_id id = elastic->jobs[elastic->shrinks[s].value];
        const struct job *job = &view->jobs[id];
        int64_t done_ns = view->now_ns + job->pause_ns + job->load_ns;
        if (plan_changes(plan, id) && done_ns > at_ns)
            at_ns = done_ns;
    }
    return at_ns;
}

/* An epoch begins: resize jobs and start waiting ones. */
static void begin_epoch(struct elastic *elastic, const struct view *view,
                        struct plan *plan)
{
    double seconds = (double)elastic->length_ns * 1e-9;
    elastic->shrink_next = 0;
    elastic->shrink_count = sort_shrinks(elastic, view, seconds);
    uint32_t room = start_waiting_jobs(elastic, view, plan, elastic->free);
    grow_jobs(elastic, view, plan, room, seconds);
    int64_t at_ns = shrinks_done_ns(elastic, view, plan);
    if (at_ns > view->now_ns &&
        (elastic->grow_ns == INT64_MAX || at_ns > elastic->grow_ns))
        elastic->grow_ns = at_ns;
}

/* The shrinks are done: let others grow. */
static void use_freed_gpus(struct elastic *elastic, const struct view *view,
                           struct plan *plan)
{
    elastic->shrink_next = elastic->shrink_count = 0;
    uint32_t room = start_waiting_jobs(elastic, view, plan, elastic->free);
    grow_jobs(elastic, view, plan, room,
              (double)(elastic->next_ns - view->now_ns) * 1e-9);
}

/* --- between epochs ------------------------------------------------------------------ */

static void start_arrivals(struct elastic *elastic, const struct view *view,
                           struct plan *plan)
{
    uint32_t room = elastic->free;
    for (uint32_t i = elastic->running; i < elastic->count; i++) {
        job_id id = elastic->jobs[i];
        uint32_t least = view->jobs[id].gpus_min;
        uint32_t gpus = elastic->shares[i].gpus;
        uint32_t got = 0;
        if (room < gpus && !view->jobs[id].set)
            room = halve_running_job(elastic, view, plan, i, room);
        if (least <= room)
            got = start_halved(elastic, plan, id, gpus < room ? gpus : room, least);
        if (got == 0 && view->jobs[id].set)
            got = start_in_node_set(elastic, view, plan, i, &room);
        if (got == 0)
            break; /* no job overtakes it */
        room -= got < room ? got : room;
    }
}

void elastic_apply(struct elastic *elastic, const struct view *view, struct plan *plan)
{
    switch (elastic->reason) {
    case ELASTIC_EPOCH:
        begin_epoch(elastic, view, plan);
        break;
    case ELASTIC_SHRUNK:
        use_freed_gpus(elastic, view, plan);
        break;
    case ELASTIC_ARRIVAL:
        start_arrivals(elastic, view, plan);
        break;
    }
}

/* --- at every decision ---------------------------------------------------------------- */

/* Let jobs continue after the lease that an earlier policy granted. */
static void wake_idle(struct elastic *elastic, const struct view *view,
                      struct plan *plan)
{
    for (uint32_t i = 0; i < elastic->placed_count; i++) {
        job_id id = elastic->placed[i].job;
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
           start_halved(elastic, plan, id, (uint32_t)fair, job->gpus_min) > 0;
}

void elastic_between(struct elastic *elastic, const struct view *view,
                     struct plan *plan)
{
    bool blocked = false;
    for (job_id id = elastic->waiting.first;
         id != JOB_NONE && !(blocked && elastic->cpu_only_count == 0);
         id = fifo_queue_next(&elastic->waiting, id)) {
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
}

int64_t elastic_wake_ns(const struct elastic *elastic, const struct view *view)
{
    if (elastic->member_count == 0)
        return INT64_MAX;
    if (arrival_lacks_gpus(elastic, view))
        return view->now_ns;
    int64_t epoch_ns =
        elastic->changed && !elastic->stuck ? elastic->next_ns : INT64_MAX;
    return elastic->grow_ns < epoch_ns ? elastic->grow_ns : epoch_ns;
}

void elastic_explain(const struct elastic *elastic, const struct view *view, job_id job,
                     struct reasons *reasons)
{
    job_id first = fifo_queue_ahead(&elastic->waiting, view, job, reasons);
    if (first != JOB_NONE)
        reasons_add(reasons, "order",
                    "job %" PRIu64
                    " came before it and has not got room; nobody passes",
                    view->jobs[first].id);
    if (elastic->next_ns > view->now_ns)
        reasons_add(reasons, "round", "sizes are set anew in %.3g s",
                    (double)(elastic->next_ns - view->now_ns) * 1e-9);
}
