/* sort.h - many numbers in order, in linear time. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* A number and what belongs to it. */
struct sort_item {
    double key; /* not NaN */
    uint32_t value;
};

/* Smallest key first; equal ones stay in the order they are in.  'scratch' is as long. */
void sort_items(struct sort_item *items, struct sort_item *scratch, size_t count);

/* The same for numbers alone, as records of a run are: none is NaN. */
void sort_numbers(double *numbers, double *scratch, size_t count);
