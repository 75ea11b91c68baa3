/* advice.c - the marker that marks nothing and prints what it would mark. */
#include "flowd/marker.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/grow.h"
#include "flowd/dscp.h"
#include "flowd/mark_target.h"

struct advice_job {
    uint64_t id;
    uint32_t point;
};

struct advice {
    const struct dscp_levels *levels;
    struct advice_job *jobs; /* by id */
    uint32_t count, room;
};

static void print_advice(const struct advice *advice, const struct mark_target *target)
{
    char name[DSCP_NAME_MAX];
    printf("job %" PRIu64 ": level %u, %s", target->id, target->level,
           dscp_name(name, advice->levels->points[target->point].dscp));
    if (target->group)
        printf(", packets of cgroup %s\n", target->cgroup);
    else if (target->pid)
        printf(", sockets of process %d and those below\n", target->pid);
    else
        printf(", but neither its cgroup nor its processes are known here\n");
}

static int advice_apply(void *self, const struct marking *marking, struct error *err)
{
    struct advice *advice = self;
    uint32_t a = 0;
    for (uint32_t b = 0; b < marking->count; b++) {
        const struct mark_target *target = &marking->targets[b];
        for (; a < advice->count && advice->jobs[a].id < target->id; a++)
            printf("job %" PRIu64 ": no longer marked\n", advice->jobs[a].id);
        bool same = a < advice->count && advice->jobs[a].id == target->id;
        if (!same || advice->jobs[a].point != target->point)
            print_advice(advice, target);
        a += same;
    }
    for (; a < advice->count; a++)
        printf("job %" PRIu64 ": no longer marked\n", advice->jobs[a].id);
    fflush(stdout);
    advice->jobs = grow_array(advice->jobs, &advice->room, marking->count + 1,
                              sizeof *advice->jobs);
    advice->count = marking->count;
    for (uint32_t i = 0; i < marking->count; i++)
        advice->jobs[i] =
            (struct advice_job){ marking->targets[i].id, marking->targets[i].point };
    return 0;
}

static int advice_probe(struct error *why)
{
    return 0;
}

static int advice_open(void *self, const struct dscp_levels *levels, struct error *err)
{
    *(struct advice *)self = (struct advice){ .levels = levels };
    return 0;
}

static bool advice_reaches(const struct mark_target *target)
{
    return true;
}

static void advice_close(void *self)
{
    free(((struct advice *)self)->jobs);
}

static const int needed_capabilities[] = { -1 };

const struct marker marker_advice = {
    .name = "advice",
    .brief = "marks nothing and says what would be marked",
    .capabilities = needed_capabilities,
    .self_size = sizeof(struct advice),
    .probe = advice_probe,
    .open = advice_open,
    .reaches = advice_reaches,
    .apply = advice_apply,
    .close = advice_close,
};
