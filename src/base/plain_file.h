/* plain_file.h - open a file whose path was chosen by somebody else. */
#pragma once

struct error;

/*
 * Open a regular file to read, with the rights of this process.  Its path is absolute and
 * its last part no link; a pipe or a device is refused and never waited for, and so is
 * /proc, which shows processes.  A descriptor, or a negative errno.
 */
int plain_file_open(const char *path, struct error *err);

/* The same in a folder of our own, and nothing that was mounted over the file there. */
int plain_file_open_own(const char *path, struct error *err);
