/*
 * smallest_first.c - jobs with the least to send in a step go first.
 *
 *     score(j) = 1 / (bytes a step sends over its busiest link)
 *
 * Short bursts before long ones: the mean burst is over soonest, as with shortest job
 * first on one machine.  It is what schemes for coflows come to when all they know is
 * sizes.  Jobs with large models wait for all others.
 */
#include "flow/senders.h"

#include <stdio.h>

static int smallest_decide(void *self, const struct view *view, struct flow_plan *plan,
                           struct error *err)
{
    struct senders *senders = self;
    if (!senders->changed)
        return 0;
    for (uint32_t i = 0; i < senders->count; i++)
        senders->list[i].score = 1 / senders->list[i].bytes;
    senders_sort(senders, view, SENDERS_CLEARLY);
    senders_levels(senders, view, plan);
    return 0;
}

static void smallest_explain(const void *self, const struct view *view, job_id job,
                             struct flow_reason *reason)
{
    const struct sender *sender = sender_explain(self, job, reason);
    if (sender && sender->bytes > 0)
        snprintf(reason->text, sizeof reason->text, "sends %.3g MB in a step",
                 sender->bytes * 1e-6);
    else if (sender)
        snprintf(reason->text, sizeof reason->text, "nobody has counted what it sends");
}

const struct flow_policy flow_smallest_first = {
    .name = "smallest-first",
    .brief = "jobs with the least to send in a step go first",
    .source = "Chowdhury et al.: Varys, SIGCOMM 2014 (smallest bottleneck first)",
    .params = senders_params,
    .self_size = sizeof(struct senders),
    .init = senders_init,
    .observe = senders_observe,
    .decide = smallest_decide,
    .explain = smallest_explain,
    .fini = senders_fini,
};
