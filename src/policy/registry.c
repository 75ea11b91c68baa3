/* registry.c - the list of all policies. */
#include "policy/policy.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/suggest.h"

#define POLICIES_MAX 64

extern const struct policy policy_fifo, policy_fifo_backfill, policy_sjf, policy_srtf,
    policy_las, policy_fitgpp, policy_lrtp, policy_rand, policy_xion, policy_berth,
    policy_gavel_las, policy_gavel_fifo, policy_gavel_makespan, policy_gavel_ftf,
    policy_gavel_cost, policy_gavel_cost_slo, policy_gavel_throughput,
    policy_gavel_hierarchical, policy_isolated, policy_proportional, policy_gavel_sjf,
    policy_allox, policy_gandiva, policy_slaq, policy_fair;

const struct policy *const policy_list[] = {
    &policy_berth,
    &policy_fifo,
    &policy_fifo_backfill,
    &policy_sjf,
    &policy_srtf,
    &policy_las,
    &policy_fitgpp,
    &policy_lrtp,
    &policy_rand,
    &policy_xion,
    &policy_gavel_las,
    &policy_gavel_fifo,
    &policy_gavel_sjf,
    &policy_gavel_makespan,
    &policy_gavel_ftf,
    &policy_gavel_cost,
    &policy_gavel_cost_slo,
    &policy_gavel_throughput,
    &policy_gavel_hierarchical,
    &policy_isolated,
    &policy_proportional,
    &policy_allox,
    &policy_gandiva,
    &policy_slaq,
    &policy_fair,
    NULL,
};

const struct policy *policy_find(const char *name)
{
    for (const struct policy *const *p = policy_list; *p; p++)
        if (strcmp((*p)->name, name) == 0)
            return *p;
    return NULL;
}

static int no_such_policy(const char *name, struct error *err)
{
    const char *names[POLICIES_MAX + 1] = { NULL };
    for (uint32_t i = 0; policy_list[i]; i++)
        names[i] = policy_list[i]->name;
    char hint[160];
    char bare[64];
    snprintf(bare, sizeof bare, "%.*s", (int)strcspn(name, ":= "), name);
    if (name[strlen(bare)] && policy_find(bare))
        return error_set(err, -EINVAL,
                         "no policy '%.60s'; settings follow a comma, as in "
                         "%s,setting=value",
                         name, bare);
    return error_set(err, -EINVAL, "no policy '%.60s'%s; 'berth policies' lists them",
                     name, suggest_names(hint, sizeof hint, name, names));
}

int policy_parse(const char *text, const struct policy **ret_policy,
                 const char **ret_settings, struct error *err)
{
    size_t name_bytes = strcspn(text, ",");
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)name_bytes, text);
    const struct policy *policy = policy_find(name);
    if (!policy)
        return no_such_policy(name, err);
    const char *settings = text[name_bytes] ? text + name_bytes + 1 : "";
    int r = param_check(policy->params, policy->name, settings, err);
    if (r < 0)
        return r;
    *ret_policy = policy;
    *ret_settings = settings;
    return 0;
}
