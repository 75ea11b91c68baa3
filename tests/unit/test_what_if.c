/* What was run, played again: trust, paired differences, and intervals from days. */
#include "support/cases.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/json.h"
#include "model/cluster.h"
#include "model/throughput.h"
#include "study/what_if.h"
#include "study/what_if_report.h"

#define SECONDS(n) ((int64_t)((n)*1e9))
#define DAY 86400
#define JOBS_MAX 64

/* Jobs on one GPU, and the cases that are played of them. */
struct scene {
    struct arena arena;
    struct cluster cluster;
    struct throughput rates;
    struct job_spec jobs[JOBS_MAX];
    bool counted[JOBS_MAX];
    uint32_t count;
    struct what_if what;
};

static void scene_init(struct scene *scene, const char *cluster)
{
    struct error err;
    *scene = (struct scene){ .what = { .seed = 1, .zero_s = NAN } };
    arena_init(&scene->arena, 0);
    assert_int_equal(cluster_load(&scene->cluster, &scene->arena, cluster, &err), 0);
    throughput_init(&scene->rates, &scene->cluster);
}

static struct job_spec *add(struct scene *scene, double submit_s, double work_s)
{
    scene->counted[scene->count] = true;
    struct job_spec *job = &scene->jobs[scene->count++];
    *job = (struct job_spec){
        .id = scene->count, .gpus = 1, .submit_ns = SECONDS(submit_s), .steps = work_s
    };
    return job;
}

/* A day of it: a job of 100 s and one of 'short_s' that come together. */
static void add_day(struct scene *scene, double begin_s, double short_s)
{
    add(scene, begin_s, 100);
    add(scene, begin_s, short_s);
}

static struct what_if_case *add_case(struct scene *scene, const char *policy)
{
    struct what_if_case *one = &scene->what.cases[scene->what.case_count++];
    *one = (struct what_if_case){ .name = policy,
                                  .policy = policy,
                                  .cluster = &scene->cluster,
                                  .rates = &scene->rates,
                                  .jobs = scene->jobs,
                                  .job_count = scene->count };
    return one;
}

static void play(struct scene *scene)
{
    struct error err = { "" };
    scene->what.counted = scene->counted;
    scene->what.from_ns = scene->jobs[0].submit_ns;
    scene->what.to_ns = scene->jobs[scene->count - 1].submit_ns;
    scene->what.policy = scene->what.cluster_text = scene->what.history_text =
        scene->what.command = "here";
    int r = what_if_run(&scene->what, NULL, NULL, &err);
    assert_string_equal(err.text, "");
    assert_int_equal(r, 0);
}

static void scene_release(struct scene *scene)
{
    what_if_release(&scene->what);
    arena_release(&scene->arena);
}

static void equal_days_leave_no_doubt(void **state)
{
    struct scene scene;
    struct what_if_difference found[WHAT_IF_FIGURES];
    uint32_t jobs;
    scene_init(&scene, "1xv100:1");
    for (int day = 0; day < 7; day++)
        add_day(&scene, day * DAY, 10);
    add_case(&scene, "fifo");
    add_case(&scene, "sjf");
    play(&scene);
    what_if_compare(&scene.what, 1, found, &jobs);
    assert_int_equal(jobs, 14);
    assert_int_equal(scene.what.block_count, 7);
    assert_near((double)scene.what.block_ns, 86400e9, 0);
    /* fifo: 100 and 110 s; sjf: 10 and 110 s. */
    assert_near(found[WHAT_IF_JCT].was, 105, 1e-6);
    assert_near(found[WHAT_IF_JCT].value, 60, 1e-6);
    assert_near(found[WHAT_IF_JCT].difference, -45, 1e-6);
    assert_near(found[WHAT_IF_JCT].change, -45.0 / 105, 1e-9);
    assert_near(found[WHAT_IF_JCT].low, -45, 1e-6);
    assert_near(found[WHAT_IF_JCT].high, -45, 1e-6);
    assert_near(found[WHAT_IF_WAIT].was, 50, 1e-6);
    assert_near(found[WHAT_IF_WAIT].value, 5, 1e-6);
    assert_near(found[WHAT_IF_JCT_P95].difference, 0, 1e-6);
    assert_near(found[WHAT_IF_SLOWDOWN_BE].was, (1 + 11) / 2.0, 1e-6);
    assert_near(found[WHAT_IF_SLOWDOWN_BE].value, (1.1 + 1) / 2.0, 1e-6);
    assert_true(isnan(found[WHAT_IF_SLOWDOWN_TE].difference));
    scene_release(&scene);
}

static void a_case_does_not_differ_from_itself(void **state)
{
    struct scene scene;
    struct what_if_difference found[WHAT_IF_FIGURES];
    uint32_t jobs;
    scene_init(&scene, "1xv100:1");
    for (int day = 0; day < 6; day++)
        add_day(&scene, day * DAY, 10 + day);
    add_case(&scene, "srtf");
    add_case(&scene, "srtf");
    play(&scene);
    what_if_compare(&scene.what, 1, found, &jobs);
    for (int f = 0; f < WHAT_IF_FIGURES; f++)
        if (!isnan(found[f].difference)) {
            assert_near(found[f].difference, 0, 0);
            assert_near(found[f].low, 0, 0);
            assert_near(found[f].high, 0, 0);
        }
    scene_release(&scene);
}

/* Draws of days with other differences: between the least and the largest of them. */
static void days_that_differ_make_an_interval(void **state)
{
    struct scene scene;
    struct what_if_difference found[WHAT_IF_FIGURES];
    uint32_t jobs;
    scene_init(&scene, "1xv100:1");
    for (int day = 0; day < 8; day++)
        add_day(&scene, day * DAY, 10 + 10 * day);
    add_case(&scene, "fifo");
    add_case(&scene, "sjf");
    play(&scene);
    what_if_compare(&scene.what, 1, found, &jobs);
    const struct what_if_difference *jct = &found[WHAT_IF_JCT];
    assert_near(jct->difference, -(100 - 45.0) / 2,
                1e-6); /* short_s is 45 in the mean */
    assert_true(jct->low < jct->difference && jct->difference < jct->high);
    assert_true(jct->low > -45 - 1e-6 && jct->high < -10 + 1e-6);
    assert_true(jct->change_low < jct->change && jct->change < jct->change_high);
    double low = jct->low;
    what_if_compare(&scene.what, 1, found, &jobs);
    assert_near(found[WHAT_IF_JCT].low, low, 0); /* the same draws */
    scene_release(&scene);
}

static void a_day_is_divided_into_hours_and_an_hour_into_nothing(void **state)
{
    struct scene scene;
    struct what_if_difference found[WHAT_IF_FIGURES];
    uint32_t jobs;
    scene_init(&scene, "1xv100:1");
    for (int hour = 0; hour < 6; hour++)
        add_day(&scene, hour * 3600, 10);
    add_case(&scene, "fifo");
    add_case(&scene, "sjf");
    play(&scene);
    assert_near((double)scene.what.block_ns, 3600e9, 0);
    assert_int_equal(scene.what.block_count, 6);
    scene_release(&scene);

    scene_init(&scene, "1xv100:1");
    add_day(&scene, 0, 10);
    add_day(&scene, 300, 10);
    add_case(&scene, "fifo");
    add_case(&scene, "sjf");
    play(&scene);
    assert_near((double)scene.what.block_ns, 0, 0);
    what_if_compare(&scene.what, 1, found, &jobs);
    assert_near(found[WHAT_IF_JCT].difference, -45, 1e-6);
    assert_true(isnan(found[WHAT_IF_JCT].low) && isnan(found[WHAT_IF_JCT].change_low));
    struct json *json = what_if_json(&scene.what);
    assert_string_equal(json_text_or(json_get(json, "intervals"), "method", ""),
                        "none");
    json_free(json);
    scene_release(&scene);
}

static void what_happened_stands_beside_its_replay(void **state)
{
    struct scene scene;
    scene_init(&scene, "1xv100:1");
    struct job_spec *first = add(&scene, 0, 100);
    struct job_spec *second = add(&scene, 10, 50);
    struct job_spec *failed = add(&scene, 20, 7);
    first->past = (struct job_past){ .start_ns = SECONDS(1),
                                     .end_ns = SECONDS(101),
                                     .end = ENDED_COMPLETED };
    second->past = (struct job_past){ .start_ns = SECONDS(110),
                                      .end_ns = SECONDS(160),
                                      .end = ENDED_COMPLETED,
                                      .waited_ns = SECONDS(100) };
    failed->past.end = ENDED_FAILED;
    failed->fails = true;
    add_case(&scene, "fifo");
    play(&scene);
    struct what_if_trust trust = what_if_trust(&scene.what);
    assert_int_equal(trust.job_count, 2);
    assert_near(trust.jct.happened, (101 + 150) / 2.0, 1e-6);
    assert_near(trust.jct.replayed, (100 + 140) / 2.0, 1e-6);
    assert_near(trust.jct.change, 240.0 / 251 - 1, 1e-9);
    assert_near(trust.wait.happened, (1 + 100) / 2.0, 1e-6);
    assert_near(trust.wait.replayed, 90 / 2.0, 1e-6);
    scene_release(&scene);
}

/* Jobs before the period are played and not counted, as are those of which it is said. */
static void only_counted_jobs_count(void **state)
{
    struct scene scene;
    struct what_if_difference found[WHAT_IF_FIGURES];
    uint32_t jobs;
    scene_init(&scene, "1xv100:1");
    add(&scene, 0, 1000);
    add(&scene, 100, 10);
    add(&scene, 100, 20);
    add_case(&scene, "fifo");
    add_case(&scene, "srtf");
    scene.counted[0] = scene.counted[2] = false;
    play(&scene);
    what_if_compare(&scene.what, 1, found, &jobs);
    assert_int_equal(jobs, 1);
    assert_near(found[WHAT_IF_JCT].was, 910, 1e-6);
    assert_near(found[WHAT_IF_JCT].value, 10, 1e-6);
    scene_release(&scene);
}

static void nodes_go_and_come_back_as_they_did(void **state)
{
    static const struct sim_node_change changes[] = {
        { SECONDS(50), EVENT_NODE_DOWN, 0, 0 },
        { SECONDS(500), EVENT_NODE_UP, 0, 0 },
        { SECONDS(650), EVENT_FOREIGN, 0, 1 },
        { SECONDS(900), EVENT_FOREIGN, 0, 0 },
    };
    struct scene scene;
    struct what_if_difference found[WHAT_IF_FIGURES];
    uint32_t jobs;
    scene_init(&scene, "1xv100:1");
    add(&scene, 0, 100);   /* lost at 50 s, again from 500 to 600 s */
    add(&scene, 700, 100); /* the GPU is another's until 900 s */
    struct what_if_case *was = add_case(&scene, "fifo");
    was->changes = changes;
    was->change_count = sizeof changes / sizeof *changes;
    add_case(&scene, "fifo");
    play(&scene);
    what_if_compare(&scene.what, 1, found, &jobs);
    assert_int_equal(jobs, 2);
    assert_near(scene.what.outcomes[0][0].jct_s, 600, 1e-6);
    assert_near(scene.what.outcomes[0][0].lost_gpu_s, 50, 1e-6);
    assert_near(scene.what.outcomes[0][1].jct_s, 300, 1e-6);
    assert_near(found[WHAT_IF_JCT].value, 100, 1e-6);
    scene_release(&scene);
}

/* However long the others take there; 'eligible' says when it was so once. */
static void a_job_waits_for_others_to_end(void **state)
{
    struct scene scene;
    scene_init(&scene, "4xv100:1");
    add(&scene, 0, 100);
    add(&scene, 0, 50);
    struct job_spec *waits = add(&scene, 10, 5);
    waits->after = "1|2|77"; /* the last never was there */
    waits->eligible_ns = SECONDS(500);
    add(&scene, 10, 5)->after = "77";
    struct job_spec *never = add(&scene, 20, 5);
    never->after = "1";
    never->cancel_ns = SECONDS(101);
    never->past.cancelled_by = CANCELLED_BY_DEPENDENCY;
    add(&scene, 200, 5)->after = "1";
    add_case(&scene, "fifo");
    play(&scene);
    const struct what_if_outcome *outcomes = scene.what.outcomes[0];
    assert_near(outcomes[2].jct_s, 95, 1e-6); /* from 10 to 105 s */
    assert_near(outcomes[3].jct_s, 5, 1e-6);
    assert_false(outcomes[4].completed);
    assert_near(outcomes[5].jct_s, 5, 1e-6); /* that one was over */
    scene_release(&scene);
}

static void the_policy_changes_when_it_did(void **state)
{
    static const struct sim_policy_change changes[] = { { SECONDS(1000), "sjf" } };
    struct scene scene;
    scene_init(&scene, "1xv100:1");
    add_day(&scene, 0, 10);
    add_day(&scene, 2000, 10);
    struct what_if_case *was = add_case(&scene, "fifo");
    was->policies = changes;
    was->policy_count = 1;
    play(&scene);
    const struct what_if_outcome *outcomes = scene.what.outcomes[0];
    assert_near(outcomes[1].jct_s, 110, 1e-6);
    assert_near(outcomes[3].jct_s, 10, 1e-6);
    scene_release(&scene);
}

/* The policy is told the costs that were declared, and the job has those that were measured. */
static void policies_know_no_more_than_they_did(void **state)
{
    struct scene scene;
    scene_init(&scene, "1xv100:1");
    struct job_spec *victim = add(&scene, 0, 1000);
    victim->grace_ns = SECONDS(60);
    victim->pause_ns = SECONDS(2); /* it ends at once, and keeps nothing */
    victim->keeps_nothing = victim->costs_told = true;
    add(&scene, 100, 10);
    add_case(&scene, "srtf");
    play(&scene);
    const struct what_if_outcome *outcome = &scene.what.outcomes[0][0];
    assert_int_equal(outcome->preemptions, 1);
    assert_near(outcome->jct_s, 112 + 1000, 1e-6);
    assert_near(outcome->lost_gpu_s, 102, 1e-6);
    scene_release(&scene);
}

static void the_page_has_both(void **state)
{
    struct scene scene;
    scene_init(&scene, "1xv100:1");
    for (int day = 0; day < 5; day++)
        add_day(&scene, day * DAY, 10);
    add_case(&scene, "fifo");
    add_case(&scene, "sjf");
    scene.what.notes[scene.what.note_count++] = "A note.";
    play(&scene);
    struct json *page = what_if_page(&scene.what);
    const struct json *what = json_get(page, "what_if");
    const struct json *variant = json_item(json_get(what, "variants"), 0);
    const struct json *jct = json_get(json_get(variant, "figures"), "jct_s.mean");
    assert_int_equal(json_count(json_get(page, "runs")), 2);
    assert_int_equal(json_count(json_get(what, "labels")), WHAT_IF_FIGURES);
    assert_int_equal(json_count(json_get(what, "notes")), 1);
    assert_near(json_number_or(jct, "difference", 0), -45, 1e-6);
    assert_near(json_number_or(jct, "change_high", 0), -45.0 / 105, 1e-6);
    json_free(page);
    scene_release(&scene);
}

RUN_CASES(TEST(equal_days_leave_no_doubt), TEST(a_case_does_not_differ_from_itself),
          TEST(days_that_differ_make_an_interval),
          TEST(a_day_is_divided_into_hours_and_an_hour_into_nothing),
          TEST(what_happened_stands_beside_its_replay), TEST(only_counted_jobs_count),
          TEST(nodes_go_and_come_back_as_they_did), TEST(a_job_waits_for_others_to_end),
          TEST(the_policy_changes_when_it_did),
          TEST(policies_know_no_more_than_they_did), TEST(the_page_has_both));
