/* format.h - shared by the fuzz targets of file formats. */
#pragma once

#include <assert.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/error.h"
#include "base/units.h"
#include "workload/workload.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Read a workload in that format to its end: jobs that are sane, or one sentence. */
static inline void fuzz_format(const char *format, const uint8_t *data, size_t size)
{
    struct workload *workload;
    struct error err = { "" };
    int r = workload_open_memory(&workload, "input", data, size, format, &err);
    if (r < 0) {
        assert(err.text[0] != '\0');
        return;
    }
    struct job_spec job;
    int64_t last_ns = 0;
    while ((r = workload_next(workload, &job, &err)) > 0) {
        assert(job.submit_ns >= last_ns);
        assert(job.submit_ns <= TIME_MAX_NS);
        assert(isfinite(job.steps));
        assert(job.steps >= 0);
        assert(job.gpus <= 1000000);
        assert(job.pause_ns >= 0);
        last_ns = job.submit_ns;
    }
    assert(r == 0 || err.text[0] != '\0');
    assert(!strchr(err.text, '\n'));
    workload_close(workload);
}
