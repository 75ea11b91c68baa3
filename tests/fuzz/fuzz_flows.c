/* Any bytes as the stream of berthd: accepted or refused, however they are cut. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/error.h"
#include "api/sse.h"
#include "flowd/dscp.h"
#include "flowd/desired.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct fuzz_state {
    struct desired_marks desired;
    struct dscp_levels levels;
    uint32_t accepted, refused;
};

static void check_event(void *context, const char *name, const char *data, size_t count)
{
    struct fuzz_state *state = context;
    struct error err = { "" };
    if (desired_parse(&state->desired, data, count, &err) < 0) {
        assert(err.text[0]);
        assert(state->desired.count == 0);
        state->refused++;
        return;
    }
    state->accepted++;
    const struct desired_marks *desired = &state->desired;
    assert(desired->count <= DESIRED_JOBS_MAX && desired->valid_ns > 0);
    for (uint32_t i = 0; i < desired->count; i++) {
        const struct desired_job *job = &desired->jobs[i];
        assert(job->id > 0 && (i == 0 || job->id > job[-1].id));
        assert(dscp_levels_point(&state->levels, desired->levels, job->level) <
               state->levels.count);
        assert(!job->cgroup || (job->cgroup[0] != '/' && !strchr(job->cgroup, '"') &&
                                strncmp(job->cgroup, "../", 3) != 0));
    }
}

static void count_refused(void *context, const char *why)
{
    ((struct fuzz_state *)context)->refused++;
}

static void parse_in_pieces(struct fuzz_state *state, const uint8_t *data, size_t size,
                            size_t piece)
{
    struct sse_handler handler = { check_event, count_refused, state };
    struct sse_parser parser;
    state->accepted = state->refused = 0;
    sse_init(&parser);
    for (size_t at = 0; at < size; at += piece)
        sse_add(&parser, (const char *)data + at, size - at < piece ? size - at : piece,
                &handler);
    sse_release(&parser);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_state state;
    desired_init(&state.desired);
    assert(dscp_levels_parse(&state.levels, dscp_levels_standard, NULL) == 0);
    parse_in_pieces(&state, data, size, size + 1);
    uint32_t accepted = state.accepted, refused = state.refused;
    parse_in_pieces(&state, data, size, 7);
    assert(state.accepted == accepted && state.refused == refused);
    check_event(&state, "flows", (const char *)data, size);
    desired_release(&state.desired);
    return 0;
}
