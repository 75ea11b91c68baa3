/* scenario_users.c - what people do in a world: interfere, and in the end let it be. */
#include "support/scenario_internal.h"

#include <string.h>

#include "base/error.h"
#include "flow/flow.h"
#include "model/cluster.h"
#include "policy/policy.h"

static job_id any_job(struct scenario *s)
{
    const struct state *state = &s->engine.state;
    if (state->job_count == 0)
        return JOB_NONE;
    job_id first = rng_below(&s->rng, state->job_count);
    for (uint32_t i = 0; i < state->job_count; i++) {
        job_id job = (first + i) % state->job_count;
        if (state->jobs[job].state != JOB_FREE)
            return job;
    }
    return JOB_NONE;
}

/* Another class, weight, grace, deadline or size; one that waits is held for it. */
static void change(struct scenario *s, job_id id)
{
    const struct state *state = &s->engine.state;
    bool waits = state->jobs[id].state == JOB_WAITING;
    if (!waits && state->jobs[id].state != JOB_HELD)
        return;
    struct job *spec = arena_new(&s->instant, struct job);
    *spec = state->jobs[id];
    spec->class = scenario_chance(s, 50) ? CLASS_TE : CLASS_BE;
    spec->weight = 1 + rng_below(&s->rng, 3);
    spec->grace_ns = rng_below(&s->rng, 30) * SECOND;
    if (scenario_chance(s, 30))
        spec->steps_total = rng_below(&s->rng, 300);
    if (scenario_chance(s, 30))
        spec->deadline_ns = s->now_ns + (int64_t)rng_below(&s->rng, 1000) * SECOND;
    if (waits)
        scenario_add_event(s, EVENT_HELD, id);
    scenario_add_event(s, EVENT_CHANGED, id)->spec = spec;
    if (waits)
        scenario_add_event(s, EVENT_RELEASED, id);
    s->faulty.faults[FAULT_CHANGE]++;
}

static bool has_param(const struct policy *policy, const char *name)
{
    for (const struct field *p = policy->params; p && p->name; p++)
        if (strcmp(p->name, name) == 0)
            return true;
    return false;
}

/* Settings, now and then, that make it another policy. */
const char *scenario_draw_settings(struct scenario *s, const struct policy *policy)
{
    static const char *const texts[][2] = {
        { "worth", "worth=xion" },        { "sharing", "sharing=true" },
        { "round", "round=60s" },         { "sharing", "sharing=true,round=120s" },
        { "hysteresis", "hysteresis=0" },
    };
    uint32_t choice = rng_below(&s->rng, 8);
    return choice < 5 && has_param(policy, texts[choice][0]) ? texts[choice][1] : NULL;
}

const struct flow_policy *scenario_draw_flow(struct scenario *s)
{
    uint32_t count = 0;
    while (flow_list[count])
        count++;
    return flow_list[rng_below(&s->rng, count)];
}

static void change_policy(struct scenario *s)
{
    struct error err = { "" };
    uint32_t count = 0;
    while (policy_list[count])
        count++;
    s->faulty.faults[FAULT_POLICY]++;
    if (scenario_chance(s, 30)) {
        s->flow = scenario_draw_flow(s);
        scenario_note(s, "flow policy %s takes office", s->flow->name);
        if (engine_set_flow(&s->engine, s->flow, NULL, &err) < 0)
            scenario_broken("%s", err.text);
        return;
    }
    s->policy = policy_list[rng_below(&s->rng, count)];
    s->settings = scenario_draw_settings(s, s->policy);
    scenario_note(s, "%s %s takes office", s->policy->name,
                  s->settings ? s->settings : "");
    if (engine_set_policy(&s->engine, s->policy, s->settings, &err) < 0)
        scenario_broken("%s", err.text);
}

static void take_gpus(struct scenario *s, bool give)
{
    const struct cluster *cluster = &s->world.cluster;
    node_id node = rng_below(&s->rng, cluster->node_count);
    uint64_t all = ((uint64_t)1 << cluster->nodes[node].gpu_count) - 1;
    faulty_set_foreign(&s->faulty, node, give ? 0 : all & rng_below(&s->rng, 256));
}

static void cancel(struct scenario *s, job_id job)
{
    s->faulty.faults[FAULT_CANCEL]++;
    for (uint32_t n = scenario_chance(s, 25) ? 2 : 1; n > 0;
         n--) /* some are impatient */
        scenario_add_event(s, EVENT_CANCELLED, job)->why = "cancelled";
}

static void act(struct scenario *s)
{
    job_id job = any_job(s);
    uint32_t deed = rng_below(&s->rng, 10);
    if (deed >= 8) {
        take_gpus(s, deed == 9);
    } else if (deed == 7) {
        change_policy(s);
    } else if (job == JOB_NONE) {
        return;
    } else if (deed <= 1) {
        cancel(s, job);
    } else if (deed <= 3) {
        s->faulty.faults[FAULT_HOLD]++;
        scenario_add_event(s, EVENT_HELD, job); /* ignored unless it waits */
    } else if (deed == 4) {
        scenario_add_event(s, EVENT_RELEASED, job);
    } else {
        change(s, job);
    }
}

/* From now on nothing goes wrong any more, and nobody is held back. */
static void calm_down(struct scenario *s)
{
    scenario_note(s, "from now on nothing goes wrong");
    s->calm = true;
    s->crashes = 0;
    s->crash = CRASH_NONE;
    faulty_stop_faults(&s->faulty);
    for (job_id id = 0; id < s->engine.state.job_count; id++)
        if (s->engine.state.jobs[id].state == JOB_HELD)
            scenario_add_event(s, EVENT_RELEASED, id);
    s->deed_ns = INT64_MAX;
}

void scenario_act_as_users(struct scenario *s)
{
    if (s->now_ns < s->deed_ns)
        return;
    if (s->deeds == 0 && s->next == s->world.setup.spec_count) {
        calm_down(s);
        return;
    }
    for (uint32_t n = 1 + scenario_chance(s, 30); n > 0 && s->deeds > 0;
         n--, s->deeds--)
        act(s);
    s->deed_ns =
        s->now_ns + rng_below(&s->rng, s->pace_ms) * (SECOND / 1000) + SECOND / 1000;
}
