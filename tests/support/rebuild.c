/* rebuild.c - an engine thrown away and built again from the store, compared. */
#include "support/run.h"

#include <math.h>

#include "base/error.h"
#include "engine/recover.h"
#include "store/rows.h"

/* --- what recovery asks for ------------------------------------------------------- */

static int spec_for(void *context, const struct kept_job *kept, struct job *ret_job,
                    struct error *err)
{
    struct run *run = context;
    uint64_t at = kept->job.id - 1;
    struct job_spec spec = run->setup->specs[at];
    if (run->setup->beliefs)
        spec.steps *= run->setup->beliefs[at];
    spec.id = kept->job.id;
    return intake_job(&run->intake, &spec, ret_job, err);
}

static void back_for(void *context, const struct kept_job *kept, job_id job)
{
    struct run *run = context;
    assert_true(run->engine.state.jobs[job].id == kept->job.id);
}

static void gone_for(void *context, const struct kept_job *kept, const char *why)
{
    fail_msg("job %llu: %s", (unsigned long long)kept->job.id, why);
}

/* --- the same as before -------------------------------------------------------------- */

static uint64_t id_of(const struct state *state, job_id job)
{
    return job == JOB_NONE ? 0 : state->jobs[job].id;
}

static void same_seats(const struct state *a, const struct seat_row *x,
                       const struct state *b, const struct seat_row *y)
{
    assert_int_equal(x->count, y->count);
    for (uint32_t i = 0; i < x->count; i++)
        assert_memory_equal(&a->seats[x->first + i], &b->seats[y->first + i],
                            sizeof *a->seats);
}

/* Field by field: what lies between them is anything. */
static bool same_part(const struct room_part *a, const struct room_part *b)
{
    return a->node == b->node && a->cpu_milli == b->cpu_milli &&
           a->mem_mib == b->mem_mib && a->gpus == b->gpus;
}

static bool has_promise(const struct state *state, job_id id, uint64_t victim,
                        const struct room_part *part)
{
    for (uint32_t p = state->jobs[id].promised_by; p != UINT32_MAX;
         p = state->promises[p].next_of_successor)
        if (state->jobs[state->promises[p].victim].id == victim &&
            same_part(&state->promises[p].part, part))
            return true;
    return false;
}

static uint32_t promise_count(const struct state *state, job_id id)
{
    uint32_t count = 0;
    for (uint32_t p = state->jobs[id].promised_by; p != UINT32_MAX;
         p = state->promises[p].next_of_successor)
        count++;
    return count;
}

static void same_promises(const struct state *a, job_id x, const struct state *b,
                          job_id y)
{
    assert_int_equal(promise_count(a, x), promise_count(b, y));
    for (uint32_t p = a->jobs[x].promised_by; p != UINT32_MAX;
         p = a->promises[p].next_of_successor)
        assert_true(
            has_promise(b, y, a->jobs[a->promises[p].victim].id, &a->promises[p].part));
}

static void same_losses(const struct state *a, const struct job *x,
                        const struct state *b, const struct job *y)
{
    assert_int_equal(x->loss_ring == UINT32_MAX, y->loss_ring == UINT32_MAX);
    if (x->loss_ring == UINT32_MAX)
        return;
    const struct loss_ring *p = &a->losses[x->loss_ring];
    const struct loss_ring *q = &b->losses[y->loss_ring];
    uint32_t count = p->count < LOSS_POINTS ? p->count : LOSS_POINTS;
    assert_int_equal(count, q->count < LOSS_POINTS ? q->count : LOSS_POINTS);
    for (uint32_t i = 1; i <= count; i++) {
        assert_near(p->steps[(p->count - i) % LOSS_POINTS],
                    q->steps[(q->count - i) % LOSS_POINTS], 1e-6);
        assert_near(p->losses[(p->count - i) % LOSS_POINTS],
                    q->losses[(q->count - i) % LOSS_POINTS], 1e-6);
    }
}

#define SAME(field) \
    do { \
        if (x->field != y->field) \
            fail_msg("job %llu, %s: %.17g was %.17g", (unsigned long long)x->id, \
                     #field, (double)y->field, (double)x->field); \
    } while (0)

static void same_one(const struct state *a, job_id x, const struct state *b, job_id y,
                     const char *what, uint64_t id)
{
    if (id_of(a, x) != id_of(b, y))
        fail_msg("job %llu, %s: %llu was %llu", (unsigned long long)id, what,
                 (unsigned long long)id_of(b, y), (unsigned long long)id_of(a, x));
}

static void same_job(const struct state *a, job_id i, const struct state *b, job_id k)
{
    const struct job *x = &a->jobs[i];
    const struct job *y = &b->jobs[k];
    SAME(state);
    SAME(class);
    SAME(attempt);
    SAME(gpus);
    SAME(gpus_min);
    SAME(gpus_max);
    SAME(nodes);
    SAME(cpu_milli);
    SAME(mem_mib);
    SAME(types);
    SAME(kind);
    SAME(entity);
    SAME(spread);
    SAME(leaving);
    SAME(type_best);
    SAME(rate_best_per_s);
    SAME(gpus_now);
    SAME(type_now);
    SAME(steps_total);
    SAME(steps);
    SAME(rate_per_s);
    SAME(submit_ns);
    SAME(since_ns);
    SAME(first_start_ns);
    SAME(waited_ns);
    SAME(served_ns);
    SAME(grace_ns);
    SAME(pause_ns);
    SAME(load_ns);
    SAME(ckpt_ns);
    SAME(preemptions);
    SAME(failures);
    SAME(weight);
    SAME(deadline_ns);
    SAME(level);
    if (x->state == JOB_RUNNING || x->state == JOB_LOADING)
        SAME(anchor_ns);
    if (x->state == JOB_STOPPING)
        SAME(recalled_ns);
    if (x->state >= JOB_PLACED) {
        SAME(steps_max);
        SAME(spread_now);
    }
    assert_true(x->loss == y->loss || (isnan(x->loss) && isnan(y->loss)));
    same_one(a, x->partner, b, y->partner, "partner", x->id);
    same_one(a, x->coming, b, y->coming, "coming", x->id);
    same_one(a, x->next_partner, b, y->next_partner, "next partner", x->id);
    same_seats(a, &x->seats, b, &y->seats);
    same_seats(a, &x->next, b, &y->next);
    same_promises(a, i, b, k);
    same_losses(a, x, b, y);
    uint32_t types = a->view.cluster->type_count;
    for (uint32_t t = 0; t < types; t++)
        assert_int_equal(a->served_ns[(size_t)i * types + t],
                         b->served_ns[(size_t)k * types + t]);
}

static void same_rooms(const struct state *a, const struct state *b)
{
    for (node_id n = 0; n < a->view.cluster->node_count; n++) {
        assert_int_equal(a->free.rooms[n].gpus, b->free.rooms[n].gpus);
        assert_int_equal(a->free.rooms[n].cpu_milli, b->free.rooms[n].cpu_milli);
        assert_int_equal(a->free.rooms[n].mem_mib, b->free.rooms[n].mem_mib);
        assert_int_equal(a->free.listed[n], b->free.listed[n]);
        assert_int_equal(a->foreign[n], b->foreign[n]);
    }
    assert_int_equal(a->free.gpu_count, b->free.gpu_count);
    assert_int_equal(a->live_count, b->live_count);
    assert_int_equal(a->waiting_count, b->waiting_count);
    assert_int_equal(a->seated_count, b->seated_count);
}

/* --- the ledger ------------------------------------------------------------------------ */

/* Entries that are in use; the others are in a list of free ones. */
static uint32_t open_entries(const struct ledger *ledger, struct arena *arena,
                             const struct ledger_entry ***ret_entries)
{
    bool *is_free = arena_array(arena, bool, ledger->entry_used + 1);
    *ret_entries =
        arena_array(arena, const struct ledger_entry *, ledger->entry_used + 1);
    for (uint32_t at = ledger->entry_free; at != UINT32_MAX;
         at = ledger->entries[at].next_of_victim)
        is_free[at] = true;
    uint32_t count = 0;
    for (uint32_t at = 0; at < ledger->entry_used; at++)
        if (!is_free[at])
            (*ret_entries)[count++] = &ledger->entries[at];
    return count;
}

static void same_entry(const struct ledger_entry *x, const struct ledger_entry *y)
{
    assert_int_equal(x->at_ns, y->at_ns);
    assert_int_equal(x->newcomer, y->newcomer);
    assert_int_equal(x->rule, y->rule);
    assert_int_equal(x->gpus, y->gpus);
    assert_int_equal(x->predicted_cost_ns, y->predicted_cost_ns);
    assert_int_equal(x->predicted_wait_ns, y->predicted_wait_ns);
    assert_int_equal(x->pause_ns, y->pause_ns);
    assert_int_equal(x->load_ns, y->load_ns);
    assert_int_equal(x->redo_ns, y->redo_ns);
    assert_true(x->steps == y->steps);
    assert_true(x->rate_per_s == y->rate_per_s);
    assert_int_equal(x->started_ns, y->started_ns);
    assert_int_equal(x->with, y->with);
}

static void same_ledger(const struct ledger *a, const struct ledger *b)
{
    struct arena arena;
    const struct ledger_entry **xs;
    const struct ledger_entry **ys;
    arena_init(&arena, 0);
    uint32_t count = open_entries(a, &arena, &xs);
    uint32_t other = open_entries(b, &arena, &ys);
    assert_int_equal(count, other);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t k = 0;
        while (k < count &&
               (ys[k]->victim != xs[i]->victim || ys[k]->number != xs[i]->number))
            k++;
        assert_true(k < count);
        same_entry(xs[i], ys[k]);
    }
    arena_release(&arena);
}

/* --- all of it ------------------------------------------------------------------------ */

void run_rebuild(struct run *run, int64_t now_ns)
{
    struct error err = { "" };
    struct engine engine = run->engine; /* its arrays stay where they are */
    struct ledger ledger = run->ledger;
    struct arena life = run->life;
    const struct state *old = &engine.state;

    run_begin_life(run);
    struct recover_setup setup = { .engine = &run->engine,
                                   .ledger = &run->ledger,
                                   .store = run->store,
                                   .now_ns = now_ns,
                                   .node_down = old->node_down,
                                   .foreign = old->foreign,
                                   .spec = spec_for,
                                   .back = back_for,
                                   .gone = gone_for,
                                   .context = run };
    if (recover(&setup, &err) < 0)
        fail_msg("%s", err.text);
    run->engine.state.view.closed = old->view.closed;

    const struct state *new = &run->engine.state;
    state_check(new);
    job_id *slots = arena_array(&run->arena, job_id, old->job_max);
    for (job_id id = 0; id < old->job_max; id++) {
        slots[id] = JOB_NONE;
        if (old->jobs[id].state == JOB_FREE)
            continue;
        slots[id] = state_find(new, old->jobs[id].id);
        assert_true(slots[id] != JOB_NONE);
        same_job(old, id, new, slots[id]);
    }
    same_rooms(old, new);
    same_ledger(&ledger, &run->ledger);
    sim_cluster_move(&run->sim, slots);

    run->engine.event_count += engine.event_count;
    run->engine.decision_count = engine.decision_count;
    run->engine.refused_count = engine.refused_count;
    engine_release(&engine);
    ledger_release(&ledger);
    arena_release(&life);
}
