/* why.c - what holds a job back. */
#include "daemon/why.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/units.h"
#include "daemon/start_conditions.h"
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

/*
 * What would start a job now is found by trying.
 *
 * First there must be room: that is asked of a plan.  Then the policy must give it to this
 * job and to no other, which is tried in a copy of everything: a policy remembers more than a
 * new one could be told, so the only exact copy of it is this process.  A child tries the
 * change with an executor that obeys at once and returns the result as its exit status.  It
 * writes nothing and talks to no one; after WHY_LIMIT_NS it is killed.
 *
 * Policies that work in rounds may let the job wait for the next one: of them only the first
 * question is asked, and the answer says no more than that there would be room.
 */

#define LEAVERS_MAX 128 /* running jobs that are tried as cancelled   */
#define ASKED_MAX 3     /* of them, how often the policy is asked too */
#define POLL_NS 200000  /* between two polls of a child               */

/* --- trying a change in a child ----------------------------------------------------- */

struct search {
    const struct why_scene *scene;
    job_id id;
    const struct reasons *reasons;
    bool rounds;      /* the policy works in them      */
    const char *then; /* what comes of it, as a phrase */
    int64_t until_ns; /* then no more is tried         */
    char *text;
    size_t size;
};

static int start_nothing(void *self, const struct lease *lease, struct error *err)
{
    return 0;
}

static int stop_nothing(void *self, job_id job, int64_t grace_ns, struct error *err)
{
    return 0;
}

static int cancel_nothing(void *self, job_id job, struct error *err)
{
    return 0;
}

static int renew_nothing(void *self, job_id job, uint64_t steps_max, bool together,
                         struct error *err)
{
    return 0;
}

static const struct executor executor_nothing = { .name = "nothing",
                                                  .start = start_nothing,
                                                  .stop = stop_nothing,
                                                  .cancel = cancel_nothing,
                                                  .resize = start_nothing,
                                                  .renew = renew_nothing };

/* A change that is tried: the job as it would be. */
struct trial {
    struct engine *engine;
    int64_t now_ns;
    job_id id;
    const struct job *as;
};

/* While the job is held no policy counts on what it asks for: change it now. */
static void change_held_job(void *self, const struct view *view,
                            const struct event *event)
{
    const struct trial *trial = self;
    if (event->kind != EVENT_HELD || event->job != trial->id)
        return;
    enum job_state state = view->jobs[trial->id].state;
    trial->engine->state.jobs[trial->id] = *trial->as;
    trial->engine->state.jobs[trial->id].state = state;
}

static struct event make_event(const struct trial *trial, enum event_kind kind,
                               job_id job)
{
    return (struct event){ .at_ns = trial->now_ns,
                           .kind = kind,
                           .job = job,
                           .generation = trial->engine->state.jobs[job].generation,
                           .attempt = trial->engine->state.jobs[job].attempt };
}

static bool starts_job(struct trial *trial, job_id gone)
{
    struct engine *engine = trial->engine;
    struct job *jobs = engine->state.jobs;
    struct event events[3];
    uint32_t count = 0;
    struct error err;
    bool runs = gone != JOB_NONE && job_runs(&jobs[gone]);
    engine->executor = &executor_nothing;
    engine->observer_count = 0;
    if (memcmp(&jobs[trial->id], trial->as, sizeof *trial->as) != 0) {
        engine_add_observer(engine, (struct engine_observer){ .event = change_held_job,
                                                              .self = trial });
        events[count++] = make_event(trial, EVENT_HELD, trial->id);
        events[count++] = make_event(trial, EVENT_RELEASED, trial->id);
    }
    if (gone != JOB_NONE)
        events[count++] = make_event(trial, EVENT_CANCELLED, gone);
    if (engine_step(engine, trial->now_ns, events, count, &err) < 0)
        return false;
    if (runs) {
        events[0] = make_event(trial, EVENT_STOPPED, gone);
        events[0].steps = events[0].steps_reached = jobs[gone].steps;
        if (engine_step(engine, trial->now_ns, events, 1, &err) < 0)
            return false;
    }
    return jobs[trial->id].state >= JOB_PLACED;
}

/* Its exit status; -1 if it did not end by itself before 'until_ns'. */
static int wait_for_child(pid_t child, int64_t until_ns)
{
    int status = 0;
    pid_t r;
    while ((r = waitpid(child, &status, WNOHANG)) == 0 && clock_now_ns() < until_ns)
        nanosleep(&(struct timespec){ .tv_nsec = POLL_NS }, NULL);
    if (r == 0) {
        kill(child, SIGKILL);
        while (waitpid(child, &status, 0) < 0 && errno == EINTR)
            ;
        return -1;
    }
    return r == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Would this job start, if it were as 'as' says and 'gone' (or JOB_NONE) were cancelled? */
static bool would_start(const struct search *s, const struct job *as, job_id gone)
{
    struct job copy = *as; /* it may be the job's own record */
    if (clock_now_ns() >= s->until_ns)
        return false;
    pid_t child = fork();
    if (child == 0) {
        struct trial trial = { s->scene->engine, s->scene->now_ns, s->id, &copy };
        _exit(starts_job(&trial, gone) ? 0 : 1);
    }
    return child > 0 && wait_for_child(child, s->until_ns) == 0;
}

/* --- changes -------------------------------------------------------------------------- */

static bool works_in_rounds(const struct policy *policy)
{
    for (const struct field *param = policy->params; param && param->name; param++)
        if (strcmp(param->name, "round") == 0)
            return true;
    return false;
}

static void revoke_job(struct plan *plan, const struct state *state, job_id gone)
{
    if (gone != JOB_NONE && job_can_be_stopped(&state->jobs[gone]))
        plan_revoke(plan, gone, RULE_CANCEL, JOB_NONE);
}

/*
 * Is there room for 'job' now, if it were as 'as' says and 'gone' (or JOB_NONE) had left?  The
 * policy is not asked.
 */
static bool would_fit(const struct why_scene *scene, job_id id, const struct job *as,
                      job_id gone)
{
    struct engine *engine = scene->engine;
    struct job kept = engine->state.jobs[id];
    engine->state.jobs[id] = *as;
    plan_begin(engine->plan);
    revoke_job(engine->plan, &engine->state, gone);
    bool fits = plan_grant(engine->plan, id, NULL);
    plan_end(engine->plan);
    engine->state.jobs[id] = kept;
    return fits;
}

/* With this change there is room, and the policy gives it to this job. */
static bool helps(const struct search *s, const struct job *as)
{
    return would_fit(s->scene, s->id, as, JOB_NONE) &&
           (s->rounds || would_start(s, as, JOB_NONE));
}

static const struct job *job_of(const struct search *s)
{
    return &s->scene->engine->state.jobs[s->id];
}

/* Its rate with the size and the types that are tried. */
static void set_best(const struct search *s, struct job *as)
{
    const struct throughput *rates = s->scene->engine->state.view.rates;
    as->rate_best_per_s = throughput_best(rates, as, &as->type_best);
}

/* On any node. */
static bool try_any_node(const struct search *s)
{
    char flags[32];
    struct job as = *job_of(s);
    if (!as.set)
        return false;
    as.set = NULL;
    if (!helps(s, &as))
        return false;
    snprintf(s->text, s->size, "on any node, without %s, %s",
             node_set_flags(job_of(s)->set, flags, sizeof flags), s->then);
    return true;
}

static bool try_types(const struct search *s)
{
    const struct view *view = &s->scene->engine->state.view;
    const struct job *job = job_of(s);
    for (uint32_t t = 0; job->gpus > 0 && t < view->cluster->type_count; t++) {
        struct job as = *job;
        as.types = (uint32_t)1 << t;
        set_best(s, &as);
        if (job->types >> t & 1 || as.rate_best_per_s <= 0 || !helps(s, &as))
            continue;
        snprintf(s->text, s->size, "on type %s %s", view->cluster->types[t].name,
                 s->then);
        return true;
    }
    return false;
}

static bool try_spread(const struct search *s)
{
    struct job as = *job_of(s);
    if (as.spread || as.gpus < 2)
        return false;
    as.spread = true;
    if (!helps(s, &as))
        return false;
    snprintf(s->text, s->size, "spread over nodes %s", s->then);
    return true;
}

/* With the largest number of GPUs that there is room for. */
static bool try_fewer(const struct search *s)
{
    const struct job *job = job_of(s);
    struct job as = *job;
    uint32_t low = 0; /* fits, if it is not 0 */
    uint32_t high = job->gpus;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        as.gpus = as.gpus_min = as.gpus_max = middle;
        if (would_fit(s->scene, s->id, &as, JOB_NONE))
            low = middle;
        else
            high = middle;
    }
    as.gpus = as.gpus_min = as.gpus_max = low;
    set_best(s, &as);
    if (low == 0 || as.rate_best_per_s <= 0 || !helps(s, &as))
        return false;
    snprintf(s->text, s->size, "with %u GPU%s instead of %u %s", low,
             low == 1 ? "" : "s", job->gpus, s->then);
    return true;
}

static bool try_less_beside(const struct search *s)
{
    struct job as = *job_of(s);
    if (as.cpu_milli == 0 && as.mem_mib == 0)
        return false;
    as.mem_mib = 0;
    if (helps(s, &as)) {
        snprintf(s->text, s->size, "with less memory than %.3g GiB %s",
                 job_of(s)->mem_mib / 1024.0, s->then);
        return true;
    }
    as.mem_mib = job_of(s)->mem_mib;
    as.cpu_milli = 0;
    if (as.gpus == 0 || !helps(s, &as))
        return false;
    snprintf(s->text, s->size, "with fewer CPUs than %.3g %s",
             job_of(s)->cpu_milli * 1e-3, s->then);
    return true;
}

static bool try_class(const struct search *s)
{
    struct job as = *job_of(s);
    if (as.class == CLASS_TE)
        return false;
    as.class = CLASS_TE;
    if (s->rounds || !would_start(s, &as, JOB_NONE))
        return false;
    snprintf(s->text, s->size, "as class te it would get seats now");
    return true;
}

/* The first of the jobs that wait ahead of it. */
static bool try_without_first(const struct search *s)
{
    const struct state *state = &s->scene->engine->state;
    if (s->reasons->ahead_count == 0)
        return false;
    uint64_t first = s->reasons->ahead[0].id;
    job_id absent = state_find(state, first);
    if (s->rounds || absent == JOB_NONE || !would_start(s, job_of(s), absent))
        return false;
    snprintf(s->text, s->size,
             "cancelling job %" PRIu64 ", which waits, would start it", first);
    return true;
}

/* A running job that would leave. */
static bool try_without_runner(const struct search *s)
{
    const struct state *state = &s->scene->engine->state;
    uint32_t tried = 0;
    uint32_t asked = 0;
    for (job_id id = 0; id < state->job_count && tried < LEAVERS_MAX; id++) {
        if (!job_can_be_stopped(&state->jobs[id]))
            continue;
        tried++;
        if (!would_fit(s->scene, s->id, job_of(s), id))
            continue;
        if (s->rounds || would_start(s, job_of(s), id)) {
            snprintf(s->text, s->size, "cancelling job %" PRIu64 " would %s it",
                     state->jobs[id].id, s->rounds ? "make room for" : "start");
            return true;
        }
        if (++asked == ASKED_MAX)
            return false;
    }
    return false;
}

/*
 * The smallest change that would start a waiting job now, as a sentence; "" if none of those
 * that were tried does, or none before the time was up.  'reasons' lists the jobs ahead.
 */
static void find_change(const struct why_scene *scene, job_id id,
                        const struct reasons *reasons, char *text, size_t size)
{
    bool rounds = works_in_rounds(scene->engine->policy);
    struct search search = {
        .scene = scene,
        .id = id,
        .reasons = reasons,
        .rounds = rounds,
        .then = rounds ? "there would be room for it now" : "it would start now",
        .until_ns = clock_now_ns() + (scene->limit_ns ? scene->limit_ns : WHY_LIMIT_NS),
        .text = text,
        .size = size
    };
    text[0] = '\0';
    (void)(try_any_node(&search) || try_types(&search) || try_spread(&search) ||
           try_fewer(&search) || try_less_beside(&search) || try_class(&search) ||
           try_without_first(&search) || try_without_runner(&search));
}

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
    if (job->gpus == 0 || would_fit(scene, id, &bare, JOB_NONE)) {
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
    else if (!would_fit(scene, id, &engine->state.jobs[id], JOB_NONE))
        explain_room(why, scene, id);
    if (!entry && policy->explain)
        policy->explain(engine->policy_self, &engine->state.view, id, &why->reasons);
    if (!entry)
        why_sharing_explain(&why->reasons, engine, id);
    if (why->reasons.count == 0)
        reasons_add(&why->reasons, "policy", "%s has not chosen it yet", policy->name);
    find_change(scene, id, &why->reasons, why->change, sizeof why->change);
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
