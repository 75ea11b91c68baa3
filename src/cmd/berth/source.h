/* source.h - where a job is written down: batch scripts and the lines in them. */
#pragma once

#include <stdbool.h>

struct arena;
struct draft;
struct error;

/* All of a file, or of standard input for "-", as text.  Lives in 'arena'. */
int source_read(struct arena *arena, const char *path, const char **ret_text,
                struct error *err);

/* Whether a file that begins like this is a batch script, not a program to be run where
 * it stands: by a shell, or with #SBATCH or #BERTH lines. */
bool source_is_script(const char *text);

/*
 * What the #SBATCH and then the #BERTH lines before a script's first command say.  What
 * #SBATCH says and Berth does not know is passed over, with one warning by 'who'.
 */
int source_lines(struct draft *draft, const char *text, const char *file,
                 const char *who, struct error *err);
