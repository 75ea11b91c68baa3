/* Jobs as real processes: how they start, what they report, how they end. */
#include "support/local_fixture.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "executor/local/local.h"

#define PATIENCE_NS (30 * INT64_C(1000000000)) /* a grace period long enough for all */

/* Create the file 'gate' in the checkpoint folder, for which the job waits. */
static void open_gate(struct local_fixture *b, job_id job)
{
    char path[128];
    snprintf(path, sizeof path, "%s/ckpt/%u/gate", b->state_dir, job + 1);
    FILE *gate = fopen(path, "we");
    assert_non_null(gate);
    fclose(gate);
}

static void the_end_of_a_job_is_reported_as_it_was(void **state)
{
    struct local_fixture *b = *state;
    job_id good = local_fixture_job(b, "echo hello; exit 0");
    job_id bad = local_fixture_job(b, "exit 3");
    job_id killed = local_fixture_job(b, "kill -9 $$");
    job_id again = local_fixture_job(b, "exit 85");
    job_id again_too = local_fixture_job(b, "exit 99");

    for (job_id job = good; job <= again_too; job++)
        local_fixture_start(b, job);

    assert_int_equal(local_fixture_wait_event(b, good, EVENT_FINISHED).exit_code, 0);
    assert_string_equal(local_fixture_output(b, good), "hello\n");
    assert_int_equal(local_fixture_wait_event(b, bad, EVENT_FAILED).exit_code, 3);
    assert_int_equal(local_fixture_wait_event(b, killed, EVENT_FAILED).exit_code, 137);
    assert_true(local_fixture_wait_event(b, again, EVENT_STOPPED).clean);
    assert_true(local_fixture_wait_event(b, again_too, EVENT_STOPPED).clean);
    assert_int_equal(local_fixture_count_events(b, good, EVENT_STARTED), 1);
    assert_int_equal(local_count(b->local), 0);
}

static void a_job_gets_the_documented_environment(void **state)
{
    struct local_fixture *b = *state;
    job_id job = local_fixture_job(b, "env; test -d $BERTH_CKPT_DIR");
    b->more[job].seat.gpus = 1 << 2 | 1 << 5;
    b->more[job].env[2] = "RANK=7"; /* of the job that submitted this one */
    b->more[job].env[3] = "MINE=a b";
    local_fixture_launch(b, job)->slurm_names = true;
    b->jobs[job].attempt = 3;

    local_fixture_start(b, job);
    local_fixture_wait_event(b, job, EVENT_FINISHED);

    const char *env = local_fixture_output(b, job);
    static const char *const wanted[] = {
        "BERTH_JOB_ID=1\n",
        "BERTH_ATTEMPT=3\n",
        "BERTH_RESUME=1\n",
        "BERTH_CLASS=be\n",
        "MINE=a b\n",
        "CUDA_VISIBLE_DEVICES=2,5\n",
        "HIP_VISIBLE_DEVICES=2,5\n",
        "CUDA_DEVICE_ORDER=PCI_BUS_ID\n",
        "MASTER_ADDR=127.0.0.1\n",
        "NNODES=1\n",
        "SLURM_JOB_ID=1\n",
        "/jobs/1.3/job/sock\n",
        "/jobs/1.3/job/preempt\n",
    };
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
        if (!strstr(env, wanted[i]))
            fail_msg("no %s in %s", wanted[i], env);
    assert_null(strstr(env, "RANK=7"));
    assert_null(strstr(env, "WORLD_SIZE"));
}

static void ranks_are_numbered_and_fail_together(void **state)
{
    struct local_fixture *b = *state;
    job_id good = local_fixture_job(b, "echo rank $RANK of $WORLD_SIZE");
    job_id bad = local_fixture_job(b, "test $RANK = 1 && exit 7; sleep 1000");
    local_fixture_launch(b, good)->tasks_per_node = 2;
    local_fixture_launch(b, bad)->tasks_per_node = 3;

    local_fixture_start(b, good);
    local_fixture_start(b, bad);

    local_fixture_wait_event(b, good, EVENT_FINISHED);
    assert_non_null(strstr(local_fixture_output(b, good), "rank 0 of 2\n"));
    assert_non_null(strstr(local_fixture_output(b, good), "rank 1 of 2\n"));
    assert_int_equal(local_fixture_wait_event(b, bad, EVENT_FAILED).exit_code, 7);
}

static void a_script_is_run_by_its_first_line(void **state)
{
    struct local_fixture *b = *state;
    static const char *const words[] = { "a b", "c", NULL };
    job_id plain = local_fixture_job(b, ""), named = local_fixture_job(b, "");
    local_fixture_launch(b, plain)->script = "echo plain $1-$2\n";
    local_fixture_launch(b, plain)->argv = words;
    local_fixture_launch(b, named)->script = "#! /bin/sh -e\nfalse\necho not reached\n";
    local_fixture_launch(b, named)->argv = words + 2;

    local_fixture_start(b, plain);
    local_fixture_start(b, named);

    local_fixture_wait_event(b, plain, EVENT_FINISHED);
    assert_string_equal(local_fixture_output(b, plain), "plain a b-c\n");
    assert_int_equal(local_fixture_wait_event(b, named, EVENT_FAILED).exit_code, 1);
    assert_string_equal(local_fixture_output(b, named), "");
}

static void output_goes_where_it_was_asked_for(void **state)
{
    struct local_fixture *b = *state;
    char path[128];
    job_id job = local_fixture_job(b, "echo out; echo err >&2");
    local_fixture_launch(b, job)->name = "try";
    local_fixture_launch(b, job)->cwd = b->dir;
    local_fixture_launch(b, job)->out = "%x-%j-100%%.out";
    local_fixture_launch(b, job)->err = "%A.err";

    local_fixture_start(b, job);
    local_fixture_wait_event(b, job, EVENT_FINISHED);

    snprintf(path, sizeof path, "%s/try-1-100%%.out", b->dir);
    assert_string_equal(local_fixture_read_file(path), "out\n");
    snprintf(path, sizeof path, "%s/1.err", b->dir);
    assert_string_equal(local_fixture_read_file(path), "err\n");
}

static void what_cannot_be_started_says_why(void **state)
{
    struct local_fixture *b = *state;
    static const char *const absent[] = { "/no/such/program", NULL };
    job_id program = local_fixture_job(b, ""), folder = local_fixture_job(b, ""),
           out = local_fixture_job(b, "");
    local_fixture_launch(b, program)->argv = absent;
    local_fixture_launch(b, folder)->cwd = "/no/such/folder";
    local_fixture_launch(b, out)->out = "/no/such/folder/out";
    static const char *const whys[] = {
        "cannot run /no/such/program: No such file or directory",
        "cannot enter /no/such/folder: No such file or directory",
        "cannot write /no/such/folder/out: No such file or directory",
    };

    for (job_id job = program; job <= out; job++)
        local_fixture_start(b, job);

    for (job_id job = program; job <= out; job++) {
        struct event end = local_fixture_wait_event(b, job, EVENT_FAILED);
        assert_int_equal(end.exit_code, 127);
        assert_string_equal(end.why, whys[job]);
        assert_int_equal(local_fixture_count_events(b, job, EVENT_STARTED), 1);
    }
    assert_non_null(strstr(local_fixture_output(b, program), whys[0]));
}

/* A shell has no UNIX sockets; the interpreter that the tests need anyway has. */
#define SAY(words) \
    "exec python3 -c 'import os,socket,sys,time\n" \
    "s=socket.socket(socket.AF_UNIX); s.connect(os.environ[\"BERTH_SOCKET\"])\n" words \
    "'"

static void reports_through_the_socket_become_progress(void **state)
{
    struct local_fixture *b = *state;
    job_id job =
        local_fixture_job(b, SAY("s.sendall(b\"hello 1\\ntotal 500\\nmystery 1 2\\n"
                                 "report 120 0.693\\nsaved 100\\n\")\n"
                                 "time.sleep(0.2); sys.exit(3)"));
    local_fixture_launch(b, job)->has_steps = true;

    local_fixture_start(b, job);

    struct event progress = local_fixture_wait_event(b, job, EVENT_PROGRESS);
    assert_near(progress.steps, 120, 0);
    assert_near(progress.loss, 0.693, 1e-9);
    assert_int_equal(local_fixture_count_events(b, job, EVENT_LOADED), 1);
    struct event end = local_fixture_wait_event(b, job, EVENT_FAILED);
    assert_near(end.steps, 100, 0);
    assert_near(end.steps_reached, 120, 0);
    assert_near(b->total, 500, 0);
}

static void a_connection_that_sends_nonsense_is_closed(void **state)
{
    struct local_fixture *b = *state;
    job_id job =
        local_fixture_job(b, SAY("s.sendall(b\"report x y\\n\" + b\"z\" * 5000)\n"
                                 "try: assert s.recv(10) == b\"\"\n"
                                 "except ConnectionResetError: pass\n"
                                 "t=socket.socket(socket.AF_UNIX)\n"
                                 "t.connect(os.environ[\"BERTH_SOCKET\"])\n"
                                 "t.sendall(b\"report 5 -\\n\"); time.sleep(0.2)"));
    local_fixture_launch(b, job)->has_steps = true;

    local_fixture_start(b, job);

    struct event progress = local_fixture_wait_event(b, job, EVENT_PROGRESS);
    assert_near(progress.steps, 5, 0);
    assert_true(isnan(progress.loss));
    local_fixture_wait_event(b, job, EVENT_FINISHED);
}

static void lines_of_output_become_progress(void **state)
{
    struct local_fixture *b = *state;
    job_id job =
        local_fixture_job(b, "echo step 10 loss 0.5; echo step 20 loss 2.5e-1");
    local_fixture_launch(b, job)->has_steps = true;
    local_fixture_launch(b, job)->pattern =
        "step (?<step>\\d+) loss (?<loss>[-0-9.e]+)";

    local_fixture_start(b, job);

    struct event end = local_fixture_wait_event(b, job, EVENT_FINISHED);
    assert_near(end.steps_reached, 20, 0);
    struct event progress = local_fixture_wait_event(b, job, EVENT_PROGRESS);
    assert_near(progress.loss, 0.25, 1e-9);
}

static void a_warning_comes_by_signal_file_and_socket(void **state)
{
    struct local_fixture *b = *state;
    job_id job = local_fixture_job(
        b, SAY("import signal\n"
               "got=[]\n"
               "signal.signal(signal.SIGUSR2, lambda *a: got.append(1))\n"
               "print(\"ready\", flush=True)\n"
               "line=b\"\"\n"
               "while not line.endswith(b\"\\n\"): line += s.recv(1)\n"
               "while not got: time.sleep(0.01)\n"
               "print(line, open(os.environ[\"BERTH_PREEMPT_FILE\"]).read())\n"
               "sys.exit(85)"));
    local_fixture_launch(b, job)->signal = SIGUSR2;

    local_fixture_start(b, job);
    local_fixture_wait_for_output(b, job, "ready");
    executor_local.stop(b->local, job, 7 * INT64_C(1000000000), NULL);

    struct event end = local_fixture_wait_event(b, job, EVENT_STOPPED);
    assert_true(end.clean);
    assert_int_equal(end.exit_code, 85);
    assert_non_null(strstr(local_fixture_output(b, job), "stop 7"));
    assert_non_null(strstr(local_fixture_output(b, job), " 7\n"));
}

static void a_job_that_does_not_stop_is_killed_after_the_grace_period(void **state)
{
    struct local_fixture *b = *state;
    job_id job =
        local_fixture_job(b, "trap '' TERM; echo pid $$; while :; do sleep 0.05; done");

    local_fixture_start(b, job);
    local_fixture_wait_for_output(b, job, "pid");
    int pid = local_fixture_read_number(b, job, "pid");
    executor_local.stop(b->local, job, INT64_C(100000000), NULL);

    struct event end = local_fixture_wait_event(b, job, EVENT_STOPPED);
    assert_false(end.clean);
    assert_int_equal(end.exit_code, 137);
    assert_near(end.steps, 0, 0); /* nothing was saved */
    assert_true(end.steps_reached > 0.09);
    assert_false(local_fixture_is_alive(pid));
}

static void a_file_written_after_the_warning_makes_it_clean(void **state)
{
    struct local_fixture *b = *state;
    job_id job = local_fixture_job(
        b, "trap 'echo x >$BERTH_CKPT_DIR/a; exit 1' TERM; echo ready;"
           "while :; do sleep 0.02; done");
    job_id old = local_fixture_job(
        b, "echo x >$BERTH_CKPT_DIR/a; trap 'exit 1' TERM; echo ready;"
           "while :; do sleep 0.02; done");

    local_fixture_start(b, job);
    local_fixture_start(b, old);
    local_fixture_wait_for_output(b, job, "ready");
    local_fixture_wait_for_output(b, old, "ready");
    local_fixture_sleep(b, 30);
    executor_local.stop(b->local, job, PATIENCE_NS, NULL);
    executor_local.stop(b->local, old, PATIENCE_NS, NULL);

    assert_true(local_fixture_wait_event(b, job, EVENT_STOPPED).clean);
    assert_false(local_fixture_wait_event(b, old, EVENT_STOPPED).clean);
}

static void a_program_may_save_though_its_shell_is_gone(void **state)
{
    struct local_fixture *b = *state;
    job_id job =
        local_fixture_job(b, "sh -c 'trap \"sleep 0.2; exit 85\" TERM; echo ready;"
                             "while :; do sleep 0.02; done'; echo not reached");

    local_fixture_start(b, job);
    local_fixture_wait_for_output(b, job, "ready");
    executor_local.stop(b->local, job, PATIENCE_NS, NULL);

    assert_true(local_fixture_wait_event(b, job, EVENT_STOPPED).clean);
}

static void nothing_of_a_job_survives_its_end(void **state)
{
    struct local_fixture *b = *state;
    job_id job = local_fixture_job(
        b, "setsid sh -c 'echo one $$; sleep 1000' &"
           "(setsid env -i /bin/sh -c 'echo two $$; sleep 1000' &) &"
           "sh -c 'trap \"\" TERM HUP; echo three $$; sleep 1000' &"
           "while [ ! -e $BERTH_CKPT_DIR/gate ]; do sleep 0.02; done");

    local_fixture_start(b, job);
    local_fixture_wait_for_output(b, job, "one");
    local_fixture_wait_for_output(b, job, "two");
    local_fixture_wait_for_output(b, job, "three");
    open_gate(b, job);
    local_fixture_wait_event(b, job, EVENT_FINISHED);

    assert_false(local_fixture_is_alive(local_fixture_read_number(b, job, "one")));
    assert_false(local_fixture_is_alive(local_fixture_read_number(b, job, "two")));
    assert_false(local_fixture_is_alive(local_fixture_read_number(b, job, "three")));
}

static void a_cancelled_job_ends_as_cancelled(void **state)
{
    struct local_fixture *b = *state;
    job_id polite = local_fixture_job(b, "echo ready; sleep 1000");
    job_id deaf =
        local_fixture_job(b, "trap '' TERM; echo ready; while :; do sleep 0.05; done");
    b->jobs[deaf].grace_ns = INT64_C(100000000);

    local_fixture_start(b, polite);
    local_fixture_start(b, deaf);
    local_fixture_wait_for_output(b, polite, "ready");
    local_fixture_wait_for_output(b, deaf, "ready");
    executor_local.cancel(b->local, polite, NULL);
    executor_local.cancel(b->local, deaf, NULL);

    assert_string_equal(local_fixture_wait_event(b, polite, EVENT_FAILED).why,
                        "cancelled");
    assert_string_equal(local_fixture_wait_event(b, deaf, EVENT_FAILED).why,
                        "cancelled");
}

static void the_job_of_a_killed_supervisor_is_killed(void **state)
{
    struct local_fixture *b = *state;
    char path[128];
    job_id job = local_fixture_job(
        b, "setsid sh -c 'echo one $$; exec sleep 1000' & echo two $$;"
           "while :; do sleep 0.05; done");

    local_fixture_start(b, job);
    local_fixture_wait_event(b, job, EVENT_STARTED); /* its output may be sooner */
    local_fixture_wait_for_output(b, job, "one");
    local_fixture_wait_for_output(b, job, "two");
    snprintf(path, sizeof path, "%s/jobs/1.0/claim", b->run_dir);
    int supervisor = atoi(local_fixture_read_file(path));
    assert_true(supervisor > 1);
    kill(supervisor, SIGKILL);

    struct event end = local_fixture_wait_event(b, job, EVENT_LOST);
    assert_string_equal(end.why, "its supervisor was killed");
    assert_false(local_fixture_is_alive(local_fixture_read_number(b, job, "one")));
    assert_false(local_fixture_is_alive(local_fixture_read_number(b, job, "two")));
}

/* The process that the claim of the first attempt names. */
static int read_supervisor(struct local_fixture *b)
{
    char path[128];
    snprintf(path, sizeof path, "%s/jobs/1.0/claim", b->run_dir);
    return atoi(local_fixture_read_file(path));
}

static void a_halted_supervisor_cannot_keep_the_gpus(void **state)
{
    struct local_fixture *b = *state;
    job_id job =
        local_fixture_job(b, "trap '' TERM; echo pid $$; while :; do sleep 1; done");
    b->jobs[job].grace_ns = 100000000;
    local_fixture_start(b, job);
    local_fixture_wait_event(b, job, EVENT_STARTED);
    local_fixture_wait_for_output(b, job, "pid ");
    int supervisor = read_supervisor(b);
    assert_int_equal(kill(supervisor, SIGSTOP), 0);

    executor_local.stop(b->local, job, b->jobs[job].grace_ns, NULL);

    struct event end = local_fixture_wait_event(b, job, EVENT_STOPPED);
    assert_false(end.clean);
    assert_false(local_fixture_is_alive(local_fixture_read_number(b, job, "pid ")));
    assert_false(local_fixture_is_alive(supervisor));
}

static void a_halted_supervisor_cannot_outlast_its_time_limit(void **state)
{
    struct local_fixture *b = *state;
    job_id job = local_fixture_job(b, "sleep 1000");
    local_fixture_launch(b, job)->limit_ns = 200000000;
    b->jobs[job].grace_ns = 0;
    local_fixture_start(b, job);
    local_fixture_wait_event(b, job, EVENT_STARTED);
    assert_int_equal(kill(read_supervisor(b), SIGSTOP), 0);

    struct event end = local_fixture_wait_event(b, job, EVENT_FAILED);

    assert_string_equal(end.why, "time limit");
}

static void the_end_of_a_job_has_its_place_before_it_starts(void **state)
{
    struct local_fixture *b = *state;
    char path[128];
    struct stat status;
    job_id job = local_fixture_job(b, "sleep 1000");
    local_fixture_start(b, job);
    local_fixture_wait_event(b, job, EVENT_STARTED);
    snprintf(path, sizeof path, "%s/jobs/1.0/status", b->run_dir);
    assert_int_equal(stat(path, &status), 0);
    assert_true(status.st_size >= 256 && status.st_blocks > 0);
    executor_local.cancel(b->local, job, NULL);
    local_fixture_wait_event(b, job, EVENT_FAILED);
}

static void jobs_run_on_without_berthd(void **state)
{
    struct local_fixture *b = *state;
    job_id ends = local_fixture_job(
        b, "while [ ! -e $BERTH_CKPT_DIR/gate ]; do sleep 0.02; done; exit 4");
    job_id stays = local_fixture_job(b, "echo pid $$; sleep 1000");

    local_fixture_start(b, ends);
    local_fixture_start(b, stays);
    local_fixture_wait_event(b, ends, EVENT_STARTED);
    local_fixture_wait_event(b, stays, EVENT_STARTED);
    local_fixture_wait_for_output(b, stays, "pid");
    local_fixture_reopen(b);
    open_gate(b, ends);
    local_fixture_sleep(b, 400);
    local_fixture_reattach(b, ends, false);
    local_fixture_reattach(b, stays, false);

    assert_int_equal(local_fixture_wait_event(b, ends, EVENT_FAILED).exit_code, 4);
    assert_true(local_fixture_is_alive(local_fixture_read_number(b, stays, "pid")));
    executor_local.stop(b->local, stays, PATIENCE_NS, NULL);
    local_fixture_wait_event(b, stays, EVENT_STOPPED);
}

static void an_end_that_was_not_recorded_is_reported_again(void **state)
{
    struct local_fixture *b = *state;
    job_id job = local_fixture_job(b, "echo once; exit 6");

    b->uncollected = true;
    local_fixture_start(b, job);
    assert_int_equal(local_fixture_wait_event(b, job, EVENT_FAILED).exit_code, 6);
    local_fixture_reopen(b);
    b->uncollected = false;
    uint32_t before = local_fixture_count_events(b, job, EVENT_FAILED);
    local_fixture_reattach(b, job, false);
    for (int i = 0;
         i < 1000 && local_fixture_count_events(b, job, EVENT_FAILED) == before; i++)
        local_fixture_sleep(b, 50);
    local_fixture_sleep(b, 50);

    assert_int_equal(local_fixture_count_events(b, job, EVENT_FAILED), before + 1);
    assert_string_equal(local_fixture_output(b, job), "once\n");
    assert_int_equal(local_count(b->local), 0);
}

static void an_order_that_is_repeated_starts_nothing_twice(void **state)
{
    struct local_fixture *b = *state;
    job_id job = local_fixture_job(b, "echo once; sleep 0.3");

    local_fixture_start(b, job);
    local_fixture_start(b, job);
    local_fixture_reopen(b); /* perhaps before its supervisor has started */
    local_fixture_start(b, job);
    local_fixture_wait_event(b, job, EVENT_FINISHED);

    assert_string_equal(local_fixture_output(b, job), "once\n");
    assert_int_equal(local_fixture_count_events(b, job, EVENT_FINISHED), 1);
}

static void a_job_is_told_to_stop_though_berthd_was_restarted(void **state)
{
    struct local_fixture *b = *state;
    job_id job = local_fixture_job(
        b, "trap 'exit 85' TERM; echo ready; while :; do sleep 0.02; done");

    local_fixture_start(b, job);
    local_fixture_wait_for_output(b, job, "ready");
    local_fixture_reopen(b);
    local_fixture_reattach(b, job, true);

    assert_true(local_fixture_wait_event(b, job, EVENT_STOPPED).clean);
}

static void a_job_that_vanished_is_lost(void **state)
{
    struct local_fixture *b = *state;
    job_id job = local_fixture_job(b, "true");
    b->jobs[job].state = JOB_RUNNING;

    local_fixture_reattach(b, job, false);

    local_fixture_wait_event(b, job, EVENT_LOST);
}

static void a_successor_starts_when_all_predecessors_have_left(void **state)
{
    struct local_fixture *b = *state;
    job_id first = local_fixture_job(b, "echo ready; exec sleep 1000");
    job_id second = local_fixture_job(b, "echo ready; exec sleep 1000");
    job_id next = local_fixture_job(b, "true");
    b->more[next].after[0] = first;
    b->more[next].after[1] = second;
    b->more[next].after_count = 2;

    local_fixture_start(b, first);
    local_fixture_start(b, second);
    local_fixture_wait_for_output(b, first, "ready");
    local_fixture_wait_for_output(b, second, "ready");
    local_fixture_start(b, next);
    executor_local.stop(b->local, first, PATIENCE_NS, NULL);
    local_fixture_wait_event(b, first, EVENT_STOPPED);
    local_fixture_sleep(b, 50);
    assert_int_equal(local_fixture_count_events(b, next, EVENT_STARTED), 0);
    executor_local.stop(b->local, second, PATIENCE_NS, NULL);

    local_fixture_wait_event(b, next, EVENT_FINISHED);
    local_fixture_wait_event(b, second, EVENT_STOPPED);
}

/* Order the next attempt, elsewhere, to start when this one has stopped. */
static void order_to_go_on(struct local_fixture *b, job_id job)
{
    b->more[job].after[0] = job;
    b->more[job].after_count = 1;
    b->jobs[job].attempt++;
    local_fixture_start(b, job);
    b->jobs[job].attempt--; /* until it has stopped */
}

static void a_moved_job_starts_elsewhere_when_it_has_stopped(void **state)
{
    struct local_fixture *b = *state;
    job_id job = local_fixture_job(
        b, "test $BERTH_ATTEMPT = 1 && exit 0; echo ready; exec sleep 1000");
    local_fixture_start(b, job);
    local_fixture_wait_for_output(b, job, "ready");
    order_to_go_on(b, job);
    executor_local.stop(b->local, job, PATIENCE_NS, NULL);
    local_fixture_wait_event(b, job, EVENT_STOPPED);
    b->jobs[job].attempt = 1;
    assert_int_equal(local_fixture_wait_event(b, job, EVENT_FINISHED).attempt, 1);
}

/* It was preempted to start elsewhere, and had just finished its work. */
static void a_finished_job_does_not_start_elsewhere(void **state)
{
    struct local_fixture *b = *state;
    job_id job =
        local_fixture_job(b, "until test -e $BERTH_CKPT_DIR/gate; do sleep 0.02; done; "
                             "echo ran >> $BERTH_CKPT_DIR/ran; exit 0");
    job_id other = local_fixture_job(b, "sleep 0.3");
    local_fixture_start(b, job);
    local_fixture_wait_event(b, job, EVENT_STARTED);
    order_to_go_on(b, job);
    b->jobs[job].state = JOB_FREE; /* as after its end was applied */
    open_gate(b, job);
    local_fixture_wait_event(b, job, EVENT_FINISHED);
    local_fixture_start(b, other); /* time enough to start */
    local_fixture_wait_event(b, other, EVENT_FINISHED);

    char path[128];
    snprintf(path, sizeof path, "%s/ckpt/%u/ran", b->state_dir, job + 1);
    assert_string_equal(local_fixture_read_file(path), "ran\n");
    assert_int_equal(local_fixture_count_events(b, job, EVENT_STARTED), 1);
    assert_int_equal(local_count(b->local), 0);
}

static void a_successor_still_waits_after_a_restart(void **state)
{
    struct local_fixture *b = *state;
    job_id victim = local_fixture_job(
        b, "trap 'sleep 0.3; exit 85' TERM; echo ready; while :; do sleep 0.02; done");
    job_id next = local_fixture_job(b, "true");
    b->more[next].after[0] = victim;
    b->more[next].after_count = 1;

    local_fixture_start(b, victim);
    local_fixture_wait_for_output(b, victim, "ready");
    local_fixture_start(b, next);
    executor_local.stop(b->local, victim, PATIENCE_NS, NULL);
    local_fixture_reopen(b);
    local_fixture_reattach(b, next, false); /* before the job that it waits for */
    local_fixture_reattach(b, victim, true);

    local_fixture_wait_event(b, victim, EVENT_STOPPED);
    local_fixture_wait_event(b, next, EVENT_FINISHED);
    for (uint32_t i = 0, left = 0; i < b->event_count; i++) {
        left += b->events[i].job == victim && b->events[i].kind == EVENT_STOPPED;
        if (b->events[i].job == next)
            assert_int_equal(left, 1);
    }
}

static void a_waiting_attempt_can_be_cancelled(void **state)
{
    struct local_fixture *b = *state;
    job_id first = local_fixture_job(b, "sleep 1000"),
           next = local_fixture_job(b, "true");
    b->more[next].after[0] = first;
    b->more[next].after_count = 1;

    local_fixture_start(b, first);
    local_fixture_start(b, next);
    executor_local.cancel(b->local, next, NULL);

    assert_string_equal(local_fixture_wait_event(b, next, EVENT_LOST).why, "cancelled");
}

static void a_cancelled_job_that_an_earlier_berthd_started_is_ended(void **state)
{
    struct local_fixture *b = *state;
    job_id job = local_fixture_job(b, "echo pid $$; sleep 1000");

    local_fixture_start(b, job);
    local_fixture_wait_for_output(b, job, "pid");
    local_fixture_reopen(b);
    b->jobs[job].state = JOB_PLACED; /* its start was not recorded */
    local_fixture_reattach(b, job, false);
    executor_local.cancel(b->local, job, NULL);

    assert_string_equal(local_fixture_wait_event(b, job, EVENT_FAILED).why,
                        "cancelled");
    assert_int_equal(local_fixture_count_events(b, job, EVENT_LOST), 0);
    assert_false(local_fixture_is_alive(local_fixture_read_number(b, job, "pid")));
}

static void a_time_limit_ends_a_job_in_failure(void **state)
{
    struct local_fixture *b = *state;
    job_id job = local_fixture_job(
        b, "trap 'echo warned' USR2; echo ready; while :; do sleep 0.02; done");
    local_fixture_launch(b, job)->limit_ns = INT64_C(2000000000);
    local_fixture_launch(b, job)->limit_warns = true;
    local_fixture_launch(b, job)->warn_ns = INT64_C(500000000);
    local_fixture_launch(b, job)->signal = SIGUSR2;
    b->jobs[job].grace_ns = INT64_C(100000000);

    local_fixture_start(b, job);

    assert_string_equal(local_fixture_wait_event(b, job, EVENT_FAILED).why,
                        "time limit");
    assert_non_null(strstr(local_fixture_output(b, job), "warned"));
}

static void a_lease_in_seconds_ends_and_is_renewed(void **state)
{
    struct local_fixture *b = *state;
    job_id job = local_fixture_job(b, "sleep 1000");
    b->more[job].steps_max = 1;

    local_fixture_start(b, job);
    struct event done = local_fixture_wait_event(b, job, EVENT_LEASE_DONE);
    assert_true(done.steps >= 1);
    executor_local.renew(b->local, job, 1, false, NULL);
    local_fixture_sleep(b, 100);
    assert_int_equal(local_fixture_count_events(b, job, EVENT_LEASE_DONE), 1);
    while (local_fixture_count_events(b, job, EVENT_LEASE_DONE) < 2)
        local_fixture_sleep(b, 50);
}

static void a_full_disk_fails_the_job_alone(void **state)
{
    struct local_fixture *b = *state;
    char path[128], out[160];
    if (getuid() != 0)
        SKIP("only root can mount a small disk");
    snprintf(path, sizeof path, "%s/small", b->dir);
    snprintf(out, sizeof out, "%s/out", path);
    assert_int_equal(mkdir(path, 0700), 0);
    if (mount("none", path, "tmpfs", 0, "size=16k") < 0)
        SKIP("no tmpfs here");
    job_id job = local_fixture_job(b, "head -c 100000 /dev/zero || exit 5");
    local_fixture_launch(b, job)->out = out;

    local_fixture_start(b, job);

    struct event end = local_fixture_wait_event(b, job, EVENT_FAILED);
    assert_int_equal(umount2(path, MNT_DETACH), 0);
    assert_int_equal(end.exit_code, 5);
}

static void a_job_inherits_nothing_from_berthd(void **state)
{
    struct local_fixture *b = *state;
    job_id job =
        local_fixture_job(b, "ls /proc/$$/fd; umask; grep SigBlk /proc/self/status;"
                             "readlink /proc/$$/cwd; grep SigIgn /proc/self/status");
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    sigprocmask(SIG_BLOCK, &blocked, NULL);
    signal(SIGPIPE, SIG_IGN);

    local_fixture_start(b, job);
    local_fixture_wait_event(b, job, EVENT_FINISHED);

    sigprocmask(SIG_UNBLOCK, &blocked, NULL);
    const char *text = local_fixture_output(b, job);
    static const char begins[] =
        "0\n1\n2\n0022\nSigBlk:\t0000000000000000\n/\nSigIgn:\t";
    assert_int_equal(strncmp(text, begins, strlen(begins)), 0);
    unsigned long long ignored = strtoull(text + strlen(begins), NULL, 16);
    assert_false(ignored >> (SIGPIPE - 1) & 1);
    assert_false(ignored >> (SIGCHLD - 1) & 1);
}

/* Kill the child that forks supervisors, and wait until it is dead, but leave it to be reaped. */
static void kill_starter(void)
{
    char path[64];
    int pid = 0;
    siginfo_t info;
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", getpid(), getpid());
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%d", &pid), 1);
    fclose(file);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
}

static void a_killed_starter_is_replaced(void **state)
{
    struct local_fixture *b = *state;
    char command[256], go[128];
    snprintf(go, sizeof go, "%s/go", b->dir);
    snprintf(command, sizeof command, "echo up; until [ -e %s ]; do sleep 0.02; done",
             go);
    job_id before = local_fixture_job(b, command);
    job_id after = local_fixture_job(b, "true");
    local_fixture_start(b, before);
    local_fixture_wait_for_output(b, before, "up\n");

    kill_starter();
    local_fixture_start(b, after);

    local_fixture_wait_event(b, after, EVENT_FINISHED);
    FILE *file = fopen(go, "we");
    assert_non_null(file);
    fclose(file);
    local_fixture_wait_event(b, before, EVENT_FINISHED);
}

static void a_full_runtime_folder_loses_the_start_alone(void **state)
{
    struct local_fixture *b = *state;
    char path[128];
    if (getuid() != 0)
        SKIP("only root can mount a small disk");
    snprintf(path, sizeof path, "%s/jobs", b->run_dir);
    if (mount("none", path, "tmpfs", 0, "nr_inodes=2") < 0)
        SKIP("no tmpfs here");
    job_id job = local_fixture_job(b, "true");

    local_fixture_start(b, job);
    struct event lost = local_fixture_wait_event(b, job, EVENT_LOST);
    umount2(path, MNT_DETACH);
    b->jobs[job].attempt++;
    local_fixture_start(b, job);

    assert_non_null(strstr(lost.why, "No space left on device"));
    local_fixture_wait_event(b, job, EVENT_FINISHED);
}

static void another_user_runs_as_itself(void **state)
{
    struct local_fixture *b = *state;
    if (getuid() != 0)
        SKIP("only root can run jobs as others");
    local_fixture_free(b);
    *state = b = local_fixture_new_system();
    job_id job =
        local_fixture_job(b, "id -u; id -g; cat /proc/self/status | grep Cap;"
                             "echo x >$BERTH_CKPT_DIR/file; touch /etc/berth-test;"
                             "kill -0 $PPID || echo out of reach");
    job_id denied = local_fixture_job(b, "true");
    local_fixture_launch(b, job)->uid = local_fixture_launch(b, denied)->uid = 65534;
    local_fixture_launch(b, job)->gid = local_fixture_launch(b, denied)->gid = 65534;
    local_fixture_launch(b, denied)->out = "/etc/berth-test.out";

    local_fixture_start(b, job);
    local_fixture_start(b, denied);

    local_fixture_wait_event(b, job, EVENT_FINISHED);
    const char *text = local_fixture_output(b, job);
    assert_int_equal(strncmp(text, "65534\n65534\n", 12), 0);
    assert_non_null(strstr(text, "CapEff:\t0000000000000000\n"));
    assert_non_null(strstr(text, "out of reach\n"));
    assert_int_not_equal(access("/etc/berth-test", F_OK), 0);
    assert_string_equal(local_fixture_wait_event(b, denied, EVENT_FAILED).why,
                        "cannot write /etc/berth-test.out: Permission denied");
}

static int setup(void **state)
{
    *state = local_fixture_new();
    return 0;
}

static int teardown(void **state)
{
    local_fixture_free(*state);
    return 0;
}

RUN_CASES(
    CASE(the_end_of_a_job_is_reported_as_it_was),
    CASE(a_job_gets_the_documented_environment),
    CASE(ranks_are_numbered_and_fail_together), CASE(a_script_is_run_by_its_first_line),
    CASE(output_goes_where_it_was_asked_for), CASE(what_cannot_be_started_says_why),
    CASE(reports_through_the_socket_become_progress),
    CASE(a_connection_that_sends_nonsense_is_closed),
    CASE(lines_of_output_become_progress),
    CASE(a_warning_comes_by_signal_file_and_socket),
    CASE(a_job_that_does_not_stop_is_killed_after_the_grace_period),
    CASE(a_file_written_after_the_warning_makes_it_clean),
    CASE(a_program_may_save_though_its_shell_is_gone),
    CASE(nothing_of_a_job_survives_its_end), CASE(a_cancelled_job_ends_as_cancelled),
    CASE(a_halted_supervisor_cannot_keep_the_gpus),
    CASE(a_halted_supervisor_cannot_outlast_its_time_limit),
    CASE(the_end_of_a_job_has_its_place_before_it_starts),
    CASE(the_job_of_a_killed_supervisor_is_killed), CASE(jobs_run_on_without_berthd),
    CASE(an_end_that_was_not_recorded_is_reported_again),
    CASE(an_order_that_is_repeated_starts_nothing_twice),
    CASE(a_job_is_told_to_stop_though_berthd_was_restarted),
    CASE(a_job_that_vanished_is_lost),
    CASE(a_successor_starts_when_all_predecessors_have_left),
    CASE(a_moved_job_starts_elsewhere_when_it_has_stopped),
    CASE(a_finished_job_does_not_start_elsewhere),
    CASE(a_successor_still_waits_after_a_restart),
    CASE(a_waiting_attempt_can_be_cancelled),
    CASE(a_cancelled_job_that_an_earlier_berthd_started_is_ended),
    CASE(a_time_limit_ends_a_job_in_failure),
    CASE(a_lease_in_seconds_ends_and_is_renewed), CASE(a_full_disk_fails_the_job_alone),
    CASE(a_job_inherits_nothing_from_berthd), CASE(a_killed_starter_is_replaced),
    CASE(a_full_runtime_folder_loses_the_start_alone),
    CASE(another_user_runs_as_itself));
