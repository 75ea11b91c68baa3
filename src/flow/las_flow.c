/*
 * las_flow.c - jobs that have sent least so far go first.
 *
 *     queue(j) = the number of times that bytes sent by j have grown by 'factor', from 'first'
 *
 * Least attained service, with bytes for service and a few queues, as PIAS and Aalo do
 * it for flows and coflows: nothing needs to be known of a job.  New jobs go first, and
 * long ones wait for them.  Bytes are those that hosts count, or steps made times bytes
 * of a step.
 */
#include "flow/senders.h"

#include <math.h>
#include <stdio.h>

struct las_flow {
    struct senders senders;
    double first_gb, factor;
    int64_t period_ns;
    int64_t next_ns;
};

/* Bytes sent so far: counted, or its steps times those of a step. */
static double bytes_sent(const struct view *view, const struct sender *sender)
{
    const struct job *job = &view->jobs[sender->job];
    return sender->counted ? job->sent_bytes
                           : job_steps(job, view->now_ns) * sender->bytes;
}

static double queue_of(const struct las_flow *las, const struct view *view,
                       const struct sender *sender)
{
    double sent = bytes_sent(view, sender) * 1e-9;
    return sent <= las->first_gb
               ? 0
               : 1 + floor(log(sent / las->first_gb) / log(las->factor));
}

static int las_flow_decide(void *self, const struct view *view, struct flow_plan *plan,
                           struct error *err)
{
    struct las_flow *las = self;
    struct senders *senders = &las->senders;
    if (view->now_ns < las->next_ns && !senders->changed) {
        if (senders->count > 0)
            flow_wake(plan, las->next_ns);
        return 0;
    }
    for (uint32_t i = 0; i < senders->count; i++)
        senders->list[i].score = -queue_of(las, view, &senders->list[i]);
    senders_sort(senders, view, 1);
    senders_levels(senders, view, plan);
    las->next_ns = view->now_ns + las->period_ns;
    if (senders->count > 0)
        flow_wake(plan, las->next_ns);
    return 0;
}

static void las_flow_explain(const void *self, const struct view *view, job_id job,
                             struct flow_reason *reason)
{
    const struct las_flow *las = self;
    const struct sender *sender = sender_explain(&las->senders, job, reason);
    if (sender)
        snprintf(reason->text, sizeof reason->text,
                 "has sent %.3g GB so far: queue %.0f", bytes_sent(view, sender) * 1e-9,
                 queue_of(las, view, sender));
}

#define AT(field) offsetof(struct las_flow, field)

static const struct field las_flow_params[] = {
    SENDERS_PARAM_LEVELS,
    { "first", FIELD_NUMBER, AT(first_gb), "1", "GB",
      "sent before it leaves the first queue", 1e-6, 1e9 },
    { "factor", FIELD_NUMBER, AT(factor), "4", NULL, "from one queue to the next", 1.01,
      1e6 },
    { "period", FIELD_TIME, AT(period_ns), "10s", NULL,
      "how often queues are looked at", 0.1, 1e6 },
    { 0 },
};

const struct flow_policy flow_las_flow = {
    .name = "las-flow",
    .brief = "jobs that have sent least so far go first",
    .source = "Chowdhury and Stoica: Aalo, SIGCOMM 2015; Bai et al.: PIAS, NSDI 2015",
    .params = las_flow_params,
    .self_size = sizeof(struct las_flow),
    .init = senders_init,
    .observe = senders_observe,
    .decide = las_flow_decide,
    .explain = las_flow_explain,
    .fini = senders_fini,
};
