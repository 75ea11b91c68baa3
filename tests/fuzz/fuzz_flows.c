/* Any bytes as what berthd streams to an agent: taken or refused, however they are cut. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/error.h"
#include "flowd/events.h"
#include "flowd/levels.h"
#include "flowd/wanted.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct sight {
    struct wanted wanted;
    struct levels levels;
    uint32_t taken, refused;
};

static void see(void *context, const char *name, const char *data, size_t count)
{
    struct sight *sight = context;
    struct error err = { "" };
    if (wanted_parse(&sight->wanted, data, count, &err) < 0) {
        assert(err.text[0]);
        assert(sight->wanted.count == 0);
        sight->refused++;
        return;
    }
    sight->taken++;
    const struct wanted *wanted = &sight->wanted;
    assert(wanted->count <= WANTED_JOBS_MAX && wanted->valid_ns > 0);
    for (uint32_t i = 0; i < wanted->count; i++) {
        const struct wanted_job *job = &wanted->jobs[i];
        assert(job->id > 0 && (i == 0 || job->id > job[-1].id));
        assert(levels_point(&sight->levels, wanted->levels, job->level) <
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
    struct ears ears = { see, see_no, sight };
    struct events events;
    sight->taken = sight->refused = 0;
    events_init(&events);
    for (size_t at = 0; at < size; at += piece)
        events_add(&events, (const char *)data + at,
                   size - at < piece ? size - at : piece, &ears);
    events_release(&events);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sight sight;
    wanted_init(&sight.wanted);
    assert(levels_parse(&sight.levels, levels_standard, NULL) == 0);
    play(&sight, data, size, size + 1);
    uint32_t taken = sight.taken, refused = sight.refused;
    play(&sight, data, size, 7);
    assert(sight.taken == taken && sight.refused == refused);
    see(&sight, "flows", (const char *)data, size);
    wanted_release(&sight.wanted);
    return 0;
}
