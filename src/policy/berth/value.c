/*
 * value.c - what a job's time is worth: its place in the order.
 *
 *     key(j) = (work left + time to resume) / weight / GPUs ^ gang       smallest first
 *
 * Work is counted in seconds on the fastest type the job may use.  If it was declared, what is
 * left of it is known: shortest remaining time first.  If it was not, or has been exceeded, it
 * is one over the job's Gittins index,
 *
 *     G(a) = max over d of  P(S - a <= d | S > a) / E(min(S - a, d) | S > a)
 *
 * the best ratio of "done by then" to "time spent", with S the work of finished jobs of the
 * class and a what the job has done.  A known job's index is 1 / (work left), so known and
 * unknown jobs are on one scale; shortest remaining time and least attained service are its
 * two ends.
 *
 * A job that reports its loss has two rewards: a good model, and its end.  Until its model is
 * good, its key is the smaller of (work to a good model) / QUALITY and (work left) / (1 + QUALITY),
 * each with the time to resume.
 *
 * A guess changes only when the work done has doubled, the step of a good model only when the
 * reports have doubled, and a model becomes good once.  So a running job's key rises finitely
 * often, and two jobs cannot preempt each other in turns.
 *
 * Sources: Gittins (1979); Aalto, Ayesta, Righter (2009); gang as in xion.c.
 */
#include "policy/berth/berth_internal.h"

#include <math.h>

#define LEVEL_FIRST_S \
    60.0              /* guesses change when the work done reaches this, then doubles */
#define GOOD 0.9      /* of its improvement, at which a model is good */
#define GOOD_PART 0.3 /* of its work until then, while it has not reported */
#define OVERRUN_PART \
    0.25 /* of the work done, expected to follow where it was exceeded */

/* Assumed of each class until there is history: log-normal, and how many jobs it counts as. */
static const struct prior {
    double median_s, sigma, count;
} priors[2] = { [CLASS_BE] = { 1800, 1.7, 4 }, [CLASS_TE] = { 180, 1.2, 4 } };

static uint32_t bin_of(double work_s)
{
    if (work_s <= 1)
        return 0;
    double bin = 2 * log2(work_s);
    return bin < HISTORY_BINS - 1 ? (uint32_t)bin : HISTORY_BINS - 1;
}

/* The middle of a bin, in seconds. */
static double bin_middle_s(uint32_t bin)
{
    return exp2(((double)bin + 0.5) / 2);
}

void value_init(struct berth_policy *berth)
{
    for (uint32_t class = 0; class < 2; class ++) {
        const struct prior *prior = &priors[class];
        double sum = 0;
        double *count = berth->histories[class].count;
        for (uint32_t bin = 0; bin < HISTORY_BINS; bin++) {
            double z = log(bin_middle_s(bin) / prior->median_s) / prior->sigma;
            sum += count[bin] = exp(-z * z / 2);
        }
        for (uint32_t bin = 0; bin < HISTORY_BINS; bin++)
            count[bin] *= prior->count / sum;
    }
}

static void count_finished(struct berth_policy *berth, const struct view *view,
                           job_id id)
{
    const struct job *job = &view->jobs[id];
    if (job->rate_best_per_s > 0)
        berth->histories[job->class].count[bin_of(job->steps / job->rate_best_per_s)]++;
}

/* One over the Gittins index of a job that has done so much work. */
static double guess_left_s(const struct berth_history *history, double done_s)
{
    double total = 0;
    double best = 0;
    double ended = 0;
    double spent_s = 0; /* by those that end */
    uint32_t first = bin_of(done_s);
    for (uint32_t bin = first; bin < HISTORY_BINS; bin++)
        total += history->count[bin];
    for (uint32_t bin = first; bin < HISTORY_BINS && total > 0; bin++) {
        double end_s = fmax(bin_middle_s(bin) - done_s, 0.25 * bin_middle_s(bin));
        ended += history->count[bin];
        spent_s += history->count[bin] * end_s;
        double index = ended / (spent_s + (total - ended) * end_s);
        best = index > best ? index : best;
    }
    return best > 0 ? 1 / best : done_s;
}

/* The work done at which the guess was made last: none, 60 s, 120 s, 240 s, … */
static double level_s(double done_s, double first_s)
{
    if (done_s < first_s)
        return 0;
    return first_s * exp2(floor(log2(done_s / first_s)));
}

/* The most work it has ever done, whether it was kept or not: its work is more than that. */
static double work_reached_s(const struct berth_policy *berth, const struct view *view,
                             job_id id)
{
    const struct job *job = &view->jobs[id];
    double steps = fmax(job_steps(job, view->now_ns), berth->jobs[id].reached);
    return job->rate_best_per_s > 0 ? steps / job->rate_best_per_s : 0;
}

/* It declared its work, and has not done all of that yet. */
static bool is_declared(const struct job *job, double steps)
{
    return job->steps_total > 0 && steps < job->steps_total;
}

double value_left_s(const void *self, const struct view *view, job_id id)
{
    const struct berth_policy *berth = self;
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
           guess_left_s(&berth->histories[job->class], level_s(done_s, LEVEL_FIRST_S));
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

void value_observe(struct berth_policy *berth, const struct view *view,
                   const struct event *event)
{
    struct berth_job *mine = &berth->jobs[event->job];
    const struct job *job = &view->jobs[event->job];
    if (event->kind == EVENT_FINISHED)
        count_finished(berth, view, event->job);
    if (event->kind == EVENT_STOPPED || event->kind == EVENT_LOST)
        mine->reached = fmax(mine->reached, fmax(event->steps_reached, event->steps));
    forecaster_observe(&berth->forecaster, view, event);
    if (event->kind == EVENT_SUBMITTED || event->kind == EVENT_ADOPTED)
        assume_good_step(berth, view, event->job);
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

/* Seconds of work until its model is good; 0: it is. */
static double work_to_good_s(const struct berth_policy *berth, const struct view *view,
                             job_id id)
{
    const struct job *job = &view->jobs[id];
    double steps = berth->jobs[id].good_steps - job_steps(job, view->now_ns);
    return steps > 0 && job->rate_best_per_s > 0 ? steps / job->rate_best_per_s : 0;
}

static double find_weight(const void *self, const struct view *view, job_id id)
{
    const struct berth_policy *berth = self;
    const struct job *job = &view->jobs[id];
    double weight = job->weight > 0 ? job->weight : 1;
    return work_to_good_s(berth, view, id) > 0 ? weight * (1 + QUALITY) : weight;
}

int64_t value_key_ns(const void *self, const struct view *view, job_id id)
{
    const struct berth_policy *berth = self;
    const struct job *job = &view->jobs[id];
    double left_s = value_left_s(self, view, id);
    double good_s = work_to_good_s(berth, view, id);
    double load_s = (double)job->load_ns * 1e-9;
    double key_s = left_s + load_s;
    if (good_s > 0)
        key_s = fmin(key_s / (1 + QUALITY), (good_s + load_s) / QUALITY);
    if (job->weight > 0)
        key_s /= job->weight;
    if (job->gpus > 1)
        key_s /= pow(job->gpus, GANG);
    return key_s < 4e9 ? (int64_t)(key_s * 1e9) : (int64_t)4e18;
}

int64_t value_changes_ns(const struct berth_policy *berth, const struct view *view,
                         job_id id)
{
    const struct job *job = &view->jobs[id];
    double done_s = work_reached_s(berth, view, id);
    double first_s =
        job->steps_total > 0 ? job->steps_total / job->rate_best_per_s : LEVEL_FIRST_S;
    double next_s = fmax(2 * level_s(done_s, first_s), first_s);
    if (job->state != JOB_RUNNING || job->rate_per_s <= 0)
        return INT64_MAX;
    double wait_s = (next_s - done_s) * job->rate_best_per_s / job->rate_per_s;
    return wait_s < 4e9 ? view->now_ns + (int64_t)(wait_s * 1e9) + 1 : INT64_MAX;
}

const struct cost_model_estimates value_estimates = { value_left_s, value_key_ns,
                                                      find_weight, price_lost_s,
                                                      price_waste_gpu_s };
