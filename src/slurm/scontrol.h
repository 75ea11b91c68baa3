/*
 * scontrol.h - what 'scontrol show job|node --oneliner --details' printed, read with care.
 *
 * It prints KEY=VALUE with blanks between, and does not quote: a job's name or comment may
 * hold blanks, "JobState=RUNNING", and even the end of a line with a whole record of its
 * own.  So a record counts only if every key that matters stands in it exactly once, and if
 * Slurm's other command, which is asked for numbers alone, knows a job of that number and
 * owner.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/map.h"

struct arena;
struct slurm_observer;

/* Whose the jobs are: "JOB UID" on each line, from squeue. */
struct job_owners {
    struct map uid_of;
};

void job_owners_read(const char *text, size_t count, struct job_owners *owners);
void job_owners_release(struct job_owners *owners);

/* Show each record to 'eyes'.  'text' is taken apart; it lives as long as the scratch. */
void scontrol_jobs(char *text, const struct job_owners *owners,
                   const struct slurm_observer *eyes, struct arena *scratch);
void scontrol_nodes(char *text, const struct slurm_observer *eyes,
                    struct arena *scratch);

/* One value of 'scontrol show config', "KEY = VALUE"; into 'value', "" if it is not there. */
void scontrol_setting(const char *text, const char *key, char *value, size_t size);
