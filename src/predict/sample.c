/* sample.c - points on one scale, for fitting families to them. */
#include "predict/sample.h"

#include <math.h>

/* Four numbers at any address. */
typedef double quad_there __attribute__((vector_size(32), aligned(8), may_alias));
#define LOAD(from) (*(const quad_there *)(from))

/*
 * Whether values fall or rise with the step, by their covariance: 1 down, -1 up, 0
 * neither.
 */
WIDE static double covariance_sign(const struct family_points *points)
{
    quad w1 = { 0 }, wx = { 0 }, wy = { 0 }, wxy = { 0 };
    double x0 = points->step[0];
    double y0 = points->value[0];
    uint32_t i = 0;
    for (; i + 4 <= points->count; i += 4) {
        quad w = LOAD(points->weight + i);
        quad x = LOAD(points->step + i) - x0;
        quad y = LOAD(points->value + i) - y0;
        w1 += w;
        wx += w * x;
        wy += w * y;
        wxy += w * x * y;
    }
    double all[4] = { sum_of(&w1), sum_of(&wx), sum_of(&wy), sum_of(&wxy) };
    for (; i < points->count; i++) {
        double w = points->weight[i];
        double x = points->step[i] - x0;
        double y = points->value[i] - y0;
        all[0] += w;
        all[1] += w * x;
        all[2] += w * y;
        all[3] += w * x * y;
    }
    double together = all[0] * all[3] - all[1] * all[2];
    return together > 0 ? -1 : together < 0 ? 1 : 0;
}

double sample_sign(const struct family_points *points)
{
    return points->sign != 0 || points->count == 0 ? points->sign
                                                   : covariance_sign(points);
}

/* The lowest and the highest of values. */
WIDE static void find_range(const double *value, uint32_t count, double *ret_low,
                            double *ret_high)
{
    double low[4] = { value[0], value[0], value[0], value[0] };
    double high[4] = { value[0], value[0], value[0], value[0] };
    uint32_t whole = count & ~UINT32_C(3);
    for (uint32_t i = 0; i < whole; i += 4)
        for (uint32_t lane = 0; lane < 4; lane++) {
            double v = value[i + lane];
            low[lane] = v < low[lane] ? v : low[lane];
            high[lane] = v > high[lane] ? v : high[lane];
        }
    for (uint32_t i = whole; i < count; i++) {
        low[0] = value[i] < low[0] ? value[i] : low[0];
        high[0] = value[i] > high[0] ? value[i] : high[0];
    }
    for (uint32_t lane = 1; lane < 4; lane++) {
        low[0] = low[lane] < low[0] ? low[lane] : low[0];
        high[0] = high[lane] > high[0] ? high[lane] : high[0];
    }
    *ret_low = low[0];
    *ret_high = high[0];
}

/* Scale the points; the last quad is filled up with the last point. */
WIDE static void fill_sample(struct sample *s, const struct family_points *points)
{
    double origin = s->origin;
    double base = s->base;
    double to_x = 1 / s->span;
    double to_y = 1 / s->scale;
    uint32_t count = points->count;
    uint32_t whole = count / 4;
    quad weight = { 0 };
    for (uint32_t i = 0; i < whole; i++) {
        quad w = LOAD(points->weight + 4 * i);
        s->x[i] = (LOAD(points->step + 4 * i) - origin) * to_x;
        s->y[i] = (LOAD(points->value + 4 * i) - base) * to_y;
        s->w[i] = w;
        weight += w;
    }
    for (uint32_t lane = 0; lane < 4 && count % 4; lane++) {
        uint32_t i = 4 * whole + lane;
        uint32_t at = i < count ? i : count - 1;
        s->x[whole][lane] = (points->step[at] - origin) * to_x;
        s->y[whole][lane] = (points->value[at] - base) * to_y;
        s->w[whole][lane] = i < count ? points->weight[at] : 0;
    }
    if (count % 4)
        weight += s->w[whole];
    s->count = count;
    s->quads = (count + 3) / 4;
    s->weight = sum_of(&weight);
}

bool sample_make(struct sample *s, const struct family_points *points, double origin,
                 double sign)
{
    double low;
    double high;
    find_range(points->value, points->count, &low, &high);
    s->origin = origin;
    s->span = points->step[points->count - 1] - origin;
    s->base = sign > 0 ? low : high;
    s->scale = sign * (high - low);
    if (!(high - low > 1e-12 * (fabs(high) + fabs(low))) || !(s->span > 0))
        return false;
    fill_sample(s, points);
    return s->weight > 0;
}

struct family_fit sample_flat(const struct family_points *points, double sign)
{
    double weight = 0;
    double mean = 0;
    double sse = 0;
    for (uint32_t i = 0; i < points->count; i++) {
        weight += points->weight[i];
        mean += points->weight[i] * points->value[i];
    }
    mean /= weight > 0 ? weight : 1;
    for (uint32_t i = 0; i < points->count; i++) {
        double off = points->value[i] - mean;
        sse += points->weight[i] * off * off;
    }
    return (struct family_fit){
        .family = FAMILY_FLAT, .sign = sign, .limit = mean, .sse = sse, .weight = weight
    };
}
