/* arena.h - memory given back all at once. */
#pragma once

#include <stdalign.h>
#include <stddef.h>

struct arena_block;

/*
 * Large requests get pages of their own that cost nothing until they are touched, so
 * an array may be sized by its ceiling rather than by what is in it today.
 */
struct arena {
    struct arena_block *blocks; /* newest first; reset keeps the oldest          */
    size_t used;                /* bytes taken from the newest block             */
    size_t block_bytes;         /* size of the next block                        */
    size_t held;                /* bytes had from the system: a metric           */
};

void arena_init(struct arena *arena, size_t first_block);
void arena_release(struct arena *arena);

/* Forget everything allocated so far, keep the first block for the next round. */
void arena_reset(struct arena *arena);

/* Zeroed memory.  Never returns NULL: running out of memory ends the program. */
void *arena_alloc(struct arena *arena, size_t count, size_t size, size_t align);

/* A copy of 'text' that lives as long as the arena. */
char *arena_text(struct arena *arena, const char *text);

#define arena_new(arena, type) arena_array((arena), type, 1)
#define arena_array(arena, type, count) \
    ((type *)arena_alloc((arena), (count), sizeof(type), alignof(type)))
