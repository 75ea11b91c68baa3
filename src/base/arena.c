/*
 * arena.c - memory given back all at once.
 *
 * Blocks come from mmap: zeroed, and real only where touched.  A reset clears what the
 * first block has handed out and returns the others to the system; the first block
 * grows to what the busiest round needed, so a steady state allocates nothing.
 */
#include "base/arena.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "base/memory.h"

#if defined(__has_feature)
#define CLANG_ASAN __has_feature(address_sanitizer)
#else
#define CLANG_ASAN 0
#endif

#if defined(__SANITIZE_ADDRESS__) || CLANG_ASAN
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(addr, size) ((void)0)
#define ASAN_UNPOISON_MEMORY_REGION(addr, size) ((void)0)
#endif

struct arena_block {
    struct arena_block *older;
    size_t bytes;       /* with this header */
    size_t first_bytes; /* of the piece it was made for, which is never poisoned */
};

#define HEADER_BYTES 64
#define PAGE_BYTES 4096
#define BLOCK_BYTES_MIN (16 * 1024)

static struct arena_block *block_new(struct arena *arena, size_t bytes)
{
    bytes = (bytes + PAGE_BYTES - 1) & ~(size_t)(PAGE_BYTES - 1);
    struct arena_block *block =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (block == MAP_FAILED)
        memory_exhausted();
    block->bytes = bytes;
    arena->held += bytes;
    return block;
}

static void block_free(struct arena *arena, struct arena_block *block)
{
    arena->held -= block->bytes;
    ASAN_UNPOISON_MEMORY_REGION((char *)block + HEADER_BYTES + block->first_bytes,
                                block->bytes - HEADER_BYTES - block->first_bytes);
    munmap(block, block->bytes);
}

void arena_init(struct arena *arena, size_t first_block)
{
    *arena = (struct arena){ .block_bytes = first_block };
    if (arena->block_bytes < BLOCK_BYTES_MIN)
        arena->block_bytes = BLOCK_BYTES_MIN;
}

void arena_release(struct arena *arena)
{
    while (arena->blocks) {
        struct arena_block *block = arena->blocks;
        arena->blocks = block->older;
        block_free(arena, block);
    }
    arena->used = 0;
}

void arena_reset(struct arena *arena)
{
    struct arena_block *block = arena->blocks;
    if (!block || (arena->used == HEADER_BYTES && !block->older))
        return; /* nothing was handed out */
    if (block->older) {
        /* More than one block was needed: the next round starts with one that is
         * large enough for all of it. */
        size_t total = arena->held;
        arena_release(arena);
        arena->block_bytes = total;
        return;
    }
    /* The gaps between aligned pieces are poisoned; the whole is ours to clear. */
    ASAN_UNPOISON_MEMORY_REGION(block, block->bytes);
    memset((char *)block + HEADER_BYTES, 0, arena->used - HEADER_BYTES);
    ASAN_POISON_MEMORY_REGION((char *)block + HEADER_BYTES,
                              block->bytes - HEADER_BYTES);
    block->first_bytes = 0;
    arena->used = HEADER_BYTES;
}

void *arena_alloc(struct arena *arena, size_t count, size_t size, size_t align)
{
    assert(align <= HEADER_BYTES);
    assert(size == 0 || count <= SIZE_MAX / 2 / size);
    size_t bytes = count * size;
    size_t start = (arena->used + align - 1) & ~(align - 1);

    if (!arena->blocks || start + bytes > arena->blocks->bytes) {
        size_t want = bytes + HEADER_BYTES;
        if (want < arena->block_bytes)
            want = arena->block_bytes;
        struct arena_block *block = block_new(arena, want);
        block->older = arena->blocks;
        block->first_bytes = bytes;
        arena->blocks = block;
        arena->used = HEADER_BYTES + bytes;
        /* A gigabyte that is hardly touched must not have its shadow written. */
        ASAN_POISON_MEMORY_REGION((char *)block + arena->used,
                                  block->bytes - arena->used);
        return (char *)block + HEADER_BYTES;
    }
    void *memory = (char *)arena->blocks + start;
    arena->used = start + bytes;
    ASAN_UNPOISON_MEMORY_REGION(memory, bytes);
    return memory;
}

char *arena_text(struct arena *arena, const char *text)
{
    size_t bytes = strlen(text) + 1;
    return memcpy(arena_array(arena, char, bytes), text, bytes);
}
