/* slurm_requests.c - requests to Slurm, one at a time for each job, and their answers. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/json.h"
#include "base/json_write.h"
#include "base/memory.h"
#include "executor/slurm/slurm_internal.h"
#include "executor/slurm/slurm_link.h"
#include "model/cluster.h"
#include "model/launch.h"

#define LINE_BYTES_MAX (1u << 20)

/* --- what a verb needs ---------------------------------------------------------------- */

/* NULL: the job is not in berthd's books. */
static const struct launch *find_launch(const struct slurm_entry *entry)
{
    const struct slurm_setup *setup = &entry->slurm->setup;
    const struct launch *launch = NULL;
    struct error err;
    return setup->launch(setup->context, entry->id, &launch, &err) < 0 ? NULL : launch;
}

static void write_nodes(struct buf *line, const struct slurm_entry *entry)
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
static void write_size(struct buf *line, const struct slurm_entry *entry)
{
    const struct job *job = &entry->slurm->setup.view->jobs[entry->slot];
    const struct launch *launch = find_launch(entry);
    uint32_t gpus = 0;
    for (uint32_t i = 0; i < entry->now.count; i++)
        gpus += seat_gpu_count(&entry->now.seats[i]);
    if (!job_is_elastic(job) || gpus == 0)
        return;
    uint32_t nodes = entry->now.count;
    uint32_t before = job->nodes ? job->nodes : 1;
    uint32_t tasks = nodes;
    if (launch && launch->tasks_per_node > 0)
        before *= launch->tasks_per_node;
    if (before == job->gpus)
        tasks = gpus; /* a task for each of them */
    uint64_t cpus = (uint64_t)job->cpu_milli * tasks / before / 1000;
    json_write_count(line, "gpus_per_node", gpus / nodes);
    json_write_count(line, "tasks", tasks);
    json_write_count(line, "cpus", cpus > tasks ? (int64_t)cpus : tasks);
}

static void write_signal(struct buf *line, const struct slurm_entry *entry)
{
    const struct launch *launch = find_launch(entry);
    if (!launch)
        return;
    json_write_text(line, "signal", sigabbrev_np(launch->signal));
    json_write_text(line, "to", launch->signal_to ? launch->signal_to : "batch");
}

static void write_comment(struct buf *line, const struct slurm_entry *entry)
{
    char text[256];
    snprintf(text, sizeof text, "berth: %s", entry->why);
    for (char *at = text; *at; at++)
        if ((unsigned char)*at < ' ' || *at == 127)
            *at = ' ';
    json_write_text(line, "text", text);
}

bool slurm_request_has_signal(const struct slurm_entry *entry)
{
    const struct launch *launch = find_launch(entry);
    return launch && launch->signal_to != NULL;
}

/* --- requests --------------------------------------------------------------------------- */

static void send_request(struct slurm_entry *entry, enum bridge_verb verb,
                         const char *job)
{
    struct slurm *slurm = entry->slurm;
    struct buf line;
    buf_init(&line, LINE_BYTES_MAX);
    entry->seq = ++slurm->seq_last;
    entry->verb = verb;
    entry->news = NEWS_NONE;
    map_put(&slurm->by_seq, (uint64_t)entry->seq, (uint32_t)entry->id);
    json_write_open(&line, NULL, '{');
    json_write_count(&line, "seq", entry->seq);
    json_write_text(&line, "verb", bridge_verb_name(verb));
    json_write_text(&line, "job", job);
    if (verb == VERB_START) {
        write_nodes(&line, entry);
        write_size(&line, entry);
    } else if (verb == VERB_SIGNAL)
        write_signal(&line, entry);
    else if (verb == VERB_COMMENT)
        write_comment(&line, entry);
    json_write_close(&line, '}');
    slurm_link_say(slurm->link, &line);
    buf_release(&line);
}

void slurm_request(struct slurm_entry *entry, enum bridge_verb verb)
{
    char job[48];
    snprintf(job, sizeof job, "%" PRIu64, entry->id);
    if (entry->task >= 0) /* the number alone would mean the whole array */
        snprintf(job, sizeof job, "%" PRIu64 "_%" PRId64, entry->id, entry->task);
    send_request(entry, verb, job);
}

void slurm_request_task(struct slurm_entry *entry, uint32_t task)
{
    char job[48];
    snprintf(job, sizeof job, "%" PRIu64 "_%u", entry->id, task);
    send_request(entry, VERB_HOLD, job);
}

void slurm_request_lost(struct slurm_entry *entry)
{
    if (entry->seq && entry->verb == VERB_COMMENT)
        entry->comment_due = true;
    entry->seq = 0;
}

/* --- refused ------------------------------------------------------------------------------ */

/* There is no process to be signalled: then it is requeued at once. */
static void handle_no_signal(struct slurm_entry *entry)
{
    if (entry->stage == STAGE_STOP)
        entry->stage = STAGE_SAVE;
    entry->evict_ns = slurm_now(entry->slurm);
    entry->not_before_ns = 0;
}

static void handle_no_start(struct slurm_entry *entry, const char *error)
{
    char why[128];
    if (entry->news == NEWS_CHANGED || entry->stage != STAGE_RUN)
        return;
    snprintf(why, sizeof why, "Slurm refuses to start it: %.80s", error);
    slurm_drive_start_failed(entry, why);
}

/* Refused for good, as far as this state of the job goes. */
static void handle_final_refusal(struct slurm_entry *entry, const char *error)
{
    switch (entry->verb) {
    case VERB_SCRIPT: /* it is submitted without */
        entry->stage = entry->stage == STAGE_NEW ? STAGE_READ : entry->stage;
        entry->not_before_ns = 0;
        break;
    case VERB_REVIVE:
        entry->run.revival = REVIVAL_REFUSED;
        break;
    case VERB_START:
        handle_no_start(entry, error);
        break;
    case VERB_SIGNAL:
        handle_no_signal(entry);
        break;
    default:
        break;
    }
}

static void log_refusal(const struct slurm_entry *entry, const char *error)
{
    /* One that was to come back held if it comes back, and has ended meanwhile. */
    bool guard = entry->verb == VERB_HOLD && slurm_is_running(entry);
    if (entry->news != NEWS_CHANGED && entry->verb != VERB_SCRIPT && !guard)
        fprintf(stderr, "berthd: job %" PRIu64 ": Slurm refuses to %s it: %s\n",
                entry->id, bridge_verb_name(entry->verb), error);
}

static void handle_refusal(struct slurm_entry *entry, const struct json *done)
{
    const char *error = json_as_text(json_get(done, "error"));
    bool transient = json_flag_at(done, "transient");
    error = error ? error : "?";
    entry->not_before_ns = slurm_now(entry->slurm) + (transient ? AGAIN_NS : LATER_NS);
    if (entry->news == NEWS_CHANGED) /* and so it is no wonder */
        entry->not_before_ns = 0;
    if (entry->verb == VERB_EVICT && entry->stage == STAGE_EVICT)
        entry->stage = STAGE_SAVE;
    if (entry->verb == VERB_COMMENT)
        entry->comment_due = transient;
    if (!transient) {
        log_refusal(entry, error);
        handle_final_refusal(entry, error);
    }
    slurm_due(entry, entry->not_before_ns);
}

/* --- carried out ---------------------------------------------------------------------------- */

/* Its time to save itself counts from when it was told, not from when we wanted that. */
static void handle_signalled(struct slurm_entry *entry)
{
    if (entry->stage != STAGE_STOP)
        return;
    entry->stage = STAGE_SAVE;
    entry->run.departure = DEPARTURE_SIGNALLED;
    entry->evict_ns =
        slurm_now(entry->slurm) + entry->slurm->setup.view->jobs[entry->slot].grace_ns;
}

static void handle_held(struct slurm_entry *entry)
{
    entry->parked = false;
    if (slurm_is_running(entry))
        entry->run.guarded = true;
    else if (entry->run.progress >= PROGRESS_RELEASED) /* it may run by now */
        entry->not_before_ns = slurm_now(entry->slurm) + AGAIN_NS;
    else if (!entry->tasks)
        entry->held = true; /* until that is reported */
}

static void handle_script(struct slurm_entry *entry, const struct json *done)
{
    free(entry->script);
    entry->script = memory_text(json_as_text(json_get(done, "text")));
    if (entry->stage == STAGE_NEW)
        entry->stage = STAGE_READ;
}

static void handle_success(struct slurm_entry *entry, const struct json *done)
{
    int64_t now_ns = slurm_now(entry->slurm);
    switch (entry->verb) {
    case VERB_START:
        if (entry->run.progress == PROGRESS_PLACED)
            entry->run.progress = PROGRESS_RELEASED;
        entry->run.released_ns = now_ns;
        break;
    case VERB_SIGNAL:
        handle_signalled(entry);
        break;
    case VERB_EVICT:
    case VERB_CANCEL:
        entry->evict_ns = now_ns + LATER_NS; /* then once more */
        break;
    case VERB_REVIVE:
        if (entry->news != NEWS_CHANGED) /* until that is reported */
            entry->not_before_ns = now_ns + AGAIN_NS;
        break;
    case VERB_RELEASE: /* once: from now on it is held by Slurm, or by its owner */
        if (entry->stage == STAGE_UNMANAGED)
            entry->stage = STAGE_CLOSED;
        break;
    case VERB_HOLD:
        handle_held(entry);
        break;
    case VERB_PARK:
        if (!entry->parked) /* its dependency may have gone before */
            slurm_poke_soon(entry->slurm);
        entry->parked = true;
        break;
    case VERB_SCRIPT:
        handle_script(entry, done);
        break;
    case VERB_POLL:
        entry->news = NEWS_POLLED;
        break;
    case VERB_COMMENT:
        break;
    }
}

void slurm_request_done(struct slurm_entry *entry, const struct json *done)
{
    entry->seq = 0;
    slurm_set_active(entry, true);
    if (json_flag_at(done, "ok"))
        handle_success(entry, done);
    else
        handle_refusal(entry, done);
    slurm_drive(entry);
}
