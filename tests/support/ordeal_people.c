/* ordeal_people.c - what people do in a world: interfere, and in the end let it be. */
#include "support/ordeal_internal.h"

#include <string.h>

#include "base/error.h"
#include "flow/flow.h"
#include "model/cluster.h"
#include "policy/policy.h"

static job_id any_job(struct ordeal *o)
{
    const struct state *state = &o->engine.state;
    if (state->job_count == 0)
        return JOB_NONE;
    job_id first = rng_below(&o->rng, state->job_count);
    for (uint32_t i = 0; i < state->job_count; i++) {
        job_id job = (first + i) % state->job_count;
        if (state->jobs[job].state != JOB_FREE)
            return job;
    }
    return JOB_NONE;
}

/* Another class, weight, grace, deadline or size; one that waits is held for it. */
static void change(struct ordeal *o, job_id id)
{
    const struct state *state = &o->engine.state;
    bool waits = state->jobs[id].state == JOB_WAITING;
    if (!waits && state->jobs[id].state != JOB_HELD)
        return;
    struct job *spec = arena_new(&o->instant, struct job);
    *spec = state->jobs[id];
    spec->class = ordeal_chance(o, 50) ? CLASS_TE : CLASS_BE;
    spec->weight = 1 + rng_below(&o->rng, 3);
    spec->grace_ns = rng_below(&o->rng, 30) * SECOND;
    if (ordeal_chance(o, 30))
        spec->steps_total = rng_below(&o->rng, 300);
    if (ordeal_chance(o, 30))
        spec->deadline_ns = o->now_ns + (int64_t)rng_below(&o->rng, 1000) * SECOND;
    if (waits)
        ordeal_add_event(o, EVENT_HELD, id);
    ordeal_add_event(o, EVENT_CHANGED, id)->spec = spec;
    if (waits)
        ordeal_add_event(o, EVENT_RELEASED, id);
    o->ground.faults[FAULT_CHANGE]++;
}

static bool has_param(const struct policy *policy, const char *name)
{
    for (const struct field *p = policy->params; p && p->name; p++)
        if (strcmp(p->name, name) == 0)
            return true;
    return false;
}

/* Settings, now and then, that make it another policy. */
const char *ordeal_some_settings(struct ordeal *o, const struct policy *policy)
{
    static const char *const texts[][2] = {
        { "worth", "worth=xion" },        { "sharing", "sharing=true" },
        { "round", "round=60s" },         { "sharing", "sharing=true,round=120s" },
        { "hysteresis", "hysteresis=0" },
    };
    uint32_t choice = rng_below(&o->rng, 8);
    return choice < 5 && has_param(policy, texts[choice][0]) ? texts[choice][1] : NULL;
}

const struct flow_policy *ordeal_some_flow(struct ordeal *o)
{
    uint32_t count = 0;
    while (flow_list[count])
        count++;
    return flow_list[rng_below(&o->rng, count)];
}

static void change_policy(struct ordeal *o)
{
    struct error err = { "" };
    uint32_t count = 0;
    while (policy_list[count])
        count++;
    o->ground.faults[FAULT_POLICY]++;
    if (ordeal_chance(o, 30)) {
        o->flow = ordeal_some_flow(o);
        ordeal_note(o, "flow policy %s takes office", o->flow->name);
        if (engine_set_flow(&o->engine, o->flow, NULL, &err) < 0)
            ordeal_broken("%s", err.text);
        return;
    }
    o->policy = policy_list[rng_below(&o->rng, count)];
    o->settings = ordeal_some_settings(o, o->policy);
    ordeal_note(o, "%s %s takes office", o->policy->name,
                o->settings ? o->settings : "");
    if (engine_set_policy(&o->engine, o->policy, o->settings, &err) < 0)
        ordeal_broken("%s", err.text);
}

static void take_gpus(struct ordeal *o, bool give)
{
    const struct cluster *cluster = &o->world.cluster;
    node_id node = rng_below(&o->rng, cluster->node_count);
    uint64_t all = ((uint64_t)1 << cluster->nodes[node].gpu_count) - 1;
    ground_set_foreign(&o->ground, node, give ? 0 : all & rng_below(&o->rng, 256));
}

static void cancel(struct ordeal *o, job_id job)
{
    o->ground.faults[FAULT_CANCEL]++;
    for (uint32_t n = ordeal_chance(o, 25) ? 2 : 1; n > 0; n--) /* some are impatient */
        ordeal_add_event(o, EVENT_CANCELLED, job)->why = "cancelled";
}

static void act(struct ordeal *o)
{
    job_id job = any_job(o);
    uint32_t deed = rng_below(&o->rng, 10);
    if (deed >= 8) {
        take_gpus(o, deed == 9);
    } else if (deed == 7) {
        change_policy(o);
    } else if (job == JOB_NONE) {
        return;
    } else if (deed <= 1) {
        cancel(o, job);
    } else if (deed <= 3) {
        o->ground.faults[FAULT_HOLD]++;
        ordeal_add_event(o, EVENT_HELD, job); /* ignored unless it waits */
    } else if (deed == 4) {
        ordeal_add_event(o, EVENT_RELEASED, job);
    } else {
        change(o, job);
    }
}

/* From now on nothing goes wrong any more, and nobody is held back. */
static void calm_down(struct ordeal *o)
{
    ordeal_note(o, "from now on nothing goes wrong");
    o->calm = true;
    o->crashes = 0;
    o->crash = CRASH_NONE;
    ground_calm(&o->ground);
    for (job_id id = 0; id < o->engine.state.job_count; id++)
        if (o->engine.state.jobs[id].state == JOB_HELD)
            ordeal_add_event(o, EVENT_RELEASED, id);
    o->deed_ns = INT64_MAX;
}

void ordeal_let_people_act(struct ordeal *o)
{
    if (o->now_ns < o->deed_ns)
        return;
    if (o->deeds == 0 && o->next == o->world.setup.spec_count) {
        calm_down(o);
        return;
    }
    for (uint32_t n = 1 + ordeal_chance(o, 30); n > 0 && o->deeds > 0; n--, o->deeds--)
        act(o);
    o->deed_ns =
        o->now_ns + rng_below(&o->rng, o->pace_ms) * (SECOND / 1000) + SECOND / 1000;
}
