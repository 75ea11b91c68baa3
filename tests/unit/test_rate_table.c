/* Rates that are learned: by kind, type and size, and what is estimated of the others. */
#include "support/world.h"

#include <math.h>
#include <stdio.h>

#include "base/rng.h"
#include "model/rate_table.h"
#include "model/state_rates.h"
#include "predict/rate_completion.h"

#define V100 0
#define P100 1
#define K80 2

static uint32_t changed_count;

static void count_change(void *context, uint32_t kind)
{
    changed_count++;
    if (context)
        state_mark_kind(context, kind);
}

static int setup(void **state)
{
    static struct world w;
    world_init_as(&w, "1xv100:2,1xp100:2,1xk80:4");
    state_learn(&w.state, &w.arena);
    changed_count = 0;
    *state = &w;
    return 0;
}

static int teardown(void **state)
{
    world_release(*state);
    return 0;
}

static struct rate_table *table_of(void **state)
{
    struct world *w = *state;
    return &w->state.rates;
}

static void measure(struct rate_table *rates, const char *name, uint32_t type,
                    double per_s, uint32_t times)
{
    uint32_t kind = rate_table_add_kind(rates, name, 0);
    for (uint32_t i = 0; i < times; i++)
        rate_table_measure(rates, kind, (struct rate_place){ type, 1, false }, per_s,
                           SECONDS(i), false);
}

static struct rate_figure figure_of(struct rate_table *rates, const char *name,
                                    uint32_t type)
{
    rate_completion_update(rates, count_change, NULL);
    return rate_table_figure(rates, rate_table_find_kind(rates, name),
                             (struct rate_place){ type, 1, false });
}

/* --- what was measured -------------------------------------------------------------- */

static void what_was_measured_is_the_mean_and_says_so(void **state)
{
    struct rate_table *rates = table_of(state);
    measure(rates, "a", V100, 10, 5);
    struct rate_figure figure = figure_of(rates, "a", V100);
    assert_int_equal(figure.basis, RATE_MEASURED);
    assert_int_equal(figure.count, 5);
    assert_near(figure.rate, 10, 1e-9);
    assert_true(figure.low < 10 && figure.low > 8);
    assert_true(figure.high > 10 && figure.high < 12);
    assert_int_equal(figure_of(rates, "a", K80).basis, RATE_UNKNOWN);
}

static void a_hiccup_counts_little(void **state)
{
    struct rate_table *rates = table_of(state);
    measure(rates, "a", V100, 10, 20);
    measure(rates, "a", V100, 0.1, 1); /* a checkpoint */
    assert_near(figure_of(rates, "a", V100).rate, 10, 0.3);
}

static void a_change_that_stays_is_followed(void **state)
{
    struct rate_table *rates = table_of(state);
    measure(rates, "a", V100, 10, 200);
    measure(rates, "a", V100, 5, 12);
    assert_near(figure_of(rates, "a", V100).rate, 5, 1);
    measure(rates, "a", V100, 5, 60);
    assert_near(figure_of(rates, "a", V100).rate, 5, 0.1);
}

static void a_first_interval_counts_until_there_is_another(void **state)
{
    struct rate_table *rates = table_of(state);
    uint32_t kind = rate_table_add_kind(rates, "a", 0);
    struct rate_place place = { V100, 1, false };
    rate_table_measure(rates, kind, place, 1, 0, true);
    assert_near(figure_of(rates, "a", V100).rate, 1, 1e-9);
    assert_int_equal(rates->kinds[kind].steady, 0);
    rate_table_measure(rates, kind, place, 10, 0, false);
    assert_int_equal(rates->kinds[kind].steady, 1 << V100);
    rate_table_measure(rates, kind, place, 1, 0, true);
    assert_near(figure_of(rates, "a", V100).rate, 10, 1e-9);
}

static void other_sizes_follow_from_their_neighbours(void **state)
{
    struct rate_table *rates = table_of(state);
    uint32_t kind = rate_table_add_kind(rates, "a", 0);
    const struct rate_place one = { V100, 1, false };
    const struct rate_place four = { V100, 4, false };
    rate_table_measure(rates, kind, one, 10, 0, false);
    rate_table_measure(rates, kind, four, 34, 0, false);
    rate_completion_update(rates, count_change, NULL);
    struct rate_place place = { V100, 2, false };
    assert_near(rate_table_per_s(rates, kind, place), 18, 1e-9);
    place.gpus = 8;
    assert_near(rate_table_per_s(rates, kind, place), 68, 1e-9);
    place = (struct rate_place){ V100, 4, true }; /* as consolidated ones */
    assert_near(rate_table_per_s(rates, kind, place), 34, 1e-9);
    assert_int_equal(rate_table_figure(rates, kind, place).basis, RATE_ESTIMATED);
}

/* --- what is estimated -------------------------------------------------------------- */

static void types_are_alike_until_something_tells_them_apart(void **state)
{
    struct rate_table *rates = table_of(state);
    measure(rates, "a", V100, 10, 5);
    uint32_t kind = rate_table_find_kind(rates, "a");
    rate_completion_update(rates, count_change, NULL);
    double k80 = rate_table_per_s(rates, kind, (struct rate_place){ K80, 1, false });
    assert_near(k80, 10, 0.5);
    assert_true(k80 > 10); /* of two as good, the unknown one is tried */
}

static void a_kind_gains_as_kinds_like_it_do(void **state)
{
    struct rate_table *rates = table_of(state);
    const double speeds[2][3] = { { 100, 50, 20 }, { 10, 5, 2 } };
    for (uint32_t t = 0; t < 3; t++)
        measure(rates, "a", t, speeds[0][t], 5);
    measure(rates, "b", V100, speeds[1][V100], 5);
    struct rate_figure k80 = figure_of(rates, "b", K80);
    assert_int_equal(k80.basis, RATE_ESTIMATED);
    assert_int_equal(k80.count, 0);
    assert_true(k80.rate > 1.5 && k80.rate < 4);
    assert_true(k80.low < 2 && k80.high > 2);
    measure(rates, "b", K80, 2, 1);
    assert_int_equal(figure_of(rates, "b", K80).basis, RATE_MEASURED);
}

static void a_kind_without_reports_knows_which_types_are_fast(void **state)
{
    struct world *w = *state;
    struct rate_table *rates = table_of(state);
    for (uint32_t t = 0; t < 3; t++)
        measure(rates, "a", t, t == V100 ? 10 : 5, 5);
    struct job job = { .kind = KIND_NONE, .gpus = 1, .step_s = 0.5, .pace = 1 };
    job.learned = rate_table_add_kind(rates, "new", 0) + 1;
    rate_completion_update(rates, count_change, NULL);
    const struct throughput *table = w->state.view.rates;
    assert_near(throughput_rate(table, &job, V100, 1, false), 2, 0.01);
    assert_near(throughput_rate(table, &job, K80, 1, false), 1, 0.15);
}

/* Kinds of three sorts, of which a third of the cells was not measured. */
static void most_estimates_are_near_and_in_their_intervals(void **state)
{
    struct rate_table *rates = table_of(state);
    const double sorts[3][3] = { { 1, 0.5, 0.2 }, { 1, 0.9, 0.6 }, { 1, 0.3, 0.1 } };
    struct rng rng;
    double base[30];
    bool known[30][3];
    rng_init(&rng, 7, "estimates");
    for (uint32_t k = 0; k < 30; k++) {
        char name[16];
        snprintf(name, sizeof name, "kind-%u", k);
        base[k] = exp(rng_normal(&rng));
        uint32_t left_out = rng_below(&rng, 3);
        for (uint32_t t = 0; t < 3; t++) {
            known[k][t] = t != left_out;
            if (known[k][t])
                measure(rates, name, t, base[k] * sorts[k % 3][t], 3);
        }
    }
    double log_error = 0;
    uint32_t inside = 0;
    for (uint32_t k = 0; k < 30; k++)
        for (uint32_t t = 0; t < 3; t++) {
            char name[16];
            snprintf(name, sizeof name, "kind-%u", k);
            double truth = base[k] * sorts[k % 3][t];
            struct rate_figure figure = figure_of(rates, name, t);
            assert_int_equal(figure.basis,
                             known[k][t] ? RATE_MEASURED : RATE_ESTIMATED);
            if (known[k][t])
                continue;
            log_error += fabs(log(figure.rate / truth));
            inside += truth >= figure.low && truth <= figure.high;
        }
    assert_true(log_error / 30 < 0.35); /* equal rates for all types: 0.9 */
    assert_true(inside >= 20);
}

static void small_changes_are_not_passed_on(void **state)
{
    struct rate_table *rates = table_of(state);
    measure(rates, "a", V100, 10, 5);
    rate_completion_update(rates, count_change, NULL);
    assert_int_equal(changed_count, 1);
    measure(rates, "a", V100, 10.3, 20);
    rate_completion_update(rates, count_change, NULL);
    assert_int_equal(changed_count, 1);
    measure(rates, "a", V100, 13, 40);
    rate_completion_update(rates, count_change, NULL);
    assert_int_equal(changed_count, 2);
}

/* --- room ----------------------------------------------------------------------------- */

static void the_kind_used_least_lately_makes_room(void **state)
{
    struct rate_table *rates = table_of(state);
    rates->kind_max = 3;
    uint32_t a = rate_table_add_kind(rates, "a", 1);
    rate_table_add_kind(rates, "b", 2);
    rate_table_add_kind(rates, "c", 3);
    rate_table_enter(rates, a, 1);
    assert_int_not_equal(rate_table_add_kind(rates, "d", 4), KIND_NONE);
    assert_int_equal(rate_table_find_kind(rates, "b"), KIND_NONE);
    assert_int_equal(rate_table_find_kind(rates, "a"), a); /* it has a job */
    rate_table_enter(rates, rate_table_find_kind(rates, "c"), 5);
    rate_table_enter(rates, rate_table_find_kind(rates, "d"), 5);
    assert_int_equal(rate_table_add_kind(rates, "e", 6), KIND_NONE);
}

static void ten_thousand_kinds_on_all_types_take_20_mb(void **state)
{
    size_t bytes = sizeof(struct rate_kind) * RATE_KINDS_MAX +
                   sizeof(struct rate_cell) * 16 * RATE_KINDS_MAX +
                   2 * sizeof(struct map_entry) * RATE_KINDS_MAX + /* half full */
                   sizeof(uint32_t) * RATE_KINDS_MAX;
    assert_true(RATE_CELLS_MAX >= 16 * RATE_KINDS_MAX);
    assert_true(bytes <= 20 * 1000 * 1000);
}

static void a_stored_cell_that_makes_no_sense_is_not_taken(void **state)
{
    struct rate_table *rates = table_of(state);
    struct rate_cell cell = { .mean = 1, .gpus = 1, .count = 3 };
    assert_true(rate_table_restore(rates, "a", &cell));
    cell.mean = NAN;
    assert_false(rate_table_restore(rates, "b", &cell));
    cell = (struct rate_cell){ .mean = 1, .gpus = 1, .count = 3, .type = 9 };
    assert_false(rate_table_restore(rates, "b", &cell));
    cell = (struct rate_cell){ .mean = 1, .gpus = 0, .count = 3 };
    assert_false(rate_table_restore(rates, "b", &cell));
}

/* --- what the state learns ---------------------------------------------------------------- */

static job_id run_on(struct world *w, const char *kind, uint32_t type)
{
    struct job job = { .gpus = 1, .types = 1u << type, .steps_total = 1000, .pace = 1 };
    job.learned = rate_table_add_kind(&w->state.rates, kind, 0) + 1;
    return world_running(w, job);
}

/* So many reports, a second apart; 'age_ns' old. */
static void report(struct world *w, job_id job, double per_s, uint32_t times)
{
    double steps = w->state.jobs[job].steps;
    for (uint32_t i = 0; i < times; i++) {
        world_pass(w, SECONDS(1));
        steps += per_s;
        world_apply(w, (struct event){ .kind = EVENT_PROGRESS,
                                       .job = job,
                                       .steps = steps,
                                       .rate_per_s = per_s,
                                       .loss = NAN,
                                       .measured = true });
    }
    rate_completion_update(&w->state.rates, count_change, &w->state);
}

static uint32_t rated_count;

static void count_rated(void *context, job_id job)
{
    rated_count++;
}

static void reports_teach_the_kind_and_the_next_job_starts_with_it(void **state)
{
    struct world *w = *state;
    job_id first = run_on(w, "a", K80);
    report(w, first, 3, 6);
    job_id second =
        world_queued(w, (struct job){ .gpus = 1,
                                      .types = 7,
                                      .pace = 1,
                                      .learned = w->state.jobs[first].learned });
    struct job *job = &w->state.jobs[second];
    assert_near(throughput_rate(w->state.view.rates, job, K80, 1, false), 3, 1e-6);
    report(w, first, 6, 30);
    rated_count = 0;
    state_rate_jobs(&w->state, count_rated, NULL);
    assert_int_equal(rated_count, 2);
    assert_near(job->rate_best_per_s, 6 * 1.02, 0.8); /* of a type not known */
}

static void the_types_of_a_job_of_its_own_pace_are_compared_by_itself(void **state)
{
    struct world *w = *state;
    job_id usual = run_on(w, "a", V100);
    report(w, usual, 10, 40);
    job_id slow = run_on(w, "a", V100);
    report(w, slow, 5, 6);
    assert_near(w->state.jobs[slow].pace, 0.5, 0.05);
    assert_near(
        throughput_rate(w->state.view.rates, &w->state.jobs[slow], V100, 1, false), 5,
        0.8);
}

static void a_job_that_shares_its_gpus_teaches_nothing(void **state)
{
    struct world *w = *state;
    job_id job = run_on(w, "a", V100);
    w->state.jobs[job].partner = job;
    report(w, job, 10, 6);
    assert_null(rate_table_first_cell(&w->state.rates, w->state.jobs[job].learned - 1));
    w->state.jobs[job].partner = JOB_NONE;
}

static void steps_count_from_when_they_were_made(void **state)
{
    struct world *w = *state;
    job_id job = run_on(w, "a", V100);
    report(w, job, 10, 5);
    world_pass(w, SECONDS(2));
    world_apply(w, (struct event){ .kind = EVENT_PROGRESS,
                                   .job = job,
                                   .steps = 60,
                                   .rate_per_s = 10,
                                   .loss = NAN,
                                   .measured = true,
                                   .age_ns = SECONDS(1) });
    assert_near(job_steps(&w->state.jobs[job], w->state.view.now_ns), 70, 1e-6);
    const struct rate_cell *cell =
        rate_table_first_cell(&w->state.rates, w->state.jobs[job].learned - 1);
    assert_near(exp(cell->mean), 10, 1e-6);
}

static void what_jobs_do_with_a_gpu_is_kept_for_their_kind(void **state)
{
    struct world *w = *state;
    job_id job = run_on(w, "a", V100);
    const struct rate_kind *kind =
        &w->state.rates.kinds[w->state.jobs[job].learned - 1];
    struct event use = { .kind = EVENT_GPU_USE, .job = job, .gpu_mib = 3000 };
    world_apply(w, use);
    assert_int_equal(kind->gpu_mib, 3000);
    assert_true(kind->busy[V100] == 0); /* not told */
    use.gpu_mib = 2000;
    use.gpu_busy = 0.4;
    world_apply(w, use);
    assert_int_equal(kind->gpu_mib, 3000);
    assert_near(kind->busy[V100], 0.4, 1e-6);
    assert_true(kind->busy[K80] == 0);
    rated_count = 0;
    state_rate_jobs(&w->state, count_rated, NULL);
    assert_int_equal(rated_count, 1); /* whom it may share with has changed */
    use.gpu_busy = 0.8;
    world_apply(w, use);
    assert_near(kind->busy[V100], 0.5, 1e-6); /* a job is a part of its kind */
    for (int i = 0; i < 3; i++) {
        use.gpu_busy = (const double[]){ NAN, -1, 2 }[i];
        world_apply(w, use);
    }
    assert_near(kind->busy[V100], 0.5, 1e-6);
}

/* --- what silent gangs send ------------------------------------------------------------------ */

/* Two nodes of each of two types, of which the first is taken to be twice as fast. */
static void use_pairs_of_nodes(struct world *w)
{
    world_release(w);
    world_init_as(w, "2xv100:2,2xk80:2");
    state_learn(&w->state, &w->arena);
    w->state.rates.typical[0] = 1;
    w->state.rates.typical[1] = 0.5;
}

static job_id gang_on(struct world *w, const char *kind, uint32_t type, uint32_t gpus)
{
    struct job job = { .gpus = gpus, .types = 1u << type, .pace = 1 };
    job.learned = rate_table_add_kind(&w->state.rates, kind, 0) + 1;
    return world_running(w, job);
}

static void send(struct world *w, job_id job, double per_s, uint32_t seconds)
{
    double bytes = w->state.jobs[job].sent_bytes;
    for (uint32_t i = 0; i < seconds; i += 10) {
        world_pass(w, SECONDS(10));
        bytes += 10 * per_s;
        world_apply(w, (struct event){ .kind = EVENT_SENT,
                                       .job = job,
                                       .sends_per_s = per_s,
                                       .sent_bytes = bytes });
    }
}

static void types_are_compared_by_what_silent_gangs_send(void **state)
{
    struct world *w = *state;
    use_pairs_of_nodes(w);
    job_id fast = gang_on(w, "a", 0, 4);
    uint32_t kind = w->state.jobs[fast].learned - 1;
    send(w, fast, 8e6, 1000);
    assert_true(rate_table_speed(&w->state.rates, kind, 0) == 1); /* beside what? */

    job_id slow = gang_on(w, "a", 1, 4);
    send(w, slow, 1e6, 100);
    double early = rate_table_speed(&w->state.rates, kind, 0) /
                   rate_table_speed(&w->state.rates, kind, 1);
    send(w, slow, 1e6, 1000);
    double late = rate_table_speed(&w->state.rates, kind, 0) /
                  rate_table_speed(&w->state.rates, kind, 1);
    assert_true(early > 2 && early < late);
    assert_true(late > 5 && late < 8); /* eight times, by bytes; twice, by the types */
    const struct job *job = &w->state.jobs[slow];
    assert_near(throughput_rate(w->state.view.rates, job, 0, 4, false) /
                    throughput_rate(w->state.view.rates, job, 1, 4, false),
                late, 1e-6);
    struct rate_figure figure =
        rate_table_figure(&w->state.rates, kind, (struct rate_place){ 1, 4, false });
    assert_int_equal(figure.basis, RATE_ESTIMATED);
    assert_true(figure.high / figure.low > 3);       /* and how wide */
    assert_false(state_knows_rate(&w->state, slow)); /* of steps nothing is known */
}

static void no_bytes_outweigh_a_report(void **state)
{
    struct world *w = *state;
    use_pairs_of_nodes(w);
    job_id job = gang_on(w, "a", 0, 4);
    uint32_t kind = w->state.jobs[job].learned - 1;
    report(w, job, 10, 5);
    send(w, job, 8e6, 1000);
    assert_int_equal(w->state.rates.kinds[kind].sent_gpus, 0);
    assert_false(rate_table_count_sent(&w->state.rates, kind,
                                       (struct rate_place){ 1, 4, false }, 1e6, 0));
    struct rate_figure figure =
        rate_table_figure(&w->state.rates, kind, (struct rate_place){ 0, 4, false });
    assert_int_equal(figure.basis, RATE_MEASURED);
    assert_near(figure.rate, 10, 1e-6);
}

static void bytes_of_jobs_on_one_node_tell_nothing(void **state)
{
    struct world *w = *state;
    use_pairs_of_nodes(w);
    job_id job = gang_on(w, "a", 0, 2);
    send(w, job, 8e6, 1000);
    assert_int_equal(w->state.rates.kinds[w->state.jobs[job].learned - 1].sent_gpus, 0);
}

static void what_was_sent_is_put_back_if_it_makes_sense(void **state)
{
    struct world *w = *state;
    use_pairs_of_nodes(w);
    struct rate_table *rates = &w->state.rates;
    struct rate_sent fast = { .mean = 16, .count = 32 },
                     slow = { .mean = 14, .count = 32 };
    struct rate_sent wrong = { .mean = NAN, .count = 32 };
    rate_table_restore_sent(rates, "a", (struct rate_place){ 0, 4, false }, &fast);
    rate_table_restore_sent(rates, "a", (struct rate_place){ 1, 4, false }, &wrong);
    rate_table_restore_sent(rates, "a", (struct rate_place){ 1, 8, false }, &slow);
    uint32_t kind = rate_table_find_kind(rates, "a");
    assert_true(rate_table_speed(rates, kind, 0) == 1);
    rate_table_restore_sent(rates, "a", (struct rate_place){ 1, 4, false }, &slow);
    assert_true(rate_table_speed(rates, kind, 0) > 1.5);
    assert_true(rate_table_speed(rates, kind, 1) < 0.4);
}

RUN_CASES(CASE(what_was_measured_is_the_mean_and_says_so), CASE(a_hiccup_counts_little),
          CASE(a_change_that_stays_is_followed),
          CASE(a_first_interval_counts_until_there_is_another),
          CASE(other_sizes_follow_from_their_neighbours),
          CASE(types_are_alike_until_something_tells_them_apart),
          CASE(a_kind_gains_as_kinds_like_it_do),
          CASE(a_kind_without_reports_knows_which_types_are_fast),
          CASE(most_estimates_are_near_and_in_their_intervals),
          CASE(small_changes_are_not_passed_on),
          CASE(the_kind_used_least_lately_makes_room),
          CASE(ten_thousand_kinds_on_all_types_take_20_mb),
          CASE(a_stored_cell_that_makes_no_sense_is_not_taken),
          CASE(reports_teach_the_kind_and_the_next_job_starts_with_it),
          CASE(the_types_of_a_job_of_its_own_pace_are_compared_by_itself),
          CASE(a_job_that_shares_its_gpus_teaches_nothing),
          CASE(what_jobs_do_with_a_gpu_is_kept_for_their_kind),
          CASE(types_are_compared_by_what_silent_gangs_send),
          CASE(no_bytes_outweigh_a_report),
          CASE(bytes_of_jobs_on_one_node_tell_nothing),
          CASE(what_was_sent_is_put_back_if_it_makes_sense),
          CASE(steps_count_from_when_they_were_made));
