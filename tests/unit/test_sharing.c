/* Two jobs on the same accelerators: measured, modelled, or not to be tried. */
#include "support/cases.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "model/cluster.h"
#include "model/pair_table.h"
#include "model/rate_table.h"
#include "model/sharing.h"
#include "model/throughput.h"

static struct arena arena;
static struct cluster cluster;
static struct throughput published;
static struct error err;

static struct job job_of(const char *kind, uint32_t gpus)
{
    uint32_t row = kind ? throughput_find(&published, kind) : KIND_NONE;
    return (struct job){ .kind = row, .gpus = gpus, .types = 7 };
}

static void jobs_of_unknown_kind_keep_a_constant_part(void **state)
{
    struct job a = job_of(NULL, 4);
    struct job b = job_of("A3C", 4);
    double rates[2];
    assert_true(sharing_rates(&published, &a, &a, 0, 4, false, rates));
    assert_near(rates[0], SHARED_SPEED, 1e-12);
    assert_near(rates[1], SHARED_SPEED, 1e-12);
    b.gpus = 1;
    assert_true(sharing_rates(&published, &b, &a, 0, 1, false, rates));
    assert_near(rates[0], SHARED_SPEED * throughput_rate(&published, &b, 0, 1, false),
                1e-12);
    assert_near(rates[1], SHARED_SPEED / 4, 1e-12);
}

static void the_model_is_the_same_from_both_sides(void **state)
{
    struct job a = job_of("A3C", 1);
    struct job b = job_of("LM (batch size 80)", 1);
    double ab[2];
    double ba[2];
    assert_true(sharing_rates(&published, &a, &b, 1, 1, false, ab));
    assert_true(sharing_rates(&published, &b, &a, 1, 1, false, ba));
    assert_true(ab[0] == ba[1]);
    assert_true(ab[1] == ba[0]);
    assert_true(ab[0] < throughput_rate(&published, &a, 1, 1, false));
}

static void what_does_not_fit_in_memory_must_not_share(void **state)
{
    struct job large = job_of("ResNet-50 (batch size 128)", 1);
    double rates[2];
    assert_false(sharing_rates(&published, &large, &large, 0, 1, false, rates));
    assert_true(rates[0] == 0);
    assert_true(rates[1] == 0);
}

static void gangs_of_known_kinds_do_not_share(void **state)
{
    struct job a = job_of("LM (batch size 5)", 2);
    double rates[2];
    assert_false(sharing_rates(&published, &a, &a, 0, 2, false, rates));
}

static void what_was_measured_comes_before_the_model(void **state)
{
    static const char text[] = "kind,type,gpus,rate,beside,rate_beside\n"
                               "A3C,v100,1,7,,\nCycleGAN,v100,1,4,,\n"
                               "A3C,v100,1,1.5,CycleGAN,2.5\n"
                               "A3C,v100,1,0,A3C,0\n";
    static struct throughput table;
    throughput_init(&table, &cluster);
    assert_int_equal(
        throughput_parse(&table, &arena, "t.csv", text, strlen(text), &err), 0);
    struct job a = { .kind = throughput_find(&table, "A3C"), .gpus = 1 };
    struct job c = { .kind = throughput_find(&table, "CycleGAN"), .gpus = 1 };
    double rates[2];
    assert_true(sharing_rates(&table, &c, &a, 0, 1, false, rates));
    assert_true(rates[0] == 2.5);
    assert_true(rates[1] == 1.5);
    assert_false(sharing_rates(&table, &a, &a, 0, 1, false, rates));
    assert_true(sharing_rates(&table, &c, &c, 0, 1, false, rates)); /* by the model */
    assert_true(rates[0] > 0);
    assert_true(rates[0] < 4);
}

/* --- by consent ----------------------------------------------------------------------- */

static struct throughput consenting(void)
{
    struct throughput table;
    throughput_init(&table, &cluster);
    table.rules.by_consent = true;
    return table;
}

static struct job sharer(uint32_t user, uint32_t gpu_mib)
{
    struct job job = job_of(NULL, 1);
    job.shares = true;
    job.user = user;
    job.gpu_mib = gpu_mib;
    return job;
}

static void only_jobs_that_said_so_share(void **state)
{
    struct throughput table = consenting();
    struct job one = sharer(1, 0), other = sharer(1, 0), stranger = sharer(2, 0);
    double rates[2];
    assert_true(sharing_rates(&table, &one, &other, 0, 1, false, rates));
    assert_false(sharing_rates(&table, &one, &stranger, 0, 1, false, rates));
    assert_true(rates[0] == 0 && rates[1] == 0);
    table.rules.across_users = true;
    assert_true(sharing_rates(&table, &one, &stranger, 0, 1, false, rates));
    other.shares = false;
    assert_false(sharing_rates(&table, &one, &other, 0, 1, false, rates));
    assert_false(sharing_rates(&table, &other, &one, 0, 1, false, rates));
    table.rules.forbidden = true;
    assert_false(sharing_rates(&table, &one, &stranger, 0, 1, false, rates));
}

static void memory_of_both_fits_with_the_reserve(void **state)
{
    struct throughput table = consenting();
    struct job small = sharer(1, 6000), large = sharer(1, 9000), silent = sharer(1, 0);
    double rates[2];
    table.rules.gpu_mib[0] = 16000;
    table.rules.reserve_mib = 1000;
    assert_true(sharing_rates(&table, &small, &large, 0, 1, false, rates));
    assert_false(sharing_rates(&table, &large, &large, 0, 1, false, rates));
    assert_false(sharing_rates(&table, &small, &silent, 0, 1, false, rates));
    assert_true(sharing_rates(&table, &small, &silent, 1, 1, false, rates));
}

static void what_jobs_are_alike_depends_on_consent(void **state)
{
    struct throughput table = consenting();
    struct job ann = sharer(1, 6000), bob = sharer(2, 6000), not = sharer(2, 9000);
    not .shares = false;
    assert_false(sharing_is_alike(&table, &ann, &bob));
    assert_false(sharing_is_alike(&table, &ann, &not ));
    assert_true(sharing_hash(&table, &ann) != sharing_hash(&table, &bob));
    table.rules.across_users = true;
    assert_true(sharing_is_alike(&table, &ann, &bob));
    assert_true(sharing_hash(&table, &ann) == sharing_hash(&table, &bob));
    table.rules.by_consent = false;
    assert_true(sharing_is_alike(&table, &ann, &not ));
    assert_true(sharing_hash(&table, &ann) == sharing_hash(&table, &not ));
}

static void no_jobs_share_gpus_that_take_one_process_at_a_time(void **state)
{
    struct throughput table = consenting();
    struct job one = sharer(1, 0), other = sharer(1, 0);
    double rates[2];
    table.rules.unshared = 1u << 1;
    assert_true(sharing_rates(&table, &one, &other, 0, 1, false, rates));
    assert_false(sharing_rates(&table, &one, &other, 1, 1, false, rates));
}

static void jobs_that_leave_a_gpu_idle_are_expected_to_keep_more(void **state)
{
    static struct rate_kind kinds[2];
    struct rate_table learned = { .kinds = kinds, .kind_count = 2, .typical = { 1 } };
    struct throughput table = consenting();
    struct job one = sharer(1, 0), other = sharer(1, 0);
    double rates[2], alone;
    one.learned = 1;
    other.learned = 2;
    one.pace = other.pace = 1;
    table.learned = &learned;
    alone = throughput_rate(&table, &one, 0, 1, false);
    static const struct {
        float one, other;
        bool overlaps;
        double kept;
    } cases[] = {
        { 0.3f, 0.5f, false, 1 },         /* both find room                */
        { 0.8f, 0.8f, false, 0.625 },     /* they take turns               */
        { 1, 1, false, 0.5 },             /* neither leaves anything       */
        { 1, 1, true, SHARED_SPEED },     /* but may compute at once       */
        { 0.3f, 0, false, SHARED_SPEED }, /* of one nothing is known    */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        kinds[0].busy[0] = cases[i].one;
        kinds[1].busy[0] = cases[i].other;
        table.rules.overlaps = cases[i].overlaps;
        assert_true(sharing_rates(&table, &one, &other, 0, 1, false, rates));
        assert_near(rates[0] / alone, cases[i].kept, 1e-6);
        assert_near(rates[1] / alone, cases[i].kept, 1e-6);
    }
}

/* --- what was measured of pairs ------------------------------------------------------ */

static void a_part_is_believed_after_some_reports(void **state)
{
    struct pair_table pairs;
    pair_table_init(&pairs, &arena);
    assert_false(pair_table_measure(&pairs, 7, 9, 0, 0.5));
    assert_int_equal(pair_table_find(&pairs, 7, 9, 0)->count, 1);
    assert_true(pair_table_measure(&pairs, 7, 9, 0, 0.7));
    assert_near(pair_table_find(&pairs, 7, 9, 0)->kept, 0.6, 1e-12);
    assert_false(pair_table_measure(&pairs, 7, 9, 0, 0.6)); /* no news */
    assert_null(pair_table_find(&pairs, 9, 7, 0));
    assert_null(pair_table_find(&pairs, 7, 9, 1));
    for (int i = 0; i < 40; i++)
        pair_table_measure(&pairs, 7, 9, 0, 0.9);
    assert_true(pair_table_find(&pairs, 7, 9, 0)->kept > 0.8); /* it follows */
    pair_table_release(&pairs);
}

static void the_oldest_pair_makes_room(void **state)
{
    struct pair_table pairs;
    pair_table_init(&pairs, &arena);
    for (uint64_t i = 0; i < PAIR_ROWS_MAX + 2; i++)
        pair_table_measure(&pairs, i, i + 1, 0, 0.5);
    assert_int_equal(pairs.count, PAIR_ROWS_MAX);
    assert_null(pair_table_find(&pairs, 0, 1, 0));
    assert_null(pair_table_find(&pairs, 1, 2, 0));
    assert_non_null(pair_table_find(&pairs, 2, 3, 0));
    assert_non_null(pair_table_find(&pairs, PAIR_ROWS_MAX + 1, PAIR_ROWS_MAX + 2, 0));
    pair_table_release(&pairs);
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Errors of the model against what was measured, of one type. */
static void judge_type(const struct throughput *measured, uint32_t type,
                       double median_at_most, uint32_t refused_at_most)
{
    static double errors[PUBLISHED_KINDS * PUBLISHED_KINDS];
    uint32_t count = 0;
    uint32_t let_in = 0;
    uint32_t refused = 0;
    for (uint32_t a = 0; a < PUBLISHED_KINDS; a++)
        for (uint32_t b = 0; b < PUBLISHED_KINDS; b++) {
            struct job one = job_of(published.rows[a].name, 1);
            struct job two = job_of(published.rows[b].name, 1);
            double truth[2];
            double model[2];
            uint32_t row = throughput_find(measured, published.rows[a].name);
            assert_true(throughput_pair(
                measured, row, throughput_find(measured, published.rows[b].name), type,
                1, false, truth));
            bool shares = sharing_rates(&published, &one, &two, type, 1, false, model);
            let_in += shares && truth[0] == 0;
            refused += !shares && truth[0] > 0 && a <= b;
            if (shares && truth[0] > 0)
                errors[count++] =
                    fabs(model[0] - truth[0]) / measured->rows[row].rate[type][0][0];
        }
    qsort(errors, count, sizeof *errors, ascending);
    printf("# %s: median error %.3f, 90 %% %.3f, refused wrongly %u\n",
           cluster.types[type].name, errors[count / 2], errors[count * 9 / 10],
           refused);
    assert_int_equal(let_in, 0); /* never optimistic about memory */
    assert_true(refused <= refused_at_most);
    assert_true(errors[count / 2] <= median_at_most);
}

static void the_model_is_near_what_was_measured(void **state)
{
    const char *data = getenv("BERTH_DATA");
    if (!data || !*data)
        SKIP("BERTH_DATA not set");
    static struct throughput measured;
    char path[4096];
    snprintf(path, sizeof path, "%s/gavel/simulation_throughputs.json", data);
    throughput_init(&measured, &cluster);
    if (throughput_load(&measured, &arena, path, &err) < 0)
        fail_msg("%s", err.text);
    judge_type(&measured, 0, 0.070, 1);
    judge_type(&measured, 1, 0.015, 0);
    judge_type(&measured, 2, 0.016, 6);
}

static int setup(void **state)
{
    arena_init(&arena, 0);
    int r = cluster_load(&cluster, &arena, "v100:1,p100:1,k80:1", &err);
    throughput_init(&published, &cluster);
    throughput_published(&published, &arena);
    return r;
}

static int teardown(void **state)
{
    arena_release(&arena);
    return 0;
}

RUN_CASES(CASE(jobs_of_unknown_kind_keep_a_constant_part),
          CASE(the_model_is_the_same_from_both_sides),
          CASE(what_does_not_fit_in_memory_must_not_share),
          CASE(gangs_of_known_kinds_do_not_share),
          CASE(what_was_measured_comes_before_the_model),
          CASE(only_jobs_that_said_so_share),
          CASE(memory_of_both_fits_with_the_reserve),
          CASE(what_jobs_are_alike_depends_on_consent),
          CASE(no_jobs_share_gpus_that_take_one_process_at_a_time),
          CASE(jobs_that_leave_a_gpu_idle_are_expected_to_keep_more),
          CASE(a_part_is_believed_after_some_reports), CASE(the_oldest_pair_makes_room),
          CASE(the_model_is_near_what_was_measured));
