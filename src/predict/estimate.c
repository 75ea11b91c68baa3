/* estimate.c - how an unknown job would run beside others, from a few trials. */
#include "predict/estimate.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/rng.h"
#include "model/sharing.h"
#include "model/throughput.h"

#define R ESTIMATE_RANK
#define TURNS 30 /* of the alternating fit, by which it has converged */

struct estimate_job {
    uint32_t match;           /* reference that stands for it             */
    bool stale;               /* cells were measured since it was matched */
    uint8_t large[TYPES_MAX]; /* 'large' of the smallest it did not fit beside */
};

/* --- small equations ----------------------------------------------------------------- */

/* Normal equations of a ridge regression: (sum v v' + ridge I) x = sum c v. */
struct normal_equations {
    double a[R][R];
    double b[R];
};

static void normal_begin(struct normal_equations *normal)
{
    memset(normal, 0, sizeof *normal);
    for (uint32_t i = 0; i < R; i++)
        normal->a[i][i] = ESTIMATE_RIDGE;
}

static void normal_add(struct normal_equations *normal, const double *v, double c)
{
    for (uint32_t i = 0; i < R; i++) {
        normal->b[i] += c * v[i];
        for (uint32_t j = 0; j <= i; j++)
            normal->a[i][j] += v[i] * v[j];
    }
}

/* By Cholesky, in place: the ridge keeps every pivot above 0. */
static void normal_solve(struct normal_equations *normal, double *x)
{
    double(*a)[R] = normal->a;
    for (uint32_t i = 0; i < R; i++) {
        for (uint32_t j = 0; j <= i; j++) {
            double sum = a[i][j];
            for (uint32_t k = 0; k < j; k++)
                sum -= a[i][k] * a[j][k];
            a[i][j] = i == j ? sqrt(fmax(sum, 1e-12)) : sum / a[j][j];
        }
    }
    for (uint32_t i = 0; i < R; i++) {
        x[i] = normal->b[i];
        for (uint32_t k = 0; k < i; k++)
            x[i] -= a[i][k] * x[k];
        x[i] /= a[i][i];
    }
    for (uint32_t i = R; i-- > 0;) {
        for (uint32_t k = i + 1; k < R; k++)
            x[i] -= a[k][i] * x[k];
        x[i] /= a[i][i];
    }
}

static double dot_product(const double *a, const double *b, uint32_t count)
{
    double sum = 0;
    for (uint32_t i = 0; i < count; i++)
        sum += a[i] * b[i];
    return sum;
}

static double clip_part(double kept)
{
    return kept > 0 ? fmin(kept, 1) : 0; /* NAN counts as 0 */
}

/* --- references ------------------------------------------------------------------------ */

static uint32_t column_of(const struct estimate *e, uint32_t type, uint32_t reference)
{
    assert(type < e->type_count);
    assert(reference < e->reference_count);
    return type * e->reference_count + reference;
}

static double *row_of(const struct estimate *e, uint32_t reference)
{
    return &e->kept[(size_t)reference * e->column_count];
}

static void fill_matrix(struct estimate *e, const struct throughput *table)
{
    for (uint32_t a = 0; a < e->reference_count; a++)
        for (uint32_t type = 0; type < e->type_count; type++)
            for (uint32_t b = 0; b < e->reference_count; b++) {
                struct job one = { .kind = e->kinds[a], .gpus = 1 };
                struct job two = { .kind = e->kinds[b], .gpus = 1 };
                double rates[2];
                double alone = throughput_rate(table, &one, type, 1, false);
                bool shares = sharing_rates(table, &one, &two, type, 1, false, rates);
                row_of(e, a)[column_of(e, type, b)] =
                    shares && alone > 0 ? clip_part(rates[0] / alone) : 0;
                e->large[column_of(e, type, b)] += !shares;
            }
}

/* Alternating least squares: fit rows to columns and columns to rows. */
static void factorise_matrix(struct estimate *e, double *rows)
{
    struct normal_equations normal;
    struct rng rng;
    rng_init(&rng, 1, "estimate");
    for (uint32_t i = 0; i < e->column_count * R; i++)
        e->columns[i] = rng_unit(&rng);
    for (uint32_t turn = 0; turn < TURNS; turn++) {
        for (uint32_t a = 0; a < e->reference_count; a++) {
            normal_begin(&normal);
            for (uint32_t c = 0; c < e->column_count; c++)
                normal_add(&normal, &e->columns[c * R], row_of(e, a)[c]);
            normal_solve(&normal, &rows[a * R]);
        }
        for (uint32_t c = 0; c < e->column_count; c++) {
            normal_begin(&normal);
            for (uint32_t a = 0; a < e->reference_count; a++)
                normal_add(&normal, &rows[a * R], row_of(e, a)[c]);
            normal_solve(&normal, &e->columns[c * R]);
        }
    }
}

void estimate_init(struct estimate *e, struct arena *run,
                   const struct throughput *table, const uint32_t *kinds,
                   uint32_t kind_count, uint32_t type_count, uint32_t job_max)
{
    *e = (struct estimate){
        .reference_count =
            kind_count < ESTIMATE_REFERENCES_MAX ? kind_count : ESTIMATE_REFERENCES_MAX,
        .type_count = type_count,
        .job_max = job_max,
    };
    uint32_t n = e->reference_count;
    e->column_count = type_count * n;
    e->kinds = arena_array(run, uint32_t, n);
    memcpy(e->kinds, kinds, n * sizeof *kinds);
    e->kept = arena_array(run, double, (size_t)n * e->column_count);
    e->norm = arena_array(run, double, n);
    e->large = arena_array(run, uint8_t, e->column_count);
    e->columns = arena_array(run, double, (size_t)e->column_count *R);
    e->row = arena_array(run, double, e->column_count);
    e->job = arena_array(run, struct estimate_job, job_max);
    e->cells = arena_array(run, double, (size_t)job_max * e->column_count);
    fill_matrix(e, table);
    factorise_matrix(e, arena_array(run, double, (size_t)n *R));
    double least = INFINITY;
    for (uint32_t a = 0; a < n; a++) {
        double sum = 0;
        for (uint32_t c = 0; c < e->column_count; c++)
            sum += row_of(e, a)[c];
        e->norm[a] = sqrt(dot_product(row_of(e, a), row_of(e, a), e->column_count));
        if (sum < least) {
            least = sum;
            e->worst = a;
        }
    }
}

/* --- jobs -------------------------------------------------------------------------------- */

static double *cells_of(const struct estimate *e, job_id job)
{
    assert(job < e->job_max);
    return &e->cells[(size_t)job * e->column_count];
}

void estimate_begin(struct estimate *e, job_id job)
{
    double *cells = cells_of(e, job);
    for (uint32_t c = 0; c < e->column_count; c++)
        cells[c] = -1;
    e->job[job] = (struct estimate_job){ .match = e->worst };
    memset(e->job[job].large, UINT8_MAX, sizeof e->job[job].large);
}

void estimate_note(struct estimate *e, job_id job, uint32_t type, uint32_t reference,
                   double kept)
{
    struct estimate_job *known = &e->job[job];
    uint32_t column = column_of(e, type, reference);
    cells_of(e, job)[column] = clip_part(kept);
    known->stale = true;
    if (clip_part(kept) == 0 && e->large[column] < known->large[type])
        known->large[type] = e->large[column];
}

/* Known cells as measured, the others as its factors predict. */
static void complete_row(struct estimate *e, job_id job)
{
    const double *cells = cells_of(e, job);
    struct normal_equations normal;
    double numbers[R];
    normal_begin(&normal);
    for (uint32_t c = 0; c < e->column_count; c++)
        if (cells[c] >= 0)
            normal_add(&normal, &e->columns[c * R], cells[c]);
    normal_solve(&normal, numbers);
    for (uint32_t c = 0; c < e->column_count; c++)
        e->row[c] = cells[c] >= 0
                        ? cells[c]
                        : clip_part(dot_product(numbers, &e->columns[c * R], R));
}

uint32_t estimate_match(struct estimate *e, job_id job)
{
    struct estimate_job *known = &e->job[job];
    if (!known->stale)
        return known->match;
    complete_row(e, job);
    double norm = sqrt(dot_product(e->row, e->row, e->column_count));
    double nearest = -1;
    known->match = e->worst;
    known->stale = false;
    for (uint32_t a = 0; norm > 0 && a < e->reference_count; a++) {
        if (!(e->norm[a] > 0))
            continue;
        double cosine =
            dot_product(e->row, row_of(e, a), e->column_count) / (norm * e->norm[a]);
        if (cosine > nearest) {
            nearest = cosine;
            known->match = a;
        }
    }
    return known->match;
}

void estimate_measured(struct estimate *e, job_id job, job_id other, uint32_t type,
                       double kept)
{
    estimate_note(e, job, type, estimate_match(e, other), kept);
}

double estimate_beside(struct estimate *e, job_id job, uint32_t type,
                       uint32_t reference)
{
    uint32_t column = column_of(e, type, reference);
    double measured = cells_of(e, job)[column];
    if (measured >= 0)
        return measured;
    if (e->large[column] >= e->job[job].large[type])
        return 0;
    return row_of(e, estimate_match(e, job))[column];
}

double estimate_kept(struct estimate *e, job_id job, job_id other, uint32_t type)
{
    return estimate_beside(e, job, type, estimate_match(e, other));
}

double estimate_cell(struct estimate *e, job_id job, uint32_t type, uint32_t reference)
{
    complete_row(e, job);
    return e->row[column_of(e, type, reference)];
}
