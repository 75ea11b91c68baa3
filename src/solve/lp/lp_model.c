/*
 * lp_model.c - a programme's shares as the columns of a linear programme.
 *
 * Rows: one per type, then one per job for its time, then one per job for its rate.
 */
#include "solve/lp/lp_model.h"

#include <assert.h>
#include <math.h>

#include "base/arena.h"

static uint32_t time_row(const struct linear *linear, uint32_t job)
{
    return linear->frame->programme->type_count + job;
}

static uint32_t rate_row(const struct linear *linear, uint32_t job)
{
    const struct programme *p = linear->frame->programme;
    return p->type_count + p->job_count + job;
}

static void add_rows(struct linear *linear)
{
    const struct programme *p = linear->frame->programme;
    for (uint32_t t = 0; t < p->type_count; t++)
        lp_add_row(linear->lp, -LP_INFINITY, p->capacity[t]);
    for (uint32_t j = 0; j < p->job_count; j++)
        lp_add_row(linear->lp, -LP_INFINITY, 1);
    for (uint32_t j = 0; j < p->job_count; j++)
        lp_add_row(linear->lp, -LP_INFINITY, LP_INFINITY);
}

static void add_column(struct linear *linear, uint32_t line, uint32_t type, double gain)
{
    const struct frame *frame = linear->frame;
    uint32_t rows[5], members[2];
    double coefficients[5];
    uint32_t count = 0;
    rows[count] = type;
    coefficients[count++] = line_gang(frame, line);
    uint32_t member_count = line_members(frame, line, members);
    for (uint32_t i = 0; i < member_count; i++) {
        rows[count] = time_row(linear, members[i]);
        coefficients[count++] = 1;
        double unit = linear->unit[members[i]];
        if (unit > 0) {
            rows[count] = rate_row(linear, members[i]);
            coefficients[count++] = unit * line_rate(frame, line, type, i);
        }
    }
    size_t cell = (size_t)line * frame->programme->type_count + type;
    linear->columns[cell] =
        lp_add_column(linear->lp, gain, 0, LP_INFINITY, count, rows, coefficients);
}

/* Has somebody in this line a use for it? */
static bool wanted(const struct linear *linear, uint32_t line, uint32_t type)
{
    uint32_t members[2];
    line_members(linear->frame, line, members);
    size_t cell = (size_t)line * linear->frame->programme->type_count + type;
    return line_usable(linear->frame, line, type) &&
           (linear->unit[members[0]] > 0 || linear->unit[members[1]] > 0 ||
            (linear->value && linear->value[cell] > 0));
}

void linear_init(struct linear *linear, const struct frame *frame, const double *unit,
                 const double *value)
{
    const struct programme *p = frame->programme;
    *linear = (struct linear){
        .frame = frame,
        .lp = lp_new(),
        .columns = arena_array(frame->arena, uint32_t,
                               (size_t)frame->line_count * p->type_count),
        .unit = unit,
        .value = value,
        .need = arena_array(frame->arena, double, p->job_count),
        .floor = arena_array(frame->arena, double, p->job_count),
        .level = LINEAR_NONE,
        .spare = LINEAR_NONE,
    };
    add_rows(linear);
    for (uint32_t line = 0; line < frame->line_count; line++)
        for (uint32_t t = 0; t < p->type_count; t++) {
            size_t cell = (size_t)line * p->type_count + t;
            linear->columns[cell] = LINEAR_NONE;
            if (wanted(linear, line, t))
                add_column(linear, line, t, value ? value[cell] : 0);
        }
}

void linear_release(struct linear *linear)
{
    lp_free(linear->lp);
}

/* A rate's row binds if anything is asked for in it. */
static void set_rate_row(struct linear *linear, uint32_t job)
{
    bool binds = linear->floor[job] > 0 || linear->need[job] > 0;
    lp_set_row(linear->lp, rate_row(linear, job),
               binds ? linear->floor[job] : -LP_INFINITY, LP_INFINITY);
}

void linear_set_floor(struct linear *linear, uint32_t job, double floor)
{
    linear->floor[job] = floor;
    set_rate_row(linear, job);
}

void linear_add_level(struct linear *linear, double most, const double *need)
{
    assert(!linear->value);
    uint32_t count = linear->frame->programme->job_count;
    uint32_t *rows = arena_array(linear->frame->arena, uint32_t, count);
    double *coefficients = arena_array(linear->frame->arena, double, count);
    uint32_t used = 0;
    for (uint32_t j = 0; j < count; j++)
        if (need[j] > 0) {
            rows[used] = rate_row(linear, j);
            coefficients[used++] = -need[j];
            linear->need[j] = need[j];
            set_rate_row(linear, j);
        }
    linear->level = lp_add_column(linear->lp, 1, 0, most, used, rows, coefficients);
}

void linear_set_level(struct linear *linear, double most)
{
    lp_set_column(linear->lp, linear->level, 0, most);
    lp_set_gain(linear->lp, linear->level, most > 0 ? 1 : 0);
}

void linear_set_value(struct linear *linear, const double *value)
{
    const struct frame *frame = linear->frame;
    size_t cells = (size_t)frame->line_count * frame->programme->type_count;
    for (size_t i = 0; i < cells; i++)
        if (linear->columns[i] != LINEAR_NONE)
            lp_set_gain(linear->lp, linear->columns[i], value[i]);
    linear->value = value;
}

void linear_add_cut(struct linear *linear, const double *coefficients, double low)
{
    const struct frame *frame = linear->frame;
    size_t cells = (size_t)frame->line_count * frame->programme->type_count;
    uint32_t *columns = arena_array(frame->arena, uint32_t, cells);
    double *values = arena_array(frame->arena, double, cells);
    uint32_t used = 0;
    for (size_t i = 0; i < cells; i++)
        if (linear->columns[i] != LINEAR_NONE && coefficients[i] != 0) {
            columns[used] = linear->columns[i];
            values[used++] = coefficients[i];
        }
    lp_add_cut(linear->lp, low, LP_INFINITY, used, columns, values);
}

void linear_set_need(struct linear *linear, uint32_t job, double need)
{
    linear->need[job] = need;
    lp_set_coefficient(linear->lp, rate_row(linear, job), linear->level, -need);
    set_rate_row(linear, job);
}

void linear_add_spare(struct linear *linear)
{
    const double minus = -1;
    for (uint32_t j = 0; j < linear->frame->programme->job_count; j++) {
        uint32_t row = rate_row(linear, j);
        uint32_t column = lp_add_column(linear->lp, 0, 0, 0, 1, &row, &minus);
        if (j == 0)
            linear->spare = column;
    }
}

void linear_set_spare(struct linear *linear, uint32_t job, double most)
{
    lp_set_column(linear->lp, linear->spare + job, 0, most);
    lp_set_gain(linear->lp, linear->spare + job, most > 0 ? 1 : 0);
}

enum lp_status linear_maximise(struct linear *linear)
{
    enum lp_status status = lp_maximise(linear->lp, LP_DUAL);
    linear->iterations += lp_iterations(linear->lp);
    if (status == LP_OPTIMAL)
        return status;
    /* A second opinion: one method's trouble is seldom the other's. */
    status = lp_maximise(linear->lp, LP_PRIMAL);
    linear->iterations += lp_iterations(linear->lp);
    return status;
}

double linear_level(const struct linear *linear)
{
    return lp_columns(linear->lp)[linear->level];
}

double linear_spare(const struct linear *linear, uint32_t job)
{
    return lp_columns(linear->lp)[linear->spare + job];
}

void linear_shares(const struct linear *linear, double *ret_x)
{
    const struct frame *frame = linear->frame;
    const double *columns = lp_columns(linear->lp);
    size_t cells = (size_t)frame->line_count * frame->programme->type_count;
    for (size_t i = 0; i < cells; i++)
        ret_x[i] = linear->columns[i] == LINEAR_NONE ? 0 : columns[linear->columns[i]];
    frame_tidy_up(frame, ret_x);
}

double linear_pull(const struct linear *linear, uint32_t job)
{
    return fmax(0, -lp_duals(linear->lp)[rate_row(linear, job)]);
}

/* What a line would still bring at these prices, at best. */
static double line_excess(const struct linear *linear, uint32_t line,
                          const double *price, const double *time)
{
    const struct frame *frame = linear->frame;
    uint32_t type_count = frame->programme->type_count;
    uint32_t members[2];
    uint32_t count = line_members(frame, line, members);
    double best = 0;
    for (uint32_t t = 0; t < type_count; t++) {
        size_t cell = (size_t)line * type_count + t;
        if (linear->columns[cell] == LINEAR_NONE)
            continue;
        double gain = linear->value ? linear->value[cell] : 0;
        gain -= line_gang(frame, line) * price[t];
        for (uint32_t i = 0; i < count; i++)
            gain += linear_pull(linear, members[i]) * linear->unit[members[i]] *
                        line_rate(frame, line, t, i) -
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
double linear_bound(const struct linear *linear)
{
    const struct programme *p = linear->frame->programme;
    const double *duals = lp_duals(linear->lp);
    double price[SOLVE_TYPES_MAX];
    double *time = arena_array(linear->frame->arena, double, p->job_count);
    double bound = 0, scale = 0;
    for (uint32_t t = 0; t < p->type_count; t++) {
        price[t] = fmax(0, duals[t]);
        bound += price[t] * p->capacity[t];
    }
    for (uint32_t j = 0; j < p->job_count; j++) {
        time[j] = fmax(0, duals[time_row(linear, j)]);
        bound += time[j] - linear_pull(linear, j) * linear->floor[j];
        scale += linear_pull(linear, j) * linear->need[j];
    }
    for (uint32_t line = 0; line < linear->frame->line_count; line++)
        bound += line_excess(linear, line, price, time);
    if (linear->level == LINEAR_NONE)
        return bound;
    return scale > 0 ? bound / scale : INFINITY;
}
