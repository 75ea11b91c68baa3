/*
 * lp_model.c - a programme's shares as the columns of a linear programme.
 *
 * Rows: one per type, then one per job for its time, then one per job for its rate.
 */
#include "solve/lp/lp_model.h"

#include <assert.h>
#include <math.h>

#include "base/arena.h"

static void add_rows(struct lp_model *model)
{
    const struct programme *p = model->problem->programme;
    for (uint32_t t = 0; t < p->type_count; t++)
        lp_add_row(model->lp, -LP_INFINITY, p->capacity[t]);
    for (uint32_t j = 0; j < p->job_count; j++)
        lp_add_row(model->lp, -LP_INFINITY, 1);
    for (uint32_t j = 0; j < p->job_count; j++)
        lp_add_row(model->lp, -LP_INFINITY, LP_INFINITY);
}

static void add_column(struct lp_model *model, uint32_t line, uint32_t type,
                       double gain)
{
    const struct problem *problem = model->problem;
    uint32_t rows[5], members[2];
    double coefficients[5];
    uint32_t count = 0;
    rows[count] = type;
    coefficients[count++] = problem_line_gang(problem, line);
    uint32_t member_count = problem_line_members(problem, line, members);
    for (uint32_t i = 0; i < member_count; i++) {
        rows[count] = model->time_rows + members[i];
        coefficients[count++] = 1;
        double unit = model->unit[members[i]];
        if (unit > 0) {
            rows[count] = model->rate_rows + members[i];
            coefficients[count++] = unit * problem_line_rate(problem, line, type, i);
        }
    }
    size_t cell = (size_t)line * problem->programme->type_count + type;
    model->columns[cell] =
        lp_add_column(model->lp, gain, 0, LP_INFINITY, count, rows, coefficients);
}

/* Does the goal, or a value, give this line a use for the type? */
static bool is_wanted(const struct lp_model *model, uint32_t line, uint32_t type)
{
    uint32_t members[2];
    problem_line_members(model->problem, line, members);
    size_t cell = (size_t)line * model->problem->programme->type_count + type;
    return problem_line_usable(model->problem, line, type) &&
           (model->unit[members[0]] > 0 || model->unit[members[1]] > 0 ||
            (model->value && model->value[cell] > 0));
}

void lp_model_init(struct lp_model *model, const struct problem *problem,
                   const double *unit, const double *value)
{
    const struct programme *p = problem->programme;
    *model = (struct lp_model){
        .problem = problem,
        .lp = lp_new(),
        .columns = arena_array(problem->arena, uint32_t,
                               (size_t)problem->line_count * p->type_count),
        .unit = unit,
        .value = value,
        .need = arena_array(problem->arena, double, p->job_count),
        .floor = arena_array(problem->arena, double, p->job_count),
        .time_rows = p->type_count,
        .rate_rows = p->type_count + p->job_count,
        .level = LP_MODEL_NONE,
    };
    add_rows(model);
    for (uint32_t line = 0; line < problem->line_count; line++)
        for (uint32_t t = 0; t < p->type_count; t++) {
            size_t cell = (size_t)line * p->type_count + t;
            model->columns[cell] = LP_MODEL_NONE;
            if (is_wanted(model, line, t))
                add_column(model, line, t, value ? value[cell] : 0);
        }
}

void lp_model_release(struct lp_model *model)
{
    lp_free(model->lp);
}

/* The row of a rate binds if it has a floor or a need. */
static void set_rate_row(struct lp_model *model, uint32_t job)
{
    bool binds = model->floor[job] > 0 || model->need[job] > 0;
    lp_set_row(model->lp, model->rate_rows + job,
               binds ? model->floor[job] : -LP_INFINITY, LP_INFINITY);
}

void lp_model_set_floor(struct lp_model *model, uint32_t job, double floor)
{
    model->floor[job] = floor;
    set_rate_row(model, job);
}

void lp_model_add_level(struct lp_model *model, double most, const double *need)
{
    assert(!model->value);
    uint32_t count = model->problem->programme->job_count;
    uint32_t *rows = arena_array(model->problem->arena, uint32_t, count);
    double *coefficients = arena_array(model->problem->arena, double, count);
    uint32_t used = 0;
    for (uint32_t j = 0; j < count; j++)
        if (need[j] > 0) {
            rows[used] = model->rate_rows + j;
            coefficients[used++] = -need[j];
            model->need[j] = need[j];
            set_rate_row(model, j);
        }
    model->level = lp_add_column(model->lp, 1, 0, most, used, rows, coefficients);
}

void lp_model_set_need(struct lp_model *model, uint32_t job, double need)
{
    model->need[job] = need;
    lp_set_coefficient(model->lp, model->rate_rows + job, model->level, -need);
    set_rate_row(model, job);
}

enum lp_status lp_model_maximise(struct lp_model *model)
{
    enum lp_status status = lp_maximise(model->lp, LP_DUAL);
    model->iterations += lp_iterations(model->lp);
    if (status == LP_OPTIMAL)
        return status;
    /* A second opinion: one method's trouble is seldom the other's. */
    status = lp_maximise(model->lp, LP_PRIMAL);
    model->iterations += lp_iterations(model->lp);
    return status;
}

void lp_model_shares(const struct lp_model *model, double *ret_x)
{
    const struct problem *problem = model->problem;
    const double *columns = lp_columns(model->lp);
    size_t cells = (size_t)problem->line_count * problem->programme->type_count;
    for (size_t i = 0; i < cells; i++)
        ret_x[i] = model->columns[i] == LP_MODEL_NONE ? 0 : columns[model->columns[i]];
    problem_make_feasible(problem, ret_x);
}

double lp_model_job_price(const struct lp_model *model, uint32_t job)
{
    return fmax(0, -lp_duals(model->lp)[model->rate_rows + job]);
}

/* What a line would still bring at these prices, at best. */
static double find_line_excess(const struct lp_model *model, uint32_t line,
                               const double *price, const double *time)
{
    const struct problem *problem = model->problem;
    uint32_t type_count = problem->programme->type_count;
    uint32_t members[2];
    uint32_t count = problem_line_members(problem, line, members);
    double best = 0;
    for (uint32_t t = 0; t < type_count; t++) {
        size_t cell = (size_t)line * type_count + t;
        if (model->columns[cell] == LP_MODEL_NONE)
            continue;
        double gain = model->value ? model->value[cell] : 0;
        gain -= problem_line_gang(problem, line) * price[t];
        for (uint32_t i = 0; i < count; i++)
            gain += lp_model_job_price(model, members[i]) * model->unit[members[i]] *
                        problem_line_rate(problem, line, t, i) -
                    time[members[i]];
        best = fmax(best, gain);
    }
    return best;
}

/*
 * Weak duality by hand.  With prices p of types, m of jobs' time and y of rates, all
 * >= 0, no shares are worth more than
 *
 *     p . capacity + sum m - y . floor + sum over lines of what they would still bring
 *
 * since a line has at most the whole time.  With a level, y is scaled so that y . need
 * is 1; any scale proves something, this one proves it about z.
 */
double lp_model_bound(const struct lp_model *model)
{
    const struct programme *p = model->problem->programme;
    const double *duals = lp_duals(model->lp);
    double price[SOLVE_TYPES_MAX];
    double *time = arena_array(model->problem->arena, double, p->job_count);
    double bound = 0, scale = 0;
    for (uint32_t t = 0; t < p->type_count; t++) {
        price[t] = fmax(0, duals[t]);
        bound += price[t] * p->capacity[t];
    }
    for (uint32_t j = 0; j < p->job_count; j++) {
        time[j] = fmax(0, duals[model->time_rows + j]);
        bound += time[j] - lp_model_job_price(model, j) * model->floor[j];
        scale += lp_model_job_price(model, j) * model->need[j];
    }
    for (uint32_t line = 0; line < model->problem->line_count; line++)
        bound += find_line_excess(model, line, price, time);
    if (model->level == LP_MODEL_NONE)
        return bound;
    return scale > 0 ? bound / scale : INFINITY;
}
