/* api_json.c - jobs, nodes and the ledger as JSON. */
#include "api/api_json.h"

#include <math.h>

#include "base/json_write.h"
#include "model/cluster.h"
#include "model/state.h"

/* ---- jobs ---- */

static void put_time(struct buf *buf, const char *key, int64_t ns)
{
    if (ns >= 0)
        json_write_time(buf, key, ns);
}

static void put_number(struct buf *buf, const char *key, double number)
{
    if (isfinite(number))
        json_write_number(buf, key, number);
}

static void put_progress(struct buf *buf, const struct api_job *job)
{
    bool counts = job->steps > 0;
    if (!counts && !isfinite(job->loss))
        return;
    json_write_open(buf, "progress", '{');
    if (counts) {
        put_number(buf, "step", job->step);
        json_write_number(buf, "steps", job->steps);
        if (job->rate_per_s > 0) {
            json_write_number(buf, "steps_per_s", job->rate_per_s);
            double left = job->steps - job->step;
            if (left > 0) /* a job that goes on beyond its steps may end any time */
                put_number(buf, "eta_s", left / job->rate_per_s);
        }
    }
    put_number(buf, "loss", job->loss);
    json_write_close(buf, '}');
}

/* Name, reason and progress of a job: for its owner. */
static void put_private(struct buf *buf, const struct api_job *job)
{
    json_write_text_if(buf, "name", job->name);
    json_write_text_if(buf, "reason", job->reason);
    json_write_text_if(buf, "entity", job->entity);
    if (job->has_exit_code)
        json_write_count(buf, "exit_code", job->exit_code);
    put_progress(buf, job);
    if (job->beside)
        put_number(buf, "kept", job->kept);
    if (job->command)
        json_write_raw(buf, "command", job->command);
    json_write_text_if(buf, "cwd", job->cwd);
    json_write_text_if(buf, "output", job->output);
}

void api_write_job(struct buf *buf, const char *key, const struct api_job *job)
{
    json_write_open(buf, key, '{');
    json_write_count(buf, "id", (int64_t)job->id);
    json_write_text_if(buf, "user", job->user);
    json_write_text(buf, "class", job->class);
    json_write_text(buf, "state", job->state);
    json_write_count(buf, "gpus", job->gpus);
    json_write_text_if(buf, "types", job->types);
    if (job->placement)
        json_write_raw(buf, "placement", job->placement);
    if (job->attempt >= 0)
        json_write_count(buf, "attempt", job->attempt);
    json_write_count(buf, "preemptions", job->preemptions);
    if (job->beside)
        json_write_count(buf, "beside", (int64_t)job->beside);
    json_write_time(buf, "submit", job->submit_ns);
    put_time(buf, "start", job->start_ns);
    put_time(buf, "end", job->end_ns);
    put_time(buf, "waited_s", job->waited_ns);
    put_time(buf, "served_gpu_s", job->served_ns);
    if (job->array_id) {
        json_write_count(buf, "array_id", (int64_t)job->array_id);
        json_write_count(buf, "array_index", job->array_index);
    }
    if (!job->private)
        put_private(buf, job);
}

void api_write_end(struct buf *buf)
{
    json_write_close(buf, '}');
}

/* ---- nodes ---- */

/* The jobs that hold this GPU. */
static void put_holders(struct buf *buf, const struct state *state, node_id node,
                        uint64_t gpu)
{
    for (job_id id = 0; id < state->job_count; id++) {
        const struct job *job = &state->jobs[id];
        if (job->state == JOB_FREE || !job_holds_seats(job))
            continue;
        const struct seat *seats = view_seats(&state->view, id);
        for (uint32_t i = 0; i < job->seats.count; i++)
            if (seats[i].node == node && (seats[i].gpus & gpu))
                json_write_count(buf, NULL, (int64_t)job->id);
    }
}

static void put_gpu(struct buf *buf, const struct state *state, node_id node,
                    uint32_t gpu)
{
    json_write_open(buf, NULL, '{');
    json_write_count(buf, "gpu", gpu);
    json_write_open(buf, "jobs", '[');
    put_holders(buf, state, node, UINT64_C(1) << gpu);
    json_write_close(buf, ']');
    if (state->foreign[node] >> gpu & 1)
        json_write_flag(buf, "foreign", true);
    json_write_close(buf, '}');
}

/* By GPU, where anything is known. */
static void put_busy(struct buf *buf, node_id node, uint32_t gpus,
                     const struct api_node_source *asked)
{
    if (gpus == 0 || asked->busy(asked->context, node, 0) < 0)
        return;
    json_write_open(buf, "busy", '[');
    for (uint32_t gpu = 0; gpu < gpus; gpu++) {
        int percent = asked->busy(asked->context, node, gpu);
        json_write_number(buf, NULL, percent > 0 ? percent / 100.0 : 0);
    }
    json_write_close(buf, ']');
}

static void put_node(struct buf *buf, const struct state *state, node_id id,
                     const struct api_node_source *asked)
{
    const struct cluster *cluster = state->view.cluster;
    const struct node *node = &cluster->nodes[id];
    const struct room *room = &state->free.rooms[id];
    const char *reason = asked->reason(asked->context, id);
    char name[64];

    json_write_open(buf, NULL, '{');
    json_write_text(buf, "name", cluster_node_name(cluster, id, name, sizeof name));
    if (node->type != TYPE_NONE)
        json_write_text(buf, "type", cluster->types[node->type].name);
    json_write_count(buf, "gpus", node->gpu_count);
    json_write_flag(buf, "up", !state->node_down[id]);
    if (*reason)
        json_write_text(buf, "reason", reason);
    json_write_open(buf, "held", '[');
    for (uint32_t gpu = 0; gpu < node->gpu_count; gpu++)
        if (!(room->gpus >> gpu & 1)) /* free ones are left out */
            put_gpu(buf, state, id, gpu);
    json_write_close(buf, ']');
    put_busy(buf, id, node->gpu_count, asked);
    json_write_number(buf, "cpus", node->cpu_milli / 1000.0);
    json_write_number(buf, "cpus_free", room->cpu_milli / 1000.0);
    json_write_count(buf, "mem_bytes", (int64_t)node->mem_mib << 20);
    json_write_count(buf, "mem_free_bytes", (int64_t)room->mem_mib << 20);
    json_write_close(buf, '}');
}

void api_write_nodes(struct buf *buf, const char *key, const struct state *state,
                     const struct api_node_source *asked)
{
    json_write_open(buf, key, '[');
    for (node_id id = 0; id < state->view.cluster->node_count; id++)
        put_node(buf, state, id, asked);
    json_write_close(buf, ']');
}

/* ---- the ledger ---- */

static double seconds_of(int64_t ns)
{
    return (double)ns * 1e-9;
}

static void put_cost(struct buf *buf, const struct api_entry *entry)
{
    json_write_number(buf, "predicted_cost_gpu_s",
                      seconds_of(entry->predicted_cost_ns));
    json_write_number(buf, "actual_cost_gpu_s",
                      seconds_of(entry->pause_ns + entry->load_ns + entry->redo_ns));
    put_number(buf, "wait_saved_s", entry->wait_saved_s);
}

void api_write_entry(struct buf *buf, const struct api_entry *entry)
{
    json_write_open(buf, NULL, '{');
    json_write_time(buf, "at", entry->at_ns);
    json_write_count(buf, "victim", (int64_t)entry->victim);
    if (entry->beneficiary)
        json_write_count(buf, "for", (int64_t)entry->beneficiary);
    json_write_text(buf, "rule", entry->rule);
    json_write_count(buf, "gpus", entry->gpus);
    put_cost(buf, entry);
    json_write_number(buf, "pause_gpu_s", seconds_of(entry->pause_ns));
    json_write_number(buf, "load_gpu_s", seconds_of(entry->load_ns));
    json_write_number(buf, "redo_gpu_s", seconds_of(entry->redo_ns));
    json_write_flag(buf, "open", entry->open);
    json_write_close(buf, '}');
}

void api_write_preempted(struct buf *buf, const struct api_entry *entry)
{
    json_write_open(buf, NULL, '{');
    if (entry->beneficiary)
        json_write_count(buf, "job", (int64_t)entry->beneficiary);
    json_write_text(buf, "rule", entry->rule);
    json_write_time(buf, "at", entry->at_ns);
    put_cost(buf, entry);
    json_write_close(buf, '}');
}
