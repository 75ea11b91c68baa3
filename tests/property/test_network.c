/* Rates and the fluid model, against a stupid version and against the laws they obey. */
#include "support/cases.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/rng.h"
#include "model/cluster.h"
#include "net/fluid.h"
#include "support/rates_check.h"

#define LINKS_MAX 24
#define BUNDLES_MAX 40
#define LEVELS 4

/* --- rates -------------------------------------------------------------------------- */

struct instance {
    uint32_t link_count, bundle_count;
    double capacities[LINKS_MAX];
    struct link_use uses[BUNDLES_MAX][LINKS_MAX];
    uint32_t use_counts[BUNDLES_MAX];
    uint32_t levels[BUNDLES_MAX];
    uint32_t ids[BUNDLES_MAX];
    bool sending[BUNDLES_MAX];
};

static void draw(struct instance *in, struct rng *rng)
{
    memset(in, 0, sizeof *in);
    in->link_count = 1 + rng_below(rng, LINKS_MAX);
    in->bundle_count = 1 + rng_below(rng, BUNDLES_MAX);
    for (uint32_t l = 0; l < in->link_count; l++)
        in->capacities[l] =
            rng_below(rng, 20) == 0 ? 0 : (double)(1 + rng_below(rng, 9)) / 3;
    uint32_t reach = 1 + rng_below(rng, in->link_count);
    for (uint32_t b = 0; b < in->bundle_count; b++) {
        in->levels[b] = rng_below(rng, LEVELS);
        bool over[LINKS_MAX] = { false };
        uint32_t count = 1 + rng_below(rng, reach < 6 ? reach : 6);
        for (uint32_t i = 0; i < count; i++) {
            uint32_t link = rng_below(rng, in->link_count);
            if (over[link])
                continue;
            over[link] = true;
            in->uses[b][in->use_counts[b]++] =
                (struct link_use){ link, 1 + rng_below(rng, 3) };
        }
    }
}

static double flows_on(const struct instance *in, uint32_t b, uint32_t link)
{
    for (uint32_t i = 0; i < in->use_counts[b]; i++)
        if (in->uses[b][i].link == link)
            return in->uses[b][i].flows;
    return 0;
}

/*
 * Raise all bundles of a level together; one that meets a full link stays where it is.
 */
static void fill_naively(const struct instance *in, double *rates)
{
    double left[LINKS_MAX];
    memcpy(left, in->capacities, sizeof left);
    for (uint32_t b = 0; b < in->bundle_count; b++)
        rates[b] = 0;
    for (uint32_t level = 0; level < LEVELS; level++) {
        bool rising[BUNDLES_MAX];
        uint32_t count = 0;
        for (uint32_t b = 0; b < in->bundle_count; b++) {
            rising[b] = in->sending[b] && in->levels[b] == level;
            count += rising[b];
        }
        while (count > 0) {
            double most = INFINITY;
            double flows[LINKS_MAX] = { 0 };
            for (uint32_t l = 0; l < in->link_count; l++) {
                for (uint32_t b = 0; b < in->bundle_count; b++)
                    flows[l] += rising[b] ? flows_on(in, b, l) : 0;
                if (flows[l] > 0)
                    most = fmin(most, fmax(left[l], 0) / flows[l]);
            }
            for (uint32_t b = 0; b < in->bundle_count; b++)
                rates[b] += rising[b] ? most : 0;
            for (uint32_t l = 0; l < in->link_count; l++)
                left[l] -= most * flows[l];
            for (uint32_t b = 0; b < in->bundle_count; b++)
                for (uint32_t l = 0; rising[b] && l < in->link_count; l++)
                    if (flows_on(in, b, l) > 0 && left[l] <= 1e-12) {
                        rising[b] = false;
                        count--;
                    }
        }
    }
}

static void compare(const struct instance *in, const struct rates *rates)
{
    double want[BUNDLES_MAX];
    fill_naively(in, want);
    for (uint32_t b = 0; b < in->bundle_count; b++)
        assert_near(rates->bundles[in->ids[b]].rate, want[b], 1e-9);
    rates_check(rates);
}

static void change_one(struct instance *in, struct rates *rates, struct rng *rng)
{
    uint32_t b = rng_below(rng, in->bundle_count);
    double before[BUNDLES_MAX];
    for (uint32_t i = 0; i < in->bundle_count; i++)
        before[i] = rates->bundles[in->ids[i]].rate;
    if (rng_below(rng, 3) == 0) {
        in->levels[b] = rng_below(rng, LEVELS);
        rates_set_level(rates, in->ids[b], in->levels[b]);
    } else if (in->sending[b]) {
        rates_end(rates, in->ids[b]);
        in->sending[b] = false;
    } else {
        rates_begin(rates, in->ids[b]);
        in->sending[b] = true;
    }
    /* A bundle that is not named continues as before. */
    for (uint32_t i = 0; i < in->bundle_count; i++) {
        bool named = i == b;
        for (uint32_t k = 0; k < rates->changed_count; k++)
            named = named || rates->changed[k] == in->ids[i];
        assert_true(named || rates->bundles[in->ids[i]].rate == before[i]);
    }
}

static void rates_are_those_of_naive_water_filling(void **state)
{
    FOR_EACH_SEED(seed, 300)
    {
        struct rng rng;
        rng_init(&rng, seed.now, "rates");
        struct instance in;
        draw(&in, &rng);
        struct topology topology = { .capacities = in.capacities,
                                     .link_count = in.link_count };
        struct rates rates;
        rates_init(&rates, &topology);
        for (uint32_t b = 0; b < in.bundle_count; b++)
            in.ids[b] = rates_add(&rates, in.uses[b], in.use_counts[b], in.levels[b]);
        for (uint32_t i = 0; i < 40; i++) {
            change_one(&in, &rates, &rng);
            compare(&in, &rates);
        }
        for (uint32_t b = 0; b < in.bundle_count; b++) {
            if (in.sending[b])
                rates_end(&rates, in.ids[b]);
            rates_remove(&rates, in.ids[b]);
        }
        rates_release(&rates);
    }
}

/* --- the fluid ------------------------------------------------------------------------ */

struct sea {
    struct arena arena;
    struct cluster cluster;
    struct fluid fluid;
    struct rng rng;
    uint32_t ids[BUNDLES_MAX];
    double due[BUNDLES_MAX]; /* bytes of a step, over its flows' phases */
    double made[BUNDLES_MAX];
    double wanted[BUNDLES_MAX];
    int64_t now_ns;
    double bytes_due;
};

static void sea_make(struct sea *sea, uint64_t seed, enum fluid_mode mode)
{
    memset(sea, 0, sizeof *sea);
    arena_init(&sea->arena, 0);
    rng_init(&sea->rng, seed, "sea");
    uint32_t racks = 1 + rng_below(&sea->rng, 3);
    uint32_t hosts = 2 + rng_below(&sea->rng, 11);
    cluster_begin(&sea->cluster, &sea->arena, "sea", hosts);
    cluster_type(&sea->cluster, &sea->arena, "v100");
    for (uint32_t h = 0; h < hosts; h++)
        cluster_add(&sea->cluster,
                    &(struct node){ .gpu_count = 8,
                                    .rack = rng_below(&sea->rng, racks),
                                    .link_bps = UINT64_C(8000000) *
                                                (1 + rng_below(&sea->rng, 3)) });
    cluster_end(&sea->cluster, &sea->arena);
    sea->cluster.oversubscription = 1 + rng_below(&sea->rng, 3);
    struct fluid_setup setup = { .mode = mode, .exact_changes_max = 400 };
    fluid_init(&sea->fluid, &sea->arena, &sea->cluster, &setup, seed);
    for (uint32_t i = 0; i < BUNDLES_MAX; i++)
        sea->ids[i] = FLUID_NONE;
}

static void sea_release(struct sea *sea)
{
    fluid_release(&sea->fluid);
    arena_release(&sea->arena);
}

static void sea_join(struct sea *sea, uint32_t i)
{
    uint32_t hosts[16];
    uint32_t all = sea->cluster.node_count;
    uint32_t first = rng_below(&sea->rng, all);
    uint32_t count = 2 + rng_below(&sea->rng, all - 1);
    for (uint32_t k = 0; k < count; k++)
        hosts[k] = (first + k) % all;
    struct fluid_spec spec = { .id = i + 1,
                               .sync =
                                   rng_below(&sea->rng, 2) ? SYNC_RING : SYNC_SERVER,
                               .bytes = 1e4 * (1 + rng_below(&sea->rng, 50)),
                               .overlap = rng_below(&sea->rng, 3) * 0.5,
                               .step_s = 0.05 * (1 + rng_below(&sea->rng, 9)),
                               .level = rng_below(&sea->rng, LEVELS),
                               .hosts = hosts,
                               .host_count = count };
    sea->ids[i] = fluid_join(&sea->fluid, &spec, sea->now_ns);
    sea->due[i] = spec.sync == SYNC_RING ? 2.0 * (count - 1) / count * spec.bytes
                                         : 2 * spec.bytes;
    sea->made[i] = 0;
    sea->wanted[i] = 1 + rng_below(&sea->rng, 12) * 0.75;
    fluid_set_target(&sea->fluid, sea->ids[i], sea->wanted[i], sea->now_ns);
}

/* A change from outside: a job joins, or a level or a computing time changes. */
static void disturb(struct sea *sea)
{
    uint32_t i = rng_below(&sea->rng, BUNDLES_MAX);
    if (sea->ids[i] == FLUID_NONE) {
        sea_join(sea, i);
        return;
    }
    switch (rng_below(&sea->rng, 3)) {
    case 0:
        fluid_set_level(&sea->fluid, sea->ids[i], rng_below(&sea->rng, LEVELS),
                        sea->now_ns);
        return;
    case 1:
        fluid_set_step(&sea->fluid, sea->ids[i], 0.05 * (1 + rng_below(&sea->rng, 9)),
                       sea->now_ns);
        return;
    default:
        return;
    }
}

static void arrived(struct sea *sea, uint32_t job)
{
    uint32_t i = 0;
    while (sea->ids[i] != job)
        i++;
    assert_near(fluid_steps(&sea->fluid, job, sea->now_ns), sea->wanted[i], 1e-6);
    sea->bytes_due += sea->due[i] * (sea->wanted[i] - sea->made[i]);
    sea->made[i] = sea->wanted[i];
    if (rng_below(&sea->rng, 2)) {
        sea->wanted[i] += 1 + rng_below(&sea->rng, 3);
        fluid_set_target(&sea->fluid, job, sea->wanted[i], sea->now_ns);
        return;
    }
    fluid_leave(&sea->fluid, job, sea->now_ns);
    sea->ids[i] = FLUID_NONE;
}

static double sail(struct sea *sea, uint32_t turns, bool check)
{
    for (uint32_t turn = 0; turn < turns; turn++) {
        if (turn < turns / 2 && rng_below(&sea->rng, 3) == 0)
            disturb(sea);
        int64_t next_ns = fluid_next_ns(&sea->fluid);
        if (next_ns == INT64_MAX)
            continue;
        assert_true(next_ns >= sea->now_ns);
        sea->now_ns = next_ns;
        uint32_t job = fluid_happen(&sea->fluid);
        if (job != FLUID_NONE)
            arrived(sea, job);
        if (check) {
            fluid_check(&sea->fluid, sea->now_ns);
            rates_check(&sea->fluid.rates);
        }
    }
    return (double)sea->now_ns;
}

static void bytes_sent_are_bytes_due_and_no_link_is_overfull(void **state)
{
    FOR_EACH_SEED(seed, 60)
    {
        struct sea sea;
        sea_make(&sea, seed.now, FLUID_EXACT);
        sail(&sea, 600, true);
        /* Let the remaining jobs finish. */
        for (uint32_t n = 0; n < 100000 && fluid_next_ns(&sea.fluid) < INT64_MAX; n++) {
            sea.now_ns = fluid_next_ns(&sea.fluid);
            uint32_t job = fluid_happen(&sea.fluid);
            if (job != FLUID_NONE)
                arrived(&sea, job);
        }
        assert_int_equal(sea.fluid.job_count, 0);
        assert_near(sea.fluid.bytes_sent / sea.bytes_due, 1, 1e-6);
        sea_release(&sea);
    }
}

static void the_same_seed_gives_the_same_run(void **state)
{
    FOR_EACH_SEED(seed, 20)
    {
        struct sea a;
        struct sea b;
        sea_make(&a, seed.now, FLUID_EXACT);
        sea_make(&b, seed.now, FLUID_EXACT);
        assert_true(sail(&a, 500, false) == sail(&b, 500, false));
        assert_true(a.fluid.bytes_sent == b.fluid.bytes_sent);
        sea_release(&a);
        sea_release(&b);
    }
}

static void it_switches_to_mean_rates_without_losing_steps(void **state)
{
    FOR_EACH_SEED(seed, 40)
    {
        struct sea sea;
        sea_make(&sea, seed.now, FLUID_AUTO);
        sail(&sea, 3000, true); /* steps made are checked as targets are reached */
        if (sea.fluid.change_count > 400)
            assert_string_equal(fluid_mode_name(&sea.fluid), "exact, then mean");
        sea_release(&sea);
    }
}

RUN_CASES(TEST(rates_are_those_of_naive_water_filling),
          TEST(bytes_sent_are_bytes_due_and_no_link_is_overfull),
          TEST(the_same_seed_gives_the_same_run),
          TEST(it_switches_to_mean_rates_without_losing_steps));
