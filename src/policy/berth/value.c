/*
 * value.c - what a job's time is worth: its place in the order.
 *
 *     key(j) = (work left + time to resume) / (weight x share x urgency)
 *
 * Smallest first.  'share' corrects for what the job's user and group have had (fair_shares.h).
 *
 * Work is counted in seconds on the fastest type the job may use.  If it was declared, what is
 * left of it is known: shortest remaining time first.  If it was not, or has been exceeded, it
 * is one over the job's Gittins index by what finished jobs like it had (work_history.h).  A known
 * job's index is 1 / (work left), so known and unknown jobs are on one scale; shortest remaining
 * time and least attained service are its two ends.
 *
 * A job that reports its loss has two rewards: a good model, and its end.  Until its model is
 * good, its key is the smaller of (work to a good model) / QUALITY and (work left) / (1 + QUALITY),
 * each with the time to resume.
 *
 * A deadline raises the value of a job while it waits.  With slack the time to its deadline that
 * it does not need to run,
 *
 *     urgency(j) = 1 + (URGENT_MOST - 1) x (1 - slack / (URGENT_SPAN x time it needs))
 *
 * between 1 and URGENT_MOST; 1 again when slack is below 0, for the deadline is lost.
 *
 * Share and urgency stay as they are while a job holds GPUs (but for a deadline that passes,
 * once), and change in steps of a tenth while it waits.  A guess changes only when the work done
 * has doubled or a job like it has finished, the step of a good model only when the reports have
 * doubled, and a model becomes good once.  So a running job's key rises finitely often, and two
 * jobs cannot preempt each other in turns.
 *
 * Sources: as in work_history.h.
 */
#include "policy/berth/berth_internal.h"

#include <math.h>
#include <string.h>

#include "model/event.h"

#define LEVEL_FIRST_S \
    60.0              /* guesses change when the work done reaches this, then doubles */
#define GOOD 0.9      /* of its improvement, at which a model is good */
#define GOOD_PART 0.3 /* of its work until then, while it has not reported */
#define OVERRUN_PART \
    0.25 /* of the work done, expected to follow where it was exceeded */

#define URGENT_MOST 4.0
#define URGENT_SPAN 2.0
#define RENEW_STEP 1.1   /* factors that have changed by less are not renewed */
#define URGENT_STEP 1.25 /* urgency is looked at again when it has risen by this */

/* Or did, since it was started: what it has left may be less than when that was found. */
static bool makes_steps(const struct job *job)
{
    return job->state > JOB_LOADING;
}

/*
 * The largest power of two that is not above a number from 1 on: the number without its
 * fraction.  Next to a power the logarithm decides, which may be rounded to it.
 */
static double power_below(double number)
{
    const uint64_t fraction_bits = (UINT64_C(1) << 52) - 1;
    const uint64_t near = 1 << 12;
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    if (((bits + near) & fraction_bits) < 2 * near)
        return exp2(floor(log2(number)));
    bits &= ~fraction_bits;
    memcpy(&number, &bits, sizeof number);
    return number;
}

/* The work done at which the guess was made last: none, 60 s, 120 s, 240 s, … */
static double level_s(double done_s, double first_s)
{
    return done_s < first_s ? 0 : first_s * power_below(done_s / first_s);
}

/* The most work it has ever done, whether it was kept or not: its work is more than that. */
static double work_reached_s(const struct berth_policy *berth, const struct view *view,
                             job_id id)
{
    const struct job *job = &view->jobs[id];
    double steps = job_steps(job, view->now_ns);
    if (berth->jobs[id].reached > steps)
        steps = berth->jobs[id].reached;
    return job->rate_best_per_s > 0 ? steps / job->rate_best_per_s : 0;
}

/* It declared its work, and has not done all of that yet. */
static bool is_declared(const struct job *job, double steps)
{
    return job->steps_total > 0 && steps < job->steps_total;
}

static double find_left_s(const struct berth_policy *berth, const struct view *view,
                          job_id id)
{
    const struct job *job = &view->jobs[id];
    double steps = job_steps(job, view->now_ns);
    double done_s = work_reached_s(berth, view, id);
    if (is_declared(job, done_s * job->rate_best_per_s))
        return (job->steps_total - steps) / job->rate_best_per_s;
    double again_s = done_s - steps / job->rate_best_per_s; /* was lost */
    if (job->steps_total > 0)
        return again_s +
               OVERRUN_PART * level_s(done_s, job->steps_total / job->rate_best_per_s);
    return again_s +
           work_history_left_s(&berth->history, job, level_s(done_s, LEVEL_FIRST_S));
}

/* --- models that are good before their job has ended --------------------------------- */

/* The step at which the loss has come down by nine tenths; 0: it has. */
static double find_good_step(const struct outlook *outlook, double steps)
{
    double level = curve_ahead_level(&outlook->ahead);
    double low = 0;
    double high = outlook->ahead.left;
    if (level <= 1 - GOOD || !isfinite(high))
        return 0;
    for (int i = 0; i < 30; i++) {
        double middle = (low + high) / 2;
        if (level - curve_ahead_drop(&outlook->ahead, middle) > 1 - GOOD)
            low = middle;
        else
            high = middle;
    }
    return steps + high;
}

/* An elastic job is taken for one that learns, until it has reported or is done. */
static void assume_good_step(struct berth_policy *berth, const struct view *view,
                             job_id id)
{
    const struct job *job = &view->jobs[id];
    berth->jobs[id].good_steps =
        job_is_elastic(job) && job->steps_total > 0 ? GOOD_PART * job->steps_total : 0;
}

/* --- shares and deadlines -------------------------------------------------------------- */

/* Seconds that it needs from its start to its end, on its fastest type. */
static double needed_s(const struct berth_policy *berth, const struct view *view,
                       job_id id)
{
    return value_left_s(berth, view, id) + (double)view->jobs[id].load_ns * 1e-9;
}

/* Seconds until its deadline beyond what it needs; below 0: the deadline is lost. */
static double slack_s(const struct view *view, job_id id, double needed)
{
    return (double)(view->jobs[id].deadline_ns - view->now_ns) * 1e-9 - needed;
}

static double find_urgency(const struct berth_policy *berth, const struct view *view,
                           job_id id)
{
    if (view->jobs[id].deadline_ns <= view->now_ns)
        return 1;
    double needed = needed_s(berth, view, id);
    double slack = slack_s(view, id, needed);
    if (slack < 0 || needed <= 0)
        return 1;
    return 1 + (URGENT_MOST - 1) * fmax(1 - slack / (URGENT_SPAN * needed), 0);
}

/* When a waiting job's urgency has risen by a step, or its deadline is lost. */
static int64_t urgency_changes_ns(const struct berth_policy *berth,
                                  const struct view *view, job_id id)
{
    if (view->jobs[id].deadline_ns <= view->now_ns)
        return INT64_MAX;
    double needed = needed_s(berth, view, id);
    double slack = slack_s(view, id, needed);
    double next = URGENT_STEP * find_urgency(berth, view, id);
    if (slack < 0 || needed <= 0)
        return INT64_MAX;
    double left = fmax(1 - (next - 1) / (URGENT_MOST - 1), 0);
    double wait_s = slack - left * URGENT_SPAN * needed;
    return wait_s < 4e9 ? view->now_ns + (int64_t)(fmax(wait_s, 0) * 1e9) + 1000000
                        : INT64_MAX;
}

static void set_factors(struct berth_policy *berth, const struct view *view, job_id id)
{
    berth->jobs[id].share = fair_shares_factor(&berth->shares, view, &view->jobs[id]);
    berth->jobs[id].urgency = find_urgency(berth, view, id);
    berth->jobs[id].value_until = 0;
}

bool value_renew(struct berth_policy *berth, const struct view *view, job_id id)
{
    const struct berth_job *mine = &berth->jobs[id];
    double before = mine->share * mine->urgency;
    double share = fair_shares_factor(&berth->shares, view, &view->jobs[id]);
    double urgency = view->jobs[id].deadline_ns > 0 ? find_urgency(berth, view, id) : 1;
    double change = share * urgency / before;
    if (change < RENEW_STEP && change > 1 / RENEW_STEP)
        return false;
    set_factors(berth, view, id);
    return true;
}

void value_observe(struct berth_policy *berth, const struct view *view,
                   const struct event *event)
{
    struct berth_job *mine = &berth->jobs[event->job];
    const struct job *job = &view->jobs[event->job];
    if (((event->kind != EVENT_PLACED && event->kind != EVENT_STARTED) ||
         makes_steps(job)) &&
        !mine->inherited)
        mine->value_until = 0;
    if (event->kind == EVENT_FINISHED)
        work_history_count(&berth->history, job);
    if (event->kind == EVENT_STOPPED || event->kind == EVENT_LOST)
        mine->reached = fmax(mine->reached, fmax(event->steps_reached, event->steps));
    forecaster_observe(&berth->forecaster, view, event);
    bool adopted = event->kind == EVENT_ADOPTED && !mine->inherited;
    if (event->kind == EVENT_SUBMITTED || adopted)
        assume_good_step(berth, view, event->job);
    fair_shares_observe(&berth->shares, view, event);
    if ((event_makes_waiting(event, view) || adopted) && !mine->inherited)
        set_factors(berth, view, event->job);
    if (event->kind != EVENT_PROGRESS || !isfinite(event->loss) ||
        job->steps_total <= 0)
        return;
    mine->reports++;
    if (mine->reports < 4 || (mine->reports & (mine->reports - 1)) != 0)
        return; /* only when reports have doubled: finitely many changes of its key */
    struct outlook outlook = forecaster_outlook(&berth->forecaster, view, event->job);
    if (outlook.state == OUTLOOK_FITTED)
        mine->good_steps = find_good_step(&outlook, job_steps(job, view->now_ns));
    else if (outlook.state == OUTLOOK_FLAT)
        mine->good_steps = 0;
}

/*
 * Seconds of work until its model is good; 0: it is, or was and has been lost.  Otherwise a job
 * that cannot save would be ahead each time it starts again, and behind each time it is good.
 */
static double work_to_good_s(const struct berth_policy *berth, const struct view *view,
                             job_id id)
{
    const struct job *job = &view->jobs[id];
    const struct berth_job *mine = &berth->jobs[id];
    double steps = mine->reached < mine->good_steps
                       ? mine->good_steps - job_steps(job, view->now_ns)
                       : 0;
    return steps > 0 && job->rate_best_per_s > 0 ? steps / job->rate_best_per_s : 0;
}

/* Its own weight, and the factors on it. */
static double own_weight(const struct berth_policy *berth, const struct view *view,
                         job_id id)
{
    const struct job *job = &view->jobs[id];
    const struct berth_job *mine = &berth->jobs[id];
    double weight = job->weight > 0 ? job->weight : 1;
    if (mine->share > 0)
        weight *= mine->share;
    return mine->urgency > 1 && view->now_ns <= job->deadline_ns
               ? weight * mine->urgency
               : weight;
}

static struct cost_model_value find_value(const struct berth_policy *berth,
                                          const struct view *view, job_id id)
{
    const struct job *job = &view->jobs[id];
    double left_s = find_left_s(berth, view, id);
    double good_s = work_to_good_s(berth, view, id);
    double load_s = (double)job->load_ns * 1e-9;
    double weight = own_weight(berth, view, id);
    double key_s = left_s + load_s;
    if (good_s > 0)
        key_s = fmin(key_s / (1 + QUALITY), (good_s + load_s) / QUALITY);
    key_s /= weight;
    return (struct cost_model_value){
        .left_s = left_s,
        .weight = good_s > 0 ? weight * (1 + QUALITY) : weight,
        .key_ns = key_s < 4e9 ? (int64_t)(key_s * 1e9) : (int64_t)4e18
    };
}

/*
 * A guess stays as it is until a job has finished, declared work until an event of the job's
 * own.
 */
static uint64_t value_lasts(const struct berth_policy *berth, bool declared)
{
    return declared ? UINT64_MAX : (uint64_t)berth->history.finished_count + 1;
}

static bool is_value_known(const struct berth_policy *berth, job_id id)
{
    return berth->jobs[id].value_until > berth->history.finished_count;
}

struct cost_model_value value_of(const void *self, const struct view *view, job_id id)
{
    const struct berth_policy *berth = self;
    struct berth_job *mine = &berth->jobs[id];
    if (makes_steps(&view->jobs[id]) || mine->urgency > 1)
        return find_value(berth, view, id);
    if (!is_value_known(berth, id)) {
        mine->value = find_value(berth, view, id);
        mine->value_until = value_lasts(berth, view->jobs[id].steps_total > 0);
    }
    return mine->value;
}

double value_left_s(const void *self, const struct view *view, job_id id)
{
    const struct berth_policy *berth = self;
    return makes_steps(&view->jobs[id]) || !is_value_known(berth, id)
               ? find_left_s(berth, view, id)
               : berth->jobs[id].value.left_s;
}

/*
 * No key of a running job is larger until then: that of declared work falls, that of a guess
 * stays.  A guess that is exceeded enters the job again.
 */
static void bound_key(const struct berth_policy *berth, const struct view *view,
                      job_id id)
{
    struct berth_job *mine = &berth->jobs[id];
    const struct job *job = &view->jobs[id];
    double steps = fmax(job_steps(job, view->now_ns), mine->reached);
    bool plain = mine->good_steps <= 0 && mine->urgency <= 1;
    bool falls = plain && is_declared(job, steps);
    bool stays = plain && job->steps_total <= 0;
    mine->value_until = value_lasts(berth, falls);
    if (falls || stays)
        mine->value = find_value(berth, view, id);
    else
        mine->value.key_ns = INT64_MAX;
}

bool value_exceeds_now(const struct berth_policy *berth, const struct view *view,
                       job_id id, int64_t key_ns)
{
    if (!makes_steps(&view->jobs[id]))
        return value_of(berth, view, id).key_ns > key_ns;
    if (!is_value_known(berth, id))
        bound_key(berth, view, id);
    struct berth_job *mine = &berth->jobs[id];
    if (mine->value.key_ns <= key_ns)
        return false;
    if (mine->key_turn != berth->turn)
        mine->key_ns = find_value(berth, view, id).key_ns;
    mine->key_turn = berth->turn;
    return mine->key_ns > key_ns;
}

int64_t value_changes_ns(const struct berth_policy *berth, const struct view *view,
                         job_id id)
{
    const struct job *job = &view->jobs[id];
    if (job->state == JOB_WAITING)
        return urgency_changes_ns(berth, view, id);
    double done_s = work_reached_s(berth, view, id);
    double first_s =
        job->steps_total > 0 ? job->steps_total / job->rate_best_per_s : LEVEL_FIRST_S;
    double next_s = done_s < first_s ? first_s : 2 * level_s(done_s, first_s);
    if (job->state != JOB_RUNNING || job->rate_per_s <= 0)
        return INT64_MAX;
    double steps =
        job_steps(job, view->now_ns); /* fewer than it ever did, if some were lost */
    double wait_s = (next_s * job->rate_best_per_s - steps) / job->rate_per_s;
    return wait_s < 4e9 ? view->now_ns + (int64_t)(wait_s * 1e9) + 1 : INT64_MAX;
}

const struct cost_model_estimates value_estimates = { value_of, value_left_s,
                                                      price_lost_s, price_waste_gpu_s };
