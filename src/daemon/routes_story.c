/*
 * routes_story.c - one job's story, from its events: each attempt, where it ran, how it
 * went and ended; how its loss fell and where that leads; how fast it was on what.
 */
#include "daemon/routes_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/json_write.h"
#include "base/json.h"
#include "base/units.h"
#include "daemon/records.h"
#include "engine/engine.h"
#include "model/cluster.h"
#include "predict/curve.h"
#include "store/db.h"
#include "store/store.h"

#define EVENTS_MAX 6000  /* the newest; what came before is not told     */
#define ATTEMPTS_MAX 200 /* likewise                                     */
#define POINTS_MAX 600   /* of the curve that are told                   */
#define AHEAD_POINTS 48  /* of the fit, beyond the newest report         */
#define AHEAD_SHARE 0.5  /* as far as that, where the end is not known   */

struct attempt {
    int64_t number;
    double placed_s, start_s, loaded_s, recalled_s, end_s; /* NAN: not (yet)  */
    char *seats;                                           /* JSON            */
    uint32_t type, gpus;
    char *rule; /* by which it was told to leave */
    int64_t for_whom;
    const char *how;
    int64_t exit_code;
    bool has_exit_code, clean;
    double step_from, step_to;
    double rate_sum, rate_low, rate_high; /* of what it reported */
    uint32_t rate_count;
};

struct point {
    double step, loss, at_s;
    int64_t attempt;
};

struct story {
    const struct cluster *cluster;
    struct arena *arena;
    struct attempt *attempts;
    uint32_t attempt_count;
    struct point *points; /* EVENTS_MAX */
    uint32_t point_count;
    uint32_t event_count;
    bool leaving; /* its owner wants it gone */
    double steps_total;
    struct curve *curve;
};

static double number_of(const struct json *json, const char *key)
{
    double number;
    return json_as_number(json_get(json, key), &number) ? number : NAN;
}

/* ---- reading ---- */

static struct attempt *last_attempt(struct story *story)
{
    return story->attempt_count ? &story->attempts[story->attempt_count - 1] : NULL;
}

static struct attempt *add_attempt(struct story *story)
{
    if (story->attempt_count == ATTEMPTS_MAX) {
        memmove(story->attempts, story->attempts + 1,
                (ATTEMPTS_MAX - 1) * sizeof *story->attempts);
        story->attempt_count--;
    }
    struct attempt *attempt = &story->attempts[story->attempt_count++];
    *attempt = (struct attempt){ .placed_s = NAN,
                                 .start_s = NAN,
                                 .loaded_s = NAN,
                                 .recalled_s = NAN,
                                 .end_s = NAN,
                                 .step_from = NAN,
                                 .step_to = NAN,
                                 .type = TYPE_NONE };
    return attempt;
}

/* Which accelerators these seats are. */
static void read_seats(struct story *story, struct attempt *attempt,
                       const struct json *seats)
{
    char *text = json_text(seats);
    attempt->seats = arena_text(story->arena, text);
    free(text);
    for (size_t i = 0; i < json_count(seats); i++) {
        const struct json *seat = json_item(seats, i);
        int64_t node;
        attempt->gpus += (uint32_t)json_count(json_get(seat, "gpus"));
        if (json_as_count(json_get(seat, "node"), &node) && node >= 0 &&
            node < story->cluster->node_count)
            attempt->type = story->cluster->nodes[node].type;
    }
}

static void note_placed(struct story *story, const struct json *event)
{
    struct attempt *attempt = add_attempt(story);
    attempt->placed_s = number_of(event, "at");
    json_as_count(json_get(event, "attempt"), &attempt->number);
    if (json_is_array(json_get(event, "seats")))
        read_seats(story, attempt, json_get(event, "seats"));
}

static void note_started(struct story *story, const struct json *event)
{
    struct attempt *attempt = last_attempt(story);
    if (!attempt || !isnan(attempt->end_s))
        attempt = add_attempt(story); /* its placing is too long ago */
    attempt->start_s = number_of(event, "at");
    json_as_count(json_get(event, "attempt"), &attempt->number);
    bool loaded = false;
    if (json_as_flag(json_get(event, "loaded"), &loaded) && loaded)
        attempt->loaded_s = attempt->start_s;
}

static void note_loaded(struct story *story, const struct json *event)
{
    if (last_attempt(story))
        last_attempt(story)->loaded_s = number_of(event, "at");
}

static void note_recalled(struct story *story, const struct json *event)
{
    struct attempt *attempt = last_attempt(story);
    const char *rule = json_as_text(json_get(event, "rule"));
    if (!attempt)
        return;
    attempt->recalled_s = number_of(event, "at");
    attempt->rule = rule ? arena_text(story->arena, rule) : NULL;
    json_as_count(json_get(event, "for"), &attempt->for_whom);
}

static void note_end(struct story *story, const struct json *event, const char *how)
{
    struct attempt *attempt = last_attempt(story);
    if (!attempt || !isnan(attempt->end_s))
        return;
    double step = number_of(event, "step");
    attempt->end_s = number_of(event, "at");
    attempt->how = how;
    attempt->has_exit_code =
        json_as_count(json_get(event, "exit_code"), &attempt->exit_code);
    json_as_flag(json_get(event, "clean"), &attempt->clean);
    if (step > 0)
        attempt->step_to = step;
}

static void note_stopped(struct story *story, const struct json *event)
{
    note_end(story, event, story->leaving ? "cancelled" : "preempted");
}

static void note_finished(struct story *story, const struct json *event)
{
    note_end(story, event, "finished");
}

static void note_failed(struct story *story, const struct json *event)
{
    note_end(story, event, "failed");
}

static void note_lost(struct story *story, const struct json *event)
{
    note_end(story, event, "lost");
}

static void note_cancelled(struct story *story, const struct json *event)
{
    struct attempt *attempt = last_attempt(story);
    story->leaving = true;
    if (attempt && isnan(attempt->start_s))
        note_end(story, event, "cancelled");
}

static void note_rate(struct attempt *attempt, double rate)
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

static void note_progress(struct story *story, const struct json *event)
{
    struct attempt *attempt = last_attempt(story);
    double step = number_of(event, "step"), loss = number_of(event, "loss");
    if (attempt && isfinite(step)) {
        if (isnan(attempt->step_from))
            attempt->step_from = step;
        attempt->step_to = step;
        note_rate(attempt, number_of(event, "steps_per_s"));
    }
    if (!isfinite(step) || !isfinite(loss))
        return;
    curve_add(story->curve, step, loss);
    story->points[story->point_count++] =
        (struct point){ .step = step,
                        .loss = loss,
                        .at_s = number_of(event, "at"),
                        .attempt = attempt ? attempt->number : 0 };
}

static const struct chapter {
    const char *kind;
    void (*note)(struct story *story, const struct json *event);
} chapters[] = {
    { "progress", note_progress }, { "placed", note_placed },
    { "started", note_started },   { "loaded", note_loaded },
    { "recalled", note_recalled }, { "stopped", note_stopped },
    { "finished", note_finished }, { "failed", note_failed },
    { "lost", note_lost },         { "cancelled", note_cancelled },
};

static void read_event(struct story *story, const char *text)
{
    struct json *event;
    if (json_parse(text, strlen(text), &event, NULL) < 0)
        return;
    const char *kind = json_as_text(json_get(event, "kind"));
    for (size_t i = 0; kind && i < sizeof chapters / sizeof chapters[0]; i++)
        if (strcmp(kind, chapters[i].kind) == 0)
            chapters[i].note(story, event);
    story->event_count++;
    json_free(event);
}

/* ---- telling ---- */

static void put_time(struct buf *body, const char *key, double seconds)
{
    if (seconds >= 0)
        json_write_time(body, key, units_ns(seconds));
}

static void put_number(struct buf *body, const char *key, double number)
{
    if (isfinite(number))
        json_write_number(body, key, number);
}

static void put_attempt(struct buf *body, const struct story *story,
                        const struct attempt *attempt)
{
    json_write_open(body, NULL, '{');
    json_write_count(body, "attempt", attempt->number);
    put_time(body, "placed", attempt->placed_s);
    put_time(body, "start", attempt->start_s);
    put_time(body, "loaded", attempt->loaded_s);
    put_time(body, "recalled", attempt->recalled_s);
    put_time(body, "end", attempt->end_s);
    if (attempt->seats)
        json_write_raw(body, "seats", attempt->seats);
    if (attempt->type < story->cluster->type_count)
        json_write_text(body, "type", story->cluster->types[attempt->type].name);
    json_write_count(body, "gpus", attempt->gpus);
    json_write_text_if(body, "how", attempt->how);
    json_write_text_if(body, "rule", attempt->rule);
    if (attempt->for_whom)
        json_write_count(body, "for", attempt->for_whom);
    if (attempt->has_exit_code)
        json_write_count(body, "exit_code", attempt->exit_code);
    if (attempt->how && strcmp(attempt->how, "preempted") == 0)
        json_write_flag(body, "clean", attempt->clean);
    put_number(body, "step_from", attempt->step_from);
    put_number(body, "step_to", attempt->step_to);
    json_write_close(body, '}');
}

/* Steps per second by type and number of accelerators, over all attempts on these. */
static void put_speeds(struct buf *body, const struct story *story)
{
    json_write_open(body, "speeds", '[');
    for (uint32_t i = 0; i < story->attempt_count; i++) {
        const struct attempt *first = &story->attempts[i];
        struct attempt sum = { .rate_count = 0 };
        bool told = first->type >= story->cluster->type_count || !first->rate_count;
        for (uint32_t k = 0; k < story->attempt_count && !told; k++) {
            const struct attempt *one = &story->attempts[k];
            if (one->type != first->type || one->gpus != first->gpus ||
                !one->rate_count)
                continue;
            told = k < i;
            note_rate(&sum, one->rate_low);
            note_rate(&sum, one->rate_high);
            sum.rate_sum += one->rate_sum - one->rate_low - one->rate_high;
            sum.rate_count += one->rate_count - 2;
        }
        if (told)
            continue;
        json_write_open(body, NULL, '{');
        json_write_text(body, "type", story->cluster->types[first->type].name);
        json_write_count(body, "gpus", first->gpus);
        json_write_number(body, "steps_per_s", sum.rate_sum / sum.rate_count);
        json_write_number(body, "low", sum.rate_low);
        json_write_number(body, "high", sum.rate_high);
        json_write_count(body, "reports", sum.rate_count);
        json_write_close(body, '}');
    }
    json_write_close(body, ']');
}

static void put_points(struct buf *body, const struct story *story)
{
    uint32_t every = story->point_count / POINTS_MAX + 1;
    json_write_open(body, "points", '[');
    for (uint32_t i = 0; i < story->point_count; i++) {
        const struct point *point = &story->points[i];
        if (i % every && i + 1 < story->point_count)
            continue;
        json_write_open(body, NULL, '{');
        json_write_number(body, "step", point->step);
        json_write_number(body, "loss", point->loss);
        put_time(body, "at", point->at_s);
        json_write_count(body, "attempt", point->attempt);
        json_write_close(body, '}');
    }
    json_write_close(body, ']');
}

/* Where the curve leads: from the newest report to the end, or for a while. */
static void put_fit(struct buf *body, const struct story *story)
{
    static const char *const families[] = {
        [FAMILY_FLAT] = "flat", [FAMILY_INV] = "inv", [FAMILY_EXP] = "exp"
    };
    if (story->point_count < 4)
        return;
    struct curve_fit fit = curve_fit(story->curve);
    double to = story->steps_total > fit.last ? story->steps_total
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

static void write_story(struct buf *body, const struct story *story, uint64_t id)
{
    json_write_open(body, NULL, '{');
    json_write_count(body, "id", (int64_t)id);
    json_write_flag(body, "complete", story->event_count < EVENTS_MAX);
    json_write_open(body, "attempts", '[');
    for (uint32_t i = 0; i < story->attempt_count; i++)
        put_attempt(body, story, &story->attempts[i]);
    json_write_close(body, ']');
    put_speeds(body, story);
    json_write_open(body, "loss", '{');
    put_points(body, story);
    put_fit(body, story);
    json_write_close(body, '}');
    json_write_close(body, '}');
    buf_text(body, "\n");
}

void show_story(struct routes *routes, const struct http_request *request, uint64_t id,
                struct http_reply *reply)
{
    struct daemon_facts facts;
    struct record record;
    struct caller caller = caller_of(request);
    const struct state *state = living(routes, &facts, reply);
    struct db_query *query =
        state ? find_record(routes, &facts, &caller, id, &record, reply) : NULL;
    if (!query)
        return;
    double steps_total = record.words.steps;
    db_finish(query);

    struct story story = { .cluster = state->view.cluster,
                           .arena = request->arena,
                           .steps_total = steps_total };
    story.attempts = arena_array(request->arena, struct attempt, ATTEMPTS_MAX);
    story.points = arena_array(request->arena, struct point, EVENTS_MAX);
    story.curve = arena_array(request->arena, struct curve, 1);
    curve_init(story.curve, NULL);
    query = records_story(store_reader(facts.store), id, EVENTS_MAX);
    while (query && db_next(query, NULL) == 1)
        read_event(&story, db_get_text(query, 0));
    db_finish(query);
    write_story(&reply->body, &story, id);
}
