/*
 * what_if_ahead.c - berth what-if --ahead: the next days, as berthd plays them forward.
 *
 * berthd knows the present state, so it does the work: POST /v1/ahead, once for each policy.
 */
#include "cmd/berth/what_if_ahead.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "api/call.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/json.h"
#include "base/units.h"
#include "cmd/berth/connection.h"
#include "cmd/berth/terminal.h"
#include "cmd/berth/text_table.h"
#include "cmd/berth/what_if_history.h"

#define CELL 64
#define AHEAD_LEAST_S 60.0
#define AHEAD_MOST_S (30 * 86400.0)

static const struct {
    const char *key, *label;
    enum { UNIT_COUNT, UNIT_TIME, UNIT_SHARE } unit;
} figures[] = {
    { "jobs_finished", "jobs that end", UNIT_COUNT },
    { "mean_wait_s", "waiting, mean", UNIT_TIME },
    { "mean_completion_s", "completion time, mean", UNIT_TIME },
    { "gpu_utilization", "GPU-time held", UNIT_SHARE },
    { "preemptions", "preemptions", UNIT_COUNT },
};

#define FIGURES (sizeof figures / sizeof *figures)

/* ---- the request ---- */

/* "v100:2", "4xv100:8" as "v100:2,4xv100:8" */
static void put_added(struct json *body, const struct history_changes *changes)
{
    struct buf text;
    buf_init(&text, 4096);
    for (uint32_t i = 0; i < changes->add_count; i++)
        buf_print(&text, "%s%s", i > 0 ? "," : "", changes->add[i]);
    if (text.count > 0)
        json_put_text(body, "add", text.bytes);
    buf_release(&text);
}

static int put_without(const struct flags *flags, struct json *body,
                       const struct history_changes *changes)
{
    struct json *ids = json_new_array();
    const char *user = NULL;
    int status = 0;
    for (uint32_t i = 0; i < changes->without_count && status == 0; i++) {
        const char *text = changes->without[i];
        char *end;
        unsigned long long id = strtoull(text, &end, 10);
        if (strncmp(text, "user=", 5) == 0 && text[5] && !user)
            user = text + 5;
        else if (strncmp(text, "user=", 5) == 0 && text[5])
            status = command_wrong(flags, "--ahead leaves out one user at most");
        else if (*text < '1' || *text > '9' || *end || id > INT64_MAX)
            status = command_wrong(
                flags, "--without is \"%.40s\", want the number of a job or user=NAME",
                text);
        else
            json_add_count(ids, (int64_t)id);
    }
    if (user)
        json_put_text(body, "without_user", user);
    if (json_count(ids) > 0)
        json_put(body, "without", ids);
    else
        json_free(ids);
    return status;
}

static int make_body(const struct flags *flags, const struct history_changes *changes,
                     double ahead_s, struct json **ret_body)
{
    struct json *body = *ret_body = json_new_object();
    const char *seed = flags_get(flags, "seed");
    json_put_number(body, "ahead_s", ahead_s);
    put_added(body, changes);
    if (changes->remove_count > 0) {
        struct json *nodes = json_new_array();
        for (uint32_t i = 0; i < changes->remove_count; i++)
            json_add_text(nodes, changes->remove[i]);
        json_put(body, "remove", nodes);
    }
    if (seed)
        json_put_count(body, "seed",
                       (int64_t)flags_count(flags, "seed", 0, INT64_MAX, 1));
    return put_without(flags, body, changes);
}

/* ---- the reply ---- */

static const char *show_value(char text[CELL], size_t figure, double value, bool sign)
{
    const char *plus = sign && value >= 0 ? "+" : "";
    const char *minus = value < 0 ? "-" : "";
    char time[32];
    switch (figures[figure].unit) {
    case UNIT_TIME:
        units_show_time(time, sizeof time, fabs(value));
        snprintf(text, CELL, "%s%s%s", plus, minus, time);
        return text;
    case UNIT_SHARE:
        snprintf(text, CELL, "%s%.1f %%", plus, 100 * value);
        return text;
    default:
        snprintf(text, CELL, "%s%.*f", plus, value == floor(value) ? 0 : 1, value);
        return text;
    }
}

static const char *show_span(char text[CELL], size_t figure,
                             const struct json *difference)
{
    char low[CELL];
    char high[CELL];
    snprintf(text, CELL, "%.28s to %.28s",
             show_value(low, figure, json_number_or(difference, "low", 0), true),
             show_value(high, figure, json_number_or(difference, "high", 0), true));
    return text;
}

static void print_case(const struct json *reply, FILE *file)
{
    const struct json *present = json_get(reply, "present");
    const struct json *changed = json_get(reply, "changed");
    const char *policy = json_as_text(json_get(changed, "policy"));
    const struct text_table_column columns[] = {
        { policy ? policy : "", .min = 22 },
        { "AS IT IS", .right = true, .spare = 1 },
        { "THEN", .right = true },
        { "DIFFERENCE", .right = true },
        { "MOST FUTURES", .right = true, .spare = 2 },
    };
    struct text_table table;
    char text[CELL];
    text_table_init(&table, columns, sizeof columns / sizeof *columns);
    for (size_t f = 0; f < FIGURES; f++) {
        const char *key = figures[f].key;
        const struct json *difference = json_get(json_get(reply, "difference"), key);
        text_table_add(&table, "%s", figures[f].label);
        text_table_add(&table, "%s",
                       show_value(text, f, json_number_or(present, key, 0), false));
        text_table_add(&table, "%s",
                       show_value(text, f, json_number_or(changed, key, 0), false));
        text_table_add(
            &table, "%s",
            show_value(text, f, json_number_or(difference, "mean", 0), true));
        text_table_add(&table, "%s", show_span(text, f, difference));
    }
    text_table_show(&table, file);
    text_table_release(&table);
}

/* How far, and with what in charge now. */
static void print_head(const struct json *reply, double wanted_s)
{
    char far[32];
    char wanted[32];
    char text[400];
    double far_s = json_number_or(reply, "ahead_s", wanted_s);
    const char *policy = json_as_text(json_get(json_get(reply, "present"), "policy"));
    units_show_time(far, sizeof far, far_s);
    units_show_time(wanted, sizeof wanted, wanted_s);
    bool less = far_s < 0.999 * wanted_s;
    snprintf(
        text, sizeof text,
        "The next %s%s%s from now, in %.0f possible futures; now %.100s decides. Jobs "
        "that have not ended by then count up to then.",
        far, less ? " (further would take too long) of " : "", less ? wanted : "",
        json_number_or(reply, "futures", 0), policy ? policy : "");
    terminal_print_wrapped(text, 0, stdout);
}

/* ---- asking ---- */

static int ask_case(const struct flags *flags, struct call *call, struct json *body,
                    const char *policy, struct json *cases)
{
    struct json *reply = NULL;
    struct error err;
    if (policy)
        json_put_text(body, "policy", policy);
    int r = call_json(call, "POST", "/v1/ahead", body, &reply, &err);
    if (r < 0)
        return command_status(flags, r, &err);
    json_add(cases, reply);
    return 0;
}

static int ask_cases(const struct flags *flags, struct json *body, struct json *cases)
{
    struct call *call = NULL;
    const char *policy;
    int status = connection_open(&call, flags);
    if (status)
        return status;
    if (!flags_get(flags, "policy"))
        status = ask_case(flags, call, body, NULL, cases);
    for (uint32_t i = 0; status == 0 && (policy = flags_each(flags, "policy", i)); i++)
        status = ask_case(flags, call, body, policy, cases);
    call_close(call);
    return status;
}

static void print_cases(const struct flags *flags, const struct json *result,
                        double ahead_s)
{
    const struct json *cases = json_get(result, "cases");
    if (flags_get(flags, "json")) {
        json_print(result, stdout, true);
        return;
    }
    print_head(json_item(cases, 0), ahead_s);
    for (size_t i = 0; i < json_count(cases); i++) {
        fputc('\n', stdout);
        print_case(json_item(cases, i), stdout);
    }
}

int what_if_ahead(const struct flags *flags, const struct history_changes *changes)
{
    static const char *const of_history[] = { "last",    "workload",   "format",
                                              "cluster", "policy-was", "report" };
    int64_t ahead_ns = 0;
    const char *text = flags_get(flags, "ahead");
    for (size_t i = 0; i < sizeof of_history / sizeof *of_history; i++)
        if (flags_get(flags, of_history[i]))
            return command_wrong(flags, "--ahead and --%s do not go together",
                                 of_history[i]);
    if (!units_time(text, &ahead_ns) || (double)ahead_ns * 1e-9 < AHEAD_LEAST_S ||
        (double)ahead_ns * 1e-9 > AHEAD_MOST_S)
        return command_wrong(flags, "--ahead is \"%.40s\", want a time from 1m to 30d",
                             text);
    if (!flags_get(flags, "policy") &&
        changes->add_count + changes->remove_count + changes->without_count == 0)
        return command_wrong(flags,
                             "--ahead wants something to be different: --policy, "
                             "--add, --remove or --without");
    struct json *body;
    struct json *result = json_new_object();
    struct json *cases = json_new_array();
    json_put(result, "cases", cases);
    int status = make_body(flags, changes, (double)ahead_ns * 1e-9, &body);
    if (status == 0)
        status = ask_cases(flags, body, cases);
    if (status == 0)
        print_cases(flags, result, (double)ahead_ns * 1e-9);
    json_free(result);
    json_free(body);
    return status;
}
