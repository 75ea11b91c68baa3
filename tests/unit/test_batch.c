/*
 * A batch of jobs: the cheapest choice of each, and the same sums on every vector unit.
 */
#include "support/cases.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

#include "base/arena.h"
#include "base/rng.h"
#include "solve/prices/batch.h"

static void draw_batch(struct job_batch *batch, struct arena *arena, struct rng *rng,
                       uint32_t types, uint32_t count)
{
    batch_init(batch, arena, types, count);
    batch->count = count;
    for (uint32_t i = 0; i < count; i++) {
        double *at = batch_at(batch, i);
        if (rng_below(rng, 20) == 0)
            continue; /* an empty slot */
        for (uint32_t t = 0; t < types; t++)
            at[t * BATCH_LANES] =
                rng_below(rng, 6) ? 1 / (0.1 + rng_unit(rng)) : BATCH_NEVER;
        at[rng_below(rng, types) * BATCH_LANES] = 0.8;
        at[types * BATCH_LANES] = 1 + rng_below(rng, 8);
        at[(types + 1) * BATCH_LANES] = rng_unit(rng) * 0.5;
    }
}

static void draw_prices(struct rng *rng, uint32_t types, double *ret_price)
{
    for (uint32_t t = 0; t < types; t++)
        ret_price[t] = rng_below(rng, 4) ? rng_unit(rng) : 0;
    if (types > 2 && rng_below(rng, 3) == 0)
        ret_price[types - 1] = ret_price[0]; /* a tie */
}

static void every_vector_unit_gives_the_same_bits(void **state)
{
    FOR_EACH_SEED(seed, 60)
    {
        struct rng rng;
        struct arena arena;
        struct job_batch batch;
        double price[BATCH_TYPES_MAX];
        struct batch_demand first, other;
        rng_init(&rng, seed.now, "crowd");
        arena_init(&arena, 0);
        uint32_t types = 1 + rng_below(&rng, BATCH_TYPES_MAX);
        draw_batch(&batch, &arena, &rng, types, 1 + rng_below(&rng, 700));
        draw_prices(&rng, types, price);
        enum batch_due due = seed.now % 3;
        double z = 0.05 + rng_unit(&rng) * 0.8;
        batch_use_vectors(VECTORS_PORTABLE);
        batch_pass(&batch, due, price, z, &first);
        for (enum vectors v = VECTORS_AVX2; v <= VECTORS_AVX512; v++) {
            batch_use_vectors(v);
            batch_pass(&batch, due, price, z, &other);
            assert_memory_equal(&first, &other, sizeof first);
        }
        batch_use_vectors(VECTORS_WIDEST);
        arena_release(&arena);
    }
}

/* One thread's passes over jobs that all threads share. */
struct passes {
    const struct job_batch *batch;
    const double *price;
    struct batch_demand demand;
};

static void *pass_often(void *context)
{
    struct passes *passes = context;
    for (uint32_t i = 0; i < 200; i++)
        batch_pass(passes->batch, DUE_LINEAR, passes->price, 0.4, &passes->demand);
    return NULL;
}

static void threads_may_pass_while_vectors_are_chosen(void **state)
{
    struct rng rng;
    struct arena arena;
    struct job_batch batch;
    double price[BATCH_TYPES_MAX];
    struct batch_demand alone;
    rng_init(&rng, 1, "crowd");
    arena_init(&arena, 0);
    draw_batch(&batch, &arena, &rng, 3, 300);
    draw_prices(&rng, 3, price);
    batch_pass(&batch, DUE_LINEAR, price, 0.4, &alone);
    pthread_t threads[4];
    struct passes passes[4];
    for (uint32_t i = 0; i < 4; i++) {
        passes[i] = (struct passes){ .batch = &batch, .price = price };
        assert_int_equal(pthread_create(&threads[i], NULL, pass_often, &passes[i]), 0);
    }
    for (enum vectors v = VECTORS_PORTABLE; v <= VECTORS_WIDEST; v++)
        batch_use_vectors(v);
    for (uint32_t i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        assert_memory_equal(&passes[i].demand, &alone, sizeof alone);
    }
    arena_release(&arena);
}

/* Compiled apart for a few numbers of types and each way of being due: all of them agree. */
static void every_copy_of_the_pass_gives_the_same_bits(void **state)
{
    FOR_EVERY_SEED(seed, 20)
    {
        for (uint32_t types = 1; types <= 6; types++)
            for (enum batch_due due = DUE_LINEAR; due <= DUE_CAPPED; due++) {
                struct rng rng;
                struct arena arena;
                struct job_batch batch;
                double price[BATCH_TYPES_MAX];
                struct batch_demand first, other;
                rng_init(&rng, seed.now * 64 + types * 4 + due, "crowd");
                arena_init(&arena, 0);
                uint32_t count = seed.now % 4 ? 1 + rng_below(&rng, 60) : 300;
                draw_batch(&batch, &arena, &rng, types, count);
                draw_prices(&rng, types, price);
                if (types > 1 && seed.now % 2)
                    price[rng_below(&rng, types)] = BATCH_CLOSED;
                double z = seed.now % 5 ? 0.05 + rng_unit(&rng) * 0.8 : 1e-3;
                batch_use_vectors(VECTORS_PORTABLE);
                batch_pass(&batch, due, price, z, &first);
                for (enum vectors v = VECTORS_AVX2; v <= VECTORS_AVX512; v++) {
                    batch_use_vectors(v);
                    batch_pass(&batch, due, price, z, &other);
                    assert_memory_equal(&first, &other, sizeof first);
                }
                batch_use_vectors(VECTORS_WIDEST);
                arena_release(&arena);
            }
    }
}

/* The least cost by trying every type and every pair. */
static double cheapest(const struct job_batch *batch, const double *at,
                       const double *price, double want)
{
    double least = INFINITY;
    for (uint32_t t = 0; t < batch->type_count; t++) {
        double a = at[t * BATCH_LANES] < BATCH_NEVER ? 1 / at[t * BATCH_LANES] : 0;
        if (a > 0 && want <= a * (1 + 1e-14))
            least = fmin(least, want / a * price[t]);
        for (uint32_t u = 0; u < batch->type_count; u++) {
            double b = 1 / at[u * BATCH_LANES];
            if (b < want || a >= want)
                continue;
            double x = (want - a) / (b - a);
            least = fmin(least, x * price[u] + (1 - x) * price[t]);
        }
    }
    return least;
}

static void a_choice_is_the_cheapest_and_a_pass_is_their_sum(void **state)
{
    FOR_EACH_SEED(seed, 60)
    {
        struct rng rng;
        struct arena arena;
        struct job_batch batch;
        double price[BATCH_TYPES_MAX], usage[BATCH_TYPES_MAX] = { 0 };
        struct batch_demand demand;
        rng_init(&rng, seed.now, "crowd");
        arena_init(&arena, 0);
        uint32_t types = 1 + rng_below(&rng, BATCH_TYPES_MAX);
        draw_batch(&batch, &arena, &rng, types, 1 + rng_below(&rng, 300));
        draw_prices(&rng, types, price);
        enum batch_due due = seed.now % 3;
        double z = 0.05 + rng_unit(&rng) * 0.7, cost = 0;
        batch_pass(&batch, due, price, z, &demand);
        for (uint32_t i = 0; i < batch.count; i++) {
            const double *at = batch_at(&batch, i);
            double gang = batch_gang(&batch, at);
            if (gang == 0)
                continue;
            double want = batch_due(due, batch_bend(&batch, at), z);
            struct batch_choice choice = batch_choose(&batch, at, price, want);
            assert_true(choice.x_slow >= 0 && choice.x_fast >= 0);
            assert_true(choice.x_slow + choice.x_fast <= 1 + 1e-14);
            assert_near(choice.x_slow / at[choice.slow * BATCH_LANES] +
                            choice.x_fast / at[choice.fast * BATCH_LANES],
                        want, 1e-13);
            double paid =
                choice.x_slow * price[choice.slow] + choice.x_fast * price[choice.fast];
            assert_near(paid, cheapest(&batch, at, price, want), 1e-12);
            usage[choice.slow] += gang * choice.x_slow;
            usage[choice.fast] += gang * choice.x_fast;
            cost += gang * paid;
        }
        for (uint32_t t = 0; t < types; t++)
            assert_near(demand.usage[t], usage[t], 1e-9);
        assert_near(demand.cost, cost, 1e-9);
        arena_release(&arena);
    }
}

static void the_slope_is_that_of_the_cost(void **state)
{
    FOR_EACH_SEED(seed, 40)
    {
        struct rng rng;
        struct arena arena;
        struct job_batch batch;
        double price[BATCH_TYPES_MAX];
        struct batch_demand here, above;
        rng_init(&rng, seed.now, "crowd");
        arena_init(&arena, 0);
        uint32_t types = 1 + rng_below(&rng, BATCH_TYPES_MAX);
        draw_batch(&batch, &arena, &rng, types, 200);
        draw_prices(&rng, types, price);
        enum batch_due due = seed.now % 2 ? DUE_LINEAR : DUE_CONVEX;
        double z = 0.05 + rng_unit(&rng) * 0.7;
        batch_pass(&batch, due, price, z, &here);
        batch_pass(&batch, due, price, z * 1.01, &above);
        /* convex: the tangent stays below, and the one above stays above */
        double step = z * 0.01, rise = above.cost - here.cost;
        assert_true(rise >= here.slope * step - 1e-9);
        assert_true(rise <= above.slope * step + 1e-9);
        arena_release(&arena);
    }
}

static void a_closed_type_is_not_used(void **state)
{
    struct arena arena;
    struct job_batch batch;
    struct batch_demand demand;
    arena_init(&arena, 0);
    batch_init(&batch, &arena, 2, 1);
    batch.count = 1;
    memcpy(batch_at(&batch, 0), (double[1]){ 1 }, sizeof(double));
    batch_at(&batch, 0)[1 * BATCH_LANES] = 0.25;
    batch_at(&batch, 0)[2 * BATCH_LANES] = 1;
    batch_pass(&batch, DUE_LINEAR, (double[]){ 0, BATCH_CLOSED }, 1, &demand);
    assert_near(demand.usage[0], 1, 0);
    assert_near(demand.usage[1], 0, 0);
    arena_release(&arena);
}

static void jobs_are_appended_moved_and_left_out(void **state)
{
    struct rng rng;
    struct arena arena;
    struct job_batch from, to;
    struct batch_demand a, b;
    rng_init(&rng, 1, "crowd");
    arena_init(&arena, 0);
    draw_batch(&from, &arena, &rng, 3, 40);
    batch_init(&to, &arena, 3, 40);
    for (uint32_t i = 0; i < 40; i++)
        batch_append(&to, &from, i);
    batch_trim(&to, 13);
    for (uint32_t i = 13; i < 20; i++)
        batch_append(&to, &from, i);
    from.count = 20;
    for (uint32_t i = 20; i < 24; i++)
        batch_clear_slot(&from, i);
    batch_pass(&from, DUE_LINEAR, (double[]){ 0.2, 0.3, 0.4 }, 0.4, &a);
    batch_pass(&to, DUE_LINEAR, (double[]){ 0.2, 0.3, 0.4 }, 0.4, &b);
    assert_memory_equal(&a, &b, sizeof a);
    arena_release(&arena);
}

RUN_CASES(TEST(every_vector_unit_gives_the_same_bits),
          TEST(threads_may_pass_while_vectors_are_chosen),
          TEST(every_copy_of_the_pass_gives_the_same_bits),
          TEST(a_choice_is_the_cheapest_and_a_pass_is_their_sum),
          TEST(the_slope_is_that_of_the_cost), TEST(a_closed_type_is_not_used),
          TEST(jobs_are_appended_moved_and_left_out));
