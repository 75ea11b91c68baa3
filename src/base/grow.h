/* grow.h - arrays that double when they are full. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * Make room for 'want' items of 'size' bytes.  Returns the array, which may have moved, with
 * what is new zeroed, and writes how many items it has room for.
 */
void *grow_array(void *items, uint32_t *room, uint32_t want, size_t size);

/* The room that grow_array() would make; for arrays that share one. */
uint32_t grow_room(uint32_t room, uint32_t want);
