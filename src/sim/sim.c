/*
 * sim.c - the engine, fed from a workload in virtual time.
 *
 * Time jumps to whatever comes first: the next arrival, the next thing that happens in
 * the simulated cluster, or the moment the policy asked for.  All that happens in one
 * instant is one step of the engine; what its orders bring about in the same instant is
 * the next.
 */
#include "sim/sim.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "engine/engine.h"
#include "flow/flow.h"
#include "metrics/joblog.h"
#include "metrics/ledger.h"
#include "metrics/metrics.h"
#include "metrics/quality.h"
#include "model/admission.h"
#include "model/cluster.h"
#include "model/node_set.h"
#include "model/outbox.h"
#include "model/throughput.h"
#include "net/fluid.h"
#include "policy/policy.h"
#include "sim/changes.h"
#include "sim/dependencies.h"
#include "workload/table.h"
#include "workload/workload.h"

#define JOBS_LIVE_MAX (1u << 22)
#define IDLE_WAKES_MAX 100000 /* calls of a policy that only asks to be called again */
#define PROGRESS_EVERY 4096
#define TIMED_EVERY 8    /* decisions: asking the clock takes longer than many */
#define REFUSED_MAX 1000 /* plans in a row: a policy that cannot go on */
#define STEPS_AT_ONCE_MAX 1000000 /* a policy that swaps for ever in one instant */

/*
 * A run makes no progress if STALL_TURNS jobs started or nodes failed since a job last ended,
 * in a time in which all live jobs could have run STALL_TIMES times, one after the other, each
 * as long as the longest; or after far more turns in any time.
 */
#define STALL_TURNS 1000000
#define STALL_TIMES 20
#define STALL_TURNS_MAX 10000000
#define STALL_TURNS_OF_ONE 10000 /* more for each live job */

struct sim {
    const struct sim_setup *setup;
    struct arena run;
    struct engine engine;
    struct sim_cluster cluster;
    struct outbox
        outboxes[2]; /* one is read by the engine, the other written by the cluster */
    uint32_t reading;
    struct metrics metrics;
    struct ledger ledger;
    struct quality quality;
    struct joblog joblog;
    struct timeline timeline;
    struct admission admission;
    struct throughput told; /* none, where rates are learned */

    struct workload *workload;
    struct job_spec next; /* the next to arrive */
    bool more;
    bool closed;       /* the 'closed' event has been added */
    uint64_t job_next; /* of setup->jobs */
    uint64_t id_next;
    struct rng cost_rng, estimate_rng;
    uint64_t accepted,
        refused_before;  /* plans so far; refused up to the last accepted */
    char rejection[320]; /* of the first job that was refused, and why */
    double longest_s;    /* of all jobs, alone on the slowest type it may use */

    /* when a job ended last */
    uint64_t turns; /* jobs started and nodes failed since */
    uint64_t ended;
    int64_t ended_ns;

    struct changes changes;    /* to jobs that live, at times known beforehand */
    uint32_t node_change_next; /* of setup->node_changes */

    struct dependencies dependencies;
    uint32_t policy_change_next; /* of setup->policy_changes */

    struct arena instant; /* emptied after every step */
    uint32_t coming;      /* jobs submitted and not yet applied */
};

/* The tag of a 'submitted' event: what the engine must not know of the job. */
struct sim_submission {
    struct sim_truth truth;
    const char *after;              /* jobs that it waits for, or NULL */
    const char *name;               /* where jobs are logged, or NULL */
    int64_t eligible_ns, cancel_ns; /* 0: at once; never */
};

/* --- arrivals ------------------------------------------------------------------ */

static int read_next(struct sim *sim, struct error *err)
{
    if (sim->setup->jobs) {
        sim->more = sim->job_next < sim->setup->job_count;
        if (sim->more)
            sim->next = sim->setup->jobs[sim->job_next++];
        return 0;
    }
    int r = workload_next(sim->workload, &sim->next, err);
    sim->more = r > 0;
    return r < 0 ? r : 0;
}

/* A factor that is right in the middle and wrong by 'sigma' (of its logarithm). */
static double error_factor(struct rng *rng, double sigma)
{
    return sigma > 0 ? exp(sigma * rng_normal(rng)) : 1;
}

/* Points are borrowed until the next job is read, and are needed until it is admitted. */
static const float *copy_points(struct sim *sim, const struct learning *curve)
{
    if (curve->point_count == 0)
        return NULL;
    float *points = arena_array(&sim->instant, float, curve->point_count);
    memcpy(points, curve->points, curve->point_count * sizeof *points);
    return points;
}

/*
 * Where rates are learned, only the cluster knows the row of the job's kind.  That it cannot
 * run on some types is told.
 */
static int hide_rates(const struct sim *sim, const char *kind, struct job *job,
                      struct sim_truth *truth, struct error *err)
{
    const struct throughput *rates = sim->setup->rates;
    struct job as = *job;
    if (kind && (truth->kind = throughput_find(rates, kind)) == KIND_NONE)
        return error_set(err, -ERANGE, "no throughput is known for kind '%.80s'", kind);
    as.kind = truth->kind;
    as.learned = 0;
    for (uint32_t t = 0; job->gpus > 0 && t < sim->setup->cluster->type_count; t++)
        if (throughput_rate(rates, &as, t, job->gpus, false) <= 0)
            job->types &= ~((uint32_t)1 << t);
    if (job->gpus == 0 || job->types)
        return 0;
    return error_set(err, -ERANGE,
                     "%.60s cannot run on %u accelerators of any type here",
                     kind ? kind : "it", job->gpus);
}

static int make_job(struct sim *sim, const struct job_spec *spec, struct job *job,
                    struct sim_truth *truth, struct error *err)
{
    int r = admission_make_job(&sim->admission, spec, job, err);
    return r < 0 || !sim->setup->learn_rates
               ? r
               : hide_rates(sim, spec->kind, job, truth, err);
}

/*
 * A job that waits for others is released by their ends, and not when that was once.  One that was
 * cancelled as they ended otherwise never is.
 */
static void hold_job(struct sim *sim, const struct job_spec *spec, struct job *job,
                     struct sim_submission *submission)
{
    if (spec->after) {
        job->state = JOB_HELD;
        if (spec->past.cancelled_by != CANCELLED_BY_DEPENDENCY)
            submission->after = arena_text(&sim->instant, spec->after);
    } else if (spec->eligible_ns > spec->submit_ns) {
        job->state = JOB_HELD;
        submission->eligible_ns = spec->eligible_ns;
    }
}

/* Submit the next job: its true work goes to the cluster, what is declared to the engine. */
static int submit_next(struct sim *sim, struct error *err)
{
    struct job_spec *spec = &sim->next; /* true, and from below as it is declared */
    struct sim_truth truth = { .steps = spec->steps,
                               .pause_ns = spec->pause_ns,
                               .load_ns = spec->load_ns,
                               .ckpt_ns = spec->ckpt_ns,
                               .fails = spec->fails,
                               .keeps_nothing = spec->keeps_nothing,
                               .unseen = spec->costs_told,
                               .kind = KIND_NONE };
    if (spec->curve.family != LEARNING_NONE) {
        struct learning *curve = arena_new(&sim->instant, struct learning);
        *curve = spec->curve;
        curve->points = copy_points(sim, &spec->curve);
        truth.curve = curve;
    }
    if (!sim->setup->declare_curves)
        spec->curve.family = LEARNING_NONE;
    if (spec->steps_declared > 0)
        spec->steps = spec->steps_declared;
    if (spec->costs_told) {
        spec->pause_ns = spec->pause_told_ns;
        spec->load_ns = spec->load_told_ns;
    }
    if (spec->step_s > 0)
        spec->kind = NULL; /* its pace was measured: no table is asked */
    double cost = error_factor(&sim->cost_rng, sim->setup->cost_error);
    double work = error_factor(&sim->estimate_rng, sim->setup->estimate_error);
    spec->steps *= work;
    spec->pause_ns = (int64_t)((double)spec->pause_ns * cost);
    spec->load_ns = (int64_t)((double)spec->load_ns * cost);
    if (spec->id == 0)
        spec->id = sim->id_next;
    if (spec->id >= sim->id_next)
        sim->id_next = spec->id + 1;

    struct job *job = arena_new(&sim->instant, struct job);
    struct event *event = outbox_add(&sim->outboxes[sim->reading]);
    event->at_ns = spec->submit_ns;
    event->job = JOB_NONE;
    event->spec = job;
    struct error why;
    if (make_job(sim, spec, job, &truth, &why) == 0) {
        event->kind = EVENT_SUBMITTED;
        struct sim_submission *submission =
            arena_new(&sim->instant, struct sim_submission);
        submission->truth = truth;
        submission->cancel_ns = spec->cancel_ns;
        hold_job(sim, spec, job, submission);
        if (sim->setup->jobs_out && spec->name)
            submission->name = arena_text(&sim->instant, spec->name);
        event->tag = submission;
        sim->coming++;
    } else {
        *job = (struct job){ .id = spec->id, .class = spec->class, .gpus = spec->gpus };
        event->kind = EVENT_REJECTED;
        if (!sim->rejection[0])
            snprintf(sim->rejection, sizeof sim->rejection, "job %llu %.280s",
                     (unsigned long long)spec->id, why.text);
    }
    return read_next(sim, err);
}

/* The workload is at its end: policies may want to know. */
static void close_workload(struct sim *sim, int64_t now_ns)
{
    struct event *event = outbox_add(&sim->outboxes[sim->reading]);
    event->at_ns = now_ns;
    event->kind = EVENT_CLOSED;
    event->job = JOB_NONE;
    sim->closed = true;
}

/* Its rate when spread over nodes, on the slowest type that it runs on. */
static double slowest_rate(const struct sim *sim, const struct job *job, uint32_t kind)
{
    double slowest = INFINITY;
    struct job as = *job;
    if (sim->setup->learn_rates) {
        as.kind = kind;
        as.learned = 0;
    }
    for (uint32_t type = 0; type < sim->setup->cluster->type_count; type++) {
        double rate = job->types >> type & 1 ? throughput_rate(sim->setup->rates, &as,
                                                               type, job->gpus, true)
                                             : 0;
        if (rate > 0 && rate < slowest)
            slowest = rate;
    }
    return fmin(slowest, sim->setup->learn_rates ? INFINITY : job->rate_best_per_s);
}

/* Tell the simulated cluster what is true of a job that was submitted. */
static void admit_job(struct sim *sim, const struct view *view,
                      const struct event *event)
{
    const struct sim_submission *submission = event->tag;
    if (sim->setup->jobs_out)
        joblog_name(&sim->joblog, event->job, submission->name);
    const struct job *job = &view->jobs[event->job];
    const struct sim_truth *truth = &submission->truth;
    double alone_s = truth->steps / slowest_rate(sim, job, truth->kind) +
                     (double)(truth->load_ns + truth->pause_ns) * 1e-9;
    if (alone_s > sim->longest_s)
        sim->longest_s = alone_s;
    sim_cluster_admit(&sim->cluster, event->job, truth);
    if (submission->cancel_ns > 0)
        changes_add(&sim->changes, submission->cancel_ns, EVENT_CANCELLED, event->job,
                    job->generation);
    if (submission->eligible_ns > 0)
        changes_add(&sim->changes, submission->eligible_ns, EVENT_RELEASED, event->job,
                    job->generation);
    if (submission->after)
        dependencies_add(&sim->dependencies, &sim->engine.state, event->job,
                         submission->after, &sim->changes);
}

/* An observer: jobs that waited for one that has ended. */
static void watch_ends(void *self, const struct view *view, const struct event *event)
{
    struct sim *sim = self;
    const struct job *job = &view->jobs[event->job];
    if (job->state == JOB_FREE)
        dependencies_end(&sim->dependencies, &sim->engine.state, job->id,
                         &sim->changes);
}

/* An observer: admit jobs, and count starts and node failures for check_ends(). */
static void watch_run(void *self, const struct view *view, const struct event *event)
{
    struct sim *sim = self;
    if (event->kind == EVENT_SUBMITTED)
        admit_job(sim, view, event);
    else
        sim->turns++;
}

/* --- the loop ------------------------------------------------------------------- */

/* All events so far in one step of the engine; then those that the step caused, and so on. */
static int step_engine(struct sim *sim, int64_t now_ns, struct error *err)
{
    uint32_t count = 0;
    do {
        struct outbox *inbox = &sim->outboxes[sim->reading];
        sim->reading ^= 1;
        sim->cluster.outbox = &sim->outboxes[sim->reading];
        int r = engine_step(&sim->engine, now_ns, inbox->events, inbox->count, err);
        inbox->count = 0;
        if (r == 0 && ++count > STEPS_AT_ONCE_MAX)
            r = error_set(err, -ELOOP, "%s swaps jobs for ever at %.9f s",
                          sim->engine.policy->name, (double)now_ns * 1e-9);
        if (r < 0)
            return r;
    } while (sim->outboxes[sim->reading].count > 0);
    sim->coming = 0;
    arena_reset(&sim->instant);
    return 0;
}

/* If all its plans are refused, a policy will not bring the run to an end. */
static int check_refusals(struct sim *sim, struct error *err)
{
    uint64_t refused = sim->engine.refused_count;
    uint64_t decided = sim->engine.decision_count;
    uint64_t accepted = decided - refused;
    if (accepted != sim->accepted) {
        sim->accepted = accepted;
        sim->refused_before = refused;
    }
    if (refused - sim->refused_before < REFUSED_MAX)
        return 0;
    return error_set(err, -EINVAL, "%s", sim->engine.refusal->text);
}

/*
 * Where nodes fail faster than jobs resume, or jobs are preempted before they make progress,
 * events go on for ever and no job ends.
 */
static int check_ends(struct sim *sim, int64_t now_ns, struct error *err)
{
    uint64_t live = sim->engine.state.live_count;
    uint64_t ended = sim->metrics.seen - live;
    if (ended != sim->ended || live == 0) {
        sim->ended = ended;
        sim->ended_ns = now_ns;
        sim->turns = 0;
    }
    if (sim->turns < STALL_TURNS)
        return 0;
    double since_s = (double)(now_ns - sim->ended_ns) * 1e-9;
    bool long_enough = since_s > STALL_TIMES * sim->longest_s * (double)live;
    if (sim->turns <
        (long_enough ? STALL_TURNS : STALL_TURNS_MAX + STALL_TURNS_OF_ONE * live))
        return 0;
    return error_set(
        err, -ELOOP,
        "no end in sight under %s: none of %llu jobs ended in %.3g days of simulated "
        "time, with %llu starts and failures of nodes; %s leave them too little time",
        sim->engine.policy->name, (unsigned long long)live, since_s / 86400,
        (unsigned long long)sim->turns,
        sim->setup->faults.mtbf_ns > 0 ? "--faults or the policy's settings"
                                       : "the policy's settings");
}

static int64_t next_node_change_ns(const struct sim *sim)
{
    const struct sim_setup *setup = sim->setup;
    return sim->node_change_next < setup->node_change_count
               ? setup->node_changes[sim->node_change_next].at_ns
               : INT64_MAX;
}

static void change_nodes(struct sim *sim, int64_t now_ns)
{
    while (next_node_change_ns(sim) <= now_ns) {
        const struct sim_node_change *change =
            &sim->setup->node_changes[sim->node_change_next++];
        if (change->kind != EVENT_FOREIGN) {
            sim_cluster_set_node(&sim->cluster, change->node,
                                 change->kind == EVENT_NODE_DOWN);
            continue;
        }
        struct event *event = outbox_add(&sim->outboxes[sim->reading]);
        event->at_ns = now_ns;
        event->kind = EVENT_FOREIGN;
        event->job = JOB_NONE;
        event->node = change->node;
        event->gpus = change->gpus;
    }
}

static int64_t next_policy_change_ns(const struct sim *sim)
{
    const struct sim_setup *setup = sim->setup;
    return sim->policy_change_next < setup->policy_change_count
               ? setup->policy_changes[sim->policy_change_next].at_ns
               : INT64_MAX;
}

static int change_policy(struct sim *sim, int64_t now_ns, struct error *err)
{
    const struct policy *policy;
    const char *settings;
    int r = 0;
    while (r == 0 && next_policy_change_ns(sim) <= now_ns) {
        r = policy_parse(sim->setup->policy_changes[sim->policy_change_next++].policy,
                         &policy, &settings, err);
        if (r == 0)
            r = engine_set_policy(&sim->engine, policy, settings, err);
    }
    return r;
}

static int64_t find_next_time(struct sim *sim)
{
    int64_t at_ns = engine_wake_ns(&sim->engine);
    if (sim->more && sim->next.submit_ns < at_ns)
        at_ns = sim->next.submit_ns;
    if (changes_next_ns(&sim->changes) < at_ns)
        at_ns = changes_next_ns(&sim->changes);
    if (next_node_change_ns(sim) < at_ns)
        at_ns = next_node_change_ns(sim);
    if (next_policy_change_ns(sim) < at_ns)
        at_ns = next_policy_change_ns(sim);
    sim_cluster_communicate(&sim->cluster, at_ns);
    int64_t next_ns = sim_cluster_next_ns(&sim->cluster);
    return next_ns < at_ns ? next_ns : at_ns;
}

static bool is_over(const struct sim *sim)
{
    if (sim->setup->window_to > 0 && sim->metrics.window_left == 0)
        return true;
    if (sim->more)
        return false;
    if (sim->engine.state.live_count == 0)
        return true;
    return sim_cluster_is_quiet(&sim->cluster) && sim->changes.count == 0 &&
           next_node_change_ns(sim) == INT64_MAX &&
           next_policy_change_ns(sim) == INT64_MAX &&
           sim->engine.wake_ns == INT64_MAX && sim->engine.calendar_ns == INT64_MAX;
}

/* How many jobs there will be; 0: not known. */
static uint64_t expected_jobs(const struct sim *sim)
{
    return sim->setup->jobs ? sim->setup->job_count
                            : workload_facts(sim->workload)->expected;
}

static void show_progress(const struct sim *sim, uint64_t turn)
{
    if (sim->setup->progress && turn % PROGRESS_EVERY == 0)
        sim->setup->progress(sim->setup->context,
                             sim->metrics.seen - sim->engine.state.live_count,
                             expected_jobs(sim));
}

static int run_loop(struct sim *sim, struct error *err)
{
    int64_t last_ns = 0;
    uint32_t idle_wakes = 0;
    for (uint64_t turn = 0; !is_over(sim); turn++) {
        int64_t now_ns = find_next_time(sim);
        assert(now_ns < INT64_MAX);
        if (now_ns < last_ns)
            now_ns = last_ns; /* the policy asked for a time that has passed */
        last_ns = now_ns;
        sim_cluster_advance(&sim->cluster, now_ns);
        change_nodes(sim, now_ns);
        int changed = change_policy(sim, now_ns, err);
        if (changed < 0)
            return changed;
        changes_take(&sim->changes, &sim->engine.state.view, now_ns,
                     &sim->outboxes[sim->reading]);
        while (sim->more && sim->next.submit_ns <= now_ns) {
            if (sim->engine.state.live_count + sim->coming >= JOBS_LIVE_MAX)
                return error_set(err, -ERANGE, "more than %u jobs are waiting at once",
                                 JOBS_LIVE_MAX);
            int r = submit_next(sim, err);
            if (r < 0)
                return r;
        }
        if (!sim->more && !sim->closed)
            close_workload(sim, now_ns);
        bool idle = !sim->more && sim->outboxes[sim->reading].count == 0 &&
                    sim_cluster_is_quiet(&sim->cluster);
        idle_wakes = idle ? idle_wakes + 1 : 0;
        if (idle_wakes > IDLE_WAKES_MAX)
            break;
        int r = step_engine(sim, now_ns, err);
        if (r == 0 && sim->setup->stepped)
            sim->setup->stepped(sim->setup->stepped_context, &sim->engine);
        if (r == 0)
            r = check_refusals(sim, err);
        if (r == 0)
            r = check_ends(sim, now_ns, err);
        if (r < 0)
            return r;
        show_progress(sim, turn);
    }
    return 0;
}

/* --- the calendar ----------------------------------------------------------------- */

enum calendar_column { COLUMN_NODES, COLUMN_GPUS, COLUMN_FROM, COLUMN_TO, COLUMN_USER };
static const char *const calendar_columns[] = { "nodes", "gpus", "from", "to", "user" };
#define CALENDAR_COLUMNS 5

/* "0|2": these GPUs of a node; empty: the whole node.  False if it has no such GPU. */
static bool read_gpus(const char *text, uint32_t gpu_count, uint64_t *ret_gpus)
{
    *ret_gpus = gpu_count == 64 ? ~(uint64_t)0 : ((uint64_t)1 << gpu_count) - 1;
    if (!text)
        return true;
    for (*ret_gpus = 0;; text++) {
        char *end;
        unsigned long gpu = strtoul(text, &end, 10);
        if (end == text || gpu >= gpu_count || (*end && *end != '|'))
            return false;
        *ret_gpus |= (uint64_t)1 << gpu;
        text = end;
        if (!*text)
            return true;
    }
}

/* One line: an event for each of its nodes, before all others. */
static int add_entries(struct sim *sim, const struct table *table, const uint32_t *at,
                       uint64_t *id_last, struct error *err)
{
    const char *nodes;
    const char *gpus;
    const char *user;
    struct calendar_entry entry = { 0 };
    const struct bits *named;
    int r = table_text(table, at[COLUMN_NODES], &nodes, err);
    if (r == 0)
        r = table_text(table, at[COLUMN_GPUS], &gpus, err);
    if (r == 0)
        r = table_text(table, at[COLUMN_USER], &user, err);
    if (r == 0)
        r = table_time(table, at[COLUMN_FROM], 1000000000, &entry.from_ns, err);
    if (r == 0)
        r = table_time(table, at[COLUMN_TO], 1000000000, &entry.to_ns, err);
    if (r == 0 && entry.to_ns <= entry.from_ns)
        r = table_wrong(table, at[COLUMN_TO], "a time after 'from'", err);
    if (r == 0 && !nodes)
        r = table_wrong(table, at[COLUMN_NODES], "names of nodes", err);
    if (r == 0)
        r = node_sets_named(&sim->admission.sets, nodes, &named, err);
    if (r < 0)
        return r;
    entry.user = admission_user(&sim->admission, user);
    snprintf(entry.owner, sizeof entry.owner, "%s", user ? user : "");
    for (node_id node = bits_next(named, 0); node != BITS_NONE;
         node = bits_next(named, node + 1)) {
        if (!read_gpus(gpus, sim->setup->cluster->nodes[node].gpu_count, &entry.gpus))
            return table_wrong(table, at[COLUMN_GPUS],
                               "numbers of the node's GPUs such as 0|2, or nothing",
                               err);
        struct calendar_entry *kept = arena_new(&sim->run, struct calendar_entry);
        entry.id = ++*id_last;
        entry.node = node;
        *kept = entry;
        struct event *event = outbox_add(&sim->outboxes[sim->reading]);
        event->kind = EVENT_RESERVED;
        event->job = JOB_NONE;
        event->entry = kept;
    }
    return 0;
}

static int read_calendar(struct sim *sim, struct error *err)
{
    struct reader reader;
    struct table table;
    uint32_t at[CALENDAR_COLUMNS];
    uint64_t id_last = 0;
    if (!sim->setup->calendar)
        return 0;
    int r = reader_open(&reader, sim->setup->calendar, err);
    if (r < 0)
        return r;
    table_init(&table, &reader, ',', true);
    r = table_columns(&table, calendar_columns, CALENDAR_COLUMNS, at, err);
    while (r >= 0 && (r = table_row(&table, err)) == 1)
        r = add_entries(sim, &table, at, &id_last, err);
    table_release(&table);
    reader_release(&reader);
    return r;
}

/* --- setting up and closing -------------------------------------------------------- */

static int set_up(struct sim *sim, struct error *err)
{
    const struct sim_setup *setup = sim->setup;
    const struct policy *policy;
    const char *settings;
    const struct flow_policy *flow = NULL;
    const char *flow_settings = NULL;
    int r = policy_parse(setup->policy, &policy, &settings, err);
    if (r == 0 && setup->flow)
        r = flow_parse(setup->flow, &flow, &flow_settings, err);
    if (r < 0)
        return r;
    if (!setup->jobs)
        r = workload_open(&sim->workload, setup->workload, setup->format, setup->seed,
                          setup->cluster->gpu_count, err);
    if (r < 0)
        return r;
    if (sim->workload && setup->window_to > 0)
        workload_go_on(sim->workload);
    admission_init(&sim->admission, setup->cluster, setup->rates);
    throughput_init(&sim->told, setup->cluster);
    uint64_t expected = expected_jobs(sim);
    struct engine_setup engine_setup = {
        .cluster = setup->cluster,
        .rates = setup->learn_rates ? &sim->told : setup->rates,
        .learns = setup->learn_rates,
        .policy = policy,
        .settings = settings,
        .flow = flow,
        .flow_settings = flow_settings,
        .executor = &executor_sim,
        .executor_self = &sim->cluster,
        .job_max = expected > 0 && expected < JOBS_LIVE_MAX ? (uint32_t)expected
                                                            : JOBS_LIVE_MAX,
        .seed = setup->seed,
    };
    r = engine_init(&sim->engine, &sim->run, &engine_setup, err);
    if (r < 0)
        return r;
    sim->engine.clock_ns = clock_now_ns;
    sim->engine.timed_every = setup->times_all ? 1 : TIMED_EVERY;
    const struct view *view = &sim->engine.state.view;
    sim_cluster_init(&sim->cluster, &sim->run, view, &sim->outboxes[0], &setup->faults,
                     setup->seed);
    sim->cluster.network = setup->network;
    if (setup->learn_rates) {
        sim->cluster.hidden = setup->rates;
        admission_learn(&sim->admission, view->rates, &sim->engine.state.rates);
    }
    metrics_init(&sim->metrics, &sim->run, view, setup->window_from,
                 setup->window_to ? setup->window_to : UINT64_MAX);
    engine_add_observer(&sim->engine,
                        (struct engine_observer){ .event = watch_run,
                                                  .self = sim,
                                                  .kinds = 1u << EVENT_SUBMITTED |
                                                           1u << EVENT_STARTED |
                                                           1u << EVENT_NODE_DOWN });
    engine_add_observer(&sim->engine,
                        (struct engine_observer){
                            .event = watch_ends,
                            .self = sim,
                            .kinds = 1u << EVENT_FINISHED | 1u << EVENT_FAILED |
                                     1u << EVENT_STOPPED | 1u << EVENT_LOST |
                                     1u << EVENT_CANCELLED | 1u << EVENT_DROPPED });
    engine_add_observer(
        &sim->engine,
        (struct engine_observer){ .event = metrics_event, .self = &sim->metrics });
    ledger_init(&sim->ledger, &sim->run, view, setup->ledger_out);
    engine_add_observer(&sim->engine, (struct engine_observer){ .event = ledger_event,
                                                                .self = &sim->ledger });
    quality_init(&sim->quality, &sim->run, view, setup->window_from,
                 setup->window_to ? setup->window_to : UINT64_MAX);
    engine_add_observer(&sim->engine,
                        (struct engine_observer){ .event = quality_event,
                                                  .self = &sim->quality,
                                                  .kinds = QUALITY_KINDS });
    engine_add_observer(&sim->engine,
                        (struct engine_observer){ .event = sim_cluster_event,
                                                  .self = &sim->cluster,
                                                  .kinds = SIM_CLUSTER_KINDS });
    if (setup->jobs_out) {
        joblog_begin(&sim->joblog, setup->jobs_out);
        engine_add_observer(
            &sim->engine,
            (struct engine_observer){ .event = joblog_event, .self = &sim->joblog });
    }
    if (setup->trace_out || setup->chart) {
        timeline_init(&sim->timeline, &sim->run, view, setup->trace_out, setup->chart);
        engine_add_observer(&sim->engine,
                            (struct engine_observer){ .event = timeline_event,
                                                      .self = &sim->timeline });
        if (setup->chart) {
            sim->ledger.pairs.observe = timeline_add_pair;
            sim->ledger.pairs.context = &sim->timeline;
        }
    }
    if (setup->observer.event)
        engine_add_observer(&sim->engine, setup->observer);
    rng_init(&sim->cost_rng, setup->seed, "cost error");
    rng_init(&sim->estimate_rng, setup->seed, "estimate error");
    sim->id_next = 1;
    r = read_calendar(sim, err);
    return r < 0 ? r : read_next(sim, err);
}

static void fill_result(struct sim *sim, struct sim_result *result)
{
    const struct sim_setup *setup = sim->setup;
    const struct view *view = &sim->engine.state.view;
    metrics_end(&sim->metrics, view);
    ledger_end(&sim->ledger, view, sim->engine.state.job_count);
    summary_make(&result->summary, &sim->metrics, &sim->ledger, &sim->quality,
                 setup->cluster);
    const struct fluid *fluid = sim->cluster.fluid;
    if (fluid)
        result->network = (struct sim_network){ .mode = fluid_mode_name(fluid),
                                                .changes = fluid->change_count,
                                                .levels = sim->engine.level_count,
                                                .jobs = fluid->job_most };
    if (setup->jobs_out)
        joblog_end(&sim->joblog, view, sim->engine.state.job_count);
    if (setup->trace_out || setup->chart)
        timeline_end(&sim->timeline, view->now_ns);
    if (setup->chart) {
        size_t bytes = sim->timeline.bar_count * sizeof *result->chart;
        result->chart = memory_checked(malloc(bytes + 1));
        memcpy(result->chart, sim->timeline.bars, bytes);
        result->chart_count = sim->timeline.bar_count;
        result->chart_full = sim->timeline.is_full;
        bytes = sim->timeline.pair_count * sizeof *result->pairs;
        result->pairs = memory_checked(malloc(bytes + 1));
        memcpy(result->pairs, sim->timeline.pairs, bytes);
        result->pair_count = sim->timeline.pair_count;
    }
    const struct histogram *decide_ns = &sim->engine.decide_ns;
    struct sim_cost *cost = &result->cost;
    cost->event_count = sim->engine.event_count;
    cost->decision_count = sim->engine.decision_count;
    cost->refused_count = sim->engine.refused_count;
    memcpy(cost->rejection, sim->rejection, sizeof cost->rejection);
    memcpy(cost->refusal, sim->engine.refusal->text, sizeof cost->refusal);
    cost->job_count = sim->metrics.seen;
    cost->skipped = sim->workload ? workload_facts(sim->workload)->skipped : 0;
    cost->decide_us_p50 = (double)histogram_quantile(decide_ns, 0.50) * 1e-3;
    cost->decide_us_p99 = (double)histogram_quantile(decide_ns, 0.99) * 1e-3;
    cost->decide_us_max = (double)decide_ns->max * 1e-3;
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    cost->peak_rss_bytes = (uint64_t)usage.ru_maxrss * 1024;
}

int sim_run(const struct sim_setup *setup, struct sim_result *ret_result,
            struct error *err)
{
    int64_t begin_ns = clock_now_ns();
    struct sim *sim = memory_checked(calloc(1, sizeof *sim));
    sim->setup = setup;
    arena_init(&sim->run, 0);
    arena_init(&sim->instant, 0);
    *ret_result = (struct sim_result){ 0 };

    int r = set_up(sim, err);
    if (r == 0)
        r = run_loop(sim, err);
    if (r == 0 && setup->window_to > 0 && sim->metrics.seen <= setup->window_from)
        r = error_set(err, -EINVAL,
                      "no job is in the window %llu:%llu, as there are only %llu",
                      (unsigned long long)setup->window_from,
                      (unsigned long long)setup->window_to,
                      (unsigned long long)sim->metrics.seen);
    if (r == 0)
        fill_result(sim, ret_result);
    ret_result->cost.wall_s = (double)(clock_now_ns() - begin_ns) * 1e-9;

    if (sim->engine.policy)
        engine_release(&sim->engine);
    if (sim->admission.cluster)
        admission_release(&sim->admission);
    if (sim->workload)
        workload_close(sim->workload);
    sim_cluster_release(&sim->cluster);
    metrics_release(&sim->metrics);
    ledger_release(&sim->ledger);
    quality_release(&sim->quality);
    timeline_release(&sim->timeline);
    changes_release(&sim->changes);
    dependencies_release(&sim->dependencies);
    outbox_release(&sim->outboxes[0]);
    outbox_release(&sim->outboxes[1]);
    joblog_release(&sim->joblog);
    arena_release(&sim->instant);
    arena_release(&sim->run);
    free(sim);
    return r;
}

void sim_result_release(struct sim_result *result)
{
    free(result->chart);
    free(result->pairs);
    result->chart = NULL;
    result->pairs = NULL;
}
