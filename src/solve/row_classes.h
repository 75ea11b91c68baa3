/* row_classes.h - rows of numbers that are the same, found in one pass. */
#pragma once

#include <stdint.h>

struct arena;

struct row_classes {
    uint32_t class_count;
    uint32_t *class_of; /* [row]                               */
    uint32_t *first;    /* [class] the first row that is in it */
    double *count;      /* [class] rows in it                  */
};

/* Classes are numbered in order of their first row; all arrays are in 'arena'. */
struct row_classes row_classes_find(const double *rows, uint32_t row_count,
                                    uint32_t width, struct arena *arena);
