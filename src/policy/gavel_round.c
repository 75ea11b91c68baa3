/*
 * gavel_round.c - rounds by our own rules: from shares of time to who runs now.
 *
 * A job that is due the share x of a type is owed x seconds there for every second that
 * passes, and pays a second for every second it has seats there.  The difference is its
 * credit.  When a round ends, places go to who would be owed most at the end of the next:
 *
 *     key = credit + x R, and more for who is there already
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
 *   - Who is due a slower type uses a faster one while there is room (if rates are known).
 *   - Who is there is ahead of who is not, and of itself where it would have to move.
 *   - Larger gangs are seated first, and who stays keeps its seats.
 *   - Nobody is sent away who could not save what it has done, nor before it has run for
 *     as long as its coming and going takes.
 *
 * With worth=xion a swap at a round's end has to pay; if it does not, who runs stays.
 *
 * Two jobs that are due a share together are a unit like a job: one credit, one key, one
 * place.  (Where all can share with all, gavel_sharing.c does it by classes.)
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
#define STAYS 1.0         /* rounds that who is there is ahead of who is not       */
#define MOVES 2.0         /* and behind where it would have to move to             */
#define CREDIT_MAX 10.0   /* rounds that can be owed at most                      */
#define CREDIT_MIN (-1.0) /* rounds that somebody can have had ahead of time     */
#define PAIRED_MAX 256    /* jobs of which all pairs are looked at                */
#define WHOLE (1 - 1e-9)  /* a share of that much is all of the time              */

/* Two that are due something together. */
struct duo {
    job_id jobs[2];      /* the first to be seated, and who comes beside it   */
    uint64_t tickets[2]; /* tell whether they are still who they were         */
    uint32_t next;       /* of the same first job                             */
};

/* By slot. */
struct page {
    int64_t seated_ns; /* since when its time in seats is not booked; -1: it has none */
    uint32_t column;   /* of these seats                                              */
    uint32_t want;     /* column for the next round, or NONE                          */
    job_id with;       /* beside whom, or JOB_NONE                                    */
    uint32_t duos;     /* first of those in which it is the first, or NONE            */
};

struct gavel_rounds {
    double round_s;
    double *x;        /* [slot][column] */
    double *credit_s; /* [slot][column] */
    struct duo *duos, *old_duos;
    double *duo_x, *duo_credit_s, *old_credit_s; /* [duo][column] */
    uint32_t duo_count, duo_max;
    struct page *pages;
    int64_t booked_ns; /* dues are in the credits up to then */
    int64_t end_ns;    /* of the round                       */
    int64_t due_ns;    /* shares are not made before then    */
    bool room;         /* somebody left or came since what is free was given away */
    bool restless;     /* the next round would not be as this one */
    uint32_t granted, placed; /* in the last plan; seen to be carried out */

    uint32_t job_max;
    struct sort_item *items, *item_scratch; /* value: unit and column */
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

/* --- two together --------------------------------------------------------------------- */

static bool is_whole(const struct gavel_common *common, const struct duo *duo)
{
    return common->entries[duo->jobs[0]].ticket == duo->tickets[0] &&
           common->entries[duo->jobs[1]].ticket == duo->tickets[1];
}

/* The place of two jobs among the duos, in either order, or NONE. */
static uint32_t find_duo(const struct gavel_common *common, job_id a, job_id b)
{
    const struct gavel_rounds *rounds = common->rounds;
    for (uint32_t side = 0; side < 2; side++) {
        job_id first = side ? b : a;
        job_id second = side ? a : b;
        for (uint32_t d = rounds->pages[first].duos; d != NONE;
             d = rounds->duos[d].next)
            if (rounds->duos[d].jobs[1] == second && is_whole(common, &rounds->duos[d]))
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
    uint32_t d = partner == JOB_NONE ? NONE : find_duo(common, job, partner);
    if (d != NONE) /* one of the two pays */
        return rounds->duos[d].jobs[0] == job
                   ? &rounds->duo_credit_s[(size_t)d * common->type_count + column]
                   : NULL;
    return shares_of(common, job)[column] > 0 ? &credits_of(common, job)[column] : NULL;
}

static void book_seat(struct gavel_common *common, const struct view *view, job_id job,
                      int64_t now_ns)
{
    struct page *page = &common->rounds->pages[job];
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

static void book(struct gavel_common *common, const struct view *view)
{
    struct gavel_rounds *rounds = common->rounds;
    double passed_s = (double)(view->now_ns - rounds->booked_ns) * 1e-9;
    rounds->booked_ns = view->now_ns;
    if (passed_s <= 0)
        return;
    for (uint32_t i = 0; i < common->job_count; i++) {
        job_id job = common->jobs[i];
        book_seat(common, view, job, view->now_ns);
        add_dues(rounds, shares_of(common, job), credits_of(common, job),
                 common->type_count, passed_s);
    }
    add_dues(rounds, rounds->duo_x, rounds->duo_credit_s,
             (size_t)rounds->duo_count * common->type_count, passed_s);
}

/* --- what happens ---------------------------------------------------------------------- */

static void came(struct gavel_common *common, const struct view *view, job_id id)
{
    struct gavel_rounds *rounds = common->rounds;
    const struct job *job = &view->jobs[id];
    size_t bytes = common->type_count * sizeof(double);
    memset(shares_of(common, id), 0, bytes);
    memset(credits_of(common, id), 0, bytes);
    rounds->pages[id] =
        (struct page){ .seated_ns = -1, .want = NONE, .with = JOB_NONE, .duos = NONE };
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
        book_seat(common, view, event->job, event->at_ns);
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
                !is_whole(common, &duos[old])))
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

/* Who could share with whom, among those who came first. */
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

static int make_shares(struct gavel_common *common, const struct view *view,
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

static void list_job(struct gavel_common *common, job_id job, uint32_t now)
{
    list_unit(common, job, shares_of(common, job), credits_of(common, job), now);
}

static void list_duos(struct gavel_common *common, const struct view *view)
{
    struct gavel_rounds *rounds = common->rounds;
    for (uint32_t d = 0; d < rounds->duo_count; d++) {
        const struct duo *duo = &rounds->duos[d];
        const struct job *first = &view->jobs[duo->jobs[0]];
        const struct job *second = &view->jobs[duo->jobs[1]];
        if (!is_whole(common, duo) || is_fixed(common, view, first) ||
            is_fixed(common, view, second))
            continue;
        bool share_now = first->partner == duo->jobs[1];
        size_t cell = (size_t)d * common->type_count;
        list_unit(common, rounds->job_max + d, &rounds->duo_x[cell],
                  &rounds->duo_credit_s[cell],
                  share_now ? column_now(common, view, first) : NONE);
    }
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
    for (uint32_t i = 0; i < rounds->item_count && !is_full(common, room); i++)
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
    for (uint32_t i = 0; i < rounds->item_count && !is_full(common, room); i++) {
        job_id job = job_in_order(common, i);
        if (job == JOB_NONE || rounds->pages[job].want == NONE ||
            rounds->pages[job].with != JOB_NONE)
            continue;
        uint32_t want = rounds->pages[job].want;
        uint32_t best = spare_column(common, job, NONE, room);
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
        if (is_full(common, room))
            return;
        job_id id = job_in_order(common, i);
        const struct job *job = id == JOB_NONE ? NULL : &view->jobs[id];
        if (!job || rounds->pages[id].want != NONE || is_fixed(common, view, job) ||
            (!running && job->state != JOB_WAITING))
            continue;
        uint32_t column = spare_column(common, id, column_now(common, view, job), room);
        if (column != NONE)
            place_unit(common, id, column, room);
    }
}

static void choose(struct gavel_common *common, const struct view *view, double *room,
                   bool running)
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
    for (uint32_t i = rounds->item_count; i-- > 0 && !is_full(common, room);) {
        uint32_t unit = rounds->items[i].value / k;
        if (unit < rounds->job_max)
            continue;
        const struct duo *duo = &rounds->duos[unit - rounds->job_max];
        struct page *first = &rounds->pages[duo->jobs[0]];
        struct page *second = &rounds->pages[duo->jobs[1]];
        if (first->with != duo->jobs[1])
            continue;
        uint32_t column = spare_column(common, duo->jobs[1], NONE, room);
        double alone = column == NONE ? 0 : gavel_rates(common, duo->jobs[1])[column];
        if (alone < gavel_rates(common, duo->jobs[1])[second->want] / 2)
            continue; /* it is better off where it is */
        room[column] -= common->entries[duo->jobs[1]].gang;
        first->with = second->with = JOB_NONE;
        second->want = column;
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
        rounds->pages[id].with = JOB_NONE;
        if (!is_fixed(common, view, job)) {
            list_job(common, id, now);
        } else if (now != NONE) {
            rounds->pages[id].want = now;
            rounds->pages[id].with = job->partner;
            if (job->partner == JOB_NONE || id < job->partner)
                room[now] -= common->entries[id].gang;
        }
    }
    list_duos(common, view);
    choose(common, view, room, /* running= */ true);
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

static bool grant(struct gavel_common *common, struct plan *plan, job_id job,
                  uint32_t column)
{
    return grant_beside(common, plan, job, column, JOB_NONE);
}

/* Of two who are to share, the second comes beside the first. */
static bool follows(const struct gavel_common *common, job_id job)
{
    const struct gavel_rounds *rounds = common->rounds;
    job_id with = rounds->pages[job].with;
    uint32_t d = with == JOB_NONE ? NONE : find_duo(common, job, with);
    return d != NONE && rounds->duos[d].jobs[1] == job;
}

/* Its seats are where it is to run, and it is not another who is to keep them. */
static bool keeps_seats(const struct gavel_common *common, const struct view *view,
                        job_id id)
{
    const struct gavel_rounds *rounds = common->rounds;
    const struct job *job = &view->jobs[id];
    const struct page *page = &rounds->pages[id];
    uint32_t now = column_now(common, view, job);
    if (now == NONE || now != page->want)
        return false;
    if (job->partner == page->with)
        return true;
    if (follows(common, id))
        return false;
    bool partner_stays = job->partner != JOB_NONE &&
                         rounds->pages[job->partner].want == now &&
                         !follows(common, job->partner) &&
                         column_now(common, view, &view->jobs[job->partner]) == now;
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
            (want == NONE && column_now(common, view, job) == NONE))
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
        if (!follows(common, rounds->order[i]))
            grant(common, plan, rounds->order[i], rounds->pages[rounds->order[i]].want);
    for (uint32_t i = 0; i < count; i++) {
        job_id id = rounds->order[i];
        const struct page *page = &rounds->pages[id];
        if (follows(common, id) &&
            !grant_beside(common, plan, id, page->want, page->with))
            grant(common, plan, id, page->want);
    }
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
    if (follows(common, newcomer))
        return grant_beside(common, plan, newcomer, column,
                            rounds->pages[newcomer].with);
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

/* As chosen, or on another type with room; as it is, it may not fit everywhere. */
static void give_to(struct gavel_common *common, struct plan *plan, job_id job)
{
    double tried[TYPES_MAX];
    uint32_t column = common->rounds->pages[job].want;
    for (uint32_t c = 0; c < common->type_count; c++)
        tried[c] = INFINITY;
    while (column != NONE && !grant(common, plan, job, column)) {
        if (common->gavel->rule->strict)
            return;
        tried[column] = 0;
        column = spare_column(common, job, NONE, tried);
    }
}

/* In the middle of a round: nobody is sent away. */
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
    book(common, view);
    rounds->item_count = 0;
    for (uint32_t i = 0; i < common->job_count; i++) {
        job_id job = common->jobs[i];
        if (view->jobs[job].state != JOB_WAITING)
            continue;
        rounds->pages[job].want = NONE;
        rounds->pages[job].with = JOB_NONE;
        rounds->order[count++] = job;
        list_job(common, job, NONE);
    }
    choose(common, view, room, /* running= */ false);
    order_by_gang(common, count);
    for (uint32_t i = 0; i < count; i++)
        if (rounds->pages[rounds->order[i]].want != NONE)
            give_to(common, plan, rounds->order[i]);
}

/* --- deciding ----------------------------------------------------------------------------------- */

/* Whether the next round may differ from this one although nobody comes or goes. */
static bool is_restless(const struct gavel_common *common, const struct view *view)
{
    if (common->rounds->duo_count > 0)
        return true;
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
    book(common, view);
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
    if (common->changed && view->now_ns < rounds->due_ns)
        plan_wake(plan, rounds->due_ns);
    else if (common->changed) {
        book(common, view);
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
    size_t k = common->type_count;
    size_t jobs = view->job_max;
    size_t duos = common->pair_max;
    common->rounds = rounds;
    rounds->round_s = (double)common->gavel->round_ns / 1e9;
    rounds->job_max = view->job_max;
    rounds->duo_max = common->pair_max;
    rounds->x = arena_array(run, double, k *jobs);
    rounds->credit_s = arena_array(run, double, k *jobs);
    rounds->pages = arena_array(run, struct page, jobs);
    rounds->duos = arena_array(run, struct duo, duos + 1);
    rounds->old_duos = arena_array(run, struct duo, duos + 1);
    rounds->duo_x = arena_array(run, double, k *(duos + 1));
    rounds->duo_credit_s = arena_array(run, double, k *(duos + 1));
    rounds->old_credit_s = arena_array(run, double, k *(duos + 1));
    rounds->items = arena_array(run, struct sort_item, k * (jobs + duos));
    rounds->item_scratch = arena_array(run, struct sort_item, k * (jobs + duos));
    rounds->order = arena_array(run, job_id, jobs);
}
