/*
 * policy_rows.h - the table of policies: from when on each of them decided.
 *
 * A row is written with the change itself, in the same transaction.
 */
#pragma once

#include <stdint.h>

struct error;
struct store;

/* 'policy', with its settings, decides from now on; nothing is written if it did before. */
int policy_rows_note(struct store *store, int64_t at_ns, const char *policy,
                     struct error *err);

/* Call 'take' with each that has decided at 'since_ns' or later, the oldest first. */
void policy_rows_read(struct store *store, int64_t since_ns,
                      void (*take)(void *context, int64_t at_ns, const char *policy),
                      void *context);
