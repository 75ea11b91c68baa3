/*
 * cost_test.h - the cost test before any policy's preemptions: the setting worth=xion.
 *
 * The policy plans a preemption as it always does.  The test then asks cost_model.h
 * whether it pays, and undoes it if not.  A trial job is refused only where GPUs become
 * free before the victims would have stopped: preempting them would not let it start
 * earlier.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/param.h"
#include "model/plan.h"
#include "policy/shared/cost_model.h"

struct arena;
struct reasons;

#define COST_TEST_VICTIMS_MAX 128 /* swaps with more victims are not tested */
#define COST_TEST_PRICED 8        /* victims of a refused swap that are kept */

enum cost_test_choice { COST_TEST_NONE, COST_TEST_XION };
extern const char *const cost_test_choices[];

/* The row for a policy's table of settings; 'field' is a uint32_t. */
#define COST_TEST_PARAM(type, field) \
    { \
        "worth", FIELD_CHOICE, offsetof(type, field), "none", NULL, \
            "before each preemption ask whether it pays", 0, 0, cost_test_choices \
    }

/* A preemption that did not pay. */
struct cost_test_refusal {
    uint64_t beneficiary; /* public ids */
    uint64_t victims[COST_TEST_PRICED];
    double prices_gpu_s[COST_TEST_PRICED]; /* of stopping each */
    uint32_t victim_count;                 /* in all */
    struct preemption_price price;
};

#define COST_TEST_REFUSALS 32 /* kept for 'berth why' */

struct cost_test {
    uint32_t choice; /* enum cost_test_choice; set before cost_test_init() */
    struct cost_model model;
    const struct bits *avoid; /* nodes that no beneficiary may use, or NULL */
    struct cost_test_refusal refusals[COST_TEST_REFUSALS];
    uint32_t refusal_count; /* in all, including those no longer kept */
};

void cost_test_init(struct cost_test *test, const struct view *view, struct arena *run);
void cost_test_observe(struct cost_test *test, const struct view *view,
                       const struct event *event);

/*
 * Since 'mark' the plan revokes jobs for 'beneficiary' and grants it their GPUs.
 * Returns true if that pays, or if no test was chosen; otherwise undoes it.
 */
bool cost_test_pass(struct cost_test *test, const struct view *view, struct plan *plan,
                    size_t mark, job_id beneficiary);

/* Describe the newest preemption for this job that did not pay. */
void cost_test_explain(const struct cost_test *test, const struct view *view,
                       job_id job, struct reasons *reasons);
