/* What a job truly needed, from lines of the log. */
#include "support/world.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "daemon/measured.h"
#include "model/event_record.h"

static struct world w;
static struct measured measured;

static int setup(void **state)
{
    world_init_as(&w, "2xv100:4,2xk80:4");
    w.cluster.types[0].speed = 1;
    w.cluster.types[1].speed = 0.25;
    measured_init(&measured, &w.cluster, 2, false);
    return 0;
}

static int teardown(void **state)
{
    world_release(&w);
    return 0;
}

/* An event at so many seconds; 'rest' are further members of its line. */
static void happens(double at_s, const char *kind, const char *rest)
{
    char line[400];
    struct event_record record;
    int count = snprintf(line, sizeof line,
                         "{\"seq\":1,\"at\":%.9f,\"kind\":\"%s\",\"job\":1%s%s}", at_s,
                         kind, *rest ? "," : "", rest);
    assert_int_equal(event_record_read(line, (size_t)count, &w.arena, &record), 0);
    measured_add(&measured, &record, line);
}

#define ON_V100 "\"seats\":[{\"node\":0,\"gpus\":[0,1]}]"
#define ON_K80 "\"seats\":[{\"node\":2,\"gpus\":[0,1]}]"

static void assert_is(double number, double want)
{
    assert_true(fabs(number - want) < 1e-6);
}

static void an_undisturbed_job_has_all_its_time(void **state)
{
    happens(10, "placed", ON_V100);
    happens(10.2, "started", "");
    happens(11, "loaded", "\"loaded\":true");
    happens(31, "finished", "\"exit_code\":0,\"step\":0");
    assert_is(measured.work_s, 20);
    assert_true(measured.steps == 0);
    assert_is((double)measured_mean_ns(&measured.load) * 1e-9, 1);
    assert_int_equal(measured_mean_ns(&measured.pause), -1);
    assert_true(measured.has_ended);
}

static void a_job_that_reports_nothing_works_from_its_start(void **state)
{
    happens(10, "placed", ON_V100);
    happens(10.5, "started", "");
    happens(12, "finished", "\"exit_code\":0,\"step\":0");
    assert_is(measured.work_s, 1.5);
}

static void time_on_a_slow_type_is_less_work(void **state)
{
    happens(0, "placed", ON_K80);
    happens(0, "started", "\"loaded\":true");
    happens(40, "finished", "\"exit_code\":0,\"step\":500,\"steps_per_s\":12.5");
    assert_is(measured.work_s, 10);
    assert_is(measured.steps, 500);
}

static void a_preemption_has_a_pause_and_no_work(void **state)
{
    happens(0, "placed", ON_V100);
    happens(0, "started", "\"loaded\":true");
    happens(10, "recalled", "\"rule\":\"order\"");
    happens(13, "stopped", "\"exit_code\":85,\"clean\":true,\"step\":0");
    happens(50, "placed", ON_V100);
    happens(51, "started", "");
    happens(53, "loaded", "\"loaded\":true");
    happens(60, "finished", "\"exit_code\":0,\"step\":0");
    assert_is(measured.work_s, 17);
    assert_is((double)measured_mean_ns(&measured.pause) * 1e-9, 3);
    assert_is((double)measured_mean_ns(&measured.load) * 1e-9, 1.5);
}

/* A quarter was lost with the node; a whole attempt, where nothing was saved. */
static void lost_work_is_work_once(void **state)
{
    happens(0, "placed", ON_V100);
    happens(0, "started", "\"loaded\":true");
    happens(20, "lost", "\"step\":75,\"reached\":100,\"steps_per_s\":5");
    happens(30, "placed", ON_V100);
    happens(30, "started", "\"loaded\":true");
    happens(35, "finished", "\"exit_code\":0,\"step\":100,\"steps_per_s\":5");
    assert_is(measured.work_s, 20);
    assert_is(measured.steps, 100);
    measured_init(&measured, &w.cluster, 2, false);
    happens(0, "placed", ON_V100);
    happens(0, "started", "\"loaded\":true");
    happens(20, "recalled", "\"rule\":\"trial\"");
    happens(25, "stopped", "\"exit_code\":143,\"clean\":false,\"step\":0");
    happens(30, "placed", ON_V100);
    happens(30, "started", "\"loaded\":true");
    happens(70, "finished", "\"exit_code\":0,\"step\":0");
    assert_is(measured.work_s, 40);
    assert_is((double)measured_mean_ns(&measured.kill) * 1e-9, 5);
    assert_int_equal(measured_mean_ns(&measured.pause), -1);
}

/* The end of a load time that nobody declared or showed is a guess. */
static void the_work_of_a_silent_job_begins_with_its_start(void **state)
{
    for (int declares = 0; declares < 2; declares++) {
        measured_init(&measured, &w.cluster, 2, false);
        happens(0, "placed", ON_V100);
        happens(1, "started", "");
        happens(6, "recalled", "\"rule\":\"order\"");
        happens(7, "stopped", "\"exit_code\":85,\"clean\":true,\"step\":0");
        happens(10, "placed", ON_V100);
        happens(11, "started", "");
        happens(21, "loaded", "\"loaded\":true");
        happens(41, "finished", "\"exit_code\":0,\"step\":0");
        measured_end(&measured, declares);
        assert_is(measured.work_s, declares ? 20 : 35);
        assert_is((double)measured_mean_ns(&measured.load) * 1e-9, declares ? 11 : 1);
    }
}

/* It was told to stop and has its next GPUs before it has left the first. */
static void a_job_that_moves_is_placed_before_it_stops(void **state)
{
    happens(0, "placed", ON_K80);
    happens(0, "started", "\"loaded\":true");
    happens(40, "recalled", "\"rule\":\"resize\"");
    happens(40, "placed", ON_V100);
    happens(42, "stopped", "\"exit_code\":85,\"clean\":true,\"step\":0");
    happens(43, "started", "\"loaded\":true");
    happens(50, "finished", "\"exit_code\":0,\"step\":0");
    assert_is(measured.work_s, 17); /* 40 s at a quarter, and 7 */
    assert_is((double)measured.load.sum_ns * 1e-9, 1);
}

static void a_resized_job_works_by_its_size(void **state)
{
    happens(0, "placed", ON_V100);
    happens(0, "started", "\"loaded\":true");
    happens(10, "resizing", "\"seats\":[{\"node\":0,\"gpus\":[0,1,2,3]}]");
    happens(15, "resized", "\"step\":0");
    happens(20, "finished", "\"exit_code\":0,\"step\":0");
    assert_is(measured.work_s, 20);
}

static void a_wait_for_victims_is_no_load(void **state)
{
    happens(0, "placed", ON_V100 ",\"after\":[{\"job\":2}]");
    happens(30, "started", "");
    happens(32, "loaded", "\"loaded\":true");
    happens(40, "finished", "\"exit_code\":0,\"step\":0");
    assert_is((double)measured_mean_ns(&measured.load) * 1e-9, 2);
}

static void it_is_known_when_it_could_start_and_who_cancelled_it(void **state)
{
    measured_init(&measured, &w.cluster, 2, true);
    assert_true(measured.is_held);
    happens(5, "released", "");
    assert_int_equal(measured.eligible_ns, SECONDS(5));
    assert_false(measured.is_held);
    happens(7, "held", ""); /* its settings were changed */
    happens(7.0001, "released", "");
    assert_int_equal(measured.eligible_ns, SECONDS(5));
    happens(8, "held", "");
    assert_true(measured.is_held);
    happens(9, "cancelled", "\"why\":\"cancelled by an administrator\"");
    assert_int_equal(measured.cancelled_ns, SECONDS(9));
    assert_int_equal(measured.cancelled_by, CANCELLED_BY_ADMIN);
    measured_init(&measured, &w.cluster, 2, true);
    happens(9, "cancelled", "\"why\":\"what it depends on has ended otherwise\"");
    assert_int_equal(measured.cancelled_by, CANCELLED_BY_DEPENDENCY);
    measured_init(&measured, &w.cluster, 2, false);
    happens(9, "cancelled", "\"why\":\"cancelled\"");
    assert_int_equal(measured.cancelled_by, CANCELLED_BY_OWNER);
}

RUN_CASES(CASE(an_undisturbed_job_has_all_its_time),
          CASE(a_job_that_reports_nothing_works_from_its_start),
          CASE(time_on_a_slow_type_is_less_work),
          CASE(a_preemption_has_a_pause_and_no_work), CASE(lost_work_is_work_once),
          CASE(the_work_of_a_silent_job_begins_with_its_start),
          CASE(a_job_that_moves_is_placed_before_it_stops),
          CASE(a_resized_job_works_by_its_size), CASE(a_wait_for_victims_is_no_load),
          CASE(it_is_known_when_it_could_start_and_who_cancelled_it));
