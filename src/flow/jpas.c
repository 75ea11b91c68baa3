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
 * the curve fitted to what it has reported.  Jobs are ordered by score, and levels go by
 * who meets whom (senders.h).  A job with fewer than three reports goes first: it has
 * just begun.  The score is that of a job that goes first, so one that is held up is not
 * scored low for being held up.
 *
 * From JPAS (Zhou et al., Journal of Network and Computer Applications 158, 2020), which
 * is known to us by its abstract and by summaries; the score is our reading of it.  Ours:
 *
 * - hysteresis: one overtakes another only if its score is clearly higher;
 * - aging: a job that makes no step for some periods goes first for one.  If it still says
 *   nothing, its log has stopped: it goes last until it speaks again.  Where its hosts
 *   count bytes, they tell the two apart: bytes of a step are always the same, so one that
 *   has sent those of several steps makes them and does not say so, and one that has not
 *   is held up, however often it has to be put first;
 * - a job that reports no losses for as long goes last: nobody knows what it learns;
 * - a job that has learnt nearly all (converged) goes last.
 *
 * What early jobs gain, late ones pay: completion times get longer.  'late=shortest' is
 * our answer.  Most of what people wait for is there once a job has come most of its way
 * ('goal'); behind those that have not, jobs go by the least time left, so that the late
 * ones, which have to wait anyway, at least do not wait for each other longer than need
 * be; and 'early=nearest' orders the others by the least time to that goal.
 */
#include "flow/senders.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/grow.h"
#include "flow/learner.h"
#include "model/event.h"

#define FITS_MAX 1024     /* at a decision, so that it stays short; the others follow */
#define UNHEARD_REPORTS 2 /* whose bytes were sent: they will not come */
#define FIT_COLD 3        /* times the work of a fit that starts from the last one    */

enum { EARLY_GAIN, EARLY_NEAREST };
enum { LATE_GAIN, LATE_SHORTEST };
enum { CLASS_FIRST, CLASS_EARLY, CLASS_LATE, CLASS_LAST };

/* What is remembered of a sender. */
struct pupil {
    struct learner learner;
    int64_t came_ns;
    int64_t heard_ns;            /* its last report, or when it came              */
    int64_t aged_ns;             /* when it was last put first for not being heard */
    int64_t moved_ns;            /* its hosts counted new bytes; INT64_MIN: never */
    double sent;                 /* bytes when it was heard                       */
    double step_came, sent_came; /* both when it came                   */
    double heard;                /* steps it had made then                        */
    double gap;                  /* steps between its last two reports            */
    bool lifted;                 /* goes first until the period is over           */
    bool silent;                 /* was lifted and still said nothing             */
};

struct jpas {
    /* settings */
    int64_t period_ns;
    uint32_t levels;
    double hysteresis, converged, goal;
    uint32_t aging;
    uint32_t early, late;

    struct senders senders;
    struct pupil *pupils; /* by the sender's slot */
    uint32_t pupil_room;
    uint32_t next_fit; /* place of the sender whose turn it is to be fitted */
    int64_t next_ns;   /* end of the period */
};

static int jpas_init(void *self, const struct view *view, struct arena *run,
                     struct error *err)
{
    struct jpas *jpas = self;
    senders_init(&jpas->senders, view, run);
    return 0;
}

/* --- what is reported ------------------------------------------------------------- */

/* It ran before: what it reported then counts. */
static void recall(struct learner *learner, const struct loss_ring *ring)
{
    uint32_t kept = !ring ? 0 : ring->count < LOSS_POINTS ? ring->count : LOSS_POINTS;
    for (uint32_t i = 0; i < kept; i++) {
        uint32_t at = (ring->count - kept + i) % LOSS_POINTS;
        if (isfinite(ring->losses[at]))
            learner_add(learner, ring->steps[at], ring->losses[at]);
    }
}

static void come(struct jpas *jpas, const struct view *view,
                 const struct sender *sender)
{
    jpas->pupils = grow_array(jpas->pupils, &jpas->pupil_room, jpas->senders.slot_max,
                              sizeof *jpas->pupils);
    struct pupil *pupil = &jpas->pupils[sender->slot];
    const struct job *job = &view->jobs[sender->job];
    *pupil = (struct pupil){ .came_ns = view->now_ns,
                             .heard_ns = view->now_ns,
                             .aged_ns = view->now_ns,
                             .moved_ns = INT64_MIN,
                             .sent = job->sent_bytes,
                             .sent_came = job->sent_bytes,
                             .step_came = job->steps,
                             .heard = job->steps };
    learner_init(&pupil->learner);
    recall(&pupil->learner, view_losses(view, sender->job));
}

static void hear(struct jpas *jpas, const struct view *view, const struct event *event)
{
    const struct sender *sender = sender_find(&jpas->senders, event->job);
    if (!sender)
        return;
    struct pupil *pupil = &jpas->pupils[sender->slot];
    if (event->steps > pupil->heard)
        pupil->gap = event->steps - pupil->heard;
    pupil->heard = event->steps;
    pupil->heard_ns = view->now_ns;
    pupil->sent = view->jobs[event->job].sent_bytes;
    pupil->silent = false;
    if (isfinite(event->loss))
        learner_add(&pupil->learner, event->steps, event->loss);
}

/* It sends, so it makes steps, whether it says so or not. */
static void move(struct jpas *jpas, const struct view *view, const struct event *event)
{
    const struct sender *sender = sender_find(&jpas->senders, event->job);
    if (sender && event->sends_per_s > 0)
        jpas->pupils[sender->slot].moved_ns = view->now_ns;
}

static void jpas_observe(void *self, const struct view *view, const struct event *event)
{
    struct jpas *jpas = self;
    bool changed = senders_observe(&jpas->senders, view, event);
    const struct sender *sender =
        changed ? sender_find(&jpas->senders, event->job) : NULL;
    if (sender)
        come(jpas, view, sender);
    if (event->kind == EVENT_PROGRESS)
        hear(jpas, view, event);
    if (event->kind == EVENT_SENT)
        move(jpas, view, event);
}

/* --- the order ------------------------------------------------------------------------ */

/*
 * It has made no step in so many periods, as far as one can tell: jobs do not report every
 * step, so each step between two reports is given that time.
 */
static bool is_overdue(const struct jpas *jpas, const struct view *view,
                       const struct sender *sender, const struct pupil *pupil)
{
    double step_ns =
        fmax((double)jpas->aging * (double)jpas->period_ns, sender->alone_s * 1e9);
    double patience_ns = fmax(pupil->gap, 1) * step_ns;
    int64_t since_ns =
        pupil->heard_ns > pupil->aged_ns ? pupil->heard_ns : pupil->aged_ns;
    return (double)(view->now_ns - since_ns) >= patience_ns;
}

/* As long as a job that makes no step is waited for. */
static int64_t patience_ns(const struct jpas *jpas)
{
    return jpas->aging * jpas->period_ns;
}

/* What bytes say of a job that is not heard of. */
enum pace { PACE_UNKNOWN, PACE_HELD_UP, PACE_MOVES };

static enum pace pace_of(const struct jpas *jpas, const struct view *view,
                         const struct sender *sender, const struct pupil *pupil)
{
    const struct job *job = &view->jobs[sender->job];
    double steps = pupil->heard - pupil->step_came;
    double sent = pupil->sent - pupil->sent_came;
    if (pupil->moved_ns <= pupil->heard_ns)
        return PACE_UNKNOWN; /* nobody counts, or nothing */
    if (pupil->gap == 0)     /* it has never said how far it is */
        return view->now_ns - pupil->moved_ns < patience_ns(jpas) ? PACE_MOVES
                                                                  : PACE_UNKNOWN;
    if (steps <= 0 || sent <= 0)
        return PACE_UNKNOWN;
    double unheard = (job->sent_bytes - pupil->sent) / (sent / steps);
    return unheard >= UNHEARD_REPORTS * pupil->gap ? PACE_MOVES : PACE_HELD_UP;
}

/* It says how far it is and nothing of what it learns. */
static bool is_mute(const struct jpas *jpas, const struct view *view,
                    const struct pupil *pupil)
{
    return pupil->learner.count == 0 &&
           view->now_ns - pupil->came_ns >= patience_ns(jpas);
}

static void age(struct jpas *jpas, const struct view *view, const struct sender *sender,
                struct pupil *pupil)
{
    enum pace pace = pace_of(jpas, view, sender, pupil);
    if (pupil->lifted) {
        pupil->lifted = false;
        pupil->silent = pupil->heard_ns < pupil->aged_ns && pace != PACE_HELD_UP;
    } else if (!pupil->silent && is_overdue(jpas, view, sender, pupil)) {
        pupil->silent = pace == PACE_MOVES;
        pupil->lifted = !pupil->silent;
        pupil->aged_ns = view->now_ns;
    }
}

/*
 * Fit those that have reported since, in turn, as far as the time of a decision goes.
 * One that has to wait for its turn is judged by its last fit, or as it went lately.
 */
static void refit(struct jpas *jpas)
{
    const struct senders *senders = &jpas->senders;
    uint32_t work = 0;
    for (uint32_t n = 0; n < senders->count && work < FITS_MAX; n++) {
        uint32_t place = jpas->next_fit < senders->count ? jpas->next_fit : 0;
        struct learner *learner = &jpas->pupils[senders->list[place].slot].learner;
        jpas->next_fit = place + 1;
        if (!learner_wants_fit(learner))
            continue;
        work += learner->fitted ? 1 : FIT_COLD;
        learner_fit(learner);
    }
}

/* Steps it makes in a period at the first level. */
static double steps_ahead(const struct jpas *jpas, const struct sender *sender)
{
    return (double)jpas->period_ns * 1e-9 / sender->alone_s;
}

/* Without a curve that fits: as it went between the last two reports. */
static double guess_gain(const struct learner *learner, double ahead)
{
    uint32_t n = learner->count;
    double way = learner->first - learner->least;
    double made = learner->losses[n - 2] - learner->losses[n - 1];
    double steps = learner->steps[n - 1] - learner->steps[n - 2];
    return way > 0 && made > 0 ? fmin(made / way * ahead / steps, 1) : 0;
}

static double gain(const struct jpas *jpas, const struct sender *sender,
                   const struct learner *learner, double step)
{
    double ahead = steps_ahead(jpas, sender);
    return learner_knows(learner)
               ? learner_share(learner, step + ahead) - learner_share(learner, step)
               : guess_gain(learner, ahead);
}

/* More is sooner: one over what is left to send, in time with the network to itself. */
static double nearness(const struct sender *sender, double steps)
{
    return steps < INFINITY ? 1 / (fmax(steps, 1) * sender->send_s) : 0;
}

static void put(struct sender *sender, uint32_t class, double score)
{
    sender->class = class;
    sender->score = score;
}

static void judge(struct jpas *jpas, const struct view *view, struct sender *sender)
{
    struct pupil *pupil = &jpas->pupils[sender->slot];
    const struct learner *learner = &pupil->learner;
    const struct job *job = &view->jobs[sender->job];
    age(jpas, view, sender, pupil);
    if (pupil->silent) {
        put(sender, CLASS_LAST, 0);
        return;
    }
    if (pupil->lifted) {
        put(sender, CLASS_FIRST, 0);
        return;
    }
    if (learner->count < LEARNER_POINTS_LEAST) {
        put(sender, is_mute(jpas, view, pupil) ? CLASS_LAST : CLASS_FIRST, 0);
        return;
    }
    double step = job_steps(job, view->now_ns);
    double share = learner_knows(learner) ? learner_share(learner, step) : 0;
    bool late = share >= jpas->goal && jpas->late == LATE_SHORTEST;
    if (late && job->steps_total > 0)
        put(sender, CLASS_LATE, nearness(sender, job->steps_total - step));
    else if (share >= jpas->converged)
        put(sender, CLASS_LAST, 0);
    else if (jpas->early == EARLY_NEAREST && learner_knows(learner))
        put(sender, CLASS_EARLY,
            nearness(sender, learner_reaches(learner, jpas->goal, step) - step));
    else
        put(sender, CLASS_EARLY, gain(jpas, sender, learner, step));
}

static int jpas_decide(void *self, const struct view *view, struct flow_plan *plan,
                       struct error *err)
{
    struct jpas *jpas = self;
    struct senders *senders = &jpas->senders;
    if (senders->count == 0)
        return 0;
    if (view->now_ns < jpas->next_ns && !senders->changed) {
        flow_wake(plan, jpas->next_ns);
        return 0;
    }
    if (view->now_ns >= jpas->next_ns) {
        refit(jpas);
        for (uint32_t i = 0; i < senders->count; i++)
            judge(jpas, view, &senders->list[i]);
        jpas->next_ns = view->now_ns + jpas->period_ns;
    }
    /* Between two periods newcomers, whose class is the first, find their place. */
    senders_sort(senders, view, jpas->hysteresis);
    senders_levels(senders, view, jpas->levels, plan);
    flow_wake(plan, jpas->next_ns);
    return 0;
}

static void explain_waiting(const struct jpas *jpas, const struct sender *sender,
                            const struct pupil *pupil, char *text, size_t size)
{
    uint32_t count = pupil->learner.count;
    if (pupil->silent)
        snprintf(text, size, "has stopped reporting: last until it speaks again");
    else if (pupil->lifted)
        snprintf(text, size, "made no step for %u periods: first for one", jpas->aging);
    else if (sender->class == CLASS_LAST)
        snprintf(text, size, "reports no loss: nobody knows what it learns, last");
    else
        snprintf(text, size, "has just begun: %u losses reported", count);
}

static void jpas_explain(const void *self, const struct view *view, job_id job,
                         struct flow_reason *reason)
{
    const struct jpas *jpas = self;
    const struct sender *sender = sender_explain(&jpas->senders, job, reason);
    if (!sender)
        return;
    const struct pupil *pupil = &jpas->pupils[sender->slot];
    const struct learner *learner = &pupil->learner;
    char *text = reason->text;
    size_t size = sizeof reason->text;
    if (pupil->silent || pupil->lifted || sender->class == CLASS_FIRST ||
        learner->count < LEARNER_POINTS_LEAST) {
        explain_waiting(jpas, sender, pupil, text, size);
        reason->score = NAN;
        return;
    }
    double step = job_steps(&view->jobs[job], view->now_ns);
    double period_s = (double)jpas->period_ns * 1e-9;
    double share = learner_knows(learner) ? 100 * learner_share(learner, step) : NAN;
    if (sender->class == CLASS_LAST)
        snprintf(text, size, "%.1f %% of its way behind it: converged, last", share);
    else if (sender->class == CLASS_LATE)
        snprintf(text, size, "%.1f %% of its way behind it: late, by the time left",
                 share);
    else if (isnan(share))
        snprintf(text, size, "no curve fits yet: as it went lately, %.2g %% in %g s",
                 100 * sender->score, period_s);
    else if (jpas->early == EARLY_NEAREST)
        snprintf(text, size, "%.1f %% of its way behind it: by the time to %g %%",
                 share, 100 * jpas->goal);
    else
        snprintf(text, size, "%.1f %% of its way behind it, %.2g %% in the next %g s",
                 share, 100 * sender->score, period_s);
}

static void jpas_fini(void *self)
{
    struct jpas *jpas = self;
    senders_release(&jpas->senders);
    free(jpas->pupils);
}

static const char *const early_names[] = { "gain", "nearest", NULL };
static const char *const late_names[] = { "gain", "shortest", NULL };

#define AT(field) offsetof(struct jpas, field)

static const struct field jpas_params[] = {
    { "period", FIELD_TIME, AT(period_ns), "10s", NULL, "how often the order is made",
      0.1, 1e6 },
    { "levels", FIELD_COUNT, AT(levels), "8", NULL, "levels the network has", 1,
      FLOW_LEVELS_MAX },
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
    .self_size = sizeof(struct jpas),
    .init = jpas_init,
    .observe = jpas_observe,
    .decide = jpas_decide,
    .explain = jpas_explain,
    .fini = jpas_fini,
};
