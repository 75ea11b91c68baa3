/*
 * recorded_shares.h - the reader of recorded shares (policy/gavel/gavel_recorded.h has the
 * format), for replays of the published Gavel system.
 */
#pragma once

#include "policy/gavel/gavel_recorded.h"

/* Let the policies of this program follow recorded shares. */
void recorded_shares_enable(void);

gavel_recorded_reader recorded_shares_read;

/* The same from memory, as if it were a file of that name. */
int recorded_shares_parse(struct gavel_recorded *ret_recorded, const char *name,
                          const void *bytes, size_t count, uint32_t type_count,
                          struct arena *run, struct error *err);
