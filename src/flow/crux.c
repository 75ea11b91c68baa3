/*
 * crux.c - jobs that compute much for what they send go first.
 *
 *     intensity(j) = W / t     W: GPU-time of computing in a step
 *                              t: time of its communication with the network to itself
 *
 * A job that computes much between short bursts hardly delays the others when its
 * bursts go first, and waits with all its GPUs when they do not.  So GPUs are idle
 * least.  From Crux (Cao et al., SIGCOMM 2024); its choice of paths and its compression
 * of priorities by sampling are left out: levels follow from which jobs share links
 * (senders.h).
 *
 * It ignores how a job learns.  Do not use it where early results matter most.
 */
#include "flow/senders.h"

#include <math.h>
#include <stdio.h>

struct crux {
    uint32_t levels;
    struct senders senders;
};

static int crux_init(void *self, const struct view *view, struct arena *run,
                     struct error *err)
{
    struct crux *crux = self;
    senders_init(&crux->senders, view, run);
    return 0;
}

static void crux_observe(void *self, const struct view *view, const struct event *event)
{
    struct crux *crux = self;
    senders_observe(&crux->senders, view, event);
}

static int crux_decide(void *self, const struct view *view, struct flow_plan *plan,
                       struct error *err)
{
    struct crux *crux = self;
    if (!crux->senders.changed)
        return 0;
    for (uint32_t i = 0; i < crux->senders.count; i++)
        crux->senders.list[i].score = crux->senders.list[i].intensity;
    senders_sort(&crux->senders, view, SENDERS_CLEARLY);
    senders_levels(&crux->senders, view, crux->levels, plan);
    return 0;
}

static void crux_explain(const void *self, const struct view *view, job_id job,
                         struct flow_reason *reason)
{
    const struct crux *crux = self;
    const struct sender *sender = sender_explain(&crux->senders, job, reason);
    if (sender && isfinite(sender->intensity))
        snprintf(reason->text, sizeof reason->text,
                 "computes %.3g GPU-seconds for each second of sending",
                 sender->intensity);
    else if (sender)
        snprintf(reason->text, sizeof reason->text, "nobody has counted what it sends");
}

static void crux_fini(void *self)
{
    struct crux *crux = self;
    senders_release(&crux->senders);
}

static const struct field crux_params[] = {
    { "levels", FIELD_COUNT, offsetof(struct crux, levels), "8", NULL,
      "levels the network has", 1, FLOW_LEVELS_MAX },
    { 0 },
};

const struct flow_policy flow_crux = {
    .name = "crux",
    .brief = "jobs that compute much for what they send go first",
    .source = "Cao et al.: Crux, SIGCOMM 2024",
    .params = crux_params,
    .self_size = sizeof(struct crux),
    .init = crux_init,
    .observe = crux_observe,
    .decide = crux_decide,
    .explain = crux_explain,
    .fini = crux_fini,
};
