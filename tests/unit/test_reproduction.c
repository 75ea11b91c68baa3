/* Verdicts on reproduced figures: the mean or the published seed decides, not the spread. */
#include "support/cases.h"

#include <math.h>
#include <string.h>

#include "base/json.h"
#include "study/reproduction.h"

struct verdict_case {
    const char *verdict;
    double published, tolerance;
    double values[3]; /* of the seeds 5, 6, 7 */
    enum finding_direction direction;
    uint64_t compared_seed;
    bool running_time;
};

static const struct verdict_case verdict_cases[] = {
    { "reproduced", 1.0, 0.1, { 0.9, 1.0, 1.1 }, DIRECTION_LOWER, NO_SEED, false },
    { "reproduced", 1.0, 0.1, { 1.05, 1.06, 1.07 }, DIRECTION_LOWER, NO_SEED, false },
    { "inconclusive", 1.0, 0.1, { 0.9, 1.4, 1.9 }, DIRECTION_LOWER, NO_SEED, false },
    { "inconclusive", 1.0, 0.1, { 0.9, 1.4, 1.9 }, DIRECTION_NEITHER, NO_SEED, false },
    { "better", 1.0, 0.1, { 0.5, 0.6, 0.7 }, DIRECTION_LOWER, NO_SEED, false },
    { "worse", 1.0, 0.1, { 0.5, 0.6, 0.7 }, DIRECTION_HIGHER, NO_SEED, false },
    { "worse", 1.0, 0.1, { 1.5, 1.6, 1.7 }, DIRECTION_LOWER, NO_SEED, false },
    { "better", 1.0, 0.1, { 1.5, 1.6, 1.7 }, DIRECTION_HIGHER, NO_SEED, false },
    { "differs", 1.0, 0.1, { 1.5, 1.6, 1.7 }, DIRECTION_NEITHER, NO_SEED, false },
    { "differs", 1.0, 0.1, { 0.5, 0.6, 0.7 }, DIRECTION_NEITHER, NO_SEED, false },
    { "better", -0.4, 0.05, { -0.5, -0.6, -0.7 }, DIRECTION_LOWER, NO_SEED, false },
    { "faster", 1.0, 0.0, { 0.1, 0.2, 0.3 }, DIRECTION_LOWER, NO_SEED, true },
    { "worse", 1.0, 0.0, { 2.0, 2.1, 2.2 }, DIRECTION_LOWER, NO_SEED, true },
    /* One seed was published: the others do not matter, and neither does the spread. */
    { "reproduced", 1.0, 0.1, { 1.05, 5.0, 9.0 }, DIRECTION_LOWER, 5, false },
    { "worse", 1.0, 0.1, { 1.0, 1.5, 0.5 }, DIRECTION_LOWER, 6, false },
    { "better", 1.0, 0.1, { 1.0, 1.5, 0.5 }, DIRECTION_LOWER, 7, false },
    /* It was not run: the mean is what there is. */
    { "reproduced", 1.0, 0.1, { 1.0, 1.5, 0.5 }, DIRECTION_LOWER, 4, false },
    { "reproduced", 1.0, 0.1, { 1.0, 1.5, 0.5 }, DIRECTION_LOWER, 8, false },
    { "no figure published", NAN, 0.1, { 1.0, 1.5, 0.5 }, DIRECTION_LOWER, 5, false },
};

static void add_cases(struct reproduction *r)
{
    for (uint32_t i = 0; i < sizeof verdict_cases / sizeof *verdict_cases; i++) {
        char id[16];
        snprintf(id, sizeof id, "row%u", i);
        struct finding *row =
            reproduction_row(r, id, "", "s", verdict_cases[i].published,
                             verdict_cases[i].tolerance, verdict_cases[i].values, 3);
        row->direction = verdict_cases[i].direction;
        row->compared_seed = verdict_cases[i].compared_seed;
        row->running_time = verdict_cases[i].running_time;
        row->price = i == 0 ? "row1" : i == 1 ? "nowhere" : NULL;
    }
}

static int run_cases(struct reproduction *r, struct error *err)
{
    add_cases(r);
    return 0;
}

static const struct study study_of_cases = {
    .name = "cases",
    .title = "cases",
    .paper = "none",
    .seeds_full = 3,
    .seeds_quick = 3,
    .seed_first = 5,
    .fidelity = FIDELITY_PAPER,
    .run = run_cases,
};

static struct reproduction reproduction;

static void measure_cases(void)
{
    struct error err;
    reproduction = (struct reproduction){ 0 };
    assert_int_equal(reproduction_run(&reproduction, &study_of_cases, true, 0, &err),
                     0);
}

static void the_mean_or_the_published_seed_decides(void **state)
{
    measure_cases();
    for (uint32_t i = 0; i < sizeof verdict_cases / sizeof *verdict_cases; i++)
        if (strcmp(reproduction_verdict(&reproduction.findings[i]),
                   verdict_cases[i].verdict) != 0)
            fail_msg("row %u is %s and should be %s", i,
                     reproduction_verdict(&reproduction.findings[i]),
                     verdict_cases[i].verdict);
    reproduction_release(&reproduction);
}

static void a_record_has_what_its_verdict_was_made_from(void **state)
{
    measure_cases();
    struct json *root = reproduction_json(&reproduction);
    const struct json *rows = json_get(root, "rows");
    const struct json *seed_6 = json_item(rows, 14);
    assert_int_equal(json_count(json_get(seed_6, "values")), 3);
    assert_true(json_number_or(seed_6, "first_seed", 0) == 5);
    assert_true(json_number_or(seed_6, "compared_seed", 0) == 6);
    assert_true(json_number_or(seed_6, "compared", 0) == 1.5);
    assert_string_equal(json_text_or(seed_6, "direction", ""), "lower");
    assert_string_equal(json_text_or(seed_6, "fidelity", ""), "paper");
    /* A seed that was not run was not compared with. */
    assert_null(json_get(json_item(rows, 16), "compared_seed"));
    assert_null(json_get(json_item(rows, 18), "published"));
    assert_null(json_get(json_item(rows, 18), "compared"));
    json_free(root);
    reproduction_release(&reproduction);
}

static void a_price_is_another_row_as_measured(void **state)
{
    measure_cases();
    struct json *root = reproduction_json(&reproduction);
    const struct json *rows = json_get(root, "rows");
    const struct json *price = json_get(json_item(rows, 0), "price");
    assert_string_equal(json_text_or(price, "row", ""), "row1");
    assert_true(json_number_or(price, "measured", 0) ==
                reproduction.findings[1].measured);
    assert_null(json_get(json_item(rows, 1), "price"));
    assert_null(json_get(json_item(rows, 2), "price"));
    json_free(root);
    reproduction_release(&reproduction);
}

RUN_CASES(TEST(the_mean_or_the_published_seed_decides),
          TEST(a_record_has_what_its_verdict_was_made_from),
          TEST(a_price_is_another_row_as_measured));
