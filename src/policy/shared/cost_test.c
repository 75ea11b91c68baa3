/* cost_test.c - the cost test before any policy's preemptions. */
#include "policy/shared/cost_test.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/units.h"
#include "model/reasons.h"

const char *const cost_test_choices[] = { "none", "xion", NULL };

void cost_test_init(struct cost_test *test, const struct view *view, struct arena *run)
{
    if (test->choice == COST_TEST_NONE)
        return;
    test->model.settings = COST_MODEL_STANDARD;
    cost_model_init(&test->model, view, run);
}

void cost_test_observe(struct cost_test *test, const struct view *view,
                       const struct event *event)
{
    if (test->choice != COST_TEST_NONE)
        cost_model_observe(&test->model, view, event);
}

/* A preemption found in a plan: its victims, and the rule they were chosen by. */
struct planned_swap {
    job_id victims[COST_TEST_VICTIMS_MAX];
    enum rule rule;
    uint32_t count;
};

/*
 * Find the jobs that the plan revokes for 'beneficiary'; false: none, or too many to
 * test.
 */
static bool read_swap(const struct plan *plan, job_id beneficiary,
                      struct planned_swap *swap)
{
    swap->count = 0;
    for (size_t i = 0; i < plan_change_count(plan); i++) {
        const struct change *change = plan_change(plan, i);
        if (change->kind != CHANGE_REVOKE || change->beneficiary != beneficiary)
            continue;
        if (swap->count == COST_TEST_VICTIMS_MAX)
            return false;
        swap->rule = change->rule;
        swap->victims[swap->count++] = change->job;
    }
    return swap->count > 0;
}

/* Plan the preemption again, now with the waiting time it is expected to save. */
static bool make_swap(const struct cost_test *test, struct plan *plan,
                      job_id beneficiary, const struct planned_swap *swap,
                      const struct preemption_price *price)
{
    struct ask ask = ASK_DEFAULT;
    ask.avoid = test->avoid;
    size_t mark = plan_mark(plan);
    int64_t saved_ns = (int64_t)(price->wait_saved_s * 1e9);
    for (uint32_t i = 0; i < swap->count; i++) {
        plan_revoke(plan, swap->victims[i], swap->rule, beneficiary);
        plan_expect(plan, swap->victims[i], saved_ns > 0 ? saved_ns : 0);
    }
    if (plan_grant(plan, beneficiary, &ask))
        return true;
    plan_undo(plan, mark);
    return false;
}

/* GPU-seconds that make no steps if it is stopped now. */
static double price_of(const struct cost_model *model, const struct view *view,
                       job_id victim)
{
    double pause_s = cost_model_pause_s(model, view, victim);
    if (model->estimates)
        return model->estimates->waste_gpu_s(model->self, view, victim, pause_s);
    return view->jobs[victim].gpus_now *
           (pause_s + cost_model_load_s(model, view, victim));
}

static void note_refusal(struct cost_test *test, const struct view *view,
                         job_id beneficiary, const struct planned_swap *swap,
                         const struct preemption_price *price)
{
    struct cost_test_refusal *refusal =
        &test->refusals[test->refusal_count++ % COST_TEST_REFUSALS];
    *refusal = (struct cost_test_refusal){ .beneficiary = view->jobs[beneficiary].id,
                                           .victim_count = swap->count,
                                           .price = *price };
    for (uint32_t i = 0; i < swap->count && i < COST_TEST_PRICED; i++) {
        refusal->victims[i] = view->jobs[swap->victims[i]].id;
        refusal->prices_gpu_s[i] = price_of(&test->model, view, swap->victims[i]);
    }
}

bool cost_test_pass(struct cost_test *test, const struct view *view, struct plan *plan,
                    size_t mark, job_id beneficiary)
{
    struct planned_swap swap;
    if (test->choice == COST_TEST_NONE || !read_swap(plan, beneficiary, &swap))
        return true;
    bool trial = swap.rule == RULE_TRIAL;
    if (trial && view->jobs[beneficiary].steps_total <= 0)
        return true; /* its run time is unknown, but a user waits for it */

    struct preemption_price price;
    plan_undo(plan, mark);
    bool pays = cost_model_pays(&test->model, view, plan, beneficiary, swap.victims,
                                swap.count, &price);
    if (trial)
        pays = price.wait_saved_s > 0;
    if (!pays)
        note_refusal(test, view, beneficiary, &swap, &price);
    return pays && make_swap(test, plan, beneficiary, &swap, &price);
}

static const struct cost_test_refusal *find_newest_refusal(const struct cost_test *test,
                                                           uint64_t beneficiary)
{
    uint32_t kept = test->refusal_count < COST_TEST_REFUSALS ? test->refusal_count
                                                             : COST_TEST_REFUSALS;
    for (uint32_t i = 1; i <= kept; i++) {
        const struct cost_test_refusal *refusal =
            &test->refusals[(test->refusal_count - i) % COST_TEST_REFUSALS];
        if (refusal->beneficiary == beneficiary)
            return refusal;
    }
    return NULL;
}

void cost_test_explain(const struct cost_test *test, const struct view *view,
                       job_id job, struct reasons *reasons)
{
    char gain[32];
    char saved[32];
    char others[32] = "";
    const struct cost_test_refusal *refusal =
        find_newest_refusal(test, view->jobs[job].id);
    if (!refusal)
        return;
    if (refusal->victim_count > 1)
        snprintf(others, sizeof others, " and %u others", refusal->victim_count - 1);
    const struct preemption_price *price = &refusal->price;
    reasons_add(reasons, "worth",
                "sending job %" PRIu64
                "%s away for it would waste %.3g GPU-s, spare it "
                "%s%s and all together %s%s: not worth it",
                refusal->victims[0], others, price->cost_gpu_s,
                price->wait_saved_s < 0 ? "-" : "",
                units_show_time(saved, sizeof saved,
                                price->wait_saved_s < 0 ? -price->wait_saved_s
                                                        : price->wait_saved_s),
                price->gain_s < 0 ? "-" : "",
                units_show_time(gain, sizeof gain,
                                price->gain_s < 0 ? -price->gain_s : price->gain_s));
    for (uint32_t i = 0; i < refusal->victim_count && i < COST_TEST_PRICED; i++)
        reasons_add_considered(
            reasons,
            (struct reasons_considered){ refusal->victims[i], refusal->prices_gpu_s[i],
                                         price->gain_s, "costs more than it saves" });
}
