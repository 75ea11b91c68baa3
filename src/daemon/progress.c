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

#include "base/as_user.h"
#include "base/error.h"
#include "base/grow.h"
#include "base/json.h"
#include "base/json_write.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/units.h"
#include "http/munge.h"
#include "daemon/routes/routes_internal.h"
#include "daemon/scheduler.h"
#include "executor/executor.h"

#define POLL_MS 1000
#define JOB_TOKEN_CHARS 32
#define TAIL_BYTES 65536 /* of a file at a time: older reports do not matter */

/* A job that has reported, or may. */
struct progress_entry {
    uint64_t id;
    char token[JOB_TOKEN_CHARS + 1]; /* "": not asked for    */
    struct progress_report report;   /* the newest           */
    bool waiting;                    /* to be passed on      */
    int64_t said_ns;                 /* when it last was     */
    char *path;                      /* of its file, or NULL */
    uint32_t uid, gid;
    int64_t position; /* read up to here */
};

/* A file to be read by the worker thread. */
struct progress_file {
    uint64_t id;
    char *path;
    uint32_t uid, gid;
    int64_t position;
    struct progress_report report;
    bool found;
};

struct progress {
    struct scheduler *scheduler;
    struct munge *munge;
    uv_timer_t timer;
    uv_work_t work;
    struct progress_entry *entries;
    uint32_t count, room;
    struct map by_id;
    struct progress_file *files; /* the worker's, while it reads */
    uint32_t file_count, file_room;
    bool reading;
    bool closing, closed; /* to be freed; the timer is closed */
};

/* --- jobs ------------------------------------------------------------------------------ */

static void on_timer(uv_timer_t *timer);

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
    free(entry->path);
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

void progress_follow(struct progress *progress, uint64_t id, const char *path,
                     uint32_t uid, uint32_t gid)
{
    struct progress_entry *entry = find_or_add_entry(progress, id);
    free(entry->path);
    entry->path = memory_text(path);
    entry->uid = uid;
    entry->gid = gid;
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

/* In the worker thread: read what was added to a file, up to the last complete line. */
static void read_file(struct progress_file *file)
{
    char text[TAIL_BYTES];
    struct stat info;
    int fd = as_user_open(file->path, file->uid, file->gid, NULL);
    if (fd < 0)
        return;
    if (fstat(fd, &info) < 0 || info.st_uid != file->uid ||
        info.st_size == file->position) {
        close(fd);
        return;
    }
    int64_t from = info.st_size < file->position ? 0 : file->position;
    if (info.st_size - from > TAIL_BYTES)
        from = info.st_size - TAIL_BYTES;
    ssize_t count = pread(fd, text, sizeof text, from);
    close(fd);
    const char *end = count > 0 ? memrchr(text, '\n', (size_t)count) : NULL;
    if (!end)
        return;
    file->position = from + (end + 1 - text);
    file->found = progress_read(text, (size_t)(end + 1 - text), &file->report);
}

static void read_files(uv_work_t *work)
{
    struct progress *progress = work->data;
    for (uint32_t i = 0; i < progress->file_count; i++)
        read_file(&progress->files[i]);
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

static void on_files_read(uv_work_t *work, int status)
{
    struct progress *progress = work->data;
    progress->reading = false;
    for (uint32_t i = 0; i < progress->file_count; i++) {
        struct progress_file *file = &progress->files[i];
        struct progress_entry *entry =
            progress->closing ? NULL : find_entry(progress, file->id);
        if (entry && entry->path && strcmp(entry->path, file->path) == 0) {
            entry->position = file->position;
            if (file->found)
                add_report(progress, file->id, &file->report);
        }
        free(file->path);
    }
    progress->file_count = 0;
    free_if_over(progress);
}

static void start_reading(struct progress *progress)
{
    for (uint32_t i = 0; i < progress->count; i++) {
        const struct progress_entry *entry = &progress->entries[i];
        if (!entry->path)
            continue;
        progress->files = grow_array(progress->files, &progress->file_room,
                                     progress->file_count + 1, sizeof *progress->files);
        struct progress_file *file = &progress->files[progress->file_count++];
        *file = (struct progress_file){ .id = entry->id,
                                        .path = memory_text(entry->path),
                                        .uid = entry->uid,
                                        .gid = entry->gid,
                                        .position = entry->position };
    }
    if (progress->file_count == 0)
        return;
    progress->work.data = progress;
    progress->reading = uv_queue_work(progress->scheduler->loop, &progress->work,
                                      read_files, on_files_read) == 0;
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
}

/* --- beginning and end ------------------------------------------------------------------------ */

struct progress *progress_new(struct scheduler *scheduler, const char *munge_socket)
{
    struct progress *progress = memory_checked(calloc(1, sizeof *progress));
    progress->scheduler = scheduler;
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
