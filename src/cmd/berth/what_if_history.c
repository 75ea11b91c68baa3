/* what_if_history.c - what was run, where and by which policy: from berthd or from a file. */
#include "cmd/berth/what_if_history.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api/call.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/grow.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/sort.h"
#include "base/units.h"
#include "cmd/berth/exported_jobs.h"
#include "cmd/berth/format.h"
#include "policy/policy.h"
#include "workload/workload.h"

#define JOBS_MAX 10000000
#define STOPS_ENOUGH 5 /* jobs that were stopped, to tell how others would have been */

void history_init(struct history *history)
{
    *history = (struct history){ .zero_s = NAN, .seed = 1 };
    arena_init(&history->arena, 0);
}

void history_release(struct history *history)
{
    free(history->jobs);
    free(history->counted);
    arena_release(&history->arena);
}

void history_note(struct history *history, const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (history->note_count < HISTORY_NOTES_MAX)
        history->notes[history->note_count++] = arena_text(&history->arena, text);
}

/* ---- jobs ---- */

static const char *copy_text(struct history *history, const char *text)
{
    return text ? arena_text(&history->arena, text) : NULL;
}

/* A job with texts that live as long as the history. */
static struct job_spec *add_job(struct history *history, const struct job_spec *job,
                                uint32_t *room)
{
    history->jobs = grow_array(history->jobs, room, (uint32_t)history->job_count + 1,
                               sizeof *history->jobs);
    struct job_spec *copy = &history->jobs[history->job_count++];
    *copy = *job;
    copy->name = copy_text(history, job->name);
    copy->user = copy_text(history, job->user);
    copy->entity = copy_text(history, job->entity);
    copy->kind = copy_text(history, job->kind);
    copy->types = copy_text(history, job->types);
    copy->nodelist = copy_text(history, job->nodelist);
    copy->exclude = copy_text(history, job->exclude);
    copy->after = copy_text(history, job->after);
    copy->within = copy_text(history, job->within);
    if (job->curve.point_count > 0) {
        float *points = arena_array(&history->arena, float, job->curve.point_count);
        memcpy(points, job->curve.points, job->curve.point_count * sizeof *points);
        copy->curve.points = points;
    }
    return copy;
}

/* Jobs that said the same of how they save, and were stopped. */
struct stopped_jobs {
    uint32_t count, kept;
    double pause_s;
};

static bool was_stopped(const struct job_spec *job)
{
    return job->costs_told && job->past.stops > 0;
}

/*
 * How a job leaves that was never stopped is not known: as the others did that said the same of how
 * they save.  Too few of them change nothing.
 */
static void guess_stops(struct history *history)
{
    struct stopped_jobs stopped[2] = { 0 };
    for (uint64_t i = 0; i < history->job_count; i++) {
        const struct job_spec *job = &history->jobs[i];
        if (!was_stopped(job))
            continue;
        struct stopped_jobs *alike = &stopped[job->loses_work];
        alike->count++;
        alike->kept += !job->keeps_nothing;
        alike->pause_s += (double)job->pause_ns * 1e-9;
    }
    for (uint64_t i = 0; i < history->job_count; i++) {
        struct job_spec *job = &history->jobs[i];
        const struct stopped_jobs *alike = &stopped[job->loses_work];
        if (!job->costs_told || was_stopped(job) || alike->count < STOPS_ENOUGH)
            continue;
        job->keeps_nothing = 2 * alike->kept < alike->count;
        job->pause_ns = units_ns(alike->pause_s / alike->count);
    }
}

static double work_s_of(const struct job_spec *job)
{
    return job->steps * (job->step_s > 0 ? job->step_s : 1);
}

/* The work of a job in the middle of those that have ended. */
static double middle_work_s(const struct history *history, const bool *live)
{
    double *works = memory_checked(calloc(2 * history->job_count + 1, sizeof *works));
    size_t count = 0;
    for (uint64_t i = 0; i < history->job_count; i++)
        if (!live[i] && history->jobs[i].past.end == ENDED_COMPLETED)
            works[count++] = work_s_of(&history->jobs[i]);
    sort_numbers(works, works + history->job_count, count);
    double middle_s = count > 0 ? works[count / 2] : 1;
    free(works);
    return middle_s;
}

/*
 * A job that has not ended: the work that it declared; twice what it has made so far, if that is
 * more or it declared none; and if it has made none, that of the job in the middle.
 */
static void guess_live(struct history *history, const bool *live, const double *made_s)
{
    double middle_s = middle_work_s(history, live);
    for (uint64_t i = 0; i < history->job_count; i++) {
        struct job_spec *job = &history->jobs[i];
        if (!live[i])
            continue;
        double declared_s = job->undeclared ? 0 : job->steps_declared;
        job->steps = declared_s > made_s[i] ? declared_s : 2 * made_s[i];
        if (!(job->steps > 0))
            job->steps = middle_s;
    }
}

/* ---- from berthd ---- */

struct history_reader {
    struct history *history;
    struct exported_jobs reader;
    uint32_t job_room, live_room, made_room;
    bool *live;
    double *made_s; /* of jobs that live */
    uint64_t live_count, others, rejected;
    double history_from;
    bool too_many;
};

static void read_job(struct history_reader *reader, const struct json *json)
{
    struct history *history = reader->history;
    struct job_spec spec = exported_job_read(&reader->reader, json);
    uint32_t at = (uint32_t)history->job_count;
    reader->too_many = reader->too_many || at >= JOBS_MAX;
    if (reader->too_many)
        return;
    add_job(history, &spec, &reader->job_room);
    reader->live = grow_array(reader->live, &reader->live_room, at + 1, 1);
    reader->made_s =
        grow_array(reader->made_s, &reader->made_room, at + 1, sizeof *reader->made_s);
    reader->live[at] = json_flag_at(json, "live");
    reader->made_s[at] = json_number_or(json, "made_s", 0);
    reader->live_count += reader->live[at];
    reader->others += json_get(json, "keeps") == NULL;
}

static void read_page(void *context, const struct json *page)
{
    struct history_reader *reader = context;
    const struct json *jobs = json_get(page, "jobs");
    for (size_t i = 0; i < json_count(jobs); i++)
        read_job(reader, json_item(jobs, i));
    reader->rejected += (uint64_t)json_count_at(page, "rejected");
    reader->history_from = json_number_or(page, "history_from", 0);
}

static int read_types(struct history *history, const struct json *types,
                      struct error *err)
{
    struct cluster *cluster = &history->cluster;
    for (size_t i = 0; i < json_count(types); i++) {
        const struct json *type = json_item(types, i);
        uint32_t at =
            cluster_type(cluster, &history->arena, json_text_or(type, "name", ""));
        if (at == TYPES_MAX)
            return error_set(err, -EIO, "berthd tells more than %d types of GPU",
                             TYPES_MAX);
        cluster->types[at].speed = json_number_or(type, "speed", 1);
        cluster->types[at].usd_per_hour = json_number_or(type, "usd_per_hour", 0);
    }
    return 0;
}

static struct entity *read_entities(struct history *history, const struct json *list,
                                    uint32_t *ret_count)
{
    uint32_t count = (uint32_t)json_count(list);
    struct entity *entities = arena_array(&history->arena, struct entity, count + 1);
    for (uint32_t i = 0; i < count; i++) {
        const struct json *one = json_item(list, i);
        entities[i] =
            (struct entity){ .name = arena_text(&history->arena,
                                                json_text_or(one, "name", "")),
                             .weight = json_number_or(one, "weight", 1),
                             .fifo = json_flag_at(one, "fifo") };
    }
    *ret_count = count;
    return entities;
}

static int read_cluster(struct history *history, const struct json *answer,
                        struct error *err)
{
    struct cluster *cluster = &history->cluster;
    const struct json *nodes = json_get(answer, "nodes");
    size_t count = json_count(nodes);
    if (count > NODES_MAX)
        return error_set(err, -EIO, "berthd tells more than %d nodes", NODES_MAX);
    cluster_begin(cluster, &history->arena, "history", (uint32_t)count);
    int r = read_types(history, json_get(answer, "types"), err);
    if (r < 0)
        return r;
    cluster->first_fit = json_flag_at(answer, "first_fit");
    cluster->node_names = arena_array(&history->arena, const char *, count + 1);
    for (size_t i = 0; i < count; i++) {
        const struct json *one = json_item(nodes, i);
        struct node node = {
            .gpu_count = (uint32_t)json_count_at(one, "gpus"),
            .cpu_milli = (uint32_t)(json_number_or(one, "cpus", 0) * 1000 + 0.5),
            .mem_mib = (uint32_t)(json_number_or(one, "mem_bytes", 0) / 0x1p20),
            .rack = (uint32_t)json_count_at(one, "rack"),
        };
        if (node.gpu_count > NODE_GPUS_MAX)
            return error_set(err, -EIO, "berthd tells of a node with %u GPUs",
                             node.gpu_count);
        node.type =
            cluster_type(cluster, &history->arena, json_text_or(one, "type", ""));
        if (node.gpu_count > 0 && node.type == TYPES_MAX)
            return error_set(err, -EIO, "berthd tells more than %d types of GPU",
                             TYPES_MAX);
        cluster->node_names[i] =
            arena_text(&history->arena, json_text_or(one, "name", ""));
        cluster_add(cluster, &node);
    }
    cluster_end(cluster, &history->arena);
    cluster->entities =
        read_entities(history, json_get(answer, "groups"), &cluster->entity_count);
    cluster->users =
        read_entities(history, json_get(answer, "users"), &cluster->user_count);
    return 0;
}

static bool read_change(const struct history *history, const struct json *line,
                        struct sim_node_change *ret)
{
    const char *kind = json_text_or(line, "kind", "");
    const struct json *gpus = json_get(line, "gpus");
    int64_t node = json_count_at(line, "node");
    double at_s = json_number_or(line, "at", 0) - history->zero_s;
    *ret = (struct sim_node_change){
        .at_ns = at_s > 0 ? units_ns(at_s) : 0,
        .kind = strcmp(kind, "node_down") == 0 ? EVENT_NODE_DOWN
                : strcmp(kind, "node_up") == 0 ? EVENT_NODE_UP
                                               : EVENT_FOREIGN,
        .node = (node_id)node,
    };
    if (node < 0 || node >= history->cluster.node_count)
        return false; /* of a cluster that had more */
    for (size_t i = 0; i < json_count(gpus); i++) {
        int64_t gpu;
        if (json_as_count(json_item(gpus, i), &gpu) && gpu >= 0 &&
            gpu < history->cluster.nodes[node].gpu_count)
            ret->gpus |= UINT64_C(1) << gpu;
    }
    return true;
}

/* What was so before time 0 is so from then on; later changes replace it in order. */
static void read_changes(struct history *history, const struct json *lines)
{
    size_t count = json_count(lines);
    history->changes = arena_array(&history->arena, struct sim_node_change, count + 1);
    for (size_t i = 0; i < count; i++)
        if (read_change(history, json_item(lines, i),
                        &history->changes[history->change_count]))
            history->change_count++;
}

/* A policy that this berth does not know, or with other settings, cannot be played. */
static bool is_known(const char *policy)
{
    const struct policy *found;
    const char *settings;
    return policy_parse(policy, &found, &settings, NULL) == 0;
}

static void note_policies(struct history *history)
{
    const struct sim_policy_change *last =
        &history->policies[history->policy_count - 1];
    const char *before =
        history->policy_count > 1 ? last[-1].policy : history->policy_first;
    char when[64];
    history_note(
        history,
        "The policy was %s until %s, then %s; the replay changes it at the same "
        "time, and forgets then what the one before had learned.",
        before,
        format_time(when, sizeof when, history->zero_s + (double)last->at_ns * 1e-9),
        last->policy);
}

/* The first is there at time 0, the others take over as they did. */
static void read_policies(struct history *history, const struct json *answer)
{
    const struct json *policies = json_get(answer, "policies");
    size_t count = json_count(policies);
    history->policy = history->policy_first =
        arena_text(&history->arena, json_text_or(answer, "policy", ""));
    history->seed = (uint64_t)json_count_at(answer, "seed");
    history->policies =
        arena_array(&history->arena, struct sim_policy_change, count + 1);
    for (size_t i = 0; i < count; i++) {
        const struct json *one = json_item(policies, i);
        double at_s = json_number_or(one, "since", 0) - history->zero_s;
        const char *policy =
            arena_text(&history->arena, json_text_or(one, "policy", ""));
        if (!is_known(policy))
            continue;
        if (at_s <= 0 || i == 0)
            history->policy_first = policy;
        else
            history->policies[history->policy_count++] =
                (struct sim_policy_change){ units_ns(at_s), policy };
    }
    if (history->policy_count > 0)
        note_policies(history);
}

static void describe_cluster(struct history *history)
{
    const struct cluster *cluster = &history->cluster;
    struct buf text;
    buf_init(&text, 4096);
    buf_print(&text, "%u node%s", cluster->node_count,
              cluster->node_count == 1 ? "" : "s");
    for (uint32_t t = 0; t < cluster->type_count; t++)
        buf_print(&text, ", %u %s", cluster->types[t].gpu_count,
                  cluster->types[t].name);
    history->cluster_text = arena_text(&history->arena, text.bytes);
    buf_release(&text);
}

static int ask_cluster(struct history *history, struct call *call, struct error *err)
{
    char path[96];
    struct json *answer;
    snprintf(path, sizeof path, "/v1/export/cluster?since=%.3f", history->zero_s);
    int r = call_json(call, "GET", path, NULL, &answer, err);
    if (r < 0)
        return r;
    r = read_cluster(history, answer, err);
    if (r == 0) {
        describe_cluster(history);
        read_changes(history, json_get(answer, "changes"));
        read_policies(history, answer);
    }
    json_free(answer);
    return r;
}

static void count_jobs(struct history *history, const bool *live)
{
    history->counted =
        memory_checked(calloc(history->job_count + 1, sizeof *history->counted));
    for (uint64_t i = 0; i < history->job_count; i++) {
        const struct job_spec *job = &history->jobs[i];
        bool ended_well =
            job->past.end == ENDED_COMPLETED || job->past.end == ENDED_UNKNOWN;
        history->counted[i] =
            ended_well && !(live && live[i]) && job->submit_ns >= history->from_ns;
        history->counted_count += history->counted[i];
    }
}

static void note_rest(struct history *history, const struct history_reader *reader)
{
    char when[64];
    if (reader->live_count > 0)
        history_note(history,
                     "%" PRIu64 " job%s not ended: played with the work declared, or "
                     "twice what was made so far, and not counted.",
                     reader->live_count, reader->live_count == 1 ? " has" : "s have");
    if (reader->others > 0)
        history_note(history,
                     "%" PRIu64 " job%s of other users %s played by the time on GPUs; "
                     "root, and the user who runs berthd, see more.",
                     reader->others, reader->others == 1 ? "" : "s",
                     reader->others == 1 ? "is" : "are");
    if (reader->history_from > history->zero_s)
        history_note(history, "Jobs that ended before %s are no longer kept.",
                     format_time(when, sizeof when, reader->history_from));
}

int history_ask(struct history *history, struct call *call, int64_t last_ns,
                struct error *err)
{
    struct history_reader reader = { .history = history };
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    double now_s = (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
    double last_s = (double)last_ns * 1e-9;
    double since_s = now_s > 2 * last_s ? now_s - 2 * last_s : 0;
    history->zero_s = reader.reader.zero_s = since_s;
    history->from_ns =
        units_ns(now_s - last_s > since_s ? now_s - last_s - since_s : 0);
    history->to_ns = units_ns(now_s - since_s);
    history->text = "history of berthd";
    int r = exported_pages_read(call, since_s, true, read_page, &reader, err);
    if (r == 0 && reader.too_many)
        r = error_set(err, -ERANGE, "more than %d jobs; ask for a shorter --last",
                      JOBS_MAX);
    if (r == 0)
        r = ask_cluster(history, call, err);
    if (r == 0) {
        guess_stops(history);
        guess_live(history, reader.live, reader.made_s);
        count_jobs(history, reader.live);
        note_rest(history, &reader);
    }
    exported_jobs_release(&reader.reader);
    free(reader.live);
    free(reader.made_s);
    return r;
}

/* ---- from a file ---- */

static int read_jobs(struct history *history, const char *path, const char *format,
                     struct error *err)
{
    struct workload *workload;
    struct job_spec job;
    uint32_t room = 0;
    uint64_t id_next = 1;
    int r = workload_open(&workload, path, format, history->seed,
                          history->cluster.gpu_count, err);
    if (r < 0)
        return r;
    while ((r = workload_next(workload, &job, err)) > 0) {
        if (history->job_count >= JOBS_MAX) {
            r = error_set(err, -EINVAL, "%s: more than %d jobs", path, JOBS_MAX);
            break;
        }
        if (job.id == 0)
            job.id = id_next;
        id_next = job.id >= id_next ? job.id + 1 : id_next;
        add_job(history, &job, &room);
    }
    workload_close(workload);
    return r;
}

/* The cluster that is given, or the one that the workload is meant for. */
static int load_cluster(struct history *history, const char *path, const char *format,
                        const char *cluster, struct error *err)
{
    if (!cluster) {
        struct workload *workload;
        int r = workload_open(&workload, path, format, history->seed, 0, err);
        if (r < 0)
            return r;
        cluster = copy_text(history, workload_facts(workload)->cluster);
        workload_close(workload);
    }
    if (!cluster)
        return error_set(err, -EINVAL,
                         "--cluster is missing: that on which %.60s was run", path);
    history->cluster_text = cluster;
    return cluster_load(&history->cluster, &history->arena, cluster, err);
}

int history_read(struct history *history, const char *path, const char *format,
                 const char *cluster, const char *policy, int64_t last_ns,
                 struct error *err)
{
    history->text = path;
    history->policy = history->policy_first = policy;
    int r = load_cluster(history, path, format, cluster, err);
    if (r == 0)
        r = read_jobs(history, path, format, err);
    if (r < 0 || history->job_count == 0)
        return r;
    history->to_ns = history->jobs[history->job_count - 1].submit_ns;
    history->from_ns = last_ns > 0 && last_ns < history->to_ns
                           ? history->to_ns - last_ns
                           : history->jobs[0].submit_ns;
    guess_stops(history);
    count_jobs(history, NULL);
    return 0;
}
