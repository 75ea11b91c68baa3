/* scenario_users.c - actions of users and administrators in a scenario. */
#include "support/scenario_internal.h"

#include <string.h>

#include "base/error.h"
#include "flow/flow.h"
#include "model/cluster.h"
#include "policy/policy.h"

static job_id draw_job(struct scenario *s)
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

/* Change class, weight, grace period, deadline or work; a waiting job is held for that. */
static void change_job(struct scenario *s, job_id id)
{
    const struct state *state = &s->engine.state;
    bool waits = state->jobs[id].state == JOB_WAITING;
    if (!waits && state->jobs[id].state != JOB_HELD)
        return;
    struct job *spec = arena_new(&s->instant, struct job);
    *spec = state->jobs[id];
    spec->class = scenario_draw(s, 50) ? CLASS_TE : CLASS_BE;
    spec->weight = 1 + rng_below(&s->rng, 3);
    spec->grace_ns = rng_below(&s->rng, 30) * SECOND;
    if (scenario_draw(s, 30))
        spec->steps_total = rng_below(&s->rng, 300);
    if (scenario_draw(s, 30))
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

/* Draw settings of the policy, or NULL. */
const char *scenario_draw_settings(struct scenario *s, const struct policy *policy)
{
    static const char *const texts[][2] = {
        { "worth", "worth=xion" },        { "sharing", "sharing=true" },
        { "round", "round=60s" },         { "sharing", "sharing=true,round=120s" },
        { "hysteresis", "hysteresis=0" },
    };
    static const char *const berths[] = {
        NULL,           "objective=makespan",  "objective=fairness", "objective=cost",
        "sharing=true", "sharing=true,age=60s"
    };
    if (has_param(policy, "objective"))
        return berths[rng_below(&s->rng, 6)];
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
    if (scenario_draw(s, 30)) {
        s->flow = scenario_draw_flow(s);
        scenario_log(s, "flow policy %s takes office", s->flow->name);
        if (engine_set_flow(&s->engine, s->flow, NULL, &err) < 0)
            scenario_broken("%s", err.text);
        return;
    }
    if (!has_param(s->policy, "objective") || scenario_draw(s, 50))
        s->policy = policy_list[rng_below(&s->rng, count)];
    s->settings = scenario_draw_settings(s, s->policy);
    scenario_log(s, "%s %s takes office", s->policy->name,
                 s->settings ? s->settings : "");
    if (engine_set_policy(&s->engine, s->policy, s->settings, &err) < 0)
        scenario_broken("%s", err.text);
}

static void set_foreign_gpus(struct scenario *s, bool give)
{
    const struct cluster *cluster = &s->world.cluster;
    node_id node = rng_below(&s->rng, cluster->node_count);
    uint64_t all = ((uint64_t)1 << cluster->nodes[node].gpu_count) - 1;
    faulty_set_foreign(&s->faulty, node, give ? 0 : all & rng_below(&s->rng, 256));
}

static void cancel_job(struct scenario *s, job_id job)
{
    s->faulty.faults[FAULT_CANCEL]++;
    for (uint32_t n = scenario_draw(s, 25) ? 2 : 1; n > 0;
         n--) /* some users repeat it */
        scenario_add_event(s, EVENT_CANCELLED, job)->why = "cancelled";
}

static void act_once(struct scenario *s)
{
    job_id job = draw_job(s);
    uint32_t action = rng_below(&s->rng, 10);
    if (action >= 8) {
        set_foreign_gpus(s, action == 9);
    } else if (action == 7) {
        change_policy(s);
    } else if (job == JOB_NONE) {
        return;
    } else if (action <= 1) {
        cancel_job(s, job);
    } else if (action <= 3) {
        s->faulty.faults[FAULT_HOLD]++;
        scenario_add_event(s, EVENT_HELD, job); /* ignored unless the job waits */
    } else if (action == 4) {
        scenario_add_event(s, EVENT_RELEASED, job);
    } else {
        change_job(s, job);
    }
}

/* End all faults and release all held jobs. */
static void end_faults(struct scenario *s)
{
    scenario_log(s, "from now on nothing goes wrong");
    s->quiet = true;
    s->crashes = 0;
    s->crash = CRASH_NONE;
    faulty_stop_faults(&s->faulty);
    for (job_id id = 0; id < s->engine.state.job_count; id++)
        if (s->engine.state.jobs[id].state == JOB_HELD)
            scenario_add_event(s, EVENT_RELEASED, id);
    s->action_ns = INT64_MAX;
}

void scenario_act_as_users(struct scenario *s)
{
    if (s->now_ns < s->action_ns)
        return;
    if (s->actions_left == 0 && s->next == s->world.setup.spec_count) {
        end_faults(s);
        return;
    }
    for (uint32_t n = 1 + scenario_draw(s, 30); n > 0 && s->actions_left > 0;
         n--, s->actions_left--)
        act_once(s);
    s->action_ns =
        s->now_ns + rng_below(&s->rng, s->pace_ms) * (SECOND / 1000) + SECOND / 1000;
}
