/* Throughput tables: what is measured, what follows from it, what is refused. */
#include "support/cases.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "model/cluster.h"
#include "model/published.h"
#include "model/throughput.h"

static struct arena arena;
static struct cluster cluster;
static struct throughput table;
static struct error err;

static const char good[] =
    "{ \"v100\": { \"('A (batch size 16)', 1)\": { \"null\": 10.0, \"('A (batch size "
    "16)', 1)\":"
    " [5.0, 5.0] },\n"
    "  \"('A (batch size 16)', 2)\": { \"null\": 18 }, \"('A (batch size 16)', 8)\": { "
    "\"null\": 48 } },\n"
    "  \"v100_unconsolidated\": { \"('A (batch size 16)', 2)\": { \"null\": 12 } },\n"
    "  \"k80\": { \"('A (batch size 16)', 1)\": { \"null\": 2 }, \"('B', 1)\": { "
    "\"null\": 0 } },\n"
    "  \"tpu\": { \"('C', 4)\": { \"null\": 7 } } }";

static int parse(const char *text)
{
    throughput_init(&table, &cluster);
    return throughput_parse(&table, &arena, "t.json", text, strlen(text), &err);
}

static double rate(const char *kind, uint32_t type, uint32_t gpus, bool spread)
{
    struct job job = { .gpus = gpus, .kind = throughput_find(&table, kind) };
    assert_true(job.kind != KIND_NONE);
    return throughput_rate(&table, &job, type, gpus, spread);
}

static void measured_sizes_are_exact_and_others_follow(void **state)
{
    assert_int_equal(parse(good), 0);
    const char *a = "A (batch size 16)";
    assert_true(rate(a, 0, 1, false) == 10);
    assert_true(rate(a, 0, 2, false) == 18);
    assert_true(rate(a, 0, 2, true) == 12);
    assert_true(rate(a, 0, 8, true) == 48);   /* no figure of its own */
    assert_true(rate(a, 0, 4, false) == 28);  /* a third of the way from 2 to 8 */
    assert_true(rate(a, 0, 16, false) == 96); /* at the rate per GPU of 8 */
    assert_true(rate(a, 1, 1, false) == 2);
    assert_true(rate("B", 1, 1, false) == 0);
    assert_true(rate("B", 0, 1, false) == 0); /* never measured */
    assert_int_equal(throughput_find(&table, "D"), KIND_NONE);
}

static void the_best_type_is_among_those_allowed(void **state)
{
    assert_int_equal(parse(good), 0);
    struct job job = { .gpus = 1, .types = 3, .kind = 0 };
    uint32_t type;
    assert_true(throughput_best(&table, &job, &type) == 10);
    assert_int_equal(type, 0);
    job.types = 2;
    assert_true(throughput_best(&table, &job, &type) == 2);
    assert_int_equal(type, 1);
}

static void a_job_without_a_row_makes_a_step_a_second(void **state)
{
    throughput_init(&table, &cluster);
    struct job job = { .gpus = 4, .types = 3, .kind = KIND_NONE };
    cluster.types[1].speed = 0.5;
    assert_true(throughput_rate(&table, &job, 0, 4, false) == 1);
    assert_true(throughput_rate(&table, &job, 0, 8, false) == 2);
    assert_true(throughput_rate(&table, &job, 1, 4, false) == 0.5);
    assert_true(throughput_best(&table, &job, NULL) == 1);
}

static void assert_wrong(const char *text, const char *sentence)
{
    assert_int_equal(parse(text), -EINVAL);
    if (!strstr(err.text, sentence))
        fail_msg("\"%s\", want \"%s\"", err.text, sentence);
    assert_int_equal(table.row_count, 0);
}

static void wrong_tables_are_refused_by_field(void **state)
{
    assert_wrong("[1]", "t.json: the file: want an object");
    assert_wrong("{ \"v100\": 5 }", "t.json: v100: want an object");
    assert_wrong("{ \"v100\": { \"A\": { \"null\": 5 } } }", "t.json: v100: A: want");
    assert_wrong("{ \"v100\": { \"('A', 3)\": { \"null\": 5 } } }",
                 "('A', 3): want 1, 2, 4");
    assert_wrong("{ \"v100\": { \"('A', 1)\": { \"null\": -5 } } }", "not a rate");
    assert_wrong("{ \"v100\": { \"('A', 1)\": { \"null\": \"x\" } } }", "no number");
    assert_wrong("{ \"v100\": { \"('A', 1)\": { } } }", "no number");
    assert_wrong("{ \"v100\":\n { \"('A', 1)\": { \"null\": NaN } } }", "t.json:2: ");
    assert_wrong("{ \"v100\": { \"('A', 1)\": {", "t.json:1: ");
}

/* To the last bit: jobs that are drawn have as many steps as these rates say. */
static void published_rates_are_there_without_a_file(void **state)
{
    throughput_init(&table, &cluster);
    throughput_published(&table, &arena);
    assert_int_equal(table.row_count, 26);
    assert_string_equal(table.rows[0].name, "ResNet-18 (batch size 16)");
    assert_string_equal(table.rows[25].name, "CycleGAN");
    assert_true(rate("ResNet-18 (batch size 16)", 0, 1, false) == 32.353384328946916);
    assert_true(rate("ResNet-18 (batch size 16)", 0, 8, true) == 64.40995361172301);
    assert_true(rate("ResNet-50 (batch size 128)", 1, 2, false) ==
                0); /* does not fit */
    uint32_t distribute = 0;
    for (uint32_t k = 0; k < PUBLISHED_KINDS; k++)
        distribute += published_kinds[k].distributes;
    assert_int_equal(distribute, 19);
}

static int setup(void **state)
{
    arena_init(&arena, 0);
    return cluster_load(&cluster, &arena, "v100:1,k80:1", &err);
}

static int teardown(void **state)
{
    arena_release(&arena);
    return 0;
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(measured_sizes_are_exact_and_others_follow),
        CASE(the_best_type_is_among_those_allowed),
        CASE(a_job_without_a_row_makes_a_step_a_second),
        CASE(published_rates_are_there_without_a_file),
        CASE(wrong_tables_are_refused_by_field),
    };
    return cmocka_run_group_tests_name("throughput", tests, NULL, NULL);
}
