/* job.c - names of what a job can be. */
#include "model/job.h"

#include <stddef.h>

const char *const job_classes[] = { [CLASS_BE] = "be", [CLASS_TE] = "te", NULL };
const char *const job_syncs[] = { [SYNC_RING] = "ring", [SYNC_SERVER] = "ps", NULL };
const char *const job_ends[] = { [ENDED_UNKNOWN] = "unknown",
                                 [ENDED_COMPLETED] = "completed",
                                 [ENDED_FAILED] = "failed",
                                 [ENDED_CANCELLED] = "cancelled",
                                 NULL };
const char *const job_cancellers[] = { [CANCELLED_BY_NONE] = "none",
                                       [CANCELLED_BY_OWNER] = "owner",
                                       [CANCELLED_BY_ADMIN] = "administrator",
                                       [CANCELLED_BY_DEPENDENCY] = "dependency",
                                       NULL };
