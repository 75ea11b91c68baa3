/*
 * slurm.c - jobs on a Slurm cluster, as the engine and berthd see it: orders change what we
 * want of a job, and what was under way before a restart is taken up again.
 *
 * What follows from that and from what Slurm reports is slurm_action.c and slurm_drive.c.
 */
#include "executor/slurm/slurm.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/grow.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/units.h"
#include "executor/slurm/slurm_heartbeat.h"
#include "executor/slurm/slurm_internal.h"
#include "executor/slurm/slurm_link.h"
#include "model/cluster.h"
#include "model/launch.h"

#define POKE_SOON_NS (NS_PER_S / 2)
#define POKE_NS (10 * NS_PER_S)

/* --- entries ------------------------------------------------------------------------ */

struct slurm_entry *slurm_find(const struct slurm *slurm, uint64_t id)
{
    uint32_t at = map_find(&slurm->by_id, id);
    return at == MAP_NONE ? NULL : slurm->entries[at];
}

struct slurm_entry *slurm_add(struct slurm *slurm, uint64_t id)
{
    struct slurm_entry *entry = memory_checked(calloc(1, sizeof *entry));
    entry->slurm = slurm;
    entry->id = id;
    entry->slot = JOB_NONE;
    entry->task = -1;
    entry->loss = NAN;
    entry->due_ns = INT64_MAX;
    entry->state = BRIDGE_PENDING;
    entry->submit_s = SUBMIT_UNKNOWN;
    entry->run.lease_end = INFINITY;
    slurm->entries = grow_array(slurm->entries, &slurm->entry_room,
                                slurm->entry_count + 1, sizeof(struct slurm_entry *));
    slurm->entries[slurm->entry_count] = entry;
    map_put(&slurm->by_id, id, slurm->entry_count++);
    return entry;
}

void slurm_free_lease(struct slurm_lease *lease)
{
    free(lease->seats);
    free(lease->after);
    free(lease->after_generation);
    *lease = (struct slurm_lease){ 0 };
}

void slurm_forget(struct slurm_entry *entry)
{
    struct slurm *slurm = entry->slurm;
    uint32_t at = map_find(&slurm->by_id, entry->id);
    struct slurm_entry *last = slurm->entries[--slurm->entry_count];
    slurm_set_active(entry, false);
    slurm->entries[at] = last;
    map_put(&slurm->by_id, last->id, at);
    map_remove(&slurm->by_id, entry->id);
    if (entry->slot != JOB_NONE && slurm->slots[entry->slot] == entry)
        slurm->slots[entry->slot] = NULL;
    slurm_free_lease(&entry->now);
    slurm_free_lease(&entry->then);
    json_free(entry->record);
    json_free(entry->reissued);
    free(entry->script);
    free(entry->tasks);
    free(entry->nodes);
    free(entry->gpus);
    free(entry->left);
    free(entry);
}

/* --- time --------------------------------------------------------------------------- */

int64_t slurm_now(const struct slurm *slurm)
{
    return slurm->setup.now_ns(slurm->setup.context);
}

static void time_passed(uv_timer_t *timer);

void slurm_set_timer(struct slurm *slurm, int64_t at_ns)
{
    if (at_ns >= slurm->timer_ns || slurm->closing)
        return;
    slurm->timer_ns = at_ns;
    int64_t left_ns = at_ns - slurm_now(slurm);
    uv_update_time(slurm->setup.loop);
    uv_timer_start(&slurm->timer, time_passed,
                   left_ns <= 0 ? 0 : (uint64_t)(left_ns / 1000000 + 1), 0);
}

void slurm_due(struct slurm_entry *entry, int64_t at_ns)
{
    if (at_ns < entry->due_ns)
        entry->due_ns = at_ns;
    slurm_set_timer(entry->slurm, entry->due_ns);
}

void slurm_set_active(struct slurm_entry *entry, bool active)
{
    struct slurm *slurm = entry->slurm;
    if (entry->active == active)
        return;
    entry->active = active;
    if (active) {
        entry->prev = NULL;
        entry->next = slurm->first;
        if (slurm->first)
            slurm->first->prev = entry;
        slurm->first = entry;
        return;
    }
    if (entry->prev)
        entry->prev->next = entry->next;
    else
        slurm->first = entry->next;
    if (entry->next)
        entry->next->prev = entry->prev;
}

/*
 * Slurm looks at dependencies when it schedules, and a job that has just ended may still be
 * completing then: it would look again within a minute.  To park one of those who wait once
 * more has it look at all of them now.
 */
static void poke_dependents(struct slurm *slurm, int64_t now_ns)
{
    slurm->poke_ns = INT64_MAX;
    for (uint32_t i = 0; i < slurm->entry_count; i++) {
        struct slurm_entry *entry = slurm->entries[i];
        if (!entry->dependent || entry->stage != STAGE_WAIT || !entry->parked)
            continue;
        if (!entry->seq && slurm->synced)
            slurm_request(entry, VERB_PARK);
        slurm->poke_ns = now_ns + POKE_NS;
        return;
    }
}

void slurm_poke_soon(struct slurm *slurm)
{
    int64_t at_ns = slurm_now(slurm) + POKE_SOON_NS;
    if (at_ns < slurm->poke_ns)
        slurm->poke_ns = at_ns;
    slurm_set_timer(slurm, slurm->poke_ns);
}

static void time_passed(uv_timer_t *timer)
{
    struct slurm *slurm = timer->data;
    int64_t now_ns = slurm_now(slurm);
    slurm->timer_ns = INT64_MAX;
    if (slurm->poke_ns <= now_ns)
        poke_dependents(slurm, now_ns);
    struct slurm_entry *next;
    for (struct slurm_entry *entry = slurm->first; entry; entry = next) {
        next = entry->next;
        if (entry->due_ns > now_ns)
            continue;
        entry->due_ns = INT64_MAX;
        slurm_drive(entry);
    }
    if (slurm->synced && (slurm->nodes_changed || slurm->look_ns <= now_ns))
        slurm_inventory_take(slurm, false);
    for (struct slurm_entry *entry = slurm->first; entry; entry = entry->next)
        slurm_set_timer(slurm, entry->due_ns);
    slurm_set_timer(slurm, slurm->poke_ns);
    slurm_set_timer(slurm, slurm->look_ns);
}

/* --- orders ----------------------------------------------------------------------------- */

static struct slurm_lease copy_lease(const struct slurm *slurm,
                                     const struct lease *lease)
{
    uint32_t after_count = lease->after_count;
    struct slurm_lease copy = {
        .attempt = lease->attempt,
        .count = lease->seat_count,
        .after_count = after_count,
        .steps_max = lease->steps_max,
        .seats = memory_checked(calloc(lease->seat_count + 1, sizeof *copy.seats)),
        .after = memory_checked(calloc(after_count + 1, sizeof *copy.after)),
        .after_generation =
            memory_checked(calloc(after_count + 1, sizeof *copy.after_generation))
    };
    for (uint32_t i = 0; i < lease->seat_count; i++)
        copy.seats[i] = lease->seats[i];
    for (uint32_t i = 0; i < after_count; i++) {
        copy.after[i] = lease->after[i];
        copy.after_generation[i] = slurm->setup.view->jobs[lease->after[i]].generation;
    }
    return copy;
}

/* The end of a lease, in steps of its job. */
static double find_lease_end(double steps, uint64_t steps_max)
{
    return steps_max > 0 ? steps + (double)steps_max : INFINITY;
}

/* A lease begins: its job is to run where it says. */
static void take_lease(struct slurm_entry *entry)
{
    const struct job *job = &entry->slurm->setup.view->jobs[entry->slot];
    entry->stage = STAGE_RUN;
    entry->steps = entry->steps_kept = entry->saved = job->steps;
    entry->run.lease_end = find_lease_end(entry->steps_kept, entry->now.steps_max);
    entry->run.restarts = entry->restarts;
    slurm_set_active(entry, true);
}

/* The entry of a job in the engine's books; Slurm may not have told of it yet. */
static struct slurm_entry *tie_entry(struct slurm *slurm, job_id slot)
{
    const struct job *job = &slurm->setup.view->jobs[slot];
    struct slurm_entry *entry = slurm_find(slurm, job->id);
    if (!entry)
        entry = slurm_add(slurm, job->id);
    entry->slot = slot;
    entry->generation = job->generation;
    slurm->slots[slot] = entry;
    return entry;
}

static int slurm_start(void *self, const struct lease *lease, struct error *err)
{
    struct slurm *slurm = self;
    struct slurm_entry *entry = slurm_at(slurm, lease->job);
    if (!entry)
        return 0; /* it has ended, and that is on its way */
    bool moves = slurm_stage_leaves(entry->stage) || entry->now.count > 0;
    struct slurm_lease *kept = moves ? &entry->then : &entry->now;
    if (kept->count > 0 && kept->attempt == lease->attempt)
        return 0; /* told twice */
    slurm_free_lease(kept);
    *kept = copy_lease(slurm, lease);
    if (!moves) {
        take_lease(entry);
        slurm_due(entry, slurm_now(slurm));
    }
    return 0;
}

static int slurm_stop(void *self, job_id job, int64_t grace_ns, struct error *err)
{
    struct slurm *slurm = self;
    struct slurm_entry *entry = slurm_at(slurm, job);
    if (!entry || entry->stage != STAGE_RUN)
        return 0;
    entry->stage = STAGE_STOP;
    entry->evict_ns =
        slurm_now(slurm) + (slurm_request_has_signal(entry) ? grace_ns : 0);
    slurm_set_active(entry, true);
    slurm_due(entry, slurm_now(slurm));
    return 0;
}

static int slurm_cancel(void *self, job_id job, struct error *err)
{
    struct slurm *slurm = self;
    struct slurm_entry *entry = slurm_at(slurm, job);
    if (!entry || entry->stage < STAGE_WAIT)
        return 0;
    slurm_free_lease(&entry->then);
    entry->evict_ns = slurm_now(slurm);
    entry->stage = STAGE_CANCEL;
    slurm_set_active(entry, true);
    slurm_due(entry, slurm_now(slurm));
    return 0;
}

static int slurm_renew(void *self, job_id job, uint64_t steps_max, bool together,
                       struct error *err)
{
    struct slurm_entry *entry = slurm_at(self, job);
    if (!entry || entry->stage != STAGE_RUN)
        return 0;
    entry->run.lease_end = find_lease_end(slurm_report_steps(entry), steps_max);
    if (slurm_has_begun(entry))
        slurm_report_lease(entry);
    return 0;
}

/* --- a restart ----------------------------------------------------------------------------- */

static int slurm_reattach(void *self, const struct lease *lease, bool stopping,
                          int64_t grace_left_ns, struct error *err)
{
    struct slurm *slurm = self;
    const struct job *job = &slurm->setup.view->jobs[lease->job];
    struct slurm_entry *entry = tie_entry(slurm, lease->job);
    entry->now = copy_lease(slurm, lease);
    take_lease(entry);
    entry->run.progress = !job_holds_seats(job)       ? PROGRESS_PLACED
                          : job->state == JOB_LOADING ? PROGRESS_LOADING
                                                      : PROGRESS_STEPS;
    entry->run.started_ns = job->since_ns;
    entry->run.loaded_at_ns = slurm_now(slurm);
    entry->run.restarts = UINT32_MAX; /* not known; whether it has started is */
    if (stopping) {
        entry->stage = STAGE_STOP;
        entry->evict_ns = slurm_now(slurm) + grace_left_ns;
    }
    return 0;
}

/* All jobs that the engine knows and that are not under way wait. */
static void slurm_settle(void *self)
{
    struct slurm *slurm = self;
    const struct view *view = slurm->setup.view;
    for (job_id slot = 0; slot < view->job_max; slot++)
        if (view->jobs[slot].state == JOB_WAITING || view->jobs[slot].state == JOB_HELD)
            tie_entry(slurm, slot)->stage = STAGE_WAIT;
}

/* --- what the engine makes of it -------------------------------------------------------------- */

/* It stays held, and says why: its owner can change it or cancel it. */
void slurm_give_up(struct slurm_entry *entry, const char *why)
{
    if (!entry)
        return;
    entry->stage = STAGE_CLOSED;
    entry->comment_due = true;
    snprintf(entry->why, sizeof entry->why, "%s", why ? why : "given up");
    slurm_set_active(entry, true);
    slurm_due(entry, slurm_now(entry->slurm));
}

/* It is out of the engine's books. */
static void untie_entry(struct slurm_entry *entry, const struct event *event)
{
    struct slurm *slurm = entry->slurm;
    bool unwanted = event->kind == EVENT_CANCELLED || event->kind == EVENT_DROPPED ||
                    entry->stage == STAGE_CANCEL;
    slurm->slots[entry->slot] = NULL;
    entry->slot = JOB_NONE;
    entry->stage = STAGE_CLOSED;
    slurm_free_lease(&entry->now);
    slurm_free_lease(&entry->then);
    bool over = slurm_has_ended(entry) && slurm_is_seen(entry);
    if (over && !entry->reissued)
        return;
    slurm_set_active(entry, true);
    slurm_due(entry, slurm_now(slurm));
    if (over)
        return;
    entry->evict_ns = slurm_now(slurm);
    if (unwanted)
        entry->stage = STAGE_CANCEL;
    else
        slurm_give_up(entry, event->why);
}

static void handle_event(void *self, const struct view *view, const struct event *event)
{
    struct slurm *slurm = self;
    if (event->kind == EVENT_REJECTED) {
        slurm_give_up(slurm_find(slurm, event->spec->id), event->why);
        return;
    }
    if (event->job == JOB_NONE)
        return;
    if (event->kind == EVENT_SUBMITTED) {
        struct slurm_entry *entry = tie_entry(slurm, event->job);
        entry->stage = STAGE_WAIT;
        slurm_set_active(entry, true);
        /* Not now: what the engine is about to decide does not know of seats we take.  One
         * that runs already stands at a gate until then. */
        slurm_due(entry, slurm_now(slurm));
        return;
    }
    struct slurm_entry *entry = slurm_at(slurm, event->job);
    if (entry && event->kind == EVENT_PLACED)
        entry->now.unbooked = false;
    if (entry && view->jobs[event->job].state == JOB_FREE)
        untie_entry(entry, event);
}

static int handle_commit(void *self, struct error *err)
{
    return 0;
}

static uint32_t slurm_count(const void *self)
{
    const struct slurm *slurm = self;
    uint32_t under_way = 0;
    for (const struct slurm_entry *entry = slurm->first; entry; entry = entry->next)
        under_way += entry->now.count > 0;
    return under_way;
}

/* --- progress --------------------------------------------------------------------------------- */

static void report_step(void *self, job_id job, double step, double loss, double total)
{
    struct slurm *slurm = self;
    struct slurm_entry *entry = slurm_at(slurm, job);
    if (!entry || entry->stage != STAGE_RUN || !slurm_has_begun(entry))
        return;
    int64_t now_ns = slurm_now(slurm);
    if (entry->reported_ns > 0 && now_ns > entry->reported_ns && step > entry->steps) {
        double rate =
            (step - entry->steps) / ((double)(now_ns - entry->reported_ns) * 1e-9);
        entry->rate_per_s =
            entry->rate_per_s > 0 ? 0.7 * entry->rate_per_s + 0.3 * rate : rate;
    }
    entry->reported_ns = now_ns;
    entry->steps = step;
    entry->loss = loss;
    entry->total = total > 0 ? total : entry->total;
    slurm_report_loaded(entry);
    struct event *event = slurm_report_job(entry, EVENT_PROGRESS);
    event->steps = event->steps_reached = step;
    event->rate_per_s = entry->rate_per_s;
    event->measured = slurm_inventory_is_as_booked(entry);
    event->loss = loss;
    event->steps_total = entry->total;
    event->steps_saved = entry->saved > entry->steps_kept ? entry->saved : 0;
    slurm_report_lease(entry);
}

static void note_saved(void *self, job_id job, double step)
{
    struct slurm *slurm = self;
    struct slurm_entry *entry = slurm_at(slurm, job);
    if (entry && slurm_has_begun(entry))
        entry->saved = step;
}

static const char *trouble_of(const void *self)
{
    const struct slurm *slurm = self;
    return slurm->synced ? "" : slurm->trouble[0] ? slurm->trouble : "not heard yet";
}

static const char *node_reason(const void *self, node_id node)
{
    const struct slurm *slurm = self;
    return slurm->hosts[node].reason;
}

static const char *job_reason(const void *self, uint64_t id)
{
    const struct slurm_entry *entry = slurm_find(self, id);
    return entry ? entry->reason : "";
}

/* --- beginning and end -------------------------------------------------------------------------- */

int slurm_open(struct slurm **ret_slurm, const struct slurm_setup *setup,
               struct error *err)
{
    struct slurm *slurm = memory_checked(calloc(1, sizeof *slurm));
    slurm->setup = *setup;
    slurm->connection = 1;
    slurm->timer_ns = slurm->look_ns = slurm->poke_ns = INT64_MAX;
    slurm->slots =
        memory_checked(calloc(setup->view->job_max, sizeof(struct slurm_entry *)));
    slurm->hosts = memory_checked(
        calloc(setup->view->cluster->node_count + 1, sizeof(struct slurm_host)));
    slurm->host_count = setup->view->cluster->node_count;
    slurm_records_index_nodes(slurm);
    struct slurm_link_setup link = { .loop = setup->loop,
                                     .program = setup->program,
                                     .line = slurm_records_line,
                                     .broken = slurm_records_broken,
                                     .context = slurm };
    uv_timer_init(setup->loop, &slurm->timer);
    slurm->timer.data = slurm;
    if (setup->heartbeat)
        slurm->heartbeat =
            slurm_heartbeat_open(slurm, setup->heartbeat, setup->fail_open_s);
    *ret_slurm = slurm;
    return slurm_link_open(&slurm->link, &link, err);
}

static void timer_closed(uv_handle_t *handle)
{
    struct slurm *slurm = handle->data;
    while (slurm->entry_count > 0)
        slurm_forget(slurm->entries[slurm->entry_count - 1]);
    map_release(&slurm->by_id);
    map_release(&slurm->by_seq);
    map_release(&slurm->host_by_name);
    for (node_id node = 0; node < slurm->host_count; node++)
        free(slurm->hosts[node].features);
    free(slurm->entries);
    free(slurm->slots);
    free(slurm->hosts);
    free(slurm);
}

static void close_slurm(void *self)
{
    struct slurm *slurm = self;
    slurm->closing = true;
    slurm_heartbeat_close(slurm->heartbeat);
    slurm_link_close(slurm->link);
    uv_close((uv_handle_t *)&slurm->timer, timer_closed);
}

const struct executor executor_slurm = {
    .name = "slurm",
    .start = slurm_start,
    .stop = slurm_stop,
    .cancel = slurm_cancel,
    .renew = slurm_renew,
    .close = close_slurm,
    .reattach = slurm_reattach,
    .settle = slurm_settle,
    .event = handle_event,
    .commit = handle_commit,
    .count = slurm_count,
    .remote = true,
    .submit_command = "sbatch",
    .report = report_step,
    .saved = note_saved,
    .trouble = trouble_of,
    .job_reason = job_reason,
    .node_reason = node_reason,
};
