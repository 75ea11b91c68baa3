/*
 * job_history.c - one job's history, from its events: each attempt, where it ran, how it
 * ended; how its loss fell and a forecast of it; its rate on each type of GPU.
 */
#include "daemon/routes/routes_internal.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/json_write.h"
#include "daemon/routes/job_query.h"
#include "engine/engine.h"
#include "model/cluster.h"
#include "predict/curve.h"
#include "model/event_record.h"
#include "store/db.h"
#include "store/store.h"

#define EVENTS_MAX 6000  /* the newest; older ones are left out          */
#define ATTEMPTS_MAX 200 /* likewise                                     */
#define POINTS_MAX 600   /* of the loss curve that are sent              */
#define AHEAD_POINTS 48  /* of the forecast, beyond the newest report    */
#define AHEAD_SHARE 0.5  /* of the steps so far, if the end is not known */

struct history_attempt {
    uint32_t number;
    int64_t placed_ns, start_ns, loaded_ns, preempted_ns, end_ns; /* -1: not (yet) */
    const struct seat *seats;
    uint32_t seat_count;
    uint32_t type, gpus;
    enum rule rule; /* by which it was preempted */
    uint64_t beneficiary;
    const char *how; /* it ended; NULL: it has not */
    int exit_code;
    bool has_exit_code, clean;
    double step_from, step_to;
    double rate_sum, rate_low, rate_high; /* over its reports */
    uint32_t rate_count;
};

struct history_point {
    double step, loss;
    int64_t at_ns;
    uint32_t attempt;
};

struct job_history {
    const struct cluster *cluster;
    struct history_attempt *attempts;
    uint32_t attempt_count;
    struct history_point *points; /* EVENTS_MAX */
    uint32_t point_count;
    uint32_t event_count;
    bool is_cancelled;
    double steps_total;
    struct curve *curve;
};

/* ---- reading ---- */

static struct history_attempt *last_attempt(struct job_history *history)
{
    return history->attempt_count ? &history->attempts[history->attempt_count - 1]
                                  : NULL;
}

static struct history_attempt *add_attempt(struct job_history *history)
{
    if (history->attempt_count == ATTEMPTS_MAX) {
        memmove(history->attempts, history->attempts + 1,
                (ATTEMPTS_MAX - 1) * sizeof *history->attempts);
        history->attempt_count--;
    }
    struct history_attempt *attempt = &history->attempts[history->attempt_count++];
    *attempt = (struct history_attempt){ .placed_ns = -1,
                                         .start_ns = -1,
                                         .loaded_ns = -1,
                                         .preempted_ns = -1,
                                         .end_ns = -1,
                                         .step_from = NAN,
                                         .step_to = NAN,
                                         .type = TYPE_NONE };
    return attempt;
}

static void read_seats(struct job_history *history, struct history_attempt *attempt,
                       const struct event *event)
{
    attempt->seats = event->seats;
    attempt->seat_count = event->seat_count;
    for (uint32_t i = 0; i < event->seat_count; i++) {
        attempt->gpus += seat_gpu_count(&event->seats[i]);
        if (event->seats[i].node < history->cluster->node_count)
            attempt->type = history->cluster->nodes[event->seats[i].node].type;
    }
}

static void read_placed(struct job_history *history, const struct event *event)
{
    struct history_attempt *attempt = add_attempt(history);
    attempt->placed_ns = event->at_ns;
    attempt->number = event->attempt;
    read_seats(history, attempt, event);
}

static void read_started(struct job_history *history, const struct event *event)
{
    struct history_attempt *attempt = last_attempt(history);
    if (!attempt || attempt->end_ns >= 0)
        attempt = add_attempt(history); /* its placement is older than what was read */
    attempt->start_ns = event->at_ns;
    attempt->number = event->attempt;
    if (event->loaded)
        attempt->loaded_ns = event->at_ns;
}

static void read_preemption(struct job_history *history,
                            const struct event_record *record)
{
    struct history_attempt *attempt = last_attempt(history);
    if (!attempt)
        return;
    attempt->preempted_ns = record->event.at_ns;
    attempt->rule = record->event.rule;
    attempt->beneficiary = record->beneficiary;
}

/* 'event' has steps: it says that the job stopped, finished, failed or was lost. */
static void read_end(struct job_history *history, const struct event *event,
                     const char *how)
{
    struct history_attempt *attempt = last_attempt(history);
    if (!attempt || attempt->end_ns >= 0)
        return;
    attempt->end_ns = event->at_ns;
    attempt->how = how;
    attempt->has_exit_code = event->kind != EVENT_LOST;
    attempt->exit_code = event->exit_code;
    attempt->clean = event->clean;
    if (event->steps > 0)
        attempt->step_to = event->steps;
}

static void read_cancelled(struct job_history *history, const struct event *event)
{
    struct history_attempt *attempt = last_attempt(history);
    history->is_cancelled = true;
    if (!attempt || attempt->start_ns >= 0 || attempt->end_ns >= 0)
        return;
    attempt->end_ns = event->at_ns;
    attempt->how = "cancelled";
}

static void add_rate(struct history_attempt *attempt, double rate)
{
    if (!(rate > 0))
        return;
    if (attempt->rate_count == 0 || rate < attempt->rate_low)
        attempt->rate_low = rate;
    if (attempt->rate_count == 0 || rate > attempt->rate_high)
        attempt->rate_high = rate;
    attempt->rate_sum += rate;
    attempt->rate_count++;
}

static void read_progress(struct job_history *history, const struct event *event)
{
    struct history_attempt *attempt = last_attempt(history);
    if (attempt && isfinite(event->steps)) {
        if (isnan(attempt->step_from))
            attempt->step_from = event->steps;
        attempt->step_to = event->steps;
        add_rate(attempt, event->rate_per_s);
    }
    if (!isfinite(event->steps) || !isfinite(event->loss))
        return;
    curve_add(history->curve, event->steps, event->loss);
    history->points[history->point_count++] =
        (struct history_point){ .step = event->steps,
                                .loss = event->loss,
                                .at_ns = event->at_ns,
                                .attempt = attempt ? attempt->number : 0 };
}

static void read_event(struct job_history *history, const struct event_record *record)
{
    const struct event *event = &record->event;
    switch (event->kind) {
    case EVENT_PROGRESS:
        read_progress(history, event);
        break;
    case EVENT_PLACED:
        read_placed(history, event);
        break;
    case EVENT_STARTED:
        read_started(history, event);
        break;
    case EVENT_LOADED:
        if (last_attempt(history))
            last_attempt(history)->loaded_ns = event->at_ns;
        break;
    case EVENT_RECALLED:
        read_preemption(history, record);
        break;
    case EVENT_STOPPED:
        read_end(history, event, history->is_cancelled ? "cancelled" : "preempted");
        break;
    case EVENT_FINISHED:
    case EVENT_FAILED:
    case EVENT_LOST:
        read_end(history, event, event_name(event->kind));
        break;
    case EVENT_CANCELLED:
        read_cancelled(history, event);
        break;
    default:
        break;
    }
}

static void read_line(struct job_history *history, struct arena *arena,
                      const char *line)
{
    struct event_record record;
    if (event_record_read(line, strlen(line), arena, &record) < 0)
        return;
    read_event(history, &record);
    history->event_count++;
}

/* ---- writing ---- */

static void write_time(struct buf *body, const char *key, int64_t ns)
{
    if (ns >= 0)
        json_write_time(body, key, ns);
}

static void write_number(struct buf *body, const char *key, double number)
{
    if (isfinite(number))
        json_write_number(body, key, number);
}

static void write_attempt(struct buf *body, const struct job_history *history,
                          const struct history_attempt *attempt)
{
    json_write_open(body, NULL, '{');
    json_write_count(body, "attempt", attempt->number);
    write_time(body, "placed", attempt->placed_ns);
    write_time(body, "start", attempt->start_ns);
    write_time(body, "loaded", attempt->loaded_ns);
    write_time(body, "recalled", attempt->preempted_ns);
    write_time(body, "end", attempt->end_ns);
    if (attempt->seats)
        event_record_write_seats(body, attempt->seats, attempt->seat_count);
    if (attempt->type < history->cluster->type_count)
        json_write_text(body, "type", history->cluster->types[attempt->type].name);
    json_write_count(body, "gpus", attempt->gpus);
    json_write_text_if(body, "how", attempt->how);
    if (attempt->preempted_ns >= 0)
        json_write_text(body, "rule", rule_name(attempt->rule));
    if (attempt->beneficiary)
        json_write_count(body, "for", (int64_t)attempt->beneficiary);
    if (attempt->has_exit_code)
        json_write_count(body, "exit_code", attempt->exit_code);
    if (attempt->how && strcmp(attempt->how, "preempted") == 0)
        json_write_flag(body, "clean", attempt->clean);
    write_number(body, "step_from", attempt->step_from);
    write_number(body, "step_to", attempt->step_to);
    json_write_close(body, '}');
}

/* Steps per second by type and number of GPUs, over all attempts on them. */
static void write_speeds(struct buf *body, const struct job_history *history)
{
    json_write_open(body, "speeds", '[');
    for (uint32_t i = 0; i < history->attempt_count; i++) {
        const struct history_attempt *first = &history->attempts[i];
        struct history_attempt sum = { .rate_count = 0 };
        bool told = first->type >= history->cluster->type_count || !first->rate_count;
        for (uint32_t k = 0; k < history->attempt_count && !told; k++) {
            const struct history_attempt *one = &history->attempts[k];
            if (one->type != first->type || one->gpus != first->gpus ||
                !one->rate_count)
                continue;
            told = k < i;
            add_rate(&sum, one->rate_low);
            add_rate(&sum, one->rate_high);
            sum.rate_sum += one->rate_sum - one->rate_low - one->rate_high;
            sum.rate_count += one->rate_count - 2;
        }
        if (told)
            continue;
        json_write_open(body, NULL, '{');
        json_write_text(body, "type", history->cluster->types[first->type].name);
        json_write_count(body, "gpus", first->gpus);
        json_write_number(body, "steps_per_s", sum.rate_sum / sum.rate_count);
        json_write_number(body, "low", sum.rate_low);
        json_write_number(body, "high", sum.rate_high);
        json_write_count(body, "reports", sum.rate_count);
        json_write_close(body, '}');
    }
    json_write_close(body, ']');
}

static void write_points(struct buf *body, const struct job_history *history)
{
    uint32_t every = history->point_count / POINTS_MAX + 1;
    json_write_open(body, "points", '[');
    for (uint32_t i = 0; i < history->point_count; i++) {
        const struct history_point *point = &history->points[i];
        if (i % every && i + 1 < history->point_count)
            continue;
        json_write_open(body, NULL, '{');
        json_write_number(body, "step", point->step);
        json_write_number(body, "loss", point->loss);
        write_time(body, "at", point->at_ns);
        json_write_count(body, "attempt", point->attempt);
        json_write_close(body, '}');
    }
    json_write_close(body, ']');
}

/* The forecast: from the newest report to the end, or for a while. */
static void write_fit(struct buf *body, const struct job_history *history)
{
    static const char *const families[] = {
        [FAMILY_FLAT] = "flat", [FAMILY_INV] = "inv", [FAMILY_EXP] = "exp"
    };
    if (history->point_count < 4)
        return;
    struct curve_fit fit = curve_fit(history->curve);
    double to = history->steps_total > fit.last ? history->steps_total
                                                : fit.last + AHEAD_SHARE * fit.span;
    json_write_open(body, "fit", '{');
    json_write_text(body, "family", families[fit.best.family]);
    json_write_flag(body, "predictable", fit.predictable);
    json_write_open(body, "ahead", '[');
    for (int i = 0; i <= AHEAD_POINTS && to > fit.last; i++) {
        double step = fit.last + (to - fit.last) * i / AHEAD_POINTS;
        struct curve_value value = curve_at(&fit, step);
        if (!isfinite(value.value) || !isfinite(value.low) || !isfinite(value.high))
            continue;
        json_write_open(body, NULL, '{');
        json_write_number(body, "step", step);
        json_write_number(body, "value", value.value);
        json_write_number(body, "low", value.low);
        json_write_number(body, "high", value.high);
        json_write_close(body, '}');
    }
    json_write_close(body, ']');
    json_write_close(body, '}');
}

static void write_history(struct buf *body, const struct job_history *history,
                          uint64_t id)
{
    json_write_open(body, NULL, '{');
    json_write_count(body, "id", (int64_t)id);
    json_write_flag(body, "complete", history->event_count < EVENTS_MAX);
    json_write_open(body, "attempts", '[');
    for (uint32_t i = 0; i < history->attempt_count; i++)
        write_attempt(body, history, &history->attempts[i]);
    json_write_close(body, ']');
    write_speeds(body, history);
    json_write_open(body, "loss", '{');
    write_points(body, history);
    write_fit(body, history);
    json_write_close(body, '}');
    json_write_close(body, '}');
    buf_text(body, "\n");
}

/* What happened to one job, in order: the text of each event; the newest EVENTS_MAX. */
static struct db_query *select_events(struct db *db, uint64_t id)
{
    struct db_query *query = db_prepare_once(
        db, "SELECT text FROM (SELECT seq, text FROM event WHERE job = ?1 "
            "ORDER BY seq DESC LIMIT ?2) ORDER BY seq");
    if (!query)
        return NULL;
    db_int(query, 1, (int64_t)id);
    db_int(query, 2, EVENTS_MAX);
    return query;
}

static void show_job_history(struct routes *routes, const struct http_request *request,
                             uint64_t id, struct http_reply *reply)
{
    struct daemon_view facts;
    struct job_record record;
    struct caller caller = routes_caller(request);
    const struct state *state = routes_need_engine(routes, &facts, reply);
    struct db_query *query =
        state ? job_query_find(routes, &facts, &caller, id, &record, reply) : NULL;
    if (!query)
        return;
    double steps_total = record.words.steps;
    db_finish(query);

    struct job_history history = { .cluster = state->view.cluster,
                                   .steps_total = steps_total };
    history.attempts =
        arena_array(request->arena, struct history_attempt, ATTEMPTS_MAX);
    history.points = arena_array(request->arena, struct history_point, EVENTS_MAX);
    history.curve = arena_array(request->arena, struct curve, 1);
    curve_init(history.curve, NULL);
    query = select_events(store_reader(facts.store), id);
    while (query && db_next(query, NULL) == 1)
        read_line(&history, request->arena, db_get_text(query, 0));
    db_finish(query);
    write_history(&reply->body, &history, id);
}

const struct route job_history_routes[] = {
    { "GET", "/v1/jobs/{id}/story", SCOPES_READ, "", show_job_history },
    { 0 },
};
