/* prometheus.c - text for /metrics. */
#include "metrics/prometheus.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/buf.h"
#include "base/number.h"

bool prometheus_accepts_open(const char *accept)
{
    return accept && strstr(accept, "application/openmetrics-text");
}

void prometheus_begin(struct prometheus *out, struct buf *text, bool open)
{
    *out = (struct prometheus){ .text = text, .open = open };
}

void prometheus_end(struct prometheus *out)
{
    if (out->open)
        buf_text(out->text, "# EOF\n");
}

static bool is_name(const char *name)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
    if (!*name || !strchr(letters, *name))
        return false;
    for (; *name; name++)
        if (!strchr(letters, *name) && !(*name >= '0' && *name <= '9'))
            return false;
    return true;
}

static bool ends_with(const char *name, const char *unit)
{
    size_t count = strlen(name), unit_count = strlen(unit);
    return count > unit_count + 1 && name[count - unit_count - 1] == '_' &&
           strcmp(name + count - unit_count, unit) == 0;
}

/* Help text or a label: a backslash, a line break and a quote are escaped. */
static void add_escaped(struct buf *text, const char *words, bool quotes)
{
    for (; *words; words++) {
        if (*words == '\\')
            buf_text(text, "\\\\");
        else if (*words == '\n')
            buf_text(text, "\\n");
        else if (*words == '"' && quotes)
            buf_text(text, "\\\"");
        else
            buf_add(text, words, 1);
    }
}

static void begin_family(struct prometheus *out, const char *type, const char *name,
                         const char *unit, const char *help)
{
    assert(is_name(name));
    assert(!unit || ends_with(name, unit));
    assert(!ends_with(name, "total"));
    out->name = name;
    out->counter = strcmp(type, "counter") == 0;

    /* The older format knows a counter by its full name. */
    const char *suffix = out->counter && !out->open ? "_total" : "";
    buf_print(out->text, "# TYPE %s%s %s\n", name, suffix, type);
    if (unit && out->open)
        buf_print(out->text, "# UNIT %s %s\n", name, unit);
    buf_print(out->text, "# HELP %s%s ", name, suffix);
    add_escaped(out->text, help, out->open);
    buf_text(out->text, "\n");
}

void prometheus_counter(struct prometheus *out, const char *name, const char *unit,
                        const char *help)
{
    begin_family(out, "counter", name, unit, help);
}

void prometheus_gauge(struct prometheus *out, const char *name, const char *unit,
                      const char *help)
{
    begin_family(out, "gauge", name, unit, help);
}

/* The shortest text that is read back as the same number. */
static void add_number(struct buf *text, double value)
{
    if (isnan(value)) {
        buf_text(text, "NaN");
    } else if (isinf(value)) {
        buf_text(text, value > 0 ? "+Inf" : "-Inf");
    } else {
        char number[NUMBER_TEXT_BYTES];
        number_shortest(number, value, 6);
        buf_text(text, number);
    }
}

static void begin_sample(struct prometheus *out, const char *suffix,
                         const struct prometheus_label *labels)
{
    assert(out->name);
    buf_print(out->text, "%s%s", out->name, suffix);
    for (const struct prometheus_label *label = labels; label && label->name; label++) {
        assert(is_name(label->name));
        buf_print(out->text, "%s%s=\"", label == labels ? "{" : ",", label->name);
        add_escaped(out->text, label->value, true);
        buf_text(out->text, "\"");
    }
    buf_text(out->text, labels && labels->name ? "} " : " ");
}

void prometheus_value(struct prometheus *out, const struct prometheus_label *labels,
                      double value)
{
    assert(!out->counter || value >= 0);
    begin_sample(out, out->counter ? "_total" : "", labels);
    add_number(out->text, value);
    buf_text(out->text, "\n");
}

void prometheus_count(struct prometheus *out, const struct prometheus_label *labels,
                      uint64_t value)
{
    begin_sample(out, out->counter ? "_total" : "", labels);
    buf_print(out->text, "%" PRIu64 "\n", value);
}
