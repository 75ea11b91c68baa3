/* bench_slurm.h - what the parts of 'berth bench slurm' share: a lab, and a berthd on it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lab/scratch.h"

struct bench;

#define SLURM_JOBS_MAX 20000
#define SLURM_WAIT_S 180.0

/* What slurmctld's log says of a job, in seconds of one clock; 0: nothing. */
struct slurm_moments {
    double started_s, ended_s, requeued_s;
};

struct slurm_bench {
    struct bench *bench;
    char lab[300];        /* the script                    */
    char dir[64];         /* of the lab; "": it is not up  */
    char config[96];      /* of berthd                     */
    char log[96];         /* slurmctld's                   */
    long log_at;          /* so much of it has been read   */
    const char *args[12]; /* of berthd                     */
    struct scratch scratch;
    bool open; /* the scratch folder is there */

    struct slurm_moments *jobs; /* by number */
    uint32_t job_last;          /* the largest */
    double requeued_s;          /* the last one */
    double ended_s;             /* the last one, not by being cancelled */
};

/* Run a program; what it says, up to its first blank line's end, goes to 'said'. */
int slurm_run(const char *const *words, char *said, size_t size, struct error *err);

/* A job by sbatch; 'flags' are ended by NULL. */
int slurm_submit(struct slurm_bench *self, const char *script, const char *const *flags,
                 uint32_t *ret_id, struct error *err);

/* The clock of the log. */
double slurm_clock_s(void);

/* Wait until all jobs from 'first' on, 'count' of them, have started, or ended. */
int slurm_wait_started(struct slurm_bench *self, uint32_t first, uint32_t count,
                       struct error *err);
int slurm_wait_ended(struct slurm_bench *self, uint32_t first, uint32_t count,
                     struct error *err);

/* Cancel everything, and wait until nothing is left. */
int slurm_clear(struct slurm_bench *self, struct error *err);

/* A berthd with this policy and these lines in its configuration; its end. */
int slurm_berthd(struct slurm_bench *self, const char *policy, bool bell,
                 const char *more, struct error *err);
void slurm_berthd_end(struct slurm_bench *self);

/* The other parts. */
int bench_slurm_through(struct slurm_bench *self, struct error *err);
int bench_slurm_waiting(struct slurm_bench *self, struct error *err);
int bench_slurm_types(struct slurm_bench *self, struct error *err);
