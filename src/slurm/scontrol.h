/*
 * scontrol.h - parse the output of 'scontrol show job|node --oneliner --details'.
 *
 * It prints KEY=VALUE with blanks between and does not quote: a job's name or comment may
 * contain blanks, "JobState=RUNNING", and even a line end with a whole forged record.  So a
 * record is used only if every important key occurs in it exactly once, and if squeue, which
 * is asked for numbers only, lists a job of that number and owner.
 */
#pragma once

#include <stddef.h>

struct arena;
struct slurm_observer;

/*
 * Report each job to the observer.  'owned' is what squeue printed: "JOB UID" on each line.
 * The text is modified, and records point into the scratch arena.
 */
void scontrol_jobs(char *text, const char *owned, size_t owned_bytes,
                   const struct slurm_observer *observer, struct arena *scratch);

/* Report each node to the observer, in the same manner. */
void scontrol_nodes(char *text, const struct slurm_observer *observer,
                    struct arena *scratch);

/* Read one value of 'scontrol show config', "KEY = VALUE"; "" if it is missing. */
void scontrol_setting(const char *text, const char *key, char *value, size_t size);
