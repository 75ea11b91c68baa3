/*
 * sort.c - radix sort of doubles.
 *
 * Read as an integer with the sign turned, a double sorts like its value, so six passes
 * over digits of eleven bits do; a digit that is the same everywhere is passed over.
 */
#include "base/sort.h"

#include <stdbool.h>
#include <string.h>

static uint64_t sortable_bits(double key)
{
    uint64_t bits;
    key += 0.0; /* one zero, not two */
    memcpy(&bits, &key, sizeof bits);
    return bits >> 63 ? ~bits : bits | (uint64_t)1 << 63;
}

#define DIGIT_BITS 11
#define DIGITS 6
#define DIGIT_VALUES (1u << DIGIT_BITS)

static uint32_t digit_of(double key, uint32_t digit)
{
    return (uint32_t)(sortable_bits(key) >> DIGIT_BITS * digit) & (DIGIT_VALUES - 1);
}

/* Few are merged: counting digits would take longer than sorting them. */
#define FEW 400

static void merge_items(struct sort_item *items, struct sort_item *scratch,
                        size_t count)
{
    struct sort_item *from = items;
    struct sort_item *to = scratch;
    for (size_t run = 1; run < count; run *= 2) {
        for (size_t start = 0; start < count; start += 2 * run) {
            size_t middle = start + run < count ? start + run : count;
            size_t end = start + 2 * run < count ? start + 2 * run : count;
            size_t left = start;
            size_t right = middle;
            for (size_t i = start; i < end; i++) {
                bool right_is_less =
                    left == middle || (right < end && from[right].key < from[left].key);
                to[i] = right_is_less ? from[right++] : from[left++];
            }
        }
        struct sort_item *swap = from;
        from = to;
        to = swap;
    }
    if (from != items)
        memcpy(items, from, count * sizeof *items);
}

void sort_items(struct sort_item *items, struct sort_item *scratch, size_t count)
{
    if (count < FEW) {
        merge_items(items, scratch, count);
        return;
    }
    size_t starts[DIGITS][DIGIT_VALUES] = { { 0 } };
    for (size_t i = 0; i < count; i++)
        for (uint32_t digit = 0; digit < DIGITS; digit++)
            starts[digit][digit_of(items[i].key, digit)]++;

    struct sort_item *from = items;
    struct sort_item *to = scratch;
    for (uint32_t digit = 0; digit < DIGITS && count > 0; digit++) {
        if (starts[digit][digit_of(from[0].key, digit)] == count)
            continue;
        size_t start = 0;
        for (uint32_t value = 0; value < DIGIT_VALUES; value++) {
            size_t here = starts[digit][value];
            starts[digit][value] = start;
            start += here;
        }
        for (size_t i = 0; i < count; i++)
            to[starts[digit][digit_of(from[i].key, digit)]++] = from[i];
        struct sort_item *swap = from;
        from = to;
        to = swap;
    }
    if (from != items)
        memcpy(items, from, count * sizeof *items);
}
