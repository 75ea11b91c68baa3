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
 * Read what to run: the words as they are, or (unless "--" stands before them) a job file, a
 * script, or "-" for a script on standard input; then all flags, which take precedence over
 * the lines of a script.  'verb' is the command that warnings name.
 */
int request_source_read(struct request_builder *builder, const struct flags *flags,
                        const char *verb, struct error *err);

/* Whether a text is a batch script and not a program to be run as it is: it is run by a
 * shell, or has #SBATCH or #BERTH lines. */
bool request_source_is_script(const char *text);

/*
 * Apply the #SBATCH and then the #BERTH lines before a script's first command.  Flags of
 * #SBATCH that Berth does not know are ignored, with one warning in the name of 'verb'.
 */
int request_source_read_lines(struct request_builder *builder, const char *text,
                              const char *file, const char *verb, struct error *err);
