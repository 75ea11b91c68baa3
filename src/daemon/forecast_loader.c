/*
 * forecast_loader.c - what forecasts need of the past is read from the store after a start: how
 * long jobs ran, when jobs were submitted, how earlier forecasts turned out.
 *
 * It is read in pieces, each as long as a request may take, so that decisions go on.
 */
#include "daemon/forecasts_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "api/request.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/grow.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/units.h"
#include "daemon/scheduler.h"
#include "engine/engine.h"
#include "model/cluster.h"
#include "policy/policy.h"
#include "store/db.h"
#include "store/store.h"

#define PIECE_NS (2 * NS_PER_S / 1000)
#define PAUSE_MS 4
#define DAYS_NS (14 * INT64_C(86400) * NS_PER_S)
#define WAITED_NS NS_PER_S /* a job that started sooner had not to wait */
#define FORECASTS_READ 4000

enum load_stage { LOAD_ENDS, LOAD_ARRIVALS, LOAD_FORECASTS, LOAD_OVER };

/* A forecast was made, or has turned out. */
struct load_event {
    int64_t at_ns;
    uint32_t row;
    bool over;
};

struct forecast_loader {
    uv_timer_t timer;
    struct forecasts *forecasts; /* NULL: it was stopped */
    void (*loaded)(struct forecasts *forecasts);
    enum load_stage stage;
    int64_t from_ns, from_id, until_ns;
    struct arena arena;
    struct forecast_row *rows;
    uint64_t *numbers; /* of the rows in their kinds */
    uint32_t row_count, row_room;
    struct load_event *events;
    uint32_t event_count, event_next;
};

/* --- jobs ------------------------------------------------------------------------------ */

enum {
    ID,
    USER,
    NAME,
    ENTITY,
    CLASS,
    GPUS,
    STEPS,
    SUBMIT,
    START,
    END,
    SERVED,
    TYPE,
    KIND
};

#define COLUMNS \
    "id, user, name, entity, class, gpus, steps, submit_ns, start_ns, end_ns, " \
    "served_ns, placement ->> '$[0].type', request ->> '$.kind', request "

static bool read_request(struct forecast_loader *loader, const char *text,
                         struct request *request)
{
    struct json *json;
    struct error err;
    if (!text || json_parse(text, strlen(text), &json, &err) < 0)
        return false;
    int r = request_read_kept(request, &loader->arena, json, &err);
    json_free(json);
    return r == 0;
}

/* The job as it was submitted; without its request, what else is kept. */
static bool make_job(struct forecast_loader *loader, struct db_query *query,
                     struct job *ret_job)
{
    struct scheduler *scheduler = loader->forecasts->scheduler;
    struct error err;
    arena_reset(&loader->arena);
    struct request *request = arena_new(&loader->arena, struct request);
    if (!read_request(loader, db_get_text(query, KIND + 1), request)) {
        double steps = db_get_real(query, STEPS);
        request->spec = (struct job_spec){ .name = db_get_text(query, NAME),
                                           .kind = db_get_text(query, KIND),
                                           .gpus = (uint32_t)db_get_int(query, GPUS),
                                           .steps = steps > 0 ? steps : 0 };
        request->spec.class =
            strcmp(db_get_text(query, CLASS), "te") == 0 ? CLASS_TE : CLASS_BE;
    }
    request->spec.id = (uint64_t)db_get_int(query, ID);
    request->spec.submit_ns = db_get_int(query, SUBMIT);
    request->spec.user = db_get_text(query, USER);
    request->spec.entity = db_get_text(query, ENTITY);
    if (admission_make_job(&scheduler->admission, &request->spec, ret_job, &err) < 0)
        return false;
    node_set_drop(ret_job->set);
    ret_job->set = NULL;
    return true;
}

/* The speed of a type beside that of the fastest. */
static double relative_speed(const struct cluster *cluster, const char *type)
{
    double most = 0;
    double speed = 0;
    for (uint32_t t = 0; t < cluster->type_count; t++) {
        most = fmax(most, cluster->types[t].speed);
        if (type && strcmp(cluster->types[t].name, type) == 0)
            speed = cluster->types[t].speed;
    }
    return speed > 0 && most > 0 ? speed / most : 1;
}

static void note_waits(struct forecasts *forecasts, uint32_t gpus, int64_t submit_ns,
                       int64_t start_ns, int64_t end_ns)
{
    const struct engine *engine = &forecasts->scheduler->engine;
    struct forecast_policy *kind = forecasts_find_kind(forecasts, engine->policy->name);
    if (!kind)
        return;
    if (start_ns - submit_ns > WAITED_NS)
        forecast_choice_note(kind->choices[FORECAST_START], gpus,
                             (double)(start_ns - submit_ns) * 1e-9);
    forecast_choice_note(kind->choices[FORECAST_END], gpus,
                         (double)(end_ns - submit_ns) * 1e-9);
}

/* How long it was in its seats, as work on the fastest type. */
static void take_end(struct forecast_loader *loader, struct db_query *query)
{
    struct forecasts *forecasts = loader->forecasts;
    struct job job;
    if (!make_job(loader, query, &job))
        return;
    int64_t start_ns = db_get_int(query, START);
    int64_t end_ns = db_get_int(query, END);
    int64_t served_ns = db_get_int(query, SERVED);
    int64_t ran_ns = job.gpus > 0 ? served_ns / job.gpus : end_ns - start_ns;
    double speed =
        relative_speed(forecasts->scheduler->cluster, db_get_text(query, TYPE));
    run_times_add(&forecasts->history.times, &job, (double)ran_ns * 1e-9 * speed);
    note_waits(forecasts, job.gpus, job.submit_ns, start_ns, end_ns);
}

static void take_arrival(struct forecast_loader *loader, struct db_query *query)
{
    struct job job;
    if (make_job(loader, query, &job))
        arrivals_add(&loader->forecasts->history.arrivals, &job);
}

#define ENDED "end_ns IS NOT NULL AND start_ns IS NOT NULL "

/* Where to begin: the newest that there is room for. */
static int64_t find_first(struct forecast_loader *loader, const char *sql, int64_t most)
{
    struct db_query *query =
        db_prepare(store_reader(loader->forecasts->scheduler->store), sql);
    db_int(query, 1, most - 1);
    int64_t from_ns = db_next(query, NULL) == 1 ? db_get_int(query, 0) : 0;
    db_finish(query);
    return from_ns;
}

static void begin_stage(struct forecast_loader *loader, enum load_stage stage)
{
    int64_t recent_ns = loader->until_ns - DAYS_NS;
    loader->stage = stage;
    loader->from_id = 0;
    if (stage == LOAD_ENDS)
        loader->from_ns = find_first(loader,
                                     "SELECT end_ns FROM job WHERE end_ns IS NOT NULL "
                                     "ORDER BY end_ns DESC LIMIT 1 OFFSET ?",
                                     RUN_TIMES_RECORDS);
    else if (stage == LOAD_ARRIVALS)
        loader->from_ns = find_first(loader,
                                     "SELECT submit_ns FROM job ORDER BY submit_ns "
                                     "DESC LIMIT 1 OFFSET ?",
                                     ARRIVALS_MAX);
    if (stage == LOAD_ARRIVALS && loader->from_ns < recent_ns)
        loader->from_ns = recent_ns;
}

/* Some jobs of the stage; false: there are no more. */
static bool load_jobs(struct forecast_loader *loader)
{
    bool ends = loader->stage == LOAD_ENDS;
    struct db_query *query = db_prepare(
        store_reader(loader->forecasts->scheduler->store),
        ends ? "SELECT " COLUMNS "FROM job WHERE " ENDED "AND end_ns >= ?1 AND "
               "(end_ns > ?1 OR id > ?2) AND end_ns < ?3 ORDER BY end_ns, id LIMIT 500"
             : "SELECT " COLUMNS "FROM job WHERE state <> 'REJECTED' AND submit_ns >= "
               "?1 AND (submit_ns > ?1 OR id > ?2) AND submit_ns < ?3 ORDER BY "
               "submit_ns, id LIMIT 500");
    int64_t stop_ns = clock_now_ns() + PIECE_NS;
    uint32_t count = 0;
    db_int(query, 1, loader->from_ns);
    db_int(query, 2, loader->from_id);
    db_int(query, 3, loader->until_ns);
    while ((count == 0 || clock_now_ns() < stop_ns) && db_next(query, NULL) == 1) {
        loader->from_ns = db_get_int(query, ends ? END : SUBMIT);
        loader->from_id = db_get_int(query, ID);
        count++;
        if (ends)
            take_end(loader, query);
        else
            take_arrival(loader, query);
    }
    db_finish(query);
    return count > 0;
}

/* --- earlier forecasts ------------------------------------------------------------------ */

static void keep_row(void *context, const struct forecast_row *row)
{
    struct forecast_loader *loader = context;
    struct forecast_policy *kind = forecasts_find_kind(loader->forecasts, row->policy);
    if (!kind)
        return;
    loader->rows = grow_array(loader->rows, &loader->row_room, loader->row_count + 1,
                              sizeof *loader->rows);
    loader->rows[loader->row_count] = *row;
    loader->rows[loader->row_count++].policy = kind->policy;
}

static int compare_events(const void *a, const void *b)
{
    const struct load_event *first = a;
    const struct load_event *second = b;
    if (first->at_ns != second->at_ns)
        return first->at_ns < second->at_ns ? -1 : 1;
    return (int)first->over - (int)second->over;
}

/* What was forecast, and what happened, in the order in which it was known. */
static void list_events(struct forecast_loader *loader)
{
    forecast_rows_read(loader->forecasts->scheduler->store, loader->until_ns - DAYS_NS,
                       FORECASTS_READ, keep_row, loader);
    uint32_t most = 2 * loader->row_count + 1;
    loader->events = memory_checked(calloc(most, sizeof *loader->events));
    loader->numbers =
        memory_checked(calloc(loader->row_count + 1, sizeof *loader->numbers));
    for (uint32_t i = 0; i < loader->row_count; i++) {
        const struct forecast_row *row = &loader->rows[i];
        loader->events[loader->event_count++] =
            (struct load_event){ .at_ns = row->made_ns, .row = i };
        if (row->over_ns >= 0)
            loader->events[loader->event_count++] =
                (struct load_event){ .at_ns = row->over_ns, .row = i, .over = true };
    }
    qsort(loader->events, loader->event_count, sizeof *loader->events, compare_events);
}

static void mark_job(struct forecasts *forecasts, const struct forecast_row *row,
                     struct forecast_policy *kind, uint64_t number)
{
    job_id job = scheduler_find(forecasts->scheduler, row->job);
    if (job == JOB_NONE || job >= forecasts->mark_count || row->over_ns >= 0)
        return;
    struct forecast_mark *mark = &forecasts->marks[job];
    if (mark->job != row->job)
        *mark = (struct forecast_mark){ .job = row->job };
    mark->of[row->target].kind = kind;
    mark->of[row->target].number = number;
    mark->of[row->target].made = true;
}

static void replay_event(struct forecast_loader *loader, const struct load_event *event)
{
    const struct forecast_row *row = &loader->rows[event->row];
    struct forecast_policy *kind = forecasts_find_kind(loader->forecasts, row->policy);
    struct forecast_choice *choice = kind->choices[row->target];
    struct forecast_shown shown;
    uint64_t *number = &loader->numbers[event->row];
    if (!event->over) {
        *number = forecast_choice_add(choice, row->made_ns, row->gpus,
                                      row->is_forward ? row->forward_s : NULL, &shown);
        mark_job(loader->forecasts, row, kind, *number);
    } else if (*number != CHOICE_NONE && row->dropped) {
        forecast_choice_drop(choice, *number, row->over_ns);
    } else if (*number != CHOICE_NONE) {
        forecast_choice_resolve(choice, *number, row->over_ns);
    }
}

/* Some of them; false: there are no more. */
static bool replay_forecasts(struct forecast_loader *loader)
{
    int64_t stop_ns = clock_now_ns() + PIECE_NS;
    if (!loader->events)
        list_events(loader);
    while (loader->event_next < loader->event_count && clock_now_ns() < stop_ns)
        replay_event(loader, &loader->events[loader->event_next++]);
    return loader->event_next < loader->event_count;
}

/* --- pieces ------------------------------------------------------------------------------- */

static void free_loader(uv_handle_t *handle)
{
    struct forecast_loader *loader = handle->data;
    arena_release(&loader->arena);
    free(loader->rows);
    free(loader->numbers);
    free(loader->events);
    free(loader);
}

void forecast_loader_stop(struct forecasts *forecasts)
{
    struct forecast_loader *loader = forecasts->loader;
    if (!loader)
        return;
    forecasts->loader = NULL;
    loader->forecasts = NULL;
    history_thaw(&forecasts->history);
    forecast_worker_wake(forecasts->worker);
    uv_close((uv_handle_t *)&loader->timer, free_loader);
}

static void on_piece(uv_timer_t *timer)
{
    struct forecast_loader *loader = timer->data;
    struct forecasts *forecasts = loader->forecasts;
    bool more =
        loader->stage == LOAD_FORECASTS ? replay_forecasts(loader) : load_jobs(loader);
    if (!more)
        begin_stage(loader, loader->stage + 1);
    if (loader->stage != LOAD_OVER)
        return;
    forecast_loader_stop(forecasts);
    loader->loaded(forecasts);
}

void forecast_loader_start(struct forecasts *forecasts,
                           void (*loaded)(struct forecasts *forecasts))
{
    struct forecast_loader *loader = memory_checked(calloc(1, sizeof *loader));
    struct scheduler *scheduler = forecasts->scheduler;
    loader->forecasts = forecasts;
    loader->loaded = loaded;
    loader->until_ns = scheduler_now_ns(scheduler);
    arena_init(&loader->arena, 0);
    forecasts->loader = loader;
    history_freeze(&forecasts->history);
    begin_stage(loader, LOAD_ENDS);
    uv_timer_init(scheduler->loop, &loader->timer);
    loader->timer.data = loader;
    uv_timer_start(&loader->timer, on_piece, PAUSE_MS, PAUSE_MS);
}
