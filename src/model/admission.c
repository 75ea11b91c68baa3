/* admission.c - a job as the scheduler keeps it, and whether it can ever run. */
#include "model/admission.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/hash.h"
#include "model/cluster.h"
#include "model/node_set.h"
#include "model/placement.h"
#include "model/rate_table.h"
#include "model/throughput.h"

#define MEMORY_SPARE 10 /* a part of what jobs of its kind had, on top of it */

void admission_init(struct admission *admission, const struct cluster *cluster,
                    const struct throughput *rates)
{
    *admission = (struct admission){ .cluster = cluster, .rates = rates };
    arena_init(&admission->names, 0);
    node_sets_init(&admission->sets, cluster);
    for (uint32_t i = 0; i < cluster->entity_count; i++)
        map_put(&admission->entities, hash_text(cluster->entities[i].name),
                ++admission->entity_count);
    for (uint32_t i = 0; i < cluster->user_count; i++)
        map_put(&admission->users, hash_text(cluster->users[i].name),
                ++admission->user_count);
}

void admission_release(struct admission *admission)
{
    node_sets_release(&admission->sets);
    map_release(&admission->entities);
    map_release(&admission->users);
    arena_release(&admission->names);
}

/* The number of a name, the next one if it is new; 0: it has none. */
static uint32_t number_name(struct map *names, uint32_t *count, const char *name)
{
    if (!name || !*name)
        return 0;
    uint64_t hash = hash_text(name);
    uint32_t number = map_find(names, hash);
    if (number == MAP_NONE) {
        number = ++*count;
        map_put(names, hash, number);
    }
    return number;
}

/* Runs of one program are called alike but for their numbers: "lr-0.1-seed-7". */
static uint32_t hash_name(const char *name)
{
    uint64_t hash = HASH_BYTES_START;
    if (!name || !*name)
        return 0;
    for (; *name; name++)
        if (*name < '0' || *name > '9')
            hash = hash_bytes(hash, name, 1);
    uint32_t folded = (uint32_t)(hash ^ hash >> 32);
    return folded ? folded : 1;
}

void admission_learn(struct admission *admission, const struct throughput *rates,
                     struct rate_table *learned)
{
    admission->rates = rates;
    admission->learned = learned;
}

/* Runs of one program are called alike but for their numbers, each of which is a '#'. */
static void put_name(struct buf *buf, const char *name)
{
    for (uint32_t i = 0; *name && i < RATE_NAME_MAX; name++, i++) {
        bool digit = *name >= '0' && *name <= '9';
        bool goes_on = digit && buf->count > 0 && buf->bytes[buf->count - 1] == '#';
        if (!goes_on)
            buf_add(buf, digit ? "#" : name, 1);
    }
}

/* "lr-#:train.py:anna:2" of a job that declares no kind. */
static uint32_t find_learned(struct admission *admission, const struct job_spec *spec)
{
    struct buf buf;
    buf_init(&buf, 8 * RATE_NAME_MAX);
    if (spec->kind) {
        buf_text(&buf, spec->kind);
    } else {
        put_name(&buf, spec->name ? spec->name : "");
        buf_text(&buf, ":");
        put_name(&buf, spec->program ? spec->program : "");
        buf_print(&buf, ":%s:%u", spec->user ? spec->user : "", spec->gpus);
    }
    uint32_t kind = rate_table_add_kind(admission->learned, buf.bytes, spec->submit_ns);
    buf_release(&buf);
    return kind == KIND_NONE ? 0 : kind + 1;
}

/* It is taken to need a little more than jobs of its kind had. */
static void expect_memory(struct job *job, const struct rate_kind *kind)
{
    uint64_t mib = (uint64_t)kind->gpu_mib + kind->gpu_mib / MEMORY_SPARE;
    job->gpu_mib = mib > UINT32_MAX ? UINT32_MAX : (uint32_t)mib;
    job->gpu_mib_known = mib > 0;
}

uint32_t admission_user(struct admission *admission, const char *name)
{
    return number_name(&admission->users, &admission->user_count, name);
}

uint32_t admission_find_user(const struct admission *admission, const char *name)
{
    uint32_t number = map_find(&admission->users, hash_text(name));
    return number == MAP_NONE ? 0 : number;
}

/* Whether an empty node can hold so many of the gang, as placement counts it. */
static bool node_holds(const struct node *node, const struct job *job, uint32_t gpus)
{
    struct room_part need = placement_need(job, gpus);
    return gpus <= node->gpu_count && need.cpu_milli <= node->cpu_milli &&
           need.mem_mib <= node->mem_mib;
}

/* Most of the gang that one node of a shape can hold. */
static uint32_t most_on(const struct node *node, const struct job *job)
{
    uint32_t gpus = node->gpu_count < job->gpus ? node->gpu_count : job->gpus;
    while (gpus > 0 && !node_holds(node, job, gpus))
        gpus--;
    return gpus;
}

/* A walk over the nodes that a job may use: by shapes, or one by one. */
struct admission_walk {
    const struct cluster *cluster;
    const struct node_set *set;
    uint32_t next;
    uint32_t count; /* nodes that are like this one */
};

static struct admission_walk walk_nodes(const struct cluster *cluster,
                                        const struct job *job)
{
    return (struct admission_walk){ .cluster = cluster, .set = job->set };
}

static const struct node *next_node(struct admission_walk *walk)
{
    if (!walk->set) {
        if (walk->next == walk->cluster->shape_count)
            return NULL;
        walk->count = walk->cluster->shapes[walk->next].count;
        return &walk->cluster->shapes[walk->next++].node;
    }
    uint32_t node = bits_next(&walk->set->allowed, walk->next);
    walk->count = 1;
    walk->next = node + 1;
    return node == BITS_NONE ? NULL : &walk->cluster->nodes[node];
}

/* All of it on a node of these types, or without accelerators if it wants none. */
static bool holds_all(const struct node *node, const struct job *job, uint32_t types,
                      uint32_t gpus)
{
    bool allowed = node->type == TYPE_NONE ? gpus == 0 : types >> node->type & 1;
    return allowed && node_holds(node, job, gpus);
}

/* Some node does. */
static bool fits_on_one(const struct cluster *cluster, const struct job *job,
                        uint32_t types, uint32_t gpus)
{
    if (!job->set) { /* asked of every job: without a detour */
        for (uint32_t i = 0; i < cluster->shape_count; i++)
            if (holds_all(&cluster->shapes[i].node, job, types, gpus))
                return true;
        return false;
    }
    struct admission_walk walk = walk_nodes(cluster, job);
    for (const struct node *node; (node = next_node(&walk));)
        if (holds_all(node, job, types, gpus))
            return true;
    return false;
}

/* Nodes of a type that hold 'gpus' of the gang each. */
static uint64_t nodes_for(const struct cluster *cluster, const struct job *job,
                          uint32_t type, uint32_t gpus)
{
    struct admission_walk walk = walk_nodes(cluster, job);
    uint64_t count = 0;
    for (const struct node *node; (node = next_node(&walk));)
        if (node->type == type && node_holds(node, job, gpus))
            count += walk.count;
    return count;
}

/* All nodes that must be among its own can hold a part; a small one where it has to be. */
static bool fits_must(const struct cluster *cluster, const struct job *job,
                      uint32_t type, uint32_t large, uint32_t small,
                      uint32_t small_count)
{
    const struct bits *must = job->set ? &job->set->must : NULL;
    for (uint32_t n = must ? bits_next(must, 0) : BITS_NONE; n != BITS_NONE;
         n = bits_next(must, n + 1)) {
        if (cluster->nodes[n].type != type)
            return false;
        if (node_holds(&cluster->nodes[n], job, large))
            continue;
        if (small_count-- == 0 || !node_holds(&cluster->nodes[n], job, small))
            return false;
    }
    return true;
}

/* On an empty cluster, with all nodes up: the same rules as placement. */
static bool fits_type(const struct cluster *cluster, const struct job *job,
                      uint32_t type)
{
    uint32_t node_max = node_set_gpus_max(job->set, cluster, type);
    if (job->nodes <= 1 && job->gpus <= node_max &&
        fits_on_one(cluster, job, (uint32_t)1 << type, job->gpus))
        return true;
    bool alone = job->nodes <= 1 && job->gpus <= node_max;
    if (!alone && node_max > 0 && job->nodes <= job->gpus) {
        /* Full nodes and one for the rest; or as many as it asks for, evenly filled. */
        uint32_t each = job->nodes ? job->gpus / job->nodes : node_max;
        uint32_t rest = job->nodes ? job->gpus % job->nodes : job->gpus % each;
        uint32_t large = each + (job->nodes && rest);
        uint32_t large_count =
            job->nodes ? (rest ? rest : job->nodes) : job->gpus / each;
        uint32_t small = job->nodes ? each : rest;
        uint32_t count = job->nodes ? job->nodes : large_count + (rest > 0);
        if (nodes_for(cluster, job, type, large) >= large_count &&
            (rest == 0 || nodes_for(cluster, job, type, small) >= count) &&
            fits_must(cluster, job, type, large, small, count - large_count))
            return true;
    }
    if (!job->spread || job->nodes)
        return false;
    struct admission_walk walk = walk_nodes(cluster, job);
    uint64_t all = 0;
    for (const struct node *node; (node = next_node(&walk));)
        if (node->type == type)
            all += (uint64_t)walk.count * most_on(node, job);
    return all >= job->gpus;
}

/* What the nodes it may use have too little of. */
static int too_small(const struct job *job, struct error *err)
{
    uint32_t most = 0;
    for (uint32_t type = 0; type < TYPES_MAX; type++)
        most = job->set->gpu_count[type] > most ? job->set->gpu_count[type] : most;
    if (most < job->gpus)
        return error_set(err, -ERANGE, "needs %u GPUs on nodes that have %u", job->gpus,
                         most);
    return error_set(err, -ERANGE,
                     "needs %u GPUs in a shape that the nodes it may use do not have",
                     job->gpus);
}

static int types_it_fits(const struct admission *admission, const struct job_spec *spec,
                         struct job *job, struct error *err)
{
    const struct cluster *cluster = admission->cluster;
    uint32_t allowed = spec->types ? cluster_types_named(cluster, spec->types)
                                   : ((uint32_t)1 << cluster->type_count) - 1;
    if (allowed == 0 && (spec->types || job->gpus > 0))
        return error_set(err, -ERANGE, "no accelerator of type %.60s in this cluster",
                         spec->types ? spec->types : "any");
    if (job->gpus == 0) {
        job->types = allowed;
        job->type_best = TYPE_NONE;
        job->rate_best_per_s = 1;
        if (job->nodes > 1)
            return error_set(err, -ERANGE,
                             "asks for %u nodes, but for no accelerator on them",
                             job->nodes);
        if (!fits_on_one(cluster, job, allowed, 0))
            return error_set(err, -ERANGE,
                             job->set ? "needs more CPU or memory than any node that "
                                        "it may use has"
                                      : "needs more CPU or memory than any node has");
        return 0;
    }
    bool runs = false;
    for (uint32_t type = 0; type < cluster->type_count; type++) {
        if (!(allowed >> type & 1))
            continue;
        if (throughput_rate(admission->rates, job, type, job->gpus, false) <= 0)
            continue;
        runs = true;
        if (fits_type(cluster, job, type))
            job->types |= (uint32_t)1 << type;
    }
    if (!runs)
        return error_set(err, -ERANGE,
                         "%.60s cannot run on %u accelerators of any type here",
                         spec->kind ? spec->kind : "it", job->gpus);
    if (job->types == 0 && job->set)
        return too_small(job, err);
    if (job->types == 0)
        return error_set(
            err, -ERANGE,
            "asks for %u accelerators; no type has so many in a shape that fits",
            job->gpus);
    job->rate_best_per_s = throughput_best(admission->rates, job, &job->type_best);
    return 0;
}

/* --- some nodes only ------------------------------------------------------------------ */

/* The type of all nodes that must be among its own; a gang is never of two. */
static int type_of_must(const struct cluster *cluster, const struct bits *must,
                        uint32_t *ret_type, struct error *err)
{
    char texts[2][64];
    uint32_t first = bits_next(must, 0);
    *ret_type = cluster->nodes[first].type;
    for (uint32_t n = first; n != BITS_NONE; n = bits_next(must, n + 1))
        if (cluster->nodes[n].type != *ret_type)
            return error_set(
                err, -ERANGE,
                "nodes %.60s and %.60s: a job runs on one type of accelerators",
                cluster_node_name(cluster, first, texts[0], sizeof texts[0]),
                cluster_node_name(cluster, n, texts[1], sizeof texts[1]));
    return 0;
}

/*
 * How many nodes a job gets that names some but no number: as many as it names, or as its
 * gang needs.  One stays "as few as possible".
 */
static int count_nodes(const struct cluster *cluster, struct job *job,
                       const struct bits *must, struct error *err)
{
    char text[64];
    uint32_t type;
    int r = type_of_must(cluster, must, &type, err);
    if (r < 0)
        return r;
    if (job->nodes && must->count > job->nodes)
        return error_set(err, -ERANGE, "names %u nodes and asks for %u", must->count,
                         job->nodes);
    if (must->count > 1 && must->count > job->gpus)
        return error_set(err, -ERANGE, "names %u nodes and asks for %u GPUs",
                         must->count, job->gpus);
    if (job->gpus == 0)
        return 0;
    if (type == TYPE_NONE)
        return error_set(
            err, -ERANGE, "node %.60s: has no accelerators",
            cluster_node_name(cluster, bits_next(must, 0), text, sizeof text));
    uint32_t node_max = cluster->types[type].node_gpus_max;
    if (!job->nodes && node_max > 0) {
        uint32_t needed = (job->gpus + node_max - 1) / node_max;
        uint32_t nodes = needed > must->count ? needed : must->count;
        job->nodes = nodes > 1 ? nodes : 0;
    }
    return 0;
}

static int take_set(struct admission *admission, const struct job_spec *spec,
                    struct job *job, struct error *err)
{
    const char *words[WORDS_COUNT] = { [WORDS_NODELIST] = spec->nodelist,
                                       [WORDS_EXCLUDE] = spec->exclude,
                                       [WORDS_WITHIN] = spec->within };
    bool any = false;
    for (uint32_t w = 0; w < WORDS_COUNT; w++) {
        words[w] = words[w] && *words[w] ? words[w] : NULL;
        any = any || words[w];
    }
    if (!any)
        return 0;
    const struct bits *must;
    int r = node_sets_named(&admission->sets, words[WORDS_NODELIST], &must, err);
    if (r == 0 && must->count > 0)
        r = count_nodes(admission->cluster, job, must, err);
    if (r < 0)
        return r;
    bool exact = must->count > 0 && must->count >= job->nodes;
    return node_sets_take(&admission->sets, words, exact, &job->set, err);
}

int admission_make_job(struct admission *admission, const struct job_spec *spec,
                       struct job *ret_job, struct error *err)
{
    struct job job = { .id = spec->id,
                       .class = spec->class,
                       .gpus = spec->gpus,
                       .gpus_min = spec->gpus_min ? spec->gpus_min : spec->gpus,
                       .gpus_max = spec->gpus_max ? spec->gpus_max : spec->gpus,
                       .nodes = spec->nodes,
                       .loses_work = spec->loses_work,
                       .stays = spec->stays,
                       .shares = spec->shares,
                       .gpu_mib = spec->gpu_mib,
                       .spread = spec->spread,
                       .cpu_milli = spec->cpu_milli,
                       .mem_mib = spec->mem_mib,
                       .kind = KIND_NONE,
                       .entity = number_name(&admission->entities,
                                             &admission->entity_count, spec->entity),
                       .user = admission_user(admission, spec->user),
                       .name = hash_name(spec->name),
                       .steps_total = spec->undeclared ? 0 : spec->steps,
                       .submit_ns = spec->submit_ns,
                       .grace_ns = spec->grace_ns,
                       .pause_ns = spec->pause_ns,
                       .load_ns = spec->load_ns,
                       .ckpt_ns = spec->ckpt_ns,
                       .weight = spec->weight > 0 ? spec->weight : 1,
                       .deadline_ns = spec->deadline_ns,
                       .step_s = spec->step_s > 0 ? spec->step_s : 1,
                       .pace = 1,
                       .paced = spec->step_s > 0,
                       .fixed_s = spec->fixed_s,
                       .bytes_per_step = spec->bytes_per_step,
                       .sync = spec->sync,
                       .overlap = spec->overlap,
                       .sends_per_s = spec->may_send ? (double)NAN : 0,
                       .curve = spec->curve };
    if (spec->undeclared || job.curve.family == LEARNING_POINTS)
        job.curve = (struct learning){ 0 }; /* not known beforehand */
    if (spec->kind) {
        job.kind = throughput_find(admission->rates, spec->kind);
        if (job.kind == KIND_NONE && !admission->learned)
            return error_set(err, -ERANGE, "no throughput is known for kind '%.80s'",
                             spec->kind);
    }
    job.paced = job.paced || job.kind != KIND_NONE;
    if (job.kind == KIND_NONE && admission->learned && spec->gpus > 0)
        job.learned = find_learned(admission, spec);
    if (job.learned && job.shares && job.gpu_mib == 0)
        expect_memory(&job, &admission->learned->kinds[job.learned - 1]);
    int r = 0;
    if (spec->nodelist || spec->exclude || spec->within)
        r = take_set(admission, spec, &job, err);
    if (r < 0)
        return r;
    if (job.gpus > 0 && job.gpus_min < job.nodes)
        job.gpus_min = job.nodes; /* however small it is, one on each of them */
    r = types_it_fits(admission, spec, &job, err);
    if (r < 0) {
        node_set_drop(job.set);
        return r;
    }
    *ret_job = job;
    return 0;
}
