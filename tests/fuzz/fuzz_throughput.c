/* fuzz_throughput.c - throughput tables in JSON and CSV. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "model/cluster.h"
#include "model/throughput.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena;
    struct cluster cluster;
    struct throughput table;
    struct error err = { "" };
    arena_init(&arena, 0);
    int r = cluster_load(&cluster, &arena, "v100:1,k80:1", &err);
    assert(r == 0);
    throughput_init(&table, &cluster);
    r = throughput_parse(&table, &arena, "input", (const char *)data, size, &err);
    assert(r == 0 || err.text[0]);
    for (uint32_t row = 0; r == 0 && row < table.row_count; row++) {
        struct job job = { .gpus = 3, .types = 3, .kind = row };
        assert(throughput_best(&table, &job, NULL) >= 0);
        double rates[2];
        if (throughput_pair(&table, row, 0, 0, 1, row & 1, rates))
            assert((rates[0] > 0) == (rates[1] > 0));
    }
    arena_release(&arena);
    return 0;
}
