/*
 * elastic_moves.c - which resizes are made, so that jobs come near their shares.
 *
 * A resize costs a job r seconds, whatever its size.  Over an epoch T one from a to b
 * units brings it
 *
 *     G(b, T - r) - G(a, T)
 *
 * and takes or gives b - a units.  Those who are to shrink stand in line by what a unit
 * of theirs costs, those who are to grow by what a unit brings them, and units change
 * hands from the cheapest to the dearest as long as they bring more than they cost.
 * Where a resize is free these are all of them.  Jobs that wait, and those that have less
 * than they must, come first and at any price.
 *
 * Between epochs a job that arrives does not wait for the next: one that runs gives it
 * half of its units, that one for which the two together gain most.
 */
#include "policy/shared/elastic.h"

#include <math.h>

#include "base/sort.h"
#include "model/free.h"
#include "model/node_set.h"

static double resize_s(const struct job *job)
{
    return (double)(job->pause_ns + job->load_ns) * 1e-9;
}

/* What it brings to go on with so many units for the next seconds; or costs, below 0. */
static double brings(const struct job *job, const struct gains_job *share,
                     uint32_t units, double seconds)
{
    return gains_of(share, units, seconds - resize_s(job)) -
           gains_of(share, job->gpus_now, seconds);
}

/* Large enough a change to be made at all. */
static bool is_much(const struct elastic *elastic, uint32_t now, uint32_t units)
{
    double by = fabs((double)units - now);
    return by > 0 && by >= elastic->hysteresis * now;
}

/* More units for the rest of the epoch are worth the time it takes to get them. */
static bool pays(const struct job *job, const struct gains_job *share, uint32_t units,
                 double seconds)
{
    if (share->family == FAMILY_FLAT)
        return units * (seconds - resize_s(job)) > job->gpus_now * seconds;
    return brings(job, share, units, seconds) > 0;
}

/* --- grants -------------------------------------------------------------------------- */

static bool grant(struct plan *plan, job_id job, uint32_t units)
{
    struct ask ask = ASK_DEFAULT;
    ask.gpus = units;
    return plan_grant(plan, job, &ask);
}

/* The newest change in the plan is a grant of seats that others have yet to leave. */
static bool waits_for_others(const struct plan *plan, job_id job)
{
    const struct change *change = plan_change(plan, plan_change_count(plan) - 1);
    const struct promise_part *promises = plan_promises(plan, change);
    for (uint32_t i = 0; i < change->promise_count; i++)
        if (promises[i].victim != job)
            return true;
    return false;
}

/*
 * A job that runs goes on with another size.  For seats that others leave it has to stop
 * and start; one that has no time to save its state then is not resized for them.
 */
static bool resize(const struct view *view, struct plan *plan, job_id id,
                   uint32_t units)
{
    const struct job *job = &view->jobs[id];
    size_t mark = plan_mark(plan);
    if (!grant(plan, id, units))
        return false;
    if (job->pause_ns <= job->grace_ns || !waits_for_others(plan, id))
        return true;
    plan_undo(plan, mark);
    return false;
}

uint32_t elastic_start(struct plan *plan, job_id job, uint32_t units, uint32_t least)
{
    for (;;) {
        if (grant(plan, job, units))
            return units;
        if (units <= least)
            return 0;
        units = least + (units - least) / 2;
    }
}

/* --- half of one for another ---------------------------------------------------------- */

/* What the two gain by it if the newcomer has half of that job's units; NAN: cannot be. */
static double gain_of_halving(const struct elastic *elastic, const struct view *view,
                              uint32_t index, uint32_t newcomer, uint32_t room,
                              double seconds)
{
    const struct job *job = &view->jobs[elastic->jobs[index]];
    const struct gains_job *share = &elastic->shares[index];
    const struct gains_job *other = &elastic->shares[newcomer];
    uint32_t half = job->gpus_now - job->gpus_now / 2;
    bool silent = share->family == FAMILY_FLAT;
    if (half == job->gpus_now || half < job->gpus_min || resize_s(job) >= seconds ||
        (silent && half < share->least))
        return NAN;
    if (silent && other->family == FAMILY_FLAT)
        return job->gpus_now; /* nothing is known: from who has most */
    double units = fmin((double)room + job->gpus_now / 2, other->most);
    return gains_of(other, units, seconds) + brings(job, share, half, seconds);
}

/* A job holds a seat on a node that the newcomer may use. */
static bool is_in_the_way(const struct view *view, job_id newcomer, job_id job)
{
    return node_set_touches(view->jobs[newcomer].set, view_seats(view, job),
                            view->jobs[job].seats.count);
}

/* Have one that runs shrink to half of its size for a newcomer, if that is any good. */
static uint32_t halve_one(struct elastic *elastic, const struct view *view,
                          struct plan *plan, uint32_t newcomer, uint32_t room)
{
    double seconds = (double)(elastic->next_ns - view->now_ns) * 1e-9;
    uint32_t found = UINT32_MAX;
    double best = gains_of(&elastic->shares[newcomer], room, seconds);
    for (uint32_t i = 0; i < elastic->running; i++) {
        double gain = gain_of_halving(elastic, view, i, newcomer, room, seconds);
        if (gain > best && !plan_changes(plan, elastic->jobs[i]) &&
            is_in_the_way(view, elastic->jobs[newcomer], elastic->jobs[i])) {
            best = gain;
            found = i;
        }
    }
    if (found == UINT32_MAX)
        return room;
    uint32_t now = view->jobs[elastic->jobs[found]].gpus_now;
    if (resize(view, plan, elastic->jobs[found], now - now / 2))
        room += now / 2;
    return room;
}

/* Free on the nodes that it may use, of whatever types. */
static uint32_t free_there(const struct view *view, const struct node_set *set)
{
    uint32_t gpus = 0;
    for (node_id node = bits_next(&set->allowed, 0); node != BITS_NONE;
         node = bits_next(&set->allowed, node + 1))
        if (view->free->listed[node])
            gpus += bits_count(view->free->rooms[node].gpus);
    return gpus;
}

/*
 * There is no room where it may be, whatever there is elsewhere: one who sits there gives
 * it half of his units, if that helps.  Returns what it got, and adds to 'room' what is
 * left over.
 */
static uint32_t start_there(struct elastic *elastic, const struct view *view,
                            struct plan *plan, uint32_t newcomer, uint32_t *room)
{
    job_id id = elastic->jobs[newcomer];
    uint32_t least = view->jobs[id].gpus_min;
    uint32_t units = elastic->shares[newcomer].units;
    uint32_t before = free_there(view, view->jobs[id].set);
    size_t mark = plan_mark(plan);
    uint32_t there = halve_one(elastic, view, plan, newcomer, before);
    uint32_t got = 0;
    if (there > before && there >= least)
        got = elastic_start(plan, id, units < there ? units : there, least);
    if (got == 0)
        plan_undo(plan, mark);
    else
        *room += there - before;
    return got;
}

/* --- an epoch ------------------------------------------------------------------------ */

/* Who is to shrink, and what a unit of it costs; the cheapest first. */
static uint32_t line_up_shrinks(struct elastic *elastic, const struct view *view,
                                double seconds)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < elastic->running; i++) {
        const struct job *job = &view->jobs[elastic->jobs[i]];
        uint32_t units = elastic->shares[i].units;
        if (units >= job->gpus_now)
            continue;
        double cost = -brings(job, &elastic->shares[i], units, seconds);
        elastic->shrinks[count++] =
            (struct sort_item){ cost / (job->gpus_now - units), i };
    }
    sort_items(elastic->shrinks, elastic->scratch, count);
    return count;
}

/* Who is to grow, and minus what a unit brings it; those with less than they must first. */
static uint32_t line_up_grows(struct elastic *elastic, const struct view *view,
                              double seconds)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < elastic->running; i++) {
        const struct job *job = &view->jobs[elastic->jobs[i]];
        const struct gains_job *share = &elastic->shares[i];
        if (share->units <= job->gpus_now ||
            !is_much(elastic, job->gpus_now, share->units))
            continue;
        double gain = brings(job, share, share->units, seconds);
        double worth = job->gpus_now < share->least
                           ? INFINITY
                           : gain / (share->units - job->gpus_now);
        elastic->grows[count++] = (struct sort_item){ -worth, i };
    }
    sort_items(elastic->grows, elastic->scratch, count);
    return count;
}

/* Have jobs shrink, the cheapest first, until there is so much room, up to a price. */
static uint32_t make_room(struct elastic *elastic, const struct view *view,
                          struct plan *plan, uint32_t room, uint32_t want, double price)
{
    bool any = elastic->waiting.count > 0; /* then small change counts as well */
    while (room < want && elastic->shrink_next < elastic->shrink_count &&
           elastic->shrinks[elastic->shrink_next].key <= price) {
        uint32_t i = elastic->shrinks[elastic->shrink_next++].value;
        uint32_t now = view->jobs[elastic->jobs[i]].gpus_now;
        uint32_t units = elastic->shares[i].units;
        if ((any || is_much(elastic, now, units)) &&
            resize(view, plan, elastic->jobs[i], units))
            room += now - units;
    }
    return room;
}

static uint32_t start_all(struct elastic *elastic, const struct view *view,
                          struct plan *plan, uint32_t room)
{
    for (uint32_t i = elastic->running; i < elastic->count; i++) {
        job_id id = elastic->jobs[i];
        uint32_t least = view->jobs[id].gpus_min;
        uint32_t units = elastic->shares[i].units;
        uint32_t got = 0;
        room = make_room(elastic, view, plan, room, units, INFINITY);
        if (least <= room)
            got = elastic_start(plan, id, units < room ? units : room, least);
        if (got == 0 && view->jobs[id].set)
            got = start_there(elastic, view, plan, i, &room);
        if (got == 0)
            break; /* nobody passes it */
        room -= got < room ? got : room;
    }
    return room;
}

/*
 * Have jobs grow, those who gain most first.  One that would have to wait for others to
 * shrink first does not stop meanwhile: its units are left for it, and it grows when they
 * are free.
 */
static void grow_all(struct elastic *elastic, const struct view *view,
                     struct plan *plan, uint32_t room, double seconds)
{
    uint32_t count = line_up_grows(elastic, view, seconds);
    uint32_t coming = room > view->free->gpu_count ? room - view->free->gpu_count : 0;
    for (uint32_t g = 0; g < count; g++) {
        uint32_t i = elastic->grows[g].value;
        const struct job *job = &view->jobs[elastic->jobs[i]];
        const struct gains_job *share = &elastic->shares[i];
        uint32_t now = job->gpus_now;
        uint32_t before = room;
        room = make_room(elastic, view, plan, room, share->units - now,
                         -elastic->grows[g].key);
        coming += room - before;
        uint32_t units = share->units < now + room ? share->units : now + room;
        if (units <= now || !is_much(elastic, now, units) ||
            !pays(job, share, units, seconds))
            continue;
        bool later = resize_s(job) > 0 && coming > 0;
        if (later || resize(view, plan, elastic->jobs[i], units))
            room -= units - now;
    }
}

/* When those who were told to shrink will have done so. */
static int64_t shrunk_ns(const struct elastic *elastic, const struct view *view,
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

/* An epoch begins: all who should are resized, and who waits is started. */
static void move_all(struct elastic *elastic, const struct view *view,
                     struct plan *plan)
{
    double seconds = (double)elastic->length_ns * 1e-9;
    elastic->shrink_next = 0;
    elastic->shrink_count = line_up_shrinks(elastic, view, seconds);
    uint32_t room = start_all(elastic, view, plan, view->free->gpu_count);
    grow_all(elastic, view, plan, room, seconds);
    int64_t at_ns = shrunk_ns(elastic, view, plan);
    elastic->grow_ns = at_ns > view->now_ns ? at_ns : INT64_MAX;
}

/* Those who were to shrink have: there is room to grow. */
static void fill_room(struct elastic *elastic, const struct view *view,
                      struct plan *plan)
{
    elastic->shrink_next = elastic->shrink_count = 0;
    elastic->grow_ns = INT64_MAX;
    uint32_t room = start_all(elastic, view, plan, view->free->gpu_count);
    grow_all(elastic, view, plan, room,
             (double)(elastic->next_ns - view->now_ns) * 1e-9);
}

/* --- between epochs ------------------------------------------------------------------ */

static void start_early(struct elastic *elastic, const struct view *view,
                        struct plan *plan)
{
    uint32_t room = view->free->gpu_count;
    for (uint32_t i = elastic->running; i < elastic->count; i++) {
        job_id id = elastic->jobs[i];
        uint32_t least = view->jobs[id].gpus_min;
        uint32_t units = elastic->shares[i].units;
        uint32_t got = 0;
        if (room < units && !view->jobs[id].set)
            room = halve_one(elastic, view, plan, i, room);
        if (least <= room)
            got = elastic_start(plan, id, units < room ? units : room, least);
        if (got == 0 && view->jobs[id].set)
            got = start_there(elastic, view, plan, i, &room);
        if (got == 0)
            break; /* nobody passes it */
        room -= got < room ? got : room;
    }
}

void elastic_apply(struct elastic *elastic, const struct view *view, struct plan *plan)
{
    switch (elastic->reason) {
    case ELASTIC_EPOCH:
        move_all(elastic, view, plan);
        break;
    case ELASTIC_SHRUNK:
        fill_room(elastic, view, plan);
        break;
    case ELASTIC_ARRIVAL:
        start_early(elastic, view, plan);
        break;
    }
}
