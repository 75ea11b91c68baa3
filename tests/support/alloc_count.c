/* alloc_count.c - count calls of malloc() and free() while switched on. */
#include "support/alloc_count.h"

#include <stddef.h>

bool alloc_count_on;
uint64_t alloc_count_calls;

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *old, size_t bytes);
void __real_free(void *old);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);
void __wrap_free(void *old);

void *__wrap_malloc(size_t bytes)
{
    alloc_count_calls += alloc_count_on;
    return __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    alloc_count_calls += alloc_count_on;
    return __real_calloc(count, bytes);
}

void *__wrap_realloc(void *old, size_t bytes)
{
    alloc_count_calls += alloc_count_on;
    return __real_realloc(old, bytes);
}

void __wrap_free(void *old)
{
    alloc_count_calls += alloc_count_on;
    __real_free(old);
}
