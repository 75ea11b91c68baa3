/* memory.c - the one answer to "no memory". */
#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void memory_exhausted(void)
{
    fputs("berth: out of memory\n", stderr);
    abort();
}

void *memory_resize(void *block, size_t count, size_t size)
{
    return memory_checked(reallocarray(block, count, size));
}

char *memory_text(const char *text)
{
    return text ? memory_checked(strdup(text)) : NULL;
}
