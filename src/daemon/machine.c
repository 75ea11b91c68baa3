/* machine.c - the machine in front of us as a cluster. */
#include "daemon/machine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/error.h"

#define FAKE_MAX 1024

/* How many of each type, as somebody says: "v100:4,k80:2". */
static int read_fake(const char *text, const char *names[TYPES_MAX],
                     uint32_t counts[TYPES_MAX], struct arena *arena, uint32_t *ret_n,
                     struct error *err)
{
    uint32_t n = 0;
    char *copy = arena_text(arena, text);
    char *rest = copy;
    for (char *word; (word = strsep(&rest, ","));) {
        char *colon = strchr(word, ':');
        char *end = NULL;
        unsigned long count = colon ? strtoul(colon + 1, &end, 10) : 0;
        if (!colon || colon == word || !end || *end || count < 1 || count > FAKE_MAX)
            return error_set(err, -EINVAL,
                             "--fake-gpus is \"%.60s\", want TYPE:N,… with N from 1 to "
                             "%d",
                             text, FAKE_MAX);
        if (n == TYPES_MAX)
            return error_set(err, -EINVAL, "--fake-gpus: more than %d types",
                             TYPES_MAX);
        *colon = '\0';
        names[n] = word;
        counts[n++] = (uint32_t)count;
    }
    *ret_n = n;
    return 0;
}

static uint64_t memory_mib(void)
{
    return (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE) >> 20;
}

/* Nodes of at most 64 accelerators; CPUs and memory in proportion. */
static void build(struct machine *machine, struct arena *arena,
                  const char *const names[], const uint32_t counts[], uint32_t n)
{
    uint32_t total = 0;
    uint32_t node_max = 0;
    for (uint32_t i = 0; i < n; i++) {
        total += counts[i];
        node_max += (counts[i] + NODE_GPUS_MAX - 1) / NODE_GPUS_MAX;
    }
    uint64_t cpu_milli = (uint64_t)sysconf(_SC_NPROCESSORS_ONLN) * 1000;
    struct cluster *cluster = &machine->cluster;
    cluster_begin(cluster, arena, "this machine", node_max);
    machine->gpu_index = arena_array(arena, uint32_t, (size_t)node_max * NODE_GPUS_MAX);
    uint32_t index = 0;
    uint32_t node = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t type = cluster_type(cluster, arena, names[i]);
        for (uint32_t left = counts[i]; left > 0; node++) {
            uint32_t gpus = left < NODE_GPUS_MAX ? left : NODE_GPUS_MAX;
            cluster_add(
                cluster,
                &(struct node){ .type = type,
                                .gpu_count = gpus,
                                .cpu_milli = (uint32_t)(cpu_milli * gpus / total),
                                .mem_mib = (uint32_t)(memory_mib() * gpus / total) });
            for (uint32_t g = 0; g < gpus; g++)
                machine->gpu_index[node * NODE_GPUS_MAX + g] = index++;
            left -= gpus;
        }
    }
    cluster_end(cluster, arena);
}

int machine_find(struct machine *machine, struct arena *arena, const char *fake,
                 struct error *err)
{
    const char *names[TYPES_MAX];
    uint32_t counts[TYPES_MAX];
    uint32_t n = 1;
    *machine = (struct machine){ .source = "CPU slots" };
    names[0] = "cpu";
    counts[0] = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN);
    if (fake) {
        machine->source = "--fake-gpus";
        int r = read_fake(fake, names, counts, arena, &n, err);
        if (r < 0)
            return r;
    }
    build(machine, arena, names, counts, n);
    return 0;
}

void machine_release(struct machine *machine)
{
    (void)machine;
}

uint64_t machine_foreign(struct machine *machine, node_id node)
{
    (void)machine;
    (void)node;
    return 0;
}
