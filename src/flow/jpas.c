/*
 * jpas.c - jobs that are about to learn most go first.
 *
 * Every period D:
 *
 *     t_j     = time of a step of j at the first level: computing, and the time its
 *               communication takes with the network to itself
 *     score_j = A_j(k_j + D / t_j) - A_j(k_j)
 *
 * where A_j(k) is the share of what j will learn that it has learnt after k steps, by
 * the curve fitted to its reports.  Jobs are ordered by score, and levels follow from
 * which jobs share links (senders.h).  A job with fewer than three reports goes first:
 * it has just begun.  The score is that of a job that goes first, so a job is not
 * scored low for being held up.
 *
 * From JPAS (Zhou et al., Journal of Network and Computer Applications 158, 2020),
 * which is known to us by its abstract and by summaries; the score is our reading of
 * it.  Our additions:
 *
 * - hysteresis: a job overtakes another only if its score is clearly higher;
 * - aging: a job that makes no step for some periods goes first for one.  If it still
 *   reports nothing, its log has stopped: it goes last until it reports again.  Where
 *   its hosts count bytes, they tell the two apart: a step always sends the same number
 *   of bytes, so a job that has sent those of several steps makes them without
 *   reporting, and one that has not is held up, however often it has to be put first;
 * - a job that reports no losses for as long goes last: what it learns is unknown;
 * - a job that has learnt nearly all (converged) goes last.
 *
 * What early jobs gain, late ones pay: completion times get longer.  'late=shortest' is
 * our answer.  Most of what people wait for is there once a job has come most of its
 * way ('goal'); behind the jobs that have not, the late ones go by the least time left,
 * so that they at least do not wait for each other longer than necessary; and
 * 'early=nearest' orders the others by the least time to that goal.  Noise in the reports
 * hides where a curve ends, and with it the time to the goal: a job is late only if it is
 * past the goal by more than half a deviation, and while reports lie a hundredth of the way
 * from their curves the early jobs go by their score, which noise changes least.
 */
#include "flow/senders.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/grow.h"
#include "predict/loss_history.h"
#include "model/event.h"

#define FITS_MAX 1024     /* per decision, so that it stays short; the others follow */
#define UNHEARD_REPORTS 2 /* sent but not reported: they will not come */
#define NOISY \
    0.01 /* share of the way: noise from which steps to the goal are not known */
#define NOISE_MAX 0.2 /* of the way: noise beyond that is none */
#define GOAL_MARGIN \
    0.5            /* deviations of a report by which a job has to be past its goal */
#define FIT_COLD 3 /* times the work of a fit that starts from the last one    */

enum { EARLY_GAIN, EARLY_NEAREST };
enum { LATE_GAIN, LATE_SHORTEST };
enum { CLASS_FIRST, CLASS_EARLY, CLASS_LATE, CLASS_LAST };

/* The state kept for a sender. */
struct jpas_job {
    struct loss_history history;
    int64_t came_ns;
    int64_t heard_ns;            /* its last report, or when it was added */
    int64_t aged_ns;             /* when it was last put first for lack of reports */
    int64_t moved_ns;            /* its hosts counted new bytes; INT64_MIN: never */
    double sent;                 /* bytes sent at its last report */
    double step_came, sent_came; /* both when it was added */
    double heard;                /* steps at its last report */
    double gap;                  /* steps between its last two reports            */
    bool lifted;                 /* goes first until the period is over           */
    bool silent;                 /* was lifted and still reported nothing */
};

struct jpas_flow {
    struct senders senders;

    /* settings */
    int64_t period_ns;
    double hysteresis, converged, goal;
    uint32_t aging;
    uint32_t early, late;

    struct jpas_job *states; /* by the sender's slot */
    uint32_t state_room;
    bool noisy;        /* reports lie far from the fitted curves */
    uint32_t next_fit; /* index of the next sender to be fitted */
    int64_t next_ns;   /* end of the period */
};

/* --- reports ---------------------------------------------------------------------- */

/* Reports of an earlier run count. */
static void add_past_reports(struct loss_history *history, const struct loss_ring *ring)
{
    uint32_t kept = !ring ? 0 : ring->count < LOSS_POINTS ? ring->count : LOSS_POINTS;
    for (uint32_t i = 0; i < kept; i++) {
        uint32_t at = (ring->count - kept + i) % LOSS_POINTS;
        if (isfinite(ring->losses[at]))
            loss_history_add(history, ring->steps[at], ring->losses[at]);
    }
}

static void add_job(struct jpas_flow *jpas, const struct view *view,
                    const struct sender *sender)
{
    jpas->states = grow_array(jpas->states, &jpas->state_room, jpas->senders.slot_max,
                              sizeof *jpas->states);
    struct jpas_job *state = &jpas->states[sender->slot];
    const struct job *job = &view->jobs[sender->job];
    *state = (struct jpas_job){ .came_ns = view->now_ns,
                                .heard_ns = view->now_ns,
                                .aged_ns = view->now_ns,
                                .moved_ns = INT64_MIN,
                                .sent = job->sent_bytes,
                                .sent_came = job->sent_bytes,
                                .step_came = job->steps,
                                .heard = job->steps };
    loss_history_init(&state->history);
    add_past_reports(&state->history, view_losses(view, sender->job));
}

static void note_progress(struct jpas_flow *jpas, const struct view *view,
                          const struct event *event)
{
    const struct sender *sender = sender_find(&jpas->senders, event->job);
    if (!sender)
        return;
    struct jpas_job *state = &jpas->states[sender->slot];
    if (event->steps > state->heard)
        state->gap = event->steps - state->heard;
    state->heard = event->steps;
    state->heard_ns = view->now_ns;
    state->sent = view->jobs[event->job].sent_bytes;
    state->silent = false;
    if (isfinite(event->loss))
        loss_history_add(&state->history, event->steps, event->loss);
}

/* A job that sends makes steps, whether it reports them or not. */
static void note_sent(struct jpas_flow *jpas, const struct view *view,
                      const struct event *event)
{
    const struct sender *sender = sender_find(&jpas->senders, event->job);
    if (sender && event->sends_per_s > 0)
        jpas->states[sender->slot].moved_ns = view->now_ns;
}

static void jpas_observe(void *self, const struct view *view, const struct event *event)
{
    struct jpas_flow *jpas = self;
    bool changed = senders_update(&jpas->senders, view, event);
    const struct sender *sender =
        changed ? sender_find(&jpas->senders, event->job) : NULL;
    if (sender)
        add_job(jpas, view, sender);
    if (event->kind == EVENT_PROGRESS)
        note_progress(jpas, view, event);
    if (event->kind == EVENT_SENT)
        note_sent(jpas, view, event);
}

/* --- the order ------------------------------------------------------------------------ */

/*
 * True if it seems to have made no step in 'aging' periods: jobs do not report every
 * step, so each step between two reports is given that time.
 */
static bool is_overdue(const struct jpas_flow *jpas, const struct view *view,
                       const struct sender *sender, const struct jpas_job *state)
{
    double step_ns =
        fmax((double)jpas->aging * (double)jpas->period_ns, sender->alone_s * 1e9);
    double patience_ns = fmax(state->gap, 1) * step_ns;
    int64_t since_ns =
        state->heard_ns > state->aged_ns ? state->heard_ns : state->aged_ns;
    return (double)(view->now_ns - since_ns) >= patience_ns;
}

/* How long a job without a step is waited for. */
static int64_t patience_ns(const struct jpas_flow *jpas)
{
    return jpas->aging * jpas->period_ns;
}

/* What the bytes sent tell about a job that does not report. */
enum pace { PACE_UNKNOWN, PACE_HELD_UP, PACE_MOVES };

static enum pace find_pace(const struct jpas_flow *jpas, const struct view *view,
                           const struct sender *sender, const struct jpas_job *state)
{
    const struct job *job = &view->jobs[sender->job];
    double steps = state->heard - state->step_came;
    double sent = state->sent - state->sent_came;
    if (state->moved_ns <= state->heard_ns)
        return PACE_UNKNOWN; /* bytes are not counted, or none were sent */
    if (state->gap == 0)     /* it has never reported progress */
        return view->now_ns - state->moved_ns < patience_ns(jpas) ? PACE_MOVES
                                                                  : PACE_UNKNOWN;
    if (steps <= 0 || sent <= 0)
        return PACE_UNKNOWN;
    double unheard = (job->sent_bytes - state->sent) / (sent / steps);
    return unheard >= UNHEARD_REPORTS * state->gap ? PACE_MOVES : PACE_HELD_UP;
}

/* It reports progress and no losses. */
static bool reports_no_loss(const struct jpas_flow *jpas, const struct view *view,
                            const struct jpas_job *state)
{
    return state->history.count == 0 &&
           view->now_ns - state->came_ns >= patience_ns(jpas);
}

static void age_job(struct jpas_flow *jpas, const struct view *view,
                    const struct sender *sender, struct jpas_job *state)
{
    enum pace pace = find_pace(jpas, view, sender, state);
    if (state->lifted) {
        state->lifted = false;
        state->silent = state->heard_ns < state->aged_ns && pace != PACE_HELD_UP;
    } else if (!state->silent && is_overdue(jpas, view, sender, state)) {
        state->silent = pace == PACE_MOVES;
        state->lifted = !state->silent;
        state->aged_ns = view->now_ns;
    }
}

/*
 * Fit the jobs with new reports, in turn, within the work limit of a decision.  A job
 * that waits for its turn is scored by its last fit, or by its recent progress.
 */
static void refit_histories(struct jpas_flow *jpas)
{
    const struct senders *senders = &jpas->senders;
    uint32_t work = 0;
    for (uint32_t n = 0; n < senders->count && work < FITS_MAX; n++) {
        uint32_t place = jpas->next_fit < senders->count ? jpas->next_fit : 0;
        struct loss_history *history = &jpas->states[senders->list[place].slot].history;
        jpas->next_fit = place + 1;
        if (!loss_history_wants_fit(history))
            continue;
        work += history->fitted ? 1 : FIT_COLD;
        loss_history_fit(history);
    }
}

/*
 * Find out how far reports lie from the fitted curves, in the mean.  The steps to the goal
 * depend on the limit of a curve, which noise hides; what the next steps bring does not.
 */
static void measure_noise(struct jpas_flow *jpas)
{
    const struct senders *senders = &jpas->senders;
    double sum = 0;
    uint32_t count = 0;
    for (uint32_t i = 0; i < senders->count; i++) {
        const struct loss_history *history =
            &jpas->states[senders->list[i].slot].history;
        if (loss_history_has_limit(history)) {
            sum += fmin(loss_history_noise(history), NOISE_MAX);
            count++;
        }
    }
    jpas->noisy = sum > NOISY * count;
}

/* The goal is behind the job, and not by the noise of its reports alone. */
static bool is_past_goal(const struct jpas_flow *jpas,
                         const struct loss_history *history, double share)
{
    double beyond = fmin(GOAL_MARGIN * loss_history_noise(history), NOISE_MAX);
    return share >= fmin(jpas->goal + beyond, fmax(jpas->goal, jpas->converged));
}

/* Steps it makes in a period at the first level. */
static double steps_ahead(const struct jpas_flow *jpas, const struct sender *sender)
{
    return (double)jpas->period_ns * 1e-9 / sender->alone_s;
}

/* Without a curve that fits: the progress between the last two reports. */
static double guess_gain(const struct loss_history *history, double ahead)
{
    uint32_t n = history->count;
    double way = history->first - history->least;
    double made = history->losses[n - 2] - history->losses[n - 1];
    double steps = history->steps[n - 1] - history->steps[n - 2];
    return way > 0 && made > 0 ? fmin(made / way * ahead / steps, 1) : 0;
}

static double expected_gain(const struct jpas_flow *jpas, const struct sender *sender,
                            const struct loss_history *history, double step)
{
    double ahead = steps_ahead(jpas, sender);
    return loss_history_has_limit(history) ? loss_history_share(history, step + ahead) -
                                                 loss_history_share(history, step)
                                           : guess_gain(history, ahead);
}

/* More goes first: the inverse of the time left to send, with the network to itself. */
static double nearness_score(const struct sender *sender, double steps)
{
    return steps < INFINITY ? 1 / (fmax(steps, 1) * sender->send_s) : 0;
}

static void set_class(struct sender *sender, uint32_t class, double score)
{
    sender->class = class;
    sender->score = score;
}

static void score_job(struct jpas_flow *jpas, const struct view *view,
                      struct sender *sender)
{
    struct jpas_job *state = &jpas->states[sender->slot];
    const struct loss_history *history = &state->history;
    const struct job *job = &view->jobs[sender->job];
    age_job(jpas, view, sender, state);
    if (state->silent) {
        set_class(sender, CLASS_LAST, 0);
        return;
    }
    if (state->lifted) {
        set_class(sender, CLASS_FIRST, 0);
        return;
    }
    if (history->count < LOSS_HISTORY_POINTS_LEAST) {
        set_class(sender, reports_no_loss(jpas, view, state) ? CLASS_LAST : CLASS_FIRST,
                  0);
        return;
    }
    double step = job_steps(job, view->now_ns);
    bool fitted = loss_history_has_limit(history);
    double share = fitted ? loss_history_share(history, step) : 0;
    bool late =
        fitted && jpas->late == LATE_SHORTEST && is_past_goal(jpas, history, share);
    if (late && job->steps_total > 0)
        set_class(sender, CLASS_LATE, nearness_score(sender, job->steps_total - step));
    else if (share >= jpas->converged)
        set_class(sender, CLASS_LAST, 0);
    else if (jpas->early == EARLY_NEAREST && fitted && !jpas->noisy)
        set_class(sender, CLASS_EARLY,
                  nearness_score(
                      sender, loss_history_step_at(history, jpas->goal, step) - step));
    else
        set_class(sender, CLASS_EARLY, expected_gain(jpas, sender, history, step));
}

static int jpas_decide(void *self, const struct view *view, struct flow_plan *plan,
                       struct error *err)
{
    struct jpas_flow *jpas = self;
    struct senders *senders = &jpas->senders;
    if (senders->count == 0)
        return 0;
    if (view->now_ns < jpas->next_ns && !senders->changed) {
        flow_wake(plan, jpas->next_ns);
        return 0;
    }
    if (view->now_ns >= jpas->next_ns) {
        refit_histories(jpas);
        measure_noise(jpas);
        for (uint32_t i = 0; i < senders->count; i++)
            score_job(jpas, view, &senders->list[i]);
        jpas->next_ns = view->now_ns + jpas->period_ns;
    }
    /* Between two periods new jobs, of the first class, are inserted. */
    senders_sort(senders, view, jpas->hysteresis);
    senders_levels(senders, view, plan);
    flow_wake(plan, jpas->next_ns);
    return 0;
}

static void explain_waiting(const struct jpas_flow *jpas, const struct sender *sender,
                            const struct jpas_job *state, char *text, size_t size)
{
    uint32_t count = state->history.count;
    if (state->silent)
        snprintf(text, size, "has stopped reporting: last until it speaks again");
    else if (state->lifted)
        snprintf(text, size, "made no step for %u periods: first for one", jpas->aging);
    else if (sender->class == CLASS_LAST)
        snprintf(text, size, "reports no loss: nobody knows what it learns, last");
    else
        snprintf(text, size, "has just begun: %u losses reported", count);
}

static void jpas_explain(const void *self, const struct view *view, job_id job,
                         struct flow_reason *reason)
{
    const struct jpas_flow *jpas = self;
    const struct sender *sender = sender_explain(&jpas->senders, job, reason);
    if (!sender)
        return;
    const struct jpas_job *state = &jpas->states[sender->slot];
    const struct loss_history *history = &state->history;
    char *text = reason->text;
    size_t size = sizeof reason->text;
    if (state->silent || state->lifted || sender->class == CLASS_FIRST ||
        history->count < LOSS_HISTORY_POINTS_LEAST) {
        explain_waiting(jpas, sender, state, text, size);
        reason->score = NAN;
        return;
    }
    double step = job_steps(&view->jobs[job], view->now_ns);
    double period_s = (double)jpas->period_ns * 1e-9;
    double share =
        loss_history_has_limit(history) ? 100 * loss_history_share(history, step) : NAN;
    if (sender->class == CLASS_LAST)
        snprintf(text, size, "%.1f %% of its way behind it: converged, last", share);
    else if (sender->class == CLASS_LATE)
        snprintf(text, size, "%.1f %% of its way behind it: late, by the time left",
                 share);
    else if (isnan(share))
        snprintf(text, size, "no curve fits yet: as it went lately, %.2g %% in %g s",
                 100 * sender->score, period_s);
    else if (jpas->early == EARLY_NEAREST && !jpas->noisy)
        snprintf(text, size, "%.1f %% of its way behind it: by the time to %g %%",
                 share, 100 * jpas->goal);
    else
        snprintf(text, size, "%.1f %% of its way behind it, %.2g %% in the next %g s",
                 share, 100 * sender->score, period_s);
}

static void jpas_fini(void *self)
{
    struct jpas_flow *jpas = self;
    senders_fini(self);
    free(jpas->states);
}

static const char *const early_names[] = { "gain", "nearest", NULL };
static const char *const late_names[] = { "gain", "shortest", NULL };

#define AT(field) offsetof(struct jpas_flow, field)

static const struct field jpas_params[] = {
    { "period", FIELD_TIME, AT(period_ns), "10s", NULL, "how often the order is made",
      0.1, 1e6 },
    SENDERS_PARAM_LEVELS,
    { "hysteresis", FIELD_NUMBER, AT(hysteresis), "1.1", NULL,
      "ratio of scores from which one overtakes another", 1, 100 },
    { "aging", FIELD_COUNT, AT(aging), "6", "periods",
      "without a step after which a job goes first for one", 1, 1e6 },
    { "converged", FIELD_NUMBER, AT(converged), "0.99", "share",
      "of the way behind it from which a job goes last", 0, 1 },
    { "early", FIELD_CHOICE, AT(early), "gain", NULL, "order of jobs on their way",
      .choices = early_names },
    { "late", FIELD_CHOICE, AT(late), "gain", NULL, "order of jobs past the goal",
      .choices = late_names },
    { "goal", FIELD_NUMBER, AT(goal), "0.9", "share",
      "of the way behind it from which a job is late", 0, 1 },
    { 0 },
};

const struct flow_policy flow_jpas = {
    .name = "jpas",
    .brief = "jobs that are about to learn most go first",
    .source = "Zhou, He, Luo, Yu, Sun: JPAS, JNCA 158, 2020",
    .params = jpas_params,
    .self_size = sizeof(struct jpas_flow),
    .init = senders_init,
    .observe = jpas_observe,
    .decide = jpas_decide,
    .explain = jpas_explain,
    .fini = jpas_fini,
};
