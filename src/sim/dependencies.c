/* dependencies.c - lists of jobs that wait, by the job that they wait for. */
#include "sim/dependencies.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/grow.h"
#include "model/state.h"
#include "sim/changes.h"

struct dependency_edge {
    job_id job; /* that waits */
    uint32_t generation;
    uint32_t next; /* that waits for the same; MAP_NONE: none */
};

static void add_edge(struct dependencies *dependencies, const struct state *state,
                     job_id job, uint64_t id)
{
    uint32_t at = dependencies->edge_count++;
    dependencies->edges = grow_array(dependencies->edges, &dependencies->edge_room,
                                     at + 1, sizeof *dependencies->edges);
    dependencies->edges[at] =
        (struct dependency_edge){ .job = job,
                                  .generation = state->jobs[job].generation,
                                  .next = map_find(&dependencies->first, id) };
    map_put(&dependencies->first, id, at);
    dependencies->left[job]++;
}

static void release(const struct state *state, job_id job, struct changes *changes)
{
    changes_add(changes, state->view.now_ns, EVENT_RELEASED, job,
                state->jobs[job].generation);
}

void dependencies_add(struct dependencies *dependencies, const struct state *state,
                      job_id job, const char *after, struct changes *changes)
{
    dependencies->left = grow_array(dependencies->left, &dependencies->left_room,
                                    job + 1, sizeof *dependencies->left);
    dependencies->left[job] = 0;
    while (*after) {
        char *end;
        uint64_t id = strtoull(after, &end, 10);
        if (end == after)
            break;
        job_id other = state_find(state, id);
        if (other != JOB_NONE && other != job)
            add_edge(dependencies, state, job, id);
        after = *end ? end + 1 : end;
    }
    if (dependencies->left[job] == 0)
        release(state, job, changes);
}

void dependencies_end(struct dependencies *dependencies, const struct state *state,
                      uint64_t id, struct changes *changes)
{
    if (dependencies->first.count == 0)
        return;
    uint32_t at = map_find(&dependencies->first, id);
    if (at == MAP_NONE)
        return;
    map_remove(&dependencies->first, id);
    for (; at != MAP_NONE; at = dependencies->edges[at].next) {
        const struct dependency_edge *edge = &dependencies->edges[at];
        if (state->jobs[edge->job].generation == edge->generation &&
            --dependencies->left[edge->job] == 0)
            release(state, edge->job, changes);
    }
}

void dependencies_release(struct dependencies *dependencies)
{
    map_release(&dependencies->first);
    free(dependencies->edges);
    free(dependencies->left);
}
