/* intake.c - words to numbers, and "can this ever run". */
#include "model/intake.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "model/cluster.h"
#include "model/place.h"
#include "model/throughput.h"

static uint64_t hash_of(const char *name)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (const char *c = name; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 0x100000001b3u;
    return hash;
}

void intake_init(struct intake *intake, const struct cluster *cluster,
                 const struct throughput *rates)
{
    *intake = (struct intake){ .cluster = cluster, .rates = rates };
    arena_init(&intake->names, 0);
    for (uint32_t i = 0; i < cluster->entity_count; i++)
        map_put(&intake->entities, hash_of(cluster->entities[i].name),
                ++intake->entity_count);
}

void intake_release(struct intake *intake)
{
    map_release(&intake->entities);
    arena_release(&intake->names);
}

static uint32_t entity_number(struct intake *intake, const char *name)
{
    if (!name || !*name)
        return 0;
    uint64_t hash = hash_of(name);
    uint32_t number = map_find(&intake->entities, hash);
    if (number == MAP_NONE) {
        number = ++intake->entity_count;
        map_put(&intake->entities, hash, number);
    }
    return number;
}

/* Whether an empty node can hold so many of the gang, as placement counts it. */
static bool holds(const struct node *node, const struct job *job, uint32_t gpus)
{
    struct room_part need = place_need(job, gpus);
    return gpus <= node->gpu_count && need.cpu_milli <= node->cpu_milli &&
           need.mem_mib <= node->mem_mib;
}

/* Most of the gang that one node of a shape can hold. */
static uint32_t most_on(const struct node *node, const struct job *job)
{
    uint32_t gpus = node->gpu_count < job->gpus ? node->gpu_count : job->gpus;
    while (gpus > 0 && !holds(node, job, gpus))
        gpus--;
    return gpus;
}

/* Some node holds all of it; of these types, or without accelerators if it wants none. */
static bool fits_on_one(const struct cluster *cluster, const struct job *job,
                        uint32_t types, uint32_t gpus)
{
    for (uint32_t i = 0; i < cluster->shape_count; i++) {
        const struct node *node = &cluster->shapes[i].node;
        bool allowed = node->type == TYPE_NONE ? gpus == 0 : types >> node->type & 1;
        if (allowed && holds(node, job, gpus))
            return true;
    }
    return false;
}

/* Nodes of a type that hold 'gpus' of the gang each. */
static uint64_t nodes_for(const struct cluster *cluster, const struct job *job,
                          uint32_t type, uint32_t gpus)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < cluster->shape_count; i++)
        if (cluster->shapes[i].node.type == type &&
            holds(&cluster->shapes[i].node, job, gpus))
            count += cluster->shapes[i].count;
    return count;
}

/* On an empty cluster, with all nodes up: the same rules as placement. */
static bool fits_type(const struct cluster *cluster, const struct job *job,
                      uint32_t type)
{
    uint32_t node_max = cluster->types[type].node_gpus_max;
    if (job->nodes <= 1 && job->gpus <= node_max &&
        fits_on_one(cluster, job, (uint32_t)1 << type, job->gpus))
        return true;
    bool alone = job->nodes <= 1 && job->gpus <= node_max;
    if (!alone && node_max > 0 && job->nodes <= job->gpus) {
        /* Full nodes and one for the rest; or as many as it says, as even as can be. */
        uint32_t each = job->nodes ? job->gpus / job->nodes : node_max;
        uint32_t rest = job->nodes ? job->gpus % job->nodes : job->gpus % each;
        uint32_t large = each + (job->nodes && rest);
        uint32_t large_count =
            job->nodes ? (rest ? rest : job->nodes) : job->gpus / each;
        uint32_t small = job->nodes ? each : rest;
        uint32_t count = job->nodes ? job->nodes : large_count + (rest > 0);
        if (nodes_for(cluster, job, type, large) >= large_count &&
            (rest == 0 || nodes_for(cluster, job, type, small) >= count))
            return true;
    }
    if (!job->spread || job->nodes)
        return false;
    uint64_t all = 0;
    for (uint32_t i = 0; i < cluster->shape_count; i++)
        if (cluster->shapes[i].node.type == type)
            all += (uint64_t)cluster->shapes[i].count *
                   most_on(&cluster->shapes[i].node, job);
    return all >= job->gpus;
}

static int types_it_fits(const struct intake *intake, const struct job_spec *spec,
                         struct job *job, struct error *err)
{
    const struct cluster *cluster = intake->cluster;
    uint32_t allowed = spec->types ? cluster_types_named(cluster, spec->types)
                                   : ((uint32_t)1 << cluster->type_count) - 1;
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
                             "needs more CPU or memory than any node has");
        return 0;
    }
    if (allowed == 0)
        return error_set(err, -ERANGE, "no accelerator of type %.60s in this cluster",
                         spec->types ? spec->types : "any");
    bool runs = false;
    for (uint32_t type = 0; type < cluster->type_count; type++) {
        if (!(allowed >> type & 1))
            continue;
        if (throughput_rate(intake->rates, job, type, job->gpus, false) <= 0)
            continue;
        runs = true;
        if (fits_type(cluster, job, type))
            job->types |= (uint32_t)1 << type;
    }
    if (!runs)
        return error_set(err, -ERANGE,
                         "%.60s cannot run on %u accelerators of any type here",
                         spec->kind ? spec->kind : "it", job->gpus);
    if (job->types == 0)
        return error_set(
            err, -ERANGE,
            "asks for %u accelerators; no type has so many in a shape that fits",
            job->gpus);
    job->rate_best_per_s = throughput_best(intake->rates, job, &job->type_best);
    return 0;
}

int intake_job(struct intake *intake, const struct job_spec *spec, struct job *ret_job,
               struct error *err)
{
    struct job job = { .id = spec->id,
                       .class = spec->class,
                       .gpus = spec->gpus,
                       .gpus_min = spec->gpus_min ? spec->gpus_min : spec->gpus,
                       .gpus_max = spec->gpus_max ? spec->gpus_max : spec->gpus,
                       .nodes = spec->nodes,
                       .spread = spec->spread,
                       .cpu_milli = spec->cpu_milli,
                       .mem_mib = spec->mem_mib,
                       .kind = KIND_NONE,
                       .entity = entity_number(intake, spec->entity),
                       .steps_total = spec->steps,
                       .submit_ns = spec->submit_ns,
                       .grace_ns = spec->grace_ns,
                       .pause_ns = spec->pause_ns,
                       .load_ns = spec->load_ns,
                       .ckpt_ns = spec->ckpt_ns,
                       .weight = spec->weight > 0 ? spec->weight : 1,
                       .deadline_ns = spec->deadline_ns,
                       .step_s = spec->step_s > 0 ? spec->step_s : 1,
                       .fixed_s = spec->fixed_s,
                       .bytes_per_step = spec->bytes_per_step,
                       .sync = spec->sync,
                       .overlap = spec->overlap,
                       .sends_per_s = spec->may_send ? (double)NAN : 0,
                       .curve = spec->curve };
    if (job.curve.family == LEARNING_POINTS)
        job.curve = (struct learning){ 0 }; /* nobody can say them beforehand */
    if (job.gpus > 0 && job.gpus_min < job.nodes)
        job.gpus_min = job.nodes; /* however small it is, one on each of them */
    if (spec->kind) {
        job.kind = throughput_find(intake->rates, spec->kind);
        if (job.kind == KIND_NONE)
            return error_set(err, -ERANGE, "no throughput is known for kind '%.80s'",
                             spec->kind);
    }
    int r = types_it_fits(intake, spec, &job, err);
    if (r < 0)
        return r;
    *ret_job = job;
    return 0;
}
