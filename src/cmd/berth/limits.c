/* limits.c - berth limits: what each user may have; for administrators, setting it. */
#include <math.h>
#include <string.h>

#include "cmd/berth/connection.h"
#include "cmd/berth/format.h"
#include "cmd/berth/text_table.h"

static const struct flag limits_flags[] = {
    FLAG_JSON,
    CONNECTION_FLAGS,
    { 0 },
};

static const struct text_table_column own_columns[] = {
    { "LIMIT" },
    { "YOURS", .right = true },
    { "USED", .right = true },
    { "FROM", .min = 8 },
};

static const struct text_table_column setting_columns[] = {
    { "FOR", .min = 8 },
    { "LIMIT" },
    { "VALUE", .right = true },
    { "SET" },
};

/* ---- showing ---- */

static void add_bytes(struct text_table *table, double bytes)
{
    static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
    int unit = 0;
    for (; unit < 4 && bytes >= 1024; unit++)
        bytes /= 1024;
    text_table_add(table, "%.4g %s", bytes, units[unit]);
}

/* As people write it: 90s, 10m, 2h, 1d. */
static void add_time(struct text_table *table, double seconds)
{
    static const double units[] = { 86400, 3600, 60, 1 };
    int unit = 0;
    while (unit < 3 && (seconds < units[unit] || fmod(seconds, units[unit]) != 0))
        unit++;
    text_table_add(table, "%.10g%c", seconds / units[unit], "dhms"[unit]);
}

/* A value as people read it: sizes and times with their units. */
static void add_value(struct text_table *table, const char *key,
                      const struct json *value)
{
    double number;
    const char *word = json_as_text(value);
    if (!value)
        text_table_add(table, "none");
    else if (word)
        text_table_add(table, "%s", word);
    else if (!json_as_number(value, &number))
        text_table_add(table, "?");
    else if (strncmp(key, "bytes_", 6) == 0)
        add_bytes(table, number);
    else if (strcmp(key, "job_time") == 0 || strcmp(key, "grace") == 0)
        add_time(table, number);
    else
        text_table_add(table, "%.10g", number);
}

/* "user ada, live" */
static void add_origin(struct text_table *table, const struct json *one)
{
    const char *name = json_text_or(one, "name", "");
    const char *scope = json_text_or(one, "scope", "");
    text_table_add(table, "%s%s%s%s%s", scope, *name ? " " : "", name,
                   *scope ? ", " : "", json_text_or(one, "set", ""));
}

static void print_own(const struct json *limits)
{
    struct text_table table;
    const char *key;
    const struct json *one;
    text_table_init(&table, own_columns, sizeof own_columns / sizeof *own_columns);
    for (void *at = NULL; (at = json_member(limits, at, &key, &one));) {
        const struct json *used = json_get(one, "used");
        text_table_add(&table, "%s", key);
        add_value(&table, key, json_get(one, "limit"));
        if (used)
            add_value(&table, key, used);
        else
            text_table_add(&table, "-");
        add_origin(&table, one);
    }
    text_table_show(&table, stdout);
    text_table_release(&table);
}

static void print_settings(const struct json *settings)
{
    struct text_table table;
    text_table_init(&table, setting_columns,
                    sizeof setting_columns / sizeof *setting_columns);
    for (size_t i = 0; i < json_count(settings); i++) {
        const struct json *one = json_item(settings, i);
        const char *key = json_text_or(one, "key", "");
        const char *name = json_text_or(one, "name", "");
        text_table_add(&table, "%s%s%s", json_text_or(one, "scope", ""),
                       *name ? " " : "", name);
        text_table_add(&table, "%s", key);
        add_value(&table, key, json_get(one, "value"));
        text_table_add(&table, "%s", json_text_or(one, "set", ""));
    }
    text_table_show(&table, stdout);
    text_table_release(&table);
}

static void print_limits(const struct json *answer)
{
    const struct json *settings = json_get(answer, "settings");
    if (json_flag_at(answer, "exempt"))
        printf("No limit applies to %s, who runs this berthd or is root.\n",
               json_text_or(answer, "user", ""));
    else
        print_own(json_get(answer, "limits"));
    if (json_count(settings) == 0)
        return;
    puts("\nSettings:");
    print_settings(settings);
}

/* ---- setting ---- */

/* The object that values go into: of a user, of a group, or the default. */
static struct json *make_scope(struct json *body, const char *word)
{
    struct json *values = json_new_object();
    bool is_user = strncmp(word, "user=", 5) == 0;
    if (!is_user && strncmp(word, "group=", 6) != 0) {
        json_put(body, "default", values);
        return values;
    }
    struct json *names = json_new_object();
    json_put(body, is_user ? "users" : "groups", names);
    json_put(names, strchr(word, '=') + 1, values);
    return values;
}

static bool is_scope(const char *word)
{
    return strcmp(word, "default") == 0 || strncmp(word, "user=", 5) == 0 ||
           strncmp(word, "group=", 6) == 0;
}

/* "set [user=U|group=G|default] KEY=VALUE…" as a request. */
static int read_settings(const struct flags *flags, struct json *body)
{
    uint32_t first = 1;
    if (flags->word_count > 1 && is_scope(flags->words[1]))
        first = 2;
    struct json *values = make_scope(body, first == 2 ? flags->words[1] : "default");
    if (flags->word_count <= first)
        return command_wrong(flags, "want KEY=VALUE after %s", flags->words[first - 1]);
    for (uint32_t i = first; i < flags->word_count; i++) {
        char key[40];
        const char *word = flags->words[i], *equals = strchr(word, '=');
        if (!equals || equals == word || (size_t)(equals - word) >= sizeof key)
            return command_wrong(flags, "\"%.60s\" is no limit, want KEY=VALUE", word);
        snprintf(key, sizeof key, "%.*s", (int)(equals - word), word);
        json_put_text(values, key, equals + 1);
    }
    return 0;
}

static int send_settings(const struct flags *flags, const struct json *body)
{
    struct json *answer = NULL;
    int status = connection_call(flags, "PATCH", "/v1/limits", body, &answer);
    if (status)
        return status;
    if (flags_get(flags, "json"))
        return format_print_json(answer);
    print_settings(json_get(answer, "settings"));
    json_free(answer);
    return 0;
}

static int limits_run(const struct flags *flags)
{
    const char *verb = flags->word_count > 0 ? flags->words[0] : NULL;
    if (!verb)
        return connection_show(flags, "/v1/limits", print_limits);
    struct json *body = json_new_object();
    int status;
    if (strcmp(verb, "reset") == 0) {
        json_put_flag(body, "reset", true);
        status =
            flags->word_count > 1 ? command_wrong(flags, "reset takes no words") : 0;
    } else if (strcmp(verb, "set") == 0) {
        status = read_settings(flags, body);
    } else {
        status =
            command_wrong(flags, "\"%.60s\" is not known, want set or reset", verb);
    }
    if (status == 0)
        status = send_settings(flags, body);
    json_free(body);
    return status;
}

const struct command command_limits = {
    .name = "limits",
    .group = "Use",
    .brief = "what you may have; for administrators: change it",
    .usage = "[--json] | set [user=U|group=G|default] KEY=VALUE… | reset",
    .flags = limits_flags,
    .more = "Keys: jobs waiting job_gpus job_time weight class grace connections\n"
            "bytes_in_flight bytes_stored submits_per_s; a value of none is no limit.\n"
            "What is set here is kept and goes before berthd.yaml, until reset.",
    .run = limits_run,
};
