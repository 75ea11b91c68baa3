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

/* e^-z for z from 0 to 700, to about 1e-14: the C library has none for four numbers. */
static inline void exp_minus(const quad *z, quad *ret_e)
{
    const quad round = QUAD(0x1.8p52);
    quad t = *z * -0x1.71547652b82fep0 + round; /* the power of two, at its end */
    quad n = t - round;
    quad r = -*z - n * 0x1.62e42fefa39efp-1 - n * 0x1.abc9e3b39803fp-56;
    quad p = r * (1.0 / 39916800) + 1.0 / 3628800;
    p = p * r + 1.0 / 362880;
    p = p * r + 1.0 / 40320;
    p = p * r + 1.0 / 5040;
    p = p * r + 1.0 / 720;
    p = p * r + 1.0 / 120;
    p = p * r + 1.0 / 24;
    p = p * r + 1.0 / 6;
    p = p * r + 0.5;
    p = p * r + 1;
    p = p * r + 1;
    *ret_e = (quad)((quad_bits)p + ((quad_bits)t << 52));
}

struct exp_model {
    double rate, amplitude, limit; /* on the sample's scale */
    double sse;
};

/* Sums that do not depend on the rate. */
struct exp_known {
    double y, yy;
};

WIDE static struct exp_known exp_known(const struct sample *s)
{
    quad y = QUAD(0);
    quad yy = QUAD(0);
    for (uint32_t i = 0; i < s->quads; i++) {
        quad wy = s->w[i] * s->y[i];
        y += wy;
        yy += wy * s->y[i];
    }
    return (struct exp_known){ sum_of(&y), sum_of(&yy) };
}

/* Amplitude and limit for given sums of w e, w e^2 and w e y, within the bounds. */
static void exp_given_rate(const struct sample *s, const struct exp_known *k, double e1,
                           double e2, double ey, struct exp_model *m)
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

/* Sums over points of w e, w e^2 and w e y. */
struct exp_grid {
    double e1, e2, ey;
};

WIDE static void exp_powers(const struct sample *s, double rate, quad *e)
{
    for (uint32_t i = 0; i < s->quads; i++) {
        quad z = s->x[i] * rate;
        exp_minus(&z, &e[i]);
    }
}

/* The sums for these powers, which are left squared: as they are for twice the rate. */
WIDE static void exp_square(const struct sample *s, quad *e, struct exp_grid *sums)
{
    quad e1 = QUAD(0);
    quad e2 = QUAD(0);
    quad ey = QUAD(0);
    for (uint32_t i = 0; i < s->quads; i++) {
        quad we = s->w[i] * e[i];
        e1 += we;
        ey += we * s->y[i];
        quad square = e[i] * e[i];
        e2 += s->w[i] * square;
        e[i] = square;
    }
    *sums = (struct exp_grid){ sum_of(&e1), sum_of(&e2), sum_of(&ey) };
}

/* The best of the grid, on which every rate is twice the one before. */
static void exp_start(const struct sample *s, const struct exp_known *k,
                      struct exp_model *best)
{
    quad e[SAMPLE_QUADS_MAX];
    best->sse = HUGE_VAL;
    exp_powers(s, RATE_MIN, e);
    for (int step = 0; step < RATE_STEPS; step++) {
        struct exp_grid sums;
        exp_square(s, e, &sums);
        struct exp_model m = { .rate = RATE_MIN * (double)(1 << step) };
        exp_given_rate(s, k, sums.e1, sums.e2, sums.ey, &m);
        if (m.sse < best->sse)
            *best = m;
    }
}

/* Slope and curvature of half the error by the logarithm of the rate. */
struct exp_slope {
    double slope, curve;
};

/* Sums over points of w times e, e^2, e y, and of these with x and x^2. */
struct exp_sums {
    double e1, e2, ey;
    double x1, x2, xx, xy;
};

WIDE static void exp_sum(const struct sample *s, double rate, struct exp_sums *sums)
{
    quad e1 = QUAD(0), e2 = QUAD(0), ey = QUAD(0);
    quad x1 = QUAD(0), x2 = QUAD(0), xx = QUAD(0), xy = QUAD(0);
    for (uint32_t i = 0; i < s->quads; i++) {
        quad x = s->x[i];
        quad z = x * rate;
        quad e;
        exp_minus(&z, &e);
        quad we = s->w[i] * e;
        quad wxe = we * x;
        quad y = s->y[i];
        e1 += we;
        e2 += we * e;
        ey += we * y;
        x1 += wxe;
        quad wxee = wxe * e;
        x2 += wxee;
        xx += wxee * x;
        xy += wxe * y;
    }
    *sums = (struct exp_sums){ sum_of(&e1), sum_of(&e2), sum_of(&ey), sum_of(&x1),
                               sum_of(&x2), sum_of(&xx), sum_of(&xy) };
}

/* One pass at m->rate: amplitude, limit, error, and where to go from there. */
static struct exp_slope exp_pass(const struct sample *s, const struct exp_known *k,
                                 struct exp_model *m)
{
    struct exp_sums of;
    exp_sum(s, m->rate, &of);
    exp_given_rate(s, k, of.e1, of.e2, of.ey, m);
    /* Amplitude and limit follow the rate, so what of xe lies in the plane of e and 1
     * bends nothing. */
    double w = s->weight;
    double det = w * of.e2 - of.e1 * of.e1;
    double plane =
        det > 0
            ? (w * of.x2 * of.x2 - 2 * of.e1 * of.x1 * of.x2 + of.e2 * of.x1 * of.x1) /
                  det
            : 0;
    double bent = of.xx - plane;
    if (!(bent > 1e-12 * of.xx))
        return (struct exp_slope){ 0, 1 };
    double a = m->amplitude * m->rate;
    double slope = of.xy - m->amplitude * of.x2 - m->limit * of.x1;
    return (struct exp_slope){ .slope = a * slope, .curve = a * a * bent };
}

/*
 * Newton's method by the logarithm of the rate.  The first step takes the curvature for
 * points that lie on the curve; then two slopes tell it.
 */
static void exp_search(const struct sample *s, const struct exp_known *k,
                       struct exp_model *m)
{
    struct exp_model best = *m;
    struct exp_slope at = exp_pass(s, k, &best);
    double most = 0.7; /* beyond its neighbours on the grid nothing is known */
    for (int round = 0; round < ROUNDS_MAX; round++) {
        double move = -at.slope / at.curve;
        if (best.amplitude == 0 || best.sse < SAMPLE_NOTHING * s->weight ||
            at.slope * at.slope / at.curve < SAMPLE_ENOUGH * best.sse)
            break;
        move = move > most ? most : move < -most ? -most : move;
        struct exp_model next = { .rate = best.rate * exp(move) };
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
    struct exp_model m;
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
