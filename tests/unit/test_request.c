/* Requests: what is said is kept, what is wrong is named, what is written is the same. */
#include "support/cases.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "api/request.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/json.h"
#include "base/units.h"

static struct arena arena;
static struct error err;

static int setup(void **state)
{
    arena_init(&arena, 0);
    err.text[0] = '\0';
    return 0;
}

static int teardown(void **state)
{
    arena_release(&arena);
    return 0;
}

static int read_text(struct request *request, const char *text)
{
    struct json *json;
    assert_int_equal(json_parse(text, strlen(text), &json, &err), 0);
    int r = request_read(request, &arena, json, &err);
    json_free(json);
    return r;
}

static struct request must_read(const char *text)
{
    struct request request;
    if (read_text(&request, text) < 0)
        fail_msg("%s: %s", text, err.text);
    return request;
}

static char *written(const struct request *request)
{
    struct json *json = request_write(request);
    char *text = json_text_exact(json);
    json_free(json);
    return text;
}

static void assert_refused(const char *text, const char *says)
{
    struct request request;
    int r = read_text(&request, text);
    if (r != -EINVAL)
        fail_msg("accepted: %s", text);
    if (!strstr(err.text, says))
        fail_msg("%s: said \"%s\", want \"%s\"", text, err.text, says);
}

static const char everything[] =
    "{\"command\":[\"python\",\"train.py\",\"--lr\",\"\"],\"name\":\"a job\","
    "\"cwd\":\"/lab/u\",\"env\":{\"A\":\"1\",\"EMPTY\":\"\",\"B\":\"x=y\"},"
    "\"gpus\":4,\"types\":\"v100|p100\",\"min_gpus\":2,\"max_gpus\":8,\"nodes\":2,"
    "\"nodelist\":\"n2,n3\",\"exclude\":\"n1\",\"within\":\"n2,n3,n4\","
    "\"cpus\":2.5,\"mem_bytes\":1048577,\"class\":\"te\",\"grace_s\":0.25,"
    "\"pause_s\":3,\"load_s\":4,\"ckpt_s\":600,\"steps\":1000.5,"
    "\"time_limit_s\":3600,\"warn_s\":60,\"signal\":\"SIGUSR1\",\"weight\":2.5,"
    "\"entity\":\"lab\",\"deadline\":1800000000.123456,\"kind\":\"ResNet\","
    "\"output\":\"log/%j.out\",\"error\":\"/tmp/%x\",\"ckpt_dir\":\"ckpt\","
    "\"pattern\":\"step ([0-9]+)\",\"requeue\":false,\"retries\":3,\"hold\":true,"
    "\"begin\":1800000001.5,\"dependency\":[{\"kind\":\"afterok\",\"id\":7},"
    "{\"kind\":\"singleton\"}],\"array_index\":0,\"slurm_names\":true,"
    "\"tasks_per_node\":2}";

static void every_field_arrives_where_it_belongs(void **state)
{
    struct request r = must_read(everything);
    assert_string_equal(r.launch.argv[3], "");
    assert_null(r.launch.argv[4]);
    assert_string_equal(r.spec.name, "a job");
    assert_ptr_equal(r.launch.name, r.spec.name);
    assert_string_equal(r.launch.env[2], "B=x=y");
    assert_null(r.launch.env[3]);
    assert_int_equal(r.spec.gpus, 4);
    assert_int_equal(r.spec.gpus_min, 2);
    assert_int_equal(r.spec.gpus_max, 8);
    assert_int_equal(r.spec.nodes, 2);
    assert_string_equal(r.spec.nodelist, "n2,n3");
    assert_string_equal(r.spec.exclude, "n1");
    assert_string_equal(r.spec.within, "n2,n3,n4");
    assert_int_equal(r.spec.cpu_milli, 2500);
    assert_int_equal(r.spec.mem_mib, 2); /* rounded up */
    assert_int_equal(r.spec.class, CLASS_TE);
    assert_true(r.launch.te);
    assert_int_equal(r.spec.grace_ns, NS_PER_S / 4);
    assert_int_equal(r.spec.ckpt_ns, 600 * NS_PER_S);
    assert_true(r.spec.steps == 1000.5 && r.launch.has_steps);
    assert_int_equal(r.launch.limit_ns, 3600 * NS_PER_S);
    assert_true(r.launch.limit_warns);
    assert_int_equal(r.launch.signal, SIGUSR1);
    assert_int_equal(r.spec.deadline_ns, INT64_C(1800000000123456000));
    assert_string_equal(r.launch.out, "/lab/u/log/%j.out");
    assert_string_equal(r.launch.err, "/tmp/%x");
    assert_string_equal(r.launch.ckpt_dir, "/lab/u/ckpt");
    assert_false(r.requeue);
    assert_int_equal(r.retries, 3);
    assert_true(r.hold && r.in_array && r.launch.slurm_names);
    assert_int_equal(r.dependency_count, 2);
    assert_int_equal(r.dependencies[0].kind, DEPENDS_OK);
    assert_int_equal(r.dependencies[0].id, 7);
    assert_int_equal(r.dependencies[1].kind, DEPENDS_SINGLETON);
    assert_int_equal(r.launch.tasks_per_node, 2);
}

static void absent_fields_have_standard_values(void **state)
{
    struct request r = must_read("{\"command\":[\"true\"]}");
    assert_int_equal(r.spec.gpus, 0);
    assert_int_equal(r.spec.cpu_milli, 1000); /* a job without accelerators needs one */
    assert_int_equal(r.spec.class, CLASS_BE);
    assert_int_equal(r.spec.grace_ns, 60 * NS_PER_S);
    assert_int_equal(r.launch.signal, SIGTERM);
    assert_string_equal(r.launch.cwd, "/");
    assert_null(r.launch.env[0]);
    assert_null(r.launch.out);
    assert_true(r.requeue);
    assert_false(r.in_array || r.hold || r.launch.has_steps || r.launch.limit_warns);
    assert_int_equal(must_read("{\"command\":[\"x\"],\"gpus\":1}").spec.cpu_milli, 0);
}

static void what_is_written_is_read_as_the_same(void **state)
{
    const char *const texts[] = {
        everything,
        "{\"command\":[\"true\"]}",
        "{\"script\":\"#!/bin/sh\\ntrue\\n\",\"command\":[\"a\"]}",
        "{\"command\":[\"x\"],\"gpus\":2,\"cpus\":0,\"warn_s\":0,\"max_gpus\":3}",
        "{\"command\":[\"x\"],\"cwd\":\"/50%\",\"output\":\"o%j\",\"ckpt_dir\":\"c\"}",
        "{\"command\":[\"x\"],\"deadline\":1799999999.999999,\"grace_s\":0.1}",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct request once = must_read(texts[i]);
        char *first = written(&once);
        struct request twice = must_read(first);
        char *second = written(&twice);
        assert_string_equal(first, second);
        assert_int_equal(once.spec.deadline_ns, twice.spec.deadline_ns);
        assert_int_equal(once.spec.grace_ns, twice.spec.grace_ns);
        assert_int_equal(once.spec.cpu_milli, twice.spec.cpu_milli);
        assert_int_equal(once.launch.limit_warns, twice.launch.limit_warns);
        assert_int_equal(once.in_array, twice.in_array);
        free(first);
        free(second);
    }
}

static void standard_values_are_not_written(void **state)
{
    struct request r =
        must_read("{\"command\":[\"true\"],\"class\":\"be\",\"grace_s\":60,"
                  "\"signal\":\"TERM\",\"requeue\":true,\"cwd\":\"/\",\"cpus\":1}");
    char *text = written(&r);
    assert_string_equal(text, "{\"command\":[\"true\"]}");
    free(text);
}

static void a_percent_in_the_folders_name_is_no_place_holder(void **state)
{
    struct request r = must_read("{\"command\":[\"x\"],\"cwd\":\"/50%\","
                                 "\"output\":\"%j\",\"ckpt_dir\":\"c\"}");
    assert_string_equal(r.launch.out, "/50%%/%j");
    assert_string_equal(r.launch.ckpt_dir, "/50%/c");
}

static void a_wrong_type_is_named(void **state)
{
    static const char *const texts[] = { "command", "env" };
    static const char *const keys[] = {
        "script",       "name",    "cwd",        "gpus",        "types",
        "min_gpus",     "nodes",   "cpus",       "mem_bytes",   "class",
        "grace_s",      "steps",   "signal",     "weight",      "deadline",
        "time_limit_s", "kind",    "output",     "ckpt_dir",    "pattern",
        "requeue",      "retries", "dependency", "array_index", "tasks_per_node",
    };
    char text[200], says[40];
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        snprintf(text, sizeof text, "{\"command\":[\"x\"],\"%s\":{\"a\":1}}", keys[i]);
        snprintf(says, sizeof says, "%s: want ", keys[i]);
        assert_refused(text, says);
        snprintf(text, sizeof text, "{\"command\":[\"x\"],\"%s\":null}", keys[i]);
        assert_refused(text, says);
    }
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        snprintf(text, sizeof text, "{\"%s\":5}", texts[i]);
        assert_refused(text, texts[i]);
    }
    assert_refused("[]", "want an object");
    assert_refused("{\"command\":[1]}", "command: want an array of texts");
    assert_refused("{\"command\":[\"x\"],\"env\":{\"A\":1}}", "env: A: want a text");
    assert_refused("{\"command\":[\"x\"],\"gpus\":1.0}", "gpus: want a whole number");
}

static void values_out_of_bounds_are_refused(void **state)
{
    assert_refused("{\"command\":[\"x\"],\"gpus\":-1}", "gpus: is -1, want 0 to");
    assert_refused("{\"command\":[\"x\"],\"gpus\":1000001}", "gpus: is 1000001");
    assert_refused("{\"command\":[\"x\"],\"grace_s\":-0.5}", "grace_s: is -0.5");
    assert_refused("{\"command\":[\"x\"],\"grace_s\":1e300}", "grace_s: is 1e+300");
    assert_refused("{\"command\":[\"x\"],\"deadline\":1e12}", "deadline: is 1e+12");
    assert_refused("{\"command\":[\"x\"],\"retries\":101}", "retries: is 101");
    assert_refused("{\"command\":[\"x\"],\"weight\":0}", "weight: is 0");
    assert_refused("{\"command\":[\"x\"],\"mem_bytes\":9223372036854775807}",
                   "mem_bytes: is 9223372036854775807");
    assert_refused("{\"command\":[\"x\"],\"nodes\":0}", "nodes: is 0");
}

static void values_that_make_no_sense_are_refused(void **state)
{
    assert_refused("{}", "command: is missing");
    assert_refused("{\"command\":[]}", "command: is missing");
    assert_refused("{\"command\":[\"\"]}", "command: its first word is empty");
    assert_refused("{\"script\":\"echo\"}", "script: want a first line");
    assert_refused("{\"script\":\"\"}", "script: is empty");
    assert_refused("{\"command\":[\"x\"],\"cwd\":\"here\"}", "cwd: want an absolute");
    assert_refused("{\"command\":[\"x\"],\"name\":\"a\\nb\"}", "name: has a control");
    assert_refused("{\"command\":[\"x\"],\"class\":\"TE\"}",
                   "class: want one of: be, te");
    assert_refused("{\"command\":[\"x\"],\"signal\":\"KILL\"}", "signal: want");
    assert_refused("{\"command\":[\"x\"],\"signal\":\"NONE\"}", "signal: want");
    assert_refused("{\"command\":[\"x\"],\"env\":{\"A=B\":\"\"}}", "env: \"A=B\"");
    assert_refused("{\"command\":[\"x\"],\"env\":{\"\":\"\"}}", "env: \"\"");
    assert_refused("{\"command\":[\"x\"],\"cpus\":0}", "cpus: want more than 0");
    assert_refused("{\"command\":[\"x\"],\"max_gpus\":2}", "gpus: is missing");
    assert_refused("{\"command\":[\"x\"],\"gpus\":2,\"min_gpus\":3}", "min_gpus:");
    assert_refused("{\"command\":[\"x\"],\"gpus\":4,\"max_gpus\":3}", "max_gpus:");
    assert_refused("{\"command\":[\"x\"],\"dependency\":[{\"kind\":\"later\"}]}",
                   "dependency: kind");
    assert_refused("{\"command\":[\"x\"],\"dependency\":[{\"kind\":\"after\"}]}",
                   "dependency: id");
    assert_refused("{\"command\":[\"x\"],\"dependency\":[5]}", "dependency: kind");
    assert_refused("{\"command\":[\"x\"],"
                   "\"dependency\":[{\"kind\":\"after\",\"id\":1,\"x\":1}]}",
                   "dependency: no field 'x'");
}

static void an_unknown_field_suggests_the_nearest(void **state)
{
    assert_refused("{\"command\":[\"x\"],\"gpu\":1}", "gpu: there is no such field");
    assert_refused("{\"command\":[\"x\"],\"gpu\":1}", "'gpus'");
}

static void what_is_too_large_is_refused(void **state)
{
    size_t size = REQUEST_SCRIPT_MAX + 100;
    char *text = malloc(size);
    int start = snprintf(text, size, "{\"script\":\"#!");
    memset(text + start, 'x', size - (size_t)start);
    memcpy(text + size - 3, "\"}", 3);
    assert_refused(text, "script: has ");
    free(text);

    char name[300];
    start = snprintf(name, sizeof name, "{\"command\":[\"x\"],\"name\":\"");
    memset(name + start, 'n', REQUEST_NAME_MAX + 1);
    snprintf(name + start + REQUEST_NAME_MAX + 1, 5, "\"}");
    assert_refused(name, "name: has 201 bytes, 200 are the most");
}

static void too_many_of_anything_are_refused(void **state)
{
    struct json *args = json_new_array(), *env = json_new_object();
    struct json *dependencies = json_new_array();
    char name[16];
    for (uint32_t i = 0; i <= REQUEST_ARGS_MAX; i++) {
        snprintf(name, sizeof name, "N%u", i);
        json_add_text(args, "x");
        json_put_text(env, name, "");
        struct json *one = json_new_object();
        json_put_text(one, "kind", "after");
        json_put_count(one, "id", i + 1);
        json_add(dependencies, one);
    }
    struct {
        const char *key;
        struct json *value;
    } wrong[] = { { "command", args }, { "env", env }, { "dependency", dependencies } };
    for (size_t i = 0; i < 3; i++) {
        struct request request;
        struct json *json = json_new_object();
        json_put(json, wrong[i].key, wrong[i].value);
        assert_int_equal(request_read(&request, &arena, json, &err), -EINVAL);
        assert_non_null(strstr(err.text, wrong[i].key));
        assert_non_null(strstr(err.text, "are the most"));
        json_free(json);
    }
}

static void signals_have_names_and_numbers(void **state)
{
    assert_int_equal(request_signal("TERM"), SIGTERM);
    assert_int_equal(request_signal("sigusr2"), SIGUSR2);
    assert_int_equal(request_signal("10"), 10);
    assert_int_equal(request_signal("0"), 0);
    assert_int_equal(request_signal("-3"), 0);
    assert_int_equal(request_signal("1.5"), 0);
    assert_int_equal(request_signal("999"), 0);
    assert_int_equal(request_signal(""), 0);
    assert_string_equal(request_signal_name(SIGUSR1), "USR1");
    assert_int_equal(request_signal(request_signal_name(SIGRTMIN + 1)), SIGRTMIN + 1);
}

/* Both ways of splitting a request keep the same, and putting it together gives it back. */
static void assert_split(const char *text, const char *request, const char *env,
                         const char *script)
{
    struct json *json;
    struct request_texts built, cut;
    assert_int_equal(json_parse(text, strlen(text), &json, &err), 0);
    request_split(&built, &arena, json);
    request_split_text(&cut, &arena, text, json);
    json_free(json);
    assert_string_equal(built.request, request);
    assert_string_equal(built.env ? built.env : "none", env);
    assert_string_equal(built.script ? built.script : "none", script);
    const char *cuts[] = { cut.request, cut.env, cut.script };
    const char *wants[] = { request, env, script };
    for (int i = 0; i < 3;
         i++) { /* but for its spaces, and how characters are written */
        char *printed = NULL;
        if (cuts[i] && cuts[i][0] == '{') {
            assert_int_equal(json_parse(cuts[i], strlen(cuts[i]), &json, &err), 0);
            printed = json_text_exact(json);
            json_free(json);
        }
        assert_string_equal(printed ? printed : cuts[i] ? cuts[i] : "none", wants[i]);
        free(printed);
    }
}

static void a_request_is_split_into_what_schedules_and_what_starts(void **state)
{
    assert_split("{}", "{}", "none", "none");
    assert_split("{\"gpus\":1}", "{\"gpus\":1}", "none", "none");
    assert_split(" { \"env\" : {\"A\":\"}\\\"]\"} , \"gpus\" : 2 }\n", "{\"gpus\":2}",
                 "{\"A\":\"}\\\"]\"}", "none");
    assert_split(
        "{\"command\":[\"a,b\",\"\\\\\"],\"script\":\"#!x\",\"env\":{},\"cpus\":1}",
        "{\"command\":[\"a,b\",\"\\\\\"],\"cpus\":1}", "{}", "\"#!x\"");
    assert_split("{\"\\u0065nv\":{\"A\":\"b\"},\"name\":\"x\"}", "{\"name\":\"x\"}",
                 "{\"A\":\"b\"}", "none");
}

static void a_kept_request_needs_no_command(void **state)
{
    static const char text[] = "{\"gpus\":2,\"name\":\"x\"}";
    struct request request;
    struct json *json;
    assert_int_equal(read_text(&request, text), -EINVAL);
    assert_int_equal(json_parse(text, strlen(text), &json, &err), 0);
    assert_int_equal(request_read_kept(&request, &arena, json, &err), 0);
    json_free(json);
    assert_int_equal(request.spec.gpus, 2);
    assert_null(request.launch.argv[0]);
}

RUN_CASES(
    CASE(a_request_is_split_into_what_schedules_and_what_starts),
    CASE(a_kept_request_needs_no_command), CASE(every_field_arrives_where_it_belongs),
    CASE(absent_fields_have_standard_values), CASE(what_is_written_is_read_as_the_same),
    CASE(standard_values_are_not_written),
    CASE(a_percent_in_the_folders_name_is_no_place_holder), CASE(a_wrong_type_is_named),
    CASE(values_out_of_bounds_are_refused), CASE(values_that_make_no_sense_are_refused),
    CASE(an_unknown_field_suggests_the_nearest), CASE(what_is_too_large_is_refused),
    CASE(too_many_of_anything_are_refused), CASE(signals_have_names_and_numbers));
