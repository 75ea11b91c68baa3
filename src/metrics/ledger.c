/* ledger.c - what each preemption cost and saved. */
#include "metrics/ledger.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/grow.h"

#define NONE UINT32_MAX
#define REDO_MAX_NS 1e18 /* GPU-time; jobs may report any number of steps */

/* What is remembered of a live job. */
struct ledger_job {
    uint32_t oldest, newest; /* of its open entries as a victim; a list           */
    uint32_t as_beneficiary; /* first entry for it as a beneficiary, until it starts */
    uint32_t load_entry;     /* entry that its next loading is booked to */
    uint32_t open_count;
    uint32_t gpus;
    bool seated, loading, is_leaving;
    int64_t since_ns; /* of its loading, or of its preemption */
    double rate_per_s;
};

void ledger_init(struct ledger *ledger, struct arena *run, const struct view *view,
                 FILE *file)
{
    *ledger = (struct ledger){ .file = file, .entry_free = NONE, .first_ns = -1 };
    series_init(&ledger->series);
    ledger->jobs = arena_array(run, struct ledger_job, view->job_max);
    pair_ledger_init(&ledger->pairs, run, view);
    if (file)
        fputs("at_s,victim,for,rule,gpus,predicted_cost_gpu_s,predicted_wait_saved_s,"
              "actual_cost_gpu_s,pause_gpu_s,load_gpu_s,redo_gpu_s,wait_saved_s\n",
              file);
}

void ledger_release(struct ledger *ledger)
{
    free(ledger->entries);
    ledger->entries = NULL;
    pair_ledger_release(&ledger->pairs);
}

static uint32_t take_entry(struct ledger *ledger)
{
    uint32_t at = ledger->entry_free;
    if (at != NONE) {
        ledger->entry_free = ledger->entries[at].next_of_victim;
        return at;
    }
    ledger->entries = grow_array(ledger->entries, &ledger->entry_room,
                                 ledger->entry_used + 1, sizeof *ledger->entries);
    return ledger->entry_used++;
}

/* --- prediction ------------------------------------------------------------------- */

/* GPU-time the victim is expected to lose: it saves a checkpoint and resumes later.  If the
 * grace period is too short for that, it also loses half of the work between two
 * checkpoints on average. */
static int64_t expected_cost_ns(const struct job *victim, bool was_loading)
{
    int64_t pause_ns = was_loading ? 0 : victim->pause_ns;
    int64_t redo_ns = 0;
    if (pause_ns > victim->grace_ns) {
        pause_ns = victim->grace_ns;
        redo_ns = victim->ckpt_ns / 2;
    }
    return (pause_ns + victim->load_ns + redo_ns) * victim->gpus_now;
}

static int64_t expected_wait_ns(const struct view *view, const struct event *event)
{
    if (event->wait_saved_ns >= 0)
        return event->wait_saved_ns;
    const struct job *victim = &view->jobs[event->job];
    int64_t left_ns = view_work_left_ns(view, event->job);
    if (left_ns == INT64_MAX)
        return 0; /* not known */
    left_ns -= victim->pause_ns;
    return left_ns > 0 ? left_ns : 0;
}

/* --- closing ----------------------------------------------------------------------- */

/* How much sooner the beneficiary started, if the victim had so many steps left. */
static double wait_saved_s(const struct ledger_entry *entry, double steps_left)
{
    if (entry->started_ns < 0 || entry->rate_per_s <= 0 || steps_left <= 0)
        return 0;
    double would_leave_s = (double)entry->at_ns * 1e-9 + steps_left / entry->rate_per_s;
    double saved_s = would_leave_s - (double)entry->started_ns * 1e-9;
    return saved_s > 0 ? saved_s / entry->shared_by : 0;
}

static void write_entry(FILE *file, const struct ledger_entry *entry, double saved_s)
{
    int64_t actual_ns = entry->pause_ns + entry->load_ns + entry->redo_ns;
    fprintf(file, "%.9f,%" PRIu64 ",", (double)entry->at_ns * 1e-9, entry->victim);
    if (entry->beneficiary_id)
        fprintf(file, "%" PRIu64, entry->beneficiary_id);
    fprintf(file, ",%s,%u,%.9g,%.9g,%.9g,%.9g,%.9g,%.9g,%.9g\n", rule_name(entry->rule),
            entry->gpus, (double)entry->predicted_cost_ns * 1e-9,
            (double)entry->predicted_wait_ns * 1e-9, (double)actual_ns * 1e-9,
            (double)entry->pause_ns * 1e-9, (double)entry->load_ns * 1e-9,
            (double)entry->redo_ns * 1e-9, saved_s);
}

static void notify_observer(const struct ledger *ledger,
                            const struct ledger_entry *entry)
{
    if (ledger->observe)
        ledger->observe(ledger->context, entry, 0, true);
}

/* The beneficiary has not started: it must not find an entry that is closed. */
static void unlink_from_beneficiary(struct ledger *ledger, uint32_t at)
{
    const struct ledger_entry *entry = &ledger->entries[at];
    if (entry->beneficiary == JOB_NONE || entry->started_ns >= 0)
        return;
    uint32_t *link = &ledger->jobs[entry->beneficiary].as_beneficiary;
    while (*link != NONE && *link != at)
        link = &ledger->entries[*link].next_of_beneficiary;
    if (*link == at)
        *link = entry->next_of_beneficiary;
}

/* The victim's whole work is, or is estimated to be, 'steps_total'. */
static void close_entry(struct ledger *ledger, uint32_t at, double steps_total)
{
    struct ledger_entry *entry = &ledger->entries[at];
    unlink_from_beneficiary(ledger, at);
    double saved_s = wait_saved_s(entry, steps_total - entry->steps);
    int64_t actual_ns = entry->pause_ns + entry->load_ns + entry->redo_ns;
    int64_t at_ns = entry->at_ns - ledger->first_ns;
    series_add(&ledger->series, LEDGER_PREEMPTIONS, at_ns, 1);
    series_add(&ledger->series, LEDGER_PREDICTED, at_ns,
               (double)entry->predicted_cost_ns * 1e-9);
    series_add(&ledger->series, LEDGER_ACTUAL, at_ns, (double)actual_ns * 1e-9);
    ledger->wait_saved_s += saved_s;
    if (ledger->file)
        write_entry(ledger->file, entry, saved_s);
    if (ledger->observe)
        ledger->observe(ledger->context, entry, saved_s, false);
    entry->next_of_victim = ledger->entry_free;
    ledger->entry_free = at;
}

static void close_oldest(struct ledger *ledger, job_id id, double steps_total)
{
    struct ledger_job *job = &ledger->jobs[id];
    uint32_t at = job->oldest;
    job->oldest = ledger->entries[at].next_of_victim;
    if (job->oldest == NONE)
        job->newest = NONE;
    job->open_count--;
    close_entry(ledger, at, steps_total);
}

static void close_all(struct ledger *ledger, job_id id, double steps_total)
{
    struct ledger_job *job = &ledger->jobs[id];
    while (job->oldest != NONE)
        close_oldest(ledger, id, steps_total);
    job->load_entry = NONE;
}

/* --- events ------------------------------------------------------------------------ */

/* The next loading of the job is no longer the cost of a preemption. */
static void clear_owed_load(struct ledger *ledger, struct ledger_job *job)
{
    if (job->load_entry == NONE)
        return;
    ledger->entries[job->load_entry].owes_load = false;
    notify_observer(ledger, &ledger->entries[job->load_entry]);
    job->load_entry = NONE;
}

/* The job has loaded, or stops loading: book the time to its last preemption. */
static void end_loading(struct ledger *ledger, struct ledger_job *job, int64_t now_ns)
{
    if (!job->loading)
        return;
    job->loading = false;
    if (job->load_entry == NONE)
        return;
    int64_t load_ns = (now_ns - job->since_ns) * job->gpus;
    ledger->entries[job->load_entry].load_ns += load_ns;
    ledger->actual_cost_ns += load_ns;
    clear_owed_load(ledger, job);
}

/* The rate that the state knows, from whichever event. */
static void update_rate(struct ledger *ledger, const struct view *view, job_id id)
{
    if (view->jobs[id].rate_per_s > 0)
        ledger->jobs[id].rate_per_s = view->jobs[id].rate_per_s;
}

static void apply_started(struct ledger *ledger, const struct view *view,
                          const struct event *event)
{
    struct ledger_job *job = &ledger->jobs[event->job];
    job->seated = true;
    job->loading = !event->loaded;
    job->is_leaving = false;
    job->gpus = view->jobs[event->job].gpus_now;
    job->since_ns = event->at_ns;
    update_rate(ledger, view, event->job);
    uint32_t victims = 0;
    for (uint32_t at = job->as_beneficiary; at != NONE;
         at = ledger->entries[at].next_of_beneficiary)
        victims++;
    for (uint32_t at = job->as_beneficiary; at != NONE;
         at = ledger->entries[at].next_of_beneficiary) {
        ledger->entries[at].started_ns = event->at_ns;
        ledger->entries[at].shared_by = victims;
        notify_observer(ledger, &ledger->entries[at]);
    }
    job->as_beneficiary = NONE;
    if (event->loaded)
        clear_owed_load(ledger, job);
}

static bool is_preemption(enum rule rule)
{
    return rule != RULE_RESIZE && rule != RULE_CANCEL;
}

/* Add the newest of a victim's entries, to the list of its beneficiary as well. */
static void link_entry(struct ledger *ledger, struct ledger_job *job, uint32_t at)
{
    struct ledger_entry *entry = &ledger->entries[at];
    if (job->newest == NONE)
        job->oldest = at;
    else
        ledger->entries[job->newest].next_of_victim = at;
    job->newest = at;
    job->open_count++;
    entry->next_of_victim = NONE;
    entry->next_of_beneficiary = NONE;
    if (entry->beneficiary != JOB_NONE && entry->started_ns < 0) {
        entry->next_of_beneficiary = ledger->jobs[entry->beneficiary].as_beneficiary;
        ledger->jobs[entry->beneficiary].as_beneficiary = at;
    }
}

static void apply_preempted(struct ledger *ledger, const struct view *view,
                            const struct event *event)
{
    const struct job *victim = &view->jobs[event->job];
    struct ledger_job *job = &ledger->jobs[event->job];
    bool was_loading = job->loading;
    end_loading(ledger, job, event->at_ns);
    job->is_leaving = is_preemption(event->rule);
    job->since_ns = event->at_ns;
    if (!job->is_leaving)
        return;
    if (job->open_count == LEDGER_OPEN_MAX)
        close_oldest(ledger, event->job, victim->steps_total);

    uint32_t at = take_entry(ledger);
    struct ledger_entry *entry = &ledger->entries[at];
    bool has_beneficiary =
        event->beneficiary != JOB_NONE && event->beneficiary != event->job;
    *entry = (struct ledger_entry){
        .at_ns = event->at_ns,
        .victim = victim->id,
        .number = victim->preemptions,
        .beneficiary_id = has_beneficiary ? view->jobs[event->beneficiary].id : 0,
        .rule = event->rule,
        .gpus = victim->gpus_now,
        .predicted_cost_ns = expected_cost_ns(victim, was_loading),
        .predicted_wait_ns = has_beneficiary ? expected_wait_ns(view, event) : 0,
        .steps = victim->steps,
        .rate_per_s = job->rate_per_s,
        .started_ns = -1,
        .shared_by = 1,
        .beneficiary = has_beneficiary ? event->beneficiary : JOB_NONE,
    };
    link_entry(ledger, job, at);
    notify_observer(ledger, entry);
    ledger->preemptions++;
    ledger->predicted_cost_ns += entry->predicted_cost_ns;
    ledger->predicted_wait_saved_s += (double)entry->predicted_wait_ns * 1e-9;
}

/* The victim has released its GPUs: it has saved a checkpoint, or lost what came after
 * the last one. */
static void apply_left(struct ledger *ledger, const struct view *view,
                       const struct event *event)
{
    struct ledger_job *job = &ledger->jobs[event->job];
    if (!job->seated)
        return;
    end_loading(ledger, job, event->at_ns);
    if (job->is_leaving && job->newest != NONE) {
        struct ledger_entry *entry = &ledger->entries[job->newest];
        entry->pause_ns = (event->at_ns - job->since_ns) * job->gpus;
        ledger->actual_cost_ns += entry->pause_ns;
        bool gone = view->jobs[event->job].state == JOB_FREE;
        if (event->kind == EVENT_STOPPED && !gone) {
            double lost = event->steps_reached - event->steps;
            if (event->rate_per_s > 0 && lost > 0)
                entry->redo_ns = (int64_t)fmin(
                    lost / event->rate_per_s * 1e9 * job->gpus, REDO_MAX_NS);
            ledger->actual_cost_ns += entry->redo_ns;
            job->load_entry = job->newest;
            entry->owes_load = true;
        }
        notify_observer(ledger, entry);
    }
    job->seated = job->is_leaving = false;
}

/* A beneficiary will not start: no wait was saved, and the entry says so. */
static void apply_gave_up(struct ledger *ledger, job_id id)
{
    uint32_t at = ledger->jobs[id].as_beneficiary;
    ledger->jobs[id].as_beneficiary = NONE;
    while (at != NONE) {
        struct ledger_entry *entry = &ledger->entries[at];
        at = entry->next_of_beneficiary;
        entry->beneficiary = JOB_NONE;
        entry->shared_by = 0;
        notify_observer(ledger, entry);
    }
}

void ledger_event(void *self, const struct view *view, const struct event *event)
{
    struct ledger *ledger = self;
    pair_ledger_event(&ledger->pairs, view, event);
    switch (event->kind) {
    case EVENT_SUBMITTED:
        if (ledger->first_ns < 0)
            ledger->first_ns = event->at_ns;
        ledger->jobs[event->job] = (struct ledger_job){
            .oldest = NONE, .newest = NONE, .as_beneficiary = NONE, .load_entry = NONE
        };
        break;
    case EVENT_PLACED:
        prefetch_bytes(&ledger->jobs[event->job], sizeof *ledger->jobs);
        break;
    case EVENT_STARTED:
        apply_started(ledger, view, event);
        break;
    case EVENT_LOADED:
    case EVENT_PROGRESS:
        if (event->kind == EVENT_LOADED)
            end_loading(ledger, &ledger->jobs[event->job], event->at_ns);
        update_rate(ledger, view, event->job);
        break;
    case EVENT_RESIZING: /* book what it has loaded so far */
        end_loading(ledger, &ledger->jobs[event->job], event->at_ns);
        break;
    case EVENT_RESIZED:
        ledger->jobs[event->job].gpus = view->jobs[event->job].gpus_now;
        update_rate(ledger, view, event->job);
        break;
    case EVENT_RECALLED:
        apply_preempted(ledger, view, event);
        break;
    case EVENT_STOPPED:
        apply_left(ledger, view, event);
        if (view->jobs[event->job].state == JOB_FREE) /* it was cancelled */
            close_all(ledger, event->job, view->jobs[event->job].steps_total);
        break;
    case EVENT_LOST:
        apply_gave_up(ledger, event->job);
        if (ledger->jobs[event->job].seated &&
            !job_holds_seats(&view->jobs[event->job])) {
            apply_left(ledger, view, event);
            clear_owed_load(ledger,
                            &ledger->jobs[event->job]); /* because of the fault */
        } /* else it had not started: its next loading is still a cost of the preemption */
        if (view->jobs[event->job].state == JOB_FREE)
            close_all(ledger, event->job, view->jobs[event->job].steps_total);
        break;
    case EVENT_FINISHED:
        apply_left(ledger, view, event);
        close_all(ledger, event->job, event->steps);
        break;
    case EVENT_FAILED:
        apply_left(ledger, view, event);
        close_all(ledger, event->job, view->jobs[event->job].steps_total);
        break;
    case EVENT_CANCELLED:
        apply_gave_up(ledger, event->job);
        if (view->jobs[event->job].state == JOB_FREE)
            close_all(ledger, event->job, view->jobs[event->job].steps_total);
        break;
    case EVENT_DROPPED:
        apply_gave_up(ledger, event->job);
        close_all(ledger, event->job, view->jobs[event->job].steps_total);
        break;
    default:
        break;
    }
}

void ledger_restore_job(struct ledger *ledger, const struct view *view, job_id id)
{
    const struct job *job = &view->jobs[id];
    ledger->jobs[id] = (struct ledger_job){
        .oldest = NONE,
        .newest = NONE,
        .as_beneficiary = NONE,
        .load_entry = NONE,
        .gpus = job->gpus_now,
        .seated = job_holds_seats(job),
        .loading = job->state == JOB_LOADING && job->next.count == 0,
        .since_ns = job->state == JOB_STOPPING ? job->recalled_ns : job->since_ns,
        .rate_per_s = job->rate_per_s,
    };
    if (ledger->first_ns < 0 || job->submit_ns < ledger->first_ns)
        ledger->first_ns = job->submit_ns;
}

void ledger_restore_entry(struct ledger *ledger, const struct view *view, job_id victim,
                          const struct ledger_entry *kept)
{
    struct ledger_job *job = &ledger->jobs[victim];
    if (job->open_count == LEDGER_OPEN_MAX)
        close_oldest(ledger, victim, view->jobs[victim].steps_total);
    uint32_t at = take_entry(ledger);
    ledger->entries[at] = *kept;
    link_entry(ledger, job, at);
    job->load_entry = kept->owes_load ? at : job->load_entry;
    /* The job may stop for another reason than a preemption: then nothing is booked. */
    job->is_leaving = view->jobs[victim].state == JOB_STOPPING &&
                      view->jobs[victim].recalled_ns == kept->at_ns;
}

void ledger_end(struct ledger *ledger, const struct view *view, uint32_t slot_count)
{
    for (job_id id = 0; id < slot_count; id++)
        if (view->jobs[id].state != JOB_FREE)
            close_all(ledger, id, view->jobs[id].steps_total);
    pair_ledger_end(&ledger->pairs, view);
}
