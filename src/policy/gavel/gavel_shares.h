/* gavel_shares.h - ask the policy for shares.  For gavel_round.c. */
#pragma once

#include "policy/gavel/gavel_round.h"

struct error;

/* Set the units of all lines.  On failure everything stays as it was. */
int shares_make(struct gavel_common *common, const struct view *view,
                struct arena *scratch, struct error *err);

/* A job has come, or goes: how far shares are from those of now, and whether to ask. */
void shares_drift(struct gavel_common *common, const struct view *view, job_id job,
                  bool comes);
