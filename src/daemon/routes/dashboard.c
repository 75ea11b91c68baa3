/* dashboard.c - the last hours for the dashboard. */
#include "daemon/routes/dashboard.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <uv.h>

#include "base/arena.h"
#include "base/memory.h"
#include "daemon/daemon.h"
#include "daemon/routes/trends.h"
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

struct dashboard {
    struct daemon *daemon;
    uv_timer_t timer;
    struct occupancy occupancy;
    struct trends trends;
};

/* ---- groups: entities, and the users of jobs without an entity ---- */

#define USERS (UINT64_C(1) << 32) /* keys from here on are users */

static uint64_t group_key(const struct dashboard *dashboard, job_id id,
                          const struct job *job)
{
    return job->entity ? job->entity : USERS + daemon_owner(dashboard->daemon, id);
}

/* The name of a group is in the store. */
static void name_group(struct dashboard *dashboard, struct db *db, uint32_t group,
                       const struct job *job)
{
    struct trends_group *one = &dashboard->trends.groups[group];
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

static double find_weight(const struct cluster *cluster, uint64_t key)
{
    return key >= 1 && key <= cluster->entity_count ? cluster->entities[key - 1].weight
                                                    : 1;
}

/* ---- a sample ---- */

/* A sample being taken. */
struct dashboard_sampling {
    struct dashboard *dashboard;
    struct daemon_view facts;
    struct trends_sample *sample;
    double wanted[TRENDS_GROUPS];
};

static void count_gpus(struct dashboard_sampling *sampling)
{
    const struct state *state = &sampling->facts.engine->state;
    const struct cluster *cluster = state->view.cluster;
    sampling->sample->gpus = cluster->gpu_count;
    for (node_id node = 0; node < cluster->node_count; node++) {
        uint32_t count = cluster->nodes[node].gpu_count;
        uint64_t all = count < 64 ? (UINT64_C(1) << count) - 1 : UINT64_MAX;
        uint64_t taken = all & ~state->free.rooms[node].gpus;
        sampling->sample->foreign += bits_count(state->foreign[node]);
        sampling->sample->held += bits_count(taken & ~state->foreign[node]);
    }
}

static void count_waiting_job(struct dashboard_sampling *sampling, job_id id)
{
    struct why_scene scene = { .engine = sampling->facts.engine,
                               .conditions = sampling->facts.conditions,
                               .now_ns = sampling->facts.now_ns };
    const char *token = "";
    char text[240];
    why_brief(&scene, id, text, sizeof text, &token);
    sampling->sample->waiting++;
    sampling->sample
        ->reasons[trends_find_reason(&sampling->dashboard->trends, token)]++;
}

static void count_job(struct dashboard_sampling *sampling, job_id id)
{
    struct dashboard *dashboard = sampling->dashboard;
    const struct job *job = &sampling->facts.engine->state.jobs[id];
    bool is_new;
    uint32_t group =
        trends_find_group(&dashboard->trends, group_key(dashboard, id, job), &is_new);
    if (is_new)
        name_group(dashboard, store_reader(sampling->facts.store), group, job);
    if (job_holds_seats(job)) {
        sampling->sample->running++;
        sampling->sample->got[group] += (float)job->gpus_now;
        sampling->wanted[group] += job->gpus_now;
    } else {
        count_waiting_job(sampling, id);
        sampling->wanted[group] += job->state == JOB_HELD ? 0 : job->gpus;
    }
}

static void set_fair_shares(struct dashboard_sampling *sampling)
{
    const struct trends *trends = &sampling->dashboard->trends;
    const struct cluster *cluster = sampling->facts.engine->state.view.cluster;
    double weight[TRENDS_GROUPS], due[TRENDS_GROUPS];
    for (uint32_t i = 0; i < trends->group_count; i++)
        weight[i] = find_weight(cluster, trends->groups[i].key);
    trends_fair_shares(sampling->wanted, weight, trends->group_count,
                       sampling->sample->gpus - sampling->sample->foreign, due);
    for (uint32_t i = 0; i < trends->group_count; i++)
        sampling->sample->due[i] = (float)due[i];
}

static void on_timer(uv_timer_t *timer)
{
    struct dashboard *dashboard = timer->data;
    struct dashboard_sampling sampling = { .dashboard = dashboard };
    daemon_view_of(dashboard->daemon, &sampling.facts);
    if (!sampling.facts.engine)
        return;
    const struct state *state = &sampling.facts.engine->state;
    sampling.sample = trends_add(&dashboard->trends, sampling.facts.now_ns);
    count_gpus(&sampling);
    for (job_id id = 0; id < state->job_count; id++)
        if (state->jobs[id].state != JOB_FREE)
            count_job(&sampling, id);
    set_fair_shares(&sampling);
}

void dashboard_event(struct dashboard *dashboard, const struct event_record *record)
{
    occupancy_apply(&dashboard->occupancy, record);
    if (!uv_is_active((uv_handle_t *)&dashboard->timer))
        uv_timer_start(&dashboard->timer, on_timer, SAMPLE_MS, 0);
}

const struct occupancy *dashboard_occupancy(const struct dashboard *dashboard)
{
    return &dashboard->occupancy;
}

const struct trends *dashboard_trends(const struct dashboard *dashboard)
{
    return &dashboard->trends;
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

void dashboard_open(struct dashboard **ret_dashboard, struct daemon *daemon,
                    struct uv_loop_s *loop)
{
    struct dashboard *dashboard = memory_checked(calloc(1, sizeof *dashboard));
    struct daemon_view facts;
    daemon_view_of(daemon, &facts);
    dashboard->daemon = daemon;
    occupancy_init(&dashboard->occupancy, SPANS_KEPT);
    replay_events(&dashboard->occupancy, store_reader(facts.store));
    uv_timer_init(loop, &dashboard->timer);
    dashboard->timer.data = dashboard;
    uv_timer_start(&dashboard->timer, on_timer, SAMPLE_MS, 0);
    *ret_dashboard = dashboard;
}

static void on_closed(uv_handle_t *handle)
{
    struct dashboard *dashboard = handle->data;
    occupancy_release(&dashboard->occupancy);
    free(dashboard);
}

void dashboard_close(struct dashboard *dashboard)
{
    uv_close((uv_handle_t *)&dashboard->timer, on_closed);
}
