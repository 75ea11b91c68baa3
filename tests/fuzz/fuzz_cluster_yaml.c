/* fuzz_cluster_yaml.c - clusters in YAML. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "model/cluster.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena;
    struct cluster cluster;
    struct error err = { "" };
    arena_init(&arena, 0);
    int r = cluster_parse(&cluster, &arena, "input", data, size, &err);
    assert(r == 0 || err.text[0]);
    arena_release(&arena);
    return 0;
}
