/*
 * sort.c - radix sort of doubles.
 *
 * Read as an integer with the sign turned, a double sorts like its value.  Items with values
 * take six passes over digits of eleven bits; a digit that is the same everywhere is passed
 * over.  Numbers alone are parted by their first bits that differ, into no more parts than a
 * cache can write to at once, and each part is sorted the same way: one of many jobs has few.
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

#define RUN 8 /* and of these each takes its place in turn */

static void insert_items(struct sort_item *items, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        struct sort_item item = items[i];
        size_t at = i;
        for (; at > 0 && items[at - 1].key > item.key; at--)
            items[at] = items[at - 1];
        items[at] = item;
    }
}

static void merge_items(struct sort_item *items, struct sort_item *scratch,
                        size_t count)
{
    struct sort_item *from = items;
    struct sort_item *to = scratch;
    for (size_t start = 0; start < count; start += RUN)
        insert_items(items + start, count - start < RUN ? count - start : RUN);
    for (size_t run = RUN; run < count; run *= 2) {
        for (size_t start = 0; start < count; start += 2 * run) {
            size_t middle = start + run < count ? start + run : count;
            size_t end = start + 2 * run < count ? start + 2 * run : count;
            size_t left = start;
            size_t right = middle;
            size_t i = start;
            while (left < middle && right < end) { /* without a jump to guess */
                bool right_is_less = from[right].key < from[left].key;
                to[i++] = from[right_is_less ? right : left];
                right += right_is_less;
                left += !right_is_less;
            }
            memcpy(&to[i], &from[left], (middle - left) * sizeof *to);
            memcpy(&to[i + middle - left], &from[right], (end - right) * sizeof *to);
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

/* --- numbers alone --------------------------------------------------------------------- */

/* A number as a key, in the place of the number. */
typedef uint64_t __attribute__((may_alias)) number_key;

#define PART_BITS 8
#define PARTS (1u << PART_BITS)
#define INSERTED_MAX 24

static void insert_keys(number_key *keys, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        uint64_t key = keys[i];
        size_t at = i;
        for (; at > 0 && keys[at - 1] > key; at--)
            keys[at] = keys[at - 1];
        keys[at] = key;
    }
}

/* Those of 'from' in order into 'to'; both are written to.  They may not be the same. */
static void part_keys(number_key *from, number_key *to, size_t count, bool back)
{
    number_key *wanted = back ? from : to;
    uint64_t least = UINT64_MAX;
    uint64_t most = 0;
    for (size_t i = 0; i < count; i++) {
        least = from[i] < least ? from[i] : least;
        most = from[i] > most ? from[i] : most;
    }
    if (count <= INSERTED_MAX || least == most) {
        if (!back)
            memcpy(to, from, count * sizeof *to);
        if (least != most)
            insert_keys(wanted, count);
        return;
    }
    int bits = 64 - __builtin_clzll(most - least);
    int shift = bits > PART_BITS ? bits - PART_BITS : 0;
    size_t ends[PARTS] = { 0 };
    for (size_t i = 0; i < count; i++)
        ends[(from[i] - least) >> shift]++;
    size_t start = 0;
    for (uint32_t part = 0; part < PARTS; part++) {
        size_t here = ends[part];
        ends[part] = start;
        start += here;
    }
    for (size_t i = 0; i < count; i++)
        to[ends[(from[i] - least) >> shift]++] = from[i];
    /* They are in 'to' now, and wanted where they were if it was 'back'. */
    bool few = false;
    start = 0;
    for (uint32_t part = 0; part < PARTS; part++) {
        size_t here = ends[part] - start;
        if (here > INSERTED_MAX)
            part_keys(to + start, from + start, here, !back);
        else if (back && here > 0)
            memcpy(from + start, to + start, here * sizeof *to);
        few = few || (here > 1 && here <= INSERTED_MAX);
        start = ends[part];
    }
    if (few) /* nothing is far from its place */
        insert_keys(wanted, count);
}

void sort_least(struct sort_item *items, uint32_t count, uint32_t place)
{
    uint32_t low = 0;
    uint32_t high = count - 1;
    while (low < high) {
        double pivot = items[low + (high - low) / 2].key;
        uint32_t i = low;
        uint32_t j = high;
        for (;;) {
            while (items[i].key < pivot)
                i++;
            while (items[j].key > pivot)
                j--;
            if (i >= j)
                break;
            struct sort_item item = items[i];
            items[i++] = items[j];
            items[j--] = item;
        }
        if (place <= j)
            high = j;
        else
            low = j + 1;
    }
}

void sort_numbers(double *numbers, double *scratch, size_t count)
{
    number_key *keys = (number_key *)(void *)scratch;
    number_key *sorted = (number_key *)(void *)numbers;
    for (size_t i = 0; i < count; i++)
        keys[i] = sortable_bits(numbers[i]);
    part_keys(keys, sorted, count, false);
    for (size_t i = 0; i < count; i++)
        sorted[i] = sorted[i] >> 63 ? sorted[i] & ~((uint64_t)1 << 63) : ~sorted[i];
}
