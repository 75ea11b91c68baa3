/*
 * family_inv.c - 1/(a k^2 + b k + c) + d fitted to points, alone or beside the other family.
 *
 * For a given d the reciprocal of y - d is a polynomial in k, so a, b and c follow from
 * linear least squares in which a point weighs (y - d)^4 (that is what an error in y does
 * to its reciprocal).  A few d are tried on a thinned sample; the best starts a
 * Levenberg-Marquardt search over all four, projected onto the bounds.
 */
#include <assert.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "predict/sample.h"

#define THIN_POINTS 24 /* of a sample on which starting points are tried */
#define C_MIN 1e-4     /* 1/c is the value at k = 0, in ranges                    */
#define FIRST_MIN 0.2  /* a search starts with no more than 5 at the first point  */
#define NOT_MUCH 1.5   /* times the best error: a start that is worth a try       */
#define STRAIGHT -1.0  /* a limit below that, in ranges: nearly a straight line      */
#define CATCH_UP \
    10 /* times the last gain: further behind the other family it gives up */
#define HOPELESS 10.0 /* times the other family's error: no minimum is so deep */
#define DAMPING 1e-3
#define ROUNDS_MAX 24

struct inv_model {
    double p[4]; /* a, b, c, d on the sample's scale */
};

/* What one pass over the points gives: error, gradient and curvature. */
struct inv_sums {
    double sse;
    double h[4][4]; /* J'WJ */
    double g[4];    /* J'Wr */
};

WIDE static double inv_error(const struct sample *s, const struct inv_model *m)
{
    quad a = QUAD(m->p[0]);
    quad b = QUAD(m->p[1]);
    quad c = QUAD(m->p[2]);
    quad d = QUAD(m->p[3]);
    quad sse = QUAD(0);
    for (uint32_t i = 0; i < s->quads; i++) {
        quad r = s->y[i] - d - 1 / ((a * s->x[i] + b) * s->x[i] + c);
        sse += s->w[i] * r * r;
    }
    return sum_of(&sse);
}

WIDE static void inv_pass(const struct sample *s, const struct inv_model *m,
                          struct inv_sums *sums)
{
    quad a = QUAD(m->p[0]);
    quad b = QUAD(m->p[1]);
    quad c = QUAD(m->p[2]);
    quad d = QUAD(m->p[3]);
    quad zero = QUAD(0);
    quad sse = zero;
    quad q0 = zero, q1 = zero, q2 = zero, q3 = zero, q4 = zero; /* w p^2 x^i */
    quad p0 = zero, p1 = zero, p2 = zero;                       /* w p x^i   */
    quad r0 = zero, r1 = zero, r2 = zero, rd = zero;            /* w r p x^i */
    for (uint32_t i = 0; i < s->quads; i++) {
        quad x = s->x[i];
        quad w = s->w[i];
        quad f = 1 / ((a * x + b) * x + c);
        quad r = s->y[i] - d - f;
        quad p = f * f; /* how much less f is where the polynomial is more */
        quad wr = w * r;
        sse += wr * r;
        rd += wr;
        quad t = wr * p;
        r0 += t;
        t *= x;
        r1 += t;
        r2 += t * x;
        t = w * p;
        quad u = t * p;
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
    sums->sse = sum_of(&sse);
    double q[5] = { sum_of(&q0), sum_of(&q1), sum_of(&q2), sum_of(&q3), sum_of(&q4) };
    double p[3] = { sum_of(&p0), sum_of(&p1), sum_of(&p2) };
    double r[3] = { sum_of(&r0), sum_of(&r1), sum_of(&r2) };
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 3; j++)
            sums->h[i][j] = q[4 - i - j];
        sums->h[i][3] = sums->h[3][i] = -p[2 - i];
        sums->g[i] = -r[2 - i];
    }
    sums->h[3][3] = s->weight;
    sums->g[3] = sum_of(&rd);
}

static const double inv_min[4] = { 0, 0, C_MIN, SAMPLE_LIMIT_MIN };

/*
 * Solve h x = g over the unknowns in 'open', by h = L D L'; false if it is singular.
 * Those not in it are given a row of their own, which makes them 0.
 */
static bool solve_open(double h[4][4], const double *g, double damping, unsigned open,
                       double *x)
{
    double l[4][4]; /* below its diagonal; on and above it, times d */
    double y[4];
    for (unsigned i = 0; i < 4; i++) {
        bool in = open >> i & 1;
        double sum = in ? g[i] : 0;
        for (unsigned j = 0; j < i; j++) {
            double v = in && open >> j & 1 ? h[i][j] : 0;
            for (unsigned k = 0; k < j; k++)
                v -= l[k][i] * l[j][k];
            l[j][i] = v;
            l[i][j] = v * l[j][j];
            sum -= l[i][j] * y[j];
        }
        double d = in ? h[i][i] + (damping * h[i][i] + 1e-300) : 1;
        for (unsigned k = 0; k < i; k++)
            d -= l[k][i] * l[i][k];
        if (in && (!(d > 1e-14 * h[i][i]) || !(d > 0)))
            return false;
        l[i][i] = 1 / d;
        y[i] = sum;
    }
    for (unsigned i = 4; i-- > 0;) {
        x[i] = y[i] * l[i][i];
        for (unsigned j = i + 1; j < 4; j++)
            x[i] -= l[j][i] * x[j];
    }
    return true;
}

/* A step from 'm' within the bounds: parameters that would leave them stay on them. */
static bool inv_step(const struct inv_model *m, struct inv_sums *sums, double damping,
                     struct inv_model *next)
{
    unsigned open = 15;
    double g[4];
    double shift[4] = { 0 };
    memcpy(g, sums->g, sizeof g);
    for (;;) {
        double x[4];
        if (!solve_open(sums->h, g, damping, open, x))
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

/* The expected fall of the error on the way to 'next', if it were a parabola. */
static double inv_expected_gain(const struct inv_model *m, const struct inv_model *next,
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

/* Search from 'm' on; 'rival' is an error that another family has reached, or 0. */
static double inv_search(const struct sample *s, struct inv_model *m, double rival)
{
    struct inv_sums sums;
    inv_pass(s, m, &sums);
    double damping = DAMPING;
    for (int round = 0; round < ROUNDS_MAX; round++) {
        struct inv_model next;
        if (!inv_step(m, &sums, damping, &next)) {
            damping *= 100;
            continue;
        }
        if (damping <= DAMPING &&
            inv_expected_gain(m, &next, &sums) < SAMPLE_ENOUGH * sums.sse)
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
        if (gain < SAMPLE_ENOUGH * sums.sse || sums.sse < SAMPLE_NOTHING * s->weight)
            break;
        if (sums.sse - CATCH_UP * gain > rival && rival > 0)
            break;
    }
    return sums.sse;
}

/* Least squares of three unknowns that are not negative: the best of all subsets. */
static void solve_nonnegative(double h[4][4], const double *g, double *x)
{
    double best = 0; /* the error is a constant minus this */
    x[0] = x[1] = x[2] = 0;
    for (unsigned open = 7; open > 0; open--) {
        double y[4];
        if (!solve_open(h, g, 1e-10, open, y) || y[0] < 0 || y[1] < 0 || y[2] < 0)
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
static void inv_lower(const struct sample *s, struct inv_model *m)
{
    double x = s->x[0][0];
    double lack = FIRST_MIN - (m->p[0] * x + m->p[1]) * x - m->p[2];
    m->p[2] += lack > 0 ? lack : 0;
    m->p[2] = m->p[2] > inv_min[2] ? m->p[2] : inv_min[2];
}

/* Sums over points, with u = y - d: of w u^4 x^i in q, of w u^3 x^i in r. */
struct inv_moments {
    double q[5], r[3];
};

WIDE static void inv_moments(const struct sample *s, double d, struct inv_moments *of)
{
    quad zero = QUAD(0);
    quad q0 = zero, q1 = zero, q2 = zero, q3 = zero, q4 = zero;
    quad r0 = zero, r1 = zero, r2 = zero;
    for (uint32_t i = 0; i < s->quads; i++) {
        quad x = s->x[i];
        quad u = s->y[i] - d;
        u = (quad)((quad_bits)u &
                   (quad_bits)(u > zero)); /* points below d are ignored */
        quad t = s->w[i] * u * u * u;
        quad q = t * u;
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
    *of = (struct inv_moments){
        .q = { sum_of(&q0), sum_of(&q1), sum_of(&q2), sum_of(&q3), sum_of(&q4) },
        .r = { sum_of(&r0), sum_of(&r1), sum_of(&r2) },
    };
}

/* The polynomial for a given d. */
static void inv_given_limit(const struct sample *s, double d, struct inv_model *m)
{
    struct inv_moments of;
    inv_moments(s, d, &of);
    double h[4][4] = { { 0 } };
    double g[4] = { of.r[2], of.r[1], of.r[0], 0 };
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            h[i][j] = of.q[4 - i - j];
    solve_nonnegative(h, g, m->p);
    m->p[3] = d;
    inv_lower(s, m);
}

/* Means of neighbours, so that at most THIN_POINTS are left. */
static void thin_sample(struct sample *thin, const struct sample *s)
{
    /* Groups of at least two, to reduce noise. */
    uint32_t most = 2 * THIN_POINTS;
    uint32_t group = 2 * ((s->count + most - 1) / most);
    uint32_t out = 0;
    for (uint32_t i = 0; i < s->count; i += group, out++) {
        double w = 0;
        double x = 0;
        double y = 0;
        for (uint32_t j = i; j < i + group && j < s->count; j++) {
            w += s->w[j / 4][j % 4];
            x += s->w[j / 4][j % 4] * s->x[j / 4][j % 4];
            y += s->w[j / 4][j % 4] * s->y[j / 4][j % 4];
        }
        double inverse = w > 0 ? 1 / w : 0;
        thin->w[out / 4][out % 4] = w;
        thin->x[out / 4][out % 4] = x * inverse;
        thin->y[out / 4][out % 4] = y * inverse;
    }
    thin->count = out;
    thin->quads = (out + 3) / 4;
    for (; out < 4 * thin->quads; out++) {
        thin->w[out / 4][out % 4] = 0;
        thin->x[out / 4][out % 4] = 1;
        thin->y[out / 4][out % 4] = 0;
    }
}

WIDE static double weighted_sum(const struct sample *s)
{
    quad sum = QUAD(0);
    for (uint32_t i = 0; i < s->quads; i++)
        sum += s->w[i] * s->y[i];
    return sum_of(&sum);
}

/* The weighted mean of y. */
static double find_mean(const struct sample *s)
{
    return weighted_sum(s) / s->weight;
}

/*
 * A few limits, from above the lowest value, which noise has lowered, to far below it.
 * The best polynomial may have no square; the best of those that have one comes second.
 */
static void inv_start(const struct sample *s, struct inv_model *best,
                      struct inv_model *square)
{
    static const double limits[] = { 0.25,  0.12, 0.06, 0.02, -0.003, -0.01,
                                     -0.03, -0.1, -0.3, -1,   -2.9 };
    struct sample thin;
    thin_sample(&thin, s);
    double least = HUGE_VAL;
    double square_least = HUGE_VAL;
    for (uint32_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        struct inv_model m;
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

/* Search from 'other' as well, and keep the better. */
static double inv_search_also(const struct sample *s, struct inv_model *m, double sse,
                              struct inv_model *other, double rival)
{
    double there = inv_search(s, other, rival);
    if (there < sse)
        *m = *other;
    return there < sse ? there : sse;
}

/*
 * There may be other minima.  One has a square where this one has none.  One has its
 * limit where the newest points are, where this one is nearly straight: a curve that
 * fell at once and is noise since, which a thinned sample does not show.
 */
static double inv_search_cold(const struct sample *s, struct inv_model *m, double rival)
{
    struct inv_model other;
    inv_start(s, m, &other);
    double sse = inv_search(s, m, rival);
    if (rival > 0 && sse > HOPELESS * rival)
        return sse;
    if (m->p[0] == 0 && other.p[0] > 0)
        sse = inv_search_also(s, m, sse, &other, rival);
    if (m->p[3] < STRAIGHT) {
        inv_given_limit(s, find_mean(s), &other);
        sse = inv_search_also(s, m, sse, &other, rival);
    }
    return sse;
}

/* An earlier fit on this sample's scale. */
static void inv_from(const struct sample *s, const struct family_fit *warm,
                     struct inv_model *m)
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

/*
 * In competition with another family of error 'rival': where it is far behind that and
 * gains little, it stops early.  A later fit may continue from there.
 */
static struct family_fit fit_inv_against(const struct family_points *points,
                                         const struct family_fit *warm, double rival)
{
    assert(points->count <= FAMILY_POINTS_MAX);
    double sign = sample_sign(points);
    struct sample s;
    if (points->count < 2 || sign == 0 ||
        !sample_make(&s, points, points->origin, sign))
        return sample_flat(points, sign != 0 ? sign : 1);

    struct inv_model m;
    double sse;
    rival /= s.scale * s.scale;
    if (warm && warm->family == FAMILY_INV && warm->sign == sign &&
        warm->origin == points->origin) {
        inv_from(&s, warm, &m);
        sse = inv_search(&s, &m, rival);
    } else {
        sse = inv_search_cold(&s, &m, rival);
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

struct family_fit family_fit_inv(const struct family_points *points,
                                 const struct family_fit *warm)
{
    return fit_inv_against(points, warm, 0);
}

struct family_fit family_fit_best(const struct family_points *points,
                                  struct family_fit *inv, struct family_fit *exp,
                                  bool warm)
{
    struct family_points signed_points = *points;
    signed_points.sign = sample_sign(points);
    *exp = family_fit_exp(&signed_points, warm ? exp : NULL);
    *inv = fit_inv_against(&signed_points, warm ? inv : NULL, exp->sse);
    return exp->sse < inv->sse ? *exp : *inv;
}
