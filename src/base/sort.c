/*
 * sort.c - radix sort of doubles.
 *
 * Read as an integer with the sign turned, a double sorts like its value, so eight
 * passes over the bytes do; a byte that is the same everywhere is passed over.
 */
#include "base/sort.h"

#include <string.h>

static uint64_t ordered(double key)
{
    uint64_t bits;
    memcpy(&bits, &key, sizeof bits);
    return bits >> 63 ? ~bits : bits | (uint64_t)1 << 63;
}

void sort_items(struct sort_item *items, struct sort_item *scratch, size_t count)
{
    static const uint32_t bytes = sizeof(uint64_t);
    size_t counts[sizeof(uint64_t)][256] = { { 0 } };
    for (size_t i = 0; i < count; i++) {
        uint64_t key = ordered(items[i].key);
        for (uint32_t byte = 0; byte < bytes; byte++)
            counts[byte][key >> 8 * byte & 0xff]++;
    }
    struct sort_item *from = items;
    struct sort_item *to = scratch;
    for (uint32_t byte = 0; byte < bytes; byte++) {
        if (count == 0 || counts[byte][ordered(from[0].key) >> 8 * byte & 0xff] == count)
            continue;
        size_t starts[256];
        size_t start = 0;
        for (uint32_t digit = 0; digit < 256; digit++) {
            starts[digit] = start;
            start += counts[byte][digit];
        }
        for (size_t i = 0; i < count; i++)
            to[starts[ordered(from[i].key) >> 8 * byte & 0xff]++] = from[i];
        struct sort_item *swap = from;
        from = to;
        to = swap;
    }
    if (from != items)
        memcpy(items, from, count * sizeof *items);
}
