/* A policy by its name: both vocabularies, settings, and what an instance must have. */
#include "support/cases.h"

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "policy/policy.h"
#include "policy/shared/instance_rule.h"
#include "study/instance_file.h"
#include "study/instance_shares.h"

ARENA_FIXTURE(arena);
static struct error err;

static struct instance_policy parsed(const char *text)
{
    struct instance_policy asked;
    assert_int_equal(instance_policy_parse(&asked, text, &err), 0);
    return asked;
}

static void refused(const char *text, const char *says)
{
    struct instance_policy asked;
    assert_int_equal(instance_policy_parse(&asked, text, &err), -EINVAL);
    assert_non_null(strstr(err.text, says));
}

static void names_of_ours_and_of_the_published_system_mean_the_same(void **state)
{
    struct instance_policy asked = parsed("max_min_fairness");
    assert_string_equal(asked.policy->name, "gavel-las");
    assert_int_equal(asked.goal, GOAL_MAX_MIN);
    assert_false(asked.aware);
    asked = parsed("gavel-las,water_filling=true");
    assert_int_equal(asked.goal, GOAL_WATER_FILLING);
    assert_true(asked.aware);
    asked = parsed("finish_time_fairness_packed");
    assert_int_equal(asked.goal, GOAL_FINISH_TIME);
    assert_true(asked.sharing);
    asked = parsed("max_sum_throughput_normalized_by_cost_perf_SLOs");
    assert_int_equal(asked.goal, GOAL_SUM);
    assert_true(asked.policy->instance->floors);
    assert_int_equal(parsed("gavel-cost-slo").goal, GOAL_COST_RATIO);
    assert_int_equal(parsed("gavel-cost,form=released").goal, GOAL_SUM);
    assert_int_equal(parsed("fifo,compat=released").compat, 1);
}

static void what_makes_no_sense_is_refused(void **state)
{
    refused("", "no policy ''");
    refused("gavel-lass", "did you mean 'gavel-las'");
    refused("gandiva", "berth sim");
    refused("gavel-las,colour=red", "colour");
    refused("gavel-las,form=released", "no setting 'form'");
    refused("isolated,aware=false", "no setting 'aware'");
    refused("gavel-las,aware=false,sharing=true", "needs aware=true");
    refused("allox,tidy=false", "no setting 'tidy'");
}

static const char small[] =
    "{\"instances\":[{\"id\":\"a\",\"worker_types\":[\"k80\",\"v100\"],"
    "\"num_workers\":[1,1],\"jobs\":["
    "{\"id\":0,\"scale_factor\":1,\"throughputs\":[1,4]},"
    "{\"id\":1,\"scale_factor\":1,\"throughputs\":[2,0]}]}]}";

static struct instance_file read_text(const char *text)
{
    struct instance_file file;
    int r = instance_file_parse(&file, &arena, "f", text, strlen(text), &err);
    assert_int_equal(r, 0);
    return file;
}

static void what_is_missing_is_named(void **state)
{
    struct instance_file file = read_text(small);
    const struct {
        const char *policy, *says;
    } cases[] = {
        { "gavel-makespan", "f: instances[0].jobs[0].num_steps_remaining: missing" },
        { "gavel-cost", "f: instances[0].instance_costs_per_hour: missing" },
        { "gavel-hierarchical", "f: instances[0].entities: missing" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct instance_policy asked = parsed(cases[i].policy);
        assert_int_equal(instance_policy_check(&asked, &file, &err), -EINVAL);
        assert_string_equal(err.text, cases[i].says);
    }
}

static struct shares solved(const char *policy, const struct instance_file *file)
{
    struct instance_policy asked = parsed(policy);
    struct instance_answer answer;
    assert_int_equal(instance_policy_check(&asked, file, &err), 0);
    assert_int_equal(instance_policy_solve(&asked, &file->instances[0], SOLVE_CLP, NULL,
                                           &arena, &answer, &err),
                     0);
    return answer.shares;
}

static void ignoring_rates_changes_the_answer(void **state)
{
    struct instance_file file = read_text(small);
    assert_near(solved("gavel-las", &file).objective, 1.6, 1e-7);
    assert_near(solved("gavel-las,aware=false", &file).objective, 1, 1e-7);
    assert_near(solved("gavel-throughput", &file).objective, 6, 1e-7);
    /* A job without a rate on a v100 counts with what it has. */
    assert_near(solved("gavel-throughput,aware=false", &file).objective, 6, 1e-7);
}

static void pairs_that_are_not_considered_have_rows(void **state)
{
    static const char text[] =
        "{\"instances\":[{\"worker_types\":[\"v100\"],\"num_workers\":[1],"
        "\"jobs\":[{\"scale_factor\":1,\"throughputs\":[1]},"
        "{\"scale_factor\":1,\"throughputs\":[1]}],"
        "\"pairs\":[{\"ids\":[0,1],\"throughputs\":[[0.9,0.9]]}]}]}";
    struct instance_file file = read_text(text);
    struct shares shares = solved("gavel-las", &file);
    assert_near(shares.objective, 0.5, 1e-7);
    assert_near(shares.x[2], 0, 0);
    shares = solved("gavel-las,sharing=true", &file);
    assert_near(shares.objective, 0.9, 1e-7);
    assert_near(shares.x[2], 1, 1e-7);
    assert_near(solved("isolated", &file).x[2], 0, 0);
}

RUN_CASES(CASE(names_of_ours_and_of_the_published_system_mean_the_same),
          CASE(what_makes_no_sense_is_refused), CASE(what_is_missing_is_named),
          CASE(ignoring_rates_changes_the_answer),
          CASE(pairs_that_are_not_considered_have_rows));
