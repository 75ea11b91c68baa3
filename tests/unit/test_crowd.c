/* Asking a crowd: the cheapest way of each, and the same sums on every vector unit. */
#include "support/cases.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

#include "base/arena.h"
#include "base/rng.h"
#include "solve/maxmin/batch.h"

static void crowd_draw(struct crowd *crowd, struct arena *arena, struct rng *rng,
                       uint32_t types, uint32_t count)
{
    crowd_init(crowd, arena, types, count);
    crowd->count = count;
    for (uint32_t i = 0; i < count; i++) {
        double *at = crowd_at(crowd, i);
        if (rng_below(rng, 20) == 0)
            continue; /* nobody */
        for (uint32_t t = 0; t < types; t++)
            at[t * CROWD_LANES] =
                rng_below(rng, 6) ? 1 / (0.1 + rng_unit(rng)) : CROWD_NEVER;
        at[rng_below(rng, types) * CROWD_LANES] = 0.8;
        at[types * CROWD_LANES] = 1 + rng_below(rng, 8);
        at[(types + 1) * CROWD_LANES] = rng_unit(rng) * 0.5;
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
        struct crowd crowd;
        double price[CROWD_TYPES];
        struct demand first, other;
        rng_init(&rng, seed.now, "crowd");
        arena_init(&arena, 0);
        uint32_t types = 1 + rng_below(&rng, CROWD_TYPES);
        crowd_draw(&crowd, &arena, &rng, types, 1 + rng_below(&rng, 700));
        draw_prices(&rng, types, price);
        enum crowd_due due = seed.now % 3;
        double z = 0.05 + rng_unit(&rng) * 0.8;
        crowd_use_vectors(VECTORS_PORTABLE);
        crowd_pass(&crowd, due, price, z, &first);
        for (enum vectors v = VECTORS_AVX2; v <= VECTORS_AVX512; v++) {
            crowd_use_vectors(v);
            crowd_pass(&crowd, due, price, z, &other);
            assert_memory_equal(&first, &other, sizeof first);
        }
        crowd_use_vectors(VECTORS_WIDEST);
        arena_release(&arena);
    }
}

/* One thread's passes over jobs that all threads share. */
struct passes {
    const struct crowd *crowd;
    const double *price;
    struct demand demand;
};

static void *pass_often(void *context)
{
    struct passes *passes = context;
    for (uint32_t i = 0; i < 200; i++)
        crowd_pass(passes->crowd, DUE_PLAIN, passes->price, 0.4, &passes->demand);
    return NULL;
}

static void threads_may_pass_while_vectors_are_chosen(void **state)
{
    struct rng rng;
    struct arena arena;
    struct crowd crowd;
    double price[CROWD_TYPES];
    struct demand alone;
    rng_init(&rng, 1, "crowd");
    arena_init(&arena, 0);
    crowd_draw(&crowd, &arena, &rng, 3, 300);
    draw_prices(&rng, 3, price);
    crowd_pass(&crowd, DUE_PLAIN, price, 0.4, &alone);
    pthread_t threads[4];
    struct passes passes[4];
    for (uint32_t i = 0; i < 4; i++) {
        passes[i] = (struct passes){ .crowd = &crowd, .price = price };
        assert_int_equal(pthread_create(&threads[i], NULL, pass_often, &passes[i]), 0);
    }
    for (enum vectors v = VECTORS_PORTABLE; v <= VECTORS_WIDEST; v++)
        crowd_use_vectors(v);
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
            for (enum crowd_due due = DUE_PLAIN; due <= DUE_CAPPED; due++) {
                struct rng rng;
                struct arena arena;
                struct crowd crowd;
                double price[CROWD_TYPES];
                struct demand first, other;
                rng_init(&rng, seed.now * 64 + types * 4 + due, "crowd");
                arena_init(&arena, 0);
                uint32_t count = seed.now % 4 ? 1 + rng_below(&rng, 60) : 300;
                crowd_draw(&crowd, &arena, &rng, types, count);
                draw_prices(&rng, types, price);
                if (types > 1 && seed.now % 2)
                    price[rng_below(&rng, types)] = CROWD_CLOSED;
                double z = seed.now % 5 ? 0.05 + rng_unit(&rng) * 0.8 : 1e-3;
                crowd_use_vectors(VECTORS_PORTABLE);
                crowd_pass(&crowd, due, price, z, &first);
                for (enum vectors v = VECTORS_AVX2; v <= VECTORS_AVX512; v++) {
                    crowd_use_vectors(v);
                    crowd_pass(&crowd, due, price, z, &other);
                    assert_memory_equal(&first, &other, sizeof first);
                }
                crowd_use_vectors(VECTORS_WIDEST);
                arena_release(&arena);
            }
    }
}

/* The least cost by trying every type and every pair. */
static double cheapest(const struct crowd *crowd, const double *at, const double *price,
                       double want)
{
    double least = INFINITY;
    for (uint32_t t = 0; t < crowd->type_count; t++) {
        double a = at[t * CROWD_LANES] < CROWD_NEVER ? 1 / at[t * CROWD_LANES] : 0;
        if (a > 0 && want <= a * (1 + 1e-14))
            least = fmin(least, want / a * price[t]);
        for (uint32_t u = 0; u < crowd->type_count; u++) {
            double b = 1 / at[u * CROWD_LANES];
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
        struct crowd crowd;
        double price[CROWD_TYPES], usage[CROWD_TYPES] = { 0 };
        struct demand demand;
        rng_init(&rng, seed.now, "crowd");
        arena_init(&arena, 0);
        uint32_t types = 1 + rng_below(&rng, CROWD_TYPES);
        crowd_draw(&crowd, &arena, &rng, types, 1 + rng_below(&rng, 300));
        draw_prices(&rng, types, price);
        enum crowd_due due = seed.now % 3;
        double z = 0.05 + rng_unit(&rng) * 0.7, cost = 0;
        crowd_pass(&crowd, due, price, z, &demand);
        for (uint32_t i = 0; i < crowd.count; i++) {
            const double *at = crowd_at(&crowd, i);
            double gang = crowd_gang(&crowd, at);
            if (gang == 0)
                continue;
            double want = crowd_due(due, crowd_bend(&crowd, at), z);
            struct choice choice = crowd_choose(&crowd, at, price, want);
            assert_true(choice.x_slow >= 0 && choice.x_fast >= 0);
            assert_true(choice.x_slow + choice.x_fast <= 1 + 1e-14);
            assert_near(choice.x_slow / at[choice.slow * CROWD_LANES] +
                            choice.x_fast / at[choice.fast * CROWD_LANES],
                        want, 1e-13);
            double paid =
                choice.x_slow * price[choice.slow] + choice.x_fast * price[choice.fast];
            assert_near(paid, cheapest(&crowd, at, price, want), 1e-12);
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
        struct crowd crowd;
        double price[CROWD_TYPES];
        struct demand here, above;
        rng_init(&rng, seed.now, "crowd");
        arena_init(&arena, 0);
        uint32_t types = 1 + rng_below(&rng, CROWD_TYPES);
        crowd_draw(&crowd, &arena, &rng, types, 200);
        draw_prices(&rng, types, price);
        enum crowd_due due = seed.now % 2 ? DUE_PLAIN : DUE_BENT;
        double z = 0.05 + rng_unit(&rng) * 0.7;
        crowd_pass(&crowd, due, price, z, &here);
        crowd_pass(&crowd, due, price, z * 1.01, &above);
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
    struct crowd crowd;
    struct demand demand;
    arena_init(&arena, 0);
    crowd_init(&crowd, &arena, 2, 1);
    crowd.count = 1;
    memcpy(crowd_at(&crowd, 0), (double[1]){ 1 }, sizeof(double));
    crowd_at(&crowd, 0)[1 * CROWD_LANES] = 0.25;
    crowd_at(&crowd, 0)[2 * CROWD_LANES] = 1;
    crowd_pass(&crowd, DUE_PLAIN, (double[]){ 0, CROWD_CLOSED }, 1, &demand);
    assert_near(demand.usage[0], 1, 0);
    assert_near(demand.usage[1], 0, 0);
    arena_release(&arena);
}

static void jobs_are_appended_moved_and_left_out(void **state)
{
    struct rng rng;
    struct arena arena;
    struct crowd from, to;
    struct demand a, b;
    rng_init(&rng, 1, "crowd");
    arena_init(&arena, 0);
    crowd_draw(&from, &arena, &rng, 3, 40);
    crowd_init(&to, &arena, 3, 40);
    for (uint32_t i = 0; i < 40; i++)
        crowd_append(&to, &from, i);
    crowd_trim(&to, 13);
    for (uint32_t i = 13; i < 20; i++)
        crowd_append(&to, &from, i);
    from.count = 20;
    for (uint32_t i = 20; i < 24; i++)
        crowd_empty(&from, i);
    crowd_pass(&from, DUE_PLAIN, (double[]){ 0.2, 0.3, 0.4 }, 0.4, &a);
    crowd_pass(&to, DUE_PLAIN, (double[]){ 0.2, 0.3, 0.4 }, 0.4, &b);
    assert_memory_equal(&a, &b, sizeof a);
    arena_release(&arena);
}

RUN_CASES(TEST(every_vector_unit_gives_the_same_bits),
          TEST(threads_may_pass_while_vectors_are_chosen),
          TEST(every_copy_of_the_pass_gives_the_same_bits),
          TEST(a_choice_is_the_cheapest_and_a_pass_is_their_sum),
          TEST(the_slope_is_that_of_the_cost), TEST(a_closed_type_is_not_used),
          TEST(jobs_are_appended_moved_and_left_out));
