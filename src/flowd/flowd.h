/*
 * flowd.h - the agent: keeps the marks on this host equal to what berthd wants.
 *
 * It follows /v1/flows and applies each event as it arrives.  While berthd does not
 * answer, the last event stays in force until it expires; then nothing is marked.
 */
#pragma once

#include "flowd/dscp.h"
#include "flowd/mark_target.h"

struct error;
struct marker;

#define FLOWD_MARKERS_MAX 2

struct flowd_setup {
    const char *address; /* of berthd; NULL: as for 'berth' */
    const char *host;    /* what berthd calls this host; NULL: berthd decides */
    struct dscp_levels levels;
    struct cgroup_patterns patterns;
};

/*
 * Choose the markers for 'backend': one by its name, or for "auto" all that work here, best
 * first, so that a job which one cannot reach is left to the next; "advice" if none works.
 * Returns how many; -EINVAL: there is no such backend; -ENOTSUP: it does not work here.
 */
int flowd_choose(const char *backend, const struct marker *chosen[FLOWD_MARKERS_MAX],
                 struct error *err);

/* Run until SIGTERM and remove all marks then.  Negative: it could not start. */
int flowd_run(const struct flowd_setup *setup, const struct marker *const *markers,
              uint32_t count, struct error *err);
