/*
 * gavel_released_take.c - the published rounds: who runs in the next one.
 *
 * One order per type of all units, jobs and pairs; who comes first and fits is taken,
 * until the type is full.  Pairs are many (a thousand jobs make half a million) and few
 * of them are due anything, so the order is never made as a whole: it is a heap of those
 * who are due something, and only if these leave room one of the others.  Who cannot be
 * taken whatever the order is does not get into it.
 */
#include <math.h>
#include <string.h>

#include "policy/gavel/gavel_released.h"

static double find_priority(const struct account *account, bool known, double all_s)
{
    if (!known || account->x == 0 || !account_runs(account))
        return 0;
    double fraction = all_s > 0 ? account->time_s / all_s : 0;
    return fraction > 0 ? account->x / fraction : account->x * 1e9;
}

/* --- the order ------------------------------------------------------------------------- */

/* Equals stay in the order they were listed in. */
static bool goes_before(const struct candidate *a, const struct candidate *b)
{
    if (a->priority != b->priority)
        return a->priority > b->priority;
    if (a->deficit_s != b->deficit_s)
        return a->deficit_s > b->deficit_s;
    if (a->x != b->x)
        return a->x > b->x;
    return a->place < b->place;
}

/* Put 'candidate' where 'at' is, or below it. */
static void sift_down(struct candidate *heap, uint32_t count, uint32_t at,
                      struct candidate candidate)
{
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= count)
            break;
        if (child + 1 < count && goes_before(&heap[child + 1], &heap[child]))
            child++;
        if (!goes_before(&heap[child], &candidate))
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = candidate;
}

static void make_heap(struct candidate *heap, uint32_t count)
{
    for (uint32_t i = count / 2; i-- > 0;)
        sift_down(heap, count, i, heap[i]);
}

static struct candidate pop_first(struct candidate *heap, uint32_t *count)
{
    struct candidate first = heap[0];
    *count -= 1;
    sift_down(heap, *count, 0, heap[*count]);
    return first;
}

/* --- who is in it ---------------------------------------------------------------------- */

/* One of its jobs has a place, or it does not fit or cannot run there. */
static bool is_in_vain(const struct gavel_common *common,
                       const struct released_unit *unit, uint32_t column, double room)
{
    const struct gavel_released *r = common->released;
    uint32_t mark = (uint32_t)r->round + 1;
    return common->entries[unit->jobs[0]].gang > room ||
           r->taken[unit->jobs[0]] == mark ||
           (unit_is_pair(unit) && r->taken[unit->jobs[1]] == mark) ||
           !account_runs(&released_accounts(common, unit)[column]);
}

/* List those who are due something there, or those who are not. */
static uint32_t list_candidates(struct gavel_common *common, uint32_t column,
                                double room, bool due, struct candidate *candidates)
{
    struct gavel_released *r = common->released;
    uint32_t unit_count = due ? r->due_count : r->unit_count;
    uint32_t count = 0;
    for (uint32_t i = 0; i < unit_count && room > 0; i++) {
        uint32_t at = due ? r->due[i] : i;
        const struct released_unit *unit = &r->units[at];
        if (is_in_vain(common, unit, column, room))
            continue;
        const struct account *account = &released_accounts(common, unit)[column];
        struct candidate candidate = {
            .priority = find_priority(account, unit->known, r->worker_time_s[column]),
            .deficit_s = account->deficit_s,
            .x = unit->known ? account->x : 0,
            .unit = at,
            .column = column,
        };
        if ((candidate.priority > 0) == due)
            candidates[count++] = candidate;
    }
    return count;
}

/* --- taking them ----------------------------------------------------------------------- */

void released_add_task(struct gavel_common *common, const struct released_unit *unit,
                       uint32_t column)
{
    struct gavel_released *r = common->released;
    const struct account *account = &released_accounts(common, unit)[column];
    struct task *task = &r->tasks[r->task_count++];
    *task = (struct task){ .unit = *unit,
                           .column = column,
                           .number = common->entries[unit->jobs[0]].number };
    for (uint32_t side = 0; side < 1u + unit_is_pair(unit); side++) {
        job_id id = unit->jobs[side];
        double left = r->pages[id].left;
        double steps = floor(account->rate[side] * r->round_s);
        task->steps[side] = left > 0 && left < steps ? left : steps; /* NAN: all */
        double finish_s = r->now_s + task->steps[side] / account->rate[side];
        task->finish_s = fmax(task->finish_s, finish_s);
        double gang = common->entries[id].gang;
        bool dealt = gang > 1 ? task->steps[side] >= gang : task->steps[side] > 0;
        task->doomed = task->doomed || !dealt;
    }
}

/* A unit that the shares do not know takes up room only. */
static void take_candidate(struct gavel_common *common,
                           const struct candidate *candidate, double *room)
{
    struct gavel_released *r = common->released;
    const struct released_unit *unit = &r->units[candidate->unit];
    if (is_in_vain(common, unit, candidate->column, *room))
        return;
    *room -= common->entries[unit->jobs[0]].gang;
    r->taken[unit->jobs[0]] = (uint32_t)r->round + 1;
    if (unit_is_pair(unit))
        r->taken[unit->jobs[1]] = (uint32_t)r->round + 1;
    if (unit->known)
        released_add_task(common, unit, candidate->column);
}

/* Fill types, each after the other or as one queue: who is due something, or who is not. */
static void fill_types(struct gavel_common *common, const uint32_t *columns,
                       uint32_t count, bool due, double *left)
{
    struct candidate *heap = common->released->candidates;
    uint32_t heap_count = 0;
    double room = 0;
    for (uint32_t i = 0; i < count; i++) {
        room += left[columns[i]];
        uint32_t more = list_candidates(common, columns[i], left[columns[i]], due,
                                        &heap[heap_count]);
        for (uint32_t end = heap_count + more; heap_count < end; heap_count++)
            heap[heap_count].place = heap_count;
    }
    make_heap(heap, heap_count);
    while (heap_count > 0 && room > 0) {
        struct candidate first = pop_first(heap, &heap_count);
        double *here = &left[first.column];
        room -= *here;
        take_candidate(common, &first, here);
        room += *here;
    }
}

void released_choose(struct gavel_common *common)
{
    struct gavel_released *r = common->released;
    uint32_t order[TYPES_MAX];
    double left[TYPES_MAX];
    memcpy(order, common->fill, sizeof order);
    memcpy(left, common->capacity, sizeof left);
    if (!common->gavel->aware)
        mt_shuffle(&r->shuffle, order, common->type_count);
    r->task_count = 0;
    bool strict = common->gavel->rule->strict && !common->gavel->rule->programme;
    uint32_t together = common->gavel->global_queue ? common->type_count : 1;
    for (uint32_t i = 0; i < common->type_count; i += together) {
        fill_types(common, &order[i], together, /* due= */ true, left);
        if (!strict) /* only first come, first served leaves GPUs idle */
            fill_types(common, &order[i], together, /* due= */ false, left);
    }
}
