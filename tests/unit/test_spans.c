/* Who held which accelerator from when to when: the chart, and the trace as JSON. */
#include "support/run.h"

#include <math.h>
#include <string.h>

#include "base/json.h"
#include "metrics/spans.h"
#include "support/world.h"

/* Told of a run's events once there is a view to start with. */
struct book {
    struct spans spans;
    FILE *trace;
    bool open;
    struct arena arena;
};

static void tell(void *self, const struct view *view, const struct event *event)
{
    struct book *book = self;
    if (!book->open)
        spans_init(&book->spans, &book->arena, view, book->trace, true);
    book->open = true;
    spans_event(&book->spans, view, event);
}

/* Job 1 runs on both GPUs, is displaced at 10s by job 2, and goes on at 15s to 35s. */
static void play(struct book *book)
{
    const struct job_spec specs[] = {
        { .gpus = 2, .steps = 30 },
        { .gpus = 2, .steps = 5, .submit_ns = SECONDS(10), .class = CLASS_TE },
    };
    struct cluster cluster;
    struct run run;
    arena_init(&book->arena, 0);
    assert_int_equal(cluster_load(&cluster, &book->arena, "1xv100:2", NULL), 0);
    run_play(&run, &(struct run_setup){ .cluster = &cluster,
                                        .policy = policy_find("srtf"),
                                        .specs = specs,
                                        .spec_count = 2,
                                        .listener = { .event = tell, .self = book } });
    spans_end(&book->spans, SECONDS(35));
    run_release(&run);
}

static void a_span_for_every_stay_on_every_gpu(void **state)
{
    static const struct span expected[] = {
        { 0, CLASS_BE, SPAN_PREEMPTED, 1, 0, 10 },
        { 1, CLASS_BE, SPAN_PREEMPTED, 1, 0, 10 },
        { 0, CLASS_TE, SPAN_FINISHED, 2, 10, 15 },
        { 1, CLASS_TE, SPAN_FINISHED, 2, 10, 15 },
        { 0, CLASS_BE, SPAN_FINISHED, 1, 15, 35 },
        { 1, CLASS_BE, SPAN_FINISHED, 1, 15, 35 },
    };
    struct book book = { 0 };
    play(&book);
    assert_int_equal(book.spans.chart_count, 6);
    assert_false(book.spans.chart_full);
    for (int i = 0; i < 6; i++) {
        int found = 0;
        for (int k = 0; k < 6; k++) {
            const struct span *span = &book.spans.chart[k];
            const struct span *want = &expected[i];
            found += span->gpu == want->gpu && span->class == want->class &&
                     span->end == want->end && span->job == want->job &&
                     fabs(span->start_s - want->start_s) < 1e-9 &&
                     fabs(span->end_s - want->end_s) < 1e-9;
        }
        assert_int_equal(found, 1);
    }
    arena_release(&book.arena);
}

static void the_trace_is_json_with_the_same_spans(void **state)
{
    char *text = NULL;
    size_t size = 0;
    struct book book = { .trace = open_memstream(&text, &size) };
    struct json *json = NULL;
    struct error err;
    assert_non_null(book.trace);
    play(&book);
    fclose(book.trace);
    if (json_parse(text, size, &json, &err) < 0)
        fail_msg("%s", err.text);
    const struct json *events = json_get(json, "traceEvents");
    uint32_t spans = 0;
    for (size_t i = 0; i < json_count(events); i++) {
        const char *kind = json_as_text(json_get(json_item(events, i), "ph"));
        spans += kind && strcmp(kind, "X") == 0;
    }
    assert_int_equal(spans, 6);
    json_free(json);
    free(text);
    arena_release(&book.arena);
}

static void two_who_share_a_gpu_have_tracks_of_their_own(void **state)
{
    struct world w;
    struct spans spans;
    world_init(&w, 1, 1);
    spans_init(&spans, &w.arena, &w.state.view, NULL, true);
    job_id a = world_running(&w, (struct job){ .gpus = 1 });
    struct event event = { .kind = EVENT_STARTED, .job = a };
    spans_event(&spans, &w.state.view, &event);
    job_id b = world_queued(&w, (struct job){ .gpus = 1 });
    struct ask ask = ASK_DEFAULT;
    ask.beside = a;
    assert_true(plan_grant(world_plan(&w), b, &ask));
    world_carry_out(&w);
    world_apply(&w, (struct event){ .kind = EVENT_STARTED, .job = b });
    event = (struct event){ .kind = EVENT_STARTED, .job = b, .at_ns = SECONDS(1) };
    spans_event(&spans, &w.state.view, &event);
    spans_end(&spans, SECONDS(3));

    assert_int_equal(spans.chart_count, 2);
    assert_int_equal(spans.chart[0].lane, 0);
    assert_int_equal(spans.chart[1].lane, 1);
    assert_int_equal(spans.chart[0].end, SPAN_RUNNING);
    assert_near(spans.chart[0].end_s - spans.chart[0].start_s, 3, 1e-9);
    assert_near(spans.chart[1].end_s - spans.chart[1].start_s, 2, 1e-9);
    world_release(&w);
}

RUN_CASES(TEST(a_span_for_every_stay_on_every_gpu),
          TEST(the_trace_is_json_with_the_same_spans),
          TEST(two_who_share_a_gpu_have_tracks_of_their_own));
