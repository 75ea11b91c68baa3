/* market_classes.c - jobs that are alike, as one buyer in a market. */
#include "solve/maxmin/market_classes.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/map.h"
#include "base/memory.h"
#include "solve/problem.h"
#include "solve/maxmin/market.h"

#define FIELDS (SOLVE_TYPES_MAX + 3) /* rates, gang, need, ahead */

/* One kind of job; its place is the buyer's slot. */
struct kind {
    uint64_t key;
    double fields[FIELDS];
    uint32_t put; /* jobs in the market              */
    uint32_t now; /* jobs of the programme in hand   */
};

struct market_classes {
    struct market *market;
    uint32_t type_count, slot_max;
    double capacity[SOLVE_TYPES_MAX];
    bool apart;
    uint32_t job_count; /* apart: jobs of the programme in hand, one place each */

    struct map places; /* key to place */
    struct kind *kinds;
    uint32_t kind_count; /* places in use so far, those that are free again included;
                          * apart: jobs of the last programme */
    uint32_t *idle;      /* places that are free again */
    uint32_t idle_count;
};

struct market_classes *market_classes_new(void)
{
    return memory_checked(calloc(1, sizeof(struct market_classes)));
}

static void clear(struct market_classes *classes)
{
    market_free(classes->market);
    map_release(&classes->places);
    free(classes->kinds);
    free(classes->idle);
    *classes = (struct market_classes){ 0 };
}

void market_classes_free(struct market_classes *classes)
{
    if (!classes)
        return;
    clear(classes);
    free(classes);
}

static void build(struct market_classes *classes, uint32_t type_count,
                  const double *capacity, uint32_t job_max, bool apart)
{
    clear(classes);
    /* Who comes is put in before who is gone leaves: room for both. */
    classes->slot_max = 2 * job_max + 64;
    classes->type_count = type_count;
    classes->apart = apart;
    classes->market = market_new(type_count, capacity, classes->slot_max);
    memcpy(classes->capacity, capacity, type_count * sizeof *capacity);
    if (!apart) {
        size_t count = classes->slot_max;
        classes->kinds = memory_checked(calloc(count, sizeof *classes->kinds));
        classes->idle = memory_checked(calloc(count, sizeof *classes->idle));
    }
}

void market_classes_begin(struct market_classes *classes, uint32_t type_count,
                          const double *capacity, uint32_t job_max, bool apart)
{
    assert(type_count <= SOLVE_TYPES_MAX);
    uint32_t kept = apart ? 0 : classes->kind_count - classes->idle_count;
    if (!classes->market || classes->type_count != type_count ||
        classes->apart != apart || classes->slot_max - kept < job_max)
        build(classes, type_count, capacity, job_max, apart);
    if (memcmp(classes->capacity, capacity, type_count * sizeof *capacity) != 0)
        market_set_capacity(classes->market, capacity);
    memcpy(classes->capacity, capacity, type_count * sizeof *capacity);
    for (uint32_t i = 0; !apart && i < classes->kind_count; i++)
        classes->kinds[i].now = 0;
    classes->job_count = 0;
}

/* A place for a kind that is not there yet. */
static uint32_t add_kind(struct market_classes *classes, uint64_t key,
                         const double *fields, uint32_t count)
{
    uint32_t place = classes->idle_count > 0 ? classes->idle[--classes->idle_count]
                                             : classes->kind_count++;
    assert(place < classes->slot_max);
    struct kind *kind = &classes->kinds[place];
    *kind = (struct kind){ .key = key };
    memcpy(kind->fields, fields, count * sizeof *fields);
    map_put(&classes->places, key, place);
    return place;
}

uint32_t market_classes_put(struct market_classes *classes, const struct buyer *buyer)
{
    if (classes->apart) {
        market_put(classes->market, classes->job_count, buyer);
        return classes->job_count++;
    }
    double fields[FIELDS];
    uint32_t count = classes->type_count;
    memcpy(fields, buyer->rate, count * sizeof *fields);
    fields[count++] = buyer->gang;
    fields[count++] = buyer->need;
    fields[count++] = buyer->ahead;
    uint64_t key = hash_doubles(fields, count);
    uint32_t place;
    while ((place = map_find(&classes->places, key)) != MAP_NONE &&
           memcmp(classes->kinds[place].fields, fields, count * sizeof *fields) != 0)
        key++;
    if (place == MAP_NONE)
        place = add_kind(classes, key, fields, count);
    classes->kinds[place].now++;
    return place;
}

static void put_kind(struct market_classes *classes, uint32_t place)
{
    struct kind *kind = &classes->kinds[place];
    const double *rest = &kind->fields[classes->type_count];
    const struct buyer buyer = { .rate = kind->fields,
                                 .gang = rest[0] * kind->now,
                                 .need = rest[1],
                                 .ahead = rest[2] };
    market_put(classes->market, place, &buyer);
    kind->put = kind->now;
}

struct market *market_classes_end(struct market_classes *classes)
{
    if (classes->apart) {
        for (uint32_t i = classes->job_count; i < classes->kind_count; i++)
            market_drop(classes->market, i);
        classes->kind_count = classes->job_count;
        return classes->market;
    }
    for (uint32_t i = 0; i < classes->kind_count; i++) {
        struct kind *kind = &classes->kinds[i];
        if (kind->now == 0 && kind->put > 0) {
            market_drop(classes->market, i);
            map_remove(&classes->places, kind->key);
            kind->put = 0;
            classes->idle[classes->idle_count++] = i;
        } else if (kind->now != kind->put)
            put_kind(classes, i);
    }
    return classes->market;
}
