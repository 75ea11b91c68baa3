/*
 * upkeep.h - berthd looks after what it keeps: old rows and files are deleted, the database gives
 * room back, copies of it go.
 *
 * All of it is done in pieces while no pass is wanted, each in a transaction of its own, so that
 * no decision and no commit has to wait for more than one piece.  docs/internals/recovery.md has
 * the rules.
 */
#pragma once

#include <stdint.h>

struct daemon;
struct error;
struct upkeep;

/* 'failed' is called if the store cannot be written. */
struct upkeep *upkeep_new(struct daemon *daemon,
                          void (*failed)(void *context, const struct error *err));

/* Before the loop is closed; then, after that, the memory is freed. */
void upkeep_stop(struct upkeep *upkeep);
void upkeep_free(struct upkeep *upkeep);
