/* gavel_jobs.c - jobs as Gavel's generator draws them, in rows for a programme. */
#include "study/gavel_jobs.h"

#include <stdio.h>

#include "base/arena.h"
#include "model/cluster.h"
#include "model/admission.h"
#include "model/throughput.h"
#include "workload/workload.h"

static void put_job(struct gavel_jobs *jobs, uint32_t at,
                    const struct throughput *rates, const struct job *job)
{
    uint32_t types = rates->cluster->type_count;
    jobs->gang[at] = job->gpus;
    jobs->weight[at] = job->weight > 0 ? job->weight : 1;
    jobs->steps[at] = job->steps_total;
    jobs->kind[at] = job->kind;
    for (uint32_t t = 0; t < types; t++)
        jobs->rate[(size_t)at * types + t] =
            throughput_rate(rates, job, t, job->gpus, false);
}

int gavel_jobs_draw(struct gavel_jobs *jobs, const struct throughput *rates,
                    const char *settings, uint64_t seed, uint32_t count,
                    struct arena *arena, struct error *err)
{
    const struct cluster *cluster = rates->cluster;
    *jobs = (struct gavel_jobs){
        .count = count,
        .gang = arena_array(arena, double, count),
        .weight = arena_array(arena, double, count),
        .steps = arena_array(arena, double, count),
        .rate = arena_array(arena, double, (size_t)count * cluster->type_count),
        .kind = arena_array(arena, uint32_t, count),
        .group = arena_array(arena, uint32_t, count),
    };
    char text[96];
    snprintf(text, sizeof text, "gavel:static=%u%s", count, settings);
    struct workload *workload;
    int r = workload_open(&workload, text, NULL, seed, cluster->gpu_count, err);
    if (r < 0)
        return r;
    struct admission admission;
    admission_init(&admission, cluster, rates);
    struct job_spec spec;
    struct job job;
    for (uint32_t j = 0; r == 0 && j < count; j++) {
        r = workload_next(workload, &spec, err);
        if (r == 1)
            r = admission_make_job(&admission, &spec, &job, err);
        if (r == 0)
            put_job(jobs, j, rates, &job);
    }
    admission_release(&admission);
    workload_close(workload);
    return r;
}
