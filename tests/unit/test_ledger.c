/* What is remembered of a preemption while the daemon may be restarted at any time. */
#include "support/world.h"

#include "metrics/ledger.h"

/* A ledger that is told what happens in a world, and what it has told itself. */
struct books {
    struct ledger ledger;
    struct ledger_entry entry; /* the last */
    uint32_t told;
};

static void hear_entry(void *context, const struct ledger_entry *entry,
                       double wait_saved_s, bool open)
{
    struct books *books = context;
    books->entry = *entry;
    books->told++;
}

static void open_books(struct books *books, struct world *w)
{
    ledger_init(&books->ledger, &w->arena, &w->state.view, NULL);
    books->ledger.observe = hear_entry;
    books->ledger.context = books;
    books->told = 0;
}

static void happen(struct books *books, struct world *w, struct event event)
{
    event.at_ns = w->state.view.now_ns;
    event.generation = w->state.jobs[event.job].generation;
    event.attempt = w->state.jobs[event.job].attempt;
    assert_true(state_apply(&w->state, &event));
    ledger_event(&books->ledger, &w->state.view, &event);
}

/* A job in its seats that the ledger knows, and one that waits. */
static void adopt_jobs(struct books *books, struct world *w, job_id victim,
                       job_id beneficiary)
{
    ledger_restore_job(&books->ledger, &w->state.view, victim);
    ledger_restore_job(&books->ledger, &w->state.view, beneficiary);
}

static void recall(struct books *books, struct world *w, job_id victim, enum rule rule,
                   job_id beneficiary)
{
    happen(books, w,
           (struct event){ .kind = EVENT_RECALLED,
                           .job = victim,
                           .rule = rule,
                           .wait_saved_ns = -1,
                           .beneficiary = beneficiary });
}

static void leave(struct books *books, struct world *w, job_id job)
{
    happen(books, w,
           (struct event){ .kind = EVENT_STOPPED, .job = job, .clean = true });
}

static void come(struct books *books, struct world *w, job_id job, bool loaded)
{
    plan_grant(world_plan(w), job, NULL);
    world_carry_out(w);
    happen(books, w,
           (struct event){ .kind = EVENT_STARTED, .job = job, .loaded = loaded });
}

static void an_entry_forgets_a_beneficiary_that_never_starts(void **state)
{
    struct world *w = *state;
    struct books books;
    job_id victim = world_running(w, (struct job){ .gpus = 4, .steps_total = 100 });
    job_id beneficiary = world_queued(w, (struct job){ .gpus = 4 });
    open_books(&books, w);
    adopt_jobs(&books, w, victim, beneficiary);
    recall(&books, w, victim, RULE_ORDER, beneficiary);
    assert_int_equal(books.entry.shared_by, 1);

    happen(&books, w, (struct event){ .kind = EVENT_CANCELLED, .job = beneficiary });
    assert_int_equal(books.entry.shared_by, 0); /* and so it is written down */
    assert_int_equal(books.entry.started_ns, -1);
    ledger_release(&books.ledger);
}

/* The daemon starts again: what was told last is all that is known of the preemption. */
static void restart(struct books *books, struct world *w, job_id victim)
{
    struct ledger_entry kept = books->entry;
    ledger_release(&books->ledger);
    open_books(books, w);
    ledger_restore_job(&books->ledger, &w->state.view, victim);
    ledger_restore_entry(&books->ledger, &w->state.view, victim, &kept);
}

/* One that was sent away for another after five seconds of saving. */
static job_id send_away(struct books *books, struct world *w)
{
    job_id victim = world_running(w, (struct job){ .gpus = 4, .steps_total = 100 });
    job_id beneficiary = world_queued(w, (struct job){ .gpus = 4 });
    open_books(books, w);
    adopt_jobs(books, w, victim, beneficiary);
    recall(books, w, victim, RULE_ORDER, beneficiary);
    world_pass(w, SECONDS(5));
    leave(books, w, victim);
    assert_int_equal(books->entry.pause_ns, 4 * SECONDS(5));
    assert_true(books->entry.owes_load);
    return victim;
}

static void moving_is_not_booked_to_the_last_preemption(void **state)
{
    struct world *w = *state;
    struct books books;
    job_id victim = send_away(&books, w);
    come(&books, w, victim, true);
    recall(&books, w, victim, RULE_RESIZE, JOB_NONE);
    restart(&books, w, victim);

    world_pass(w, SECONDS(7));
    leave(&books, w, victim);
    assert_int_equal(books.ledger.entries[0].pause_ns, 4 * SECONDS(5));
    assert_int_equal(books.ledger.actual_cost_ns, 0);
    ledger_release(&books.ledger);
}

static void loading_again_after_a_fault_is_not_booked(void **state)
{
    struct world *w = *state;
    struct books books;
    job_id victim = send_away(&books, w);
    come(&books, w, victim, true);
    happen(&books, w, (struct event){ .kind = EVENT_LOST, .job = victim });
    restart(&books, w, victim);

    come(&books, w, victim, false);
    world_pass(w, SECONDS(3));
    happen(&books, w, (struct event){ .kind = EVENT_LOADED, .job = victim });
    assert_int_equal(books.ledger.entries[0].load_ns, 0);
    ledger_release(&books.ledger);
}

static void loading_again_is_booked_though_the_daemon_was_restarted(void **state)
{
    struct world *w = *state;
    struct books books;
    job_id victim = send_away(&books, w);
    restart(&books, w, victim);
    come(&books, w, victim, false);
    restart(&books, w, victim);

    world_pass(w, SECONDS(3));
    happen(&books, w, (struct event){ .kind = EVENT_LOADED, .job = victim });
    assert_int_equal(books.entry.load_ns, 4 * SECONDS(3));
    assert_false(books.entry.owes_load);
    ledger_release(&books.ledger);
}

static void a_victim_cancelled_while_it_stops_was_still_preempted(void **state)
{
    struct world *w = *state;
    struct books books;
    job_id victim = world_running(w, (struct job){ .gpus = 4, .steps_total = 100 });
    job_id beneficiary = world_queued(w, (struct job){ .gpus = 4 });
    open_books(&books, w);
    adopt_jobs(&books, w, victim, beneficiary);
    recall(&books, w, victim, RULE_ORDER, beneficiary);
    happen(&books, w, (struct event){ .kind = EVENT_CANCELLED, .job = victim });
    restart(&books, w, victim);

    world_pass(w, SECONDS(2));
    leave(&books, w, victim);
    assert_int_equal(books.entry.pause_ns, 4 * SECONDS(2));
    ledger_release(&books.ledger);
}

WORLD_FIXTURE(/* nodes= */ 1, /* gpus_per_node= */ 4);

RUN_CASES(CASE(an_entry_forgets_a_beneficiary_that_never_starts),
          CASE(moving_is_not_booked_to_the_last_preemption),
          CASE(loading_again_after_a_fault_is_not_booked),
          CASE(loading_again_is_booked_though_the_daemon_was_restarted),
          CASE(a_victim_cancelled_while_it_stops_was_still_preempted));
