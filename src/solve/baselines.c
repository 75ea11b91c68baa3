/* baselines.c - shares that need no linear programme. */
#include "solve/baselines.h"

#include <assert.h>
#include <math.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/sort.h"
#include "solve/solve.h"

void shares_isolated(uint32_t job_count, uint32_t type_count, const double *capacity,
                     const double *gang, double *ret_x)
{
    for (uint32_t j = 0; j < job_count; j++) {
        double *row = &ret_x[(size_t)j * type_count];
        double sum = 0;
        for (uint32_t t = 0; t < type_count; t++) {
            row[t] = capacity[t] / (double)job_count / gang[j];
            sum += row[t];
        }
        for (uint32_t t = 0; t < type_count && sum > 1; t++)
            row[t] /= sum;
    }
}

void shares_proportional(uint32_t job_count, uint32_t type_count,
                         const double *capacity, double *ret_x)
{
    double sum = 0;
    for (uint32_t t = 0; t < type_count; t++)
        sum += capacity[t];
    for (uint32_t j = 0; j < job_count; j++)
        for (uint32_t t = 0; t < type_count; t++)
            ret_x[(size_t)j * type_count + t] = sum > 0 ? capacity[t] / sum : 0;
}

/* --- first come, first served --- */

#define PAIR_WORTH 1.5 /* of two jobs on the same accelerators, relative to one alone */

struct fifo_line {
    const struct fifo_shares *queue;
    double room[SOLVE_TYPES_MAX];
    uint32_t *on;                   /* [job] its type, or SHARES_NO_TYPE */
    bool *joined;                   /* [job] shares its accelerators */
    uint32_t open[SOLVE_TYPES_MAX]; /* released: types on the list, in order */
    uint32_t open_count;
};

static double rate_on(const struct fifo_shares *q, uint32_t job, uint32_t type)
{
    return q->rate[(size_t)job * q->type_count + type];
}

static bool could_ever_run(const struct fifo_shares *q, uint32_t job)
{
    for (uint32_t t = 0; t < q->type_count; t++)
        if (rate_on(q, job, t) > 0 && q->capacity[t] >= q->gang[job])
            return true;
    return false;
}

/* The type a job takes, or SHARES_NO_TYPE. */
static uint32_t choose_type(const struct fifo_line *line, uint32_t job)
{
    const struct fifo_shares *q = line->queue;
    uint32_t best = SHARES_NO_TYPE;
    for (uint32_t t = 0; t < q->type_count; t++) {
        bool fits = line->room[t] > 0 && line->room[t] >= q->gang[job];
        if (!fits || !(rate_on(q, job, t) > 0))
            continue;
        if (best == SHARES_NO_TYPE ||
            (q->aware && rate_on(q, job, t) > rate_on(q, job, best)))
            best = t;
    }
    return best;
}

/* The released system skips a job that finds room only where it cannot run. */
static bool has_room(const struct fifo_line *line, uint32_t job)
{
    for (uint32_t i = 0; i < line->open_count; i++)
        if (line->room[line->open[i]] >= line->queue->gang[job])
            return true;
    return false;
}

/* The released system without rates; see the header. */
static uint32_t choose_type_released(struct fifo_line *line, uint32_t job)
{
    const struct fifo_shares *q = line->queue;
    uint32_t fitting[SOLVE_TYPES_MAX], count = 0;
    for (uint32_t i = 0; i < line->open_count; i++)
        if (line->room[line->open[i]] >= q->gang[job])
            fitting[count++] = i;
    if (count == 0)
        return SHARES_NO_TYPE;
    uint32_t drawn = fitting[q->draw(q->draw_context, count)];
    uint32_t type = line->open[line->open_count - 1];
    if (!(rate_on(q, job, type) > 0))
        return SHARES_NO_TYPE;
    if (line->room[type] == q->gang[job]) {
        line->open_count--;
        for (uint32_t i = drawn; i < line->open_count; i++)
            line->open[i] = line->open[i + 1];
    }
    return type;
}

/* The pair in which 'job' does best beside a placed job; or none. */
static uint32_t choose_partner(const struct fifo_line *line, uint32_t job,
                               uint32_t *ret_pair)
{
    const struct fifo_shares *q = line->queue;
    uint32_t best = SHARES_NO_TYPE;
    double most = PAIR_WORTH;
    for (uint32_t i = 0; i < q->pair_count; i++) {
        const struct programme_pair *pair = &q->pairs[i];
        if (pair->first != job && pair->second != job)
            continue;
        uint32_t other = pair->first == job ? pair->second : pair->first;
        uint32_t type = line->on[other];
        if (type == SHARES_NO_TYPE || line->joined[other])
            continue;
        const double *rates = &q->pair_rate[((size_t)i * q->type_count + type) * 2];
        double first = rate_on(q, pair->first, type);
        double second = rate_on(q, pair->second, type);
        if (!(rates[0] > 0 && rates[1] > 0 && first > 0 && second > 0))
            continue;
        double sum = rates[0] / first + rates[1] / second;
        if (sum > most) {
            most = sum;
            best = other;
            *ret_pair = i;
        }
    }
    return best;
}

/* Let jobs that found no room join placed ones, in order, until one cannot. */
static void join_partners(struct fifo_line *line, uint32_t from, double *x)
{
    const struct fifo_shares *q = line->queue;
    for (uint32_t j = from; j < q->job_count && q->pair_count > 0; j++) {
        uint32_t pair = 0;
        if (line->on[j] != SHARES_NO_TYPE || (!q->released && !could_ever_run(q, j)))
            continue;
        uint32_t other = choose_partner(line, j, &pair);
        if (other == SHARES_NO_TYPE)
            return;
        uint32_t type = line->on[other];
        line->joined[other] = line->joined[j] = true;
        line->on[j] = type;
        x[(size_t)other * q->type_count + type] = 0;
        x[(size_t)(q->job_count + pair) * q->type_count + type] = 1;
    }
}

static void fifo_line_init(struct fifo_line *line, const struct fifo_shares *queue,
                           struct arena *scratch, double *x)
{
    const struct fifo_shares *q = queue;
    *line = (struct fifo_line){
        .queue = q,
        .on = arena_array(scratch, uint32_t, q->job_count),
        .joined = arena_array(scratch, bool, q->job_count),
    };
    for (uint32_t t = 0; t < q->type_count; t++)
        line->room[t] = q->capacity[t];
    for (size_t i = 0; i < ((size_t)q->job_count + q->pair_count) * q->type_count; i++)
        x[i] = 0;
    for (uint32_t j = 0; j < q->job_count; j++) {
        line->on[j] = q->held ? q->held[j] : SHARES_NO_TYPE;
        if (line->on[j] == SHARES_NO_TYPE)
            continue;
        line->room[line->on[j]] -= q->gang[j];
        x[(size_t)j * q->type_count + line->on[j]] = 1;
    }
    for (uint32_t t = 0; t < q->type_count; t++)
        if (line->room[t] > 0)
            line->open[line->open_count++] = t;
}

void shares_fifo(const struct fifo_shares *queue, struct arena *scratch, double *ret_x)
{
    struct fifo_line line;
    assert(queue->type_count <= SOLVE_TYPES_MAX);
    fifo_line_init(&line, queue, scratch, ret_x);
    for (uint32_t j = 0; j < queue->job_count; j++) {
        if (line.on[j] != SHARES_NO_TYPE ||
            (!queue->released && !could_ever_run(queue, j)))
            continue;
        uint32_t type = queue->released && !queue->aware
                            ? choose_type_released(&line, j)
                            : choose_type(&line, j);
        if (type == SHARES_NO_TYPE && queue->released && has_room(&line, j))
            continue;
        if (type == SHARES_NO_TYPE) {
            join_partners(&line, j, ret_x);
            return;
        }
        line.on[j] = type;
        line.room[type] -= queue->gang[j];
        ret_x[(size_t)j * queue->type_count + type] = 1;
    }
}

/* --- the assignment problem --- */

/*
 * Rows are assigned one by one.  Each searches for the cheapest chain "this row takes
 * that column, the column's row takes another one, ..." that ends in a free column.
 * Prices on rows and columns keep all reduced costs at or above 0, so the search is
 * Dijkstra's over the columns.
 */
#define NO_ROW UINT32_MAX

struct assignment_search {
    const struct assignment *assignment;
    double *row_price, *column_price;
    uint32_t *owner; /* [column] */

    /* of the search for one row */
    double *distance;  /* [column]                                */
    uint32_t *from;    /* [column] row it was reached from        */
    uint32_t *waiting; /* columns not settled yet, in any order   */
    uint32_t waiting_count;
    uint32_t *settled; /* columns, in the order of their distance */
    uint32_t settled_count;
};

static void assignment_search_init(struct assignment_search *s,
                                   const struct assignment *assignment,
                                   struct arena *arena)
{
    uint32_t rows = assignment->row_count, count = assignment->column_count;
    *s = (struct assignment_search){
        .assignment = assignment,
        .row_price = arena_array(arena, double, rows),
        .column_price = arena_array(arena, double, count),
        .owner = arena_array(arena, uint32_t, count),
        .distance = arena_array(arena, double, count),
        .from = arena_array(arena, uint32_t, count),
        .waiting = arena_array(arena, uint32_t, count),
        .settled = arena_array(arena, uint32_t, count),
    };
    for (uint32_t c = 0; c < count; c++)
        s->owner[c] = NO_ROW;
}

/* Relax every waiting column from 'row', at distance 'so_far'; settle the nearest. */
static uint32_t settle_next(struct assignment_search *s, uint32_t row, double so_far)
{
    const struct assignment *a = s->assignment;
    double nearest = INFINITY;
    uint32_t place = 0;
    for (uint32_t i = 0; i < s->waiting_count; i++) {
        uint32_t c = s->waiting[i];
        double distance = so_far + a->cost(a->context, row, c) - s->row_price[row] -
                          s->column_price[c];
        if (distance < s->distance[c]) {
            s->distance[c] = distance;
            s->from[c] = row;
        }
        bool free = s->owner[c] == NO_ROW;
        if (s->distance[c] < nearest || (s->distance[c] == nearest && free)) {
            nearest = s->distance[c];
            place = i;
        }
    }
    assert(nearest < INFINITY);
    uint32_t column = s->waiting[place];
    s->waiting[place] = s->waiting[--s->waiting_count];
    s->settled[s->settled_count++] = column;
    return column;
}

/* The free column at the end of the cheapest chain that starts at 'row'. */
static uint32_t find_free_column(struct assignment_search *s, uint32_t row)
{
    uint32_t count = s->assignment->column_count;
    s->waiting_count = count;
    s->settled_count = 0;
    for (uint32_t c = 0; c < count; c++) {
        s->waiting[c] = count - 1 - c;
        s->distance[c] = INFINITY;
    }
    uint32_t column = settle_next(s, row, 0);
    while (s->owner[column] != NO_ROW)
        column = settle_next(s, s->owner[column], s->distance[column]);
    return column;
}

static void update_prices(struct assignment_search *s, uint32_t row, double total)
{
    s->row_price[row] += total;
    for (uint32_t i = 0; i < s->settled_count; i++) {
        uint32_t c = s->settled[i];
        if (s->owner[c] != NO_ROW)
            s->row_price[s->owner[c]] += total - s->distance[c];
        s->column_price[c] -= total - s->distance[c];
    }
}

double assignment_solve(const struct assignment *assignment, struct arena *scratch,
                        uint32_t *ret_columns)
{
    assert(assignment->row_count <= assignment->column_count);
    struct assignment_search s;
    assignment_search_init(&s, assignment, scratch);
    for (uint32_t row = 0; row < assignment->row_count; row++)
        ret_columns[row] = NO_ROW;
    for (uint32_t row = 0; row < assignment->row_count; row++) {
        uint32_t column = find_free_column(&s, row);
        update_prices(&s, row, s.distance[column]);
        /* Walk the chain back: every row takes the column it was reached by. */
        for (uint32_t taker = NO_ROW; taker != row;) {
            taker = s.from[column];
            s.owner[column] = taker;
            uint32_t left = ret_columns[taker];
            ret_columns[taker] = column;
            column = left;
        }
    }
    double total = 0;
    for (uint32_t row = 0; row < assignment->row_count; row++)
        total += assignment->cost(assignment->context, row, ret_columns[row]);
    return total;
}
