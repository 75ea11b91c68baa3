/*
 * The fluid model: steps worked out by hand, and the shapes of a real test bed.
 *
 * The test bed: two jobs over one link of 200 Mb/s, iteration times measured with real
 * TCP, real priority queues and real training loops.
 */
#include "support/cases.h"

#include <math.h>

#include "base/arena.h"
#include "model/cluster.h"
#include "net/fluid.h"
#include "support/rates_check.h"

#define S(s) ((int64_t)((s)*1e9))
#define MIB (1024.0 * 1024)

ARENA_FIXTURE(arena);
static struct cluster cluster;
static struct fluid fluid;

/* Hosts in one rack, each with so many bytes of payload per second. */
static void begin_as(uint32_t hosts, uint64_t bytes_per_s, enum fluid_mode mode)
{
    arena_reset(&arena);
    cluster_begin(&cluster, &arena, "test", hosts);
    cluster_type(&cluster, &arena, "v100");
    for (uint32_t i = 0; i < hosts; i++)
        cluster_add(&cluster,
                    &(struct node){ .gpu_count = 1, .link_bps = bytes_per_s * 8 });
    cluster_end(&cluster, &arena);
    struct fluid_setup setup = { .mode = mode };
    fluid_init(&fluid, &arena, &cluster, &setup, 1);
    for (uint32_t i = 0; i < fluid.rates.link_count; i++)
        fluid.rates.links[i].capacity = fluid.topology.capacities[i] =
            (double)bytes_per_s;
}

static void begin(uint32_t hosts, uint64_t bytes_per_s)
{
    begin_as(hosts, bytes_per_s, FLUID_EXACT);
}

static void end(void)
{
    fluid_release(&fluid);
}

/* Hosts 'first' and the next; a ring of two sends as many bytes as the gradients are. */
static uint32_t join(uint64_t id, uint32_t first, double bytes, double step_s,
                     uint32_t level, double target)
{
    const uint32_t hosts[] = { first, first + 1 };
    struct fluid_spec spec = { .id = id,
                               .bytes = bytes,
                               .step_s = step_s,
                               .level = level,
                               .hosts = hosts,
                               .host_count = 2 };
    uint32_t job = fluid_join(&fluid, &spec, 0);
    fluid_set_target(&fluid, job, target, 0);
    return job;
}

/* When 'job' has made its steps. */
static double done_s(uint32_t job)
{
    for (;;) {
        int64_t now_ns = fluid_next_ns(&fluid);
        assert_true(now_ns < INT64_MAX);
        uint32_t who = fluid_happen(&fluid);
        fluid_check(&fluid, now_ns);
        rates_check(&fluid.rates);
        if (who == job)
            return (double)now_ns * 1e-9;
    }
}

/* --- by hand --------------------------------------------------------------------------- */

static void a_job_alone_computes_and_sends_in_turn(void **state)
{
    begin(2, 1000000);
    uint32_t job = join(1, 0, 500000, 1.5, 0, 10);
    assert_near(fluid_alone_per_s(&fluid, job), 0.5, 1e-12);
    assert_near(done_s(job), 20, 1e-6);
    assert_near(fluid.bytes_sent, 10 * 500000, 1);
    end();
}

static void a_single_step_takes_its_time_wherever_it_begins(void **state)
{
    for (uint64_t id = 1; id <= 20; id++) {
        begin(2, 1000000);
        uint32_t job = join(id, 0, 500000, 1.5, 0, 1);
        assert_near(done_s(job), 2, 1e-6);
        end();
    }
}

static void a_part_of_a_step_takes_its_part_of_the_time(void **state)
{
    begin(2, 1000000);
    uint32_t job = join(1, 0, 500000, 1.5, 0, 2.25);
    assert_near(done_s(job), 4.5, 1e-6);
    end();
}

static void computing_beside_the_sending_hides_it(void **state)
{
    const uint32_t hosts[] = { 0, 1 };
    struct fluid_spec spec = {
        .id = 1, .bytes = 500000, .step_s = 2, .hosts = hosts, .host_count = 2
    };
    const double overlaps[] = { 0, 0.125, 0.25, 0.5, 1 };
    const double times[] = { 2.5, 2.25, 2, 2, 2 };
    for (uint32_t i = 0; i < 5; i++) {
        begin(2, 1000000);
        spec.overlap = overlaps[i];
        uint32_t job = fluid_join(&fluid, &spec, 0);
        fluid_set_target(&fluid, job, 4, 0);
        assert_near(1 / fluid_alone_per_s(&fluid, job), times[i], 1e-12);
        assert_near(done_s(job), 4 * times[i], 1e-6);
        end();
    }
}

static void a_server_gets_all_and_then_sends_all(void **state)
{
    begin(4, 1000000);
    const uint32_t hosts[] = { 0, 1, 2, 3 };
    struct fluid_spec spec = { .id = 1,
                               .sync = SYNC_SERVER,
                               .bytes = 200000,
                               .step_s = 1,
                               .hosts = hosts,
                               .host_count = 4 };
    uint32_t job = fluid_join(&fluid, &spec, 0);
    fluid_set_target(&fluid, job, 5, 0);
    assert_near(done_s(job), 5 * (1 + 2 * 0.6), 1e-6);
    end();
}

static void an_earlier_level_goes_as_if_alone(void **state)
{
    begin(2, 1000000);
    uint32_t first = join(1, 0, 1000000, 0.5, 0, 20);
    join(2, 0, 1000000, 0.5, 1, INFINITY);
    assert_near(done_s(first), 30, 1e-6);
    end();
}

static void jobs_on_other_hosts_do_not_meet(void **state)
{
    begin(4, 1000000);
    uint32_t a = join(1, 0, 1000000, 0.5, 0, 20);
    join(2, 2, 1000000, 0.5, 0, INFINITY);
    assert_near(done_s(a), 30, 1e-6);
    end();
}

static void without_bandwidth_nothing_ever_happens(void **state)
{
    begin(2, 0);
    join(1, 0, 1000, 0.5, 0, 3);
    while (fluid_next_ns(&fluid) < INT64_MAX)
        assert_int_equal(fluid_happen(&fluid), FLUID_NONE);
    assert_int_equal(fluid.job_count, 1);
    assert_true(fluid_steps(&fluid, 0, S(100)) < 1);
    end();
}

static void one_that_leaves_makes_room_at_once(void **state)
{
    begin(2, 1000000);
    uint32_t first = join(1, 0, 1e9, 0.001, 0, INFINITY); /* nearly always sending */
    uint32_t second = join(2, 0, 1000000, 0.5, 1, 4);
    while (fluid_next_ns(&fluid) < S(10))
        fluid_happen(&fluid);
    double steps = fluid_steps(&fluid, second, S(10));
    fluid_leave(&fluid, first, S(10));
    assert_near(done_s(second), 10 + (4 - steps) * 1.5, 1.5);
    end();
}

static void a_longer_computing_time_holds_from_now_on(void **state)
{
    begin(2, 1000000);
    uint32_t job = join(1, 0, 500000, 0.5, 0, 10);
    while (fluid_next_ns(&fluid) <= S(5)) /* five steps */
        fluid_happen(&fluid);
    fluid_set_step(&fluid, job, 1.5, S(5));
    assert_near(done_s(job), 15, 1e-6);
    end();
}

static void a_target_that_is_reached_already_is_reported_at_once(void **state)
{
    begin(2, 1000000);
    uint32_t job = join(1, 0, 500000, 0.5, 0, 3);
    assert_near(done_s(job), 3, 1e-6);
    fluid_set_target(&fluid, job, 3, S(3));
    assert_near(done_s(job), 3, 1e-6);
    fluid_set_target(&fluid, job, 5, S(3));
    assert_near(done_s(job), 5, 1e-6);
    end();
}

/* --- the test bed ------------------------------------------------------------------------ */

#define LINK (200e6 / 8 * PAYLOAD_SHARE)

/* Mean time of a step of both, over many starts: 'a' first, 'b' first, or neither. */
static void measure(const double mib[2], const double gpu_s[2], uint32_t workers,
                    const uint32_t levels[2], double ret_s[2])
{
    const uint32_t starts = levels[0] == levels[1] ? 60 : 5;
    double volume = 2.0 * (workers - 1) / workers; /* of a ring of two: 1 */
    ret_s[0] = ret_s[1] = 0;
    for (uint32_t start = 0; start < starts; start++) {
        begin(2, (uint64_t)LINK);
        uint32_t jobs[2];
        for (uint32_t i = 0; i < 2; i++)
            jobs[i] = join(2 * start + i + 1, 0, mib[i] * MIB * volume, gpu_s[i],
                           levels[i], INFINITY);
        while (fluid_next_ns(&fluid) < S(400))
            fluid_happen(&fluid);
        for (uint32_t i = 0; i < 2; i++)
            ret_s[i] += 400 / fluid_steps(&fluid, jobs[i], S(400)) / starts;
        end();
    }
}

struct testbed {
    const char *what;
    double mib[2], gpu_s[2];
    uint32_t workers;
    uint32_t levels[2];
    double measured_s[2];
    double tolerance;
};

static const struct testbed shapes[] = {
    { "equal jobs, A first", { 8, 8 }, { .2, .2 }, 2, { 0, 1 }, { .556, 1.117 }, .05 },
    { "three workers, A first",
      { 8, 8 },
      { .2, .2 },
      3,
      { 0, 1 },
      { .672, 2.016 },
      .05 },
    { "small and large, A first",
      { 4, 16 },
      { .1, .3 },
      2,
      { 0, 1 },
      { .279, 2.235 },
      .05 },
    { "small and large, B first",
      { 4, 16 },
      { .1, .3 },
      2,
      { 1, 0 },
      { .865, 1.007 },
      .05 },
    { "ResNet-50 before VGG16",
      { 1.95, 10.6 },
      { .292, .416 },
      2,
      { 0, 1 },
      { .382, 1.018 },
      .05 },
    /* Real flows drift apart where a fluid keeps the phase it has. */
    { "equal jobs, fair", { 8, 8 }, { .2, .2 }, 2, { 0, 0 }, { .807, .786 }, .1 },
    { "small and large, fair",
      { 4, 16 },
      { .1, .3 },
      2,
      { 0, 0 },
      { .407, 1.593 },
      .1 },
    { "ResNet-50 and VGG16, fair",
      { 1.95, 10.6 },
      { .292, .416 },
      2,
      { 0, 0 },
      { .457, 1.008 },
      .1 },
};

static void iteration_times_are_those_of_the_test_bed(void **state)
{
    for (uint32_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const struct testbed *shape = &shapes[i];
        double s[2];
        measure(shape->mib, shape->gpu_s, shape->workers, shape->levels, s);
        printf("# %s: %.0f / %.0f ms, measured %.0f / %.0f\n", shape->what, s[0] * 1e3,
               s[1] * 1e3, shape->measured_s[0] * 1e3, shape->measured_s[1] * 1e3);
        for (uint32_t k = 0; k < 2; k++)
            assert_near(s[k] / shape->measured_s[k], 1, shape->tolerance);
    }
}

/* A server and two workers each, over hosts of their own but one switch port in common. */
static void a_server_job_alone_is_that_of_the_test_bed(void **state)
{
    begin(3, (uint64_t)LINK);
    const uint32_t hosts[] = { 0, 1, 2 };
    struct fluid_spec spec = { .id = 1,
                               .sync = SYNC_SERVER,
                               .bytes = 8 * MIB,
                               .step_s = 0.2,
                               .hosts = hosts,
                               .host_count = 3 };
    uint32_t job = fluid_join(&fluid, &spec, 0);
    fluid_set_target(&fluid, job, 10, 0);
    assert_near(done_s(job) / 10 / 1.590, 1, 0.05);
    end();
}

/* --- mean rates ---------------------------------------------------------------------------- */

static double mean_rate(enum fluid_mode mode, uint32_t count, uint32_t same_level)
{
    begin_as(3, 1000000, mode);
    double steps = 0;
    for (uint32_t i = 0; i < count; i++)
        join(i + 1, i % 2, 200000 + 50000 * (i % 4), 0.6, same_level ? 0 : i, INFINITY);
    while (fluid_next_ns(&fluid) < S(300))
        fluid_happen(&fluid);
    for (uint32_t i = 0; i < count; i++)
        steps += fluid_steps(&fluid, i, S(300));
    end();
    return steps / 300;
}

static void mean_rates_are_about_those_of_the_exact_model(void **state)
{
    for (uint32_t count = 1; count <= 8; count++)
        for (uint32_t same = 0; same < 2; same++) {
            double exact = mean_rate(FLUID_EXACT, count, same);
            double mean = mean_rate(FLUID_MEAN, count, same);
            printf("# %u jobs, %s: %.3f steps/s, by the mean %.3f\n", count,
                   same ? "one level" : "levels", exact, mean);
            assert_near(mean / exact, 1, count == 1 ? 1e-3 : 0.25);
        }
}

RUN_GROUP(setup, teardown, TEST(a_job_alone_computes_and_sends_in_turn),
          TEST(a_single_step_takes_its_time_wherever_it_begins),
          TEST(a_part_of_a_step_takes_its_part_of_the_time),
          TEST(computing_beside_the_sending_hides_it),
          TEST(a_server_gets_all_and_then_sends_all),
          TEST(an_earlier_level_goes_as_if_alone),
          TEST(jobs_on_other_hosts_do_not_meet),
          TEST(without_bandwidth_nothing_ever_happens),
          TEST(one_that_leaves_makes_room_at_once),
          TEST(a_longer_computing_time_holds_from_now_on),
          TEST(a_target_that_is_reached_already_is_reported_at_once),
          TEST(iteration_times_are_those_of_the_test_bed),
          TEST(a_server_job_alone_is_that_of_the_test_bed),
          TEST(mean_rates_are_about_those_of_the_exact_model));
