/*
 * gavel_round.c - rounds by our own rules: from shares of time to who runs now.
 *
 * A job that is due the share x of a type is owed x seconds there for every second that
 * passes, and pays a second for every second it has seats there.  The difference is its
 * credit.  When a round ends, places go to who would be owed most at the end of the next:
 *
 *     key = credit + x R, and a little more for who is there already
 *
 * Three jobs, two accelerators, x = 1, 1/2, 1/2, R = 360 s:
 *
 *     keys   A 360  B 180  C 180     A and B run; then credits are 0, -180, 180
 *     keys   A 360  B   0  C 360     A and C run; and so on
 *
 * What is better than in the published system (gavel_released.c), which this replaces:
 *
 *   - Leases are open: who stays just stays, at no cost, not even of an event.
 *   - Somebody comes or goes: shares are made again at once, and what is free is given
 *     at once to who is owed most; nothing idles until the round is over.
 *   - Credits outlive new shares, so who was owed something still is.
 *   - Rounds in which nothing would change are left out.
 *   - A gang is only due what some type can hold, now.
 *   - Larger gangs are seated first, and who stays keeps its seats.
 *   - Nobody is sent away who could not save what it has done, nor before it has run for
 *     as long as its coming and going takes.
 *
 * With worth=xion a swap at a round's end has to pay; if it does not, who runs stays.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/sort.h"
#include "model/cluster.h"
#include "model/free.h"
#include "policy/gavel_common.h"

#define NONE UINT32_MAX
#define STAYS 0.25        /* of a round: who is there is ahead by this much       */
#define CREDIT_MAX 10.0   /* rounds that can be owed at most                      */
#define CREDIT_MIN (-1.0) /* rounds that somebody can have had ahead of time     */
#define WHOLE (1 - 1e-9)  /* a share of that much is all of the time              */

/* By slot. */
struct page {
    int64_t seated_ns; /* since when its time in seats is not booked; -1: it has none */
    uint32_t column;   /* of these seats                                              */
    uint32_t want;     /* column for the next round, or NONE                          */
};

struct gavel_rounds {
    double round_s;
    double *x;        /* [slot][column] */
    double *credit_s; /* [slot][column] */
    struct page *pages;
    int64_t booked_ns; /* dues are in the credits up to then */
    int64_t end_ns;    /* of the round                       */
    bool failed;       /* the policy has no new shares: go on with the old */
    bool room;         /* somebody left or came since what is free was given away */
    bool restless;     /* the next round would not be as this one */
    uint32_t granted, placed; /* in the last plan; seen to be carried out */

    struct sort_item *items, *item_scratch; /* value: slot and column */
    uint32_t item_count;
    job_id *order;
};

static double *shares_of(const struct gavel_common *common, job_id job)
{
    return &common->rounds->x[(size_t)job * common->type_count];
}

static double *credits_of(const struct gavel_common *common, job_id job)
{
    return &common->rounds->credit_s[(size_t)job * common->type_count];
}

/* --- accounts ------------------------------------------------------------------------ */

/* Time in seats is paid for, if it is time that was due. */
static void book_seat(struct gavel_common *common, job_id job, int64_t now_ns)
{
    struct page *page = &common->rounds->pages[job];
    if (page->seated_ns < 0)
        return;
    if (shares_of(common, job)[page->column] > 0)
        credits_of(common, job)[page->column] -=
            (double)(now_ns - page->seated_ns) * 1e-9;
    page->seated_ns = now_ns;
}

static void book(struct gavel_common *common, int64_t now_ns)
{
    struct gavel_rounds *rounds = common->rounds;
    double passed_s = (double)(now_ns - rounds->booked_ns) * 1e-9;
    double least_s = CREDIT_MIN * rounds->round_s;
    double most_s = CREDIT_MAX * rounds->round_s;
    rounds->booked_ns = now_ns;
    if (passed_s <= 0)
        return;
    for (uint32_t i = 0; i < common->job_count; i++) {
        job_id job = common->jobs[i];
        const double *x = shares_of(common, job);
        double *credit_s = credits_of(common, job);
        book_seat(common, job, now_ns);
        for (uint32_t c = 0; c < common->type_count; c++) {
            double due_s = credit_s[c] + x[c] * passed_s;
            credit_s[c] = due_s < least_s ? least_s : due_s > most_s ? most_s : due_s;
        }
    }
}

/* --- what happens ---------------------------------------------------------------------- */

static void came(struct gavel_common *common, const struct view *view, job_id id)
{
    struct gavel_rounds *rounds = common->rounds;
    const struct job *job = &view->jobs[id];
    size_t bytes = common->type_count * sizeof(double);
    memset(shares_of(common, id), 0, bytes);
    memset(credits_of(common, id), 0, bytes);
    rounds->pages[id] = (struct page){ .seated_ns = -1, .want = NONE };
    if (job_seated(job)) {
        rounds->pages[id].seated_ns = view->now_ns;
        rounds->pages[id].column = common->column_of[job->type_now];
    }
    gavel_enroll(common, view, id);
    rounds->room = true;
}

static void follow_seats(struct gavel_common *common, const struct view *view,
                         const struct event *event)
{
    struct gavel_rounds *rounds = common->rounds;
    struct page *page = &rounds->pages[event->job];
    const struct job *job = &view->jobs[event->job];
    bool seated = job->state != JOB_FREE && job_seated(job);
    if (page->seated_ns >= 0 && (!seated || event->kind == EVENT_RESIZED)) {
        book_seat(common, event->job, event->at_ns);
        page->seated_ns = -1;
        rounds->room = true;
    }
    if (seated && page->seated_ns < 0) {
        page->seated_ns = event->at_ns;
        page->column = common->column_of[job->type_now];
    }
}

void gavel_rounds_observe(struct gavel_common *common, const struct view *view,
                          const struct event *event)
{
    struct gavel_rounds *rounds = common->rounds;
    enum job_state state = view->jobs[event->job].state;
    if (event->kind == EVENT_SUBMITTED || event->kind == EVENT_RELEASED ||
        (event->kind == EVENT_ADOPTED && state != JOB_HELD)) {
        came(common, view, event->job);
        return;
    }
    if (event->kind == EVENT_PLACED || event->kind == EVENT_RESIZING)
        rounds->placed++;
    if (!common->entries[event->job].ticket)
        return;
    follow_seats(common, view, event);
    if (state == JOB_WAITING)
        rounds->room = true; /* it can be given room */
    if (state == JOB_FREE || state == JOB_HELD)
        gavel_strike(common, event->job);
}

/* --- shares ------------------------------------------------------------------------------ */

/* What is not due any more is not owed either. */
static void take_shares(struct gavel_common *common, const struct gavel_call *call)
{
    uint32_t k = common->type_count;
    for (uint32_t i = 0; i < common->job_count; i++) {
        double *x = shares_of(common, common->jobs[i]);
        double *credit_s = credits_of(common, common->jobs[i]);
        for (uint32_t c = 0; c < k; c++) {
            double share = call->x[(size_t)i * k + c];
            x[c] = share > 0 && call->rate[(size_t)i * k + c] > 0 ? share : 0;
            if (x[c] == 0)
                credit_s[c] = 0;
        }
    }
}

static int make_shares(struct gavel_common *common, const struct view *view,
                       struct arena *scratch, struct error *err)
{
    struct gavel_call call;
    struct gavel_times times = { .now_s = (double)view->now_ns / 1e9 };
    common->changed = false;
    if (common->job_count == 0)
        return 0;
    gavel_prepare(common, view, &times, scratch, &call);
    int r = common->gavel->rule->shares(common->self, &call, err);
    if (r == 0)
        take_shares(common, &call);
    common->rounds->restless = true;
    return r;
}

/* --- who is to run ------------------------------------------------------------------------ */

/* The column of the seats it has or is promised, or NONE. */
static uint32_t column_now(const struct gavel_common *common, const struct view *view,
                           const struct job *job)
{
    if (job->next.count > 0) {
        const struct seat *seat = &view->seats[job->next.first];
        return common->column_of[view->cluster->nodes[seat->node].type];
    }
    return job_runs(job) ? common->column_of[job->type_now] : NONE;
}

/*
 * Sent away now it would lose what it has done, or has hardly done anything for what its
 * coming and going costs: with short rounds and dear swaps nobody would get anywhere.
 */
static bool is_spared(const struct gavel_common *common, const struct view *view,
                      const struct job *job)
{
    if (!job_runs(job))
        return false;
    bool saves = job->pause_ns <= job->grace_ns ||
                 (job->ckpt_ns > 0 && 2 * job->ckpt_ns < common->gavel->round_ns);
    int64_t in_seats_ns = view->now_ns - job->since_ns;
    return !saves || in_seats_ns < 2 * job->load_ns + job->pause_ns;
}

/* It is on its way, to seats or out, or had better stay. */
static bool is_fixed(const struct gavel_common *common, const struct view *view,
                     const struct job *job)
{
    return job->next.count > 0 || job->leaving || is_spared(common, view, job);
}

static void add_item(struct gavel_rounds *rounds, const struct gavel_common *common,
                     job_id job, uint32_t column, double key)
{
    rounds->items[rounds->item_count++] =
        (struct sort_item){ .key = -key, .value = job * common->type_count + column };
}

/* Keys of a job, on each type that it is due something of. */
static void list_job(struct gavel_common *common, job_id job, uint32_t now)
{
    struct gavel_rounds *rounds = common->rounds;
    const double *x = shares_of(common, job);
    const double *credit_s = credits_of(common, job);
    for (uint32_t c = 0; c < common->type_count; c++)
        if (x[c] > 0)
            add_item(rounds, common, job, c,
                     credit_s[c] + x[c] * rounds->round_s +
                         (c == now ? STAYS * rounds->round_s : 0));
}

/* Where it runs already, else where it runs fastest, of the types with room. */
static uint32_t spare_column(const struct gavel_common *common, job_id job,
                             uint32_t now, const double *room)
{
    const double *rates = gavel_rates(common, job);
    double gang = common->entries[job].gang;
    uint32_t best = NONE;
    if (now != NONE && gang <= room[now])
        return now;
    for (uint32_t c = 0; c < common->type_count; c++)
        if (rates[c] > 0 && gang <= room[c] && (best == NONE || rates[c] > rates[best]))
            best = c;
    return best;
}

static bool is_full(const struct gavel_common *common, const double *room)
{
    for (uint32_t c = 0; c < common->type_count; c++)
        if (room[c] > 0)
            return false;
    return true;
}

/* Give room to who is owed most; what is left over to anybody who can use it. */
static void choose(struct gavel_common *common, const struct view *view, double *room)
{
    struct gavel_rounds *rounds = common->rounds;
    uint32_t k = common->type_count;
    sort_items(rounds->items, rounds->item_scratch, rounds->item_count);
    for (uint32_t i = 0; i < rounds->item_count && !is_full(common, room); i++) {
        job_id job = rounds->items[i].value / k;
        uint32_t column = rounds->items[i].value % k;
        double gang = common->entries[job].gang;
        if (rounds->pages[job].want != NONE || gang > room[column])
            continue;
        rounds->pages[job].want = column;
        room[column] -= gang;
    }
    if (common->gavel->rule->strict)
        return;
    for (uint32_t i = 0; i < rounds->item_count + common->job_count; i++) {
        if (is_full(common, room))
            return;
        job_id job = i < rounds->item_count ? rounds->items[i].value / k
                                            : common->jobs[i - rounds->item_count];
        if (rounds->pages[job].want != NONE || is_fixed(common, view, &view->jobs[job]))
            continue;
        uint32_t now = column_now(common, view, &view->jobs[job]);
        uint32_t column = spare_column(common, job, now, room);
        if (column == NONE)
            continue;
        rounds->pages[job].want = column;
        room[column] -= common->entries[job].gang;
    }
}

/* Who is to have what in the next round, into the pages. */
static void choose_all(struct gavel_common *common, const struct view *view)
{
    struct gavel_rounds *rounds = common->rounds;
    double room[TYPES_MAX];
    memcpy(room, common->capacity, sizeof room);
    rounds->item_count = 0;
    for (uint32_t i = 0; i < common->job_count; i++) {
        job_id id = common->jobs[i];
        const struct job *job = &view->jobs[id];
        uint32_t now = column_now(common, view, job);
        rounds->pages[id].want = NONE;
        if (!is_fixed(common, view, job)) {
            list_job(common, id, now);
        } else if (now != NONE) {
            rounds->pages[id].want = now;
            room[now] -= common->entries[id].gang;
        }
    }
    choose(common, view, room);
}

/* --- where they run --------------------------------------------------------------------- */

static bool grant(struct gavel_common *common, struct plan *plan, job_id job,
                  uint32_t column)
{
    struct ask ask = ASK_DEFAULT;
    ask.types = (uint32_t)1 << common->types[column];
    if (!plan_grant(plan, job, &ask))
        return false;
    common->rounds->granted++;
    return true;
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
        uint32_t now = column_now(common, view, job);
        uint32_t want = rounds->pages[id].want;
        if (now == want)
            continue;
        if (job_may_leave(job) && want == NONE)
            plan_revoke(plan, id, RULE_ROUND, JOB_NONE);
        else if (job_may_leave(job))
            plan_revoke(plan, id, RULE_RESIZE, id);
        if (want != NONE)
            rounds->order[count++] = id;
    }
    return count;
}

/* Larger gangs first: what they leave is room for smaller ones, not the other way round. */
static void order_by_gang(struct gavel_common *common, uint32_t count)
{
    struct gavel_rounds *rounds = common->rounds;
    for (uint32_t i = 0; i < count; i++)
        rounds->items[i] =
            (struct sort_item){ .key = -common->entries[rounds->order[i]].gang,
                                .value = rounds->order[i] };
    sort_items(rounds->items, rounds->item_scratch, count);
    for (uint32_t i = 0; i < count; i++)
        rounds->order[i] = rounds->items[i].value;
}

/* Nobody took its seats after all: let it stay, or go where it can. */
static void keep_whom_nobody_replaces(struct gavel_common *common,
                                      const struct view *view, struct plan *plan)
{
    for (uint32_t i = 0; i < common->job_count; i++) {
        job_id id = common->jobs[i];
        if (plan_changes(plan, id) && !plan_holds(plan, id) &&
            job_may_leave(&view->jobs[id]) && !common->gavel->rule->strict)
            grant(common, plan, id, column_now(common, view, &view->jobs[id]));
    }
}

static void seat_all(struct gavel_common *common, const struct view *view,
                     struct plan *plan)
{
    struct gavel_rounds *rounds = common->rounds;
    uint32_t count = send_away(common, view, plan);
    order_by_gang(common, count);
    for (uint32_t i = 0; i < count; i++)
        grant(common, plan, rounds->order[i], rounds->pages[rounds->order[i]].want);
    keep_whom_nobody_replaces(common, view, plan);
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
    if (grant(common, plan, newcomer, column))
        return true;
    uint32_t victims = 0;
    for (uint32_t i = common->job_count; i-- > 0 && victims < GATE_VICTIMS_MAX;) {
        job_id id = common->jobs[i];
        const struct job *job = &view->jobs[id];
        if (!job_may_leave(job) || plan_changes(plan, id) ||
            column_now(common, view, job) != column || rounds->pages[id].want == column)
            continue;
        plan_revoke(plan, id, RULE_ROUND, newcomer);
        victims++;
        if (grant(common, plan, newcomer, column))
            return gate_pass(&common->gavel->gate, view, plan, mark, newcomer);
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

/* The fastest type that it fits on; what it does not fit on as it is, is left out. */
static void give_to(struct gavel_common *common, struct plan *plan, job_id job,
                    double *room)
{
    double tried[TYPES_MAX];
    memcpy(tried, room, sizeof tried);
    for (uint32_t column; (column = spare_column(common, job, NONE, tried)) != NONE;) {
        if (grant(common, plan, job, column)) {
            room[column] -= common->entries[job].gang;
            return;
        }
        tried[column] = 0;
    }
}

/* In the middle of a round: nobody is sent away. */
static void give_what_is_free(struct gavel_common *common, const struct view *view,
                              struct plan *plan)
{
    struct gavel_rounds *rounds = common->rounds;
    uint32_t k = common->type_count;
    double room[TYPES_MAX] = { 0 };
    rounds->room = false;
    if (view->free->gpu_count == 0)
        return;
    for (uint32_t c = 0; c < k; c++)
        room[c] = view->free->shelves[common->types[c]].gpu_count;
    book(common, view->now_ns);
    rounds->item_count = 0;
    for (uint32_t i = 0; i < common->job_count; i++)
        if (view->jobs[common->jobs[i]].state == JOB_WAITING)
            list_job(common, common->jobs[i], NONE);
    sort_items(rounds->items, rounds->item_scratch, rounds->item_count);
    for (uint32_t i = 0; i < rounds->item_count && !is_full(common, room); i++) {
        job_id job = rounds->items[i].value / k;
        uint32_t column = rounds->items[i].value % k;
        double gang = common->entries[job].gang;
        if (gang <= room[column] && !plan_changes(plan, job) &&
            grant(common, plan, job, column))
            room[column] -= gang;
    }
    if (common->gavel->rule->strict)
        return;
    for (uint32_t i = 0; i < rounds->item_count + common->job_count; i++) {
        if (is_full(common, room))
            return;
        job_id job = i < rounds->item_count ? rounds->items[i].value / k
                                            : common->jobs[i - rounds->item_count];
        if (view->jobs[job].state == JOB_WAITING && !plan_changes(plan, job))
            give_to(common, plan, job, room);
    }
}

/* --- deciding ----------------------------------------------------------------------------------- */

/* Whether the next round may differ from this one although nobody comes or goes. */
static bool is_restless(const struct gavel_common *common, const struct view *view)
{
    for (uint32_t i = 0; i < common->job_count; i++) {
        job_id id = common->jobs[i];
        const struct job *job = &view->jobs[id];
        uint32_t now = column_now(common, view, job);
        if (now == NONE || shares_of(common, id)[now] < WHOLE)
            return true;
    }
    return false;
}

static void end_round(struct gavel_common *common, const struct view *view,
                      struct plan *plan)
{
    struct gavel_rounds *rounds = common->rounds;
    book(common, view->now_ns);
    choose_all(common, view);
    if (common->gavel->gate.choice == GATE_NONE)
        seat_all(common, view, plan);
    else
        seat_those_who_pay(common, view, plan);
    rounds->end_ns = view->now_ns + common->gavel->round_ns;
    rounds->restless = is_restless(common, view);
    rounds->room = true; /* what nobody was chosen for may still fit somebody */
}

int gavel_rounds_decide(struct gavel_common *common, const struct view *view,
                        struct plan *plan, struct arena *scratch, struct error *err)
{
    struct gavel_rounds *rounds = common->rounds;
    if (rounds->granted > 0 && rounds->placed == 0)
        rounds->room = rounds->restless = true; /* the last plan was thrown away */
    rounds->granted = rounds->placed = 0;
    if (common->changed) {
        book(common, view->now_ns);
        int r = make_shares(common, view, scratch, err);
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

void gavel_rounds_init(struct gavel_common *common, const struct view *view,
                       struct arena *run)
{
    struct gavel_rounds *rounds = arena_new(run, struct gavel_rounds);
    size_t cells = (size_t)view->job_max * common->type_count;
    common->rounds = rounds;
    rounds->round_s = (double)common->gavel->round_ns / 1e9;
    rounds->x = arena_array(run, double, cells);
    rounds->credit_s = arena_array(run, double, cells);
    rounds->pages = arena_array(run, struct page, view->job_max);
    rounds->items = arena_array(run, struct sort_item, cells);
    rounds->item_scratch = arena_array(run, struct sort_item, cells);
    rounds->order = arena_array(run, job_id, view->job_max);
}
