/*
 * slurm.c - berth slurm release-all: leave a Slurm cluster as if Berth had never been there.
 *
 * Berth holds or parks every job that waits in its partitions.  Such a job is released, and no
 * longer bound to the nodes it ran on before.  A job that its owner holds stays held, in such
 * a way that the owner can release it.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "api/paths.h"
#include "api/programs.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/grow.h"
#include "base/json.h"
#include "cmd/berth/connection.h"
#include "cmd/berth/format.h"
#include "host/heartbeat.h"

#define BRIDGE_ARGS_MAX 100
#define LINE_BYTES_MAX (2u << 20)
#define PATIENCE_MS 60000
#define AGAIN_MS 2500 /* by then another berthd would have held them again */
#define PARTITIONS_MAX 30
#define AT_ONCE_MAX 64
#define CONFIRM_MS 5000 /* berthd notices that Slurm is back within less  */
#define REQUEUED_S 200  /* Slurm's own delay after a requeue is shorter */

static const struct flag slurm_flags[] = {
    { "partition", 'p', "NAME", "of this partition; as berthd looked after" },
    { "driver", 0, "DRIVER", "libslurm, commands or auto" },
    { "heartbeat", 0, "FILE", "only if berthd has not renewed this file in time" },
    { "state", 0, "DIR", "berthd's state folder" },
    FLAG_JSON,
    CONNECTION_FLAGS,
    { 0 },
};

/* A berth-slurm that this process has started (docs/internals/slurm.md). */
struct bridge_process {
    int pid;
    int in, out;
    char *line; /* bytes received and not yet parsed */
    uint32_t count, room;
    int64_t end_ms; /* when reading times out */
};

struct held_job {
    int64_t id;
    int64_t begin; /* set by its owner; 0: none */
    bool pinned;   /* bound to nodes it ran on */
    bool theirs;   /* held by its owner     */
    bool done;
};

struct release_run {
    const struct flags *flags;
    const char *heartbeat; /* to be old, or nothing is done; NULL: none */
    struct bridge_process bridge;
    struct held_job *jobs;
    uint32_t count, room;
    uint32_t answered, released, left_held, refused;
    uint32_t again; /* held again, by another berthd */
    bool returned;  /* berthd has renewed its heartbeat meanwhile */
    bool synced, watching;
};

/* ---- the connection to berth-slurm ---- */

static void bridge_set_limit(struct bridge_process *bridge, int patience_ms)
{
    bridge->end_ms = clock_now_ms() + patience_ms;
}

static int bridge_open(struct bridge_process *bridge, const char *const *words,
                       int patience_ms, struct error *err)
{
    const char *program = programs_find("berth-slurm");
    const char *argv[BRIDGE_ARGS_MAX + 2] = { program ? program : "berth-slurm" };
    int in[2] = { -1, -1 }, out[2] = { -1, -1 };
    *bridge = (struct bridge_process){ .pid = -1 };
    for (int i = 0; i < BRIDGE_ARGS_MAX && words[i]; i++)
        argv[i + 1] = words[i];
    if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0)
        return error_set(err, -errno, "pipe: %s", strerror(errno));
    signal(SIGPIPE, SIG_IGN);
    bridge->pid = fork();
    if (bridge->pid == 0) {
        dup2(in[0], STDIN_FILENO);
        dup2(out[1], STDOUT_FILENO);
        execvp(argv[0], (char *const *)(uintptr_t)argv);
        dprintf(STDERR_FILENO, "berth: berth-slurm: %s\n", strerror(errno));
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    bridge->in = in[1];
    bridge->out = out[0];
    bridge_set_limit(bridge, patience_ms);
    return bridge->pid < 0 ? error_set(err, -errno, "fork: %s", strerror(errno)) : 0;
}

static void bridge_close(struct bridge_process *bridge)
{
    if (bridge->pid <= 0)
        return;
    close(bridge->in); /* it ends with its input, within seconds */
    close(bridge->out);
    waitpid(bridge->pid, NULL, 0);
    free(bridge->line);
    *bridge = (struct bridge_process){ .pid = -1 };
}

static int bridge_send(struct bridge_process *bridge, const struct json *word,
                       struct error *err)
{
    char *text = json_text(word);
    size_t count = text ? strlen(text) : 0;
    bool whole = text != NULL;
    if (text) {
        text[count] = '\n'; /* in place of the final 0 */
        for (size_t at = 0; whole && at <= count;) {
            ssize_t some = write(bridge->in, text + at, count + 1 - at);
            whole = some > 0 || errno == EINTR;
            at += some > 0 ? (size_t)some : 0;
        }
    }
    free(text);
    return whole ? 0 : error_set(err, -EPIPE, "berth-slurm has ended");
}

/* Read some more bytes, until the time limit. */
static int bridge_fill(struct bridge_process *bridge, struct error *err)
{
    struct pollfd poller = { .fd = bridge->out, .events = POLLIN };
    int64_t left = bridge->end_ms - clock_now_ms();
    int r = poll(&poller, 1, left > 0 ? (int)left : 0);
    if (r == 0)
        return error_set(err, -ETIMEDOUT, "Slurm does not answer");
    if (bridge->count > LINE_BYTES_MAX)
        return error_set(err, -EPROTO, "berth-slurm says too much at once");
    bridge->line = grow_array(bridge->line, &bridge->room, bridge->count + 65536, 1);
    ssize_t count = read(bridge->out, bridge->line + bridge->count, 65536);
    if (count < 0 && errno == EINTR)
        return 0;
    if (count <= 0)
        return error_set(err, -EPIPE, "berth-slurm has ended");
    bridge->count += (uint32_t)count;
    return 0;
}

static int bridge_receive(struct bridge_process *bridge, struct json **ret_word,
                          struct error *err)
{
    char *end;
    while (!(end = bridge->count ? memchr(bridge->line, '\n', bridge->count) : NULL)) {
        int r = bridge_fill(bridge, err);
        if (r < 0)
            return r;
    }
    uint32_t length = (uint32_t)(end - bridge->line);
    int r = json_parse(bridge->line, length, ret_word, err);
    bridge->count -= length + 1;
    memmove(bridge->line, end + 1, bridge->count);
    return r;
}

/* ---- jobs as Slurm has them ---- */

/* As job_submit.lua marks a job that its owner holds. */
static bool is_held_by_owner(const struct json *job)
{
    const char *comment = strstr(json_text_or(job, "comment", ""), "berth:");
    return comment && strstr(comment, "held=owner");
}

static struct held_job *find_job(struct release_run *run, int64_t id)
{
    for (uint32_t i = 0; i < run->count; i++)
        if (run->jobs[i].id == id)
            return &run->jobs[i];
    return NULL;
}

static void add_job(struct release_run *run, const struct json *job)
{
    int64_t id = 0, begin = 0;
    bool held = json_flag_at(job, "held"), parked = json_flag_at(job, "parked");
    bool pending = strcmp(json_text_or(job, "state", ""), "PENDING") == 0;
    json_as_count(json_get(job, "id"), &id);
    struct held_job *known = find_job(run, id);
    if (known && run->watching && !known->theirs && pending && held)
        run->again++;
    bool pinned = json_get(job, "req_nodes") && json_number_or(job, "restarts", 0) > 0;
    bool theirs_before = is_held_by_owner(job) && !pinned && !parked &&
                         strcmp(json_text_or(job, "reason", ""), "JobHeldUser") == 0;
    if (known || run->synced || !pending || (!held && !parked) ||
        json_flag_at(job, "completing") || json_get(job, "het"))
        return;
    if (theirs_before) {
        run->left_held++; /* nothing of it was changed by Berth */
        return;
    }
    json_as_count(json_get(job, "begin"), &begin);
    bool own = !parked && json_number_or(job, "restarts", 0) == 0 &&
               begin > time(NULL) + REQUEUED_S;
    run->jobs = grow_array(run->jobs, &run->room, run->count + 1, sizeof *run->jobs);
    run->jobs[run->count++] = (struct held_job){ .id = id,
                                                 .begin = own ? begin : 0,
                                                 .pinned = pinned,
                                                 .theirs = is_held_by_owner(job) };
}

static void record_answer(struct release_run *run, const struct json *done)
{
    int64_t seq = -1;
    json_as_count(json_get(done, "seq"), &seq);
    if (seq < 0 || seq >= run->count || run->jobs[seq].done)
        return;
    struct held_job *job = &run->jobs[seq];
    job->done = true;
    run->answered++;
    if (json_flag_at(done, "ok")) {
        run->released += !job->theirs;
        run->left_held += job->theirs;
        return;
    }
    run->refused++;
    fprintf(stderr, "berth slurm: job %" PRId64 ": %s\n", job->id,
            json_text_or(done, "error", "?"));
}

static int read_message(struct release_run *run, struct error *err)
{
    struct json *word = NULL;
    int r = bridge_receive(&run->bridge, &word, err);
    if (r < 0)
        return r;
    if (json_get(word, "job"))
        add_job(run, json_get(word, "job"));
    else if (json_get(word, "done"))
        record_answer(run, json_get(word, "done"));
    else if (json_get(word, "synced"))
        run->synced = true;
    else if (json_get(word, "away"))
        fprintf(stderr, "berth slurm: waiting for Slurm: %s\n",
                json_text_or(word, "away", ""));
    json_free(word);
    return 0;
}

/* ---- the heartbeat of berthd ---- */

static bool berthd_is_away(const char *path, struct heartbeat *ret)
{
    struct error unused;
    heartbeat_read(path, ret, &unused); /* one that is missing is as good as old */
    return ret->away;
}

/* Whether to go on: a berthd that is back decides by itself. */
static bool is_still_away(struct release_run *run)
{
    struct heartbeat heartbeat;
    if (run->heartbeat && !run->returned)
        run->returned = !berthd_is_away(run->heartbeat, &heartbeat);
    return !run->returned;
}

/* ---- releasing ---- */

static int request_release(struct release_run *run, uint32_t i, struct error *err)
{
    const struct held_job *job = &run->jobs[i];
    struct json *word = json_new_object();
    char name[24];
    snprintf(name, sizeof name, "%" PRId64, job->id);
    json_put_count(word, "seq", i);
    json_put_text(word, "verb", job->theirs ? "hold" : "release");
    json_put_text(word, "job", name);
    if (job->pinned)
        json_put_flag(word, "unpin", true);
    if (job->theirs)
        json_put_flag(word, "theirs", true);
    if (job->begin > 0)
        json_put_count(word, "begin", job->begin);
    int r = bridge_send(&run->bridge, word, err);
    json_free(word);
    return r;
}

/* Read what berth-slurm says, for so long, or until a job was held again. */
static void listen_for(struct release_run *run, int ms)
{
    struct error unused;
    bridge_set_limit(&run->bridge, ms);
    while (run->again == 0 && read_message(run, &unused) == 0)
        ;
}

/* A few at a time: berth-slurm stops reading if its output is not read meanwhile. */
static int release_each(struct release_run *run, struct error *err)
{
    uint32_t asked = 0;
    int r = 0;
    for (; r == 0 && asked < run->count && is_still_away(run); asked++) {
        bridge_set_limit(&run->bridge, PATIENCE_MS);
        r = request_release(run, asked, err);
        while (r == 0 && run->answered + AT_ONCE_MAX <= asked)
            r = read_message(run, err);
    }
    while (r == 0 && run->answered < asked)
        r = read_message(run, err);
    return r;
}

static int release_jobs(struct release_run *run, struct error *err)
{
    int r = 0;
    while (r == 0 && !run->synced)
        r = read_message(run, err);
    /* It was Slurm that was away, perhaps: then berthd renews its heartbeat now. */
    if (r == 0 && run->heartbeat && run->count > 0)
        listen_for(run, CONFIRM_MS);
    if (r == 0)
        r = release_each(run, err);
    if (r < 0 || run->released == 0)
        return r;
    /* A berthd may still run on another host: see whether it holds them again. */
    run->watching = true;
    listen_for(run, AGAIN_MS);
    return 0;
}

/* ---- which partitions ---- */

/* "slurm:partition=a,b", as berthd left it in its state folder. */
static bool read_executor_file(const char *folder, char *text, size_t size)
{
    char path[PATHS_MAX + 16];
    snprintf(path, sizeof path, "%s/executor", folder);
    FILE *file = fopen(path, "re");
    bool read = file && fgets(text, (int)size, file);
    if (file)
        fclose(file);
    text[read ? strcspn(text, "\n") : 0] = '\0';
    return read && strncmp(text, "slurm", 5) == 0;
}

static bool find_executor(const struct flags *flags, char *text, size_t size)
{
    char folder[PATHS_MAX];
    if (flags_get(flags, "state"))
        return read_executor_file(flags_get(flags, "state"), text, size);
    return (paths_state(folder, sizeof folder, NULL) == 0 &&
            read_executor_file(folder, text, size)) ||
           read_executor_file("/var/lib/berth", text, size);
}

/* The arguments for berth-slurm.  0, or an exit status. */
static int make_arguments(const struct flags *flags, const char **words, char *text,
                          size_t size)
{
    uint32_t count = 0;
    static const char of[] = "slurm:partition=";
    words[count++] = "--driver";
    words[count++] = flags_get(flags, "driver") ? flags_get(flags, "driver") : "auto";
    for (uint32_t i = 0; flags_each(flags, "partition", i); i++) {
        if (i == PARTITIONS_MAX)
            return command_wrong(flags, "more than %d partitions", PARTITIONS_MAX);
        words[count++] = "--partition";
        words[count++] = flags_each(flags, "partition", i);
    }
    words[count] = NULL;
    if (count > 2)
        return 0;
    if (!find_executor(flags, text, size))
        return command_wrong(flags,
                             "no berthd has left word which partitions it looked "
                             "after: name them with --partition");
    char *rest = strncmp(text, of, strlen(of)) == 0 ? text + strlen(of) : NULL;
    for (char *name; (name = strsep(&rest, ",")) && count < 2 * PARTITIONS_MAX;) {
        words[count++] = "--partition";
        words[count++] = name;
    }
    words[count] = NULL;
    return 0;
}

/* Whether a berthd runs there, which would hold the jobs again. */
static bool berthd_runs_at(const struct flags *flags, const char *address, char *where,
                           size_t size)
{
    struct call *call = NULL;
    struct json *server = NULL;
    struct error err;
    if (call_open(&call, address ? address : flags_get(flags, "socket"), &err) < 0)
        return false;
    bool runs = call_json(call, "GET", "/v1/server", NULL, &server, &err) == 0 &&
                strncmp(json_text_or(server, "executor", ""), "slurm", 5) == 0;
    snprintf(where, size, "%s", call_address(call));
    json_free(server);
    call_close(call);
    return runs;
}

static int print_result(const struct release_run *run)
{
    const struct flags *flags = run->flags;
    if (flags_get(flags, "json")) {
        struct json *root = json_new_object();
        json_put_count(root, "released", run->released);
        json_put_count(root, "held", run->left_held);
        format_print_json(root);
    } else {
        printf("%u job%s released", run->released, run->released == 1 ? "" : "s");
        if (run->left_held > 0)
            printf("; %u stay%s held, as the owner wants it", run->left_held,
                   run->left_held == 1 ? "s" : "");
        putchar('\n');
    }
    if (run->again > 0)
        return command_failed(flags, "a berthd still looks after them and holds them "
                                     "again: stop it first");
    return run->refused > 0 ? 1 : 0;
}

/* By a watchdog: what there is to say. */
static void print_away(const struct release_run *run)
{
    struct heartbeat heartbeat;
    if (run->released > 0 && berthd_is_away(run->heartbeat, &heartbeat))
        fprintf(stderr,
                "berth slurm: berthd has given no sign of life for %" PRId64 " s\n",
                heartbeat.silent_s);
}

/* Slurm is not even asked while berthd is there, and nothing is said without a reason. */
static int release_if_away(const struct flags *flags, const char *path,
                           const char *const *words)
{
    struct release_run run = { .flags = flags, .heartbeat = path };
    struct error err = { "" };
    if (!is_still_away(&run))
        return 0;
    int r = bridge_open(&run.bridge, words, PATIENCE_MS, &err);
    if (r == 0)
        r = release_jobs(&run, &err);
    bridge_close(&run.bridge);
    print_away(&run);
    bool quiet = run.released == 0 && run.refused == 0 && !flags_get(flags, "json");
    int status = r < 0   ? command_failed(flags, "%s", err.text)
                 : quiet ? 0
                         : print_result(&run);
    free(run.jobs);
    return status;
}

static int release_all(const struct flags *flags)
{
    struct release_run run = { .flags = flags };
    const char *words[2 * PARTITIONS_MAX + 8];
    char text[1100], where[PATHS_MAX];
    struct error err = { "" };
    int status = make_arguments(flags, words, text, sizeof text);
    if (status)
        return status;
    if (flags_get(flags, "heartbeat"))
        return release_if_away(flags, flags_get(flags, "heartbeat"), words);
    if (berthd_runs_at(flags, NULL, where, sizeof where) ||
        (!flags_get(flags, "socket") &&
         berthd_runs_at(flags, PATHS_SYSTEM_SOCKET, where, sizeof where)))
        return command_failed(
            flags,
            "berthd runs at %.200s and would hold them again: stop it "
            "first",
            where);
    int r = bridge_open(&run.bridge, words, PATIENCE_MS, &err);
    if (r == 0)
        r = release_jobs(&run, &err);
    bridge_close(&run.bridge);
    status = r < 0 ? command_failed(flags, "%s", err.text) : print_result(&run);
    free(run.jobs);
    return status;
}

static int slurm_run(const struct flags *flags)
{
    if (flags->word_count != 1 || strcmp(flags->words[0], "release-all") != 0)
        return command_wrong(flags, "want release-all");
    return release_all(flags);
}

const struct command command_slurm = {
    .name = "slurm",
    .group = "Use",
    .brief = "leave a Slurm cluster as if Berth had never been there",
    .usage = "release-all [--partition NAME]… [--heartbeat FILE]",
    .flags = slurm_flags,
    .more =
        "Jobs that wait are released and no longer bound to nodes. Stop berthd first.",
    .run = slurm_run,
};
