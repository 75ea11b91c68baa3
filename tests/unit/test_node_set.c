/* Sets of nodes that jobs may use: what words mean, who shares, and when room runs out. */
#include "support/cases.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "model/cluster.h"
#include "model/node_set.h"

struct desk {
    struct arena arena;
    struct cluster cluster;
    struct node_sets sets;
};

static struct error err;

static int setup(void **state)
{
    static struct desk desk;
    arena_init(&desk.arena, 0);
    assert_int_equal(
        cluster_load(&desk.cluster, &desk.arena, "3xv100:4,2xp100:8", &err), 0);
    node_sets_init(&desk.sets, &desk.cluster);
    *state = &desk;
    return 0;
}

static int teardown(void **state)
{
    struct desk *desk = *state;
    node_sets_release(&desk->sets);
    arena_release(&desk->arena);
    return 0;
}

static struct node_set *take(struct desk *desk, const char *nodelist,
                             const char *exclude, const char *within, bool exact)
{
    const char *words[WORDS_COUNT] = { nodelist, exclude, within };
    struct node_set *set = NULL;
    if (node_sets_take(&desk->sets, words, exact, &set, &err) < 0)
        fail_msg("%s", err.text);
    return set;
}

static void refuse(struct desk *desk, const char *nodelist, const char *exclude,
                   const char *within, const char *why)
{
    const char *words[WORDS_COUNT] = { nodelist, exclude, within };
    struct node_set *set = NULL;
    assert_int_equal(node_sets_take(&desk->sets, words, false, &set, &err), -ERANGE);
    assert_null(set);
    assert_string_equal(err.text, why);
}

static void assert_nodes(const struct bits *bits, const char *want)
{
    char text[64] = "";
    for (uint32_t n = bits_next(bits, 0); n != BITS_NONE; n = bits_next(bits, n + 1)) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s%u", used ? " " : "", n);
    }
    assert_string_equal(text, want);
}

static void lists_name_nodes(void **state)
{
    struct desk *desk = *state;
    const struct node_set *set = take(desk, NULL, "n1|n4", NULL, false);
    assert_nodes(&set->allowed, "0 2 3");
    assert_nodes(&set->must, "");
    assert_int_equal(set->gpu_count[0], 8);
    assert_int_equal(set->node_gpus_max[1], 8);

    set = take(desk, NULL, "n2", "n1, n2,n3", false);
    assert_nodes(&set->allowed, "1 3");
    set = take(desk, "n2,n0", NULL, NULL, false);
    assert_nodes(&set->allowed, "0 1 2 3 4");
    assert_nodes(&set->must, "0 2");
    set = take(desk, "n2,n0", NULL, NULL, true);
    assert_nodes(&set->allowed, "0 2");
    assert_int_equal(set->node_gpus_max[1], 0);
}

static void names_of_a_cluster_are_its_own(void **state)
{
    struct desk *desk = *state;
    static const char *names[] = { "alpha", "beta", "gamma", "n0", NULL };
    desk->cluster.node_names = names;
    assert_nodes(&take(desk, NULL, NULL, "gamma,n0", false)->allowed, "2 3");
    assert_nodes(&take(desk, NULL, NULL, "n4", false)->allowed, "4"); /* has none */
    refuse(desk, "n1", NULL, NULL, "node n1: not in this cluster");
}

static void contradictory_lists_are_refused(void **state)
{
    struct desk *desk = *state;
    static char list[NODE_WORDS_MAX + 2];
    memset(list, ',', sizeof list - 1);
    refuse(desk, "n0,n9", NULL, NULL, "node n9: not in this cluster");
    refuse(desk, NULL, "", "x", "node x: not in this cluster");
    refuse(desk, "n1", "n1", NULL, "node n1: asked for, and ruled out");
    refuse(desk, "n1", NULL, "n2", "node n1: asked for, and ruled out");
    refuse(desk, NULL, "n0,n1,n2,n3,n4", NULL, "no node is left that it may use");
    refuse(desk, NULL, NULL, ",", "no node is left that it may use");
    refuse(desk, NULL, list, NULL, "nodes: a list of more than 65536 bytes");
    assert_int_equal(desk->sets.count, 1); /* the place is used again and again */
    assert_nodes(&take(desk, NULL, NULL, "n2", false)->allowed, "2");
    assert_int_equal(desk->sets.count, 1);
}

static void equal_lists_share_a_set(void **state)
{
    struct desk *desk = *state;
    struct node_set *set = take(desk, NULL, "n1", NULL, false);
    assert_ptr_equal(take(desk, NULL, "n1", NULL, false), set);
    assert_int_equal(set->job_count, 2);
    assert_ptr_not_equal(take(desk, NULL, NULL, "n1", false), set);
    assert_ptr_not_equal(take(desk, "n1", NULL, NULL, true), set);
    assert_int_not_equal(take(desk, "n1", NULL, NULL, true)->number, set->number);
    assert_int_equal(node_set_number(NULL), 0);
}

/* A list of nodes like no other: the bits of a number. */
static const char *list_of(uint32_t number)
{
    static char text[200];
    text[0] = '\0';
    for (uint32_t i = 0; i < 14; i++) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%sn%u", i ? "," : "",
                 number >> i & 1);
    }
    return text;
}

static void sets_are_limited_and_unused_ones_are_reused(void **state)
{
    struct desk *desk = *state;
    struct node_set *first = take(desk, NULL, NULL, list_of(0), false);
    uint32_t number = first->number;
    for (uint32_t i = 1; i < NODE_SETS_MAX; i++)
        take(desk, NULL, NULL, list_of(i), false);
    refuse(desk, NULL, NULL, list_of(NODE_SETS_MAX),
           "jobs ask for more than 4096 different sets of nodes");
    assert_ptr_equal(take(desk, NULL, NULL, list_of(0), false), first);

    node_set_drop(first);
    node_set_drop(first);
    assert_ptr_equal(take(desk, NULL, NULL, list_of(0), false),
                     first); /* kept so far */
    node_set_drop(first);
    struct node_set *other = take(desk, NULL, NULL, list_of(NODE_SETS_MAX), false);
    assert_ptr_equal(other, first);
    assert_int_not_equal(other->number, number);
    refuse(desk, NULL, NULL, list_of(0),
           "jobs ask for more than 4096 different sets of nodes");
}

static void seats_are_checked_against_the_set(void **state)
{
    struct desk *desk = *state;
    const struct node_set *set = take(desk, "n1", "n0", NULL, false);
    const struct seat seats[] = { { .node = 1 }, { .node = 2 }, { .node = 0 } };
    assert_true(node_set_keeps(set, seats, 2));
    assert_false(node_set_keeps(set, seats, 3));
    assert_false(node_set_keeps(set, &seats[1], 1)); /* without the one that must be */
    assert_true(node_set_touches(set, &seats[1], 2));
    assert_false(node_set_touches(set, &seats[2], 1));
    assert_true(node_set_keeps(NULL, seats, 3));
    assert_true(node_set_touches(NULL, seats, 1));
    assert_true(node_set_has(NULL, 0) && !node_set_has(set, 0));
    assert_int_equal(node_set_gpus_max(set, &desk->cluster, 1), 8);
    assert_int_equal(node_set_gpus_max(NULL, &desk->cluster, 0), 4);
}

static void a_set_is_written_as_text(void **state)
{
    struct desk *desk = *state;
    char text[200];
    assert_string_equal(
        node_set_text(take(desk, "n2|n3", NULL, NULL, true), text, sizeof text),
        "only nodes n2, n3 will do (-w)");
    assert_string_equal(
        node_set_text(take(desk, "n2", "n0", NULL, false), text, sizeof text),
        "nodes n2 must be among its own (-w), nodes n0 will not do (-x)");
    const struct node_set *set = take(desk, NULL, NULL, list_of(5), false);
    assert_string_equal(
        node_set_text(set, text, sizeof text),
        "only nodes n1, n0, n1, n0, n0, n0, n0, n0, n0, n0, n0, n0, n0, "
        "n0 will do (-C)");
    assert_string_equal(
        node_set_flags(take(desk, "n2", "n0", NULL, false), text, sizeof text),
        "-w, -x");
    char small[12];
    node_set_text(set, small, sizeof small); /* is cut, and stays inside */
    assert_string_equal(small, "only nodes ");
}

RUN_CASES(CASE(lists_name_nodes), CASE(names_of_a_cluster_are_its_own),
          CASE(contradictory_lists_are_refused), CASE(equal_lists_share_a_set),
          CASE(sets_are_limited_and_unused_ones_are_reused),
          CASE(seats_are_checked_against_the_set), CASE(a_set_is_written_as_text));
