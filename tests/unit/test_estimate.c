/* Unknown jobs, from a few trials: matching, completing, measuring; and how well. */
#include "support/cases.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/rng.h"
#include "model/cluster.h"
#include "model/sharing.h"
#include "model/throughput.h"
#include "predict/estimate.h"

#define TYPES 3
#define DRAWS 10
#define JOBS 4

static struct arena arena;
static struct cluster cluster;
static struct throughput table;
static struct estimate estimate;
static struct error err;

static void refer_to_all_but(uint32_t left_out)
{
    uint32_t kinds[PUBLISHED_KINDS];
    uint32_t count = 0;
    for (uint32_t k = 0; k < table.row_count; k++)
        if (k != left_out)
            kinds[count++] = k;
    estimate_init(&estimate, &arena, &table, kinds, count, TYPES, JOBS);
}

/* What a kind keeps beside another, as the table has it. */
static double truth(uint32_t kind, uint32_t other, uint32_t type)
{
    struct job a = { .kind = kind, .gpus = 1 };
    struct job b = { .kind = other, .gpus = 1 };
    double rates[2];
    double alone = throughput_rate(&table, &a, type, 1, false);
    return sharing_rates(&table, &a, &b, type, 1, false, rates) ? rates[0] / alone : 0;
}

static void profile(job_id job, uint32_t kind, double part, struct rng *rng)
{
    estimate_begin(&estimate, job);
    for (uint32_t type = 0; type < TYPES; type++)
        for (uint32_t r = 0; r < estimate.reference_count; r++)
            if (rng_unit(rng) < part)
                estimate_note(&estimate, job, type, r,
                              truth(kind, estimate.kinds[r], type));
}

static void a_reference_is_matched_with_itself(void **state)
{
    struct rng rng;
    rng_init(&rng, 1, "test");
    refer_to_all_but(KIND_NONE);
    for (uint32_t k = 0; k < table.row_count; k++) {
        profile(0, k, 1, &rng);
        assert_int_equal(estimate.kinds[estimate_match(&estimate, 0)], k);
    }
}

static void what_is_known_is_kept_as_it_is(void **state)
{
    refer_to_all_but(KIND_NONE);
    estimate_begin(&estimate, 0);
    estimate_note(&estimate, 0, 1, 3, 0.375);
    estimate_note(&estimate, 0, 1, 4, 7); /* a part is at most all */
    estimate_note(&estimate, 0, 1, 5, NAN);
    assert_true(estimate_cell(&estimate, 0, 1, 3) == 0.375);
    assert_true(estimate_cell(&estimate, 0, 1, 4) == 1);
    assert_true(estimate_cell(&estimate, 0, 1, 5) == 0);
    for (uint32_t type = 0; type < TYPES; type++)
        for (uint32_t r = 0; r < estimate.reference_count; r++) {
            double cell = estimate_cell(&estimate, 0, type, r);
            assert_true(cell >= 0);
            assert_true(cell <= 1);
        }
}

static void an_unknown_job_counts_as_the_worst_reference(void **state)
{
    refer_to_all_but(KIND_NONE);
    estimate_begin(&estimate, 0);
    assert_int_equal(estimate_match(&estimate, 0), estimate.worst);
    for (uint32_t type = 0; type < TYPES; type++)
        estimate_note(&estimate, 0, type, 0, 0); /* it fits beside no job */
    assert_int_equal(estimate_match(&estimate, 0), estimate.worst);
}

static void what_is_measured_replaces_what_was_estimated(void **state)
{
    struct rng rng;
    rng_init(&rng, 1, "test");
    refer_to_all_but(KIND_NONE);
    profile(0, 2, 0.2, &rng);
    profile(1, 9, 1, &rng);
    estimate_measured(&estimate, 0, 1, 2, 0.123);
    assert_true(estimate_kept(&estimate, 0, 1, 2) == 0.123);
    estimate_measured(&estimate, 0, 1, 2, 0); /* it does not fit after all */
    assert_true(estimate_kept(&estimate, 0, 1, 2) == 0);
    estimate_begin(&estimate, 0); /* another job in the slot */
    assert_true(estimate_kept(&estimate, 0, 1, 2) != 0.123);
}

/* Mean absolute errors of one job's cells that it was not tried in. */
struct errors {
    double completed, matched, constant;
    uint64_t count, let_in, refused, too_large;
};

static void add_errors(struct errors *errors, uint32_t kind)
{
    const double *known = estimate.cells; /* of slot 0 */
    for (uint32_t type = 0; type < TYPES; type++)
        for (uint32_t r = 0; r < estimate.reference_count; r++) {
            uint32_t column = type * estimate.reference_count + r;
            double true_part = truth(kind, estimate.kinds[r], type);
            double matched = estimate_beside(&estimate, 0, type, r);
            if (known[column] >= 0)
                continue;
            errors->count++;
            errors->too_large += true_part == 0;
            errors->let_in += true_part == 0 && matched > 0;
            errors->refused += true_part > 0 && matched == 0;
            errors->completed += fabs(estimate_cell(&estimate, 0, type, r) - true_part);
            errors->matched += fabs(matched - true_part);
            errors->constant += fabs(SHARED_SPEED - true_part);
        }
}

/* Each kind as if it were new, a fifth of its cells tried. */
static void a_fifth_of_the_trials_tells_most(void **state)
{
    const char *data = getenv("BERTH_DATA");
    if (!data || !*data)
        SKIP("BERTH_DATA not set");
    char path[4096];
    snprintf(path, sizeof path, "%s/gavel/simulation_throughputs.json", data);
    throughput_init(&table, &cluster);
    if (throughput_load(&table, &arena, path, &err) < 0)
        fail_msg("%s", err.text);
    struct rng rng;
    struct errors sum = { 0 };
    rng_init(&rng, 1, "test");
    for (uint32_t kind = 0; kind < table.row_count; kind++) {
        refer_to_all_but(kind);
        for (int draw = 0; draw < DRAWS; draw++) {
            profile(0, kind, 0.2, &rng);
            add_errors(&sum, kind);
        }
    }
    double n = (double)sum.count;
    printf("# mean error: completed %.3f, matched %.3f, constant %.3f; "
           "of %llu too large %llu let in; of %llu others %llu refused\n",
           sum.completed / n, sum.matched / n, sum.constant / n,
           (unsigned long long)sum.too_large, (unsigned long long)sum.let_in,
           (unsigned long long)(sum.count - sum.too_large),
           (unsigned long long)sum.refused);
    assert_true(sum.completed < 0.6 * sum.constant);
    assert_true(sum.matched < 0.6 * sum.constant);
    assert_true(sum.let_in * 2 < sum.too_large);
}

static int setup(void **state)
{
    arena_init(&arena, 0);
    int r = cluster_load(&cluster, &arena, "v100:1,p100:1,k80:1", &err);
    throughput_init(&table, &cluster);
    throughput_published(&table, &arena);
    return r;
}

static int teardown(void **state)
{
    arena_release(&arena);
    return 0;
}

RUN_CASES(CASE(a_reference_is_matched_with_itself),
          CASE(what_is_known_is_kept_as_it_is),
          CASE(an_unknown_job_counts_as_the_worst_reference),
          CASE(what_is_measured_replaces_what_was_estimated),
          CASE(a_fifth_of_the_trials_tells_most));
