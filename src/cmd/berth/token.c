/* token.c - berth token: credentials for other machines and programs. */
#include <inttypes.h>
#include <math.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "cmd/berth/connection.h"
#include "cmd/berth/format.h"
#include "cmd/berth/text_table.h"

static const struct flag token_flags[] = {
    { "scope", 0, "SCOPE", "of create: flow, read, submit or admin" },
    { "user", 0, "USER", "of create: whose it is (default: yours)" },
    { "expires", 0, "T",
      "of create: how long it is valid, as 30d (default: for ever)" },
    FLAG_JSON,
    CONNECTION_FLAGS,
    { 0 },
};

/* ---- create ---- */

/* A user by name or number; 0, or an exit status. */
static int put_user(const struct flags *flags, struct json *body, const char *user)
{
    const struct passwd *entry = getpwnam(user);
    char *end;
    unsigned long uid = strtoul(user, &end, 10);
    if (!entry && (*user < '0' || *user > '9' || *end || uid >= UINT32_MAX))
        return command_wrong(flags, "--user: there is no user \"%.60s\" here", user);
    json_put_count(body, "uid", entry ? (int64_t)entry->pw_uid : (int64_t)uid);
    return 0;
}

static int fill_body(const struct flags *flags, struct json *body)
{
    const char *scope = flags_get(flags, "scope");
    const char *user = flags_get(flags, "user");
    const char *expires = flags_get(flags, "expires");
    int64_t life_ns;
    if (!scope)
        return command_wrong(flags, "--scope: want flow, read, submit or admin");
    json_put_text(body, "scope", scope);
    if (expires && (!units_time(expires, &life_ns) || life_ns < NS_PER_S))
        return command_wrong(flags,
                             "--expires: want a time from 1s on, as 12h or 30d, not "
                             "\"%.40s\"",
                             expires);
    if (expires)
        json_put_number(body, "expires_s", (double)life_ns / NS_PER_S);
    return user ? put_user(flags, body, user) : 0;
}

static int create_token(const struct flags *flags)
{
    struct json *body = json_new_object(), *answer = NULL;
    int status =
        flags->word_count > 1
            ? command_wrong(flags, "create: unexpected \"%.60s\"", flags->words[1])
            : fill_body(flags, body);
    if (status == 0)
        status = connection_call(flags, "POST", "/v1/tokens", body, &answer);
    json_free(body);
    if (status)
        return status;
    if (flags_get(flags, "json"))
        return format_print_json(answer);
    puts(json_text_or(answer, "token", ""));
    json_free(answer);
    return 0;
}

/* ---- list ---- */

static const struct text_table_column columns[] = {
    { "ID", .right = true },     { "SCOPE" },
    { "USER", .min = 8 },        { "STATE" },
    { "CREATED", .spare = 3 },   { "EXPIRES", .spare = 1 },
    { "LAST USED", .spare = 2 },
};

static void add_time(struct text_table *table, const struct json *token,
                     const char *key, const char *otherwise)
{
    char text[64];
    double at = json_number_or(token, key, NAN);
    text_table_add(table, "%s",
                   isnan(at) ? otherwise : format_time(text, sizeof text, at));
}

static void print_tokens(const struct json *answer)
{
    const struct json *tokens = json_get(answer, "tokens");
    struct text_table table;
    text_table_init(&table, columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < json_count(tokens); i++) {
        const struct json *token = json_item(tokens, i);
        text_table_add(&table, "%.0f", json_number_or(token, "id", 0));
        text_table_add(&table, "%s", json_text_or(token, "scope", ""));
        text_table_add(&table, "%s", json_text_or(token, "user", ""));
        text_table_add(&table, "%s", json_text_or(token, "state", ""));
        add_time(&table, token, "created", "");
        add_time(&table, token, "expires", "never");
        add_time(&table, token, "used", "never");
    }
    if (json_count(tokens) > 0)
        text_table_show(&table, stdout);
    else
        puts("There are no tokens.");
    text_table_release(&table);
    printf("\nFingerprint of berthd's key: %s\n",
           json_text_or(answer, "fingerprint", "not known"));
}

/* ---- revoke ---- */

static int revoke_tokens(const struct flags *flags)
{
    struct call *call = NULL;
    if (flags->word_count < 2)
        return command_wrong(flags, "revoke: want the numbers of tokens");
    for (uint32_t i = 1; i < flags->word_count; i++)
        if (strspn(flags->words[i], "0123456789") != strlen(flags->words[i]))
            return command_wrong(flags, "revoke: \"%.60s\" is no number of a token",
                                 flags->words[i]);
    int status = connection_open(&call, flags);
    if (status)
        return status;
    for (uint32_t i = 1; i < flags->word_count; i++) {
        char path[64];
        struct error err = { "" };
        snprintf(path, sizeof path, "/v1/tokens/%.20s", flags->words[i]);
        int r = call_json(call, "DELETE", path, NULL, NULL, &err);
        if (r < 0)
            status = command_status(flags, r, &err);
    }
    call_close(call);
    return status;
}

static int token_run(const struct flags *flags)
{
    const char *verb = flags->word_count > 0 ? flags->words[0] : "";
    if (strcmp(verb, "create") == 0)
        return create_token(flags);
    if (flags_get(flags, "scope") || flags_get(flags, "user") ||
        flags_get(flags, "expires"))
        return command_wrong(flags, "--scope, --user and --expires belong to 'create'");
    if (strcmp(verb, "revoke") == 0)
        return revoke_tokens(flags);
    if (strcmp(verb, "list") == 0 && flags->word_count == 1)
        return connection_show(flags, "/v1/tokens", print_tokens);
    return command_wrong(flags, "want create --scope SCOPE, list, or revoke ID…");
}

const struct command command_token = {
    .name = "token",
    .group = "Use",
    .brief = "make, list and revoke credentials for other machines and programs",
    .usage = "create --scope SCOPE [flags] | list | revoke ID…",
    .flags = token_flags,
    .more = "A token is printed once, when it is made; berthd keeps only a digest.\n"
            "  flow    for berth-flowd: levels of packets, and bytes sent\n"
            "  read    what its user may read\n"
            "  submit  that, and its user's own jobs\n"
            "  admin   everything, as berthd's own user\n",
    .run = token_run,
};
