/*
 * life.c - the engine, the executor and all they know, from what is on disk.
 *
 * A life begins when berthd starts, and again after the store could not be written: what is
 * in memory is thrown away and read back, as after a crash.  So there is one way to come up,
 * and it is the one that is used.
 */
#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/units.h"
#include "daemon/daemon_internal.h"
#include "daemon/notes.h"
#include "engine/recover.h"
#include "executor/local/local.h"
#include "host/output_path.h"
#include "flow/flow.h"
#include "policy/policy.h"
#include "store/db.h"
#include "store/rows.h"
#include "store/store.h"

/* --- for the executor ----------------------------------------------------------------- */

int64_t life_now(void *context)
{
    return daemon_now_ns(context);
}

void life_wake(void *context)
{
    daemon_want_pass(context);
}

static int read_request(struct arena *arena, const char *text, struct request *request,
                        struct error *err)
{
    struct json *json;
    int r = json_parse(text, strlen(text), &json, err);
    if (r < 0)
        return r;
    r = request_read(request, arena, json, err);
    json_free(json);
    return r;
}

/* For the executor: what it takes to run this job. */
int life_launch(void *context, uint64_t id, const struct launch **ret_launch,
                struct error *err)
{
    struct daemon *daemon = context;
    char *text = store_request(daemon->store, id);
    if (!text)
        return error_set(err, -ENOENT, "no job %" PRIu64, id);
    arena_reset(&daemon->launch);
    int r = read_request(&daemon->launch, text, &daemon->launch_request, err);
    free(text);
    if (r < 0)
        return r;
    struct launch *launch = &daemon->launch_request.launch;
    job_id job = state_find(&daemon->engine.state, id);
    if (job == JOB_NONE)
        return error_set(err, -ENOENT, "job %" PRIu64 " has ended", id);
    struct passwd *user = getpwuid(daemon->residents[job].uid);
    launch->id = id;
    launch->uid = daemon->residents[job].uid;
    launch->gid = user ? user->pw_gid : launch->uid;
    launch->array_id = daemon->residents[job].array_id;
    launch->te = daemon->engine.state.jobs[job].class == CLASS_TE;
    launch->has_steps = daemon->launch_request.spec.steps > 0;
    *ret_launch = launch;
    return 0;
}

/* A running job says how many steps it will make in all: its next report carries it. */
static void total_for(void *context, job_id job, double steps)
{
    struct daemon *daemon = context;
    daemon->residents[job].total = steps;
}

/* --- gates -------------------------------------------------------------------------------- */

enum outcome life_outcome(void *context, uint64_t id)
{
    struct daemon *daemon = context;
    job_id job = state_find(&daemon->engine.state, id);
    if (job != JOB_NONE)
        return daemon->engine.state.jobs[job].first_start_ns >= 0 ? OUTCOME_RUNS
                                                                  : OUTCOME_WAITS;
    const struct outbox *outbox = daemon->outbox;
    for (uint32_t i = 0; i < outbox->count && daemon->coming > 0; i++)
        if (outbox->events[i].kind == EVENT_SUBMITTED &&
            outbox->events[i].spec->id == id)
            return OUTCOME_WAITS;
    struct db_query *query =
        db_prepare(store_reader(daemon->store), "SELECT state FROM job WHERE id = ?");
    db_int(query, 1, (int64_t)id);
    enum outcome outcome = OUTCOME_UNKNOWN;
    if (db_next(query, NULL) == 1) {
        const char *state = db_get_text(query, 0);
        outcome = strcmp(state, "COMPLETED") == 0 ? OUTCOME_OK : OUTCOME_NOT_OK;
        if (strcmp(state, "PENDING") == 0 || strcmp(state, "RUNNING") == 0 ||
            strcmp(state, "STOPPING") == 0 || strcmp(state, "HELD") == 0)
            outcome = OUTCOME_RUNS; /* its end is not on disk yet */
    }
    db_finish(query);
    return outcome;
}

static bool alone_for(void *context, uint64_t id, const char *name, uint32_t uid)
{
    struct daemon *daemon = context;
    struct db_query *query = db_prepare(
        store_reader(daemon->store),
        "SELECT 1 FROM job WHERE end_ns IS NULL AND id < ? AND name IS ? AND uid = ?");
    db_int(query, 1, (int64_t)id);
    db_text(query, 2, name);
    db_int(query, 3, uid);
    bool alone = db_next(query, NULL) != 1;
    db_finish(query);
    return alone;
}

static void pass_gate(void *context, job_id job, uint64_t id)
{
    (void)id;
    daemon_add_event(context, EVENT_RELEASED, job);
}

static void never_passes(void *context, job_id job, uint64_t id)
{
    (void)id;
    daemon_add_event(context, EVENT_CANCELLED, job)->why =
        "what it depends on has ended otherwise";
}

void life_ask_gates(struct daemon *daemon)
{
    daemon->ask_gates = false;
    if (daemon->gates.count > 0)
        daemon->gates_ns = gates_ask(&daemon->gates, daemon_now_ns(daemon), pass_gate,
                                     never_passes, daemon);
}

/* It runs on another host, and may write down how far it is. */
static void follow(struct daemon *daemon, uint64_t id)
{
    const struct launch *launch;
    char path[PATH_MAX];
    char user[24];
    struct error err;
    if (!daemon->backend->executor->report ||
        life_launch(daemon, id, &launch, &err) < 0 || !launch->progress)
        return;
    snprintf(user, sizeof user, "%u", launch->uid);
    const struct passwd *owner = getpwuid(launch->uid);
    if (output_path(path, launch->progress, launch, owner ? owner->pw_name : user,
                    &err) == 0)
        notes_follow(daemon->notes, id, path, launch->uid, launch->gid);
}

/* --- listening to the engine -------------------------------------------------------------- */

static void know_job(struct daemon *daemon, job_id job, const struct request *request)
{
    daemon->residents[job] = (struct resident){ .uid = request->launch.uid,
                                                .retries = request->retries,
                                                .requeue = request->requeue,
                                                .array_id = request->launch.array_id,
                                                .limited = request->array_limit > 0 };
}

static void admit(struct daemon *daemon, const struct event *event)
{
    const struct request *request = event->tag;
    know_job(daemon, event->job, request);
    if (daemon->engine.state.jobs[event->job].state == JOB_HELD) {
        gates_add(&daemon->gates, request, event->job, request->array_limit);
        daemon->ask_gates = true;
    }
}

static void hear(void *self, const struct view *view, const struct event *event)
{
    struct daemon *daemon = self;
    if (event->kind == EVENT_SUBMITTED) {
        admit(daemon, event);
        return;
    }
    if (event->job == JOB_NONE || event->kind == EVENT_REJECTED)
        return;
    const struct job *job = &view->jobs[event->job];
    if (event->kind == EVENT_STARTED)
        follow(daemon, job->id);
    if (event->kind == EVENT_STARTED)
        daemon->ask_gates = daemon->ask_gates || daemon->gates.count > 0;
    if (job->state != JOB_FREE)
        return;
    gates_drop(&daemon->gates, job->id);
    if (daemon->residents[event->job].limited)
        gates_ended(&daemon->gates, daemon->residents[event->job].array_id);
    daemon->ask_gates = daemon->ask_gates || daemon->gates.count > 0;
}

/* --- a life: what is built from the store ---------------------------------------------------- */

/* For recovery: the request of a live job, read back; its tag until the next job. */
static int spec_for(void *context, const struct kept_job *kept, struct job *ret_job,
                    const void **ret_tag, struct error *err)
{
    struct daemon *daemon = context;
    arena_reset(&daemon->launch);
    struct request *request = arena_new(&daemon->launch, struct request);
    int r = read_request(&daemon->launch, kept->request, request, err);
    if (r < 0)
        return r;
    request->spec.id = kept->job.id;
    request->spec.submit_ns = kept->job.submit_ns;
    request->launch.uid = kept->uid;
    request->launch.array_id = kept->array_id;
    request->hold = kept->held;
    *ret_tag = request;
    return intake_job(&daemon->intake, &request->spec, ret_job, err);
}

static void back_for(void *context, const struct kept_job *kept, const void *tag,
                     job_id job)
{
    struct daemon *daemon = context;
    const struct request *request = tag;
    know_job(daemon, job, request);
    if (kept->job.state == JOB_HELD)
        gates_add(&daemon->gates, request, job, request->array_limit);
    else if (request->array_limit > 0)
        gates_passed(&daemon->gates, request->launch.array_id);
}

static void gone_for(void *context, const struct kept_job *kept, const char *why)
{
    struct daemon *daemon = context;
    store_give_up(daemon->store, kept->job.id, daemon_now_ns(daemon), why);
}

static int reattach(struct daemon *daemon, job_id id, struct error *err)
{
    const struct job *job = &daemon->engine.state.jobs[id];
    bool stopping = job->state == JOB_STOPPING;
    int64_t left_ns = job->recalled_ns + job->grace_ns - daemon_now_ns(daemon);
    if (job->leaving || left_ns < 0)
        left_ns = 0;
    struct lease lease =
        engine_lease(&daemon->engine, id, job->state == JOB_PLACED, &daemon->pass);
    const struct executor *executor = daemon->backend->executor;
    if (job_seated(job))
        follow(daemon, job->id);
    int r = executor->reattach(daemon->executor_self, &lease, stopping, left_ns, err);
    if (r == 0 && job->leaving)
        r = executor->cancel(daemon->executor_self, id, err);
    if (r == 0 && job->seats.count > 0 && job->next.count > 0) {
        lease = engine_lease(&daemon->engine, id, true, &daemon->pass);
        r = executor->start(daemon->executor_self, &lease, err);
    }
    return r;
}

static int reattach_all(struct daemon *daemon, struct error *err)
{
    const struct state *state = &daemon->engine.state;
    int r = 0;
    for (job_id id = 0; id < state->job_count && r == 0; id++)
        if (state->jobs[id].state >= JOB_PLACED)
            r = reattach(daemon, id, err);
    if (r == 0)
        daemon->backend->executor->settle(daemon->executor_self);
    return r;
}

static int open_local(struct daemon *daemon, struct error *err)
{
    struct local_setup setup = { .loop = &daemon->loop,
                                 .state_dir = daemon->setup.state_dir,
                                 .run_dir = daemon->setup.run_dir,
                                 .run_program = daemon->setup.run_program,
                                 .system = daemon->setup.system,
                                 .view = &daemon->engine.state.view,
                                 .outbox = &daemon->outbox,
                                 .wake = life_wake,
                                 .launch = life_launch,
                                 .now_ns = life_now,
                                 .mark = desk_mark,
                                 .total = total_for,
                                 .gpu_index = daemon->machine.gpu_index,
                                 .context = daemon };
    struct local *local = NULL;
    int r = local_open(&local, &setup, err);
    daemon->executor_self = local;
    return r;
}

/* Fake GPUs of the last start are used again, unless this one says otherwise. */
static int find_machine(struct daemon *daemon, struct error *err)
{
    const char *said = daemon->setup.fake_gpus;
    char *fake = said ? memory_text(said) : store_fact(daemon->store, "fake_gpus");
    bool none = !fake || strcmp(fake, "none") == 0;
    int r = machine_find(&daemon->machine, &daemon->fixed, none ? NULL : fake, err);
    if (r == 0 && said)
        r = store_set_fact(daemon->store, "fake_gpus", said, err);
    free(fake);
    return r;
}

const struct backend backend_local = { .executor = &executor_local,
                                       .find_cluster = find_machine,
                                       .open = open_local };

static void listen_all(struct daemon *daemon)
{
    struct engine *engine = &daemon->engine;
    engine_listen(engine, (struct listener){ .event = hear, .self = daemon });
    engine_listen(engine,
                  (struct listener){ .event = ledger_event, .self = &daemon->ledger });
    engine_listen(engine, (struct listener){ .event = store_event,
                                             .commit = store_commit,
                                             .self = daemon->store });
    engine_listen(engine,
                  (struct listener){ .event = daemon->backend->executor->event,
                                     .commit = daemon->backend->executor->commit,
                                     .self = daemon->executor_self });
    desk_flows_begin(daemon);
}

static int init_engine(struct daemon *daemon, struct error *err)
{
    const struct policy *policy;
    const char *settings;
    const struct flow_policy *flow = NULL;
    char flow_settings[DESK_FLOW_MAX] = "";
    int r = policy_parse(daemon->policy_text, &policy, &settings, err);
    if (r == 0 && daemon->flow_text)
        r = desk_read_flow(daemon->flow_text, &flow, flow_settings, err);
    if (r < 0)
        return r;
    struct engine_setup setup = { .cluster = &daemon->machine.cluster,
                                  .rates = &daemon->rates,
                                  .policy = policy,
                                  .settings = settings,
                                  .flow = flow,
                                  .flow_settings = flow_settings,
                                  .executor = daemon->backend->executor,
                                  .job_max = daemon->setup.job_max,
                                  .seed = 1 };
    r = engine_init(&daemon->engine, &daemon->life, &setup, err);
    daemon->engine.clock_ns = clock_now_ns;
    return r;
}

/* Accelerators that others use, by node: known before the first decision. */
static const uint64_t *foreign_now(struct daemon *daemon)
{
    uint32_t count = daemon->machine.cluster.node_count;
    uint64_t *foreign = arena_array(&daemon->life, uint64_t, count);
    machine_look(&daemon->machine, daemon->setup.run_dir);
    for (node_id node = 0; node < count; node++)
        foreign[node] = machine_foreign(&daemon->machine, node);
    return foreign;
}

/* The engine, from what is on disk. */
int life_begin(struct daemon *daemon, struct error *err)
{
    arena_init(&daemon->life, 0);
    daemon->outbox = &daemon->outboxes[0];
    daemon->outboxes[0].count = daemon->outboxes[1].count = 0;
    daemon->coming = 0;
    daemon->gates = (struct gates){ .outcome = life_outcome,
                                    .alone = alone_for,
                                    .context = daemon };
    daemon->gates_ns = INT64_MAX;
    daemon->residents =
        arena_array(&daemon->life, struct resident, daemon->setup.job_max);
    daemon->id_next = store_last_id(daemon->store) + 1;
    intake_init(&daemon->intake, &daemon->machine.cluster, &daemon->rates);
    int r = init_engine(daemon, err);
    if (r < 0)
        return r;
    daemon->alive = true;
    r = daemon->backend->open(daemon, err);
    if (r < 0)
        return r;
    daemon->engine.executor_self = daemon->executor_self;
    store_attach(daemon->store, &daemon->engine.state);
    ledger_init(&daemon->ledger, &daemon->life, &daemon->engine.state.view, NULL);
    daemon->ledger.note = store_entry;
    daemon->ledger.context = daemon->store;
    listen_all(daemon);

    struct recover_setup setup = { .engine = &daemon->engine,
                                   .ledger = &daemon->ledger,
                                   .store = daemon->store,
                                   .now_ns = daemon_now_ns(daemon),
                                   .foreign = foreign_now(daemon),
                                   .spec = spec_for,
                                   .back = back_for,
                                   .gone = gone_for,
                                   .context = daemon };
    r = recover(&setup, err);
    if (r == 0)
        r = reattach_all(daemon, err);
    daemon->ask_gates = true;
    daemon_want_pass(daemon);
    return r;
}

void life_end(struct daemon *daemon)
{
    if (daemon->executor_self)
        daemon->backend->executor->close(daemon->executor_self);
    daemon->executor_self = NULL;
    if (daemon->alive) {
        engine_release(&daemon->engine);
        ledger_release(&daemon->ledger);
        daemon->ledger = (struct ledger){ 0 };
    }
    daemon->alive = false;
    gates_release(&daemon->gates);
    intake_release(&daemon->intake);
    arena_release(&daemon->life);
    arena_reset(&daemon->pass);
}
