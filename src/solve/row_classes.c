/* row_classes.c - rows of numbers that are the same, found in one pass. */
#include "solve/row_classes.h"

#include <stddef.h>
#include <string.h>

#include "base/arena.h"
#include "base/hash.h"

#define NO_CLASS UINT32_MAX

struct row_classes row_classes_find(const double *rows, uint32_t row_count,
                                    uint32_t width, struct arena *arena)
{
    struct row_classes alike = {
        .class_of = arena_array(arena, uint32_t, row_count),
        .first = arena_array(arena, uint32_t, row_count),
        .count = arena_array(arena, double, row_count),
    };
    size_t room = 16;
    while (room < 2 * (size_t)row_count)
        room *= 2;
    uint32_t *table = arena_array(arena, uint32_t, room);
    memset(table, 0xff, room * sizeof *table);
    for (uint32_t i = 0; i < row_count; i++) {
        const double *row = &rows[(size_t)i * width];
        size_t at = hash_doubles(row, width) & (room - 1);
        while (table[at] != NO_CLASS &&
               memcmp(row, &rows[(size_t)alike.first[table[at]] * width],
                      width * sizeof *row) != 0)
            at = (at + 1) & (room - 1);
        if (table[at] == NO_CLASS) {
            table[at] = alike.class_count++;
            alike.first[table[at]] = i;
        }
        alike.class_of[i] = table[at];
        alike.count[table[at]]++;
    }
    return alike;
}
