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

static int crux_decide(void *self, const struct view *view, struct flow_plan *plan,
                       struct error *err)
{
    struct senders *senders = self;
    if (!senders->changed)
        return 0;
    for (uint32_t i = 0; i < senders->count; i++)
        senders->list[i].score = senders->list[i].intensity;
    senders_sort(senders, view, SENDERS_CLEARLY);
    senders_levels(senders, view, plan);
    return 0;
}

static void crux_explain(const void *self, const struct view *view, job_id job,
                         struct flow_reason *reason)
{
    const struct sender *sender = sender_explain(self, job, reason);
    if (sender && isfinite(sender->intensity))
        snprintf(reason->text, sizeof reason->text,
                 "computes %.3g GPU-seconds for each second of sending",
                 sender->intensity);
    else if (sender)
        snprintf(reason->text, sizeof reason->text, "nobody has counted what it sends");
}

const struct flow_policy flow_crux = {
    .name = "crux",
    .brief = "jobs that compute much for what they send go first",
    .source = "Cao et al.: Crux, SIGCOMM 2024",
    .params = senders_params,
    .self_size = sizeof(struct senders),
    .init = senders_init,
    .observe = senders_observe,
    .decide = crux_decide,
    .explain = crux_explain,
    .fini = senders_fini,
};
