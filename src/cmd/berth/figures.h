/* figures.h - the figures of one run or of several policies as a table. */
#pragma once

#include <stdio.h>

struct comparison;

/* The figures of all policies side by side, over seeds; the best of each row is marked. */
void figures_print(const struct comparison *comparison, FILE *file);
