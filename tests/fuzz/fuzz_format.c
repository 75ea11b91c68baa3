/* fuzz_format.c - reading a workload of any format to its end. */
#include "fuzz.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/units.h"
#include "workload/workload.h"

void fuzz_format(const char *format, const uint8_t *bytes, size_t count)
{
    struct workload *workload;
    struct error err = { "" };
    int r = workload_open_memory(&workload, "input", bytes, count, format, &err);
    if (r < 0) {
        assert(err.text[0]);
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
    assert(r == 0 || err.text[0]);
    assert(!strchr(err.text, '\n'));
    workload_close(workload);
}
