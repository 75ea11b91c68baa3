/* policies.c - berth policies: what there is, and its settings. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "cmd/berth/command.h"
#include "cmd/berth/show.h"
#include "policy/policy.h"

static const struct flag policies_flags[] = {
    { "json", 0, NULL, "for programs: one object" },
    { 0 },
};

static const char *type_name(const struct param *param)
{
    static const char *const names[] = {
        [PARAM_COUNT] = "count", [PARAM_NUMBER] = "number", [PARAM_FLAG] = "true|false",
        [PARAM_TIME] = "time",   [PARAM_CHOICE] = "choice", [PARAM_TEXT] = "text"
    };
    return names[param->type];
}

static void print_one(const struct policy *policy)
{
    printf("%s - %s\n", policy->name, policy->brief);
    printf("  from: %s\n", policy->source);
    if (!policy->params)
        printf("  (no settings)\n");
    show_params(policy->params, stdout);
}

static struct json *policy_json(const struct policy *policy)
{
    struct json *object = json_new_object();
    json_put_text(object, "name", policy->name);
    json_put_text(object, "brief", policy->brief);
    json_put_text(object, "source", policy->source);
    struct json *settings = json_new_array();
    for (const struct param *p = policy->params; p && p->name; p++) {
        struct json *row = json_new_object();
        json_put_text(row, "name", p->name);
        json_put_text(row, "type", type_name(p));
        json_put_text(row, "default", p->standard);
        if (p->unit)
            json_put_text(row, "unit", p->unit);
        json_put_text(row, "brief", p->brief);
        if (p->type == PARAM_CHOICE) {
            struct json *choices = json_new_array();
            for (uint32_t i = 0; p->choices[i]; i++)
                json_add_text(choices, p->choices[i]);
            json_put(row, "choices", choices);
        }
        json_add(settings, row);
    }
    json_put(object, "settings", settings);
    return object;
}

static int policies_run(const struct flags *flags)
{
    const struct policy *only = NULL;
    if (flags->word_count > 1)
        return command_wrong(flags, "want one name at most");
    if (flags->word_count == 1) {
        const char *settings;
        struct error err;
        int r = policy_parse(flags->words[0], &only, &settings, &err);
        if (r < 0)
            return command_status(flags, r, &err);
    }
    if (flags_get(flags, "json")) {
        struct json *root = only ? policy_json(only) : json_new_object();
        if (!only) {
            struct json *array = json_new_array();
            for (const struct policy *const *p = policy_list; *p; p++)
                json_add(array, policy_json(*p));
            json_put(root, "policies", array);
        }
        json_print(root, stdout, true);
        json_free(root);
        return 0;
    }
    for (const struct policy *const *p = policy_list; *p; p++) {
        if (only && *p != only)
            continue;
        if (only || p != policy_list)
            fputs(only ? "" : "\n", stdout);
        print_one(*p);
    }
    return 0;
}

const struct command command_policies = {
    .name = "policies",
    .group = "Study",
    .brief = "list the policies, or show one with its settings",
    .usage = "[NAME] [--json]",
    .flags = policies_flags,
    .run = policies_run,
};
