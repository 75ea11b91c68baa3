/* Public formats: each is recognised, read by its own rules, and refused when broken. */
#include "support/cases.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/error.h"
#include "base/units.h"
#include "workload/workload.h"

#define JOBS_MAX 8

static struct error err;

/* All of a file, copied. */
struct seen {
    struct workload_facts facts;
    struct job_spec jobs[JOBS_MAX];
    char names[JOBS_MAX][64];
    char users[JOBS_MAX][64];
    char entities[JOBS_MAX][64];
};

static void copy(char *to, const char *text)
{
    snprintf(to, 64, "%s", text ? text : "");
}

static int read_all(struct workload *workload, struct seen *seen)
{
    struct job_spec job;
    int r;
    while ((r = workload_next(workload, &job, &err)) > 0) {
        uint64_t n = workload_facts(workload)->job_count - 1;
        assert_true(n < JOBS_MAX);
        seen->jobs[n] = job;
        copy(seen->names[n], job.name);
        copy(seen->users[n], job.user);
        copy(seen->entities[n], job.entity);
    }
    seen->facts = *workload_facts(workload);
    workload_close(workload);
    return r;
}

/* A file of tests/data, beside the folder of this source. */
static struct seen read_data(const char *name)
{
    struct seen seen = { 0 };
    struct workload *workload;
    char path[4096];
    snprintf(path, sizeof path, "%.*s../data/%s",
             (int)(strrchr(__FILE__, '/') + 1 - __FILE__), __FILE__, name);
    if (workload_open(&workload, path, NULL, 1, 0, &err) < 0)
        fail_msg("%s", err.text);
    if (read_all(workload, &seen) < 0)
        fail_msg("%s", err.text);
    return seen;
}

static uint64_t skipped(const struct seen *seen, const char *reason)
{
    for (uint32_t i = 0; i < seen->facts.reason_count; i++)
        if (strcmp(seen->facts.reasons[i].reason, reason) == 0)
            return seen->facts.reasons[i].count;
    return 0;
}

static void assert_job(const struct seen *seen, uint32_t n, double submit_s,
                       uint32_t gpus, double steps)
{
    assert_true((double)seen->jobs[n].submit_ns / 1e9 == submit_s);
    assert_int_equal(seen->jobs[n].gpus, gpus);
    assert_true(seen->jobs[n].steps == steps);
}

static void philly_sums_attempts_and_takes_the_last_gpus(void **state)
{
    struct seen seen = read_data("philly.json");
    assert_string_equal(seen.facts.format, "philly");
    assert_int_equal(seen.facts.job_count, 2);
    assert_int_equal(skipped(&seen, "never started"), 1);
    assert_string_equal(seen.names[0], "app_3"); /* sorted by submission */
    assert_string_equal(seen.users[0], "u\"2");
    assert_job(&seen, 0, 0, 1, 10);
    assert_job(&seen, 1, 30, 3, 100);
    assert_true(seen.facts.first_submit_ns == INT64_C(1577836830) * NS_PER_S);
}

static void philly_csv_is_sorted(void **state)
{
    struct seen seen = read_data("philly.csv");
    assert_string_equal(seen.facts.format, "philly-csv");
    assert_int_equal(seen.facts.job_count, 2);
    assert_int_equal(skipped(&seen, "no run time"), 1);
    assert_job(&seen, 0, 0, 1, 10);
    assert_job(&seen, 1, 5, 2, 30.5);
    assert_string_equal(seen.entities[1], "vcA");
}

static void helios_passes_over_what_is_no_gpu_job(void **state)
{
    struct seen seen = read_data("helios.csv");
    assert_string_equal(seen.facts.format, "helios");
    assert_int_equal(seen.facts.job_count, 2);
    assert_int_equal(seen.facts.skipped, 3);
    assert_int_equal(skipped(&seen, "no GPUs"), 1);
    assert_int_equal(skipped(&seen, "not ended"), 1);
    assert_int_equal(skipped(&seen, "never started"), 1);
    assert_job(&seen, 0, 0, 16, 10);
    assert_job(&seen, 1, 1, 4, 3600);
    assert_int_equal(seen.jobs[1].cpu_milli, 16000);
}

static void acme_honours_zones_and_recomputes_run_times(void **state)
{
    struct seen seen = read_data("acme.csv");
    assert_string_equal(seen.facts.format, "acme");
    assert_int_equal(seen.facts.job_count, 2);
    assert_job(&seen, 0, 0, 8, 100);
    assert_job(&seen, 1, 30, 16, 10);
    assert_string_equal(seen.entities[0], "Pretrain");
}

static void pai_rounds_gpus_up_but_counts_what_was_asked_for(void **state)
{
    struct seen seen = read_data("pai.csv");
    assert_string_equal(seen.facts.format, "pai");
    assert_int_equal(seen.facts.job_count, 2);
    assert_int_equal(seen.facts.skipped, 3);
    assert_job(&seen, 0, 0, 4, 50);
    assert_job(&seen, 1, 100, 3, 100); /* three instances of half a GPU */
    assert_string_equal(seen.names[1], "j1-worker");
    assert_int_equal(seen.jobs[1].mem_mib, 90000);
    assert_true(workload_gpu_hours(&seen.facts) == (4 * 50 + 1.5 * 100) / 3600);
}

static void gavel_has_three_dialects(void **state)
{
    struct seen seen = read_data("gavel.trace");
    assert_string_equal(seen.facts.format, "gavel");
    assert_int_equal(seen.facts.job_count, 2);
    assert_job(&seen, 0, 0, 2, 5000);
    assert_job(&seen, 1, 12.5, 1, 250);
    assert_true(seen.jobs[1].weight == 2.5);
    assert_int_equal(seen.jobs[0].deadline_ns, 0);
    assert_true((double)seen.jobs[1].deadline_ns / 1e9 == 612.5);
    assert_false(seen.facts.gpu_time_known);

    seen = read_data("shockwave.trace");
    assert_string_equal(seen.facts.format, "gavel");
    assert_true(workload_gpu_hours(&seen.facts) == 0.2);

    seen = read_data("gavel7.trace");
    assert_string_equal(seen.facts.format, "gavel");
    assert_job(&seen, 0, 0, 4, 5000);
    assert_true(seen.facts.first_submit_ns == 3 * NS_PER_S);
}

static void swf_falls_back_on_what_was_asked_for(void **state)
{
    struct seen seen = read_data("nasa.swf");
    assert_string_equal(seen.facts.format, "swf");
    assert_int_equal(seen.facts.job_count, 2);
    assert_int_equal(skipped(&seen, "no run time"), 1);
    assert_int_equal(skipped(&seen, "never started"), 1);
    assert_job(&seen, 0, 0, 4, 100);
    assert_job(&seen, 1, 50, 8, 20);
    assert_string_equal(seen.users[1], "u4");
}

static void sacct_reads_jobs_and_not_their_steps(void **state)
{
    struct seen seen = read_data("sacct.txt");
    assert_string_equal(seen.facts.format, "sacct");
    assert_int_equal(seen.facts.job_count, 2);
    assert_int_equal(seen.facts.skipped, 3);
    assert_string_equal(seen.names[0], "101_3");
    assert_job(&seen, 0, 0, 2, 30);
    assert_job(&seen, 1, 3600, 4, 3600);
    assert_string_equal(seen.users[1], "ann");
    assert_string_equal(seen.entities[1], "lab");
}

static void any_table_with_the_three_columns_is_read(void **state)
{
    struct seen seen = read_data("generic.csv");
    assert_string_equal(seen.facts.format, "generic");
    assert_int_equal(seen.facts.job_count, 2);
    assert_job(&seen, 0, 0, 1, 3600);
    assert_job(&seen, 1, 300, 4, 1800);
    assert_string_equal(seen.names[1], "x1");
    assert_string_equal(seen.users[1], "zoe");
}

static void muri_is_in_milliseconds_and_chronus_in_minutes(void **state)
{
    struct seen seen = read_data("muri.csv");
    assert_true(seen.facts.first_submit_ns == NS_PER_S);
    assert_job(&seen, 0, 0, 2, 5);
    seen = read_data("chronus.csv");
    assert_true(seen.facts.first_submit_ns == 180 * NS_PER_S);
    assert_job(&seen, 0, 0, 1, 120);
}

/* Read text to its end; the sentence must contain this. */
static void assert_wrong(const char *format, const char *text, const char *sentence)
{
    struct workload *workload;
    struct seen seen;
    err.text[0] = '\0';
    int r = workload_open_memory(&workload, "t", text, strlen(text), format, &err);
    if (r >= 0)
        r = read_all(workload, &seen);
    if (r != -EINVAL)
        fail_msg("accepted (%d): %s", r, text);
    if (!strstr(err.text, sentence))
        fail_msg("\"%s\", want \"%s\"", err.text, sentence);
}

#define HELIOS "job_id,user,vc,gpu_num,cpu_num,state,submit_time,start_time,end_time\n"

static void broken_rows_are_named(void **state)
{
    assert_wrong("auto", HELIOS "1,u,v,x,1,COMPLETED,2020-01-01 00:00:00,,\n",
                 "t:2: gpu_num is \"x\", want a whole number");
    assert_wrong("auto", HELIOS "1,u,v,1,1,COMPLETED,yesterday,,\n",
                 "t:2: submit_time is \"yesterday\", want a time such as");
    assert_wrong(
        "auto",
        HELIOS "1,u,v,1,1,COMPLETED,2020-01-01 00:00:00,2020-01-01 00:00:05,"
               "2020-01-01 00:00:04\n",
        "t:2: end_time is \"2020-01-01 00:00:04\", want no earlier than the start");
    assert_wrong("auto", HELIOS "1,u,v\n", "t:2: 3 fields, want 9");
    assert_wrong(
        "auto",
        "timestamp,duration,num_gpus,gpu_time,cluster\n2020-01-01 00:00:00,5,2,9,c\n",
        "t:2: gpu_time is \"9\", want duration times num_gpus");
    assert_wrong("pai", "j,t,1.0,Terminated,5.0,4.0,1,1,50.0,T4\n",
                 "t:1: end_time is \"4.0\", want no earlier than start_time");
    assert_wrong("auto", "j,i,u,Terminated,5.0,9.0\n", "t:1: this is pai_job_table");
    assert_wrong("swf", "; c\n1 0 -1 5 1 -1 -1 -1 -1 -1 1 1 1 -1 -1 -1 -1\n",
                 "t:2: 17 fields, want the 18 of SWF");
    assert_wrong("generic", "submit_s,duration_s,gpus\n0,-5,1\n",
                 "t:2: duration_s is \"-5\", want a time that is not negative");
    assert_wrong("generic", "submit_s,duration_s,gpus\n0,nan,1\n",
                 "t:2: duration_s is \"nan\", want a number of seconds");
    assert_wrong("generic", "submit_s,duration_s,gpus\n0,5m,1\n",
                 "t:2: duration_s is \"5m\", want a number of seconds");
    assert_wrong("generic", "id,submit_s,duration_s,gpus\nx,0,5,1\nx,1,5,1\n",
                 "t:3: job id is \"x\", want one that no job before has");
    assert_wrong("auto", "submit_s,duration_s\n0,5\n",
                 "t:1: no column names a GPU count");
}

static void json_cut_short_or_damaged_is_refused(void **state)
{
    assert_wrong("auto", "[ { \"jobid\": \"a\",\n \"attempts\": [",
                 "t:1: the file ends within");
    assert_wrong("auto", "[\n{ \"jobid\": \"a\", \"attempts\": [] }",
                 "t:2: the file ends within");
    assert_wrong("auto", "[ {} {} ]", "has no attempts");
    assert_wrong("auto", "[ { \"attempts\": [] } { \"attempts\": [] } ]", "no comma");
    assert_wrong("auto", "[ { \"attempts\": [] } ] x", "more after the end");
    assert_wrong("auto", "[\n{ \"a\":\n tru }\n]", "t:3: ");
    assert_wrong("auto",
                 "[{\"jobid\":\"a\",\"submitted_time\":\"soon\",\"attempts\":[]}]",
                 "t:1: submitted_time is \"soon\", want a time");
}

static void out_of_order_matters_where_a_file_streams(void **state)
{
    assert_wrong("swf",
                 "1 9 -1 5 1 -1 -1 -1 -1 -1 1 1 1 -1 -1 -1 -1 -1\n"
                 "2 8 -1 5 1 -1 -1 -1 -1 -1 1 1 1 -1 -1 -1 -1 -1\n",
                 "t:2: submitted 1 s before the line above it");
}

static void what_is_unknown_says_so(void **state)
{
    assert_wrong("auto", "hello\nworld\n", "t:1: not a format that is known");
    assert_wrong("helyos", "x\n", "no format 'helyos' (did you mean 'helios'?)");
    struct workload *workload;
    assert_int_equal(workload_open_memory(&workload, "t",
                                          "\x7f"
                                          "ELF\0\0\0\1",
                                          8, NULL, &err),
                     -EINVAL);
    assert_non_null(strstr(err.text, "binary"));
    assert_int_equal(workload_open(&workload, "no/such", NULL, 1, 0, &err), -ENOENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(philly_sums_attempts_and_takes_the_last_gpus),
        cmocka_unit_test(philly_csv_is_sorted),
        cmocka_unit_test(helios_passes_over_what_is_no_gpu_job),
        cmocka_unit_test(acme_honours_zones_and_recomputes_run_times),
        cmocka_unit_test(pai_rounds_gpus_up_but_counts_what_was_asked_for),
        cmocka_unit_test(gavel_has_three_dialects),
        cmocka_unit_test(swf_falls_back_on_what_was_asked_for),
        cmocka_unit_test(sacct_reads_jobs_and_not_their_steps),
        cmocka_unit_test(any_table_with_the_three_columns_is_read),
        cmocka_unit_test(muri_is_in_milliseconds_and_chronus_in_minutes),
        cmocka_unit_test(broken_rows_are_named),
        cmocka_unit_test(json_cut_short_or_damaged_is_refused),
        cmocka_unit_test(out_of_order_matters_where_a_file_streams),
        cmocka_unit_test(what_is_unknown_says_so),
    };
    return cmocka_run_group_tests_name("formats", tests, NULL, NULL);
}
