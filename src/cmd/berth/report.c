/*
 * report.c - berth report: a job's script says how far it is.
 *
 * To whoever there is: the supervisor that Berth started it under (BERTH_SOCKET), a file that
 * berthd follows (BERTH_PROGRESS_FILE), or berthd itself, over TCP from another host
 * (BERTH_REPORT_TO) or by its socket.  A script may keep the line where there is no Berth: then
 * nothing happens.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/units.h"
#include "client/protocol.h"
#include "cmd/berth/forms.h"
#include "cmd/berth/live.h"

#define CREDENTIAL_MAX 4096
#define TRIES 5

static const struct flag report_flags[] = {
    { "total", 't', "N", "how many steps there will be in all" },
    { "saved", 's', "N", "a checkpoint of all before this step is on disk" },
    { "job", 'j', "ID", "of this job; SLURM_JOB_ID" },
    LIVE_FLAGS,
    { 0 },
};

struct report {
    const struct flags *flags;
    double step, loss, total, saved; /* NAN: not said */
    uint64_t id;                     /* 0: not known  */
};

/* ---- to the supervisor ---- */

static void add_fact(char *text, size_t size, const char *word, double number)
{
    size_t count = strlen(text);
    if (!isnan(number))
        snprintf(text + count, size - count, "%s %.0f\n", word, number);
}

static int tell_supervisor(const struct report *report, const char *path)
{
    struct sockaddr_un peer = { .sun_family = AF_UNIX };
    char text[256] = PROTOCOL_HELLO " 1\n";
    add_fact(text, sizeof text, PROTOCOL_TOTAL, report->total);
    size_t count = strlen(text);
    if (!isnan(report->step) && !isnan(report->loss))
        snprintf(text + count, sizeof text - count, PROTOCOL_REPORT " %.0f %.9g\n",
                 report->step, report->loss);
    else if (!isnan(report->step))
        snprintf(text + count, sizeof text - count,
                 PROTOCOL_REPORT " %.0f " PROTOCOL_NO_LOSS "\n", report->step);
    add_fact(text, sizeof text, PROTOCOL_SAVED, report->saved);
    if (strlen(path) >= sizeof peer.sun_path)
        return command_failed(report->flags, "BERTH_SOCKET: is too long");
    memcpy(peer.sun_path, path, strlen(path));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool said = fd >= 0 && connect(fd, (struct sockaddr *)&peer, sizeof peer) == 0 &&
                send(fd, text, strlen(text), MSG_NOSIGNAL) == (ssize_t)strlen(text);
    int why = errno;
    if (fd >= 0)
        close(fd);
    return said ? 0 : command_failed(report->flags, "%s: %s", path, strerror(why));
}

/* ---- into a file ---- */

static int tell_file(const struct report *report, const char *path)
{
    char text[128];
    if (isnan(report->step))
        return 0;
    int count = snprintf(text, sizeof text, "%.0f", report->step);
    count += isnan(report->loss)
                 ? snprintf(text + count, sizeof text - (size_t)count, " -")
                 : snprintf(text + count, sizeof text - (size_t)count, " %.9g",
                            report->loss);
    if (!isnan(report->total))
        count +=
            snprintf(text + count, sizeof text - (size_t)count, " %.0f", report->total);
    text[count++] = '\n';
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0644);
    bool said = fd >= 0 && write(fd, text, (size_t)count) == count;
    int why = errno;
    if (fd >= 0)
        close(fd);
    return said ? 0 : command_failed(report->flags, "%s: %s", path, strerror(why));
}

/* ---- to berthd ---- */

/* What munge says of us, for this purpose alone; false with a message. */
static bool ask_munge(const struct report *report, char *credential, size_t size)
{
    const char *at = getenv("BERTH_MUNGE_SOCKET");
    char purpose[64];
    int out[2];
    snprintf(purpose, sizeof purpose, "--string=berth progress %" PRIu64, report->id);
    if (pipe2(out, O_CLOEXEC) < 0)
        return false;
    pid_t pid = fork();
    if (pid == 0) {
        dup2(out[1], STDOUT_FILENO);
        execlp("munge", "munge", purpose, at ? "--socket" : NULL, at, (char *)NULL);
        _exit(127);
    }
    close(out[1]);
    size_t count = 0;
    for (ssize_t some; pid > 0 && count + 1 < size &&
                       (some = read(out[0], credential + count, size - 1 - count)) > 0;)
        count += (size_t)some;
    close(out[0]);
    credential[count] = '\0';
    credential[strcspn(credential, "\n")] = '\0';
    int status = -1;
    if (pid > 0)
        waitpid(pid, &status, 0);
    if (status == 0 && credential[0])
        return true;
    command_failed(report->flags,
                   WIFEXITED(status) && WEXITSTATUS(status) == 127
                       ? "munge is not installed here: report through a file instead"
                       : "munge gives no credential: does munged run here?");
    return false;
}

/* The job's token; 0, or an exit status. */
static int fetch_token(const struct report *report, struct call *call)
{
    char path[64], credential[CREDENTIAL_MAX];
    struct error err = { "" };
    int r = -EIO;
    snprintf(path, sizeof path, "/v1/jobs/%" PRIu64 "/token", report->id);
    call_set_token(call, NULL);
    /* Many jobs may begin at once; a credential is good for one try. */
    for (int i = 0; r == -EIO && i < TRIES; i++) {
        struct json *answer = NULL, *body = json_new_object();
        if (i > 0)
            nanosleep(&(struct timespec){ .tv_sec = i }, NULL);
        if (!ask_munge(report, credential, sizeof credential)) {
            json_free(body);
            return 1;
        }
        json_put_text(body, "munge", credential);
        r = call_json(call, "POST", path, body, &answer, &err);
        if (r == 0)
            call_set_token(call, live_text(answer, "token", ""));
        json_free(answer);
        json_free(body);
    }
    return r < 0 ? command_failed(report->flags, "%s", err.text) : 0;
}

static void put(struct json *body, const char *key, double number)
{
    if (!isnan(number))
        json_put_number(body, key, number);
}

static int tell_berthd(const struct report *report, const char *address)
{
    struct call *call = NULL;
    struct error err = { "" };
    char path[64];
    int r = call_open(&call, address, &err);
    if (r < 0)
        return live_status(report->flags, r, &err);
    int status = strncmp(call_address(call), "http", 4) == 0 && !getenv("BERTH_TOKEN")
                     ? fetch_token(report, call)
                     : 0;
    if (status == 0) {
        struct json *body = json_new_object();
        put(body, "step", report->step);
        put(body, "loss", report->loss);
        put(body, "total", report->total);
        put(body, "saved", report->saved);
        snprintf(path, sizeof path, "/v1/jobs/%" PRIu64 "/progress", report->id);
        r = call_json(call, "POST", path, body, NULL, &err);
        status = r < 0 ? command_failed(report->flags, "%s", err.text) : 0;
        json_free(body);
    }
    call_close(call);
    return status;
}

/* ---- all of it ---- */

static int read_words(struct report *report)
{
    const struct flags *flags = report->flags;
    if (flags->word_count > 2)
        return command_wrong(flags, "unexpected \"%.60s\"", flags->words[2]);
    if (flags->word_count > 0 && (!units_number(flags->words[0], &report->step) ||
                                  !(report->step >= 0 && report->step <= 1e15)))
        return command_wrong(flags, "\"%.60s\" is no step: want a number",
                             flags->words[0]);
    if (flags->word_count > 1 && strcmp(flags->words[1], "-") != 0 &&
        (!units_number(flags->words[1], &report->loss) || !isfinite(report->loss)))
        return command_wrong(flags, "\"%.60s\" is no loss: want a number",
                             flags->words[1]);
    report->total = flags_number(flags, "total", 1, 1e15, NAN);
    report->saved = flags_number(flags, "saved", 0, 1e15, NAN);
    if (isnan(report->step) && isnan(report->total) && isnan(report->saved))
        return command_wrong(flags, "want a step, --total or --saved");
    const char *job = flags_get(flags, "job");
    const char *said = job ? job : getenv("SLURM_JOB_ID");
    if (said && !form_count(said, INT64_MAX, &report->id))
        return command_wrong(flags, "\"%.60s\" is no job: want a number", said);
    return 0;
}

static int report_run(const struct flags *flags)
{
    struct report report = { flags, NAN, NAN, NAN, NAN, 0 };
    const char *supervisor = getenv(PROTOCOL_ENV_SOCKET);
    const char *file = getenv("BERTH_PROGRESS_FILE");
    const char *to = getenv("BERTH_REPORT_TO");
    int status = read_words(&report);
    if (status)
        return status;
    if (flags_get(flags, "socket") && report.id)
        return tell_berthd(&report, flags_get(flags, "socket"));
    if (supervisor && *supervisor && !flags_get(flags, "job"))
        return tell_supervisor(&report, supervisor);
    if (file && *file)
        return tell_file(&report, file);
    if (report.id && to && *to)
        return tell_berthd(&report, to);
    if (report.id && (flags_get(flags, "job") || getenv("BERTH_ADDR")))
        return tell_berthd(&report, NULL);
    return 0; /* nobody wants to know */
}

const struct command command_report = {
    .name = "report",
    .group = "Use",
    .brief = "in a job's script: say how far it is",
    .usage = "STEP [LOSS] [flags]",
    .flags = report_flags,
    .more = "Without Berth around it does nothing, so it may stay in the script.",
    .run = report_run,
};
