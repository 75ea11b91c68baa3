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

/*
 * Move the item that would be at 'place' in order there (below 'count'), and none that is smaller
 * behind it: the first 'place' are the least ones, in no order.
 */
void sort_least(struct sort_item *items, uint32_t count, uint32_t place);

/* The same for numbers alone, as records of a run are: none is NaN. */
void sort_numbers(double *numbers, double *scratch, size_t count);
