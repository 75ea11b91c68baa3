/* compare.h - compare the states and ledgers of two engines, after a recovery. */
#pragma once

struct error;
struct ledger;
struct state;

/*
 * Compare all that must survive a restart: every live job with its allocation, pending
 * allocation, partners, times, counts and reports; free resources; open entries of the
 * ledger.  Jobs are matched by their public ids, since slots may differ.  -EPROTO with the
 * first difference.
 */
int compare_states(const struct state *was, const struct state *is, struct error *err);
int compare_ledgers(const struct ledger *was, const struct ledger *is,
                    struct error *err);
