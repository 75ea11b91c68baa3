/* node_set.c - jobs that may run on some nodes only. */
#include "model/node_set.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/memory.h"
#include "model/cluster.h"

#define BETWEEN ",| " /* names */
#define NAME_MAX_BYTES 255

void node_sets_release(struct node_sets *sets)
{
    for (uint32_t i = 0; i < sets->count; i++)
        for (uint32_t w = 0; w < WORDS_COUNT; w++)
            free(sets->sets[i]->words[w]);
    map_release(&sets->names);
    map_release(&sets->found);
    arena_release(&sets->arena);
}

/* --- names ------------------------------------------------------------------------- */

static uint64_t hash_name(const char *name, size_t bytes)
{
    return hash_bytes(HASH_BYTES_START, name, bytes);
}

/* Most clusters are never asked for a name: they are learnt with the first question. */
static void learn_names(struct node_sets *sets)
{
    char text[NAME_MAX_BYTES + 1];
    if (sets->names_known)
        return;
    sets->names_known = true;
    bits_init(&sets->named, &sets->arena, sets->cluster->node_count);
    for (node_id n = 0; n < sets->cluster->node_count; n++) {
        const char *name = cluster_node_name(sets->cluster, n, text, sizeof text);
        uint64_t hash = hash_name(name, strlen(name));
        while (map_find(&sets->names, hash) != MAP_NONE)
            hash++; /* another name with the same hash */
        map_put(&sets->names, hash, n);
    }
}

static node_id find_name(const struct node_sets *sets, const char *name, size_t bytes)
{
    char text[NAME_MAX_BYTES + 1];
    uint64_t hash = hash_name(name, bytes);
    for (node_id n; (n = map_find(&sets->names, hash)) != MAP_NONE; hash++) {
        const char *known = cluster_node_name(sets->cluster, n, text, sizeof text);
        if (strlen(known) == bytes && memcmp(known, name, bytes) == 0)
            return n;
    }
    return NODE_NONE;
}

/* The next name of a list, and its length; NULL at the end. */
static const char *next_name(const char **list, size_t *ret_bytes)
{
    const char *name = *list + strspn(*list, BETWEEN);
    *ret_bytes = strcspn(name, BETWEEN);
    *list = name + *ret_bytes;
    return *ret_bytes ? name : NULL;
}

static void clear_all(struct bits *bits)
{
    for (uint32_t n = bits_next(bits, 0); n != BITS_NONE; n = bits_next(bits, n + 1))
        bits_clear(bits, n);
}

static void set_all(struct bits *bits)
{
    for (uint32_t n = 0; n < bits->size; n++)
        bits_set(bits, n);
}

/* Put all nodes of a list into a set, or take them out. */
static int apply_list(const struct node_sets *sets, const char *list, struct bits *bits,
                      bool in, struct error *err)
{
    size_t bytes;
    if (strlen(list) > NODE_WORDS_MAX)
        return error_set(err, -ERANGE, "nodes: a list of more than %d bytes",
                         NODE_WORDS_MAX);
    for (const char *name; (name = next_name(&list, &bytes));) {
        node_id node = find_name(sets, name, bytes);
        if (node == NODE_NONE)
            return error_set(err, -ERANGE, "node %.*s: not in this cluster",
                             bytes < 60 ? (int)bytes : 60, name);
        if (in)
            bits_set(bits, node);
        else
            bits_clear(bits, node);
    }
    return 0;
}

int node_sets_named(struct node_sets *sets, const char *nodelist,
                    const struct bits **ret_nodes, struct error *err)
{
    learn_names(sets);
    clear_all(&sets->named);
    *ret_nodes = &sets->named;
    return nodelist ? apply_list(sets, nodelist, &sets->named, true, err) : 0;
}

/* --- sets --------------------------------------------------------------------------- */

/* All must be allowed; then, if it is exact, no others are. */
static int settle_must(const struct node_sets *sets, struct node_set *set,
                       struct error *err)
{
    char text[NAME_MAX_BYTES + 1];
    for (uint32_t n = bits_next(&set->must, 0); n != BITS_NONE;
         n = bits_next(&set->must, n + 1))
        if (!bits_test(&set->allowed, n))
            return error_set(err, -ERANGE, "node %.100s: asked for, and ruled out",
                             cluster_node_name(sets->cluster, n, text, sizeof text));
    if (!set->exact)
        return 0;
    clear_all(&set->allowed);
    for (uint32_t n = bits_next(&set->must, 0); n != BITS_NONE;
         n = bits_next(&set->must, n + 1))
        bits_set(&set->allowed, n);
    return 0;
}

static void count_gpus(const struct node_sets *sets, struct node_set *set)
{
    memset(set->gpu_count, 0, sizeof set->gpu_count);
    memset(set->node_gpus_max, 0, sizeof set->node_gpus_max);
    for (uint32_t n = bits_next(&set->allowed, 0); n != BITS_NONE;
         n = bits_next(&set->allowed, n + 1)) {
        const struct node *node = &sets->cluster->nodes[n];
        if (node->type == TYPE_NONE)
            continue;
        set->gpu_count[node->type] += node->gpu_count;
        if (node->gpu_count > set->node_gpus_max[node->type])
            set->node_gpus_max[node->type] = node->gpu_count;
    }
}

static int fill_set(const struct node_sets *sets, struct node_set *set,
                    const char *const words[WORDS_COUNT], struct error *err)
{
    int r = 0;
    clear_all(&set->allowed);
    clear_all(&set->must);
    if (words[WORDS_WITHIN])
        r = apply_list(sets, words[WORDS_WITHIN], &set->allowed, true, err);
    else
        set_all(&set->allowed);
    if (r == 0 && words[WORDS_EXCLUDE])
        r = apply_list(sets, words[WORDS_EXCLUDE], &set->allowed, false, err);
    if (r == 0 && words[WORDS_NODELIST])
        r = apply_list(sets, words[WORDS_NODELIST], &set->must, true, err);
    if (r == 0)
        r = settle_must(sets, set, err);
    if (r == 0 && set->allowed.count == 0)
        r = error_set(err, -ERANGE, "no node is left that it may use");
    if (r == 0)
        count_gpus(sets, set);
    return r;
}

static uint64_t hash_words(const char *const words[WORDS_COUNT], bool exact)
{
    uint64_t hash = HASH_WORDS_START + exact;
    for (uint32_t w = 0; w < WORDS_COUNT; w++)
        hash = words[w] ? hash_bytes(hash, words[w], strlen(words[w]) + 1)
                        : hash_bytes(hash, "\1", 1);
    return hash;
}

static bool has_words(const struct node_set *set, const char *const words[WORDS_COUNT],
                      bool exact)
{
    for (uint32_t w = 0; w < WORDS_COUNT; w++)
        if (!set->words[w] != !words[w] ||
            (words[w] && strcmp(set->words[w], words[w]) != 0))
            return false;
    return set->exact == exact;
}

/* A set that no job uses, or NULL. */
static struct node_set *find_place(struct node_sets *sets)
{
    if (sets->count < NODE_SETS_MAX) {
        struct node_set *set = arena_new(&sets->arena, struct node_set);
        set->place = sets->count;
        bits_init(&set->allowed, &sets->arena, sets->cluster->node_count);
        bits_init(&set->must, &sets->arena, sets->cluster->node_count);
        return sets->sets[sets->count++] = set;
    }
    for (uint32_t i = 0; i < sets->count; i++) {
        struct node_set *set = sets->sets[i];
        if (set->job_count == 0)
            return set;
    }
    return NULL;
}

static void forget_words(struct node_sets *sets, struct node_set *set)
{
    if (set->number != 0 && map_find(&sets->found, set->hash) == set->place)
        map_remove(&sets->found, set->hash);
    set->number = 0;
    for (uint32_t w = 0; w < WORDS_COUNT; w++) {
        free(set->words[w]);
        set->words[w] = NULL;
    }
}

static void keep_words(struct node_sets *sets, struct node_set *set,
                       const char *const words[WORDS_COUNT], uint64_t hash)
{
    for (uint32_t w = 0; w < WORDS_COUNT; w++)
        set->words[w] = memory_text(words[w]);
    set->number = ++sets->number_last;
    set->hash = hash;
    map_put(&sets->found, hash,
            set->place); /* another with this hash is only held on */
}

int node_sets_take(struct node_sets *sets, const char *const words[WORDS_COUNT],
                   bool exact, struct node_set **ret_set, struct error *err)
{
    uint64_t hash = hash_words(words, exact);
    uint32_t at = map_find(&sets->found, hash);
    learn_names(sets);
    if (at != MAP_NONE && has_words(sets->sets[at], words, exact)) {
        sets->sets[at]->job_count++;
        *ret_set = sets->sets[at];
        return 0;
    }
    struct node_set *set = sets->spare;
    if (!set)
        set = find_place(sets);
    if (!set)
        return error_set(err, -ERANGE,
                         "jobs ask for more than %d different sets of nodes",
                         NODE_SETS_MAX);
    sets->spare = set;
    forget_words(sets, set);
    set->exact = exact;
    int r = fill_set(sets, set, words, err);
    if (r < 0)
        return r;
    sets->spare = NULL;
    keep_words(sets, set, words, hash);
    set->job_count = 1;
    *ret_set = set;
    return 0;
}

/* --- questions ------------------------------------------------------------------------ */

bool node_set_touches(const struct node_set *set, const struct seat *seats,
                      uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (node_set_has(set, seats[i].node))
            return true;
    return false;
}

bool node_set_keeps(const struct node_set *set, const struct seat *seats,
                    uint32_t count)
{
    uint32_t must = 0;
    if (!set)
        return true;
    for (uint32_t i = 0; i < count; i++) {
        if (!bits_test(&set->allowed, seats[i].node))
            return false;
        must += bits_test(&set->must, seats[i].node);
    }
    return must == set->must.count;
}

/* A list as submitted, with blanks after commas; the end of a long one is left out. */
static void show_list(const char *list, char *text, size_t size)
{
    size_t used = 0;
    size_t bytes;
    text[0] = '\0';
    for (const char *name; (name = next_name(&list, &bytes));) {
        bool last = list[strspn(list, BETWEEN)] == '\0';
        if (used + bytes + (last ? 3 : 8) > size) {
            snprintf(text + used, size - used, "%s...", used ? ", " : "");
            return;
        }
        used += (size_t)snprintf(text + used, size - used, "%s%.*s", used ? ", " : "",
                                 (int)bytes, name);
    }
}

const char *node_set_text(const struct node_set *set, char *text, size_t size)
{
    static const struct {
        const char *before, *after;
    } said[WORDS_COUNT] = {
        [WORDS_NODELIST] = { "nodes", "must be among its own (-w)" },
        [WORDS_EXCLUDE] = { "nodes", "will not do (-x)" },
        [WORDS_WITHIN] = { "only nodes", "will do (-C)" },
    };
    char list[64];
    size_t used = 0;
    text[0] = '\0';
    for (uint32_t w = 0; w < WORDS_COUNT && used < size; w++) {
        if (!set->words[w])
            continue;
        bool these = w == WORDS_NODELIST && set->exact;
        show_list(set->words[w], list, sizeof list);
        used +=
            (size_t)snprintf(text + used, size - used, "%s%s %s %s", used ? ", " : "",
                             these ? "only nodes" : said[w].before, list,
                             these ? "will do (-w)" : said[w].after);
    }
    return text;
}

const char *node_set_flags(const struct node_set *set, char *text, size_t size)
{
    static const char *const flags[WORDS_COUNT] = { "-w", "-x", "-C" };
    size_t used = 0;
    text[0] = '\0';
    for (uint32_t w = 0; w < WORDS_COUNT && used < size; w++)
        if (set->words[w])
            used += (size_t)snprintf(text + used, size - used, "%s%s", used ? ", " : "",
                                     flags[w]);
    return text;
}
