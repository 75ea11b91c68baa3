/* gavel_sharing_classes.c - jobs that are alike, and what classes of them are due. */
#include "policy/gavel/gavel_sharing_classes.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "model/node_set.h"
#include "predict/estimate.h"
#include "solve/solve.h"

#define NONE UINT32_MAX
#define UNITS_MIN 1e-7 /* less of a line is rounding */
#define TOLERANCE 1e-6 /* of the solution, relative */
#define RATIO_TURNS 20 /* of making a ratio as large as can be */
#define RATIO_EXACT 1e-6

struct class
{
    /* what its members have in common */
    uint32_t kind, gpus, types;
    uint32_t set; /* number of the nodes they may use; 0: any */
    uint32_t entity;
    uint32_t match; /* reference that stands for them, where rates are estimated */
    double weight;

    uint32_t count; /* members; 0: free */
    job_id
        model;  /* the member that gives the class its rates; JOB_NONE: to be chosen */
    double due; /* steps per second of a member */

    /* while shares are made */
    uint32_t place;   /* in the programme */
    uint32_t example; /* place of a member in the call */
    uint32_t listed;  /* members in the call */
};

/* A cell for every line that could be. */
struct class_cell {
    double credit_s;
    uint32_t line; /* 1 + its place in the lines; 0: there is none */
};

struct gavel_classes {
    struct pairs_solver *pairs;
    uint32_t type_count;
    struct class classes[CLASSES_MAX];
    struct gavel_line *lines, *lines_old;
    uint32_t line_count;
    struct class_cell *cells; /* [column][a][b + 1]; b + 1 = 0: alone */
};

struct gavel_classes *gavel_classes_new(struct arena *run, struct gavel_common *common,
                                        const struct view *view)
{
    struct gavel_classes *classes = arena_new(run, struct gavel_classes);
    classes->pairs = pairs_solver_new();
    classes->type_count = common->type_count;
    classes->lines = arena_array(run, struct gavel_line, LINES_MAX);
    classes->lines_old = arena_array(run, struct gavel_line, LINES_MAX);
    classes->cells =
        arena_array(run, struct class_cell,
                    (size_t)common->type_count * CLASSES_MAX * (CLASSES_MAX + 1));
    return classes;
}

void gavel_classes_free(struct gavel_classes *classes)
{
    pairs_solver_free(classes->pairs);
}

static struct class_cell *cell_of(const struct gavel_classes *classes,
                                  const struct line_name *name)
{
    uint32_t b = name->b == NONE ? 0 : name->b + 1;
    return &classes->cells[((size_t)name->column * CLASSES_MAX + name->a) *
                               (CLASSES_MAX + 1) +
                           b];
}

/* --- members --------------------------------------------------------------------------- */

/* How little two are alike; 0: in everything, UINT32_MAX: not in their gangs. */
static uint32_t count_differences(const struct class *a, const struct class *b)
{
    if (a->gpus != b->gpus)
        return NONE;
    return 32u * (a->set != b->set) + 16u * (a->kind != b->kind) +
           8u * (a->match != b->match) + 4u * (a->types != b->types) +
           2u * (a->entity != b->entity) + (a->weight != b->weight);
}

/* Nothing is known any more of the lines of a class that was in this place before. */
static void clear_lines(struct gavel_classes *classes, uint32_t at)
{
    for (uint32_t l = 0; l < classes->line_count; l++) {
        struct gavel_line *line = &classes->lines[l];
        if (line->name.a != at && line->name.b != at)
            continue;
        line->units = 0;
        cell_of(classes, &line->name)->credit_s = 0;
    }
}

uint32_t gavel_classes_add(struct gavel_classes *classes, struct gavel_common *common,
                           const struct view *view, job_id id)
{
    const struct job *job = &view->jobs[id];
    struct class new = { .kind = job->kind,
                         .gpus = job->gpus,
                         .types = job->types,
                         .set = node_set_number(job->set),
                         .entity = common->gavel->rule->by_entity ? job->entity : 0,
                         .weight = job->weight,
                         .match = common->estimate
                                      ? estimate_match(common->estimate, id)
                                      : 0 };
    uint32_t nearest = 0;
    uint32_t least = NONE;
    uint32_t free = NONE;
    for (uint32_t c = 0; c < CLASSES_MAX && least > 0; c++) {
        if (classes->classes[c].count == 0) {
            free = free == NONE ? c : free;
            continue;
        }
        uint32_t d = count_differences(&classes->classes[c], &new);
        if (d < least) {
            least = d;
            nearest = c;
        }
    }
    if (least > 0 && free != NONE) {
        clear_lines(classes, free);
        new.model = id;
        classes->classes[free] = new;
        nearest = free;
    }
    classes->classes[nearest].count++;
    return nearest;
}

void gavel_classes_remove(struct gavel_classes *classes, uint32_t class, job_id job)
{
    assert(classes->classes[class].count > 0);
    classes->classes[class].count--;
    if (classes->classes[class].model == job)
        classes->classes[class].model = JOB_NONE;
}

double gavel_classes_due(const struct gavel_classes *classes, uint32_t class)
{
    return classes->classes[class].due;
}

/* --- lines ------------------------------------------------------------------------------- */

uint32_t gavel_classes_line_count(const struct gavel_classes *classes)
{
    return classes->line_count;
}

const struct gavel_line *gavel_classes_line(const struct gavel_classes *classes,
                                            uint32_t at)
{
    return &classes->lines[at];
}

uint32_t gavel_classes_line_at(const struct gavel_classes *classes,
                               const struct line_name *name)
{
    return cell_of(classes, name)->line - 1; /* none: UINT32_MAX */
}

double gavel_classes_credit(const struct gavel_classes *classes,
                            const struct gavel_line *line)
{
    return cell_of(classes, &line->name)->credit_s;
}

/* Time that was not due is not paid for. */
void gavel_classes_pay(struct gavel_classes *classes, const struct line_name *name,
                       double unit_s)
{
    struct class_cell *cell = cell_of(classes, name);
    if (cell->line)
        cell->credit_s -= unit_s;
}

void gavel_classes_earn(struct gavel_classes *classes, double passed_s,
                        double credit_max_s)
{
    for (uint32_t l = 0; l < classes->line_count; l++) {
        const struct gavel_line *line = &classes->lines[l];
        struct class_cell *cell = cell_of(classes, &line->name);
        double most_s = credit_max_s * fmax(line->units, 1);
        cell->credit_s =
            fmin(fmax(cell->credit_s + line->units * passed_s, -most_s), most_s);
    }
}

static void add_line(struct gavel_classes *classes, struct line_name name, double units,
                     double gang)
{
    if (!(units > UNITS_MIN) || classes->line_count == LINES_MAX)
        return;
    classes->lines[classes->line_count++] = (struct gavel_line){ name, units, gang };
    cell_of(classes, &name)->line = classes->line_count;
}

/* --- the programme ------------------------------------------------------------------------- */

/* Everything in it is by place; classes with members in the call have one. */
struct class_draft {
    struct pairs_input pairing;
    uint32_t *slots; /* [place] class */
    double *count, *gang, *rate, *need, *ahead, *floor, *price;
    struct programme_pair *pairs;
    double *pair_rate, *value, *x, *trial, *level;
    enum gavel_aim aim;
};

static void make_room(struct class_draft *draft, uint32_t n, uint32_t k,
                      struct arena *scratch)
{
    size_t pairs = (size_t)n * (n + 1) / 2;
    draft->slots = arena_array(scratch, uint32_t, n);
    draft->count = arena_array(scratch, double, n);
    draft->gang = arena_array(scratch, double, n);
    draft->rate = arena_array(scratch, double, (size_t)n *k);
    draft->need = arena_array(scratch, double, n);
    draft->ahead = arena_array(scratch, double, n);
    draft->floor = arena_array(scratch, double, n);
    draft->price = arena_array(scratch, double, (size_t)n *k);
    draft->level = arena_array(scratch, double, n);
    draft->pairs = arena_array(scratch, struct programme_pair, pairs);
    draft->pair_rate = arena_array(scratch, double, pairs *k * 2);
    draft->value = arena_array(scratch, double, (n + pairs) * k);
    draft->x = arena_array(scratch, double, (n + pairs) * k);
    draft->trial = arena_array(scratch, double, (n + pairs) * k);
}

/* Members' demands become their class's, on average. */
static uint32_t gather_demands(struct gavel_classes *classes,
                               struct gavel_common *common,
                               const struct gavel_call *call, const uint32_t *class_of,
                               struct class_draft *draft)
{
    uint32_t n = 0;
    uint32_t k = call->type_count;
    for (uint32_t c = 0; c < CLASSES_MAX; c++)
        classes->classes[c].listed = 0;
    for (uint32_t i = 0; i < call->job_count; i++) {
        struct class *class = &classes->classes[class_of[i]];
        struct gavel_demand demand = { .aim = AIM_LEVEL };
        common->gavel->rule->demand(common->self, call, i, &demand);
        if (class->listed++ == 0) {
            class->place = n;
            class->example = i;
            draft->slots[n++] = class_of[i];
        }
        if (class->model == JOB_NONE || class->model == call->jobs[i]) {
            class->model = call->jobs[i];
            class->example = i;
        }
        draft->aim = demand.aim;
        draft->need[class->place] += demand.need;
        draft->ahead[class->place] += demand.ahead;
        draft->floor[class->place] += demand.floor;
        for (uint32_t t = 0; t < k; t++)
            draft->price[(size_t) class->place * k + t] = demand.price[t];
    }
    for (uint32_t p = 0; p < n; p++) {
        const struct class *class = &classes->classes[draft->slots[p]];
        draft->count[p] = class->listed;
        draft->gang[p] = class->gpus;
        draft->need[p] /= class->listed;
        draft->ahead[p] /= class->listed;
        draft->floor[p] /= class->listed;
        memcpy(&draft->rate[(size_t)p * k], &call->rate[(size_t) class->example * k],
               k * sizeof *call->rate);
    }
    return n;
}

static uint32_t list_pairs(struct gavel_classes *classes, struct gavel_common *common,
                           const struct gavel_call *call, uint32_t n,
                           struct class_draft *draft)
{
    uint32_t count = 0;
    uint32_t k = call->type_count;
    for (uint32_t a = 0; a < n; a++)
        for (uint32_t b = a; b < n; b++) {
            double rates[TYPES_MAX][2];
            uint32_t one = classes->classes[draft->slots[a]].example;
            uint32_t two = classes->classes[draft->slots[b]].example;
            if (draft->gang[a] != draft->gang[b] || (a == b && draft->count[a] < 2) ||
                !gavel_pair_rates(common, call->view, call->jobs[one], call->jobs[two],
                                  rates))
                continue;
            for (uint32_t t = 0; t < k; t++)
                if (!(draft->rate[(size_t)a * k + t] > 0 &&
                      draft->rate[(size_t)b * k + t] > 0))
                    rates[t][0] = rates[t][1] = 0; /* it cannot run there now */
            memcpy(&draft->pair_rate[(size_t)count * k * 2], rates, k * sizeof *rates);
            draft->pairs[count++] = (struct programme_pair){ a, b };
        }
    return count;
}

/* What a unit of each line adds to the sum, less 'charge' times its price. */
static void set_values(struct class_draft *draft, double charge)
{
    const struct pairs_input *p = &draft->pairing;
    uint32_t k = p->type_count;
    bool ratio = draft->aim == AIM_RATIO;
    for (uint32_t c = 0; c < p->class_count; c++)
        for (uint32_t t = 0; t < k; t++) {
            double price = draft->price[(size_t)c * k + t];
            double rate = p->rate[(size_t)c * k + t];
            draft->value[(size_t)c * k + t] =
                ratio ? rate - charge * price * p->gang[c] : rate / price;
        }
    for (uint32_t i = 0; i < p->pair_count; i++)
        for (uint32_t t = 0; t < k; t++) {
            const double *rates = &p->pair_rate[((size_t)i * k + t) * 2];
            uint32_t a = p->pairs[i].first;
            uint32_t b = p->pairs[i].second;
            double price_a = draft->price[(size_t)a * k + t];
            double price_b = draft->price[(size_t)b * k + t];
            draft->value[(size_t)(p->class_count + i) * k + t] =
                ratio ? rates[0] + rates[1] - charge * price_a * p->gang[a]
                      : rates[0] / price_a + rates[1] / price_b;
        }
}

/* Units of a line that run at a time. */
static double units_of(const struct class_draft *draft, uint32_t row, uint32_t column)
{
    const struct pairs_input *p = &draft->pairing;
    double x = draft->x[(size_t)row * p->type_count + column];
    return row < p->class_count ? x * p->count[row] : x;
}

/* Sum of rates and of prices paid under the shares. */
static void add_up(const struct class_draft *draft, double *ret_rates, double *ret_paid)
{
    const struct pairs_input *p = &draft->pairing;
    uint32_t k = p->type_count;
    *ret_rates = *ret_paid = 0;
    for (uint32_t row = 0; row < p->class_count + p->pair_count; row++)
        for (uint32_t t = 0; t < k; t++) {
            double units = units_of(draft, row, t);
            bool alone = row < p->class_count;
            uint32_t pair = alone ? 0 : row - p->class_count;
            uint32_t class = alone ? row : p->pairs[pair].first;
            const double *two = &p->pair_rate[((size_t)pair * k + t) * 2];
            double rate = alone ? p->rate[(size_t)row * k + t] : two[0] + two[1];
            *ret_rates += units * rate;
            *ret_paid += units * p->gang[class] * draft->price[(size_t) class * k + t];
        }
}

/*
 * The largest ratio of rates to prices: each turn charges what the last one reached, until
 * nothing is left that is worth its charge.
 */
static int solve_ratio(struct gavel_classes *classes, struct class_draft *draft,
                       const double *floor, struct pairs_answer *answer,
                       struct error *err)
{
    const struct pairs_input *p = &draft->pairing;
    double charge = 0;
    for (uint32_t turn = 0; turn < RATIO_TURNS; turn++) {
        double rates;
        double paid;
        set_values(draft, charge);
        int r = pairs_sum(classes->pairs, p, draft->value, floor, TOLERANCE,
                          draft->trial, answer, err);
        if (turn > 0 && r == -EDOM)
            break; /* what is left is nothing, and nothing is hard to tell exactly */
        if (r < 0 || !answer->feasible)
            return r;
        double *last = draft->x;
        draft->x = draft->trial;
        draft->trial = last;
        add_up(draft, &rates, &paid);
        if (turn == 0 || (paid > 0 && rates / paid > charge * (1 + RATIO_EXACT))) {
            charge = paid > 0 ? rates / paid : 0;
            continue;
        }
        draft->trial = draft->x; /* no better than the last */
        draft->x = last;
        break;
    }
    return 0;
}

static int solve_draft(struct gavel_classes *classes, struct class_draft *draft,
                       struct error *err)
{
    struct pairs_answer answer = { .feasible = true };
    const struct pairs_input *p = &draft->pairing;
    int r = 0;
    for (int floors = 1; floors >= 0; floors--) {
        const double *floor = floors ? draft->floor : NULL;
        if (draft->aim == AIM_LEVEL)
            r = pairs_level(classes->pairs, p, draft->need, draft->ahead, TOLERANCE,
                            draft->x, &answer, err);
        else if (draft->aim == AIM_FILL)
            r = pairs_water_fill(classes->pairs, p, draft->need, TOLERANCE, draft->x,
                                 draft->level, &answer, err);
        else if (draft->aim == AIM_RATIO)
            r = solve_ratio(classes, draft, floor, &answer, err);
        else {
            set_values(draft, 0);
            r = pairs_sum(classes->pairs, p, draft->value, floor, TOLERANCE, draft->x,
                          &answer, err);
        }
        if (r < 0 || answer.feasible)
            return r;
    }
    return error_set(err, -EDOM, "no shares were found for %u classes of jobs",
                     p->class_count);
}

/* --- and its answer --------------------------------------------------------------------- */

static void take_lines(struct gavel_classes *classes, const struct class_draft *draft)
{
    const struct pairs_input *p = &draft->pairing;
    struct gavel_line *old = classes->lines;
    uint32_t old_count = classes->line_count;
    for (uint32_t l = 0; l < old_count; l++)
        cell_of(classes, &old[l].name)->line = 0;
    classes->lines = classes->lines_old;
    classes->lines_old = old;
    classes->line_count = 0;
    for (uint32_t row = 0; row < p->class_count + p->pair_count; row++)
        for (uint32_t t = 0; t < p->type_count; t++) {
            bool alone = row < p->class_count;
            uint32_t pair = alone ? 0 : row - p->class_count;
            uint32_t a = alone ? row : p->pairs[pair].first;
            uint32_t b = alone ? NONE : draft->slots[p->pairs[pair].second];
            add_line(classes, gavel_line_name(t, draft->slots[a], b),
                     units_of(draft, row, t), p->gang[a]);
        }
    for (uint32_t l = 0; l < old_count; l++)
        if (!cell_of(classes, &old[l].name)->line)
            cell_of(classes, &old[l].name)->credit_s = 0;
}

/* Steps per second of a member under the shares. */
static void take_dues(struct gavel_classes *classes, const struct class_draft *draft)
{
    const struct pairs_input *p = &draft->pairing;
    uint32_t k = p->type_count;
    for (uint32_t c = 0; c < p->class_count; c++) {
        double due = 0;
        for (uint32_t t = 0; t < k; t++)
            due += draft->x[(size_t)c * k + t] * p->rate[(size_t)c * k + t];
        classes->classes[draft->slots[c]].due = due;
    }
    for (uint32_t i = 0; i < p->pair_count; i++)
        for (uint32_t t = 0; t < k; t++) {
            double units = units_of(draft, p->class_count + i, t);
            if (!(units > 0))
                continue;
            const double *rates = &p->pair_rate[((size_t)i * k + t) * 2];
            uint32_t a = p->pairs[i].first;
            uint32_t b = p->pairs[i].second;
            classes->classes[draft->slots[a]].due += units * rates[0] / p->count[a];
            classes->classes[draft->slots[b]].due += units * rates[1] / p->count[b];
        }
}

int gavel_classes_solve(struct gavel_classes *classes, struct gavel_common *common,
                        const struct gavel_call *call, const uint32_t *class_of,
                        struct error *err)
{
    struct class_draft draft = { .aim = AIM_LEVEL };
    uint32_t n = call->job_count < CLASSES_MAX ? call->job_count : CLASSES_MAX;
    make_room(&draft, n, call->type_count, call->scratch);
    n = gather_demands(classes, common, call, class_of, &draft);
    draft.pairing = (struct pairs_input){ .class_count = n,
                                          .type_count = call->type_count,
                                          .capacity = call->capacity,
                                          .count = draft.count,
                                          .gang = draft.gang,
                                          .rate = draft.rate,
                                          .pairs = draft.pairs,
                                          .pair_rate = draft.pair_rate };
    draft.pairing.pair_count = list_pairs(classes, common, call, n, &draft);
    int r = solve_draft(classes, &draft, err);
    if (r < 0)
        return r;
    take_lines(classes, &draft);
    take_dues(classes, &draft);
    return 0;
}
