/* instance_file.c - reading files of instances: jobs, accelerators, pairs and entities. */
#include "study/instance_file.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/map.h"
#include "solve/solve.h"

#define FILE_BYTES_MAX (512 * 1024 * 1024)
#define INSTANCES_MAX 100000
#define JOBS_MAX 1000000
#define PAIRS_MAX 20000000
#define NUMBER_MAX 1e15
#define NAME_BYTES_MAX 200

/* The instance that is being read, and where, for error messages. */
struct instance_reader {
    const char *file;
    struct arena *arena;
    struct error *err;
    struct instance *instance;
    struct map ids; /* hash of a job's id to the job; equal hashes follow each other */
};

/* Set the error "FILE: instances[3].WHERE: message"; 'fmt' begins with WHERE. */
__attribute__((format(printf, 2, 3))) static int
set_wrong(const struct instance_reader *at, const char *fmt, ...)
{
    char text[240];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return error_set(at->err, -EINVAL, "%.80s: instances[%u].%s", at->file,
                     at->instance->place, text);
}

/* The bounds of a number; 'want' and 'where' are for error messages. */
struct number_range {
    double low, high;
    bool open; /* 'low' itself is excluded */
};

static const struct number_range from_zero = { 0, NUMBER_MAX, false };
static const struct number_range above_zero = { 0, NUMBER_MAX, true };
static const struct number_range any_number = { -NUMBER_MAX, NUMBER_MAX, false };

static int read_number(const struct instance_reader *at, const struct json *json,
                       const struct number_range *range, double *ret_number,
                       const char *where)
{
    double number;
    if (!json)
        return set_wrong(at, "%s: missing", where);
    if (!json_as_number(json, &number))
        return set_wrong(at, "%s: want a number", where);
    bool inside = range->open ? number > range->low : number >= range->low;
    if (!inside || !(number <= range->high))
        return set_wrong(at, "%s: is %g, want a number %s", where, number,
                         range->open      ? "greater than 0"
                         : range->low < 0 ? "from -1e15 to 1e15"
                                          : "from 0 to 1e15");
    *ret_number = number;
    return 0;
}

/* Check that it is an array of 'count' members. */
static int check_array(const struct instance_reader *at, const struct json *json,
                       size_t count, const char *where)
{
    if (!json)
        return set_wrong(at, "%s: missing", where);
    if (!json_is_array(json) || json_count(json) != count)
        return set_wrong(at, "%s: want a list of %zu, one per type", where, count);
    return 0;
}

/* --- types --- */

static int read_type(struct instance_reader *at, const struct json *names,
                     uint32_t type)
{
    struct instance *in = at->instance;
    const char *name = json_as_text(json_item(names, type));
    if (!name || !*name || strlen(name) > NAME_BYTES_MAX)
        return set_wrong(at, "worker_types[%u]: want a name", type);
    for (uint32_t t = 0; t < type; t++)
        if (strcmp(in->types[t], name) == 0)
            return set_wrong(at, "worker_types[%u]: '%.60s' is there twice", type,
                             name);
    in->types[type] = arena_text(at->arena, name);
    return 0;
}

static int read_types(struct instance_reader *at, const struct json *json)
{
    struct instance *in = at->instance;
    const struct json *names = json_get(json, "worker_types");
    const struct json *counts = json_get(json, "num_workers");
    size_t count = json_count(names);
    if (!names)
        return set_wrong(at, "worker_types: missing");
    if (!json_is_array(names) || count == 0 || count > SOLVE_TYPES_MAX)
        return set_wrong(at, "worker_types: want a list of 1 to %d names",
                         SOLVE_TYPES_MAX);
    in->type_count = (uint32_t)count;
    in->types = arena_array(at->arena, const char *, count);
    in->capacity = arena_array(at->arena, double, count);
    int r = check_array(at, counts, count, "num_workers");
    for (uint32_t t = 0; r == 0 && t < in->type_count; t++) {
        char where[40];
        snprintf(where, sizeof where, "num_workers[%u]", t);
        r = read_type(at, names, t);
        if (r == 0)
            r = read_number(at, json_item(counts, t), &from_zero, &in->capacity[t],
                            where);
    }
    return r;
}

static int read_prices(struct instance_reader *at, const struct json *json)
{
    struct instance *in = at->instance;
    const struct json *prices = json_get(json, "instance_costs_per_hour");
    if (!prices || json_is_null(prices))
        return 0;
    if (!json_is_object(prices))
        return set_wrong(at, "instance_costs_per_hour: want an object with a price per "
                             "type");
    in->price = arena_array(at->arena, double, in->type_count);
    int r = 0;
    for (uint32_t t = 0; r == 0 && t < in->type_count; t++) {
        char where[120];
        snprintf(where, sizeof where, "instance_costs_per_hour.%.60s", in->types[t]);
        r = read_number(at, json_get(prices, in->types[t]), &above_zero, &in->price[t],
                        where);
    }
    return r;
}

/* --- jobs --- */

/* The text of an id, which is a number or a name. */
static bool format_id(const struct json *json, char *text, size_t size)
{
    double number;
    const char *name = json_as_text(json);
    if (name && *name && strlen(name) < size)
        snprintf(text, size, "%s", name);
    else if (json_as_number(json, &number))
        snprintf(text, size, "%.17g", number);
    else
        return false;
    return true;
}

/* The job of that id, or MAP_NONE; 'ret_key' is the key to add it with. */
static uint32_t find_job_id(const struct instance_reader *at, const char *id,
                            uint64_t *ret_key)
{
    uint64_t key = hash_text(id);
    uint32_t job;
    while ((job = map_find(&at->ids, key)) != MAP_NONE &&
           strcmp(at->instance->jobs[job], id) != 0)
        key++;
    if (ret_key)
        *ret_key = key;
    return job;
}

static int read_id(struct instance_reader *at, const struct json *job, uint32_t place)
{
    char id[NAME_BYTES_MAX + 1];
    const struct json *json = json_get(job, "id");
    uint64_t key;
    if (!json)
        snprintf(id, sizeof id, "%u", place);
    else if (!format_id(json, id, sizeof id))
        return set_wrong(at, "jobs[%u].id: want a number or a name", place);
    if (find_job_id(at, id, &key) != MAP_NONE)
        return set_wrong(at, "jobs[%u].id: '%.60s' is there twice", place, id);
    at->instance->jobs[place] = arena_text(at->arena, id);
    map_put(&at->ids, key, place);
    return 0;
}

static int read_rates(struct instance_reader *at, const struct json *job,
                      uint32_t place)
{
    struct instance *in = at->instance;
    const struct json *rates = json_get(job, "throughputs");
    char where[64];
    snprintf(where, sizeof where, "jobs[%u].throughputs", place);
    int r = check_array(at, rates, in->type_count, where);
    for (uint32_t t = 0; r == 0 && t < in->type_count; t++) {
        snprintf(where, sizeof where, "jobs[%u].throughputs[%u]", place, t);
        r = read_number(at, json_item(rates, t), &from_zero,
                        &in->rate[(size_t)place * in->type_count + t], where);
    }
    return r;
}

/* Read a number that may be absent or null: then it is 'fallback'. */
static int read_optional(struct instance_reader *at, const struct json *job,
                         uint32_t place, const char *key,
                         const struct number_range *range, double fallback,
                         double *ret_number)
{
    char where[64];
    const struct json *json = json_get(job, key);
    *ret_number = fallback;
    if (!json || json_is_null(json))
        return 0;
    snprintf(where, sizeof where, "jobs[%u].%s", place, key);
    return read_number(at, json, range, ret_number, where);
}

static int read_job(struct instance_reader *at, const struct json *job, uint32_t place)
{
    struct instance *in = at->instance;
    char where[64];
    snprintf(where, sizeof where, "jobs[%u].scale_factor", place);
    if (!json_is_object(job))
        return set_wrong(at, "jobs[%u]: want an object", place);
    int r = read_id(at, job, place);
    if (r == 0)
        r = read_number(at, json_get(job, "scale_factor"), &above_zero,
                        &in->gang[place], where);
    if (r == 0)
        r = read_rates(at, job, place);
    const struct {
        const char *key;
        const struct number_range *range;
        double fallback;
        double *values;
    } fields[] = {
        { "priority_weight", &from_zero, 1, in->weight },
        { "num_steps_remaining", &from_zero, -1, in->steps },
        { "time_since_start", &from_zero, -1, in->age_s },
        { "isolated_seconds", &from_zero, 0, in->alone_s },
        { "SLO_seconds_left", &any_number, INFINITY, in->slo_s },
    };
    for (uint32_t f = 0; r == 0 && f < sizeof fields / sizeof *fields; f++)
        r = read_optional(at, job, place, fields[f].key, fields[f].range,
                          fields[f].fallback, &fields[f].values[place]);
    return r;
}

static int read_jobs(struct instance_reader *at, const struct json *json)
{
    struct instance *in = at->instance;
    const struct json *jobs = json_get(json, "jobs");
    size_t count = json_count(jobs);
    if (!jobs)
        return set_wrong(at, "jobs: missing");
    if (!json_is_array(jobs) || count > JOBS_MAX)
        return set_wrong(at, "jobs: want a list of at most %d", JOBS_MAX);
    in->job_count = (uint32_t)count;
    in->jobs = arena_array(at->arena, const char *, count);
    in->rate = arena_array(at->arena, double, count * in->type_count);
    double **const arrays[] = { &in->gang,  &in->weight,  &in->steps,
                                &in->age_s, &in->alone_s, &in->slo_s };
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        *arrays[i] = arena_array(at->arena, double, count);
    int r = 0;
    for (uint32_t j = 0; r == 0 && j < in->job_count; j++)
        r = read_job(at, json_item(jobs, j), j);
    return r;
}

/* Read a reference to a job, by its id. */
static int read_reference(struct instance_reader *at, const struct json *json,
                          const char *where, uint32_t *ret_job)
{
    char id[NAME_BYTES_MAX + 1];
    if (!format_id(json, id, sizeof id))
        return set_wrong(at, "%s: want the id of a job", where);
    uint32_t job = find_job_id(at, id, NULL);
    if (job == MAP_NONE)
        return set_wrong(at, "%s: there is no job '%.60s'", where, id);
    *ret_job = job;
    return 0;
}

/* --- pairs --- */

/* Whether the second id is smaller than the first, as a number. */
static bool ids_are_descending(const struct json *ids)
{
    double first, second;
    return json_as_number(json_item(ids, 0), &first) &&
           json_as_number(json_item(ids, 1), &second) && second < first;
}

/* Read the rates of a type: [of the lower id, of the higher].  With 'swap' the lower id is
 * that of 'second'. */
static int read_pair_rates(struct instance_reader *at, const struct json *pair,
                           uint32_t place, bool swap)
{
    struct instance *in = at->instance;
    const struct json *rates = json_get(pair, "throughputs");
    char where[80];
    snprintf(where, sizeof where, "pairs[%u].throughputs", place);
    int r = check_array(at, rates, in->type_count, where);
    for (uint32_t t = 0; r == 0 && t < in->type_count; t++) {
        const struct json *two = json_item(rates, t);
        if (!json_is_array(two) || json_count(two) != 2)
            return set_wrong(at, "pairs[%u].throughputs[%u]: want two numbers", place,
                             t);
        double *cell = &in->pair_rate[((size_t)place * in->type_count + t) * 2];
        for (uint32_t i = 0; r == 0 && i < 2; i++) {
            snprintf(where, sizeof where, "pairs[%u].throughputs[%u][%u]", place, t, i);
            r = read_number(at, json_item(two, i), &from_zero, &cell[swap ? 1 - i : i],
                            where);
        }
    }
    return r;
}

static int read_pair(struct instance_reader *at, const struct json *pair,
                     uint32_t place, struct map *seen)
{
    struct instance *in = at->instance;
    const struct json *ids = json_get(pair, "ids");
    char where[48];
    uint32_t jobs[2] = { 0, 0 };
    if (!json_is_array(ids) || json_count(ids) != 2)
        return set_wrong(at, "pairs[%u].ids: want two ids", place);
    int r = 0;
    for (uint32_t i = 0; r == 0 && i < 2; i++) {
        snprintf(where, sizeof where, "pairs[%u].ids[%u]", place, i);
        r = read_reference(at, json_item(ids, i), where, &jobs[i]);
    }
    if (r < 0)
        return r;
    if (jobs[0] == jobs[1])
        return set_wrong(at, "pairs[%u].ids: want two different jobs", place);
    if (in->gang[jobs[0]] != in->gang[jobs[1]])
        return set_wrong(at, "pairs[%u].ids: scale factors %g and %g, want equal ones",
                         place, in->gang[jobs[0]], in->gang[jobs[1]]);
    bool later = jobs[0] > jobs[1];
    struct programme_pair *made = &in->pairs[place];
    *made = (struct programme_pair){ jobs[later], jobs[!later] };
    uint64_t key = (uint64_t)made->first << 32 | made->second;
    if (map_find(seen, key) != MAP_NONE)
        return set_wrong(at, "pairs[%u].ids: the same two jobs as in pairs[%u]", place,
                         map_find(seen, key));
    map_put(seen, key, place);
    return read_pair_rates(at, pair, place, later != ids_are_descending(ids));
}

static int read_pairs(struct instance_reader *at, const struct json *json)
{
    struct instance *in = at->instance;
    const struct json *pairs = json_get(json, "pairs");
    size_t count = json_count(pairs);
    if (!pairs || json_is_null(pairs))
        return 0;
    if (!json_is_array(pairs) || count > PAIRS_MAX)
        return set_wrong(at, "pairs: want a list of at most %d", PAIRS_MAX);
    in->pair_count = (uint32_t)count;
    in->pairs = arena_array(at->arena, struct programme_pair, count);
    in->pair_rate = arena_array(at->arena, double, count * in->type_count * 2);
    struct map seen = { 0 };
    int r = 0;
    for (uint32_t i = 0; r == 0 && i < in->pair_count; i++)
        r = read_pair(at, json_item(pairs, i), i, &seen);
    map_release(&seen);
    return r;
}

/* --- entities --- */

static int read_entity(struct instance_reader *at, const struct json *entity,
                       uint32_t place)
{
    struct instance *in = at->instance;
    char where[64];
    snprintf(where, sizeof where, "entities[%u].weight", place);
    int r = read_number(at, json_get(entity, "weight"), &from_zero,
                        &in->groups[place].weight, where);
    if (r < 0)
        return r;
    const char *inside = json_as_text(json_get(entity, "inside"));
    if (!inside || (strcmp(inside, "fairness") != 0 && strcmp(inside, "fifo") != 0))
        return set_wrong(at, "entities[%u].inside: want fairness or fifo", place);
    in->groups[place].fifo = strcmp(inside, "fifo") == 0;
    const struct json *jobs = json_get(entity, "jobs");
    if (!json_is_array(jobs))
        return set_wrong(at, "entities[%u].jobs: want a list of ids", place);
    for (size_t i = 0; i < json_count(jobs); i++) {
        uint32_t job = 0;
        snprintf(where, sizeof where, "entities[%u].jobs[%zu]", place, i);
        r = read_reference(at, json_item(jobs, i), where, &job);
        if (r < 0)
            return r;
        if (in->group[job] != UINT32_MAX)
            return set_wrong(at, "%s: job '%.60s' is in entities[%u] already", where,
                             in->jobs[job], in->group[job]);
        in->group[job] = place;
    }
    return 0;
}

static int read_entities(struct instance_reader *at, const struct json *json)
{
    struct instance *in = at->instance;
    const struct json *entities = json_get(json, "entities");
    size_t count = json_count(entities);
    if (!entities || json_is_null(entities))
        return 0;
    if (!json_is_array(entities) || count > JOBS_MAX)
        return set_wrong(at, "entities: want a list of at most %d", JOBS_MAX);
    in->group_count = (uint32_t)count;
    in->groups = arena_array(at->arena, struct programme_group, count);
    in->group = arena_array(at->arena, uint32_t, in->job_count);
    for (uint32_t j = 0; j < in->job_count; j++)
        in->group[j] = UINT32_MAX;
    int r = 0;
    for (uint32_t g = 0; r == 0 && g < in->group_count; g++)
        r = read_entity(at, json_item(entities, g), g);
    for (uint32_t j = 0; r == 0 && j < in->job_count; j++)
        if (in->group[j] == UINT32_MAX)
            r = set_wrong(at, "jobs[%u]: job '%.60s' is in no entity", j, in->jobs[j]);
    return r;
}

/* --- the file --- */

static int read_instance(struct instance_reader *at, const struct json *json)
{
    struct instance *in = at->instance;
    char name[NAME_BYTES_MAX + 1];
    if (!json_is_object(json))
        return error_set(at->err, -EINVAL, "%.80s: instances[%u]: want an object",
                         at->file, in->place);
    if (!format_id(json_get(json, "id"), name, sizeof name))
        snprintf(name, sizeof name, "instances[%u]", in->place);
    in->name = arena_text(at->arena, name);
    static int (*const parts[])(struct instance_reader *, const struct json *) = {
        read_types, read_prices, read_jobs, read_pairs, read_entities
    };
    int r = 0;
    for (size_t i = 0; r == 0 && i < sizeof parts / sizeof *parts; i++)
        r = parts[i](at, json);
    map_release(&at->ids);
    return r;
}

int instance_file_parse(struct instance_file *file, struct arena *arena,
                        const char *name, const char *bytes, size_t count,
                        struct error *err)
{
    struct json *json;
    int r = json_parse_piece(bytes, count, name, 1, &json, err);
    if (r < 0)
        return r;
    const struct json *list = json_get(json, "instances");
    struct instance_file made = { .name = name };
    if (!json_is_array(list) || json_count(list) > INSTANCES_MAX)
        r = error_set(err, -EINVAL,
                      "%.80s: want an object with a list \"instances\" of at most %d",
                      name, INSTANCES_MAX);
    else
        made.count = (uint32_t)json_count(list);
    made.instances = arena_array(arena, struct instance, made.count);
    for (uint32_t i = 0; r == 0 && i < made.count; i++) {
        made.instances[i].place = i;
        struct instance_reader at = {
            .file = name, .arena = arena, .err = err, .instance = &made.instances[i]
        };
        r = read_instance(&at, json_item(list, i));
    }
    json_free(json);
    if (r == 0)
        *file = made;
    return r;
}

int instance_file_read(struct instance_file *file, struct arena *arena,
                       const char *path, struct error *err)
{
    struct buf bytes;
    buf_init(&bytes, FILE_BYTES_MAX);
    int r = buf_read(&bytes, path, err);
    if (r == 0)
        r = instance_file_parse(file, arena, path, bytes.bytes, bytes.count, err);
    buf_release(&bytes);
    return r;
}
