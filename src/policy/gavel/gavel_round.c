/*
 * gavel_round.c - rounds by our own rules: from shares of time to the jobs that run
 * now.
 *
 * A job that is due the share x of a type is owed x seconds there for every second that
 * passes, and pays a second for every second it holds GPUs there.  The difference is
 * its credit.  When a round ends, GPUs go to the jobs that would be owed most at the
 * end of the next:
 *
 *     key = credit + x R, and more for a job that is there already
 *
 * Three jobs, two GPUs, x = 1, 1/2, 1/2, R = 360 s:
 *
 *     keys   A 360  B 180  C 180     A and B run; then credits are 0, -180, 180
 *     keys   A 360  B   0  C 360     A and C run; and so on
 *
 * What is better than in the published system (gavel_released.c), which this replaces:
 *
 *   - Leases are open: a job that stays costs nothing, not even an event.
 *   - When a job comes or goes, shares are made again at once, and what is free is given
 *     at once to the jobs that are owed most; nothing idles until the round is over.
 *   - Credits outlive new shares, so what was owed to a job still is.
 *   - Rounds in which nothing would change are left out.
 *   - A gang is only due what some type can hold, now.
 *   - A job due a slower type uses a faster one while it is free (if rates are known).
 *   - A job that runs is ahead of one that waits, and of itself where it would have to move.
 *   - Larger gangs are placed first, and a job that stays keeps its GPUs.
 *   - No job is preempted that could not save what it has done, nor before it has run for
 *     as long as its start and its checkpoint take.
 *
 * With worth=xion a preemption at a round's end has to pay; if it does not, the running
 * job stays.
 *
 * Two jobs that are due a share together are a unit like a job: one credit, one key,
 * one place.  (Where all can share with all, gavel_sharing.c does it by classes.)
 */
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "model/free_index.h"
#include "model/node_set.h"
#include "model/reasons.h"
#include "policy/gavel/gavel_round.h"

#define CHOOSY 1e9       /* more than any gang */
#define WHOLE (1 - 1e-9) /* a share of that much is all of the time */

/* --- where they run --------------------------------------------------------------------- */

static bool grant_beside(struct gavel_common *common, struct plan *plan, job_id job,
                         uint32_t column, job_id beside)
{
    struct ask ask = ASK_DEFAULT;
    ask.types = (uint32_t)1 << common->types[column];
    ask.beside = beside;
    if (!plan_grant(plan, job, &ask))
        return false;
    common->rounds->granted++;
    return true;
}

static bool grant_alone(struct gavel_common *common, struct plan *plan, job_id job,
                        uint32_t column)
{
    return grant_beside(common, plan, job, column, JOB_NONE);
}

/* Of two who are to share, the second comes beside the first. */
static bool comes_second(const struct gavel_common *common, job_id job)
{
    const struct gavel_rounds *rounds = common->rounds;
    job_id with = rounds->pages[job].with;
    uint32_t d = with == JOB_NONE ? NONE : duo_find(common, job, with);
    return d != NONE && rounds->duos[d].jobs[1] == job;
}

/* Its seats are where it is to run, and it is not another who is to keep them. */
static bool keeps_seats(const struct gavel_common *common, const struct view *view,
                        job_id id)
{
    const struct gavel_rounds *rounds = common->rounds;
    const struct job *job = &view->jobs[id];
    const struct round_job *page = &rounds->pages[id];
    uint32_t now = gavel_column_now(common, view, job);
    if (now == NONE || now != page->want)
        return false;
    if (job->partner == page->with)
        return true;
    if (comes_second(common, id))
        return false;
    bool partner_stays =
        job->partner != JOB_NONE && rounds->pages[job->partner].want == now &&
        !comes_second(common, job->partner) &&
        gavel_column_now(common, view, &view->jobs[job->partner]) == now;
    return !partner_stays || id < job->partner;
}

/* Who is not to run where it runs makes room; in order: those who want seats. */
static uint32_t send_away(struct gavel_common *common, const struct view *view,
                          struct plan *plan)
{
    struct gavel_rounds *rounds = common->rounds;
    uint32_t count = 0;
    for (uint32_t i = 0; i < common->job_count; i++) {
        job_id id = common->jobs[i];
        const struct job *job = &view->jobs[id];
        uint32_t want = rounds->pages[id].want;
        if (keeps_seats(common, view, id) ||
            (want == NONE && gavel_column_now(common, view, job) == NONE))
            continue;
        if (job_is_preemptible(job) && want == NONE)
            plan_revoke(plan, id, RULE_ROUND, JOB_NONE);
        else if (job_is_preemptible(job))
            plan_revoke(plan, id, RULE_RESIZE, id);
        if (want != NONE)
            rounds->order[count++] = id;
    }
    return count;
}

/*
 * Larger gangs first: what they leave is room for smaller ones, not the other way round.
 * Before all of them those who may use some nodes only: the others can be anywhere.
 */
static void order_by_gang(struct gavel_common *common, uint32_t count)
{
    struct gavel_rounds *rounds = common->rounds;
    for (uint32_t i = 0; i < count; i++)
        rounds->items[i] = (struct sort_item){
            .key = -common->entries[rounds->order[i]].gang -
                   (common->entries[rounds->order[i]].set ? CHOOSY : 0),
            .value = rounds->order[i]
        };
    sort_items(rounds->items, rounds->item_scratch, count);
    for (uint32_t i = 0; i < count; i++)
        rounds->order[i] = rounds->items[i].value;
}

/* No job took its GPUs after all: let it stay, or go where it fits. */
static void keep_unreplaced_jobs(struct gavel_common *common, const struct view *view,
                                 struct plan *plan)
{
    for (uint32_t i = 0; i < common->job_count; i++) {
        job_id id = common->jobs[i];
        if (plan_changes(plan, id) && !plan_holds(plan, id) &&
            job_is_preemptible(&view->jobs[id]) && !common->gavel->rule->strict)
            grant_alone(common, plan, id,
                        gavel_column_now(common, view, &view->jobs[id]));
    }
}

/* By more than what who sits is ahead by. */
static bool is_owed_more(const struct gavel_common *common, job_id newcomer,
                         job_id other, uint32_t column)
{
    return rounds_credits(common, newcomer)[column] >
           rounds_credits(common, other)[column] + common->rounds->round_s;
}

/* A job that may use some nodes only was chosen, and others stay there. */
static void make_way(struct gavel_common *common, const struct view *view,
                     struct plan *plan, uint32_t count)
{
    struct gavel_rounds *rounds = common->rounds;
    for (uint32_t i = 0; i < count; i++) {
        job_id id = rounds->order[i];
        if (common->entries[id].set && !plan_holds(plan, id) &&
            gavel_make_way(common, view, plan, id, rounds->pages[id].want,
                           is_owed_more))
            rounds->granted++;
    }
}

/*
 * Who was chosen and may use some nodes only does not have them yet: what was meant for it
 * must not idle.
 */
static void give_rest(struct gavel_common *common, const struct view *view,
                      struct plan *plan)
{
    for (uint32_t i = 0; i < common->job_count && view->free->gpu_count > 0; i++) {
        job_id id = common->jobs[i];
        double room[TYPES_MAX];
        uint32_t column;
        if (view->jobs[id].state != JOB_WAITING || plan_changes(plan, id))
            continue;
        for (uint32_t c = 0; c < common->type_count; c++)
            room[c] = view->free->shelves[common->types[c]].gpu_count;
        while ((column = gavel_spare_column(common, id, NONE, room)) != NONE &&
               !grant_alone(common, plan, id, column))
            room[column] = 0;
    }
}

static void seat_all(struct gavel_common *common, const struct view *view,
                     struct plan *plan)
{
    struct gavel_rounds *rounds = common->rounds;
    uint32_t count = send_away(common, view, plan);
    order_by_gang(common, count);
    for (uint32_t i = 0; i < count; i++)
        if (!comes_second(common, rounds->order[i]))
            grant_alone(common, plan, rounds->order[i],
                        rounds->pages[rounds->order[i]].want);
    for (uint32_t i = 0; i < count; i++) {
        job_id id = rounds->order[i];
        const struct round_job *page = &rounds->pages[id];
        if (comes_second(common, id) &&
            !grant_beside(common, plan, id, page->want, page->with))
            grant_alone(common, plan, id, page->want);
    }
    if (common->set_jobs > 0)
        make_way(common, view, plan, count);
    keep_unreplaced_jobs(common, view, plan);
    if (common->set_jobs > 0 && !common->gavel->rule->strict)
        give_rest(common, view, plan);
}

/* --- one swap at a time, if each has to pay ------------------------------------------------- */

/*
 * Make room of 'column' for a newcomer by sending away those who are not to run there, as
 * few as are needed in the order they stand in; or leave everything as it was.
 */
static bool swap_in(struct gavel_common *common, const struct view *view,
                    struct plan *plan, job_id newcomer, uint32_t column)
{
    struct gavel_rounds *rounds = common->rounds;
    size_t mark = plan_mark(plan);
    if (comes_second(common, newcomer))
        return grant_beside(common, plan, newcomer, column,
                            rounds->pages[newcomer].with);
    if (grant_alone(common, plan, newcomer, column))
        return true;
    uint32_t victims = 0;
    for (uint32_t i = common->job_count; i-- > 0 && victims < COST_TEST_VICTIMS_MAX;) {
        job_id id = common->jobs[i];
        const struct job *job = &view->jobs[id];
        if (!job_is_preemptible(job) || plan_changes(plan, id) ||
            gavel_column_now(common, view, job) != column ||
            rounds->pages[id].want == column ||
            !node_set_touches(view->jobs[newcomer].set, view_seats(view, id),
                              job->seats.count))
            continue;
        plan_revoke(plan, id, RULE_ROUND, newcomer);
        victims++;
        if (grant_alone(common, plan, newcomer, column))
            return cost_test_pass(&common->gavel->cost_test, view, plan, mark,
                                  newcomer);
    }
    plan_undo(plan, mark);
    return false;
}

static void seat_those_who_pay(struct gavel_common *common, const struct view *view,
                               struct plan *plan)
{
    struct gavel_rounds *rounds = common->rounds;
    uint32_t count = 0;
    for (uint32_t i = 0; i < common->job_count; i++) {
        job_id id = common->jobs[i];
        if (view->jobs[id].state == JOB_WAITING && rounds->pages[id].want != NONE)
            rounds->order[count++] = id;
    }
    order_by_gang(common, count);
    for (uint32_t i = 0; i < count; i++)
        swap_in(common, view, plan, rounds->order[i],
                rounds->pages[rounds->order[i]].want);
}

/* --- what is free now ------------------------------------------------------------------------ */

/* As chosen, or on another type with room; as it is, it may not fit everywhere. */
static void give_to(struct gavel_common *common, struct plan *plan, job_id job)
{
    double tried[TYPES_MAX];
    uint32_t column = common->rounds->pages[job].want;
    for (uint32_t c = 0; c < common->type_count; c++)
        tried[c] = INFINITY;
    while (column != NONE && !grant_alone(common, plan, job, column)) {
        if (common->gavel->rule->strict)
            return;
        tried[column] = 0;
        column = gavel_spare_column(common, job, NONE, tried);
    }
}

/* There may be room now on nodes that it may use. */
static bool may_find_room(const struct gavel_common *common, const struct view *view,
                          job_id job)
{
    const struct node_set *set = common->entries[job].set;
    double free[TYPES_MAX + 1] = { 0 };
    for (node_id n = set ? bits_next(&set->allowed, 0) : BITS_NONE; n != BITS_NONE;
         n = bits_next(&set->allowed, n + 1)) {
        uint32_t type = view->cluster->nodes[n].type;
        if (!view->free->listed[n])
            continue;
        free[type] += bits_count(view->free->rooms[n].gpus);
        if (type != TYPE_NONE && free[type] >= common->entries[job].gang)
            return true;
    }
    return !set;
}

/* In the middle of a round: no job is preempted. */
static void give_what_is_free(struct gavel_common *common, const struct view *view,
                              struct plan *plan)
{
    struct gavel_rounds *rounds = common->rounds;
    double room[TYPES_MAX] = { 0 };
    uint32_t count = 0;
    rounds->room = false;
    if (view->free->gpu_count == 0)
        return;
    for (uint32_t c = 0; c < common->type_count; c++)
        room[c] = view->free->shelves[common->types[c]].gpu_count;
    rounds_book(common, view);
    rounds->item_count = 0;
    for (uint32_t i = 0; i < common->job_count; i++) {
        job_id job = common->jobs[i];
        if (view->jobs[job].state != JOB_WAITING)
            continue;
        rounds->pages[job].want = NONE;
        rounds->pages[job].with = JOB_NONE;
        if (!may_find_room(common, view, job))
            continue;
        rounds->order[count++] = job;
        rounds_list_job(common, job, NONE);
    }
    rounds_choose(common, view, room, /* running= */ false);
    order_by_gang(common, count);
    for (uint32_t i = 0; i < count; i++)
        if (rounds->pages[rounds->order[i]].want != NONE)
            give_to(common, plan, rounds->order[i]);
    if (common->set_jobs > 0 && !common->gavel->rule->strict)
        give_rest(common, view, plan);
}

/* --- deciding ----------------------------------------------------------------------------------- */

/* Whether the next round may differ from this one although no job comes or goes. */
static bool is_restless(const struct gavel_common *common, const struct view *view)
{
    if (common->rounds->duo_count > 0)
        return true;
    for (uint32_t i = 0; i < common->job_count; i++) {
        job_id id = common->jobs[i];
        const struct job *job = &view->jobs[id];
        uint32_t now = gavel_column_now(common, view, job);
        if (now == NONE || rounds_shares(common, id)[now] < WHOLE)
            return true;
    }
    return false;
}

static void end_round(struct gavel_common *common, const struct view *view,
                      struct plan *plan)
{
    struct gavel_rounds *rounds = common->rounds;
    rounds_book(common, view);
    rounds_choose_all(common, view);
    if (common->gavel->cost_test.choice == COST_TEST_NONE)
        seat_all(common, view, plan);
    else
        seat_those_who_pay(common, view, plan);
    rounds->end_ns = view->now_ns + common->gavel->round_ns;
    rounds->restless = is_restless(common, view);
    rounds->room = true; /* GPUs that no job was chosen for may still fit one */
}

static int rounds_decide(struct gavel_common *common, const struct view *view,
                         struct plan *plan, struct arena *scratch, struct error *err)
{
    struct gavel_rounds *rounds = common->rounds;
    if (rounds->granted > 0 && rounds->placed == 0)
        rounds->room = rounds->restless = true; /* the last plan was thrown away */
    rounds->granted = rounds->placed = 0;
    if (common->changed && view->now_ns < rounds->due_ns)
        plan_wake(plan, rounds->due_ns);
    else if (common->changed) {
        rounds_book(common, view);
        int r = rounds_make_shares(common, view, scratch, err);
        if (r < 0) {
            plan_wake(plan, view->now_ns + 1); /* then go on with those there are */
            return r;
        }
    }
    if (common->job_count == 0)
        return 0;
    if (rounds->restless && view->now_ns >= rounds->end_ns)
        end_round(common, view, plan);
    else if (rounds->room)
        give_what_is_free(common, view, plan);
    if (rounds->restless)
        plan_wake(plan, rounds->end_ns);
    return 0;
}

static int rounds_init(struct gavel_common *common, const struct view *view,
                       struct arena *run, struct error *err)
{
    struct gavel_rounds *rounds = arena_new(run, struct gavel_rounds);
    size_t k = common->type_count;
    size_t jobs = view->job_max;
    size_t duos = common->pair_max;
    common->rounds = rounds;
    rounds->round_s = (double)common->gavel->round_ns / 1e9;
    rounds->job_max = view->job_max;
    rounds->duo_max = common->pair_max;
    rounds->x = arena_array(run, double, k *jobs);
    rounds->credit_s = arena_array(run, double, k *jobs);
    rounds->pages = arena_array(run, struct round_job, jobs);
    rounds->duos = arena_array(run, struct duo, duos + 1);
    rounds->old_duos = arena_array(run, struct duo, duos + 1);
    rounds->duo_x = arena_array(run, double, k *(duos + 1));
    rounds->duo_credit_s = arena_array(run, double, k *(duos + 1));
    rounds->old_credit_s = arena_array(run, double, k *(duos + 1));
    rounds->items = arena_array(run, struct sort_item, k * (jobs + duos));
    rounds->item_scratch = arena_array(run, struct sort_item, k * (jobs + duos));
    rounds->order = arena_array(run, job_id, jobs);
    return 0;
}

static void rounds_room(struct gavel_common *common)
{
    common->rounds->room = true;
}

/* Where it is due something, and where it is owed most. */
static void explain_shares(const struct gavel_common *common, const struct view *view,
                           job_id job, struct reasons *reasons)
{
    const double *x = rounds_shares(common, job);
    const double *credit_s = rounds_credits(common, job);
    double since_s = (double)(view->now_ns - common->rounds->booked_ns) * 1e-9;
    bool due = false;
    for (uint32_t c = 0; c < common->type_count; c++) {
        if (x[c] <= 0)
            continue;
        due = true;
        reasons_add(reasons, "share",
                    "it is due %.3g %% of the time on %s and is owed %.3g s there",
                    x[c] * 100, view->cluster->types[common->types[c]].name,
                    credit_s[c] + x[c] * since_s);
    }
    if (!due)
        reasons_add(reasons, "share", "it is due no time at present");
}

static void rounds_explain(const struct gavel_common *common, const struct view *view,
                           job_id job, struct reasons *reasons)
{
    explain_shares(common, view, job, reasons);
    if (common->rounds->end_ns > view->now_ns)
        reasons_add(reasons, "round", "the next round begins in %.3g s",
                    (double)(common->rounds->end_ns - view->now_ns) * 1e-9);
    else
        gavel_explain_rounds(common, reasons);
}

const struct gavel_mechanism gavel_mechanism_rounds = {
    .init = rounds_init,
    .observe = rounds_observe,
    .decide = rounds_decide,
    .room = rounds_room,
    .explain = rounds_explain,
};
