/* engine_run.c - run a list of jobs with the real engine and the simulated cluster. */
#include "support/engine_run.h"

#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "store/store.h"
#include "support/state_check.h"

static uint64_t hash_double(uint64_t hash, double number)
{
    uint64_t word;
    memcpy(&word, &number, sizeof word);
    return hash_word(hash, word);
}

uint64_t engine_run_hash_event(uint64_t hash, const struct view *view,
                               const struct event *event)
{
    hash = hash_word(hash, (uint64_t)event->at_ns);
    hash = hash_word(hash, event->kind);
    switch (event->kind) {
    case EVENT_REJECTED:
        return hash_word(hash, event->spec->id);
    case EVENT_NODE_DOWN:
    case EVENT_NODE_UP:
    case EVENT_FOREIGN:
        return hash_word(hash, event->node);
    case EVENT_CLOSED:
    case EVENT_RESERVED:
    case EVENT_BOUNDARY:
        return hash;
    default:
        break;
    }
    hash = hash_word(hash, view->jobs[event->job].id);
    switch (event->kind) {
    case EVENT_PLACED:
    case EVENT_RESIZING:
        for (uint32_t i = 0; i < event->seat_count; i++) {
            hash = hash_word(hash, event->seats[i].node);
            hash = hash_word(hash, event->seats[i].gpus);
        }
        return hash_word(hash, event->pending_count);
    case EVENT_RECALLED:
        return hash_word(
            hash_word(hash, event->rule),
            event->beneficiary == JOB_NONE ? 0 : view->jobs[event->beneficiary].id);
    case EVENT_STOPPED:
    case EVENT_LOST:
    case EVENT_FINISHED:
        return hash_double(hash, event->steps);
    case EVENT_LEVELLED:
        return hash_word(hash, event->level);
    default:
        return hash;
    }
}

/* --- listeners ------------------------------------------------------------------- */

static void admit_job(void *self, const struct view *view, const struct event *event)
{
    struct engine_run *run = self;
    if (event->kind != EVENT_SUBMITTED)
        return;
    const struct job_spec *spec = run->arrived[run->admitted_count++];
    struct sim_truth truth = { .steps = spec->steps,
                               .pause_ns = spec->pause_ns,
                               .load_ns = spec->load_ns,
                               .ckpt_ns = spec->ckpt_ns,
                               .fails = spec->fails,
                               .curve = spec->curve.family != LEARNING_NONE
                                            ? &spec->curve
                                            : NULL };
    if (run->setup->hidden && spec->kind)
        truth.kind = throughput_find(run->setup->hidden, spec->kind);
    sim_cluster_admit(&run->sim, event->job, &truth);
}

static bool is_of_job(const struct event *event)
{
    return event->kind != EVENT_REJECTED && event->job != JOB_NONE &&
           event->kind != EVENT_NODE_DOWN && event->kind != EVENT_NODE_UP &&
           event->kind != EVENT_RESERVED && event->kind != EVENT_BOUNDARY;
}

static void count_event(struct engine_run *run, const struct view *view,
                        const struct event *event)
{
    run->accepted += event->kind == EVENT_SUBMITTED;
    run->rejected += event->kind == EVENT_REJECTED;
    if (!is_of_job(event) || view->jobs[event->job].state != JOB_FREE)
        return;
    run->ended++;
    run->ends[view->jobs[event->job].id]++;
}

/* With BERTH_EVENTS set: print a line per event, to find the cause of a failure. */
static void print_event(const struct view *view, const struct event *event)
{
    printf("# %.9f %s", (double)event->at_ns * 1e-9, event_name(event->kind));
    if (is_of_job(event))
        printf(" %llu/%u", (unsigned long long)view->jobs[event->job].id,
               view->jobs[event->job].attempt);
    if (event->kind == EVENT_PLACED)
        for (uint32_t i = 0; i < event->seat_count; i++)
            printf(" n%u:%llx", event->seats[i].node,
                   (unsigned long long)event->seats[i].gpus);
    if (event->kind == EVENT_RECALLED && event->beneficiary != JOB_NONE)
        printf(" for %llu", (unsigned long long)view->jobs[event->beneficiary].id);
    puts("");
}

static bool is_outcome(enum event_kind kind)
{
    return kind == EVENT_SUBMITTED || kind == EVENT_STARTED || kind == EVENT_STOPPED ||
           kind == EVENT_FINISHED || kind == EVENT_FAILED || kind == EVENT_LOST ||
           kind == EVENT_DROPPED;
}

static void observe_event(void *self, const struct view *view,
                          const struct event *event)
{
    struct engine_run *run = self;
    count_event(run, view, event);
    run->hash = engine_run_hash_event(run->hash, view, event);
    if (is_outcome(event->kind))
        run->outcome +=
            hash_word(hash_word(hash_word(0, (uint64_t)event->at_ns), event->kind),
                      view->jobs[event->job].id);
    if (getenv("BERTH_EVENTS"))
        print_event(view, event);
    if (!run->setup->unchecked)
        state_check(&run->engine.state);
    if (run->setup->observer.event)
        run->setup->observer.event(run->setup->observer.self, view, event);
}

/* --- what comes next --------------------------------------------------------------- */

static void store_submission(struct engine_run *run, const struct job_spec *spec,
                             bool fits)
{
    struct error err = { "" };
    struct store_job row = { .id = spec->id,
                             .user = "somebody",
                             .class = spec->class,
                             .gpus = spec->gpus,
                             .submit_ns = spec->submit_ns,
                             .rejected = fits ? NULL : "it does not fit",
                             .request = "{}" };
    if (store_add_job(run->store, &row, &err) < 0)
        fail_msg("%s", err.text);
}

struct event *engine_run_add_event(struct engine_run *run, enum event_kind kind,
                                   job_id job, int64_t now_ns)
{
    struct event *event = outbox_add(&run->outboxes[run->reading]);
    event->at_ns = now_ns;
    event->kind = kind;
    event->job = job;
    if (job != JOB_NONE)
        event->generation = run->engine.state.jobs[job].generation;
    return event;
}

void engine_run_set_policy(struct engine_run *run, const struct policy *policy,
                           const char *settings)
{
    struct error err = { "" };
    run->policy = policy;
    run->settings = settings;
    if (engine_set_policy(&run->engine, policy, settings, &err) < 0)
        fail_msg("%s", err.text);
}

static void submit_job(struct engine_run *run, const struct job_spec *truth)
{
    struct job_spec spec = *truth;
    if (run->setup->beliefs)
        spec.steps *= run->setup->beliefs[run->next];
    spec.id = spec.id ? spec.id : run->next + 1;
    run->next++;
    struct job *job = arena_new(&run->instant, struct job);
    struct event *event = outbox_add(&run->outboxes[run->reading]);
    event->at_ns = truth->submit_ns;
    event->job = JOB_NONE;
    event->spec = job;
    event->kind = EVENT_SUBMITTED;
    bool fits = admission_make_job(&run->admission, &spec, job, NULL) == 0;
    const struct interference *other = run->setup->interference;
    if (fits && other && other->arrives)
        other->arrives(other->self, run, job);
    if (run->store)
        store_submission(run, &spec, fits);
    if (fits) {
        run->arrived[run->arrived_count++] = truth;
    } else {
        event->kind = EVENT_REJECTED;
        *job = (struct job){ .id = spec.id, .class = spec.class, .gpus = spec.gpus };
    }
}

static void close_submissions(struct engine_run *run, int64_t now_ns)
{
    struct event *event = outbox_add(&run->outboxes[run->reading]);
    *event = (struct event){ .at_ns = now_ns, .kind = EVENT_CLOSED, .job = JOB_NONE };
    run->closed = true;
}

/* Outages are put into the queue of the simulated cluster, one change at a time. */
static void schedule_outage(struct engine_run *run, const struct outage *outage,
                            int64_t at_ns)
{
    struct sim_cluster *sim = &run->sim;
    uint32_t id = sim->view->job_max + outage->node;
    timer_heap_set(&sim->due, id, at_ns);
}

static void apply_outages(struct engine_run *run, int64_t now_ns)
{
    for (uint32_t i = 0; i < run->setup->outage_count; i++) {
        const struct outage *outage = &run->setup->outages[i];
        uint32_t id = run->sim.view->job_max + outage->node;
        bool changes =
            now_ns == outage->down_ns || (outage->up_ns && now_ns == outage->up_ns);
        if (changes) {
            timer_heap_remove(&run->sim.due, id); /* its own random failure */
            if (now_ns == outage->down_ns && outage->up_ns)
                schedule_outage(run, outage, outage->up_ns);
        }
    }
}

static int64_t next_time(struct engine_run *run)
{
    int64_t at_ns = engine_wake_ns(&run->engine);
    if (run->next < run->setup->spec_count &&
        run->setup->specs[run->next].submit_ns < at_ns)
        at_ns = run->setup->specs[run->next].submit_ns;
    const struct interference *other = run->setup->interference;
    if (other && other->next_ns && other->next_ns(other->self) < at_ns)
        at_ns = other->next_ns(other->self);
    sim_cluster_communicate(&run->sim, at_ns);
    int64_t next_ns = sim_cluster_next_ns(&run->sim);
    return next_ns < at_ns ? next_ns : at_ns;
}

static bool is_over(const struct engine_run *run)
{
    if (run->next < run->setup->spec_count)
        return false;
    const struct interference *other = run->setup->interference;
    if (other && other->next_ns && other->next_ns(other->self) < INT64_MAX)
        return false;
    if (run->engine.state.live_count == 0)
        return true;
    return sim_cluster_is_quiet(&run->sim) && run->engine.wake_ns == INT64_MAX &&
           run->engine.calendar_ns == INT64_MAX;
}

/* Whether the event of an executor may be repeated; progress reports are all new. */
static bool is_repeatable(enum event_kind kind)
{
    return kind >= EVENT_STARTED && kind <= EVENT_LOST && kind != EVENT_PROGRESS;
}

static void repeat_events(struct outbox *outbox)
{
    struct outbox twice = { 0 };
    for (uint32_t i = 0; i < outbox->count; i++)
        for (int n = 0; n < 1 + is_repeatable(outbox->events[i].kind); n++)
            *outbox_add(&twice) = outbox->events[i];
    outbox_release(outbox);
    *outbox = twice;
}

static void run_steps(struct engine_run *run, int64_t now_ns)
{
    do {
        struct error err = { "" };
        struct outbox *inbox = &run->outboxes[run->reading];
        if (run->setup->repeats)
            repeat_events(inbox);
        run->reading ^= 1;
        run->sim.outbox = &run->outboxes[run->reading];
        if (engine_step(&run->engine, now_ns, inbox->events, inbox->count, &err) < 0)
            fail_msg("%s", err.text);
        inbox->count = 0;
    } while (run->outboxes[run->reading].count > 0);
    run->arrived_count = run->admitted_count = 0;
    arena_reset(&run->instant);
}

static void attach_observers(struct engine_run *run)
{
    struct engine *engine = &run->engine;
    engine_add_observer(engine,
                        (struct engine_observer){ .event = admit_job, .self = run });
    if (!run->store)
        engine_add_observer(engine, (struct engine_observer){ .event = metrics_event,
                                                              .self = &run->metrics });
    engine_add_observer(engine, (struct engine_observer){ .event = sim_cluster_event,
                                                          .self = &run->sim,
                                                          .kinds = SIM_CLUSTER_KINDS });
    engine_add_observer(
        engine, (struct engine_observer){ .event = observe_event, .self = run });
    if (!run->store)
        return;
    engine_add_observer(engine, (struct engine_observer){ .event = ledger_event,
                                                          .self = &run->ledger });
    engine_add_observer(engine, (struct engine_observer){ .event = store_event,
                                                          .commit = store_commit,
                                                          .self = run->store });
}

void engine_run_open_engine(struct engine_run *run)
{
    const struct engine_run_setup *setup = run->setup;
    struct error err = { "" };
    arena_init(&run->engine_arena, 0);
    struct engine_setup engine = { .cluster = setup->cluster,
                                   .rates =
                                       setup->rates ? setup->rates : &run->no_rates,
                                   .learns = setup->hidden != NULL,
                                   .policy = run->policy,
                                   .settings = run->settings,
                                   .flow = setup->flow,
                                   .flow_settings = setup->flow_settings,
                                   .executor = &executor_sim,
                                   .executor_self = &run->sim,
                                   .job_max = setup->spec_count ? setup->spec_count : 1,
                                   .seed = setup->seed };
    if (engine_init(&run->engine, &run->engine_arena, &engine, &err) < 0)
        fail_msg("%s", err.text);
    attach_observers(run);
    if (!run->store)
        return;
    store_attach(run->store, &run->engine.state);
    ledger_init(&run->ledger, &run->engine_arena, &run->engine.state.view, NULL);
    run->ledger.observe = store_write_entry;
    run->ledger.context = run->store;
    run->ledger.pairs.observe = store_write_pair;
    run->ledger.pairs.context = run->store;
}

static void open_run(struct engine_run *run, const struct engine_run_setup *setup)
{
    struct error err = { "" };
    memset(run, 0, sizeof *run);
    run->setup = setup;
    run->policy = setup->policy;
    run->settings = setup->settings;
    arena_init(&run->arena, 0);
    arena_init(&run->instant, 0);
    throughput_init(&run->no_rates, setup->cluster);
    run->no_rates.rules.by_consent = setup->hidden != NULL;
    admission_init(&run->admission, setup->cluster,
                   setup->rates ? setup->rates : &run->no_rates);
    if (setup->store_path && store_open(&run->store, setup->store_path, &err) < 0)
        fail_msg("%s", err.text);
    engine_run_open_engine(run);
    const struct view *view = &run->engine.state.view;
    sim_cluster_init(&run->sim, &run->arena, view, &run->outboxes[0], &setup->faults,
                     setup->seed);
    if (setup->hidden) {
        run->sim.hidden = setup->hidden;
        admission_learn(&run->admission, view->rates, &run->engine.state.rates);
    }
    metrics_init(&run->metrics, &run->arena, view, 0, UINT64_MAX);
    run->arrived =
        arena_array(&run->arena, const struct job_spec *, setup->spec_count + 1);
    run->ends = arena_array(&run->arena, uint8_t, setup->spec_count + 2);
    for (uint32_t i = 0; i < setup->outage_count; i++)
        schedule_outage(run, &setup->outages[i], setup->outages[i].down_ns);
}

void engine_run_play(struct engine_run *run, const struct engine_run_setup *setup)
{
    open_run(run, setup);
    uint32_t turns_max = setup->turns_max ? setup->turns_max : 20000;
    int64_t last_ns = 0;
    for (uint32_t turn = 0; !is_over(run); turn++) {
        int64_t now_ns = next_time(run);
        if (turn == turns_max || now_ns == INT64_MAX) {
            run->gave_up = true;
            break;
        }
        last_ns = now_ns = now_ns < last_ns ? last_ns : now_ns;
        sim_cluster_advance(&run->sim, now_ns);
        apply_outages(run, now_ns);
        while (run->next < setup->spec_count &&
               setup->specs[run->next].submit_ns <= now_ns)
            submit_job(run, &setup->specs[run->next]);
        if (run->next == setup->spec_count && !run->closed)
            close_submissions(run, now_ns);
        if (setup->interference)
            setup->interference->before(setup->interference->self, run, now_ns);
        run_steps(run, now_ns);
        if (setup->interference)
            setup->interference->after(setup->interference->self, run, now_ns);
    }
    metrics_end(&run->metrics, &run->engine.state.view);
}

void engine_run_release(struct engine_run *run)
{
    engine_release(&run->engine);
    admission_release(&run->admission);
    sim_cluster_release(&run->sim);
    metrics_release(&run->metrics);
    outbox_release(&run->outboxes[0]);
    outbox_release(&run->outboxes[1]);
    if (run->store)
        ledger_release(&run->ledger);
    store_close(run->store);
    arena_release(&run->engine_arena);
    arena_release(&run->instant);
    arena_release(&run->arena);
}
