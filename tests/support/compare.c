/* compare.c - compare the states and ledgers of two engines. */
#include "support/compare.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "metrics/ledger.h"
#include "model/cluster.h"
#include "model/state.h"

#define TRY(call) \
    do { \
        int tried = (call); \
        if (tried < 0) \
            return tried; \
    } while (0)

/* Compare one number of a job or a node; NAN equals NAN. */
static int compare_number(double was, double is, const char *what, uint64_t id,
                          struct error *err)
{
    if (was == is || (isnan(was) && isnan(is)))
        return 0;
    return error_set(err, -EPROTO, "%s of %llu: %.17g was %.17g", what,
                     (unsigned long long)id, is, was);
}

static uint64_t find_id(const struct state *state, job_id job)
{
    return job == JOB_NONE ? 0 : state->jobs[job].id;
}

static int compare_seats(const struct state *a, const struct seat_row *x,
                         const struct state *b, const struct seat_row *y,
                         const char *what, uint64_t id, struct error *err)
{
    TRY(compare_number(x->count, y->count, what, id, err));
    for (uint32_t i = 0; i < x->count; i++)
        if (memcmp(&a->seats[x->first + i], &b->seats[y->first + i],
                   sizeof *a->seats) != 0)
            return error_set(err, -EPROTO, "%s of %llu: others than before", what,
                             (unsigned long long)id);
    return 0;
}

/* Field by field: padding has any value. */
static bool is_same_part(const struct room_part *a, const struct room_part *b)
{
    return a->node == b->node && a->cpu_milli == b->cpu_milli &&
           a->mem_mib == b->mem_mib && a->gpus == b->gpus;
}

static bool has_pending_share(const struct state *state, job_id id, uint64_t victim,
                              const struct room_part *part)
{
    for (uint32_t p = state->jobs[id].pending_from; p != UINT32_MAX;
         p = state->pending_shares[p].next_of_successor)
        if (state->jobs[state->pending_shares[p].victim].id == victim &&
            is_same_part(&state->pending_shares[p].part, part))
            return true;
    return false;
}

static uint32_t pending_count(const struct state *state, job_id id)
{
    uint32_t count = 0;
    for (uint32_t p = state->jobs[id].pending_from; p != UINT32_MAX;
         p = state->pending_shares[p].next_of_successor)
        count++;
    return count;
}

static int compare_pending_shares(const struct state *a, job_id x,
                                  const struct state *b, job_id y, struct error *err)
{
    uint64_t id = a->jobs[x].id;
    TRY(compare_number(pending_count(a, x), pending_count(b, y), "promises", id, err));
    for (uint32_t p = a->jobs[x].pending_from; p != UINT32_MAX;
         p = a->pending_shares[p].next_of_successor)
        if (!has_pending_share(b, y, a->jobs[a->pending_shares[p].victim].id,
                               &a->pending_shares[p].part))
            return error_set(err, -EPROTO, "promises of %llu: others than before",
                             (unsigned long long)id);
    return 0;
}

static int compare_losses(const struct state *a, const struct job *x,
                          const struct state *b, const struct job *y, struct error *err)
{
    bool none = x->loss_ring == UINT32_MAX;
    TRY(compare_number(none, y->loss_ring == UINT32_MAX, "no reports", x->id, err));
    if (none)
        return 0;
    const struct loss_ring *p = &a->losses[x->loss_ring];
    const struct loss_ring *q = &b->losses[y->loss_ring];
    uint32_t count = p->count < LOSS_POINTS ? p->count : LOSS_POINTS;
    TRY(compare_number(count, q->count < LOSS_POINTS ? q->count : LOSS_POINTS,
                       "reports", x->id, err));
    for (uint32_t i = 1; i <= count; i++) {
        uint32_t m = (p->count - i) % LOSS_POINTS;
        uint32_t n = (q->count - i) % LOSS_POINTS;
        TRY(compare_number(p->steps[m], q->steps[n], "a report's step", x->id, err));
        TRY(compare_number(p->losses[m], q->losses[n], "a report's loss", x->id, err));
    }
    return 0;
}

#define SAME(field) \
    TRY(compare_number((double)x->field, (double)y->field, #field, x->id, err))

/* Partners are slots, which may differ. */
#define SAME_ONE(field) \
    TRY(compare_number((double)find_id(a, x->field), (double)find_id(b, y->field), \
                       #field, x->id, err))

static int compare_job(const struct state *a, job_id i, const struct state *b, job_id k,
                       struct error *err)
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
    SAME(loss);
    SAME_ONE(partner);
    SAME_ONE(coming);
    SAME_ONE(next_partner);
    TRY(compare_seats(a, &x->seats, b, &y->seats, "seats", x->id, err));
    TRY(compare_seats(a, &x->next, b, &y->next, "next seats", x->id, err));
    TRY(compare_pending_shares(a, i, b, k, err));
    TRY(compare_losses(a, x, b, y, err));
    uint32_t types = a->view.cluster->type_count;
    for (uint32_t t = 0; t < types; t++)
        TRY(compare_number((double)a->served_ns[(size_t)i * types + t],
                           (double)b->served_ns[(size_t)k * types + t],
                           "service on a type", x->id, err));
    return 0;
}

#define ROOM(field) \
    TRY(compare_number((double)a->free.field, (double)b->free.field, #field, n, err))

static int compare_rooms(const struct state *a, const struct state *b,
                         struct error *err)
{
    for (node_id n = 0; n < a->view.cluster->node_count; n++) {
        ROOM(rooms[n].gpus);
        ROOM(rooms[n].cpu_milli);
        ROOM(rooms[n].mem_mib);
        ROOM(listed[n]);
        TRY(compare_number((double)a->foreign[n], (double)b->foreign[n], "foreign", n,
                           err));
    }
    TRY(compare_number(a->free.gpu_count, b->free.gpu_count, "free", 0, err));
    TRY(compare_number(a->live_count, b->live_count, "live jobs", 0, err));
    TRY(compare_number(a->waiting_count, b->waiting_count, "waiting jobs", 0, err));
    return compare_number(a->seated_count, b->seated_count, "seated jobs", 0, err);
}

static int compare_calendars(const struct calendar *was, const struct calendar *is,
                             struct error *err)
{
    for (uint32_t i = 0; i < was->count && is->count == was->count; i++) {
        const struct calendar_entry *a = &was->entries[i];
        const struct calendar_entry *b = &is->entries[i];
        if (a->id != b->id || a->node != b->node || a->gpus != b->gpus ||
            a->from_ns != b->from_ns || a->to_ns != b->to_ns || a->user != b->user)
            return error_set(err, -EPROTO, "entry %llu of the calendar differs",
                             (unsigned long long)a->id);
    }
    return was->count == is->count
               ? 0
               : error_set(err, -EPROTO, "the calendar had %u entries, and has %u",
                           was->count, is->count);
}

int compare_states(const struct state *was, const struct state *is, struct error *err)
{
    for (job_id id = 0; id < was->job_count; id++) {
        if (was->jobs[id].state == JOB_FREE)
            continue;
        job_id slot = state_find(is, was->jobs[id].id);
        if (slot == JOB_NONE)
            return error_set(err, -EPROTO, "job %llu is forgotten",
                             (unsigned long long)was->jobs[id].id);
        TRY(compare_job(was, id, is, slot, err));
    }
    TRY(compare_calendars(&was->calendar, &is->calendar, err));
    return compare_rooms(was, is, err);
}

/* --- the ledger ------------------------------------------------------------------------ */

/* Entries in use; the others are in the list of free ones. */
static uint32_t list_open_entries(const struct ledger *ledger, struct arena *arena,
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

#define ENTRY(field) \
    TRY(compare_number((double)x->field, (double)y->field, "the ledger, " #field, \
                       x->victim, err))

static int compare_entry(const struct ledger_entry *x, const struct ledger_entry *y,
                         struct error *err)
{
    ENTRY(at_ns);
    ENTRY(beneficiary_id);
    ENTRY(rule);
    ENTRY(gpus);
    ENTRY(predicted_cost_ns);
    ENTRY(predicted_wait_ns);
    ENTRY(pause_ns);
    ENTRY(load_ns);
    ENTRY(redo_ns);
    ENTRY(steps);
    ENTRY(rate_per_s);
    ENTRY(started_ns);
    ENTRY(shared_by);
    ENTRY(owes_load);
    return 0;
}

static int compare_entries(const struct ledger_entry **xs, uint32_t count,
                           const struct ledger_entry **ys, uint32_t other,
                           struct error *err)
{
    TRY(compare_number(count, other, "open entries of the ledger", 0, err));
    for (uint32_t i = 0; i < count; i++) {
        uint32_t k = 0;
        while (k < count &&
               (ys[k]->victim != xs[i]->victim || ys[k]->number != xs[i]->number))
            k++;
        if (k == count)
            return error_set(err, -EPROTO, "the ledger: an entry of %llu is missing",
                             (unsigned long long)xs[i]->victim);
        TRY(compare_entry(xs[i], ys[k], err));
    }
    return 0;
}

#define PAIR(field) \
    TRY(compare_number((double)x->field, (double)y->field, "a pair, " #field, \
                       x->jobs[0], err))

static int compare_pair(const struct pair_entry *x, const struct pair_entry *y,
                        struct error *err)
{
    PAIR(from_ns);
    PAIR(gpus);
    PAIR(shared_ns);
    PAIR(lost_ns);
    PAIR(since_ns);
    for (int i = 0; i < 2; i++) {
        PAIR(alone_s[i]);
        PAIR(steps[i]);
        PAIR(rates[i]);
    }
    return 0;
}

/* The open entry of two jobs; NULL: there is none. */
static const struct pair_entry *find_pair(const struct pair_ledger *ledger,
                                          const struct pair_entry *pair)
{
    for (uint32_t at = 0; at < ledger->entry_used; at++)
        if (ledger->entries[at].to_ns < 0 &&
            memcmp(ledger->entries[at].jobs, pair->jobs, sizeof pair->jobs) == 0)
            return &ledger->entries[at];
    return NULL;
}

static uint32_t count_open_pairs(const struct pair_ledger *ledger)
{
    uint32_t count = 0;
    for (uint32_t at = 0; at < ledger->entry_used; at++)
        count += ledger->entries[at].to_ns < 0;
    return count;
}

static int compare_pairs(const struct pair_ledger *was, const struct pair_ledger *is,
                         struct error *err)
{
    TRY(compare_number(count_open_pairs(was), count_open_pairs(is), "open pairs", 0,
                       err));
    for (uint32_t at = 0; at < was->entry_used; at++) {
        const struct pair_entry *pair = &was->entries[at];
        if (pair->to_ns >= 0)
            continue;
        const struct pair_entry *kept = find_pair(is, pair);
        if (!kept)
            return error_set(err, -EPROTO, "the pair of %llu and %llu is missing",
                             (unsigned long long)pair->jobs[0],
                             (unsigned long long)pair->jobs[1]);
        TRY(compare_pair(pair, kept, err));
    }
    return 0;
}

int compare_ledgers(const struct ledger *was, const struct ledger *is,
                    struct error *err)
{
    struct arena arena;
    const struct ledger_entry **xs;
    const struct ledger_entry **ys;
    arena_init(&arena, 0);
    uint32_t count = list_open_entries(was, &arena, &xs);
    uint32_t other = list_open_entries(is, &arena, &ys);
    int r = compare_entries(xs, count, ys, other, err);
    if (r == 0)
        r = compare_pairs(&was->pairs, &is->pairs, err);
    arena_release(&arena);
    return r;
}
