/*
 * fuzz_policy.h - a policy that does everything at random: grants of any size and type, beside
 * others, with leases; revocations, moves, resizes.  After some hundred decisions it turns
 * reasonable, so that everything comes to its end.
 */
#pragma once

#include "policy/policy.h"

extern const struct policy policy_fuzz;
