/*
 * gavel_round.c - rounds by our own rules: from shares of time to the jobs that run
 * now.
 *
 * Shares say how many units of each line are to run at a time; a line that runs fewer is
 * owed the difference (gavel_accounts.c).  When a round ends, GPUs go to the units with
 * the largest keys, in rounds:
 *
 *     key of a line's n-th unit = units due + units owed - n, and more if it runs already
 *
 * and within a line to the members that are owed most.  Three jobs that are a class each,
 * two GPUs, shares 1, 1/2, 1/2:
 *
 *     keys   A 1  B 1/2  C 1/2     A and B run; then they are owed 0, -1/2, 1/2
 *     keys   A 1  B 0    C 1       A and C run; and so on
 *
 * What is better than in the published system (gavel_released.c), which this replaces:
 *
 *   - Leases are open: a job that stays costs nothing, not even an event.
 *   - When a job comes or goes, what is free is given at once to the jobs that are owed most;
 *     nothing idles until the round is over.
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
 * A round costs what it changes: it looks at lines, not at jobs, and at the jobs that are
 * to start or stop.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "model/cluster.h"
#include "model/free_index.h"
#include "model/node_set.h"
#include "model/reasons.h"
#include "policy/gavel/gavel_shares.h"

#define CHOOSY 1e9     /* more than any gang */
#define WHOLE 1e-6     /* lines of so nearly as many units as run are whole */
#define MOVERS_MAX 64  /* jobs that move for one */
#define GANGS_FEW 64   /* sizes of gangs that are counted; see order_few_gangs() */
#define REFUSALS_MAX 4 /* grants of a class that are tried in vain in one decision */

/* --- what happens ---------------------------------------------------------------------- */

/* Its rates are others: it goes to the class of those like it, with what it is owed. */
static void join_like_ones(struct gavel_common *common, const struct view *view,
                           job_id job)
{
    double credit_s = accounts_credit(common, job, view->now_ns);
    accounts_remove(common, view, job);
    accounts_add(common, view, job, credit_s);
}

static void rounds_leave(struct gavel_common *common, const struct view *view,
                         job_id id)
{
    shares_drift(common, view, id, /* comes= */ false);
    gavel_strike(common, id);
    accounts_remove(common, view, id);
    common->rounds->room = true;
}

static void rounds_observe(struct gavel_common *common, const struct view *view,
                           const struct event *event)
{
    struct gavel_rounds *rounds = common->rounds;
    enum job_state state = view->jobs[event->job].state;
    if (gavel_comes(view, event)) {
        gavel_enroll(common, view, event->job);
        accounts_add(common, view, event->job, 0);
        shares_drift(common, view, event->job, /* comes= */ true);
        rounds->room = true;
        return;
    }
    if (event->kind == EVENT_PLACED || event->kind == EVENT_RESIZING)
        rounds->placed++;
    if (!common->entries[event->job].ticket)
        return;
    if (event->kind == EVENT_RATED) {
        join_like_ones(common, view, event->job);
        shares_drift(common, view, event->job, /* comes= */ true);
        common->changed = rounds->restless = true;
        return;
    }
    bool ran = rounds->members[event->job].line != NONE;
    accounts_follow(common, view, event->job);
    if (state == JOB_WAITING || (ran && rounds->members[event->job].line == NONE))
        rounds->room = true;
    if (state == JOB_FREE || state == JOB_HELD)
        rounds_leave(common, view, event->job);
}

/* --- where they run --------------------------------------------------------------------- */

static bool grant_on_type(const struct gavel_common *common, struct plan *plan,
                          job_id job, uint32_t column, job_id beside)
{
    struct ask ask = ASK_DEFAULT;
    ask.types = (uint32_t)1 << common->types[column];
    ask.beside = beside;
    ask.avoid = common->gavel->host ? common->gavel->host->avoid : NULL;
    return plan_grant(plan, job, &ask);
}

static bool grant_beside(struct gavel_common *common, struct plan *plan, job_id job,
                         uint32_t column, job_id beside)
{
    if (!grant_on_type(common, plan, job, column, beside))
        return false;
    common->rounds->granted++;
    return true;
}

static bool grant_alone(struct gavel_common *common, struct plan *plan, job_id job,
                        uint32_t column)
{
    return grant_beside(common, plan, job, column, JOB_NONE);
}

/* Of two who shared one at most keeps the GPUs, unless they stay together. */
static bool may_keep(const struct gavel_common *common, const struct view *view,
                     job_id id, job_id mate, uint32_t column)
{
    const struct gavel_rounds *rounds = common->rounds;
    const struct job *job = &view->jobs[id];
    if (id == JOB_NONE || !rounds->members[id].leaves || !job_is_preemptible(job) ||
        gavel_column_now(common, view, job) != column)
        return false;
    return job->partner == JOB_NONE || job->partner == mate ||
           (rounds->members[job->partner].leaves &&
            !rounds->members[job->partner].keeps);
}

static bool is_in_place(const struct gavel_rounds *rounds, job_id id)
{
    const struct gavel_member *member = &rounds->members[id];
    return member->keeps || (!member->leaves && member->line != NONE);
}

/* The host of a unit comes first in it from now on. */
static void settle_host(struct gavel_rounds *rounds, const struct view *view,
                        struct gavel_unit *unit, bool may_first, bool may_second)
{
    job_id a = unit->jobs[0];
    job_id b = unit->jobs[1];
    if (!may_first && !may_second)
        return;
    rounds->members[may_first ? a : b].keeps = true;
    if (!may_first) {
        unit->jobs[0] = b;
        unit->jobs[1] = a;
    } else if (may_second && view->jobs[a].partner == b) {
        rounds->members[b].keeps = true;
    }
}

/*
 * Jobs that stay where they are, so that the others come to them.  Of two that shared and part one
 * can stay: first those of a unit that has no other job that could, or it would have none.
 */
static void settle_hosts(struct gavel_common *common, const struct view *view)
{
    struct gavel_rounds *rounds = common->rounds;
    for (uint32_t both = 0; both < 2; both++)
        for (uint32_t i = 0; i < rounds->unit_count; i++) {
            struct gavel_unit *unit = &rounds->units[i];
            job_id a = unit->jobs[0];
            job_id b = unit->jobs[1];
            if (is_in_place(rounds, a) || (b != JOB_NONE && rounds->members[b].keeps))
                continue;
            bool may_first = may_keep(common, view, a, b, unit->column);
            bool may_second = may_keep(common, view, b, a, unit->column);
            if (both || !may_first || !may_second)
                settle_host(rounds, view, unit, may_first, may_second);
        }
}

static void revoke_leavers(struct gavel_common *common, const struct view *view,
                           struct plan *plan)
{
    const struct gavel_rounds *rounds = common->rounds;
    for (uint32_t i = 0; i < rounds->leaver_count; i++) {
        job_id id = rounds->leavers[i];
        const struct gavel_member *member = &rounds->members[id];
        if (member->keeps || !job_is_preemptible(&view->jobs[id]))
            continue;
        if (member->to == NONE)
            plan_revoke(plan, id, RULE_ROUND, JOB_NONE);
        else
            plan_revoke(plan, id, RULE_RESIZE, id);
    }
}

/* Where no gang is larger than GANGS_FEW and all nodes will do, units are counted, not compared. */
static bool order_few_gangs(struct gavel_common *common)
{
    struct gavel_rounds *rounds = common->rounds;
    uint32_t starts[GANGS_FEW + 1] = { 0 }; /* by how much smaller than GANGS_FEW */
    uint32_t start = 0;
    for (uint32_t i = 0; i < rounds->unit_count; i++) {
        const struct gavel_entry *entry = &common->entries[rounds->units[i].jobs[0]];
        if (entry->set || entry->gang > GANGS_FEW)
            return false;
        starts[GANGS_FEW - (uint32_t)entry->gang]++;
    }
    for (uint32_t smaller = 0; smaller <= GANGS_FEW; smaller++) {
        uint32_t here = starts[smaller];
        starts[smaller] = start;
        start += here;
    }
    memcpy(rounds->item_scratch, rounds->items,
           rounds->unit_count * sizeof *rounds->items);
    for (uint32_t i = 0; i < rounds->unit_count; i++) {
        job_id first = rounds->units[rounds->item_scratch[i].value].jobs[0];
        uint32_t smaller = GANGS_FEW - (uint32_t)common->entries[first].gang;
        rounds->items[starts[smaller]++] = rounds->item_scratch[i];
    }
    return true;
}

/*
 * Larger gangs first: what they leave is room for smaller ones, not the other way round.
 * Before all of them those who may use some nodes only: the others can be anywhere.
 * Of equal gangs the one that came first, where every job is a class of its own.
 */
static void order_units(struct gavel_common *common)
{
    struct gavel_rounds *rounds = common->rounds;
    for (uint32_t i = 0; i < rounds->unit_count; i++)
        rounds->items[i] = (struct sort_item){
            (double)common->entries[rounds->units[i].jobs[0]].ticket, i
        };
    if (!rounds->by_class)
        sort_items(rounds->items, rounds->item_scratch, rounds->unit_count);
    if (order_few_gangs(common))
        return;
    for (uint32_t i = 0; i < rounds->unit_count; i++) {
        job_id first = rounds->units[rounds->items[i].value].jobs[0];
        const struct gavel_entry *entry = &common->entries[first];
        rounds->items[i].key = -entry->gang - (entry->set ? CHOOSY : 0);
    }
    sort_items(rounds->items, rounds->item_scratch, rounds->unit_count);
}

/* Jobs have more GPUs than they asked for, because no job waited. */
static bool take_back(struct gavel_common *common, const struct view *view,
                      struct plan *plan, job_id job)
{
    const struct gavel_host *host = common->gavel->host;
    if (!host || !host->make_room(host->self, view, plan, job))
        return false;
    common->rounds->granted++;
    return true;
}

/* No more members of a class are tried than that: others would be refused as well. */
static bool try_grant(struct gavel_common *common, const struct view *view,
                      struct plan *plan, job_id job, uint32_t column)
{
    struct gavel_class *class =
        &common->rounds->classes[common->rounds->members[job].class];
    if (class->tried >= REFUSALS_MAX)
        return false;
    if (grant_alone(common, plan, job, column) || take_back(common, view, plan, job))
        return true;
    class->tried++;
    return false;
}

static void place_unit(struct gavel_common *common, const struct view *view,
                       struct plan *plan, const struct gavel_unit *unit)
{
    const struct gavel_rounds *rounds = common->rounds;
    job_id host = unit->jobs[0];
    job_id guest = unit->jobs[1];
    bool placed =
        is_in_place(rounds, host) || try_grant(common, view, plan, host, unit->column);
    if (guest == JOB_NONE || is_in_place(rounds, guest))
        return;
    if (placed && grant_beside(common, plan, guest, unit->column, host)) {
        rounds->members[host].joined = true;
        return;
    }
    if (placed)
        gavel_pairs_refused(common, view, host, guest, unit->column);
    try_grant(common, view, plan, guest, unit->column);
}

/* --- jobs that may use some nodes only ----------------------------------------------------- */

/*
 * Rounds are chosen by counting GPUs of a type, and a job that stays keeps its GPUs.
 * So a job that may only run on node 3 can be chosen, and find that another, which
 * could run anywhere, has been chosen as well and stays on node 3.
 *
 *     n2 [. .]  n3 [A A]     X may use n3 only, A any:  A goes to n2, X gets n3
 *
 * The job in the way is placed again elsewhere.  If it fits nowhere else it is
 * preempted only for a job that is owed more; otherwise all stays as it was.
 */
struct movers {
    job_id jobs[MOVERS_MAX];
    uint32_t count;
};

static bool may_move(const struct gavel_common *common, const struct view *view,
                     const struct plan *plan, job_id id)
{
    const struct job *job = &view->jobs[id];
    return job_is_preemptible(job) && !job->leaving && job->coming == JOB_NONE &&
           !plan_changes(plan, id) && !common->rounds->members[id].joined &&
           !gavel_is_spared(common, view, job);
}

/* It, and who shares with it, off the newcomer's nodes. */
static bool move_off(const struct gavel_common *common, const struct view *view,
                     struct plan *plan, job_id id, job_id newcomer,
                     struct movers *movers)
{
    job_id two[2] = { id, view->jobs[id].partner };
    uint32_t count = two[1] == JOB_NONE ? 1 : 2;
    for (uint32_t i = 0; i < count; i++)
        if (!may_move(common, view, plan, two[i]))
            return false;
    if (movers->count + count > MOVERS_MAX)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        plan_revoke(plan, two[i], RULE_ROUND, newcomer);
        movers->jobs[movers->count++] = two[i];
    }
    return true;
}

/*
 * Where it was, if its GPUs are not taken; else elsewhere, beside its partner or
 * alone.
 */
static bool seat_again(const struct gavel_common *common, const struct view *view,
                       struct plan *plan, job_id id)
{
    const struct job *job = &view->jobs[id];
    uint32_t column = common->column_of[job->type_now];
    return (job->partner != JOB_NONE &&
            grant_on_type(common, plan, id, column, job->partner)) ||
           grant_on_type(common, plan, id, column, JOB_NONE);
}

/* The waiting job is owed more than the one that runs, by more than a round. */
static bool is_owed_more(const struct gavel_common *common, const struct view *view,
                         job_id newcomer, job_id other)
{
    return accounts_credit(common, newcomer, view->now_ns) >
           accounts_credit(common, other, view->now_ns) +
               (STAYS + gavel_lead(common, view, other)) * common->rounds->round_s;
}

/*
 * Place a job that was chosen for 'column' on nodes where others stay that could run
 * elsewhere: they move.  False, and nothing changed, if that does not help or is not
 * fair.
 */
static bool make_way_for(const struct gavel_common *common, const struct view *view,
                         struct plan *plan, job_id newcomer, uint32_t column)
{
    const struct node_set *set = view->jobs[newcomer].set;
    size_t mark = plan_mark(plan);
    struct movers movers = { .count = 0 };
    bool seated = false;
    for (uint32_t i = common->job_count; set && i-- > 0 && !seated;) {
        job_id id = common->jobs[i];
        const struct job *job = &view->jobs[id];
        if (job_runs(job) && job->type_now == common->types[column] &&
            node_set_touches(set, view_seats(view, id), job->seats.count) &&
            move_off(common, view, plan, id, newcomer, &movers))
            seated = grant_on_type(common, plan, newcomer, column, JOB_NONE);
    }
    for (uint32_t i = 0; seated && i < movers.count; i++)
        seated = seat_again(common, view, plan, movers.jobs[i]) ||
                 is_owed_more(common, view, newcomer, movers.jobs[i]);
    if (!seated)
        plan_undo(plan, mark);
    return seated;
}

/* Jobs that may use some nodes only were chosen, and others stay there. */
static void make_way(struct gavel_common *common, const struct view *view,
                     struct plan *plan)
{
    struct gavel_rounds *rounds = common->rounds;
    for (uint32_t i = 0; i < rounds->unit_count; i++)
        for (uint32_t side = 0; side < 2; side++) {
            job_id id = rounds->units[i].jobs[side];
            if (id != JOB_NONE && common->entries[id].set && !plan_holds(plan, id) &&
                make_way_for(common, view, plan, id, rounds->units[i].column))
                rounds->granted++;
        }
}

/* No job took its GPUs after all: let it stay, or go where it fits. */
static void keep_unreplaced_jobs(struct gavel_common *common, const struct view *view,
                                 struct plan *plan)
{
    const struct gavel_rounds *rounds = common->rounds;
    for (uint32_t i = 0; i < rounds->leaver_count; i++) {
        job_id id = rounds->leavers[i];
        if (plan_changes(plan, id) && !plan_holds(plan, id))
            grant_alone(common, plan, id,
                        gavel_column_now(common, view, &view->jobs[id]));
    }
}

/* What was meant for jobs that do not have their nodes yet must not idle. */
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

static void place_all(struct gavel_common *common, const struct view *view,
                      struct plan *plan)
{
    struct gavel_rounds *rounds = common->rounds;
    bool strict = common->gavel->rule->strict;
    settle_hosts(common, view);
    revoke_leavers(common, view, plan);
    order_units(common);
    for (uint32_t i = 0; i < rounds->unit_count; i++)
        place_unit(common, view, plan, &rounds->units[rounds->items[i].value]);
    if (common->set_jobs > 0)
        make_way(common, view, plan);
    if (!strict)
        keep_unreplaced_jobs(common, view, plan);
    if (common->set_jobs > 0 && !strict)
        give_rest(common, view, plan);
}

/* --- one swap at a time, if each has to pay ------------------------------------------------- */

/*
 * Make room of 'column' for a newcomer by preempting jobs that are not to run there, as few
 * as are needed in the order they stand in; or leave everything as it was.
 */
static bool swap_in(struct gavel_common *common, const struct view *view,
                    struct plan *plan, job_id newcomer, uint32_t column)
{
    const struct gavel_rounds *rounds = common->rounds;
    size_t mark = plan_mark(plan);
    if (grant_alone(common, plan, newcomer, column))
        return true;
    uint32_t victims = 0;
    for (uint32_t i = 0; i < rounds->leaver_count && victims < COST_TEST_VICTIMS_MAX;
         i++) {
        job_id id = rounds->leavers[i];
        const struct job *job = &view->jobs[id];
        if (!job_is_preemptible(job) || plan_changes(plan, id) ||
            gavel_column_now(common, view, job) != column ||
            rounds->members[id].to == column ||
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

static void place_what_pays(struct gavel_common *common, const struct view *view,
                            struct plan *plan)
{
    struct gavel_rounds *rounds = common->rounds;
    order_units(common);
    for (uint32_t i = 0; i < rounds->unit_count; i++) {
        const struct gavel_unit *unit = &rounds->units[rounds->items[i].value];
        job_id host = unit->jobs[0];
        job_id guest = unit->jobs[1];
        bool placed = view->jobs[host].state != JOB_WAITING ||
                      swap_in(common, view, plan, host, unit->column);
        if (placed && guest != JOB_NONE && view->jobs[guest].state == JOB_WAITING)
            grant_beside(common, plan, guest, unit->column, host);
    }
}

/* --- deciding ----------------------------------------------------------------------------------- */

/* As chosen, or on another type with room; as it is, it may not fit everywhere. */
static void give_to(struct gavel_common *common, const struct view *view,
                    struct plan *plan, const struct gavel_unit *unit)
{
    job_id job = unit->jobs[0];
    double tried[TYPES_MAX];
    uint32_t column = unit->column;
    for (uint32_t c = 0; c < common->type_count; c++)
        tried[c] = INFINITY;
    while (column != NONE && !try_grant(common, view, plan, job, column)) {
        if (common->gavel->rule->strict)
            return;
        tried[column] = 0;
        column = gavel_spare_column(common, job, NONE, tried);
    }
}

/* GPUs that are free or lent, by column. */
static double count_free(const struct gavel_common *common, const struct view *view,
                         double *room)
{
    const struct gavel_host *host = common->gavel->host;
    double all = 0;
    for (uint32_t c = 0; c < common->type_count; c++) {
        uint32_t type = common->types[c];
        room[c] = view->free->shelves[type].gpu_count + (host ? host->lent[type] : 0);
        all += room[c];
    }
    return all;
}

/* In the middle of a round: no job is preempted. */
static void give_what_is_free(struct gavel_common *common, const struct view *view,
                              struct plan *plan)
{
    struct gavel_rounds *rounds = common->rounds;
    double room[TYPES_MAX] = { 0 };
    rounds->room = false;
    if (rounds->waiting_count == 0 || count_free(common, view, room) == 0)
        return;
    gavel_choose(common, view, room, /* running= */ false);
    order_units(common);
    for (uint32_t i = 0; i < rounds->unit_count; i++)
        give_to(common, view, plan, &rounds->units[rounds->items[i].value]);
    if (common->set_jobs > 0 && !common->gavel->rule->strict)
        give_rest(common, view, plan);
    gavel_choose_forget(rounds);
}

/* Whether the next round may differ from this one although no job comes or goes. */
static bool is_restless(const struct gavel_common *common, const struct plan *plan)
{
    const struct gavel_rounds *rounds = common->rounds;
    if (rounds->waiting_count > 0 || plan_change_count(plan) > 0)
        return true;
    for (uint32_t which = 0; which < LIST_COUNT; which++)
        for (uint32_t i = 0; i < rounds->lists[which].count; i++) {
            const struct gavel_line *line =
                &rounds->lines[rounds->lists[which].lines[i]];
            if (fabs(line_units(rounds, line) - line_running(line)) > WHOLE)
                return true;
        }
    return false;
}

static void end_round(struct gavel_common *common, const struct view *view,
                      struct plan *plan)
{
    struct gavel_rounds *rounds = common->rounds;
    const struct gavel_host *host = common->gavel->host;
    double room[TYPES_MAX] = { 0 };
    for (uint32_t c = 0; c < common->type_count; c++)
        room[c] =
            common->capacity[c] -
            (host ? fmin(host->withheld[common->types[c]], common->capacity[c]) : 0);
    gavel_choose(common, view, room, /* running= */ true);
    if (common->gavel->cost_test.choice == COST_TEST_NONE)
        place_all(common, view, plan);
    else
        place_what_pays(common, view, plan);
    gavel_choose_forget(rounds);
    rounds->end_ns = view->now_ns + common->gavel->round_ns;
    rounds->restless = is_restless(common, plan);
    rounds->room = true; /* GPUs that no job was chosen for may still fit one */
}

static int rounds_decide(struct gavel_common *common, const struct view *view,
                         struct plan *plan, struct arena *scratch, struct error *err)
{
    struct gavel_rounds *rounds = common->rounds;
    if (rounds->granted > 0 && rounds->placed == 0)
        rounds->room = rounds->restless = true; /* the last plan was thrown away */
    rounds->granted = rounds->placed = 0;
    int64_t due_ns = rounds->pair_solver && rounds->end_ns > rounds->due_ns
                         ? rounds->end_ns
                         : rounds->due_ns;
    if (common->changed && view->now_ns < due_ns)
        plan_wake(plan, due_ns);
    else if (common->changed) {
        int r = shares_make(common, view, scratch, err);
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
    const struct gavel_policy *gavel = common->gavel;
    bool paired = gavel->sharing && gavel->rule->demand;
    if (paired && gavel->cost_test.choice != COST_TEST_NONE)
        return error_set(err, -EINVAL,
                         "worth asks about one job in the place of others, which "
                         "sharing=true does not decide by");
    struct gavel_rounds *rounds = arena_new(run, struct gavel_rounds);
    size_t jobs = view->job_max;
    common->rounds = rounds;
    rounds->round_s = (double)gavel->round_ns / 1e9;
    rounds->by_class = paired || gavel->rule->by_class;
    accounts_init(common, view, run);
    size_t lines = (size_t)rounds->alone_count + rounds->pair_max;
    rounds->item_max = lines + view->cluster->gpu_count + jobs;
    rounds->items = arena_array(run, struct sort_item, rounds->item_max);
    rounds->item_scratch = arena_array(run, struct sort_item, rounds->item_max);
    rounds->listed = arena_array(run, uint32_t, lines);
    rounds->touched = arena_array(run, uint32_t, lines);
    rounds->near.lines = arena_array(run, uint32_t, lines);
    for (uint32_t which = 0; which < LIST_COUNT; which++)
        rounds->lists[which].lines = arena_array(run, uint32_t, lines);
    rounds->units = arena_array(run, struct gavel_unit, 2 * jobs + 1);
    rounds->leavers = arena_array(run, job_id, jobs);
    rounds->rows = arena_array(run, job_id, jobs);
    if (paired)
        rounds->pair_solver = pairs_solver_new();
    return 0;
}

static void rounds_fini(struct gavel_common *common)
{
    if (common->rounds) /* else it was refused */
        pairs_solver_free(common->rounds->pair_solver);
}

static void rounds_room(struct gavel_common *common)
{
    common->rounds->room = true;
    common->rounds->restless = common->rounds->restless || common->gavel->host;
}

/* Where it is due something, and what it is owed. */
static void explain_shares(const struct gavel_common *common, const struct view *view,
                           job_id job, struct reasons *reasons)
{
    const struct gavel_rounds *rounds = common->rounds;
    uint32_t class = rounds->members[job].class;
    double owed_s = accounts_credit(common, job, view->now_ns);
    for (uint32_t c = 0; c < common->type_count; c++) {
        double share = rounds_alone(common, class, c)->share;
        if (share > 0)
            reasons_add(reasons, "share", "it is due %.3g %% of the time on %s",
                        share * 100, view->cluster->types[common->types[c]].name);
    }
    if (rounds->drift > 0)
        reasons_add(reasons, "share", "shares may be %.2g %% from those of now",
                    rounds->drift * 100);
    if (rounds->classes[class].time > 0)
        reasons_add(reasons, "share", "it is owed %.3g s of its time", owed_s);
    else
        reasons_add(reasons, "share", "it is due no time at present");
}

#define HOLDERS_SHOWN 5

/* A running job whose GPUs a waiting one could have. */
struct holder {
    job_id job;
    double more_s; /* by which the waiting job is owed more          */
    double need_s; /* by which it would have to be, for job to leave */
};

static bool is_nearer(const struct holder *one, const struct holder *other)
{
    return one->more_s - one->need_s > other->more_s - other->need_s;
}

/* Those that are nearest to being stopped for it, in order. */
static uint32_t list_holders(const struct gavel_common *common, const struct view *view,
                             job_id waiting, struct holder *holders)
{
    const struct gavel_rounds *rounds = common->rounds;
    double owed_s = accounts_credit(common, waiting, view->now_ns);
    uint32_t count = 0;
    for (uint32_t i = 0; i < common->job_count; i++) {
        job_id id = common->jobs[i];
        const struct job *job = &view->jobs[id];
        if (!job_is_preemptible(job) ||
            !(view->jobs[waiting].types >> job->type_now & 1))
            continue;
        struct holder holder = {
            .job = id,
            .more_s = owed_s - accounts_credit(common, id, view->now_ns),
            .need_s = (STAYS + gavel_lead(common, view, id)) * rounds->round_s
        };
        uint32_t at = count < HOLDERS_SHOWN ? count++ : HOLDERS_SHOWN;
        for (; at > 0 && is_nearer(&holder, &holders[at - 1]); at--)
            if (at < HOLDERS_SHOWN)
                holders[at] = holders[at - 1];
        if (at < HOLDERS_SHOWN)
            holders[at] = holder;
    }
    return count;
}

/* With a host: what stopping the jobs costs that it could have the GPUs of. */
static void explain_holders(const struct gavel_common *common, const struct view *view,
                            job_id waiting, struct reasons *reasons)
{
    const struct gavel_host *host = common->gavel->host;
    struct holder holders[HOLDERS_SHOWN];
    uint32_t count = list_holders(common, view, waiting, holders);
    for (uint32_t i = 0; i < count; i++) {
        const struct holder *holder = &holders[i];
        const struct job *job = &view->jobs[holder->job];
        bool spared = gavel_is_spared(common, view, job);
        bool enough = holder->more_s > holder->need_s;
        reasons_add_considered(
            reasons, (struct reasons_considered){
                         job->id, host->price_gpu_s(host->self, view, holder->job),
                         holder->more_s,
                         spared   ? "has run too short a time for what its stop costs"
                         : enough ? "may be stopped when the round ends"
                                  : "is stopped only for a job that is owed more" });
        if (i == 0)
            reasons_add(reasons, "worth",
                        "job %" PRIu64 " keeps its GPUs until another is owed %.3g s "
                        "more than it, for what its stop costs; now that is %.3g s",
                        job->id, holder->need_s, holder->more_s);
    }
}

static bool rounds_explain(const struct gavel_common *common, const struct view *view,
                           job_id job, struct reasons *reasons)
{
    if (common->entries[job].ticket)
        explain_shares(common, view, job, reasons);
    if (common->entries[job].ticket && common->gavel->host)
        explain_holders(common, view, job, reasons);
    if (common->rounds->end_ns <= view->now_ns)
        return false;
    reasons_add(reasons, "round", "the next round begins in %.3g s",
                (double)(common->rounds->end_ns - view->now_ns) * 1e-9);
    return true;
}

const struct gavel_mechanism gavel_mechanism_rounds = {
    .init = rounds_init,
    .observe = rounds_observe,
    .decide = rounds_decide,
    .leave = rounds_leave,
    .room = rounds_room,
    .explain = rounds_explain,
    .fini = rounds_fini,
};
