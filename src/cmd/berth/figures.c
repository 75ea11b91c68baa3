/* figures.c - the figures of one run or of several policies as a table. */
#include "cmd/berth/figures.h"

#include <math.h>
#include <string.h>

#include "base/units.h"
#include "cmd/berth/terminal.h"
#include "study/comparison.h"

#define LABEL_WIDTH 38

/* 1234567 as "1,234,567". */
static const char *format_with_commas(char *text, size_t size, double value)
{
    char digits[32];
    snprintf(digits, sizeof digits, "%.0f", value);
    size_t length = strlen(digits);
    size_t used = 0;
    for (size_t i = 0; i < length && used + 2 < size; i++) {
        if (i > 0 && (length - i) % 3 == 0 && digits[i - 1] != '-')
            text[used++] = ',';
        text[used++] = digits[i];
    }
    text[used] = '\0';
    return text;
}

/* A value with its unit, as people read it: "4.2 h", "87.3 %", "1,234". */
static const char *format_value(char *text, size_t size,
                                const struct summary_figure *figure, double value)
{
    if (isnan(value))
        snprintf(text, size, "-");
    else if (strcmp(figure->unit, "s") == 0)
        units_show_time(text, (unsigned)size, value);
    else if (strcmp(figure->unit, "GPU-s") == 0)
        snprintf(text, size, "%.1f GPU-h", value / 3600);
    else if (strcmp(figure->unit, "share") == 0)
        snprintf(text, size, "%.1f %%", value * 100);
    else if (strcmp(figure->unit, "usd") == 0)
        snprintf(text, size, "$%.2f", value);
    else if (figure->whole || value >= 1000)
        format_with_commas(text, size, value);
    else
        snprintf(text, size, "%.2f", value);
    return text;
}

/* The best policy by this figure; UINT32_MAX if there is none. */
static uint32_t find_best(const struct comparison *comparison, uint32_t figure)
{
    enum summary_better better = summary_figures[figure].better;
    uint32_t best = UINT32_MAX;
    double best_value = 0;
    bool differs = false;
    if (better == BETTER_NONE || comparison->policy_count < 2)
        return UINT32_MAX;
    for (uint32_t p = 0; p < comparison->policy_count; p++) {
        double value = comparison_estimate(comparison, p, figure).mean;
        if (isnan(value))
            continue;
        differs = differs || (best != UINT32_MAX && value != best_value);
        if (best == UINT32_MAX ||
            (better == BETTER_LESS ? value < best_value : value > best_value)) {
            best = p;
            best_value = value;
        }
    }
    return differs ? best : UINT32_MAX;
}

static void print_cell(const struct comparison *comparison, uint32_t policy,
                       uint32_t figure, bool best, bool colour, int width, FILE *file)
{
    struct comparison_interval estimate =
        comparison_estimate(comparison, policy, figure);
    char value[48];
    char cell[96];
    format_value(value, sizeof value, &summary_figures[figure], estimate.mean);
    if (estimate.half > 0 && estimate.mean != 0)
        snprintf(cell, sizeof cell, "%s ±%.0f%%", value,
                 fabs(estimate.half / estimate.mean) * 100);
    else
        snprintf(cell, sizeof cell, "%s", value);
    fprintf(file, "%*s%s%s%s", width - (int)terminal_text_length(cell) - 2, "",
            best && colour ? "\033[1;32m" : "", cell, best && colour ? "\033[0m" : "");
    fputs(best ? " *" : "  ", file);
}

static bool has_both_classes(const struct comparison *comparison)
{
    const struct summary *summary = &comparison->runs[0].result.summary;
    return summary->cdfs[CDF_JCT][CDF_TE].count > 0 &&
           summary->cdfs[CDF_JCT][CDF_BE].count > 0;
}

/* Whether a figure is not shown: zero for all policies, or contained in another line. */
static bool is_hidden(const struct comparison *comparison, uint32_t figure)
{
    const char *id = summary_figures[figure].id;
    if (strcmp(id, "ledger.preemptions") == 0)
        return true;
    if (strncmp(id, "slowdown.", 9) == 0 && strncmp(id, "slowdown.all", 12) != 0 &&
        !has_both_classes(comparison))
        return true;
    for (uint32_t p = 0; p < comparison->policy_count; p++) {
        struct comparison_interval estimate =
            comparison_estimate(comparison, p, figure);
        if (estimate.count > 0 && estimate.mean != 0)
            return false;
    }
    return true;
}

/* The layout of a table: labels stand beside their figures, or above if that is too wide. */
struct figures_layout {
    int label;        /* columns of a label; 0: it has a line of its own */
    int width;        /* of a policy's column                            */
    uint32_t at_once; /* policies beside each other                      */
};

static struct figures_layout choose_layout(const struct comparison *comparison,
                                           FILE *file)
{
    int width = comparison->seed_count > 1 ? 20 : 15;
    for (uint32_t p = 0; p < comparison->policy_count; p++) {
        int longest = (int)strlen(comparison_name(comparison, p)) + 4;
        width = longest > width ? longest : width;
    }
    int columns = (int)terminal_width(file);
    if (columns == 0) /* no terminal: as wide as it is */
        return (struct figures_layout){ LABEL_WIDTH, width, comparison->policy_count };
    int label = columns < LABEL_WIDTH + width ? 0 : LABEL_WIDTH;
    int fit = (columns - label) / width;
    return (struct figures_layout){ label, width, fit < 1 ? 1 : (uint32_t)fit };
}

static void print_label(const struct figures_layout *layout, const char *label,
                        FILE *file)
{
    fprintf(file, "%-*s%s", layout->label, label,
            layout->label || !label[0] ? "" : "\n");
}

static void print_columns(const struct comparison *comparison, uint32_t from,
                          uint32_t to, const struct figures_layout *layout, FILE *file)
{
    bool colour = terminal_has_colours(file);
    print_label(layout, "", file);
    for (uint32_t p = from; p < to; p++)
        fprintf(file, "%*s  ", layout->width - 2, comparison_name(comparison, p));
    fputc('\n', file);
    for (uint32_t f = 0; summary_figures[f].id; f++) {
        if (is_hidden(comparison, f))
            continue;
        uint32_t best = find_best(comparison, f);
        print_label(layout, summary_figures[f].label, file);
        for (uint32_t p = from; p < to; p++)
            print_cell(comparison, p, f, p == best, colour, layout->width, file);
        fputc('\n', file);
    }
}

void figures_print(const struct comparison *comparison, FILE *file)
{
    struct figures_layout layout = choose_layout(comparison, file);
    uint32_t count = comparison->policy_count;
    for (uint32_t from = 0; from < count; from += layout.at_once) {
        if (from > 0)
            fputc('\n', file);
        uint32_t to = count - from < layout.at_once ? count : from + layout.at_once;
        print_columns(comparison, from, to, &layout, file);
    }
    if (count > 1)
        fputs("* best of the row\n", file);
    if (comparison->seed_count > 1)
        fprintf(file, "± half width of the 95 %% interval over %u seeds\n",
                comparison->seed_count);
}
