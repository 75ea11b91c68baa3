/*
 * progress.c - what jobs on other hosts report of their progress, and the routes for it.
 *
 * Over TCP a job has no token of ours, and must not have: its own is good for nothing but its
 * progress.  It gets that for a credential of munge, which names the user of the process; the
 * credential has to name the purpose, so that one made for something else is refused.
 */
#include "daemon/progress.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uv.h>

#include "base/error.h"
#include "base/grow.h"
#include "base/json.h"
#include "base/json_write.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/plain_file.h"
#include "base/units.h"
#include "http/munge.h"
#include "daemon/routes/routes_internal.h"
#include "daemon/scheduler.h"
#include "executor/executor.h"
#include "host/launcher_client.h"

#define POLL_MS 1000
#define JOB_TOKEN_CHARS 32
#define TAIL_BYTES 65536 /* of a file at a time: older reports do not matter */
#define OPENINGS_MAX 2   /* asked for at once: 'berth logs' needs some as well */
#define OPEN_FILES_MAX 256
#define OPEN_AGAIN_NS NS_PER_S           /* after it could not be opened, ... */
#define OPEN_AGAIN_MAX_NS (8 * NS_PER_S) /* ... doubled up to this           */
#define SILENT_NS (30 * NS_PER_S)        /* then another file may have taken its name */

/* A file that a job reports into; kept open while the job runs. */
struct progress_file {
    struct progress *progress;
    uint64_t id;
    char *path;
    uint32_t uid;
    int fd;            /* -1: not open                      */
    uint64_t inode;    /* of the last one that was open     */
    int64_t position;  /* read up to here                   */
    int64_t due_ns;    /* not to be opened before           */
    int64_t wait_ns;   /* after the next failure            */
    int64_t active_ns; /* when something was read from it   */
    bool opening;      /* berth-launch was asked            */
    bool reading;      /* the worker thread has it          */
    bool dropped;      /* to be freed after that            */
    bool found;        /* the worker's answer: a report ... */
    bool gone;         /* ... or nobody will write to it    */
    struct progress_report report;
};

/* A job that has reported, or may. */
struct progress_entry {
    uint64_t id;
    char token[JOB_TOKEN_CHARS + 1]; /* "": not asked for    */
    struct progress_report report;   /* the newest           */
    bool waiting;                    /* to be passed on      */
    int64_t said_ns;                 /* when it last was     */
    struct progress_file *file;      /* or NULL              */
};

struct progress {
    struct scheduler *scheduler;
    struct launcher_client *launcher;
    struct munge *munge;
    uv_timer_t timer;
    uv_work_t work;
    struct progress_entry *entries;
    uint32_t count, room;
    struct map by_id;
    struct progress_file **files; /* the worker's, while it reads */
    uint32_t file_count, file_room;
    uint32_t opening_count;
    bool reading;
    bool closing, closed; /* to be freed; the timer is closed */
};

/* --- jobs ------------------------------------------------------------------------------ */

static void on_timer(uv_timer_t *timer);
static void drop_file(struct progress_file *file);

static struct progress_entry *find_entry(const struct progress *progress, uint64_t id)
{
    uint32_t at = map_find(&progress->by_id, id);
    return at == MAP_NONE ? NULL : &progress->entries[at];
}

static struct progress_entry *find_or_add_entry(struct progress *progress, uint64_t id)
{
    struct progress_entry *known = find_entry(progress, id);
    if (known)
        return known;
    progress->entries = grow_array(progress->entries, &progress->room,
                                   progress->count + 1, sizeof *progress->entries);
    map_put(&progress->by_id, id, progress->count);
    struct progress_entry *entry = &progress->entries[progress->count++];
    *entry = (struct progress_entry){ .id = id, .report = { NAN, NAN, NAN, NAN } };
    if (!uv_is_active((uv_handle_t *)&progress->timer))
        uv_timer_start(&progress->timer, on_timer, POLL_MS, POLL_MS);
    return entry;
}

static void drop_entry(struct progress *progress, uint32_t at)
{
    struct progress_entry *entry = &progress->entries[at];
    map_remove(&progress->by_id, entry->id);
    drop_file(entry->file);
    explicit_bzero(entry->token, sizeof entry->token);
    if (at != --progress->count) {
        *entry = progress->entries[progress->count];
        map_put(&progress->by_id, entry->id, at);
    }
}

static void get_token(struct progress *progress, uint64_t id,
                      char ret_token[static JOB_TOKEN_CHARS + 1])
{
    struct progress_entry *entry = find_or_add_entry(progress, id);
    unsigned char bytes[JOB_TOKEN_CHARS / 2];
    if (!entry->token[0]) {
        if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
            abort();
        for (size_t i = 0; i < sizeof bytes; i++)
            snprintf(entry->token + 2 * i, 3, "%02x", bytes[i]);
    }
    memcpy(ret_token, entry->token, sizeof entry->token);
}

static bool token_matches(const struct progress *progress, uint64_t id,
                          const char *token)
{
    const struct progress_entry *entry = find_entry(progress, id);
    if (!entry || !entry->token[0] || strlen(token) != JOB_TOKEN_CHARS)
        return false;
    unsigned char differ = 0;
    for (size_t i = 0; i < JOB_TOKEN_CHARS; i++)
        differ |= (unsigned char)(token[i] ^ entry->token[i]);
    return !differ;
}

/* --- passing reports on ---------------------------------------------------------------------- */

static void pass_report_on(struct progress *progress, struct progress_entry *entry)
{
    struct scheduler *scheduler = progress->scheduler;
    job_id job = scheduler_find(scheduler, entry->id);
    const struct executor *executor = scheduler->executor;
    if (job == JOB_NONE || !scheduler->executor_self || !executor->report)
        return;
    if (!job_runs(&scheduler->engine.state.jobs[job]))
        return; /* Slurm has not yet told us that it runs */
    struct progress_report *report = &entry->report;
    if (report->total > 0)
        scheduler->jobs[job].total = report->total;
    if (!isnan(report->saved))
        executor->saved(scheduler->executor_self, job, report->saved);
    if (!isnan(report->step))
        executor->report(scheduler->executor_self, job, report->step, report->loss,
                         report->total > 0 ? report->total : 0);
    entry->waiting = false;
    entry->said_ns = scheduler_now_ns(scheduler);
    *report = (struct progress_report){ NAN, NAN, NAN, NAN };
}

static void add_report(struct progress *progress, uint64_t id,
                       const struct progress_report *report)
{
    struct progress_entry *entry = find_or_add_entry(progress, id);
    if (!isnan(report->step)) {
        entry->report.step = report->step;
        entry->report.loss = report->loss;
    }
    if (!isnan(report->total))
        entry->report.total = report->total;
    if (!isnan(report->saved))
        entry->report.saved = report->saved;
    entry->waiting = true;
    if (scheduler_now_ns(progress->scheduler) - entry->said_ns >= NS_PER_S)
        pass_report_on(progress, entry);
}

/* --- files -------------------------------------------------------------------------------- */

static void close_file(struct progress_file *file)
{
    if (file->fd >= 0)
        close(file->fd);
    file->fd = -1;
}

static void drop_file(struct progress_file *file)
{
    if (!file)
        return;
    struct progress *progress = file->progress;
    if (file->reading) {
        file->dropped = true;
        return;
    }
    if (file->opening) {
        launcher_client_forget(progress->launcher, file);
        progress->opening_count--;
    }
    close_file(file);
    free(file->path);
    free(file);
}

void progress_follow(struct progress *progress, uint64_t id, const char *path,
                     uint32_t uid)
{
    struct progress_entry *entry = find_or_add_entry(progress, id);
    drop_file(entry->file);
    entry->file = memory_checked(calloc(1, sizeof *entry->file));
    *entry->file = (struct progress_file){ .progress = progress,
                                           .id = id,
                                           .path = memory_text(path),
                                           .uid = uid,
                                           .fd = -1,
                                           .wait_ns = OPEN_AGAIN_NS };
}

static bool is_running(const struct progress *progress, uint64_t id)
{
    job_id job = scheduler_find(progress->scheduler, id);
    return job != JOB_NONE && job_runs(&progress->scheduler->engine.state.jobs[job]);
}

/* A number in front of 'at', or NAN for "-"; false: neither. */
static bool read_number(const char **at, double *ret_number)
{
    const char *text = *at + strspn(*at, " \t,");
    char word[32];
    size_t count = strcspn(text, " \t,\r\n");
    if (count == 0 || count >= sizeof word)
        return false;
    snprintf(word, sizeof word, "%.*s", (int)count, text);
    *at = text + count;
    *ret_number = NAN;
    return strcmp(word, "-") == 0 || units_number(word, ret_number);
}

/* "STEP [LOSS [TOTAL]]"; what is not a number counts as absent. */
static bool read_line(const char *line, struct progress_report *ret_report)
{
    struct progress_report report = { NAN, NAN, NAN, NAN };
    if (!read_number(&line, &report.step) || !(report.step >= 0 && report.step <= 1e15))
        return false;
    if (read_number(&line, &report.loss) && !isfinite(report.loss))
        report.loss = NAN;
    if (!read_number(&line, &report.total) ||
        !(report.total > 0 && report.total <= 1e15))
        report.total = NAN;
    *ret_report = report;
    return true;
}

bool progress_read(const char *text, size_t count, struct progress_report *ret_report)
{
    char line[128];
    const char *end = memrchr(text, '\n', count);
    while (end) {
        const char *before =
            end > text ? memrchr(text, '\n', (size_t)(end - text)) : NULL;
        const char *start = before ? before + 1 : text;
        size_t length = (size_t)(end - start);
        if (length < sizeof line && !memchr(start, '\0', length)) {
            memcpy(line, start, length);
            line[length] = '\0';
            if (read_line(line, ret_report))
                return true;
        }
        end = before;
    }
    return false;
}

/* Try again later, and later each time. */
static void delay_opening(struct progress_file *file, int64_t now_ns)
{
    file->due_ns = now_ns + file->wait_ns;
    if (file->wait_ns < OPEN_AGAIN_MAX_NS)
        file->wait_ns *= 2;
}

static void open_files(struct progress *progress);

static void on_opened(void *context, int fd)
{
    struct progress_file *file = context;
    struct progress *progress = file->progress;
    int64_t now_ns = scheduler_now_ns(progress->scheduler);
    file->opening = false;
    if (fd >= 0) {
        file->fd = fd;
        file->wait_ns = OPEN_AGAIN_NS;
        file->active_ns = now_ns;
    } else if (fd != -EAGAIN)
        delay_opening(file, now_ns);
    progress->opening_count--;
    open_files(progress);
}

static uint32_t count_open_files(const struct progress *progress)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < progress->count; i++)
        count += progress->entries[i].file && progress->entries[i].file->fd >= 0;
    return count;
}

/* Have berth-launch open files of jobs that run. */
static void open_files(struct progress *progress)
{
    int64_t now_ns = scheduler_now_ns(progress->scheduler);
    uint32_t room = OPEN_FILES_MAX - count_open_files(progress);
    if (!progress->scheduler->alive)
        return;
    for (uint32_t i = 0; i < progress->count; i++) {
        struct progress_file *file = progress->entries[i].file;
        if (progress->opening_count >= OPENINGS_MAX || progress->opening_count >= room)
            return;
        if (!file || file->fd >= 0 || file->opening || file->due_ns > now_ns ||
            !is_running(progress, file->id))
            continue;
        file->due_ns = now_ns + OPEN_AGAIN_NS;
        file->opening = launcher_client_open_file(progress->launcher, file->uid,
                                                  file->path, on_opened, file) == 0;
        progress->opening_count += file->opening;
    }
}

/* In the worker thread: read what was added to a file, up to the last complete line. */
static void read_file(struct progress_file *file)
{
    char text[TAIL_BYTES];
    struct stat info;
    if (fstat(file->fd, &info) < 0 || info.st_uid != file->uid || info.st_nlink == 0) {
        file->gone = true;
        return;
    }
    if (info.st_ino != file->inode || info.st_size < file->position)
        file->position = 0;
    file->inode = info.st_ino;
    int64_t from = file->position;
    if (info.st_size == from)
        return;
    if (info.st_size - from > TAIL_BYTES)
        from = info.st_size - TAIL_BYTES;
    ssize_t count = pread(file->fd, text, sizeof text, from);
    file->gone = count < 0;
    const char *end = count > 0 ? memrchr(text, '\n', (size_t)count) : NULL;
    if (!end)
        return;
    file->position = from + (end + 1 - text);
    file->found = progress_read(text, (size_t)(end + 1 - text), &file->report);
}

static void read_files(uv_work_t *work)
{
    struct progress *progress = work->data;
    for (uint32_t i = 0; i < progress->file_count; i++) {
        struct progress_file *file = progress->files[i];
        file->found = file->gone = false;
        if (!progress->launcher)
            file->fd = plain_file_open(file->path, NULL);
        if (file->fd >= 0)
            read_file(file);
        if (!progress->launcher)
            close_file(file);
    }
}

static void free_if_over(struct progress *progress)
{
    if (!progress->closed || progress->reading)
        return;
    while (progress->count > 0)
        drop_entry(progress, progress->count - 1);
    map_release(&progress->by_id);
    free(progress->entries);
    free(progress->files);
    free(progress);
}

/* What the worker thread made of a file. */
static void take_file(struct progress_file *file, bool crowded)
{
    struct progress *progress = file->progress;
    int64_t now_ns = scheduler_now_ns(progress->scheduler);
    file->reading = false;
    if (file->dropped) {
        drop_file(file);
        return;
    }
    if (progress->closing || !progress->scheduler->alive)
        return;
    if (file->found) {
        file->active_ns = now_ns;
        add_report(progress, file->id, &file->report);
    }
    if (file->gone)
        delay_opening(file, now_ns);
    if (file->gone || crowded || now_ns - file->active_ns > SILENT_NS)
        close_file(file);
}

static void on_files_read(uv_work_t *work, int status)
{
    struct progress *progress = work->data;
    uint32_t count = progress->file_count;
    progress->reading = false;
    progress->file_count = 0;
    for (uint32_t i = 0; i < count; i++)
        take_file(progress->files[i], count >= OPEN_FILES_MAX);
    free_if_over(progress);
}

static void start_reading(struct progress *progress)
{
    for (uint32_t i = 0; i < progress->count; i++) {
        struct progress_file *file = progress->entries[i].file;
        if (!file)
            continue;
        if (!is_running(progress, file->id)) {
            close_file(file);
            continue;
        }
        if (progress->launcher && file->fd < 0)
            continue;
        progress->files = grow_array(progress->files, &progress->file_room,
                                     progress->file_count + 1, sizeof *progress->files);
        progress->files[progress->file_count++] = file;
    }
    if (progress->file_count == 0)
        return;
    progress->work.data = progress;
    progress->reading = uv_queue_work(progress->scheduler->loop, &progress->work,
                                      read_files, on_files_read) == 0;
    for (uint32_t i = 0; i < progress->file_count; i++)
        progress->files[i]->reading = progress->reading;
    if (!progress->reading)
        progress->file_count = 0;
}

/* --- every second --------------------------------------------------------------------------- */

static void on_timer(uv_timer_t *timer)
{
    struct progress *progress = timer->data;
    if (!progress->scheduler->alive)
        return;
    for (uint32_t i = progress->count; i-- > 0;) {
        if (scheduler_find(progress->scheduler, progress->entries[i].id) == JOB_NONE)
            drop_entry(progress, i); /* it has ended */
        else if (progress->entries[i].waiting)
            pass_report_on(progress, &progress->entries[i]);
    }
    if (progress->count == 0)
        uv_timer_stop(timer);
    if (!progress->reading)
        start_reading(progress);
    if (progress->launcher)
        open_files(progress);
}

/* --- beginning and end ------------------------------------------------------------------------ */

struct progress *progress_new(struct scheduler *scheduler,
                              struct launcher_client *launcher,
                              const char *munge_socket)
{
    struct progress *progress = memory_checked(calloc(1, sizeof *progress));
    progress->scheduler = scheduler;
    progress->launcher = launcher;
    progress->munge = munge_new(scheduler->loop, munge_socket);
    uv_timer_init(scheduler->loop, &progress->timer);
    progress->timer.data = progress;
    return progress;
}

static void on_closed(uv_handle_t *handle)
{
    struct progress *progress = handle->data;
    progress->closed = true;
    free_if_over(progress);
}

void progress_free(struct progress *progress)
{
    if (!progress)
        return;
    progress->closing = true;
    munge_free(progress->munge);
    uv_close((uv_handle_t *)&progress->timer, on_closed);
}

static const char jobs_path[] = "/v1/jobs/";

bool progress_allows_anonymous(void *context, const char *method, const char *target)
{
    (void)context;
    if (strcmp(method, "POST") != 0 ||
        strncmp(target, jobs_path, strlen(jobs_path)) != 0)
        return false;
    target += strlen(jobs_path);
    size_t digits = strspn(target, "0123456789");
    return digits > 0 && (strcmp(target + digits, "/progress") == 0 ||
                          strcmp(target + digits, "/token") == 0);
}

static void refuse_caller(struct http_reply *reply, int status, const char *sentence)
{
    http_reply_error(reply, status, NULL, sentence);
    if (status == 401)
        http_reply_header(reply, "WWW-Authenticate", "Bearer");
}

/* --- routes: the token -------------------------------------------------------------------- */

static struct progress *progress_of(struct routes *routes)
{
    struct daemon_view facts;
    daemon_view_of(routes->daemon, &facts);
    return facts.progress;
}

static void give_token(struct routes *routes, uint64_t id, struct http_reply *reply)
{
    char token[JOB_TOKEN_CHARS + 1];
    get_token(progress_of(routes), id, token);
    json_write_open(&reply->body, NULL, '{');
    json_write_text(&reply->body, "token", token);
    json_write_close(&reply->body, '}');
    buf_text(&reply->body, "\n");
}

/* A caller that waits for munge to check its credential. */
struct credential_check {
    struct http_delayed delayed;
    struct routes *routes;
    struct munge_question *question;
    uint64_t id;
};

static void on_caller_closed(void *self)
{
    struct credential_check *check = self;
    munge_forget(check->question);
    free(check);
}

/* The reply tells only the owner of a job that it exists. */
static void on_munge_answer(void *context, const struct munge_word *word)
{
    struct credential_check *check = context;
    struct routes *routes = check->routes;
    struct http_reply *reply = http_delayed_reply(&check->delayed);
    char purpose[64];
    snprintf(purpose, sizeof purpose, "berth progress %" PRIu64, check->id);
    job_id job = daemon_find(routes->daemon, check->id);
    const struct caller caller = { .uid = word->uid };
    if (!word->good || strcmp(word->payload, purpose) != 0)
        refuse_caller(reply, 401,
                      "munge does not vouch for you: the credential is old, was used "
                      "before, or was made for something else");
    else if (job == JOB_NONE || !caller_may(&caller, daemon_owner(routes->daemon, job)))
        refuse_caller(reply, 403, "no job of yours has that number");
    else
        give_token(routes, check->id, reply);
    http_delayed_send(&check->delayed);
    free(check);
}

static void ask_munge(struct routes *routes, const char *credential, uint64_t id,
                      struct http_reply *reply)
{
    struct error err = { "" };
    struct credential_check *check = memory_checked(calloc(1, sizeof *check));
    *check = (struct credential_check){ .delayed = { .closed = on_caller_closed,
                                                     .self = check },
                                        .routes = routes,
                                        .id = id };
    int r = munge_ask(progress_of(routes)->munge, credential, on_munge_answer, check,
                      &check->question, &err);
    if (r < 0) {
        free(check);
        routes_fail(reply, r, &err);
        return;
    }
    reply->delayed = &check->delayed;
}

/* The caller is authenticated and owns the job; otherwise a reply says why not. */
static bool is_owner(struct routes *routes, const struct http_request *request,
                     uint64_t id, struct http_reply *reply)
{
    struct error err = { "" };
    struct caller caller = routes_caller(request);
    job_id job = daemon_find(routes->daemon, id);
    int r = 0;
    if (job == JOB_NONE)
        r = error_set(&err, -ENOENT, "no job %" PRIu64 " that has not ended", id);
    else if (!caller_may_change(&caller, daemon_owner(routes->daemon, job)))
        r = error_set(&err, -EPERM, "job %" PRIu64 " is somebody else's", id);
    if (r < 0)
        routes_fail(reply, r, &err);
    return r == 0;
}

static void make_token(struct routes *routes, const struct http_request *request,
                       uint64_t id, struct http_reply *reply)
{
    if (!request->is_anonymous) {
        if (is_owner(routes, request, id, reply))
            give_token(routes, id, reply);
        return;
    }
    struct json *json = NULL;
    struct error err = { "" };
    int r = json_parse(request->body, request->body_size, &json, &err);
    const char *credential = r == 0 ? json_as_text(json_get(json, "munge")) : NULL;
    if (credential)
        ask_munge(routes, credential, id, reply);
    else
        refuse_caller(reply, 401,
                      "want {\"munge\": a credential for \"berth progress ID\"}");
    json_free(json);
}

/* --- routes: reports ------------------------------------------------------------------------ */

static int read_report(const struct http_request *request,
                       struct progress_report *report, struct error *err)
{
    const struct {
        const char *name;
        double *number;
        double min;
    } fields[] = { { "step", &report->step, 0 },
                   { "loss", &report->loss, -1e300 },
                   { "total", &report->total, 1 },
                   { "saved", &report->saved, 0 } };
    struct json *json = NULL;
    *report = (struct progress_report){ NAN, NAN, NAN, NAN };
    int r = json_parse(request->body, request->body_size, &json, err);
    if (r == 0 && !json_is_object(json))
        r = error_set(err, -EINVAL, "want an object");
    const char *key;
    const struct json *value;
    for (void *at = NULL; r == 0 && (at = json_member(json, at, &key, &value));) {
        size_t i = 0;
        while (i < 4 && strcmp(fields[i].name, key) != 0)
            i++;
        double max = i == 1 ? 1e300 : 1e15;
        double number = 0;
        if (i == 4)
            r = error_set(err, -EINVAL, "%.60s: there is no such field", key);
        else if (!json_as_number(value, &number) || !isfinite(number) ||
                 number < fields[i].min || number > max)
            r = error_set(err, -EINVAL, "%s: want a number, %g to %g", key,
                          fields[i].min, max);
        else
            *fields[i].number = number;
    }
    json_free(json);
    if (r == 0 && isnan(report->step) && isnan(report->total) && isnan(report->saved))
        r = error_set(err, -EINVAL, "step: is missing");
    return r;
}

static bool has_token(struct routes *routes, const struct http_request *request,
                      uint64_t id)
{
    static const char scheme[] = "Bearer ";
    const char *said = http_header(request, "Authorization");
    return said && strncasecmp(said, scheme, strlen(scheme)) == 0 &&
           token_matches(progress_of(routes), id, said + strlen(scheme));
}

static void take_progress(struct routes *routes, const struct http_request *request,
                          uint64_t id, struct http_reply *reply)
{
    struct progress_report report;
    struct error err = { "" };
    struct daemon_view facts;
    if (request->is_anonymous && !has_token(routes, request, id)) {
        refuse_caller(reply, 401,
                      "the job's token is missing or wrong: ask for it at /token");
        return;
    }
    if (!request->is_anonymous && !is_owner(routes, request, id, reply))
        return;
    daemon_view_of(routes->daemon, &facts);
    int r = read_report(request, &report, &err);
    if (r == 0 && !facts.executor->report)
        r = error_set(&err, -EALREADY,
                      "jobs on this machine report to the supervisor they run under");
    if (r == 0 && daemon_find(routes->daemon, id) == JOB_NONE)
        r = error_set(&err, -ENOENT, "no job %" PRIu64 " that has not ended", id);
    if (r < 0) {
        routes_fail(reply, r, &err);
        return;
    }
    add_report(progress_of(routes), id, &report);
    reply->status = 202;
    buf_text(&reply->body, "{}\n");
}

const struct route progress_routes[] = {
    { "POST", "/v1/jobs/{id}/token", SCOPES_SUBMIT | SCOPE_JOB, "", make_token },
    { "POST", "/v1/jobs/{id}/progress", SCOPES_SUBMIT | SCOPE_JOB, "", take_progress },
    { 0 },
};
