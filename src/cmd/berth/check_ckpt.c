/*
 * check_ckpt.c - berth check-ckpt: does this command stop and resume as it should?
 *
 * The command runs as a best-effort job of a temporary berthd with one slot, and is really
 * preempted: a trial job is submitted that needs the slot.  Its reaction is observed from
 * outside, in berthd's events, in its checkpoint folder and in its output, and printed line
 * by line.
 *
 *     runs, until it has made progress
 *       │ a trial job is submitted: warning, grace period
 *     exits: in time? with which status? did it save?
 *       │ the trial job ends
 *     runs again: from which step?
 */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "base/units.h"
#include "api/call.h"
#include "api/sse.h"
#include "cmd/berth/command.h"
#include "cmd/berth/format.h"
#include "cmd/berth/request_builder.h"
#include "cmd/berth/request_source.h"
#include "host/pattern.h"
#include "lab/scratch.h"
#include "model/event_record.h"

#define DEFAULT_PATTERN "[Ss]tep[ :=#]+([0-9]+)"
#define LINE_BYTES_MAX 4096
#define FOLDERS_MAX 256
#define WATCHED_EVENTS (IN_CLOSE_WRITE | IN_MOVED_TO | IN_ACCESS | IN_CREATE)
#define GRACE_S 30.0
#define STEPS_ENOUGH 1e12 /* so that steps are those it reports, not seconds */
#define SLACK_S 30.0      /* for berthd to react */

static const struct flag check_flags[] = {
    { "grace", 0, "T", "time to leave after the warning; 30s" },
    { "signal", 0, "S", "asks it to stop; TERM" },
    { "pattern", 0, "REGEX", "finds (step) and (loss) in its output" },
    { "ckpt-dir", 0, "DIR", "where it saves; one of Berth's own" },
    { "chdir", 'D', "DIR", "runs in this folder; the present one" },
    { "export", 0, "LIST", "variables it sees: ALL, NONE, or A,B=value; ALL" },
    { "after", 0, "T", "preempts it so long after its first progress; 2s" },
    { "within", 0, "T", "waits so long for a sign of progress; 60s" },
    FLAG_JSON,
    { 0 },
};

#define SIGNS_NAME_MAX 64

/* Signs of progress that need no cooperation of the job: files that it reads and writes in its
 * checkpoint folder, and steps in its output. */
struct check_signs {
    int inotify; /* -1: not open */
    char folder[4096];
    char output[4096];
    struct pattern pattern;
    bool compiled;

    uint32_t written, read; /* files, since signs_reset() */
    char written_name[SIGNS_NAME_MAX], read_name[SIGNS_NAME_MAX];
};

enum check_phase { RUNS, WARNED, WAITS, RUNS_AGAIN, DONE };

struct check {
    const struct flags *flags;
    struct scratch scratch;
    struct call *stream;
    struct check_signs signs;
    struct sse_parser events;
    struct arena arena; /* of one event */
    struct json *evidence;
    struct error err; /* why the check could not be done; "": nothing went wrong */
    bool quiet;       /* --json */
    double after_s, within_s, grace_s;

    uint64_t victim, trial;
    enum check_phase phase;
    double zero, since;        /* on our clock: start of the check; of this phase  */
    double sign;               /* time of the first progress; NAN: none yet      */
    double start_at, warn_at;  /* by berthd's events                             */
    double left_s, lead_s;     /* until it had exited; until its first progress   */
    double reached, saved;     /* steps; 0: none are known                        */
    double resumed;            /* the first step of the second attempt            */
    int64_t output_before;     /* bytes, of the first attempt                     */
    int left_code, end_code;   /* of the first attempt; of the last                */
    bool warned, clean, wrote; /* the first attempt                               */
    bool again, read, failed;  /* the second                                      */
    bool stops, resumes;
};

/* ---- signs of progress ---- */

static int signs_open(struct check_signs *signs, const char *folder, const char *output,
                      const char *pattern, struct error *err)
{
    *signs = (struct check_signs){ .inotify = -1 };
    snprintf(signs->folder, sizeof signs->folder, "%s", folder);
    snprintf(signs->output, sizeof signs->output, "%s", output);
    int r = pattern_init(&signs->pattern, pattern ? pattern : DEFAULT_PATTERN, err);
    signs->compiled = r == 0;
    return r;
}

static void signs_close(struct check_signs *signs)
{
    if (signs->compiled)
        pattern_release(&signs->pattern);
    if (signs->inotify >= 0)
        close(signs->inotify);
    signs->compiled = false;
    signs->inotify = -1;
}

/* The folder and its subfolders: some jobs save each checkpoint into its own folder. */
static void watch_folders(struct check_signs *signs)
{
    inotify_add_watch(signs->inotify, signs->folder, WATCHED_EVENTS);
    DIR *dir = opendir(signs->folder);
    uint32_t count = 0;
    for (struct dirent *entry; dir && count < FOLDERS_MAX && (entry = readdir(dir));) {
        char path[PATH_MAX + 256];
        if (entry->d_name[0] == '.' || entry->d_type != DT_DIR)
            continue;
        snprintf(path, sizeof path, "%s/%s", signs->folder, entry->d_name);
        inotify_add_watch(signs->inotify, path, WATCHED_EVENTS);
        count++;
    }
    if (dir)
        closedir(dir);
}

static void signs_watch_folder(struct check_signs *signs)
{
    if (signs->inotify < 0)
        signs->inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (signs->inotify >= 0)
        watch_folders(signs);
}

static void count_file_event(struct check_signs *signs,
                             const struct inotify_event *event)
{
    const char *name = event->len ? event->name : "a file";
    if (event->mask & IN_ISDIR)
        return;
    if (event->mask & (IN_CLOSE_WRITE | IN_MOVED_TO)) {
        signs->written++;
        snprintf(signs->written_name, SIGNS_NAME_MAX, "%s", name);
    }
    if (event->mask & IN_ACCESS) {
        signs->read++;
        snprintf(signs->read_name, SIGNS_NAME_MAX, "%s", name);
    }
}

static void signs_update(struct check_signs *signs)
{
    char bytes[16384] __attribute__((aligned(8)));
    bool folders = false;
    ssize_t count;
    while (signs->inotify >= 0 &&
           (count = read(signs->inotify, bytes, sizeof bytes)) > 0)
        for (ssize_t at = 0; at < count;) {
            const struct inotify_event *event = (const void *)(bytes + at);
            count_file_event(signs, event);
            folders = folders || (event->mask & IN_ISDIR &&
                                  event->mask & (IN_CREATE | IN_MOVED_TO));
            at += (ssize_t)(sizeof *event + event->len);
        }
    if (folders)
        watch_folders(signs);
}

static void signs_reset(struct check_signs *signs)
{
    signs_update(signs);
    signs->written = signs->read = 0;
    signs->written_name[0] = signs->read_name[0] = '\0';
}

static int64_t signs_output_bytes(const struct check_signs *signs)
{
    struct stat status;
    return stat(signs->output, &status) == 0 ? status.st_size : 0;
}

static bool signs_find_steps(const struct check_signs *signs, int64_t from, int64_t to,
                             double *ret_first, double *ret_last)
{
    char line[LINE_BYTES_MAX];
    bool any = false;
    FILE *file = fopen(signs->output, "re");
    if (!file)
        return false;
    fseeko(file, from, SEEK_SET);
    while (ftello(file) < to && fgets(line, sizeof line, file)) {
        double step, loss;
        char *end = strchr(line, '\n');
        if (!end)
            continue; /* it is not complete yet */
        *end = '\0';
        if (!pattern_match(&signs->pattern, line, &step, &loss) || isnan(step))
            continue;
        if (!any)
            *ret_first = step;
        *ret_last = step;
        any = true;
    }
    fclose(file);
    return any;
}

static void signs_last_line(const struct check_signs *signs, char *line, size_t size)
{
    char next[LINE_BYTES_MAX];
    FILE *file = fopen(signs->output, "re");
    line[0] = '\0';
    while (file && fgets(next, sizeof next, file))
        if (next[0] != '\n')
            snprintf(line, size, "%.*s", (int)strcspn(next, "\n"), next);
    if (file)
        fclose(file);
    for (char *c = line; *c; c++)
        if ((unsigned char)*c < ' ')
            *c = ' ';
}

/* ---- evidence ---- */

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
    interrupted = number;
}

static double now_s(const struct check *check)
{
    return clock_now_s() - check->zero;
}

/* Print a line of evidence, and keep it for --json. */
static void add_evidence(struct check *check, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static void add_evidence(struct check *check, const char *fmt, ...)
{
    char text[400];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    json_add_text(check->evidence, text);
    if (check->quiet)
        return;
    printf("%6.1f s  %s\n", now_s(check), text);
    fflush(stdout);
}

static void enter_phase(struct check *check, enum check_phase phase)
{
    check->phase = phase;
    check->since = clock_now_s();
}

/* ---- berthd's events ---- */

static void on_started(struct check *check, double at, int64_t attempt)
{
    signs_watch_folder(&check->signs);
    if (attempt == 0) {
        check->start_at = at;
        add_evidence(check, "started");
        return;
    }
    check->again = true;
    add_evidence(check, "started again, with BERTH_RESUME=1");
    enter_phase(check, RUNS_AGAIN);
}

static void on_progress(struct check *check, double step)
{
    if (check->phase == RUNS || check->phase == WARNED)
        check->reached = fmax(check->reached, step);
    if (check->phase == RUNS && isnan(check->sign)) {
        check->sign = clock_now_s();
        add_evidence(check, "its first report: step %.0f", step);
    }
    if (check->phase == RUNS_AGAIN && isnan(check->resumed)) {
        check->resumed = step;
        add_evidence(check, "its first report: step %.0f", step);
    }
}

static void on_preempted(struct check *check, double at)
{
    check->warned = true;
    check->warn_at = at;
    signs_reset(&check->signs);
    if (check->reached > 0)
        add_evidence(check, "told to stop, with %.3g s of grace, past step %.0f",
                     check->grace_s, check->reached);
    else
        add_evidence(check, "told to stop, with %.3g s of grace", check->grace_s);
    enter_phase(check, WARNED);
}

static bool check_second_attempt(struct check *check);

/* The job has exited after the warning. */
static void on_exit_after_warning(struct check *check, double at, int code)
{
    const char *meaning = code == 85 || code == 99 ? ": saved, put me back"
                          : code == 0              ? ": done"
                          : code == 128 + SIGKILL  ? ": killed"
                          : code == 128 + SIGTERM  ? ": the signal ended it"
                                                   : "";
    signs_update(&check->signs);
    check->left_code = code;
    check->left_s = at - check->warn_at;
    check->wrote = check->signs.written > 0;
    check->output_before = signs_output_bytes(&check->signs);
    add_evidence(check, "left after %.2f s with status %d%s", check->left_s, code,
                 meaning);
    if (check->wrote)
        add_evidence(check, "wrote %s between the warning and its end",
                     check->signs.written_name);
}

static void on_stopped(struct check *check, const struct event *event)
{
    double first, last;
    check->saved = isnan(event->steps) ? 0 : event->steps;
    check->clean = event->clean;
    /* Of a job that reports nothing, berthd's figure is an estimate from its run time. */
    if (check->reached > 0)
        check->reached = fmax(check->reached, event->steps_reached);
    else if (signs_find_steps(&check->signs, 0, check->output_before, &first, &last))
        check->reached = last;
    signs_reset(&check->signs);
    enter_phase(check, WAITS);
}

/* The job has ended before it was warned, or after it was started again. */
static void on_end(struct check *check, bool finished, int code)
{
    char line[160];
    signs_last_line(&check->signs, line, sizeof line);
    add_evidence(check, "ended with status %d", code);
    if (*line)
        add_evidence(check, "its last line: %s", line);
    check->end_code = code;
    check->failed = !finished;
    if (check->again)
        check_second_attempt(check);
    enter_phase(check, DONE);
}

static void apply_event(struct check *check, const struct event *event)
{
    enum event_kind kind = event->kind;
    double at = (double)event->at_ns * 1e-9;
    bool ended =
        kind == EVENT_STOPPED || kind == EVENT_FINISHED || kind == EVENT_FAILED;
    if (ended && check->phase == WARNED)
        on_exit_after_warning(check, at, event->exit_code);
    if (kind == EVENT_STARTED)
        on_started(check, at, event->attempt);
    else if (kind == EVENT_PROGRESS)
        on_progress(check, event->steps);
    else if (kind == EVENT_RECALLED)
        on_preempted(check, at);
    else if (ended && check->phase != WARNED)
        on_end(check, kind == EVENT_FINISHED, event->exit_code);
    else if (kind == EVENT_STOPPED)
        on_stopped(check, event);
    else if (ended || kind == EVENT_LOST)
        enter_phase(check, DONE); /* it reports that it is done */
}

static void on_event(void *context, const char *name, const char *data, size_t count)
{
    struct check *check = context;
    struct event_record record;
    arena_reset(&check->arena);
    if (event_record_read(data, count, &check->arena, &record) == 0 &&
        record.job == check->victim)
        apply_event(check, &record.event);
}

static void ignore_event(void *context, const char *why)
{
}

static bool on_bytes(void *context, const char *bytes, size_t count)
{
    struct check *check = context;
    struct sse_handler handler = { on_event, ignore_event, check };
    sse_add(&check->events, bytes, count, &handler);
    return check->phase != DONE && !interrupted;
}

/* ---- between events ---- */

/* Submit a short trial job, which preempts the job under test. */
static int submit_trial(struct check *check)
{
    struct json *request = json_new_object(), *command = json_new_array();
    json_add_text(command, "sleep");
    json_add_text(command, "0.1");
    json_put(request, "command", command);
    json_put_text(request, "name", "trial");
    json_put_text(request, "class", "te");
    json_put_text(request, "cwd", "/");
    json_put_count(request, "gpus", 1);
    int r = scratch_submit(&check->scratch, request, &check->trial, &check->err);
    json_free(request);
    return r;
}

static bool check_first_attempt(struct check *check)
{
    double now = clock_now_s(), first, last;
    signs_update(&check->signs);
    if (isnan(check->start_at) || check->trial)
        return true;
    if (isnan(check->sign) && check->signs.written > 0) {
        check->sign = now;
        add_evidence(check, "wrote %s", check->signs.written_name);
    } else if (isnan(check->sign) &&
               signs_find_steps(&check->signs, 0, INT64_MAX, &first, &last) &&
               last > 0) {
        check->sign = now;
        add_evidence(check, "printed that it is at step %.0f", last);
    }
    bool late = isnan(check->sign) && now - check->since > check->within_s;
    if (late)
        add_evidence(check, "no report, no step in its output, no file in %.3g s",
                     check->within_s);
    if (!late && !(now - check->sign >= check->after_s))
        return true;
    check->lead_s = late ? check->within_s : check->sign - check->since;
    return submit_trial(check) == 0;
}

/* How long the second attempt may take to show from which step it resumes. */
static double second_attempt_limit_s(const struct check *check)
{
    return isnan(check->sign) ? check->after_s + 3
                              : 3 * check->lead_s + check->after_s + 5;
}

static bool check_second_attempt(struct check *check)
{
    double first, last;
    signs_update(&check->signs);
    if (check->signs.read > 0 && !check->read) {
        check->read = true;
        add_evidence(check, "read %s", check->signs.read_name);
    }
    if (isnan(check->resumed) && signs_find_steps(&check->signs, check->output_before,
                                                  INT64_MAX, &first, &last)) {
        check->resumed = first;
        add_evidence(check, "printed that it is at step %.0f", first);
    }
    double waited_s = clock_now_s() - check->since;
    if (!isnan(check->resumed) && (check->read || waited_s > 0.5))
        enter_phase(check, DONE);
    else if (waited_s > second_attempt_limit_s(check) + check->within_s *
                                                            isnan(check->resumed) *
                                                            (check->reached > 0))
        enter_phase(check, DONE);
    return check->phase != DONE;
}

static bool on_idle(void *context)
{
    struct check *check = context;
    double waited_s = clock_now_s() - check->since;
    if (interrupted)
        return false;
    switch (check->phase) {
    case RUNS:
        return check_first_attempt(check);
    case RUNS_AGAIN:
        return check_second_attempt(check);
    case DONE:
        return false;
    case WARNED:
    case WAITS:
        signs_update(&check->signs);
        if (waited_s < check->grace_s + SLACK_S)
            return true;
        error_set(&check->err, -ETIME, "it did not %s in %.0f s",
                  check->phase == WARNED ? "go away" : "start again", waited_s);
        return false;
    }
    return true;
}

/* ---- the verdict ---- */

/*
 * Compare the step from which it resumed with the step it had reached before.  A job that
 * exited cleanly has to resume from the step it had reached, any other from the last step it
 * had saved.  A difference of one step is ignored: some count from 0 and some from 1.
 */
static bool has_resumed(const struct check *check)
{
    double want = check->clean ? check->reached : check->saved;
    if (!check->again || check->failed)
        return false;
    if (isnan(check->resumed))
        return check->read; /* it shows no steps, but it used its checkpoint */
    if (want > 1)
        return check->resumed >= want - 1;
    return check->read && check->resumed > 1;
}

/* What the user should mend, or NULL. */
static const char *explain_failure(const struct check *check)
{
    if (!check->warned && check->end_code == 0)
        return "it was done before it could be told to stop: give it more to do";
    if (!check->warned)
        return "it failed before it could be told to stop";
    if (!check->stops)
        return "it did not leave within the grace and was killed: catch the signal, "
               "save, and exit with status 85";
    if (!check->again)
        return "it ended with status 0 when it was told to stop, which says that it is "
               "done: exit with 85 after saving";
    if (check->failed)
        return "it failed when it was started again";
    if (!check->resumes && isnan(check->resumed))
        return "it did not read its checkpoint folder when it was started again: save "
               "into BERTH_CKPT_DIR and begin from there";
    if (!check->resumes)
        return "it did not go on where it was: save into BERTH_CKPT_DIR before leaving "
               "and begin from there";
    return NULL;
}

static void judge_job(struct check *check)
{
    check->stops = check->warned && check->left_code != 128 + SIGKILL &&
                   check->left_s <= check->grace_s + 1;
    check->resumes = has_resumed(check);
    double lost = check->reached - check->resumed + 1;
    if (check->again && check->stops && lost > 1)
        add_evidence(check, "%.0f steps of %.0f were made in vain", lost,
                     check->reached);
}

static int print_verdict(struct check *check)
{
    const char *wrong = explain_failure(check);
    bool honours = check->stops && check->resumes;
    if (!check->quiet) {
        if (honours)
            printf("Honours the contract: it stops in time and resumes from where it "
                   "was.\n");
        else
            printf("Does not honour the contract: %s.\n", wrong ? wrong : "see above");
        return honours ? 0 : 1;
    }
    struct json *root = json_new_object();
    json_put_flag(root, "honours", honours);
    json_put_flag(root, "stops_in_time", check->stops);
    json_put_flag(root, "resumes", check->resumes);
    json_put_number(root, "grace_s", check->grace_s);
    if (check->warned) {
        json_put_number(root, "left_after_s", check->left_s);
        json_put_count(root, "exit_code", check->left_code);
        json_put_flag(root, "saved_after_warning", check->wrote);
        json_put_number(root, "step_reached", check->reached);
    } else {
        json_put_count(root, "exit_code", check->end_code);
    }
    if (!isnan(check->resumed))
        json_put_number(root, "step_resumed", check->resumed);
    if (wrong)
        json_put_text(root, "wrong", wrong);
    json_put(root, "evidence", json_copy_of(check->evidence));
    format_print_json(root);
    return honours ? 0 : 1;
}

/* ---- setup and the command ---- */

/* The command as a request: best effort, one slot. */
static int make_request(struct check *check, struct arena *arena, struct json **ret)
{
    struct request_builder builder;
    request_builder_init(&builder, arena);
    int r = request_source_read(&builder, check->flags, "check-ckpt", &check->err);
    if (r == 0) {
        json_put_text(builder.fields, "class", "be");
        json_put_number(builder.fields, "steps", STEPS_ENOUGH);
        json_put_count(builder.fields, "gpus", 1);
        if (!json_get(builder.fields, "grace_s"))
            json_put_number(builder.fields, "grace_s", GRACE_S);
        check->grace_s = json_number_or(builder.fields, "grace_s", GRACE_S);
        r = request_builder_body(&builder, ret, &check->err);
    }
    request_builder_release(&builder);
    return r;
}

static int open_signs(struct check *check, const struct json *request)
{
    char folder[4096], output[4096];
    const char *given = json_as_text(json_get(request, "ckpt_dir"));
    snprintf(folder, sizeof folder, "%s/ckpt/%" PRIu64, check->scratch.state,
             check->victim);
    snprintf(output, sizeof output, "%s/log/%" PRIu64 ".out", check->scratch.state,
             check->victim);
    return signs_open(&check->signs, given ? given : folder, output,
                      flags_get(check->flags, "pattern"), &check->err);
}

static int watch_job(struct check *check, const struct json *request)
{
    struct call_stream stream = { on_bytes, on_idle, check };
    int r = scratch_start(&check->scratch, &check->err);
    if (r == 0)
        r = call_open(&check->stream, check->scratch.socket, &check->err);
    if (r == 0)
        r = scratch_submit(&check->scratch, request, &check->victim, &check->err);
    if (r == 0)
        r = open_signs(check, request);
    check->zero = check->since = clock_now_s();
    if (r == 0)
        r = call_stream(check->stream, "/v1/events?since=0", &stream, &check->err);
    if (r == 0 && check->err.text[0])
        r = -EIO;
    return r;
}

static int run_check(struct check *check)
{
    static const char *const args[] = { "--fake-gpus", "slot:1", "--policy", "fitgpp",
                                        NULL };
    struct arena arena;
    struct json *request = NULL;
    arena_init(&arena, 0);
    int r = make_request(check, &arena, &request);
    int status = command_status(check->flags, r, &check->err);
    if (r == 0) {
        struct sigaction action = { .sa_handler = on_signal };
        sigaction(SIGINT, &action, NULL);
        sigaction(SIGTERM, &action, NULL);
        r = scratch_open(&check->scratch, args, &check->err);
        if (r == 0)
            r = watch_job(check, request);
        if (interrupted)
            status = 128 + interrupted;
        else if (r < 0)
            status = command_status(check->flags, r, &check->err);
        else
            judge_job(check);
        scratch_close(&check->scratch);
        if (r == 0 && !interrupted)
            status = print_verdict(check);
        json_free(request);
    }
    arena_release(&arena);
    return status;
}

static int read_time(const struct flags *flags, const char *name, double fallback_s,
                     double *ret_s)
{
    int64_t ns;
    const char *text = flags_get(flags, name);
    *ret_s = fallback_s;
    if (!text)
        return 0;
    if (!units_time(text, &ns) || ns > 86400 * NS_PER_S)
        return command_wrong(flags, "--%s is \"%.40s\", want a time up to a day", name,
                             text);
    *ret_s = (double)ns * 1e-9;
    return 0;
}

static int check_run(const struct flags *flags)
{
    struct check check = { .flags = flags,
                           .quiet = flags_get(flags, "json"),
                           .signs = { .inotify = -1 },
                           .sign = NAN,
                           .start_at = NAN,
                           .warn_at = NAN,
                           .left_s = NAN,
                           .resumed = NAN };
    if (flags->word_count == 0)
        return command_wrong(flags, "want a command: berth check-ckpt -- CMD…");
    int status = read_time(flags, "after", 2, &check.after_s);
    if (status == 0)
        status = read_time(flags, "within", 60, &check.within_s);
    if (status)
        return status;
    check.evidence = json_new_array();
    sse_init(&check.events);
    arena_init(&check.arena, 0);
    status = run_check(&check);
    signs_close(&check.signs);
    call_close(check.stream);
    sse_release(&check.events);
    arena_release(&check.arena);
    json_free(check.evidence);
    return status;
}

const struct command command_check_ckpt = {
    .name = "check-ckpt",
    .group = "Use",
    .brief = "preempt a command for real: does it stop and resume as it should?",
    .usage = "[flags] [--] CMD…",
    .flags = check_flags,
    .more = "Runs it under a berthd of its own, with one slot and in a folder that is "
            "thrown\n"
            "away. Status 0: it honours the contract; 1: it does not; 2: wrong usage.",
    .flags_first = true,
    .run = check_run,
};
