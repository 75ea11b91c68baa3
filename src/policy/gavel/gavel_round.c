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
#include "model/cluster.h"
#include "model/free_index.h"
#include "model/node_set.h"
#include "model/reasons.h"
#include "policy/gavel/gavel_round.h"

#define CHOOSY 1e9        /* more than any gang */
#define WHOLE (1 - 1e-9)  /* a share of that much is all of the time */
#define STAYS 1.0         /* rounds that who is there is ahead of who is not */
#define MOVES 2.0         /* and behind where it would have to move to */
#define CREDIT_MAX 10.0   /* rounds that can be owed at most */
#define CREDIT_MIN (-1.0) /* rounds that a job can have had ahead of time */
#define PAIRED_MAX 256    /* jobs of which all pairs are looked at */

/* --- two together --------------------------------------------------------------------- */
/*
 * Credits grow by what is due and shrink by what is had.  GPU time is booked when a job
 * leaves its GPUs and whenever what is due is; two jobs that share have one account, from
 * which the first of them pays.
 */

/* Both are still who they were. */
static bool duo_is_whole(const struct gavel_common *common, const struct duo *duo)
{
    return common->entries[duo->jobs[0]].ticket == duo->tickets[0] &&
           common->entries[duo->jobs[1]].ticket == duo->tickets[1];
}

/* The place of two jobs among the duos, in either order, or NONE. */
static uint32_t duo_find(const struct gavel_common *common, job_id a, job_id b)
{
    const struct gavel_rounds *rounds = common->rounds;
    for (uint32_t side = 0; side < 2; side++) {
        job_id first = side ? b : a;
        job_id second = side ? a : b;
        for (uint32_t d = rounds->pages[first].duos; d != NONE;
             d = rounds->duos[d].next)
            if (rounds->duos[d].jobs[1] == second &&
                duo_is_whole(common, &rounds->duos[d]))
                return d;
    }
    return NONE;
}

/* --- accounts ------------------------------------------------------------------------ */

/* What its time in seats is paid from, if it is time that was due; or NULL. */
static double *account_of(const struct gavel_common *common, const struct view *view,
                          job_id job, uint32_t column)
{
    const struct gavel_rounds *rounds = common->rounds;
    job_id partner = view->jobs[job].partner;
    uint32_t d = partner == JOB_NONE ? NONE : duo_find(common, job, partner);
    if (d != NONE) /* one of the two pays */
        return rounds->duos[d].jobs[0] == job
                   ? &rounds->duo_credit_s[(size_t)d * common->type_count + column]
                   : NULL;
    return rounds_shares(common, job)[column] > 0 ? &rounds_credits(common, job)[column]
                                                  : NULL;
}

static void book_seat(struct gavel_common *common, const struct view *view, job_id job,
                      int64_t now_ns)
{
    struct round_job *page = &common->rounds->pages[job];
    if (page->seated_ns < 0)
        return;
    double *credit_s = account_of(common, view, job, page->column);
    if (credit_s)
        *credit_s -= (double)(now_ns - page->seated_ns) * 1e-9;
    page->seated_ns = now_ns;
}

/* So much time is due, of 'count' types. */
static void add_dues(const struct gavel_rounds *rounds, const double *x,
                     double *credit_s, size_t count, double passed_s)
{
    double least_s = CREDIT_MIN * rounds->round_s;
    double most_s = CREDIT_MAX * rounds->round_s;
    for (size_t i = 0; i < count; i++) {
        double due_s = credit_s[i] + x[i] * passed_s;
        credit_s[i] = due_s < least_s ? least_s : due_s > most_s ? most_s : due_s;
    }
}

/* Bring all credits up to now. */
static void rounds_book(struct gavel_common *common, const struct view *view)
{
    struct gavel_rounds *rounds = common->rounds;
    double passed_s = (double)(view->now_ns - rounds->booked_ns) * 1e-9;
    rounds->booked_ns = view->now_ns;
    if (passed_s <= 0)
        return;
    for (uint32_t i = 0; i < common->job_count; i++) {
        job_id job = common->jobs[i];
        book_seat(common, view, job, view->now_ns);
        add_dues(rounds, rounds_shares(common, job), rounds_credits(common, job),
                 common->type_count, passed_s);
    }
    add_dues(rounds, rounds->duo_x, rounds->duo_credit_s,
             (size_t)rounds->duo_count * common->type_count, passed_s);
}

/* --- what happens ---------------------------------------------------------------------- */

static void note_arrival(struct gavel_common *common, const struct view *view,
                         job_id id)
{
    struct gavel_rounds *rounds = common->rounds;
    const struct job *job = &view->jobs[id];
    size_t bytes = common->type_count * sizeof(double);
    memset(rounds_shares(common, id), 0, bytes);
    memset(rounds_credits(common, id), 0, bytes);
    rounds->pages[id] = (struct round_job){
        .seated_ns = -1, .want = NONE, .with = JOB_NONE, .duos = NONE
    };
    if (job_holds_seats(job)) {
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
    struct round_job *page = &rounds->pages[event->job];
    const struct job *job = &view->jobs[event->job];
    bool seated = job->state != JOB_FREE && job_holds_seats(job);
    if (page->seated_ns >= 0 && (!seated || event->kind == EVENT_RESIZED)) {
        book_seat(common, view, event->job, event->at_ns);
        page->seated_ns = -1;
        rounds->room = true;
    }
    if (seated && page->seated_ns < 0) {
        page->seated_ns = event->at_ns;
        page->column = common->column_of[job->type_now];
    }
}

/* For the mechanism: what happens to jobs. */
static void rounds_observe(struct gavel_common *common, const struct view *view,
                           const struct event *event)
{
    struct gavel_rounds *rounds = common->rounds;
    enum job_state state = view->jobs[event->job].state;
    if (gavel_comes(view, event)) {
        note_arrival(common, view, event->job);
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
        double *x = rounds_shares(common, common->jobs[i]);
        double *credit_s = rounds_credits(common, common->jobs[i]);
        for (uint32_t c = 0; c < k; c++) {
            double share = call->x[(size_t)i * k + c];
            x[c] = share > 0 && call->rate[(size_t)i * k + c] > 0 ? share : 0;
            if (x[c] == 0)
                credit_s[c] = 0;
        }
    }
}

/* The pair's row of shares is worth keeping. */
static bool is_due(const struct gavel_call *call, uint32_t pair)
{
    const double *x = &call->x[((size_t)call->job_count + pair) * call->type_count];
    for (uint32_t c = 0; c < call->type_count; c++)
        if (x[c] > 0)
            return true;
    return false;
}

static void add_duo(struct gavel_common *common, const struct gavel_call *call,
                    uint32_t pair, uint32_t old)
{
    struct gavel_rounds *rounds = common->rounds;
    uint32_t k = common->type_count;
    uint32_t d = rounds->duo_count++;
    struct duo *duo = &rounds->duos[d];
    job_id first = call->jobs[call->pairs[pair].first];
    job_id second = call->jobs[call->pairs[pair].second];
    *duo = (struct duo){ .jobs = { first, second },
                         .tickets = { common->entries[first].ticket,
                                      common->entries[second].ticket } };
    for (uint32_t c = 0; c < k; c++) {
        double x = call->x[((size_t)call->job_count + pair) * k + c];
        const double *rates = &call->pair_rate[((size_t)pair * k + c) * 2];
        bool can = x > 0 && rates[0] > 0 && rates[1] > 0;
        rounds->duo_x[(size_t)d * k + c] = can ? x : 0;
        rounds->duo_credit_s[(size_t)d * k + c] =
            can && old != NONE ? rounds->old_credit_s[(size_t)old * k + c] : 0;
    }
}

/* The new list of duos; what was owed to two together is still. */
static void take_duos(struct gavel_common *common, const struct gavel_call *call)
{
    struct gavel_rounds *rounds = common->rounds;
    struct duo *duos = rounds->duos;
    double *credit_s = rounds->duo_credit_s;
    rounds->duos = rounds->old_duos;
    rounds->old_duos = duos;
    rounds->duo_credit_s = rounds->old_credit_s;
    rounds->old_credit_s = credit_s;
    rounds->duo_count = 0;
    for (uint32_t pair = 0; pair < call->pair_count; pair++) {
        if (rounds->duo_count == rounds->duo_max || !is_due(call, pair))
            continue;
        job_id first = call->jobs[call->pairs[pair].first];
        uint32_t old = rounds->pages[first].duos;
        while (old != NONE &&
               (duos[old].jobs[1] != call->jobs[call->pairs[pair].second] ||
                !duo_is_whole(common, &duos[old])))
            old = duos[old].next;
        add_duo(common, call, pair, old);
    }
    for (uint32_t i = 0; i < common->job_count; i++)
        rounds->pages[common->jobs[i]].duos = NONE;
    for (uint32_t d = 0; d < rounds->duo_count; d++) {
        uint32_t *head = &rounds->pages[rounds->duos[d].jobs[0]].duos;
        rounds->duos[d].next = *head;
        *head = d;
    }
}

/* The pairs that could share, among the jobs that came first. */
static void list_pairs(struct gavel_common *common, struct gavel_call *call)
{
    double rates[TYPES_MAX][2];
    uint32_t count = call->job_count < PAIRED_MAX ? call->job_count : PAIRED_MAX;
    if (!common->gavel->sharing || common->gavel->rule->pairs_itself)
        return;
    for (uint32_t second = 1; second < count; second++)
        for (uint32_t first = 0; first < second; first++)
            if (call->gang[first] == call->gang[second] &&
                gavel_pair_rates(common, call->view, call->jobs[first],
                                 call->jobs[second], rates))
                gavel_add_pair(call, first, second, rates);
}

/* Ask the policy.  On failure everything stays as it was. */
static int rounds_make_shares(struct gavel_common *common, const struct view *view,
                              struct arena *scratch, struct error *err)
{
    struct gavel_call call;
    struct gavel_times times = { .now_s = (double)view->now_ns / 1e9 };
    common->changed = false;
    common->rounds->due_ns =
        view->now_ns + (int64_t)(common->gavel->rule->patience_s * 1e9);
    if (common->job_count == 0)
        return 0;
    gavel_prepare(common, view, &times, scratch, &call);
    list_pairs(common, &call);
    int r = common->gavel->rule->shares(common->self, &call, err);
    if (r == 0) {
        take_shares(common, &call);
        take_duos(common, &call);
    }
    common->rounds->restless = true;
    return r;
}

/* --- who is to run ------------------------------------------------------------------------ */
/*
 * Places go to who is owed most; then who is due a slower type moves up to a faster one
 * with room; what is left goes to anybody who can use it; and two who would share are
 * parted while there is room for each.
 */

static bool is_bound(const struct gavel_common *common, const struct view *view,
                     const struct job *job)
{
    return job->next.count > 0 || job->leaving || gavel_is_spared(common, view, job);
}

/* It, or who shares with it, is on its way, to seats or out, or had better stay. */
static bool is_fixed(const struct gavel_common *common, const struct view *view,
                     const struct job *job)
{
    return is_bound(common, view, job) ||
           (job->partner != JOB_NONE &&
            is_bound(common, view, &view->jobs[job->partner]));
}

/* Units are jobs, and after them duos. */
static void list_unit(struct gavel_common *common, uint32_t unit, const double *x,
                      const double *credit_s, uint32_t now)
{
    struct gavel_rounds *rounds = common->rounds;
    for (uint32_t c = 0; c < common->type_count; c++) {
        if (x[c] <= 0)
            continue;
        double key = credit_s[c] + x[c] * rounds->round_s;
        if (c == now)
            key += STAYS * rounds->round_s;
        else if (now != NONE)
            key -= MOVES * rounds->round_s;
        rounds->items[rounds->item_count++] =
            (struct sort_item){ .key = -key, .value = unit * common->type_count + c };
    }
}

static void rounds_list_job(struct gavel_common *common, job_id job, uint32_t now)
{
    list_unit(common, job, rounds_shares(common, job), rounds_credits(common, job),
              now);
}

static void list_duos(struct gavel_common *common, const struct view *view)
{
    struct gavel_rounds *rounds = common->rounds;
    for (uint32_t d = 0; d < rounds->duo_count; d++) {
        const struct duo *duo = &rounds->duos[d];
        const struct job *first = &view->jobs[duo->jobs[0]];
        const struct job *second = &view->jobs[duo->jobs[1]];
        if (!duo_is_whole(common, duo) || is_fixed(common, view, first) ||
            is_fixed(common, view, second))
            continue;
        bool share_now = first->partner == duo->jobs[1];
        size_t cell = (size_t)d * common->type_count;
        list_unit(common, rounds->job_max + d, &rounds->duo_x[cell],
                  &rounds->duo_credit_s[cell],
                  share_now ? gavel_column_now(common, view, first) : NONE);
    }
}

/* The jobs of a unit, and how many they are. */
static uint32_t jobs_of(const struct gavel_rounds *rounds, uint32_t unit,
                        job_id ret_jobs[2])
{
    ret_jobs[0] = unit;
    ret_jobs[1] = JOB_NONE;
    if (unit < rounds->job_max)
        return 1;
    memcpy(ret_jobs, rounds->duos[unit - rounds->job_max].jobs, 2 * sizeof *ret_jobs);
    return 2;
}

/* A unit takes its place, if its jobs have none yet and there is room. */
static void place_unit(struct gavel_common *common, uint32_t unit, uint32_t column,
                       double *room)
{
    struct gavel_rounds *rounds = common->rounds;
    job_id jobs[2];
    uint32_t count = jobs_of(rounds, unit, jobs);
    double gang = common->entries[jobs[0]].gang;
    if (gang > room[column] || rounds->pages[jobs[0]].want != NONE ||
        (count == 2 && rounds->pages[jobs[1]].want != NONE))
        return;
    room[column] -= gang;
    for (uint32_t i = 0; i < count; i++) {
        rounds->pages[jobs[i]].want = column;
        rounds->pages[jobs[i]].with = jobs[!i];
    }
}

/* Give room to who is owed most. */
static void choose_due(struct gavel_common *common, double *room)
{
    struct gavel_rounds *rounds = common->rounds;
    uint32_t k = common->type_count;
    sort_items(rounds->items, rounds->item_scratch, rounds->item_count);
    for (uint32_t i = 0; i < rounds->item_count && !gavel_is_full(common, room); i++)
        place_unit(common, rounds->items[i].value / k, rounds->items[i].value % k,
                   room);
}

/* The job of the i-th item, then all on the roll; JOB_NONE for a duo. */
static job_id job_in_order(const struct gavel_common *common, uint32_t i)
{
    const struct gavel_rounds *rounds = common->rounds;
    if (i >= rounds->item_count)
        return common->jobs[i - rounds->item_count];
    uint32_t unit = rounds->items[i].value / common->type_count;
    return unit < rounds->job_max ? unit : JOB_NONE;
}

/* Who is due a slower type need not use it while there is room on a faster one. */
static void move_up(struct gavel_common *common, const struct view *view, double *room)
{
    struct gavel_rounds *rounds = common->rounds;
    for (uint32_t i = 0; i < rounds->item_count && !gavel_is_full(common, room); i++) {
        job_id job = job_in_order(common, i);
        if (job == JOB_NONE || rounds->pages[job].want == NONE ||
            rounds->pages[job].with != JOB_NONE)
            continue;
        uint32_t want = rounds->pages[job].want;
        uint32_t best = gavel_spare_column(common, job, NONE, room);
        const double *rates = gavel_rates(common, job);
        if (best == NONE || rates[best] <= rates[want])
            continue;
        room[want] += common->entries[job].gang;
        room[best] -= common->entries[job].gang;
        rounds->pages[job].want = best;
    }
}

/* What is left over goes to anybody who can use it. */
static void choose_rest(struct gavel_common *common, const struct view *view,
                        double *room, bool running)
{
    struct gavel_rounds *rounds = common->rounds;
    for (uint32_t i = 0; i < rounds->item_count + common->job_count; i++) {
        if (gavel_is_full(common, room))
            return;
        job_id id = job_in_order(common, i);
        const struct job *job = id == JOB_NONE ? NULL : &view->jobs[id];
        if (!job || rounds->pages[id].want != NONE || is_fixed(common, view, job) ||
            (!running && job->state != JOB_WAITING))
            continue;
        uint32_t column =
            gavel_spare_column(common, id, gavel_column_now(common, view, job), room);
        if (column != NONE)
            place_unit(common, id, column, room);
    }
}

/* Choose among the listed, with so much room; 'running': others may fill it. */
static void rounds_choose(struct gavel_common *common, const struct view *view,
                          double *room, bool running)
{
    choose_due(common, room);
    if (common->gavel->rule->strict)
        return;
    if (common->gavel->aware)
        move_up(common, view, room);
    choose_rest(common, view, room, running);
}

/* Two need not share while there is room for each; least due first. */
static void part_duos(struct gavel_common *common, double *room)
{
    struct gavel_rounds *rounds = common->rounds;
    uint32_t k = common->type_count;
    for (uint32_t i = rounds->item_count; i-- > 0 && !gavel_is_full(common, room);) {
        uint32_t unit = rounds->items[i].value / k;
        if (unit < rounds->job_max)
            continue;
        const struct duo *duo = &rounds->duos[unit - rounds->job_max];
        struct round_job *first = &rounds->pages[duo->jobs[0]];
        struct round_job *second = &rounds->pages[duo->jobs[1]];
        if (first->with != duo->jobs[1])
            continue;
        uint32_t column = gavel_spare_column(common, duo->jobs[1], NONE, room);
        double alone = column == NONE ? 0 : gavel_rates(common, duo->jobs[1])[column];
        if (alone < gavel_rates(common, duo->jobs[1])[second->want] / 2)
            continue; /* it is better off where it is */
        room[column] -= common->entries[duo->jobs[1]].gang;
        first->with = second->with = JOB_NONE;
        second->want = column;
    }
}

/* Who is to have what in the next round, into the pages. */
static void rounds_choose_all(struct gavel_common *common, const struct view *view)
{
    struct gavel_rounds *rounds = common->rounds;
    double room[TYPES_MAX];
    memcpy(room, common->capacity, sizeof room);
    rounds->item_count = 0;
    for (uint32_t i = 0; i < common->job_count; i++) {
        job_id id = common->jobs[i];
        const struct job *job = &view->jobs[id];
        uint32_t now = gavel_column_now(common, view, job);
        rounds->pages[id].want = NONE;
        rounds->pages[id].with = JOB_NONE;
        if (!is_fixed(common, view, job)) {
            rounds_list_job(common, id, now);
        } else if (now != NONE) {
            rounds->pages[id].want = now;
            rounds->pages[id].with = job->partner;
            if (job->partner == JOB_NONE || id < job->partner)
                room[now] -= common->entries[id].gang;
        }
    }
    list_duos(common, view);
    rounds_choose(common, view, room, /* running= */ true);
    if (rounds->duo_count > 0 && !common->gavel->rule->strict)
        part_duos(common, room);
}

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
