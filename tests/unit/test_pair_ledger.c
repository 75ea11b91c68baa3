/* What jobs that share GPUs gain and lose, with rates that are known: 0.6 of a step a second. */
#include "support/engine_run.h"
#include "support/world.h"

#include <math.h>
#include <string.h>

#include "metrics/ledger.h"
#include "metrics/summary.h"

/* A ledger that is told what happens in a world, and what it has told itself. */
struct books {
    struct world *w;
    struct pair_ledger ledger;
    struct pair_entry entry; /* the last */
    uint32_t told;
};

static void hear_entry(void *context, const struct pair_entry *entry)
{
    struct books *books = context;
    books->entry = *entry;
    books->told++;
}

static void open_books(struct books *books, struct world *w)
{
    *books = (struct books){ .w = w };
    pair_ledger_init(&books->ledger, &w->arena, &w->state.view);
    books->ledger.observe = hear_entry;
    books->ledger.context = books;
}

static void happen(struct books *books, struct event event)
{
    struct world *w = books->w;
    event.at_ns = w->state.view.now_ns;
    event.generation = w->state.jobs[event.job].generation;
    event.attempt = w->state.jobs[event.job].attempt;
    assert_true(state_apply(&w->state, &event));
    pair_ledger_event(&books->ledger, &w->state.view, &event);
}

static job_id run_alone(struct world *w)
{
    return world_running(w, (struct job){ .gpus = 2, .steps_total = 1000 });
}

/* A job starts beside one that runs; the ledger hears of it. */
static job_id join(struct books *books, job_id host)
{
    struct world *w = books->w;
    job_id id = world_beside(w, host, (struct job){ .gpus = 2, .steps_total = 1000 });
    struct event started = {
        .at_ns = w->state.view.now_ns, .kind = EVENT_STARTED, .job = id, .loaded = true
    };
    pair_ledger_event(&books->ledger, &w->state.view, &started);
    return id;
}

static void recall(struct books *books, job_id job)
{
    happen(books, (struct event){ .kind = EVENT_RECALLED,
                                  .job = job,
                                  .rule = RULE_ROUND,
                                  .wait_saved_ns = -1,
                                  .beneficiary = JOB_NONE });
}

/* It leaves with all of its steps but so many. */
static void leave(struct books *books, job_id job, double lost)
{
    double steps = books->w->state.jobs[job].steps;
    happen(books, (struct event){ .kind = EVENT_STOPPED,
                                  .job = job,
                                  .steps = steps - lost,
                                  .steps_reached = steps,
                                  .rate_per_s = 0.6 });
}

static void come(struct books *books, job_id job)
{
    plan_grant(world_plan(books->w), job, NULL);
    world_carry_out(books->w);
    happen(books, (struct event){ .kind = EVENT_STARTED, .job = job });
}

static struct pair_totals totals(const struct books *books)
{
    struct pair_totals totals;
    pair_ledger_totals(&books->ledger, &books->w->state.view, &totals);
    return totals;
}

static void a_pair_gains_what_both_keep_beyond_one(void **state)
{
    struct books books;
    open_books(&books, *state);
    job_id host = run_alone(books.w);
    world_pass(books.w, SECONDS(10)); /* alone */
    job_id guest = join(&books, host);
    assert_int_equal(books.told, 1);
    world_pass(books.w, SECONDS(100));

    struct pair_entry entry;
    assert_true(pair_ledger_find(&books.ledger, &books.w->state.view, guest, &entry));
    assert_near(pair_entry_kept(&entry, 0), 0.6, 1e-9);
    assert_near(pair_entry_kept(&entry, 1), 0.6, 1e-9);
    assert_near(pair_entry_gained_gpu_s(&entry), 0.2 * 100 * 2, 1e-6);
    struct pair_totals sum = totals(&books);
    assert_int_equal(sum.pairs, 1);
    assert_int_equal(sum.running, 1);
    assert_near(sum.shared_gpu_s, 200, 1e-6);
    assert_near(sum.gained_gpu_s, 40, 1e-6);

    happen(&books, (struct event){ .kind = EVENT_FINISHED, .job = guest, .steps = 60 });
    assert_int_equal(books.entry.to_ns - books.entry.from_ns, SECONDS(100));
    assert_false(pair_ledger_find(&books.ledger, &books.w->state.view, host, &entry));
    world_pass(books.w, SECONDS(100)); /* alone again */
    assert_near(totals(&books).gained_gpu_s, 40, 1e-6);
    assert_near(totals(&books).lost_gpu_s, 0, 0);
    assert_int_equal(totals(&books).running, 0);
    pair_ledger_release(&books.ledger);
}

static void what_was_reported_counts_and_not_what_was_expected(void **state)
{
    struct books books;
    open_books(&books, *state);
    job_id host = run_alone(books.w);
    join(&books, host);
    world_pass(books.w, SECONDS(100));
    happen(&books, (struct event){ .kind = EVENT_PROGRESS,
                                   .job = host,
                                   .steps = 90,
                                   .rate_per_s = 0.9,
                                   .loss = NAN });
    recall(&books, host);
    assert_near(pair_entry_kept(&books.entry, 0), 0.9, 1e-9);
    assert_near(pair_entry_kept(&books.entry, 1), 0.6, 1e-9);
    pair_ledger_release(&books.ledger);
}

static void
a_pair_that_is_slower_than_one_job_alone_gains_less_than_nothing(void **state)
{
    struct books books;
    open_books(&books, *state);
    job_id host = run_alone(books.w);
    job_id guest = join(&books, host);
    world_pass(books.w, SECONDS(50));
    job_id both[2] = { host, guest };
    for (int i = 0; i < 2; i++)
        happen(&books, (struct event){ .kind = EVENT_PROGRESS,
                                       .job = both[i],
                                       .steps = 20,
                                       .rate_per_s = 0.4,
                                       .loss = NAN });
    assert_near(totals(&books).gained_gpu_s, -0.2 * 50 * 2, 1e-6);
    pair_ledger_release(&books.ledger);
}

static void time_counts_only_while_both_make_steps(void **state)
{
    struct books books;
    open_books(&books, *state);
    job_id host = run_alone(books.w);
    job_id guest = join(&books, host);
    world_pass(books.w, SECONDS(10));
    happen(&books,
           (struct event){ .kind = EVENT_LEASE_DONE, .job = guest, .steps = 6 });
    world_pass(books.w, SECONDS(30)); /* it idles */
    happen(&books, (struct event){ .kind = EVENT_RENEWED, .job = guest });
    world_pass(books.w, SECONDS(10));
    recall(&books, guest);
    world_pass(books.w, SECONDS(30)); /* it saves */
    leave(&books, guest, 0);
    assert_int_equal(books.entry.shared_ns, SECONDS(20));
    assert_int_equal(totals(&books).pairs, 1);
    pair_ledger_release(&books.ledger);
}

static void the_stop_that_parts_a_pair_is_its_loss(void **state)
{
    struct books books;
    open_books(&books, *state);
    job_id host = run_alone(books.w);
    job_id guest = join(&books, host);
    world_pass(books.w, SECONDS(100));
    recall(&books, guest);
    world_pass(books.w, SECONDS(5));
    leave(&books, guest, 6); /* 6 steps at 0.6 a second are to be made again */
    assert_near(totals(&books).lost_gpu_s, (5 + 10) * 2, 1e-6);
    world_pass(books.w, SECONDS(1000)); /* it waits, which is not the stop's doing */
    come(&books, guest);
    world_pass(books.w, SECONDS(7));
    happen(&books, (struct event){ .kind = EVENT_LOADED, .job = guest });
    assert_near(totals(&books).lost_gpu_s, (5 + 10 + 7) * 2, 1e-6);
    assert_near((double)books.entry.lost_ns * 1e-9, (5 + 10 + 7) * 2, 1e-6);
    assert_true(books.entry.to_ns >= 0);
    assert_int_equal(books.ledger.busy_count, 0);
    pair_ledger_release(&books.ledger);
}

static void a_pair_that_stops_as_a_whole_loses_nothing_by_sharing(void **state)
{
    struct books books;
    open_books(&books, *state);
    job_id host = run_alone(books.w);
    job_id guest = join(&books, host);
    world_pass(books.w, SECONDS(100));
    recall(&books, guest);
    recall(&books, host);
    world_pass(books.w, SECONDS(5));
    leave(&books, host, 0);
    leave(&books, guest, 0);
    assert_near(totals(&books).lost_gpu_s, 0, 0);
    assert_int_equal(books.ledger.busy_count, 0);
    pair_ledger_release(&books.ledger);
}

static void the_stop_that_forms_a_pair_is_its_loss(void **state)
{
    struct books books;
    open_books(&books, *state);
    job_id host = world_running_on(books.w, 0, (struct job){ .gpus = 2 });
    job_id guest = world_running_on(books.w, 1, (struct job){ .gpus = 2 });
    recall(&books, guest);
    happen(&books, (struct event){ .kind = EVENT_PLACED,
                                   .job = guest,
                                   .seats = view_seats(&books.w->state.view, host),
                                   .seat_count = 1,
                                   .beside = host });
    world_pass(books.w, SECONDS(5));
    leave(&books, guest, 0);
    happen(&books, (struct event){ .kind = EVENT_STARTED, .job = guest });
    assert_int_equal(books.told, 0); /* it loads: they do not share yet */
    world_pass(books.w, SECONDS(7));
    happen(&books, (struct event){ .kind = EVENT_LOADED, .job = guest });
    assert_int_equal(books.told, 1);
    assert_near((double)books.entry.lost_ns * 1e-9, (5 + 7) * 2, 1e-6);
    assert_near(totals(&books).lost_gpu_s, (5 + 7) * 2, 1e-6);
    pair_ledger_release(&books.ledger);
}

static void jobs_that_stop_alone_are_in_no_pair(void **state)
{
    struct books books;
    open_books(&books, *state);
    job_id job = run_alone(books.w);
    recall(&books, job);
    leave(&books, job, 0);
    assert_int_equal(books.told, 0);
    assert_near(totals(&books).lost_gpu_s, 0, 0);
    pair_ledger_release(&books.ledger);
}

/* The daemon starts again: what was told last is all that is known of the pair. */
static void a_pair_goes_on_after_a_restart(void **state)
{
    struct books books, again;
    open_books(&books, *state);
    job_id host = run_alone(books.w);
    job_id guest = join(&books, host);
    world_pass(books.w, SECONDS(60));
    struct pair_entry kept = books.entry;
    pair_ledger_release(&books.ledger);

    open_books(&again, *state);
    pair_ledger_restore_totals(&again.ledger, &(struct pair_totals){ .pairs = 3 });
    pair_ledger_restore(&again.ledger, &again.w->state.view,
                        (const job_id[]){ host, guest }, &kept);
    world_pass(again.w, SECONDS(40));
    assert_near(totals(&again).gained_gpu_s, 0.2 * 100 * 2, 1e-6);
    recall(&again, guest);
    leave(&again, guest, 0);
    assert_int_equal(again.entry.shared_ns, SECONDS(100));
    assert_near(pair_entry_kept(&again.entry, 0), 0.6, 1e-9);
    assert_int_equal(totals(&again).pairs, 3);

    /* One whose jobs share no longer is closed. */
    pair_ledger_restore(&again.ledger, &again.w->state.view,
                        (const job_id[]){ host, JOB_NONE }, &kept);
    assert_true(again.entry.to_ns >= 0);
    assert_int_equal(again.ledger.busy_count, 1); /* the guest has still to load */
    pair_ledger_release(&again.ledger);
}

/* The ledger of a run: only at its first event is there a view to begin with. */
struct run_books {
    struct arena arena;
    struct ledger ledger;
    bool is_open;
};

static void observe(void *self, const struct view *view, const struct event *event)
{
    struct run_books *books = self;
    if (!books->is_open)
        ledger_init(&books->ledger, &books->arena, view, NULL);
    books->is_open = true;
    ledger_event(&books->ledger, view, event);
}

/* Two jobs on one GPU, one of 800 and one of 500 steps, each a step a second alone. */
static void play(const char *settings, struct summary *ret_summary)
{
    static const char table[] = "kind,type,gpus,rate,beside,rate_beside\n"
                                "A,v100,1,1,,\nB,v100,1,1,,\nA,v100,1,0.8,B,0.5\n"
                                "A,v100,1,0,A,0\nB,v100,1,0,B,0\n";
    const struct job_spec specs[] = { { .gpus = 1, .steps = 800, .kind = "A" },
                                      { .gpus = 1, .steps = 500, .kind = "B" } };
    struct run_books books = { .is_open = false };
    struct throughput rates;
    struct cluster cluster;
    struct engine_run run;
    struct error err;
    arena_init(&books.arena, 0);
    assert_int_equal(cluster_load(&cluster, &books.arena, "1xv100:1", NULL), 0);
    throughput_init(&rates, &cluster);
    assert_int_equal(
        throughput_parse(&rates, &books.arena, "t.csv", table, strlen(table), &err), 0);
    engine_run_play(&run, &(struct engine_run_setup){
                              .cluster = &cluster,
                              .rates = &rates,
                              .policy = policy_find("gavel-las"),
                              .settings = settings,
                              .specs = specs,
                              .spec_count = 2,
                              .observer = { .event = observe, .self = &books } });
    summary_make(ret_summary, &run.metrics, &books.ledger, NULL, &cluster);
    ledger_release(&books.ledger);
    engine_run_release(&run);
    arena_release(&books.arena);
}

static void a_run_in_which_jobs_shared_is_as_much_shorter_as_was_gained(void **state)
{
    struct summary summary;
    play("sharing=true,round=60s", &summary);
    double gained = summary_value(&summary, "sharing.gained_gpu_s");
    assert_true(summary_value(&summary, "sharing.pairs") >= 1);
    assert_near(gained, 0.3 * summary_value(&summary, "sharing.shared_gpu_s"), 1e-6);
    assert_near(summary_value(&summary, "makespan_s"), 1300 - gained, 1e-6);
    assert_near(summary_value(&summary, "sharing.lost_gpu_s"), 0, 0);

    play("sharing=false,round=60s", &summary);
    assert_true(isnan(summary_value(&summary, "sharing.pairs")));
}

WORLD_FIXTURE(/* nodes= */ 2, /* gpus_per_node= */ 2);

RUN_CASES(CASE(a_pair_gains_what_both_keep_beyond_one),
          CASE(what_was_reported_counts_and_not_what_was_expected),
          CASE(a_pair_that_is_slower_than_one_job_alone_gains_less_than_nothing),
          CASE(time_counts_only_while_both_make_steps),
          CASE(the_stop_that_parts_a_pair_is_its_loss),
          CASE(a_pair_that_stops_as_a_whole_loses_nothing_by_sharing),
          CASE(the_stop_that_forms_a_pair_is_its_loss),
          CASE(jobs_that_stop_alone_are_in_no_pair),
          CASE(a_pair_goes_on_after_a_restart),
          CASE(a_run_in_which_jobs_shared_is_as_much_shorter_as_was_gained));
