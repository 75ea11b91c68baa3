/* gavel_jobs.h - jobs as Gavel's generator draws them, in rows for a programme. */
#pragma once

#include <stdint.h>

struct arena;
struct error;
struct throughput;

struct gavel_jobs {
    uint32_t count;
    double *gang, *weight; /* [job]                                          */
    double *steps;         /* [job]                                          */
    double *rate;          /* [job][type of the cluster]                     */
    uint32_t *kind;        /* [job] row of the table                         */
    uint32_t *group;       /* [job] all 0: the caller sets it                */
};

/* The first 'count' jobs of a seed; 'settings' as ",multi=true".  They live in 'arena'. */
int gavel_jobs_draw(struct gavel_jobs *jobs, const struct throughput *rates,
                    const char *settings, uint64_t seed, uint32_t count,
                    struct arena *arena, struct error *err);
