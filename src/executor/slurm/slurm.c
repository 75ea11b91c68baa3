/*
 * slurm.c - jobs on a Slurm cluster, as the engine and berthd see it: orders become wishes,
 * and what was under way before a restart is taken up again.
 *
 * What follows from a wish and from what Slurm says is slurm_drive.c; where jobs come from
 * slurm_newcomers.c.
 */
#include "executor/slurm/slurm.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/units.h"
#include "executor/slurm/slurm_link.h"
#include "executor/slurm/slurm_internal.h"
#include "model/cluster.h"

#define POKE_SOON_NS (NS_PER_S / 2)
#define POKE_NS (10 * NS_PER_S)

int64_t slurm_now(const struct slurm *slurm)
{
    return slurm->setup.now_ns(slurm->setup.context);
}

/* --- time --------------------------------------------------------------------------- */

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
    slurm->active_count += active ? 1 : (uint32_t)-1;
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
        if (!entry->dependent || entry->wish != WISH_WAIT || !entry->parked)
            continue;
        if (!entry->seq && slurm->synced)
            slurm_ask(entry, "park", NULL);
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
        slurm_look_at_nodes(slurm, false);
    for (struct slurm_entry *entry = slurm->first; entry; entry = entry->next)
        slurm_set_timer(slurm, entry->due_ns);
    slurm_set_timer(slurm, slurm->poke_ns);
}

struct slurm_entry *slurm_at(const struct slurm *slurm, job_id slot)
{
    return slot == JOB_NONE ? NULL : slurm->slots[slot];
}

/* --- orders ----------------------------------------------------------------------------- */

static struct hold copy_lease(const struct slurm *slurm, const struct lease *lease)
{
    struct hold hold = {
        .attempt = lease->attempt,
        .count = lease->seat_count,
        .after_count = lease->after_count,
        .steps_max = lease->steps_max,
        .seats = memory_checked(calloc(lease->seat_count + 1, sizeof(struct seat))),
        .after = memory_checked(calloc(lease->after_count + 1, sizeof(job_id))),
        .after_generation =
            memory_checked(calloc(lease->after_count + 1, sizeof(uint32_t)))
    };
    for (uint32_t i = 0; i < lease->seat_count; i++)
        hold.seats[i] = lease->seats[i];
    for (uint32_t i = 0; i < lease->after_count; i++) {
        hold.after[i] = lease->after[i];
        hold.after_generation[i] = slurm->setup.view->jobs[lease->after[i]].generation;
    }
    return hold;
}

void slurm_free_hold(struct hold *hold)
{
    free(hold->seats);
    free(hold->after);
    free(hold->after_generation);
    *hold = (struct hold){ 0 };
}

/* A lease begins: its job is to run where it says. */
static void take_lease(struct slurm_entry *entry)
{
    const struct job *job = &entry->slurm->setup.view->jobs[entry->slot];
    entry->wish = WISH_RUN;
    entry->steps = entry->steps_kept = entry->saved = job->steps;
    entry->leased = entry->now.steps_max > 0;
    entry->lease_end = entry->steps_kept + (double)entry->now.steps_max;
    entry->restarts_then = entry->restarts;
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
    entry->arriving = false;
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
    bool moves = entry->wish == WISH_LEAVE || entry->now.count > 0;
    struct hold *hold = moves ? &entry->then : &entry->now;
    if (hold->count > 0 && hold->attempt == lease->attempt)
        return 0; /* told twice */
    slurm_free_hold(hold);
    *hold = copy_lease(slurm, lease);
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
    if (!entry || entry->wish != WISH_RUN)
        return 0;
    entry->wish = WISH_LEAVE;
    entry->evict_ns = slurm_now(slurm) + (slurm_has_signal(entry) ? grace_ns : 0);
    slurm_set_active(entry, true);
    slurm_due(entry, slurm_now(slurm));
    return 0;
}

static int slurm_cancel(void *self, job_id job, struct error *err)
{
    struct slurm *slurm = self;
    struct slurm_entry *entry = slurm_at(slurm, job);
    if (!entry || entry->wish == WISH_NONE)
        return 0;
    slurm_free_hold(&entry->then);
    entry->evicting = false;
    entry->evict_ns = slurm_now(slurm);
    entry->wish = WISH_END;
    slurm_set_active(entry, true);
    slurm_due(entry, slurm_now(slurm));
    return 0;
}

static int slurm_renew(void *self, job_id job, uint64_t steps_max, bool together,
                       struct error *err)
{
    struct slurm_entry *entry = slurm_at(self, job);
    if (!entry || entry->wish != WISH_RUN)
        return 0;
    entry->leased = steps_max > 0;
    entry->lease_end = slurm_steps_now(entry) + (double)steps_max;
    if (entry->told_started)
        slurm_check_lease(entry);
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
    entry->told_started = job_holds_seats(job);
    entry->loaded = job->state != JOB_LOADING;
    entry->started_ns = job->since_ns;
    entry->loaded_at_ns = slurm_now(slurm);
    entry->restarts_then = UINT32_MAX; /* not known; whether it has started is */
    if (stopping) {
        entry->wish = WISH_LEAVE;
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
            tie_entry(slurm, slot)->wish = WISH_WAIT;
}

/* --- what the engine makes of it -------------------------------------------------------------- */

/* It stays held, and says why: its owner can change it or cancel it. */
void slurm_give_up(struct slurm_entry *entry, const char *why)
{
    if (!entry)
        return;
    entry->left_alone = entry->unsaid = true;
    entry->arriving = false;
    snprintf(entry->why, sizeof entry->why, "%s", why ? why : "given up");
    slurm_set_active(entry, true);
    slurm_due(entry, slurm_now(entry->slurm));
}

/* It is out of the engine's books. */
static void untie_entry(struct slurm_entry *entry, const struct event *event)
{
    struct slurm *slurm = entry->slurm;
    slurm->slots[entry->slot] = NULL;
    entry->slot = JOB_NONE;
    entry->left_alone = true;
    slurm_free_hold(&entry->now);
    slurm_free_hold(&entry->then);
    if (entry->stands == STANDS_ENDED && entry->seen) {
        entry->wish = WISH_NONE;
        if (entry->heir) {
            slurm_set_active(entry, true);
            slurm_due(entry, slurm_now(slurm));
        }
        return;
    }
    bool unwanted = event->kind == EVENT_CANCELLED || event->kind == EVENT_DROPPED ||
                    entry->wish == WISH_END;
    entry->evicting = false;
    entry->evict_ns = slurm_now(slurm);
    entry->wish = unwanted ? WISH_END : WISH_NONE;
    slurm_set_active(entry, true);
    slurm_due(entry, slurm_now(slurm));
    if (!unwanted)
        slurm_give_up(entry, event->why);
}

static void hear_event(void *self, const struct view *view, const struct event *event)
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
        entry->wish = WISH_WAIT;
        slurm_set_active(entry, true);
        /* Not now: what the engine is about to decide does not know of seats we take.  One
         * that runs already stands at a gate until then. */
        slurm_due(entry, slurm_now(slurm));
        return;
    }
    struct slurm_entry *entry = slurm_at(slurm, event->job);
    if (entry && event->kind == EVENT_PLACED)
        entry->adopting = false;
    if (entry && view->jobs[event->job].state == JOB_FREE)
        untie_entry(entry, event);
}

static int hear_commit(void *self, struct error *err)
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
    if (!entry || entry->wish != WISH_RUN || !entry->told_started)
        return;
    int64_t now_ns = slurm_now(slurm);
    if (entry->own_steps && entry->reported_ns > 0 && now_ns > entry->reported_ns &&
        step > entry->steps) {
        double rate =
            (step - entry->steps) / ((double)(now_ns - entry->reported_ns) * 1e-9);
        entry->rate_per_s =
            entry->rate_per_s > 0 ? 0.7 * entry->rate_per_s + 0.3 * rate : rate;
    }
    entry->own_steps = true;
    entry->reported_ns = now_ns;
    entry->steps = step;
    entry->loss = loss;
    entry->total = total > 0 ? total : entry->total;
    slurm_tell_loaded(entry);
    struct event *event = slurm_tell(entry, EVENT_PROGRESS);
    event->steps = event->steps_reached = step;
    event->rate_per_s = entry->rate_per_s;
    event->loss = loss;
    event->steps_total = entry->total;
    slurm_check_lease(entry);
}

static void note_saved(void *self, job_id job, double step)
{
    struct slurm *slurm = self;
    struct slurm_entry *entry = slurm_at(slurm, job);
    if (entry && entry->told_started)
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
    slurm->timer_ns = slurm->look_ns = slurm->poke_ns = INT64_MAX;
    slurm->slots =
        memory_checked(calloc(setup->view->job_max, sizeof(struct slurm_entry *)));
    slurm->hosts = memory_checked(
        calloc(setup->view->cluster->node_count + 1, sizeof(struct slurm_host)));
    slurm->host_count = setup->view->cluster->node_count;
    slurm_index_nodes(slurm);
    struct slurm_link_setup link = { .loop = setup->loop,
                                     .program = setup->program.path,
                                     .words = setup->program.words,
                                     .line = slurm_hear,
                                     .broken = slurm_deaf,
                                     .context = slurm };
    uv_timer_init(setup->loop, &slurm->timer);
    slurm->timer.data = slurm;
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
    .event = hear_event,
    .commit = hear_commit,
    .count = slurm_count,
    .remote = true,
    .submit_command = "sbatch",
    .report = report_step,
    .saved = note_saved,
    .trouble = trouble_of,
    .job_reason = job_reason,
    .node_reason = node_reason,
};
