/* counting.c - how often memory is asked for or given back, while somebody counts. */
#include "support/counting.h"

#include <stddef.h>

bool counting_now;
uint64_t counting_found;

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
    counting_found += counting_now;
    return __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    counting_found += counting_now;
    return __real_calloc(count, bytes);
}

void *__wrap_realloc(void *old, size_t bytes)
{
    counting_found += counting_now;
    return __real_realloc(old, bytes);
}

void __wrap_free(void *old)
{
    counting_found += counting_now;
    __real_free(old);
}
