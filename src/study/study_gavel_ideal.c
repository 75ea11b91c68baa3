/*
 * study_gavel_ideal.c - the cost of rounds: exact shares, as if time were a fluid.
 *
 * Between two events every job runs at its effective rate; GPU time that the shares leave
 * idle stays idle.  The paper measures its rounds against this ideal.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/memory.h"
#include "model/admission.h"
#include "solve/solve.h"
#include "study/study_gavel.h"
#include "workload/workload.h"

#define WINDOW_FROM 4000
#define WINDOW_TO 5000

struct gavel_fluid {
    const struct cluster *cluster;
    const struct throughput *rates;
    uint32_t count, max; /* active jobs, in order of arrival */
    uint64_t *number;
    double *submit_s, *steps;
    double *gang, *weight, *rate; /* as the programme needs them */
    double *speed;                /* effective rate              */
    struct solver *solver;
    struct arena scratch;
};

static void add_job(struct gavel_fluid *fluid, const struct job *job, uint64_t number,
                    double submit_s)
{
    uint32_t types = fluid->cluster->type_count;
    if (fluid->count == fluid->max) {
        fluid->max = grow_room(fluid->max, fluid->count + 1);
        fluid->number = memory_resize(fluid->number, fluid->max, sizeof *fluid->number);
        fluid->submit_s =
            memory_resize(fluid->submit_s, fluid->max, sizeof *fluid->submit_s);
        fluid->steps = memory_resize(fluid->steps, fluid->max, sizeof *fluid->steps);
        fluid->gang = memory_resize(fluid->gang, fluid->max, sizeof *fluid->gang);
        fluid->weight = memory_resize(fluid->weight, fluid->max, sizeof *fluid->weight);
        fluid->speed = memory_resize(fluid->speed, fluid->max, sizeof *fluid->speed);
        fluid->rate =
            memory_resize(fluid->rate, (size_t)fluid->max * types, sizeof(double));
    }
    uint32_t at = fluid->count++;
    fluid->number[at] = number;
    fluid->submit_s[at] = submit_s;
    fluid->steps[at] = job->steps_total;
    fluid->gang[at] = job->gpus;
    fluid->weight[at] = job->weight > 0 ? job->weight : 1;
    for (uint32_t t = 0; t < types; t++)
        fluid->rate[at * types + t] =
            throughput_rate(fluid->rates, job, t, job->gpus, false);
}

static void remove_job(struct gavel_fluid *fluid, uint32_t at)
{
    uint32_t types = fluid->cluster->type_count;
    uint32_t after = --fluid->count - at;
    memmove(&fluid->number[at], &fluid->number[at + 1], after * sizeof(uint64_t));
    memmove(&fluid->submit_s[at], &fluid->submit_s[at + 1], after * sizeof(double));
    memmove(&fluid->steps[at], &fluid->steps[at + 1], after * sizeof(double));
    memmove(&fluid->gang[at], &fluid->gang[at + 1], after * sizeof(double));
    memmove(&fluid->weight[at], &fluid->weight[at + 1], after * sizeof(double));
    memmove(&fluid->rate[(size_t)at * types], &fluid->rate[((size_t)at + 1) * types],
            (size_t)after * types * sizeof(double));
}

/* Solve for new shares, which give new speeds. */
static int solve_shares(struct gavel_fluid *fluid, struct error *err)
{
    uint32_t types = fluid->cluster->type_count;
    double capacity[TYPES_MAX];
    for (uint32_t t = 0; t < types; t++)
        capacity[t] = fluid->cluster->types[t].gpu_count;
    struct programme programme = { .goal = GOAL_MAX_MIN,
                                   .job_count = fluid->count,
                                   .type_count = types,
                                   .capacity = capacity,
                                   .gang = fluid->gang,
                                   .weight = fluid->weight,
                                   .rate = fluid->rate,
                                   .tidy = true };
    struct shares shares;
    arena_reset(&fluid->scratch);
    int r = programme_solve(&programme, SOLVE_FAST, fluid->solver, &fluid->scratch,
                            &shares, err);
    for (uint32_t j = 0; r == 0 && j < fluid->count; j++) {
        fluid->speed[j] = 0;
        for (uint32_t t = 0; t < types; t++)
            fluid->speed[j] +=
                fluid->rate[j * types + t] * shares.x[(size_t)j * types + t];
    }
    return r;
}

/* Advance time and remove completed jobs; adds up those of the window. */
static void advance_time(struct gavel_fluid *fluid, double now_s, double seconds,
                         double *sum_s, uint32_t *done)
{
    for (uint32_t j = 0; j < fluid->count; j++)
        fluid->steps[j] -= fluid->speed[j] * seconds;
    for (uint32_t j = 0; j < fluid->count;) {
        if (fluid->steps[j] > 1e-6 * fluid->speed[j]) {
            j++;
            continue;
        }
        if (fluid->number[j] >= WINDOW_FROM && fluid->number[j] < WINDOW_TO) {
            *sum_s += now_s + seconds - fluid->submit_s[j];
            (*done)++;
        }
        remove_job(fluid, j);
    }
}

static double time_to_completion_s(const struct gavel_fluid *fluid)
{
    double least_s = INFINITY;
    for (uint32_t j = 0; j < fluid->count; j++)
        if (fluid->speed[j] > 0)
            least_s = fmin(least_s, fluid->steps[j] / fluid->speed[j]);
    return least_s;
}

/* Mean completion time, in hours, of the window under exact shares. */
static int run_fluid(const struct gavel_study *study, const char *text, uint64_t seed,
                     double *ret_hours, struct error *err)
{
    struct workload *workload;
    int r = workload_open(&workload, text, NULL, seed, study->big.gpu_count, err);
    if (r < 0)
        return r;
    struct gavel_fluid fluid = { .cluster = &study->big, .rates = &study->big_rates };
    struct admission admission;
    admission_init(&admission, &study->big, &study->big_rates);
    arena_init(&fluid.scratch, 0);
    fluid.solver = solver_new();
    struct job_spec spec;
    struct job job;
    uint64_t number = 0;
    uint32_t done = 0;
    double sum_s = 0;
    double now_s = 0;
    bool more = workload_next(workload, &spec, err) == 1;
    while (r == 0 && done < WINDOW_TO - WINDOW_FROM && (more || fluid.count > 0)) {
        double next_s = more ? (double)spec.submit_ns * 1e-9 : INFINITY;
        double step_s = fmin(next_s - now_s, time_to_completion_s(&fluid));
        if (!isfinite(step_s))
            break;
        advance_time(&fluid, now_s, step_s, &sum_s, &done);
        now_s += step_s;
        while (more && (double)spec.submit_ns * 1e-9 <= now_s) {
            r = admission_make_job(&admission, &spec, &job, err);
            if (r == 0)
                add_job(&fluid, &job, number, (double)spec.submit_ns * 1e-9);
            number++;
            more = workload_next(workload, &spec, err) == 1;
        }
        if (r == 0)
            r = solve_shares(&fluid, err);
    }
    *ret_hours = done ? sum_s / done / 3600 : NAN;
    solver_free(fluid.solver);
    arena_release(&fluid.scratch);
    admission_release(&admission);
    workload_close(workload);
    free(fluid.number);
    free(fluid.submit_s);
    free(fluid.steps);
    free(fluid.gang);
    free(fluid.weight);
    free(fluid.speed);
    free(fluid.rate);
    return r;
}

static int report_ideal(struct gavel_study *study, struct error *err)
{
    static const struct {
        const char *id;
        bool multi;
        double rate, published;
    } points[] = {
        { "ideal_single@5.6", false, 5.6, 27.93 },
        { "ideal_multiple@2.6", true, 2.6, 34.95 },
        { "ideal_multiple@2.8", true, 2.8, 39.98 },
    };
    for (uint32_t p = 0; p < (study->quick ? 1 : 3); p++) {
        double values[SEEDS_MAX];
        char text[96];
        snprintf(text, sizeof text, "gavel:lam=%.17g%s,jobs=20000",
                 3600 / points[p].rate, points[p].multi ? ",multi=true" : "");
        for (uint32_t s = 0; s < study->seeds; s++) {
            int r = run_fluid(study, text, s, &values[s], err);
            if (r < 0)
                return r;
        }
        char what[128];
        snprintf(what, sizeof what,
                 "Gavel LAS handed out exactly, %g jobs/h: mean completion time, h",
                 points[p].rate);
        gavel_study_row(study, points[p].id, what, "h", points[p].published,
                        0.1 * points[p].published, values)
            ->fidelity = FIDELITY_PAPER;
    }
    return 0;
}

const struct gavel_part gavel_part_ideal = { .report = report_ideal };
