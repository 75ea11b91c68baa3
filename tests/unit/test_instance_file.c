/* Files of instances: what is read, and where it says that something is wrong. */
#include "support/cases.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/error.h"
#include "study/instance_file.h"

ARENA_FIXTURE(arena);
static struct error err;
static struct instance_file file;

static int parse(const char *text)
{
    return instance_file_parse(&file, &arena, "f.json", text, strlen(text), &err);
}

/* The same instance with its members replaced. */
#define INSTANCE(types, workers, jobs, more) \
    "{\"instances\":[{\"id\":\"one\",\"worker_types\":" types \
    ",\"num_workers\":" workers ",\"jobs\":" jobs more "}]}"
#define TYPES "[\"k80\",\"v100\"]"
#define WORKERS "[4,2]"
#define JOB(id, rates, more) \
    "{\"id\":" id ",\"scale_factor\":1,\"throughputs\":" rates more "}"
#define JOBS "[" JOB("0", "[1.5,4]", "") "," JOB("\"b\"", "[0,2]", "") "]"

static void everything_has_its_place(void **state)
{
    static const char text[] = INSTANCE(
        TYPES, WORKERS,
        "[" JOB("5", "[1,2]",
                ",\"priority_weight\":2,\"num_steps_remaining\":10") "," JOB("3",
                                                                             "[3,4]",
                                                                             ",\"SLO_"
                                                                             "seconds_"
                                                                             "left\":-"
                                                                             "1,\"time_"
                                                                             "since_"
                                                                             "start\":"
                                                                             "7") "]",
        ",\"pairs\":[{\"ids\":[3,5],\"throughputs\":[[0.1,0.2],[0.3,0.4]]}],"
        "\"instance_costs_per_hour\":{\"k80\":0.5,\"v100\":2},"
        "\"entities\":[{\"weight\":3,\"inside\":\"fifo\",\"jobs\":[3,5]}],\"note\":1");
    assert_int_equal(parse(text), 0);
    const struct instance *in = &file.instances[0];
    assert_string_equal(in->name, "one");
    assert_int_equal(in->type_count, 2);
    assert_string_equal(in->types[1], "v100");
    assert_near(in->capacity[0], 4, 0);
    assert_near(in->price[1], 2, 0);
    assert_string_equal(in->jobs[0], "5");
    assert_near(in->rate[3], 4, 0);
    assert_near(in->weight[0], 2, 0);
    assert_near(in->weight[1], 1, 0);
    assert_near(in->steps[0], 10, 0);
    assert_near(in->steps[1], -1, 0);
    assert_near(in->age_s[1], 7, 0);
    assert_true(isinf(in->slo_s[0]));
    assert_near(in->slo_s[1], -1, 0);
    /* Rates of a pair are by id, lower first; ours are by place. */
    assert_int_equal(in->pairs[0].first, 0);
    assert_int_equal(in->pairs[0].second, 1);
    assert_near(in->pair_rate[0], 0.2, 0);
    assert_near(in->pair_rate[1], 0.1, 0);
    assert_true(in->groups[0].fifo);
    assert_int_equal(in->group[1], 0);
}

static void errors_name_their_place(void **state)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        { "", "f.json:1: " },
        { "[]", "f.json: want an object with a list \"instances\"" },
        { "{\"instances\":7}", "f.json: want an object with a list \"instances\"" },
        { INSTANCE("7", WORKERS, JOBS, ""), "worker_types: want a list of 1 to 16" },
        { INSTANCE("[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17]", WORKERS, JOBS, ""),
          "worker_types: want a list of 1 to 16" },
        { INSTANCE("[\"a\",\"\"]", WORKERS, JOBS, ""), "worker_types[1]: want a name" },
        { INSTANCE("[\"a\",7]", WORKERS, JOBS, ""), "worker_types[1]: want a name" },
        { INSTANCE(TYPES, "7", JOBS, ""), "num_workers: want a list of 2" },
        { INSTANCE(TYPES, WORKERS, JOBS, ",\"instance_costs_per_hour\":[1,2]"),
          "instance_costs_per_hour: want an object with a price per type" },
        { INSTANCE(TYPES, WORKERS, "[" JOB("\"\"", "[1,2]", "") "]", ""),
          "jobs[0].id: want a number or a name" },
        { INSTANCE(TYPES, WORKERS,
                   "[" JOB("7", "[1,2]", ",\"SLO_seconds_left\":-1e16") "]", ""),
          "jobs[0].SLO_seconds_left: is -1e+16, want a number from -1e15 to 1e15" },
        { INSTANCE(TYPES, WORKERS,
                   "[" JOB("7", "[1,2]", ",\"time_since_start\":-1") "]", ""),
          "jobs[0].time_since_start: is -1, want a number from 0 to 1e15" },
        { INSTANCE(TYPES, WORKERS, JOBS, ",\"pairs\":{}"), "pairs: want a list" },
        { INSTANCE(TYPES, WORKERS, JOBS, ",\"pairs\":[{\"ids\":[0]}]"),
          "pairs[0].ids: want two" },
        { INSTANCE(TYPES, WORKERS, JOBS, ",\"pairs\":[{\"ids\":[0,[]]}]"),
          "pairs[0].ids[1]: want the id of a job" },
        { INSTANCE(TYPES, WORKERS, JOBS,
                   ",\"pairs\":[{\"ids\":[0,\"b\"],\"throughputs\":[[1,1],7]}]"),
          "pairs[0].throughputs[1]: want two numbers" },
        { INSTANCE(TYPES, WORKERS, JOBS,
                   ",\"pairs\":[{\"ids\":[0,\"b\"],\"throughputs\":[[-1,1],[1,1]]}]"),
          "pairs[0].throughputs[0][0]: is -1" },
        { INSTANCE(TYPES, WORKERS, JOBS, ",\"entities\":{}"), "entities: want a list" },
        { INSTANCE(TYPES, WORKERS, JOBS, ",\"entities\":[{\"weight\":-1}]"),
          "entities[0].weight: is -1" },
        { INSTANCE(TYPES, WORKERS, JOBS,
                   ",\"entities\":[{\"weight\":1,\"inside\":\"lifo\"}]"),
          "entities[0].inside: want fairness or fifo" },
        { INSTANCE(TYPES, WORKERS, JOBS,
                   ",\"entities\":[{\"weight\":1,\"inside\":\"fifo\"}]"),
          "entities[0].jobs: want a list of ids" },
        { INSTANCE(TYPES, WORKERS, JOBS,
                   ",\"entities\":[{\"weight\":1,\"inside\":\"fifo\",\"jobs\":[9]}]"),
          "entities[0].jobs[0]: there is no job '9'" },
        { "{\"instances\":[7]}", "f.json: instances[0]: want an object" },
        { "{\"instances\":[{}]}", "f.json: instances[0].worker_types: missing" },
        { INSTANCE("[]", "[]", JOBS, ""), "worker_types: want a list of 1 to 16" },
        { INSTANCE("[\"a\",\"a\"]", WORKERS, JOBS, ""),
          "worker_types[1]: 'a' is there" },
        { INSTANCE(TYPES, "[1]", JOBS, ""), "num_workers: want a list of 2" },
        { INSTANCE(TYPES, "[1,-1]", JOBS, ""), "num_workers[1]: is -1, want" },
        { INSTANCE(TYPES, "[1,\"x\"]", JOBS, ""), "num_workers[1]: want a number" },
        { INSTANCE(TYPES, "[1,NaN]", JOBS, ""), "f.json:1: " },
        { INSTANCE(TYPES, "[1,1e999]", JOBS, ""), "f.json:1: " },
        { INSTANCE(TYPES, WORKERS, "{}", ""), "jobs: want a list" },
        { INSTANCE(TYPES, WORKERS, "[3]", ""), "jobs[0]: want an object" },
        { INSTANCE(TYPES, WORKERS, "[{}]", ""), "jobs[0].scale_factor: missing" },
        { INSTANCE(TYPES, WORKERS, "[{\"scale_factor\":0}]", ""),
          "jobs[0].scale_factor: is 0, want a number greater than 0" },
        { INSTANCE(TYPES, WORKERS, "[{\"scale_factor\":1}]", ""),
          "jobs[0].throughputs: missing" },
        { INSTANCE(TYPES, WORKERS, "[" JOB("0", "[1]", "") "]", ""),
          "jobs[0].throughputs: want a list of 2" },
        { INSTANCE(TYPES, WORKERS, "[" JOB("0", "[1,-2]", "") "]", ""),
          "f.json: instances[0].jobs[0].throughputs[1]: is -2, want" },
        { INSTANCE(TYPES, WORKERS, "[" JOB("0", "[1,1e30]", "") "]", ""),
          "jobs[0].throughputs[1]: is 1e+30" },
        { INSTANCE(TYPES, WORKERS, "[" JOB("[]", "[1,2]", "") "]", ""),
          "jobs[0].id: want a number or a name" },
        { INSTANCE(TYPES, WORKERS,
                   "[" JOB("7", "[1,2]", "") "," JOB("\"7\"", "[1,2]", "") "]", ""),
          "jobs[1].id: '7' is there twice" },
        { INSTANCE(TYPES, WORKERS, "[" JOB("7", "[1,2]", ",\"priority_weight\":-1") "]",
                   ""),
          "jobs[0].priority_weight: is -1" },
        { INSTANCE(TYPES, WORKERS,
                   "[" JOB("7", "[1,2]", ",\"SLO_seconds_left\":\"soon\"") "]", ""),
          "jobs[0].SLO_seconds_left: want a number" },
        { INSTANCE(TYPES, WORKERS, JOBS, ",\"pairs\":[{}]"), "pairs[0].ids: want two" },
        { INSTANCE(TYPES, WORKERS, JOBS, ",\"pairs\":[{\"ids\":[0,9]}]"),
          "pairs[0].ids[1]: there is no job '9'" },
        { INSTANCE(TYPES, WORKERS, JOBS, ",\"pairs\":[{\"ids\":[0,0]}]"),
          "pairs[0].ids: want two different jobs" },
        { INSTANCE(TYPES, WORKERS, JOBS,
                   ",\"pairs\":[{\"ids\":[0,\"b\"],\"throughputs\":[[1,1],[1]]}]"),
          "pairs[0].throughputs[1]: want two numbers" },
        { INSTANCE(TYPES, WORKERS, JOBS,
                   ",\"pairs\":[{\"ids\":[0,\"b\"],\"throughputs\":[[1,1],[1,1]]},"
                   "{\"ids\":[\"b\",0],\"throughputs\":[[1,1],[1,1]]}]"),
          "pairs[1].ids: the same two jobs as in pairs[0]" },
        { INSTANCE(TYPES, WORKERS, JOBS, ",\"instance_costs_per_hour\":{\"k80\":1}"),
          "instance_costs_per_hour.v100: missing" },
        { INSTANCE(TYPES, WORKERS, JOBS,
                   ",\"instance_costs_per_hour\":{\"k80\":0,\"v100\":1}"),
          "instance_costs_per_hour.k80: is 0, want a number greater than 0" },
        { INSTANCE(TYPES, WORKERS, JOBS, ",\"entities\":[{\"weight\":1}]"),
          "entities[0].inside: want fairness or fifo" },
        { INSTANCE(TYPES, WORKERS, JOBS,
                   ",\"entities\":[{\"weight\":1,\"inside\":\"fifo\",\"jobs\":[0]}]"),
          "jobs[1]: job 'b' is in no entity" },
        { INSTANCE(TYPES, WORKERS, JOBS,
                   ",\"entities\":[{\"weight\":1,\"inside\":\"fifo\",\"jobs\":[0,0]}]"),
          "entities[0].jobs[1]: job '0' is in entities[0] already" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(parse(cases[i].text), -EINVAL);
        if (!strstr(err.text, cases[i].says))
            fail_msg("\"%s\" is not what case %zu is to say", err.text, i);
    }
}

static void pairs_of_unequal_gangs_are_refused(void **state)
{
    static const char text[] =
        INSTANCE(TYPES, WORKERS,
                 "[" JOB("0", "[1,2]",
                         "") ",{\"id\":1,\"scale_factor\":2,\"throughputs\":[1,2]}]",
                 ",\"pairs\":[{\"ids\":[0,1],\"throughputs\":[[1,1],[1,1]]}]");
    assert_int_equal(parse(text), -EINVAL);
    assert_non_null(strstr(err.text, "pairs[0].ids: scale factors 1 and 2"));
}

static void a_name_has_a_ceiling(void **state)
{
    char text[1000], name[202];
    memset(name, 'n', 201);
    name[201] = '\0';
    snprintf(text, sizeof text, INSTANCE("[\"%s\"]", "[1]", "[]", ""), name);
    assert_int_equal(parse(text), -EINVAL);
    assert_non_null(strstr(err.text, "worker_types[0]: want a name"));
    snprintf(text, sizeof text,
             INSTANCE("[\"a\"]", "[1]", "[" JOB("\"%s\"", "[1]", "") "]", ""), name);
    assert_int_equal(parse(text), -EINVAL);
    assert_non_null(strstr(err.text, "jobs[0].id: want a number or a name"));
    name[200] = '\0';
    snprintf(text, sizeof text,
             INSTANCE("[\"%s\"]", "[1]", "[" JOB("\"%s\"", "[1]", "") "]", ""), name,
             name);
    assert_int_equal(parse(text), 0);
    assert_string_equal(file.instances[0].jobs[0], name);
}

/* "null" is what Python writes for what is not there. */
static void null_is_as_good_as_absent(void **state)
{
    assert_int_equal(
        parse(INSTANCE(TYPES, WORKERS,
                       "[" JOB("0", "[1,2]", ",\"priority_weight\":null") "]",
                       ",\"pairs\":null,\"entities\":null,"
                       "\"instance_costs_per_hour\":null")),
        0);
    const struct instance *in = &file.instances[0];
    assert_near(in->weight[0], 1, 0);
    assert_int_equal(in->pair_count, 0);
    assert_int_equal(in->group_count, 0);
    assert_null(in->price);
}

/* Ids that are numbers put the lower one first, whatever the order of the jobs. */
static void a_pair_may_be_named_either_way(void **state)
{
#define TWO(first, second, ids) \
    INSTANCE("[\"a\"]", "[1]", \
             "[" JOB(first, "[1]", "") "," JOB(second, "[1]", "") "]", \
             ",\"pairs\":[{\"ids\":" ids ",\"throughputs\":[[0.1,0.9]]}]")
    static const struct {
        const char *text;
        double first; /* rate of the job that stands first */
    } cases[] = {
        { TWO("3", "5", "[3,5]"), 0.1 },
        { TWO("3", "5", "[5,3]"), 0.1 },
        { TWO("5", "3", "[3,5]"), 0.9 },
        { TWO("5", "3", "[5,3]"), 0.9 },
        { TWO("3", "\"b\"", "[3,\"b\"]"), 0.1 },
        { TWO("3", "\"b\"", "[\"b\",3]"), 0.9 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(parse(cases[i].text), 0);
        assert_near(file.instances[0].pair_rate[0], cases[i].first, 0);
        assert_near(file.instances[0].pair_rate[1], 1 - cases[i].first, 1e-15);
    }
}

static void no_jobs_and_no_instances_are_fine(void **state)
{
    assert_int_equal(parse("{\"instances\":[]}"), 0);
    assert_int_equal(file.count, 0);
    assert_int_equal(parse(INSTANCE(TYPES, "[0,0]", "[]", "")), 0);
    assert_int_equal(file.instances[0].job_count, 0);
}

static void a_file_is_read_as_its_text_is(void **state)
{
    char path[] = "/tmp/berth-instance-XXXXXX";
    int handle = mkstemp(path);
    assert_true(handle >= 0);
    dprintf(handle, "%s", INSTANCE(TYPES, WORKERS, JOBS, ""));
    close(handle);
    assert_int_equal(instance_file_read(&file, &arena, path, &err), 0);
    unlink(path);
    assert_string_equal(file.instances[0].jobs[1], "b");
}

static void a_missing_file_is_reported(void **state)
{
    int r = instance_file_read(&file, &arena, "/nowhere/f.json", &err);
    assert_int_equal(r, -ENOENT);
    assert_non_null(strstr(err.text, "/nowhere/f.json: No such file"));
}

RUN_CASES(CASE(everything_has_its_place), CASE(errors_name_their_place),
          CASE(pairs_of_unequal_gangs_are_refused),
          CASE(no_jobs_and_no_instances_are_fine), CASE(a_name_has_a_ceiling),
          CASE(null_is_as_good_as_absent), CASE(a_pair_may_be_named_either_way),
          CASE(a_file_is_read_as_its_text_is), CASE(a_missing_file_is_reported));
