/* workload.h - the next job, in order of submission. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/job.h"

struct arena;
struct error;
struct workload;

/* What became of the rows that were read. */
struct workload_facts {
    const char *format;  /* "philly", "synthetic", …                     */
    uint64_t job_count;  /* yielded so far                               */
    uint64_t skipped;    /* rows that are no job we can run              */
    struct {
        const char *reason;
        uint64_t count;
    } reasons[8];
    uint32_t reason_count;
    uint64_t expected;   /* jobs there will be; 0: not known beforehand  */
    const char *cluster; /* the cluster it is meant for, or NULL         */
    bool unsorted;       /* had to be read whole and sorted              */
};

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
int workload_next(struct workload *workload, struct job_spec *ret_spec, struct error *err);

const struct workload_facts *workload_facts(const struct workload *workload);
void workload_close(struct workload *workload);
