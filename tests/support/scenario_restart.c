/* scenario_restart.c - the engine of a scenario, its crashes and its recovery. */
#include "support/scenario_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <stdio.h>

#include "base/error.h"
#include "engine/recover.h"
#include "model/cluster.h"
#include "store/rows.h"
#include "store/store.h"
#include "support/compare.h"
#include "support/state_check.h"

/* --- observing the engine ----------------------------------------------------------------- */

static void log_event(struct scenario *s, const struct view *view,
                      const struct event *event)
{
    char more[120] = "";
    size_t used = 0;
    if (event->kind == EVENT_PLACED || event->kind == EVENT_RESIZING)
        for (uint32_t i = 0; i < event->seat_count && used < sizeof more; i++)
            used += (size_t)snprintf(more + used, sizeof more - used, " n%u:%" PRIx64,
                                     event->seats[i].node, event->seats[i].gpus);
    if (event->kind == EVENT_PLACED && event->beside != JOB_NONE && used < sizeof more)
        snprintf(more + used, sizeof more - used, " beside %" PRIu64,
                 scenario_id_at(view, event->beside));
    if (event->kind == EVENT_RECALLED)
        snprintf(more, sizeof more, " by %s for %" PRIu64, rule_name(event->rule),
                 scenario_id_at(view, event->beneficiary));
    if (event->kind == EVENT_PROGRESS || event->kind == EVENT_STOPPED ||
        event->kind == EVENT_LOST || event->kind == EVENT_LEASE_DONE)
        snprintf(more, sizeof more, " %.6g steps at %.4g/s", event->steps,
                 event->rate_per_s);
    if (!scenario_is_of_job(event))
        scenario_log(s, "%s n%u %" PRIx64, event_name(event->kind),
                     event->kind >= EVENT_NODE_DOWN && event->kind <= EVENT_FOREIGN
                         ? event->node
                         : 0,
                     event->kind == EVENT_FOREIGN ? event->gpus : 0);
    else
        scenario_log(s, "%s %" PRIu64 "/%d%s", event_name(event->kind),
                     view->jobs[event->job].id, (int)view->jobs[event->job].attempt,
                     more);
}

static void tamper_with_state(struct scenario *s, const struct view *view,
                              const struct event *event)
{
    struct state *state = &s->engine.state;
    struct job *job = &state->jobs[event->job];
    if (s->setup->defect == DEFECT_FREED_TWICE && event->kind == EVENT_STARTED &&
        job->gpus_now > 0 && !s->tampered) {
        const struct seat *seat = view_seats(view, event->job);
        state->free.rooms[seat->node].gpus |= seat->gpus;
        s->tampered = true;
    }
    if (s->setup->defect == DEFECT_MISCOUNTED && event->kind == EVENT_STOPPED &&
        job->state != JOB_FREE && !s->tampered) {
        job->served_ns++;
        s->tampered = true;
    }
}

static void observe_event(void *self, const struct view *view,
                          const struct event *event)
{
    struct scenario *s = self;
    log_event(s, view, event);
    s->counts.events++;
    if (event->kind == EVENT_PLACED || event->kind == EVENT_RESIZING)
        scenario_check_placed(s, view, event);
    if (scenario_is_of_job(event) && s->setup->defect)
        tamper_with_state(s, view, event);
    state_check(&s->engine.state);
    if (!scenario_is_of_job(event))
        return;
    if (s->observed_count == s->observed_room) {
        s->observed_room = s->observed_room ? 2 * s->observed_room : 64;
        s->observed = realloc(s->observed, s->observed_room * sizeof *s->observed);
        if (!s->observed)
            abort();
    }
    s->observed[s->observed_count++] = (struct observed_event){
        *event, view->jobs[event->job],
        event->kind == EVENT_RECALLED ? scenario_id_at(view, event->beneficiary) : 0
    };
}

static int crash(struct error *err)
{
    return error_set(err, -ECANCELED, "the daemon dies");
}

static int before_commit(void *self, struct error *err)
{
    struct scenario *s = self;
    return s->crash == CRASH_BEFORE && s->commits == 0 ? crash(err) : 0;
}

static int commit_store(void *self, struct error *err)
{
    struct scenario *s = self;
    if (s->setup->defect == DEFECT_NO_COMMIT && !s->tampered && s->observed_count > 2 &&
        s->line_count > 30) {
        store_rollback(s->store);
        s->tampered = true;
        return 0;
    }
    if (s->setup->defect == DEFECT_TOLD_EARLY && s->crash == CRASH_AMID)
        return 0; /* and the crash follows */
    return store_commit(s->store, err);
}

/* After the store: what was observed is durable now. */
static int after_commit(void *self, struct error *err)
{
    struct scenario *s = self;
    s->commits++;
    s->counts.commits++;
    s->next_durable = s->next;
    for (uint32_t i = 0; i < s->observed_count; i++) {
        scenario_account_for(s, &s->observed[i]);
        scenario_witness(s, &s->observed[i]);
    }
    s->observed_count = 0;
    return s->crash == CRASH_AFTER ? crash(err) : 0;
}

static void ignore_event(void *self, const struct view *view, const struct event *event)
{
}

static void store_observed(void *self, const struct view *view,
                           const struct event *event)
{
    struct scenario *s = self;
    store_event(s->store, view, event);
}

/* --- orders, during which the engine may crash ---------------------------------------------- */

static int count_order(struct scenario *s, struct error *err)
{
    return s->crash == CRASH_AMID && s->orders-- == 0 ? crash(err) : 0;
}

static int order_start(void *self, const struct lease *lease, struct error *err)
{
    struct scenario *s = self;
    int r = count_order(s, err);
    return r < 0 ? r : executor_faulty.start(&s->faulty, lease, err);
}

static int order_stop(void *self, job_id job, int64_t grace_ns, struct error *err)
{
    struct scenario *s = self;
    int r = count_order(s, err);
    return r < 0 ? r : executor_faulty.stop(&s->faulty, job, grace_ns, err);
}

static int order_cancel(void *self, job_id job, struct error *err)
{
    struct scenario *s = self;
    int r = count_order(s, err);
    return r < 0 ? r : executor_faulty.cancel(&s->faulty, job, err);
}

static int order_resize(void *self, const struct lease *lease, struct error *err)
{
    struct scenario *s = self;
    int r = count_order(s, err);
    return r < 0 ? r : executor_faulty.resize(&s->faulty, lease, err);
}

static int order_renew(void *self, job_id job, uint64_t steps_max, bool together,
                       struct error *err)
{
    struct scenario *s = self;
    int r = count_order(s, err);
    return r < 0 ? r : executor_faulty.renew(&s->faulty, job, steps_max, together, err);
}

static const struct executor resizing = { .name = "faulty",
                                          .start = order_start,
                                          .stop = order_stop,
                                          .cancel = order_cancel,
                                          .resize = order_resize,
                                          .renew = order_renew };
static const struct executor restarting = { .name = "faulty",
                                            .start = order_start,
                                            .stop = order_stop,
                                            .cancel = order_cancel,
                                            .renew = order_renew };

/* --- start and recovery ------------------------------------------------------------------ */

void scenario_open_engine(struct scenario *s, struct engine *engine,
                          struct ledger *ledger, struct arena *engine_arena,
                          bool listens)
{
    struct error err = { "" };
    arena_init(engine_arena, 0);
    struct engine_setup setup = { .cluster = &s->world.cluster,
                                  .rates = &s->world.rates,
                                  .policy = s->policy,
                                  .settings = s->settings,
                                  .flow = s->flow,
                                  .executor = s->resizes ? &resizing : &restarting,
                                  .executor_self = s,
                                  .job_max = JOBS_MAX,
                                  .seed = s->setup->seed };
    if (engine_init(engine, engine_arena, &setup, &err) < 0)
        scenario_broken("%s", err.text);
    ledger_init(ledger, engine_arena, &engine->state.view, NULL);
    if (!listens)
        return;
    ledger->observe = store_write_entry;
    ledger->context = s->store;
    engine_add_observer(engine, (struct engine_observer){ .event = observe_event,
                                                          .commit = before_commit,
                                                          .self = s });
    engine_add_observer(
        engine, (struct engine_observer){ .event = ledger_event, .self = ledger });
    engine_add_observer(engine, (struct engine_observer){ .event = store_observed,
                                                          .commit = commit_store,
                                                          .self = s });
    engine_add_observer(engine,
                        (struct engine_observer){ .event = ignore_event,
                                                  .commit = after_commit,
                                                  .self = s,
                                                  .kinds = UINT64_C(1) << EVENT_WAKE });
    store_attach(s->store, &engine->state);
}

static int find_spec(void *context, const struct stored_job *kept, struct job *ret_job,
                     const void **ret_tag, struct error *err)
{
    struct scenario *s = context;
    struct job_spec spec = s->world.specs[kept->job.id - 1];
    if (s->setup->defect == DEFECT_FORGOTTEN)
        return error_set(err, -ERANGE, "nobody wants it any more");
    spec.steps *= s->world.beliefs[kept->job.id - 1];
    spec.id = kept->job.id;
    spec.submit_ns = kept->job.submit_ns;
    return admission_make_job(&s->admission, &spec, ret_job, err);
}

static void ignore_recovered(void *context, const struct stored_job *kept,
                             const void *tag, job_id job)
{
}

static void give_up_job(void *context, const struct stored_job *kept, const char *why)
{
    struct scenario *s = context;
    store_fail_job(s->store, kept->job.id, s->now_ns, why);
}

static void recover_engine(struct scenario *s, struct engine *engine,
                           struct ledger *ledger, const struct state *known)
{
    struct error err = { "" };
    struct recover_setup setup = { .engine = engine,
                                   .ledger = ledger,
                                   .store = s->store,
                                   .now_ns = s->now_ns,
                                   .node_down = known->node_down,
                                   .foreign = known->foreign,
                                   .spec = find_spec,
                                   .back = ignore_recovered,
                                   .gone = give_up_job,
                                   .context = s };
    if (recover_state(&setup, &err) < 0)
        scenario_broken("as it starts again: %s", err.text);
    engine->state.view.closed = known->view.closed;
    state_check(&engine->state);
}

static void reattach_job(struct scenario *s, job_id id)
{
    const struct job *job = &s->engine.state.jobs[id];
    struct lease lease =
        engine_lease(&s->engine, id, job->state == JOB_PLACED, &s->instant);
    int64_t left_ns = job->recalled_ns + job->grace_ns - s->now_ns;
    left_ns = job->leaving || left_ns < 0 ? 0 : left_ns;
    faulty_reattach(&s->faulty, &lease, job->state == JOB_STOPPING, left_ns);
}

/* After all jobs are reattached: order resizes, next starts and cancellations again. */
static void reattach_next_placement(struct scenario *s, job_id id)
{
    const struct job *job = &s->engine.state.jobs[id];
    if (job->leaving)
        executor_faulty.cancel(&s->faulty, id, NULL);
    else if (job->seats.count > 0 && job->next.count > 0) {
        struct lease lease = engine_lease(&s->engine, id, true, &s->instant);
        const struct faulty_attempt *there =
            faulty_find(&s->faulty, job->id, job->attempt);
        bool moved = there && faulty_has_moved(&s->faulty, there);
        if (!job_runs(job))
            executor_faulty.start(&s->faulty, &lease, NULL);
        else if (!moved)
            executor_faulty.resize(&s->faulty, &lease, NULL);
    }
}

/* Recover a twin before a step that will not be committed. */
void scenario_make_twin(struct scenario *s, struct scenario_twin *twin)
{
    struct error err = { "" };
    scenario_open_engine(s, &twin->engine, &twin->ledger, &twin->engine_arena, false);
    recover_engine(s, &twin->engine, &twin->ledger, &s->engine.state);
    if (compare_states(&s->engine.state, &twin->engine.state, &err) < 0 ||
        compare_ledgers(&s->ledger, &twin->ledger, &err) < 0)
        scenario_broken("built from the store: %s", err.text);
}

void scenario_close_engine(struct scenario *s, struct scenario_twin *closed)
{
    s->counts.decisions += closed->engine.decision_count;
    engine_release(&closed->engine);
    ledger_release(&closed->ledger);
    arena_release(&closed->engine_arena);
}

static void reopen_store(struct scenario *s)
{
    struct error err = { "" };
    store_close(s->store);
    s->store = NULL;
    if (store_open(&s->store, s->path, &err) < 0)
        scenario_broken("the store cannot be opened again: %s", err.text);
}

/* Restart after a crash; the state must be that of 'twin', or of the old engine (NULL). */
void scenario_restart(struct scenario *s, const struct scenario_twin *twin)
{
    struct error err = { "" };
    struct scenario_twin old = { s->engine, s->ledger,
                                 s->engine_arena }; /* their arrays stay in place */
    const struct scenario_twin *was = twin ? twin : &old;
    scenario_log(s, "the daemon dies, and starts again");
    s->counts.rebuildings++;
    faulty_disconnect(&s->faulty);
    s->inbox.count = 0;
    s->observed_count = 0;
    s->next = s->next_durable;
    store_rollback(s->store);
    if (scenario_draw(s, 25))
        reopen_store(s);
    scenario_open_engine(s, &s->engine, &s->ledger, &s->engine_arena, true);
    recover_engine(s, &s->engine, &s->ledger, &was->engine.state);
    if (compare_states(&was->engine.state, &s->engine.state, &err) < 0 ||
        compare_ledgers(&was->ledger, &s->ledger, &err) < 0)
        scenario_broken("after the restart: %s", err.text);
    scenario_close_engine(s, &old);

    faulty_connect(&s->faulty, &s->engine.state.view);
    const struct state *state = &s->engine.state;
    for (job_id id = 0; id < state->job_count; id++)
        if (state->jobs[id].state >= JOB_PLACED)
            reattach_job(s, id);
    for (job_id id = 0; id < state->job_count; id++)
        if (state->jobs[id].state >= JOB_PLACED)
            reattach_next_placement(s, id);
    faulty_end_reattach(&s->faulty, state->node_down, state->foreign);
}
