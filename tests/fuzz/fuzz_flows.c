/* Any bytes as what berthd streams to an agent: taken or refused, however they are cut. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/error.h"
#include "flowd/sse.h"
#include "flowd/dscp.h"
#include "flowd/desired.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct sight {
    struct desired_marks desired;
    struct dscp_levels levels;
    uint32_t taken, refused;
};

static void see(void *context, const char *name, const char *data, size_t count)
{
    struct sight *sight = context;
    struct error err = { "" };
    if (desired_parse(&sight->desired, data, count, &err) < 0) {
        assert(err.text[0]);
        assert(sight->desired.count == 0);
        sight->refused++;
        return;
    }
    sight->taken++;
    const struct desired_marks *desired = &sight->desired;
    assert(desired->count <= DESIRED_JOBS_MAX && desired->valid_ns > 0);
    for (uint32_t i = 0; i < desired->count; i++) {
        const struct desired_job *job = &desired->jobs[i];
        assert(job->id > 0 && (i == 0 || job->id > job[-1].id));
        assert(dscp_levels_point(&sight->levels, desired->levels, job->level) <
               sight->levels.count);
        assert(!job->cgroup || (job->cgroup[0] != '/' && !strchr(job->cgroup, '"') &&
                                strncmp(job->cgroup, "../", 3) != 0));
    }
}

static void see_no(void *context, const char *why)
{
    ((struct sight *)context)->refused++;
}

static void play(struct sight *sight, const uint8_t *data, size_t size, size_t piece)
{
    struct sse_handler ears = { see, see_no, sight };
    struct sse_parser events;
    sight->taken = sight->refused = 0;
    sse_init(&events);
    for (size_t at = 0; at < size; at += piece)
        sse_add(&events, (const char *)data + at, size - at < piece ? size - at : piece,
                &ears);
    sse_release(&events);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sight sight;
    desired_init(&sight.desired);
    assert(dscp_levels_parse(&sight.levels, dscp_levels_standard, NULL) == 0);
    play(&sight, data, size, size + 1);
    uint32_t taken = sight.taken, refused = sight.refused;
    play(&sight, data, size, 7);
    assert(sight.taken == taken && sight.refused == refused);
    see(&sight, "flows", (const char *)data, size);
    desired_release(&sight.desired);
    return 0;
}
