/* rates.c - berth rates: how fast each kind of job runs on each type of GPU. */
#include <math.h>
#include <string.h>

#include "base/buf.h"
#include "cmd/berth/connection.h"
#include "cmd/berth/format.h"
#include "cmd/berth/text_table.h"

#define KIND_ROWS_MAX 128 /* the rows of a kind stand together */

static const struct flag rates_flags[] = {
    { "csv", 0, NULL, "a throughput table, as 'berth sim --throughputs' reads it" },
    FLAG_JSON,
    CONNECTION_FLAGS,
    { 0 },
};

static const struct text_table_column columns[] = {
    { "KIND", .min = 12 },
    { "TYPE" },
    { "GPUS", .right = true },
    { "SPREAD" },
    { "STEPS/S", .right = true },
    { "FROM", .right = true, .spare = 2 },
    { "TO", .right = true, .spare = 2 },
    { "BASIS" },
    { "REPORTS", .right = true, .spare = 1 },
};

static const struct text_table_column pair_columns[] = {
    { "KIND", .min = 12 },
    { "BESIDE", .min = 12 },
    { "TYPE" },
    { "KEEPS", .right = true },
    { "FROM", .right = true, .spare = 2 },
    { "TO", .right = true, .spare = 2 },
    { "BASIS" },
    { "REPORTS", .right = true, .spare = 1 },
};

/* In percent, or nothing. */
static void add_part(struct text_table *table, const struct json *pair, const char *key)
{
    double part = json_number_or(pair, key, NAN);
    if (isnan(part))
        text_table_add(table, "%s", "");
    else
        text_table_add(table, "%.0f %%", 100 * part);
}

/* What kinds make beside others on the same GPUs, as a part of what they make alone. */
static void print_pairs(const struct json *pairs)
{
    struct text_table table;
    text_table_init(&table, pair_columns, sizeof pair_columns / sizeof *pair_columns);
    for (size_t i = 0; i < json_count(pairs); i++) {
        const struct json *pair = json_item(pairs, i);
        text_table_add(&table, "%s", json_text_or(pair, "kind", ""));
        text_table_add(&table, "%s", json_text_or(pair, "beside", ""));
        text_table_add(&table, "%s", json_text_or(pair, "type", ""));
        double n = json_number_or(pair, "n", NAN);
        add_part(&table, pair, "kept");
        add_part(&table, pair, "low");
        add_part(&table, pair, "high");
        text_table_add(&table, "%s", json_text_or(pair, "basis", ""));
        if (isnan(n))
            text_table_add(&table, "%s", "");
        else
            text_table_add(&table, "%.0f", n);
    }
    putchar('\n');
    text_table_show(&table, stdout);
    text_table_release(&table);
}

static bool is_spread(const struct json *rate)
{
    bool spread = false;
    json_as_flag(json_get(rate, "spread"), &spread);
    return spread;
}

static void print_rates(const struct json *answer)
{
    struct text_table table;
    const struct json *rates = json_get(answer, "rates");
    text_table_init(&table, columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < json_count(rates); i++) {
        const struct json *rate = json_item(rates, i);
        double n = json_number_or(rate, "n", NAN);
        text_table_add(&table, "%s", json_text_or(rate, "kind", ""));
        text_table_add(&table, "%s", json_text_or(rate, "type", ""));
        text_table_add(&table, "%.0f", json_number_or(rate, "gpus", 0));
        text_table_add(&table, "%s", is_spread(rate) ? "yes" : "");
        text_table_add(&table, "%.4g", json_number_or(rate, "steps_per_s", 0));
        text_table_add(&table, "%.4g", json_number_or(rate, "low", 0));
        text_table_add(&table, "%.4g", json_number_or(rate, "high", 0));
        text_table_add(&table, "%s", json_text_or(rate, "basis", ""));
        if (isnan(n))
            text_table_add(&table, "%s", "");
        else
            text_table_add(&table, "%.0f", n);
    }
    text_table_show(&table, stdout);
    text_table_release(&table);
    if (json_count(json_get(answer, "pairs")) > 0)
        print_pairs(json_get(answer, "pairs"));
}

/* A field in quotes, where it needs them. */
static void print_field(const char *text)
{
    if (!strpbrk(text, ",\"#")) {
        fputs(text, stdout);
        return;
    }
    putchar('"');
    for (; *text; text++)
        printf(*text == '"' ? "\"\"" : "%c", *text);
    putchar('"');
}

/* Tables have gangs of 1, 2, 4, … 128; others lie between. */
static bool has_column(double gpus)
{
    double log = log2(gpus);
    return gpus >= 1 && gpus <= 128 && log == floor(log);
}

static void print_csv(const struct json *answer)
{
    const struct json *rates = json_get(answer, "rates");
    fputs("kind,type,gpus,rate,rate_spread\n", stdout);
    for (size_t i = 0; i < json_count(rates); i++) {
        const struct json *rate = json_item(rates, i);
        const struct json *other = NULL;
        if (is_spread(rate) || !has_column(json_number_or(rate, "gpus", 0)))
            continue;
        size_t s = i < KIND_ROWS_MAX ? 0 : i - KIND_ROWS_MAX;
        for (; s < json_count(rates) && s < i + KIND_ROWS_MAX && !other; s++) {
            const struct json *one = json_item(rates, s);
            if (is_spread(one) &&
                strcmp(json_text_or(one, "kind", ""), json_text_or(rate, "kind", "")) ==
                    0 &&
                strcmp(json_text_or(one, "type", ""), json_text_or(rate, "type", "")) ==
                    0 &&
                json_number_or(one, "gpus", 0) == json_number_or(rate, "gpus", 0))
                other = one;
        }
        print_field(json_text_or(rate, "kind", ""));
        printf(",%s,%.0f,%.9g,", json_text_or(rate, "type", ""),
               json_number_or(rate, "gpus", 0), json_number_or(rate, "steps_per_s", 0));
        if (other)
            printf("%.9g", json_number_or(other, "steps_per_s", 0));
        putchar('\n');
    }
}

static int rates_run(const struct flags *flags)
{
    struct buf path;
    if (flags->word_count > 1)
        return command_wrong(flags, "'%.60s' is one word too many", flags->words[1]);
    buf_init(&path, 4096);
    buf_text(&path, "/v1/rates");
    if (flags->word_count == 1)
        connection_add_query(&path, "kind", flags->words[0]);
    int status = connection_show(flags, path.bytes,
                                 flags_get(flags, "csv") ? print_csv : print_rates);
    buf_release(&path);
    return status;
}

const struct command command_rates = {
    .name = "rates",
    .group = "Use",
    .brief = "how fast each kind of job runs on each type of GPU",
    .usage = "[KIND] [--json | --csv]",
    .flags = rates_flags,
    .run = rates_run,
};
