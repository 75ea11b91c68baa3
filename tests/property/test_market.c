/*
 * Markets of every kind: shares are feasible and reach the level, the bound is proven by
 * the prices alone, and CLP finds the same.
 */
#include "support/cases.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/rng.h"
#include "solve/random_programme.h"
#include "solve/lp/lp.h"
#include "solve/maxmin/market.h"

#define TYPES_MAX 8
#define JOBS_MAX 300

struct scene {
    struct rng rng;
    uint32_t job_count, type_count;
    double capacity[TYPES_MAX];
    double rate[JOBS_MAX][TYPES_MAX];
    struct buyer buyer[JOBS_MAX]; /* gang 0: an empty slot */
};

enum goal_kind { PLAIN, BENT };

static double spread(struct rng *rng, double from, double to)
{
    return exp(log(from) + rng_unit(rng) * log(to / from));
}

static void draw_rates(struct scene *scene, uint32_t job)
{
    struct rng *rng = &scene->rng;
    double gain = spread(rng, 1, 8);
    bool inverted = rng_below(rng, 5) == 0, some = false;
    for (uint32_t t = 0; t < scene->type_count; t++) {
        double along =
            (inverted ? scene->type_count - 1 - t : t) / (double)scene->type_count;
        scene->rate[job][t] = pow(gain, along) * spread(rng, 0.8, 1.25);
        if (rng_below(rng, 8) == 0)
            scene->rate[job][t] = 0;
        some |= scene->rate[job][t] > 0;
    }
    if (!some)
        scene->rate[job][rng_below(rng, scene->type_count)] = 1;
}

static void draw_buyer(struct scene *scene, enum goal_kind kind, uint32_t job)
{
    struct rng *rng = &scene->rng;
    draw_rates(scene, job);
    scene->buyer[job] =
        (struct buyer){ .rate = scene->rate[job],
                        .gang = 1 << rng_below(rng, 4),
                        .need = rng_below(rng, 2) ? 1 : spread(rng, 0.1, 10),
                        .ahead = kind == BENT ? spread(rng, 0.01, 3) : 0 };
    if (rng_below(rng, 40) == 0)
        scene->buyer[job].gang = 500; /* larger than all there is */
    if (kind == BENT && rng_below(rng, 4) == 0)
        scene->buyer[job].ahead = 0;
    if (kind == BENT && rng_below(rng, 3) == 0)
        scene->buyer[job].need = spread(rng, 1e-6, 1); /* nearly done: a steep due */
}

static void draw_scene(struct scene *scene, enum goal_kind kind, uint64_t seed)
{
    static const uint32_t sizes[] = { 1, 2, 3, 5, 8, 13, 30, 60, 120, JOBS_MAX };
    struct rng *rng = &scene->rng;
    rng_init(rng, seed, "market");
    uint32_t most = sizes[rng_below(rng, seed % 7 == 0 ? 10 : 8)];
    scene->job_count = 1 + rng_below(rng, most);
    scene->type_count = 1 + rng_below(rng, TYPES_MAX);
    bool alike = rng_below(rng, 6) == 0;
    for (uint32_t j = 0; j < scene->job_count; j++) {
        draw_buyer(scene, kind, j);
        if (!alike || j == 0 || rng_below(rng, 3) == 0)
            continue;
        memcpy(scene->rate[j], scene->rate[0], sizeof scene->rate[j]);
        scene->buyer[j] = scene->buyer[0];
        scene->buyer[j].rate = scene->rate[j];
    }
    double load = spread(rng, 0.3, 12);
    for (uint32_t t = 0; t < scene->type_count; t++)
        scene->capacity[t] =
            scene->job_count / load / scene->type_count * spread(rng, 0.3, 3);
    if (rng_below(rng, 5) == 0)
        scene->capacity[rng_below(rng, scene->type_count)] = 0;
}

static double due(const struct buyer *buyer, double z)
{
    return buyer->need * z / (1 - buyer->ahead * z);
}

/* The cheapest way to 'want', by trying every type and every pair of types. */
static double cheapest(const struct scene *scene, const struct buyer *buyer,
                       const double *price, double want)
{
    double least = INFINITY;
    for (uint32_t t = 0; t < scene->type_count; t++) {
        double a = buyer->rate[t];
        if (scene->capacity[t] <= 0)
            continue;
        if (a > 0 && a >= want)
            least = fmin(least, want / a * price[t]);
        for (uint32_t u = 0; u < scene->type_count; u++) {
            double b = buyer->rate[u];
            if (scene->capacity[u] <= 0 || b < want || a >= want)
                continue;
            double x = (want - a) / (b - a);
            least = fmin(least, x * price[u] + (1 - x) * price[t]);
        }
    }
    return least;
}

/* The level that one job's own fastest type allows. */
static double ceiling(const struct scene *scene)
{
    double least = INFINITY;
    for (uint32_t j = 0; j < scene->job_count; j++) {
        const struct buyer *buyer = &scene->buyer[j];
        double fastest = 0;
        if (buyer->gang == 0)
            continue;
        for (uint32_t t = 0; t < scene->type_count; t++)
            if (scene->capacity[t] > 0)
                fastest = fmax(fastest, buyer->rate[t] / buyer->need);
        least = fmin(least, fastest / (1 + buyer->ahead * fastest));
    }
    return least;
}

/* Is this level beyond what some job could reach at any rate? */
static bool beyond_anything(const struct scene *scene, double z)
{
    for (uint32_t j = 0; j < scene->job_count; j++)
        if (scene->buyer[j].gang > 0 && scene->buyer[j].ahead * z >= 1)
            return true;
    return false;
}

static void assert_bound_is_proven(const struct scene *scene,
                                   const struct market_answer *answer)
{
    double own = ceiling(scene), cost = 0, worth = 0;
    double z =
        answer->bound * (1 + 1e-9); /* steep dues: rounding in z is much in them */
    assert_true(answer->bound <= own * (1 + 1e-12));
    if (z >= own || beyond_anything(scene, z))
        return;
    for (uint32_t t = 0; t < scene->type_count; t++)
        worth += answer->price[t] * scene->capacity[t];
    for (uint32_t j = 0; j < scene->job_count; j++) {
        const struct buyer *buyer = &scene->buyer[j];
        if (buyer->gang == 0)
            continue;
        cost += buyer->gang * cheapest(scene, buyer, answer->price, due(buyer, z));
    }
    assert_true(cost >= worth * (1 - 1e-9));
}

static void assert_shares_hold(const struct scene *scene, const struct market *market,
                               double level)
{
    double used[TYPES_MAX] = { 0 }, x[TYPES_MAX];
    for (uint32_t j = 0; j < scene->job_count; j++) {
        const struct buyer *buyer = &scene->buyer[j];
        double budget = 0, rate = 0;
        if (buyer->gang == 0)
            continue;
        market_share(market, j, x);
        for (uint32_t t = 0; t < scene->type_count; t++) {
            assert_true(x[t] >= 0);
            assert_true(x[t] == 0 || buyer->rate[t] > 0);
            budget += x[t];
            rate += x[t] * buyer->rate[t];
            used[t] += x[t] * buyer->gang;
        }
        assert_true(budget <= 1 + 1e-9);
        assert_true(rate >= due(buyer, level) * (1 - 1e-9));
    }
    for (uint32_t t = 0; t < scene->type_count; t++)
        assert_true(used[t] <= scene->capacity[t] * (1 + 1e-9));
}

/* The largest y for which every job can have y times what it is due at level 'at'. */
static double solved_by_clp(const struct scene *scene, double at, bool bent)
{
    struct lp *lp = lp_new();
    uint32_t room[TYPES_MAX];
    for (uint32_t t = 0; t < scene->type_count; t++)
        room[t] = lp_add_row(lp, -LP_INFINITY, scene->capacity[t]);
    uint32_t first = lp_add_row(lp, 0, LP_INFINITY);
    for (uint32_t j = 1; j < scene->job_count; j++)
        lp_add_row(lp, 0, LP_INFINITY);
    uint32_t budget = lp_add_row(lp, -LP_INFINITY, 1);
    for (uint32_t j = 1; j < scene->job_count; j++)
        lp_add_row(lp, -LP_INFINITY, 1);
    for (uint32_t j = 0; j < scene->job_count; j++)
        for (uint32_t t = 0; t < scene->type_count; t++)
            lp_add_column(lp, 0, 0, LP_INFINITY, 3,
                          (uint32_t[]){ room[t], first + j, budget + j },
                          (double[]){ scene->buyer[j].gang, scene->rate[j][t], 1 });
    uint32_t rows[JOBS_MAX];
    double takes[JOBS_MAX];
    for (uint32_t j = 0; j < scene->job_count; j++) {
        rows[j] = first + j;
        takes[j] = -(bent ? due(&scene->buyer[j], at) : scene->buyer[j].need);
    }
    lp_add_column(lp, 1, 0, LP_INFINITY, scene->job_count, rows, takes);
    assert_int_equal(lp_maximise(lp, LP_DUAL), LP_OPTIMAL);
    double y = lp_objective(lp);
    lp_free(lp);
    return y;
}

static void put_all(const struct scene *scene, struct market *market)
{
    for (uint32_t j = 0; j < scene->job_count; j++)
        if (scene->buyer[j].gang > 0)
            market_put(market, j, &scene->buyer[j]);
}

static void solve_or_fail(struct market *market, double tolerance,
                          struct market_answer *ret_answer)
{
    struct error err;
    if (market_solve(market, tolerance, ret_answer, &err) == 0)
        return;
    print_error("%s\n", err.text);
    fail();
}

static void assert_solved(const struct scene *scene, const struct market *market,
                          const struct market_answer *answer)
{
    assert_true(answer->level <= answer->bound);
    assert_true(answer->bound - answer->level <= 1e-7 * answer->bound);
    assert_bound_is_proven(scene, answer);
    assert_shares_hold(scene, market, answer->level);
}

static void linear_dues_come_out_as_by_clp(void **state)
{
    static struct scene scene;
    FOR_EACH_SEED(seed, 2000)
    {
        struct market_answer answer;
        draw_scene(&scene, PLAIN, seed.now);
        struct market *market =
            market_new(scene.type_count, scene.capacity, scene.job_count);
        put_all(&scene, market);
        solve_or_fail(market, 1e-7, &answer);
        assert_solved(&scene, market, &answer);
        double z = solved_by_clp(&scene, 0, false);
        assert_near(answer.level, z, 1e-6 * z + 1e-7 * (answer.level == 0));
        market_free(market);
    }
}

static void convex_dues_come_out_as_by_clp(void **state)
{
    static struct scene scene;
    FOR_EACH_SEED(seed, 1000)
    {
        struct market_answer answer;
        draw_scene(&scene, BENT, seed.now);
        struct market *market =
            market_new(scene.type_count, scene.capacity, scene.job_count);
        put_all(&scene, market);
        solve_or_fail(market, 1e-7, &answer);
        assert_solved(&scene, market, &answer);
        if (answer.level > 0) {
            assert_true(solved_by_clp(&scene, answer.level, true) >= 1 - 1e-7);
            double above = answer.bound * (1 + 1e-6);
            assert_true(beyond_anything(&scene, above) ||
                        solved_by_clp(&scene, above, true) < 1);
        }
        market_free(market);
    }
}

/* Add, remove or change a job; now and then change capacities. */
static void change(struct scene *scene, enum goal_kind kind, struct market *market)
{
    struct rng *rng = &scene->rng;
    uint32_t j = rng_below(rng, scene->job_count);
    if (rng_below(rng, 12) == 0) {
        uint32_t t = rng_below(rng, scene->type_count);
        scene->capacity[t] = rng_below(rng, 4) ? scene->capacity[t] + 1 : 0;
        market_set_capacity(market, scene->capacity);
    } else if (scene->buyer[j].gang > 0 && rng_below(rng, 3)) {
        market_drop(market, j);
        scene->buyer[j].gang = 0;
    } else {
        draw_buyer(scene, kind, j);
        market_put(market, j, &scene->buyer[j]);
    }
}

static uint32_t jobs_here(const struct scene *scene)
{
    uint32_t count = 0;
    for (uint32_t j = 0; j < scene->job_count; j++)
        count += scene->buyer[j].gang > 0;
    return count;
}

static void jobs_are_added_and_removed(enum goal_kind kind, uint64_t seed)
{
    static struct scene scene;
    struct market_answer warm, cold;
    draw_scene(&scene, kind, seed);
    struct market *market =
        market_new(scene.type_count, scene.capacity, scene.job_count);
    put_all(&scene, market);
    for (uint32_t step = 0; step < 30; step++) {
        uint32_t changes = rng_below(&scene.rng, 4);
        for (uint32_t i = 0; i < changes; i++)
            change(&scene, kind, market);
        solve_or_fail(market, 1e-7, &warm);
        if (jobs_here(&scene) == 0) {
            assert_near(warm.bound, 0, 0);
            continue;
        }
        assert_solved(&scene, market, &warm);
        struct market *fresh =
            market_new(scene.type_count, scene.capacity, scene.job_count);
        put_all(&scene, fresh);
        solve_or_fail(fresh, 1e-7, &cold);
        assert_near(warm.level, cold.level, 1e-6 * cold.level);
        market_free(fresh);
    }
    market_free(market);
}

static void a_warm_market_finds_what_a_fresh_one_does(void **state)
{
    FOR_EACH_SEED(seed, 200)
    jobs_are_added_and_removed(seed.now % 3 ? PLAIN : BENT, seed.now);
}

/* The shares of a random programme hold, and the bound is near. */
static void assert_drawn_solved(const struct random_programme *drawn,
                                enum random_goal goal, const struct market *market,
                                const struct market_answer *answer)
{
    double used[16] = { 0 }, x[16], rates[16];
    assert_true(answer->level > 0);
    assert_true(answer->bound - answer->level <= 1e-7 * answer->bound);
    for (uint32_t j = 0; j < drawn->job_count; j++) {
        struct buyer buyer = random_programme_buyer(drawn, goal, j, rates);
        double budget = 0, rate = 0;
        market_share(market, j, x);
        for (uint32_t t = 0; t < drawn->type_count; t++) {
            assert_true(x[t] >= 0);
            budget += x[t];
            rate += x[t] * rates[t];
            used[t] += x[t] * buyer.gang;
        }
        assert_true(budget <= 1 + 1e-9);
        assert_true(rate >= due(&buyer, answer->level) * (1 - 1e-9));
    }
    for (uint32_t t = 0; t < drawn->type_count; t++)
        assert_true(used[t] <= drawn->capacity[t] * (1 + 1e-9));
}

static void samples_and_boxes_lead_to_proven_shares(void **state)
{
    FOR_EACH_SEED(seed, 36)
    {
        static const double loads[] = { 0.6, 1.2, 1.7, 2.3, 4, 10 };
        struct arena arena;
        struct random_programme drawn;
        struct market_answer answer;
        double rates[16];
        uint32_t turn = (uint32_t)seed.now;
        enum random_goal goal = turn % 3;
        arena_init(&arena, 0);
        random_programme_make(
            &drawn, &arena,
            &(struct random_programme_setup){
                .job_count = turn % 13 ? 3000 + 200 * (turn % 20) : 50000,
                .type_count = 2 + turn % 9,
                .jobs_per_gpu = loads[turn % 6],
                .noise = 0.15 * (turn % 5 > 0),
                .seed = seed.now });
        struct market *market =
            market_new(drawn.type_count, drawn.capacity, drawn.job_count);
        for (uint32_t j = 0; j < drawn.job_count; j++) {
            struct buyer buyer = random_programme_buyer(&drawn, goal, j, rates);
            market_put(market, j, &buyer);
        }
        solve_or_fail(market, 1e-7, &answer);
        assert_drawn_solved(&drawn, goal, market, &answer);
        market_free(market);
        arena_release(&arena);
    }
}

RUN_CASES(TEST(linear_dues_come_out_as_by_clp), TEST(convex_dues_come_out_as_by_clp),
          TEST(a_warm_market_finds_what_a_fresh_one_does),
          TEST(samples_and_boxes_lead_to_proven_shares));
