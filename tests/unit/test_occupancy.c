/* Which job held which GPUs: from lines of the event log to spans. */
#include "support/cases.h"

#include <string.h>

#include "base/arena.h"
#include "metrics/occupancy.h"
#include "model/event_record.h"

#define KEPT 64 /* spans */
#define S(seconds) ((seconds)*INT64_C(1000000000))

static struct occupancy occupancy;
static struct arena arena;

static int setup(void **state)
{
    occupancy_init(&occupancy, KEPT);
    arena_init(&arena, 0);
    return 0;
}

static int teardown(void **state)
{
    occupancy_release(&occupancy);
    arena_release(&arena);
    return 0;
}

static void apply_line(const char *line)
{
    struct event_record record;
    if (event_record_read(line, strlen(line), &arena, &record) == 0)
        occupancy_apply(&occupancy, &record);
}

static void apply(int job, int at, const char *kind, const char *more)
{
    char line[300];
    snprintf(
        line, sizeof line,
        "{\"seq\":1,\"at\":%d.000000000,\"kind\":\"%s\",\"job\":%d,\"attempt\":0%s}",
        at, kind, job, more);
    apply_line(line);
}

static void place(int job, int at)
{
    apply(job, at, "placed",
          ",\"seats\":[{\"node\":0,\"gpus\":[0,1]},{\"node\":2,\"gpus\":[63]}]");
}

static uint32_t count_current(int64_t since_s)
{
    uint32_t count = 0;
    for (uint32_t i = occupancy_first(&occupancy); i < occupancy.count; i++)
        count += occupancy_is_current(occupancy_at(&occupancy, i), S(since_s));
    return count;
}

static void assert_span(uint32_t number, node_id node, uint64_t gpus, int64_t start_s,
                        int64_t end_s, enum occupancy_end end)
{
    const struct occupancy_span *span = occupancy_at(&occupancy, number);
    assert_int_equal(span->node, node);
    assert_int_equal(span->gpus, gpus);
    assert_int_equal(span->start_ns, start_s < 0 ? -1 : S(start_s));
    assert_int_equal(span->end_ns, end_s < 0 ? -1 : S(end_s));
    assert_int_equal(span->end, end);
}

static void a_job_holds_its_gpus_from_start_to_end(void **state)
{
    place(7, 10);
    assert_int_equal(count_current(0), 2);
    assert_span(0, 0, 3, -1, -1, OCCUPANCY_OPEN); /* pending */
    apply(7, 12, "started", "");
    assert_span(0, 0, 3, 12, -1, OCCUPANCY_OPEN);
    assert_ptr_equal(occupancy_held(&occupancy, 7), occupancy_at(&occupancy, 1));
    apply(7, 30, "finished", ",\"exit_code\":0");
    assert_span(0, 0, 3, 12, 30, OCCUPANCY_FINISHED);
    assert_span(1, 2, UINT64_C(1) << 63, 12, 30, OCCUPANCY_FINISHED);
    assert_int_equal(count_current(30), 2);
    assert_int_equal(count_current(31), 0);
    assert_null(occupancy_held(&occupancy, 7));
}

static void a_job_that_stops_was_preempted_unless_it_was_cancelled(void **state)
{
    place(1, 0);
    apply(1, 1, "started", "");
    apply(1, 5, "stopped", "");
    assert_span(0, 0, 3, 1, 5, OCCUPANCY_PREEMPTED);
    place(1, 6);
    apply(1, 7, "started", "");
    apply(1, 8, "cancelled", "");
    apply(1, 9, "stopped", "");
    assert_span(2, 0, 3, 7, 9, OCCUPANCY_CANCELLED);
}

static void a_pending_allocation_that_never_starts_is_not_shown(void **state)
{
    place(1, 0);
    apply(1, 1, "cancelled", "");
    assert_int_equal(count_current(0), 0);
    place(2, 0);
    apply(2, 1, "lost", "");
    assert_int_equal(count_current(0), 0);
    place(3, 0);
    place(3, 1);
    assert_int_equal(count_current(0), 2); /* the second replaces the first */
}

static void a_resize_closes_one_span_and_opens_another(void **state)
{
    place(1, 0);
    apply(1, 1, "started", "");
    apply(1, 2, "resizing", ",\"seats\":[{\"node\":1,\"gpus\":[5]}]");
    apply(1, 3, "resized", "");
    assert_span(0, 0, 3, 1, 3, OCCUPANCY_RESIZED);
    assert_span(2, 1, 1 << 5, 3, -1, OCCUPANCY_OPEN);
}

/* Live, a record says what the job has after the event. */
static void only_what_a_job_no_longer_has_is_lost(void **state)
{
    struct event_record lost = { .job = 1, .is_seated = true };
    lost.event = (struct event){ .kind = EVENT_LOST, .at_ns = S(4) };
    place(1, 0);
    apply(1, 1, "started", "");
    place(1, 2);
    occupancy_apply(&occupancy, &lost); /* where it was to move is lost */
    assert_int_equal(count_current(0), 2);
    assert_span(0, 0, 3, 1, -1, OCCUPANCY_OPEN);
    place(1, 5);
    lost.is_seated = false;
    lost.is_placed = true;
    occupancy_apply(&occupancy, &lost); /* where it ran is lost, it moves on */
    assert_span(0, 0, 3, 1, 4, OCCUPANCY_LOST);
    apply(1, 6, "started", "");
    assert_span(4, 0, 3, 6, -1, OCCUPANCY_OPEN);
}

static void the_second_job_on_a_gpu_shares_it(void **state)
{
    for (int job = 1; job <= 2; job++) {
        place(job, job);
        apply(job, job, "started", "");
    }
    assert_int_equal(occupancy_at(&occupancy, 0)->shared, 0);
    assert_int_equal(occupancy_at(&occupancy, 2)->shared, 3);
    apply(1, 3, "finished", "");
    place(3, 4);
    apply(3, 4, "started", "");
    assert_int_equal(occupancy_at(&occupancy, 4)->shared, 0);
}

static void lines_that_make_no_sense_change_nothing(void **state)
{
    static const char *const lines[] = {
        "",
        "{}",
        "{\"kind\":\"placed\"}",
        "{\"at\":1,\"kind\":\"started\",\"job\":9}",
        "{\"at\":1,\"kind\":\"placed\",\"job\":-1,\"seats\":[]}",
        "{\"at\":1,\"kind\":\"placed\",\"job\":3,\"seats\":7}",
        "{\"at\":1,\"kind\":\"placed\",\"job\":3,\"seats\":[]",
        "{\"at\":1,\"kind\":\"placed\",\"job\":3,\"seats\":[{\"node\":4000000000}]}",
        "{\"at\":\"x\",\"kind\":\"placed\",\"job\":3,\"seats\":[{}]}",
        "{\"at\":1e300,\"kind\":\"placed\",\"job\":3,\"seats\":[{}]}",
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        apply_line(lines[i]);
    apply(9, 4, "finished", "");
    assert_int_equal(count_current(0), 0);
}

/* Twice as many as there is room for: the newest are there, and closing a span that was
 * overwritten does no harm. */
static void the_oldest_spans_are_overwritten(void **state)
{
    for (int job = 1; job <= KEPT; job++) {
        place(job, job);
        apply(job, job, "started", "");
    }
    assert_int_equal(count_current(0), KEPT);
    apply(1, 99999, "finished", "");
    assert_int_equal(count_current(100000), KEPT);
    apply(KEPT, 99999, "finished", "");
    assert_span(2 * KEPT - 1, 2, UINT64_C(1) << 63, KEPT, 99999, OCCUPANCY_FINISHED);
}

static void count_closed(void *self, const struct occupancy_span *span,
                         const struct event_record *cause)
{
    *(int *)self += span->job == cause->job && span->end_ns == cause->event.at_ns;
}

/* Keeping none: each closed span is given to an observer, and its memory is used again. */
static void closed_spans_go_to_the_observer(void **state)
{
    int closed = 0;
    occupancy_release(&occupancy);
    occupancy_init(&occupancy, 0);
    occupancy.closed = count_closed;
    occupancy.self = &closed;
    for (int job = 1; job <= 100; job++) {
        place(job, job);
        apply(job, job, "started", "");
        apply(job, job, "stopped", "");
    }
    assert_int_equal(closed, 200);
    assert_int_equal(occupancy.count, 2);
}

RUN_CASES(CASE(a_job_holds_its_gpus_from_start_to_end),
          CASE(a_job_that_stops_was_preempted_unless_it_was_cancelled),
          CASE(a_pending_allocation_that_never_starts_is_not_shown),
          CASE(a_resize_closes_one_span_and_opens_another),
          CASE(only_what_a_job_no_longer_has_is_lost),
          CASE(the_second_job_on_a_gpu_shares_it),
          CASE(lines_that_make_no_sense_change_nothing),
          CASE(the_oldest_spans_are_overwritten),
          CASE(closed_spans_go_to_the_observer));
