/* fuzz_recorded.c - any text as recorded shares. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "lab/recorded_shares.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena;
    struct gavel_recorded recorded;
    struct error err = { "" };
    arena_init(&arena, 0);
    int r = recorded_shares_parse(&recorded, "input", data, size, 3, &arena, &err);
    assert(r == 0 || err.text[0]);
    for (uint32_t i = 0; r == 0 && i < recorded.count; i++)
        for (uint32_t s = 0; s < recorded.records[i].share_count; s++) {
            const struct gavel_share *share = &recorded.records[i].shares[s];
            assert(share->first != share->second);
            assert(share->x[2] == share->x[2]);
        }
    arena_release(&arena);
    return 0;
}
