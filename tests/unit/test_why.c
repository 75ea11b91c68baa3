/* What holds a job back: each reason by its token, and changes that really start it. */
#include "support/cases.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/rng.h"
#include "daemon/start_conditions.h"
#include "daemon/why.h"
#include "daemon/why_change.h"
#include "engine/engine.h"
#include "engine/engine_copy.h"
#include "executor/sim/sim.h"
#include "metrics/ledger.h"
#include "model/calendar.h"
#include "model/cluster.h"
#include "model/admission.h"
#include "model/outbox.h"
#include "model/state_rates.h"
#include "model/throughput.h"
#include "policy/policy.h"
#include "store/store.h"
#include "support/state_check.h"
#include "support/store_file.h"

#define SECOND INT64_C(1000000000)
#define JOBS_MAX 64
#define SEEDS 3

/* An engine over a simulated cluster, moved by hand. */
struct stage {
    struct arena arena;
    struct cluster cluster;
    struct throughput rates;
    struct admission admission;
    struct engine engine;
    struct sim_cluster sim;
    struct outbox outboxes[2];
    uint32_t reading;
    int64_t now_ns;
    uint64_t id_next;
    struct start_conditions conditions;
    struct store *store; /* or NULL */
    struct ledger ledger;
    char settings[64];
    struct why why;
};

static void admit(void *self, const struct view *view, const struct event *event)
{
    struct stage *stage = self;
    if (event->kind == EVENT_SUBMITTED)
        sim_cluster_admit(&stage->sim, event->job,
                          &(struct sim_truth){ .steps = 1e9,
                                               .pause_ns = 10 * SECOND,
                                               .load_ns = 2 * SECOND });
}

static void set_up(struct stage *stage, const char *cluster, const char *policy_text,
                   uint32_t job_max)
{
    struct error err = { "" };
    const struct policy *policy;
    const char *settings;
    memset(stage, 0, sizeof *stage);
    arena_init(&stage->arena, 0);
    if (cluster_load(&stage->cluster, &stage->arena, cluster, &err) < 0 ||
        policy_parse(policy_text, &policy, &settings, &err) < 0)
        fail_msg("%s", err.text);
    for (uint32_t t = 0; t < stage->cluster.type_count; t++)
        stage->cluster.types[t].usd_per_hour = 1; /* some policies want a price */
    snprintf(stage->settings, sizeof stage->settings, "%s", settings ? settings : "");
    throughput_init(&stage->rates, &stage->cluster);
    admission_init(&stage->admission, &stage->cluster, &stage->rates);
    struct engine_setup setup = { .cluster = &stage->cluster,
                                  .rates = &stage->rates,
                                  .policy = policy,
                                  .settings = stage->settings,
                                  .executor = &executor_sim,
                                  .executor_self = &stage->sim,
                                  .job_max = job_max,
                                  .seed = 1 };
    if (engine_init(&stage->engine, &stage->arena, &setup, &err) < 0)
        fail_msg("%s", err.text);
    sim_cluster_init(&stage->sim, &stage->arena, &stage->engine.state.view,
                     &stage->outboxes[0], &(struct sim_faults){ 0 }, 1);
    engine_add_observer(&stage->engine,
                        (struct engine_observer){ .event = admit, .self = stage });
    stage->id_next = 1;
    stage->now_ns = SECOND;
}

static void tear_down(struct stage *stage)
{
    engine_release(&stage->engine);
    admission_release(&stage->admission);
    sim_cluster_release(&stage->sim);
    outbox_release(&stage->outboxes[0]);
    outbox_release(&stage->outboxes[1]);
    conditions_release(&stage->conditions);
    arena_release(&stage->arena);
}

/* Everything that was said, and what comes of it in this instant. */
static void settle(struct stage *stage)
{
    struct error err = { "" };
    sim_cluster_advance(&stage->sim, stage->now_ns);
    do {
        struct outbox *inbox = &stage->outboxes[stage->reading];
        stage->reading ^= 1;
        stage->sim.outbox = &stage->outboxes[stage->reading];
        if (engine_step(&stage->engine, stage->now_ns, inbox->events, inbox->count,
                        &err) < 0)
            fail_msg("%s", err.text);
        inbox->count = 0;
    } while (stage->outboxes[stage->reading].count > 0);
}

static void pass(struct stage *stage, int64_t ns)
{
    int64_t until_ns = stage->now_ns + ns;
    while (sim_cluster_next_ns(&stage->sim) <= until_ns) {
        stage->now_ns = sim_cluster_next_ns(&stage->sim);
        settle(stage);
    }
    stage->now_ns = until_ns;
    settle(stage);
}

static struct event *say(struct stage *stage, enum event_kind kind, job_id job)
{
    struct event *event = outbox_add(&stage->outboxes[stage->reading]);
    *event = (struct event){ .at_ns = stage->now_ns, .kind = kind, .job = job };
    if (job != JOB_NONE)
        event->generation = stage->engine.state.jobs[job].generation;
    return event;
}

static job_id submit(struct stage *stage, struct job_spec spec)
{
    struct error err = { "" };
    struct job job;
    spec.id = stage->id_next++;
    spec.submit_ns = stage->now_ns += SECOND;
    spec.steps = spec.steps > 0 ? spec.steps : 1e9;
    spec.pause_ns = 10 * SECOND;
    spec.grace_ns = 60 * SECOND;
    if (admission_make_job(&stage->admission, &spec, &job, &err) < 0)
        fail_msg("%s", err.text);
    say(stage, EVENT_SUBMITTED, JOB_NONE)->spec = &job;
    settle(stage);
    return state_find(&stage->engine.state, spec.id);
}

static void cancel(struct stage *stage, job_id job)
{
    say(stage, EVENT_CANCELLED, job);
    settle(stage);
}

static void foreign(struct stage *stage, node_id node, uint64_t gpus)
{
    struct event *event = say(stage, EVENT_FOREIGN, JOB_NONE);
    event->node = node;
    event->gpus = gpus;
    settle(stage);
}

static const struct job *job_of(const struct stage *stage, job_id job)
{
    return &stage->engine.state.jobs[job];
}

static struct why_scene scene_of(struct stage *stage)
{
    return (struct why_scene){ .engine = &stage->engine,
                               .conditions = &stage->conditions,
                               .reader =
                                   stage->store ? store_reader(stage->store) : NULL,
                               .now_ns = stage->now_ns };
}

/* The smallest change is looked for in a snapshot, as berthd does. */
static void find_change(struct stage *stage, job_id job, int64_t limit_ns)
{
    struct error err = { "" };
    struct engine_snapshot snapshot = { 0 };
    struct engine_copy_setup copy = { .settings = stage->settings };
    if (engine_snapshot_take(&snapshot, &stage->engine, &copy, &err) < 0)
        fail_msg("%s", err.text);
    engine_adopt_jobs(&snapshot.engine);
    snapshot.engine.state.view.now_ns = stage->now_ns;
    const struct reasons *reasons = &stage->why.reasons;
    struct why_change_setup setup = {
        .engine = &snapshot.engine,
        .settings = stage->settings,
        .job = job,
        .ahead = reasons->ahead_count > 0 ? reasons->ahead[0].id : 0,
        .limit_ns = limit_ns,
    };
    why_change_find(&setup, stage->why.change, sizeof stage->why.change);
    engine_snapshot_release(&snapshot);
}

static void find_all(struct stage *stage, job_id job)
{
    struct why_scene scene = scene_of(stage);
    why_find(&stage->why, &scene, job);
    if (job_of(stage, job)->state == JOB_WAITING)
        find_change(stage, job, 0);
}

/* Asking changes nothing, whoever asks. */
static void ask(struct stage *stage, job_id job)
{
    struct job before = *job_of(stage, job);
    uint32_t free = stage->engine.state.free.gpu_count;
    int64_t now_ns = stage->engine.state.view.now_ns;
    find_all(stage, job);
    for (uint32_t i = 0; i < stage->why.reasons.count; i++)
        print_message("# %s: %s\n", stage->why.reasons.list[i].token,
                      stage->why.reasons.list[i].text);
    print_message("# change: %s\n", stage->why.change);
    assert_memory_equal(&before, job_of(stage, job), sizeof before);
    assert_int_equal(stage->engine.state.free.gpu_count, free);
    assert_int_equal(stage->engine.state.view.now_ns, now_ns);
    state_check(&stage->engine.state);
}

static const struct reason *find_reason(const struct reasons *reasons,
                                        const char *token)
{
    for (uint32_t i = 0; i < reasons->count; i++)
        if (strcmp(reasons->list[i].token, token) == 0)
            return &reasons->list[i];
    return NULL;
}

static const char *text_of(const struct stage *stage, const char *token)
{
    const struct reason *reason = find_reason(&stage->why.reasons, token);
    if (!reason)
        fail_msg("no reason '%s'", token);
    return reason->text;
}

static void assert_says(const struct stage *stage, const char *token, const char *words)
{
    if (!strstr(text_of(stage, token), words))
        fail_msg("'%s' is not in '%s'", words, text_of(stage, token));
}

static void assert_silent(const struct stage *stage, const char *token)
{
    for (uint32_t i = 0; i < stage->why.reasons.count; i++)
        if (strcmp(stage->why.reasons.list[i].token, token) == 0)
            fail_msg("'%s' is said: %s", token, stage->why.reasons.list[i].text);
}

static void assert_brief(struct stage *stage, job_id job, const char *token)
{
    char text[64];
    const char *got;
    struct why_scene scene = scene_of(stage);
    why_brief(&scene, job, text, sizeof text, &got);
    assert_string_equal(got, token);
}

/* --- reasons --------------------------------------------------------------------------- */

static void too_few_accelerators_and_who_holds_them(void **state)
{
    struct stage *stage = *state;
    set_up(stage, "1xv100:4", "fifo", JOBS_MAX);
    job_id holder = submit(stage, (struct job_spec){ .gpus = 3 });
    job_id waits = submit(stage, (struct job_spec){ .gpus = 2 });
    assert_true(job_runs(job_of(stage, holder)));

    ask(stage, waits);
    assert_says(stage, "resources", "it needs 2 v100, and 1 of 4 are free");
    assert_says(stage, "resources", "3 held by job 1");
    assert_true(stage->why.can_ever_run);
    assert_brief(stage, waits, "resources");
}

static void accelerators_of_others_and_nodes_that_are_down(void **state)
{
    struct stage *stage = *state;
    set_up(stage, "2xv100:4", "fifo", JOBS_MAX);
    foreign(stage, 0, 0xf);
    struct event *down = say(stage, EVENT_NODE_DOWN, JOB_NONE);
    down->node = 1;
    settle(stage);
    job_id waits = submit(stage, (struct job_spec){ .gpus = 2 });

    ask(stage, waits);
    assert_says(stage, "foreign", "4 v100 are in use");
    assert_says(stage, "node_down", "4 v100 are on nodes that are down");
}

static void the_nodes_that_will_do(void **state)
{
    struct stage *stage = *state;
    set_up(stage, "4xv100:4", "sjf", JOBS_MAX);
    job_id there = submit(stage, (struct job_spec){ .gpus = 3, .nodelist = "n2" });
    job_id waits = submit(stage, (struct job_spec){ .gpus = 4, .nodelist = "n2,n3" });
    job_id both = submit(stage, (struct job_spec){ .gpus = 8, .nodelist = "n2,n3" });
    assert_true(job_runs(job_of(stage, there)));
    assert_int_equal(job_of(stage, waits)->state, JOB_WAITING);

    ask(stage, both);
    assert_says(stage, "nodes", "only nodes n2, n3 will do (-w)");
    assert_says(stage, "resources", "it needs 8 v100, and 5 of 8 there are free");
    assert_says(stage, "resources", "3 held by job 1");
    assert_string_equal(stage->why.change,
                        "on any node, without -w, it would start now");
    assert_brief(stage, both, "resources");

    job_id not_here =
        submit(stage, (struct job_spec){ .gpus = 4, .exclude = "n0,n1,n3" });
    ask(stage, not_here);
    assert_says(stage, "nodes", "nodes n0, n1, n3 will not do (-x)");
    assert_says(stage, "resources", "it needs 4 v100, and 1 of 4 there are free");
}

static void nodes_that_the_calendar_takes(void **state)
{
    struct stage *stage = *state;
    struct calendar_entry entry = {
        .id = 1, .gpus = 0xf, .from_ns = 3601 * SECOND, .to_ns = 10801 * SECOND
    };
    set_up(stage, "1xv100:4", "fifo", JOBS_MAX);
    say(stage, EVENT_RESERVED, JOB_NONE)->entry = &entry;
    settle(stage);
    job_id waits = submit(stage, (struct job_spec){ .gpus = 2, .steps = 7200 });
    job_id runs = submit(stage, (struct job_spec){ .gpus = 2, .steps = 10 });
    assert_int_equal(job_of(stage, waits)->state, JOB_WAITING);
    assert_true(job_runs(job_of(stage, runs)));

    ask(stage, waits);
    assert_says(stage, "calendar", "in 60.0 min node n0 is unavailable for 2.0 h");
    assert_brief(stage, waits, "calendar");
}

static void room_in_pieces(void **state)
{
    struct stage *stage = *state;
    set_up(stage, "2xv100:4", "fifo", JOBS_MAX);
    submit(stage, (struct job_spec){ .gpus = 2, .nodes = 1 });
    foreign(stage, 1, 3);
    foreign(stage, 0, 0);
    job_id waits = submit(stage, (struct job_spec){ .gpus = 4 });
    ask(stage, waits);
    assert_says(stage, "resources", "it needs 4 v100");
    assert_string_equal(stage->why.change, "spread over nodes it would start now");

    cancel(stage, waits);
    waits = submit(stage, (struct job_spec){ .gpus = 4, .spread = true });
    assert_true(job_runs(job_of(stage, waits)));
}

static void cpus_and_memory(void **state)
{
    struct stage *stage = *state;
    set_up(stage, "1xv100:4", "fifo", JOBS_MAX);
    stage->engine.state.free.rooms[0].mem_mib = 1024; /* of a machine with that much */
    job_id waits = submit(stage, (struct job_spec){ .gpus = 1, .mem_mib = 2048 });
    assert_int_equal(job_of(stage, waits)->state, JOB_WAITING);

    find_all(stage, waits);
    assert_says(stage, "resources", "2 GiB");
    assert_string_equal(stage->why.change,
                        "with less memory than 2 GiB it would start now");
}

static void the_order_of_the_queue(void **state)
{
    struct stage *stage = *state;
    set_up(stage, "1xv100:4", "fifo", JOBS_MAX);
    submit(stage, (struct job_spec){ .gpus = 2 });
    job_id large = submit(stage, (struct job_spec){ .gpus = 4 });
    job_id small = submit(stage, (struct job_spec){ .gpus = 1 });

    ask(stage, small);
    assert_says(stage, "order", "job 2 came before it");
    assert_null(find_reason(&stage->why.reasons, "resources"));
    assert_int_equal(stage->why.reasons.ahead_count, 1);
    assert_int_equal(stage->why.reasons.ahead[0].id, 2);
    assert_brief(stage, small, "order");
    assert_string_equal(stage->why.change,
                        "cancelling job 2, which waits, would start it");

    cancel(stage, large);
    assert_true(job_runs(job_of(stage, small)));
}

static void best_effort_behind_trials(void **state)
{
    struct stage *stage = *state;
    set_up(stage, "1xv100:4", "fitgpp", JOBS_MAX);
    submit(stage, (struct job_spec){ .gpus = 4, .class = CLASS_TE });
    job_id trial = submit(stage, (struct job_spec){ .gpus = 2, .class = CLASS_TE });
    job_id other = submit(stage, (struct job_spec){ .gpus = 1 });

    ask(stage, other);
    assert_says(stage, "order", "trial jobs go first, and 1 of them look for room");
    ask(stage, trial);
    assert_says(stage, "no_victim", "no best-effort job runs");
}

static void a_victim_has_still_to_leave(void **state)
{
    struct stage *stage = *state;
    set_up(stage, "1xv100:4", "fitgpp", JOBS_MAX);
    job_id victim = submit(stage, (struct job_spec){ .gpus = 4 });
    pass(stage, 5 * SECOND);
    job_id trial = submit(stage, (struct job_spec){ .gpus = 2, .class = CLASS_TE });

    ask(stage, trial);
    assert_says(stage, "victim_leaving", "job 1 has still to leave");
    assert_brief(stage, trial, "victim_leaving");
    ask(stage, victim);
    assert_says(stage, "stopping", "told to leave");
    pass(stage, 20 * SECOND);
    ask(stage, trial);
    assert_says(stage, "running", "v100 0,1");
    assert_brief(stage, trial, "");
}

static void a_swap_that_does_not_pay(void **state)
{
    struct stage *stage = *state;
    set_up(stage, "1xv100:4", "xion", JOBS_MAX);
    submit(stage, (struct job_spec){ .gpus = 4, .steps = 40, .load_ns = 500 * SECOND });
    pass(stage, 4 * SECOND);
    job_id waits = submit(stage, (struct job_spec){ .gpus = 4, .steps = 20 });

    ask(stage, waits);
    assert_says(stage, "worth", "sending job 1 away");
    assert_says(stage, "worth", "not worth it");
}

static void shares_and_rounds(void **state)
{
    struct stage *stage = *state;
    set_up(stage, "1xv100:1", "gavel-las", JOBS_MAX);
    submit(stage, (struct job_spec){ .gpus = 1 });
    job_id waits = submit(stage, (struct job_spec){ .gpus = 1 });
    pass(stage, 10 * SECOND);

    ask(stage, waits);
    assert_says(stage, "share", "of the time on v100");
    assert_says(stage, "round", "round");
}

static void what_stands_before_the_queue(void **state)
{
    struct stage *stage = *state;
    set_up(stage, "1xv100:4", "fifo", JOBS_MAX);
    job_id id = submit(stage, (struct job_spec){ .gpus = 4 });
    id = submit(stage, (struct job_spec){ .gpus = 1 });
    say(stage, EVENT_HELD, id);
    settle(stage);
    ask(stage, id);
    assert_says(stage, "held", "held");
    assert_brief(stage, id, "held");

    struct dependency after = { .kind = DEPENDS_OK, .id = 1 };
    struct request request = { .spec.id = job_of(stage, id)->id,
                               .hold = true,
                               .begin_ns = stage->now_ns + 90 * SECOND,
                               .dependencies = &after,
                               .dependency_count = 1 };
    conditions_add(&stage->conditions, &request, id);
    ask(stage, id);
    assert_says(stage, "held", "its owner holds it");
    assert_says(stage, "begin", "90.0 s");
    assert_says(stage, "dependency", "job 1 has completed");
    assert_int_equal(stage->why.reasons.count, 3);

    conditions_drop(&stage->conditions, request.spec.id);
    conditions_add(&stage->conditions,
                   &(struct request){ .spec.id = request.spec.id, .array_limit = 2 },
                   id);
    ask(stage, id);
    assert_says(stage, "array_limit", "2 jobs of its array");
    assert_brief(stage, id, "array_limit");
}

static enum outcome is_completed(void *context, uint64_t id)
{
    (void)context;
    return id == 3 ? OUTCOME_WAITS : id == 9 ? OUTCOME_UNKNOWN : OUTCOME_OK;
}

static void count_job(void *context, job_id job)
{
    (void)job;
    ++*(int *)context;
}

/* A dependency that was met has to be found again after a restart: it is needed till then. */
static void jobs_that_others_wait_for_are_needed(void **state)
{
    (void)state;
    struct start_conditions conditions = { .outcome = is_completed };
    struct dependency both[] = { { DEPENDS_OK, 2 }, { DEPENDS_OK, 3 } };
    struct dependency one[] = { { DEPENDS_ANY, 2 }, { DEPENDS_SINGLETON, 0 } };
    struct dependency gone[] = { { DEPENDS_OK, 9 } };
    struct request first = { .spec.id = 5,
                             .dependencies = both,
                             .dependency_count = 2 };
    struct request second = { .spec.id = 6,
                              .dependencies = one,
                              .dependency_count = 2 };
    struct request third = { .spec.id = 7,
                             .dependencies = gone,
                             .dependency_count = 1 };
    int met = 0;
    conditions_add(&conditions, &first, 0);
    conditions_add(&conditions, &second, 1);
    conditions_drop(&conditions, 6);
    conditions_add(&conditions, &third, 2);
    conditions_check(&conditions, 0, count_job, NULL, &met);
    assert_int_equal(met, 1); /* what is no longer kept was met before */
    assert_int_equal(conditions_find(&conditions, 5)->dependency_count, 1);
    assert_true(conditions_need(&conditions, 2));
    assert_true(conditions_need(&conditions, 3));
    assert_false(conditions_need(&conditions, 9));
    assert_false(conditions_need(&conditions, 5));
    conditions_drop(&conditions, 5);
    assert_false(conditions_need(&conditions, 2));
    assert_false(conditions_need(&conditions, 3));
    conditions_release(&conditions);
}

/* --- changes that start it -------------------------------------------------------------- */

static void with_fewer_accelerators(void **state)
{
    struct stage *stage = *state;
    set_up(stage, "1xv100:4", "fifo", JOBS_MAX);
    submit(stage, (struct job_spec){ .gpus = 1 });
    job_id waits = submit(stage, (struct job_spec){ .gpus = 4 });
    ask(stage, waits);
    assert_string_equal(stage->why.change,
                        "with 3 GPUs instead of 4 it would start now");

    cancel(stage, waits);
    job_id smaller = submit(stage, (struct job_spec){ .gpus = 3 });
    assert_true(job_runs(job_of(stage, smaller)));
}

static void on_another_type(void **state)
{
    struct stage *stage = *state;
    set_up(stage, "1xv100:2,1xk80:2", "sjf", JOBS_MAX);
    submit(stage, (struct job_spec){ .gpus = 2, .types = "v100" });
    job_id waits = submit(stage, (struct job_spec){ .gpus = 2, .types = "v100" });
    ask(stage, waits);
    assert_string_equal(stage->why.change, "on type k80 it would start now");

    cancel(stage, waits);
    job_id other = submit(stage, (struct job_spec){ .gpus = 2, .types = "k80" });
    assert_true(job_runs(job_of(stage, other)));
}

static void as_a_trial_job(void **state)
{
    struct stage *stage = *state;
    set_up(stage, "1xv100:4", "fitgpp", JOBS_MAX);
    submit(stage, (struct job_spec){ .gpus = 4 });
    pass(stage, 5 * SECOND);
    job_id waits = submit(stage, (struct job_spec){ .gpus = 4 });
    ask(stage, waits);
    assert_string_equal(stage->why.change, "as class te it would get seats now");

    struct job spec = *job_of(stage, waits);
    spec.class = CLASS_TE;
    say(stage, EVENT_HELD, waits);
    say(stage, EVENT_CHANGED, waits)->spec = &spec;
    say(stage, EVENT_RELEASED, waits);
    settle(stage);
    assert_int_equal(job_of(stage, waits)->state, JOB_PLACED);
    pass(stage, 20 * SECOND);
    assert_true(job_runs(job_of(stage, waits)));
}

static void without_somebody_who_runs(void **state)
{
    struct stage *stage = *state;
    set_up(stage, "1xv100:4", "fifo", JOBS_MAX);
    job_id small = submit(stage, (struct job_spec){ .gpus = 1 });
    submit(stage, (struct job_spec){ .gpus = 3 });
    job_id waits = submit(stage, (struct job_spec){ .gpus = 1 });
    ask(stage, waits);
    assert_string_equal(stage->why.change, "cancelling job 1 would start it");

    cancel(stage, small);
    assert_true(job_runs(job_of(stage, waits)));
}

static int decide_slowly(void *self, const struct view *view, struct plan *plan,
                         struct arena *scratch, struct error *err)
{
    usleep(60000);
    return 0;
}

static void no_change_is_tried_when_the_time_is_up(void **state)
{
    struct stage *stage = *state;
    set_up(stage, "1xv100:4", "fifo", JOBS_MAX);
    for (int i = 0; i < 4; i++)
        submit(stage, (struct job_spec){ .gpus = 1 });
    job_id waits = submit(stage, (struct job_spec){ .gpus = 1 });
    const struct policy *original = stage->engine.policy;
    struct policy slow = *original;
    slow.decide = decide_slowly;
    stage->engine.policy = &slow;
    int64_t before_ns = clock_now_ns();
    find_change(stage, waits, SECOND / 10);
    assert_in_range(clock_now_ns() - before_ns, SECOND / 10, SECOND);
    assert_string_equal(stage->why.change, "");
    stage->engine.policy = original;
}

static void
a_change_that_would_start_it_is_not_looked_for_once_it_is_cancelled(void **state)
{
    struct stage *stage = *state;
    set_up(stage, "1xv100:1", "fifo", JOBS_MAX);
    submit(stage, (struct job_spec){ .gpus = 1 });
    job_id waits = submit(stage, (struct job_spec){ .gpus = 1 });
    atomic_bool cancelled = true;
    struct why_change_setup setup = { .engine = &stage->engine,
                                      .settings = stage->settings,
                                      .job = waits,
                                      .cancelled = &cancelled };
    why_change_find(&setup, stage->why.change, sizeof stage->why.change);
    assert_string_equal(stage->why.change, "");
    cancelled = false;
    why_change_find(&setup, stage->why.change, sizeof stage->why.change);
    assert_string_equal(stage->why.change, "cancelling job 1 would start it");
}

static void nothing_helps_where_others_would_take_it(void **state)
{
    struct stage *stage = *state;
    set_up(stage, "1xv100:2", "fifo", JOBS_MAX);
    submit(stage, (struct job_spec){ .gpus = 2 });
    for (int i = 0; i < 3; i++)
        submit(stage, (struct job_spec){ .gpus = 2 });
    job_id last = submit(stage, (struct job_spec){ .gpus = 2 });
    ask(stage, last);
    assert_string_equal(stage->why.change, "");
    assert_int_equal(stage->why.reasons.ahead_count, 3);
}

/* A world of many jobs, some of which have run for a while and been preempted. */
static void crowd(struct stage *stage, struct rng *rng)
{
    static const uint32_t gpus[] = { 1, 1, 2, 2, 3, 4 };
    uint32_t count = 4 + rng_below(rng, 10);
    for (uint32_t i = 0; i < count; i++) {
        submit(stage,
               (struct job_spec){ .gpus = gpus[rng_below(rng, 6)],
                                  .class = rng_below(rng, 3) ? CLASS_BE : CLASS_TE,
                                  .steps = 50 + rng_below(rng, 3000) });
        pass(stage, rng_below(rng, 30) * SECOND);
    }
}

/* The job that is to be cancelled, or JOB_NONE if something else is proposed. */
static job_id proposed(const struct stage *stage)
{
    uint64_t id = 0;
    if (sscanf(stage->why.change, "cancelling job %" SCNu64, &id) != 1 ||
        strstr(stage->why.change, "make room"))
        return JOB_NONE;
    return state_find(&stage->engine.state, id);
}

static bool is_gone(const struct stage *stage, job_id job, uint32_t generation)
{
    return job_of(stage, job)->generation != generation ||
           job_of(stage, job)->state == JOB_FREE;
}

static bool has_setting(const struct policy *policy, const char *name)
{
    for (const struct field *param = policy->params; param && param->name; param++)
        if (strcmp(param->name, name) == 0)
            return true;
    return false;
}

/* Whoever is told that a cancellation would start a job can rely on it. */
static void a_cancellation_that_is_proposed_starts_it(void **state)
{
    static const char *const clusters[] = { "1xv100:4", "2xv100:2",
                                            "1xv100:2,1xk80:4" };
    struct stage *stage = *state;
    uint32_t tried = 0;
    FOR_EACH_SEED(seed, SEEDS)
    for (const struct policy *const *p = policy_list; *p; p++) {
        struct rng rng;
        rng_init(&rng, seed.now, "why");
        char text[80];
        bool asks = rng_below(&rng, 3) == 0 && has_setting(*p, "worth");
        snprintf(text, sizeof text, "%s%s", (*p)->name, asks ? ",worth=xion" : "");
        set_up(stage, clusters[rng_below(&rng, 3)], text, JOBS_MAX);
        crowd(stage, &rng);
        for (job_id id = 0; id < stage->engine.state.job_count; id++) {
            if (job_of(stage, id)->state != JOB_WAITING)
                continue;
            find_all(stage, id);
            job_id gone = proposed(stage);
            if (gone == JOB_NONE)
                continue;
            uint32_t generation = job_of(stage, gone)->generation;
            cancel(stage, gone);
            while (!is_gone(stage, gone, generation))
                pass(stage, SECOND);
            if (job_of(stage, id)->state < JOB_PLACED)
                fail_msg("%s, seed %" PRIu64 ": job %" PRIu64 " waits on: %s", text,
                         seed.now, job_of(stage, id)->id, stage->why.change);
            tried++;
            break;
        }
        tear_down(stage);
    }
    print_message("# %u times\n", tried);
    assert_true(tried > 0);
    set_up(stage, "1xv100:2", "fifo", JOBS_MAX);
}

/* --- who sent it away ---------------------------------------------------------------------- */

static void by_whom_it_was_preempted_and_at_what_price(void **state)
{
    struct stage *stage = *state;
    struct error err = { "" };
    char path[64];
    snprintf(path, sizeof path, "/tmp/berth-why-%d.db", (int)getpid());
    set_up(stage, "1xv100:4", "fitgpp", JOBS_MAX);
    if (store_open(&stage->store, path, &err) < 0)
        fail_msg("%s", err.text);
    store_attach(stage->store, &stage->engine.state);
    ledger_init(&stage->ledger, &stage->arena, &stage->engine.state.view, NULL);
    stage->ledger.observe = store_write_entry;
    stage->ledger.context = stage->store;
    engine_add_observer(
        &stage->engine,
        (struct engine_observer){ .event = ledger_event, .self = &stage->ledger });
    engine_add_observer(&stage->engine,
                        (struct engine_observer){ .event = store_event,
                                                  .commit = store_commit,
                                                  .self = stage->store });
    for (uint64_t id = 1; id <= 2; id++)
        store_add_job(stage->store,
                      &(struct store_job){ .id = id, .user = "u", .request = "{}" },
                      NULL);

    job_id victim = submit(stage, (struct job_spec){ .gpus = 4 });
    pass(stage, 5 * SECOND);
    submit(stage, (struct job_spec){ .gpus = 4, .class = CLASS_TE });
    pass(stage, 30 * SECOND);
    ask(stage, victim);
    assert_says(stage, "preempted", "for job 2");
    assert_says(stage, "preempted", "'trial'");
    assert_says(stage, "preempted", "cost 40"); /* 10 s of pause on 4 GPUs */

    ledger_release(&stage->ledger);
    store_close(stage->store);
    stage->store = NULL;
    store_file_remove(path);
}

/* --- everybody says something -------------------------------------------------------------- */

/* --- jobs that may share their GPUs ---------------------------------------------------------- */

/* By consent, with rates that are learned; job 1 runs and another is to wait. */
static void set_up_sharing(struct stage *stage, const char *policy)
{
    set_up(stage, "1xv100:1", policy, JOBS_MAX);
    stage->rates.rules.by_consent = true;
    state_learn(&stage->engine.state, &stage->arena);
    admission_learn(&stage->admission, stage->engine.state.view.rates,
                    &stage->engine.state.rates);
}

#define SHARER(of, mib) \
    ((struct job_spec){ \
        .gpus = 1, .kind = (of), .user = "ann", .shares = true, .gpu_mib = (mib) })

static uint64_t measure_alone(struct stage *stage, const char *kind)
{
    struct rate_table *rates = &stage->engine.state.rates;
    uint32_t found = rate_table_add_kind(rates, kind, stage->now_ns);
    struct rate_place place = { 0, 1, false };
    for (int i = 0; i < 3; i++)
        rate_table_measure(rates, found, place, 1, stage->now_ns, false);
    settle(stage);
    return rates->kinds[found].hash;
}

static void what_keeps_it_from_sharing(void **state)
{
    struct stage *stage = *state;
    set_up_sharing(stage, "berth");
    struct sharing_rules *rules = &stage->engine.state.throughput.rules;
    struct job *jobs = stage->engine.state.jobs;
    job_id runs = submit(stage, SHARER("a", 9216));
    job_id waits = submit(stage, SHARER("b", 8192));
    assert_true(job_runs(&jobs[runs]));

    rules->forbidden = true;
    ask(stage, waits);
    assert_says(stage, "sharing", "the administrator lets no jobs share");
    rules->forbidden = false;
    jobs[runs].shares = false;
    ask(stage, waits);
    assert_says(stage, "sharing",
                "no running job that could be beside it was submitted");
    jobs[runs].shares = true;
    jobs[runs].user++;
    ask(stage, waits);
    assert_says(stage, "sharing", "job 1, which may as well, is another user's");
    jobs[runs].user--;
    rules->unshared = 1;
    ask(stage, waits);
    assert_says(stage, "sharing", "only one process may use a v100");
    rules->unshared = 0;
    rules->gpu_mib[0] = 16384;
    rules->reserve_mib = 1024;
    ask(stage, waits);
    assert_says(stage, "sharing",
                "they need 8 and 9 GiB of memory, and a v100 has 15 GiB for jobs");
    jobs[runs].gpu_mib = 0;
    ask(stage, waits);
    assert_says(stage, "sharing", "job 1 does not say how much memory");
    jobs[runs].gpu_mib = 4096;
    ask(stage, waits);
    assert_says(stage, "sharing",
                "no job of its kind, or of the other's, was measured alone on a v100");
}

static void how_much_the_two_would_slow_each_other(void **state)
{
    struct stage *stage = *state;
    set_up_sharing(stage, "berth");
    submit(stage, SHARER("a", 0));
    job_id waits = submit(stage, SHARER("b", 0));
    uint64_t a = measure_alone(stage, "a");
    ask(stage, waits);
    assert_says(stage, "sharing",
                "no job of its kind was measured alone on a v100 yet");

    struct pair_table *pairs = &stage->engine.state.pairs;
    uint64_t b = rate_table_hash("b");
    for (int i = 0; i < PAIR_SURE; i++) {
        pair_table_measure(pairs, a, b, 0, 0.5);
        pair_table_measure(pairs, b, a, 0, 0.25);
    }
    measure_alone(stage, "b");
    ask(stage, waits);
    assert_says(stage, "sharing",
                "beside job 1 it would keep 25 % of its speed and the other 50 %, as "
                "measured of their kinds: less than 110 % together");

    job_id third = submit(stage, (struct job_spec){ .gpus = 1, .user = "ann" });
    assert_int_equal(job_of(stage, third)->state, JOB_WAITING);
    ask(stage, third);
    assert_silent(stage, "sharing"); /* it did not say that it may */
}

static void that_the_policy_makes_no_pairs(void **state)
{
    struct stage *stage = *state;
    static const char *const policies[] = { "fifo", "berth,sharing=false",
                                            "gavel-las" };
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
        if (i > 0)
            tear_down(stage);
        set_up_sharing(stage, policies[i]);
        submit(stage, SHARER("a", 0));
        job_id waits = submit(stage, SHARER("b", 0));
        ask(stage, waits);
        assert_says(stage, "sharing", "makes no pairs as it is set");
    }
}

static void every_policy_has_a_reason(void **state)
{
    struct stage *stage = *state;
    for (const struct policy *const *p = policy_list; *p; p++) {
        set_up(stage, "1xv100:2", (*p)->name, JOBS_MAX);
        for (int i = 0; i < 5; i++)
            submit(stage, (struct job_spec){ .gpus = 2,
                                             .class = i % 2 ? CLASS_TE : CLASS_BE });
        pass(stage, 30 * SECOND);
        print_message("# --- %s\n", (*p)->name);
        assert_non_null((*p)->explain);
        for (job_id id = 0; id < stage->engine.state.job_count; id++) {
            ask(stage, id);
            assert_true(stage->why.reasons.count > 0);
        }
        tear_down(stage);
    }
    set_up(stage, "1xv100:2", "fifo", JOBS_MAX);
}

static void of_many_ahead_the_first_are_named(void **state)
{
    struct reasons reasons;
    reasons_reset(&reasons);
    for (uint64_t id = 1000; id > 0; id--)
        reasons_add_ahead(&reasons, (int64_t)(id % 500), id);
    assert_int_equal(reasons_ahead_total(&reasons), 1000);
    assert_int_equal(reasons.ahead_count, AHEAD_MAX);
    assert_int_equal(reasons.ahead[0].id, 500);
    assert_int_equal(reasons.ahead[1].id, 1000);
    assert_int_equal(reasons.ahead[2].id, 1);
    assert_int_equal(reasons.ahead[AHEAD_MAX - 1].id, 549);
    struct stage *stage = *state;
    set_up(stage, "1xv100:2", "fifo", JOBS_MAX);
}

static int setup(void **state)
{
    static struct stage stage;
    *state = &stage;
    return 0;
}

static int teardown(void **state)
{
    tear_down(*state);
    return 0;
}

RUN_CASES(CASE(too_few_accelerators_and_who_holds_them),
          CASE(what_keeps_it_from_sharing),
          CASE(how_much_the_two_would_slow_each_other),
          CASE(that_the_policy_makes_no_pairs),
          CASE(accelerators_of_others_and_nodes_that_are_down),
          CASE(the_nodes_that_will_do), CASE(nodes_that_the_calendar_takes),
          CASE(room_in_pieces), CASE(cpus_and_memory), CASE(the_order_of_the_queue),
          CASE(best_effort_behind_trials), CASE(a_victim_has_still_to_leave),
          CASE(a_swap_that_does_not_pay), CASE(shares_and_rounds),
          CASE(what_stands_before_the_queue),
          CASE(jobs_that_others_wait_for_are_needed), CASE(with_fewer_accelerators),
          CASE(on_another_type), CASE(as_a_trial_job), CASE(without_somebody_who_runs),
          CASE(no_change_is_tried_when_the_time_is_up),
          CASE(a_change_that_would_start_it_is_not_looked_for_once_it_is_cancelled),
          CASE(nothing_helps_where_others_would_take_it),
          CASE(a_cancellation_that_is_proposed_starts_it),
          CASE(by_whom_it_was_preempted_and_at_what_price),
          CASE(every_policy_has_a_reason), CASE(of_many_ahead_the_first_are_named));
