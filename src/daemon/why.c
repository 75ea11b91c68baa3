/* why.c - what holds a job back. */
#include "daemon/why.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/units.h"
#include "daemon/start_conditions.h"
#include "daemon/why_change.h"
#include "daemon/why_sharing.h"
#include "engine/engine.h"
#include "executor/executor.h"
#include "model/calendar.h"
#include "model/cluster.h"
#include "model/job.h"
#include "model/node_set.h"
#include "model/plan.h"
#include "model/throughput.h"
#include "policy/policy.h"
#include "store/db.h"

#define NAMED_MAX 6       /* jobs that one sentence names                */
#define PREEMPTIONS_MAX 4 /* the newest that are listed                  */
#define WORDS_MAX 4096

static double seconds(int64_t ns)
{
    return (double)ns * 1e-9;
}

/* --- start conditions ----------------------------------------------------------------------------- */

static void add_condition(struct reasons *reasons, const char *token,
                          const struct start_condition *part, int64_t now_ns)
{
    struct buf text;
    buf_init(&text, WORDS_MAX);
    conditions_explain(part, now_ns, &text);
    if (text.count > 0)
        reasons_add(reasons, token, "%s", text.bytes);
    buf_release(&text);
}

/* What the job waits for, one reason for each condition. */
static void explain_condition(struct why *why, const struct why_scene *scene,
                              const struct start_condition *condition)
{
    struct reasons *reasons = &why->reasons;
    int64_t now_ns = scene->now_ns;
    if (condition->held)
        add_condition(reasons, "held", &(struct start_condition){ .held = true },
                      now_ns);
    if (condition->begin_ns > now_ns)
        add_condition(reasons, "begin",
                      &(struct start_condition){ .begin_ns = condition->begin_ns },
                      now_ns);
    if (condition->outside)
        add_condition(reasons, "dependency",
                      &(struct start_condition){ .outside = condition->outside },
                      now_ns);
    if (condition->dependency_count > 0)
        add_condition(reasons, condition->never ? "never" : "dependency",
                      &(struct start_condition){
                          .dependencies = condition->dependencies,
                          .dependency_count = condition->dependency_count },
                      now_ns);
    if (condition->array_limit && reasons->count == 0)
        add_condition(
            reasons, "array_limit",
            &(struct start_condition){ .array_limit = condition->array_limit }, now_ns);
    why->can_ever_run = !condition->never;
}

static void explain_held(struct why *why, const struct why_scene *scene, job_id job)
{
    const struct job *known = &scene->engine->state.jobs[job];
    const struct start_condition *condition =
        scene->conditions ? conditions_find(scene->conditions, known->id) : NULL;
    if (condition)
        explain_condition(why, scene, condition);
    if (condition && condition->held && why->reasons.count == 1)
        snprintf(why->change, sizeof why->change, "berth release %" PRIu64, known->id);
    if (why->reasons.count == 0)
        reasons_add(&why->reasons, "held", "it is held");
}

/* --- resources ------------------------------------------------------------------------------- */

/* GPUs of one type that a job may use, by their state. */
struct type_use {
    uint32_t total, down, foreign, held, promised, free;
    uint32_t free_most; /* on one node */
    uint64_t holders[NAMED_MAX], beneficiaries[NAMED_MAX];
    uint32_t holder_count, beneficiary_count;
};

/* The lowest numbers, in order. */
static void add_lowest(uint64_t *named, uint32_t *count, uint64_t id)
{
    uint32_t at = *count < NAMED_MAX ? *count : NAMED_MAX;
    ++*count;
    for (; at > 0 && named[at - 1] > id; at--)
        if (at < NAMED_MAX)
            named[at] = named[at - 1];
    if (at < NAMED_MAX)
        named[at] = id;
}

static uint32_t row_gpus(const struct state *state, const struct seat_row *row,
                         uint32_t type, const struct node_set *set)
{
    uint32_t gpus = 0;
    for (uint32_t i = 0; i < row->count; i++) {
        const struct seat *seat = &state->seats[row->first + i];
        if (state->view.cluster->nodes[seat->node].type == type &&
            node_set_has(set, seat->node))
            gpus += seat_gpu_count(seat);
    }
    return gpus;
}

static void count_type(const struct state *state, uint32_t type,
                       const struct node_set *set, struct type_use *use)
{
    const struct cluster *cluster = state->view.cluster;
    *use = (struct type_use){ 0 };
    for (node_id n = 0; n < cluster->node_count; n++) {
        const struct node *node = &cluster->nodes[n];
        if (node->type != type || !node_set_has(set, n))
            continue;
        uint32_t free = state->node_down[n] ? 0 : bits_count(state->free.rooms[n].gpus);
        use->total += node->gpu_count;
        use->down += state->node_down[n] ? node->gpu_count : 0;
        use->free += free;
        use->free_most = free > use->free_most ? free : use->free_most;
        use->foreign += bits_count(state->foreign[n]);
    }
    for (job_id id = 0; id < state->job_count; id++) {
        const struct job *job = &state->jobs[id];
        if (job->state < JOB_PLACED)
            continue;
        uint32_t held = row_gpus(state, &job->seats, type, set);
        uint32_t promised = row_gpus(state, &job->next, type, set);
        if (held > 0)
            add_lowest(use->holders, &use->holder_count, job->id);
        if (promised > 0)
            add_lowest(use->beneficiaries, &use->beneficiary_count, job->id);
        use->held += held;
        use->promised += promised;
    }
}

static void print_ids(struct buf *text, const char *what, uint32_t gpus,
                      const uint64_t *ids, uint32_t count)
{
    if (gpus == 0)
        return;
    buf_print(text, "; %u %s job%s", gpus, what, count > 1 ? "s" : "");
    for (uint32_t i = 0; i < count && i < NAMED_MAX; i++)
        buf_print(text, "%s %" PRIu64, i ? "," : "", ids[i]);
    if (count > NAMED_MAX)
        buf_print(text, " and %u more", count - NAMED_MAX);
}

static void explain_type(struct reasons *reasons, const struct state *state,
                         const struct job *job, uint32_t type)
{
    const char *type_name = state->view.cluster->types[type].name;
    struct type_use use;
    struct buf text;
    count_type(state, type, job->set, &use);
    buf_init(&text, WORDS_MAX);
    buf_print(&text, "it needs %u %s, and %u of %u%s are free", job->gpus, type_name,
              use.free, use.total, job->set ? " there" : "");
    print_ids(&text, "held by", use.held, use.holders, use.holder_count);
    print_ids(&text, "promised to", use.promised, use.beneficiaries,
              use.beneficiary_count);
    reasons_add(reasons, "resources", "%s", text.bytes);
    buf_release(&text);
    if (use.foreign > 0)
        reasons_add(reasons, "foreign",
                    "%u %s are in use by processes that Berth did not start",
                    use.foreign, type_name);
    if (use.down > 0)
        reasons_add(reasons, "node_down", "%u %s are on nodes that are down", use.down,
                    type_name);
    if (use.free >= job->gpus)
        reasons_add(reasons, "resources",
                    "%u %s are free, but at most %u on one node, and it %s be spread",
                    use.free, type_name, use.free_most,
                    job->spread ? "cannot otherwise" : "must not");
}

static void explain_beside(struct reasons *reasons, const struct job *job)
{
    reasons_add(reasons, "resources",
                "it needs %.3g CPUs and %.3g GiB, and no node with room for it has so "
                "much free",
                job->cpu_milli * 1e-3, job->mem_mib / 1024.0);
}

/* What resources are missing. */
static void explain_room(struct why *why, const struct why_scene *scene, job_id id)
{
    const struct state *state = &scene->engine->state;
    const struct job *job = &state->jobs[id];
    struct job bare = *job;
    bare.cpu_milli = bare.mem_mib = 0;
    if (job->set) {
        char text[200];
        reasons_add(&why->reasons, "nodes", "%s",
                    node_set_text(job->set, text, sizeof text));
    }
    if (job->gpus == 0 || why_change_fits(scene->engine, id, &bare, JOB_NONE)) {
        explain_beside(&why->reasons, job);
        return;
    }
    for (uint32_t t = 0; t < state->view.cluster->type_count; t++)
        if (job->types >> t & 1)
            explain_type(&why->reasons, state, job, t);
}

/* --- states ------------------------------------------------------------------------------ */

static void print_place(struct buf *text, const struct view *view,
                        const struct seat_row *row)
{
    char node[64];
    for (uint32_t i = 0; i < row->count && i < NAMED_MAX; i++) {
        const struct seat *seat = &view->seats[row->first + i];
        uint32_t type = view->cluster->nodes[seat->node].type;
        buf_print(text, "%s%s", i ? ", " : "",
                  cluster_node_name(view->cluster, seat->node, node, sizeof node));
        if (seat->gpus)
            buf_print(text, ": %s", view->cluster->types[type].name);
        const char *comma = " ";
        for (uint64_t left = seat->gpus; left; left &= left - 1, comma = ",")
            buf_print(text, "%s%d", comma, __builtin_ctzll(left));
    }
    if (row->count > NAMED_MAX)
        buf_print(text, " and %u more nodes", row->count - NAMED_MAX);
}

static void explain_running(struct why *why, const struct why_scene *scene, job_id id)
{
    const struct state *state = &scene->engine->state;
    const struct job *job = &state->jobs[id];
    char since[32];
    struct buf place;
    buf_init(&place, WORDS_MAX);
    print_place(&place, &state->view, &job->seats);
    double since_s = seconds(scene->now_ns - job->since_ns);
    reasons_add(&why->reasons, "running", "it has run for %s on %s",
                units_show_time(since, sizeof since, since_s > 0 ? since_s : 0),
                place.bytes);
    buf_release(&place);
    if (job->state == JOB_STOPPING)
        reasons_add(&why->reasons, "stopping",
                    job->leaving ? "its owner wants it gone: it is told to stop"
                                 : "it was told to leave, and saves its state");
}

static void explain_placed(struct why *why, const struct why_scene *scene, job_id id)
{
    const struct state *state = &scene->engine->state;
    const struct job *job = &state->jobs[id];
    struct buf text;
    buf_init(&text, WORDS_MAX);
    uint32_t count = 0;
    uint64_t last = 0;
    for (uint32_t p = job->pending_from; p != UINT32_MAX;
         p = state->pending_shares[p].next_of_successor) {
        uint64_t victim = state->jobs[state->pending_shares[p].victim].id;
        if (victim != last && count++ < NAMED_MAX)
            buf_print(&text, "%s%" PRIu64, count > 1 ? ", " : "", victim);
        last = victim;
    }
    if (count > 0)
        reasons_add(&why->reasons, "victim_leaving",
                    "its seats are promised to it; job %s has still to leave them",
                    text.bytes);
    else if (scene->refusal)
        reasons_add(&why->reasons, "starting",
                    "it has its seats, could not be started and is tried again every "
                    "second: %s",
                    scene->refusal);
    else
        reasons_add(&why->reasons, "starting", "it has its seats and is being started");
    buf_release(&text);
}

/* What the calendar has on the nodes of a job that it bars everywhere. */
static void explain_calendar(struct why *why, const struct why_scene *scene,
                             const struct calendar_entry *entry)
{
    char node[64], wait[32], span[32];
    bool later = entry->from_ns > scene->now_ns;
    int64_t from_ns = later ? entry->from_ns : scene->now_ns;
    units_show_time(wait, sizeof wait, seconds(from_ns - scene->now_ns));
    units_show_time(span, sizeof span, seconds(entry->to_ns - from_ns));
    cluster_node_name(scene->engine->state.view.cluster, entry->node, node,
                      sizeof node);
    reasons_add(&why->reasons, "calendar",
                "no node it could use is left to it until it would be done: %s%s node "
                "%s is %s%s for %s",
                later ? "in " : "from", later ? wait : " now on", node,
                entry->owner[0] ? "set aside for " : "unavailable", entry->owner, span);
}

static void explain_waiting(struct why *why, const struct why_scene *scene, job_id id)
{
    const struct engine *engine = scene->engine;
    const struct policy *policy = engine->policy;
    const struct calendar_entry *entry = eligibility_entry(engine, id);
    if (entry)
        explain_calendar(why, scene, entry);
    else if (!why_change_fits(scene->engine, id, &engine->state.jobs[id], JOB_NONE))
        explain_room(why, scene, id);
    if (!entry && policy->explain)
        policy->explain(engine->policy_self, &engine->state.view, id, &why->reasons);
    if (!entry)
        why_sharing_explain(&why->reasons, engine, id);
    if (why->reasons.count == 0)
        reasons_add(&why->reasons, "policy", "%s has not chosen it yet", policy->name);
}

/* --- preemptions --------------------------------------------------------------------- */

static void tell_preemption(struct reasons *reasons, struct db_query *query,
                            int64_t now_ns)
{
    char ago[32];
    char whom[48] = "";
    double ago_s = seconds(now_ns - db_get_int(query, 0));
    if (!db_is_null(query, 1))
        snprintf(whom, sizeof whom, " for job %" PRId64, db_get_int(query, 1));
    int64_t actual_ns =
        db_get_int(query, 4) + db_get_int(query, 5) + db_get_int(query, 6);
    reasons_add(reasons, "preempted",
                "it was sent away %s ago%s by the rule '%s': expected to cost %.3g "
                "GPU-s, cost %.3g%s",
                units_show_time(ago, sizeof ago, ago_s > 0 ? ago_s : 0), whom,
                db_get_text(query, 2), seconds(db_get_int(query, 3)),
                seconds(actual_ns), db_get_int(query, 7) ? " so far" : "");
}

static void explain_preemptions(struct why *why, const struct why_scene *scene,
                                uint64_t id)
{
    struct db_query *query = db_prepare(
        scene->reader, "SELECT at_ns, newcomer, rule, predicted_cost_ns, pause_ns, "
                       "load_ns, redo_ns, open FROM ledger WHERE victim = ? "
                       "ORDER BY number DESC LIMIT ?");
    db_int(query, 1, (int64_t)id);
    db_int(query, 2, PREEMPTIONS_MAX);
    while (db_next(query, NULL) == 1)
        tell_preemption(&why->reasons, query, scene->now_ns);
    db_finish(query);
}

/* --- all of it ------------------------------------------------------------------------------ */

void why_find(struct why *why, const struct why_scene *scene, job_id id)
{
    struct view *view = &scene->engine->state.view;
    const struct job *job = &view->jobs[id];
    int64_t now_ns = view->now_ns;
    view->now_ns = scene->now_ns; /* time has passed since the last event */
    reasons_reset(&why->reasons);
    why->can_ever_run = true;
    why->change[0] = '\0';
    switch (job->state) {
    case JOB_FREE:
        break;
    case JOB_HELD:
        explain_held(why, scene, id);
        break;
    case JOB_WAITING:
        explain_waiting(why, scene, id);
        break;
    case JOB_PLACED:
        explain_placed(why, scene, id);
        break;
    default:
        explain_running(why, scene, id);
    }
    if (job->preemptions > 0 && scene->reader)
        explain_preemptions(why, scene, job->id);
    view->now_ns = now_ns;
}

/* --- the brief reason --------------------------------------------------------------------------- */

static const char *held_token(const struct why_scene *scene, uint64_t id)
{
    const struct start_condition *condition =
        scene->conditions ? conditions_find(scene->conditions, id) : NULL;
    if (!condition || condition->held)
        return "held";
    if (condition->begin_ns > scene->now_ns)
        return "begin";
    if (condition->dependency_count > 0)
        return condition->never ? "never" : "dependency";
    if (condition->outside)
        return "dependency";
    return condition->array_limit ? "array_limit" : "held";
}

static void brief_condition(const struct why_scene *scene, uint64_t id, char *text,
                            size_t size)
{
    const struct start_condition *condition =
        scene->conditions ? conditions_find(scene->conditions, id) : NULL;
    struct buf words;
    buf_init(&words, WORDS_MAX);
    if (condition)
        conditions_explain(condition, scene->now_ns, &words);
    snprintf(text, size, "%s", words.count ? words.bytes : "it is held");
    buf_release(&words);
}

static uint32_t free_in_set(const struct state *state, const struct job *job)
{
    const struct bits *nodes = &job->set->allowed;
    uint32_t free[TYPES_MAX + 1] = { 0 };
    uint32_t most = 0;
    for (node_id n = bits_next(nodes, 0); n != BITS_NONE; n = bits_next(nodes, n + 1)) {
        uint32_t type = state->view.cluster->nodes[n].type;
        if (type == TYPE_NONE || !(job->types >> type & 1) || state->node_down[n])
            continue;
        free[type] += bits_count(state->free.rooms[n].gpus);
        most = free[type] > most ? free[type] : most;
    }
    return most;
}

static uint32_t free_for(const struct state *state, const struct job *job)
{
    uint32_t most = 0;
    if (job->set)
        return free_in_set(state, job);
    for (uint32_t t = 0; t < state->view.cluster->type_count; t++)
        if (job->types >> t & 1 && state->free.shelves[t].gpu_count > most)
            most = state->free.shelves[t].gpu_count;
    return most;
}

void why_brief(const struct why_scene *scene, job_id id, char *text, size_t size,
               const char **ret_token)
{
    const struct state *state = &scene->engine->state;
    const struct job *job = &state->jobs[id];
    text[0] = '\0';
    *ret_token = "";
    if (job->state == JOB_HELD) {
        *ret_token = held_token(scene, job->id);
        brief_condition(scene, job->id, text, size);
    } else if (job->state == JOB_PLACED) {
        bool waits = job->pending_from != UINT32_MAX;
        *ret_token = waits ? "victim_leaving" : "starting";
        if (!waits && scene->refusal)
            snprintf(text, size, "could not be started: %s", scene->refusal);
        else
            snprintf(text, size, waits ? "others are leaving" : "is being started");
    } else if (eligibility_entry(scene->engine, id)) {
        *ret_token = "calendar";
        snprintf(text, size, "its nodes will not be available for long enough");
    } else if (job->state == JOB_WAITING) {
        uint32_t free = free_for(state, job);
        bool short_of = free < job->gpus_min;
        *ret_token = short_of ? "resources" : "order";
        if (short_of)
            snprintf(text, size, "needs %u GPU%s, %u %s free%s", job->gpus,
                     job->gpus == 1 ? "" : "s", free, free == 1 ? "is" : "are",
                     job->set ? " on its nodes" : "");
        else
            snprintf(text, size, "others go first");
    }
}
