/*
 * study_gavel_shares.c - shares without a simulation: groups, as their jobs arrive, and
 * the time of a solution.
 */
#include <math.h>
#include <stdio.h>

#include "base/clock.h"
#include "solve/solve.h"
#include "study/study_gavel.h"
#include "study/gavel_jobs.h"

#define DEMO_GROUPS 3
#define DEMO_JOBS 18 /* six per group */
#define DEMO_GPUS 3  /* of each type  */
#define DEMO_DRAWS 10

/* --- groups -------------------------------------------------------------------------- */

/* Normalised rates of the groups with the first 'count' jobs. */
static int demo_levels(const struct gavel_jobs *jobs, uint32_t types, uint32_t count,
                       struct arena *arena, double *ret_levels, struct error *err)
{
    static const struct programme_group groups[DEMO_GROUPS] = { { 1, false },
                                                                { 2, false },
                                                                { 3, false } };
    double capacity[TYPES_MAX];
    for (uint32_t t = 0; t < types; t++)
        capacity[t] = DEMO_GPUS;
    struct programme programme = { .goal = GOAL_HIERARCHICAL,
                                   .job_count = count,
                                   .type_count = types,
                                   .capacity = capacity,
                                   .gang = jobs->gang,
                                   .rate = jobs->rate,
                                   .weight = jobs->weight,
                                   .group = jobs->group,
                                   .groups = groups,
                                   .group_count = DEMO_GROUPS };
    struct shares shares;
    int r = programme_solve(&programme, SOLVE_FAST, NULL, arena, &shares, err);
    for (uint32_t g = 0; g < DEMO_GROUPS; g++)
        ret_levels[g] = 0;
    for (uint32_t j = 0; r == 0 && j < count; j++)
        ret_levels[jobs->group[j]] += shares.level[j];
    return r;
}

/*
 * Nine GPUs, three groups of weight 1, 2, 3, one more job at every step, group by group.
 * A policy that does not know the types reaches a rate of nine GPUs in the end.
 */
static int report_groups(struct gavel_study *study, struct error *err)
{
    double gain[DEMO_DRAWS];
    double levels[DEMO_GROUPS][DEMO_JOBS * DEMO_DRAWS];
    double at[DEMO_JOBS];
    for (uint32_t seed = 0; seed < DEMO_DRAWS; seed++) {
        struct arena scratch;
        struct gavel_jobs jobs;
        arena_init(&scratch, 0);
        int r = gavel_jobs_draw(&jobs, &study->big_rates, "", seed, DEMO_JOBS, &scratch,
                                err);
        for (uint32_t j = 0; j < DEMO_JOBS; j++) {
            jobs.group[j] = j / (DEMO_JOBS / DEMO_GROUPS);
            jobs.weight[j] = 1 + j % 2;
        }
        for (uint32_t n = 1; r == 0 && n <= DEMO_JOBS; n++) {
            double now[DEMO_GROUPS];
            r = demo_levels(&jobs, study->big.type_count, n, &scratch, now, err);
            at[n - 1] = 4.0 * (n - 1);
            for (uint32_t g = 0; g < DEMO_GROUPS; g++)
                levels[g][(n - 1) * DEMO_DRAWS + seed] = now[g];
            gain[seed] = (now[0] + now[1] + now[2]) / (3 * DEMO_GPUS) - 1;
        }
        arena_release(&scratch);
        if (r < 0)
            return r;
    }
    struct finding *row = reproduction_row(
        study->r, "hierarchical_gain",
        "three groups on 9 GPUs: all normalised rates, against a policy that does not "
        "know the types",
        "change", 0.16, 0.05, gain, DEMO_DRAWS);
    row->direction = DIRECTION_HIGHER;
    row->fidelity = FIDELITY_PAPER;
    struct json *chart = reproduction_chart(
        study->r, "lines", "Three groups of weight 1, 2, 3, a job more every 4 steps",
        "step", "normalised rate of the group");
    for (uint32_t g = 0; g < DEMO_GROUPS; g++) {
        char name[32];
        snprintf(name, sizeof name, "weight %u", g + 1);
        reproduction_chart_series(chart, name, at, levels[g], DEMO_JOBS, DEMO_DRAWS);
    }
    return 0;
}

/* --- time of a solution ------------------------------------------------------- */

/* Published, in seconds: LAS and hierarchical, 32 to 2048 jobs, jobs/4 GPUs per type. */
static const double solver_jobs[] = { 32, 64, 128, 256, 512, 1024, 2048 };
static const double solver_published[2][7] = {
    { 0.0084, 0.010, 0.013, 0.018, 0.032, 0.046, 0.083 },
    { 0.080, 0.138, 0.576, 0.854, 5.41, 27.1, 97.3 },
};

static int time_solver(const struct gavel_study *study, bool groups, uint32_t count,
                       uint64_t seed, double *ret_s, struct error *err)
{
    struct arena scratch;
    struct gavel_jobs jobs;
    arena_init(&scratch, 0);
    int r = gavel_jobs_draw(&jobs, &study->big_rates, ",multi=true", seed, count,
                            &scratch, err);
    double capacity[TYPES_MAX];
    struct programme_group five[5];
    for (uint32_t t = 0; t < study->big.type_count; t++)
        capacity[t] = count / 4.0;
    for (uint32_t j = 0; r == 0 && j < count; j++)
        jobs.group[j] = j % 5;
    for (uint32_t g = 0; g < 5; g++)
        five[g] = (struct programme_group){ 1 + g, false };
    struct programme programme = { .goal = groups ? GOAL_HIERARCHICAL : GOAL_MAX_MIN,
                                   .job_count = count,
                                   .type_count = study->big.type_count,
                                   .capacity = capacity,
                                   .gang = jobs.gang,
                                   .rate = jobs.rate,
                                   .weight = jobs.weight,
                                   .group = jobs.group,
                                   .groups = five,
                                   .group_count = 5 };
    *ret_s = INFINITY;
    for (int again = 0; r == 0 && again < 3; again++) {
        struct arena own;
        struct shares shares;
        arena_init(&own, 0);
        double from_s = clock_read_s(CLOCK_THREAD_CPUTIME_ID);
        r = programme_solve(&programme, SOLVE_FAST, NULL, &own, &shares, err);
        *ret_s = fmin(*ret_s, clock_read_s(CLOCK_THREAD_CPUTIME_ID) - from_s);
        arena_release(&own);
    }
    arena_release(&scratch);
    return r;
}

static int report_solver(struct gavel_study *study, struct error *err)
{
    struct json *chart = reproduction_chart(
        study->r, "lines", "Time of one solution, jobs/4 GPUs of each type", "jobs",
        "s");
    for (uint32_t groups = 0; groups < 2; groups++) {
        const char *name = groups ? "hierarchical" : "LAS";
        double values[7 * SEEDS_MAX];
        for (uint32_t i = 0; i < 7; i++) {
            double *here = &values[i * study->seeds];
            for (uint32_t s = 0; s < study->seeds; s++) {
                int r = time_solver(study, groups, (uint32_t)solver_jobs[i], s,
                                    &here[s], err);
                if (r < 0)
                    return r;
            }
            char id[64];
            char what[128];
            snprintf(id, sizeof id, "solver_%s@%g", groups ? "hierarchical" : "las",
                     solver_jobs[i]);
            snprintf(what, sizeof what, "one solution for %g jobs, %s", solver_jobs[i],
                     name);
            struct finding *row = gavel_study_row(study, id, what, "s",
                                                  solver_published[groups][i], 0, here);
            row->direction = DIRECTION_LOWER;
            row->running_time = true;
            row->fidelity = FIDELITY_PAPER;
        }
        char published[64];
        snprintf(published, sizeof published, "%s, published", name);
        reproduction_chart_series(chart, name, solver_jobs, values, 7, study->seeds);
        reproduction_chart_series(chart, published, solver_jobs,
                                  solver_published[groups], 7, 1);
    }
    return 0;
}

static int report_shares(struct gavel_study *study, struct error *err)
{
    int r = report_groups(study, err);
    return r < 0 ? r : report_solver(study, err);
}

const struct gavel_part gavel_part_shares = { .report = report_shares };
