/* The assignment problem: least total cost, compared with trying all of them. */
#include "support/cases.h"

#include "base/arena.h"
#include "base/rng.h"
#include "solve/baselines.h"

struct matrix {
    uint32_t columns;
    const double *cells;
};

static double cell(const void *context, uint32_t row, uint32_t column)
{
    const struct matrix *matrix = context;
    return matrix->cells[row * matrix->columns + column];
}

static double solve(uint32_t rows, uint32_t columns, const double *cells, uint32_t *got)
{
    struct matrix matrix = { columns, cells };
    struct assignment assignment = { rows, columns, cell, &matrix };
    struct arena arena;
    arena_init(&arena, 0);
    double total = assignment_solve(&assignment, &arena, got);
    arena_release(&arena);
    return total;
}

static void the_cheapest_for_all_is_not_the_cheapest_for_each(void **state)
{
    const double cells[] = { 1, 2, 1, 10 };
    uint32_t got[2];
    assert_near(solve(2, 2, cells, got), 3, 0);
    assert_int_equal(got[0], 1);
    assert_int_equal(got[1], 0);
}

static void no_rows_cost_nothing(void **state)
{
    assert_near(solve(0, 3, NULL, NULL), 0, 0);
}

static void equal_costs_go_to_the_first_free_column(void **state)
{
    const double cells[] = { 1, 1, 1, 1, 1, 1 };
    uint32_t got[2];
    solve(2, 3, cells, got);
    assert_int_equal(got[0], 0);
    assert_int_equal(got[1], 1);
}

/* The least over all ways, by trying each column for each row. */
static double brute(uint32_t rows, uint32_t columns, const double *cells, uint32_t row,
                    uint32_t taken)
{
    if (row == rows)
        return 0;
    double best = 1e300;
    for (uint32_t c = 0; c < columns; c++)
        if (!(taken >> c & 1)) {
            double total = cells[row * columns + c] +
                           brute(rows, columns, cells, row + 1, taken | 1u << c);
            best = total < best ? total : best;
        }
    return best;
}

static void it_is_the_least_of_all(void **state)
{
    struct rng rng;
    rng_init(&rng, 1, "assign");
    for (uint32_t round = 0; round < 300; round++) {
        uint32_t rows = 1 + (uint32_t)rng_below(&rng, 5);
        uint32_t columns = rows + (uint32_t)rng_below(&rng, 3);
        double cells[5 * 8];
        for (uint32_t i = 0; i < rows * columns; i++)
            cells[i] = round % 2 ? (double)rng_below(&rng, 6) : 10 * rng_unit(&rng) - 5;
        uint32_t got[5];
        uint32_t taken = 0;
        assert_near(solve(rows, columns, cells, got), brute(rows, columns, cells, 0, 0),
                    1e-12);
        for (uint32_t r = 0; r < rows; r++) {
            assert_true(got[r] < columns);
            assert_false(taken >> got[r] & 1);
            taken |= 1u << got[r];
        }
    }
}

RUN_CASES(TEST(the_cheapest_for_all_is_not_the_cheapest_for_each),
          TEST(no_rows_cost_nothing), TEST(equal_costs_go_to_the_first_free_column),
          TEST(it_is_the_least_of_all));
