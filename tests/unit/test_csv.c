/* Berth's own format: what it says, what comes back, what is refused. */
#include "support/cases.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/error.h"
#include "base/units.h"
#include "workload/csv.h"
#include "workload/workload.h"

static struct error err;

static const char everything[] =
    "#berth-jobs 1\n"
    "id,name,user,entity,class,submit_s,gpus,gpus_min,gpus_max,nodes,spread,types,cpus,"
    "mem_gib,work_s,kind,steps,grace_s,pause_s,load_s,ckpt_s,weight,deadline_s,"
    "step_s,fixed_s,bytes_per_step,sync,overlap,curve,fails,nodelist,exclude,declared,"
    "shared\n"
    "1,first,ada,vision,be,0,8,,,1,0,v100|p100,32,256.5,3600.25,,,60,10.5,30,1800,2,"
    "90000,,,"
    ",,,,0,n2|n3,\"n0,n1\",0,1\n"
    "9,\"se,\"\"cond\",ben,,te,0.000000001,1,,,,1,,0.5,,12.125,,,20,0,0,0,,,,,,,,,1,,,"
    "1,0\n"
    "7,élan,,speech,be,12.5,4,2,8,,0,,,,,ResNet-50 (batch size "
    "64),120000,0,0,0,0,0.1,,,,"
    "102400000,ring,0.25,,0,,n1,,\n"
    "8,,,,be,13,4,,,4,0,,,,,,800,0,0,0,0,,,0.375,0.25,75000000,ps,,"
    "\"acc:tau=120.5,last=0.76\",0,,,1,\n"
    "10,,,,be,14,1,,,,0,,,,90,,,0,0,0,0,,,,,,,,points:90/2.5/-0.25/0.125,0,,,0,1\n";

static struct workload *open_text(const char *text)
{
    struct workload *workload = NULL;
    int r = workload_open_memory(&workload, "jobs.csv", text, strlen(text), NULL, &err);
    if (r < 0)
        fail_msg("%s", err.text);
    return workload;
}

static void every_column_arrives(void **state)
{
    struct workload *workload = open_text(everything);
    struct job_spec job;

    assert_int_equal(workload_next(workload, &job, &err), 1);
    assert_int_equal(job.id, 1);
    assert_string_equal(job.name, "first");
    assert_string_equal(job.entity, "vision");
    assert_string_equal(job.types, "v100|p100");
    assert_string_equal(job.nodelist, "n2|n3");
    assert_string_equal(job.exclude, "n0,n1");
    assert_int_equal(job.class, CLASS_BE);
    assert_int_equal(job.cpu_milli, 32000);
    assert_int_equal(job.mem_mib, 262656);
    assert_true(job.steps == 3600.25);
    assert_int_equal(job.pause_ns, 10 * NS_PER_S + NS_PER_S / 2);
    assert_int_equal(job.deadline_ns, 90000 * NS_PER_S);
    assert_true(job.undeclared);
    assert_true(job.shares);

    assert_int_equal(workload_next(workload, &job, &err), 1);
    assert_string_equal(job.name, "se,\"cond");
    assert_int_equal(job.submit_ns, 1);
    assert_int_equal(job.class, CLASS_TE);
    assert_true(job.spread);
    assert_true(job.fails);
    assert_false(job.undeclared);
    assert_false(job.shares);
    assert_null(job.entity);

    assert_int_equal(workload_next(workload, &job, &err), 1);
    assert_string_equal(job.kind, "ResNet-50 (batch size 64)");
    assert_true(job.steps == 120000);
    assert_int_equal(job.gpus_min, 2);
    assert_int_equal(job.gpus_max, 8);
    assert_true(job.weight == 0.1);
    assert_int_equal(job.bytes_per_step, 102400000);
    assert_int_equal(job.sync, SYNC_RING);
    assert_true(job.overlap == 0.25);
    assert_false(job.undeclared); /* empty: as 1 */
    assert_false(job.shares);     /* empty: as 0 */
    assert_int_equal(job.curve.family, LEARNING_NONE);

    assert_int_equal(workload_next(workload, &job, &err), 1);
    assert_true(job.steps == 800);
    assert_true(job.step_s == 0.375);
    assert_true(job.fixed_s == 0.25);
    assert_int_equal(job.sync, SYNC_SERVER);
    assert_int_equal(job.curve.family, LEARNING_ACC);
    assert_true(job.curve.tau == 120.5);
    assert_true(job.curve.last == 0.76);

    assert_int_equal(workload_next(workload, &job, &err), 1);
    assert_int_equal(job.curve.family, LEARNING_POINTS);
    assert_int_equal(job.curve.point_count, 3);
    assert_true(job.curve.points[1] == -0.25F);
    assert_int_equal(workload_next(workload, &job, &err), 0);
    assert_false(workload_facts(workload)->gpu_time_known);
    workload_close(workload);
}

static char *write_again(const char *text)
{
    char *written = NULL;
    size_t count = 0;
    FILE *file = open_memstream(&written, &count);
    assert_non_null(file);
    struct workload *workload = open_text(text);
    assert_int_equal(workload_write(workload, file, &err), 0);
    workload_close(workload);
    fclose(file);
    return written;
}

static void what_is_written_reads_the_same(void **state)
{
    char *once = write_again(everything);
    char *twice = write_again(once);
    assert_string_equal(once, twice);
    assert_non_null(strstr(once, "9,\"se,\"\"cond\",ben,,te,0.000000001,1,"));
    free(once);
    free(twice);
}

static void columns_stand_in_any_order(void **state)
{
    struct workload *workload =
        open_text("#berth-jobs 1\nwork_s,gpus,submit_s\n10,2,5\n20,3,6\n");
    struct job_spec job;
    assert_int_equal(workload_next(workload, &job, &err), 1);
    assert_int_equal(job.gpus, 2);
    assert_int_equal(job.submit_ns, 5 * NS_PER_S); /* its own clock stays */
    assert_int_equal(workload_next(workload, &job, &err), 1);
    assert_int_equal(workload_next(workload, &job, &err), 0);
    assert_int_equal(workload_facts(workload)->max_gpus, 3);
    assert_true(workload_gpu_hours(workload_facts(workload)) == 80.0 / 3600);
    workload_close(workload);
}

/* Read all of it; the sentence must be exactly this. */
static void assert_wrong(const char *text, const char *sentence)
{
    struct workload *workload = NULL;
    struct job_spec job;
    err.text[0] = '\0';
    int r = workload_open_memory(&workload, "j", text, strlen(text), "berth", &err);
    while (r >= 0 && (r = workload_next(workload, &job, &err)) > 0)
        ;
    if (r != -EINVAL)
        fail_msg("accepted (%d): %s", r, text);
    assert_string_equal(err.text, sentence);
    workload_close(workload);
}

#define HEAD "#berth-jobs 1\nid,submit_s,gpus,work_s\n"
#define FIXED "#berth-jobs 1\nsubmit_s,gpus,steps,step_s,fixed_s\n"
#define NET "#berth-jobs 1\nsubmit_s,gpus,steps,step_s,sync,overlap,curve\n"

static void wrong_fields_are_named_with_file_and_line(void **state)
{
    assert_wrong(HEAD "1,0,4x,5\n",
                 "j:3: gpus is \"4x\", want a whole number from 0 to 1000000");
    assert_wrong(HEAD "1,0,-4,5\n",
                 "j:3: gpus is \"-4\", want a whole number from 0 to 1000000");
    assert_wrong(HEAD "1,0,1,nan\n", "j:3: work_s is \"nan\", want a number");
    assert_wrong(HEAD "1,0,1,inf\n", "j:3: work_s is \"inf\", want a number");
    assert_wrong(HEAD "1,0,1,5m\n", "j:3: work_s is \"5m\", want a number");
    assert_wrong(NET "0,4,100,0.5,star,,\n",
                 "j:3: sync is \"star\", want one of: ring, ps");
    assert_wrong(NET "0,4,100,0.5,ps,1.5,\n",
                 "j:3: overlap is \"1.5\", want a number from 0 to 1");
    assert_wrong(NET "0,4,100,0,ps,,\n",
                 "j:3: step_s is \"0\", want more than 0 and at most 3.15576e+09");
    assert_wrong(NET "0,4,,0.5,ps,,\n",
                 "j:3: steps is \"\", want a number, as there is step_s");
    assert_wrong(NET "0,4,1e18,1e9,ps,,\n",
                 "j:3: steps is \"\", want a run of at most 100 years");
    assert_wrong(FIXED "0,4,100,0.5,0.75\n",
                 "j:3: fixed_s is \"\", want at most step_s");
    assert_wrong(NET "0,4,100,0.5,,,exp:mu=1.5\n",
                 "j:3: curve is \"exp:mu=1.5\", want exp:mu=…, inv:a=…,b=…, "
                 "acc:tau=… or points:…, see the guide");
    assert_wrong(HEAD "1,5m,1,5\n",
                 "j:3: submit_s is \"5m\", want a number of seconds");
    assert_wrong(HEAD "1,-1,1,5\n",
                 "j:3: submit_s is \"-1\", want a time that is not negative");
    assert_wrong(HEAD "1,1e18,1,5\n",
                 "j:3: submit_s is \"1e18\", want a time of at most 100 years");
    assert_wrong(HEAD "1,4000000000,1,5\n",
                 "j:3: submit_s is \"4000000000\", want a time of at most 100 years");
    assert_wrong(HEAD "1,0,1,0\n",
                 "j:3: work_s is \"0\", want more than 0 and at most 3.15576e+09");
    assert_wrong(HEAD "1,0,1,\n",
                 "j:3: work_s is \"\", want a number, as there is no kind");
    assert_wrong(HEAD "1,0,1\n", "j:3: 3 fields, want 4 as in the header");
    assert_wrong(HEAD "1,0,1,5,6\n", "j:3: 5 fields, want 4 as in the header");
}

#define SHAPE \
    "#berth-jobs 1\nsubmit_s,gpus,work_s,gpus_min,gpus_max,spread,class,cpus\n"
#define KIND "#berth-jobs 1\nsubmit_s,gpus,work_s,kind,steps,step_s\n"

static void words_and_small_numbers_are_as_they_should_be(void **state)
{
    assert_wrong(HEAD "1,0,1,4e9\n",
                 "j:3: work_s is \"4e9\", want more than 0 and at most 3.15576e+09");
    assert_wrong(HEAD "1,0,,5\n", "j:3: gpus is \"\", want a whole number");
    assert_wrong(HEAD "1,,1,5\n", "j:3: submit_s is \"\", want a number of seconds");
    assert_wrong(SHAPE "0,4,5,,,2,,\n", "j:3: spread is \"2\", want 0 or 1");
    assert_wrong(SHAPE "0,4,5,,,10,,\n", "j:3: spread is \"10\", want 0 or 1");
    assert_wrong("#berth-jobs 1\nsubmit_s,gpus,work_s,declared\n0,4,5,no\n",
                 "j:3: declared is \"no\", want 0 or 1");
    assert_wrong("#berth-jobs 1\nsubmit_s,gpus,work_s,declared\n0,4,,0\n",
                 "j:3: work_s is \"\", want a number, as there is no kind");
    assert_wrong(SHAPE "0,4,5,,,,tx,\n", "j:3: class is \"tx\", want one of: be, te");
    assert_wrong(SHAPE "0,4,5,,,,ae,\n", "j:3: class is \"ae\", want one of: be, te");
    assert_wrong(SHAPE "0,4,5,,,,best,\n",
                 "j:3: class is \"best\", want one of: be, te");
    assert_wrong(NET "0,4,100,0.5,pq,,\n",
                 "j:3: sync is \"pq\", want one of: ring, ps");
    assert_wrong(NET "0,4,100,0.5,rink,,\n",
                 "j:3: sync is \"rink\", want one of: ring, ps");
    assert_wrong(NET "0,4,100,0.5,ps,x,\n",
                 "j:3: overlap is \"x\", want a number from 0 to 1");
    assert_wrong(NET "0,4,100,0.5,ps,-0.5,\n",
                 "j:3: overlap is \"-0.5\", want a number from 0 to 1");
    assert_wrong(SHAPE "0,4,5,,,,,-1\n", "j:3: cpus is \"-1\", want a number from 0 to "
                                         "1000000");
    assert_wrong(SHAPE "0,4,5,,,,,1000001\n", "j:3: cpus is \"1000001\", want a number "
                                              "from 0 to 1000000");
    assert_wrong(SHAPE "0,4,5,,,,,many\n",
                 "j:3: cpus is \"many\", want a number from 0 "
                 "to 1000000");
}

static void a_job_may_shrink_and_grow_around_what_it_asks_for(void **state)
{
    assert_wrong(SHAPE "0,4,5,5,8,,,\n",
                 "j:3: gpus is 4, want it from gpus_min 5 to gpus_max 8");
    assert_wrong(SHAPE "0,4,5,2,3,,,\n",
                 "j:3: gpus is 4, want it from gpus_min 2 to gpus_max 3");
    struct workload *workload = open_text(SHAPE "0,4,5,0,0,,,\n0,4,5,4,4,,,\n");
    struct job_spec job;
    assert_int_equal(workload_next(workload, &job, &err), 1);
    assert_int_equal(job.gpus_max, 0); /* as rigid as one that says nothing */
    assert_int_equal(workload_next(workload, &job, &err), 1);
    assert_int_equal(job.gpus_min, 4);
    workload_close(workload);
}

/* A job's pace comes from a table by its kind, or stands there, or is a second a step. */
static void a_job_has_one_pace(void **state)
{
    assert_wrong(KIND "0,4,,A,,\n",
                 "j:3: steps is \"\", want a number, as there is a kind");
    assert_wrong(KIND "0,4,,,100,\n",
                 "j:3: work_s is \"\", want a number, as there is no kind");
    assert_wrong("#berth-jobs 1\nsubmit_s,gpus,kind\n",
                 "j:2: no column work_s, nor steps with kind or step_s");
    assert_wrong("#berth-jobs 1\nsubmit_s,gpus,steps\n",
                 "j:2: no column work_s, nor steps with kind or step_s");
}

/* A kind whose pace was measured needs no table. */
static void a_measured_pace_stands_beside_a_kind(void **state)
{
    struct workload *workload = open_text(KIND "0,4,,A,100,0.5\n");
    struct job_spec job;
    assert_int_equal(workload_next(workload, &job, &err), 1);
    assert_string_equal(job.kind, "A");
    assert_true(job.step_s == 0.5 && job.steps == 100);
    assert_true(workload_facts(workload)->gpu_time_known);
    workload_close(workload);
}

#define PAST \
    "#berth-jobs 1\nsubmit_s,gpus,work_s,declared_work,eligible_s,cancel_s,start_s," \
    "end_s,state,cancelled_by,attempts,preemptions,limit_s\n"

static void times_of_a_recorded_job_are_after_its_submission(void **state)
{
    assert_wrong(PAST "5,1,9,,4,,,,,,,,\n",
                 "j:3: eligible_s is 4, want no time before submit_s, 5");
    assert_wrong(PAST "5,1,9,,,4.5,,,,,,,\n",
                 "j:3: cancel_s is 4.5, want no time before submit_s, 5");
    assert_wrong(PAST "5,1,9,0,,,,,,,,,\n",
                 "j:3: declared_work is \"0\", want more than 0 and at most 1e+18");
    assert_wrong(PAST "5,1,9,,,,,,gone,,,,\n",
                 "j:3: state is \"gone\", want one of: unknown, completed, failed, "
                 "cancelled");
}

static void what_became_of_a_job_is_read_and_written(void **state)
{
    static const char text[] =
        PAST "5,1,9,8,6,20,7,20.5,cancelled,administrator,2,1,3600\n6,1,9,,,,,,,,,,\n";
    struct workload *workload = open_text(text);
    char *copy = NULL;
    size_t bytes = 0;
    FILE *file = open_memstream(&copy, &bytes);
    assert_int_equal(workload_write(workload, file, &err), 0);
    fclose(file);
    assert_string_equal(copy, text);
    free(copy);
    workload_close(workload);
}

#define TOLD \
    "#berth-jobs 1\nsubmit_s,gpus,work_s,pause_s,load_s,keeps,saves,declared_pause_s," \
    "declared_load_s,attempts,preemptions,waited_s\n"

static void what_was_told_of_costs_may_differ_from_what_they_are(void **state)
{
    static const char text[] = TOLD "5,1,9,3,2,0,0,0,1,,,\n6,1,9,3,2,1,1,,,,,7.5\n";
    struct workload *workload = open_text(text);
    struct job_spec job;
    assert_int_equal(workload_next(workload, &job, &err), 1);
    assert_true(job.keeps_nothing && job.loses_work && job.costs_told);
    assert_int_equal(job.pause_told_ns, 0);
    assert_int_equal(job.load_told_ns, 1000000000);
    assert_int_equal(workload_next(workload, &job, &err), 1);
    assert_false(job.keeps_nothing || job.loses_work || job.costs_told);
    assert_int_equal(job.past.waited_ns, 7500000000);
    workload_close(workload);

    workload = open_text(text);
    char *copy = NULL;
    size_t bytes = 0;
    FILE *file = open_memstream(&copy, &bytes);
    assert_int_equal(workload_write(workload, file, &err), 0);
    fclose(file);
    assert_string_equal(copy, text);
    free(copy);
    workload_close(workload);
    assert_wrong("#berth-jobs 1\nsubmit_s,gpus,work_s,after\n5,1,9,3|\n",
                 "j:3: after is \"3|\", want numbers of jobs such as 12|15");
    assert_wrong(TOLD "5,1,9,3,2,x,,,,,,\n", "j:3: keeps is \"x\", want 0 or 1");
    workload =
        open_text(TOLD "5,1,9,3,2,,,,1,,,\n"); /* of the pause nothing else is told */
    assert_int_equal(workload_next(workload, &job, &err), 1);
    assert_int_equal(job.pause_told_ns, 3000000000);
    workload_close(workload);
}

static void ids_and_order_are_checked_over_the_file(void **state)
{
    assert_wrong(HEAD "0,0,1,5\n", "j:3: id is \"0\", want a whole number from 1");
    assert_wrong(
        HEAD "18446744073709551615,0,1,5\n18446744073709551615,0,1,5\n",
        "j:4: id is \"18446744073709551615\", want an id that no job before has");
    assert_wrong(HEAD "1,0,1,5\n2,0,1,5\n1,0,1,5\n",
                 "j:5: id is \"1\", want an id that no job before has");
    assert_wrong(HEAD "9,0,1,5\n3,0,1,5\n3,0,1,5\n",
                 "j:5: id is \"3\", want an id that no job before has");
    assert_wrong(HEAD "1,9,1,5\n2,8.5,1,5\n",
                 "j:4: submit_s is \"8.5\", want no earlier than the line before");
}

static void a_wrong_head_is_refused(void **state)
{
    assert_wrong("#berth-jobs 2\nsubmit_s,gpus,work_s\n",
                 "j:1: version is \"2\", want 1");
    assert_wrong("submit_s,gpus,work_s\n",
                 "j:1: no version line, want \"#berth-jobs 1\"");
    assert_wrong("#berth-jobs 1\n", "j: ends before its header line");
    assert_wrong("\xef\xbb\xbf", "j:1: no version line, want \"#berth-jobs 1\"");
    assert_wrong("#berth-jobs 1\nsubmit_s,gpus,work_\x01\n",
                 "j:2: no column '?' in Berth's format");
    assert_wrong("#berth-jobs 1\nsubmit_s,work_s\n", "j:2: no column gpus");
    assert_wrong("#berth-jobs 1\nsubmit_s,gpus,work_h\n",
                 "j:2: no column 'work_h' in Berth's format (did you mean 'work_s'?)");
    assert_wrong("#berth-jobs 1\nsubmit_s,gpus,gpus,work_s\n",
                 "j:2: column gpus stands there twice");
    assert_wrong("#berth-jobs 1\nsubmit_s,gpus\n",
                 "j:2: no column work_s, nor steps with kind or step_s");
    assert_wrong("#berth-jobs 1\ngpus,work_s\n", "j:2: no column submit_s");
}

static void a_file_cut_short_is_noticed(void **state)
{
    assert_wrong(HEAD "1,0,1,5\n2,1,1,50",
                 "j:4: the last line has no newline, want the whole file");
}

static void names_are_clean_text(void **state)
{
    assert_wrong("#berth-jobs 1\nsubmit_s,gpus,work_s,name\n0,1,5,a\x01z\n",
                 "j:3: name is \"a?z\", want UTF-8 without control characters");
    assert_wrong("#berth-jobs 1\nsubmit_s,gpus,work_s,name\n0,1,5,\xc3(\n",
                 "j:3: name is \"?(\", want UTF-8 without control characters");
}

RUN_CASES(TEST(every_column_arrives), TEST(what_is_written_reads_the_same),
          TEST(columns_stand_in_any_order),
          TEST(wrong_fields_are_named_with_file_and_line),
          TEST(words_and_small_numbers_are_as_they_should_be),
          TEST(a_job_may_shrink_and_grow_around_what_it_asks_for),
          TEST(a_job_has_one_pace), TEST(a_measured_pace_stands_beside_a_kind),
          TEST(times_of_a_recorded_job_are_after_its_submission),
          TEST(what_became_of_a_job_is_read_and_written),
          TEST(what_was_told_of_costs_may_differ_from_what_they_are),
          TEST(ids_and_order_are_checked_over_the_file), TEST(a_wrong_head_is_refused),
          TEST(a_file_cut_short_is_noticed), TEST(names_are_clean_text));
