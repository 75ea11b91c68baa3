/*
 * slurm_features.h - what sbatch -C asks of a node: names of features with '&' (or a comma)
 * and '|' between them.
 */
#pragma once

#include <stdbool.h>

/* Whether it is of that kind; brackets, counts and the like are not. */
bool features_can_read(const char *wanted);

/* Whether a node with these features, "a,b", will do; read from left to right, as Slurm
 * reads it. */
bool features_match(const char *wanted, const char *has);
