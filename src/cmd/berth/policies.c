/* policies.c - berth policies: list all policies, or show one with its settings. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "cmd/berth/command.h"
#include "cmd/berth/policies.h"
#include "cmd/berth/terminal.h"
#include "flow/flow.h"
#include "policy/policy.h"
#include "base/buf.h"
#include "base/param.h"
#include "workload/preset.h"

/* --- settings ---------------------------------------------------------------------------- */

static void print_headline(const char *name, const char *brief, FILE *file)
{
    char line[256];
    snprintf(line, sizeof line, "%s - %s", name, brief);
    terminal_print_wrapped(line, 0, file);
}

static void print_settings(const struct field *params, FILE *file)
{
    for (const struct field *p = params; p && p->name; p++) {
        struct buf text;
        char left[64];
        char min[24];
        char max[24];
        buf_init(&text, 4096);
        snprintf(left, sizeof left, "%s=%s", p->name, p->standard);
        buf_text(&text, p->brief);
        if (p->unit)
            buf_print(&text, " (%s)", p->unit);
        if (p->min != 0 || p->max != 0)
            buf_print(&text, ", %s to %s", field_show_number(min, sizeof min, p->min),
                      field_show_number(max, sizeof max, p->max));
        for (uint32_t i = 0; p->type == FIELD_CHOICE && p->choices[i]; i++)
            buf_print(&text, "%s%s", i ? "|" : ": ", p->choices[i]);
        fprintf(file, "  %-22s ", left);
        terminal_print_wrapped(text.bytes, 25, file);
        buf_release(&text);
    }
}

void policies_print_presets(FILE *file)
{
    for (const struct preset *const *p = preset_list; *p; p++) {
        if (p != preset_list)
            fputc('\n', file);
        print_headline((*p)->name, (*p)->brief, file);
        print_settings((*p)->params, file);
    }
}

static const struct flag policies_flags[] = {
    { "json", 0, NULL, "for programs: one object" },
    { 0 },
};

static const char *type_name(const struct field *param)
{
    static const char *const names[] = {
        [FIELD_COUNT] = "count", [FIELD_NUMBER] = "number", [FIELD_FLAG] = "true|false",
        [FIELD_TIME] = "time",   [FIELD_CHOICE] = "choice", [FIELD_BUFFER] = "text"
    };
    return names[param->type];
}

/* What scheduling policies and flow policies have in common. */
struct policy_summary {
    const char *name, *brief, *source;
    const struct field *params;
};

static struct policy_summary summarize_policy(const struct policy *policy)
{
    return (struct policy_summary){ policy->name, policy->brief, policy->source,
                                    policy->params };
}

static struct policy_summary summarize_flow_policy(const struct flow_policy *flow)
{
    return (struct policy_summary){ flow->name, flow->brief, flow->source,
                                    flow->params };
}

static void print_summary(struct policy_summary summary)
{
    print_headline(summary.name, summary.brief, stdout);
    printf("  from: ");
    terminal_print_wrapped(summary.source, 8, stdout);
    if (!summary.params)
        printf("  no settings\n");
    print_settings(summary.params, stdout);
}

static struct json *make_summary_json(struct policy_summary summary)
{
    struct json *object = json_new_object();
    json_put_text(object, "name", summary.name);
    json_put_text(object, "brief", summary.brief);
    json_put_text(object, "source", summary.source);
    struct json *settings = json_new_array();
    for (const struct field *p = summary.params; p && p->name; p++) {
        struct json *row = json_new_object();
        json_put_text(row, "name", p->name);
        json_put_text(row, "type", type_name(p));
        json_put_text(row, "default", p->standard);
        if (p->unit)
            json_put_text(row, "unit", p->unit);
        json_put_text(row, "brief", p->brief);
        if (p->min != 0 || p->max != 0) {
            json_put_number(row, "min", p->min);
            json_put_number(row, "max", p->max);
        }
        if (p->type == FIELD_CHOICE) {
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

static struct json *make_list_json(void)
{
    struct json *root = json_new_object();
    struct json *policies = json_new_array();
    struct json *flows = json_new_array();
    for (const struct policy *const *p = policy_list; *p; p++)
        json_add(policies, make_summary_json(summarize_policy(*p)));
    for (const struct flow_policy *const *f = flow_list; *f; f++)
        json_add(flows, make_summary_json(summarize_flow_policy(*f)));
    json_put(root, "policies", policies);
    json_put(root, "flows", flows);
    return root;
}

static void print_brief(const char *before, const char *name, const char *brief)
{
    printf("%s%-*s ", before, 20 - (int)strlen(before), name);
    terminal_print_wrapped(brief, 21, stdout);
}

static void print_list(void)
{
    for (const struct policy *const *p = policy_list; *p; p++)
        print_brief("", (*p)->name, (*p)->brief);
    printf("\nWhose packets go first (--flow):\n");
    for (const struct flow_policy *const *f = flow_list; *f; f++)
        print_brief("flow:", (*f)->name, (*f)->brief);
    putchar('\n');
    terminal_print_wrapped("'berth policies NAME' shows one with its settings.", 0,
                           stdout);
}

/* "las", "jpas", or "flow:fair" where both kinds have the name. */
static int find_summary(const char *text, struct policy_summary *ret_summary,
                        struct error *err)
{
    const struct policy *policy;
    const struct flow_policy *flow;
    const char *settings;
    bool only_flow = strncmp(text, "flow:", 5) == 0;
    text += only_flow ? 5 : 0;
    if (only_flow || !policy_find(text)) {
        int r = flow_parse(text, &flow, &settings, err);
        if (r == 0)
            *ret_summary = summarize_flow_policy(flow);
        if (r == 0 || only_flow)
            return r;
    }
    int r = policy_parse(text, &policy, &settings, err);
    if (r == 0)
        *ret_summary = summarize_policy(policy);
    return r;
}

static int policies_run(const struct flags *flags)
{
    struct policy_summary only = { 0 };
    if (flags->word_count > 1)
        return command_wrong(flags, "want one name at most");
    if (flags->word_count == 1) {
        struct error err;
        int r = find_summary(flags->words[0], &only, &err);
        if (r < 0)
            return command_status(flags, r, &err);
    }
    if (flags_get(flags, "json")) {
        struct json *root = only.name ? make_summary_json(only) : make_list_json();
        json_print(root, stdout, true);
        json_free(root);
    } else if (only.name) {
        print_summary(only);
    } else {
        print_list();
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
