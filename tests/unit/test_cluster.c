/* Clusters: presets, short hand and YAML. */
#include "support/cases.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/error.h"
#include "model/cluster.h"

ARENA_FIXTURE(arena);
static struct cluster cluster;
static struct error err;

static void load(const char *text)
{
    if (cluster_load(&cluster, &arena, text, &err) < 0)
        fail_msg("%s", err.text);
}

static void short_hand_is_one_gpu_per_node_or_nodes_of_many(void **state)
{
    load("v100:36,p100:12");
    assert_int_equal(cluster.node_count, 48);
    assert_int_equal(cluster.gpu_count, 48);
    assert_int_equal(cluster.type_count, 2);
    assert_int_equal(cluster.shape_count, 2);
    assert_string_equal(cluster.types[1].name, "p100");
    assert_int_equal(cluster.types[1].gpu_count, 12);

    load("4xv100:8,2xv100:4");
    assert_int_equal(cluster.node_count, 6);
    assert_int_equal(cluster.gpu_count, 40);
    assert_int_equal(cluster.type_count, 1);
    assert_int_equal(cluster.types[0].node_gpus_max, 8);
    assert_int_equal(cluster.nodes[5].gpu_count, 4);
    assert_true(cluster.nodes[0].cpu_milli >= 8 * 32000);
}

static void presets_are_as_published(void **state)
{
    load("gavel-36");
    assert_int_equal(cluster.node_count, 108);
    assert_true(cluster.types[0].usd_per_hour == 0.74);
    assert_true(cluster.types[2].usd_per_hour == 0.135);
    load("fitgpp-84");
    assert_int_equal(cluster.gpu_count, 672);
    assert_int_equal(cluster.nodes[83].cpu_milli, 32000);
    assert_int_equal(cluster.nodes[83].mem_mib, 256 * 1024);
    load("jpas-13");
    assert_int_equal(cluster.node_count, 13);
    load("lab-4");
    assert_int_equal(cluster.nodes[0].gpu_count, 4);
    load("philly-like");
    assert_int_equal(cluster.node_count, 552);
}

static void presets_of_mixed_workloads_have_types_and_racks(void **state)
{
    load("mixed-112");
    assert_int_equal(cluster.gpu_count, 112);
    assert_int_equal(cluster.node_count, 14);
    assert_int_equal(cluster.rack_count, 4);
    assert_true(cluster.oversubscription == 2);
    assert_int_equal(cluster.types[0].gpu_count, 32);
    assert_int_equal(cluster.types[2].gpu_count, 48);
    assert_true(cluster.types[2].speed == 0.2);
    load("lab-44");
    assert_int_equal(cluster.gpu_count, 44);
    assert_int_equal(cluster.shape_count, 4);
    assert_true(cluster.oversubscription == 1);
    load("industry-256");
    assert_int_equal(cluster.gpu_count, 256);
    assert_int_equal(cluster.rack_count, 4);
    load("sweeps-64");
    assert_int_equal(cluster.gpu_count, 64);
    load("box-8");
    assert_int_equal(cluster.gpu_count, 8);
}

static void assert_wrong(const char *text, const char *sentence)
{
    err.text[0] = '\0';
    assert_true(cluster_load(&cluster, &arena, text, &err) < 0);
    if (!strstr(err.text, sentence))
        fail_msg("\"%s\", want \"%s\"", err.text, sentence);
}

static void wrong_short_hand_is_refused(void **state)
{
    assert_wrong("v100:", "cluster part \"v100:\", want TYPE:GPUS");
    assert_wrong("v100:0", "want 1 to 1000000 nodes");
    assert_wrong("4xv100:65", "want 1 to 64 GPUs in a node");
    assert_wrong("99999999999xv100:1",
                 "\"99999999999xv100:1\": want 1 to 1000000 nodes");
    assert_wrong("v100:600000,p100:600000", "1200000 nodes, want 1 to 1000000");
    assert_wrong("v100:8,", "cluster part \"\"");
    assert_wrong(":8", "cluster part \":8\"");
    assert_wrong("gavel-63", "did you mean 'gavel-36'");
    assert_wrong("4xv100:0", "want 1 to 64 GPUs in a node");
    assert_wrong("0xv100:8", "want 1 to 1000000 nodes");
    assert_wrong("v 100:8", "cluster part \"v 100:8\"");
    assert_wrong("v100:8x", "cluster part \"v100:8x\"");
    assert_wrong("a-type-with-a-name-beyond-all-use:8", "cluster part \"a-type");
    assert_wrong("no/such.yaml", "no/such.yaml: No such file");
    assert_wrong("nosuch.yml", "nosuch.yml: No such file");
    assert_wrong("a:1,b:1,c:1,d:1,e:1,f:1,g:1,h:1,i:1,j:1,k:1,l:1,m:1,n:1,o:1,p:1,q:1",
                 "more than 16 types");
}

/* Parts that are too many or too long are refused without being shown whole. */
static void short_hand_has_a_ceiling(void **state)
{
    char text[4096] = "", part[100];
    size_t count = 0;
    memset(part, 'v', sizeof part - 1);
    part[sizeof part - 1] = '\0';
    assert_wrong(part, "no cluster 'vvvv");
    snprintf(text, sizeof text, "%s:1", part);
    assert_wrong(text, "vvvv\", want TYPE:GPUS");
    assert_true(strlen(err.text) < 160);
    for (int i = 0; i < 65; i++)
        count += (size_t)snprintf(text + count, sizeof text - count, "v100:1,");
    text[count - 1] = '\0';
    assert_wrong(text, "cluster of more than 64 parts");
    *strrchr(text, ',') = '\0';
    load(text);
    assert_int_equal(cluster.gpu_count, 64);
}

static void many_kinds_of_node_are_counted_by_shape(void **state)
{
    char text[512] = "";
    size_t count = 0;
    for (int i = 1; i <= 20; i++)
        count += (size_t)snprintf(text + count, sizeof text - count, "%s2xv100:%d",
                                  i > 1 ? "," : "", i);
    load(text);
    assert_int_equal(cluster.shape_count, 20);
    for (uint32_t s = 0; s < 20; s++) {
        assert_int_equal(cluster.shapes[s].node.gpu_count, s + 1);
        assert_int_equal(cluster.shapes[s].count, 2);
    }
}

static void types_are_looked_up_by_name(void **state)
{
    load("v100:1,k80:1");
    assert_int_equal(cluster_types_named(&cluster, ""), 0);
    assert_int_equal(cluster_types_named(&cluster, NULL), 0);
    assert_int_equal(cluster_types_named(&cluster, "v10"), 0);
    assert_int_equal(cluster_types_named(&cluster, "k80|"), 2);
}

static int parse(const char *text)
{
    err.text[0] = '\0';
    return cluster_parse(&cluster, &arena, "c.yaml", text, strlen(text), &err);
}

static void yaml_sets_everything(void **state)
{
    int r = parse("name: lab\n"
                  "oversubscription: 4\n"
                  "first_fit: true\n"
                  "types:\n"
                  "  - { name: v100, usd_per_hour: 0.74 }\n"
                  "  - { name: k80, speed: 0.2 }\n"
                  "nodes:\n"
                  "  - { count: 4, type: v100, gpus: 8, cpus: 32, mem_gib: 256,\n"
                  "      nodes_per_rack: 2, link_gbps: 10 }\n"
                  "  - { names: [old-1, old-2], type: k80, gpus: 2, rack: 3 }\n"
                  "  - { gpus: 0, cpus: 64 }\n"
                  "entities:\n"
                  "  - { name: vision, weight: 2.5 }\n"
                  "  - { name: speech, inside: fifo }\n");
    if (r < 0)
        fail_msg("%s", err.text);
    assert_int_equal(cluster.entity_count, 2);
    assert_string_equal(cluster.entities[0].name, "vision");
    assert_true(cluster.entities[0].weight == 2.5 && !cluster.entities[0].fifo);
    assert_true(cluster.entities[1].weight == 1 && cluster.entities[1].fifo);
    char text[16];
    assert_string_equal(cluster.name, "lab");
    assert_int_equal(cluster.node_count, 7);
    assert_int_equal(cluster.gpu_count, 36);
    assert_int_equal(cluster.rack_count, 4);
    assert_int_equal(cluster.nodes[3].rack, 1);
    assert_true(cluster.nodes[0].link_bps == 10000000000u);
    assert_true(cluster.oversubscription == 4);
    assert_true(cluster.first_fit);
    assert_true(cluster.types[1].speed == 0.2);
    assert_true(cluster.types[0].speed == 1);
    assert_string_equal(cluster_node_name(&cluster, 0, text, sizeof text), "n0");
    assert_string_equal(cluster_node_name(&cluster, 5, text, sizeof text), "old-2");
    assert_int_equal(cluster.nodes[6].type, TYPE_NONE);
    assert_int_equal(cluster_types_named(&cluster, "k80|tpu"), 2);
    assert_int_equal(cluster_types_named(&cluster, "v100|k80"), 3);
}

static void assert_wrong_yaml(const char *text, const char *sentence)
{
    assert_int_equal(parse(text), -EINVAL);
    if (strncmp(err.text, "c.yaml:", 7) != 0 || !strstr(err.text, sentence))
        fail_msg("\"%s\", want \"%s\"", err.text, sentence);
}

static void wrong_yaml_is_named_by_line_and_field(void **state)
{
    const char *nodes = "nodes:\n  - { type: a, gpus: 8 }\nentities:\n";
    char wrong[200];
    snprintf(wrong, sizeof wrong, "%s  - { name: a, weight: 0 }\n", nodes);
    assert_wrong_yaml(wrong,
                      "c.yaml:4: weight is \"0\", want a number from 1e-09 to 1e6");
    snprintf(wrong, sizeof wrong, "%s  - { name: a }\n  - { name: a }\n", nodes);
    assert_wrong_yaml(wrong, "c.yaml:5: entity \"a\" again");
    snprintf(wrong, sizeof wrong, "%s  - { name: a, inside: lifo }\n", nodes);
    assert_wrong_yaml(wrong, "c.yaml:4: ");
    assert_wrong_yaml("nodes:\n  - { type: a, gpus: -8 }\n", "c.yaml:2: ");
    assert_wrong_yaml("nodes:\n  - { type: a, gpus: -8 }\n", "gpus");
    assert_wrong_yaml("nodes:\n  - { type: a, gpus: x }\n", "c.yaml:2: ");
    assert_wrong_yaml("nodes:\n  - { type: a, gpuz: 8 }\n", "gpuz");
    assert_wrong_yaml("nodes:\n  - { gpus: 1 }\n", "c.yaml:2: no type");
    assert_wrong_yaml("nodes:\n  - { type: a, gpus: 8 }\n\n  - { type: a, gpus: 99 }\n",
                      "c.yaml:4: gpus is \"99\", want a whole number from 0 to 64");
    assert_wrong_yaml("nodes:\n  - { count: 0, type: a, gpus: 9 }\n",
                      "c.yaml:2: count is \"0\", want a whole number from 1 to 1e6");
    assert_wrong_yaml(
        "types:\n  - { name: a, speed: -1 }\nnodes:\n  - { type: a, gpus: 9 }\n",
        "c.yaml:2: speed is \"-1\"");
    assert_wrong_yaml("nodes:\n  - { count: 3, names: [x], type: a, gpus: 9 }\n",
                      "c.yaml:2: 1 names, want 3");
    assert_wrong_yaml("name: x\n", "nodes");
    assert_wrong_yaml("nodes:\n  - {", "c.yaml:");
    assert_wrong_yaml("nodes: [ { type: a, gpus: 99 } ]\n", "c.yaml:1: gpus is \"99\"");
    assert_wrong_yaml(
        "nodes:\n  - { type: a, gpus: 8, cpus: 100001 }\n",
        "c.yaml:2: cpus is \"100001\", want a whole number from 0 to 100000");
    assert_wrong_yaml(
        "nodes:\n  - { type: a, gpus: 8, mem_gib: 1000001 }\n",
        "c.yaml:2: mem_gib is \"1000001\", want a whole number from 0 to 1e6");
    assert_wrong_yaml(
        "nodes:\n  - { type: a, gpus: 8, rack: 100001 }\n",
        "c.yaml:2: rack is \"100001\", want a whole number from 0 to 100000");
    assert_wrong_yaml("nodes:\n  - { type: a, gpus: 8, link_gbps: 0 }\n",
                      "c.yaml:2: link_gbps is \"0\", want a number from 0.001 to 1e6");
    assert_wrong_yaml("nodes:\n  - { type: a, gpus: 8, link_gbps: nan }\n",
                      "c.yaml:2: link_gbps is \"nan\"");
    assert_wrong_yaml("nodes:\n  - { names: [x y], type: a, gpus: 9 }\n",
                      "c.yaml: name \"x y\", want no blanks, commas or quotes");
    assert_wrong_yaml("nodes:\n  - { names: ['x,y'], type: a, gpus: 9 }\n", "\"x,y\"");
    assert_wrong_yaml("nodes:\n  - { names: ['x\"y'], type: a, gpus: 9 }\n", "want no");
    assert_wrong_yaml("nodes:\n  - { names: [\"x\\x7f\"], type: a, gpus: 9 }\n",
                      "want no");
    assert_wrong_yaml(
        "oversubscription: 0.5\nnodes:\n  - { type: a, gpus: 8 }\n",
        "c.yaml:1: oversubscription is \"0.5\", want a number from 1 to 1000");
    assert_wrong_yaml(
        "oversubscription: 1001\nnodes:\n  - { type: a, gpus: 8 }\n",
        "c.yaml:1: oversubscription is \"1001\", want a number from 1 to 1000");
    assert_wrong_yaml("types:\n  - { name: a, usd_per_hour: -1 }\n"
                      "nodes:\n  - { type: a, gpus: 9 }\n",
                      "c.yaml:2: usd_per_hour is \"-1\", want a number from 0 to 1e6");
    assert_wrong_yaml("types:\n  - { name: a }\n  - { name: b, usd_per_hour: 1e7 }\n"
                      "nodes:\n  - { type: a, gpus: 9 }\n",
                      "c.yaml:3: usd_per_hour is \"1e7\"");
    assert_wrong_yaml("types:\n  - { name: a, speed: 1e7 }\n"
                      "nodes:\n  - { type: a, gpus: 9 }\n",
                      "c.yaml:2: speed is \"1e7\"");
    assert_wrong_yaml("nodes:\n  - { count: 600000, type: a, gpus: 8 }\n"
                      "  - { count: 600000, type: a, gpus: 8 }\n",
                      "c.yaml: 1200000 nodes, want at most 1000000");
    snprintf(wrong, sizeof wrong, "%s  - { name: a, weight: 1e7 }\n", nodes);
    assert_wrong_yaml(wrong, "c.yaml:4: weight is \"1e7\", want a number from");
    assert_int_equal(parse(""), -EINVAL);
}

static void yaml_may_leave_most_things_out(void **state)
{
    assert_int_equal(parse("nodes:\n- type: a\n  gpus: 2\n"), 0);
    assert_string_equal(cluster.name, "c.yaml");
    assert_int_equal(cluster.node_count, 1);
    assert_true(cluster.oversubscription == 1);
    assert_int_equal(cluster.nodes[0].cpu_milli, 2 * 64000);
    assert_int_equal(cluster.nodes[0].mem_mib, 2 * 512 * 1024);
    assert_true(cluster.nodes[0].link_bps == 25000000000u);
}

static void more_types_than_there_can_be_are_refused(void **state)
{
    char text[1024] = "nodes:\n";
    size_t count = strlen(text);
    for (int i = 0; i < 17; i++)
        count += (size_t)snprintf(text + count, sizeof text - count,
                                  "  - { type: t%d, gpus: 1 }\n", i);
    assert_int_equal(parse(text), -EINVAL);
    assert_string_equal(err.text, "c.yaml: more than 16 types of GPU");
}

static void a_cluster_is_read_from_its_file(void **state)
{
    char path[] = "/tmp/berth-cluster-XXXXXX.yaml";
    int file = mkstemps(path, 5);
    assert_true(file >= 0);
    dprintf(file, "nodes:\n  - { type: a, gpus: 3 }\n");
    close(file);
    load(path);
    unlink(path);
    assert_int_equal(cluster.gpu_count, 3);
    assert_string_equal(cluster.name, path);
}

RUN_CASES(CASE(short_hand_is_one_gpu_per_node_or_nodes_of_many),
          CASE(presets_are_as_published),
          CASE(presets_of_mixed_workloads_have_types_and_racks),
          CASE(wrong_short_hand_is_refused), CASE(short_hand_has_a_ceiling),
          CASE(many_kinds_of_node_are_counted_by_shape),
          CASE(types_are_looked_up_by_name), CASE(yaml_sets_everything),
          CASE(yaml_may_leave_most_things_out),
          CASE(more_types_than_there_can_be_are_refused),
          CASE(a_cluster_is_read_from_its_file),
          CASE(wrong_yaml_is_named_by_line_and_field));
