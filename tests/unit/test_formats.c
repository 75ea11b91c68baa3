/* Public formats: each is recognised, read by its own rules, and refused when broken. */
#include "support/cases.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/error.h"
#include "base/units.h"
#include "workload/format.h"
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
    assert_int_equal(skipped(&seen, "no GPUs"), 1);
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

static struct seen read_text(const char *format, const char *text)
{
    struct seen seen = { 0 };
    struct workload *workload;
    if (workload_open_memory(&workload, "t", text, strlen(text), format, &err) < 0 ||
        read_all(workload, &seen) < 0)
        fail_msg("%s", err.text);
    return seen;
}

#define SACCT "JobIDRaw|Submit|Start|End|State|AllocCPUS|ReqTRES\n"
#define SACCT_ROW(start, end, tres) \
    "1|2024-01-01T00:00:00|" start "|" end "|COMPLETED|8|" tres "\n"
#define SACCT_RAN(tres) SACCT_ROW("2024-01-01T00:00:10", "2024-01-01T00:01:10", tres)

/* The plain entry is the sum of the typed ones; without it they are added up. */
static void sacct_counts_gpus_however_they_are_written(void **state)
{
    static const struct {
        const char *text;
        uint32_t gpus;
    } cases[] = {
        { SACCT SACCT_RAN("billing=8,cpu=8,gres/gpu=4"), 4 },
        { SACCT SACCT_RAN("cpu=8,gres/gpu:a100=2,gres/gpu:v100=1"), 3 },
        { SACCT SACCT_RAN("gres/gpu=2,gres/gpu:a100=2"), 2 },
        { SACCT SACCT_RAN("gpu"), 1 },
        { SACCT SACCT_RAN("gpu(IDX:0)"), 1 },
        { SACCT SACCT_RAN("gpu:v100"), 1 },
        { SACCT SACCT_RAN("gpu:8"), 8 },
        { SACCT SACCT_RAN("gpu:v100:4(IDX:0-3)"), 4 },
        { SACCT SACCT_RAN("gres/gpumem=5,gres/gpu=1"), 1 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct seen seen = read_text("auto", cases[i].text);
        assert_int_equal(seen.facts.job_count, 1);
        assert_job(&seen, 0, 0, cases[i].gpus, 60);
        assert_int_equal(seen.jobs[0].cpu_milli, 8000);
    }
    assert_wrong("auto", SACCT SACCT_RAN("gres/gpu=x"),
                 "t:2: ReqTRES is \"gres/gpu=x\", want resources such as gres/gpu=4");
    assert_wrong("auto", SACCT SACCT_RAN("gres/gpu=1000001"), "want resources");
    assert_wrong("auto", SACCT SACCT_RAN("gres/gpu=99999999999999999999"),
                 "want resources");
    assert_wrong("auto", SACCT SACCT_RAN("gres/gpu:a=1000000,gres/gpu:b=1"),
                 "want resources");
}

static void sacct_knows_how_long_a_job_ran_in_three_ways(void **state)
{
#define ELAPSED "JobID|Submit|Elapsed|ReqGRES\n1|2024-01-01T00:00:00|"
    static const struct {
        const char *text;
        double run_s;
    } cases[] = {
        { ELAPSED "1-02:03:04|gpu:1\n", 93784 },
        { ELAPSED "02:03:04|gpu:1\n", 7384 },
        { ELAPSED "03:04.500|gpu:1\n", 184.5 },
        { "JobID|Submit|Elapsed|ElapsedRaw|ReqGRES\n"
          "1|2024-01-01T00:00:00|00:09|7|gpu:1\n",
          7 },
        { "JobID|Submit|Elapsed|ElapsedRaw|ReqGRES\n"
          "1|2024-01-01T00:00:00|00:09||gpu:1\n",
          9 },
        { "JobID|Submit|Start|End|Elapsed|ReqGRES\n"
          "1|2024-01-01T00:00:00|2024-01-01T00:00:00|2024-01-01T00:00:05||gpu:1\n",
          5 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct seen seen = read_text("auto", cases[i].text);
        assert_job(&seen, 0, 0, 1, cases[i].run_s);
    }
    static const char *const wrong[] = { "x-00:00:01", "36526-00:00:01",
                                         "5",          "::1",
                                         "-1:00",      "1:-1",
                                         "1:2:3:4",    "9999999:00:00",
                                         "1:x",        "36525-1000000:00:00" };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char text[200];
        snprintf(text, sizeof text, ELAPSED "%s|gpu:1\n", wrong[i]);
        assert_wrong("auto", text, "want a time such as 1-02:03:04");
    }
    assert_wrong("auto", SACCT SACCT_ROW("2024-01-01T00:00:10", "2024-01-01", "gpu:1"),
                 "t:2: End is");
    assert_wrong("auto", SACCT SACCT_ROW("noon", "2024-01-01T00:00:10", "gpu:1"),
                 "t:2: Start is \"noon\", want a time");
    assert_wrong("auto",
                 SACCT SACCT_ROW("2024-01-01T00:00:10", "2024-01-01T00:00:09", "gpu:1"),
                 "want no earlier than Start");
}

static void sacct_passes_over_what_did_not_run(void **state)
{
    struct seen seen =
        read_text("auto", SACCT SACCT_ROW("Unknown", "Unknown", "gpu:1")
                              SACCT_ROW("2024-01-01T00:00:10", "Unknown", "gpu:1"));
    assert_int_equal(seen.facts.job_count, 0);
    assert_int_equal(skipped(&seen, "never started"), 1);
    assert_int_equal(skipped(&seen, "no run time"), 1);
    /* Without a start there is no saying that it never did. */
    seen = read_text("auto", "JobID|Submit|Elapsed|AllocCPUS|ReqGRES\n"
                             "1|2024-01-01T00:00:00|||gpu:1\n");
    assert_int_equal(skipped(&seen, "no run time"), 1);
}

static void sacct_names_the_column_that_is_missing(void **state)
{
    assert_wrong("sacct", "Job|Submit|Elapsed|ReqGRES\n", "t:1: no column JobID or");
    assert_wrong("sacct", "JobID|Elapsed|ReqGRES\n", "t:1: no column Submit");
    assert_wrong("sacct", "JobID|Submit|Elapsed\n",
                 "t:1: no column AllocTRES, ReqTRES");
    assert_wrong("sacct", "JobID|Submit|Start|ReqGRES\n", "t:1: no column ElapsedRaw");
    assert_wrong("auto", "JobID|Elapsed|ReqGRES\n1|2|3\n",
                 "not a format that is known");
}

#define SWF(id, submit, run, procs, asked, user, group) \
    id " " submit " -1 " run " " procs " -1 -1 " asked " -1 -1 1 " user " " group \
       " -1 -1 -1 -1 -1\n"

static void swf_needs_no_comment_to_be_known(void **state)
{
    struct seen seen = read_text("auto", SWF("1", "0", "5", "2", "-1", "3", "4")
                                             SWF("2", "1", "5", "2", "-1", "-1", "-1"));
    assert_string_equal(seen.facts.format, "swf");
    assert_string_equal(seen.users[0], "u3");
    assert_string_equal(seen.entities[0], "g4");
    assert_string_equal(seen.users[1], "");
    assert_string_equal(seen.entities[1], "");
    assert_wrong("auto", "1 0 -1 5 1 -1 -1 -1 -1 -1 1 1 1 -1 -1 -1 -1 x\n",
                 "not a format that is known");
    assert_wrong("auto", "1 0 -1 5 1 -1 -1 -1 -1 -1 1 1 1 -1 -1 -1 -1 -1 -1\n",
                 "not a format that is known");
}

static void swf_has_numbers_that_make_sense(void **state)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        { SWF("1", "x", "5", "1", "1", "1", "1"),
          "submit time is \"x\", want a number" },
        { SWF("1", "-1", "5", "1", "1", "1", "1"), "want a time that is known" },
        { SWF("1", "-2", "5", "1", "1", "1", "1"), "want -1, or a number" },
        { SWF("1", "0", "9999999999", "1", "1", "1", "1"), "run time is" },
        { SWF("1", "0", "5", "1000001", "1", "1", "1"), "t:1: processors is" },
        { SWF("1", "0", "5", "1", "x", "1", "1"), "requested processors is" },
        { SWF("1", "0", "5", "1", "1", "-7", "1"), "user is" },
        { SWF("1", "0", "5", "1", "1", "1", "4294967296"), "group is" },
        { SWF("1.5", "0", "5", "1", "1", "1", "1"), "job number is \"1.5\"" },
        { SWF("1", "0", "5", "1", "1", "1", "1") SWF("1", "1", "5", "1", "1", "1", "1"),
          "t:2: job number is \"1\", want one that no job before has" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_wrong("swf", cases[i].text, cases[i].says);
}

static void wide_tables_have_a_ceiling(void **state)
{
    char text[2000] = "submit_s,duration_s,gpus";
    size_t count = strlen(text);
    for (int i = 3; i < 128; i++)
        count += (size_t)snprintf(text + count, sizeof text - count, ",c%d", i);
    size_t header = count;
    count += (size_t)snprintf(text + count, sizeof text - count, "\n0,5,2");
    for (int i = 3; i < 128; i++)
        count += (size_t)snprintf(text + count, sizeof text - count, ",");
    struct seen seen = read_text("generic", text);
    assert_job(&seen, 0, 0, 2, 5);
    snprintf(text + count, sizeof text - count, ",\n");
    assert_wrong("generic", text, "t:2: 129 fields, want at most 128");
    snprintf(text + header, sizeof text - header, ",\"one more\"\n");
    assert_wrong("generic", text, "t:1: 129 fields, want at most 128");
}

/* Names are UTF-8, in its one proper form, and do not move a cursor. */
static void names_are_clean_text(void **state)
{
    static const struct {
        const char *name;
        bool fit;
    } cases[] = {
        { "caf\xc3\xa9", true },
        { "\xe0\xa4\xa6", true },
        { "\xed\x9f\xbf", true },
        { "\xf0\x9f\x9a\xa2", true },
        { "\xf4\x8f\xbf\xbf", true },
        { "\xef\xbf\xbd", true },
        { "\x80", false },
        { "\xc0\xaf", false },
        { "\xc3", false },
        { "\xc3(", false },
        { "\xe0\x80\xaf", false },
        { "\xed\xa0\x80", false },
        { "\xf0\x80\x80\xaf", false },
        { "\xf4\x90\x80\x80", false },
        { "\xf5\x80\x80\x80", false },
        { "\x1b[2J", false },
        { "\x7f", false },
        { "\xc2\x9b", false },
        { "\xc2\xa0", true },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[100];
        snprintf(text, sizeof text, "id,submit_s,duration_s,gpus\n%s,0,5,1\n",
                 cases[i].name);
        if (!cases[i].fit) {
            assert_wrong("generic", text, "want UTF-8 without control characters");
            continue;
        }
        struct seen seen = read_text("generic", text);
        assert_string_equal(seen.names[0], cases[i].name);
    }
}

static void times_are_in_the_unit_of_their_column(void **state)
{
    assert_wrong("generic", "submit_d,duration_s,gpus\nx,5,1\n",
                 "submit_d is \"x\", want a number");
    assert_wrong("generic", "submit_h,duration_s,gpus\nx,5,1\n", "a number of hours");
    assert_wrong("generic", "submit_min,duration_s,gpus\nx,5,1\n",
                 "a number of minutes");
    assert_wrong("generic", "submit_ms,duration_s,gpus\nx,5,1\n",
                 "a number of milliseconds");
    assert_wrong("generic", "submit_s,duration_s,gpus\n-0,5,1\n",
                 "want a time that is not negative");
    assert_wrong("generic", "submit_s,duration_s,gpus\n0,9999999999,1\n",
                 "want a time of at most 100 years");
    assert_wrong("generic", "submit_s,duration_s,gpus\n0,4e9,1\n",
                 "want a time of at most 100 years");
    assert_wrong("generic", "submit_s,duration_s,gpus\n0,-9999999999,1\n",
                 "want a time that is not negative");
    assert_wrong("generic", "submit_s,duration_s,gpus\n0,5,1000001\n",
                 "want a whole number from 0 to 1000000");
    assert_wrong("generic", "submit_s,duration_s,gpus\n0,5,1.5\n",
                 "want a whole number from 0 to 1000000");
    struct seen seen = read_text("generic", "submit_s,duration_s,gpus\n0,5,2.00\n");
    assert_job(&seen, 0, 0, 2, 5);
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
    assert_wrong("generic", /* ids in no order, and another error below */
                 "id,submit_s,duration_s,gpus\n"
                 "b9,0,5,1\nb10,1,5,1\na,2,5,1\nb9,3,5,1\nc,4,5m,1\n",
                 "t:5: job id is \"b9\", want one that no job before has");
    assert_wrong("generic", /* the first of two errors is told */
                 "id,submit_s,duration_s,gpus\na,0,5,1\nb,1,5m,1\na,2,5,1\n",
                 "t:3: duration_s is \"5m\"");
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

#define PHILLY(more) \
    "[{\"jobid\":\"a\",\"submitted_time\":\"2017-10-07 01:00:00\"," more "}]"
#define ATTEMPT(start, end, detail) \
    "{\"start_time\":" start ",\"end_time\":" end ",\"detail\":" detail "}"
#define EARLY "\"2017-10-07 01:00:00\""
#define LATE "\"2017-10-07 01:01:00\""
#define ONE_GPU "[{\"ip\":\"m1\",\"gpus\":[\"gpu0\"]}]"

static void philly_takes_what_is_known_of_a_job(void **state)
{
    struct seen seen = read_text("auto", "[ ]\n");
    assert_string_equal(seen.facts.format, "philly");
    assert_int_equal(seen.facts.job_count, 0);

    seen = read_text(
        "auto", PHILLY("\"user\":\"\",\"vc\":7,\"attempts\":[" ATTEMPT(
                    EARLY, LATE, ONE_GPU) "," ATTEMPT(LATE, "\"None\"", "[]") "]"));
    assert_job(&seen, 0, 0, 1, 60); /* the last attempt has no end and no GPUs */
    assert_string_equal(seen.users[0], "");
    assert_string_equal(seen.entities[0], "");

    seen =
        read_text("auto", PHILLY("\"attempts\":[" ATTEMPT(LATE, EARLY, ONE_GPU) "]"));
    assert_int_equal(skipped(&seen, "no run time"), 1);
    seen =
        read_text("auto", PHILLY("\"attempts\":[" ATTEMPT("null", LATE, ONE_GPU) "]"));
    assert_int_equal(skipped(&seen, "never started"), 1);
    seen = read_text("auto", "[{\"submitted_time\":\"\",\"attempts\":[" ATTEMPT(
                                 EARLY, LATE, ONE_GPU) "]}]");
    assert_int_equal(skipped(&seen, "no submission time"), 1);
}

static void philly_that_makes_no_sense_is_refused(void **state)
{
    assert_wrong("auto", PHILLY("\"attempts\":[" ATTEMPT("7", LATE, ONE_GPU) "]"),
                 "start_time is \"no text\", want a time");
    assert_wrong("auto", PHILLY("\"attempts\":[" ATTEMPT(EARLY, "\"x\"", ONE_GPU) "]"),
                 "end_time is \"x\", want a time");
    assert_wrong(
        "auto",
        PHILLY("\"attempts\":[" ATTEMPT("\"1950-01-01 00:00:00\"",
                                        "\"2090-01-01 00:00:00\"", ONE_GPU) "]"),
        "");
    assert_wrong("auto", "[{\"jobid\":\"a\\u0007\",\"attempts\":[]}]",
                 "jobid is \"a?\", want no control characters");
    assert_wrong("auto", "[{\"user\":\"a\\n\",\"attempts\":[]}]", "user is");
    assert_wrong("auto", "[{\"vc\":\"a\\t\",\"attempts\":[]}]", "vc is");
    assert_wrong("philly", "7", "t:1: no array of jobs, want '['");
    assert_wrong("philly", "[{\"attempts\":[]}, ]", "t:1: no job, want '{'");
    assert_wrong("philly", "[", "t:1: no job, want '{'");
    assert_wrong("philly", "", "the file is empty");
    assert_wrong("auto", "\n[\n{\"attempts\":[]},\n7]", "t:4: no job, want '{'");
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

/* What tells formats apart looks at the first 4 KiB of a header: the rest may have more. */
static void a_header_of_too_many_columns_is_refused(void **state)
{
    static const struct {
        const char *format, *names;
    } tables[] = {
        { "gavel", "job_type,scale_factor,total_steps,arrival_s" },
        { "generic", "submit_s,duration_s,gpus" },
        { "helios", "job_id,user,vc,gpu_num,cpu_num,state,submit_time,start_time" },
        { "acme", "job_id,user,type,gpu_num,cpu_num,state,submit_time,start_time" },
        { "philly-csv", "jobid,vc,user,gpus,submit,runtime" },
        { "sacct", "JobID,Submit,Start,End,State,AllocTRES" },
    };
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        char text[16384];
        char separator = strcmp(tables[i].format, "sacct") == 0 ? '|' : ',';
        int names = snprintf(text, sizeof text, "%s,%4096s", tables[i].names, "x");
        size_t n = (size_t)names;
        for (char *p = text; *p; p++)
            *p = *p == ',' ? separator : *p;
        while (n < sizeof text - 2) {
            text[n++] = separator;
            text[n++] = 'x';
        }
        text[n] = '\0';
        assert_wrong(tables[i].format, text, " fields, want at most 128");
    }
}

/* What a reader holds need not end with a NUL: the bytes behind it are somebody else's. */
static void the_first_line_is_looked_for_in_what_is_held(void **state)
{
    char line[64];
    char *held = malloc(16);
    assert_non_null(held);
    memset(held, 'x', 16);
    format_first_line(held, 16, line, sizeof line);
    assert_string_equal(line, "xxxxxxxxxxxxxxxx");
    format_first_line(held, 16, line, 5);
    assert_string_equal(line, "xxxx");
    held[3] = '\r';
    format_first_line(held, 16, line, sizeof line);
    assert_string_equal(line, "xxx");
    free(held);
}

RUN_CASES(TEST(philly_sums_attempts_and_takes_the_last_gpus),
          TEST(philly_csv_is_sorted), TEST(helios_passes_over_what_is_no_gpu_job),
          TEST(acme_honours_zones_and_recomputes_run_times),
          TEST(pai_rounds_gpus_up_but_counts_what_was_asked_for),
          TEST(a_header_of_too_many_columns_is_refused),
          TEST(the_first_line_is_looked_for_in_what_is_held),
          TEST(gavel_has_three_dialects), TEST(swf_falls_back_on_what_was_asked_for),
          TEST(sacct_reads_jobs_and_not_their_steps),
          TEST(any_table_with_the_three_columns_is_read),
          TEST(muri_is_in_milliseconds_and_chronus_in_minutes),
          TEST(sacct_counts_gpus_however_they_are_written),
          TEST(sacct_knows_how_long_a_job_ran_in_three_ways),
          TEST(sacct_passes_over_what_did_not_run),
          TEST(sacct_names_the_column_that_is_missing),
          TEST(swf_needs_no_comment_to_be_known), TEST(swf_has_numbers_that_make_sense),
          TEST(wide_tables_have_a_ceiling), TEST(names_are_clean_text),
          TEST(times_are_in_the_unit_of_their_column),
          TEST(philly_takes_what_is_known_of_a_job),
          TEST(philly_that_makes_no_sense_is_refused), TEST(broken_rows_are_named),
          TEST(json_cut_short_or_damaged_is_refused),
          TEST(out_of_order_matters_where_a_file_streams),
          TEST(what_is_unknown_says_so));
