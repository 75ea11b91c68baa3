/* fit.c - berth fit: the family of a learning curve, and a forecast of its values. */
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/json.h"
#include "cmd/berth/command.h"
#include "predict/curve.h"
#include "workload/curves.h"

#define AHEAD 10
#define NUMBER_MAX 1e15

static const struct flag fit_flags[] = {
    { "at", 0, "K", "look no further than point K; by default at all of them" },
    { "ahead", 0, "N", "how many points ahead; 10" },
    { "json", 0, NULL, "for programs: one object" },
    { 0 },
};

/* The flags. */
struct fit_query {
    bool has_at;
    double at, ahead;
};

/* The point of a curve to forecast from: points that may be used, and how many ahead. */
struct fit_position {
    uint32_t seen;
    double at, ahead_points;
};

struct fit_answer {
    const char *id, *run_id, *metric, *algo;
    struct fit_position place;
    double ahead; /* as given */
    struct curve_fit fit;
    struct forecast forecast;
    bool predictable;
    struct fit_answer *next;
};

/* --- which points -------------------------------------------------------------------------- */

/* Whether most steps differ by one, so that they number the points. */
static bool has_unit_steps(const struct curves_one *one)
{
    uint32_t ones = 0;
    for (uint32_t i = 1; i < one->count; i++)
        ones += one->step[i] - one->step[i - 1] == 1;
    return 2 * ones >= one->count - 1;
}

/* How many points there are up to a step. */
static uint32_t count_points_until(const struct curves_one *one, double step)
{
    uint32_t count = 0;
    while (count < one->count && one->step[count] <= step)
        count++;
    return count;
}

/*
 * K counts points.  Where steps differ by one, K is a step.  A K that is larger than the
 * number of points but not than the last step is a step as well, and so is N.
 */
static struct fit_position find_position(const struct curves_one *one,
                                         const struct fit_query *asked)
{
    bool ones = has_unit_steps(one);
    double last = one->step[one->count - 1];
    double end = ones ? last : one->count;
    if (!asked->has_at || (asked->at >= end && (ones || asked->at > last)))
        return (struct fit_position){ one->count, end, asked->ahead };
    if (!ones && asked->at <= one->count) {
        uint32_t seen = (uint32_t)asked->at;
        return (struct fit_position){ seen, seen, asked->ahead };
    }
    uint32_t seen = count_points_until(one, asked->at);
    double way = seen ? asked->at + asked->ahead - one->step[seen - 1] : 0;
    return (struct fit_position){ seen, asked->at,
                                  way / forecast_gap(one->step, seen) };
}

static void answer_curve(struct curve *curve, const struct curves_one *one,
                         const struct fit_query *asked, struct fit_answer *ret_answer)
{
    ret_answer->place = find_position(one, asked);
    ret_answer->ahead = asked->ahead;
    curve_init(curve, NULL);
    for (uint32_t i = 0; i < ret_answer->place.seen; i++)
        curve_add(curve, one->step[i], one->value[i]);
    ret_answer->forecast =
        curve_forecast(curve, ret_answer->place.ahead_points, &ret_answer->predictable);
    ret_answer->fit = curve_fit(curve);
}

/* --- for programs ------------------------------------------------------------------- */

/* The parameters of inv for k = step, or for k = step - origin if the origin is above 0. */
static struct family_fit shift_to_origin(struct family_fit fit)
{
    double o = fit.origin;
    if (fit.family != FAMILY_INV || o > 0)
        return fit;
    fit.c = fit.c - fit.b * o + fit.a * o * o;
    fit.b = fit.b - 2 * fit.a * o;
    fit.origin = 0;
    return fit;
}

static struct json *params_json(const struct family_fit *best)
{
    struct family_fit fit = shift_to_origin(*best);
    struct json *params = json_new_object();
    if (fit.family == FAMILY_INV) {
        json_put_number(params, "a", fit.a);
        json_put_number(params, "b", fit.b);
        json_put_number(params, "c", fit.c);
        json_put_number(params, "d", fit.limit);
        if (fit.origin > 0)
            json_put_number(params, "origin", fit.origin);
    } else if (fit.family == FAMILY_EXP) {
        json_put_number(params, "mu", family_mu(&fit));
        json_put_number(params, "b", fit.shift);
        json_put_number(params, "c", fit.limit);
    } else {
        json_put_number(params, "c", fit.limit);
    }
    json_put_count(params, "sign", fit.sign < 0 ? -1 : 1);
    return params;
}

static struct json *answer_json(const struct fit_answer *answer)
{
    struct json *row = json_new_object();
    json_put_text(row, "id", answer->id);
    if (answer->run_id[0])
        json_put_text(row, "run_id", answer->run_id);
    if (answer->metric[0])
        json_put_text(row, "metric", answer->metric);
    if (answer->algo[0])
        json_put_text(row, "algo", answer->algo);
    if (answer->place.seen > 0) {
        json_put_text(row, "family", family_name(answer->fit.best.family));
        json_put(row, "params", params_json(&answer->fit.best));
    }
    json_put_count(row, "points", answer->place.seen);
    json_put_number(row, "at", answer->place.at);
    json_put_number(row, "ahead", answer->ahead);
    if (answer->place.seen > 0) {
        json_put_number(row, "step", answer->forecast.step);
        json_put_number(row, "predicted", answer->forecast.value);
    }
    if (answer->forecast.has_interval) {
        json_put_number(row, "low", answer->forecast.low);
        json_put_number(row, "high", answer->forecast.high);
    }
    json_put_flag(row, "predictable", answer->predictable);
    return row;
}

static void print_json(const struct fit_answer *answers)
{
    struct json *root = json_new_object();
    struct json *array = json_new_array();
    for (; answers; answers = answers->next)
        json_add(array, answer_json(answers));
    json_put(root, "curves", array);
    json_print(root, stdout, true);
    json_free(root);
}

/* --- for people --------------------------------------------------------------------- */

static const char *format_formula(char *text, size_t size,
                                  const struct family_fit *best)
{
    struct family_fit fit = shift_to_origin(*best);
    const char *minus = fit.sign < 0 ? " - " : " + ";
    if (fit.family == FAMILY_INV && fit.origin > 0)
        snprintf(text, size, "%.4g%s1/(%.3g k² + %.3g k + %.3g), k = step - %.6g",
                 fit.limit, minus, fit.a, fit.b, fit.c, fit.origin);
    else if (fit.family == FAMILY_INV)
        snprintf(text, size, "%.4g%s1/(%.3g k² + %.3g k + %.3g)", fit.limit, minus,
                 fit.a, fit.b, fit.c);
    else if (fit.family == FAMILY_EXP)
        snprintf(text, size, "%.4g%s%.6g^(k - %.4g)", fit.limit, minus, family_mu(&fit),
                 fit.shift);
    else
        snprintf(text, size, "%.4g", fit.limit);
    return text;
}

static void print_table(const struct fit_answer *answers)
{
    int width = 5;
    for (const struct fit_answer *a = answers; a; a = a->next)
        if ((int)strlen(a->id) > width)
            width = (int)strlen(a->id);
    width = width < 60 ? width : 60;
    printf("%-*s %8s %8s %11s %25s  %s\n", width, "curve", "at", "ahead", "predicted",
           "4 of 5 times between", "family");
    for (const struct fit_answer *a = answers; a; a = a->next) {
        char text[160];
        printf("%-*.60s %8.8g %8.6g", width, a->id, a->place.at, a->ahead);
        if (a->place.seen == 0) {
            printf("  no point so far\n");
            continue;
        }
        printf(" %11.6g", a->forecast.value);
        if (a->forecast.has_interval)
            printf(" %12.6g %12.6g", a->forecast.low, a->forecast.high);
        else
            printf(" %25s", "");
        printf("  %s%s\n", format_formula(text, sizeof text, &a->fit.best),
               a->predictable ? "" : "; not predictable");
    }
}

/* --- the command ---------------------------------------------------------------------- */

static int answer_curves(struct curves *curves, const struct fit_query *asked,
                         struct arena *arena, struct fit_answer **ret_answers,
                         struct error *err)
{
    struct curve *curve = arena_new(arena, struct curve);
    struct fit_answer **end = ret_answers;
    struct curves_one one;
    int r;
    while ((r = curves_next(curves, &one, err)) > 0) {
        struct fit_answer *next = arena_new(arena, struct fit_answer);
        next->id = arena_text(arena, one.id);
        next->run_id = arena_text(arena, one.run_id);
        next->metric = arena_text(arena, one.metric);
        next->algo = arena_text(arena, one.algo);
        answer_curve(curve, &one, asked, next);
        *end = next;
        end = &next->next;
    }
    return r;
}

static int fit_run(const struct flags *flags)
{
    if (flags->word_count != 1)
        return command_wrong(flags, "want one file; see 'berth fit --help'");
    struct fit_query asked = {
        .has_at = flags_get(flags, "at") != NULL,
        .at = flags_number(flags, "at", 0, NUMBER_MAX, 0),
        .ahead = flags_number(flags, "ahead", 0, NUMBER_MAX, AHEAD),
    };
    struct arena arena;
    struct curves curves;
    struct fit_answer *answers = NULL;
    struct error err;
    arena_init(&arena, 0);
    int r = curves_open(&curves, flags->words[0], &err);
    if (r == 0) {
        r = answer_curves(&curves, &asked, &arena, &answers, &err);
        curves_release(&curves);
    }
    if (r == 0 && flags_get(flags, "json"))
        print_json(answers);
    else if (r == 0)
        print_table(answers);
    arena_release(&arena);
    return command_status(flags, r, &err);
}

const struct command command_fit = {
    .name = "fit",
    .group = "Study",
    .brief = "fit learning curves and say where they will be",
    .usage = "FILE.csv [--at K] [--ahead N] [--json]",
    .flags = fit_flags,
    .more =
        "FILE.csv has columns step and loss, or run_id, metric, step and value; it may "
        "be\ngzip or zstd, or - for standard input.  K and N count points: where steps "
        "are\n1, 2, 3, … they are steps.",
    .run = fit_run,
};
