/*
 * gavel_round_credit.c - our own rounds: the credits of jobs.
 *
 * Credits grow by what is due and shrink by what is had (see gavel_round.c).  GPU time
 * is booked when a job leaves its GPUs and whenever what is due is; two jobs that share
 * have one account, from which the first of them pays.
 */
#include <math.h>
#include <string.h>

#include "policy/gavel/gavel_round.h"

#define CREDIT_MAX 10.0   /* rounds that can be owed at most */
#define CREDIT_MIN (-1.0) /* rounds that a job can have had ahead of time */
#define PAIRED_MAX 256    /* jobs of which all pairs are looked at */

/* --- two together --------------------------------------------------------------------- */

bool duo_is_whole(const struct gavel_common *common, const struct duo *duo)
{
    return common->entries[duo->jobs[0]].ticket == duo->tickets[0] &&
           common->entries[duo->jobs[1]].ticket == duo->tickets[1];
}

/* The place of two jobs among the duos, in either order, or NONE. */
uint32_t duo_find(const struct gavel_common *common, job_id a, job_id b)
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

void rounds_book(struct gavel_common *common, const struct view *view)
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

void rounds_observe(struct gavel_common *common, const struct view *view,
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

int rounds_make_shares(struct gavel_common *common, const struct view *view,
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
