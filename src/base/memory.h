/*
 * memory.h - the one answer to "no memory": a sentence on stderr, and the end of the program.
 *
 * No caller checks.  What a run may hold is bounded when it starts, so this happens where the
 * machine is too small for what was configured.  The client library stands alone and returns
 * instead: a training job is not ended by its scheduler's lack of memory.
 */
#pragma once

#include <stddef.h>

_Noreturn void memory_exhausted(void);

/* Returns 'block', or ends the program: memory_checked(calloc(1, sizeof *x)). */
static inline void *memory_checked(void *block)
{
    if (!block)
        memory_exhausted();
    return block;
}

/* realloc() to 'count' items of 'size' bytes; what is new is not zeroed. */
void *memory_resize(void *block, size_t count, size_t size);

/* A copy of 'text' to be freed; NULL of NULL. */
char *memory_text(const char *text);
