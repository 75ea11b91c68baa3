/* grow.h - arrays that double when they are full. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * Make room for 'want' items of 'size' bytes: returns where they are now, what is new
 * zeroed, and writes how many there is room for.  Running out of memory ends the program.
 */
void *grow(void *items, uint32_t *room, uint32_t want, size_t size);
