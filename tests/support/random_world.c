/* random_world.c - random clusters and the jobs for them, from a seed. */
#include "support/random_world.h"

#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/rng.h"

#define NAMES 6
#define SECOND INT64_C(1000000000)

static bool draw_chance(struct rng *rng, uint32_t percent)
{
    return rng_below(rng, 100) < percent;
}

static uint32_t draw_between(struct rng *rng, uint32_t low, uint32_t high)
{
    return low + rng_below(rng, high - low + 1);
}

static void make_cluster(struct random_world *world,
                         const struct random_world_setup *setup, struct rng *rng)
{
    static const char *const names[] = { "v100", "p100", "k80" };
    static const double speeds[] = { 1, 0.5, 0.25 };
    uint32_t nodes = draw_between(rng, 1, 8);
    uint32_t types = setup->plain ? 1 : draw_between(rng, 1, 3);
    uint32_t gpus[3];
    bool limits = !setup->plain && draw_chance(rng, 50);
    struct cluster *cluster = &world->cluster;

    cluster_begin(cluster, &world->arena, "random", nodes);
    for (uint32_t t = 0; t < types; t++) {
        cluster_type(cluster, &world->arena, names[t]);
        cluster->types[t].speed = setup->one_speed ? 1 : speeds[t];
        cluster->types[t].usd_per_hour = speeds[t];
        gpus[t] = (uint32_t)1 << draw_between(rng, 0, 3);
    }
    bool mixed = !setup->plain && draw_chance(rng, 30);
    for (uint32_t n = 0; n < nodes; n++) {
        uint32_t type = n < types ? n : rng_below(rng, types);
        struct node node = { .type = type,
                             .gpu_count = mixed ? draw_between(rng, 1, 8) : gpus[type],
                             .cpu_milli =
                                 limits ? draw_between(rng, 4, 32) * 1000 : 1000000,
                             .mem_mib =
                                 limits ? draw_between(rng, 8, 64) * 1024 : 10000000,
                             .rack = n / 3 };
        if (!setup->plain && n >= types && draw_chance(rng, 10))
            node.gpu_count = 0;
        cluster_add(cluster, &node);
    }
    cluster_end(cluster, &world->arena);
    throughput_init(&world->rates, cluster);
}

static int64_t draw_time(const struct random_world_setup *setup, struct rng *rng,
                         uint32_t s)
{
    int64_t ns = (int64_t)rng_below(rng, s + 1) * SECOND;
    return setup->distinct_times ? ns + rng_below(rng, SECOND) : ns;
}

static uint32_t draw_gang_size(struct random_world *world, struct rng *rng)
{
    uint32_t all = world->cluster.gpu_count;
    uint32_t gpus = draw_chance(rng, 70) ? (uint32_t)1 << rng_below(rng, 4)
                                         : draw_between(rng, 1, 12);
    return gpus < all ? gpus : all;
}

static void make_unusual(struct random_world *world,
                         const struct random_world_setup *setup, struct rng *rng,
                         struct job_spec *spec)
{
    if (draw_chance(rng, 10))
        spec->gpus = 0;
    spec->gpus_min = spec->gpus;
    spec->gpus_max = spec->gpus;
    if (spec->gpus > 1 && draw_chance(rng, 20)) {
        spec->gpus_min = draw_between(rng, 1, spec->gpus);
        spec->gpus_max = draw_between(rng, spec->gpus, 2 * spec->gpus);
    }
    spec->spread = draw_chance(rng, 25);
    if (draw_chance(rng, 15))
        spec->nodes = draw_between(rng, 1, 4);
    if (draw_chance(rng, 60))
        spec->cpu_milli = draw_between(rng, 1, 8) * 1000;
    if (draw_chance(rng, 60))
        spec->mem_mib = draw_between(rng, 1, 16) * 1024;
    if (draw_chance(rng, 20))
        spec->types =
            world->cluster.types[rng_below(rng, world->cluster.type_count)].name;
    if (draw_chance(rng, 10))
        spec->entity = draw_chance(rng, 50) ? "red" : "blue";
    if (setup->impossible && draw_chance(rng, 5))
        spec->gpus = world->cluster.gpu_count + 1;
}

static void make_job(struct random_world *world, const struct random_world_setup *setup,
                     struct rng *rng, struct job_spec *spec, int64_t submit_ns)
{
    *spec = (struct job_spec){ .submit_ns = submit_ns,
                               .class = draw_chance(rng, 30) ? CLASS_TE : CLASS_BE,
                               .gpus = draw_gang_size(world, rng),
                               .weight = draw_between(rng, 1, 3) };
    if (!setup->plain)
        make_unusual(world, setup, rng, spec);
    if (setup->one_node) {
        spec->nodes = 0;
        spec->spread = false;
        for (uint32_t t = 0; t < world->cluster.type_count; t++)
            while (spec->gpus > 1 && spec->gpus > world->cluster.types[t].node_gpus_max)
                spec->gpus /= 2;
        spec->gpus_min = spec->gpus_max = spec->gpus;
    }
    spec->steps =
        (double)draw_time(setup, rng, draw_chance(rng, 20) ? 2000 : 200) * 1e-9;
    if (draw_chance(rng, 5))
        spec->steps = 0; /* no work */
    if (draw_chance(rng, 50)) {
        spec->grace_ns = draw_time(setup, rng, 30);
        spec->pause_ns = draw_time(setup, rng, 40);
        spec->load_ns = draw_chance(rng, 50) ? draw_time(setup, rng, 30) : 0;
        spec->ckpt_ns = draw_chance(rng, 50) ? SECOND + draw_time(setup, rng, 60) : 0;
    }
    if (draw_chance(rng, 10))
        spec->deadline_ns = submit_ns + draw_time(setup, rng, 1000) + 1;
    spec->fails = draw_chance(rng, 5);
}

/* A list of random nodes, some of them twice. */
static const char *draw_nodelist(struct random_world *world, struct rng *rng,
                                 uint32_t count)
{
    struct buf text;
    buf_init(&text, 1 << 10);
    for (uint32_t i = 0; i < count; i++)
        buf_print(&text, "%sn%u", i ? "," : "",
                  rng_below(rng, world->cluster.node_count));
    const char *kept = arena_text(&world->arena, text.bytes);
    buf_release(&text);
    return kept;
}

/* With its own random stream, so that all other properties stay the same. */
static void restrict_nodes(struct random_world *world,
                           const struct random_world_setup *setup, uint64_t seed)
{
    struct rng rng;
    rng_init(&rng, seed, "sets");
    uint32_t nodes = world->cluster.node_count;
    for (uint32_t i = 0; i < setup->jobs; i++) {
        struct job_spec *spec = &world->specs[i];
        if (!draw_chance(&rng, 50))
            continue;
        uint32_t how = rng_below(&rng, 4);
        if (how == 0)
            spec->exclude = draw_nodelist(world, &rng, draw_between(&rng, 1, 2));
        else if (how == 1)
            spec->within = draw_nodelist(world, &rng, draw_between(&rng, 1, nodes));
        else
            spec->nodelist = draw_nodelist(
                world, &rng, setup->one_node || draw_chance(&rng, 60) ? 1 : 2);
    }
}

static void make_unpreemptible(struct random_world *world,
                               const struct random_world_setup *setup, uint64_t seed)
{
    struct rng rng;
    rng_init(&rng, seed, "stays");
    for (uint32_t i = 0; i < setup->jobs; i++)
        world->specs[i].stays = draw_chance(&rng, 30);
}

void random_world_make(struct random_world *world,
                       const struct random_world_setup *setup, uint64_t seed)
{
    struct rng rng;
    rng_init(&rng, seed, "worlds");
    *world = (struct random_world){ 0 };
    arena_init(&world->arena, 0);
    make_cluster(world, setup, &rng);
    world->specs = arena_array(&world->arena, struct job_spec, setup->jobs);
    world->beliefs = arena_array(&world->arena, double, setup->jobs);
    uint32_t pace_s = draw_between(&rng, 1, 60);
    int64_t at_ns = 0;
    for (uint32_t i = 0; i < setup->jobs; i++) {
        make_job(world, setup, &rng, &world->specs[i], at_ns);
        world->beliefs[i] = 1;
        if (setup->wrong_estimates && draw_chance(&rng, 50))
            world->beliefs[i] = 0.5 + rng_unit(&rng);
        if (setup->unknown_work && draw_chance(&rng, 15))
            world->beliefs[i] = 0;
        if (!draw_chance(&rng, 20)) /* or together with the next */
            at_ns += draw_time(setup, &rng, pace_s);
    }
    if (setup->stays)
        make_unpreemptible(world, setup, seed);
    if (setup->sets)
        restrict_nodes(world, setup, seed);
    world->setup = (struct engine_run_setup){ .cluster = &world->cluster,
                                              .rates = &world->rates,
                                              .specs = world->specs,
                                              .spec_count = setup->jobs,
                                              .beliefs = world->beliefs,
                                              .seed = seed };
    if (setup->faults) {
        world->setup.faults.mtbf_ns = (int64_t)draw_between(&rng, 100, 5000) * SECOND;
        world->setup.faults.mttr_ns = (int64_t)draw_between(&rng, 1, 200) * SECOND;
        world->setup.turns_max = 2000; /* some jobs can never end */
    }
}

/* Set rates of all kinds on all types, alone and in pairs; some pairs do not fit. */
void random_world_add_sharing(struct random_world *world, bool all_fit, uint64_t seed)
{
    static const char *const names[NAMES] = { "A", "B", "C", "D", "E", "F" };
    struct rng all;
    struct rng *rng = &all;
    struct buf csv;
    struct error err = { "" };
    rng_init(rng, seed, "sharing");
    buf_init(&csv, 1 << 20);
    buf_text(&csv, "kind,type,gpus,rate,beside,rate_beside\n");
    for (uint32_t t = 0; t < world->cluster.type_count; t++)
        for (uint32_t gpus = 1; gpus <= 8; gpus *= 2) {
            double rate[NAMES];
            for (uint32_t a = 0; a < NAMES; a++) {
                rate[a] = (0.5 + rng_unit(rng)) * gpus / (t + 1);
                buf_print(&csv, "%s,%s,%u,%.6f,,\n", names[a],
                          world->cluster.types[t].name, gpus, rate[a]);
            }
            for (uint32_t a = 0; a < NAMES; a++)
                for (uint32_t b = a; b < NAMES; b++) {
                    bool fits = rng_below(rng, 10) >= 3 || all_fit;
                    double kept_a = fits ? 0.3 + 0.7 * rng_unit(rng) : 0;
                    double kept_b = a == b ? kept_a
                                    : fits ? 0.3 + 0.7 * rng_unit(rng)
                                           : 0;
                    buf_print(&csv, "%s,%s,%u,%.6f,%s,%.6f\n", names[a],
                              world->cluster.types[t].name, gpus, kept_a * rate[a],
                              names[b], kept_b * rate[b]);
                }
        }
    if (throughput_parse(&world->rates, &world->arena, "rates", csv.bytes,
                         strlen(csv.bytes), &err) < 0)
        fail_msg("%s", err.text);
    buf_release(&csv);
    for (uint32_t i = 0; i < world->setup.spec_count; i++)
        world->specs[i].kind = names[rng_below(rng, NAMES)];
}

void random_world_release(struct random_world *world)
{
    arena_release(&world->arena);
}
