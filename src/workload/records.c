/* records.c - jobs of a file that is not in order, held small until they are sorted. */
#include "workload/records.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/grow.h"
#include "base/hash.h"
#include "base/memory.h"
#include "workload/format.h"

#define TEXTS_MAX (UINT32_MAX / 2)
#define RECORDS_MAX (UINT32_MAX / 2)

void records_release(struct records *records)
{
    free(records->items);
    free(records->order);
    free(records->texts);
    map_release(&records->words);
    map_release(&records->names);
    *records = (struct records){ 0 };
}

/* Offset of a copy of 'text'; the caller has checked the limit. */
static uint32_t keep_text(struct records *records, const char *text)
{
    size_t bytes = strlen(text) + 1;
    if (records->texts_count == 0)
        records->texts_count = 1; /* place 0 means none */
    records->texts = grow_array(records->texts, &records->texts_room,
                                records->texts_count + (uint32_t)bytes, 1);
    uint32_t place = records->texts_count;
    memcpy(records->texts + place, text, bytes);
    records->texts_count += (uint32_t)bytes;
    return place;
}

/* The same for a text that is likely there already. */
static uint32_t keep_word(struct records *records, const char *text)
{
    if (!text)
        return 0;
    uint64_t key = hash_text(text);
    uint32_t place = map_find(&records->words, key);
    if (place != MAP_NONE && strcmp(records->texts + place, text) == 0)
        return place;
    uint32_t added = keep_text(records, text);
    if (place == MAP_NONE)
        map_put(&records->words, key, added);
    return added;
}

/* Whether a job of that name is there; if not, this one will be. */
static bool is_double(struct records *records, const char *name)
{
    uint64_t key = hash_text(name);
    uint32_t index = map_find(&records->names, key);
    if (index != MAP_NONE)
        return strcmp(records->texts + records->items[index].name, name) == 0;
    map_put(&records->names, key, records->count);
    return false;
}

static size_t text_bytes(const char *text)
{
    return text ? strlen(text) + 1 : 0;
}

int records_add(struct records *records, const struct trace_row *row, bool unique,
                struct error *err)
{
    const struct job_spec *spec = &row->spec;
    size_t bytes = text_bytes(spec->name) + text_bytes(spec->user) +
                   text_bytes(spec->entity) + text_bytes(spec->types);
    if (records->count == RECORDS_MAX || records->texts_count + bytes >= TEXTS_MAX)
        return error_set(err, -EFBIG,
                         "more than %u jobs or 2 GiB of names in a file that "
                         "has to be sorted",
                         RECORDS_MAX);
    if (unique && spec->name && is_double(records, spec->name))
        return 1;
    records->items = grow_array(records->items, &records->room, records->count + 1,
                                sizeof *records->items);
    records->items[records->count++] = (struct trace_record){
        .submit_ns = spec->submit_ns,
        .run_ns = row->run_ns,
        .deadline_ns = spec->deadline_ns,
        .gpu_milli = row->gpu_milli,
        .gpus = spec->gpus,
        .nodes = spec->nodes,
        .cpu_milli = spec->cpu_milli,
        .mem_mib = spec->mem_mib,
        .name = spec->name ? keep_text(records, spec->name) : 0,
        .user = keep_word(records, spec->user),
        .entity = keep_word(records, spec->entity),
        .types = keep_word(records, spec->types),
        .class = (uint8_t)spec->class,
        .fails = spec->fails,
    };
    return 0;
}

struct record_key {
    int64_t submit_ns;
    uint32_t index;
};

static int by_submission(const void *a, const void *b)
{
    const struct record_key *x = a;
    const struct record_key *y = b;
    if (x->submit_ns != y->submit_ns)
        return x->submit_ns < y->submit_ns ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

void records_sort(struct records *records)
{
    map_release(&records->words);
    map_release(&records->names);
    uint32_t n = 1;
    while (n < records->count &&
           records->items[n].submit_ns >= records->items[n - 1].submit_ns)
        n++;
    if (n >= records->count)
        return; /* in order as it is */

    struct record_key *keys = memory_checked(malloc(records->count * sizeof *keys));
    for (uint32_t i = 0; i < records->count; i++)
        keys[i] = (struct record_key){ records->items[i].submit_ns, i };
    qsort(keys, records->count, sizeof *keys, by_submission);
    records->order = memory_checked(malloc(records->count * sizeof *records->order));
    for (uint32_t i = 0; i < records->count; i++)
        records->order[i] = keys[i].index;
    free(keys);
}

void records_get(const struct records *records, uint32_t n, struct trace_row *ret_row)
{
    const struct trace_record *record =
        &records->items[records->order ? records->order[n] : n];
    const char *texts = records->texts;
    *ret_row = (struct trace_row){
        .gpu_milli = record->gpu_milli,
        .spec = {
            .submit_ns = record->submit_ns,
            .deadline_ns = record->deadline_ns,
            .gpus = record->gpus,
            .nodes = record->nodes,
            .cpu_milli = record->cpu_milli,
            .mem_mib = record->mem_mib,
            .name = record->name ? texts + record->name : NULL,
            .user = record->user ? texts + record->user : NULL,
            .entity = record->entity ? texts + record->entity : NULL,
            .types = record->types ? texts + record->types : NULL,
            .class = record->class ? CLASS_TE : CLASS_BE,
            .fails = record->fails,
        },
    };
    trace_row_set_run(ret_row, record->run_ns);
}
