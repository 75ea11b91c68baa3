/*
 * request_source.h - what a job runs: a command, a batch script with its #SBATCH and #BERTH
 * lines, or a job file; and the environment it gets.
 */
#pragma once

#include <stdbool.h>

struct request_builder;
struct error;
struct flags;

/*
 * What is to be run: 'words' as they are, or (unless 'dashes') a job file, a script or "-"
 * for one on standard input.  A script's own lines count less than 'flags', so they are
 * read here, and the flags after them.  'who' is said before warnings.
 */
int request_source_read(struct request_builder *builder, const struct flags *flags,
                        const char *who, struct error *err);

/* Whether a file that begins like this is a batch script, not a program to be run where
 * it stands: by a shell, or with #SBATCH or #BERTH lines. */
bool request_source_is_script(const char *text);

/*
 * What the #SBATCH and then the #BERTH lines before a script's first command say.  What
 * #SBATCH says and Berth does not know is passed over, with one warning by 'who'.
 */
int request_source_read_lines(struct request_builder *builder, const char *text,
                              const char *file, const char *who, struct error *err);
