/*
 * local.c - jobs as processes on this machine: orders, events, and attempts from start to
 * end.
 *
 * Every attempt is a struct local_run, from the order to start it until its end is
 * durable in the log.  Orders become messages to its supervisor, and the supervisor's
 * reports become events.  A live process cannot be frozen between two rounds, so a job
 * with a lease that is over keeps computing on its GPUs until the lease is renewed or
 * the job is stopped.
 */
#include "executor/local/local.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "base/grow.h"
#include "base/memory.h"
#include "base/units.h"
#include "executor/local/local_internal.h"
#include "host/launcher_client.h"
#include "model/cluster.h"
#include "model/launch.h"
#include "model/outbox.h"

#define MS INT64_C(1000000)
#define CANCEL_GRACE_NS (5 * NS_PER_S)
#define START_AGAIN_NS (1 * NS_PER_S)
#define CONNECT_NS (20 * MS)
#define CONNECT_TRIES 250
#define CLEAR_NS (20 * MS)
#define REAP_NS (100 * MS)
#define LEFT_NS (5 * NS_PER_S)      /* then what a killed supervisor left is removed */
#define LOAD_MAX_NS (10 * NS_PER_S) /* then it is assumed to make steps */
#define IGNORED_NS (10 * NS_PER_S)  /* then an end that the engine ignored is dropped */
#define LIMIT_GRACE_NS (30 * NS_PER_S) /* longest grace period after a time limit */
#define DEADLINE_NS \
    (3 * NS_PER_S) /* for a supervisor to do what it was told, and again */

static int64_t local_now(const struct local *local)
{
    return local->setup.now_ns(local->setup.context);
}

/* --- timers ----------------------------------------------------------------------- */

static void handle_timer(uv_timer_t *timer);

static void set_timer(struct local *local, int64_t at_ns)
{
    if (at_ns >= local->timer_ns || local->closing)
        return;
    local->timer_ns = at_ns;
    int64_t left_ns = at_ns - local_now(local);
    uint64_t left_ms = left_ns <= 0 ? 0 : (uint64_t)(left_ns / MS + 1);
    uv_update_time(local->setup.loop);
    uv_timer_start(&local->timer, handle_timer, left_ms, 0);
}

/* Have the attempt examined at this time, or at its deadline; INT64_MAX: never. */
static void local_set_due(struct local_run *run, int64_t at_ns)
{
    run->due_ns = at_ns < run->deadline_ns ? at_ns : run->deadline_ns;
    if (run->due_ns < INT64_MAX)
        set_timer(run->local, run->due_ns);
}

/* berthd ends the attempt itself if it is still there by then. */
static void set_deadline(struct local_run *run, int64_t at_ns)
{
    if (at_ns >= run->deadline_ns)
        return;
    run->deadline_ns = at_ns;
    local_set_due(run, run->due_ns);
}

/* --- attempts ---------------------------------------------------------------------- */

/* The attempt that holds the job's GPUs, or NULL. */
static struct local_run *local_active_run(const struct local *local, job_id job)
{
    struct local_run *run = job == JOB_NONE ? NULL : local->slots[job];
    while (run && (run->phase == LOCAL_WAITING || run->phase >= LOCAL_ENDED))
        run = run->same_slot;
    return run;
}

static void copy_predecessors(struct local_run *run, const struct lease *lease)
{
    if (lease->after_count == 0)
        return;
    run->after = memory_checked(calloc(lease->after_count, sizeof *run->after));
    memcpy(run->after, lease->after, lease->after_count * sizeof *run->after);
    run->after_count = lease->after_count;
}

/* Remove predecessors that have left already. */
static void drop_departed(struct local_run *run)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < run->after_count; i++) {
        struct local_run *other = run->local->slots[run->after[i]];
        bool itself =
            run->after[i] == run->job; /* it waits until its own end is recorded */
        while (other && (other == run || (!itself && other->phase >= LOCAL_ENDED)))
            other = other->same_slot;
        if (other)
            run->after[kept++] = run->after[i];
    }
    run->after_count = kept;
}

static void add_to_list(char *list, uint32_t number)
{
    size_t used = strlen(list);
    snprintf(list + used, GPU_TEXT_MAX - used, "%s%" PRIu32, used ? "," : "", number);
}

static void describe_gpus(struct local_run *run, const struct lease *lease)
{
    const struct local_setup *setup = &run->local->setup;
    const struct seat *end = lease->seats + lease->seat_count;
    for (const struct seat *seat = lease->seats; seat < end; seat++) {
        run->cpu_milli += seat->cpu_milli;
        run->mem_mib += seat->mem_mib;
        run->gpu_count += seat_gpu_count(seat);
        for (uint64_t left = seat->gpus; left; left &= left - 1) {
            uint32_t bit = (uint32_t)__builtin_ctzll(left);
            uint32_t at = seat->node * NODE_GPUS_MAX + bit;
            add_to_list(run->gpus, setup->gpu_index ? setup->gpu_index[at] : bit);
            if (setup->gpu_core && setup->gpu_core[at] >= 0)
                add_to_list(run->cores, (uint32_t)setup->gpu_core[at]);
        }
    }
}

static struct local_run *add_run(struct local *local, const struct lease *lease)
{
    const struct job *job = &local->setup.view->jobs[lease->job];
    struct local_run *run = memory_checked(calloc(1, sizeof *run));
    run->local = local;
    run->job = lease->job;
    run->generation = lease->generation;
    run->attempt = lease->attempt;
    run->id = job->id;
    run->type = lease->type;
    run->steps = run->saved = run->steps_kept = job->steps;
    run->loss = NAN;
    run->beside = lease->beside;
    run->together = lease->together;
    run->leased = lease->steps_max > 0;
    run->lease_end = run->steps_kept + (double)lease->steps_max;
    run->due_ns = run->deadline_ns = INT64_MAX;
    run->fd = -1;
    describe_gpus(run, lease);
    copy_predecessors(run, lease);
    struct local_run *partner = local_active_run(local, lease->beside);
    if (partner)
        partner->beside = lease->job;

    run->next = local->runs;
    if (run->next)
        run->next->prev = run;
    local->runs = run;
    run->same_slot = local->slots[lease->job];
    local->slots[lease->job] = run;
    local->count++;
    return run;
}

static struct local_run *find_run(const struct local *local, job_id job,
                                  uint32_t generation, uint32_t attempt)
{
    struct local_run *run = local->slots[job];
    while (run && (run->generation != generation || run->attempt != attempt))
        run = run->same_slot;
    return run;
}

static void forget_run(struct local_run *run)
{
    struct local *local = run->local;
    struct local_run **link = &local->slots[run->job];
    while (*link != run)
        link = &(*link)->same_slot;
    *link = run->same_slot;
    if (run->prev)
        run->prev->next = run->next;
    else
        local->runs = run->next;
    if (run->next)
        run->next->prev = run->prev;
    local->count--;
    local_link_close(run);
    free(run->after);
    run->local = NULL;
    if (!run->polled)
        free(run); /* otherwise freed when the loop has closed the handle */
}

/* --- events -------------------------------------------------------------------------- */

static struct event *emit_event(struct local_run *run, enum event_kind kind)
{
    const struct local_setup *setup = &run->local->setup;
    struct event *event = outbox_add(*setup->outbox);
    event->at_ns = local_now(run->local);
    event->kind = kind;
    event->job = run->job;
    event->generation = run->generation;
    event->attempt = run->attempt;
    event->loss = NAN;
    if (setup->wake)
        setup->wake(setup->context);
    return event;
}

/* Steps reached: as reported, or the seconds it has run. */
static double local_steps_now(const struct local_run *run)
{
    if (run->own_steps || !run->started)
        return run->steps;
    return run->steps_kept + (double)(local_now(run->local) - run->started_ns) * 1e-9;
}

static void local_report_loaded(struct local_run *run)
{
    if (run->loaded)
        return;
    run->loaded = true;
    emit_event(run, EVENT_LOADED);
}

/* The partner on the same GPUs, if both leases have to end together and its has not. */
static struct local_run *partner_to_wait_for(const struct local_run *run)
{
    struct local_run *partner =
        run->together ? local_active_run(run->local, run->beside) : NULL;
    bool waits =
        partner && partner->together && partner->leased && !partner->lease_done;
    return waits ? partner : NULL;
}

static void report_lease_done(struct local_run *run)
{
    if (!run->leased || !run->lease_done || partner_to_wait_for(run))
        return;
    run->leased = false;
    local_report_loaded(run);
    struct event *event = emit_event(run, EVENT_LEASE_DONE);
    event->steps = event->steps_reached = local_steps_now(run);
    event->rate_per_s = run->own_steps ? run->rate_per_s : 1;
}

static void local_check_lease(struct local_run *run)
{
    if (!run->leased || run->lease_done || local_steps_now(run) < run->lease_end)
        return;
    struct local_run *partner = local_active_run(run->local, run->beside);
    run->lease_done = true;
    report_lease_done(run);
    if (partner)
        report_lease_done(partner);
}

static void local_schedule_check(struct local_run *run)
{
    int64_t at_ns = run->loaded ? INT64_MAX : run->loaded_at_ns;
    if (run->leased && !run->lease_done && !run->own_steps) {
        int64_t end_ns =
            run->started_ns + (int64_t)((run->lease_end - run->steps_kept) * 1e9);
        at_ns = end_ns < at_ns ? end_ns : at_ns;
    }
    local_set_due(run, at_ns);
}

/* The supervisor ends the job at its time limit; this is for one that does not. */
static void set_limit_deadline(struct local_run *run)
{
    const struct job *job = &run->local->setup.view->jobs[run->job];
    int64_t grace_ns = job->grace_ns < LIMIT_GRACE_NS ? job->grace_ns : LIMIT_GRACE_NS;
    if (run->limit_ns > 0)
        set_deadline(run, run->started_ns + run->limit_ns + grace_ns + DEADLINE_NS);
}

/*
 * A job that reports nothing counts as loaded after its declared load time, or at
 * once.
 */
static void local_handle_started(struct local_run *run, double ago_s)
{
    if (run->phase > LOCAL_RUNNING)
        return;
    run->phase = LOCAL_RUNNING;
    run->tries = 0;
    if (run->started)
        return;
    int64_t load_ns = run->local->setup.view->jobs[run->job].load_ns;
    if (load_ns == 0 && run->expects_reports)
        load_ns = LOAD_MAX_NS;
    run->started = true;
    run->started_ns = local_now(run->local) - (int64_t)(ago_s * 1e9);
    run->loaded = load_ns == 0;
    run->loaded_at_ns =
        run->started_ns + (load_ns < LOAD_MAX_NS ? load_ns : LOAD_MAX_NS);
    emit_event(run, EVENT_STARTED)->loaded = run->loaded;
    if (!run->stopping && !run->cancelled)
        run->deadline_ns = INT64_MAX; /* that of its start */
    set_limit_deadline(run);
    local_schedule_check(run);
}

static void handle_report(struct local_run *run, char *rest)
{
    struct run_report report;
    if (!run_report_read(&report, rest))
        return;
    run->steps = report.step;
    run->rate_per_s = report.rate_per_s;
    run->loss = report.loss;
    if (run->phase != LOCAL_RUNNING)
        return;
    local_report_loaded(run);
    struct event *event = emit_event(run, EVENT_PROGRESS);
    event->steps = event->steps_reached = run->steps;
    event->rate_per_s = run->own_steps ? run->rate_per_s : 1;
    event->measured = run->own_steps;
    event->age_ns = report.age_s < 3600 ? (int64_t)(report.age_s * 1e9) : 0;
    run->reported = true;
    event->steps_saved = run->saved > run->steps_kept ? run->saved : 0;
    event->loss = run->loss;
    local_check_lease(run);
    local_schedule_check(run);
}

static struct event *local_report_end(struct local_run *run, enum event_kind kind)
{
    struct event *event = emit_event(run, kind);
    event->steps = run->saved;
    event->steps_reached = run->steps;
    event->rate_per_s = run->own_steps ? run->rate_per_s : 0;
    event->loss = run->loss;
    event->why = run->why[0] ? run->why : NULL;
    struct local_run *partner = local_active_run(run->local, run->beside);
    run->phase = LOCAL_ENDED;
    run->deadline_ns = INT64_MAX;
    local_set_due(run, local_now(run->local) + IGNORED_NS);
    if (partner)
        report_lease_done(partner);
    return event;
}

/* --- the end of an attempt -------------------------------------------------------- */

static void start_attempt(struct local_run *run);
static void report_lost_later(struct local_run *run, const char *why);

/* The job has left its GPUs: start attempts that waited for it alone. */
static void start_successors(struct local *local, job_id job)
{
    struct local_run *next;
    if (local_active_run(local, job))
        return; /* the end was of a later attempt, which had no GPUs yet */
    for (struct local_run *run = local->runs; run; run = next) {
        next = run->next;
        if (run->phase != LOCAL_WAITING)
            continue;
        uint32_t kept = 0;
        for (uint32_t i = 0; i < run->after_count; i++)
            if (run->after[i] != job || run->job == job)
                run->after[kept++] = run->after[i];
        bool was_last = kept == 0 && run->after_count > 0;
        run->after_count = kept;
        if (was_last)
            start_attempt(run);
    }
}

static void report_lost(struct local_run *run, const char *why)
{
    snprintf(run->why, sizeof run->why, "%s", why);
    local_report_end(run, EVENT_LOST);
    start_successors(run->local, run->job);
}

static void local_handle_end(struct local_run *run, const struct run_end *end)
{
    static const enum event_kind kinds[RUN_HOW_COUNT] = {
        [RUN_FINISHED] = EVENT_FINISHED,
        [RUN_STOPPED] = EVENT_STOPPED,
        [RUN_FAILED] = EVENT_FAILED,
        [RUN_CANCELLED] = EVENT_FAILED,
    };
    if (run->phase >= LOCAL_ENDED)
        return;
    local_handle_started(run, 0);
    run->steps = end->steps;
    run->saved = end->saved;
    if (run->own_steps && !run->reported)
        local_guess_steps(run, end);
    snprintf(run->why, sizeof run->why, "%s", end->why);
    struct event *event = local_report_end(run, kinds[end->how]);
    event->exit_code = end->code;
    event->clean = end->clean;
    start_successors(run->local, run->job);
}

/* --- reports of a supervisor --------------------------------------------------------- */

bool local_handle_message(void *context, char *line)
{
    struct local_run *run = context;
    struct run_end end;
    double number;
    if (run_end_read(&end, line)) {
        run->said_end = true;
        local_handle_end(run, &end);
        return true;
    }
    char *rest = line;
    const char *word = run_word(&rest);
    if (!word)
        return true;
    if (strcmp(word, "refused") == 0) {
        report_lost_later(run, rest);
    } else if (strcmp(word, "started") == 0) {
        double ago_s = 0;
        run_word(&rest); /* its process id, for people */
        run_number(run_word(&rest), &ago_s);
        if (run_number(run_word(&rest), &number))
            run->steps_kept = number;
        local_handle_started(run, ago_s);
    } else if (strcmp(word, "report") == 0) {
        handle_report(run, rest);
    } else if (strcmp(word, "saved") == 0 && run_number(run_word(&rest), &number)) {
        run->saved = number;
    } else if (strcmp(word, "total") == 0 && run_number(run_word(&rest), &number)) {
        run->own_steps = true;
        const struct local_setup *setup = &run->local->setup;
        if (setup->total)
            setup->total(setup->context, run->job, number);
    }
    return true;
}

void local_handle_lost_link(struct local_run *run)
{
    local_link_close(run);
    if (run->phase == LOCAL_STARTING || run->phase == LOCAL_RUNNING)
        local_set_due(run, local_now(run->local)); /* not one that was refused */
}

/* --- finding a supervisor --------------------------------------------------------- */

/* Report a failed start only later, so that it is not repeated in a tight loop. */
static void report_lost_later(struct local_run *run, const char *why)
{
    run->phase = LOCAL_WAITING; /* until the report is due */
    snprintf(run->why, sizeof run->why, "%.*s", RUN_WHY_MAX - 1, why);
    local_set_due(run, local_now(run->local) + START_AGAIN_NS);
}

/* The job was told to end, and no supervisor is left to say how it did. */
static void report_ended_for(struct local_run *run)
{
    struct run_end end = { .how = run->cancelled  ? RUN_CANCELLED
                                  : run->stopping ? RUN_STOPPED
                                                  : RUN_FAILED,
                           .code = 128 + SIGKILL,
                           .signal = SIGKILL,
                           .steps = run->steps,
                           .saved = run->saved };
    snprintf(end.why, sizeof end.why, "%s",
             run->cancelled  ? "cancelled"
             : run->stopping ? "did not stop in time"
                             : "time limit");
    local_handle_end(run, &end);
}

static void finish_clearing(struct local_run *run)
{
    if (!local_kill_attempt(run))
        local_set_due(run, local_now(run->local) + CLEAR_NS);
    else if (run->started && (run->killed || run->cancelled))
        report_ended_for(run);
    else if (run->started || run->cancelled)
        report_lost(run, run->cancelled ? "cancelled" : "its supervisor was killed");
    else
        report_lost_later(run, "its supervisor is not there");
}

/* The supervisor is gone: read from its status file how the job ended, or clean up. */
static void handle_dead_supervisor(struct local_run *run)
{
    struct run_end end;
    if (local_read_status(run, &end)) {
        local_handle_end(run, &end);
        return;
    }
    run->phase = LOCAL_CLEARING;
    finish_clearing(run);
}

/*
 * The supervisor has not ended the job: it was stopped, or something keeps it.  Kill the
 * job's processes, so that it can report the end; if it does not, kill it too.
 */
static void enforce_deadline(struct local_run *run)
{
    bool again = run->killed;
    run->killed = true;
    run->deadline_ns = again ? INT64_MAX : local_now(run->local) + DEADLINE_NS;
    local_kill_job(run);
    if (!again) {
        local_set_due(run, run->deadline_ns);
        return;
    }
    local_link_close(run);
    run->phase = LOCAL_CLEARING;
    finish_clearing(run);
}

static void repeat_order(struct local_run *run)
{
    if (run->cancelled)
        local_send(run, "cancel %" PRId64 "\n", run->grace_ns / MS);
    else if (run->stopping)
        local_send(run, "stop %" PRId64 "\n", run->grace_ns / MS);
}

static void find_supervisor(struct local_run *run)
{
    bool alive;
    if (local_link_connect(run)) {
        local_set_due(run, INT64_MAX);
        repeat_order(run);
        return;
    }
    bool begun = local_was_claimed(run, &alive);
    if (begun && !alive && !run->polled) {
        handle_dead_supervisor(run);
        return;
    }
    if (run->tries++ == CONNECT_TRIES || (!begun && !run->polled)) {
        run->phase = LOCAL_CLEARING;
        finish_clearing(run);
        return;
    }
    local_set_due(run, local_now(run->local) + CONNECT_NS);
}

/* --- starting --------------------------------------------------------------------- */

static void start_attempt(struct local_run *run)
{
    struct error err;
    run->phase = LOCAL_STARTING;
    run->reattached = false;
    int r = local_start_supervisor(run, &err);
    if (r == 0) { /* a start that does not come to an end is under the limit as well */
        run->started_ns = local_now(run->local);
        set_limit_deadline(run);
        return;
    }
    if (r == -EEXIST) { /* started by an earlier berthd */
        find_supervisor(run);
        return;
    }
    if (r == -EAGAIN || r == -ENOMEM || r == -EMFILE || r == -ENFILE || r == -ENOSPC) {
        run->phase = LOCAL_WAITING; /* no room for a process or its files just now */
        local_set_due(run, local_now(run->local) + START_AGAIN_NS);
        return;
    }
    report_lost_later(run, err.text);
}

/* --- orders ------------------------------------------------------------------------------ */

static int local_start(void *self, const struct lease *lease, struct error *err)
{
    struct local *local = self;
    if (find_run(local, lease->job, lease->generation, lease->attempt))
        return 0; /* ordered twice */
    struct local_run *run = add_run(local, lease);
    drop_departed(run);
    if (run->after_count == 0)
        start_attempt(run);
    return 0;
}

static int local_stop(void *self, job_id job, int64_t grace_ns, struct error *err)
{
    struct local *local = self;
    struct local_run *run = local_active_run(local, job);
    if (!run)
        return 0; /* it has left already, and its event is on its way */
    run->stopping = true;
    run->grace_ns = grace_ns;
    local_send(run, "stop %" PRId64 "\n", grace_ns / MS);
    set_deadline(run, local_now(local) + grace_ns + DEADLINE_NS);
    return 0;
}

/* An earlier berthd may have started it, without having recorded that. */
static struct local_run *examine_reattached(struct local_run *run)
{
    run->reattached = false;
    run->phase = LOCAL_STARTING;
    local_set_due(run, local_now(run->local));
    return run;
}

/* Attempts that have not started end at once. */
static int local_cancel(void *self, job_id job, struct error *err)
{
    struct local *local = self;
    struct local_run *run = local_active_run(local, job), *next;
    for (struct local_run *waits = local->slots[job]; waits; waits = next) {
        next = waits->same_slot;
        if (waits->phase != LOCAL_WAITING)
            continue;
        if (run)
            forget_run(
                waits); /* it holds no GPUs yet: the running attempt reports the end */
        else if (waits->reattached)
            run = examine_reattached(waits);
        else
            report_lost(waits, "cancelled");
    }
    if (!run)
        return 0;
    int64_t grace_ns = local->setup.view->jobs[job].grace_ns;
    run->cancelled = true;
    run->grace_ns = grace_ns < CANCEL_GRACE_NS ? grace_ns : CANCEL_GRACE_NS;
    repeat_order(run);
    set_deadline(run, local_now(local) + run->grace_ns + DEADLINE_NS);
    return 0;
}

static int local_renew(void *self, job_id job, uint64_t steps_max, bool together,
                       struct error *err)
{
    struct local_run *run = local_active_run(self, job);
    if (!run)
        return 0;
    run->together = together;
    run->leased = steps_max > 0;
    run->lease_done = false;
    run->lease_end = local_steps_now(run) + (double)steps_max;
    if (run->started)
        local_schedule_check(run);
    return 0;
}

int local_reattach(void *self, const struct lease *lease, bool stopping,
                   int64_t grace_left_ns, struct error *err)
{
    struct local *local = self;
    if (find_run(local, lease->job, lease->generation, lease->attempt))
        return 0;
    struct local_run *run = add_run(local, lease);
    const struct launch *launch;
    struct error unused;
    if (local->setup.launch(local->setup.context, run->id, &launch, &unused) == 0) {
        run->own_steps = launch->has_steps;
        run->expects_reports = launch->has_steps || launch->pattern;
        run->limit_ns = launch->limit_ns;
    }
    run->stopping = stopping;
    run->grace_ns = grace_left_ns > 0 ? grace_left_ns : 0;
    if (stopping)
        set_deadline(run, local_now(local) + run->grace_ns + DEADLINE_NS);
    /* Predecessors are known only when all jobs have been reattached. */
    bool placed = local->setup.view->jobs[lease->job].state == JOB_PLACED ||
                  lease->after_count > 0;
    run->phase = placed ? LOCAL_WAITING : LOCAL_STARTING;
    run->reattached = placed;
    local_set_due(run, local_now(local));
    return 0;
}

/* --- after the end ---------------------------------------------------------------- */

/*
 * Start the job's next attempt once the end of this one is recorded, unless the job
 * has finished meanwhile.
 */
static void start_next_attempt(struct local *local, job_id job, uint32_t generation)
{
    const struct job *known = &local->setup.view->jobs[job];
    bool over = known->state == JOB_FREE || known->generation != generation;
    for (struct local_run *run = local->slots[job]; run; run = run->same_slot) {
        if (run->phase != LOCAL_WAITING || run->generation != generation || run->why[0])
            continue;
        if (over) {
            run->phase = LOCAL_RECORDED; /* the next commit removes it */
            run->due_ns = INT64_MAX;
            local->recorded_count++;
            continue;
        }
        bool waited = run->after_count > 0;
        drop_departed(run);
        if (waited && run->after_count == 0)
            start_attempt(run);
    }
}

/* Remove what supervisors should have removed that were killed before they had. */
static void remove_left(struct local *local)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < local->left_count; i++) {
        struct attempt_claim claim;
        char name[ATTEMPT_NAME_MAX];
        attempt_name(name, local->left[i].id, local->left[i].attempt);
        if (faccessat(local->attempts.jobs, name, F_OK, 0) != 0)
            continue;
        attempt_read_claim(&local->attempts, name, &claim);
        if (claim.alive)
            local->left[kept++] = local->left[i];
        else
            attempt_remove(&local->attempts, name);
    }
    local->left_count = kept;
}

static void forget_recorded(struct local_run *run)
{
    struct local *local = run->local;
    job_id job = run->job;
    uint32_t generation = run->generation;
    if (local_remove_attempt(run) && local->left_count < LOCAL_LEFT_MAX) {
        if (local->left_count == 0)
            local->left_ns = local_now(local) + LEFT_NS;
        local->left[local->left_count++] = (struct local_left){ run->id, run->attempt };
        set_timer(local, local->left_ns);
    }
    forget_run(run);
    start_next_attempt(local, job, generation);
}

/*
 * The engine has not applied this end: it was of an attempt that the engine does not
 * know.
 */
static void handle_ignored_end(struct local_run *run)
{
    const struct job *job = &run->local->setup.view->jobs[run->job];
    if (job->generation != run->generation || job->attempt != run->attempt ||
        job->state < JOB_PLACED)
        forget_recorded(run);
    else
        local_set_due(run, local_now(run->local) + IGNORED_NS);
}

static void handle_due_run(struct local_run *run)
{
    run->due_ns = INT64_MAX;
    if (local_now(run->local) >= run->deadline_ns &&
        (run->phase == LOCAL_STARTING || run->phase == LOCAL_RUNNING)) {
        enforce_deadline(run);
        return;
    }
    switch (run->phase) {
    case LOCAL_WAITING:
        if (run->why[0]) {
            char why[RUN_WHY_MAX];
            memcpy(why, run->why, sizeof why);
            report_lost(run, why);
            return;
        }
        drop_departed(run);
        if (run->after_count == 0)
            start_attempt(run);
        break;
    case LOCAL_STARTING:
        find_supervisor(run);
        break;
    case LOCAL_RUNNING:
        if (run->fd < 0) {
            find_supervisor(run);
            return;
        }
        if (!run->loaded && local_now(run->local) >= run->loaded_at_ns)
            local_report_loaded(run);
        local_check_lease(run);
        local_schedule_check(run);
        break;
    case LOCAL_CLEARING:
        finish_clearing(run);
        break;
    case LOCAL_ENDED:
        handle_ignored_end(run);
        break;
    case LOCAL_RECORDED:
        break;
    }
}

static void handle_timer(uv_timer_t *timer)
{
    struct local *local = timer->data;
    int64_t at_ns = local_now(local), next_ns = INT64_MAX;
    local->timer_ns = INT64_MAX;
    struct local_run *next;
    for (struct local_run *run = local->runs; run; run = next) {
        next = run->next;
        if (run->due_ns <= at_ns)
            handle_due_run(run);
    }
    for (struct local_run *run = local->runs; run; run = run->next)
        next_ns = run->due_ns < next_ns ? run->due_ns : next_ns;
    if (local->left_count > 0 && local->left_ns <= at_ns) {
        remove_left(local);
        local->left_ns = at_ns + LEFT_NS;
    }
    if (local->left_count > 0 && local->left_ns < next_ns)
        next_ns = local->left_ns;
    if (local_reap_starters() > 0 && next_ns > at_ns + REAP_NS)
        next_ns = at_ns + REAP_NS;
    if (next_ns < INT64_MAX)
        set_timer(local, next_ns);
}

void local_event(void *self, const struct view *view, const struct event *event)
{
    struct local *local = self;
    if (event->kind != EVENT_FINISHED && event->kind != EVENT_FAILED &&
        event->kind != EVENT_STOPPED && event->kind != EVENT_LOST)
        return;
    struct local_run *run = local->slots[event->job];
    while (run && (run->attempt != event->attempt || run->phase != LOCAL_ENDED ||
                   run->generation != event->generation))
        run = run->same_slot;
    if (!run)
        return;
    run->phase = LOCAL_RECORDED;
    run->due_ns = INT64_MAX;
    local->recorded_count++;
}

int local_commit(void *self, struct error *err)
{
    struct local *local = self;
    struct local_run *next;
    if (local->recorded_count == 0)
        return 0;
    local->recorded_count = 0;
    for (struct local_run *run = local->runs; run; run = next) {
        next = run->next;
        if (run->phase == LOCAL_RECORDED)
            forget_recorded(run);
    }
    return 0;
}

uint32_t local_count(const void *self)
{
    const struct local *local = self;
    return local->count;
}

static uint32_t get_enforced(const void *self, const char **ret_why)
{
    const struct local *local = self;
    *ret_why = local->attempts.cgroups.why;
    return local->attempts.cgroups.features;
}

/* --- opening and closing ------------------------------------------------------------------ */

/* The cgroups are berth-launch's; we know where they are and what they do. */
static void adopt_cgroups(struct local *local)
{
    struct cgroup_tree *tree = &local->attempts.cgroups;
    snprintf(tree->v2, sizeof tree->v2, "%s",
             launcher_client_cgroup(local->setup.launcher));
    tree->features = launcher_client_features(local->setup.launcher);
    snprintf(tree->why, sizeof tree->why, "%s",
             launcher_client_why(local->setup.launcher));
}

/* berth-launch makes the folders of several users; berthd reads in them. */
static int open_attempts(struct local *local, struct error *err)
{
    struct launcher_client *launcher = local->setup.launcher;
    int r = attempts_open(&local->attempts, local->run_dir, local->state_dir,
                          launcher ? ATTEMPTS_READ : ATTEMPTS_OWN, err);
    if (r == 0 && launcher)
        adopt_cgroups(local);
    return r;
}

static void close_attempts(struct local *local)
{
    if (local->setup.launcher) /* the cgroups are not ours */
        local->attempts.cgroups = (struct cgroup_tree){ .features = 0 };
    attempts_close(&local->attempts);
}

int local_open(struct local **ret, const struct local_setup *setup, struct error *err)
{
    if (strlen(setup->run_dir) > LOCAL_RUN_DIR_MAX)
        return error_set(err, -ENAMETOOLONG, "%s: longer than %d bytes", setup->run_dir,
                         LOCAL_RUN_DIR_MAX);
    struct local *local = memory_checked(calloc(1, sizeof *local));
    local->setup = *setup;
    snprintf(local->state_dir, sizeof local->state_dir, "%s", setup->state_dir);
    snprintf(local->run_dir, sizeof local->run_dir, "%s", setup->run_dir);
    snprintf(local->run_program, sizeof local->run_program, "%s", setup->run_program);
    int r = strlen(setup->state_dir) >= sizeof local->state_dir ||
                    strlen(setup->run_program) >= sizeof local->run_program
                ? error_set(err, -ENAMETOOLONG, "%.200s: too long", setup->state_dir)
                : 0;
    if (r == 0 && access(setup->run_program, X_OK) < 0)
        r = error_set(err, -errno, "%s: %s", setup->run_program, strerror(errno));
    if (r == 0)
        r = open_attempts(local, err);
    if (r < 0) {
        free(local);
        return r;
    }
    local->slots =
        memory_checked(calloc(setup->view->job_max, sizeof(struct local_run *)));
    local->starter = -1;
    local->timer_ns = INT64_MAX;
    uv_timer_init(setup->loop, &local->timer);
    local->timer.data = local;
    set_timer(local, local_now(local) + REAP_NS); /* the starter of an earlier one */
    *ret = local;
    return 0;
}

static void timer_closed(uv_handle_t *handle)
{
    struct local *local = handle->data;
    free(local->slots);
    free(local);
}

void local_close(void *self)
{
    struct local *local = self;
    if (!local)
        return;
    local->closing = true;
    if (local->settled && !local->setup.launcher)
        local_remove_orphans(local); /* of supervisors that were killed after the end */
    while (local->runs)
        forget_run(local->runs);
    local_close_starter(local);
    close_attempts(local);
    uv_close((uv_handle_t *)&local->timer, timer_closed);
}

/* As its claim says, which only berthd's side can write. */
static pid_t find_supervisor_pid(const struct local_run *run)
{
    struct attempt_claim claim;
    char name[ATTEMPT_NAME_MAX];
    attempt_name(name, run->id, run->attempt);
    attempt_read_claim(&run->local->attempts, name, &claim);
    return claim.alive ? claim.pid : 0;
}

static bool find_processes(const void *self, job_id job, struct job_processes *ret)
{
    const struct local_run *run = local_active_run(self, job);
    if (!run || run->phase != LOCAL_RUNNING)
        return false;
    *ret = (struct job_processes){ .attempt = run->attempt,
                                   .pid = find_supervisor_pid(run) };
    if (!local_cgroup(run, ret->cgroup) || access(ret->cgroup, F_OK) < 0)
        ret->cgroup[0] = '\0';
    return true;
}

const struct executor executor_local = {
    .name = "local",
    .start = local_start,
    .stop = local_stop,
    .cancel = local_cancel,
    .renew = local_renew,
    .close = local_close,
    .reattach = local_reattach,
    .settle = local_remove_orphans,
    .event = local_event,
    .commit = local_commit,
    .enforced = get_enforced,
    .count = local_count,
    .find_processes = find_processes,
};
