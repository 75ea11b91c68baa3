/* When jobs will start: from a moment of a simulation, under every policy that is shown to users. */
#include "support/cases.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "forecast/arrivals.h"
#include "forecast/start_times.h"
#include "model/throughput.h"
#include "policy/policy.h"
#include "predict/run_times.h"
#include "sim/sim.h"

#define DAY_NS INT64_C(86400000000000)

/* Forecasts are made once, with so many jobs waiting; what each case does then. */
struct moment {
    struct run_times times;
    struct arrivals arrivals;
    uint32_t waiting;
    bool made;
    void (*check)(struct moment *moment, const struct engine *engine);
};

static void note(void *self, const struct view *view, const struct event *event)
{
    struct moment *moment = self;
    const struct job *job = &view->jobs[event->job];
    if (event->kind == EVENT_SUBMITTED)
        arrivals_add(&moment->arrivals, job);
    else
        run_times_add(&moment->times, job, run_times_work_s(job, event->steps));
}

static void stepped(void *context, const struct engine *engine)
{
    struct moment *moment = context;
    if (moment->made || engine->state.waiting_count < moment->waiting)
        return;
    moment->made = true;
    moment->check(moment, engine);
}

static void simulate(const char *policy, const char *workload, uint32_t waiting,
                     void (*check)(struct moment *, const struct engine *))
{
    struct error err;
    struct arena arena;
    struct cluster cluster;
    struct throughput rates;
    struct sim_result result;
    struct moment moment = { .waiting = waiting, .check = check };
    run_times_init(&moment.times);
    arena_init(&arena, 0);
    assert_int_equal(cluster_load(&cluster, &arena, "4xv100:8", &err), 0);
    throughput_init(&rates, &cluster);
    throughput_published(&rates, &arena);
    struct sim_setup setup = { .cluster = &cluster,
                               .rates = &rates,
                               .workload = workload,
                               .policy = policy,
                               .seed = 1,
                               .stepped = stepped,
                               .stepped_context = &moment,
                               .observer = { .event = note,
                                             .self = &moment,
                                             .kinds = 1u << EVENT_SUBMITTED |
                                                      1u << EVENT_FINISHED } };
    if (sim_run(&setup, &result, &err) < 0)
        fail_msg("%s: %s", policy, err.text);
    sim_result_release(&result);
    assert_true(moment.made);
    run_times_release(&moment.times);
    arrivals_release(&moment.arrivals);
    arena_release(&arena);
}

static struct start_times make(const struct start_setup *setup,
                               const struct engine *engine)
{
    struct start_times times;
    struct error err;
    if (start_times_make(setup, engine, NULL, 0, &times, &err) < 0)
        fail_msg("%s", err.text);
    return times;
}

static uint64_t hash_jobs(const struct engine *engine)
{
    const struct state *state = &engine->state;
    uint64_t hash = hash_bytes(HASH_BYTES_START, state->jobs,
                               state->job_count * sizeof *state->jobs);
    hash = hash_bytes(hash, state->seats, state->seat_used * sizeof *state->seats);
    return hash_bytes(hash, state->free.rooms,
                      state->view.cluster->node_count * sizeof *state->free.rooms);
}

static void check_order(struct moment *moment, const struct engine *engine)
{
    const struct start_setup setup = { .times = &moment->times,
                                       .arrivals = &moment->arrivals,
                                       .horizon_ns = DAY_NS / 4,
                                       .replicates = 8,
                                       .seed = 1 };
    uint64_t before = hash_jobs(engine);
    int64_t wake_ns = engine->wake_ns;
    struct start_times times = make(&setup, engine);
    struct start_times again = make(&setup, engine);
    assert_true(hash_jobs(engine) == before && engine->wake_ns == wake_ns);
    assert_int_equal(times.count, engine->state.live_count);
    assert_int_equal(times.count, again.count);
    assert_memory_equal(times.jobs, again.jobs, times.count * sizeof *times.jobs);
    for (uint32_t i = 0; i < times.count; i++) {
        const struct job_times *job = &times.jobs[i];
        assert_true(i == 0 || job->id > job[-1].id);
        for (uint32_t q = 0; q < QUANTILE_COUNT; q++) {
            assert_true(job->start_ns[q] >= times.made_ns);
            assert_true(q == 0 || job->start_ns[q] >= job->start_ns[q - 1]);
            assert_true(q == 0 || job->end_ns[q] >= job->end_ns[q - 1]);
            assert_true(job_holds_seats(&engine->state.jobs[job->slot]) ||
                        job->end_ns[q] >= job->start_ns[q]);
        }
        assert_true(job->starts_later <= 1 && job->ends_later >= 0);
        assert_true(job->basis_count >= RUN_TIMES_ENOUGH);
    }
    start_times_release(&times);
    start_times_release(&again);
}

static void forecasts_are_in_order_and_change_nothing(void **state)
{
    static const char *const policies[] = { "fifo", "fifo-backfill", "sjf",   "las",
                                            "srtf", "xion",          "berth", "fitgpp",
                                            "slaq", "gavel-las" };
    for (uint32_t i = 0; i < sizeof policies / sizeof *policies; i++)
        simulate(policies[i], "xion:gpus=32,load=1.2,jobs=300", 8, check_order);
}

static void check_none(struct moment *moment, const struct engine *engine)
{
    struct run_times none;
    run_times_init(&none);
    const struct start_setup setup = { .times = &none, .horizon_ns = DAY_NS };
    struct start_times times = make(&setup, engine);
    assert_int_equal(times.count, 0);
    start_times_release(&times);
    run_times_release(&none);
}

static void without_finished_jobs_nothing_is_said(void **state)
{
    simulate("fifo", "xion:gpus=32,load=1.2,jobs=300", 8, check_none);
}

static void check_alike(struct moment *moment, const struct engine *engine)
{
    struct run_times alike;
    run_times_init(&alike);
    for (uint32_t i = 0; i < 10; i++)
        run_times_add(&alike, &(struct job){ .gpus = 3, .rate_best_per_s = 1 }, 1e5);
    const struct start_setup setup = { .times = &alike,
                                       .horizon_ns = 400 * DAY_NS,
                                       .sizes_only = true };
    struct start_times times = make(&setup, engine);
    assert_true(times.count > 0);
    for (uint32_t i = 0; i < times.count; i++) {
        const struct job_times *job = &times.jobs[i];
        assert_true(job->start_ns[QUANTILE_10] == job->start_ns[QUANTILE_90]);
        assert_true(job->end_ns[QUANTILE_10] == job->end_ns[QUANTILE_90]);
        assert_string_equal(job->basis, "all");
    }
    start_times_release(&times);
    run_times_release(&alike);
}

static void if_all_jobs_run_equally_long_there_is_one_future(void **state)
{
    simulate("fifo", "xion:gpus=32,load=1.2,jobs=300", 8, check_alike);
}

static void check_budget(struct moment *moment, const struct engine *engine)
{
    struct start_setup setup = { .times = &moment->times,
                                 .arrivals = &moment->arrivals,
                                 .horizon_ns = 4 * DAY_NS,
                                 .event_max = START_REPLICATES * 20,
                                 .starts_only = true,
                                 .seed = 1 };
    struct start_times few = make(&setup, engine);
    setup.event_max = 0;
    struct start_times all = make(&setup, engine);
    assert_true(few.event_count < START_REPLICATES * 60);
    assert_true(few.horizon_ns < all.horizon_ns);
    assert_true(all.horizon_ns == all.made_ns + 4 * DAY_NS);
    assert_int_equal(few.count, all.count);
    for (uint32_t i = 0; i < few.count; i++) {
        assert_false(job_holds_seats(&engine->state.jobs[few.jobs[i].slot]));
        assert_true(few.jobs[i].starts_later >= all.jobs[i].starts_later);
        for (uint32_t q = 0; q < QUANTILE_COUNT; q++)
            assert_true(few.jobs[i].start_ns[q] == TIME_LATER ||
                        few.jobs[i].start_ns[q] == all.jobs[i].start_ns[q]);
    }
    start_times_release(&few);
    start_times_release(&all);
}

static void where_events_do_not_suffice_the_rest_is_later(void **state)
{
    simulate("fifo", "xion:gpus=32,load=1.2,jobs=300", 8, check_budget);
    simulate("las", "xion:gpus=32,load=1.2,jobs=300", 8, check_budget);
}

static void check_three(struct moment *moment, const struct engine *engine)
{
    struct run_times three;
    run_times_init(&three);
    for (uint32_t i = 0; i < 3; i++)
        run_times_add(&three, &engine->state.jobs[0], 100);
    const struct start_setup setup = { .times = &three, .horizon_ns = DAY_NS };
    struct start_times times = make(&setup, engine);
    assert_int_equal(times.count, 0);
    start_times_release(&times);
    run_times_release(&three);
}

static void by_three_finished_jobs_nothing_is_said(void **state)
{
    simulate("las", "xion:gpus=32,load=1.2,jobs=300", 8, check_three);
}

static int decide_nothing(void *self, const struct view *view, struct plan *plan,
                          struct arena *scratch, struct error *err)
{
    return error_set(err, -EINVAL, "the solver found no shares");
}

static void check_failing(struct moment *moment, const struct engine *engine)
{
    struct start_setup setup = { .times = &moment->times, .horizon_ns = DAY_NS };
    struct policy failing = *engine->policy;
    struct engine twin = *engine;
    struct start_times times;
    struct error err;
    failing.decide = decide_nothing;
    twin.policy = &failing;
    uint64_t before = hash_jobs(engine);
    assert_int_equal(start_times_make(&setup, &twin, NULL, 0, &times, &err), -EINVAL);
    assert_non_null(strstr(err.text, "the solver found no shares"));
    assert_int_equal(times.count, 0);
    assert_null(times.jobs);
    assert_true(hash_jobs(engine) == before);
}

static void a_policy_that_fails_in_a_future_gives_no_forecast(void **state)
{
    simulate("fifo", "xion:gpus=32,load=1.2,jobs=300", 8, check_failing);
}

/* As for berthd: in so many events, of whatever queue. */
static void check_long_queue(struct moment *moment, const struct engine *engine)
{
    const uint64_t event_max = 200000;
    struct start_setup setup = { .times = &moment->times,
                                 .arrivals = &moment->arrivals,
                                 .horizon_ns = 4 * DAY_NS,
                                 .event_max = event_max,
                                 .starts_only = true,
                                 .seed = 1 };
    struct start_times times = make(&setup, engine);
    uint32_t later = 0;
    assert_int_equal(times.count, engine->state.waiting_count);
    assert_true(times.count >= 20000);
    assert_true(times.event_count < 2 * event_max);
    assert_true(times.horizon_ns < times.made_ns + 4 * DAY_NS);
    for (uint32_t i = 0; i < times.count; i++)
        later += times.jobs[i].start_ns[QUANTILE_90] == TIME_LATER;
    assert_true(later > 0 && later <= times.count);
    start_times_release(&times);
}

static void of_twenty_thousand_waiting_jobs_most_start_later(void **state)
{
    simulate("fifo", "synthetic:jobs=22000,load=100", 20000, check_long_queue);
}

static void check_unknown_length(struct moment *moment, const struct engine *engine)
{
    const struct start_setup setup = { .times = &moment->times,
                                       .arrivals = &moment->arrivals,
                                       .horizon_ns = 4 * DAY_NS,
                                       .replicates = 8,
                                       .seed = 1 };
    struct start_times times = make(&setup, engine);
    assert_int_equal(times.count, engine->state.live_count);
    for (uint32_t i = 0; i < times.count; i++) {
        const struct job *job = &engine->state.jobs[times.jobs[i].slot];
        assert_true(job->steps_total <= 0);
        assert_true(strcmp(times.jobs[i].basis, "estimate") != 0);
        assert_true(times.jobs[i].end_ns[QUANTILE_10] > times.made_ns);
    }
    start_times_release(&times);
}

static void jobs_of_unknown_length_are_forecast_by_those_that_ended(void **state)
{
    static const char *const policies[] = { "fifo-backfill", "las", "xion", "berth" };
    for (uint32_t i = 0; i < sizeof policies / sizeof *policies; i++)
        simulate(policies[i], "mixed:jobs=400,load=4,elastic_share=0,unknown_share=1",
                 8, check_unknown_length);
}

RUN_CASES(TEST(by_three_finished_jobs_nothing_is_said),
          TEST(a_policy_that_fails_in_a_future_gives_no_forecast),
          TEST(of_twenty_thousand_waiting_jobs_most_start_later),
          TEST(jobs_of_unknown_length_are_forecast_by_those_that_ended),
          TEST(forecasts_are_in_order_and_change_nothing),
          TEST(without_finished_jobs_nothing_is_said),
          TEST(if_all_jobs_run_equally_long_there_is_one_future),
          TEST(where_events_do_not_suffice_the_rest_is_later));
