/* workload.h - the next job, in order of submission. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/job.h"

struct error;
struct workload;

/* What became of the rows that were read. */
struct workload_facts {
    const char *format; /* "philly", "synthetic", …                     */
    uint64_t job_count; /* yielded so far                               */
    uint64_t skipped;   /* rows that are no job we can run              */
    struct {
        const char *reason;
        uint64_t count;
    } reasons[8];
    uint32_t reason_count;
    uint64_t expected;   /* jobs there will be; 0: not known beforehand  */
    uint64_t enough;     /* an endless one: so many unless asked for all */
    const char *cluster; /* the cluster it is meant for, or NULL         */
    bool unsorted;       /* had to be read whole and sorted              */

    /* of the jobs yielded so far */
    uint32_t max_gpus;
    int64_t first_submit_ns; /* by the file's own clock: since 1970 where it  */
    int64_t last_submit_ns;  /* has dates, else since whatever it counts from */
    __int128 gpu_milli_ns;   /* thousandths of a GPU times run time           */
    bool gpu_time_known;     /* false if a job's run time is not in the file  */
    uint64_t columns;        /* worth writing: bits of enum csv_column            */
};

/* Sum of GPUs times run time. */
static inline double workload_gpu_hours(const struct workload_facts *facts)
{
    return (double)facts->gpu_milli_ns / (3600.0 * 1e12);
}

/*
 * 'text' is a file in any known format (plain, gz or zst) or a preset generator with
 * settings, "synthetic:jobs=1000,load=0.9".  'format' is NULL or "auto" to recognise
 * a file by its content.  'gpus' is the size of the cluster, for generators that fit
 * their load to it; 0 if there is none.
 */
int workload_open(struct workload **ret_workload, const char *text, const char *format,
                  uint64_t seed, uint32_t gpus, struct error *err);

/*
 * Read the next job.  Returns 1, 0 at the end, or a negative errno with a sentence that
 * names file, line and field.  Submission times never go back.
 */
int workload_next(struct workload *workload, struct job_spec *ret_spec,
                  struct error *err);

/* The same from memory, as if it were a file of that name; 'bytes' are borrowed. */
int workload_open_memory(struct workload **ret_workload, const char *name,
                         const void *bytes, size_t count, const char *format,
                         struct error *err);

/*
 * An endless generator ends after facts->enough jobs.  For a caller that stops by itself:
 * let it go on.  Nothing changes for a workload that has an end of its own.
 */
void workload_go_on(struct workload *workload);

const struct workload_facts *workload_facts(const struct workload *workload);
void workload_close(struct workload *workload);
