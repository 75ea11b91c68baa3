/* A simulation's spans: the bars of the chart, and the trace as JSON. */
#include "support/engine_run.h"

#include <math.h>
#include <string.h>

#include "base/json.h"
#include "metrics/pair_ledger.h"
#include "metrics/timeline.h"
#include "support/world.h"

/* Observes a run from its first event on: only then is there a view to start with. */
struct observer {
    struct timeline timeline;
    FILE *trace;
    bool is_open;
    struct arena arena;
};

static void observe(void *self, const struct view *view, const struct event *event)
{
    struct observer *observer = self;
    if (!observer->is_open)
        timeline_init(&observer->timeline, &observer->arena, view, observer->trace,
                      true);
    observer->is_open = true;
    timeline_event(&observer->timeline, view, event);
}

/* Job 1 runs on both GPUs, is preempted at 10 s by job 2, and runs again from 15 to 35 s. */
static void play(struct observer *observer)
{
    const struct job_spec specs[] = {
        { .gpus = 2, .steps = 30 },
        { .gpus = 2, .steps = 5, .submit_ns = SECONDS(10), .class = CLASS_TE },
    };
    struct cluster cluster;
    struct engine_run run;
    arena_init(&observer->arena, 0);
    assert_int_equal(cluster_load(&cluster, &observer->arena, "1xv100:2", NULL), 0);
    engine_run_play(&run, &(struct engine_run_setup){
                              .cluster = &cluster,
                              .policy = policy_find("srtf"),
                              .specs = specs,
                              .spec_count = 2,
                              .observer = { .event = observe, .self = observer } });
    timeline_end(&observer->timeline, SECONDS(35));
    engine_run_release(&run);
}

static void release(struct observer *observer)
{
    timeline_release(&observer->timeline);
    arena_release(&observer->arena);
}

static void every_stay_on_every_gpu_is_a_bar(void **state)
{
    static const struct timeline_bar expected[] = {
        { 0, CLASS_BE, TIMELINE_PREEMPTED, 1, 0, 10 },
        { 1, CLASS_BE, TIMELINE_PREEMPTED, 1, 0, 10 },
        { 0, CLASS_TE, TIMELINE_FINISHED, 2, 10, 15 },
        { 1, CLASS_TE, TIMELINE_FINISHED, 2, 10, 15 },
        { 0, CLASS_BE, TIMELINE_FINISHED, 1, 15, 35 },
        { 1, CLASS_BE, TIMELINE_FINISHED, 1, 15, 35 },
    };
    struct observer observer = { 0 };
    play(&observer);
    assert_int_equal(observer.timeline.bar_count, 6);
    assert_false(observer.timeline.is_full);
    for (int i = 0; i < 6; i++) {
        int found = 0;
        for (int k = 0; k < 6; k++) {
            const struct timeline_bar *bar = &observer.timeline.bars[k];
            const struct timeline_bar *want = &expected[i];
            found += bar->gpu == want->gpu && bar->class == want->class &&
                     bar->end == want->end && bar->job == want->job &&
                     fabs(bar->start_s - want->start_s) < 1e-9 &&
                     fabs(bar->end_s - want->end_s) < 1e-9;
        }
        assert_int_equal(found, 1);
    }
    release(&observer);
}

static void the_trace_is_json_with_the_same_bars(void **state)
{
    char *text = NULL;
    size_t size = 0;
    struct observer observer = { .trace = open_memstream(&text, &size) };
    struct json *json = NULL;
    struct error err;
    assert_non_null(observer.trace);
    play(&observer);
    fclose(observer.trace);
    if (json_parse(text, size, &json, &err) < 0)
        fail_msg("%s", err.text);
    const struct json *events = json_get(json, "traceEvents");
    uint32_t bars = 0;
    for (size_t i = 0; i < json_count(events); i++) {
        const char *kind = json_as_text(json_get(json_item(events, i), "ph"));
        bars += kind && strcmp(kind, "X") == 0;
    }
    assert_int_equal(bars, 6);
    json_free(json);
    free(text);
    release(&observer);
}

/* Tell the timeline that a job was placed and started. */
static void start(struct world *w, struct timeline *timeline, job_id id, int64_t at_ns)
{
    const struct view *view = &w->state.view;
    struct event placed = { .kind = EVENT_PLACED,
                            .job = id,
                            .at_ns = at_ns,
                            .seats = view_seats(view, id),
                            .seat_count = view->jobs[id].seats.count };
    struct event started = { .kind = EVENT_STARTED, .job = id, .at_ns = at_ns };
    timeline_event(timeline, view, &placed);
    timeline_event(timeline, view, &started);
}

/* The track of the job's slice in a trace; its name is written to 'ret_name'. */
static int64_t find_track(const struct json *trace, const char *job,
                          const char **ret_name)
{
    const struct json *events = json_get(trace, "traceEvents");
    int64_t track = -1;
    *ret_name = NULL;
    for (size_t i = 0; i < json_count(events); i++)
        if (strcmp(json_text_or(json_item(events, i), "name", ""), job) == 0)
            track = (int64_t)json_number_or(json_item(events, i), "tid", -1);
    for (size_t i = 0; i < json_count(events); i++) {
        const struct json *event = json_item(events, i);
        if (strcmp(json_text_or(event, "name", ""), "thread_name") == 0 &&
            json_number_or(event, "tid", -1) == (double)track)
            *ret_name = json_text_or(json_get(event, "args"), "name", NULL);
    }
    return track;
}

static void two_jobs_that_share_a_gpu_have_tracks_of_their_own(void **state)
{
    struct world w;
    struct timeline timeline;
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    assert_non_null(file);
    world_init(&w, 1, 1);
    timeline_init(&timeline, &w.arena, &w.state.view, file, true);
    job_id a = world_running(&w, (struct job){ .gpus = 1 });
    start(&w, &timeline, a, 0);
    job_id b = world_queued(&w, (struct job){ .gpus = 1 });
    struct ask ask = ASK_DEFAULT;
    ask.beside = a;
    assert_true(plan_grant(world_plan(&w), b, &ask));
    world_carry_out(&w);
    world_apply(&w, (struct event){ .kind = EVENT_STARTED, .job = b });
    start(&w, &timeline, b, SECONDS(1));
    timeline_end(&timeline, SECONDS(3));

    assert_int_equal(timeline.bar_count, 2);
    assert_int_equal(timeline.bars[0].lane, 0);
    assert_int_equal(timeline.bars[1].lane, 1);
    assert_int_equal(timeline.bars[0].end, TIMELINE_RUNNING);
    assert_near(timeline.bars[0].end_s - timeline.bars[0].start_s, 3, 1e-9);
    assert_near(timeline.bars[1].end_s - timeline.bars[1].start_s, 2, 1e-9);

    struct json *json = NULL;
    struct error err;
    const char *names[2];
    fclose(file);
    if (json_parse(text, size, &json, &err) < 0)
        fail_msg("%s", err.text);
    int64_t track = find_track(json, "job 1", &names[0]);
    assert_int_equal(find_track(json, "job 2", &names[1]), track + 1);
    assert_string_equal(names[0], "gpu 0");
    assert_string_equal(names[1], "gpu 0, second job");
    json_free(json);
    free(text);
    timeline_release(&timeline);
    world_release(&w);
}

static void what_a_pair_kept_is_told_once_it_has_ended(void **state)
{
    struct world w;
    struct timeline timeline;
    struct pair_entry pair = { .jobs = { 1, 2 },
                               .from_ns = SECONDS(5),
                               .to_ns = -1,
                               .shared_ns = SECONDS(10),
                               .alone_s = { 8, 6 } };
    world_init(&w, 1, 1);
    timeline_init(&timeline, &w.arena, &w.state.view, NULL, true);
    timeline_add_pair(&timeline, &pair);
    assert_int_equal(timeline.pair_count, 0);
    pair.to_ns = SECONDS(15);
    timeline_add_pair(&timeline, &pair);
    timeline_add_pair(&timeline, &pair); /* its stop was booked as well */
    assert_int_equal(timeline.pair_count, 1);
    assert_near(timeline.pairs[0].kept[0], 0.8, 1e-9);
    assert_near(timeline.pairs[0].kept[1], 0.6, 1e-9);
    timeline_release(&timeline);
    world_release(&w);
}

RUN_CASES(TEST(what_a_pair_kept_is_told_once_it_has_ended),
          TEST(every_stay_on_every_gpu_is_a_bar),
          TEST(the_trace_is_json_with_the_same_bars),
          TEST(two_jobs_that_share_a_gpu_have_tracks_of_their_own));
