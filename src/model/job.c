/* job.c - names of what a job can be. */
#include "model/job.h"

#include <stddef.h>

const char *const job_classes[] = { [CLASS_BE] = "be", [CLASS_TE] = "te", NULL };
const char *const job_syncs[] = { [SYNC_RING] = "ring", [SYNC_SERVER] = "ps", NULL };
