/*
 * routes_progress.c - jobs on other hosts say how far they are.
 *
 * Over TCP a job has no token of ours, and must not have: its badge is good for nothing but its
 * own progress.  It gets one for a credential of munge's, which says whose process it is; the
 * credential has to say for what, so that one made for something else is no use here.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/json_write.h"
#include "base/json.h"
#include "base/memory.h"
#include "daemon/munge.h"
#include "daemon/notes.h"
#include "daemon/routes.h"
#include "daemon/routes_internal.h"
#include "executor/executor.h"

static const char jobs_path[] = "/v1/jobs/";

bool routes_open_to(void *context, const char *method, const char *target)
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

static void refuse(struct http_reply *reply, int status, const char *sentence)
{
    http_reply_error(reply, status, NULL, sentence);
    if (status == 401)
        http_reply_header(reply, "WWW-Authenticate", "Bearer");
}

/* ---- the badge ---- */

static void give_badge(struct routes *routes, uint64_t id, struct http_reply *reply)
{
    char badge[NOTES_BADGE_CHARS + 1];
    notes_badge(daemon_notes(routes->daemon), id, badge);
    json_write_open(&reply->body, NULL, '{');
    json_write_text(&reply->body, "token", badge);
    json_write_close(&reply->body, '}');
    buf_text(&reply->body, "\n");
}

/* Somebody waits for munge's word. */
struct vouching {
    struct http_later later;
    struct routes *routes;
    struct munge_question *question;
    uint64_t id;
};

static void on_gone(void *self)
{
    struct vouching *vouching = self;
    munge_forget(vouching->question);
    free(vouching);
}

/* Nobody learns from the answer whether there is such a job, unless it is his. */
static void on_word(void *context, const struct munge_word *word)
{
    struct vouching *vouching = context;
    struct routes *routes = vouching->routes;
    struct http_reply *reply = http_later_reply(&vouching->later);
    char purpose[64];
    snprintf(purpose, sizeof purpose, "berth progress %" PRIu64, vouching->id);
    job_id job = daemon_find(routes->daemon, vouching->id);
    const struct caller caller = { .uid = word->uid };
    if (!word->good || strcmp(word->payload, purpose) != 0)
        refuse(reply, 401,
               "munge does not vouch for you: the credential is old, was used "
               "before, or was made for something else");
    else if (job == JOB_NONE ||
             !daemon_may(routes->daemon, &caller, daemon_owner(routes->daemon, job)))
        refuse(reply, 403, "no job of yours has that number");
    else
        give_badge(routes, vouching->id, reply);
    http_later_send(&vouching->later);
    free(vouching);
}

static void ask_munge(struct routes *routes, const char *credential, uint64_t id,
                      struct http_reply *reply)
{
    struct error err = { "" };
    struct vouching *vouching = memory_checked(calloc(1, sizeof *vouching));
    *vouching = (struct vouching){ .later = { .gone = on_gone, .self = vouching },
                                   .routes = routes,
                                   .id = id };
    int r = munge_ask(routes->munge, credential, on_word, vouching, &vouching->question,
                      &err);
    if (r < 0) {
        free(vouching);
        reply_failure(reply, r, &err);
        return;
    }
    reply->later = &vouching->later;
}

/* Whoever is known already, and owns it. */
static bool is_owner(struct routes *routes, const struct http_request *request,
                     uint64_t id, struct http_reply *reply)
{
    struct error err = { "" };
    struct caller caller = caller_of(request);
    job_id job = daemon_find(routes->daemon, id);
    int r = 0;
    if (job == JOB_NONE)
        r = error_set(&err, -ENOENT, "no job %" PRIu64 " that has not ended", id);
    else if (!daemon_may(routes->daemon, &caller, daemon_owner(routes->daemon, job)))
        r = error_set(&err, -EPERM, "job %" PRIu64 " is somebody else's", id);
    if (r < 0)
        reply_failure(reply, r, &err);
    return r == 0;
}

void make_badge(struct routes *routes, const struct http_request *request, uint64_t id,
                struct http_reply *reply)
{
    if (!request->stranger) {
        if (is_owner(routes, request, id, reply))
            give_badge(routes, id, reply);
        return;
    }
    struct json *json = NULL;
    struct error err = { "" };
    int r = json_parse(request->body, request->body_size, &json, &err);
    const char *credential = r == 0 ? json_as_text(json_get(json, "munge")) : NULL;
    if (credential)
        ask_munge(routes, credential, id, reply);
    else
        refuse(reply, 401, "want {\"munge\": a credential for \"berth progress ID\"}");
    json_free(json);
}

/* ---- progress ---- */

static int read_note(const struct http_request *request, struct note *note,
                     struct error *err)
{
    const struct {
        const char *name;
        double *number;
        double min;
    } fields[] = { { "step", &note->step, 0 },
                   { "loss", &note->loss, -1e300 },
                   { "total", &note->total, 1 },
                   { "saved", &note->saved, 0 } };
    struct json *json = NULL;
    *note = (struct note){ NAN, NAN, NAN, NAN };
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
    if (r == 0 && isnan(note->step) && isnan(note->total) && isnan(note->saved))
        r = error_set(err, -EINVAL, "step: is missing");
    return r;
}

static bool shows_badge(struct routes *routes, const struct http_request *request,
                        uint64_t id)
{
    static const char scheme[] = "Bearer ";
    const char *said = http_header(request, "Authorization");
    return said && strncasecmp(said, scheme, strlen(scheme)) == 0 &&
           notes_knows(daemon_notes(routes->daemon), id, said + strlen(scheme));
}

void take_progress(struct routes *routes, const struct http_request *request,
                   uint64_t id, struct http_reply *reply)
{
    struct note note;
    struct error err = { "" };
    struct daemon_facts facts;
    if (request->stranger && !shows_badge(routes, request, id)) {
        refuse(reply, 401, "the job's token is missing or wrong: ask for it at /token");
        return;
    }
    if (!request->stranger && !is_owner(routes, request, id, reply))
        return;
    daemon_look(routes->daemon, &facts);
    int r = read_note(request, &note, &err);
    if (r == 0 && !facts.executor->report)
        r = error_set(&err, -EALREADY,
                      "jobs on this machine report to the supervisor they run under");
    if (r == 0 && daemon_find(routes->daemon, id) == JOB_NONE)
        r = error_set(&err, -ENOENT, "no job %" PRIu64 " that has not ended", id);
    if (r < 0) {
        reply_failure(reply, r, &err);
        return;
    }
    notes_take(daemon_notes(routes->daemon), id, &note);
    reply->status = 202;
    buf_text(&reply->body, "{}\n");
}
