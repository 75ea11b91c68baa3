/* Finish-time fairness: one job is late, and the others get what it leaves. */
#include "support/world.h"

#include <math.h>

#include "base/arena.h"
#include "policy/gavel/gavel_released.h"

extern const struct policy policy_gavel_ftf;

/*
 * Two GPUs and four jobs of 100 s.  The first came 1,000 s ago and has done 100 s worth of an equal
 * share: its ratio is (1000 + 100) / (100 + 200) = 11/3 even with a GPU to itself.  The second
 * came 500 s ago and has done nothing, so for 11/3 it needs 100 / (11/3 * 200 - 500) = 3/7.
 */
static void ask_shares(struct world *w, const char *settings, bool released,
                       double *ret_x)
{
    struct error err = { 0 };
    struct gavel_policy *self =
        arena_alloc(&w->arena, 1, policy_gavel_ftf.self_size, 16);
    param_defaults(policy_gavel_ftf.params, self);
    assert_int_equal(
        param_parse(policy_gavel_ftf.params, self, "gavel-ftf", settings, &err), 0);
    assert_int_equal(policy_gavel_ftf.init(self, &w->state.view, 1, &w->arena, &err),
                     0);
    struct gavel_call call = { .view = &w->state.view,
                               .job_count = 4,
                               .count = (double[]){ 1, 1, 1, 1 },
                               .total = 4,
                               .type_count = 1,
                               .capacity = (double[]){ 2 },
                               .gang = (double[]){ 1, 1, 1, 1 },
                               .weight = (double[]){ 1, 1, 1, 1 },
                               .rate = (double[]){ 1, 1, 1, 1 },
                               .steps = (double[]){ 100, 100, 100, 100 },
                               .age_s = (double[]){ 1000, 500, 0, 0 },
                               .alone_s = (double[]){ 100, 0, 0, 0 },
                               .x = ret_x,
                               .scratch = &w->arena };
    if (released)
        assert_int_equal(released_shares(self->common, &call, &err), 0);
    else
        assert_int_equal(self->rule->shares(self, &call, &err), 0);
    policy_gavel_ftf.fini(self);
}

static void what_is_left_goes_to_the_next_latest(void **state)
{
    double x[4] = { 0 };
    ask_shares(*state, "aware=false", false, x);
    assert_near(x[0], 1, 1e-6);
    assert_near(x[1], (2 + sqrt(24)) / 10, 1e-6); /* all three have one ratio */
    assert_near(x[2], (8 - sqrt(24)) / 20, 1e-6);
    assert_near(x[3], (8 - sqrt(24)) / 20, 1e-6);
}

static void spare_even_gives_equal_parts_beyond_the_needs(void **state)
{
    double x[4] = { 0 };
    ask_shares(*state, "aware=false,compat=released,spare=even", true, x);
    assert_near(x[0], 1, 1e-6);
    assert_near(x[1], 3 / 7.0, 1e-6);
    assert_near(x[2], 2 / 7.0, 1e-6);
    assert_near(x[3], 2 / 7.0, 1e-6);
}

static void spare_centre_is_between_the_needs_and_all(void **state)
{
    double x[4] = { 0 };
    ask_shares(*state, "aware=false,compat=released", true, x);
    assert_near(x[0], 1, 1e-6);
    assert_true(x[1] > 3 / 7.0 + 0.01 && x[1] < 0.9);
    assert_near(x[2], x[3], 1e-9);
    assert_true(x[2] > 3 / 22.0 + 0.01); /* 100 / (11/3 * 200) */
    assert_true(x[0] + x[1] + x[2] + x[3] <= 2 + 1e-9);
}

WORLD_FIXTURE(/* nodes= */ 2, /* gpus_per_node= */ 1);

RUN_CASES(CASE(what_is_left_goes_to_the_next_latest),
          CASE(spare_even_gives_equal_parts_beyond_the_needs),
          CASE(spare_centre_is_between_the_needs_and_all));
