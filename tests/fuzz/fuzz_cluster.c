/* fuzz_cluster.c - the short hand for clusters. */
#include "fuzz.h"

#include <assert.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "model/cluster.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    char text[256];
    size_t used = count < sizeof text ? count : sizeof text - 1;
    memcpy(text, bytes, used);
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
