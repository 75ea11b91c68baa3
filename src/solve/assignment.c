/*
 * assignment.c - the assignment problem, by shortest augmenting paths.
 *
 * Rows are assigned one by one.  Each searches for the cheapest chain "this row takes
 * that column, the column's row takes another one, ..." that ends in a free column.
 * Prices on rows and columns keep all reduced costs at or above 0, so the search is
 * Dijkstra's over the columns.
 */
#include "solve/assignment.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>

#include "base/arena.h"

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
