/*
 * Small linear programmes: optima, duals, columns added and removed; compared with CLP.
 */
#include "support/cases.h"

#include <math.h>

#include "base/arena.h"
#include "base/rng.h"
#include "solve/lp/lp.h"
#include "solve/prices/simplex.h"

struct scene {
    struct arena arena;
    struct simplex simplex;
};

static void scene_make(struct scene *scene, uint32_t rows, const double *bound)
{
    arena_init(&scene->arena, 0);
    simplex_init(&scene->simplex, &scene->arena, rows, 128);
    simplex_bounds(&scene->simplex, bound);
    simplex_restart(&scene->simplex);
}

static void a_textbook_programme_has_its_optimum_and_duals(void **state)
{
    struct scene scene;
    scene_make(&scene, 3, (double[]){ 4, 12, 18 });
    simplex_add(&scene.simplex, 3, (double[]){ 1, 0, 3 });
    simplex_add(&scene.simplex, 5, (double[]){ 0, 2, 2 });

    assert_int_equal(simplex_solve(&scene.simplex), SIMPLEX_OPTIMAL);

    assert_near(scene.simplex.objective, 36, 1e-12);
    assert_near(scene.simplex.amount[0], 2, 1e-12);
    assert_near(scene.simplex.amount[1], 6, 1e-12);
    assert_near(scene.simplex.dual[0], 0, 1e-12);
    assert_near(scene.simplex.dual[1], 1.5, 1e-12);
    assert_near(scene.simplex.dual[2], 1, 1e-12);
    arena_release(&scene.arena);
}

static void without_columns_there_is_nothing_to_gain(void **state)
{
    struct scene scene;
    scene_make(&scene, 2, (double[]){ 1, 0 });
    assert_int_equal(simplex_solve(&scene.simplex), SIMPLEX_OPTIMAL);
    assert_near(scene.simplex.objective, 0, 0);
    arena_release(&scene.arena);
}

static void what_nothing_bounds_is_called_unbounded(void **state)
{
    struct scene scene;
    scene_make(&scene, 2, (double[]){ 1, 1 });
    simplex_add(&scene.simplex, 1, (double[]){ -1, 0 });
    assert_int_equal(simplex_solve(&scene.simplex), SIMPLEX_UNBOUNDED);
    arena_release(&scene.arena);
}

static void a_cycle_of_degenerate_steps_ends(void **state)
{
    /* Beale's example, on which taking the largest gain alone goes round for ever. */
    struct scene scene;
    scene_make(&scene, 3, (double[]){ 0, 0, 1 });
    simplex_add(&scene.simplex, 0.75, (double[]){ 0.25, 0.5, 0 });
    simplex_add(&scene.simplex, -150, (double[]){ -60, -90, 0 });
    simplex_add(&scene.simplex, 0.02, (double[]){ -0.04, -0.02, 1 });
    simplex_add(&scene.simplex, -6, (double[]){ 9, 3, 0 });
    assert_int_equal(simplex_solve(&scene.simplex), SIMPLEX_OPTIMAL);
    assert_near(scene.simplex.objective, 0.05, 1e-12);
    arena_release(&scene.arena);
}

static void a_basis_that_became_infeasible_is_given_up(void **state)
{
    struct scene scene;
    scene_make(&scene, 2, (double[]){ 1, 1 });
    simplex_add(&scene.simplex, 2, (double[]){ 1, 0.5 });
    simplex_add(&scene.simplex, 2, (double[]){ 0.5, 1 });
    assert_int_equal(simplex_solve(&scene.simplex), SIMPLEX_OPTIMAL);
    simplex_set(&scene.simplex, 0, 2, (double[]){ 1, 4 });
    simplex_set(&scene.simplex, 1, 2, (double[]){ 0.5, 4 });

    assert_false(simplex_refresh(&scene.simplex));
    assert_int_equal(simplex_solve(&scene.simplex), SIMPLEX_OPTIMAL);

    assert_near(scene.simplex.objective, 0.5, 1e-12);
    arena_release(&scene.arena);
}

/* The same programme for CLP. */
static double solved_by_clp(const struct simplex *simplex)
{
    struct lp *lp = lp_new();
    uint32_t rows[SIMPLEX_ROWS];
    for (uint32_t i = 0; i < simplex->row_count; i++)
        rows[i] = lp_add_row(lp, -LP_INFINITY, simplex->bound[i]);
    for (uint32_t c = 0; c < simplex->column_count; c++)
        lp_add_column(lp, simplex->gain[c], 0, LP_INFINITY, simplex->row_count, rows,
                      simplex->coefficient[c]);
    assert_int_equal(lp_maximise(lp, LP_PRIMAL), LP_OPTIMAL);
    double objective = lp_objective(lp);
    lp_free(lp);
    return objective;
}

static void assert_optimal(const struct simplex *simplex, double objective)
{
    double scale = 1 + fabs(objective), worth = 0;
    assert_near(simplex->objective, objective, 1e-7 * scale); /* CLP: 1e-9 per row */
    for (uint32_t i = 0; i < simplex->row_count; i++) {
        double used = 0;
        for (uint32_t c = 0; c < simplex->column_count; c++)
            used += simplex->amount[c] * simplex->coefficient[c][i];
        assert_true(used <= simplex->bound[i] + 1e-9 * scale);
        assert_true(simplex->dual[i] >= 0);
        worth += simplex->dual[i] * simplex->bound[i];
    }
    assert_near(worth, simplex->objective, 1e-10 * scale);
}

static void random_column(struct simplex *simplex, struct rng *rng, double *ret)
{
    for (uint32_t i = 0; i < simplex->row_count; i++)
        ret[i] = rng_below(rng, 4) ? rng_unit(rng) * 2 : 0;
    ret[rng_below(rng, simplex->row_count)] = 0.1 + rng_unit(rng);
}

static void columns_come_change_and_go(uint64_t seed)
{
    struct rng rng;
    struct scene scene;
    struct simplex *simplex = &scene.simplex;
    rng_init(&rng, seed, "simplex");
    uint32_t rows = 1 + rng_below(&rng, SIMPLEX_ROWS);
    double bound[SIMPLEX_ROWS], column[SIMPLEX_ROWS];
    for (uint32_t i = 0; i < rows; i++)
        bound[i] = rng_below(&rng, 6) ? rng_unit(&rng) * 10 : 0;
    scene_make(&scene, rows, bound);
    for (uint32_t step = 0; step < 60; step++) {
        random_column(simplex, &rng, column);
        uint32_t what = rng_below(&rng, 8);
        uint32_t which =
            simplex->column_count ? rng_below(&rng, simplex->column_count) : 0;
        if (what == 0 && simplex->column_count && !simplex->basic[which]) {
            simplex_remove(simplex, which);
        } else if (what == 1 && simplex->column_count) {
            simplex_set(simplex, which, rng_unit(&rng), column);
            simplex_refresh(simplex);
        } else if (what == 2) {
            bound[rng_below(&rng, rows)] = rng_unit(&rng) * 10;
            simplex_bounds(simplex, bound);
            simplex_refresh(simplex);
        } else {
            simplex_add(simplex, rng_unit(&rng) - 0.1, column);
        }
        assert_int_equal(simplex_solve(simplex), SIMPLEX_OPTIMAL);
        if (step % 10 == 9)
            assert_optimal(simplex, solved_by_clp(simplex));
    }
    arena_release(&scene.arena);
}

static void every_programme_comes_out_as_by_clp(void **state)
{
    FOR_EACH_SEED(seed, 60)
    columns_come_change_and_go(seed.now);
}

RUN_CASES(TEST(a_textbook_programme_has_its_optimum_and_duals),
          TEST(without_columns_there_is_nothing_to_gain),
          TEST(what_nothing_bounds_is_called_unbounded),
          TEST(a_cycle_of_degenerate_steps_ends),
          TEST(a_basis_that_became_infeasible_is_given_up),
          TEST(every_programme_comes_out_as_by_clp));
