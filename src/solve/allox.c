/*
 * allox.c - AlloX: jobs are assigned to places in the workers' queues so that the sum of
 * completion times is least.
 *
 * Few jobs are an assignment problem, solved exactly.  It is cubic in the jobs, so many jobs are
 * divided between the types instead: within a type the order is known, shortest first, and all
 * that is left to decide is each job's type.  Jobs are put in longest first, each where it adds
 * least, which is optimal where types differ by a factor; then jobs move to where they cost
 * less, given all others.  A move lowers the sum, so it ends; what it ends in is not proven to
 * be the least.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/sort.h"
#include "solve/baselines.h"
#include "solve/solve.h"

#define RATE_LEAST 1e-10 /* stands for a rate of 0 */
#define EXACT_MAX 65536  /* rows * columns, up to which an assignment is waited for */
#define MOVES_MAX 65536  /* jobs that are looked at again, in all passes together */
#define PASSES_MAX 8

/* --- exactly --- */

struct allox_places {
    const struct allox *allox;
    uint32_t *jobs; /* [row] oldest first          */
    uint32_t row_count;
    uint32_t *types; /* [worker]                    */
    uint32_t worker_count;
    uint32_t workers[SOLVE_TYPES_MAX]; /* [type]     */
};

/* Columns: all workers' last places, then all their last but one, and so on. */
static double place_cost(const void *context, uint32_t row, uint32_t column)
{
    const struct allox_places *places = context;
    const struct allox *a = places->allox;
    uint32_t job = places->jobs[row];
    uint32_t type = places->types[column % places->worker_count];
    uint32_t place = column / places->worker_count + 1; /* from the end */
    double rate = a->rate[(size_t)job * a->type_count + type];
    return place * (a->steps[job] / (rate > 0 ? rate : RATE_LEAST)) + a->age_s[job];
}

static bool runs_somewhere(const struct allox *allox, uint32_t job)
{
    for (uint32_t t = 0; t < allox->type_count; t++)
        if (allox->capacity[t] >= 1 &&
            allox->rate[(size_t)job * allox->type_count + t] > 0)
            return true;
    return false;
}

static void allox_places_init(struct allox_places *places, const struct allox *allox,
                              struct arena *scratch)
{
    *places = (struct allox_places){ .allox = allox };
    /* More workers of a type than jobs are never needed. */
    places->types = arena_array(scratch, uint32_t,
                                (size_t)allox->type_count * allox->job_count + 1);
    for (uint32_t t = 0; t < allox->type_count; t++) {
        places->workers[t] =
            (uint32_t)fmin(floor(allox->capacity[t]), allox->job_count);
        for (uint32_t i = 0; i < places->workers[t]; i++)
            places->types[places->worker_count++] = t;
    }
    places->jobs = arena_array(scratch, uint32_t, allox->job_count);
    struct sort_item *items =
        arena_array(scratch, struct sort_item, 2 * (size_t)allox->job_count);
    for (uint32_t j = 0; j < allox->job_count; j++)
        if (runs_somewhere(allox, j))
            items[places->row_count++] = (struct sort_item){ -allox->age_s[j], j };
    sort_items(items, items + places->row_count, places->row_count);
    for (uint32_t i = 0; i < places->row_count; i++)
        places->jobs[i] = items[i].value;
}

static double assign_exactly(const struct allox_places *places, struct arena *scratch,
                             double *ret_x)
{
    const struct allox *allox = places->allox;
    const uint32_t workers = places->worker_count;
    uint32_t *columns = arena_array(scratch, uint32_t, allox->job_count);
    const struct assignment assignment = {
        .row_count = places->row_count,
        .column_count = places->row_count * workers,
        .cost = place_cost,
        .context = places,
    };
    double total = assignment_solve(&assignment, scratch, columns);

    /* Places count from the end of the queue: the largest is first in line. */
    uint32_t *first = arena_array(scratch, uint32_t, workers);
    for (uint32_t w = 0; w < workers; w++)
        first[w] = SHARES_NO_TYPE;
    for (uint32_t row = 0; row < places->row_count; row++) {
        uint32_t worker = columns[row] % workers;
        if (first[worker] == SHARES_NO_TYPE || columns[row] > columns[first[worker]])
            first[worker] = row;
    }
    for (uint32_t w = 0; w < workers; w++) {
        if (first[w] == SHARES_NO_TYPE)
            continue;
        size_t cell =
            (size_t)places->jobs[first[w]] * allox->type_count + places->types[w];
        ret_x[cell] = allox->rate[cell] > 0 ? 1 : 0;
    }
    return total;
}

/* --- type by type --- */

/*
 * The jobs of a type, by rank: their number and durations in trees of partial sums (Fenwick),
 * longest first.
 */
struct allox_queue {
    uint32_t type, workers, count;
    double *duration; /* [row]; INFINITY: it cannot run here */
    uint32_t *rank;   /* [row] longest first                 */
    uint32_t *sorted; /* [rank] row                          */
    uint32_t *counts; /* tree, from 1                        */
    double *sums;     /* tree, from 1                        */
};

struct allox_division {
    uint32_t row_count, queue_count;
    struct allox_queue queues[SOLVE_TYPES_MAX];
    uint32_t *queue_of; /* [row]                                            */
    uint32_t *order;    /* rows by their least duration, the longest first  */
};

static void allox_queue_init(struct allox_queue *queue,
                             const struct allox_places *places, uint32_t type,
                             struct sort_item *items, struct arena *scratch)
{
    const struct allox *allox = places->allox;
    uint32_t rows = places->row_count;
    *queue = (struct allox_queue){ .type = type,
                                   .workers = places->workers[type],
                                   .duration = arena_array(scratch, double, rows),
                                   .rank = arena_array(scratch, uint32_t, rows),
                                   .sorted = arena_array(scratch, uint32_t, rows),
                                   .counts = arena_array(scratch, uint32_t, rows + 1),
                                   .sums = arena_array(scratch, double, rows + 1) };
    for (uint32_t row = 0; row < rows; row++) {
        uint32_t job = places->jobs[row];
        double rate = allox->rate[(size_t)job * allox->type_count + type];
        queue->duration[row] = rate > 0 ? allox->steps[job] / rate : INFINITY;
        items[row] = (struct sort_item){ -queue->duration[row], row };
    }
    sort_items(items, items + rows, rows);
    for (uint32_t i = 0; i < rows; i++) {
        queue->sorted[i] = items[i].value;
        queue->rank[items[i].value] = i;
    }
}

static void change_queue(struct allox_queue *queue, uint32_t rows, uint32_t row,
                         bool adds)
{
    double duration = adds ? queue->duration[row] : -queue->duration[row];
    queue->count += adds ? 1 : UINT32_MAX;
    for (uint32_t i = queue->rank[row] + 1; i <= rows; i += i & -i) {
        queue->counts[i] += adds ? 1 : UINT32_MAX;
        queue->sums[i] += duration;
    }
}

/* What one more job adds to the sum: its own time, and what shorter ones wait for it. */
static double cost_in_queue(const struct allox_queue *queue, uint32_t rows,
                            uint32_t row, double sum)
{
    uint32_t longer = 0;
    double time_longer = 0;
    if (queue->duration[row] == INFINITY)
        return INFINITY;
    for (uint32_t i = queue->rank[row]; i > 0; i -= i & -i) {
        longer += queue->counts[i];
        time_longer += queue->sums[i];
    }
    double shorter = queue->count < queue->workers ? 0 : fmax(0, sum - time_longer);
    return queue->duration[row] * (1 + longer / queue->workers) +
           shorter / queue->workers;
}

/* The longest first: each is shorter than those that are there, and delays none. */
static void put_longest_first(struct allox_division *division)
{
    for (uint32_t i = 0; i < division->row_count; i++) {
        uint32_t row = division->order[i];
        uint32_t best = 0;
        double least = INFINITY;
        for (uint32_t q = 0; q < division->queue_count; q++) {
            struct allox_queue *queue = &division->queues[q];
            double cost = queue->duration[row] * (1 + queue->count / queue->workers);
            if (cost < least) {
                least = cost;
                best = q;
            }
        }
        division->queue_of[row] = best;
        division->queues[best].count++;
    }
}

/* Let every job move to where it costs least; false: none did. */
static bool move_jobs(struct allox_division *division, double *time_in)
{
    bool moved = false;
    uint32_t rows = division->row_count;
    for (uint32_t i = 0; i < rows; i++) {
        uint32_t row = division->order[i];
        uint32_t from = division->queue_of[row];
        uint32_t best = from;
        change_queue(&division->queues[from], rows, row, false);
        time_in[from] -= division->queues[from].duration[row];
        double least =
            cost_in_queue(&division->queues[from], rows, row, time_in[from]) *
            (1 - 1e-12);
        for (uint32_t q = 0; q < division->queue_count; q++) {
            double cost = cost_in_queue(&division->queues[q], rows, row, time_in[q]);
            if (q != from && cost < least) {
                least = cost;
                best = q;
            }
        }
        moved = moved || best != from;
        division->queue_of[row] = best;
        change_queue(&division->queues[best], rows, row, true);
        time_in[best] += division->queues[best].duration[row];
    }
    return moved;
}

/* The sum of completion times, without the jobs' ages. */
static double sum_division(const struct allox_division *division)
{
    double total = 0;
    for (uint32_t q = 0; q < division->queue_count; q++) {
        const struct allox_queue *queue = &division->queues[q];
        uint32_t longer = 0;
        for (uint32_t i = 0; i < division->row_count; i++) {
            uint32_t row = queue->sorted[i];
            if (division->queue_of[row] == q)
                total += queue->duration[row] * (1 + longer++ / queue->workers);
        }
    }
    return total;
}

/* Costs of moves are right but for fractions of a place: keep the best of all passes. */
static void improve_division(struct allox_division *division, uint32_t *best)
{
    double time_in[SOLVE_TYPES_MAX] = { 0 };
    uint32_t rows = division->row_count;
    size_t bytes = rows * sizeof *best;
    double least = sum_division(division);
    memcpy(best, division->queue_of, bytes);
    for (uint32_t q = 0; q < division->queue_count; q++)
        division->queues[q].count = 0;
    for (uint32_t row = 0; row < rows; row++) {
        uint32_t q = division->queue_of[row];
        change_queue(&division->queues[q], rows, row, true);
        time_in[q] += division->queues[q].duration[row];
    }
    uint32_t passes = MOVES_MAX / rows < PASSES_MAX ? MOVES_MAX / rows : PASSES_MAX;
    while (passes-- > 0 && move_jobs(division, time_in)) {
        double sum = sum_division(division);
        if (sum < least)
            memcpy(best, division->queue_of, bytes);
        least = fmin(least, sum);
    }
    memcpy(division->queue_of, best, bytes);
}

/* The shortest jobs of a type get its workers. */
static void serve_queue(const struct allox_division *division, uint32_t q,
                        const struct allox_places *places, double *ret_x)
{
    const struct allox *allox = places->allox;
    const struct allox_queue *queue = &division->queues[q];
    uint32_t served = 0;
    for (uint32_t i = division->row_count; i-- > 0 && served < queue->workers;) {
        uint32_t row = queue->sorted[i];
        if (division->queue_of[row] != q)
            continue;
        ret_x[(size_t)places->jobs[row] * allox->type_count + queue->type] = 1;
        served++;
    }
}

static void order_by_least(struct allox_division *division, struct sort_item *items)
{
    uint32_t rows = division->row_count;
    for (uint32_t row = 0; row < rows; row++) {
        double least = INFINITY;
        for (uint32_t q = 0; q < division->queue_count; q++)
            least = fmin(least, division->queues[q].duration[row]);
        items[row] = (struct sort_item){ -least, row };
    }
    sort_items(items, items + rows, rows);
    for (uint32_t i = 0; i < rows; i++)
        division->order[i] = items[i].value;
}

static double divide_by_type(const struct allox_places *places, struct arena *scratch,
                             double *ret_x)
{
    uint32_t rows = places->row_count;
    struct sort_item *items = arena_array(scratch, struct sort_item, 2 * (size_t)rows);
    struct allox_division division = {
        .row_count = rows,
        .queue_of = arena_array(scratch, uint32_t, rows),
        .order = arena_array(scratch, uint32_t, rows),
    };
    for (uint32_t t = 0; t < places->allox->type_count; t++)
        if (places->workers[t] > 0)
            allox_queue_init(&division.queues[division.queue_count++], places, t, items,
                             scratch);
    if (division.queue_count > 1) {
        order_by_least(&division, items);
        put_longest_first(&division);
        improve_division(&division, arena_array(scratch, uint32_t, rows));
    }
    for (uint32_t q = 0; q < division.queue_count; q++)
        serve_queue(&division, q, places, ret_x);
    double total = sum_division(&division);
    for (uint32_t row = 0; row < rows; row++)
        total += places->allox->age_s[places->jobs[row]];
    return total;
}

double shares_allox(const struct allox *allox, struct arena *scratch, double *ret_x)
{
    struct allox_places places;
    allox_places_init(&places, allox, scratch);
    memset(ret_x, 0, (size_t)allox->job_count * allox->type_count * sizeof *ret_x);
    if (places.worker_count == 0 || places.row_count == 0)
        return 0;
    uint64_t cells =
        (uint64_t)places.row_count * places.row_count * places.worker_count;
    /* On one type there is nothing to divide, and the shortest are first. */
    uint32_t last = places.types[places.worker_count - 1];
    bool easy = cells > EXACT_MAX || places.types[0] == last;
    return allox->fast && easy ? divide_by_type(&places, scratch, ret_x)
                               : assign_exactly(&places, scratch, ret_x);
}
