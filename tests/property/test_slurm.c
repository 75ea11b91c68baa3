/*
 * test_slurm.c - the executor for Slurm against a Slurm that is a table: requests are late,
 * refused or lost, looks are stale, jobs end, requeue themselves and are cancelled at any
 * moment, berth-slurm dies.  After each event the books add up; in the end everybody has
 * ended in the books as he has in Slurm.  Some ask for shards of a GPU, which policies pair,
 * and which Slurm puts on the first GPU that has room.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <uv.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/json.h"
#include "base/rng.h"
#include "base/units.h"
#include "engine/engine.h"
#include "executor/slurm/slurm_link.h"
#include "executor/slurm/slurm_internal.h"
#include "model/cluster.h"
#include "model/admission.h"
#include "model/launch.h"
#include "model/outbox.h"
#include "model/throughput.h"
#include "policy/policy.h"
#include "support/cases.h"
#include "support/state_check.h"

#define NODES 3
#define GPUS 4
#define JOBS 40
#define LINES 65536
#define SHARDS 2 /* of a GPU */

enum fate { PENDING, RUNNING, COMPLETED, FAILED, CANCELLED };
static const char *const fate_names[] = { "PENDING", "RUNNING", "COMPLETED", "FAILED",
                                          "CANCELLED" };

/* A job, as Slurm has it. */
struct fake {
    enum fate fate;
    bool held, completing, trial, signals;
    enum fate after; /* what it is when it has left: PENDING or an end */
    uint32_t restarts, gpus, node, mask;
    uint32_t shards; /* of one GPU, which is not its own; 0: it has whole ones */
    int pin;         /* the node that was asked for; -1: none */
    int exit_code;
    char said[400];                  /* of it, the last time */
    uint32_t starts, started, ended; /* by Slurm; heard of by the engine */
    bool known, seated, over;
};

struct slurm_link {
    struct slurm_link_setup setup;
};

static struct play {
    struct rng rng;
    int64_t now_ns;
    struct engine engine;
    struct arena arena, pass;
    struct cluster cluster;
    struct throughput rates;
    struct admission admission;
    struct outbox boxes[2], *outbox;
    struct slurm *slurm;
    struct slurm_link *link;
    uv_loop_t loop;

    struct fake jobs[JOBS + 1];
    uint32_t job_count;
    bool calm; /* nothing goes wrong any more */
    bool away;
    char *verbs[LINES]; /* asked for, not carried out */
    uint32_t verb_first, verb_count;
    char *words[LINES]; /* said, not heard            */
    uint32_t word_first, word_count;
    char *look[JOBS + NODES + 2]; /* seen, not said    */
    uint32_t look_count;
    char node_said[NODES][400];
    uint32_t aside;
    bool shards;     /* some jobs ask for them */
    uint32_t paired; /* in the books */
} play;

static uint32_t below(uint32_t bound)
{
    return rng_below(&play.rng, bound);
}

static bool luck(uint32_t percent)
{
    return !play.calm && below(100) < percent;
}

/* --- in place of a process ---------------------------------------------------------- */

int slurm_link_open(struct slurm_link **ret_link, const struct slurm_link_setup *setup,
                    struct error *err)
{
    *ret_link = play.link = calloc(1, sizeof *play.link);
    play.link->setup = *setup;
    return 0;
}

void slurm_link_close(struct slurm_link *link)
{
    free(link);
}

void slurm_link_say(struct slurm_link *link, const struct buf *line)
{
    assert_true(play.verb_first + play.verb_count < LINES);
    play.verbs[play.verb_first + play.verb_count++] = strndup(line->bytes, line->count);
}

static void say(char *text)
{
    assert_true(play.word_first + play.word_count < LINES);
    play.words[play.word_first + play.word_count++] = text;
}

__attribute__((format(printf, 1, 2))) static void sayf(const char *fmt, ...)
{
    char *text = NULL;
    va_list args;
    va_start(args, fmt);
    assert_true(vasprintf(&text, fmt, args) >= 0);
    va_end(args);
    say(text);
}

/* --- the table ------------------------------------------------------------------------ */

static uint32_t used_on(uint32_t node, bool completing)
{
    uint32_t mask = 0;
    for (uint32_t i = 1; i <= play.job_count; i++)
        if ((play.jobs[i].completing ? completing : play.jobs[i].fate == RUNNING) &&
            play.jobs[i].node == node)
            mask |= play.jobs[i].mask;
    return mask;
}

static void put_bits(char *text, size_t size, uint32_t mask)
{
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < GPUS; i++)
        if (mask >> i & 1)
            used +=
                (size_t)snprintf(text + used, size - used, "%s%d", used ? "," : "", i);
}

static void job_line(uint32_t id, char *text, size_t size)
{
    const struct fake *job = &play.jobs[id];
    char bits[32], nodes[120] = "";
    put_bits(bits, sizeof bits, job->mask);
    if (job->fate == RUNNING || job->completing)
        snprintf(nodes, sizeof nodes,
                 ",\"nodes\":[\"n%u\"],\"gpu_index\":{\"n%u\":[%s]}", job->node,
                 job->node, bits);
    snprintf(text, size,
             "{\"job\":{\"id\":%u,\"uid\":7,\"state\":\"%s\",\"held\":%s,"
             "\"completing\":%s,\"requeue\":true,\"batch\":true,\"restarts\":%u,"
             "\"submit\":%u,\"exit_code\":%d,\"gpus\":%u,\"shards\":%u%s}}",
             id, fate_names[job->fate], job->held ? "true" : "false",
             job->completing ? "true" : "false", job->restarts, 1000 + job->restarts,
             job->exit_code, job->shards ? 0 : job->gpus, job->shards, nodes);
}

static void see(char *said, size_t size, const char *text)
{
    if (strcmp(said, text) == 0)
        return;
    snprintf(said, size, "%s", text);
    play.look[play.look_count++] = strdup(text);
}

/* What has changed, as it is at this moment; it is said later. */
static void look(void)
{
    char text[400], bits[32];
    if (play.look_count > 0 || play.away)
        return;
    for (uint32_t n = 0; n < NODES; n++) {
        put_bits(bits, sizeof bits, used_on(n, true));
        snprintf(
            text, sizeof text,
            "{\"node\":{\"name\":\"n%u\",\"type\":\"v100\",\"gpus\":%d,\"shards\":%d,"
            "\"up\":true,\"used\":[%s]}}",
            n, GPUS, GPUS * SHARDS, bits);
        see(play.node_said[n], sizeof play.node_said[n], text);
    }
    for (uint32_t i = 1; i <= play.job_count; i++) {
        job_line(i, text, sizeof text);
        see(play.jobs[i].said, sizeof play.jobs[i].said, text);
    }
}

static void say_look(void)
{
    for (uint32_t i = 0; i < play.look_count; i++)
        say(play.look[i]);
    play.look_count = 0;
}

static void forget_said(void)
{
    for (uint32_t i = 0; i < play.look_count; i++)
        free(play.look[i]);
    play.look_count = 0;
    for (uint32_t i = 1; i <= play.job_count; i++)
        play.jobs[i].said[0] = '\0';
    for (uint32_t n = 0; n < NODES; n++)
        play.node_said[n][0] = '\0';
}

static void say_all(void)
{
    forget_said();
    look();
    say_look();
    sayf("{\"synced\":true}");
}

static uint32_t shards_used(uint32_t node, uint32_t gpu)
{
    uint32_t count = 0;
    for (uint32_t i = 1; i <= play.job_count; i++) {
        const struct fake *job = &play.jobs[i];
        if ((job->fate == RUNNING || job->completing) && job->node == node &&
            (job->mask >> gpu & 1))
            count += job->shards ? job->shards : SHARDS;
    }
    assert_true(count <= SHARDS);
    return count;
}

/* The GPUs that Slurm gives it on a node; 0: there are not so many. */
static uint32_t find_gpus(const struct fake *job, uint32_t node)
{
    uint32_t mask = 0, need = job->shards ? job->shards : SHARDS;
    for (uint32_t k = 0; k < GPUS; k++)
        if ((uint32_t)__builtin_popcount(mask) < job->gpus &&
            shards_used(node, k) + need <= SHARDS)
            mask |= 1u << k;
    return (uint32_t)__builtin_popcount(mask) == job->gpus ? mask : 0;
}

/* Slurm's own scheduler: whoever is not held and whose nodes have room. */
static void schedule(void)
{
    for (uint32_t i = 1; i <= play.job_count; i++) {
        struct fake *job = &play.jobs[i];
        if (job->fate != PENDING || job->held || job->completing || job->pin < 0)
            continue;
        uint32_t mask = find_gpus(job, (uint32_t)job->pin);
        if (mask == 0)
            continue;
        job->node = (uint32_t)job->pin;
        job->mask = mask;
        job->fate = RUNNING;
        job->starts++;
    }
}

static void leave(struct fake *job, enum fate after, int exit_code)
{
    job->fate = after;
    job->completing = true;
    job->exit_code = exit_code;
    if (after == PENDING)
        job->restarts++;
}

static void carry_out_one(void)
{
    if (play.verb_count == 0)
        return;
    char *text = play.verbs[play.verb_first++];
    play.verb_count--;
    struct json *json = NULL;
    assert_int_equal(json_parse(text, strlen(text), &json, NULL), 0);
    int64_t seq = 0;
    assert_true(json_as_count(json_get(json, "seq"), &seq));
    const char *verb = json_as_text(json_get(json, "verb"));
    const char *name = json_as_text(json_get(json, "job"));
    uint32_t id = (uint32_t)atoi(name);
    struct fake *job = &play.jobs[id];
    const char *error = NULL;
    bool transient = luck(5) || play.away;
    if (transient)
        error = "later";
    else if (strcmp(verb, "start") == 0) {
        const char *node = json_as_text(json_item(json_get(json, "nodes"), 0));
        assert_int_equal(json_count(json_get(json, "nodes")), 1);
        if (job->completing && job->fate == PENDING) {
            error = "leaving";
            transient = true;
        } else if (job->fate == PENDING) {
            job->pin = atoi(node + 1);
            job->held = false;
        } else if (job->fate != RUNNING || (int)job->node != atoi(node + 1))
            error = "no longer pending";
    } else if (strcmp(verb, "hold") == 0) {
        if (job->fate <= RUNNING)
            job->held = true; /* of a running one: it comes back held */
        else
            error = "finished";
    } else if (strcmp(verb, "signal") == 0) {
        if (job->fate != RUNNING || job->completing)
            error = "finished";
        else if (luck(60))
            leave(job, FAILED, below(2) ? 85 : 3);
        else if (luck(50))
            leave(job, PENDING, 0);
    } else if (strcmp(verb, "evict") == 0) {
        if (job->fate == RUNNING && !job->completing) {
            leave(job, PENDING, 0);
            job->held = true;
        }
    } else if (strcmp(verb, "revive") == 0) {
        if (job->fate == CANCELLED)
            error = "gone";
        else if (job->fate > RUNNING && !job->completing) {
            job->fate = PENDING;
            job->held = true;
            job->restarts++;
        }
    } else if (strcmp(verb, "cancel") == 0) {
        if (job->fate == RUNNING)
            leave(job, CANCELLED, 0);
        else if (job->fate == PENDING)
            job->fate = CANCELLED;
    } else if (strcmp(verb, "poll") == 0) {
        say_look();
        look();
        say_look();
    }
    schedule();
    if (error)
        sayf("{\"done\":{\"seq\":%" PRId64
             ",\"ok\":false,\"error\":\"%s\",\"transient\":%s}}",
             seq, error, transient ? "true" : "false");
    else
        sayf("{\"done\":{\"seq\":%" PRId64 ",\"ok\":true,\"text\":\"\"}}", seq);
    json_free(json);
    free(text);
}

static void hear_one(void)
{
    if (play.word_count == 0)
        return;
    char *text = play.words[play.word_first++];
    play.word_count--;
    struct json *json = NULL;
    assert_int_equal(json_parse(text, strlen(text), &json, NULL), 0);
    play.link->setup.line(play.link->setup.context, json);
    json_free(json);
    free(text);
}

/* --- what happens to jobs --------------------------------------------------------------- */

static void submit(void)
{
    if (play.job_count == JOBS)
        return;
    play.jobs[++play.job_count] = (struct fake){ .held = true,
                                                 .gpus = 1 + below(GPUS),
                                                 .trial = below(3) == 0,
                                                 .signals = below(2) == 0,
                                                 .pin = -1 };
    struct fake *job = &play.jobs[play.job_count];
    if (play.shards && below(3) > 0) {
        job->gpus = 1;
        job->shards = below(5) == 0 ? SHARDS : 1;
    }
}

static void happen(void)
{
    if (play.job_count == 0)
        return;
    struct fake *job = &play.jobs[1 + below(play.job_count)];
    if (job->completing) {
        job->completing = false;
        if (job->fate == PENDING)
            job->pin = -1;
    } else if (job->fate == RUNNING && (play.calm || luck(30))) {
        uint32_t how = play.calm ? 0 : below(10);
        if (how < 5)
            leave(job, COMPLETED, 0);
        else if (how < 7)
            leave(job, FAILED, 1);
        else if (how == 7)
            leave(job, FAILED, 85);
        else if (how == 8)
            leave(job, PENDING, 0); /* by itself: held if it was guarded */
        else
            leave(job, CANCELLED, 0);
    } else if (job->fate == PENDING && luck(4)) {
        job->fate = CANCELLED;
    } else if (job->fate == PENDING && luck(4)) { /* an administrator starts it */
        job->pin = (int)below(NODES);
        job->held = false;
    }
    schedule();
}

/* --- berthd ------------------------------------------------------------------------------ */

static int64_t now_of(void *context)
{
    return play.now_ns;
}

static void wake(void *context)
{
}

static int launch_of(void *context, uint64_t id, const struct launch **ret,
                     struct error *err)
{
    static struct launch launch;
    if (state_find(&play.engine.state, id) == JOB_NONE)
        return error_set(err, -ENOENT, "ended");
    launch = (struct launch){ .uid = 7,
                              .signal = SIGUSR1,
                              .signal_to = play.jobs[id].signals ? "batch" : NULL,
                              .submitted_ns = 1000 * NS_PER_S };
    *ret = &launch;
    return 0;
}

static struct event *add_event(enum event_kind kind, job_id job)
{
    struct event *event = outbox_add(play.outbox);
    *event = (struct event){ .at_ns = play.now_ns, .kind = kind, .job = job };
    if (job != JOB_NONE)
        event->generation = play.engine.state.jobs[job].generation;
    return event;
}

static int arrive_at(void *context, const struct json *seen, struct error *err)
{
    int64_t id = 0;
    assert_true(json_as_count(json_get(seen, "id"), &id));
    assert_false(json_flag_at(seen, "reused"));
    play.jobs[id].known = true;
    assert_int_equal(state_find(&play.engine.state, (uint64_t)id), JOB_NONE);
    struct job_spec spec = { .id = (uint64_t)id,
                             .gpus = play.jobs[id].gpus,
                             .class = play.jobs[id].trial ? CLASS_TE : CLASS_BE,
                             .steps = 100,
                             .kind = play.shards ? "ResNet-18 (batch size 16)" : NULL,
                             .shares = play.jobs[id].shards > 0,
                             .gpu_mib = play.jobs[id].shards * SLURM_SHARD_MIB,
                             .grace_ns = play.jobs[id].signals ? 5 * NS_PER_S : 0 };
    struct job *job = arena_new(&play.pass, struct job);
    assert_int_equal(admission_make_job(&play.admission, &spec, job, err), 0);
    if (json_flag_at(seen, "runs"))
        job->state = JOB_HELD;
    add_event(EVENT_SUBMITTED, JOB_NONE)->spec = job;
    return 0;
}

static void gate(void *context, uint64_t id, const char *dependency)
{
}

/* Its owner lets it go on at once. */
static void set_aside(void *context, uint64_t id)
{
    job_id job = state_find(&play.engine.state, id);
    play.aside++;
    add_event(EVENT_HELD, job);
    add_event(EVENT_RELEASED, job);
}

static void outgrown(void *context)
{
    fail();
}

static void step(void)
{
    struct error err = { "" };
    do {
        struct outbox *inbox = play.outbox;
        play.outbox = inbox == play.boxes ? play.boxes + 1 : play.boxes;
        assert_int_equal(
            engine_step(&play.engine, play.now_ns, inbox->events, inbox->count, &err),
            0);
        inbox->count = 0;
        state_check(&play.engine.state);
    } while (play.outbox->count > 0);
    if (play.slurm->timer_ns <= play.now_ns)
        play.slurm->timer.timer_cb(&play.slurm->timer);
}

/* Every start has one end, and what has ended stays so. */
static void heed(void *self, const struct view *view, const struct event *event)
{
    if (event->job == JOB_NONE || event->kind == EVENT_REJECTED)
        return;
    struct fake *job = &play.jobs[view->jobs[event->job].id];
    if (event->kind == EVENT_SUBMITTED && view->jobs[event->job].state == JOB_HELD)
        add_event(EVENT_RELEASED, event->job);
    switch (event->kind) {
    case EVENT_STARTED:
        assert_false(job->seated);
        job->seated = true;
        job->started++;
        play.paired += view->jobs[event->job].partner != JOB_NONE;
        break;
    case EVENT_STOPPED:
    case EVENT_FINISHED:
    case EVENT_FAILED:
        assert_true(job->seated);
        job->seated = false;
        break;
    case EVENT_LOST:
        job->seated = false;
        break;
    default:
        break;
    }
    if (event->kind == EVENT_FINISHED)
        assert_int_equal(job->fate, COMPLETED);
    if (view->jobs[event->job].state == JOB_FREE) {
        assert_false(job->over);
        assert_false(job->seated);
        job->over = true;
    }
}

static void begin(uint64_t seed, const char *policy_text, bool shards)
{
    struct error err = { "" };
    const struct policy *policy;
    const char *settings;
    memset(&play, 0, sizeof play);
    play.outbox = play.boxes;
    play.now_ns = 5000 * NS_PER_S;
    play.shards = shards;
    rng_init(&play.rng, seed, "slurm");
    arena_init(&play.arena, 0);
    arena_init(&play.pass, 0);
    uv_loop_init(&play.loop);
    cluster_begin(&play.cluster, &play.arena, "slurm", NODES);
    play.cluster.node_names = arena_array(&play.arena, const char *, NODES);
    uint32_t type = cluster_type(&play.cluster, &play.arena, "v100");
    static const char *const names[NODES] = { "n0", "n1", "n2" };
    for (uint32_t n = 0; n < NODES; n++) {
        struct node node = {
            .type = type, .gpu_count = GPUS, .cpu_milli = 64000, .mem_mib = 1000
        };
        play.cluster.node_names[n] = names[n];
        cluster_add(&play.cluster, &node);
    }
    cluster_end(&play.cluster, &play.arena);
    throughput_init(&play.rates, &play.cluster);
    if (shards)
        throughput_published(&play.rates, &play.arena);
    play.rates.rules =
        (struct sharing_rules){ .by_consent = true, .across_users = true };
    play.rates.rules.gpu_mib[type] = SHARDS * SLURM_SHARD_MIB;
    admission_init(&play.admission, &play.cluster, &play.rates);
    assert_int_equal(policy_parse(policy_text, &policy, &settings, &err), 0);
    struct engine_setup setup = { .cluster = &play.cluster,
                                  .rates = &play.rates,
                                  .policy = policy,
                                  .settings = settings,
                                  .executor = &executor_slurm,
                                  .job_max = 256,
                                  .seed = 1 };
    assert_int_equal(engine_init(&play.engine, &play.arena, &setup, &err), 0);
    struct slurm_setup slurm = { .loop = &play.loop,
                                 .view = &play.engine.state.view,
                                 .outbox = &play.outbox,
                                 .fence_ns = NS_PER_S,
                                 .wake = wake,
                                 .now_ns = now_of,
                                 .launch = launch_of,
                                 .arrive = arrive_at,
                                 .gate = gate,
                                 .set_aside = set_aside,
                                 .outgrown = outgrown };
    assert_int_equal(slurm_open(&play.slurm, &slurm, &err), 0);
    play.engine.executor_self = play.slurm;
    engine_add_observer(&play.engine, (struct engine_observer){ .event = heed });
    engine_add_observer(
        &play.engine,
        (struct engine_observer){ .event = executor_slurm.event, .self = play.slurm });
    say_all();
}

static void drop_lines(void)
{
    while (play.word_count > 0) {
        free(play.words[play.word_first++]);
        play.word_count--;
    }
    while (play.verb_count > 0) {
        free(play.verbs[play.verb_first++]);
        play.verb_count--;
    }
}

static void finish(void)
{
    executor_slurm.close(play.slurm);
    uv_run(&play.loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&play.loop), 0);
    drop_lines();
    forget_said();
    engine_release(&play.engine);
    admission_release(&play.admission);
    outbox_release(&play.boxes[0]);
    outbox_release(&play.boxes[1]);
    arena_release(&play.pass);
    arena_release(&play.arena);
}

/* berth-slurm dies: what it was asked for may have been carried out or not. */
static void die(void)
{
    while (play.verb_count > 0 && luck(50))
        carry_out_one();
    drop_lines();
    play.away = false;
    play.link->setup.broken(play.link->setup.context);
    say_all();
}

static void go_away(void)
{
    play.away = !play.away;
    if (play.away) {
        forget_said();
        sayf("{\"away\":\"slurmctld\"}");
    } else {
        sayf("{\"back\":true}");
        say_all();
    }
}

static void cancel_by_berth(void)
{
    uint64_t id = 1 + below(play.job_count ? play.job_count : 1);
    job_id job = state_find(&play.engine.state, id);
    if (job != JOB_NONE)
        add_event(EVENT_CANCELLED, job)->why = "cancelled";
}

static void move(void)
{
    uint32_t what = below(100);
    if (what < 6 && !play.calm)
        submit();
    else if (what < 22)
        happen();
    else if (what < 40)
        carry_out_one();
    else if (what < 50)
        look();
    else if (what < 60)
        say_look();
    else if (what < 85)
        for (uint32_t i = below(5); i < 5; i++)
            hear_one();
    else if (what < 86 && luck(15))
        die();
    else if (what < 87 && luck(15))
        go_away();
    else if (what < 88 && luck(30))
        cancel_by_berth();
    else
        play.now_ns += (int64_t)below(500) * 1000000;
    step();
}

static uint32_t settled; /* how often that was so */

/* Slurm has moved a job that ran, and we have not seen it pending: the books have it where it was. */
static bool is_elsewhere(uint32_t id)
{
    struct slurm_entry *entry = slurm_find(play.slurm, id);
    return play.jobs[id].fate == RUNNING && entry && entry->now.count > 0 &&
           entry->now.seats[0].node != play.jobs[id].node;
}

/*
 * For some seconds nothing happens but what was asked for.  When all is quiet the books have
 * no more free GPUs on a node than there are, those of jobs that have ended among them.
 */
static void settle(void)
{
    uint32_t quiet = 0;
    for (int i = 0; i < 40 && quiet < 6 && !play.away; i++) {
        quiet = play.verb_count + play.word_count > 0 ? 0 : quiet + 1;
        while (play.verb_count > 0)
            carry_out_one();
        say_look();
        look();
        say_look();
        while (play.word_count > 0)
            hear_one();
        play.now_ns += NS_PER_S / 2;
        step();
    }
    for (uint32_t i = 1; i <= play.job_count; i++)
        if (is_elsewhere(i))
            return;
    for (uint32_t n = 0; n < NODES && quiet == 6; n++)
        assert_true(__builtin_popcountll(play.engine.state.free.rooms[n].gpus) +
                        __builtin_popcount(used_on(n, false)) <=
                    GPUS);
    settled += quiet == 6;
}

static bool all_ended(void)
{
    for (uint32_t i = 1; i <= play.job_count; i++)
        if ((!play.jobs[i].over && play.jobs[i].known) || play.jobs[i].fate <= RUNNING)
            return false;
    return true;
}

static void tell_who_is_left(uint64_t seed)
{
    for (uint32_t i = 1; i <= play.job_count; i++) {
        const struct fake *job = &play.jobs[i];
        job_id slot = state_find(&play.engine.state, i);
        struct slurm_entry *entry = slurm_find(play.slurm, i);
        if ((!job->over && job->known) || job->fate <= RUNNING)
            print_message("seed %" PRIu64 ": job %u: %s held %d completing %d; in the "
                          "books: %d; stage %d seq %d verb %s\n",
                          seed, i, fate_names[job->fate], job->held, job->completing,
                          slot == JOB_NONE ? -1
                                           : (int)play.engine.state.jobs[slot].state,
                          entry ? (int)entry->stage : -1, entry ? (int)entry->seq : -1,
                          entry ? bridge_verb_name(entry->verb) : "");
    }
}

/* Returns how many started beside another. */
static uint32_t play_one(uint64_t seed, const char *policy, bool shards)
{
    begin(seed, policy, shards);
    for (int i = 0; i < 4000; i++) {
        move();
        if (i % 500 == 499)
            settle();
    }
    if (play.away)
        go_away();
    play.calm = true;
    for (int i = 0; i < 60000 && !all_ended(); i++)
        move();
    if (!all_ended())
        tell_who_is_left(seed);
    assert_true(all_ended());
    uint32_t paired = play.paired;
    finish();
    return paired;
}

static void test_nobody_is_lost(void **unused)
{
    struct seeds seeds = seeds_first(getenv("BERTH_SOAK") ? 1500 : 40);
    for (; seeds_more(&seeds); seeds.now++) {
        play_one(seeds.now, "fitgpp,max_preemptions=0", false);
        play_one(seeds.now, "las", false);
    }
}

static void test_shards_are_shared(void **unused)
{
    struct seeds seeds = seeds_first(getenv("BERTH_SOAK") ? 1500 : 40);
    uint32_t paired = 0;
    settled = 0;
    for (; seeds_more(&seeds); seeds.now++) {
        paired += play_one(seeds.now, "gavel-las,sharing=true,round=20", true);
        play_one(seeds.now, "fitgpp,max_preemptions=0", true);
    }
    assert_true(getenv("BERTH_SEED") || (paired > 0 && settled > 0));
}

RUN_CASES(TEST(test_nobody_is_lost), TEST(test_shards_are_shared));
