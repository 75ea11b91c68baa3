/* compare.h - is what was built again as it was?  States and ledgers compared. */
#pragma once

struct error;
struct ledger;
struct state;

/*
 * All that must survive a restart: every live job, its seats, promises, partners, times,
 * counts and reports; what is free; the open entries of the ledger.  Jobs are found by their
 * public ids, since slots may differ.  -EPROTO with the first difference.
 */
int compare_states(const struct state *was, const struct state *is, struct error *err);
int compare_ledgers(const struct ledger *was, const struct ledger *is,
                    struct error *err);
