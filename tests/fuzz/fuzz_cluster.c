/* fuzz_cluster.c - the short hand for clusters. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "model/cluster.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[256];
    size_t used = size < sizeof text ? size : sizeof text - 1;
    memcpy(text, data, used);
    text[used] = '\0';
    if (strchr(text, '/') || strchr(text, '.') || !strchr(text, ':'))
        return 0; /* would be a file */
    struct arena arena;
    struct cluster cluster;
    struct error err;
    arena_init(&arena, 0);
    if (cluster_load(&cluster, &arena, text, &err) == 0) {
        assert(cluster.node_count > 0);
        assert(cluster.gpu_count > 0);
        assert(cluster.shape_count > 0);
    }
    arena_release(&arena);
    return 0;
}
