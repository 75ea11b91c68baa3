/* recipe.c - a policy by its name: how it turns an instance into shares. */
#include "solve/recipe.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/mt19937.h"
#include "base/param.h"
#include "base/suggest.h"
#include "solve/instance_file.h"
#include "solve/solve.h"

#define NAMES_MAX 64
#define ASSIGNMENT_MAX 2e9

/* What a job's rates are to who does not look at them. */
enum blind {
    BLIND_NEVER, /* the policy cannot be asked not to look */
    BLIND_EQUAL, /* 1 on every type                        */
    BLIND_FIRST, /* everywhere what it is on a v100        */
    BLIND_TRUE,  /* what they are                          */
};

/* What it needs of every job, or of the instance. */
enum need {
    NEED_STEPS = 1,
    NEED_AGE = 2,
    NEED_PRICES = 4,
    NEED_ENTITIES = 8,
    NEED_SINGLES = 16, /* jobs of one accelerator */
};

struct policy_row {
    const char *name;
    enum recipe_kind kind;
    enum goal goal;
    enum blind blind;
    bool shares; /* pairs are of use */
    bool floors;
    uint32_t needs;
};

static const struct policy_row policies[] = {
    { "gavel-las", RECIPE_PROGRAMME, GOAL_MAX_MIN, BLIND_EQUAL, true, false, 0 },
    { "gavel-fifo", RECIPE_FIRST_COME, 0, BLIND_TRUE, true, false, 0 },
    { "gavel-makespan", RECIPE_PROGRAMME, GOAL_MAKESPAN, BLIND_FIRST, true, false,
      NEED_STEPS },
    { "gavel-ftf", RECIPE_PROGRAMME, GOAL_FINISH_TIME, BLIND_FIRST, true, false,
      NEED_STEPS | NEED_AGE },
    { "gavel-cost", RECIPE_PROGRAMME, GOAL_COST_RATIO, BLIND_FIRST, true, false,
      NEED_PRICES },
    { "gavel-cost-slo", RECIPE_PROGRAMME, GOAL_COST_RATIO, BLIND_FIRST, true, true,
      NEED_PRICES },
    { "gavel-throughput", RECIPE_PROGRAMME, GOAL_SUM, BLIND_FIRST, true, false, 0 },
    { "gavel-hierarchical", RECIPE_PROGRAMME, GOAL_HIERARCHICAL, BLIND_EQUAL, true,
      false, NEED_ENTITIES },
    { "isolated", RECIPE_ISOLATED, 0, BLIND_NEVER, false, false, 0 },
    { "proportional", RECIPE_PROPORTIONAL, 0, BLIND_NEVER, false, false, 0 },
    { "allox", RECIPE_ALLOX, 0, BLIND_NEVER, false, false,
      NEED_STEPS | NEED_AGE | NEED_SINGLES },
};
#define POLICY_COUNT (sizeof policies / sizeof *policies)

const struct recipe_row recipe_list[] = {
    { "gavel-las", "the least served job gets as much as can be" },
    { "gavel-fifo", "first come, first served, on the type that suits" },
    { "gavel-makespan", "the last job done as early as can be" },
    { "gavel-ftf", "finish times in proportion to those under an equal split" },
    { "gavel-cost", "the most work per unit of money" },
    { "gavel-cost-slo", "the same, deadlines kept" },
    { "gavel-throughput", "the largest sum of rates" },
    { "gavel-hierarchical", "fair between entities, then within each" },
    { "isolated", "an equal part of every type for each job" },
    { "proportional", "each job's time split as the accelerators are" },
    { "allox", "the least sum of completion times, jobs of one accelerator" },
    { NULL, NULL },
};

/* Names of the published system in ours. */
static const char *const published[][2] = {
    { "max_min_fairness", "gavel-las,aware=false" },
    { "max_min_fairness_perf", "gavel-las" },
    { "max_min_fairness_packed", "gavel-las,sharing=true" },
    { "max_min_fairness_water_filling", "gavel-las,water_filling=true,aware=false" },
    { "max_min_fairness_water_filling_perf", "gavel-las,water_filling=true" },
    { "max_min_fairness_water_filling_packed",
      "gavel-las,water_filling=true,sharing=true" },
    { "finish_time_fairness", "gavel-ftf,aware=false" },
    { "finish_time_fairness_perf", "gavel-ftf" },
    { "finish_time_fairness_packed", "gavel-ftf,sharing=true" },
    { "min_total_duration", "gavel-makespan,aware=false" },
    { "min_total_duration_perf", "gavel-makespan" },
    { "min_total_duration_packed", "gavel-makespan,sharing=true" },
    { "max_sum_throughput_perf", "gavel-throughput" },
    { "max_sum_throughput_packed", "gavel-throughput,sharing=true" },
    { "max_sum_throughput_normalized_by_cost_perf", "gavel-cost,form=released" },
    { "max_sum_throughput_normalized_by_cost_perf_SLOs",
      "gavel-cost-slo,form=released" },
    { "max_sum_throughput_normalized_by_cost_packed",
      "gavel-cost,form=released,sharing=true" },
    { "max_sum_throughput_normalized_by_cost_packed_SLOs",
      "gavel-cost-slo,form=released,sharing=true" },
    { "hierarchical_water_filling", "gavel-hierarchical" },
    { "hierarchical_water_filling_perf", "gavel-hierarchical" },
    { "hierarchical_water_filling_packed", "gavel-hierarchical,sharing=true" },
    { "fifo_perf", "gavel-fifo" },
    { "fifo_packed", "gavel-fifo,sharing=true" },
    { "fifo", "gavel-fifo,aware=false" },
};
#define PUBLISHED_COUNT (sizeof published / sizeof *published)

/* --- names and settings --- */

static const char *const forms[] = { "paper", "released", NULL };
static const char *const compats[] = { "none", "released", NULL };

static const struct field settings[] = {
    { "aware", FIELD_FLAG, offsetof(struct recipe, aware), "true", NULL,
      "knows how fast each job runs on each type" },
    { "sharing", FIELD_FLAG, offsetof(struct recipe, sharing), "false", NULL,
      "two jobs may share accelerators" },
    { "water_filling", FIELD_FLAG, offsetof(struct recipe, water_filling), "false",
      NULL, "all levels, not the least alone" },
    { "form", FIELD_CHOICE, offsetof(struct recipe, form), "paper", NULL,
      "of cost: rates over prices paid, or rates over prices summed up",
      .choices = forms },
    { "compat", FIELD_CHOICE, offsetof(struct recipe, compat), "none", NULL,
      "gavel-fifo: as the published system does it", .choices = compats },
    { "seed", FIELD_COUNT, offsetof(struct recipe, seed), "0", NULL,
      "of what that draws" },
    { "tidy", FIELD_FLAG, offsetof(struct recipe, tidy), "false", NULL,
      "of several optima the one with the largest sum of normalised rates" },
    { 0 },
};

static const struct policy_row *find_policy(const char *name)
{
    for (uint32_t i = 0; i < POLICY_COUNT; i++)
        if (strcmp(policies[i].name, name) == 0)
            return &policies[i];
    return NULL;
}

static int no_such_policy(const char *name, struct error *err)
{
    const char *names[NAMES_MAX + 1] = { NULL };
    uint32_t count = 0;
    for (uint32_t i = 0; i < POLICY_COUNT; i++)
        names[count++] = policies[i].name;
    for (uint32_t i = 0; i < PUBLISHED_COUNT; i++)
        names[count++] = published[i][0];
    char hint[200];
    if (strcmp(name, "gandiva") == 0)
        return error_set(err, -EINVAL,
                         "gandiva keeps what it tried: it has an answer in a run "
                         "('berth sim'), not for an instance");
    return error_set(err, -EINVAL,
                     "no policy '%.60s' that solves instances%s; 'berth solve --help' "
                     "lists them",
                     name, suggest(hint, sizeof hint, name, names));
}

/* Settings that this policy has no use for are refused rather than ignored. */
static int check_settings(const struct recipe *recipe, const struct policy_row *row,
                          struct error *err)
{
    bool cost = row->goal == GOAL_COST_RATIO && row->kind == RECIPE_PROGRAMME;
    const struct {
        const char *name;
        bool set, allowed;
    } checks[] = {
        { "aware", !recipe->aware, row->blind != BLIND_NEVER },
        { "sharing", recipe->sharing, row->shares },
        { "water_filling", recipe->water_filling,
          row->kind == RECIPE_PROGRAMME && row->goal == GOAL_MAX_MIN },
        { "form", recipe->form != 0, cost },
        { "compat", recipe->compat != 0, row->kind == RECIPE_FIRST_COME },
        { "seed", recipe->seed != 0, row->kind == RECIPE_FIRST_COME },
        { "tidy", recipe->tidy, row->kind == RECIPE_PROGRAMME },
    };
    for (uint32_t i = 0; i < sizeof checks / sizeof *checks; i++)
        if (checks[i].set && !checks[i].allowed)
            return error_set(err, -EINVAL, "%s: has no setting '%s'", row->name,
                             checks[i].name);
    if (recipe->sharing && !recipe->aware)
        return error_set(err, -EINVAL,
                         "%s: sharing=true needs aware=true, since pairs are chosen by "
                         "their rates",
                         row->name);
    return 0;
}

int recipe_parse(struct recipe *recipe, const char *text, struct error *err)
{
    size_t bytes = strcspn(text, ",");
    char name[64], ours[160];
    snprintf(name, sizeof name, "%.*s", (int)bytes, text);
    snprintf(ours, sizeof ours, "%s", name);
    for (uint32_t i = 0; i < PUBLISHED_COUNT; i++)
        if (strcmp(published[i][0], name) == 0)
            snprintf(ours, sizeof ours, "%s", published[i][1]);
    const char *more = strchr(ours, ',');
    snprintf(name, sizeof name, "%.*s", (int)strcspn(ours, ","), ours);
    const struct policy_row *row = find_policy(name);
    if (!row)
        return no_such_policy(name, err);
    struct recipe made = {
        .name = row->name, .kind = row->kind, .goal = row->goal, .floors = row->floors
    };
    param_defaults(settings, &made);
    int r = param_parse(settings, &made, row->name, more ? more + 1 : "", err);
    if (r == 0)
        r = param_parse(settings, &made, row->name, text[bytes] ? text + bytes + 1 : "",
                        err);
    if (r == 0)
        r = check_settings(&made, row, err);
    if (r < 0)
        return r;
    if (made.water_filling)
        made.goal = GOAL_WATER_FILLING;
    if (made.form == 1)
        made.goal = GOAL_SUM;
    *recipe = made;
    return 0;
}

/* --- instances --- */

static int missing(const struct instance_file *file, const struct instance *in,
                   uint32_t job, const char *field, struct error *err)
{
    return error_set(err, -EINVAL, "%.80s: instances[%u].jobs[%u].%s: missing",
                     file->name, in->place, job, field);
}

static int check_job(const struct recipe *recipe, const struct instance_file *file,
                     const struct instance *in, uint32_t job, uint32_t needs,
                     struct error *err)
{
    bool due = recipe->floors && in->slo_s[job] < INFINITY;
    if (((needs & NEED_STEPS) || due) && in->steps[job] < 0)
        return missing(file, in, job, "num_steps_remaining", err);
    if ((needs & NEED_AGE) && in->age_s[job] < 0)
        return missing(file, in, job, "time_since_start", err);
    if ((needs & NEED_SINGLES) && in->gang[job] != 1)
        return error_set(err, -EINVAL,
                         "%.80s: instances[%u].jobs[%u].scale_factor: is %g, %s is for "
                         "jobs of one accelerator",
                         file->name, in->place, job, in->gang[job], recipe->name);
    return 0;
}

/* Steps that an assignment of so many jobs takes, about. */
static double assignment_work(const struct instance *in)
{
    double workers = 0, jobs = in->job_count;
    for (uint32_t t = 0; t < in->type_count; t++)
        workers += fmin(in->capacity[t], jobs);
    return jobs * jobs * workers;
}

int recipe_check(const struct recipe *recipe, const struct instance_file *file,
                 struct error *err)
{
    uint32_t needs = find_policy(recipe->name)->needs;
    for (uint32_t i = 0; i < file->count; i++) {
        const struct instance *in = &file->instances[i];
        if ((needs & NEED_PRICES) && !in->price)
            return error_set(err, -EINVAL,
                             "%.80s: instances[%u].instance_costs_per_hour: missing",
                             file->name, in->place);
        if ((needs & NEED_ENTITIES) && !in->group)
            return error_set(err, -EINVAL, "%.80s: instances[%u].entities: missing",
                             file->name, in->place);
        if (recipe->kind == RECIPE_ALLOX && assignment_work(in) > ASSIGNMENT_MAX)
            return error_set(err, -EINVAL,
                             "%.80s: instances[%u].jobs: too many for allox, which "
                             "takes jobs * jobs * workers steps, at most %.0e",
                             file->name, in->place, ASSIGNMENT_MAX);
        for (uint32_t j = 0; j < in->job_count; j++) {
            int r = check_job(recipe, file, in, j, needs, err);
            if (r < 0)
                return r;
        }
    }
    return 0;
}

/* The type whose rates stand for all to who does not look: a v100, or the first. */
static uint32_t reference_type(const struct instance *in)
{
    for (uint32_t t = 0; t < in->type_count; t++)
        if (strcmp(in->types[t], "v100") == 0)
            return t;
    return 0;
}

/* Rates as the policy sees them; a job that runs nowhere is not helped by not looking. */
static const double *seen_rates(const struct recipe *recipe, const struct instance *in,
                                struct arena *arena)
{
    enum blind blind = find_policy(recipe->name)->blind;
    if (recipe->aware || blind == BLIND_TRUE)
        return in->rate;
    uint32_t reference = reference_type(in);
    double *rates = arena_array(arena, double, (size_t)in->job_count * in->type_count);
    for (uint32_t j = 0; j < in->job_count; j++) {
        const double *row = &in->rate[(size_t)j * in->type_count];
        double most = 0;
        for (uint32_t t = 0; t < in->type_count; t++)
            most = fmax(most, row[t]);
        double rate = blind == BLIND_EQUAL ? most > 0
                      : row[reference] > 0 ? row[reference]
                                           : most;
        for (uint32_t t = 0; t < in->type_count; t++)
            rates[(size_t)j * in->type_count + t] = rate;
    }
    return rates;
}

/* What a deadline asks for; one that has passed asks for more than there is. */
static const double *floors_of(const struct instance *in, struct arena *arena)
{
    double *floors = arena_array(arena, double, in->job_count);
    for (uint32_t j = 0; j < in->job_count; j++)
        if (in->slo_s[j] < INFINITY && in->steps[j] > 0)
            floors[j] = in->slo_s[j] > 0 ? in->steps[j] / in->slo_s[j] : INFINITY;
    return floors;
}

static int solve_programme(const struct recipe *recipe, const struct instance *in,
                           enum solve_engine engine, struct solver *solver,
                           struct arena *arena, struct recipe_answer *answer,
                           struct error *err)
{
    const struct programme programme = {
        .goal = recipe->goal,
        .job_count = in->job_count,
        .type_count = in->type_count,
        .pair_count = recipe->sharing ? in->pair_count : 0,
        .group_count = in->group_count,
        .capacity = in->capacity,
        .gang = in->gang,
        .rate = seen_rates(recipe, in, arena),
        .weight = in->weight,
        .steps = recipe->goal == GOAL_MAKESPAN || recipe->goal == GOAL_FINISH_TIME
                     ? in->steps
                     : NULL,
        .age_s = recipe->goal == GOAL_FINISH_TIME ? in->age_s : NULL,
        .alone_s = in->alone_s,
        .floor = recipe->floors ? floors_of(in, arena) : NULL,
        .price = find_policy(recipe->name)->needs & NEED_PRICES ? in->price : NULL,
        .group = in->group,
        .groups = in->groups,
        .pairs = in->pairs,
        .pair_rate = in->pair_rate,
        .tidy = recipe->tidy,
    };
    answer->valued = answer->proven = true;
    return programme_solve(&programme, engine, solver, arena, &answer->shares, err);
}

static uint32_t draw(void *context, uint32_t count)
{
    return mt_below(context, count);
}

static void solve_first_come(const struct recipe *recipe, const struct instance *in,
                             struct arena *arena, double *x)
{
    struct mt19937 mt;
    mt_init(&mt, recipe->seed);
    const struct fifo_shares queue = {
        .job_count = in->job_count,
        .type_count = in->type_count,
        .pair_count = recipe->sharing ? in->pair_count : 0,
        .capacity = in->capacity,
        .gang = in->gang,
        .rate = in->rate,
        .pairs = in->pairs,
        .pair_rate = in->pair_rate,
        .aware = recipe->aware,
        .released = recipe->compat == 1,
        .draw = draw,
        .draw_context = &mt,
    };
    shares_fifo(&queue, arena, x);
}

static void solve_simple(const struct recipe *recipe, const struct instance *in,
                         struct arena *arena, struct recipe_answer *answer)
{
    struct shares *shares = &answer->shares;
    const struct allox allox = {
        .job_count = in->job_count,
        .type_count = in->type_count,
        .capacity = in->capacity,
        .rate = in->rate,
        .steps = in->steps,
        .age_s = in->age_s,
    };
    switch (recipe->kind) {
    case RECIPE_ISOLATED:
        shares_isolated(in->job_count, in->type_count, in->capacity, in->gang,
                        shares->x);
        break;
    case RECIPE_PROPORTIONAL:
        shares_proportional(in->job_count, in->type_count, in->capacity, shares->x);
        break;
    case RECIPE_FIRST_COME:
        solve_first_come(recipe, in, arena, shares->x);
        break;
    case RECIPE_ALLOX:
        shares->objective = shares_allox(&allox, arena, shares->x);
        answer->valued = true;
        break;
    case RECIPE_PROGRAMME:
        break;
    }
    shares->status = SHARES_EMPTY;
    for (size_t i = 0; i < (size_t)in->job_count * in->type_count; i++)
        if (shares->x[i] > 0)
            shares->status = SHARES_OPTIMAL;
}

int recipe_solve(const struct recipe *recipe, const struct instance *instance,
                 enum solve_engine engine, struct solver *solver, struct arena *arena,
                 struct recipe_answer *ret_answer, struct error *err)
{
    struct recipe_answer answer = { 0 };
    size_t lines = (size_t)instance->job_count + instance->pair_count;
    size_t cells = lines * instance->type_count;
    if (recipe->kind == RECIPE_PROGRAMME) {
        int r = solve_programme(recipe, instance, engine, solver, arena, &answer, err);
        if (r < 0)
            return r;
        /* Pairs that were not looked at have rows too. */
        if (!recipe->sharing && instance->pair_count > 0) {
            double *x = arena_array(arena, double, cells);
            memcpy(x, answer.shares.x,
                   (size_t)instance->job_count * instance->type_count * sizeof *x);
            answer.shares.x = x;
        }
    } else {
        answer.shares.x = arena_array(arena, double, cells);
        solve_simple(recipe, instance, arena, &answer);
    }
    *ret_answer = answer;
    return 0;
}
