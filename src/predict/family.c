/*
 * family.c - the two families of learning curves, fitted to points.
 *
 * Points are first brought to one scale: steps to 0..1, values to 0..1 with the limit
 * below.  Both fits then come down to a few sums over the points and a small system.
 *
 * inv.  For a given d the reciprocal of y - d is a polynomial in k, so a, b and c follow
 * from linear least squares in which a point weighs (y - d)^4 (that is what an error in
 * y does to its reciprocal).  A few d are tried on a thinned sample; the best starts a
 * Levenberg-Marquardt search over all four, projected onto the bounds.
 *
 * exp.  For a given rate, amplitude and limit are a 2x2 system, so the search is over the
 * rate alone.  On a grid of doubling rates the powers of all points follow from those
 * before by squaring.  From the best, Newton's method: the derivative of what is left
 * after amplitude and limit were chosen costs no further pass.
 *
 * Sums run over pairs of points, which is how wide the machine is where nothing is said
 * about it; the order of additions is the same everywhere.
 */
#include "predict/family.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#define PAIRS_MAX (FAMILY_POINTS_MAX / 2)
#define THIN_POINTS 24 /* of the sample on which starting points are tried */

#define LIMIT_MIN (-3.0) /* below the lowest value, in ranges: no limit is further  */
#define C_MIN 1e-4       /* 1/c is the value at k = 0, in ranges                     */
#define FIRST_MIN 0.2    /* a search starts with no more than 5 at the first point  */
#define RATE_MIN 0.0625  /* over the sample: nearly a straight line                 */
#define RATE_MAX 600.0
#define RATE_STEPS 14 /* doublings of that on the grid                           */
#define ENOUGH 1e-4   /* share of the error: a search that gains less is over */
#define NOTHING 1e-14 /* of the range, squared: the points lie on the curve */
#define NOT_MUCH 1.5  /* times the best error: a start that is worth a try */
#define DAMPING 1e-3
#define INV_ROUNDS_MAX 24
#define EXP_ROUNDS_MAX 8

typedef double pair __attribute__((vector_size(16)));
typedef uint64_t bits __attribute__((vector_size(16)));

/* Points on one scale, two by two; the last pair may have a point of weight 0. */
struct sample {
    pair x[PAIRS_MAX], y[PAIRS_MAX], w[PAIRS_MAX];
    uint32_t pairs;
    double weight;       /* sum of w                     */
    double origin, span; /* step = origin + span * x     */
    double base, scale;  /* value = base + scale * y; scale has the sign */
};

static inline pair both(double value)
{
    return (pair){ value, value };
}

static inline double sum_of(pair p)
{
    return p[0] + p[1];
}

/* --- one scale ---------------------------------------------------------------------- */

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

/* As it is said, or as the points say. */
static double sign_for(const struct family_points *points)
{
    return points->sign != 0 || points->count == 0 ? points->sign : sign_of(points);
}

/* Bring the points to one scale; false where there is nothing to fit. */
static bool sample_make(struct sample *s, const struct family_points *points,
                        double origin, double sign)
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

/* Means of neighbours, so that at most THIN_POINTS are left. */
static void sample_thin(struct sample *thin, const struct sample *s)
{
    uint32_t group = (s->pairs + THIN_POINTS - 1) / THIN_POINTS;
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

static struct family_fit flat(const struct family_points *points, double sign)
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

/* --- inv ---------------------------------------------------------------------------- */

struct inv {
    double p[4]; /* a, b, c, d on the sample's scale */
};

/* What one pass over the points gives: error, gradient and curvature. */
struct inv_sums {
    double sse;
    double h[4][4]; /* J'WJ */
    double g[4];    /* J'Wr */
};

static double inv_error(const struct sample *s, const struct inv *m)
{
    pair a = both(m->p[0]);
    pair b = both(m->p[1]);
    pair c = both(m->p[2]);
    pair d = both(m->p[3]);
    pair sse = both(0);
    for (uint32_t i = 0; i < s->pairs; i++) {
        pair r = s->y[i] - d - 1 / ((a * s->x[i] + b) * s->x[i] + c);
        sse += s->w[i] * r * r;
    }
    return sum_of(sse);
}

static void inv_pass(const struct sample *s, const struct inv *m, struct inv_sums *sums)
{
    pair a = both(m->p[0]);
    pair b = both(m->p[1]);
    pair c = both(m->p[2]);
    pair d = both(m->p[3]);
    pair zero = both(0);
    pair sse = zero;
    pair q0 = zero, q1 = zero, q2 = zero, q3 = zero, q4 = zero; /* w p^2 x^i */
    pair p0 = zero, p1 = zero, p2 = zero;                       /* w p x^i   */
    pair r0 = zero, r1 = zero, r2 = zero, rd = zero;            /* w r p x^i */
    for (uint32_t i = 0; i < s->pairs; i++) {
        pair x = s->x[i];
        pair w = s->w[i];
        pair f = 1 / ((a * x + b) * x + c);
        pair r = s->y[i] - d - f;
        pair p = f * f; /* how much less f is where the polynomial is more */
        pair wr = w * r;
        sse += wr * r;
        rd += wr;
        pair t = wr * p;
        r0 += t;
        t *= x;
        r1 += t;
        r2 += t * x;
        t = w * p;
        pair u = t * p;
        p0 += t;
        t *= x;
        p1 += t;
        p2 += t * x;
        q0 += u;
        u *= x;
        q1 += u;
        u *= x;
        q2 += u;
        u *= x;
        q3 += u;
        q4 += u * x;
    }
    sums->sse = sum_of(sse);
    double q[5] = { sum_of(q0), sum_of(q1), sum_of(q2), sum_of(q3), sum_of(q4) };
    double p[3] = { sum_of(p0), sum_of(p1), sum_of(p2) };
    double r[3] = { sum_of(r0), sum_of(r1), sum_of(r2) };
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 3; j++)
            sums->h[i][j] = q[4 - i - j];
        sums->h[i][3] = sums->h[3][i] = -p[2 - i];
        sums->g[i] = -r[2 - i];
    }
    sums->h[3][3] = s->weight;
    sums->g[3] = sum_of(rd);
}

static const double inv_min[4] = { 0, 0, C_MIN, LIMIT_MIN };

/* Solve h x = g over the unknowns in 'open', by Cholesky; false if it is singular. */
static bool solve4(double h[4][4], const double *g, double damping, unsigned open,
                   double *x)
{
    double l[4][4];
    double y[4];
    for (int i = 0; i < 4; i++) {
        x[i] = y[i] = 0;
        if (!(open & 1u << i))
            continue;
        double sum = g[i];
        for (int j = 0; j <= i; j++) {
            if (!(open & 1u << j))
                continue;
            double v = h[i][j];
            if (i == j)
                v += damping * h[i][i] + 1e-300;
            for (int k = 0; k < j; k++)
                if (open & 1u << k)
                    v -= l[i][k] * l[j][k];
            if (i == j) {
                if (!(v > 1e-14 * h[i][i]) || !(v > 0))
                    return false;
                l[i][i] = sqrt(v);
            } else {
                l[i][j] = v / l[j][j];
                sum -= l[i][j] * y[j];
            }
        }
        y[i] = sum / l[i][i];
    }
    for (int i = 3; i >= 0; i--) {
        if (!(open & 1u << i))
            continue;
        double sum = y[i];
        for (int j = i + 1; j < 4; j++)
            if (open & 1u << j)
                sum -= l[j][i] * x[j];
        x[i] = sum / l[i][i];
    }
    return true;
}

/* A step from 'm' within the bounds: what would leave them stays on them. */
static bool inv_step(const struct inv *m, struct inv_sums *sums, double damping,
                     struct inv *next)
{
    unsigned open = 15;
    double g[4];
    double shift[4] = { 0 };
    memcpy(g, sums->g, sizeof g);
    for (;;) {
        double x[4];
        if (!solve4(sums->h, g, damping, open, x))
            return false;
        unsigned out = 0;
        for (int i = 0; i < 4; i++)
            if ((open & 1u << i) && m->p[i] + x[i] < inv_min[i])
                out |= 1u << i;
        if (!out) {
            for (int i = 0; i < 4; i++)
                next->p[i] = (open & 1u << i) ? m->p[i] + x[i] : inv_min[i];
            return true;
        }
        for (int i = 0; i < 4; i++) {
            if (!(out & 1u << i))
                continue;
            shift[i] = inv_min[i] - m->p[i];
            for (int j = 0; j < 4; j++)
                g[j] -= sums->h[j][i] * shift[i];
        }
        open &= ~out;
        if (!open) {
            memcpy(next->p, inv_min, sizeof next->p);
            return true;
        }
    }
}

/* By how much the error falls on the way to 'next', if it were a parabola. */
static double inv_promise(const struct inv *m, const struct inv *next,
                          const struct inv_sums *sums)
{
    double gain = 0;
    for (int i = 0; i < 4; i++) {
        double x = next->p[i] - m->p[i];
        gain += 2 * sums->g[i] * x;
        for (int j = 0; j < 4; j++)
            gain -= sums->h[i][j] * x * (next->p[j] - m->p[j]);
    }
    return gain;
}

static double inv_search(const struct sample *s, struct inv *m)
{
    struct inv_sums sums;
    inv_pass(s, m, &sums);
    double damping = DAMPING;
    for (int round = 0; round < INV_ROUNDS_MAX; round++) {
        struct inv next;
        if (!inv_step(m, &sums, damping, &next)) {
            damping *= 100;
            continue;
        }
        if (damping <= DAMPING && inv_promise(m, &next, &sums) < ENOUGH * sums.sse)
            break;
        struct inv_sums there;
        inv_pass(s, &next, &there);
        if (!(there.sse < sums.sse)) {
            if (there.sse < sums.sse * (1 + 1e-9))
                break;
            damping *= 8;
            continue;
        }
        double gain = sums.sse - there.sse;
        *m = next;
        sums = there;
        damping *= 0.1;
        if (gain < ENOUGH * sums.sse || sums.sse < NOTHING * s->weight)
            break;
    }
    return sums.sse;
}

/* Least squares of three unknowns that are not negative: the best of all subsets. */
static void nnls3(double h[3][3], const double *g, double *x)
{
    double best = 0; /* the error is a constant minus this */
    x[0] = x[1] = x[2] = 0;
    for (unsigned open = 7; open > 0; open--) {
        double h4[4][4] = { { 0 } };
        double g4[4] = { 0 };
        double y[4];
        for (int i = 0; i < 3; i++) {
            g4[i] = g[i];
            for (int j = 0; j < 3; j++)
                h4[i][j] = h[i][j];
        }
        if (!solve4(h4, g4, 1e-10, open, y) || y[0] < 0 || y[1] < 0 || y[2] < 0)
            continue;
        double gain = g[0] * y[0] + g[1] * y[1] + g[2] * y[2];
        if (gain > best) {
            best = gain;
            memcpy(x, y, 3 * sizeof *x);
        }
        if (open == 7)
            return; /* nothing is better than all of them */
    }
}

/* Keep the curve below a few times the highest value at the first point. */
static void inv_lower(const struct sample *s, struct inv *m)
{
    double x = s->x[0][0];
    double lack = FIRST_MIN - (m->p[0] * x + m->p[1]) * x - m->p[2];
    m->p[2] += lack > 0 ? lack : 0;
    m->p[2] = m->p[2] > inv_min[2] ? m->p[2] : inv_min[2];
}

/* The polynomial for a given d. */
static void inv_given_limit(const struct sample *s, double d, struct inv *m)
{
    pair zero = both(0);
    pair q0 = zero, q1 = zero, q2 = zero, q3 = zero, q4 = zero;
    pair r0 = zero, r1 = zero, r2 = zero;
    for (uint32_t i = 0; i < s->pairs; i++) {
        pair x = s->x[i];
        pair u = s->y[i] - both(d);
        u = (pair)((bits)u & (bits)(u > zero)); /* what lies below d says nothing */
        pair t = s->w[i] * u * u * u;
        pair q = t * u;
        r0 += t;
        t *= x;
        r1 += t;
        r2 += t * x;
        q0 += q;
        q *= x;
        q1 += q;
        q *= x;
        q2 += q;
        q *= x;
        q3 += q;
        q4 += q * x;
    }
    double q[5] = { sum_of(q0), sum_of(q1), sum_of(q2), sum_of(q3), sum_of(q4) };
    double g[3] = { sum_of(r2), sum_of(r1), sum_of(r0) };
    double h[3][3];
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            h[i][j] = q[4 - i - j];
    nnls3(h, g, m->p);
    m->p[3] = d;
    inv_lower(s, m);
}

/*
 * A few limits, from above the lowest value, which noise has lowered, to far below it.
 * The best polynomial may have no square; the best of those that have one comes second.
 */
static void inv_start(const struct sample *s, struct inv *best, struct inv *square)
{
    static const double limits[] = { 0.06, 0.02, -0.003, -0.01, -0.03,
                                     -0.1, -0.3, -1,     -2.9 };
    struct sample thin;
    sample_thin(&thin, s);
    double least = HUGE_VAL;
    double square_least = HUGE_VAL;
    for (uint32_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        struct inv m;
        inv_given_limit(&thin, limits[i], &m);
        double sse = inv_error(&thin, &m);
        if (sse < least) {
            least = sse;
            *best = m;
        }
        if (m.p[0] > 0 && sse < square_least) {
            square_least = sse;
            *square = m;
        }
    }
    if (!(square_least < NOT_MUCH * least))
        *square = *best;
    inv_lower(s, best);
    inv_lower(s, square);
}

/* Without a square there may be a second valley: look there as well. */
static double inv_search_cold(const struct sample *s, struct inv *m)
{
    struct inv square;
    inv_start(s, m, &square);
    double sse = inv_search(s, m);
    if (m->p[0] > 0 || square.p[0] == 0)
        return sse;
    double other = inv_search(s, &square);
    if (other < sse)
        *m = square;
    return other < sse ? other : sse;
}

/* An earlier fit on this sample's scale. */
static void inv_from(const struct sample *s, const struct family_fit *warm,
                     struct inv *m)
{
    double size = fabs(s->scale);
    m->p[0] = warm->a * s->span * s->span * size;
    m->p[1] = warm->b * s->span * size;
    m->p[2] = warm->c * size;
    m->p[3] = (warm->limit - s->base) / s->scale;
    for (int i = 0; i < 4; i++)
        m->p[i] = m->p[i] > inv_min[i] ? m->p[i] : inv_min[i];
    inv_lower(s, m);
}

struct family_fit family_fit_inv(const struct family_points *points,
                                 const struct family_fit *warm)
{
    assert(points->count <= FAMILY_POINTS_MAX);
    double sign = sign_for(points);
    struct sample s;
    if (points->count < 2 || sign == 0 ||
        !sample_make(&s, points, points->origin, sign))
        return flat(points, sign != 0 ? sign : 1);

    struct inv m;
    double sse;
    if (warm && warm->family == FAMILY_INV && warm->sign == sign &&
        warm->origin == points->origin) {
        inv_from(&s, warm, &m);
        sse = inv_search(&s, &m);
    } else {
        sse = inv_search_cold(&s, &m);
    }
    double size = fabs(s.scale);
    return (struct family_fit){ .family = FAMILY_INV,
                                .sign = sign,
                                .origin = points->origin,
                                .a = m.p[0] / (size * s.span * s.span),
                                .b = m.p[1] / (size * s.span),
                                .c = m.p[2] / size,
                                .limit = s.base + s.scale * m.p[3],
                                .sse = sse * size * size,
                                .weight = s.weight };
}

/* --- exp ---------------------------------------------------------------------------- */

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
    } else if (limit < LIMIT_MIN) {
        limit = LIMIT_MIN;
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
    pair e[PAIRS_MAX];
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
    for (int round = 0; round < EXP_ROUNDS_MAX; round++) {
        double move = -at.slope / at.curve;
        if (best.amplitude == 0 || best.sse < NOTHING * s->weight ||
            at.slope * at.slope / at.curve < ENOUGH * best.sse)
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
            if (gain < ENOUGH * best.sse)
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
    double sign = sign_for(points);
    struct sample s;
    if (points->count < 2 || sign == 0 ||
        !sample_make(&s, points, points->step[0], sign))
        return flat(points, sign != 0 ? sign : 1);

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
        return flat(points, sign);
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

/* --- both --------------------------------------------------------------------------- */

struct family_fit family_fit_best(const struct family_points *points,
                                  struct family_fit *inv, struct family_fit *exp,
                                  bool warm)
{
    struct family_points signed_points = *points;
    signed_points.sign = sign_for(points);
    *inv = family_fit_inv(&signed_points, warm ? inv : NULL);
    *exp = family_fit_exp(&signed_points, warm ? exp : NULL);
    return exp->sse < inv->sse ? *exp : *inv;
}

double family_at(const struct family_fit *fit, double step)
{
    double k = step - fit->origin;
    switch (fit->family) {
    case FAMILY_INV:
        return fit->limit + fit->sign / ((fit->a * k + fit->b) * k + fit->c);
    case FAMILY_EXP:
        return fit->limit + fit->sign * exp(-fit->rate * (step - fit->shift));
    case FAMILY_FLAT:
        break;
    }
    return fit->limit;
}

double family_mu(const struct family_fit *fit)
{
    return exp(-fit->rate);
}

const char *family_name(enum family family)
{
    static const char *const names[] = { "flat", "inv", "exp" };
    return names[family];
}
