/* local_runs.c - the attempts under way on this machine: kept, found, forgotten. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "executor/local/local_run.h"
#include "model/cluster.h"

struct local_run *local_run_in(const struct local *local, job_id job)
{
    struct local_run *run = job == JOB_NONE ? NULL : local->slots[job];
    while (run && (run->phase == PHASE_WAITS || run->phase >= PHASE_OVER))
        run = run->same_slot;
    return run;
}

static void keep_after(struct local_run *run, const struct lease *lease)
{
    if (lease->after_count == 0)
        return;
    run->after = memory_checked(calloc(lease->after_count, sizeof *run->after));
    memcpy(run->after, lease->after, lease->after_count * sizeof *run->after);
    run->after_count = lease->after_count;
}

/* Those who have left already are not waited for. */
void local_drop_absent(struct local_run *run)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < run->after_count; i++) {
        struct local_run *other = run->local->slots[run->after[i]];
        bool itself = run->after[i] == run->job; /* until its end is on record */
        while (other && (other == run || (!itself && other->phase >= PHASE_OVER)))
            other = other->same_slot;
        if (other)
            run->after[kept++] = run->after[i];
    }
    run->after_count = kept;
}

static void write_gpus(struct local_run *run, const struct lease *lease)
{
    const uint32_t *index = run->local->setup.gpu_index;
    size_t used = 0;
    for (uint32_t s = 0; s < lease->seat_count; s++) {
        const struct seat *seat = &lease->seats[s];
        run->cpu_milli += seat->cpu_milli;
        run->mem_mib += seat->mem_mib;
        for (uint32_t g = 0; g < NODE_GPUS_MAX; g++) {
            if (!(seat->gpus >> g & 1))
                continue;
            uint32_t told = index ? index[seat->node * NODE_GPUS_MAX + g] : g;
            run->gpu_count++;
            used += (size_t)snprintf(run->gpus + used, sizeof run->gpus - used,
                                     "%s%" PRIu32, used ? "," : "", told);
            if (used >= sizeof run->gpus)
                used = sizeof run->gpus - 1;
        }
    }
}

struct local_run *local_add_run(struct local *local, const struct lease *lease)
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
    run->due_ns = INT64_MAX;
    run->fd = -1;
    write_gpus(run, lease);
    keep_after(run, lease);
    struct local_run *partner = local_run_in(local, lease->beside);
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

struct local_run *local_find_run(const struct local *local, job_id job,
                                 uint32_t generation, uint32_t attempt)
{
    struct local_run *run = local->slots[job];
    while (run && (run->generation != generation || run->attempt != attempt))
        run = run->same_slot;
    return run;
}

void local_forget(struct local_run *run)
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
    local_reap_later(local, run->supervisor);
    local_link_close(run);
    free(run->after);
    run->local = NULL;
    if (!run->polled)
        free(run); /* otherwise as soon as the loop has let go of it */
}
