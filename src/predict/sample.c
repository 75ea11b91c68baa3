/* sample.c - points on one scale, for the files that fit families to them. */
#include "predict/sample.h"

#include <math.h>

/*
 * Which way values go with the step, by their covariance: 1 down, -1 up, 0 neither.
 * Four sums each, so that one addition does not wait for the other.
 */
static double sign_of(const struct family_points *points)
{
    pair sums[2][4] = { { { 0 } } }; /* w, wx, wy, wxy */
    double x0 = points->step[0];
    double y0 = points->value[0];
    uint32_t i = 0;
    for (; i + 4 <= points->count; i += 4)
        for (uint32_t lane = 0; lane < 2; lane++) {
            uint32_t j = i + 2 * lane;
            pair w = { points->weight[j], points->weight[j + 1] };
            pair x = { points->step[j] - x0, points->step[j + 1] - x0 };
            pair y = { points->value[j] - y0, points->value[j + 1] - y0 };
            sums[lane][0] += w;
            sums[lane][1] += w * x;
            sums[lane][2] += w * y;
            sums[lane][3] += w * x * y;
        }
    double all[4];
    for (uint32_t n = 0; n < 4; n++)
        all[n] = sum_of(sums[0][n] + sums[1][n]);
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
    return points->sign != 0 || points->count == 0 ? points->sign : sign_of(points);
}

bool sample_make(struct sample *s, const struct family_points *points, double origin,
                 double sign)
{
    uint32_t count = points->count;
    double low = points->value[0];
    double high = low;
    for (uint32_t i = 1; i < count; i++) {
        low = points->value[i] < low ? points->value[i] : low;
        high = points->value[i] > high ? points->value[i] : high;
    }
    s->origin = origin;
    s->span = points->step[count - 1] - origin;
    s->base = sign > 0 ? low : high;
    s->scale = sign * (high - low);
    if (!(high - low > 1e-12 * (fabs(high) + fabs(low))) || !(s->span > 0))
        return false;

    double to_x = 1 / s->span;
    double to_y = 1 / s->scale;
    s->pairs = (count + 1) / 2;
    s->weight = 0;
    for (uint32_t i = 0; i < count; i++) {
        s->x[i / 2][i % 2] = (points->step[i] - origin) * to_x;
        s->y[i / 2][i % 2] = (points->value[i] - s->base) * to_y;
        s->w[i / 2][i % 2] = points->weight[i];
        s->weight += points->weight[i];
    }
    if (count % 2) {
        s->x[count / 2][1] = s->x[count / 2][0];
        s->y[count / 2][1] = s->y[count / 2][0];
        s->w[count / 2][1] = 0;
    }
    return s->weight > 0;
}

void sample_thin(struct sample *thin, const struct sample *s)
{
    uint32_t group = (s->pairs + SAMPLE_THIN_POINTS - 1) / SAMPLE_THIN_POINTS;
    thin->pairs = 0;
    uint32_t out = 0;
    for (uint32_t i = 0; i < s->pairs; i += group) {
        pair w = both(0);
        pair x = both(0);
        pair y = both(0);
        for (uint32_t j = i; j < i + group && j < s->pairs; j++) {
            w += s->w[j];
            x += s->w[j] * s->x[j];
            y += s->w[j] * s->y[j];
        }
        double weight = sum_of(w);
        double inverse = weight > 0 ? 1 / weight : 0;
        thin->w[out / 2][out % 2] = weight;
        thin->x[out / 2][out % 2] = sum_of(x) * inverse;
        thin->y[out / 2][out % 2] = sum_of(y) * inverse;
        out++;
    }
    if (out % 2) {
        thin->w[out / 2][1] = 0;
        thin->x[out / 2][1] = 1;
        thin->y[out / 2][1] = 0;
    }
    thin->pairs = (out + 1) / 2;
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
