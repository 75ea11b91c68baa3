/*
 * interior_point.c - of all the best shares, those in the middle: a path-following Newton method.
 *
 * For growing t it maximises t z + the sum of the logarithms of every slack: of x, of
 * each job's time, of each type's capacity, and of each job's rate above its due.  The
 * matrix of a Newton step is a block per job plus a few rows that all jobs share, so a
 * step costs a small factorisation per job and one more for what is shared.
 */
#include "solve/solve.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"

#define TYPES_MAX 16
#define SHARED_MAX (TYPES_MAX + 1) /* capacities, and the level */
#define STEPS_MAX 400              /* Newton steps in all        */
#define STEPS_PER_STAGE 40
#define GROWTH 2000.0 /* of t from stage to stage   */
#define GAP 1e-8      /* relative, at the end */
#define BELOW 1e-9   /* relative, of a level that is known, to the level it begins at */
#define NEAR 0.995   /* of the way to the nearest bound */
#define CENTRED 1e-7 /* square of the decrement at which the last stage is over */
#define ROUGHLY 0.5  /* and at which any other is */
#define HALVINGS_MAX 50

/*
 * Where a solver bounds s by s * rate >= 1 and bounds s from above in turn, the best s
 * leaves 3/2 log(rate - due) - log(rate) of the logarithms of both slacks, that of the
 * cone counting half.
 */
#define CONE 0.5

/* A number of two jobs: a step works on two at a time. */
typedef double lanes __attribute__((vector_size(16)));

struct barrier_path {
    const struct interior_point *problem;
    uint32_t n, k;
    double *x, *step; /* [job][type]                   */
    lanes *inverse;   /* [two jobs][type][type] of blocks */
    double level, level_step;
    bool levels;            /* there are needs, and the level still moves */
    double copies;          /* types that each column stands for */
    const double *count;    /* [job] jobs that each row stands for */
    double *gpus;           /* [job] that all of them need at once */
    double left[TYPES_MAX]; /* spare capacity at x */
    double value;           /* of the barrier at x and t; NAN: not known yet */
    double t;
};

/*
 * Most problems have one column or three: the functions below are compiled for these numbers
 * and for any.
 */
#define ANY_COLUMNS inline __attribute__((always_inline))
#define BY_COLUMNS(path, call) \
    ((path)->k == 1 ? call(1) : (path)->k == 3 ? call(3) : call((path)->k))

/* --- slacks ------------------------------------------------------------------------- */

static ANY_COLUMNS double spare_time(const double *x, uint32_t k)
{
    double left = 1;
    for (uint32_t t = 0; t < k; t++)
        left -= x[t];
    return left;
}

static ANY_COLUMNS void spare_capacity(const struct barrier_path *path, const double *x,
                                       double *ret_left, uint32_t k)
{
    double left[TYPES_MAX];
    for (uint32_t t = 0; t < k; t++)
        left[t] = path->problem->capacity[t];
    for (uint32_t j = 0; j < path->n; j++)
        for (uint32_t t = 0; t < k; t++)
            left[t] -= path->gpus[j] * x[(size_t)j * k + t];
    for (uint32_t t = 0; t < k; t++)
        ret_left[t] = left[t];
}

static ANY_COLUMNS double spare_rate(const struct barrier_path *path, uint32_t j,
                                     const double *x, double level, uint32_t k)
{
    const double *rate = &path->problem->rate[(size_t)j * k];
    double spare = -level * path->problem->need[j];
    for (uint32_t t = 0; t < k; t++)
        spare += rate[t] * x[t];
    return spare;
}

static bool has_need(const struct barrier_path *path, uint32_t j)
{
    return path->problem->need && path->problem->need[j] > 0;
}

static ANY_COLUMNS double barrier_value_by(const struct barrier_path *path,
                                           const double *x, double level,
                                           double *ret_left, uint32_t k)
{
    const struct interior_point *problem = path->problem;
    double sum = path->levels ? path->t * level : 0;
    spare_capacity(path, x, ret_left, k);
    for (uint32_t t = 0; t < k; t++) {
        if (!(ret_left[t] > 0))
            return -INFINITY;
        sum += path->copies * log(ret_left[t]);
    }
    for (uint32_t j = 0; j < path->n; j++) {
        const double *mine = &x[(size_t)j * k];
        double idle = spare_time(mine, k);
        double product = 1;
        double gain = 0;
        if (!(idle > 0))
            return -INFINITY;
        for (uint32_t t = 0; t < k; t++) {
            if (!(mine[t] > 0))
                return -INFINITY;
            product *= mine[t];
            if (problem->value)
                gain += path->t * problem->value[(size_t)j * k + t] * mine[t];
        }
        if (has_need(path, j)) {
            double spare = spare_rate(path, j, mine, level, k);
            if (!(spare > 0))
                return -INFINITY;
            idle *= spare;
            if (problem->inverse) /* CONE is a half */
                idle *= sqrt(spare) / spare_rate(path, j, mine, 0, k);
        }
        /* One logarithm of a product is quicker than a sum of them. */
        double logs = path->copies == 1 ? log(idle * product)
                                        : log(idle) + path->copies * log(product);
        sum += path->count[j] * (gain + logs);
    }
    return sum;
}

/* What is maximised, at a point, and the spare capacity there; -INFINITY outside. */
static double barrier_value(const struct barrier_path *path, const double *x,
                            double level, double *ret_left)
{
#define VALUE(k) barrier_value_by(path, x, level, ret_left, k)
    return BY_COLUMNS(path, VALUE);
}

/* --- a Newton step -------------------------------------------------------------------- */

/*
 * Invert two symmetric positive definite matrices of order k in place, by Cholesky; only
 * their lower halves are read.
 */
static ANY_COLUMNS bool invert_blocks(lanes *m, uint32_t k)
{
    lanes l[TYPES_MAX][TYPES_MAX];
    for (uint32_t i = 0; i < k; i++)
        for (uint32_t c = 0; c <= i; c++) {
            lanes sum = m[i * k + c];
            for (uint32_t q = 0; q < c; q++)
                sum -= l[i][q] * l[c][q];
            if (i == c) {
                if (!(sum[0] > 0 && sum[1] > 0))
                    return false;
                l[i][i] = (lanes){ sqrt(sum[0]), sqrt(sum[1]) };
            } else {
                l[i][c] = sum / l[c][c];
            }
        }
    for (uint32_t column = 0; column < k; column++) {
        lanes y[TYPES_MAX];
        for (uint32_t i = 0; i < column; i++)
            y[i] = (lanes){ 0, 0 };
        for (uint32_t i = column; i < k; i++) {
            lanes sum = (lanes){ i == column, i == column };
            for (uint32_t q = column; q < i; q++)
                sum -= l[i][q] * y[q];
            y[i] = sum / l[i][i];
        }
        for (uint32_t i = k; i-- > 0;) {
            lanes sum = y[i];
            for (uint32_t q = i + 1; q < k; q++)
                sum -= l[q][i] * y[q];
            y[i] = sum / l[i][i];
        }
        for (uint32_t i = 0; i < k; i++)
            m[i * k + column] = y[i];
    }
    return true;
}

/* Solve a small dense system in place, by elimination with pivots. */
static bool solve_dense(double a[SHARED_MAX][SHARED_MAX], double *b, uint32_t size)
{
    for (uint32_t c = 0; c < size; c++) {
        uint32_t pivot = c;
        for (uint32_t i = c + 1; i < size; i++)
            if (fabs(a[i][c]) > fabs(a[pivot][c]))
                pivot = i;
        if (!(fabs(a[pivot][c]) > 0))
            return false;
        for (uint32_t q = 0; q < size; q++) {
            double swap = a[c][q];
            a[c][q] = a[pivot][q];
            a[pivot][q] = swap;
        }
        double swap = b[c];
        b[c] = b[pivot];
        b[pivot] = swap;
        for (uint32_t i = c + 1; i < size; i++) {
            double factor = a[i][c] / a[c][c];
            for (uint32_t q = c; q < size; q++)
                a[i][q] -= factor * a[c][q];
            b[i] -= factor * b[c];
        }
    }
    for (uint32_t c = size; c-- > 0;) {
        for (uint32_t q = c + 1; q < size; q++)
            b[c] -= a[c][q] * b[q];
        b[c] /= a[c][c];
    }
    return true;
}

/* Two jobs' parts of the gradient, and their coupling to the level. */
struct newton_part {
    lanes gradient[TYPES_MAX];
    lanes pull[TYPES_MAX];
};

/* One number each of jobs 'j' and 'j' + 1; of the last one twice where it has no other. */
static ANY_COLUMNS lanes both_jobs(const struct barrier_path *path, const double *of,
                                   uint32_t j, uint32_t width, uint32_t t)
{
    uint32_t other = j + 1 < path->n ? j + 1 : j;
    return (lanes){ of[(size_t)j * width + t], of[(size_t)other * width + t] };
}

/* Fill two jobs' blocks, inverted, and their parts; adds to the level's own entries. */
static ANY_COLUMNS bool fill_blocks(struct barrier_path *path, uint32_t j,
                                    struct newton_part *ret_part,
                                    double *level_gradient, double *level_curve,
                                    uint32_t k)
{
    const struct interior_point *problem = path->problem;
    lanes *block = &path->inverse[(size_t)(j / 2) * k * k];
    lanes x[TYPES_MAX], rate[TYPES_MAX];
    lanes need = { 0, 0 }, spare = { 0, 0 }, whole = { 0, 0 };
    lanes idle = { 1, 1 };
    double weight = problem->inverse ? 1 + CONE : 1;
    for (uint32_t t = 0; t < k; t++) {
        x[t] = both_jobs(path, path->x, j, k, t);
        idle -= x[t];
    }
    idle = 1 / idle;
    if (problem->need) {
        need = both_jobs(path, problem->need, j, 1, 0);
        spare = -path->level * need;
        for (uint32_t t = 0; t < k; t++) {
            rate[t] = both_jobs(path, problem->rate, j, k, t);
            spare += rate[t] * x[t];
            whole += rate[t] * x[t];
        }
        for (uint32_t i = 0; i < 2; i++) {
            spare[i] = need[i] > 0 ? 1 / spare[i] : 0;
            whole[i] = need[i] > 0 && problem->inverse ? 1 / whole[i] : 0;
        }
    }
    lanes count = both_jobs(path, path->count, j, 1, 0);
    lanes gang = both_jobs(path, problem->gang, j, 1, 0);
    for (uint32_t t = 0; t < k; t++) {
        for (uint32_t u = 0; u <= t; u++) {
            block[t * k + u] = count * idle * idle;
            if (problem->need)
                block[t * k + u] += count * rate[t] * rate[u] *
                                    (weight * spare * spare - whole * whole);
        }
        block[t * k + t] += count * path->copies / (x[t] * x[t]);
        lanes slope = path->copies / x[t] - idle - path->copies * gang / path->left[t];
        ret_part->pull[t] = (lanes){ 0, 0 };
        if (problem->need) {
            slope += rate[t] * (weight * spare - whole);
            ret_part->pull[t] = count * weight * need * rate[t] * spare * spare;
        }
        if (problem->value)
            slope += path->t * both_jobs(path, problem->value, j, k, t);
        ret_part->gradient[t] = count * slope;
    }
    lanes gradient = count * weight * need * spare;
    lanes curve = count * weight * need * need * spare * spare;
    for (uint32_t i = 0; i < 2 && j + i < path->n; i++) {
        *level_gradient -= gradient[i];
        *level_curve += curve[i];
    }
    return invert_blocks(block, k);
}

static ANY_COLUMNS void multiply_blocks(const lanes *matrix, const lanes *vector,
                                        uint32_t k, lanes *ret_product)
{
    for (uint32_t t = 0; t < k; t++) {
        ret_product[t] = (lanes){ 0, 0 };
        for (uint32_t u = 0; u < k; u++)
            ret_product[t] += matrix[t * k + u] * vector[u];
    }
}

static ANY_COLUMNS double newton_step_by(struct barrier_path *path,
                                         struct newton_part *parts, uint32_t k)
{
    uint32_t size = k + (path->levels ? 1 : 0);
    double a[SHARED_MAX][SHARED_MAX] = { { 0 } };
    double b[SHARED_MAX] = { 0 };
    double level_gradient = path->t;
    double level_curve = 0;
    double curve[TYPES_MAX]; /* of the capacities' logarithms */
    for (uint32_t t = 0; t < k; t++)
        curve[t] = path->copies / (path->left[t] * path->left[t]);
    for (uint32_t j = 0; j < path->n; j += 2) {
        struct newton_part *part = &parts[j / 2];
        if (!fill_blocks(path, j, part, &level_gradient, &level_curve, k))
            return -1;
        const lanes *inverse = &path->inverse[(size_t)(j / 2) * k * k];
        lanes gang = both_jobs(path, path->gpus, j, 1, 0);
        lanes solved[TYPES_MAX];
        lanes pulled[TYPES_MAX];
        multiply_blocks(inverse, part->gradient, k, solved);
        multiply_blocks(inverse, part->pull, k, pulled);
        lanes used[TYPES_MAX][TYPES_MAX];
        for (uint32_t t = 0; t < k; t++)
            for (uint32_t u = 0; u < k; u++)
                used[t][u] = gang * gang * inverse[t * k + u] * curve[u];
        for (uint32_t i = 0; i < 2 && j + i < path->n; i++)
            for (uint32_t t = 0; t < k; t++) {
                for (uint32_t u = 0; u < k; u++)
                    a[t][u] += used[t][u][i];
                b[t] += gang[i] * solved[t][i];
                if (path->levels) {
                    a[t][k] -= gang[i] * pulled[t][i];
                    a[k][t] += gang[i] * pulled[t][i] * curve[t];
                    a[k][k] -= part->pull[t][i] * pulled[t][i];
                    b[k] += part->pull[t][i] * solved[t][i];
                }
            }
    }
    for (uint32_t t = 0; t < k; t++)
        a[t][t] += 1;
    if (path->levels) {
        a[k][k] += level_curve;
        b[k] += level_gradient;
    }
    if (!solve_dense(a, b, size))
        return -1;
    path->level_step = path->levels ? b[k] : 0;
    double decrement = path->levels ? level_gradient * path->level_step : 0;
    for (uint32_t j = 0; j < path->n; j += 2) {
        const struct newton_part *part = &parts[j / 2];
        lanes gang = both_jobs(path, path->gpus, j, 1, 0);
        lanes right[TYPES_MAX];
        lanes step[TYPES_MAX];
        for (uint32_t t = 0; t < k; t++)
            right[t] = part->gradient[t] - gang * b[t] * curve[t] +
                       part->pull[t] * path->level_step;
        multiply_blocks(&path->inverse[(size_t)(j / 2) * k * k], right, k, step);
        for (uint32_t i = 0; i < 2 && j + i < path->n; i++)
            for (uint32_t t = 0; t < k; t++) {
                path->step[(size_t)(j + i) * k + t] = step[t][i];
                decrement += part->gradient[t][i] * step[t][i];
            }
    }
    return decrement;
}

/*
 * With B the blocks, G the gangs by type, D = 1/left^2 and w the pulls of the level:
 *     B dx + G D y - w dz = g,   y = G' dx,   -w' dx + c dz = h.
 * Eliminate dx: a system in y and dz is left.  Returns the decrement squared, or -1.
 */
static double newton_step(struct barrier_path *path, struct newton_part *parts)
{
#define STEP(k) newton_step_by(path, parts, k)
    return BY_COLUMNS(path, STEP);
}

static ANY_COLUMNS double step_room_by(const struct barrier_path *path, uint32_t k)
{
    double most = 1 / NEAR;
    double used[TYPES_MAX] = { 0 };
    for (uint32_t j = 0; j < path->n; j++) {
        const double *x = &path->x[(size_t)j * k];
        const double *step = &path->step[(size_t)j * k];
        double more = 0;
        for (uint32_t t = 0; t < k; t++) {
            if (step[t] < 0)
                most = fmin(most, -x[t] / step[t]);
            more += step[t];
            used[t] += path->gpus[j] * step[t];
        }
        if (more > 0)
            most = fmin(most, spare_time(x, k) / more);
        if (has_need(path, j)) {
            double gain = -path->level_step * path->problem->need[j];
            for (uint32_t t = 0; t < k; t++)
                gain += path->problem->rate[(size_t)j * k + t] * step[t];
            if (gain < 0)
                most = fmin(most, -spare_rate(path, j, x, path->level, k) / gain);
        }
    }
    for (uint32_t t = 0; t < k; t++)
        if (used[t] > 0)
            most = fmin(most, path->left[t] / used[t]);
    return fmin(1, NEAR * most);
}

/* How far the step can go before it meets a wall, at most 1. */
static double step_room(const struct barrier_path *path)
{
#define ROOM(k) step_room_by(path, k)
    return BY_COLUMNS(path, ROOM);
}

/* Go as far along the step as it helps; false: it does not help any more. */
static bool take_step(struct barrier_path *path, double decrement, double *trial)
{
    size_t count = (size_t)path->n * path->k;
    if (isnan(path->value))
        path->value = barrier_value(path, path->x, path->level, path->left);
    double length = step_room(path);
    for (int i = 0; i < HALVINGS_MAX; i++, length *= 0.5) {
        for (size_t c = 0; c < count; c++)
            trial[c] = path->x[c] + length * path->step[c];
        double level = path->level + length * path->level_step;
        double left[TYPES_MAX];
        double value = barrier_value(path, trial, level, left);
        if (value >= path->value + 0.01 * length * decrement) {
            memcpy(path->x, trial, count * sizeof *trial);
            memcpy(path->left, left, sizeof left);
            path->level = level;
            path->value = value;
            return true;
        }
    }
    return false;
}

/* --- the path --------------------------------------------------------------------------- */

/* Well inside: half of an equal part of everything. */
static void start_inside(struct barrier_path *path)
{
    const struct interior_point *problem = path->problem;
    double gangs = 0;
    for (uint32_t j = 0; j < path->n; j++)
        gangs += path->count[j] * problem->gang[j];
    for (uint32_t j = 0; j < path->n; j++)
        for (uint32_t t = 0; t < path->k; t++)
            path->x[(size_t)j * path->k + t] =
                fmin(0.5 * problem->capacity[t] / gangs, 0.5 / path->k);
    if (!problem->need)
        return;
    path->level = INFINITY;
    for (uint32_t j = 0; j < path->n; j++)
        if (has_need(path, j))
            path->level =
                fmin(path->level,
                     spare_rate(path, j, &path->x[(size_t)j * path->k], 0, path->k) /
                         problem->need[j]);
    path->level *= isfinite(path->level) ? 0.5 : 0;
}

/*
 * With one column the largest level is known at once: what the first job can have at most,
 * or what uses everything.  Begin just below it, halfway between the needs and all that
 * there is; what is left is to find the middle.
 */
static void start_at_level(struct barrier_path *path)
{
    const struct interior_point *problem = path->problem;
    double level = INFINITY, wanted = 0, used = 0, more = 0;
    for (uint32_t j = 0; j < path->n; j++)
        if (has_need(path, j)) {
            level = fmin(level, problem->rate[j] / problem->need[j]);
            wanted +=
                path->count[j] * problem->gang[j] * problem->need[j] / problem->rate[j];
        }
    level = fmin(level, problem->capacity[0] / wanted) * (1 - BELOW);
    if (problem->enough > 0)
        level = fmin(level, problem->enough);
    for (uint32_t j = 0; j < path->n; j++) {
        double gang = path->count[j] * problem->gang[j];
        path->x[j] =
            has_need(path, j) ? level * problem->need[j] / problem->rate[j] : 0;
        used += gang * path->x[j];
        more += gang * (1 - path->x[j]);
    }
    double part = fmin(0.5, 0.5 * (problem->capacity[0] - used) / more);
    for (uint32_t j = 0; j < path->n; j++)
        path->x[j] += part * (1 - path->x[j]);
    path->level = level;
    path->levels = false;
}

/* What can be had at most: the scale on which the gap is measured. */
static double objective_scale(const struct barrier_path *path)
{
    const struct interior_point *problem = path->problem;
    double sum = 0;
    for (uint32_t j = 0; problem->value && j < path->n; j++)
        for (uint32_t t = 0; t < path->k; t++)
            sum += path->count[j] * problem->value[(size_t)j * path->k + t] *
                   path->x[(size_t)j * path->k + t];
    return problem->value ? fabs(sum) : path->level;
}

static bool has_known_level(const struct interior_point *centre)
{
    if (!centre->need || centre->type_count != 1)
        return false;
    for (uint32_t j = 0; j < centre->job_count; j++)
        if (centre->need[j] > 0)
            return true;
    return false;
}

/* Follow the path from the start to its end. */
static int follow_path(const struct interior_point *centre, const double *count,
                       double copies, struct arena *scratch, double *ret_x,
                       struct error *err)
{
    size_t shares = (size_t)centre->job_count * centre->type_count;
    struct barrier_path path = { .problem = centre,
                                 .n = centre->job_count,
                                 .k = centre->type_count,
                                 .x = ret_x,
                                 .copies = copies,
                                 .count = count,
                                 .levels = centre->need != NULL };
    path.step = arena_array(scratch, double, shares);
    path.gpus = arena_array(scratch, double, centre->job_count);
    path.inverse = arena_array(scratch, lanes,
                               (size_t)(centre->job_count + 1) / 2 *
                                   centre->type_count * centre->type_count);
    double *trial = arena_array(scratch, double, shares);
    struct newton_part *parts =
        arena_array(scratch, struct newton_part, (centre->job_count + 1) / 2);
    double jobs = 0;
    for (uint32_t j = 0; j < centre->job_count; j++) {
        jobs += count[j];
        path.gpus[j] = count[j] * centre->gang[j];
    }
    double walls = copies * (jobs + 1) * centre->type_count + 2 * jobs;
    uint32_t steps = 0;
    bool known = has_known_level(centre);
    if (known)
        start_at_level(&path);
    else
        start_inside(&path);
    spare_capacity(&path, path.x, path.left, path.k);
    path.t = 1 / fmax(objective_scale(&path), 1e-300);
    for (bool last = known; steps == 0 || !last; path.t *= GROWTH) {
        last = known || walls / path.t < GAP * objective_scale(&path);
        path.value = NAN;
        for (uint32_t i = 0; i < STEPS_PER_STAGE; i++) {
            if (++steps > STEPS_MAX)
                return error_set(err, -EDOM, "no centre after %u steps", steps);
            double decrement = newton_step(&path, parts);
            if (!(decrement > (last ? CENTRED : ROUGHLY)) ||
                !take_step(&path, decrement, trial))
                break;
            if (path.levels && centre->enough > 0 && path.level >= centre->enough) {
                path.level = centre->enough; /* the rest is for the middle alone */
                path.levels = false;
                path.value = NAN;
                last = true;
            }
        }
    }
    return 0;
}

/*
 * --- identical jobs and types have equal shares
 * ---------------------------------------
 */

static const double *job_rows(const struct interior_point *centre)
{
    return centre->need ? centre->rate : centre->value;
}

/* By gang, need and row; 0 for identical jobs. */
static int compare_jobs(const void *a, const void *b, void *context)
{
    const struct interior_point *centre = context;
    uint32_t j = *(const uint32_t *)a;
    uint32_t i = *(const uint32_t *)b;
    if (centre->gang[j] != centre->gang[i])
        return centre->gang[j] < centre->gang[i] ? -1 : 1;
    if (centre->need && centre->need[j] != centre->need[i])
        return centre->need[j] < centre->need[i] ? -1 : 1;
    const double *rows = job_rows(centre);
    for (uint32_t t = 0; t < centre->type_count; t++) {
        double mine = rows[(size_t)j * centre->type_count + t];
        double other = rows[(size_t)i * centre->type_count + t];
        if (mine != other)
            return mine < other ? -1 : 1;
    }
    return 0;
}

/* Do all types have the same capacity, and every job the same rate on all of them? */
static bool types_are_alike(const struct interior_point *centre)
{
    uint32_t k = centre->type_count;
    const double *rows = job_rows(centre);
    for (uint32_t t = 1; t < k; t++)
        if (centre->capacity[t] != centre->capacity[0])
            return false;
    for (size_t i = 0; i < (size_t)centre->job_count * k; i++)
        if (rows[i] != rows[i - i % k])
            return false;
    return true;
}

/* One row per class of identical jobs, and one column if all types are equal. */
struct reduced_problem {
    struct interior_point centre;
    double capacity;
    double *gang, *need, *rows;
    double *count;   /* [class] jobs in it  */
    uint32_t *class; /* [job]               */
    double copies;   /* types in one column */
};

static void reduce_problem(struct reduced_problem *small,
                           const struct interior_point *centre, struct arena *scratch)
{
    uint32_t n = centre->job_count;
    uint32_t k = centre->type_count;
    void *context = (void *)(uintptr_t)centre;
    uint32_t columns = types_are_alike(centre) ? 1 : k;
    uint32_t *order = arena_array(scratch, uint32_t, n);
    *small = (struct reduced_problem){ .centre = *centre,
                                       .capacity = centre->capacity[0] * k,
                                       .gang = arena_array(scratch, double, n),
                                       .need = arena_array(scratch, double, n),
                                       .rows = arena_array(scratch, double,
                                                           (size_t)n *columns),
                                       .count = arena_array(scratch, double, n),
                                       .class = arena_array(scratch, uint32_t, n),
                                       .copies = k / columns };
    for (uint32_t j = 0; j < n; j++)
        order[j] = j;
    qsort_r(order, n, sizeof *order, compare_jobs, context);
    uint32_t classes = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t j = order[i];
        if (i == 0 || compare_jobs(&order[i - 1], &j, context) != 0) {
            small->gang[classes] = centre->gang[j];
            small->need[classes] = centre->need ? centre->need[j] : 0;
            memcpy(&small->rows[(size_t)classes * columns],
                   &job_rows(centre)[(size_t)j * k], columns * sizeof *small->rows);
            classes++;
        }
        small->count[classes - 1]++;
        small->class[j] = classes - 1;
    }
    small->centre.job_count = classes;
    small->centre.type_count = columns;
    small->centre.gang = small->gang;
    small->centre.rate = small->rows;
    if (columns < k)
        small->centre.capacity = &small->capacity;
    if (centre->need)
        small->centre.need = small->need;
    else
        small->centre.value = small->rows;
}

int interior_point_solve(const struct interior_point *centre, struct arena *scratch,
                         double *ret_x, struct error *err)
{
    uint32_t k = centre->type_count;
    if (centre->job_count == 0 || k == 0)
        return 0;
    struct reduced_problem small;
    reduce_problem(&small, centre, scratch);
    uint32_t columns = small.centre.type_count;
    double *x = arena_array(scratch, double, (size_t)small.centre.job_count *columns);
    int r = follow_path(&small.centre, small.count, small.copies, scratch, x, err);
    for (size_t i = 0; i < (size_t)centre->job_count * k; i++)
        ret_x[i] =
            x[(size_t)small.class[i / k] * columns + i % k % columns] / small.copies;
    return r;
}
