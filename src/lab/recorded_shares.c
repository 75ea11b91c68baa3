/* recorded_shares.c - reading shares that were recorded in another run. */
#include "lab/recorded_shares.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/json.h"
#include "workload/reader.h"

#define RECORDS_MAX (1u << 20)
#define SHARES_MAX (1u << 20) /* of one line */
#define NUMBER_MAX 1000000000u

/* The position in the file, for error messages. */
struct recorded_position {
    const struct reader *reader;
    const char *field;
    struct error *err;
};

static int set_wrong(const struct recorded_position *position, const char *value,
                     const char *want)
{
    return reader_wrong(position->reader, position->field, value, strlen(value), want,
                        position->err);
}

/* "3" or "3,16". */
static bool read_numbers(const char *key, struct gavel_share *share)
{
    uint32_t numbers[2] = { 0, RECORDED_ALONE };
    for (uint32_t i = 0; i < 2; i++) {
        char *end;
        if (*key < '0' || *key > '9')
            return false;
        errno = 0;
        unsigned long number = strtoul(key, &end, 10);
        if (errno || number > NUMBER_MAX)
            return false;
        numbers[i] = (uint32_t)number;
        key = end;
        if (!*key)
            break;
        if (*key++ != ',' || i == 1)
            return false;
    }
    share->first = numbers[0];
    share->second = numbers[1];
    return share->second != share->first;
}

static int read_share(struct gavel_share *share, const char *key,
                      const struct json *values, uint32_t type_count, struct arena *run,
                      struct recorded_position *position)
{
    position->field = "alloc";
    if (!read_numbers(key, share))
        return set_wrong(position, key, "the number of a job, or of two: \"3,16\"");
    if (!json_is_array(values) || json_count(values) != type_count)
        return set_wrong(position, key, "a number per type that the cluster has");
    double *x = arena_array(run, double, type_count);
    for (uint32_t c = 0; c < type_count; c++)
        if (!json_as_number(json_item(values, c), &x[c]) || !isfinite(x[c]) ||
            fabs(x[c]) > 1e6)
            return set_wrong(position, key, "shares that are numbers");
    share->x = x;
    return 0;
}

static int read_record(struct gavel_record *record, const struct json *json,
                       uint32_t type_count, struct arena *run,
                       struct recorded_position *position)
{
    double round;
    const struct json *alloc = json_get(json, "alloc");
    position->field = "round";
    if (!json_as_number(json_get(json, "round"), &round) || round < 0 ||
        round > NUMBER_MAX || round != floor(round))
        return set_wrong(position, "", "the number of a round");
    position->field = "t";
    if (!json_as_number(json_get(json, "t"), &record->at_s) || record->at_s < 0 ||
        !isfinite(record->at_s))
        return set_wrong(position, "", "a time in seconds");
    position->field = "alloc";
    if (!json_is_object(alloc))
        return set_wrong(position, "", "an object");
    record->round = (uint64_t)round;
    record->line = position->reader->line;

    const char *key;
    const struct json *values;
    for (void *m = NULL; (m = json_member(alloc, m, &key, &values));)
        if (++record->share_count > SHARES_MAX)
            return set_wrong(position, key, "fewer jobs");
    struct gavel_share *shares =
        arena_array(run, struct gavel_share, record->share_count);
    uint32_t i = 0;
    for (void *m = NULL; (m = json_member(alloc, m, &key, &values));) {
        int r = read_share(&shares[i++], key, values, type_count, run, position);
        if (r < 0)
            return r;
    }
    record->shares = shares;
    return 0;
}

static int read_line(struct gavel_recorded *recorded, const char *line, size_t bytes,
                     uint32_t type_count, struct arena *run,
                     struct recorded_position *position)
{
    struct json *json;
    if (recorded->count == RECORDS_MAX)
        return error_set(position->err, -EINVAL, "%.100s: more than %u lines",
                         recorded->path, RECORDS_MAX);
    int r = json_parse_piece(line, bytes, recorded->path, position->reader->line, &json,
                             position->err);
    if (r < 0)
        return r;
    r = read_record(&recorded->records[recorded->count++], json, type_count, run,
                    position);
    json_free(json);
    return r;
}

static int read_records(struct gavel_recorded *ret_recorded, struct reader *reader,
                        uint32_t type_count, struct arena *run, struct error *err)
{
    struct recorded_position position = { .reader = reader, .err = err };
    struct gavel_recorded recorded = { .path = reader->name };
    char *line;
    size_t bytes;
    int r;
    recorded.records = arena_array(run, struct gavel_record, RECORDS_MAX);
    while ((r = reader_line(reader, &line, &bytes, err)) > 0) {
        if (bytes == 0)
            continue;
        r = read_line(&recorded, line, bytes, type_count, run, &position);
        if (r < 0)
            break;
    }
    if (r == 0)
        *ret_recorded = recorded;
    return r;
}

int recorded_shares_parse(struct gavel_recorded *ret_recorded, const char *name,
                          const void *bytes, size_t count, uint32_t type_count,
                          struct arena *run, struct error *err)
{
    struct reader reader;
    int r = reader_open_memory(&reader, arena_text(run, name), bytes, count, err);
    if (r < 0)
        return r;
    r = read_records(ret_recorded, &reader, type_count, run, err);
    reader_release(&reader);
    return r;
}

int recorded_shares_read(struct gavel_recorded *ret_recorded, const char *path,
                         uint32_t type_count, struct arena *run, struct error *err)
{
    struct reader reader;
    int r = reader_open(&reader, arena_text(run, path), err);
    if (r == -ENOENT)
        r = error_set(err, -EINVAL, "%.200s: no such file", path);
    if (r < 0)
        return r;
    r = read_records(ret_recorded, &reader, type_count, run, err);
    reader_release(&reader);
    return r;
}

void recorded_shares_enable(void)
{
    gavel_recorded_install(recorded_shares_read);
}
