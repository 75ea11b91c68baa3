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
    assert_wrong(" \t\r\n", "t.json:");
    assert_wrong("{ \"v100\": { \"('A', 1)\": 5 } }", "want an object with a rate");
    assert_wrong("{ \"v100\": { \"('A', 1)\": { \"null\": 1e10 } } }", "not a rate");
    assert_wrong("{ \"v100\": { \"('A, 1)\": { \"null\": 5 } } }", "want \"('kind'");
    assert_wrong("{ \"v100\": { \"('A' 1)\": { \"null\": 5 } } }", "want \"('kind'");
    assert_wrong("{ \"v100\": { \"('', 1)\": { \"null\": 5 } } }", "want \"('kind'");
    assert_wrong("{ \"v100\": { \"('A',)\": { \"null\": 5 } } }", "want a number of");
    assert_wrong("{ \"v100\": { \"('A', 1]\": { \"null\": 5 } } }", "want a number of");
    assert_wrong("{ \"v100\": { \"('A', -1)\": { \"null\": 5 } } }", "want 1, 2, 4");
    assert_wrong("{ \"v100\": { \"('A', 99999999999999999999)\": { \"null\": 5 } } }",
                 "want a number of GPUs");
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

/* Our own form says the same as the other one. */
static void csv_and_json_give_the_same_table(void **state)
{
    static const char csv[] = "# of a lab\n"
                              "gpus,kind,type,rate,rate_spread\r\n"
                              "1,A (batch size 16),v100,10,\n"
                              "2,A (batch size 16),v100,18,12\n\n"
                              "8,\"A (batch size 16)\",v100,48,\n"
                              "1,A (batch size 16),k80,2,\n"
                              "1,\"B, \"\"large\"\"\",k80,0,0\n"
                              "4,C,tpu,7,7";
    assert_int_equal(parse(csv), 0);
    assert_int_equal(table.row_count, 3);
    const char *a = "A (batch size 16)";
    assert_true(rate(a, 0, 1, false) == 10);
    assert_true(rate(a, 0, 2, true) == 12);
    assert_true(rate(a, 0, 4, false) == 28);
    assert_true(rate(a, 1, 1, false) == 2);
    assert_true(rate("B, \"large\"", 1, 1, false) == 0);
    assert_true(rate("C", 0, 4, false) == 0); /* of a type that is not here */
}

static void assert_pair(const char *a, const char *b, uint32_t type, uint32_t gpus,
                        bool spread, double rate_a, double rate_b)
{
    double rates[2];
    assert_true(throughput_pair(&table, throughput_find(&table, a),
                                throughput_find(&table, b), type, gpus, spread, rates));
    assert_true(rates[0] == rate_a);
    assert_true(rates[1] == rate_b);
}

static bool is_measured(const char *a, const char *b, uint32_t type, uint32_t gpus)
{
    double rates[2];
    return throughput_pair(&table, throughput_find(&table, a),
                           throughput_find(&table, b), type, gpus, false, rates);
}

static const char pairs_json[] =
    "{ \"v100\": { \"('A', 2)\": { \"null\": 10, \"('B', 2)\": [6, 3],"
    "                              \"('C', 2)\": [0, 0] },"
    "             \"('B', 2)\": { \"null\": 5, \"('A', 2)\": [4, 7],"
    "                              \"('B', 2)\": [2, 2] },"
    "             \"('C', 2)\": { \"null\": 5, \"('B', 2)\": [1, 0] } },"
    "  \"v100_unconsolidated\": { \"('A', 2)\": { \"null\": 5,"
    "                                             \"('A', 2)\": [1, 1] } } }";

static void two_that_share_have_rates_of_their_own(void **state)
{
    assert_int_equal(parse(pairs_json), 0);
    assert_pair("A", "B", 0, 2, false, 6, 4); /* each side for its own kind */
    assert_pair("B", "A", 0, 2, false, 4, 6);
    assert_pair("B", "B", 0, 2, false, 2, 2);
    assert_pair("A", "C", 0, 2, false, 0, 0);
    assert_pair("B", "C", 0, 2, false, 0, 0); /* one cannot, so both must not */
    assert_pair("A", "A", 0, 2, true, 1, 1);
    assert_pair("A", "B", 0, 2, true, 3, 4); /* A is half as fast alone when spread */
    assert_false(is_measured("A", "A", 0, 2));
    assert_false(is_measured("A", "B", 0, 1));
    assert_false(is_measured("A", "B", 0, 3));
    assert_false(is_measured("A", "B", 1, 2));
    assert_false(is_measured("A", "D", 0, 2));
}

static void csv_holds_pairs_too(void **state)
{
    assert_int_equal(parse("kind,type,gpus,rate,beside,rate_beside\n"
                           "A,v100,1,8,B,3\n"
                           "A,v100,1,10,,\n"
                           "B,v100,1,5,,\n"),
                     0);
    assert_pair("B", "A", 0, 1, false, 3, 8);
    assert_true(rate("A", 0, 1, false) == 10);
}

static void wrong_pairs_are_refused_by_field(void **state)
{
#define PAIR(text) "{ \"v100\": { \"('A', 1)\": { \"null\": 1, " text " } } }"
    assert_wrong(PAIR("\"('A', 2)\": [1, 1]"), "another size");
    assert_wrong(PAIR("\"('B', 1)\": [1, 1]"), "no rate alone");
    assert_wrong(PAIR("\"('A', 1)\": [1]"), "v100: ('A', 1): want [a, b]");
    assert_wrong(PAIR("\"('A', 1)\": [1, -1]"), "want [a, b]");
    assert_wrong(PAIR("\"('A', 1)\": 5"), "want [a, b]");
    assert_wrong(PAIR("\"A\": [1, 1]"), "want \"('kind', gpus)\"");
#define HEAD "kind,type,gpus,rate,rate_spread,beside,rate_beside\n"
    assert_wrong("kind,type,gpus\nA,v100,1\n", "t.json:1: rate: no such column");
    assert_wrong("kind,type,gpus,speed\n", "t.json:1: speed: no such column");
    assert_wrong("kind,kind,gpus,rate\n", "t.json:1: kind: the column is there twice");
    assert_wrong(HEAD "A,v100,1,1\n", "t.json:2: more or fewer fields");
    assert_wrong(HEAD "A,v100,3,1,,,\n", "t.json:2: gpus: want 1, 2, 4");
    assert_wrong(HEAD "A,v100,1,nan,,,\n", "t.json:2: rate: want 0 to 1e9");
    assert_wrong(HEAD "A,v100,1,1,-1,,\n", "t.json:2: rate_spread: want");
    assert_wrong(HEAD ",v100,1,1,,,\n", "t.json:2: kind: want");
    assert_wrong(HEAD "A,,1,1,,,\n", "t.json:2: type: want");
    assert_wrong(HEAD "A,v100,1,1,,,1\n", "rate_beside: a rate beside nobody");
    assert_wrong(HEAD "\n# A again\nA,v100,1,1,,,\nA,v100,1,2,,,\n",
                 "t.json:5: rate: a second rate");
    assert_wrong(HEAD "A,v100,1,1,,B,1\n", "t.json:2: kind: shares, but");
    assert_wrong(HEAD "A,v100,1,1,,,\nA,v100,1,1,,B,1\n", "t.json:3: beside: shares");
    assert_wrong(HEAD "A,v100,1,1,,,\nA,v100,1,1,,A,\n", "t.json:3: rate_beside: want");
    assert_wrong("hello", "t.json:1: hello: no such column");
}

/* A name of 201 bytes, in the middle of 'before' and 'after'. */
static const char *with_a_long_kind(const char *before, const char *after)
{
    static char text[600];
    char name[202];
    memset(name, 'n', 201);
    name[201] = '\0';
    snprintf(text, sizeof text, "%s%s%s", before, name, after);
    return text;
}

static void names_and_numbers_have_a_ceiling(void **state)
{
    assert_wrong(with_a_long_kind("{\"v100\":{\"('", "', 1)\":{\"null\":5}}}"),
                 "want a kind of 1 to 200 bytes");
    assert_wrong(with_a_long_kind(HEAD, ",v100,1,1,,,\n"), "t.json:2: kind: want");
    assert_wrong(HEAD "A,v100,1,1e10,,,\n", "t.json:2: rate: want 0 to 1e9");
    assert_wrong(HEAD "A,v100,256,1,,,\n", "t.json:2: gpus: want 1, 2, 4");
    assert_wrong(HEAD "A,v100,1.5,1,,,\n", "t.json:2: gpus: want 1, 2, 4");
    assert_wrong(HEAD "A,v100,1,1,,,\nA,v100,1,x,,A,1\n", "t.json:3: rate: want");
    assert_wrong(HEAD "A,v100,1,1,,,\nA,v100,1,1,1,A,1\n",
                 "t.json:3: rate_spread: is of a gang alone, not of a pair");
    assert_wrong(PAIR("\"('A', 1)\": [\"x\", 1]"), "want [a, b]");
    assert_wrong(PAIR("\"('A', 1)\": [1e10, 1]"), "want [a, b]");
    /* Of a type that is not here, the name may be as long as it likes. */
    assert_int_equal(parse(with_a_long_kind("{\"", "\":{\"('A', 1)\":{\"null\":5}}}")),
                     0);
}

/* Every kind is found again, also where two names fall into one place of the index. */
static void thousands_of_kinds_are_distinguished(void **state)
{
    static char text[200000];
    size_t count = (size_t)snprintf(text, sizeof text, "kind,type,gpus,rate\n");
    for (int i = 0; i < 5000; i++)
        count += (size_t)snprintf(text + count, sizeof text - count,
                                  "kind-%d,v100,1,%d\n", i, i);
    assert_int_equal(parse(text), 0);
    assert_int_equal(table.row_count, 5000);
    for (int i = 0; i < 5000; i++) {
        char name[32];
        snprintf(name, sizeof name, "kind-%d", i);
        assert_true(rate(name, 0, 1, false) == i);
    }
}

static void pairs_are_for_a_thousand_kinds_at_most(void **state)
{
    static char text[100000];
    size_t count =
        (size_t)snprintf(text, sizeof text, "kind,type,gpus,rate,beside,rate_beside\n");
    for (int i = 0; i < 1025; i++)
        count +=
            (size_t)snprintf(text + count, sizeof text - count, "%d,v100,1,1,,\n", i);
    snprintf(text + count, sizeof text - count, "0,v100,1,1,1,1\n");
    assert_wrong(text, "t.json:1027: beside: pairs among more than 1024 kinds");
    count = (size_t)snprintf(text, sizeof text, "{\"v100\":{");
    for (int i = 0; i < 1025; i++)
        count += (size_t)snprintf(text + count, sizeof text - count,
                                  "\"('%d', 1)\":{\"null\":1},", i);
    snprintf(text + count, sizeof text - count,
             "\"('x', 1)\":{\"null\":1,\"('1', 1)\":[1,1]}}}");
    assert_wrong(text, "('1', 1): pairs among more than 1024 kinds");
}

static void a_pair_is_no_faster_spread_than_alone(void **state)
{
    /* B does not run when it is spread, so neither shares with the other there. */
    assert_int_equal(parse("kind,type,gpus,rate,rate_spread,beside,rate_beside\n"
                           "A,v100,2,8,4,,\nB,v100,2,5,0,,\nA,v100,2,4,,B,2\n"),
                     0);
    assert_pair("A", "B", 0, 2, false, 4, 2);
    assert_pair("A", "B", 0, 2, true, 0, 0);
}

static void the_released_table_equals_the_built_in_one(void **state)
{
    const char *data = getenv("BERTH_DATA");
    if (!data || !*data)
        SKIP("BERTH_DATA not set");
    static struct throughput ours;
    char path[4096];
    snprintf(path, sizeof path, "%s/gavel/simulation_throughputs.json", data);
    assert_int_equal(cluster_load(&cluster, &arena, "v100:1,p100:1,k80:1", &err), 0);
    throughput_init(&ours, &cluster);
    throughput_published(&ours, &arena);
    throughput_init(&table, &cluster);
    if (throughput_load(&table, &arena, path, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(table.row_count, ours.row_count);
    for (uint32_t k = 0; k < ours.row_count; k++) {
        uint32_t row = throughput_find(&table, ours.rows[k].name);
        assert_true(row != KIND_NONE);
        assert_memory_equal(ours.rows[k].rate, table.rows[row].rate,
                            sizeof ours.rows[k].rate);
    }
    assert_pair("ResNet-18 (batch size 16)", "ResNet-18 (batch size 256)", 0, 1, false,
                24.45464779058787, 10.300256501360458);
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

RUN_CASES(CASE(measured_sizes_are_exact_and_others_follow),
          CASE(the_best_type_is_among_those_allowed),
          CASE(a_job_without_a_row_makes_a_step_a_second),
          CASE(published_rates_are_there_without_a_file),
          CASE(the_released_table_equals_the_built_in_one),
          CASE(csv_and_json_give_the_same_table),
          CASE(two_that_share_have_rates_of_their_own), CASE(csv_holds_pairs_too),
          CASE(wrong_pairs_are_refused_by_field),
          CASE(wrong_tables_are_refused_by_field),
          CASE(names_and_numbers_have_a_ceiling),
          CASE(thousands_of_kinds_are_distinguished),
          CASE(pairs_are_for_a_thousand_kinds_at_most),
          CASE(a_pair_is_no_faster_spread_than_alone));
