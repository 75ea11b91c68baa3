/* instance_shares.c - ask a policy for the shares of an instance. */
#include "study/instance_shares.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/field.h"
#include "base/mt19937.h"
#include "base/param.h"
#include "base/suggest.h"
#include "policy/policy.h"
#include "policy/shared/instance_rule.h"
#include "study/instance_file.h"

#define NAMES_MAX 64
#define ASSIGNMENT_MAX 2e9 /* steps of an assignment that a user would wait for */

/* --- names and settings --- */

static const char *const forms[] = { "paper", "released", NULL };
static const char *const compats[] = { "none", "released", NULL };

static const struct field settings[] = {
    { "aware", FIELD_FLAG, offsetof(struct instance_policy, aware), "true", NULL,
      "knows how fast each job runs on each type" },
    { "sharing", FIELD_FLAG, offsetof(struct instance_policy, sharing), "false", NULL,
      "two jobs may share accelerators" },
    { "water_filling", FIELD_FLAG, offsetof(struct instance_policy, water_filling),
      "false", NULL, "all levels, not the least alone" },
    { "form", FIELD_CHOICE, offsetof(struct instance_policy, form), "paper", NULL,
      "of cost: rates over prices paid, or rates over prices summed up",
      .choices = forms },
    { "compat", FIELD_CHOICE, offsetof(struct instance_policy, compat), "none", NULL,
      "gavel-fifo: as the published system does it", .choices = compats },
    { "seed", FIELD_COUNT, offsetof(struct instance_policy, seed), "0", NULL,
      "of what that draws" },
    { "tidy", FIELD_FLAG, offsetof(struct instance_policy, tidy), "true", NULL,
      "of several optima the one with the largest sum of normalised rates" },
    { 0 },
};

/* The policy of that name in the published system, or NULL. */
static const struct policy *find_published(const char *name, const char **ret_settings)
{
    for (uint32_t i = 0; policy_list[i]; i++) {
        const struct instance_rule *rule = policy_list[i]->instance;
        const struct instance_name *known = rule ? rule->published : NULL;
        for (; known && known->name; known++)
            if (strcmp(known->name, name) == 0) {
                *ret_settings = known->settings;
                return policy_list[i];
            }
    }
    return NULL;
}

static int no_such_policy(const char *name, struct error *err)
{
    const char *names[NAMES_MAX + 1] = { NULL };
    uint32_t count = 0;
    for (uint32_t i = 0; policy_list[i]; i++)
        if (policy_list[i]->instance)
            names[count++] = policy_list[i]->name;
    for (uint32_t i = 0; policy_list[i]; i++) {
        const struct instance_rule *rule = policy_list[i]->instance;
        const struct instance_name *known = rule ? rule->published : NULL;
        for (; known && known->name && count < NAMES_MAX; known++)
            names[count++] = known->name;
    }
    char hint[200];
    if (strcmp(name, "gandiva") == 0)
        return error_set(err, -EINVAL,
                         "gandiva keeps what it tried: it has an answer in a run "
                         "('berth sim'), not for an instance");
    return error_set(err, -EINVAL,
                     "no policy '%.60s' that solves instances%s; 'berth solve --help' "
                     "lists them",
                     name, suggest_names(hint, sizeof hint, name, names));
}

static bool has_setting(const struct policy *policy, const char *name)
{
    for (const struct field *param = policy->params; param->name; param++)
        if (strcmp(param->name, name) == 0)
            return true;
    return false;
}

/* Settings that the policy does not have are refused rather than ignored. */
static int check_settings(const struct instance_policy *asked, struct error *err)
{
    const struct policy *policy = asked->policy;
    enum instance_method method = policy->instance->method;
    const struct {
        const char *name;
        bool set, allowed;
    } checks[] = {
        { "aware", !asked->aware, has_setting(policy, "aware") },
        { "sharing", asked->sharing, has_setting(policy, "sharing") },
        { "water_filling", asked->water_filling, has_setting(policy, "water_filling") },
        { "form", asked->form != 0, has_setting(policy, "form") },
        { "compat", asked->compat != 0, method == INSTANCE_FIFO },
        { "seed", asked->seed != 0, method == INSTANCE_FIFO },
        { "tidy", !asked->tidy, method == INSTANCE_PROGRAMME },
    };
    for (uint32_t i = 0; i < sizeof checks / sizeof *checks; i++)
        if (checks[i].set && !checks[i].allowed)
            return error_set(err, -EINVAL, "%s: has no setting '%s'", policy->name,
                             checks[i].name);
    if (asked->sharing && !asked->aware)
        return error_set(err, -EINVAL,
                         "%s: sharing=true needs aware=true, since pairs are chosen by "
                         "their rates",
                         policy->name);
    return 0;
}

int instance_policy_parse(struct instance_policy *asked, const char *text,
                          struct error *err)
{
    size_t bytes = strcspn(text, ",");
    char name[64];
    const char *implied = "";
    snprintf(name, sizeof name, "%.*s", (int)bytes, text);
    const struct policy *policy = find_published(name, &implied);
    if (!policy)
        policy = policy_find(name);
    if (!policy || !policy->instance)
        return no_such_policy(name, err);
    struct instance_policy made = { .policy = policy, .goal = policy->instance->goal };
    param_defaults(settings, &made);
    /* That system takes whichever optimum its solver meets. */
    made.tidy = strcmp(name, policy->name) == 0 ||
                policy->instance->method != INSTANCE_PROGRAMME;
    int r = param_parse(settings, &made, policy->name, implied, err);
    if (r == 0)
        r = param_parse(settings, &made, policy->name,
                        text[bytes] ? text + bytes + 1 : "", err);
    if (r == 0)
        r = check_settings(&made, err);
    if (r < 0)
        return r;
    if (made.water_filling)
        made.goal = GOAL_WATER_FILLING;
    if (made.form == 1)
        made.goal = GOAL_SUM;
    *asked = made;
    return 0;
}

/* --- instances --- */

static int report_missing(const struct instance_file *file, const struct instance *in,
                          uint32_t job, const char *field, struct error *err)
{
    return error_set(err, -EINVAL, "%.80s: instances[%u].jobs[%u].%s: missing",
                     file->name, in->place, job, field);
}

static int check_job(const struct instance_policy *asked,
                     const struct instance_file *file, const struct instance *in,
                     uint32_t job, struct error *err)
{
    const struct instance_rule *rule = asked->policy->instance;
    bool allox = rule->method == INSTANCE_ALLOX;
    bool needs_age = allox || rule->goal == GOAL_FINISH_TIME;
    bool needs_steps = needs_age || rule->goal == GOAL_MAKESPAN ||
                       (rule->floors && in->slo_s[job] < INFINITY);
    if (needs_steps && in->steps[job] < 0)
        return report_missing(file, in, job, "num_steps_remaining", err);
    if (needs_age && in->age_s[job] < 0)
        return report_missing(file, in, job, "time_since_start", err);
    if (allox && in->gang[job] != 1)
        return error_set(err, -EINVAL,
                         "%.80s: instances[%u].jobs[%u].scale_factor: is %g, %s is for "
                         "jobs of one accelerator",
                         file->name, in->place, job, in->gang[job],
                         asked->policy->name);
    return 0;
}

/* About how many steps the assignment of all jobs takes. */
static double assignment_work(const struct instance *in)
{
    double workers = 0, jobs = in->job_count;
    for (uint32_t t = 0; t < in->type_count; t++)
        workers += fmin(in->capacity[t], jobs);
    return jobs * jobs * workers;
}

/* Both forms of the cost: the goal of the rule is that of the paper's. */
static bool needs_prices(const struct instance_rule *rule)
{
    return rule->goal == GOAL_COST_RATIO;
}

int instance_policy_check(const struct instance_policy *asked,
                          const struct instance_file *file, struct error *err)
{
    const struct instance_rule *rule = asked->policy->instance;
    for (uint32_t i = 0; i < file->count; i++) {
        const struct instance *in = &file->instances[i];
        if (needs_prices(rule) && !in->price)
            return error_set(err, -EINVAL,
                             "%.80s: instances[%u].instance_costs_per_hour: missing",
                             file->name, in->place);
        if (rule->goal == GOAL_HIERARCHICAL && !in->group)
            return error_set(err, -EINVAL, "%.80s: instances[%u].entities: missing",
                             file->name, in->place);
        if (rule->method == INSTANCE_ALLOX && assignment_work(in) > ASSIGNMENT_MAX)
            return error_set(err, -EINVAL,
                             "%.80s: instances[%u].jobs: too many for allox, which "
                             "takes jobs * jobs * workers steps, at most %.0e",
                             file->name, in->place, ASSIGNMENT_MAX);
        for (uint32_t j = 0; j < in->job_count; j++) {
            int r = check_job(asked, file, in, j, err);
            if (r < 0)
                return r;
        }
    }
    return 0;
}

/* With aware=false one type has the rates of all: v100, or the first. */
static uint32_t reference_type(const struct instance *in)
{
    for (uint32_t t = 0; t < in->type_count; t++)
        if (strcmp(in->types[t], "v100") == 0)
            return t;
    return 0;
}

/* The rates that the policy sees; a job that can run nowhere has none. */
static const double *seen_rates(const struct instance_policy *asked,
                                const struct instance *in, struct arena *arena)
{
    enum instance_blind blind = asked->policy->instance->blind;
    if (asked->aware || blind == BLIND_TRUE)
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

/* The rate that each deadline needs; infinite if it has passed. */
static const double *floors_of(const struct instance *in, struct arena *arena)
{
    double *floors = arena_array(arena, double, in->job_count);
    for (uint32_t j = 0; j < in->job_count; j++)
        if (in->slo_s[j] < INFINITY && in->steps[j] > 0)
            floors[j] = in->slo_s[j] > 0 ? in->steps[j] / in->slo_s[j] : INFINITY;
    return floors;
}

static int solve_programme(const struct instance_policy *asked,
                           const struct instance *in, enum solve_engine engine,
                           struct solver *solver, struct arena *arena,
                           struct instance_answer *answer, struct error *err)
{
    const struct instance_rule *rule = asked->policy->instance;
    const struct programme programme = {
        .goal = asked->goal,
        .job_count = in->job_count,
        .type_count = in->type_count,
        .pair_count = asked->sharing ? in->pair_count : 0,
        .group_count = in->group_count,
        .capacity = in->capacity,
        .gang = in->gang,
        .rate = seen_rates(asked, in, arena),
        .weight = in->weight,
        .steps = asked->goal == GOAL_MAKESPAN || asked->goal == GOAL_FINISH_TIME
                     ? in->steps
                     : NULL,
        .age_s = asked->goal == GOAL_FINISH_TIME ? in->age_s : NULL,
        .alone_s = in->alone_s,
        .floor = rule->floors ? floors_of(in, arena) : NULL,
        .price = needs_prices(rule) ? in->price : NULL,
        .group = in->group,
        .groups = in->groups,
        .pairs = in->pairs,
        .pair_rate = in->pair_rate,
        .tidy = asked->tidy,
    };
    answer->has_objective = answer->has_gap = true;
    return programme_solve(&programme, engine, solver, arena, &answer->shares, err);
}

static uint32_t draw_number(void *context, uint32_t count)
{
    return mt_below(context, count);
}

static void solve_fifo(const struct instance_policy *asked, const struct instance *in,
                       struct arena *arena, double *x)
{
    struct mt19937 mt;
    mt_init(&mt, asked->seed);
    const struct fifo_shares queue = {
        .job_count = in->job_count,
        .type_count = in->type_count,
        .pair_count = asked->sharing ? in->pair_count : 0,
        .capacity = in->capacity,
        .gang = in->gang,
        .rate = in->rate,
        .pairs = in->pairs,
        .pair_rate = in->pair_rate,
        .aware = asked->aware,
        .released = asked->compat == 1,
        .draw = draw_number,
        .draw_context = &mt,
    };
    shares_fifo(&queue, arena, x);
}

static void solve_directly(const struct instance_policy *asked,
                           const struct instance *in, struct arena *arena,
                           struct instance_answer *answer)
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
    switch (asked->policy->instance->method) {
    case INSTANCE_ISOLATED:
        shares_isolated(in->job_count, in->type_count, in->capacity, in->gang,
                        shares->x);
        break;
    case INSTANCE_PROPORTIONAL:
        shares_proportional(in->job_count, in->type_count, in->capacity, shares->x);
        break;
    case INSTANCE_FIFO:
        solve_fifo(asked, in, arena, shares->x);
        break;
    case INSTANCE_ALLOX:
        shares->objective = shares_allox(&allox, arena, shares->x);
        answer->has_objective = true;
        break;
    case INSTANCE_PROGRAMME:
        break;
    }
    shares->status = SHARES_EMPTY;
    for (size_t i = 0; i < (size_t)in->job_count * in->type_count; i++)
        if (shares->x[i] > 0)
            shares->status = SHARES_OPTIMAL;
}

int instance_policy_solve(const struct instance_policy *asked,
                          const struct instance *instance, enum solve_engine engine,
                          struct solver *solver, struct arena *arena,
                          struct instance_answer *ret_answer, struct error *err)
{
    struct instance_answer answer = { 0 };
    size_t lines = (size_t)instance->job_count + instance->pair_count;
    size_t cells = lines * instance->type_count;
    if (asked->policy->instance->method == INSTANCE_PROGRAMME) {
        int r = solve_programme(asked, instance, engine, solver, arena, &answer, err);
        if (r < 0)
            return r;
        /* Pairs have rows even if the programme did not consider them. */
        if (!asked->sharing && instance->pair_count > 0) {
            double *x = arena_array(arena, double, cells);
            memcpy(x, answer.shares.x,
                   (size_t)instance->job_count * instance->type_count * sizeof *x);
            answer.shares.x = x;
        }
    } else {
        answer.shares.x = arena_array(arena, double, cells);
        solve_directly(asked, instance, arena, &answer);
    }
    *ret_answer = answer;
    return 0;
}
