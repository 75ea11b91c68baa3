/*
 * fair.c - nobody's packets go first.
 *
 * Every flow over a link gets the same part of it, as without marks.  The baseline of the
 * others.
 */
#include "flow/flow.h"

const struct flow_policy flow_fair = {
    .name = "fair",
    .brief = "equal shares of every link, no levels",
    .source = "TCP without marks; per-flow max-min fairness",
};
