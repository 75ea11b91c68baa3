/* One future of a small cluster, worked out by hand; and a snapshot that stands alone. */
#include "support/cases.h"

#include <string.h>

#include "base/error.h"
#include "engine/engine_copy.h"
#include "forecast/replicate.h"
#include "model/admission.h"
#include "model/throughput.h"
#include "policy/policy.h"

#define SECONDS(n) ((int64_t)(n)*INT64_C(1000000000))

static struct arena arena;
static struct cluster cluster;
static struct throughput rates;
static struct admission admission;
static struct engine engine;
static struct error err;
static uint64_t id_next;

static void works(int r)
{
    if (r < 0)
        fail_msg("%s", err.text);
}

static void open_engine(const char *place, bool learns)
{
    works(cluster_load(&cluster, &arena, place, &err));
    throughput_init(&rates, &cluster);
    admission_init(&admission, &cluster, &rates);
    struct engine_setup setup = { .cluster = &cluster,
                                  .rates = &rates,
                                  .policy = policy_find("fifo"),
                                  .executor = &engine_copy_nothing,
                                  .job_max = 16,
                                  .seed = 1,
                                  .learns = learns };
    works(engine_init(&engine, &arena, &setup, &err));
    if (learns)
        admission_learn(&admission, engine.state.view.rates, &engine.state.rates);
    id_next = 1;
}

static int setup(void **state)
{
    arena_init(&arena, 0);
    return 0;
}

static int teardown(void **state)
{
    engine_release(&engine);
    admission_release(&admission);
    arena_release(&arena);
    return 0;
}

static job_id submit(struct job_spec spec, bool held)
{
    struct job job;
    spec.id = id_next++;
    works(admission_make_job(&admission, &spec, &job, &err));
    if (held)
        job.state = JOB_HELD;
    struct event event = { .kind = EVENT_SUBMITTED, .job = JOB_NONE, .spec = &job };
    assert_true(engine_replay(&engine, &event));
    if (held) {
        struct event hold = { .kind = EVENT_HELD,
                              .job = event.job,
                              .generation = engine.state.jobs[event.job].generation };
        if (engine.state.jobs[event.job].state != JOB_HELD)
            assert_true(engine_replay(&engine, &hold));
    }
    return event.job;
}

/* --- one future ---------------------------------------------------------------------------- */

static double works_s[8]; /* by public id */
static const struct job *arrival;

static void tell_truth(void *context, const struct view *view, job_id id,
                       struct sim_truth *ret_truth)
{
    ret_truth->steps = works_s[view->jobs[id].id];
}

static const struct job *next_arrival(void *context)
{
    const struct job *job = arrival;
    arrival = NULL;
    return job;
}

/*
 *     GPU 0   1 1 1 1 1 1 1 1 1 1 2 2 2 2 2 3 3 3 5
 *     GPU 1                       2 2 2 2 2   4   5
 *             0                   100       150   180  190      200
 */
static void times_and_figures_are_those_worked_out_by_hand(void **state)
{
    struct replicate replicate;
    struct job late;
    open_engine("1xv100:2", false);
    job_id first = submit((struct job_spec){ .gpus = 1, .steps = 1 }, false);
    job_id second = submit((struct job_spec){ .gpus = 2, .steps = 1 }, false);
    job_id third = submit((struct job_spec){ .gpus = 1, .steps = 1 }, true);
    job_id last = submit((struct job_spec){ .gpus = 2, .steps = 1 }, true);
    engine_adopt(&engine);
    engine.wake_ns = 0;
    works(admission_make_job(
        &admission,
        &(struct job_spec){
            .id = id_next, .gpus = 1, .steps = 1, .submit_ns = SECONDS(160) },
        &late, &err));
    arrival = &late;
    memcpy(works_s, (double[]){ 0, 100, 50, 30, 10, 10 }, 6 * sizeof *works_s);
    const struct replicate_release releases[] = {
        { .job = last,
          .after = &third,
          .after_count = 1 }, /* not before the one below */
        { .job = third, .at_ns = SECONDS(20), .after = &first, .after_count = 1 },
    };
    struct replicate_setup how = { .more_jobs = 2,
                                   .to_horizon = true,
                                   .releases = releases,
                                   .release_count = 2,
                                   .truth = tell_truth,
                                   .arrival = next_arrival };
    works(replicate_init(&replicate, &engine, &how, &err));
    works(replicate_begin(&replicate, 1, &err));
    works(replicate_play(&replicate, SECONDS(200), 1000, &err));
    const struct {
        job_id job;
        int64_t start_s, end_s;
    } wanted[] = {
        { first, 0, 100 }, { second, 100, 150 }, { third, 150, 180 }, { last, 180, 190 }
    };
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(replicate.starts[wanted[i].job], SECONDS(wanted[i].start_s));
        assert_int_equal(replicate.ends[wanted[i].job], SECONDS(wanted[i].end_s));
    }
    const struct replicate_figures *figures = &replicate.figures;
    assert_int_equal(figures->jobs, 5);
    assert_int_equal(figures->finished, 5);
    assert_int_equal(figures->preemptions, 0);
    assert_near(figures->waiting_s, 100 + 50, 1e-6);
    assert_near(figures->live_s, 100 + 150 + 80 + 10 + 10, 1e-6);
    assert_near(figures->held_gpu_s, 100 + 2 * 50 + 30 + 10 + 2 * 10, 1e-6);
    assert_near(figures->gpu_s, 400, 1e-6);
    replicate_release(&replicate);
}

static void a_job_that_waits_for_a_time_alone_is_released_then(void **state)
{
    struct replicate replicate;
    open_engine("1xv100:2", false);
    job_id held = submit((struct job_spec){ .gpus = 1, .steps = 1 }, true);
    engine_adopt(&engine);
    works_s[1] = 7;
    const struct replicate_release release = { .job = held, .at_ns = SECONDS(1000) };
    struct replicate_setup how = { .releases = &release,
                                   .release_count = 1,
                                   .truth = tell_truth };
    works(replicate_init(&replicate, &engine, &how, &err));
    for (uint32_t round = 0; round < 2; round++) { /* as often as it is begun */
        works(replicate_begin(&replicate, 1, &err));
        works(replicate_play(&replicate, SECONDS(5000), 1000, &err));
        assert_int_equal(replicate.starts[held], SECONDS(1000));
        assert_int_equal(replicate.ends[held], SECONDS(1007));
        assert_int_equal(replicate.awaited_count, 0);
    }
    works(replicate_begin(&replicate, 1, &err));
    works(replicate_play(&replicate, SECONDS(999), 1000, &err));
    assert_true(replicate.starts[held] == REPLICATE_NOT_YET);
    assert_int_equal(replicate.awaited_count, 1);
    replicate_release(&replicate);
}

/* --- a snapshot stands alone ------------------------------------------------------------------ */

static struct engine_snapshot snapshot; /* which points into itself */

static void take(void)
{
    struct engine_copy_setup how = { 0 };
    works(engine_snapshot_take(&snapshot, &engine, &how, &err));
}

static void nodes_of_a_job_are_those_when_it_was_taken(void **state)
{
    open_engine("4xv100:2", false);
    job_id job = submit(
        (struct job_spec){
            .gpus = 2, .steps = 1, .nodelist = "n2", .within = "n1,n2,n3" },
        false);
    job_id like = submit(
        (struct job_spec){
            .gpus = 2, .steps = 1, .nodelist = "n2", .within = "n1,n2,n3" },
        false);
    struct node_set *set = engine.state.jobs[job].set;
    assert_non_null(set);
    take();
    struct node_set *copy = snapshot.engine.state.jobs[job].set;
    assert_true(copy != set && snapshot.engine.state.jobs[like].set == copy);
    bits_clear(&set->allowed, 2);
    bits_clear(&set->must, 2);
    bits_set(&set->allowed, 0);
    set->words[WORDS_NODELIST][1] = 'x';
    assert_true(node_set_has(copy, 2) && !node_set_has(copy, 0));
    assert_true(bits_test(&copy->must, 2));
    assert_string_equal(copy->words[WORDS_NODELIST], "n2");
    assert_null(copy->words[WORDS_EXCLUDE]);
    uint32_t holders = set->job_count;
    engine_snapshot_release(&snapshot); /* its jobs held nothing here */
    assert_int_equal(set->job_count, holders);
}

static void rates_are_those_learned_when_it_was_taken(void **state)
{
    struct rate_place place = { 0, 1, false };
    open_engine("1xv100:2,1xk80:2", true);
    submit((struct job_spec){ .gpus = 1, .name = "train" }, false);
    struct rate_table *table = &engine.state.rates;
    uint32_t kind = engine.state.jobs[0].learned - 1;
    for (uint32_t i = 0; i < 20; i++)
        rate_table_measure(table, kind, place, 4, SECONDS(i), false);
    take();
    const struct rate_table *copy = snapshot.engine.state.view.rates->learned;
    assert_true(copy && copy != table);
    assert_near(rate_table_figure(copy, kind, place).rate, 4, 1e-9);
    for (uint32_t i = 0; i < 200; i++)
        rate_table_measure(table, kind, place, 40, SECONDS(30 + i), false);
    assert_true(rate_table_figure(table, kind, place).rate > 20);
    assert_near(rate_table_figure(copy, kind, place).rate, 4, 1e-9);
    engine_snapshot_release(&snapshot);
}

RUN_CASES(CASE(times_and_figures_are_those_worked_out_by_hand),
          CASE(a_job_that_waits_for_a_time_alone_is_released_then),
          CASE(nodes_of_a_job_are_those_when_it_was_taken),
          CASE(rates_are_those_learned_when_it_was_taken));
