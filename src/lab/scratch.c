/* scratch.c - a berthd in a temporary folder. */
#include "lab/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "api/call.h"
#include "api/programs.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/json.h"

#define READY_MS 30000
#define GONE_TRIES 1000 /* for it to end all jobs, 20 ms apart */
#define ARGS_MAX 16

int scratch_open(struct scratch *scratch, const char *const *args, struct error *err)
{
    const char *temporary = getenv("TMPDIR");
    *scratch = (struct scratch){ .args = args, .pid = -1 };
    if (!temporary || temporary[0] != '/' || strlen(temporary) > 60)
        temporary = "/tmp"; /* a socket's path has to be short */
    snprintf(scratch->dir, sizeof scratch->dir, "%s/berth-scratch-XXXXXX", temporary);
    if (!mkdtemp(scratch->dir)) {
        int code = -errno;
        scratch->dir[0] = '\0';
        return error_set(err, code, "a folder below %s: %s", temporary,
                         strerror(-code));
    }
    snprintf(scratch->state, sizeof scratch->state, "%s/s", scratch->dir);
    snprintf(scratch->socket, sizeof scratch->socket, "%s/api.sock", scratch->dir);
    int r = call_open(&scratch->call, scratch->socket, err);
    if (r < 0)
        scratch_close(scratch);
    return r;
}

void scratch_use_memory(struct scratch *scratch)
{
    const char *const places[] = { getenv("XDG_RUNTIME_DIR"), "/dev/shm" };
    for (size_t i = 0; i < 2 && !scratch->runtime[0]; i++) {
        if (!places[i] || places[i][0] != '/' || strlen(places[i]) > 30)
            continue;
        snprintf(scratch->runtime, sizeof scratch->runtime, "%s/berth-scratch-XXXXXX",
                 places[i]);
        if (!mkdtemp(scratch->runtime))
            scratch->runtime[0] = '\0';
    }
    if (scratch->runtime[0])
        snprintf(scratch->state, sizeof scratch->state, "%s/berth", scratch->dir);
}

static const char *log_path(const struct scratch *scratch, char *path, size_t size)
{
    snprintf(path, size, "%s/berthd.log", scratch->dir);
    return path;
}

/* In the child: become berthd, which ends when this process does. */
static void exec_berthd(const struct scratch *scratch, pid_t parent, int ready)
{
    const char *argv[ARGS_MAX + 6] = { "berthd", "--socket", scratch->socket };
    uint32_t count = 3;
    if (scratch->runtime[0]) {
        setenv("XDG_RUNTIME_DIR", scratch->runtime, 1);
        setenv("XDG_STATE_HOME", scratch->dir, 1);
    } else {
        argv[count++] = "--state";
        argv[count++] = scratch->state;
    }
    for (uint32_t i = 0; scratch->args[i] && i < ARGS_MAX; i++)
        argv[count++] = scratch->args[i];
    char path[sizeof scratch->dir + 16];
    int log =
        open(log_path(scratch, path, sizeof path), O_WRONLY | O_CREAT | O_APPEND, 0600);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(1);
    programs_exec_berthd(argv, ready, log); /* Ctrl-C is for us */
}

int scratch_start(struct scratch *scratch, struct error *err)
{
    int ready[2];
    char path[sizeof scratch->dir + 16], said[200];
    if (pipe2(ready, O_CLOEXEC) < 0)
        return error_set(err, -errno, "a pipe: %s", strerror(errno));
    pid_t parent = getpid();
    scratch->pid = fork();
    if (scratch->pid == 0)
        exec_berthd(scratch, parent, ready[1]);
    int code = -errno;
    close(ready[1]);
    bool up = scratch->pid > 0 && programs_wait_ready(ready[0], READY_MS);
    close(ready[0]);
    if (up)
        return 0;
    if (scratch->pid < 0)
        return error_set(err, code, "fork: %s", strerror(-code));
    scratch_stop(scratch, SIGKILL);
    programs_last_line(log_path(scratch, path, sizeof path), 0, said, sizeof said);
    return error_set(err, -ECONNREFUSED, "berthd did not start: %s",
                     said[0] ? said : "it said nothing");
}

void scratch_stop(struct scratch *scratch, int signal_number)
{
    if (scratch->pid <= 0)
        return;
    kill(scratch->pid, signal_number);
    while (waitpid(scratch->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    scratch->pid = -1;
}

static int remove_one(const char *path, const struct stat *status, int kind,
                      struct FTW *where)
{
    (void)status;
    (void)kind;
    (void)where;
    remove(path);
    return 0;
}

void scratch_end_jobs(struct scratch *scratch)
{
    if (scratch->pid <= 0)
        return;
    int r =
        call_json(scratch->call, "DELETE", "/v1/server?kill=true", NULL, NULL, NULL);
    for (int i = 0; r == 0 && i < GONE_TRIES; i++) {
        if (waitpid(scratch->pid, NULL, WNOHANG) != 0) {
            scratch->pid = -1;
            return;
        }
        nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
    }
    scratch_stop(scratch, SIGTERM);
}

void scratch_close(struct scratch *scratch)
{
    scratch_end_jobs(scratch);
    call_close(scratch->call);
    scratch->call = NULL;
    if (scratch->dir[0])
        nftw(scratch->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    if (scratch->runtime[0])
        nftw(scratch->runtime, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    scratch->dir[0] = scratch->runtime[0] = '\0';
}

int scratch_submit(struct scratch *scratch, const struct json *request,
                   uint64_t *ret_id, struct error *err)
{
    struct json *answer = NULL;
    int64_t id = 0;
    int r = call_json(scratch->call, "POST", "/v1/jobs", request, &answer, err);
    if (r < 0)
        return r;
    const char *rejected = json_as_text(json_get(answer, "rejected"));
    json_as_count(json_get(answer, "id"), &id);
    if (rejected)
        r = error_set(err, -EINVAL, "%s", rejected);
    json_free(answer);
    *ret_id = (uint64_t)id;
    return r;
}

int scratch_count_jobs(struct scratch *scratch, int64_t *ret_count, struct error *err)
{
    struct json *server = NULL;
    int r = call_json(scratch->call, "GET", "/v1/server", NULL, &server, err);
    if (r < 0)
        return r;
    const struct json *jobs = json_get(server, "jobs");
    *ret_count = json_count_at(jobs, "pending") + json_count_at(jobs, "running");
    json_free(server);
    return 0;
}

static bool append_bytes(void *context, const char *bytes, size_t count)
{
    buf_add(context, bytes, count);
    return true;
}

double scratch_metric(struct scratch *scratch, const char *line)
{
    struct buf text;
    double value = NAN;
    buf_init(&text, 1 << 20);
    struct call_stream stream = { .take = append_bytes, .context = &text };
    call_stream(scratch->call, "/metrics", &stream, NULL);
    const char *found = text.bytes ? strstr(text.bytes, line) : NULL;
    while (found && found > text.bytes && found[-1] != '\n')
        found = strstr(found + 1, line); /* a comment that names it */
    if (found)
        value = strtod(found + strlen(line), NULL);
    buf_release(&text);
    return value;
}
