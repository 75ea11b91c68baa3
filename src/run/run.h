/* run.h - one job's processes, from their start until their end was collected. */
#pragma once

struct error;

/*
 * Carry out the order in the folder 'dir'; 'link' is a connection to berthd, or -1.
 * Returns when the end was collected, or could be by anybody who reads the file 'status'.
 * -EALREADY: this attempt was begun before, and nothing was done.
 */
int run_job(const char *dir, int link, struct error *err);
