/*
 * Any lines as berth-slurm's: the executor for Slurm and the engine survive them.  state_check()
 * is not asked: records that contradict each other, such as a job of five GPUs that runs with
 * one, are taken into the books as they are.
 */
#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <uv.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/json.h"
#include "base/units.h"
#include "engine/engine.h"
#include "executor/slurm/slurm.h"
#include "executor/slurm/slurm_link.h"
#include "model/admission.h"
#include "model/cluster.h"
#include "model/launch.h"
#include "model/outbox.h"
#include "model/throughput.h"
#include "policy/policy.h"

#define NODES 2
#define LINES_MAX 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* In place of the process: what it says comes from the input, what it is told goes nowhere. */
struct slurm_link {
    struct slurm_link_setup setup;
};

static struct fuzz_site {
    struct slurm_link link;
    int64_t now_ns;
    uv_loop_t loop;
    struct arena arena, pass;
    struct cluster cluster;
    struct throughput rates;
    struct admission admission;
    struct engine engine;
    struct outbox boxes[2], *outbox;
    struct slurm *slurm;
} site;

int slurm_link_open(struct slurm_link **ret_link, const struct slurm_link_setup *setup,
                    struct error *err)
{
    site.link.setup = *setup;
    *ret_link = &site.link;
    return 0;
}

void slurm_link_close(struct slurm_link *link)
{
}

void slurm_link_say(struct slurm_link *link, const struct buf *line)
{
}

static int64_t read_now(void *context)
{
    return site.now_ns;
}

static void ignore_wake(void *context)
{
}

static void ignore_gate(void *context, uint64_t id, const char *dependency)
{
}

static int find_launch(void *context, uint64_t id, const struct launch **ret,
                       struct error *err)
{
    static struct launch launch = { .uid = 7, .signal = SIGTERM };
    if (state_find(&site.engine.state, id) == JOB_NONE)
        return error_set(err, -ENOENT, "ended");
    *ret = &launch;
    return 0;
}

static struct event *add_event(enum event_kind kind, job_id job)
{
    struct event *event = outbox_add(site.outbox);
    *event = (struct event){ .at_ns = site.now_ns, .kind = kind, .job = job };
    if (job != JOB_NONE)
        event->generation = site.engine.state.jobs[job].generation;
    return event;
}

static int accept_job(void *context, const struct json *seen, struct error *err)
{
    int64_t id = 0, gpus = 1;
    if (!json_as_count(json_get(seen, "id"), &id) || id < 1)
        return error_set(err, -ENOTSUP, "no id");
    json_as_count(json_get(seen, "gpus"), &gpus);
    if (state_find(&site.engine.state, (uint64_t)id) != JOB_NONE)
        return error_set(err, -EAGAIN, "not yet gone");
    struct job_spec spec = { .id = (uint64_t)id, .gpus = (uint32_t)(gpus & 7) };
    struct job *job = arena_new(&site.pass, struct job);
    if (admission_make_job(&site.admission, &spec, job, err) < 0)
        return -ENOTSUP;
    add_event(EVENT_SUBMITTED, JOB_NONE)->spec = job;
    return 0;
}

static void set_aside(void *context, uint64_t id)
{
    job_id job = state_find(&site.engine.state, id);
    if (job != JOB_NONE)
        add_event(EVENT_HELD, job);
}

static void make_cluster(void)
{
    static const char *const names[NODES] = { "n0", "n1" };
    cluster_begin(&site.cluster, &site.arena, "slurm", NODES);
    site.cluster.node_names = arena_array(&site.arena, const char *, NODES);
    uint32_t type = cluster_type(&site.cluster, &site.arena, "v100");
    for (uint32_t n = 0; n < NODES; n++) {
        struct node node = {
            .type = type, .gpu_count = 4, .cpu_milli = 64000, .mem_mib = 1000
        };
        site.cluster.node_names[n] = names[n];
        cluster_add(&site.cluster, &node);
    }
    cluster_end(&site.cluster, &site.arena);
    throughput_init(&site.rates, &site.cluster);
    admission_init(&site.admission, &site.cluster, &site.rates);
}

static void open_site(void)
{
    struct error err = { "" };
    const struct policy *policy;
    const char *settings;
    site = (struct fuzz_site){ .now_ns = 5000 * NS_PER_S, .outbox = site.boxes };
    arena_init(&site.arena, 0);
    arena_init(&site.pass, 0);
    uv_loop_init(&site.loop);
    make_cluster();
    assert(policy_parse("las", &policy, &settings, &err) == 0);
    struct engine_setup setup = { .cluster = &site.cluster,
                                  .rates = &site.rates,
                                  .policy = policy,
                                  .settings = settings,
                                  .executor = &executor_slurm,
                                  .job_max = 256,
                                  .seed = 1 };
    assert(engine_init(&site.engine, &site.arena, &setup, &err) == 0);
    struct slurm_setup slurm = { .loop = &site.loop,
                                 .view = &site.engine.state.view,
                                 .outbox = &site.outbox,
                                 .fence_ns = NS_PER_S,
                                 .wake = ignore_wake,
                                 .now_ns = read_now,
                                 .launch = find_launch,
                                 .arrive = accept_job,
                                 .gate = ignore_gate,
                                 .set_aside = set_aside,
                                 .outgrown = ignore_wake };
    assert(slurm_open(&site.slurm, &slurm, &err) == 0);
    site.engine.executor_self = site.slurm;
    engine_add_observer(
        &site.engine,
        (struct engine_observer){ .event = executor_slurm.event, .self = site.slurm });
}

static void close_site(void)
{
    executor_slurm.close(site.slurm);
    uv_run(&site.loop, UV_RUN_DEFAULT);
    assert(uv_loop_close(&site.loop) == 0);
    engine_release(&site.engine);
    admission_release(&site.admission);
    outbox_release(&site.boxes[0]);
    outbox_release(&site.boxes[1]);
    arena_release(&site.pass);
    arena_release(&site.arena);
}

static void step_engine(void)
{
    struct error err = { "" };
    do {
        struct outbox *inbox = site.outbox;
        site.outbox = inbox == site.boxes ? site.boxes + 1 : site.boxes;
        int r =
            engine_step(&site.engine, site.now_ns, inbox->events, inbox->count, &err);
        assert(r == 0);
        inbox->count = 0;
    } while (site.outbox->count > 0);
}

static void hear_line(const char *line, size_t length)
{
    struct json *word = NULL;
    struct error err;
    if (json_parse(line, length, &word, &err) < 0)
        return; /* as slurm_link.c does */
    site.now_ns += NS_PER_S;
    site.link.setup.line(site.link.setup.context, word);
    json_free(word);
    step_engine();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *at = (const char *)data;
    open_site();
    for (int i = 0; i < LINES_MAX && size > 0; i++) {
        const char *end = memchr(at, '\n', size);
        size_t length = end ? (size_t)(end - at) : size;
        hear_line(at, length);
        size -= length + (end ? 1 : 0);
        at += length + (end ? 1 : 0);
    }
    site.link.setup.broken(site.link.setup.context);
    step_engine();
    close_site();
    return 0;
}
