/*
 * supervisor.h - one job's processes, from their start until berthd has recorded their
 * end.
 */
#pragma once

struct error;
struct launch_order;
struct started;

/*
 * Supervise what was started; the current folder is the job's own.  Returns when the end
 * was collected, or is left in the file 'status'.
 */
int supervisor_run(const struct started *started, const struct launch_order *order,
                   const char *state_dir, struct error *err);
