/*
 * pairs.c - shares where two jobs may run on the same accelerators, by column
 * generation.
 *
 * One linear programme serves all goals.  Its variables are how many members of a
 * class, or pairs of members, run on a type at a time, and mu:
 *
 *     rates   sum rate x               >= count * due      for each class
 *     time    sum x - count mu         <= 0                for each class
 *     room    sum gang x - capacity mu <= 0                for each type
 *
 * For a level, mu is minimised: shares x / mu fit, and give every member its due over
 * mu.  That is "maximise z" turned round, so that z is not in the row of every class,
 * which suits a simplex method much better.  For a sum, mu is 0, and counts and
 * capacities are on the right-hand side.
 *
 * Rows of time are left out until they are violated, and pairs until they pay; most
 * never are and never do.  The bound is computed here from the duals, over all lines,
 * whether they are in the programme or not: the solver is not trusted for it.
 */
#include "solve/solve.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/memory.h"
#include "solve/lp/lp.h"

#define PAIRS_TYPES_MAX 16
#define NONE UINT32_MAX
#define ROUNDS_MAX 400
#define PAYS 1e-9      /* of what it costs: a column that gains less is left out */
#define BROKEN 1e-10   /* of a member's time: more than that and its row is enforced */
#define GAIN_SHARE 0.8 /* of the best of its class: columns that are added first */
#define NEWTON_MAX 60
#define FLOOR_SLACK 1e-9    /* floors may be missed by that                          */
#define KEPT_SLACK 1e-9     /* levels are kept to that, or rounding forbids them     */
#define KEPT_SLACK_MAX 2e-7 /* or to that, where a solution is not found otherwise   */
#define PRICED 1e-9         /* of the highest price: less is none                    */

struct pairs_solver {
    struct arena arena; /* all that follows, for one set of classes and pairs   */
    uint32_t class_count, type_count, pair_count, line_count;
    double *gang, *rate, *pair_rate;
    struct programme_pair *ends;
    struct lp *lp;
    uint32_t *column; /* [line][type], or NONE                        */
    uint32_t mu;      /* its column                                   */
    double *mu_in;    /* [row]: its coefficients                      */
    bool *in_force;   /* [class]: the row of its time is in force */
    bool has_gains;   /* of the last call                             */

    /* the call at hand */
    const struct pairs_input *in;
    const double *value;    /* [line][type] of a sum, or NULL                    */
    double *due;            /* [class]                                           */
    double *kept;           /* [class]: what it keeps per unit of mu; 0: nothing */
    double *rates, *times;  /* [class]: what shares give all its members         */
    double *best;           /* [class]: the most that a new column of it gains   */
    bool *runs_alone, *can; /* [class]: runs alone; runs alone or beside others */
    double *pi, *beta;      /* [class]: price of a step, of a member's time      */
    double kappa[PAIRS_TYPES_MAX]; /* of an accelerator */
    struct pairs_answer *answer;
};

static double count_of(const struct pairs_solver *p, uint32_t class)
{
    return p->in->count ? p->in->count[class] : 1;
}

/* The classes of a line; twice the same for a class with itself. */
static uint32_t members_of(const struct pairs_solver *p, uint32_t line,
                           uint32_t members[2])
{
    if (line < p->class_count) {
        members[0] = members[1] = line;
        return 1;
    }
    members[0] = p->ends[line - p->class_count].first;
    members[1] = p->ends[line - p->class_count].second;
    return 2;
}

static double rate_of(const struct pairs_solver *p, uint32_t line, uint32_t type,
                      uint32_t place)
{
    if (line < p->class_count)
        return p->rate[(size_t)line * p->type_count + type];
    size_t cell = (size_t)(line - p->class_count) * p->type_count + type;
    return p->pair_rate[cell * 2 + place];
}

/*
 * A pair in which one of the two would stand still is not used, nor a member with
 * itself.
 */
static bool can_run(const struct pairs_solver *p, uint32_t line, uint32_t type)
{
    uint32_t members[2];
    uint32_t size = members_of(p, line, members);
    if (p->in->capacity[type] <= 0)
        return false;
    if (size == 2 && members[0] == members[1] && count_of(p, members[0]) < 2)
        return false;
    return rate_of(p, line, type, 0) > 0 && rate_of(p, line, type, size - 1) > 0;
}

static double value_of(const struct pairs_solver *p, uint32_t line, uint32_t type)
{
    return p->value ? p->value[(size_t)line * p->type_count + type] : 0;
}

/* ---- the programme --------------------------------------------------------------- */

static uint32_t row_of_rate(const struct pairs_solver *p, uint32_t class)
{
    return class;
}

static uint32_t row_of_time(const struct pairs_solver *p, uint32_t class)
{
    return p->class_count + class;
}

static uint32_t row_of_room(const struct pairs_solver *p, uint32_t type)
{
    return 2 * p->class_count + type;
}

static void add_column(struct pairs_solver *p, uint32_t line, uint32_t type)
{
    uint32_t members[2], rows[5], entries = 0;
    double coefficients[5];
    uint32_t size = members_of(p, line, members);
    bool twice = size == 2 && members[0] == members[1];
    for (uint32_t i = 0; i < (twice ? 1 : size); i++) {
        rows[entries] = row_of_rate(p, members[i]);
        coefficients[entries++] =
            rate_of(p, line, type, i) + (twice ? rate_of(p, line, type, 1) : 0);
        rows[entries] = row_of_time(p, members[i]);
        coefficients[entries++] = twice ? 2 : 1;
    }
    rows[entries] = row_of_room(p, type);
    coefficients[entries++] = p->gang[members[0]];
    p->column[(size_t)line * p->type_count + type] = lp_add_column(
        p->lp, value_of(p, line, type), 0, LP_INFINITY, entries, rows, coefficients);
}

static void *copy_array(struct arena *arena, const void *from, size_t bytes)
{
    void *copy = arena_alloc(arena, bytes + 8, 1, alignof(double));
    if (bytes > 0)
        memcpy(copy, from, bytes);
    return copy;
}

static bool is_same_input(const struct pairs_solver *p, const struct pairs_input *in)
{
    size_t cells = (size_t)in->class_count * in->type_count;
    size_t pair_cells = (size_t)in->pair_count * in->type_count;
    return p->lp && p->class_count == in->class_count &&
           p->type_count == in->type_count && p->pair_count == in->pair_count &&
           memcmp(p->gang, in->gang, in->class_count * sizeof *p->gang) == 0 &&
           memcmp(p->rate, in->rate, cells * sizeof *p->rate) == 0 &&
           (in->pair_count == 0 ||
            (memcmp(p->ends, in->pairs, in->pair_count * sizeof *p->ends) == 0 &&
             memcmp(p->pair_rate, in->pair_rate,
                    pair_cells * 2 * sizeof *p->pair_rate) == 0));
}

/* Rows, the column of mu, and the columns of jobs alone. */
static void build_programme(struct pairs_solver *p)
{
    uint32_t n = p->class_count, k = p->type_count;
    uint32_t *rows = arena_array(&p->arena, uint32_t, n * 2 + k);
    p->mu_in = arena_array(&p->arena, double, n * 2 + k);
    p->lp = lp_new();
    for (uint32_t r = 0; r < 2 * n + k; r++) {
        lp_add_row(p->lp, -LP_INFINITY, LP_INFINITY);
        rows[r] = r;
    }
    for (uint32_t c = 0; c < n; c++)
        p->mu_in[row_of_time(p, c)] = -count_of(p, c);
    for (uint32_t t = 0; t < k; t++)
        p->mu_in[row_of_room(p, t)] = -p->in->capacity[t];
    p->mu = lp_add_column(p->lp, -1, 0, LP_INFINITY, 2 * n + k, rows, p->mu_in);
    for (uint32_t line = 0; line < p->line_count; line++)
        for (uint32_t t = 0; t < k; t++) {
            p->column[(size_t)line * k + t] = NONE;
            if (line < n && p->rate[(size_t)line * k + t] > 0)
                add_column(p, line, t);
        }
}

static void rebuild_solver(struct pairs_solver *p, const struct pairs_input *in)
{
    uint32_t n = in->class_count, k = in->type_count;
    lp_free(p->lp);
    arena_reset(&p->arena);
    p->class_count = n;
    p->type_count = k;
    p->pair_count = in->pair_count;
    p->line_count = n + in->pair_count;
    struct arena *arena = &p->arena;
    p->gang = copy_array(arena, in->gang, n * sizeof *p->gang);
    p->rate = copy_array(arena, in->rate, (size_t)n * k * sizeof *p->rate);
    p->ends = copy_array(arena, in->pairs, in->pair_count * sizeof *p->ends);
    p->pair_rate = copy_array(arena, in->pair_rate,
                              (size_t)in->pair_count * k * 2 * sizeof *p->pair_rate);
    p->column = arena_array(arena, uint32_t, (size_t)p->line_count * k + 1);
    p->in_force = arena_array(arena, bool, n + 1);
    p->due = arena_array(arena, double, n + 1);
    p->kept = arena_array(arena, double, n + 1);
    p->rates = arena_array(arena, double, n + 1);
    p->times = arena_array(arena, double, n + 1);
    p->best = arena_array(arena, double, n + 1);
    p->runs_alone = arena_array(arena, bool, n + 1);
    p->can = arena_array(arena, bool, n + 1);
    p->pi = arena_array(arena, double, n + 1);
    p->beta = arena_array(arena, double, n + 1);
    p->has_gains = p->value != NULL;
    build_programme(p);
}

/* Every class with a due needs a column by which it can get it; false: one cannot. */
static bool pairs_add_needed_columns(struct pairs_solver *p)
{
    bool *runs_alone = p->runs_alone, *can = p->can;
    memset(runs_alone, 0, p->class_count * sizeof *runs_alone);
    for (uint32_t line = 0; line < p->class_count; line++)
        for (uint32_t t = 0; t < p->type_count; t++)
            runs_alone[line] |= can_run(p, line, t);
    memcpy(can, runs_alone, p->class_count * sizeof *can);
    for (uint32_t line = p->class_count; line < p->line_count; line++) {
        uint32_t members[2];
        members_of(p, line, members);
        for (uint32_t t = 0; t < p->type_count; t++) {
            if ((runs_alone[members[0]] && runs_alone[members[1]]) ||
                !can_run(p, line, t))
                continue;
            can[members[0]] = can[members[1]] = true;
            if (p->column[(size_t)line * p->type_count + t] == NONE)
                add_column(p, line, t);
        }
    }
    for (uint32_t c = 0; c < p->class_count; c++)
        if (p->due[c] > 0 && !can[c])
            return false;
    return true;
}

/* Columns of members with themselves come and go with the counts. */
static void open_columns(struct pairs_solver *p)
{
    for (uint32_t line = p->class_count; line < p->line_count; line++) {
        uint32_t members[2];
        members_of(p, line, members);
        if (members[0] != members[1])
            continue;
        for (uint32_t t = 0; t < p->type_count; t++) {
            uint32_t column = p->column[(size_t)line * p->type_count + t];
            if (column != NONE)
                lp_set_column(p->lp, column, 0, can_run(p, line, t) ? LP_INFINITY : 0);
        }
    }
}

static void set_gains(struct pairs_solver *p)
{
    if (!p->value && !p->has_gains)
        return;
    p->has_gains = p->value != NULL;
    for (uint32_t line = 0; line < p->line_count; line++)
        for (uint32_t t = 0; t < p->type_count; t++) {
            uint32_t column = p->column[(size_t)line * p->type_count + t];
            if (column != NONE)
                lp_set_gain(p->lp, column, value_of(p, line, t));
        }
}

static void set_mu(struct pairs_solver *p, uint32_t row, double coefficient)
{
    if (p->mu_in[row] == coefficient)
        return;
    p->mu_in[row] = coefficient;
    lp_set_coefficient(p->lp, row, p->mu, coefficient);
}

/* What a class is due: a number, or a multiple of mu. */
static void pairs_set_due(struct pairs_solver *p, uint32_t class)
{
    lp_set_row(p->lp, row_of_rate(p, class), count_of(p, class) * p->due[class],
               LP_INFINITY);
    set_mu(p, row_of_rate(p, class), -count_of(p, class) * p->kept[class]);
}

static void set_time_row(struct pairs_solver *p, uint32_t class)
{
    double most = p->in_force[class] ? 0 : LP_INFINITY;
    lp_set_row(p->lp, row_of_time(p, class), -LP_INFINITY,
               p->value ? count_of(p, class) : most);
}

/* The programme of this call: counts, capacities, what is due. */
static void pairs_set_programme(struct pairs_solver *p)
{
    for (uint32_t c = 0; c < p->class_count; c++) {
        pairs_set_due(p, c);
        set_time_row(p, c);
        set_mu(p, row_of_time(p, c), -count_of(p, c));
    }
    for (uint32_t t = 0; t < p->type_count; t++) {
        lp_set_row(p->lp, row_of_room(p, t), -LP_INFINITY,
                   p->value ? p->in->capacity[t] : 0);
        set_mu(p, row_of_room(p, t), -p->in->capacity[t]);
    }
    lp_set_column(p->lp, p->mu, 0, p->value ? 0 : LP_INFINITY);
    open_columns(p);
    set_gains(p);
}

/* ---- shares ---------------------------------------------------------------------- */

/* What x of each line gives and takes. */
static void add_usage(struct pairs_solver *p, const double *x, double *ret_usage)
{
    uint32_t n = p->class_count, k = p->type_count;
    memset(p->rates, 0, n * sizeof *p->rates);
    memset(p->times, 0, n * sizeof *p->times);
    memset(ret_usage, 0, k * sizeof *ret_usage);
    for (uint32_t line = 0; line < p->line_count; line++) {
        uint32_t members[2];
        uint32_t size = members_of(p, line, members);
        for (uint32_t t = 0; t < k; t++) {
            double much = x[(size_t)line * k + t];
            if (much == 0)
                continue;
            ret_usage[t] += much * p->gang[members[0]];
            for (uint32_t i = 0; i < size; i++) {
                p->rates[members[i]] += much * rate_of(p, line, t, i);
                p->times[members[i]] += much;
            }
        }
    }
}

/* The largest part of a capacity or of a class's time that is used: 1 is all of it. */
static double find_load(const struct pairs_solver *p, const double *usage)
{
    double load = 0;
    for (uint32_t t = 0; t < p->type_count; t++)
        if (p->in->capacity[t] > 0)
            load = fmax(load, usage[t] / p->in->capacity[t]);
    for (uint32_t c = 0; c < p->class_count; c++)
        load = fmax(load, p->times[c] / count_of(p, c));
    return load;
}

static void read_columns(const struct pairs_solver *p, double *ret_x)
{
    const double *columns = lp_columns(p->lp);
    uint32_t k = p->type_count;
    for (uint32_t line = 0; line < p->line_count; line++)
        for (uint32_t t = 0; t < k; t++) {
            uint32_t column = p->column[(size_t)line * k + t];
            bool has = column != NONE && columns[column] > 0 && can_run(p, line, t);
            ret_x[(size_t)line * k + t] = has ? columns[column] : 0;
        }
}

/*
 * The solution, made feasible: for a level as large as it fits, for a sum cut to size.
 * Rates are those of the shares afterwards.
 */
static void pairs_read_shares(struct pairs_solver *p, double *ret_x)
{
    double usage[PAIRS_TYPES_MAX];
    size_t cells = (size_t)p->line_count * p->type_count;
    read_columns(p, ret_x);
    add_usage(p, ret_x, usage);
    double load = find_load(p, usage);
    if (p->value)
        load = fmax(load, 1);
    if (load <= 0)
        return;
    for (size_t i = 0; i < cells; i++)
        ret_x[i] /= load;
    for (uint32_t c = 0; c < p->class_count; c++)
        p->rates[c] /= load;
}

/* From members that run at a time to the part of its time that each spends. */
static void pairs_per_member(const struct pairs_solver *p, double *x)
{
    for (uint32_t c = 0; c < p->class_count; c++)
        for (uint32_t t = 0; t < p->type_count; t++)
            x[(size_t)c * p->type_count + t] /= count_of(p, c);
}

/* ---- prices and proof ------------------------------------------------------------ */

/*
 * Read the duals as prices; raise those of time until no line earns more than it pays,
 * so that they prove a bound; the value of all capacities and time at these prices.
 */
static void pairs_read_prices(struct pairs_solver *p)
{
    const double *duals = lp_duals(p->lp);
    for (uint32_t c = 0; c < p->class_count; c++) {
        p->pi[c] = fmax(-duals[row_of_rate(p, c)], 0);
        p->beta[c] = fmax(duals[row_of_time(p, c)], 0);
    }
    for (uint32_t t = 0; t < p->type_count; t++)
        p->kappa[t] = fmax(duals[row_of_room(p, t)], 0);
}

/* What a line earns on a type, and what it pays for room and for time. */
struct line_price {
    double earns, room, time;
};

static struct line_price price_line(const struct pairs_solver *p, uint32_t line,
                                    uint32_t type)
{
    uint32_t members[2];
    uint32_t size = members_of(p, line, members);
    struct line_price deal = { .earns = value_of(p, line, type),
                               .room = p->gang[members[0]] * p->kappa[type] };
    for (uint32_t i = 0; i < size; i++) {
        deal.earns += p->pi[members[i]] * rate_of(p, line, type, i);
        deal.time += p->beta[members[i]];
    }
    return deal;
}

/* Raise prices of time until no line earns more than it pays: then they prove a bound. */
static void pairs_raise_time_prices(struct pairs_solver *p)
{
    for (uint32_t line = 0; line < p->line_count; line++) {
        uint32_t members[2];
        uint32_t size = members_of(p, line, members);
        for (uint32_t t = 0; t < p->type_count; t++) {
            struct line_price deal = price_line(p, line, t);
            double lack = deal.earns - deal.room - deal.time;
            if (lack <= 0 || !can_run(p, line, t))
                continue;
            for (uint32_t i = 0; i < size; i++)
                p->beta[members[i]] += lack / size;
        }
    }
}

/* The value of all capacities and time at these prices; no shares earn more. */
static double pairs_worth_of_all(const struct pairs_solver *p)
{
    double sum = 0;
    for (uint32_t t = 0; t < p->type_count; t++)
        sum += p->kappa[t] * p->in->capacity[t];
    for (uint32_t c = 0; c < p->class_count; c++)
        sum += p->beta[c] * count_of(p, c);
    return sum;
}

/* ---- violated rows and columns that pay ------------------------------------------ */

static bool enforce_time_rows(struct pairs_solver *p)
{
    const double *columns = lp_columns(p->lp);
    double mu = columns[p->mu];
    bool any = false;
    memset(p->times, 0, p->class_count * sizeof *p->times);
    for (uint32_t line = 0; line < p->line_count; line++) {
        uint32_t members[2];
        uint32_t size = members_of(p, line, members);
        for (uint32_t t = 0; t < p->type_count; t++) {
            uint32_t column = p->column[(size_t)line * p->type_count + t];
            for (uint32_t i = 0; column != NONE && i < size; i++)
                p->times[members[i]] += columns[column];
        }
    }
    for (uint32_t c = 0; c < p->class_count; c++) {
        if (p->in_force[c] || p->times[c] <= count_of(p, c) * mu * (1 + BROKEN))
            continue;
        p->in_force[c] = true;
        set_time_row(p, c);
        any = true;
    }
    return any;
}

/* What a pair that is not in the programme would gain; 0: nothing worth mentioning. */
static double reduced_gain(const struct pairs_solver *p, uint32_t line, uint32_t type)
{
    if (p->column[(size_t)line * p->type_count + type] != NONE ||
        !can_run(p, line, type))
        return 0;
    struct line_price deal = price_line(p, line, type);
    double gain = deal.earns - deal.room - deal.time;
    return gain > PAYS * (deal.room + deal.time) ? gain : 0;
}

/* The pairs that gain about as much as the best of one of their classes. */
static bool add_paying(struct pairs_solver *p)
{
    uint32_t members[2];
    bool any = false;
    pairs_read_prices(p);
    memset(p->best, 0, p->class_count * sizeof *p->best);
    for (uint32_t line = p->class_count; line < p->line_count; line++) {
        members_of(p, line, members);
        for (uint32_t t = 0; t < p->type_count; t++) {
            double gain = reduced_gain(p, line, t);
            p->best[members[0]] = fmax(p->best[members[0]], gain);
            p->best[members[1]] = fmax(p->best[members[1]], gain);
        }
    }
    for (uint32_t line = p->class_count; line < p->line_count; line++) {
        members_of(p, line, members);
        double enough = GAIN_SHARE * fmin(p->best[members[0]], p->best[members[1]]);
        for (uint32_t t = 0; t < p->type_count; t++) {
            double gain = reduced_gain(p, line, t);
            if (gain <= 0 || gain < enough)
                continue;
            add_column(p, line, t);
            p->answer->columns++;
            any = true;
        }
    }
    return any;
}

/* Enforce violated rows and add paying columns until there are none. */
static enum lp_status pairs_generate_columns(struct pairs_solver *p,
                                             enum lp_method method)
{
    for (uint32_t round = 0; round < ROUNDS_MAX; round++) {
        enum lp_status status = lp_maximise(p->lp, method);
        p->answer->iterations += lp_iterations(p->lp);
        p->answer->rounds++;
        if (status != LP_OPTIMAL)
            return status;
        method = LP_DUAL;
        if (!p->value && enforce_time_rows(p))
            continue;
        method = LP_PRIMAL;
        if (!add_paying(p))
            return LP_OPTIMAL;
    }
    return LP_GAVE_UP;
}

/* ---- all of it ------------------------------------------------------------------- */

static int check_input(const struct pairs_input *in, struct error *err)
{
    if (in->type_count == 0 || in->type_count > PAIRS_TYPES_MAX)
        return error_set(err, -EINVAL, "%u types, want 1 to %d", in->type_count,
                         PAIRS_TYPES_MAX);
    for (uint32_t c = 0; c < in->class_count; c++)
        if (in->count && !(in->count[c] >= 1 && isfinite(in->count[c])))
            return error_set(err, -EINVAL, "class %u has %g members, want 1 or more", c,
                             in->count[c]);
    for (uint32_t i = 0; i < in->pair_count; i++) {
        const struct programme_pair *pair = &in->pairs[i];
        if (pair->first >= in->class_count || pair->second >= in->class_count)
            return error_set(err, -EINVAL, "pair %u: no such class", i);
        if (in->gang[pair->first] != in->gang[pair->second])
            return error_set(err, -EINVAL, "pair %u: gangs of %g and %g", i,
                             in->gang[pair->first], in->gang[pair->second]);
    }
    return 0;
}

/*
 * Make the programme that of these classes; 'value' is NULL for levels.  -EINVAL for
 * numbers that make no sense.
 */
static int pairs_begin(struct pairs_solver *p, const struct pairs_input *in,
                       const double *value, struct pairs_answer *answer,
                       struct error *err)
{
    int r = check_input(in, err);
    if (r == 0)
        r = lp_load(err);
    if (r < 0)
        return r;
    *answer = (struct pairs_answer){ .feasible = true };
    p->in = in;
    p->value = value;
    p->answer = answer;
    if (!is_same_input(p, in))
        rebuild_solver(p, in);
    memset(p->kept, 0, p->class_count * sizeof *p->kept);
    return 0;
}

struct pairs_solver *pairs_solver_new(void)
{
    struct pairs_solver *p = memory_checked(calloc(1, sizeof *p));
    arena_init(&p->arena, 0);
    return p;
}

void pairs_solver_free(struct pairs_solver *p)
{
    if (!p)
        return;
    lp_free(p->lp);
    arena_release(&p->arena);
    free(p);
}

/* ---- goals: one level for all, water filling, a sum -------------------------------- */

static double due_at(double need, double ahead, double level)
{
    return need * level / (1 - ahead * level);
}

static double level_at(double need, double ahead, double rate)
{
    return rate / (need + ahead * rate);
}

static double ahead_of(const double *ahead, uint32_t class)
{
    return ahead ? ahead[class] : 0;
}

/*
 * No level is above what the slowest class could have with all the cluster to itself.
 */
static double level_cap(const struct pairs_solver *p, const double *need,
                        const double *ahead)
{
    double *top = p->best;
    memset(top, 0, p->class_count * sizeof *top);
    for (uint32_t line = 0; line < p->line_count; line++) {
        uint32_t members[2];
        uint32_t size = members_of(p, line, members);
        for (uint32_t t = 0; t < p->type_count; t++)
            for (uint32_t i = 0; i < size && can_run(p, line, t); i++)
                top[members[i]] = fmax(top[members[i]], rate_of(p, line, t, i));
    }
    double cap = INFINITY;
    for (uint32_t c = 0; c < p->class_count; c++)
        if (need[c] > 0)
            cap = fmin(cap, level_at(need[c], ahead_of(ahead, c), top[c]));
    return cap;
}

/* The largest level that the prices allow: sum pi count due(level) = worth of all. */
static double level_allowed(const struct pairs_solver *p, const double *need,
                            const double *ahead, double cap)
{
    double all = pairs_worth_of_all(p);
    double level = cap;
    for (uint32_t i = 0; i < NEWTON_MAX; i++) { /* from above, of a convex function */
        double asked = -all, slope = 0;
        for (uint32_t c = 0; c < p->class_count; c++) {
            double a = ahead_of(ahead, c);
            double pays = p->pi[c] * count_of(p, c);
            if (need[c] <= 0 || pays <= 0)
                continue;
            asked += pays * due_at(need[c], a, level);
            slope += pays * need[c] / ((1 - a * level) * (1 - a * level));
        }
        if (asked <= 1e-15 * all || slope <= 0)
            break;
        level -= asked / slope;
    }
    return level;
}

static double level_reached(const struct pairs_solver *p, const double *need,
                            const double *ahead)
{
    double level = INFINITY;
    for (uint32_t c = 0; c < p->class_count; c++)
        if (need[c] > 0)
            level = fmin(level, level_at(need[c], ahead_of(ahead, c),
                                         p->rates[c] / count_of(p, c)));
    return level;
}

static int report_no_shares(const struct pairs_solver *p, struct error *err)
{
    return error_set(err, -EDOM, "no shares were found for %u jobs and %u pairs",
                     p->class_count, p->pair_count);
}

static void clear_shares(const struct pairs_solver *p, double *ret_x)
{
    memset(ret_x, 0, (size_t)p->line_count * p->type_count * sizeof *ret_x);
}

/*
 * Newton: at a level that is too high the prices say how much less is possible, never
 * too little.  One step where the due is linear in the level.
 */
static int find_level(struct pairs_solver *p, const double *need, const double *ahead,
                      double tolerance, double *ret_x, struct error *err)
{
    struct pairs_answer *answer = p->answer;
    double cap = level_cap(p, need, ahead);
    double level = cap;
    answer->bound = cap;
    for (uint32_t i = 0; i < NEWTON_MAX; i++) {
        for (uint32_t c = 0; c < p->class_count; c++)
            p->due[c] = need[c] > 0 ? due_at(need[c], ahead_of(ahead, c), level) : 0;
        pairs_set_programme(p);
        if (pairs_generate_columns(p, LP_DUAL) != LP_OPTIMAL)
            return report_no_shares(p, err);
        pairs_read_shares(p, ret_x);
        answer->reached = fmax(answer->reached, level_reached(p, need, ahead));
        pairs_read_prices(p);
        pairs_raise_time_prices(p);
        answer->bound = fmin(answer->bound, level_allowed(p, need, ahead, cap));
        if (answer->bound - answer->reached <= tolerance * answer->bound)
            return 0;
        if (answer->bound >= level * (1 - 1e-15))
            break;
        level = answer->bound;
    }
    return error_set(err, -EDOM, "the level is between %g and %g, want it to %g",
                     answer->reached, answer->bound, tolerance);
}

/* False when no class has a due. */
static bool set_dues(struct pairs_solver *p, const double *due)
{
    bool any = false;
    for (uint32_t c = 0; c < p->class_count; c++) {
        p->due[c] = due ? due[c] : 0;
        any |= p->due[c] > 0;
    }
    return any;
}

int pairs_level(struct pairs_solver *p, const struct pairs_input *pairing,
                const double *need, const double *ahead, double tolerance,
                double *ret_x, struct pairs_answer *ret_answer, struct error *err)
{
    int r = pairs_begin(p, pairing, NULL, ret_answer, err);
    if (r < 0)
        return r;
    clear_shares(p, ret_x);
    if (!set_dues(p, need) || !pairs_add_needed_columns(p))
        return 0;
    r = find_level(p, need, ahead, tolerance, ret_x, err);
    pairs_per_member(p, ret_x);
    return r;
}

/* ---- levels, one above the other ------------------------------------------------- */

/* What the prices allow the rising classes, when the others keep what they have. */
static double rise_allowed(const struct pairs_solver *p, const double *need)
{
    double left = pairs_worth_of_all(p);
    double asked = 0;
    for (uint32_t c = 0; c < p->class_count; c++) {
        double pays = p->pi[c] * count_of(p, c);
        if (p->due[c] > 0)
            asked += pays * need[c];
        else
            left -= pays * p->kept[c];
    }
    return asked > 0 ? left / asked : INFINITY;
}

static double rise_reached(const struct pairs_solver *p, const double *need)
{
    double level = INFINITY;
    for (uint32_t c = 0; c < p->class_count; c++)
        if (p->due[c] > 0)
            level = fmin(level, p->rates[c] / count_of(p, c) / need[c]);
    return level;
}

/*
 * A class with a price on its rate has the same rate in every solution: it is frozen.
 * At least one is.  A class that cannot rise but has no price in this solution will
 * have one in the next, at the same level.  Returns how many still rise.
 */
static uint32_t freeze_priced(struct pairs_solver *p, const double *need, double level,
                              double *ret_level)
{
    double most = 0;
    uint32_t rising = 0;
    for (uint32_t c = 0; c < p->class_count; c++)
        if (p->due[c] > 0)
            most = fmax(most, p->pi[c] * count_of(p, c) * need[c]);
    for (uint32_t c = 0; c < p->class_count; c++) {
        if (p->due[c] <= 0)
            continue;
        ret_level[c] = level;
        if (p->pi[c] * count_of(p, c) * need[c] < PRICED * most) {
            rising++;
            continue;
        }
        p->due[c] = 0;
        p->kept[c] = level * need[c] * (1 - KEPT_SLACK);
        pairs_set_due(p, c);
    }
    return rising;
}

/*
 * The next level, above the frozen ones.  They leave it no room but for rounding; after
 * many of them that may be too little, and they give way somewhat more.
 */
static enum lp_status settle_above(struct pairs_solver *p, const double *need,
                                   const double *level, enum lp_method method)
{
    enum lp_status status = pairs_generate_columns(p, method);
    for (double slack = 10 * KEPT_SLACK;
         status != LP_OPTIMAL && slack <= KEPT_SLACK_MAX; slack *= 10) {
        for (uint32_t c = 0; c < p->class_count; c++)
            if (p->due[c] <= 0 && level[c] > 0) {
                p->kept[c] = level[c] * need[c] * (1 - slack);
                pairs_set_due(p, c);
            }
        status = pairs_generate_columns(p, LP_DUAL);
    }
    return status;
}

static int fill_levels(struct pairs_solver *p, const double *need, double tolerance,
                       double *ret_x, double *ret_level, struct error *err)
{
    enum lp_method method = LP_DUAL;
    double last = 0;
    uint32_t rising = 1;
    pairs_set_programme(p);
    for (uint32_t i = 0; rising > 0; i++) {
        assert(i <= p->class_count); /* at least one class freezes every time */
        if (settle_above(p, need, ret_level, method) != LP_OPTIMAL)
            return report_no_shares(p, err);
        pairs_read_shares(p, ret_x);
        pairs_read_prices(p);
        double level = fmax(rise_reached(p, need), last);
        double prices = 0;
        for (uint32_t c = 0; c < p->class_count; c++)
            prices += p->pi[c];
        pairs_raise_time_prices(p);
        double bound = rise_allowed(p, need);
        if (prices <= 0 || bound - level > tolerance * bound)
            return error_set(err, -EDOM, "level %u is between %g and %g, want it to %g",
                             i + 1, level, bound, tolerance);
        if (i == 0) {
            p->answer->reached = level;
            p->answer->bound = fmax(bound, level);
        }
        rising = freeze_priced(p, need, level, ret_level);
        last = level;
        method = LP_PRIMAL; /* what was found stays possible */
    }
    return 0;
}

int pairs_water_fill(struct pairs_solver *p, const struct pairs_input *pairing,
                     const double *need, double tolerance, double *ret_x,
                     double *ret_level, struct pairs_answer *ret_answer,
                     struct error *err)
{
    int r = pairs_begin(p, pairing, NULL, ret_answer, err);
    if (r < 0)
        return r;
    clear_shares(p, ret_x);
    memset(ret_level, 0, p->class_count * sizeof *ret_level);
    if (!set_dues(p, need) || !pairs_add_needed_columns(p))
        return 0;
    r = fill_levels(p, need, tolerance, ret_x, ret_level, err);
    pairs_per_member(p, ret_x);
    return r;
}

/* ---- sums ------------------------------------------------------------------------ */

/*
 * Can the floors be kept?  Solved as a level that should reach 1; that also adds the
 * columns by which they can be.
 */
static int try_floors(struct pairs_solver *p, const double *floor, double *x,
                      struct error *err)
{
    const double *value = p->value;
    if (!pairs_add_needed_columns(p)) {
        p->answer->feasible = false;
        return 0;
    }
    p->value = NULL;
    int r = find_level(p, floor, NULL, 1e-9, x, err);
    p->value = value;
    double level = p->answer->reached;
    p->answer->feasible = level >= 1 - FLOOR_SLACK;
    if (r < 0 && p->answer->feasible)
        r = 0; /* how far above the floors it gets does not matter */
    for (uint32_t c = 0; c < p->class_count; c++)
        p->due[c] = floor[c] * fmin(level, 1);
    return r;
}

static int maximise_sum(struct pairs_solver *p, double tolerance, bool has_floors,
                        double *ret_x, struct error *err)
{
    struct pairs_answer *answer = p->answer;
    pairs_set_programme(p);
    if (pairs_generate_columns(p, has_floors ? LP_PRIMAL : LP_DUAL) != LP_OPTIMAL)
        return report_no_shares(p, err);
    pairs_read_shares(p, ret_x);
    pairs_read_prices(p);
    pairs_raise_time_prices(p);
    double size = 0;
    answer->reached = 0;
    for (size_t i = 0; i < (size_t)p->line_count * p->type_count; i++) {
        answer->reached += p->value[i] * ret_x[i];
        size += fabs(p->value[i] * ret_x[i]);
    }
    answer->bound = pairs_worth_of_all(p);
    for (uint32_t c = 0; c < p->class_count; c++)
        answer->bound -= p->pi[c] * count_of(p, c) * p->due[c];
    if (answer->bound - answer->reached > tolerance * size + 1e-300)
        return error_set(err, -EDOM, "the sum is between %g and %g, want it to %g",
                         answer->reached, answer->bound, tolerance);
    return 0;
}

int pairs_sum(struct pairs_solver *p, const struct pairs_input *pairing,
              const double *value, const double *floor, double tolerance, double *ret_x,
              struct pairs_answer *ret_answer, struct error *err)
{
    int r = pairs_begin(p, pairing, value, ret_answer, err);
    if (r < 0)
        return r;
    clear_shares(p, ret_x);
    bool has_floors = set_dues(p, floor);
    if (has_floors)
        r = try_floors(p, floor, ret_x, err);
    if (r < 0 || !ret_answer->feasible)
        return r;
    r = maximise_sum(p, tolerance, has_floors, ret_x, err);
    pairs_per_member(p, ret_x);
    return r;
}
