/*
 * fair.c - no job's packets go first.
 *
 * Every flow over a link gets the same part of it, as without marks.  The baseline of
 * the others.
 */
#include "flow/flow.h"

#include <math.h>
#include <stdio.h>

static void fair_explain(const void *self, const struct view *view, job_id job,
                         struct flow_reason *reason)
{
    *reason = (struct flow_reason){ .score = (double)NAN };
    snprintf(reason->text, sizeof reason->text, "nobody goes first");
}

const struct flow_policy flow_fair = {
    .name = "fair",
    .brief = "equal shares of every link, no levels",
    .source = "TCP without marks; per-flow max-min fairness",
    .explain = fair_explain,
};
