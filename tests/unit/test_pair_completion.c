/* What kinds keep beside others where that was not measured: how near it is, what it decides. */
#include "support/world.h"

#include <math.h>
#include <stdio.h>

#include "base/rng.h"
#include "model/published.h"
#include "model/sharing.h"
#include "model/state_rates.h"
#include "predict/pair_completion.h"

#define V100 0

static uint32_t changed_count;

static void count_change(void *context, uint32_t kind)
{
    changed_count++;
}

static struct world *open_world(void)
{
    static struct world w;
    world_init_as(&w, "1xv100:2,1xp100:2,1xk80:4");
    state_learn(&w.state, &w.arena);
    changed_count = 0;
    return &w;
}

static uint64_t add_kind(struct world *w, const char *name)
{
    uint32_t kind = rate_table_add_kind(&w->state.rates, name, 0);
    w->state.rates.kinds[kind].jobs = 1;
    return w->state.rates.kinds[kind].hash;
}

/* What both keep, as often as it takes to be believed. */
static void measure(struct world *w, uint64_t a, uint64_t b, uint32_t type, double of_a,
                    double of_b)
{
    for (uint32_t i = 0; i < PAIR_SURE; i++) {
        pair_table_measure(&w->state.pairs, a, b, type, of_a);
        if (a != b)
            pair_table_measure(&w->state.pairs, b, a, type, of_b);
    }
}

static void update(struct world *w)
{
    pair_completion_update(&w->state.pairs, &w->state.rates, count_change, NULL);
}

/* --- how near ------------------------------------------------------------------------- */

#define KINDS PUBLISHED_KINDS

/* A cluster's kinds, with what each keeps beside each. */
struct drawn {
    uint64_t hashes[KINDS];
    double kept[KINDS][KINDS];
    uint32_t count;
    bool known[KINDS][KINDS];
};

struct errors {
    double estimated, constant; /* sums of absolute errors */
    uint32_t count, inside; /* estimates, and those whose interval holds the truth */
};

/* So many of the shipped kinds, as the model of sharing has them; some are as no model says. */
static void draw_kinds(struct world *w, struct rng *rng, uint32_t count, uint32_t type,
                       struct drawn *drawn)
{
    uint32_t order[KINDS];
    *drawn = (struct drawn){ .count = count };
    for (uint32_t k = 0; k < KINDS; k++)
        order[k] = k;
    for (uint32_t k = 0; k < count; k++) {
        uint32_t other = k + rng_below(rng, KINDS - k);
        uint32_t chosen = order[other];
        order[other] = order[k];
        order[k] = chosen;
        drawn->hashes[k] = add_kind(w, published_kinds[chosen].name);
    }
    for (uint32_t a = 0; a < count; a++)
        for (uint32_t b = 0; b < count; b++) {
            const struct sharing *own = &published_kinds[order[a]].sharing[type];
            const struct sharing *other = &published_kinds[order[b]].sharing[type];
            double model = 1 / (1 + own->sensitivity * other->pressure);
            drawn->kept[a][b] = model * exp(0.1 * rng_normal(rng));
        }
}

/* The same of a table: what was measured of these kinds; parts of 0 did not fit in memory. */
static void draw_measured(struct world *w, struct rng *rng, uint32_t count,
                          uint32_t type, const struct throughput *table,
                          struct drawn *drawn)
{
    uint32_t rows[KINDS];
    draw_kinds(w, rng, count, type, drawn);
    for (uint32_t k = 0; k < count; k++)
        for (uint32_t i = 0; i < KINDS; i++)
            if (rate_table_hash(published_kinds[i].name) == drawn->hashes[k])
                rows[k] = throughput_find(table, published_kinds[i].name);
    for (uint32_t a = 0; a < count; a++)
        for (uint32_t b = 0; b < count; b++) {
            double both[2];
            double alone = table->rows[rows[a]].rate[type][0][0];
            bool fits =
                throughput_pair(table, rows[a], rows[b], type, 1, false, both) &&
                both[0] > 0 && both[1] > 0;
            drawn->kept[a][b] = fits ? fmin(both[0] / alone, 1) : NAN;
        }
}

static void measure_part(struct world *w, struct rng *rng, struct drawn *drawn,
                         uint32_t type, double part)
{
    for (uint32_t a = 0; a < drawn->count; a++)
        for (uint32_t b = a; b < drawn->count; b++) {
            if (isnan(drawn->kept[a][b]) || rng_unit(rng) >= part)
                continue;
            drawn->known[a][b] = drawn->known[b][a] = true;
            measure(w, drawn->hashes[a], drawn->hashes[b], type, drawn->kept[a][b],
                    drawn->kept[b][a]);
        }
}

static void judge(const struct world *w, const struct drawn *drawn, uint32_t type,
                  struct errors *errors)
{
    for (uint32_t a = 0; a < drawn->count; a++)
        for (uint32_t b = 0; b < drawn->count; b++) {
            struct pair_estimate estimate;
            double truth = drawn->kept[a][b];
            if (drawn->known[a][b] || isnan(truth) ||
                !pair_table_estimate(&w->state.pairs, drawn->hashes[a],
                                     drawn->hashes[b], type, &estimate))
                continue;
            errors->estimated += fabs(estimate.kept - truth);
            errors->constant += fabs(SHARED_SPEED - truth);
            errors->inside += estimate.low <= truth && truth <= estimate.high + 1e-9;
            errors->count++;
        }
}

struct judged {
    uint32_t kinds;
    double part;    /* that was measured       */
    double at_most; /* of the constant's error */
};

/* 'table': the pairs of a table, or NULL: those of the model. */
static void judge_cases(const struct judged *cases, uint32_t count,
                        const struct throughput *table)
{
    for (uint32_t i = 0; i < count; i++) {
        struct errors errors = { 0 };
        for (uint32_t seed = 0; seed < 30; seed++)
            for (uint32_t type = 0; type < PUBLISHED_TYPES; type++) {
                struct world *w = open_world();
                struct drawn drawn;
                struct rng rng;
                rng_init(&rng, 100 * i + seed, "pairs");
                if (table)
                    draw_measured(w, &rng, cases[i].kinds, type, table, &drawn);
                else
                    draw_kinds(w, &rng, cases[i].kinds, type, &drawn);
                measure_part(w, &rng, &drawn, type, cases[i].part);
                update(w);
                judge(w, &drawn, type, &errors);
                world_release(w);
            }
        double inside = (double)errors.inside / errors.count;
        printf("# %u kinds, %.0f %% measured: mean error %.3f, of the constant %.3f, "
               "in its interval %.2f\n",
               cases[i].kinds, 100 * cases[i].part, errors.estimated / errors.count,
               errors.constant / errors.count, inside);
        assert_true(errors.estimated < cases[i].at_most * errors.constant);
        assert_true(inside > 0.7);
    }
}

static void estimates_are_nearer_than_a_constant(void **state)
{
    static const struct judged cases[] = { { 6, 0.4, 0.75 },
                                           { 12, 0.15, 0.75 },
                                           { 12, 0.3, 0.6 },
                                           { 26, 0.1, 0.7 },
                                           { 26, 0.3, 0.5 } };
    judge_cases(cases, sizeof cases / sizeof *cases, NULL);
}

static void estimates_are_nearer_to_what_was_measured_for_gavel(void **state)
{
    static const struct judged cases[] = { { 6, 0.4, 0.85 },
                                           { 12, 0.15, 0.85 },
                                           { 12, 0.3, 0.75 },
                                           { 26, 0.1, 0.75 },
                                           { 26, 0.3, 0.65 } };
    static struct throughput table;
    const char *data = getenv("BERTH_DATA");
    struct cluster cluster;
    struct arena arena;
    struct error err;
    char path[4096];
    if (!data || !*data)
        SKIP("BERTH_DATA not set");
    arena_init(&arena, 0);
    assert_int_equal(cluster_load(&cluster, &arena, "v100:1,p100:1,k80:1", &err), 0);
    throughput_init(&table, &cluster);
    snprintf(path, sizeof path, "%s/gavel/simulation_throughputs.json", data);
    if (throughput_load(&table, &arena, path, &err) < 0)
        fail_msg("%s", err.text);
    judge_cases(cases, sizeof cases / sizeof *cases, &table);
    arena_release(&arena);
}

/* --- what they decide --------------------------------------------------------------------- */

static struct job job_of(struct world *w, const char *kind)
{
    return (struct job){ .gpus = 1,
                         .types = 7,
                         .shares = true,
                         .pace = 1,
                         .kind = KIND_NONE,
                         .learned = rate_table_find_kind(&w->state.rates, kind) + 1 };
}

/* Each of so many kinds keeps 'of_x' beside x, and y, which is as x is: they keep 'of_them'. */
static void measure_beside(struct world *w, const char *kind, uint32_t count,
                           double own, double others)
{
    char name[16];
    for (uint32_t i = 0; i < count; i++) {
        snprintf(name, sizeof name, "k%u", i);
        measure(w, add_kind(w, kind), add_kind(w, name), V100, own, others);
    }
}

static bool may_pair(struct world *w, double *ret_kept)
{
    struct job x = job_of(w, "x");
    struct job y = job_of(w, "y");
    double rates[2];
    update(w);
    *ret_kept = sharing_part(w->state.view.rates, &x, &y, V100).kept;
    return sharing_rates(w->state.view.rates, &x, &y, V100, 1, false, rates);
}

static void thin_evidence_refuses_no_pair(void **state)
{
    double kept;
    for (uint32_t count = 1; count <= 5; count++) {
        struct world *w = open_world();
        measure_beside(w, "x", count, 0.1, 0.1);
        measure_beside(w, "y", count, 0.1, 0.1);
        assert_int_equal(may_pair(w, &kept), count < PAIR_WITNESSES);
        if (count < PAIR_WITNESSES)
            assert_near(kept, SHARED_SPEED, 1e-12);
        else
            assert_true(kept < 0.3);
        world_release(w);
    }
}

static void thin_evidence_encourages(void **state)
{
    struct world *w = open_world();
    double kept;
    add_kind(w, "y");
    assert_true(may_pair(w, &kept));
    assert_near(kept, SHARED_SPEED, 1e-12); /* nothing is known */
    measure_beside(w, "x", 2, 0.95, 0.95);
    measure_beside(w, "y", 2, 0.95, 0.95);
    assert_true(may_pair(w, &kept));
    assert_true(kept > 0.8);
    world_release(w);
}

/* What was measured of the pair itself comes before what follows from others. */
static void a_measured_pair_is_not_estimated(void **state)
{
    struct world *w = open_world();
    double kept;
    measure_beside(w, "x", 5, 0.1, 0.1);
    measure_beside(w, "y", 5, 0.1, 0.1);
    measure(w, add_kind(w, "x"), add_kind(w, "y"), V100, 0.9, 0.8);
    assert_true(may_pair(w, &kept));
    assert_near(kept, 0.9, 1e-12);
    world_release(w);
}

/* Both are a little harmful by what is expected, and may be worth it. */
static void an_estimate_refuses_only_what_is_certain(void **state)
{
    struct world *w = open_world();
    double kept;
    measure_beside(w, "x", 5, 0.52, 0.52);
    measure_beside(w, "y", 5, 0.52, 0.52);
    assert_true(may_pair(w, &kept));
    assert_true(2 * kept < SHARED_WORTH);
    world_release(w);
}

/* --- bounds and news ------------------------------------------------------------------------ */

static void only_kinds_of_the_newest_pairs_are_fitted(void **state)
{
    struct world *w = open_world();
    uint64_t hashes[PAIR_FIT_KINDS + 8];
    struct pair_estimate estimate;
    char name[16];
    for (uint32_t i = 0; i < PAIR_FIT_KINDS + 8; i++) {
        snprintf(name, sizeof name, "k%u", i);
        hashes[i] = add_kind(w, name);
        measure(w, hashes[i], hashes[i], V100, 0.7, 0.7);
    }
    update(w);
    const struct pair_table *pairs = &w->state.pairs;
    assert_false(pair_table_estimate(pairs, hashes[0], hashes[70], V100, &estimate));
    assert_true(pair_table_estimate(pairs, hashes[8], hashes[71], V100, &estimate));
    assert_false(
        pair_table_estimate(pairs, hashes[8], hashes[71], V100 + 1, &estimate));
    world_release(w);
}

static void kinds_are_named_whose_estimates_have_changed(void **state)
{
    struct world *w = open_world();
    uint64_t a = add_kind(w, "a");
    uint64_t b = add_kind(w, "b");
    measure(w, a, b, V100, 0.7, 0.7);
    update(w);
    assert_int_equal(changed_count, 2);
    update(w);
    assert_int_equal(changed_count, 2);
    pair_table_measure(&w->state.pairs, a, b, V100, 0.71); /* no news */
    update(w);
    assert_int_equal(changed_count, 2);
    for (int i = 0; i < 20; i++)
        pair_table_measure(&w->state.pairs, a, b, V100, 0.2);
    update(w);
    assert_true(changed_count > 2);
    world_release(w);
}

RUN_CASES(TEST(estimates_are_nearer_than_a_constant),
          TEST(estimates_are_nearer_to_what_was_measured_for_gavel),
          TEST(thin_evidence_refuses_no_pair), TEST(thin_evidence_encourages),
          TEST(a_measured_pair_is_not_estimated),
          TEST(an_estimate_refuses_only_what_is_certain),
          TEST(only_kinds_of_the_newest_pairs_are_fitted),
          TEST(kinds_are_named_whose_estimates_have_changed));
