/* watch.c - what berthd keeps in mind for its dashboard. */
#include "daemon/watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <uv.h>

#include "base/arena.h"
#include "base/memory.h"
#include "daemon/daemon.h"
#include "daemon/trends.h"
#include "daemon/why.h"
#include "engine/engine.h"
#include "metrics/occupancy.h"
#include "model/cluster.h"
#include "model/event_record.h"
#include "store/db.h"
#include "store/store.h"

#define SAMPLE_MS 5000
#define SPANS_KEPT 16384
#define EVENTS_READ 50000 /* the newest of the log, after a restart */

struct watch {
    struct daemon *daemon;
    uv_timer_t timer;
    struct occupancy occupancy;
    struct trends trends;
};

/* ---- groups of people: entities, and users of jobs that name none ---- */

#define USERS (UINT64_C(1) << 32) /* keys from here on are users */

static uint64_t group_key(const struct watch *watch, job_id id, const struct job *job)
{
    return job->entity ? job->entity : USERS + daemon_owner(watch->daemon, id);
}

/* The store knows what people call it. */
static void name_group(struct watch *watch, struct db *db, uint32_t group,
                       const struct job *job)
{
    struct trend_group *one = &watch->trends.groups[group];
    struct db_query *query =
        db_prepare_once(db, job->entity ? "SELECT entity FROM job WHERE id = ?"
                                        : "SELECT user FROM job WHERE id = ?");
    const char *name = NULL;
    if (query) {
        db_int(query, 1, (int64_t)job->id);
        name = db_next(query, NULL) == 1 ? db_get_text(query, 0) : NULL;
    }
    snprintf(one->name, sizeof one->name, "%.60s", name ? name : "?");
    db_finish(query);
}

static double weight_of(const struct cluster *cluster, uint64_t key)
{
    return key >= 1 && key <= cluster->entity_count ? cluster->entities[key - 1].weight
                                                    : 1;
}

/* ---- a sample ---- */

struct look {
    struct watch *watch;
    struct daemon_view facts;
    struct trend_sample *sample;
    double wanted[TREND_GROUPS];
};

static void count_gpus(struct look *look)
{
    const struct state *state = &look->facts.engine->state;
    const struct cluster *cluster = state->view.cluster;
    look->sample->gpus = cluster->gpu_count;
    for (node_id node = 0; node < cluster->node_count; node++) {
        uint32_t count = cluster->nodes[node].gpu_count;
        uint64_t all = count < 64 ? (UINT64_C(1) << count) - 1 : UINT64_MAX;
        uint64_t taken = all & ~state->free.rooms[node].gpus;
        look->sample->foreign += bits_count(state->foreign[node]);
        look->sample->held += bits_count(taken & ~state->foreign[node]);
    }
}

static void count_reason(struct look *look, job_id id)
{
    struct why_scene scene = { .engine = look->facts.engine,
                               .conditions = look->facts.conditions,
                               .now_ns = look->facts.now_ns };
    const char *token = "";
    char text[240];
    why_brief(&scene, id, text, sizeof text, &token);
    look->sample->waiting++;
    look->sample->reasons[trends_reason(&look->watch->trends, token)]++;
}

static void count_job(struct look *look, job_id id)
{
    struct watch *watch = look->watch;
    const struct job *job = &look->facts.engine->state.jobs[id];
    bool is_new;
    uint32_t group = trends_group(&watch->trends, group_key(watch, id, job), &is_new);
    if (is_new)
        name_group(watch, store_reader(look->facts.store), group, job);
    if (job_holds_seats(job)) {
        look->sample->running++;
        look->sample->got[group] += (float)job->gpus_now;
        look->wanted[group] += job->gpus_now;
    } else {
        count_reason(look, id);
        look->wanted[group] += job->state == JOB_HELD ? 0 : job->gpus;
    }
}

static void share_out(struct look *look)
{
    const struct trends *trends = &look->watch->trends;
    const struct cluster *cluster = look->facts.engine->state.view.cluster;
    double weight[TREND_GROUPS], due[TREND_GROUPS];
    for (uint32_t i = 0; i < trends->group_count; i++)
        weight[i] = weight_of(cluster, trends->groups[i].key);
    trends_share_out(look->wanted, weight, trends->group_count,
                     look->sample->gpus - look->sample->foreign, due);
    for (uint32_t i = 0; i < trends->group_count; i++)
        look->sample->due[i] = (float)due[i];
}

static void on_timer(uv_timer_t *timer)
{
    struct watch *watch = timer->data;
    struct look look = { .watch = watch };
    daemon_view_of(watch->daemon, &look.facts);
    if (!look.facts.engine)
        return;
    const struct state *state = &look.facts.engine->state;
    look.sample = trends_add(&watch->trends, look.facts.now_ns);
    count_gpus(&look);
    for (job_id id = 0; id < state->job_count; id++)
        if (state->jobs[id].state != JOB_FREE)
            count_job(&look, id);
    share_out(&look);
}

void watch_event(struct watch *watch, const struct event_record *record)
{
    occupancy_apply(&watch->occupancy, record);
    if (!uv_is_active((uv_handle_t *)&watch->timer))
        uv_timer_start(&watch->timer, on_timer, SAMPLE_MS, 0);
}

const struct occupancy *watch_occupancy(const struct watch *watch)
{
    return &watch->occupancy;
}

const struct trends *watch_trends(const struct watch *watch)
{
    return &watch->trends;
}

/* ---- startup and shutdown ---- */

/* Which job held which GPUs before the restart, from the newest events of the log. */
static void replay_events(struct occupancy *occupancy, struct db *db)
{
    struct arena arena;
    struct event_record record;
    struct db_query *query = db_prepare_once(
        db, "SELECT text, (SELECT class FROM job WHERE job.id = event.job) FROM event "
            "WHERE seq > (SELECT max(seq) FROM event) - ? AND kind != 'progress' "
            "ORDER BY seq");
    if (!query)
        return;
    arena_init(&arena, 0);
    db_int(query, 1, EVENTS_READ);
    while (db_next(query, NULL) == 1) {
        const char *line = db_get_text(query, 0), *class = db_get_text(query, 1);
        arena_reset(&arena);
        if (event_record_read(line, strlen(line), &arena, &record) < 0)
            continue;
        record.class = class && strcmp(class, "te") == 0 ? CLASS_TE : CLASS_BE;
        occupancy_apply(occupancy, &record);
    }
    db_finish(query);
    arena_release(&arena);
}

void watch_open(struct watch **ret_watch, struct daemon *daemon, struct uv_loop_s *loop)
{
    struct watch *watch = memory_checked(calloc(1, sizeof *watch));
    struct daemon_view facts;
    daemon_view_of(daemon, &facts);
    watch->daemon = daemon;
    occupancy_init(&watch->occupancy, SPANS_KEPT);
    replay_events(&watch->occupancy, store_reader(facts.store));
    uv_timer_init(loop, &watch->timer);
    watch->timer.data = watch;
    uv_timer_start(&watch->timer, on_timer, SAMPLE_MS, 0);
    *ret_watch = watch;
}

static void on_closed(uv_handle_t *handle)
{
    struct watch *watch = handle->data;
    occupancy_release(&watch->occupancy);
    free(watch);
}

void watch_close(struct watch *watch)
{
    uv_close((uv_handle_t *)&watch->timer, on_closed);
}
