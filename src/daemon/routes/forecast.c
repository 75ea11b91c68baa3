/* forecast.c - GET /v1/forecast: when jobs will start and end, and how well that was known lately. */
#include "daemon/routes/forecast.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/json_write.h"
#include "daemon/forecasts.h"
#include "daemon/routes/job_query.h"
#include "daemon/routes/routes_internal.h"
#include "engine/engine.h"
#include "http/stream.h"
#include "http/target.h"
#include "policy/policy.h"
#include "store/db.h"
#include "store/rows.h"
#include "store/store.h"

#define ANNOUNCED_MAX 200 /* jobs in one event of the stream */

static const char *const quantile_keys[QUANTILE_COUNT] = { "p10", "p50", "p90" };
static const char *const target_names[FORECAST_TARGETS] = { "start", "end" };

/* --- one job ------------------------------------------------------------------------------ */

void forecast_write_time(struct buf *body, const char *key,
                         const struct expected_time *expected)
{
    if (!expected->known)
        return;
    json_write_open(body, key, '{');
    for (uint32_t q = 0; q < QUANTILE_COUNT; q++)
        if (expected->at_ns[q] != TIME_LATER)
            json_write_time(body, quantile_keys[q], expected->at_ns[q]);
    if (expected->later > 0)
        json_write_number(body, "later", expected->later);
    json_write_time(body, "horizon", expected->horizon_ns);
    json_write_text(body, "basis", expected->basis);
    if (expected->basis_count > 0)
        json_write_count(body, "basis_jobs", expected->basis_count);
    json_write_time(body, "made", expected->made_ns);
    json_write_text(body, "policy", expected->policy);
    json_write_text(body, "method", expected->baseline ? "baseline" : "played");
    if (expected->coverage_count >= CHOICE_RESOLVED_LEAST) {
        json_write_number(body, "coverage_80", expected->coverage_80);
        json_write_count(body, "coverage_n", expected->coverage_count);
    }
    json_write_close(body, '}');
}

void forecast_write_job(const struct daemon_view *facts, job_id job, struct buf *body)
{
    struct expected_time start;
    struct expected_time end;
    forecasts_find(facts->forecasts, job, &start, &end);
    forecast_write_time(body, "expected_start", &start);
    forecast_write_time(body, "expected_end", &end);
}

/* --- all of them ---------------------------------------------------------------------------- */

static void write_quality(struct buf *body, const struct forecast_quality *quality)
{
    json_write_count(body, "n", quality->count);
    if (quality->count == 0)
        return;
    json_write_number(body, "coverage_80", quality->coverage_80);
    json_write_number(body, "median_abs_error_s", quality->median_error_s);
}

static void write_kind(struct buf *body, struct forecasts *forecasts, uint32_t kind,
                       enum forecast_row_target target)
{
    const char *policy;
    enum forecast_method best;
    struct forecast_quality quality;
    if (!forecasts_quality(forecasts, kind, target, &policy, &best, &quality) ||
        quality.count == 0)
        return;
    json_write_open(body, NULL, '{');
    json_write_text(body, "policy", policy);
    json_write_text(body, "target", target_names[target]);
    json_write_text(body, "shown", best == FORECAST_BASELINE ? "baseline" : "played");
    write_quality(body, &quality);
    if (quality.compared > 0 && quality.loss[FORECAST_BASELINE] > 0)
        json_write_number(body, "loss_ratio",
                          quality.loss[FORECAST_FORWARD] /
                              quality.loss[FORECAST_BASELINE]);
    json_write_close(body, '}');
}

/* Starts under the policy in charge, and then each kind of which something is known. */
static void write_calibration(struct buf *body, const struct daemon_view *facts)
{
    const char *policy;
    enum forecast_method best;
    struct forecast_quality quality;
    json_write_open(body, "calibration", '{');
    for (uint32_t k = 0; forecasts_quality(facts->forecasts, k, FORECAST_START, &policy,
                                           &best, &quality);
         k++)
        if (facts->engine && strcmp(policy, facts->engine->policy->name) == 0)
            write_quality(body, &quality);
    json_write_count(body, "days", CHOICE_DAYS);
    json_write_open(body, "kinds", '[');
    for (uint32_t k = 0; forecasts_quality(facts->forecasts, k, FORECAST_START, &policy,
                                           &best, &quality);
         k++)
        for (uint32_t t = 0; t < FORECAST_TARGETS; t++)
            write_kind(body, facts->forecasts, k, t);
    json_write_close(body, ']');
    json_write_close(body, '}');
}

static void write_status(struct buf *body, const struct daemon_view *facts)
{
    struct forecasts_status status = forecasts_status(facts->forecasts);
    json_write_text(body, "policy", facts->engine->policy->name);
    json_write_text_if(body, "reason", *status.reason ? status.reason : NULL);
    if (!status.made)
        return;
    json_write_time(body, "made", status.made_ns);
    json_write_time(body, "horizon", status.horizon_ns);
    json_write_count(body, "replicates", status.replicates);
    json_write_time_ns(body, "took_s", status.took_ns);
}

/* A name is its owner's. */
static void write_job(const struct daemon_view *facts, const struct caller *caller,
                      struct db_query *query, job_id id, struct buf *body)
{
    const struct job *job = &facts->engine->state.jobs[id];
    struct expected_time start;
    struct expected_time end;
    forecasts_find(facts->forecasts, id, &start, &end);
    if (!start.known && !end.known)
        return;
    json_write_open(body, NULL, '{');
    json_write_count(body, "id", (int64_t)job->id);
    if (caller_may(caller, (uint32_t)db_get_int(query, 3)))
        json_write_text_if(body, "name", db_get_text(query, 1));
    json_write_text_if(body, "user", db_get_text(query, 2));
    json_write_text(body, "state", rows_state(job));
    json_write_count(body, "gpus", job->gpus);
    forecast_write_time(body, "expected_start", &start);
    forecast_write_time(body, "expected_end", &end);
    json_write_close(body, '}');
}

/* The jobs of "3,17,4", in order; all are asked for without a list. */
struct asked_jobs {
    uint64_t *ids;
    uint32_t count;
    bool all;
};

static int compare_ids(const void *a, const void *b)
{
    uint64_t first = *(const uint64_t *)a;
    uint64_t second = *(const uint64_t *)b;
    return (first > second) - (first < second);
}

static bool is_asked(const struct asked_jobs *asked, uint64_t job)
{
    return asked->all || bsearch(&job, asked->ids, asked->count, sizeof *asked->ids,
                                 compare_ids) != NULL;
}

static bool read_asked(struct asked_jobs *asked, const struct http_request *request,
                       struct http_reply *reply)
{
    const char *ids = http_query(request, "ids");
    *asked = (struct asked_jobs){ .all = !ids };
    if (!ids)
        return true;
    asked->ids = arena_array(request->arena, uint64_t, strlen(ids) / 2 + 1);
    for (const char *text = ids; text; text = *text ? text + 1 : NULL) {
        size_t count = strcspn(text, ",");
        if (!target_id(text, count, &asked->ids[asked->count++])) {
            http_reply_error(reply, 400, "ids", "ids: want numbers of jobs, 3,17,4");
            return false;
        }
        text += count;
    }
    qsort(asked->ids, asked->count, sizeof *asked->ids, compare_ids);
    return true;
}

static void show_forecast(struct routes *routes, const struct http_request *request,
                          uint64_t id, struct http_reply *reply)
{
    (void)id;
    struct daemon_view facts;
    struct asked_jobs asked;
    const struct state *state = routes_need_engine(routes, &facts, reply);
    if (!state || !read_asked(&asked, request, reply))
        return;
    struct caller caller = routes_caller(request);
    struct db_query *query = db_prepare(
        store_reader(facts.store), "SELECT id, name, user, uid FROM job WHERE id IN "
                                   "(SELECT id FROM live) ORDER BY id");
    json_write_open(&reply->body, NULL, '{');
    write_status(&reply->body, &facts);
    json_write_open(&reply->body, "jobs", '[');
    while (db_next(query, NULL) == 1) {
        uint64_t number = (uint64_t)db_get_int(query, 0);
        job_id job = is_asked(&asked, number) ? state_find(state, number) : JOB_NONE;
        if (job != JOB_NONE)
            write_job(&facts, &caller, query, job, &reply->body);
    }
    json_write_close(&reply->body, ']');
    write_calibration(&reply->body, &facts);
    buf_text(&reply->body, "}\n");
    db_finish(query);
}

/* --- the stream ------------------------------------------------------------------------------ */

/* Some jobs, with "more" where there are others; names are left out, as all users see it. */
static void announce(void *context)
{
    struct routes *routes = context;
    struct daemon_view facts;
    struct buf text;
    uint32_t count = 0;
    bool more = false;
    daemon_view_of(routes->daemon, &facts);
    if (!facts.engine || !routes->stream || stream_clients(routes->stream) == 0)
        return;
    const struct state *state = &facts.engine->state;
    buf_init(&text, STREAM_LINE_MAX);
    json_write_open(&text, NULL, '{');
    write_status(&text, &facts);
    json_write_open(&text, "jobs", '[');
    uint64_t number;
    for (uint32_t i = 0; (number = forecasts_job(facts.forecasts, i)) && !more; i++) {
        job_id job = state_find(state, number);
        if (job == JOB_NONE)
            continue;
        more = count == ANNOUNCED_MAX || text.count > STREAM_LINE_MAX - 2048;
        if (more)
            break;
        count++;
        json_write_open(&text, NULL, '{');
        json_write_count(&text, "id", (int64_t)number);
        forecast_write_job(&facts, job, &text);
        json_write_close(&text, '}');
    }
    json_write_close(&text, ']');
    if (more)
        json_write_flag(&text, "more", true);
    json_write_close(&text, '}');
    stream_notice(routes->stream, "forecast", text.bytes);
    buf_release(&text);
}

void forecast_announce(struct routes *routes)
{
    struct daemon_view facts;
    daemon_view_of(routes->daemon, &facts);
    forecasts_observe(facts.forecasts, announce, routes);
}

const struct route forecast_routes[] = {
    { "GET", "/v1/forecast", SCOPES_READ, "ids", show_forecast },
    { 0 },
};
