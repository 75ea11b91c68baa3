/* gate.c - "is it worth it?" in front of any policy's preemptions. */
#include "policy/shared/gate.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/units.h"
#include "model/reasons.h"

const char *const gate_choices[] = { "none", "xion", NULL };

void gate_init(struct gate *gate, const struct view *view, struct arena *run)
{
    if (gate->choice == GATE_NONE)
        return;
    gate->worth.settings = WORTH_STANDARD;
    worth_init(&gate->worth, view, run);
}

void gate_observe(struct gate *gate, const struct view *view, const struct event *event)
{
    if (gate->choice != GATE_NONE)
        worth_observe(&gate->worth, view, event);
}

/* A swap that the plan makes: who leaves, by which rule. */
struct swap {
    job_id victims[GATE_VICTIMS_MAX];
    enum rule rule;
    uint32_t count;
};

/* Whom the plan revokes for 'newcomer'; false if nobody, or too many to ask about. */
static bool read_swap(const struct plan *plan, job_id newcomer, struct swap *swap)
{
    swap->count = 0;
    for (size_t i = 0; i < plan_change_count(plan); i++) {
        const struct change *change = plan_change(plan, i);
        if (change->kind != CHANGE_REVOKE || change->for_whom != newcomer)
            continue;
        if (swap->count == GATE_VICTIMS_MAX)
            return false;
        swap->rule = change->rule;
        swap->victims[swap->count++] = change->job;
    }
    return swap->count > 0;
}

/* Once more, with what it is expected to spare; it was possible a moment ago. */
static bool make_swap(struct plan *plan, job_id newcomer, const struct swap *swap,
                      const struct worth_price *price)
{
    size_t mark = plan_mark(plan);
    int64_t saved_ns = (int64_t)(price->wait_saved_s * 1e9);
    for (uint32_t i = 0; i < swap->count; i++) {
        plan_revoke(plan, swap->victims[i], swap->rule, newcomer);
        plan_expect(plan, swap->victims[i], saved_ns > 0 ? saved_ns : 0);
    }
    if (plan_grant(plan, newcomer, NULL))
        return true;
    plan_undo(plan, mark);
    return false;
}

static void note_refusal(struct gate *gate, const struct view *view, job_id newcomer,
                         const struct swap *swap, const struct worth_price *price)
{
    gate->refusals[gate->refusal_count++ % GATE_REFUSALS] =
        (struct gate_refusal){ .newcomer = view->jobs[newcomer].id,
                               .victim = view->jobs[swap->victims[0]].id,
                               .victim_count = swap->count,
                               .price = *price };
}

bool gate_pass(struct gate *gate, const struct view *view, struct plan *plan,
               size_t mark, job_id newcomer)
{
    struct swap swap;
    if (gate->choice == GATE_NONE || !read_swap(plan, newcomer, &swap))
        return true;
    bool trial = swap.rule == RULE_TRIAL;
    if (trial && view->jobs[newcomer].steps_total <= 0)
        return true; /* how long it takes is unknown, that it is wanted is not */

    struct worth_price price;
    plan_undo(plan, mark);
    bool pays = worth_swap(&gate->worth, view, plan, newcomer, swap.victims, swap.count,
                           &price);
    if (trial)
        pays = price.wait_saved_s > 0;
    if (!pays)
        note_refusal(gate, view, newcomer, &swap, &price);
    return pays && make_swap(plan, newcomer, &swap, &price);
}

static const struct gate_refusal *newest(const struct gate *gate, uint64_t newcomer)
{
    uint32_t kept =
        gate->refusal_count < GATE_REFUSALS ? gate->refusal_count : GATE_REFUSALS;
    for (uint32_t i = 1; i <= kept; i++) {
        const struct gate_refusal *refusal =
            &gate->refusals[(gate->refusal_count - i) % GATE_REFUSALS];
        if (refusal->newcomer == newcomer)
            return refusal;
    }
    return NULL;
}

void gate_explain(const struct gate *gate, const struct view *view, job_id job,
                  struct reasons *reasons)
{
    char gain[32];
    char saved[32];
    char others[32] = "";
    const struct gate_refusal *refusal = newest(gate, view->jobs[job].id);
    if (!refusal)
        return;
    if (refusal->victim_count > 1)
        snprintf(others, sizeof others, " and %u others", refusal->victim_count - 1);
    const struct worth_price *price = &refusal->price;
    reasons_add(
        reasons, "worth",
        "sending job %" PRIu64 "%s away for it would waste %.3g GPU-s, spare it "
        "%s%s and all together %s%s: not worth it",
        refusal->victim, others, price->cost_gpu_s, price->wait_saved_s < 0 ? "-" : "",
        units_show_time(saved, sizeof saved,
                        price->wait_saved_s < 0 ? -price->wait_saved_s
                                                : price->wait_saved_s),
        price->gain_s < 0 ? "-" : "",
        units_show_time(gain, sizeof gain,
                        price->gain_s < 0 ? -price->gain_s : price->gain_s));
}
