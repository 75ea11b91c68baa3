/*
 * fuzz_policy.h - a policy that makes random plans: grants of any size and type, shared GPUs,
 * leases, revocations, moves, resizes.  After some hundred decisions it grants what jobs
 * request, so that all jobs end.
 */
#pragma once

#include "policy/policy.h"

extern const struct policy policy_fuzz;
