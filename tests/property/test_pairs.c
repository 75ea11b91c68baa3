/*
 * Space sharing by columns that pay against the whole programme, written out job by job:
 * classes are taken apart into their members, and class pairs into all pairs of members.
 */
#include "support/cases.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/error.h"
#include "base/rng.h"
#include "solve/lp/lp.h"
#include "solve/solve.h"
#include "support/pair_shares.h"

#ifndef SEEDS
#define SEEDS 300
#endif

#define CLASSES 24
#define TYPES 5
#define PAIRS (CLASSES * (CLASSES + 1) / 2)
#define JOBS 40
#define LINES (JOBS + JOBS * JOBS / 2)

struct scene {
    uint32_t n, k, pair_count;
    double capacity[TYPES], count[CLASSES], gang[CLASSES], need[CLASSES],
        ahead[CLASSES];
    double rate[CLASSES * TYPES], pair_rate[PAIRS * TYPES * 2];
    double value[(CLASSES + PAIRS) * TYPES], x[(CLASSES + PAIRS) * TYPES];
    struct programme_pair pairs[PAIRS];
    struct pairs_input pairing;
    struct pairs_answer answer;

    /* taken apart */
    uint32_t job_count, line_count;
    uint32_t class_of[JOBS];
    uint32_t line_class[LINES]; /* the class line that it is one of       */
    uint32_t line_jobs[LINES][2];
    double line_rate[LINES][TYPES][2];
};

static struct rng rng;
static struct pairs_solver *kept; /* solves all scenes, one after the other */

static double between(double low, double high)
{
    return low + (high - low) * rng_unit(&rng);
}

static bool chance(double p)
{
    return rng_unit(&rng) < p;
}

/* ---- scenes ---- */

static void add_pairs(struct scene *s, double share)
{
    s->pair_count = 0;
    double zeros = between(0, 0.7);
    for (uint32_t a = 0; a < s->n; a++)
        for (uint32_t b = a; b < s->n; b++) {
            if (s->gang[a] != s->gang[b] || !chance(share) ||
                (a == b && s->count[a] < 2 && chance(0.5)))
                continue;
            uint32_t i = s->pair_count++;
            s->pairs[i] = (struct programme_pair){ a, b };
            for (uint32_t t = 0; t < s->k; t++) {
                double *rates = &s->pair_rate[(i * s->k + t) * 2];
                rates[0] =
                    chance(zeros / 2) ? 0 : s->rate[a * s->k + t] * between(0.3, 1);
                rates[1] =
                    chance(zeros / 2) ? 0 : s->rate[b * s->k + t] * between(0.3, 1);
                if (chance(0.02))
                    rates[0] = rates[1] = 1; /* may run in pairs only */
                if (a == b)
                    rates[1] = rates[0];
            }
        }
}

static void take_line_apart(struct scene *s, uint32_t line, uint32_t a, uint32_t b)
{
    uint32_t i = s->line_count++;
    s->line_class[i] = line;
    s->line_jobs[i][0] = a;
    s->line_jobs[i][1] = b;
    for (uint32_t t = 0; t < s->k; t++)
        for (uint32_t place = 0; place < 2; place++)
            s->line_rate[i][t][place] =
                line < s->n ? s->rate[line * s->k + t]
                            : s->pair_rate[((line - s->n) * s->k + t) * 2 + place];
}

static void take_apart(struct scene *s)
{
    s->job_count = s->line_count = 0;
    for (uint32_t c = 0; c < s->n; c++)
        for (uint32_t i = 0; i < (uint32_t)s->count[c]; i++)
            s->class_of[s->job_count++] = c;
    for (uint32_t j = 0; j < s->job_count; j++)
        take_line_apart(s, s->class_of[j], j, j);
    for (uint32_t i = 0; i < s->pair_count; i++)
        for (uint32_t a = 0; a < s->job_count; a++)
            for (uint32_t b = 0; b < s->job_count; b++)
                if (s->class_of[a] == s->pairs[i].first &&
                    s->class_of[b] == s->pairs[i].second &&
                    (s->pairs[i].first != s->pairs[i].second || a < b))
                    take_line_apart(s, s->n + i, a, b);
}

static void make_scene(struct scene *s, uint32_t class_max, uint32_t job_max)
{
    s->n = 1 + rng_below(&rng, class_max);
    s->k = 1 + rng_below(&rng, TYPES);
    bool single = chance(0.5);
    double zeros = chance(0.5) ? 0 : between(0, 0.5);
    double load = exp(between(log(0.5), log(8)));
    double gangs = 0;
    uint32_t jobs = s->n;
    for (uint32_t c = 0; c < s->n; c++) {
        uint32_t more = single || jobs >= job_max ? 0 : rng_below(&rng, 4);
        more = more < job_max - jobs ? more : job_max - jobs;
        jobs += more;
        s->count[c] = 1 + more;
        s->gang[c] = (double)(1u << rng_below(&rng, 3));
        s->need[c] = between(0.5, 2);
        s->ahead[c] = chance(0.3) ? 0 : between(0, 0.5);
        gangs += s->gang[c] * s->count[c];
        for (uint32_t t = 0; t < s->k; t++)
            s->rate[c * s->k + t] = chance(zeros) ? 0 : between(0.2, 2) * (1 + t);
    }
    for (uint32_t t = 0; t < s->k; t++)
        s->capacity[t] = chance(0.1) ? 0 : ceil(gangs / load / s->k * between(0.3, 2));
    add_pairs(s, chance(0.1) ? 0 : rng_unit(&rng));
    for (uint32_t i = 0; i < (s->n + s->pair_count) * s->k; i++)
        s->value[i] = between(0, 3);
    s->pairing = (struct pairs_input){ .class_count = s->n,
                                       .type_count = s->k,
                                       .pair_count = s->pair_count,
                                       .capacity = s->capacity,
                                       .count = single ? NULL : s->count,
                                       .gang = s->gang,
                                       .rate = s->rate,
                                       .pairs = s->pairs,
                                       .pair_rate = s->pair_rate };
    take_apart(s);
}

/* ---- the reference, by CLP ---- */

static bool runs(const struct scene *s, uint32_t line, uint32_t t)
{
    return s->capacity[t] > 0 && s->line_rate[line][t][0] > 0 &&
           s->line_rate[line][t][1] > 0;
}

/* Rows: capacities, time of each job, rate of each job. */
static struct lp *write_out(const struct scene *s, const double *value)
{
    struct lp *lp = lp_new();
    for (uint32_t t = 0; t < s->k; t++)
        lp_add_row(lp, -LP_INFINITY, s->capacity[t]);
    for (uint32_t j = 0; j < s->job_count; j++)
        lp_add_row(lp, -LP_INFINITY, 1);
    for (uint32_t j = 0; j < s->job_count; j++)
        lp_add_row(lp, 0, LP_INFINITY);
    for (uint32_t line = 0; line < s->line_count; line++)
        for (uint32_t t = 0; t < s->k; t++) {
            uint32_t a = s->line_jobs[line][0], b = s->line_jobs[line][1];
            uint32_t rows[5] = { t, s->k + a, s->k + s->job_count + a, s->k + b,
                                 s->k + s->job_count + b };
            double coefficients[5] = { s->gang[s->class_of[a]], 1,
                                       s->line_rate[line][t][0], 1,
                                       s->line_rate[line][t][1] };
            if (runs(s, line, t))
                lp_add_column(lp, value ? value[s->line_class[line] * s->k + t] : 0, 0,
                              LP_INFINITY, a == b ? 3 : 5, rows, coefficients);
        }
    return lp;
}

static void set_floor(struct lp *lp, const struct scene *s, uint32_t job, double floor)
{
    lp_set_row(lp, s->k + s->job_count + job, floor, LP_INFINITY);
}

/* The largest z so that every job gets due[class] z. */
static double reference_level(const struct scene *s, const double *due)
{
    uint32_t rows[JOBS];
    double coefficients[JOBS];
    struct lp *lp = write_out(s, NULL);
    for (uint32_t j = 0; j < s->job_count; j++) {
        rows[j] = s->k + s->job_count + j;
        coefficients[j] = -due[s->class_of[j]];
    }
    lp_add_column(lp, 1, 0, LP_INFINITY, s->job_count, rows, coefficients);
    assert_int_equal(lp_maximise(lp, LP_DUAL), LP_OPTIMAL);
    double level = lp_objective(lp);
    lp_free(lp);
    return level;
}

static bool reference_sum(const struct scene *s, const double *floor, double *ret_sum)
{
    struct lp *lp = write_out(s, s->value);
    for (uint32_t j = 0; floor && j < s->job_count; j++)
        set_floor(lp, s, j, floor[s->class_of[j]]);
    enum lp_status status = lp_maximise(lp, LP_DUAL);
    *ret_sum = lp_objective(lp);
    lp_free(lp);
    return status == LP_OPTIMAL;
}

/* ---- feasibility ---- */

static void assert_fits(struct scene *s, double *ret_rates)
{
    double usage[TYPES] = { 0 }, time[CLASSES] = { 0 };
    const struct pairs_input *in = &s->pairing;
    memset(ret_rates, 0, s->n * sizeof *ret_rates);
    for (uint32_t c = 0; c < s->n; c++)
        for (uint32_t t = 0; t < s->k; t++) {
            double x = s->x[c * s->k + t];
            assert_true(x >= 0);
            assert_true(x == 0 || s->rate[c * s->k + t] > 0);
            time[c] += x;
            usage[t] += x * s->count[c] * s->gang[c];
            ret_rates[c] += x * s->rate[c * s->k + t];
        }
    for (uint32_t i = 0; i < s->pair_count; i++)
        for (uint32_t t = 0; t < s->k; t++) {
            double x = s->x[(s->n + i) * s->k + t];
            const double *rates = &s->pair_rate[(i * s->k + t) * 2];
            uint32_t a = s->pairs[i].first, b = s->pairs[i].second;
            assert_true(x >= 0);
            assert_true(x == 0 || (rates[0] > 0 && rates[1] > 0));
            assert_true(x == 0 || a != b || s->count[a] >= 2);
            usage[t] += x * s->gang[a];
            double of_a = pairs_member_share(in, i, 0, x);
            double of_b = pairs_member_share(in, i, 1, x);
            time[a] += of_a;
            ret_rates[a] += of_a * rates[0];
            if (a == b)
                continue;
            time[b] += of_b;
            ret_rates[b] += of_b * rates[1];
            assert_near(pairs_couple_share(in, i, x) * s->count[b], of_a, 1e-12);
        }
    for (uint32_t t = 0; t < s->k; t++)
        assert_true(usage[t] <= s->capacity[t] * (1 + 1e-9));
    for (uint32_t c = 0; c < s->n; c++)
        assert_true(time[c] <= 1 + 1e-9);
}

/* ---- what holds ---- */

static struct pairs_solver *solver(void)
{
    if (chance(0.3)) {
        pairs_solver_free(kept);
        kept = pairs_solver_new();
    }
    return kept;
}

static void assert_solved(int r, const struct error *err)
{
    if (r < 0)
        print_error("%s\n", err->text);
    assert_int_equal(r, 0);
}

static void levels_are_largest(void **state)
{
    static struct scene s;
    FOR_EACH_SEED(seed, SEEDS)
    {
        struct error err;
        double rates[CLASSES];
        rng_init(&rng, seed.now, "levels");
        make_scene(&s, seed.now % 10 == 0 ? CLASSES : 8, JOBS);
        for (uint32_t i = 0; i < 3; i++) {
            assert_solved(pairs_level(solver(), &s.pairing, s.need, NULL, 1e-7, s.x,
                                      &s.answer, &err),
                          &err);
            double solved_by_clp = reference_level(&s, s.need);
            assert_near(s.answer.reached, solved_by_clp, 1e-6 * solved_by_clp + 1e-9);
            assert_true(s.answer.bound >= solved_by_clp * (1 - 1e-8) - 1e-9);
            assert_fits(&s, rates);
            for (uint32_t c = 0; c < s.n; c++)
                assert_true(rates[c] >= s.need[c] * s.answer.reached * (1 - 1e-9));
            /* nearly the same once more */
            s.need[rng_below(&rng, s.n)] *= between(0.5, 2);
            s.capacity[rng_below(&rng, s.k)] += 1;
            uint32_t c = rng_below(&rng, s.n);
            if (s.pairing.count && s.count[c] > 1)
                s.count[c]--;
            take_apart(&s);
        }
    }
}

/* Finish times: what a level asks for is not linear in it. */
static void finish_times_are_least(void **state)
{
    static struct scene s;
    FOR_EACH_SEED(seed, SEEDS)
    {
        struct error err;
        double rates[CLASSES], due[CLASSES];
        rng_init(&rng, seed.now, "finish");
        make_scene(&s, seed.now % 10 == 0 ? CLASSES : 8, JOBS);
        assert_solved(pairs_level(solver(), &s.pairing, s.need, s.ahead, 1e-7, s.x,
                                  &s.answer, &err),
                      &err);
        assert_fits(&s, rates);
        double z = s.answer.reached;
        for (uint32_t c = 0; c < s.n; c++)
            assert_true(rates[c] / (s.need[c] + s.ahead[c] * rates[c]) >=
                        z * (1 - 1e-9));
        z = z * (1 + 1e-6) + 1e-9;
        for (uint32_t c = 0; c < s.n; c++)
            due[c] = s.need[c] * z / (1 - s.ahead[c] * z);
        bool possible = reference_level(&s, due) >= 1 + 1e-9;
        for (uint32_t c = 0; c < s.n; c++)
            possible &= s.ahead[c] * z < 1;
        assert_false(possible);
    }
}

static void sums_are_largest_or_cannot_be(void **state)
{
    static struct scene s;
    FOR_EACH_SEED(seed, SEEDS)
    {
        struct error err;
        double rates[CLASSES], floor[CLASSES], solved_by_clp;
        rng_init(&rng, seed.now, "pair sums");
        make_scene(&s, seed.now % 10 == 0 ? CLASSES : 8, JOBS);
        double height = reference_level(&s, s.need) * between(0.3, 1.2);
        double share = chance(0.3) ? 0 : rng_unit(&rng);
        bool edge = chance(0.2);
        for (uint32_t c = 0; c < s.n; c++)
            floor[c] = chance(share) && height > 1e-9 ? s.need[c] * height : 0;
        if (edge) { /* as they come from a solved level */
            pairs_level(solver(), &s.pairing, s.need, NULL, 1e-7, s.x, &s.answer, &err);
            for (uint32_t c = 0; c < s.n; c++)
                floor[c] = s.need[c] * s.answer.reached;
        }
        assert_solved(pairs_sum(solver(), &s.pairing, s.value, share > 0 ? floor : NULL,
                                1e-6, s.x, &s.answer, &err),
                      &err);
        bool feasible = reference_sum(&s, share > 0 ? floor : NULL, &solved_by_clp);
        if (!edge)
            assert_int_equal(feasible, s.answer.feasible);
        if (!feasible || !s.answer.feasible)
            continue;
        assert_near(s.answer.reached, solved_by_clp,
                    (edge ? 1e-5 : 1e-6) * solved_by_clp + 1e-9);
        assert_fits(&s, rates);
        for (uint32_t c = 0; share > 0 && c < s.n; c++)
            assert_true(rates[c] >= floor[c] * (1 - 3e-9));
    }
}

/*
 * One level after the other: a class that cannot have more, whatever the others do, is
 * done.
 */
static void reference_filling(const struct scene *s, double *ret_level)
{
    bool done[JOBS] = { false };
    double level[JOBS] = { 0 };
    for (uint32_t left = s->job_count; left > 0;) {
        uint32_t rows[JOBS], count = 0;
        double coefficients[JOBS];
        struct lp *lp = write_out(s, NULL);
        for (uint32_t j = 0; j < s->job_count; j++) {
            double need = s->need[s->class_of[j]];
            if (done[j])
                set_floor(lp, s, j, level[j] * need * (1 - 1e-10));
            rows[count] = s->k + s->job_count + j;
            coefficients[count] = -need;
            count += !done[j];
        }
        lp_add_column(lp, 1, 0, LP_INFINITY, count, rows, coefficients);
        assert_int_equal(lp_maximise(lp, LP_DUAL), LP_OPTIMAL);
        double z = lp_objective(lp);
        lp_free(lp);
        uint32_t before = left;
        for (uint32_t j = 0; j < s->job_count; j++) {
            if (done[j])
                continue;
            lp = write_out(s, NULL);
            for (uint32_t i = 0; i < s->job_count; i++)
                if (i != j)
                    set_floor(lp, s, i,
                              (done[i] ? level[i] : z) * s->need[s->class_of[i]] *
                                  (1 - 1e-10));
            double need = s->need[s->class_of[j]];
            rows[0] = s->k + s->job_count + j;
            coefficients[0] = -need;
            lp_add_column(lp, 1, 0, LP_INFINITY, 1, rows, coefficients);
            lp_maximise(lp, LP_DUAL);
            if (lp_objective(lp) <= z * (1 + 1e-6)) {
                level[j] = z;
                done[j] = true;
                left--;
            }
            lp_free(lp);
        }
        assert_true(left < before);
    }
    for (uint32_t j = 0; j < s->job_count; j++)
        ret_level[s->class_of[j]] = level[j];
}

static void fillings_are_lexicographic(void **state)
{
    static struct scene s;
    FOR_EACH_SEED(seed, SEEDS / 4)
    {
        struct error err;
        double rates[CLASSES], level[CLASSES], solved_by_clp[CLASSES];
        rng_init(&rng, seed.now, "fillings");
        make_scene(&s, 6, 10);
        if (reference_level(&s, s.need) < 1e-9)
            continue;
        assert_solved(pairs_water_fill(solver(), &s.pairing, s.need, 1e-6, s.x, level,
                                       &s.answer, &err),
                      &err);
        reference_filling(&s, solved_by_clp);
        assert_fits(&s, rates);
        for (uint32_t c = 0; c < s.n; c++) {
            assert_near(level[c], solved_by_clp[c], 2e-6 * solved_by_clp[c]);
            assert_true(rates[c] >= level[c] * s.need[c] * (1 - 1e-8));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(levels_are_largest),
        TEST(finish_times_are_least),
        TEST(sums_are_largest_or_cannot_be),
        TEST(fillings_are_lexicographic),
    };
    kept = pairs_solver_new();
    int failed = cmocka_run_group_tests_name("pairs", tests, NULL, NULL);
    pairs_solver_free(kept);
    return failed;
}
