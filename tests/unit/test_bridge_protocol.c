/* test_bridge_protocol.c - the words that berthd and berth-slurm have in common. */
#include "host/bridge_protocol.h"

#include <string.h>

#include "support/cases.h"

static void each_verb_is_found_by_its_name(void **state)
{
    enum bridge_verb found;
    for (enum bridge_verb verb = VERB_START; verb <= VERB_POLL; verb++) {
        found = verb == VERB_POLL ? VERB_START : VERB_POLL;
        assert_true(bridge_verb_find(bridge_verb_name(verb), &found));
        assert_int_equal(found, verb);
    }
    assert_false(bridge_verb_find("resume", &found));
    assert_false(bridge_verb_find("", &found));
}

static void each_state_is_found_by_its_name(void **state)
{
    for (enum bridge_state at = BRIDGE_UNKNOWN; at <= BRIDGE_GONE; at++)
        assert_int_equal(bridge_state_find(bridge_state_name(at)), at);
    assert_int_equal(bridge_state_find("REVOKED"), BRIDGE_UNKNOWN);
}

/* A state that we have no name for is one of the end: no such job is waited for. */
static void a_job_waits_runs_or_has_ended(void **state)
{
    for (enum bridge_state at = BRIDGE_UNKNOWN; at <= BRIDGE_GONE; at++)
        assert_int_equal((at == BRIDGE_PENDING) + bridge_state_runs(at) +
                             bridge_state_has_ended(at),
                         1);
    assert_true(bridge_state_runs(BRIDGE_SUSPENDED));
    assert_true(bridge_state_runs(BRIDGE_COMPLETING));
    assert_true(bridge_state_has_ended(BRIDGE_UNKNOWN));
}

RUN_CASES(TEST(each_verb_is_found_by_its_name), TEST(each_state_is_found_by_its_name),
          TEST(a_job_waits_runs_or_has_ended));
