/*
 * study_gavel_cost.c - cost and deadlines: half of the jobs gain much from an expensive GPU,
 * half of them little.
 *
 * The paper gives kinds, durations and deadlines of the 500 jobs, but not their arrivals:
 * here these are random, and slow enough that all deadlines can be kept.
 */
#include <math.h>
#include <stdio.h>

#include "base/rng.h"
#include "study/study_gavel.h"

#define JOBS 500
#define QUICK_JOBS 150
#define JOBS_PER_HOUR 0.4

enum { THROUGHPUT, COST, COST_SLO, POLICY_COUNT };

static const struct {
    const char *id, *name, *policy;
    double miss_published;
} policies[POLICY_COUNT] = {
    { "cost_throughput", "maximum throughput", "gavel-throughput", NAN },
    { "cost_min", "minimum cost", "gavel-cost,form=released", 0.35 },
    { "cost_slo", "minimum cost, deadlines kept", "gavel-cost-slo,form=released", 0 },
};

static const char *const kinds[] = { "ResNet-50 (batch size 64)", "A3C" };
static const double days[] = { 0.5, 1, 2, 4, 8 };
static const double factors[] = { 1.2, 2, 10 };

static void draw_jobs(const struct gavel_study *study, uint64_t seed,
                      struct job_spec *jobs, uint32_t count)
{
    struct rng rng;
    rng_init(&rng, seed, "gavel-cost");
    double at_s = 0;
    for (uint32_t j = 0; j < count; j++) {
        const char *kind = kinds[rng_below(&rng, 2)];
        double duration_s = days[rng_below(&rng, 5)] * 86400;
        double factor = factors[rng_below(&rng, 3)];
        uint32_t row = throughput_find(&study->big_rates, kind);
        double rate = study->big_rates.rows[row].rate[0][0][0]; /* V100, alone */
        jobs[j] = (struct job_spec){ .kind = kind,
                                     .gpus = 1,
                                     .steps = duration_s * rate,
                                     .submit_ns = (int64_t)llround(at_s * 1e9),
                                     .deadline_ns = (int64_t)llround(
                                         (at_s + factor * duration_s) * 1e9) };
        at_s += rng_exponential(&rng, 3600 / JOBS_PER_HOUR);
    }
}

static void plan_cost(struct gavel_study *study)
{
    uint32_t count = study->quick ? QUICK_JOBS : JOBS;
    struct job_spec *jobs =
        arena_array(&study->arena, struct job_spec, study->seeds * count);
    for (uint32_t s = 0; s < study->seeds; s++)
        draw_jobs(study, s, &jobs[s * count], count);
    study->cost_first = study->point_count;
    for (uint32_t p = 0; p < POLICY_COUNT; p++) {
        struct gavel_point *point = gavel_study_add_point(study);
        snprintf(point->policy, sizeof point->policy, "%s", policies[p].policy);
        point->jobs = jobs;
        point->job_count = count;
    }
}

static int report_cost(struct gavel_study *study, struct error *err)
{
    double dollars[POLICY_COUNT][SEEDS_MAX];
    double values[SEEDS_MAX];
    char id[64];
    char what[160];
    for (uint32_t p = 0; p < POLICY_COUNT; p++) {
        uint32_t point = study->cost_first + p;
        gavel_study_figures(study, point, "cost_usd", 1, dollars[p]);
        snprintf(what, sizeof what, "%s: cost of all jobs", policies[p].name);
        gavel_study_row(study, policies[p].id, what, "USD", NAN, 0, dollars[p])
            ->fidelity = FIDELITY_RECONSTRUCTED;
        for (uint32_t s = 0; s < study->seeds; s++)
            values[s] = gavel_study_figure(study, point, s, "slo_violations") /
                        gavel_study_figure(study, point, s, "jobs.total");
        if (p == COST)
            snprintf(id, sizeof id, "slo_miss_share");
        else
            snprintf(id, sizeof id, "slo_miss_share_%s", policies[p].id);
        snprintf(what, sizeof what, "%s: share of deadlines missed", policies[p].name);
        struct finding *row = gavel_study_row(study, id, what, "share",
                                              policies[p].miss_published, 0.1, values);
        row->direction = DIRECTION_LOWER;
        row->fidelity = FIDELITY_RECONSTRUCTED;
        row->setting = policies[p].policy;
    }
    for (uint32_t s = 0; s < study->seeds; s++)
        values[s] = dollars[THROUGHPUT][s] / dollars[COST][s];
    struct finding *row = gavel_study_row(study, "cost_ratio",
                                          "cost, maximum throughput over minimum cost",
                                          "ratio", 1.4, 0.2, values);
    row->fidelity = FIDELITY_RECONSTRUCTED;
    row->price = "slo_miss_share";
    for (uint32_t s = 0; s < study->seeds; s++)
        values[s] = dollars[THROUGHPUT][s] / dollars[COST_SLO][s];
    row = gavel_study_row(
        study, "cost_ratio_slo",
        "cost, maximum throughput over minimum cost with deadlines kept", "ratio", 1.2,
        0.15, values);
    row->fidelity = FIDELITY_RECONSTRUCTED;
    row->price = "slo_miss_share_cost_slo";
    return 0;
}

const struct gavel_part gavel_part_cost = { .plan = plan_cost, .report = report_cost };
