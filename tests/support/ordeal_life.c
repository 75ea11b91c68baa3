/* ordeal_life.c - a life of the daemon in a world: from the store, to its death. */
#include "support/ordeal_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <stdio.h>

#include "base/error.h"
#include "engine/recover.h"
#include "model/cluster.h"
#include "store/rows.h"
#include "store/store.h"
#include "support/same.h"

/* --- listening to the engine ------------------------------------------------------------- */

static void note_event(struct ordeal *o, const struct view *view,
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
                 ordeal_id_at(view, event->beside));
    if (event->kind == EVENT_RECALLED)
        snprintf(more, sizeof more, " by %s for %" PRIu64, rule_name(event->rule),
                 ordeal_id_at(view, event->for_whom));
    if (event->kind == EVENT_PROGRESS || event->kind == EVENT_STOPPED ||
        event->kind == EVENT_LOST || event->kind == EVENT_LEASE_DONE)
        snprintf(more, sizeof more, " %.6g steps at %.4g/s", event->steps,
                 event->rate_per_s);
    if (!ordeal_is_of_job(event))
        ordeal_note(o, "%s n%u %" PRIx64, event_name(event->kind),
                    event->kind >= EVENT_NODE_DOWN && event->kind <= EVENT_FOREIGN
                        ? event->node
                        : 0,
                    event->kind == EVENT_FOREIGN ? event->gpus : 0);
    else
        ordeal_note(o, "%s %" PRIu64 "/%d%s", event_name(event->kind),
                    view->jobs[event->job].id, (int)view->jobs[event->job].attempt,
                    more);
}

static void tamper(struct ordeal *o, const struct view *view, const struct event *event)
{
    struct state *state = &o->engine.state;
    struct job *job = &state->jobs[event->job];
    if (o->setup->defect == DEFECT_FREED_TWICE && event->kind == EVENT_STARTED &&
        job->gpus_now > 0 && !o->tampered) {
        const struct seat *seat = view_seats(view, event->job);
        state->free.rooms[seat->node].gpus |= seat->gpus;
        o->tampered = true;
    }
    if (o->setup->defect == DEFECT_MISCOUNTED && event->kind == EVENT_STOPPED &&
        job->state != JOB_FREE && !o->tampered) {
        job->served_ns++;
        o->tampered = true;
    }
}

static void hear(void *self, const struct view *view, const struct event *event)
{
    struct ordeal *o = self;
    note_event(o, view, event);
    o->counts.events++;
    if (event->kind == EVENT_PLACED || event->kind == EVENT_RESIZING)
        ordeal_check_placed(o, view, event);
    if (ordeal_is_of_job(event) && o->setup->defect)
        tamper(o, view, event);
    state_check(&o->engine.state);
    if (!ordeal_is_of_job(event))
        return;
    if (o->told_count == o->told_room) {
        o->told_room = o->told_room ? 2 * o->told_room : 64;
        o->told = realloc(o->told, o->told_room * sizeof *o->told);
        if (!o->told)
            abort();
    }
    o->told[o->told_count++] = (struct told){ *event, view->jobs[event->job],
                                              event->kind == EVENT_RECALLED
                                                  ? ordeal_id_at(view, event->for_whom)
                                                  : 0 };
}

static int die(struct error *err)
{
    return error_set(err, -ECANCELED, "the daemon dies");
}

static int before_commit(void *self, struct error *err)
{
    struct ordeal *o = self;
    return o->crash == CRASH_BEFORE && o->commits == 0 ? die(err) : 0;
}

static int commit_store(void *self, struct error *err)
{
    struct ordeal *o = self;
    if (o->setup->defect == DEFECT_NO_COMMIT && !o->tampered && o->told_count > 2 &&
        o->line_count > 30) {
        store_rollback(o->store);
        o->tampered = true;
        return 0;
    }
    if (o->setup->defect == DEFECT_TOLD_EARLY && o->crash == CRASH_AMID)
        return 0; /* and soon it is too late */
    return store_commit(o->store, err);
}

/* Behind the store: what was told is durable. */
static int after_commit(void *self, struct error *err)
{
    struct ordeal *o = self;
    o->commits++;
    o->counts.commits++;
    o->next_durable = o->next;
    for (uint32_t i = 0; i < o->told_count; i++) {
        ordeal_account_for(o, &o->told[i]);
        ordeal_witness(o, &o->told[i]);
    }
    o->told_count = 0;
    return o->crash == CRASH_AFTER ? die(err) : 0;
}

static void hear_nothing(void *self, const struct view *view, const struct event *event)
{
}

static void store_hear(void *self, const struct view *view, const struct event *event)
{
    struct ordeal *o = self;
    store_event(o->store, view, event);
}

/* --- the executor, which may be the last to hear of anything -------------------------------- */

static int one_order(struct ordeal *o, struct error *err)
{
    return o->crash == CRASH_AMID && o->orders-- == 0 ? die(err) : 0;
}

static int tell_start(void *self, const struct lease *lease, struct error *err)
{
    struct ordeal *o = self;
    int r = one_order(o, err);
    return r < 0 ? r : executor_ground.start(&o->ground, lease, err);
}

static int tell_stop(void *self, job_id job, int64_t grace_ns, struct error *err)
{
    struct ordeal *o = self;
    int r = one_order(o, err);
    return r < 0 ? r : executor_ground.stop(&o->ground, job, grace_ns, err);
}

static int tell_cancel(void *self, job_id job, struct error *err)
{
    struct ordeal *o = self;
    int r = one_order(o, err);
    return r < 0 ? r : executor_ground.cancel(&o->ground, job, err);
}

static int tell_resize(void *self, const struct lease *lease, struct error *err)
{
    struct ordeal *o = self;
    int r = one_order(o, err);
    return r < 0 ? r : executor_ground.resize(&o->ground, lease, err);
}

static int tell_renew(void *self, job_id job, uint64_t steps_max, bool together,
                      struct error *err)
{
    struct ordeal *o = self;
    int r = one_order(o, err);
    return r < 0 ? r : executor_ground.renew(&o->ground, job, steps_max, together, err);
}

static const struct executor resizing = { .name = "told",
                                          .start = tell_start,
                                          .stop = tell_stop,
                                          .cancel = tell_cancel,
                                          .resize = tell_resize,
                                          .renew = tell_renew };
static const struct executor restarting = { .name = "told",
                                            .start = tell_start,
                                            .stop = tell_stop,
                                            .cancel = tell_cancel,
                                            .renew = tell_renew };

/* --- a life of the daemon --------------------------------------------------------------- */

void ordeal_begin_life(struct ordeal *o, struct engine *engine, struct ledger *ledger,
                       struct arena *life, bool listens)
{
    struct error err = { "" };
    arena_init(life, 0);
    struct engine_setup setup = { .cluster = &o->world.cluster,
                                  .rates = &o->world.rates,
                                  .policy = o->policy,
                                  .settings = o->settings,
                                  .flow = o->flow,
                                  .executor = o->resizes ? &resizing : &restarting,
                                  .executor_self = o,
                                  .job_max = JOBS_MAX,
                                  .seed = o->setup->seed };
    if (engine_init(engine, life, &setup, &err) < 0)
        ordeal_broken("%s", err.text);
    ledger_init(ledger, life, &engine->state.view, NULL);
    if (!listens)
        return;
    ledger->note = store_entry;
    ledger->context = o->store;
    engine_listen(
        engine, (struct listener){ .event = hear, .commit = before_commit, .self = o });
    engine_listen(engine, (struct listener){ .event = ledger_event, .self = ledger });
    engine_listen(engine, (struct listener){
                              .event = store_hear, .commit = commit_store, .self = o });
    engine_listen(engine, (struct listener){ .event = hear_nothing,
                                             .commit = after_commit,
                                             .self = o,
                                             .kinds = 1u << EVENT_WAKE });
    store_attach(o->store, &engine->state);
}

static int spec_for(void *context, const struct kept_job *kept, struct job *ret_job,
                    const void **ret_tag, struct error *err)
{
    struct ordeal *o = context;
    struct job_spec spec = o->world.specs[kept->job.id - 1];
    if (o->setup->defect == DEFECT_FORGOTTEN)
        return error_set(err, -ERANGE, "nobody wants it any more");
    spec.steps *= o->world.beliefs[kept->job.id - 1];
    spec.id = kept->job.id;
    spec.submit_ns = kept->job.submit_ns;
    return intake_job(&o->intake, &spec, ret_job, err);
}

static void back_for(void *context, const struct kept_job *kept, const void *tag,
                     job_id job)
{
}

static void gone_for(void *context, const struct kept_job *kept, const char *why)
{
    struct ordeal *o = context;
    store_give_up(o->store, kept->job.id, o->now_ns, why);
}

static void bring_back(struct ordeal *o, struct engine *engine, struct ledger *ledger,
                       const struct state *known)
{
    struct error err = { "" };
    struct recover_setup setup = { .engine = engine,
                                   .ledger = ledger,
                                   .store = o->store,
                                   .now_ns = o->now_ns,
                                   .node_down = known->node_down,
                                   .foreign = known->foreign,
                                   .spec = spec_for,
                                   .back = back_for,
                                   .gone = gone_for,
                                   .context = o };
    if (recover(&setup, &err) < 0)
        ordeal_broken("as it starts again: %s", err.text);
    engine->state.view.closed = known->view.closed;
    state_check(&engine->state);
}

static void reattach(struct ordeal *o, job_id id)
{
    const struct job *job = &o->engine.state.jobs[id];
    struct lease lease =
        engine_lease(&o->engine, id, job->state == JOB_PLACED, &o->instant);
    int64_t left_ns = job->recalled_ns + job->grace_ns - o->now_ns;
    left_ns = job->leaving || left_ns < 0 ? 0 : left_ns;
    ground_reattach(&o->ground, &lease, job->state == JOB_STOPPING, left_ns);
}

/* Those who are to go elsewhere are told so once all are known; who is to die, then. */
static void reattach_next(struct ordeal *o, job_id id)
{
    const struct job *job = &o->engine.state.jobs[id];
    if (job->leaving)
        executor_ground.cancel(&o->ground, id, NULL);
    else if (job->seats.count > 0 && job->next.count > 0) {
        struct lease lease = engine_lease(&o->engine, id, true, &o->instant);
        const struct ground_attempt *there =
            ground_find(&o->ground, job->id, job->attempt);
        bool moved = there && ground_has_moved(&o->ground, there);
        if (!job_runs(job))
            executor_ground.start(&o->ground, &lease, NULL);
        else if (!moved)
            executor_ground.resize(&o->ground, &lease, NULL);
    }
}

/* What is durable now, before a step that will not be. */
void ordeal_make_twin(struct ordeal *o, struct twin *twin)
{
    struct error err = { "" };
    ordeal_begin_life(o, &twin->engine, &twin->ledger, &twin->life, false);
    bring_back(o, &twin->engine, &twin->ledger, &o->engine.state);
    if (same_state(&o->engine.state, &twin->engine.state, &err) < 0 ||
        same_ledger(&o->ledger, &twin->ledger, &err) < 0)
        ordeal_broken("built from the store: %s", err.text);
}

void ordeal_end_life(struct ordeal *o, struct twin *life)
{
    o->counts.decisions += life->engine.decision_count;
    engine_release(&life->engine);
    ledger_release(&life->ledger);
    arena_release(&life->life);
}

static void reopen_store(struct ordeal *o)
{
    struct error err = { "" };
    store_close(o->store);
    o->store = NULL;
    if (store_open(&o->store, o->path, &err) < 0)
        ordeal_broken("the store cannot be opened again: %s", err.text);
}

/* The daemon has died; 'twin': as it must be again, or NULL: as it was at the end. */
void ordeal_start_again(struct ordeal *o, const struct twin *twin)
{
    struct error err = { "" };
    struct twin old = { o->engine, o->ledger,
                        o->life }; /* their arrays stay in place */
    const struct twin *was = twin ? twin : &old;
    ordeal_note(o, "the daemon dies, and starts again");
    o->counts.rebuildings++;
    ground_cut(&o->ground);
    o->inbox.count = 0;
    o->told_count = 0;
    o->next = o->next_durable;
    store_rollback(o->store);
    if (ordeal_chance(o, 25))
        reopen_store(o);
    ordeal_begin_life(o, &o->engine, &o->ledger, &o->life, true);
    bring_back(o, &o->engine, &o->ledger, &was->engine.state);
    if (same_state(&was->engine.state, &o->engine.state, &err) < 0 ||
        same_ledger(&was->ledger, &o->ledger, &err) < 0)
        ordeal_broken("after the restart: %s", err.text);
    ordeal_end_life(o, &old);

    ground_meet(&o->ground, &o->engine.state.view);
    const struct state *state = &o->engine.state;
    for (job_id id = 0; id < state->job_count; id++)
        if (state->jobs[id].state >= JOB_PLACED)
            reattach(o, id);
    for (job_id id = 0; id < state->job_count; id++)
        if (state->jobs[id].state >= JOB_PLACED)
            reattach_next(o, id);
    ground_settle(&o->ground, state->node_down, state->foreign);
}
