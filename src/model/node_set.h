/*
 * node_set.h - jobs that may run on some nodes only.
 *
 * Most jobs may run anywhere, and cost nothing here: their set is NULL.  The others give
 * lists of names, with commas or bars between them:
 *
 *     nodelist   these are among its nodes; if it wants no more than these, exactly these
 *     exclude    never these
 *     within     none but these: what a feature comes down to
 *
 * Jobs with equal lists share one set, so that "do these two fit alike" compares one number.
 * A set is reused when no job holds it and its slot is needed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/bits.h"
#include "base/map.h"
#include "model/cluster.h"
#include "model/job.h"

struct error;

#define NODE_SETS_MAX 4096       /* different ones at once    */
#define NODE_WORDS_MAX (1 << 16) /* bytes of a list of names  */

enum node_words { WORDS_NODELIST, WORDS_EXCLUDE, WORDS_WITHIN, WORDS_COUNT };

struct node_set {
    struct bits allowed; /* nodes that may be used                                  */
    struct bits must;    /* of them, those that are part of every placement         */
    uint32_t number;     /* of all sets there ever were: no two have the same       */
    uint32_t place;      /* below NODE_SETS_MAX; used again                         */
    uint32_t gpu_count[TYPES_MAX];     /* on the allowed nodes, by type             */
    uint32_t node_gpus_max[TYPES_MAX]; /* on the largest of them                    */
    char *words[WORDS_COUNT];          /* as submitted; or NULL                     */
    bool exact;                        /* none are allowed but those that must be   */
    uint32_t job_count;                /* that hold it                              */
    uint64_t hash;                     /* of the lists                              */
};

struct node_sets {
    const struct cluster *cluster;
    struct arena arena;
    struct node_set *sets[NODE_SETS_MAX]; /* by place                             */
    uint32_t count;                       /* places used so far                   */
    uint32_t number_last;
    struct node_set *spare; /* taken, but what was to be in it made no sense      */
    struct map found;       /* hash of the lists to a set                         */
    struct map names;       /* hash of a name to its node                         */
    bool names_known;
    struct bits named; /* by the list that was looked at last                     */
};

static inline void node_sets_init(struct node_sets *sets, const struct cluster *cluster)
{
    *sets = (struct node_sets){ .cluster = cluster };
    arena_init(&sets->arena, 0);
}

void node_sets_release(struct node_sets *sets);

/*
 * The nodes that a list names, until the next call; none if it is NULL.  -ERANGE if one of
 * them is not there.
 */
int node_sets_named(struct node_sets *sets, const char *nodelist,
                    const struct bits **ret_nodes, struct error *err);

/*
 * The set for these lists, held by one job more from now on.  'exact': of the nodes allowed
 * only those of the nodelist.  -ERANGE if a name is unknown or excluded by the other lists,
 * no node is left or there are too many sets.
 */
int node_sets_take(struct node_sets *sets, const char *const words[WORDS_COUNT],
                   bool exact, struct node_set **ret_set, struct error *err);

/* A job that held it is over. */
static inline void node_set_drop(struct node_set *set)
{
    if (set && set->job_count > 0)
        set->job_count--;
}

/* Whether a node may be used; NULL: every one may. */
static inline bool node_set_has(const struct node_set *set, node_id node)
{
    return !set || bits_test(&set->allowed, node);
}

/* A number that differs between sets; 0: any node will do. */
static inline uint32_t node_set_number(const struct node_set *set)
{
    return set ? set->number : 0;
}

/* Accelerators on the largest node of a type that the job may use. */
static inline uint32_t node_set_gpus_max(const struct node_set *set,
                                         const struct cluster *cluster, uint32_t type)
{
    return set ? set->node_gpus_max[type] : cluster->types[type].node_gpus_max;
}

/* Some seat is on a node of the set: stopping its job makes room there. */
bool node_set_touches(const struct node_set *set, const struct seat *seats,
                      uint32_t count);

/* All seats are on nodes that may be used, and all nodes that must be are among them. */
bool node_set_keeps(const struct node_set *set, const struct seat *seats,
                    uint32_t count);

/* "only nodes n2, n3 will do (-w)", cut where the buffer ends. */
const char *node_set_text(const struct node_set *set, char *text, size_t size);

/* "-w": the flags that were used. */
const char *node_set_flags(const struct node_set *set, char *text, size_t size);
