/* A cluster with more nodes: names, shapes, and texts that make no sense. */
#include "support/cases.h"

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "model/cluster.h"
#include "model/cluster_extend.h"

ARENA_FIXTURE(arena);

static struct cluster cluster, extended;
static struct error err;

static void extend(const char *from, const char *text)
{
    if (cluster_load(&cluster, &arena, from, &err) < 0 ||
        cluster_extend(&extended, &arena, &cluster, text, &err) < 0)
        fail_msg("%s", err.text);
}

static void check_counts(const struct cluster *of)
{
    uint32_t gpus = 0;
    uint32_t by_type[TYPES_MAX] = { 0 };
    uint32_t most[TYPES_MAX] = { 0 };
    for (node_id id = 0; id < of->node_count; id++) {
        const struct node *node = &of->nodes[id];
        gpus += node->gpu_count;
        by_type[node->type] += node->gpu_count;
        if (node->gpu_count > most[node->type])
            most[node->type] = node->gpu_count;
    }
    assert_int_equal(of->gpu_count, gpus);
    for (uint32_t t = 0; t < of->type_count; t++) {
        assert_int_equal(of->types[t].gpu_count, by_type[t]);
        assert_int_equal(of->types[t].node_gpus_max, most[t]);
    }
}

static void the_others_stay_and_new_ones_follow(void **state)
{
    char name[64], before[64];
    extend("2xv100:8,1xk80:4", "v100:2");
    assert_int_equal(extended.node_count, 4);
    assert_int_equal(extended.type_count, cluster.type_count);
    for (node_id id = 0; id < 3; id++) {
        assert_memory_equal(&extended.nodes[id], &cluster.nodes[id],
                            sizeof extended.nodes[id]);
        assert_string_equal(cluster_node_name(&extended, id, name, sizeof name),
                            cluster_node_name(&cluster, id, before, sizeof before));
    }
    assert_string_equal(cluster_node_name(&extended, 3, name, sizeof name), "added1");
    assert_int_equal(extended.nodes[3].gpu_count, 2);
    assert_int_equal(extended.nodes[3].type, extended.nodes[0].type);
    check_counts(&extended);
    assert_int_equal(extended.gpu_count, 22);
}

static void several_of_some_types_are_added(void **state)
{
    char name[64];
    extend("2xv100:8,1xk80:4", "2xk80:16,1xv100:4");
    assert_int_equal(extended.node_count, 6);
    assert_string_equal(cluster_node_name(&extended, 5, name, sizeof name), "added3");
    assert_int_equal(extended.nodes[3].gpu_count, 16);
    assert_int_equal(extended.types[extended.nodes[3].type].node_gpus_max, 16);
    assert_string_equal(extended.types[extended.nodes[5].type].name, "v100");
    check_counts(&extended);
}

/* So that jobs that ask for CPUs find as many for a GPU there. */
static void a_new_node_has_cpus_and_memory_in_proportion_to_the_largest(void **state)
{
    assert_int_equal(cluster_load(&cluster, &arena, "2xv100:8", &err), 0);
    struct node *nodes = (struct node *)cluster.nodes;
    nodes[0].cpu_milli = 1000;
    nodes[0].gpu_count = 4;
    nodes[1].cpu_milli = 64000;
    nodes[1].mem_mib = 77;
    assert_int_equal(cluster_extend(&extended, &arena, &cluster, "v100:1", &err), 0);
    assert_int_equal(extended.nodes[2].cpu_milli, 8000);
    assert_int_equal(extended.nodes[2].mem_mib, 9);
    assert_int_equal(extended.nodes[2].gpu_count, 1);
}

static void what_makes_no_sense_is_refused_in_a_sentence(void **state)
{
    static const char *const wrong[] = { "",
                                         "4",
                                         "v100",
                                         "v100:",
                                         ":4",
                                         "v100:x",
                                         "0xv100:4",
                                         "v100:0",
                                         "v100:999",
                                         "mixed",
                                         "/etc/passwd:1",
                                         "../a:1",
                                         "4x/etc/a:1",
                                         "a/b:c.yaml",
                                         "x:.yaml",
                                         "-1xv100:4",
                                         "99999999999999999999xv100:4",
                                         "100000xv100:4",
                                         "v100:4,",
                                         "v100:4\n" };
    char large[600];
    assert_int_equal(cluster_load(&cluster, &arena, "2xv100:8", &err), 0);
    memset(large, 'v', sizeof large);
    memcpy(large + sizeof large - 3, ":4", 3);
    for (size_t i = 0; i <= sizeof wrong / sizeof *wrong; i++) {
        const char *text = i < sizeof wrong / sizeof *wrong ? wrong[i] : large;
        if (cluster_extend(&extended, &arena, &cluster, text, &err) != -EINVAL)
            fail_msg("\"%s\" was taken", text);
        assert_true(strncmp(err.text, "add: ", 5) == 0);
        assert_true(strlen(err.text) < 200);
    }
}

static void a_type_that_is_not_here_is_refused(void **state)
{
    assert_int_equal(cluster_load(&cluster, &arena, "2xv100:8", &err), 0);
    assert_int_equal(cluster_extend(&extended, &arena, &cluster, "h100:8", &err),
                     -EINVAL);
    assert_string_equal(err.text,
                        "add: no GPU of type h100 has been here, so nothing is "
                        "known of its speed (did you mean 'v100'?)");
}

RUN_CASES(CASE(the_others_stay_and_new_ones_follow),
          CASE(several_of_some_types_are_added),
          CASE(a_new_node_has_cpus_and_memory_in_proportion_to_the_largest),
          CASE(what_makes_no_sense_is_refused_in_a_sentence),
          CASE(a_type_that_is_not_here_is_refused));
