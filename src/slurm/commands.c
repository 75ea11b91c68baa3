/*
 * commands.c - Slurm through scontrol, squeue and scancel.
 *
 * For sites that cannot build against their Slurm.  Each verb costs a process or two and
 * each poll three; and the next state of a job that is completing is not known.
 */
#include "slurm/slurm_driver.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "slurm/hostlist.h"
#include "slurm/bridge_request.h"
#include "slurm/scontrol.h"

#define OUTPUT_MAX_BYTES (256u << 20)
#define TIMEOUT_S 30
#define LAUNCH_S 3 /* a step that is being launched is not stopped: it could hang */
#define STOP_PAUSE_NS 250000000
#define ERRORS_MAX_BYTES 65536
#define PARKED_UNTIL "2036-12-31T00:00:00"

extern char **environ;

struct commands {
    struct buf jobs, owners, nodes; /* the output of the last poll */
};

/* Messages of Slurm, with their numbers in slurm_errno.h. */
static const struct {
    const char *text;
    int code;
    bool transient;
} error_texts[] = {
    { "Unable to contact slurm controller", 1800, true },
    { "Protocol authentication error", 1007, true },
    { "Zero Bytes were transmitted", 5000, true },
    { "Socket timed out", 5004, true },
    { "Connection re", 104, true },
    { "Access/permission denied", 2002, false },
    { "Invalid user id", 2010, false },
    { "Invalid job id", 2017, false },
    { "can not be altered now", 2020, true },
    { "already completing or completed", 2021, false },
    { "Job is pending execution", 2024, false },
    { "presently disabled", 2037, false },
    { "no longer pending execution", 2073, false },
    { "already finished", 2084, false },
    { "batch jobs", 2039, false },
};

enum {
    CODE_ALTERED = 2020,
    CODE_DONE = 2021,
    CODE_PENDING = 2024,
    CODE_NOT_PENDING = 2073,
    CODE_FINISHED = 2084,
};

/* --- running a command ---------------------------------------------------------------- */

struct command_pipes {
    int out[2];
    int err[2];
};

static int open_pipes(struct command_pipes *pipes, struct error *err)
{
    if (pipe2(pipes->out, O_CLOEXEC) < 0)
        return error_set(err, -errno, "pipe: %s", strerror(errno));
    if (pipe2(pipes->err, O_CLOEXEC) == 0)
        return 0;
    close(pipes->out[0]);
    close(pipes->out[1]);
    return error_set(err, -EMFILE, "no more pipes");
}

static int start_command(const char *const *words, struct command_pipes *pipes,
                         pid_t *ret_pid)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t about;
    sigset_t none, usual;
    sigemptyset(&none);
    sigemptyset(&usual);
    sigaddset(&usual, SIGPIPE); /* berth-slurm ignores it, its children must not */
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&about);
    posix_spawnattr_setsigmask(&about, &none);
    posix_spawnattr_setsigdefault(&about, &usual);
    posix_spawnattr_setflags(&about, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, pipes->out[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&files, pipes->err[1], STDERR_FILENO);
    int r = posix_spawnp(ret_pid, words[0], &files, &about,
                         (char *const *)(uintptr_t)words, environ);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&about);
    close(pipes->out[1]);
    close(pipes->err[1]);
    return -r;
}

/* Read both pipes until both are closed; false: it took too long. */
static bool read_output(struct command_pipes *pipes, int64_t until_ms,
                        struct buf *output, struct buf *said)
{
    struct pollfd wait[2] = { { .fd = pipes->out[0], .events = POLLIN },
                              { .fd = pipes->err[0], .events = POLLIN } };
    struct buf *to[2] = { output, said };
    char bytes[65536];
    while (wait[0].fd >= 0 || wait[1].fd >= 0) {
        int64_t left = until_ms - clock_now_ms();
        if (left <= 0)
            return false;
        if (poll(wait, 2, (int)left) < 0 && errno != EINTR)
            return false;
        for (int i = 0; i < 2; i++) {
            if (wait[i].fd < 0 || !(wait[i].revents & (POLLIN | POLLHUP | POLLERR)))
                continue;
            ssize_t n = read(wait[i].fd, bytes, sizeof(bytes));
            if (n > 0)
                buf_add(to[i], bytes, (size_t)n);
            else if (n == 0 || errno != EINTR)
                wait[i].fd = -1;
        }
    }
    return true;
}

/* Copy the last line that is not empty, "scontrol: error: text" as "text". */
static void copy_last_line(const struct buf *said, char *text, size_t size)
{
    text[0] = '\0';
    if (said->count == 0)
        return;
    const char *end = said->bytes + said->count;
    while (end > said->bytes && (end[-1] == '\n' || end[-1] == ' '))
        end--;
    const char *from = end;
    while (from > said->bytes && from[-1] != '\n')
        from--;
    for (const char *at; (at = memchr(from, ':', (size_t)(end - from))) != NULL;) {
        size_t length = (size_t)(at - from);
        bool label = length <= 10 && !memchr(from, ' ', length);
        if (!label || at + 2 > end || at[1] != ' ')
            break;
        from = at + 2;
    }
    size_t count = (size_t)(end - from) < size ? (size_t)(end - from) : size - 1;
    memcpy(text, from, count);
    text[count] = '\0';
}

/*
 * Run a command: its status, all of its output, and the last line of its errors without the
 * program's name.  -ETIMEDOUT after 'seconds', when it is killed; -ENOENT: not installed.
 */
static int run_command(const char *const *words, int seconds, struct buf *output,
                       char *said, size_t size, struct error *err)
{
    struct command_pipes pipes;
    struct buf errors;
    pid_t pid;
    int status;
    said[0] = '\0';
    int r = open_pipes(&pipes, err);
    if (r < 0)
        return r;
    buf_init(&errors, ERRORS_MAX_BYTES);
    r = start_command(words, &pipes, &pid);
    if (r < 0)
        error_set(err, r, "%s: %s", words[0], strerror(-r));
    else {
        bool ended = read_output(&pipes, clock_now_ms() + (int64_t)seconds * 1000,
                                 output, &errors);
        if (!ended)
            kill(pid, SIGKILL);
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
            continue;
        copy_last_line(&errors, said, size);
        r = !ended
                ? error_set(err, -ETIMEDOUT, "%s: no answer in %d s", words[0], seconds)
            : WIFEXITED(status) ? WEXITSTATUS(status)
                                : 128 + WTERMSIG(status);
    }
    close(pipes.out[0]);
    close(pipes.err[0]);
    buf_release(&errors);
    return r;
}

/* --- polling ------------------------------------------------------------------------ */

static int run_query(const char *const *words, struct buf *output, struct error *err)
{
    char said[200];
    buf_reset(output);
    int r = run_command(words, TIMEOUT_S, output, said, sizeof(said), err);
    if (r < 0)
        return r == -ENOENT ? r : -EAGAIN;
    if (r != 0)
        return error_set(err, -EAGAIN, "%s: %s", words[0], said[0] ? said : "failed");
    if (output->full)
        return error_set(err, -EAGAIN, "%s printed too much", words[0]);
    return 0;
}

static int commands_poll(void *own, bool all, const struct slurm_observer *observer,
                         struct slurm_poll *ret_poll, struct arena *scratch,
                         struct error *err)
{
    static const char *const nodes[] = { "scontrol", "-o",   "-d", "-a",
                                         "show",     "node", NULL };
    static const char *const jobs[] = { "scontrol", "-o",  "-d", "-a",
                                        "show",     "job", NULL };
    /* After the jobs, so that it lists all of them. */
    static const char *const owners[] = { "squeue", "-h", "-a",    "-r", "-t",
                                          "all",    "-o", "%A %U", NULL };
    struct commands *self = own;
    int r = run_query(nodes, &self->nodes, err);
    if (r == 0)
        r = run_query(jobs, &self->jobs, err);
    if (r == 0)
        r = run_query(owners, &self->owners, err);
    if (r < 0)
        return r;
    if (self->nodes.count > 0)
        scontrol_nodes(self->nodes.bytes, observer, scratch);
    if (self->jobs.count > 0)
        scontrol_jobs(self->jobs.bytes, self->owners.bytes ? self->owners.bytes : "",
                      self->owners.count, observer, scratch);
    ret_poll->jobs = ret_poll->nodes = true;
    return 0;
}

/* --- verbs -------------------------------------------------------------------------- */

/* Run a command; the result has the error. */
static void run_verb(const char *const *words, struct verb_result *result,
                     struct buf *output)
{
    char said[200];
    struct error err = { "" };
    struct buf unwanted;
    buf_init(&unwanted, 65536);
    int r = run_command(words, TIMEOUT_S, output ? output : &unwanted, said,
                        sizeof(said), &err);
    buf_release(&unwanted);
    *result = (struct verb_result){ .ok = true };
    if (r < 0)
        verb_result_fail(result, 0, r == -ETIMEDOUT, "%s", err.text);
    else if (r != 0) {
        verb_result_fail(result, 0, false, "%s", said[0] ? said : "it failed");
        for (size_t i = 0; i < sizeof(error_texts) / sizeof(error_texts[0]); i++)
            if (strstr(said, error_texts[i].text)) {
                result->code = error_texts[i].code;
                result->transient = error_texts[i].transient;
                break;
            }
    }
}

static void ignore_code(struct verb_result *result, int code)
{
    if (!result->ok && result->code == code)
        *result = (struct verb_result){ .ok = true };
}

/* The state of one job. */
struct job_status {
    const struct bridge_request *request;
    struct arena *scratch;
    bool seen;
    bool pending;
    bool running;
    bool cancelled;
    bool completing;
    bool runs_there;
    bool bad_constraints;
    int64_t start;
};

static void store_status(void *self, const struct slurm_job *job)
{
    struct job_status *status = self;
    const char *task = strchr(status->request->job, '_');
    if (task ? job->array_task != strtoul(task + 1, NULL, 10)
             : job->id != bridge_request_job_id(status->request))
        return;
    status->seen = true;
    status->pending = job->state == BRIDGE_PENDING;
    status->running = job->state == BRIDGE_RUNNING;
    status->cancelled = job->state == BRIDGE_CANCELLED;
    status->completing = job->completing;
    status->start = job->start;
    status->runs_there =
        status->running &&
        hostlist_same(job->nodes, status->request->nodes, status->scratch);
    status->bad_constraints = job->reason && strcmp(job->reason, "BadConstraints") == 0;
}

static void ignore_unreadable(void *self, uint32_t id, const char *why)
{
}

/* Query the state of one job, for the verbs that depend on it. */
static struct job_status query_job(const struct bridge_request *request,
                                   struct arena *scratch)
{
    struct job_status status = { .request = request, .scratch = scratch };
    const struct slurm_observer observer = { .self = &status,
                                             .job = store_status,
                                             .unreadable = ignore_unreadable };
    const char *const show[] = { "scontrol", "-o",         "-d", "show",
                                 "job",      request->job, NULL };
    const char *const owner[] = { "squeue", "-h",         "-a", "-r",    "-t", "all",
                                  "-j",     request->job, "-o", "%A %U", NULL };
    struct buf jobs, owners;
    buf_init(&jobs, 1 << 24);
    buf_init(&owners, 1 << 20);
    if (run_query(show, &jobs, NULL) == 0 && run_query(owner, &owners, NULL) == 0 &&
        jobs.count > 0 && owners.count > 0)
        scontrol_jobs(jobs.bytes, owners.bytes, owners.count, &observer, scratch);
    buf_release(&jobs);
    buf_release(&owners);
    return status;
}

#define WORDS_MAX 16

struct command_words {
    const char *list[WORDS_MAX];
    uint32_t count;
    struct arena *scratch;
};

static void add_word(struct command_words *words, const char *key, const char *value)
{
    size_t room = strlen(key) + strlen(value) + 1;
    char *word = arena_array(words->scratch, char, room);
    snprintf(word, room, "%s%s", key, value);
    words->list[words->count++] = word;
}

static void add_number(struct command_words *words, const char *key, uint32_t number)
{
    char text[16];
    snprintf(text, sizeof(text), "%u", number);
    if (number > 0)
        add_word(words, key, text);
}

static struct command_words make_update(const struct bridge_request *request,
                                        struct arena *scratch)
{
    struct command_words words = { .list = { "scontrol", "update" },
                                   .count = 2,
                                   .scratch = scratch };
    add_word(&words, "JobId=", request->job);
    return words;
}

static void release_job(const struct bridge_request *request,
                        struct verb_result *result)
{
    const char *const words[] = { "scontrol", "release", request->job, NULL };
    run_verb(words, result, NULL);
}

/*
 * Set the nodes and the begin time of a job, and keep it held: scontrol cannot do this and
 * release the job in one request, and without the hold a job with bad constraints would
 * start too early.
 */
static void set_placement(const struct bridge_request *request, const char *begin,
                          struct verb_result *result, struct arena *scratch)
{
    struct command_words words = make_update(request, scratch);
    char range[40];
    add_word(&words, "Priority=", "0");
    add_word(&words, "StartTime=", begin);
    if (request->nodes) {
        snprintf(range, sizeof(range), "%u-%u", request->node_count,
                 request->node_count);
        add_word(&words, "ReqNodeList=", request->nodes);
        add_word(&words, "NumNodes=", range);
    } else if (request->unpin)
        add_word(&words, "ReqNodeList=", "");
    add_number(&words, "Gres=gpu:", request->gpus_per_node);
    add_number(&words, "NumTasks=", request->tasks);
    add_number(&words, "NumCPUs=", request->cpus);
    run_verb(words.list, result, NULL);
}

static void start_job(const struct bridge_request *request, struct verb_result *result,
                      struct arena *scratch)
{
    struct job_status status = query_job(request, scratch);
    if (status.runs_there)
        return;
    if (status.completing) {
        verb_result_fail(result, CODE_ALTERED, true,
                         "the job has not left its last nodes yet");
        return;
    }
    set_placement(request, "now", result, scratch);
    if (result->ok)
        release_job(request, result);
}

static void signal_script(const struct bridge_request *request, const char *signal)
{
    const char *const words[] = { "scancel", "--batch", signal, request->job, NULL };
    struct verb_result unused;
    run_verb(words, &unused, NULL);
}

/*
 * slurmctld hears of the end of a script some milliseconds after it: a requeue in between is
 * accepted, and the job would run to its end twice.  So the shell of the script is stopped
 * first, and an end that was on its way has time to arrive, which on a busy machine may not be
 * enough: only the library can ask whether the shell is there.  A requeue continues it.
 */
static void requeue_job(const struct bridge_request *request,
                        struct verb_result *result, struct arena *scratch)
{
    /* Incomplete: never requeue a job that has ended or was cancelled. */
    const char *const words[] = { "scontrol", "requeuehold", "Incomplete", request->job,
                                  NULL };
    struct job_status status = query_job(request, scratch);
    bool stopped = status.running && time(NULL) - status.start >= LAUNCH_S;
    if (stopped) {
        signal_script(request, "--signal=STOP");
        nanosleep(&(struct timespec){ .tv_nsec = STOP_PAUSE_NS }, NULL);
    }
    run_verb(words, result, NULL);
    ignore_code(result, CODE_PENDING);
    ignore_code(result, CODE_DONE);
    ignore_code(result, CODE_FINISHED);
    ignore_code(result, CODE_ALTERED);
    if (stopped && !result->ok)
        signal_script(request, "--signal=CONT");
}

/* Requeue a job that has ended, unless it was cancelled. */
static void requeue_ended_job(const struct bridge_request *request,
                              struct verb_result *result, struct arena *scratch)
{
    struct job_status status = query_job(request, scratch);
    if (status.running || status.pending)
        return;
    if (status.completing) {
        verb_result_fail(result, CODE_ALTERED, true,
                         "the job has not left its nodes yet");
        return;
    }
    if (!status.seen || status.cancelled) {
        verb_result_fail(result, 0, false, "the job is gone for good");
        return;
    }
    const char *const words[] = { "scontrol", "requeuehold", request->job, NULL };
    run_verb(words, result, NULL);
    ignore_code(result, CODE_PENDING);
}

/* Of a job that does not run, scancel would retry for half a minute: check first. */
static void signal_job(const struct bridge_request *request, struct verb_result *result,
                       struct arena *scratch)
{
    static const char *const flags[] = {
        [SIGNAL_BATCH] = "--batch", [SIGNAL_STEPS] = "--quiet", [SIGNAL_ALL] = "--full"
    };
    char number[32];
    if (!query_job(request, scratch).running) {
        verb_result_fail(result, CODE_ALTERED, true, "the job does not run");
        return;
    }
    snprintf(number, sizeof(number), "--signal=%d", request->signal);
    const char *const words[] = { "scancel", number, flags[request->to], request->job,
                                  NULL };
    run_verb(words, result, NULL);
}

static void cancel_job(const struct bridge_request *request, struct verb_result *result)
{
    const char *const words[] = { "scancel", request->job, NULL };
    run_verb(words, result, NULL);
    ignore_code(result, CODE_DONE);
    ignore_code(result, CODE_FINISHED);
}

static void set_comment(const struct bridge_request *request,
                        struct verb_result *result, struct arena *scratch)
{
    struct command_words words = make_update(request, scratch);
    if (query_job(request, scratch).bad_constraints)
        add_word(&words, "Priority=", "0");
    add_word(&words, "AdminComment=", request->text);
    run_verb(words.list, result, NULL);
}

static void read_script(const struct bridge_request *request,
                        struct verb_result *result, struct buf *text)
{
    const char *const words[] = { "scontrol",   "write", "batch_script",
                                  request->job, "-",     NULL };
    run_verb(words, result, text);
    if (result->ok && text->count == 0) /* scontrol prints the reason, with status 0 */
        verb_result_fail(result, 0, false, "there is no script of job %s",
                         request->job);
}

static void hold_job(const struct bridge_request *request, struct verb_result *result,
                     struct arena *scratch)
{
    struct command_words words = make_update(request, scratch);
    add_word(&words, "Priority=", "0");
    if (request->unpin)
        add_word(&words, "ReqNodeList=", "");
    run_verb(words.list, result, NULL);
    if (!result->ok || !request->theirs)
        return;
    const char *const theirs[] = { "scontrol", "uhold", request->job, NULL };
    run_verb(theirs, result, NULL);
}

/* The begin time in the format of scontrol. */
static const char *format_begin(const struct bridge_request *request,
                                struct arena *scratch)
{
    time_t at = (time_t)request->begin;
    struct tm date;
    char *text = arena_array(scratch, char, 32);
    if (at == 0 || !localtime_r(&at, &date))
        return "now";
    strftime(text, 32, "%Y-%m-%dT%H:%M:%S", &date);
    return text;
}

static void commands_execute(void *own, const struct bridge_request *request,
                             struct verb_result *result, struct buf *text,
                             struct arena *scratch)
{
    switch (request->verb) {
    case VERB_START:
        start_job(request, result, scratch);
        break;
    case VERB_SIGNAL:
        signal_job(request, result, scratch);
        break;
    case VERB_EVICT:
        requeue_job(request, result, scratch);
        break;
    case VERB_REVIVE:
        requeue_ended_job(request, result, scratch);
        break;
    case VERB_HOLD:
        hold_job(request, result, scratch);
        break;
    case VERB_RELEASE:
        set_placement(request, format_begin(request, scratch), result, scratch);
        if (result->ok)
            release_job(request, result);
        ignore_code(result, CODE_NOT_PENDING); /* the job runs already */
        break;
    case VERB_PARK:
        set_placement(request, PARKED_UNTIL, result, scratch);
        if (result->ok)
            release_job(request, result);
        break;
    case VERB_CANCEL:
        cancel_job(request, result);
        break;
    case VERB_COMMENT:
        set_comment(request, result, scratch);
        break;
    case VERB_SCRIPT:
        read_script(request, result, text);
        break;
    case VERB_POLL:
        break; /* not for drivers */
    }
}

/* --- start -------------------------------------------------------------------------- */

static long read_number(const char *said, const char *key)
{
    char number[64];
    scontrol_setting(said, key, number, sizeof(number));
    return strtol(number, NULL, 10);
}

static int commands_site(void *own, struct slurm_site *ret_site, struct error *err)
{
    static const char *const words[] = { "scontrol", "show", "config", NULL };
    struct buf text;
    buf_init(&text, 1 << 20);
    int r = run_query(words, &text, err);
    if (r == 0 && text.count > 0) {
        const char *said = text.bytes;
        scontrol_setting(said, "SLURM_VERSION", ret_site->version,
                         sizeof(ret_site->version));
        scontrol_setting(said, "ClusterName", ret_site->cluster,
                         sizeof(ret_site->cluster));
        scontrol_setting(said, "PriorityType", ret_site->priority_type,
                         sizeof(ret_site->priority_type));
        scontrol_setting(said, "SchedulerParameters", ret_site->scheduler,
                         sizeof(ret_site->scheduler));
        scontrol_setting(said, "JobSubmitPlugins", ret_site->submit_plugins,
                         sizeof(ret_site->submit_plugins));
        ret_site->kill_wait_s = read_number(said, "KillWait");
        ret_site->min_job_age_s = read_number(said, "MinJobAge");
        ret_site->requeue = read_number(said, "JobRequeue") != 0;
        ret_site->file_append = read_number(said, "JobFileAppend") != 0;
    }
    buf_release(&text);
    return r;
}

/* Variables that the user has set must not change the output that is parsed. */
static int commands_open(void *own, struct error *err)
{
    static const char *const unset[] = {
        "SQUEUE_FORMAT",  "SQUEUE_STATES",     "SQUEUE_USERS",  "SQUEUE_PARTITION",
        "SQUEUE_ARRAY",   "SQUEUE_SORT",       "SQUEUE_NAMES",  "SQUEUE_QOS",
        "SQUEUE_ACCOUNT", "SQUEUE_FEDERATION", "SCANCEL_CTLD",  "SCANCEL_INTERACTIVE",
        "SCANCEL_NAME",   "SCANCEL_PARTITION", "SCANCEL_STATE", "SCANCEL_USER",
        "SCANCEL_QOS",    "SCANCEL_ACCOUNT",   "SCANCEL_HURRY", "SCANCEL_VERBOSE",
        "SLURM_CLUSTERS", "SCONTROL_ALL"
    };
    struct commands *self = own;
    const char *conf = getenv("SLURM_CONF");
    FILE *file = conf ? fopen(conf, "re") : NULL;
    if (conf && !file)
        return error_set(err, -errno, "SLURM_CONF=%s: %s", conf, strerror(errno));
    if (file)
        fclose(file);
    for (size_t i = 0; i < sizeof(unset) / sizeof(unset[0]); i++)
        unsetenv(unset[i]);
    setenv("LC_ALL", "C", 1);
    setenv("SLURM_TIME_FORMAT", "%s", 1);
    setenv("SLURM_BITSTR_LEN", "0", 1); /* task numbers in full */
    buf_init(&self->jobs, OUTPUT_MAX_BYTES);
    buf_init(&self->owners, OUTPUT_MAX_BYTES);
    buf_init(&self->nodes, OUTPUT_MAX_BYTES);
    return 0;
}

const struct slurm_driver slurm_driver_commands = {
    .name = "commands",
    .self_size = sizeof(struct commands),
    .open = commands_open,
    .site = commands_site,
    .poll = commands_poll,
    .execute = commands_execute,
};
