/* registry.c - the list of all flow policies. */
#include "flow/flow.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/suggest.h"

#define FLOWS_MAX 16

extern const struct flow_policy flow_fair, flow_jpas, flow_crux, flow_smallest_first,
    flow_las_flow;

const struct flow_policy *const flow_list[] = {
    &flow_fair, &flow_jpas, &flow_crux, &flow_smallest_first, &flow_las_flow, NULL,
};

void flow_set(struct flow_plan *plan, const struct view *view, job_id job,
              uint32_t level)
{
    assert(level < FLOW_LEVELS_MAX);
    if (view->jobs[job].level != level)
        plan->changes[plan->change_count++] = (struct flow_change){ job, level };
}

void flow_wake(struct flow_plan *plan, int64_t at_ns)
{
    if (at_ns < plan->wake_ns)
        plan->wake_ns = at_ns;
}

uint32_t flow_levels(const struct flow_policy *policy, const void *self)
{
    for (const struct field *p = policy->params; p && p->name; p++)
        if (strcmp(p->name, "levels") == 0)
            return *(const uint32_t *)((const char *)self + p->offset);
    return 1;
}

const struct flow_policy *flow_find(const char *name)
{
    for (const struct flow_policy *const *f = flow_list; *f; f++)
        if (strcmp((*f)->name, name) == 0)
            return *f;
    return NULL;
}

static int no_such_flow(const char *name, struct error *err)
{
    const char *names[FLOWS_MAX + 1] = { NULL };
    for (uint32_t i = 0; flow_list[i]; i++)
        names[i] = flow_list[i]->name;
    char hint[160];
    char bare[64];
    snprintf(bare, sizeof bare, "%.*s", (int)strcspn(name, ":= "), name);
    if (name[strlen(bare)] && flow_find(bare))
        return error_set(err, -EINVAL,
                         "no flow policy '%.60s'; settings follow a comma, as in "
                         "%s,setting=value",
                         name, bare);
    return error_set(err, -EINVAL,
                     "no flow policy '%.60s'%s; 'berth policies' lists them", name,
                     suggest_names(hint, sizeof hint, name, names));
}

int flow_parse(const char *text, const struct flow_policy **ret_policy,
               const char **ret_settings, struct error *err)
{
    size_t name_bytes = strcspn(text, ",");
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)name_bytes, text);
    const struct flow_policy *policy = flow_find(name);
    if (!policy)
        return no_such_flow(name, err);
    const char *settings = text[name_bytes] ? text + name_bytes + 1 : "";
    int r = param_check(policy->params, policy->name, settings, err);
    if (r < 0)
        return r;
    *ret_policy = policy;
    *ret_settings = settings;
    return 0;
}
