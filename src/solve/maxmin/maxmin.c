/*
 * maxmin.c - goals that raise the least level, by prices: max-min fairness, makespan and
 * finish-time fairness; and those that go on to the next least, water filling and shares
 * between groups.
 */
#include "solve/maxmin/maxmin.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/memory.h"
#include "solve/maxmin/market.h"
#include "solve/maxmin/water_filling.h"
#include "solve/row_classes.h"
#include "solve/sums/auction.h"
#include "solve/sums/sums.h"

#define LEVEL_TOLERANCE 1e-9
#define START_MARGIN \
    (0.3 * LEVEL_TOLERANCE) /* how much lower a rise starts than the last one ended */
#define CHECK_MAX 2000 /* classes up to which stops are checked                     */
#define CHECK_SLACK \
    1e-4 /* a larger gain than this means that a job need not have stopped */
#define FLOOR_MARGIN \
    1e-9 /* floors at the boundary count as reachable                 */
#define FILL_TOLERANCE 1e-7 /* of the ratios of jobs that are not the latest */
#define FULL 1e-9           /* so near to its best rate a job is at it */
#define POOL_STEPS_MAX 200
#define POOL_CLOSE 1e-13 /* relative, of what is used to what there is */

/* --- identical jobs as one buyer -------------------------------------------------- */

#define CLASS_FIELDS (SOLVE_TYPES_MAX + 3) /* rates, gang, need, ahead */

/* A class of identical jobs; its index is the buyer's slot. */
struct market_class {
    uint64_t key;
    double fields[CLASS_FIELDS];
    uint32_t put; /* jobs in the market              */
    uint32_t now; /* jobs of the programme in hand   */
};

struct market_classes {
    struct market *market;
    uint32_t type_count, slot_max;
    double capacity[SOLVE_TYPES_MAX];
    bool apart;
    uint32_t job_count; /* apart: jobs of the programme in hand, one slot each */

    struct map slots; /* key to slot */
    struct market_class *classes;
    uint32_t class_count; /* slots used so far, with those that are free again;
                          * apart: jobs of the last programme */
    uint32_t *free_slots; /* slots that are free again */
    uint32_t free_count;
};

struct market_classes *market_classes_new(void)
{
    return memory_checked(calloc(1, sizeof(struct market_classes)));
}

static void clear_classes(struct market_classes *classes)
{
    market_free(classes->market);
    map_release(&classes->slots);
    free(classes->classes);
    free(classes->free_slots);
    *classes = (struct market_classes){ 0 };
}

void market_classes_free(struct market_classes *classes)
{
    if (!classes)
        return;
    clear_classes(classes);
    free(classes);
}

static void build_classes(struct market_classes *classes, uint32_t type_count,
                          const double *capacity, uint32_t job_max, bool apart)
{
    clear_classes(classes);
    /* New classes are put in before old ones are removed: room for both. */
    classes->slot_max = 2 * job_max + 64;
    classes->type_count = type_count;
    classes->apart = apart;
    classes->market = market_new(type_count, capacity, classes->slot_max);
    memcpy(classes->capacity, capacity, type_count * sizeof *capacity);
    if (!apart) {
        size_t count = classes->slot_max;
        classes->classes = memory_checked(calloc(count, sizeof *classes->classes));
        classes->free_slots =
            memory_checked(calloc(count, sizeof *classes->free_slots));
    }
}

/*
 * Begin a programme with up to 'job_max' jobs.  With 'apart' every job is a buyer of its
 * own and only the prices are kept from the last programme: less work where hardly two
 * jobs are identical, or where they change from one programme to the next.
 */
static void begin_classes(struct market_classes *classes, uint32_t type_count,
                          const double *capacity, uint32_t job_max, bool apart)
{
    assert(type_count <= SOLVE_TYPES_MAX);
    uint32_t kept = apart ? 0 : classes->class_count - classes->free_count;
    if (!classes->market || classes->type_count != type_count ||
        classes->apart != apart || classes->slot_max - kept < job_max)
        build_classes(classes, type_count, capacity, job_max, apart);
    if (memcmp(classes->capacity, capacity, type_count * sizeof *capacity) != 0)
        market_set_capacity(classes->market, capacity);
    memcpy(classes->capacity, capacity, type_count * sizeof *capacity);
    for (uint32_t i = 0; !apart && i < classes->class_count; i++)
        classes->classes[i].now = 0;
    classes->job_count = 0;
}

/* A slot for a class that is not there yet. */
static uint32_t add_class(struct market_classes *classes, uint64_t key,
                          const double *fields, uint32_t count)
{
    uint32_t slot = classes->free_count > 0 ? classes->free_slots[--classes->free_count]
                                            : classes->class_count++;
    assert(slot < classes->slot_max);
    struct market_class *class = &classes->classes[slot];
    *class = (struct market_class){ .key = key };
    memcpy(class->fields, fields, count * sizeof *fields);
    map_put(&classes->slots, key, slot);
    return slot;
}

/* Add a job; returns its slot in the market. */
static uint32_t put_job(struct market_classes *classes, const struct buyer *buyer)
{
    if (classes->apart) {
        market_put(classes->market, classes->job_count, buyer);
        return classes->job_count++;
    }
    double fields[CLASS_FIELDS];
    uint32_t count = classes->type_count;
    memcpy(fields, buyer->rate, count * sizeof *fields);
    fields[count++] = buyer->gang;
    fields[count++] = buyer->need;
    fields[count++] = buyer->ahead;
    uint64_t key = hash_doubles(fields, count);
    uint32_t slot;
    while ((slot = map_find(&classes->slots, key)) != MAP_NONE &&
           memcmp(classes->classes[slot].fields, fields, count * sizeof *fields) != 0)
        key++;
    if (slot == MAP_NONE)
        slot = add_class(classes, key, fields, count);
    classes->classes[slot].now++;
    return slot;
}

static void put_class(struct market_classes *classes, uint32_t slot)
{
    struct market_class *class = &classes->classes[slot];
    const double *rest = &class->fields[classes->type_count];
    const struct buyer buyer = { .rate = class->fields,
                                 .gang = rest[0] * class->now,
                                 .need = rest[1],
                                 .ahead = rest[2] };
    market_put(classes->market, slot, &buyer);
    class->put = class->now;
}

/* All jobs are added: the market, ready to be solved. */
static struct market *end_classes(struct market_classes *classes)
{
    if (classes->apart) {
        for (uint32_t i = classes->job_count; i < classes->class_count; i++)
            market_drop(classes->market, i);
        classes->class_count = classes->job_count;
        return classes->market;
    }
    for (uint32_t i = 0; i < classes->class_count; i++) {
        struct market_class *class = &classes->classes[i];
        if (class->now == 0 && class->put > 0) {
            market_drop(classes->market, i);
            map_remove(&classes->slots, class->key);
            class->put = 0;
            classes->free_slots[classes->free_count++] = i;
        } else if (class->now != class->put)
            put_class(classes, i);
    }
    return classes->market;
}

/* --- types that are alike ------------------------------------------------------------ */

/*
 * Without known rates, or with GPUs of one kind, all types are one pool.  A job's share at a
 * level is then a formula, and the only unknown is one number:
 *
 *     share(z) = a z / (1 - b z), at most 1        a = need / rate, b = ahead
 *
 * so a job has all of its time from z = 1 / (a + b) on.  The sum over all jobs grows with z.
 */
struct pool_jobs {
    uint32_t count;
    double *gang, *a, *b, *top; /* top: the level at which it has all of its time */
};

/* The goal is about every job that can run, and each is as fast on one type as on another. */
static bool is_one_pool(const struct problem *problem,
                        const struct problem_demands *demands)
{
    const struct programme *p = problem->programme;
    for (uint32_t j = 0; j < p->job_count; j++) {
        const double *rate = &p->rate[(size_t)j * p->type_count];
        for (uint32_t t = 0; t < p->type_count; t++)
            if (p->capacity[t] > 0 &&
                (rate[t] != problem->top[j] || !(demands->unit[j] > 0)))
                return false;
    }
    return true;
}

static double add_shares(const struct pool_jobs *jobs, double level, double *ret_slope)
{
    double used = 0, slope = 0;
    for (uint32_t j = 0; j < jobs->count; j++) {
        bool capped = level >= jobs->top[j];
        double inverse = 1 / (capped ? 1 : 1 - jobs->b[j] * level);
        double share = jobs->a[j] * level * inverse;
        used += jobs->gang[j] * (capped ? 1 : share);
        slope += capped ? 0 : jobs->gang[j] * jobs->a[j] * inverse * inverse;
    }
    *ret_slope = slope;
    return used;
}

/* By Newton's steps where they stay in the bracket, otherwise by halves. */
static double find_level(const struct pool_jobs *jobs, double capacity, double at,
                         double high)
{
    double low = 0;
    for (uint32_t i = 0; i < POOL_STEPS_MAX; i++) {
        double slope;
        double over = add_shares(jobs, at, &slope) - capacity;
        if (over > 0)
            high = at;
        else
            low = at;
        if ((over <= 0 && over >= -POOL_CLOSE * capacity) || high - low <= 1e-15 * high)
            break;
        double next = slope > 0 ? at - over / slope : 0;
        at = next > low && next < high ? next : 0.5 * (low + high);
    }
    return low;
}

/*
 * The least level is as large as can be, then the next least, and so on.  A job that has all
 * of its time stays there while the others go on.  Shares are spread over the types by their
 * capacities.  Returns the largest least level: no shares reach more.
 */
static double solve_one_pool(const struct problem *problem,
                             const struct problem_demands *demands, double *ret_x)
{
    const struct programme *p = problem->programme;
    uint32_t n = p->job_count;
    struct pool_jobs jobs = { .count = n,
                              .gang = arena_array(problem->arena, double, n),
                              .a = arena_array(problem->arena, double, n),
                              .b = arena_array(problem->arena, double, n),
                              .top = arena_array(problem->arena, double, n) };
    double capacity = 0, wanted = 0, each = 0, least = INFINITY, most = 0;
    for (uint32_t t = 0; t < p->type_count; t++)
        capacity += p->capacity[t];
    for (uint32_t j = 0; j < n; j++) {
        jobs.gang[j] = p->gang[j];
        jobs.a[j] = (demands->need ? demands->need[j] : 1) /
                    (demands->unit[j] * problem->top[j]);
        jobs.b[j] = demands->ahead ? demands->ahead[j] : 0;
        jobs.top[j] = 1 / (jobs.a[j] + jobs.b[j]);
        wanted += p->gang[j];
        each += p->gang[j] * jobs.a[j]; /* what a little level uses */
        least = fmin(least, jobs.top[j]);
        most = fmax(most, jobs.top[j]);
    }
    double level = wanted <= capacity
                       ? most
                       : find_level(&jobs, capacity, fmin(capacity / each, most), most);
    for (uint32_t j = 0; j < n; j++) {
        double share =
            level >= jobs.top[j] ? 1 : jobs.a[j] * level / (1 - jobs.b[j] * level);
        for (uint32_t t = 0; t < p->type_count; t++)
            ret_x[(size_t)j * p->type_count + t] = share * p->capacity[t] / capacity;
    }
    return fmin(least, level);
}

/* --- one level for all jobs ----------------------------------------------------- */

/* The job as a buyer; its rates are written to 'rate'. */
static struct buyer make_buyer(const struct problem *problem,
                               const struct problem_demands *demands, uint32_t job,
                               double *rate)
{
    const struct programme *p = problem->programme;
    const double *row = &p->rate[(size_t)job * p->type_count];
    for (uint32_t t = 0; t < p->type_count; t++)
        rate[t] = p->capacity[t] > 0 ? row[t] * demands->unit[job] : 0;
    return (struct buyer){ .rate = rate,
                           .gang = p->gang[job],
                           .need = demands->need ? demands->need[job] : 1,
                           .ahead = demands->ahead ? demands->ahead[job] : 0 };
}

/*
 * One job that is late already sets the largest ratio, and nearly all of the capacity is then
 * free: give it to the next latest job, and so on.  False: no such shares were found.
 */
static bool fill_finish_levels(const struct problem *problem,
                               const struct problem_demands *demands,
                               struct shares *shares)
{
    const struct programme *p = problem->programme;
    size_t cells = (size_t)p->job_count * p->type_count;
    double *x = arena_array(problem->arena, double, cells);
    double *level = arena_array(problem->arena, double, p->job_count);
    struct water_filling filling = { .job_count = p->job_count,
                                     .type_count = p->type_count,
                                     .capacity = p->capacity,
                                     .gang = p->gang,
                                     .rate = p->rate,
                                     .need = demands->need,
                                     .ahead = demands->ahead,
                                     .scratch = problem->arena };
    struct water_filling_answer answer;
    if (water_filling_solve(&filling, FILL_TOLERANCE, level, x, &answer, NULL) < 0)
        return false;
    problem_drop_useless(problem, x);
    double objective = problem_objective(problem, x);
    if (!(objective <= shares->objective * (1 + PROBLEM_KEPT)))
        return false;
    memcpy(shares->x, x, cells * sizeof *x);
    shares->objective = objective;
    shares->iterations += answer.solves;
    return true;
}

/* MAX_MIN, MAKESPAN, FINISH_TIME. */
int maxmin_solve_level(const struct problem *problem, struct market_classes *classes,
                       bool keeps, struct shares *shares, struct error *err)
{
    const struct programme *p = problem->programme;
    struct problem_demands demands = problem_demands(problem);
    double rate[SOLVE_TYPES_MAX];
    if (p->goal != GOAL_MAX_MIN && is_one_pool(problem, &demands)) {
        double level = solve_one_pool(problem, &demands, shares->x);
        problem_make_feasible(problem, shares->x);
        shares->objective = problem_objective(problem, shares->x);
        shares->gap =
            problem_relative_gap(level, problem_level(problem, shares->objective));
        return 0;
    }
    uint32_t *place = arena_array(problem->arena, uint32_t, p->job_count);
    /* A market that is kept must recognise the jobs that stay. */
    bool apart =
        !(keeps && p->goal == GOAL_MAX_MIN) && problem_rows_differ(problem, &demands);
    begin_classes(classes, p->type_count, p->capacity, p->job_count, apart);
    for (uint32_t j = 0; j < p->job_count; j++)
        if (demands.unit[j] > 0) {
            struct buyer buyer = make_buyer(problem, &demands, j, rate);
            place[j] = put_job(classes, &buyer);
        }
    struct market *market = end_classes(classes);
    struct market_answer answer;
    int r = market_solve(market, PROBLEM_TOLERANCE, &answer, err);
    if (r < 0)
        return r;
    for (uint32_t j = 0; j < p->job_count; j++)
        if (demands.unit[j] > 0)
            market_share(market, place[j], &shares->x[(size_t)j * p->type_count]);
    problem_make_feasible(problem, shares->x);
    shares->iterations = answer.passes;
    shares->objective = problem_objective(problem, shares->x);
    if (p->tidy && !(p->goal == GOAL_FINISH_TIME &&
                     fill_finish_levels(problem, &demands, shares))) {
        double *floor = problem_demand_rates(problem, &demands, shares->objective);
        sums_break_ties(problem, floor, shares);
        shares->objective = problem_objective(problem, shares->x);
    }
    shares->gap =
        problem_relative_gap(answer.bound, problem_level(problem, shares->objective));
    return 0;
}

/* --- levels, one above the other ------------------------------------------------ */

/* The jobs that the goal is about, identical ones as one class. */
struct filling_classes {
    struct water_filling filling;
    struct row_classes alike;
    uint32_t member_count;
    uint32_t *members; /* [row] job                        */
    double *rate;      /* [class][type] in units of level  */
    double *gang;      /* [class] of all its members       */
    double *x;         /* [class][type]                    */
    double *level;     /* [class]                          */
};

/*
 * Rows that are equal for identical jobs; with 'grouped' they hold the group too.  In a
 * FIFO group no two jobs are identical: their order tells them apart.
 */
static double *class_rows(const struct problem *problem, const double *unit,
                          bool grouped, struct filling_classes *classes,
                          uint32_t *ret_width)
{
    const struct programme *p = problem->programme;
    uint32_t width = p->type_count + (grouped ? 4 : 1);
    double *rows = arena_array(problem->arena, double, (size_t)p->job_count *width);
    classes->members = arena_array(problem->arena, uint32_t, p->job_count);
    for (uint32_t j = 0; j < p->job_count; j++) {
        if (!(unit[j] > 0))
            continue;
        double *row = &rows[(size_t)classes->member_count * width];
        for (uint32_t t = 0; t < p->type_count; t++)
            row[t] = p->capacity[t] > 0
                         ? unit[j] * p->rate[(size_t)j * p->type_count + t]
                         : 0;
        row[p->type_count] = p->gang[j];
        if (grouped) {
            row[p->type_count + 1] = p->group[j];
            row[p->type_count + 2] = p->weight ? p->weight[j] : 1;
            row[p->type_count + 3] = p->groups[p->group[j]].fifo ? j + 1.0 : 0;
        }
        classes->members[classes->member_count++] = j;
    }
    *ret_width = width;
    return rows;
}

static void filling_classes_init(struct filling_classes *classes,
                                 const struct problem *problem, const double *unit,
                                 bool grouped)
{
    const struct programme *p = problem->programme;
    uint32_t width;
    *classes = (struct filling_classes){ 0 };
    const double *rows = class_rows(problem, unit, grouped, classes, &width);
    classes->alike =
        row_classes_find(rows, classes->member_count, width, problem->arena);
    uint32_t count = classes->alike.class_count;
    classes->rate = arena_array(problem->arena, double, (size_t)count * p->type_count);
    classes->x = arena_array(problem->arena, double, (size_t)count * p->type_count);
    classes->gang = arena_array(problem->arena, double, count);
    classes->level = arena_array(problem->arena, double, count);
    for (uint32_t c = 0; c < count; c++) {
        const double *row = &rows[(size_t)classes->alike.first[c] * width];
        memcpy(&classes->rate[(size_t)c * p->type_count], row,
               p->type_count * sizeof *row);
        classes->gang[c] = row[p->type_count] * classes->alike.count[c];
    }
    classes->filling = (struct water_filling){ .job_count = count,
                                               .type_count = p->type_count,
                                               .capacity = p->capacity,
                                               .gang = classes->gang,
                                               .rate = classes->rate,
                                               .scratch = problem->arena };
}

/*
 * Write the shares of jobs from those of classes; jobs outside the goal may get what is
 * left.
 */
static void write_job_shares(const struct problem *problem,
                             const struct filling_classes *classes, const double *unit,
                             struct shares *shares)
{
    const struct programme *p = problem->programme;
    double *floor = arena_array(problem->arena, double, p->job_count);
    double *rates = arena_array(problem->arena, double, p->job_count);
    bool leftovers = false;
    for (uint32_t i = 0; i < classes->member_count; i++)
        memcpy(&shares->x[(size_t)classes->members[i] * p->type_count],
               &classes->x[(size_t)classes->alike.class_of[i] * p->type_count],
               p->type_count * sizeof *shares->x);
    problem_drop_useless(problem, shares->x);
    problem_rates(problem, shares->x, rates);
    for (uint32_t i = 0; i < classes->member_count; i++) {
        uint32_t job = classes->members[i];
        double level = classes->level[classes->alike.class_of[i]];
        floor[job] = fmin(rates[job], level / unit[job]);
        if (level > 0)
            shares->gap =
                fmax(shares->gap, problem_relative_gap(level, unit[job] * rates[job]));
    }
    for (uint32_t j = 0; j < p->job_count; j++)
        leftovers = leftovers || (!(unit[j] > 0) && problem->even[j] > 0);
    if (p->tidy && leftovers)
        sums_break_ties(problem, floor, shares);
    shares->objective = problem_objective(problem, shares->x);
}

/* --- one rise at a time --- */

struct filling_climb {
    const struct problem *problem;
    const struct filling_classes *classes;
    struct water_filler *filler;
    bool *done;        /* [job]                                     */
    double *job_speed; /* [job]                                     */
    double *top;       /* [class] before the rise                   */
    double *base;      /* [class] its level, a little lower */
    double *speed;     /* [class]                                   */
    bool *stuck;       /* [class]                                   */
};

/* False when no class rises any more; otherwise how far until speeds change. */
static bool set_class_speeds(struct filling_climb *climb, double *ret_most)
{
    const struct filling_classes *classes = climb->classes;
    const struct programme *p = climb->problem->programme;
    bool grouped = p->goal == GOAL_HIERARCHICAL;
    double least = INFINITY, largest = 0;
    if (grouped)
        problem_group_speeds(climb->problem, climb->done, climb->job_speed);
    for (uint32_t j = 0; !grouped && j < p->job_count; j++)
        climb->job_speed[j] = climb->done[j] ? 0 : 1;
    for (uint32_t c = 0; c < classes->alike.class_count; c++) {
        climb->speed[c] = climb->job_speed[classes->members[classes->alike.first[c]]];
        climb->top[c] = water_filler_top(climb->filler, c);
        climb->base[c] = classes->level[c] * (1 - START_MARGIN);
        if (!(climb->speed[c] > 0))
            continue;
        double height = (climb->top[c] - climb->base[c]) / climb->speed[c];
        least = fmin(least, height);
        largest = fmax(largest, height);
    }
    /* A class at its top stops alone, unless its group then goes on faster. */
    *ret_most = grouped ? fmax(least, 0) : largest;
    return least < INFINITY;
}

/*
 * Raise all classes that rise.  Those that cannot go on are done, and so are those that
 * wait for their turn in a group and will find nothing left.
 */
static bool raise_classes(struct filling_climb *climb, const struct water_rise *rise)
{
    const struct filling_classes *classes = climb->classes;
    bool stopped = false;
    for (uint32_t c = 0; c < classes->alike.class_count; c++) {
        climb->stuck[c] = rise->held && climb->stuck[c];
        if (!(climb->speed[c] > 0))
            continue;
        classes->level[c] =
            fmin(climb->top[c], climb->base[c] + climb->speed[c] * rise->by);
        if (classes->level[c] >= climb->top[c] * (1 - FULL))
            climb->stuck[c] = true;
        stopped = stopped || climb->stuck[c];
    }
    for (uint32_t i = 0; i < classes->member_count; i++)
        if (climb->stuck[classes->alike.class_of[i]])
            climb->done[classes->members[i]] = true;
    return stopped;
}

/*
 * Do the stopped classes really have to stop?  Nearly equal prices can mislead, so
 * another solver maximises their rates while no level falls.
 */
static bool stops_are_right(const struct filling_climb *climb,
                            const struct water_rise *rise)
{
    const struct filling_classes *classes = climb->classes;
    struct arena *arena = climb->problem->arena;
    uint32_t count = classes->alike.class_count, types = classes->filling.type_count;
    double *value = arena_array(arena, double, (size_t)count *types);
    double *x = arena_array(arena, double, (size_t)count *types);
    double *floor = arena_array(arena, double, count);
    double stopped = 0;
    for (uint32_t c = 0; c < count; c++) {
        double level = fmin(climb->top[c], climb->base[c] + climb->speed[c] * rise->by);
        floor[c] = level * (1 - FLOOR_MARGIN);
        if (!climb->stuck[c] || !(climb->speed[c] > 0) || !(level > 0) ||
            level >= climb->top[c] * (1 - FULL))
            continue;
        stopped++;
        for (uint32_t t = 0; t < types; t++)
            value[(size_t)c * types + t] = classes->rate[(size_t)c * types + t] / level;
    }
    const struct auction auction = {
        .job_count = count,
        .type_count = types,
        .capacity = classes->filling.capacity,
        .gang = classes->gang,
        .value = value,
        .rate = classes->rate,
        .floor = floor,
        .scratch = arena,
    };
    struct auction_answer answer;
    if (stopped == 0 ||
        auction_solve(&auction, PROBLEM_TOLERANCE, x, &answer, NULL) < 0 ||
        !answer.feasible)
        return true; /* no second opinion */
    return answer.objective <= stopped * (1 + CHECK_SLACK);
}

static int climb_to_end(struct filling_climb *climb, struct error *err)
{
    double most;
    bool checks = climb->classes->alike.class_count <= CHECK_MAX;
    while (set_class_speeds(climb, &most)) {
        struct water_rise rise;
        int r = water_filler_rise(climb->filler, climb->base, climb->speed,
                                  fmax(most, 0), &rise, climb->stuck, err);
        if (r < 0)
            return r;
        if (checks && rise.held && !stops_are_right(climb, &rise))
            return error_set(err, -EDOM, "prices do not tell who has to stop");
        if (!raise_classes(climb, &rise))
            return error_set(err, -EDOM, "levels rise, but nobody has to stop");
    }
    return 0;
}

/* Rise by rise; in groups, the others take over the weight of a stopped job. */
static int climb_levels(const struct problem *problem, const double *unit,
                        struct filling_classes *classes, struct shares *shares,
                        struct error *err)
{
    const struct programme *p = problem->programme;
    uint32_t count = classes->alike.class_count;
    struct filling_climb climb = {
        .problem = problem,
        .classes = classes,
        .filler = water_filler_new(&classes->filling, LEVEL_TOLERANCE),
        .done = arena_array(problem->arena, bool, p->job_count),
        .job_speed = arena_array(problem->arena, double, p->job_count),
        .top = arena_array(problem->arena, double, count),
        .base = arena_array(problem->arena, double, count),
        .speed = arena_array(problem->arena, double, count),
        .stuck = arena_array(problem->arena, bool, count),
    };
    for (uint32_t j = 0; j < p->job_count; j++)
        climb.done[j] = !(unit[j] > 0);
    int r = climb_to_end(&climb, err);
    if (r == 0)
        r = water_filler_shares(climb.filler, classes->level, classes->x, err);
    shares->iterations = water_filler_solves(climb.filler);
    water_filler_free(climb.filler);
    return r;
}

int maxmin_solve_hierarchical(const struct problem *problem, struct shares *shares,
                              struct error *err)
{
    const double *unit = problem_units(problem);
    struct filling_classes classes;
    filling_classes_init(&classes, problem, unit, /* grouped= */ true);
    int r = climb_levels(problem, unit, &classes, shares, err);
    if (r < 0)
        return r;
    shares->gap = LEVEL_TOLERANCE;
    write_job_shares(problem, &classes, unit, shares);
    return 0;
}

int maxmin_solve_water_filling(const struct problem *problem, struct shares *shares,
                               struct error *err)
{
    const double *unit = problem_units(problem);
    struct filling_classes classes;
    struct water_filling_answer answer;
    filling_classes_init(&classes, problem, unit, /* grouped= */ false);
    int r;
    if (classes.alike.class_count <= CHECK_MAX) {
        r = climb_levels(problem, unit, &classes, shares, err);
    } else {
        r = water_filling_solve(&classes.filling, LEVEL_TOLERANCE, classes.level,
                                classes.x, &answer, err);
        shares->iterations = answer.solves;
    }
    if (r < 0)
        return r;
    shares->gap = LEVEL_TOLERANCE;
    write_job_shares(problem, &classes, unit, shares);
    return 0;
}
