/*
 * supervisor.h - one job's processes, from their start until berthd has recorded their
 * end.
 */
#pragma once

struct error;

/*
 * Carry out the launch order in the folder 'dir'; 'link' is a connection to berthd, or
 * -1.  Returns when the end was collected, or is left in the file 'status'. -EALREADY:
 * this attempt was started before, and nothing was done.
 */
int supervisor_run(const char *dir, int link, struct error *err);
