/* The event log: what is written to a line is read back from it. */
#include "support/world.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "model/event_record.h"

static struct world w;
static struct buf line;

static int setup(void **state)
{
    world_init(&w, 2, 4);
    buf_init(&line, 4096);
    return 0;
}

static int teardown(void **state)
{
    buf_release(&line);
    world_release(&w);
    return 0;
}

static struct event_record write_and_read(const struct event *event)
{
    struct event_record written = event_record_make(7, &w.state.view, event), read;
    buf_reset(&line);
    event_record_write(&line, &w.state.view, &written);
    assert_int_equal(event_record_read(line.bytes, line.count, &w.arena, &read), 0);
    assert_int_equal(read.seq, 7);
    assert_int_equal(read.job, written.job);
    assert_int_equal(read.beneficiary, written.beneficiary);
    assert_int_equal(read.event.kind, event->kind);
    assert_int_equal(read.event.at_ns, event->at_ns);
    assert_int_equal(read.event.attempt, written.event.attempt);
    return read;
}

static void a_placement_is_read_back(void **state)
{
    const struct seat seats[] = { { .node = 0, .gpus = 5, .cpu_milli = 1500 },
                                  { .node = 1, .gpus = 8, .mem_mib = 64 } };
    job_id job = world_running(&w, (struct job){ .gpus = 1 });
    struct event event = { .kind = EVENT_PLACED,
                           .at_ns = INT64_C(1794949959831361999), /* no double */
                           .job = job,
                           .seats = seats,
                           .seat_count = 2,
                           .beside = JOB_NONE };
    struct event_record read = write_and_read(&event);
    assert_int_equal(read.event.seat_count, 2);
    assert_memory_equal(read.event.seats, seats, sizeof seats);
}

static void a_preemption_names_its_beneficiary(void **state)
{
    job_id victim = world_running(&w, (struct job){ .gpus = 1 });
    job_id waiting = world_queued(&w, (struct job){ .gpus = 1 });
    struct event_record read = write_and_read(&(struct event){ .kind = EVENT_RECALLED,
                                                               .job = victim,
                                                               .rule = RULE_TRIAL,
                                                               .beneficiary = waiting,
                                                               .wait_saved_ns = -1 });
    assert_int_equal(read.beneficiary, w.state.jobs[waiting].id);
    assert_int_equal(read.event.rule, RULE_TRIAL);
}

static void an_end_is_read_back_to_the_last_digit(void **state)
{
    job_id job = world_running(&w, (struct job){ .gpus = 1 });
    struct event event = { .kind = EVENT_STOPPED,
                           .job = job,
                           .exit_code = 143,
                           .clean = true,
                           .steps = 0.1,
                           .steps_reached = 1.0 / 3,
                           .loss = NAN };
    struct event_record read = write_and_read(&event);
    assert_int_equal(read.event.exit_code, 143);
    assert_true(read.event.clean);
    assert_true(read.event.steps == 0.1);
    assert_true(read.event.steps_reached == 1.0 / 3);
    assert_true(isnan(read.event.loss));
}

static void an_event_of_a_node_is_about_no_job(void **state)
{
    struct event_record read = write_and_read(&(struct event){
        .kind = EVENT_FOREIGN, .job = JOB_NONE, .node = 1, .gpus = 6 });
    assert_int_equal(read.job, 0);
    assert_int_equal(read.event.node, 1);
    assert_int_equal(read.event.gpus, 6);
}

RUN_CASES(CASE(a_placement_is_read_back), CASE(a_preemption_names_its_beneficiary),
          CASE(an_end_is_read_back_to_the_last_digit),
          CASE(an_event_of_a_node_is_about_no_job));
