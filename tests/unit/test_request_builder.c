/* From flags, scripts and job files to requests: precedence, arrays and grids, errors. */
#include "support/cases.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/json.h"
#include "cmd/berth/command.h"
#include "cmd/berth/request_builder.h"
#include "cmd/berth/request_source.h"

static const struct flag flags_table[] = { REQUEST_BUILDER_FLAGS, { 0 } };
static const struct command command = { .name = "submit",
                                        .flags = flags_table,
                                        .flags_first = true };

static struct arena arena;
static struct error err;
static struct request_builder builder;
static struct json *body;
static char folder[] = "/tmp/berth-builder-XXXXXX";

static int setup(void **state)
{
    arena_init(&arena, 0);
    request_builder_init(&builder, &arena);
    body = NULL;
    err.text[0] = '\0';
    return 0;
}

static int teardown(void **state)
{
    json_free(body);
    request_builder_release(&builder);
    arena_release(&arena);
    return 0;
}

/* Arguments as the shell would pass them, ended by NULL. */
static int read_words(char **words)
{
    struct flags flags = { .command = &command };
    int count = 0;
    while (words[count])
        count++;
    request_builder_release(&builder);
    request_builder_init(&builder, &arena);
    assert_int_equal(flags_read(&flags, count, words), 0);
    int r = request_source_read(&builder, &flags, NULL, &err);
    return r < 0 ? r : request_builder_body(&builder, &body, &err);
}

#define READ(...) read_words((char *[]){ "submit", __VA_ARGS__, NULL })
#define MUST_READ(...) \
    do { \
        if (READ(__VA_ARGS__) < 0) \
            fail_msg("%s", err.text); \
    } while (0)

static void assert_wrong(int r, const char *says)
{
    assert_int_equal(r, -EINVAL);
    if (!strstr(err.text, says))
        fail_msg("said \"%s\", want \"%s\"", err.text, says);
}

static void assert_text(const struct json *object, const char *key, const char *want)
{
    const char *text = json_as_text(json_get(object, key));
    if (!text || strcmp(text, want) != 0)
        fail_msg("%s is \"%s\", want \"%s\"", key, text ? text : "(absent)", want);
}

static void assert_number(const struct json *object, const char *key, double want)
{
    double number = -1;
    if (!json_as_number(json_get(object, key), &number) || number != want)
        fail_msg("%s is %g, want %g", key, number, want);
}

static const char *word(const struct json *job, size_t index)
{
    return json_as_text(json_item(json_get(job, "command"), index));
}

static const char *write_file(const char *name, const char *text)
{
    static char path[200];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    return path;
}

static void the_commands_own_flags_are_left_alone(void **state)
{
    MUST_READ("-G1", "python", "train.py", "--lr", "3", "-G7");
    assert_number(body, "gpus", 1);
    assert_string_equal(word(body, 2), "--lr");
    assert_string_equal(word(body, 4), "-G7");
    assert_text(body, "name", "train.py");
}

static void every_flag_sets_a_field(void **state)
{
    for (const struct flag *flag = flags_table; flag->name; flag++) {
        struct request_builder blank;
        request_builder_init(&blank, &arena);
        int r = request_builder_set(&blank, flag->name, "\x01", &err);
        bool noted = flag->value == NULL || r < 0 || blank.exports || blank.wrap ||
                     json_member(blank.fields, NULL, &(const char *){ NULL },
                                 &(const struct json *){ NULL });
        if (!noted)
            fail_msg("--%s is read by nobody", flag->name);
        request_builder_release(&blank);
    }
}

static void sbatch_spellings_are_understood(void **state)
{
    MUST_READ("-J", "a job", "--gpus=v100:2", "-t", "1:30:00", "-N2", "-c", "4", "-n",
              "2", "--mem=2G", "-o", "%j.out", "-e", "e.txt", "-H",
              "--signal=B:USR1@60", "-d", "afterok:1:2,afterany:3", "--no-requeue",
              "true");
    assert_text(body, "name", "a job");
    assert_number(body, "gpus", 2);
    assert_text(body, "types", "v100");
    assert_number(body, "time_limit_s", 5400);
    assert_number(body, "nodes", 2);
    assert_number(body, "cpus", 8);
    assert_number(body, "mem_bytes", 4.0 * (1 << 30)); /* on each of two nodes */
    assert_text(body, "signal", "USR1");
    assert_number(body, "warn_s", 60);
    assert_int_equal(json_count(json_get(body, "dependency")), 3);
    assert_text(json_item(json_get(body, "dependency"), 2), "kind", "afterany");
    bool flag = true;
    assert_true(json_as_flag(json_get(body, "requeue"), &flag));
    assert_false(flag);
}

static void gpus_per_node_are_times_the_nodes(void **state)
{
    MUST_READ("-N", "3", "--gres=gpu:a100:4", "--mem-per-gpu=1G", "true");
    assert_number(body, "gpus", 12);
    assert_text(body, "types", "a100");
    assert_number(body, "mem_bytes", 12.0 * (1 << 30));
}

static void wrong_values_name_their_flag(void **state)
{
    assert_wrong(READ("-G", "many", "true"), "--gpus: ");
    assert_wrong(READ("-t", "soon", "true"), "--time: ");
    assert_wrong(READ("--class", "gold", "true"), "class: want one of: be, te");
    assert_wrong(READ("--grace", "-1", "true"), "--grace: ");
    assert_wrong(READ("--pattern", "(", "true"), "--pattern: ");
    assert_wrong(READ("-d", "sometime:4", "true"), "dependency: kind");
    assert_wrong(READ("-d", "afterok:x", "true"), "--dependency: ");
    assert_wrong(READ("-d", "", "true"), "--dependency: ");
    assert_wrong(READ("-N", "1-2", "true"), "--nodes: ");
    assert_wrong(READ("-D", "/no/such/folder", "true"), "--chdir: ");
    assert_wrong(READ("--max-gpus", "4", "true"), "gpus: is missing");
    assert_wrong(READ("-G1"), "command: is missing");
    assert_wrong(READ("--wrap", "x", "true"), "--wrap: ");
}

static void flags_take_precedence_over_a_script(void **state)
{
    char *path =
        (char *)write_file("job.sh", "#!/bin/bash\n"
                                     "# a remark\n"
                                     "#SBATCH --job-name=inside -t 10\n"
                                     "#SBATCH --partition=gpu --mail-type ALL\n"
                                     "#SBATCH -pdebug\n"
                                     "#BERTH --gpus 2  # two of them\n"
                                     "\n"
                                     "echo\n"
                                     "#SBATCH --gpus=9\n");
    MUST_READ("-J", "outside", path, "--lr", "3");
    assert_text(body, "name", "outside");
    assert_number(body, "time_limit_s", 600);
    assert_number(body, "gpus", 2); /* lines after the first command are ignored */
    assert_string_equal(word(body, 0), "--lr");
    assert_int_equal(strncmp(json_as_text(json_get(body, "script")), "#!/bin/bash", 11),
                     0);
    bool slurm = false;
    assert_true(json_as_flag(json_get(body, "slurm_names"), &slurm) && slurm);
    assert_null(json_get(body, "dependency")); /* "-pdebug" is not "-d ebug" */
}

static void errors_in_a_script_name_the_line(void **state)
{
    assert_wrong(READ((char *)write_file("a.sh", "#!/bin/sh\n\n#BERTH --gpu-s 2\n")),
                 "a.sh:3: no flag '--gpu-s'");
    assert_wrong(READ((char *)write_file("b.sh", "#!/bin/sh\n#SBATCH -t never\n")),
                 "b.sh:2: --time: ");
    assert_wrong(READ((char *)write_file("c.sh", "#!/bin/sh\n#BERTH -J 'x\n")),
                 "c.sh:2: a quote");
    assert_wrong(READ((char *)write_file("d.sh", "#!/bin/sh\n#BERTH word\n")),
                 "d.sh:2: \"word\"");
}

static void programs_are_run_as_commands(void **state)
{
    char *path = (char *)write_file("train.py", "#!/usr/bin/env python3\nprint()\n");
    assert_wrong(READ(path), "train.py: is not executable");
    chmod(path, 0755);
    MUST_READ(path);
    assert_null(json_get(body, "script"));
    assert_string_equal(word(body, 0), path);
    assert_true(request_source_is_script("#!/usr/bin/env bash\n"));
    assert_true(request_source_is_script("#!/usr/bin/env python3\n#SBATCH -G1\n"));
    assert_false(request_source_is_script("#!/usr/bin/env python3\n"));
    assert_false(request_source_is_script("echo\n#SBATCH -G1\n"));
}

static void after_dashes_nothing_is_a_script(void **state)
{
    char *path = (char *)write_file("job.sh", "#!/bin/sh\n#BERTH -G5\n");
    MUST_READ("--", path);
    assert_null(json_get(body, "script"));
    assert_null(json_get(body, "gpus"));
}

static void a_job_file_has_the_keys_of_a_request(void **state)
{
    char *path = (char *)write_file("job.yaml", "name: from a file\n"
                                                "command: [python, train.py, '5']\n"
                                                "gpus: 2\n"
                                                "grace_s: 2.5\n"
                                                "env: {A: 'b'}\n"
                                                "param: {lr: [0.1, 0.01]}\n"
                                                "array: 0-1\n");
    MUST_READ("-G", "3", path);
    const struct json *jobs = json_get(body, "jobs");
    assert_int_equal(json_count(jobs), 4);
    assert_number(json_item(jobs, 0), "gpus", 3); /* the flag takes precedence */
    assert_number(json_item(jobs, 0), "grace_s", 2.5);
    assert_text(json_get(json_item(jobs, 1), "env"), "BERTH_PARAM_LR", "0.01");
    assert_text(json_get(json_item(jobs, 1), "env"), "A", "b");
    assert_text(json_item(jobs, 3), "name", "from a file lr=0.01");
}

static void errors_in_a_job_file_name_the_line(void **state)
{
    char *path = (char *)write_file("job.yaml", "command: [x]\ngpus: -1\n");
    assert_wrong(READ(path), "job.yaml:2: gpus: is -1");
    path = (char *)write_file("job.yaml", "command: [x]\n\ngpu: 1\n");
    assert_wrong(READ(path), "job.yaml:3: gpu: there is no such field");
    path = (char *)write_file("job.yaml", "command: [x\n");
    assert_wrong(READ(path), "job.yaml:");
    path = (char *)write_file("job.yaml", "command: [x]\nenv: 5\n");
    assert_wrong(READ(path), "job.yaml:2: env: want an object");
}

static void a_grid_has_every_combination(void **state)
{
    MUST_READ("--param", "lr=1e-3,1e-4", "--param", "bs=32,64", "-o",
              "run-{lr}-{bs}.out", "python", "t.py", "--lr={lr}", "{other}");
    const struct json *jobs = json_get(body, "jobs");
    assert_int_equal(json_count(jobs), 4);
    const struct json *second = json_item(jobs, 1);
    assert_string_equal(word(second, 2), "--lr=1e-3");
    assert_string_equal(word(second, 3), "{other}"); /* no parameter of that name */
    assert_text(second, "output", "run-1e-3-64.out");
    assert_text(second, "name", "t.py lr=1e-3 bs=64");
    assert_text(json_get(second, "env"), "BERTH_PARAM_BS", "64");
    assert_null(json_get(second, "array_index"));
}

static void an_array_has_a_job_per_index(void **state)
{
    MUST_READ("-a", "3,5%1", "echo", "{index}", "");
    const struct json *jobs = json_get(body, "jobs");
    assert_int_equal(json_count(jobs), 2);
    assert_number(json_item(jobs, 1), "array_index", 5);
    assert_string_equal(word(json_item(jobs, 1), 1), "5");
    assert_string_equal(word(json_item(jobs, 1), 2), "");
    assert_number(json_item(jobs, 0), "array_limit", 1);
}

static void too_many_jobs_are_refused(void **state)
{
    assert_wrong(READ("-a", "0-9999", "--param", "x=1,2", "true"), "more than 10000");
}

static void export_chooses_the_environment(void **state)
{
    setenv("BERTH_TEST_A", "a", 1);
    setenv("BERTH_TEST_B", "b", 1);
    setenv("BERTH_TEST_C", "\xff", 1);
    MUST_READ("true");
    assert_text(json_get(body, "env"), "BERTH_TEST_A", "a");
    assert_null(json_get(json_get(body, "env"), "BERTH_TEST_C")); /* not UTF-8 */
    json_free(body);
    MUST_READ("--export=BERTH_TEST_B,NEW=c", "true");
    assert_null(json_get(json_get(body, "env"), "BERTH_TEST_A"));
    assert_text(json_get(body, "env"), "BERTH_TEST_B", "b");
    assert_text(json_get(body, "env"), "NEW", "c");
    assert_non_null(json_get(json_get(body, "env"), "PATH"));
    json_free(body);
    MUST_READ("--export=NONE", "true");
    assert_null(json_get(json_get(body, "env"), "BERTH_TEST_A"));
    json_free(body);
    MUST_READ("--export=ALL,NEW=d", "true");
    assert_text(json_get(body, "env"), "BERTH_TEST_A", "a");
    assert_text(json_get(body, "env"), "NEW", "d");
}

static void a_line_is_wrapped_in_a_script(void **state)
{
    MUST_READ("--wrap", "echo $HOME | cat");
    assert_text(body, "script", "#!/bin/sh\necho $HOME | cat\n");
    assert_text(body, "name", "wrap");
}

static int make_folder(void **state)
{
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    static const char *const names[] = { "job.sh", "a.sh",     "b.sh",    "c.sh",
                                         "d.sh",   "train.py", "job.yaml" };
    char path[200];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    return rmdir(folder);
}

RUN_GROUP(make_folder, remove_folder, CASE(the_commands_own_flags_are_left_alone),
          CASE(every_flag_sets_a_field), CASE(sbatch_spellings_are_understood),
          CASE(gpus_per_node_are_times_the_nodes), CASE(wrong_values_name_their_flag),
          CASE(flags_take_precedence_over_a_script),
          CASE(errors_in_a_script_name_the_line), CASE(programs_are_run_as_commands),
          CASE(after_dashes_nothing_is_a_script),
          CASE(a_job_file_has_the_keys_of_a_request),
          CASE(errors_in_a_job_file_name_the_line), CASE(a_grid_has_every_combination),
          CASE(an_array_has_a_job_per_index), CASE(too_many_jobs_are_refused),
          CASE(export_chooses_the_environment), CASE(a_line_is_wrapped_in_a_script));
