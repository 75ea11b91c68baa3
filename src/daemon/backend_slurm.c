/*
 * backend_slurm.c - a Slurm cluster, and its jobs, which are submitted with sbatch.
 *
 * What Slurm says of a job becomes the same request that a user would have sent to berthd, and
 * is kept like one: from there on there is no difference.  A job's number is Slurm's.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/json.h"
#include "base/units.h"
#include "daemon/daemon_internal.h"
#include "executor/slurm/slurm.h"
#include "model/throughput.h"
#include "store/db.h"
#include "store/store.h"

#define WARN_S 60            /* Slurm's default, where --signal names no time */
#define NEVER_SAVES_S 1      /* more than its grace period: it never saves */
#define COMMENT SLURM_WISHES /* how comments for Berth begin */

/* --- the program ---------------------------------------------------------------------- */

/* How berth-slurm is started; lives as long as the daemon. */
static struct slurm_program slurm_program(struct daemon *daemon)
{
    const struct daemon_setup *setup = &daemon->setup;
    char bell[4200];
    snprintf(bell, sizeof bell, "%s/slurm.bell", setup->run_dir);
    return (struct slurm_program){ .path = setup->slurm_program,
                                   .launcher = setup->launcher,
                                   .driver = setup->slurm_driver,
                                   .partitions = setup->partitions,
                                   .bell = setup->slurm_bell
                                               ? setup->slurm_bell
                                               : arena_text(&daemon->fixed, bell) };
}

/* Of the file by which others see that jobs can be placed. */
static const char *heartbeat_path(struct daemon *daemon)
{
    const struct daemon_setup *setup = &daemon->setup;
    char path[4200];
    if (setup->slurm_heartbeat)
        return setup->slurm_heartbeat;
    snprintf(path, sizeof path, "%s/slurm.heartbeat", setup->run_dir);
    return arena_text(&daemon->fixed, path);
}

static int find_cluster(struct daemon *daemon, struct error *err)
{
    struct slurm_program program = slurm_program(daemon);
    char *known = store_fact(daemon->store, "slurm_nodes");
    char *found = NULL;
    daemon->machine = (struct machine){ .source = "Slurm" };
    int r = slurm_nodes_find(&daemon->machine.cluster, &daemon->fixed, &daemon->loop,
                             &program, known, &daemon->scheduler.stopping, &found, err);
    if (r == 0)
        r = store_set_fact(daemon->store, "slurm_nodes", found, err);
    free(known);
    free(found);
    return r;
}

/* --- requests of Slurm jobs -------------------------------------------------------------------- */

/* "[B:]SIG[@seconds]", as sbatch spells it. */
static void put_signal(struct json *request, const char *text)
{
    char name[16];
    int read = 0;
    const char *to = "steps";
    double seconds = WARN_S;
    for (; (text[0] == 'B' || text[0] == 'R') && (text[1] == ':' || text[2] == ':');
         text += text[1] == ':' ? 2 : 1)
        if (text[0] == 'B')
            to = "batch";
    if (sscanf(text, "%15[A-Za-z0-9]%n", name, &read) != 1 || !request_signal(name))
        return;
    if (text[read] == '@')
        seconds = atof(text + read + 1);
    json_put_text(request, "signal", request_signal_name(request_signal(name)));
    json_put_text(request, "signal_to", to);
    json_put_number(request, "grace_s", seconds > 0 ? seconds : 0);
    json_put_number(request, "pause_s", 0);
}

/* #SBATCH --signal=…, in the lines before the first command. */
static void read_script(struct json *request, const char *script)
{
    for (const char *line = script; line && *line;) {
        const char *end = line + strcspn(line, "\n");
        const char *at = line + strspn(line, " \t");
        if (*at != '#' && at < end)
            return;
        const char *found =
            strncmp(at, "#SBATCH", 7) == 0 ? strstr(at, "--signal") : NULL;
        if (found && found < end &&
            (found[8] == '=' || isspace((unsigned char)found[8])))
            put_signal(request, found + 9 + strspn(found + 9, " \t"));
        line = *end ? end + 1 : end;
    }
}

/* Settings by their names in a comment, and in a request. */
static const struct wish_word {
    const char *name, *key;
    enum { WORD_TEXT, WORD_TIME, WORD_NUMBER, WORD_COUNT } kind;
} wish_words[] = {
    { "class", "class", WORD_TEXT },
    { "grace", "grace_s", WORD_TIME },
    { "load", "load_s", WORD_TIME },
    { "pause", "pause_s", WORD_TIME },
    { "ckpt", "ckpt_s", WORD_TIME },
    { "steps", "steps", WORD_NUMBER },
    { "weight", "weight", WORD_NUMBER },
    { "entity", "entity", WORD_TEXT },
    { "deadline", "deadline", WORD_NUMBER },
    { "min_gpus", "min_gpus", WORD_COUNT },
    { "max_gpus", "max_gpus", WORD_COUNT },
    { "to", "signal_to", WORD_TEXT },
    { "progress", "progress_file", WORD_TEXT },
    { "kind", "kind", WORD_TEXT },
};

static const char *put_wish(struct json *request, const char *name, const char *value)
{
    double number = 0;
    int64_t time_ns = 0;
    if (strcmp(name, "held") == 0)
        return NULL; /* not a setting: slurm_waits_for() */
    if (strcmp(name, "sig") == 0) {
        if (!request_signal(value))
            return "no signal of that name";
        json_put_text(request, "signal", request_signal_name(request_signal(value)));
        if (!json_get(request, "signal_to"))
            json_put_text(request, "signal_to", "batch");
        return NULL;
    }
    for (size_t i = 0; i < sizeof wish_words / sizeof *wish_words; i++) {
        const struct wish_word *word = &wish_words[i];
        if (strcmp(word->name, name) != 0)
            continue;
        if (word->kind == WORD_COUNT && json_flag_at(request, "shared"))
            return "a job with shards of a GPU has one size";
        if (word->kind == WORD_TEXT) {
            json_put_text(request, word->key, value);
            return NULL;
        }
        if (word->kind == WORD_TIME ? !units_time(value, &time_ns)
                                    : !units_number(value, &number))
            return word->kind == WORD_TIME ? "no time" : "no number";
        if (word->kind == WORD_TIME)
            number = (double)time_ns * 1e-9;
        if (word->kind == WORD_COUNT)
            json_put_count(request, word->key, (int64_t)number);
        else
            json_put_number(request, word->key, number);
        return NULL;
    }
    return "there is no such wish";
}

/* "berth:class=te;grace=60"; one that is wrong is skipped and logged. */
static void read_comment(struct json *request, const char *comment, uint64_t id)
{
    const char *start = strstr(comment, COMMENT);
    if (!start)
        return;
    char text[1024];
    snprintf(text, sizeof text, "%s", start + strlen(COMMENT));
    char *rest = text;
    for (char *pair; (pair = strsep(&rest, ";"));) {
        char *value = strchr(pair, '=');
        if (*pair == '\0')
            continue;
        if (value)
            *value++ = '\0';
        struct json *tried = json_copy_of(request);
        const char *wrong = value ? put_wish(tried, pair, value) : "want NAME=VALUE";
        struct arena arena;
        struct request unused;
        struct error err = { "" };
        arena_init(&arena, 0);
        if (!wrong && request_read(&unused, &arena, tried, &err) < 0)
            wrong = err.text;
        if (wrong)
            fprintf(stderr, "berthd: job %" PRIu64 ": comment: %.40s: %s\n", id, pair,
                    wrong);
        else
            put_wish(request, pair, value);
        arena_release(&arena);
        json_free(tried);
    }
}

static bool is_good(const struct json *request)
{
    struct arena arena;
    struct request unused;
    struct error err;
    arena_init(&arena, 0);
    bool good = request_read(&unused, &arena, request, &err) == 0;
    arena_release(&arena);
    return good;
}

/* For users to see: the job is accepted even where a request would be refused for it. */
static void put_if_good(struct json *request, const char *key, struct json *value)
{
    struct json *tried = json_copy_of(request);
    json_put(tried, key, json_copy_of(value));
    if (is_good(tried))
        json_put(request, key, value);
    else
        json_free(value);
    json_free(tried);
}

/* A path as it is: in a request a percent sign stands for something else. */
static void put_path(struct json *request, const char *key, const char *path)
{
    char text[2 * 4096 + 1];
    size_t count = 0;
    if (path[0] != '/' || strlen(path) >= REQUEST_PATH_MAX)
        return;
    for (; *path; path++) {
        if (*path == '%')
            text[count++] = '%';
        text[count++] = *path;
    }
    text[count] = '\0';
    struct json *found = json_new_object();
    json_put_text(found, key, text);
    struct json *value = json_copy_of(json_get(found, key));
    json_free(found);
    put_if_good(request, key, value);
}

static void put_count(struct json *request, const char *key, int64_t count)
{
    if (count > 0)
        json_put_count(request, key, count);
}

/* A list of names as one text, if there are any. */
static void put_names(struct json *request, const char *key, const struct json *list)
{
    struct buf text;
    buf_init(&text, 1 << 16);
    for (size_t i = 0; i < json_count(list); i++)
        buf_print(&text, "%s%s", i ? "," : "", json_as_text(json_item(list, i)));
    if (text.count > 0)
        json_put_text(request, key, text.bytes);
    buf_release(&text);
}

/* Of one GPU: that is where Slurm looks for all of them.  0: it asks for whole GPUs, or none. */
static int64_t shards_of(const struct json *job)
{
    return json_count_at(job, "gpus") > 0 ? 0 : json_count_at(job, "shards");
}

static int64_t gpus_of(const struct json *job)
{
    return shards_of(job) > 0 ? 1 : json_count_at(job, "gpus");
}

/* It shares a GPU with a job of as many shards as it leaves. */
static void put_shards(struct json *request, int64_t shards)
{
    if (shards == 0)
        return;
    json_put_flag(request, "shared", true);
    json_put_count(request, "gpu_memory_bytes", shards * SLURM_SHARD_MIB * 1048576);
}

/* Names of jobs in Slurm are free; here a name is one line, and not too long. */
static void put_name(struct json *request, const char *name)
{
    char text[REQUEST_NAME_MAX + 1];
    size_t count = 0;
    for (; *name && count < REQUEST_NAME_MAX; name++)
        text[count++] = (unsigned char)*name < ' ' || *name == 127 ? ' ' : *name;
    while (*name && count > 0 && ((unsigned char)*name & 0xC0) == 0x80) {
        name--; /* not in the middle of a character */
        count--;
    }
    text[count] = '\0';
    if (count > 0)
        json_put_text(request, "name", text);
}

/* Its command, folder and output. */
static void put_looks(struct json *request, const struct json *job)
{
    if (*json_text_at(job, "command")) {
        struct json *command = json_copy_of(json_get(request, "command"));
        json_add_text(command, json_text_at(job, "command"));
        put_if_good(request, "command", command);
    }
    if (json_text_at(job, "folder")[0] == '/')
        put_if_good(request, "cwd", json_copy_of(json_get(job, "folder")));
    put_path(request, "output", json_text_at(job, "output"));
    put_path(request, "error", json_text_at(job, "errors"));
}

/* The request that a user would have sent to berthd. */
static struct json *request_of(const struct json *job)
{
    struct json *request = json_new_object();
    struct json *command = json_new_array();
    int64_t nodes = json_count_at(job, "min_nodes");
    json_add_text(command, json_flag_at(job, "batch") ? "sbatch" : "srun");
    json_put(request, "command", command);
    put_name(request, json_text_at(job, "name"));
    json_put_count(request, "gpus", gpus_of(job));
    put_shards(request, shards_of(job));
    if (*json_text_at(job, "gpu_type"))
        json_put_text(request, "types", json_text_at(job, "gpu_type"));
    put_names(request, "nodelist", json_get(job, "req_nodes"));
    put_names(request, "exclude", json_get(job, "exc_nodes"));
    if (*json_text_at(job, "within"))
        json_put_text(request, "within", json_text_at(job, "within"));
    if (gpus_of(job) > 0)
        put_count(request, "nodes",
                  nodes > 1 || json_count_at(job, "gpus_per_node") > 0 ? nodes : 0);
    json_put_number(request, "cpus", (double)json_count_at(job, "cpus"));
    put_count(request, "mem_bytes",
              json_count_at(job, "mem_mib") * (nodes > 0 ? nodes : 1) * 1048576);
    if (nodes > 0 && json_count_at(job, "tasks") > nodes)
        json_put_count(request, "tasks_per_node", json_count_at(job, "tasks") / nodes);
    if (json_count_at(job, "time_limit_s") > 0)
        json_put_number(request, "time_limit_s",
                        (double)json_count_at(job, "time_limit_s"));
    json_put_number(request, "grace_s", 0);
    json_put_number(request, "pause_s", NEVER_SAVES_S); /* unless it says otherwise */
    if (json_count_at(job, "restarts") == 0)            /* a requeue changes it */
        put_count(request, "submitted", json_count_at(job, "submit"));
    json_put_flag(request, "stays",
                  !json_flag_at(job, "requeue") || !json_flag_at(job, "batch"));
    if (slurm_waits_for(job))
        json_put_text(request, "waits_for", slurm_waits_for(job));
    if (json_count_at(job, "array_id") > 0) {
        json_put_count(request, "array_index", json_count_at(job, "array_task"));
        json_put_count(request, "array_limit", json_count_at(job, "array_limit"));
    }
    /* After a requeue Slurm sets a time of its own; 2037 was set by berth-slurm. */
    if (json_count_at(job, "begin") > 0 && json_count_at(job, "restarts") == 0 &&
        !json_flag_at(job, "parked"))
        json_put_number(request, "begin", (double)json_count_at(job, "begin"));
    put_looks(request, job);
    read_script(request, json_text_at(job, "script"));
    read_comment(request, json_text_at(job, "comment"),
                 (uint64_t)json_count_at(job, "id"));
    return request;
}

/* --- submission ------------------------------------------------------------------------------ */

/* Jobs that Berth cannot place are left to Slurm. */
static int check_kind(const struct json *job, struct error *err)
{
    int64_t shards = shards_of(job), most = json_count_at(job, "shards_per_gpu");
    if (json_get(job, "gpu_types_mixed"))
        return error_set(err, -ENOTSUP, "it asks for several types of GPU at once");
    if (json_count_at(job, "gpus") == 0 && json_count_at(job, "min_nodes") > 1)
        return error_set(err, -ENOTSUP, "it asks for several nodes and for no GPU");
    if (shards > most)
        return error_set(err, -EBADMSG,
                         "asks for %" PRId64
                         " shards of a GPU, and no GPU has more than %" PRId64,
                         shards, most);
    return 0;
}

/* When the known job of this number was submitted; 0: its request does not say. */
static int64_t first_submit(struct daemon *daemon, uint64_t id)
{
    char *text = store_request(daemon->store, id);
    struct json *json = NULL;
    if (text && json_parse(text, strlen(text), &json, NULL) < 0)
        json = NULL;
    int64_t submit_s = json ? json_count_at(json, "submitted") : 0;
    json_free(json);
    free(text);
    return submit_s;
}

/* Refuse a job that has ended here: Slurm still has it, held. */
static int check_past(struct daemon *daemon, const struct json *job, struct error *err)
{
    uint64_t id = (uint64_t)json_count_at(job, "id");
    int64_t submit_s = json_count_at(job, "submit");

    struct db_query *query =
        db_prepare(store_reader(daemon->store), "SELECT end_ns FROM job WHERE id = ?");
    db_int(query, 1, (int64_t)id);
    bool known = db_next(query, NULL) == 1;
    int64_t end_ns = known ? db_get_int(query, 0) : 0;
    db_finish(query);
    if (!known)
        return 0;
    int64_t then_s = first_submit(daemon, id);
    bool another =
        json_flag_at(job, "reused") || end_ns / NS_PER_S < submit_s ||
        (then_s > 0 && json_count_at(job, "restarts") == 0 && then_s != submit_s);
    if (!another)
        return error_set(err, -EALREADY, "it has ended here");
    return store_retire(daemon->store, id, err); /* Slurm uses the number again */
}

static int accept_job(struct daemon *daemon, const struct json *job, struct json *json,
                      struct error *err)
{
    struct scheduler *scheduler = &daemon->scheduler;
    struct request request;
    struct error rejected = { "" };
    arena_reset(&scheduler->lookup);
    int r = request_read(&request, &scheduler->lookup, json, err);
    if (r < 0)
        return error_set(err, -EBADMSG, "%.150s", err->text);
    request.spec.id = request.launch.id = (uint64_t)json_count_at(job, "id");
    request.launch.uid = (uint32_t)json_count_at(job, "uid");
    request.launch.array_id = (uint64_t)json_count_at(job, "array_id");
    if (json_flag_at(job, "runs"))
        request.outside = "room in the books for it: it runs already";
    request.in_array = request.launch.array_id > 0;
    char number[24];
    snprintf(number, sizeof number, "%u", request.launch.uid);
    const char *user = *json_text_at(job, "user") ? json_text_at(job, "user") : number;
    struct request_texts texts;
    request_split(&texts, &scheduler->pass, json);
    r = submission_accept(&daemon->submission, arena_text(&scheduler->pass, user),
                          &request, &texts, json_flag_at(job, "runs"), &rejected, err);
    if (r == 0 && rejected.text[0])
        fprintf(stderr, "berthd: job %" PRIu64 " stays held: %s\n", request.spec.id,
                rejected.text);
    return r;
}

static int submit_job(void *context, const struct json *job, struct error *err)
{
    struct scheduler *scheduler = context;
    struct daemon *daemon = scheduler->context;
    if (!scheduler->alive || scheduler->stopping)
        return error_set(err, -EAGAIN, "not now");
    if (scheduler->engine.state.live_count + scheduler->coming >= scheduler->job_max)
        return error_set(err, -ENOBUFS, "no more jobs fit");
    int r = check_kind(job, err);
    if (r == 0)
        r = check_past(daemon, job, err);
    if (r < 0)
        return r;
    struct json *request = request_of(job);
    r = accept_job(daemon, job, request, err);
    json_free(request);
    return r;
}

/* --- for the executor ------------------------------------------------------------------------ */

/* What the job depends on, in Slurm's words; NULL: on nothing any more. */
static void wait_for_slurm(void *context, uint64_t id, const char *dependency)
{
    struct scheduler *scheduler = context;
    job_id job = state_find(&scheduler->engine.state, id);
    if (job != JOB_NONE)
        scheduler_wait_outside(scheduler, job, dependency);
}

/* As if its owner had held it, who can release it. */
static void hold_job(void *context, uint64_t id)
{
    struct scheduler *scheduler = context;
    job_id job = state_find(&scheduler->engine.state, id);
    struct error err = { "" };
    if (job == JOB_NONE)
        return;
    if (store_hold(scheduler->store, id, true, &err) < 0) {
        fprintf(stderr, "berthd: job %" PRIu64 ": %s\n", id, err.text);
        return; /* it is tried again, then */
    }
    scheduler_hold(scheduler, job, true);
}

static void on_outgrown(void *context)
{
    struct scheduler *scheduler = context;
    struct daemon *daemon = scheduler->context;
    daemon->outgrown = true;
    scheduler_want_pass(scheduler);
}

static int open_slurm(struct daemon *daemon, void **ret_self, struct error *err)
{
    struct slurm_setup setup = { .loop = &daemon->loop,
                                 .program = slurm_program(daemon),
                                 .view = &daemon->scheduler.engine.state.view,
                                 .outbox = &daemon->scheduler.outbox,
                                 .fence_ns = daemon->setup.fence_s * NS_PER_S,
                                 .heartbeat = heartbeat_path(daemon),
                                 .fail_open_s = daemon->setup.fail_open_s,
                                 .wake = scheduler_executor_wake,
                                 .now_ns = scheduler_executor_now,
                                 .launch = scheduler_executor_launch,
                                 .arrive = submit_job,
                                 .gate = wait_for_slurm,
                                 .set_aside = hold_job,
                                 .outgrown = on_outgrown,
                                 .context = &daemon->scheduler };
    struct slurm *slurm = NULL;
    int r = slurm_open(&slurm, &setup, err);
    *ret_self = slurm;
    return r;
}

const struct backend backend_slurm = { .executor = &executor_slurm,
                                       .find_cluster = find_cluster,
                                       .open = open_slurm };
