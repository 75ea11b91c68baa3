/* market_classes.c - identical jobs as one buyer in a market. */
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

/* A class of identical jobs; its place is the buyer's slot. */
struct market_class {
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

    struct map slots; /* key to place */
    struct market_class *classes;
    uint32_t class_count; /* places in use so far, those that are free again included;
                          * apart: jobs of the last programme */
    uint32_t *free_slots; /* places that are free again */
    uint32_t free_count;
};

struct market_classes *market_classes_new(void)
{
    return memory_checked(calloc(1, sizeof(struct market_classes)));
}

static void clear_classes(struct market_classes *classes)
{
    market_free(classes->market);
    map_release(&classes->slots);
    free(classes->classes);
    free(classes->free_slots);
    *classes = (struct market_classes){ 0 };
}

void market_classes_free(struct market_classes *classes)
{
    if (!classes)
        return;
    clear_classes(classes);
    free(classes);
}

static void build_classes(struct market_classes *classes, uint32_t type_count,
                          const double *capacity, uint32_t job_max, bool apart)
{
    clear_classes(classes);
    /* New classes are put in before old ones are removed: room for both. */
    classes->slot_max = 2 * job_max + 64;
    classes->type_count = type_count;
    classes->apart = apart;
    classes->market = market_new(type_count, capacity, classes->slot_max);
    memcpy(classes->capacity, capacity, type_count * sizeof *capacity);
    if (!apart) {
        size_t count = classes->slot_max;
        classes->classes = memory_checked(calloc(count, sizeof *classes->classes));
        classes->free_slots =
            memory_checked(calloc(count, sizeof *classes->free_slots));
    }
}

void market_classes_begin(struct market_classes *classes, uint32_t type_count,
                          const double *capacity, uint32_t job_max, bool apart)
{
    assert(type_count <= SOLVE_TYPES_MAX);
    uint32_t kept = apart ? 0 : classes->class_count - classes->free_count;
    if (!classes->market || classes->type_count != type_count ||
        classes->apart != apart || classes->slot_max - kept < job_max)
        build_classes(classes, type_count, capacity, job_max, apart);
    if (memcmp(classes->capacity, capacity, type_count * sizeof *capacity) != 0)
        market_set_capacity(classes->market, capacity);
    memcpy(classes->capacity, capacity, type_count * sizeof *capacity);
    for (uint32_t i = 0; !apart && i < classes->class_count; i++)
        classes->classes[i].now = 0;
    classes->job_count = 0;
}

/* A slot for a class that is not there yet. */
static uint32_t add_class(struct market_classes *classes, uint64_t key,
                          const double *fields, uint32_t count)
{
    uint32_t place = classes->free_count > 0
                         ? classes->free_slots[--classes->free_count]
                         : classes->class_count++;
    assert(place < classes->slot_max);
    struct market_class *class = &classes->classes[place];
    *class = (struct market_class){ .key = key };
    memcpy(class->fields, fields, count * sizeof *fields);
    map_put(&classes->slots, key, place);
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
    while ((place = map_find(&classes->slots, key)) != MAP_NONE &&
           memcmp(classes->classes[place].fields, fields, count * sizeof *fields) != 0)
        key++;
    if (place == MAP_NONE)
        place = add_class(classes, key, fields, count);
    classes->classes[place].now++;
    return place;
}

static void put_class(struct market_classes *classes, uint32_t place)
{
    struct market_class *class = &classes->classes[place];
    const double *rest = &class->fields[classes->type_count];
    const struct buyer buyer = { .rate = class->fields,
                                 .gang = rest[0] * class->now,
                                 .need = rest[1],
                                 .ahead = rest[2] };
    market_put(classes->market, place, &buyer);
    class->put = class->now;
}

struct market *market_classes_end(struct market_classes *classes)
{
    if (classes->apart) {
        for (uint32_t i = classes->job_count; i < classes->class_count; i++)
            market_drop(classes->market, i);
        classes->class_count = classes->job_count;
        return classes->market;
    }
    for (uint32_t i = 0; i < classes->class_count; i++) {
        struct market_class *class = &classes->classes[i];
        if (class->now == 0 && class->put > 0) {
            market_drop(classes->market, i);
            map_remove(&classes->slots, class->key);
            class->put = 0;
            classes->free_slots[classes->free_count++] = i;
        } else if (class->now != class->put)
            put_class(classes, i);
    }
    return classes->market;
}
