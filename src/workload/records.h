/* records.h - jobs of a file that is not in order, held small until they are sorted. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"

struct error;
struct trace_row;

struct trace_record {
    int64_t submit_ns;
    int64_t run_ns;
    int64_t deadline_ns; /* 0: none                                */
    uint64_t gpu_milli;
    uint32_t gpus, nodes, cpu_milli, mem_mib;
    uint32_t name, user, entity, types; /* places in 'texts'; 0: none */
    uint8_t class, fails;
};

struct records {
    struct trace_record *items;
    uint32_t count, room;
    uint32_t *order; /* NULL: as they are */
    char *texts;     /* one after the other, each with its NUL; [0] is empty */
    uint32_t texts_count, texts_room;
    struct map words; /* texts that many jobs share */
    struct map names; /* for finding two of one name */
};

void records_release(struct records *records);

/*
 * Keep a copy of a row.  Returns 0, 1 if a job of that name is there already and
 * 'unique' is set, or -EFBIG at the ceiling.
 */
int records_add(struct records *records, const struct trace_row *row, bool unique,
                struct error *err);

/* Put them in order of submission; equal ones stay in the order of the file. */
void records_sort(struct records *records);

/* The nth in that order; its texts live as long as the records. */
void records_get(const struct records *records, uint32_t n, struct trace_row *ret_row);
