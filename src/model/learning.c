/* learning.c - how a simulated job's loss goes down with its steps. */
#include "model/learning.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/number.h"
#include "base/param.h"

const double learning_levels[LEARNING_LEVELS] = { 0.25, 0.50, 0.80, 0.90, 0.95, 0.99 };
const double learning_accuracies[LEARNING_ACCURACIES] = { 0.90, 0.95 };

#define AT(field) .offset = offsetof(struct learning, field)
#define KMAX \
    { \
        "kmax", FIELD_NUMBER, AT(kmax), "0", NULL, "step at which it is done", 0, 1e18 \
    }
#define NOISE \
    { \
        "noise", FIELD_NUMBER, AT(noise), "0", "share", \
            "deviation of what is reported, of the way from first to last", 0, 10 \
    }

static const struct field exp_params[] = {
    { "mu", FIELD_NUMBER, AT(mu), "0.9", NULL, "factor per step", 1e-9, 1 - 1e-12 },
    { "first", FIELD_NUMBER, AT(first), "1", NULL, "loss at step 0", -1e30, 1e30 },
    { "last", FIELD_NUMBER, AT(last), "0", NULL, "loss at the end", -1e30, 1e30 },
    KMAX,
    NOISE,
    { 0 },
};

static const struct field inv_params[] = {
    { "a", FIELD_NUMBER, AT(a), "0", NULL, "of the square", 0, 1e18 },
    { "b", FIELD_NUMBER, AT(b), "0.1", NULL, "of the step", 0, 1e18 },
    { "c", FIELD_NUMBER, AT(c), "1", NULL, "constant", 1e-18, 1e18 },
    { "first", FIELD_NUMBER, AT(first), "1", NULL, "loss at step 0", -1e30, 1e30 },
    { "last", FIELD_NUMBER, AT(last), "0", NULL, "loss at the end", -1e30, 1e30 },
    KMAX,
    NOISE,
    { 0 },
};

static const struct field acc_params[] = {
    { "tau", FIELD_NUMBER, AT(tau), "100", NULL, "steps to 63 %", 1e-9, 1e18 },
    { "first", FIELD_NUMBER, AT(first), "0", NULL, "accuracy at step 0", 0, 1 },
    { "last", FIELD_NUMBER, AT(last), "1", NULL, "accuracy at the end", 0, 1 },
    KMAX,
    NOISE,
    { 0 },
};

static const struct {
    const char *name;
    const struct field *params;
} families[] = {
    [LEARNING_EXP] = { "exp", exp_params },
    [LEARNING_INV] = { "inv", inv_params },
    [LEARNING_ACC] = { "acc", acc_params },
};

#define POINTS "points:"
#define LOSS_MAX 1e30
#define KMAX_MAX 1e18

#define FAMILIES (sizeof families / sizeof *families)

/* "40/2.3/1.7/1.5": numbers with strokes between them. */
static int parse_points(struct learning *learning, const char *text, float *points,
                        struct error *err)
{
    struct learning parsed = { .family = LEARNING_POINTS, .points = points };
    char *end;
    parsed.kmax = strtod(text, &end);
    if (end == text || !(parsed.kmax > 0 && parsed.kmax <= KMAX_MAX))
        return error_set(err, -EINVAL,
                         "points: '%.40s' does not begin with the last step", text);
    for (; *end == '/'; text = end) {
        text = end + 1;
        double loss = strtod(text, &end);
        if (end == text || !(fabs(loss) <= LOSS_MAX))
            return error_set(err, -EINVAL, "points: '%.40s' is no loss", text);
        if (parsed.point_count == LEARNING_POINTS_MAX)
            return error_set(err, -EINVAL, "points: more than %d of them",
                             LEARNING_POINTS_MAX);
        points[parsed.point_count++] = (float)loss;
    }
    if (*end || parsed.point_count < 2)
        return error_set(err, -EINVAL,
                         "points: want the last step and two losses or more");
    parsed.first = points[0];
    parsed.last = points[parsed.point_count - 1];
    if (parsed.first <= parsed.last)
        return error_set(err, -EINVAL, "points: the last loss is not below the first");
    *learning = parsed;
    return 0;
}

int learning_parse_points(struct learning *learning, const char *text,
                          float points[LEARNING_POINTS_MAX], struct error *err)
{
    if (points && strncmp(text, POINTS, strlen(POINTS)) == 0)
        return parse_points(learning, text + strlen(POINTS), points, err);
    size_t bytes = strcspn(text, ":");
    struct learning parsed = { 0 };
    for (uint32_t i = LEARNING_EXP; i < FAMILIES; i++)
        if (strlen(families[i].name) == bytes &&
            strncmp(families[i].name, text, bytes) == 0)
            parsed.family = (enum learning_family)i;
    if (parsed.family == LEARNING_NONE)
        return error_set(err, -EINVAL, "no curve '%.40s', want exp, inv or acc", text);
    const struct field *params = families[parsed.family].params;
    param_defaults(params, &parsed);
    int r = param_parse(params, &parsed, families[parsed.family].name,
                        text[bytes] ? text + bytes + 1 : "", err);
    if (r < 0)
        return r;
    bool falls = parsed.family == LEARNING_ACC ? parsed.first < parsed.last
                                               : parsed.first > parsed.last;
    if (!falls || (parsed.family == LEARNING_INV && parsed.a + parsed.b <= 0))
        return error_set(err, -EINVAL, "curve '%.80s' does not get better", text);
    *learning = parsed;
    return 0;
}

static void put_number(struct buf *buf, double number)
{
    char text[NUMBER_TEXT_BYTES];
    number_shortest(text, number, 6);
    buf_text(buf, text);
}

/* The shortest text that reads as the same float. */
static void put_float(struct buf *buf, float number)
{
    char text[40];
    for (int digits = 3; digits <= 9; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, (double)number);
        if (strtof(text, NULL) == number)
            break;
    }
    buf_text(buf, text);
}

static const char *points_text(const struct learning *learning,
                               char text[LEARNING_TEXT_BYTES])
{
    struct buf buf;
    buf_init(&buf, LEARNING_TEXT_BYTES);
    buf_text(&buf, POINTS);
    put_number(&buf, learning->kmax);
    for (uint32_t i = 0; i < learning->point_count; i++) {
        buf_text(&buf, "/");
        put_float(&buf, learning->points[i]);
    }
    snprintf(text, LEARNING_TEXT_BYTES, "%s", buf.bytes);
    buf_release(&buf);
    return text;
}

const char *learning_text(const struct learning *learning,
                          char text[LEARNING_TEXT_BYTES])
{
    if (learning->family == LEARNING_POINTS)
        return points_text(learning, text);
    struct learning standard = { 0 };
    const struct field *params = families[learning->family].params;
    param_defaults(params, &standard);
    struct buf buf;
    buf_init(&buf, LEARNING_TEXT_BYTES);
    buf_text(&buf, families[learning->family].name);
    const char *before = ":";
    for (const struct field *p = params; p->name; p++) {
        double value = *(const double *)((const char *)learning + p->offset);
        if (value == *(const double *)((const char *)&standard + p->offset))
            continue;
        buf_print(&buf, "%s%s=", before, p->name);
        put_number(&buf, value);
        before = ",";
    }
    snprintf(text, LEARNING_TEXT_BYTES, "%s", buf.bytes);
    buf_release(&buf);
    return text;
}

/* From 1 at step 0 to 0 in the limit. */
static double curve_shape(const struct learning *l, double k)
{
    switch (l->family) {
    case LEARNING_EXP:
        return pow(l->mu, k);
    case LEARNING_INV:
        return l->c / (l->a * k * k + l->b * k + l->c);
    case LEARNING_ACC:
        return exp(-k / l->tau);
    case LEARNING_POINTS:
    case LEARNING_NONE:
        break;
    }
    return 1;
}

/* Where the shape is so. */
static double shape_step(const struct learning *l, double at)
{
    switch (l->family) {
    case LEARNING_EXP:
        return log(at) / log(l->mu);
    case LEARNING_INV: {
        double rest = l->c * (1 - 1 / at); /* a k^2 + b k + rest = 0 */
        if (l->a == 0)
            return -rest / l->b;
        double root = sqrt(l->b * l->b - 4 * l->a * rest);
        return -2 * rest / (l->b + root);
    }
    case LEARNING_ACC:
        return -l->tau * log(at);
    case LEARNING_POINTS:
    case LEARNING_NONE:
        break;
    }
    return INFINITY;
}

/* What of the shape is left at kmax, and is not counted. */
static double rest_of(const struct learning *l)
{
    return l->kmax > 0 ? curve_shape(l, l->kmax) : 0;
}

static double points_loss(const struct learning *l, double steps)
{
    double at = steps / l->kmax * (l->point_count - 1);
    if (!(at < l->point_count - 1))
        return l->points[l->point_count - 1];
    uint32_t before = at > 0 ? (uint32_t)at : 0;
    double part = at > 0 ? at - before : 0;
    double loss = l->points[before];
    return loss + part * (l->points[before + 1] - loss);
}

double learning_loss(const struct learning *l, double steps)
{
    if (l->family == LEARNING_POINTS)
        return points_loss(l, steps);
    double rest = rest_of(l);
    double share = (curve_shape(l, steps) - rest) / (1 - rest);
    if (l->kmax > 0 && steps >= l->kmax)
        share = 0;
    double value = l->last + (l->first - l->last) * share;
    return l->family == LEARNING_ACC ? 1 - value : value;
}

/* Up to a step later where the curve dips between two whole steps only. */
static double points_step(const struct learning *l, double loss)
{
    uint32_t i = 0;
    while (i < l->point_count && !(l->points[i] <= loss))
        i++;
    if (i == 0 || i == l->point_count)
        return i == 0 ? 0 : INFINITY;
    double above = l->points[i - 1];
    double part = (above - loss) / (above - l->points[i]);
    return ceil((i - 1 + part) * l->kmax / (l->point_count - 1) - 1e-9);
}

double learning_step(const struct learning *l, double loss)
{
    if (l->family == LEARNING_POINTS)
        return points_step(l, loss);
    double value = l->family == LEARNING_ACC ? 1 - loss : loss;
    double share = (value - l->last) / (l->first - l->last);
    if (share >= 1)
        return 0;
    double rest = rest_of(l);
    double at = share * (1 - rest) + rest;
    if (!(at > 0))
        return INFINITY;
    double step = floor(fmax(shape_step(l, at), 0));
    if (!(step < 1e18))
        return INFINITY;
    while (step > 0 && learning_loss(l, step - 1) <= loss)
        step--;
    for (int i = 0; i < 3 && learning_loss(l, step) > loss; i++)
        step++;
    return step;
}
