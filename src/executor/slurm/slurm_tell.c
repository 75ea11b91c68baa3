/* slurm_tell.c - what the engine is told of a job, and what Slurm is asked for. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/json_write.h"
#include "base/units.h"
#include "executor/slurm/slurm_link.h"
#include "executor/slurm/slurm_internal.h"
#include "model/cluster.h"
#include "model/launch.h"
#include "model/outbox.h"
#include "model/throughput.h"

#define LOAD_MAX_NS (10 * NS_PER_S)

/* --- telling ------------------------------------------------------------------------ */

struct event *slurm_emit(struct slurm *slurm, enum event_kind kind)
{
    struct event *event = outbox_add(*slurm->setup.outbox);
    event->at_ns = slurm_now(slurm);
    event->kind = kind;
    event->job = JOB_NONE;
    slurm->setup.wake(slurm->setup.context);
    return event;
}

struct event *slurm_tell(struct slurm_entry *entry, enum event_kind kind)
{
    struct event *event = slurm_emit(entry->slurm, kind);
    event->job = entry->slot;
    event->generation = entry->generation;
    event->attempt = entry->now.attempt;
    return event;
}

/* Steps a second, of a job that does not say: as fast as the policy takes it to be. */
static double steps_per_s(const struct slurm_entry *entry)
{
    const struct view *view = entry->slurm->setup.view;
    if (entry->now.count == 0)
        return 1;
    uint32_t type = view->cluster->nodes[entry->now.seats[0].node].type;
    const struct job *job = &view->jobs[entry->slot];
    double rate = type == TYPE_NONE
                      ? 1
                      : throughput_rate(view->rates, job, type, job->gpus, false);
    return rate > 0 ? rate : 1;
}

double slurm_steps_now(const struct slurm_entry *entry)
{
    if (entry->own_steps || !entry->told_started)
        return entry->steps;
    return entry->steps_kept + (double)(slurm_now(entry->slurm) - entry->started_ns) *
                                   1e-9 * steps_per_s(entry);
}

void slurm_tell_started(struct slurm_entry *entry)
{
    if (entry->told_started)
        return;
    int64_t load_ns = entry->slurm->setup.view->jobs[entry->slot].load_ns;
    entry->told_started = true;
    entry->started_ns = slurm_now(entry->slurm);
    entry->loaded = load_ns == 0;
    entry->loaded_at_ns =
        entry->started_ns + (load_ns < LOAD_MAX_NS ? load_ns : LOAD_MAX_NS);
    slurm_tell(entry, EVENT_STARTED)->loaded = entry->loaded;
}

void slurm_tell_loaded(struct slurm_entry *entry)
{
    if (entry->loaded)
        return;
    entry->loaded = true;
    slurm_tell(entry, EVENT_LOADED);
}

/* It is not frozen at the end of its lease: it goes on until it is renewed or stopped. */
void slurm_check_lease(struct slurm_entry *entry)
{
    if (!entry->leased)
        return;
    double left = entry->lease_end - slurm_steps_now(entry);
    if (left > 0) {
        if (!entry->own_steps)
            slurm_due(entry, slurm_now(entry->slurm) +
                                 (int64_t)(left / steps_per_s(entry) * 1e9));
        return;
    }
    entry->leased = false;
    slurm_tell_loaded(entry);
    struct event *event = slurm_tell(entry, EVENT_LEASE_DONE);
    event->steps = event->steps_reached = slurm_steps_now(entry);
    event->rate_per_s = entry->own_steps ? entry->rate_per_s : steps_per_s(entry);
    event->loss = NAN;
}

/* How it ended, or left; it keeps what it has reached only if it has saved it. */
void slurm_tell_end(struct slurm_entry *entry, enum event_kind kind, bool kept)
{
    slurm_tell_started(entry);
    double reached = slurm_steps_now(entry);
    struct event *event = slurm_tell(entry, kind);
    event->steps_reached = reached;
    event->steps = kept ? reached : entry->own_steps ? entry->saved : entry->steps_kept;
    event->rate_per_s = entry->own_steps ? entry->rate_per_s : 0;
    event->loss = entry->loss;
    event->exit_code = entry->signal ? 128 + entry->signal : entry->exit_code;
    event->clean = kept;
    event->why = entry->why[0] ? entry->why : NULL;
    entry->steps = entry->steps_kept = event->steps;
    slurm_leave_seats(entry);
}

/* An attempt came to nothing before it began, or with its node. */
void slurm_tell_lost(struct slurm_entry *entry, const char *why)
{
    snprintf(entry->why, sizeof entry->why, "%s", why);
    double reached = slurm_steps_now(entry);
    struct event *event = slurm_tell(entry, EVENT_LOST);
    event->steps = entry->own_steps ? entry->saved : entry->steps_kept;
    event->steps_reached = reached;
    event->loss = entry->loss;
    event->why = entry->why;
    entry->steps = entry->steps_kept = event->steps;
    slurm_leave_seats(entry);
}

/* --- asking ------------------------------------------------------------------------- */

void slurm_ask_as(struct slurm_entry *entry, const char *verb, const char *job,
                  void (*more)(struct buf *line, const struct slurm_entry *entry))
{
    struct slurm *slurm = entry->slurm;
    struct buf line;
    buf_init(&line, 1 << 20);
    entry->seq = ++slurm->seq_last;
    entry->verb = verb;
    entry->sure = entry->changed = false;
    map_put(&slurm->by_seq, (uint64_t)entry->seq, (uint32_t)entry->id);
    json_write_open(&line, NULL, '{');
    json_write_count(&line, "seq", entry->seq);
    json_write_text(&line, "verb", verb);
    json_write_text(&line, "job", job);
    if (more)
        more(&line, entry);
    json_write_close(&line, '}');
    slurm_link_say(slurm->link, &line);
    buf_release(&line);
}

void slurm_ask(struct slurm_entry *entry, const char *verb,
               void (*more)(struct buf *line, const struct slurm_entry *entry))
{
    char job[48];
    snprintf(job, sizeof job, "%" PRIu64, entry->id);
    if (entry->task >= 0) /* the number alone would mean the whole array */
        snprintf(job, sizeof job, "%" PRIu64 "_%" PRId64, entry->id, entry->task);
    slurm_ask_as(entry, verb, job, more);
}

static void say_nodes(struct buf *line, const struct slurm_entry *entry)
{
    const struct cluster *cluster = entry->slurm->setup.view->cluster;
    char text[32];
    json_write_open(line, "nodes", '[');
    for (uint32_t i = 0; i < entry->now.count; i++)
        json_write_text(
            line, NULL,
            cluster_node_name(cluster, entry->now.seats[i].node, text, sizeof text));
    json_write_close(line, ']');
}

/*
 * Another size than it was submitted with: Slurm wants to know all that goes with it.  Only
 * jobs that said how small and how large they may be come here.
 */
void slurm_say_shape(struct buf *line, const struct slurm_entry *entry)
{
    const struct slurm_setup *setup = &entry->slurm->setup;
    const struct job *job = &setup->view->jobs[entry->slot];
    const struct launch *launch;
    struct error err;
    uint32_t gpus = 0;
    say_nodes(line, entry);
    for (uint32_t i = 0; i < entry->now.count; i++)
        gpus += seat_gpu_count(&entry->now.seats[i]);
    if (!job_is_elastic(job) || gpus == 0)
        return;
    uint32_t nodes = entry->now.count;
    uint32_t before = job->nodes ? job->nodes : 1;
    uint32_t tasks = nodes;
    if (setup->launch(setup->context, entry->id, &launch, &err) == 0 &&
        launch->tasks_per_node > 0)
        before *= launch->tasks_per_node;
    if (before == job->gpus)
        tasks = gpus; /* a task for each of them */
    uint64_t cpus = (uint64_t)job->cpu_milli * tasks / before / 1000;
    json_write_count(line, "gpus_per_node", gpus / nodes);
    json_write_count(line, "tasks", tasks);
    json_write_count(line, "cpus", cpus > tasks ? (int64_t)cpus : tasks);
}

void slurm_say_why(struct buf *line, const struct slurm_entry *entry)
{
    char text[256];
    snprintf(text, sizeof text, "berth: %s", entry->why);
    for (char *at = text; *at; at++)
        if ((unsigned char)*at < ' ' || *at == 127)
            *at = ' ';
    json_write_text(line, "text", text);
}
