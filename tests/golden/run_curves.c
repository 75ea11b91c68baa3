/*
 * How well real learning curves are foretold: BERTH_DATA/curves, ten points ahead.
 *
 * At many points of every curve, what was known by then is asked for the value ten points
 * on.  An error counts against the range of values seen so far, at most 1.  Beside it
 * stand two that know nothing: "it stays as it is" and "it goes on at the last slope".
 * Runs are split in two by the checksum of their name: the constants of the forecast were
 * set by the figures of the first half, and should do as well in the second.
 *
 *     BERTH_DATA=… meson test -C build --suite golden curves -v     shows the table
 *     BERTH_SOAK=1 …                                               four times the points
 */
#include "support/cases.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>
#include <zlib.h>

#include "base/error.h"
#include "predict/curve.h"
#include "workload/curves.h"

#define AHEAD 10
#define FIRST 4 /* points before the first question */
#define KINDS_MAX 64
#define ERRORS_MAX 200000

enum guess { OURS, STAYS, SLOPE, GUESSES };

struct tally {
    char kind[CURVES_NAME_MAX];
    uint32_t curves, questions, within;
    double means[GUESSES]; /* sums over curves of their mean error */
};

/* Questions by how many points were known. */
static const uint32_t lengths[] = { 4, 7, 10, 15, 20, 30, 50, 100 };
#define LENGTHS (sizeof lengths / sizeof *lengths)

struct study {
    struct tally all[2]; /* by half */
    uint32_t asked[2][LENGTHS], held[2][LENGTHS];
    struct tally kinds[KINDS_MAX];
    uint32_t kind_count;
    double *errors[2]; /* ours, to find the median */
};

static struct study study;

static struct tally *tally_of(const char *kind)
{
    for (uint32_t i = 0; i < study.kind_count; i++)
        if (strcmp(study.kinds[i].kind, kind) == 0)
            return &study.kinds[i];
    assert_true(study.kind_count < KINDS_MAX);
    struct tally *tally = &study.kinds[study.kind_count++];
    snprintf(tally->kind, sizeof tally->kind, "%s", kind);
    return tally;
}

static uint32_t length_of(uint32_t known)
{
    uint32_t i = 0;
    while (i + 1 < LENGTHS && known >= lengths[i + 1])
        i++;
    return i;
}

static double off_by(double guess, double came, double range)
{
    double off = fabs(guess - came);
    return off == 0 ? 0 : off < range ? off / range : 1;
}

/* Ask at point 'known' - 1 of a curve that has just been told of it. */
static void ask(struct curve *curve, const struct curves_one *one, uint32_t known,
                double *errors, bool *ret_within)
{
    bool predictable;
    struct forecast forecast = curve_forecast(curve, AHEAD, &predictable);
    double came = one->value[known - 1 + AHEAD];
    double last = one->value[known - 1];
    double range = curve->high - curve->low;
    double rounding = 1e-12 * fabs(came);
    errors[OURS] = off_by(forecast.value, came, range);
    errors[STAYS] = off_by(last, came, range);
    errors[SLOPE] = off_by(last + AHEAD * (last - one->value[known - 2]), came, range);
    *ret_within = came >= forecast.low - rounding && came <= forecast.high + rounding;
}

static void count_in(struct tally *tally, const double *sums, uint32_t questions,
                     uint32_t within)
{
    tally->curves++;
    tally->questions += questions;
    tally->within += within;
    for (int g = 0; g < GUESSES; g++)
        tally->means[g] += sums[g] / questions;
}

static void play(const struct curves_one *one, uint32_t questions_max)
{
    static struct curve curve;
    if (one->count < FIRST + AHEAD)
        return;
    uint32_t half = crc32(0, (const Bytef *)one->run_id, (uInt)strlen(one->run_id)) & 1;
    uint32_t last = one->count - AHEAD;
    uint32_t places = last - FIRST + 1;
    uint32_t questions = places < questions_max ? places : questions_max;
    double sums[GUESSES] = { 0 };
    uint32_t within = 0;
    uint32_t told = 0;
    curve_init(&curve, NULL);
    for (uint32_t q = 0; q < questions; q++) {
        uint32_t known =
            FIRST + (questions > 1 ? q * (last - FIRST) / (questions - 1) : 0);
        for (; told < known; told++)
            curve_add(&curve, one->step[told], one->value[told]);
        double errors[GUESSES];
        bool in;
        ask(&curve, one, known, errors, &in);
        within += in;
        study.asked[half][length_of(known)]++;
        study.held[half][length_of(known)] += in;
        for (int g = 0; g < GUESSES; g++)
            sums[g] += errors[g];
        assert_true(study.all[half].questions + q < ERRORS_MAX);
        study.errors[half][study.all[half].questions + q] = errors[OURS];
    }
    count_in(&study.all[half], sums, questions, within);
    count_in(tally_of(one->algo), sums, questions, within);
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double naive(const struct tally *tally)
{
    return fmin(tally->means[STAYS], tally->means[SLOPE]);
}

static void show(const struct tally *tally)
{
    printf("# %-22s %6u %9u %8.4f %8.4f %8.4f %7.2f %7.2f\n", tally->kind,
           tally->curves, tally->questions, tally->means[OURS] / tally->curves,
           tally->means[STAYS] / tally->curves, tally->means[SLOPE] / tally->curves,
           tally->means[OURS] / naive(tally), (double)tally->within / tally->questions);
}

static void show_lengths(void)
{
    printf("# points known, questions and share held: first half, second half\n");
    for (uint32_t i = 0; i < LENGTHS; i++) {
        printf("# %4u and more", lengths[i]);
        for (uint32_t half = 0; half < 2; half++)
            printf(" %8u %7.3f", study.asked[half][i],
                   (double)study.held[half][i] / study.asked[half][i]);
        puts("");
    }
}

static void play_all(const char *data)
{
    const char *soak = getenv("BERTH_SOAK");
    uint32_t questions_max = soak && *soak ? 40 : 10;
    char path[4096];
    struct curves curves;
    struct curves_one one;
    struct error err;
    snprintf(path, sizeof path, "%s/curves/curves.csv.gz", data);
    if (curves_open(&curves, path, &err) < 0)
        fail_msg("%s", err.text);
    int r;
    while ((r = curves_next(&curves, &one, &err)) > 0)
        play(&one, questions_max);
    if (r < 0)
        fail_msg("%s", err.text);
    curves_release(&curves);
}

static void check_half(uint32_t half)
{
    struct tally *tally = &study.all[half];
    assert_true(tally->curves > 100);
    qsort(study.errors[half], tally->questions, sizeof(double), by_size);
    double median = study.errors[half][tally->questions / 2];
    double held = (double)tally->within / tally->questions;
    printf("# %s: median error %.4f\n", tally->kind, median);
    assert_true(median < 0.05);
    assert_true(tally->means[OURS] <= 0.9 * naive(tally)); /* 1.1 is what is promised */
    assert_true(held >= 0.7 && held <= 0.9);
}

static void real_curves_are_foretold(void **state)
{
    const char *data = getenv("BERTH_DATA");
    if (!data || !*data)
        SKIP("BERTH_DATA not set");
    study.errors[0] = malloc(ERRORS_MAX * sizeof(double));
    study.errors[1] = malloc(ERRORS_MAX * sizeof(double));
    assert_true(study.errors[0] && study.errors[1]);
    snprintf(study.all[0].kind, sizeof study.all[0].kind, "ALL, first half");
    snprintf(study.all[1].kind, sizeof study.all[1].kind, "ALL, second half");
    play_all(data);
    printf("# %-22s %6s %9s %8s %8s %8s %7s %7s\n", "kind", "curves", "questions",
           "error", "stays", "slope", "ratio", "held");
    for (uint32_t i = 0; i < study.kind_count; i++)
        show(&study.kinds[i]);
    show(&study.all[0]);
    show(&study.all[1]);
    show_lengths();
    check_half(0);
    check_half(1);
    for (uint32_t i = 0; i < LENGTHS; i++)
        for (uint32_t half = 0; half < 2; half++) {
            double held = (double)study.held[half][i] / study.asked[half][i];
            assert_true(held >= 0.7 && held <= 0.9);
        }
    for (uint32_t i = 0; i < study.kind_count; i++) {
        const struct tally *kind = &study.kinds[i];
        if (kind->curves < 10)
            continue; /* too few to tell */
        double held = (double)kind->within / kind->questions;
        assert_true(kind->means[OURS] <= 1.1 * naive(kind));
        assert_true(held >= 0.6 && held <= 0.98);
    }
    free(study.errors[0]);
    free(study.errors[1]);
}

RUN_CASES(TEST(real_curves_are_foretold));
