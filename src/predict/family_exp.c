/*
 * family_exp.c - mu^(k - b) + c fitted to points.
 *
 * For a given rate -ln(mu), amplitude and limit are a 2x2 system, so the search is over
 * the rate alone.  On a grid of doubling rates the powers of all points follow from those
 * before by squaring.  From the best, Newton's method: the derivative of what is left
 * after amplitude and limit were chosen costs no further pass.
 */
#include <assert.h>
#include <math.h>

#include "predict/sample.h"

#define RATE_MIN 0.0625 /* over the sample: nearly a straight line */
#define RATE_MAX 600.0
#define RATE_STEPS 14 /* doublings of RATE_MIN on the grid */
#define ROUNDS_MAX 8

/* e^-z for z from 0 to 700, to about 1e-14: the library's is not made for pairs. */
static inline pair exp_minus(pair z)
{
    const pair round = both(0x1.8p52);
    pair t = z * both(-0x1.71547652b82fep0) + round; /* the power of two, at its end */
    pair n = t - round;
    pair r = -z - n * both(0x1.62e42fefa39efp-1) - n * both(0x1.abc9e3b39803fp-56);
    pair p = both(1.0 / 39916800);
    p = p * r + both(1.0 / 3628800);
    p = p * r + both(1.0 / 362880);
    p = p * r + both(1.0 / 40320);
    p = p * r + both(1.0 / 5040);
    p = p * r + both(1.0 / 720);
    p = p * r + both(1.0 / 120);
    p = p * r + both(1.0 / 24);
    p = p * r + both(1.0 / 6);
    p = p * r + both(0.5);
    p = p * r + both(1);
    p = p * r + both(1);
    return (pair)((bits)p + ((bits)t << 52));
}

struct exp {
    double rate, amplitude, limit; /* on the sample's scale */
    double sse;
};

/* Sums that do not depend on the rate. */
struct exp_known {
    double y, yy;
};

static struct exp_known exp_known(const struct sample *s)
{
    pair y = both(0);
    pair yy = both(0);
    for (uint32_t i = 0; i < s->pairs; i++) {
        pair wy = s->w[i] * s->y[i];
        y += wy;
        yy += wy * s->y[i];
    }
    return (struct exp_known){ sum_of(y), sum_of(yy) };
}

/* Amplitude and limit for given sums of w e, w e^2 and w e y, within the bounds. */
static void exp_given_rate(const struct sample *s, const struct exp_known *k, double e1,
                           double e2, double ey, struct exp *m)
{
    double w = s->weight;
    double det = w * e2 - e1 * e1;
    double amplitude = det > 1e-12 * w * e2 ? (w * ey - e1 * k->y) / det : 0;
    double limit = (k->y - amplitude * e1) / w;
    if (amplitude <= 0) {
        amplitude = 0;
        limit = k->y / w;
    } else if (limit < SAMPLE_LIMIT_MIN) {
        limit = SAMPLE_LIMIT_MIN;
        amplitude = (ey - limit * e1) / e2;
    }
    m->amplitude = amplitude;
    m->limit = limit;
    double sse = k->yy - 2 * (amplitude * ey + limit * k->y) +
                 amplitude * amplitude * e2 + 2 * amplitude * limit * e1 +
                 limit * limit * w;
    m->sse = sse > 0 ? sse : 0;
}

/* The best of the grid: every rate is twice the one before, so e is its square. */
static void exp_start(const struct sample *s, const struct exp_known *k,
                      struct exp *best)
{
    pair e[SAMPLE_PAIRS_MAX];
    pair rate = both(RATE_MIN);
    best->sse = HUGE_VAL;
    for (uint32_t i = 0; i < s->pairs; i++)
        e[i] = exp_minus(s->x[i] * rate);
    for (int step = 0; step < RATE_STEPS; step++) {
        pair e1 = both(0);
        pair e2 = both(0);
        pair ey = both(0);
        for (uint32_t i = 0; i < s->pairs; i++) {
            pair we = s->w[i] * e[i];
            e1 += we;
            ey += we * s->y[i];
            pair square = e[i] * e[i];
            e2 += s->w[i] * square;
            e[i] = square;
        }
        struct exp m = { .rate = RATE_MIN * (double)(1 << step) };
        exp_given_rate(s, k, sum_of(e1), sum_of(e2), sum_of(ey), &m);
        if (m.sse < best->sse)
            *best = m;
    }
}

/* Slope and curvature of half the error by the logarithm of the rate. */
struct exp_slope {
    double slope, curve;
};

/* One pass at m->rate: amplitude, limit, error, and where to go from there. */
static struct exp_slope exp_pass(const struct sample *s, const struct exp_known *k,
                                 struct exp *m)
{
    pair zero = both(0);
    pair rate = both(m->rate);
    pair e1 = zero, e2 = zero, ey = zero;
    pair x1 = zero, x2 = zero, xx = zero, xy = zero;
    for (uint32_t i = 0; i < s->pairs; i++) {
        pair x = s->x[i];
        pair e = exp_minus(x * rate);
        pair we = s->w[i] * e;
        pair wxe = we * x;
        pair y = s->y[i];
        e1 += we;
        e2 += we * e;
        ey += we * y;
        x1 += wxe;
        pair wxee = wxe * e;
        x2 += wxee;
        xx += wxee * x;
        xy += wxe * y;
    }
    double c1 = sum_of(e1);
    double c2 = sum_of(e2);
    exp_given_rate(s, k, c1, c2, sum_of(ey), m);
    double d1 = sum_of(x1);
    double d2 = sum_of(x2);
    /* Amplitude and limit follow the rate, so what of xe lies in the plane of e and 1
     * bends nothing. */
    double w = s->weight;
    double det = w * c2 - c1 * c1;
    double plane = det > 0 ? (w * d2 * d2 - 2 * c1 * d1 * d2 + c2 * d1 * d1) / det : 0;
    double bent = sum_of(xx) - plane;
    if (!(bent > 1e-12 * sum_of(xx)))
        return (struct exp_slope){ 0, 1 };
    double a = m->amplitude * m->rate;
    return (struct exp_slope){ .slope =
                                   a * (sum_of(xy) - m->amplitude * d2 - m->limit * d1),
                               .curve = a * a * bent };
}

/*
 * Newton's method by the logarithm of the rate.  The first step takes the curvature for
 * points that lie on the curve; then two slopes tell it.
 */
static void exp_search(const struct sample *s, const struct exp_known *k, struct exp *m)
{
    struct exp best = *m;
    struct exp_slope at = exp_pass(s, k, &best);
    double most = 0.7; /* beyond its neighbours on the grid nothing is known */
    for (int round = 0; round < ROUNDS_MAX; round++) {
        double move = -at.slope / at.curve;
        if (best.amplitude == 0 || best.sse < SAMPLE_NOTHING * s->weight ||
            at.slope * at.slope / at.curve < SAMPLE_ENOUGH * best.sse)
            break;
        move = move > most ? most : move < -most ? -most : move;
        struct exp next = { .rate = best.rate * exp(move) };
        next.rate = next.rate < RATE_MIN ? RATE_MIN : next.rate;
        next.rate = next.rate > RATE_MAX ? RATE_MAX : next.rate;
        struct exp_slope then = exp_pass(s, k, &next);
        if (next.sse < best.sse) {
            double gain = best.sse - next.sse;
            double bent = (then.slope - at.slope) / move;
            if (bent > 0.1 * then.curve)
                then.curve = bent;
            best = next;
            at = then;
            if (gain < SAMPLE_ENOUGH * best.sse)
                break;
        } else {
            most = fabs(move) / 4;
        }
    }
    *m = best;
}

struct family_fit family_fit_exp(const struct family_points *points,
                                 const struct family_fit *warm)
{
    assert(points->count <= FAMILY_POINTS_MAX);
    double sign = sample_sign(points);
    struct sample s;
    if (points->count < 2 || sign == 0 ||
        !sample_make(&s, points, points->step[0], sign))
        return sample_flat(points, sign != 0 ? sign : 1);

    struct exp_known known = exp_known(&s);
    struct exp m;
    if (warm && warm->family == FAMILY_EXP && warm->sign == sign) {
        m.rate = warm->rate * s.span;
        m.rate = m.rate < RATE_MIN ? RATE_MIN : m.rate > RATE_MAX ? RATE_MAX : m.rate;
    } else {
        exp_start(&s, &known, &m);
    }
    exp_search(&s, &known, &m);
    if (m.amplitude == 0)
        return sample_flat(points, sign);
    double size = fabs(s.scale);
    double rate = m.rate / s.span;
    return (struct family_fit){ .family = FAMILY_EXP,
                                .sign = sign,
                                .rate = rate,
                                .shift = s.origin + log(m.amplitude * size) / rate,
                                .limit = s.base + s.scale * m.limit,
                                .sse = m.sse * size * size,
                                .weight = s.weight };
}
