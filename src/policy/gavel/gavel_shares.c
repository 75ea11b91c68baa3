/*
 * gavel_shares.c - ask the policy for shares, and set the units of all lines.
 *
 * Where the policy treats equal jobs alike it is asked about classes of them, each with the
 * number of its members; otherwise about every job.  Where any two classes may be paired
 * their demands become one programme with a row per class (pairs_...() in solve.h), since
 * there are too many pairs of jobs to list.
 *
 * Shares are not made again for every job that comes or goes: a job takes the shares of its
 * class with it.  What that is wrong by is added up (struct gavel_rounds, drift), and
 * shares are made when it may be more than SLACK.  For levels the bound is exact: take a
 * part d of every type away from all jobs, for a new one of weight w.  It reaches their
 * level z if d * GPUs / w = (1 - d) z, so no job loses more than
 *
 *     d = w z / (GPUs + w z)
 *
 * and when it goes again none can gain more.  z is at least GPUs / weights; where it is more,
 * because types suit jobs differently, the bound is larger by as much.  Where jobs need
 * different amounts for a level (steps, for the makespan), w z is what it needs; and a job
 * whose shares nobody was asked for has that part of every type until shares are made.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "policy/gavel/gavel_lp.h"
#include "policy/gavel/gavel_shares.h"
#include "solve/solve.h"

#define SLACK 0.01      /* shares may be so far from those of now, relative */
#define SLACK_EACH 0.03 /* the same where there is a row for each job to solve for; */
#define CHANGES_EACH 64 /* and one job in so many has come or gone */
#define PAIRED_MAX 256  /* jobs of which all pairs are looked at */
#define UNITS_MIN 1e-7  /* less of a line is rounding */
#define TOLERANCE 1e-6  /* of the solution, relative */
#define RATIO_TURNS 20  /* of making a ratio as large as can be */
#define RATIO_EXACT 1e-6

/* --- the answer: units of lines ------------------------------------------------------ */

static void clear_shares(struct gavel_common *common)
{
    struct gavel_rounds *rounds = common->rounds;
    const struct gavel_lines *due = &rounds->lists[LIST_DUE];
    for (uint32_t i = 0; i < due->count; i++) {
        struct gavel_line *line = &rounds->lines[due->lines[i]];
        line->share = 0;
        for (uint32_t side = 0; side < 2 && line->classes[side] != NONE; side++) {
            struct gavel_class *class = &rounds->classes[line->classes[side]];
            class->time = class->pace = 0;
        }
    }
}

/* A class is due this part of a member's time alone on a column. */
static void set_alone(struct gavel_common *common, uint32_t class, uint32_t column,
                      double share, double rate)
{
    struct gavel_line *line = rounds_alone(common, class, column);
    line->share = share > 0 && rate > 0 ? share : 0;
    line->rate[0] = rate;
    common->rounds->classes[class].asked = true;
    if (!(line->share > 0))
        return;
    line_list(common->rounds, line, LIST_DUE, true);
    common->rounds->classes[class].time += line->share;
    common->rounds->classes[class].pace += line->share * rate; /* until turn_lines() */
}

/* Members of two classes are due so many units together. */
static void set_pair(struct gavel_common *common, uint32_t a, uint32_t b,
                     uint32_t column, double units, const double rates[2])
{
    struct gavel_rounds *rounds = common->rounds;
    bool can = units > 0 && rates[0] > 0 && rates[1] > 0;
    uint32_t at = accounts_pair_line(common, column, a, b, can);
    if (at == NONE)
        return;
    struct gavel_line *line = &rounds->lines[at];
    line->share = can ? units : 0;
    if (can)
        line_list(rounds, line, LIST_DUE, true);
    line->rate[line->classes[0] != a] = rates[0];
    line->rate[line->classes[0] != b] = a == b ? (rates[0] + rates[1]) / 2 : rates[1];
    const uint32_t classes[2] = { a, b };
    for (uint32_t i = 0; i < 2; i++) {
        struct gavel_class *class = &rounds->classes[classes[i]];
        class->time += line->share / class->count;
        class->pace += line->share / class->count * rates[i];
    }
}

/* Once, although it may be in many lines. */
static void turn_class(struct gavel_common *common, uint32_t c, int64_t now_ns)
{
    struct gavel_class *class = &common->rounds->classes[c];
    if (class->turned == common->rounds->shares_number)
        return;
    class->turned = common->rounds->shares_number;
    class->pace = class->time > 0 ? class->pace / class->time : 0;
    accounts_turn_class(common, c, now_ns);
}

/* All is set: credits go on from here with other slopes. */
static void turn_lines(struct gavel_common *common, int64_t now_ns)
{
    struct gavel_rounds *rounds = common->rounds;
    const struct gavel_lines *due = &rounds->lists[LIST_DUE];
    rounds->shares_number++;
    rounds->near_number = 0;
    for (uint32_t i = 0; i < due->count; i++) {
        const struct gavel_line *line = &rounds->lines[due->lines[i]];
        for (uint32_t side = 0; side < 2 && line->classes[side] != NONE; side++)
            turn_class(common, line->classes[side], now_ns);
    }
    for (uint32_t i = due->count; i-- > 0;) {
        struct gavel_line *line = &rounds->lines[due->lines[i]];
        if (line_is_pair(line))
            accounts_turn_pair(common, due->lines[i], now_ns);
        if (!(line->share > 0))
            line_list(rounds, line, LIST_DUE, false);
    }
}

/* --- a row per class or job ------------------------------------------------------------ */

static void take_shares(struct gavel_common *common, const struct gavel_call *call)
{
    const struct gavel_rounds *rounds = common->rounds;
    uint32_t k = common->type_count;
    clear_shares(common);
    for (uint32_t i = 0; i < call->job_count; i++)
        for (uint32_t c = 0; c < k; c++)
            set_alone(common, rounds->members[call->jobs[i]].class, c,
                      call->x[(size_t)i * k + c], call->rate[(size_t)i * k + c]);
    for (uint32_t i = 0; i < call->pair_count; i++)
        for (uint32_t c = 0; c < k; c++)
            set_pair(common, rounds->members[call->jobs[call->pairs[i].first]].class,
                     rounds->members[call->jobs[call->pairs[i].second]].class, c,
                     call->x[((size_t)call->job_count + i) * k + c],
                     &call->pair_rate[((size_t)i * k + c) * 2]);
    turn_lines(common, call->view->now_ns);
}

/* The pairs that could share, among the jobs that came first. */
static void list_job_pairs(struct gavel_common *common, struct gavel_call *call)
{
    double rates[TYPES_MAX][2];
    uint32_t count = call->job_count < PAIRED_MAX ? call->job_count : PAIRED_MAX;
    if (!common->gavel->sharing || common->gavel->rule->pairs_itself)
        return;
    for (uint32_t second = 1; second < count; second++)
        for (uint32_t first = 0; first < second; first++)
            if (call->gang[first] == call->gang[second] &&
                gavel_pair_rates(common, call->view, call->jobs[first],
                                 call->jobs[second], rates))
                gavel_add_pair(call, first, second, rates);
}

/* --- a programme of classes that may be paired ------------------------------------------- */

/* Everything in it is by place of the class. */
struct class_draft {
    struct pairs_input pairing;
    double *count, *gang, *rate, *need, *ahead, *floor, *price;
    struct programme_pair *pairs;
    double *pair_rate, *value, *x, *trial, *level;
    enum gavel_aim aim;
};

static void make_room(struct class_draft *draft, uint32_t n, uint32_t k,
                      struct arena *scratch)
{
    size_t pairs = (size_t)n * (n + 1) / 2;
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
static void gather_demands(struct gavel_common *common, const struct gavel_call *call,
                           struct class_draft *draft)
{
    const struct gavel_rounds *rounds = common->rounds;
    uint32_t k = call->type_count;
    for (uint32_t i = 0; i < call->job_count; i++) {
        const struct gavel_class *class =
            &rounds->classes[rounds->members[call->jobs[i]].class];
        uint32_t p = class->place;
        struct gavel_demand demand = { .aim = AIM_LEVEL };
        common->gavel->rule->demand(common->self, call, i, &demand);
        double part = call->count[i] / class->count;
        draft->aim = demand.aim;
        draft->need[p] += demand.need * part;
        draft->ahead[p] += demand.ahead * part;
        draft->floor[p] += demand.floor * part;
        memcpy(&draft->price[(size_t)p * k], demand.price, k * sizeof *draft->price);
        if (class->example == call->jobs[i])
            memcpy(&draft->rate[(size_t)p * k], &call->rate[(size_t)i * k],
                   k * sizeof *call->rate);
    }
    for (uint32_t p = 0; p < rounds->used_count; p++) {
        draft->count[p] = rounds->classes[rounds->used[p]].count;
        draft->gang[p] = rounds->classes[rounds->used[p]].gang;
    }
}

static uint32_t list_class_pairs(struct gavel_common *common,
                                 const struct gavel_call *call,
                                 struct class_draft *draft)
{
    const struct gavel_rounds *rounds = common->rounds;
    uint32_t count = 0;
    uint32_t k = call->type_count;
    for (uint32_t a = 0; a < rounds->used_count; a++)
        for (uint32_t b = a; b < rounds->used_count; b++) {
            double rates[TYPES_MAX][2];
            if (draft->gang[a] != draft->gang[b] || (a == b && draft->count[a] < 2) ||
                !gavel_pair_rates(common, call->view,
                                  rounds->classes[rounds->used[a]].example,
                                  rounds->classes[rounds->used[b]].example, rates))
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
static int solve_ratio(struct pairs_solver *pairs, struct class_draft *draft,
                       const double *floor, struct pairs_answer *answer,
                       struct error *err)
{
    const struct pairs_input *p = &draft->pairing;
    double charge = 0;
    for (uint32_t turn = 0; turn < RATIO_TURNS; turn++) {
        double rates;
        double paid;
        set_values(draft, charge);
        int r = pairs_sum(pairs, p, draft->value, floor, TOLERANCE, draft->trial,
                          answer, err);
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

static int solve_draft(struct pairs_solver *pairs, struct class_draft *draft,
                       struct error *err)
{
    struct pairs_answer answer = { .feasible = true };
    const struct pairs_input *p = &draft->pairing;
    int r = 0;
    for (int floors = 1; floors >= 0; floors--) {
        const double *floor = floors ? draft->floor : NULL;
        if (draft->aim == AIM_LEVEL)
            r = pairs_level(pairs, p, draft->need, draft->ahead, TOLERANCE, draft->x,
                            &answer, err);
        else if (draft->aim == AIM_FILL)
            r = pairs_water_fill(pairs, p, draft->need, TOLERANCE, draft->x,
                                 draft->level, &answer, err);
        else if (draft->aim == AIM_RATIO)
            r = solve_ratio(pairs, draft, floor, &answer, err);
        else {
            set_values(draft, 0);
            r = pairs_sum(pairs, p, draft->value, floor, TOLERANCE, draft->x, &answer,
                          err);
        }
        if (r < 0 || answer.feasible)
            return r;
    }
    return error_set(err, -EDOM, "no shares were found for %u classes of jobs",
                     p->class_count);
}

static void take_draft(struct gavel_common *common, const struct class_draft *draft,
                       int64_t now_ns)
{
    const struct gavel_rounds *rounds = common->rounds;
    const struct pairs_input *p = &draft->pairing;
    uint32_t k = p->type_count;
    clear_shares(common);
    for (uint32_t row = 0; row < p->class_count; row++)
        for (uint32_t t = 0; t < k; t++) {
            double x = draft->x[(size_t)row * k + t];
            set_alone(common, rounds->used[row], t,
                      x * p->count[row] > UNITS_MIN ? x : 0,
                      p->rate[(size_t)row * k + t]);
        }
    for (uint32_t i = 0; i < p->pair_count; i++)
        for (uint32_t t = 0; t < k; t++) {
            double units = units_of(draft, p->class_count + i, t);
            set_pair(common, rounds->used[p->pairs[i].first],
                     rounds->used[p->pairs[i].second], t, units > UNITS_MIN ? units : 0,
                     &p->pair_rate[((size_t)i * k + t) * 2]);
        }
    turn_lines(common, now_ns);
}

static int solve_classes(struct gavel_common *common, const struct gavel_call *call,
                         struct error *err)
{
    struct gavel_rounds *rounds = common->rounds;
    struct class_draft draft = { .aim = AIM_LEVEL };
    make_room(&draft, rounds->used_count, call->type_count, call->scratch);
    gather_demands(common, call, &draft);
    draft.pairing = (struct pairs_input){ .class_count = rounds->used_count,
                                          .type_count = call->type_count,
                                          .capacity = call->capacity,
                                          .count = draft.count,
                                          .gang = draft.gang,
                                          .rate = draft.rate,
                                          .pairs = draft.pairs,
                                          .pair_rate = draft.pair_rate };
    draft.pairing.pair_count = list_class_pairs(common, call, &draft);
    int r = solve_draft(rounds->pair_solver, &draft, err);
    if (r == 0)
        take_draft(common, &draft, call->view->now_ns);
    return r;
}

/* --- asking -------------------------------------------------------------------------------- */

static double count_gpus(const struct gavel_common *common)
{
    double gpus = 0;
    for (uint32_t c = 0; c < common->type_count; c++)
        gpus += common->capacity[c];
    return gpus;
}

/*
 * Of a policy with a key: the jobs that do not wait, and of those that wait with equal
 * demands as many as there can be room for; in order of arrival.
 */
static struct gavel_rows candidates(struct gavel_common *common,
                                    const struct view *view)
{
    struct gavel_rounds *rounds = common->rounds;
    double gpus = count_gpus(common);
    uint32_t count = 0;
    size_t width = common->type_count * sizeof *common->capacity;
    if (memcmp(rounds->ordered_for, common->capacity, width) != 0)
        accounts_order_again(common, view);
    memcpy(rounds->ordered_for, common->capacity, width);
    for (; count < rounds->busy_count; count++)
        rounds->items[count].value = rounds->busy[count];
    for (uint32_t i = 0; i < rounds->queue_count; i++) {
        const struct gavel_queue *queue = &rounds->queues[i];
        double most = fmax(gpus / queue->gpus + 1, common->gavel->rule->waiting_min);
        job_id id = tree_first(&rounds->keys, &queue->by_key);
        for (uint32_t n = 0; id != TREE_NONE && n < most; n++) {
            rounds->items[count++].value = id;
            id = tree_next(&rounds->keys, id);
        }
    }
    for (uint32_t i = 0; i < count; i++)
        rounds->items[i].key = (double)common->entries[rounds->items[i].value].ticket;
    sort_items(rounds->items, rounds->item_scratch, count);
    for (uint32_t i = 0; i < count; i++)
        rounds->rows[i] = rounds->items[i].value;
    return (struct gavel_rows){ .jobs = rounds->rows, .count = count };
}

/* Jobs that came first, as many as there can be room for in order of arrival. */
static uint32_t count_first(const struct gavel_common *common)
{
    double room = count_gpus(common) * (common->gavel->sharing ? 2 : 1);
    uint32_t count = 0;
    for (; count < common->job_count && room >= 0; count++) {
        job_id id = common->jobs[count];
        double gang = common->entries[id].gang;
        bool can_run = false;
        for (uint32_t c = 0; c < common->type_count; c++)
            can_run = can_run ||
                      (gavel_rates(common, id)[c] > 0 && gang <= common->capacity[c]);
        room -= can_run ? gang : 0;
    }
    return count;
}

int shares_make(struct gavel_common *common, const struct view *view,
                struct arena *scratch, struct error *err)
{
    struct gavel_rounds *rounds = common->rounds;
    const struct gavel_rule *rule = common->gavel->rule;
    struct gavel_call call;
    struct gavel_times times = { .now_s = (double)view->now_ns / 1e9 };
    struct gavel_rows rows = { .jobs = common->jobs, .count = common->job_count };
    common->changed = false;
    rounds->drift = rounds->level = 0;
    rounds->changes = 0;
    rounds->due_ns = view->now_ns + (int64_t)(rule->patience_s * 1e9);
    if (common->job_count == 0)
        return 0;
    rounds->restless = true;
    if (rule->by_class && !(rounds->pair_solver && rule->deadlines_apart)) {
        double *members = arena_array(scratch, double, rounds->used_count);
        for (uint32_t i = 0; i < rounds->used_count; i++) {
            const struct gavel_class *class = &rounds->classes[rounds->used[i]];
            rounds->rows[i] = class->example;
            members[i] = class->count;
        }
        rows = (struct gavel_rows){ rounds->rows, rounds->used_count, members };
    }
    if (rule->key)
        rows = candidates(common, view);
    if (rule->in_order)
        rows.count = count_first(common);
    gavel_prepare(common, view, &times, &rows, scratch, &call);
    if (rounds->pair_solver)
        return solve_classes(common, &call, err);
    list_job_pairs(common, &call);
    int r = rule->shares(common->self, &call, err);
    if (r < 0)
        return r;
    take_shares(common, &call);
    rounds->level = call.level;
    return 0;
}

/* GPUs that a job has at the level of all. */
static double gpus_at_level(struct gavel_common *common, const struct view *view,
                            job_id id)
{
    const struct gavel_rounds *rounds = common->rounds;
    const struct gavel_rule *rule = common->gavel->rule;
    struct gavel_call call;
    struct gavel_times times = { .now_s = (double)view->now_ns / 1e9 };
    struct gavel_rows rows = { .jobs = &id, .count = 1 };
    struct gavel_demand demand = { .aim = AIM_LEVEL };
    if (rule->by_class || !rule->demand)
        return common->entries[id].weight * rounds->level;
    gavel_prepare(common, view, &times, &rows, NULL, &call);
    rule->demand(common->self, &call, 0, &demand);
    double even_rate = gavel_lp_even_rate(&call, 0);
    double slack = 1 - demand.ahead * rounds->level;
    if (!(even_rate > 0 && slack > 0))
        return INFINITY;
    return demand.need * rounds->level / slack / even_rate * call.gang[0];
}

/* A new class takes the same part of every type, as much as brings it to the level of all. */
static void guess_shares(struct gavel_common *common, const struct view *view,
                         job_id id, double part)
{
    uint32_t class = common->rounds->members[id].class;
    struct gavel_call call;
    struct gavel_times times = { .now_s = (double)view->now_ns / 1e9 };
    struct gavel_rows rows = { .jobs = &id, .count = 1 };
    gavel_prepare(common, view, &times, &rows, NULL, &call);
    for (uint32_t c = 0; c < common->type_count; c++)
        set_alone(common, class, c, part * call.capacity[c] / call.gang[0],
                  call.rate[c]);
    struct gavel_class *made = &common->rounds->classes[class];
    made->pace = made->time > 0 ? made->pace / made->time : 0;
    accounts_turn_class(common, class, view->now_ns);
}

void shares_drift(struct gavel_common *common, const struct view *view, job_id id,
                  bool comes)
{
    struct gavel_rounds *rounds = common->rounds;
    const struct gavel_class *class = &rounds->classes[rounds->members[id].class];
    double gpus = count_gpus(common);
    double slack = rounds->by_class ? SLACK : SLACK_EACH;
    double change = 1;
    if (!comes && !rounds->by_class && rounds->level > 0 && class->asked && gpus > 0)
        change = class->time * class->gang / gpus;
    else if (rounds->level > 0 && gpus > 0 && (class->asked || !rounds->by_class)) {
        double wanted = gpus_at_level(common, view, id);
        change = isfinite(wanted) ? wanted / (gpus + wanted) : 1;
        if (!class->asked && change <= slack)
            guess_shares(common, view, id, change / wanted);
    }
    rounds->drift += change;
    rounds->changes++;
    bool enough = rounds->by_class || rounds->level <= 0 || !class->asked ||
                  (uint64_t)rounds->changes * CHANGES_EACH >= common->job_count;
    if (rounds->drift > slack && enough)
        common->changed = true;
}
