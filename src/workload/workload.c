/*
 * workload.c - the next job, in order of submission.
 *
 * A workload is a generator or a file.  A file in order streams: one row is read for
 * each job asked for.  One that is not is read whole at the start, held small, sorted,
 * and then looks the same.
 */
#include "workload/workload.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/grow.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/param.h"
#include "base/sort.h"
#include "base/suggest.h"
#include "base/units.h"
#include "workload/format.h"
#include "workload/preset.h"

#define SNIFF_BYTES (64 * 1024)
#define NAMES_MAX 64
#define TEXTS_MAX (UINT32_MAX / 2)
#define RECORDS_MAX (UINT32_MAX / 2)

extern const struct format format_berth, format_philly, format_philly_csv,
    format_helios, format_acme, format_pai, format_gavel, format_swf, format_sacct,
    format_generic;

const struct format *const format_list[] = {
    &format_berth, &format_philly, &format_philly_csv, &format_helios, &format_acme,
    &format_pai,   &format_gavel,  &format_swf,        &format_sacct,  &format_generic,
    NULL,
};

struct trace_record {
    int64_t submit_ns;
    int64_t run_ns;
    int64_t deadline_ns; /* 0: none                                */
    uint64_t gpu_milli;
    uint32_t gpus, nodes, cpu_milli, mem_mib;
    uint32_t name, user, entity, types; /* places in 'texts'; 0: none */
    uint32_t line;                      /* of the file, or UINT32_MAX and beyond */
    uint8_t class, fails;
};

struct records {
    struct trace_record *items;
    uint32_t count, room;
    uint32_t *order; /* NULL: as they are */
    char *texts;     /* one after the other, each with its NUL; [0] is empty */
    uint32_t texts_count, texts_room;
    struct map words;   /* texts that many jobs share */
    uint32_t last_name; /* place in 'texts', with its length */
    uint32_t last_bytes;
    bool names_mixed; /* not each name comes after the one before it */
    bool times_mixed; /* the same of submissions: they have to be sorted */
};

struct workload {
    struct workload_facts facts;
    char *path; /* for messages */
    void *self; /* of the format or the preset */

    const struct preset *preset; /* or NULL: a file */
    const struct format *format;
    struct source source;
    struct records records; /* of a file that is not in order */
    uint32_t next_record;
    int64_t zero_ns; /* what the file's clock shows at our time 0 */
    uint64_t limit;  /* of an endless generator; 0: none          */
};

/* One step a second. */
static double steps_of_run(int64_t run_ns)
{
    return (double)run_ns / 1e9;
}

/* --- jobs of a file that is not in order, held small until they are sorted -------- */

static void records_release(struct records *records)
{
    free(records->items);
    free(records->order);
    free(records->texts);
    map_release(&records->words);
    *records = (struct records){ 0 };
}

/* Like grow_array(), and what is new is not written to before it is used. */
static void *make_room(void *items, uint32_t *room, uint32_t want, size_t size)
{
    if (want <= *room)
        return items;
    *room = grow_room(*room, want);
    return memory_resize(items, *room, size);
}

/* A text of a row; NULL: none. */
struct row_text {
    const char *text;
    size_t bytes; /* without its NUL */
};

static struct row_text measure_text(const char *text)
{
    return (struct row_text){ text, text ? strlen(text) : 0 };
}

/* Offset of a copy; the caller has checked the limit. */
static uint32_t keep_text(struct records *records, struct row_text text)
{
    if (records->texts_count == 0)
        records->texts_count = 1; /* place 0 means none */
    records->texts = make_room(records->texts, &records->texts_room,
                               records->texts_count + (uint32_t)text.bytes + 1, 1);
    uint32_t place = records->texts_count;
    memcpy(records->texts + place, text.text, text.bytes + 1);
    records->texts_count += (uint32_t)text.bytes + 1;
    return place;
}

/*
 * The key of a word: the word itself if it is short, which most are; else its hash, which
 * another word may have.
 */
#define SHORT_BYTES 7
#define KEY_OF_HASH (UINT64_C(1) << 63)

static uint64_t word_key(struct row_text word)
{
    if (word.bytes > SHORT_BYTES)
        return hash_bytes(HASH_BYTES_START, word.text, word.bytes) | KEY_OF_HASH;
    uint64_t key = 0;
    for (size_t i = 0; i < word.bytes; i++)
        key = key << 8 | (unsigned char)word.text[i];
    return key;
}

/* The same for a text that is likely there already. */
static uint32_t keep_word(struct records *records, struct row_text word)
{
    if (!word.text)
        return 0;
    uint64_t key = word_key(word);
    uint32_t place = map_find(&records->words, key);
    if (place != MAP_NONE &&
        (!(key & KEY_OF_HASH) || strcmp(records->texts + place, word.text) == 0))
        return place;
    uint32_t added = keep_text(records, word);
    if (place == MAP_NONE)
        map_put(&records->words, key, added);
    return added;
}

/*
 * Names that stand in order, the shorter first, as numbers do, are all different.  Where they do
 * not, two of one name are looked for when all are there.
 */
static uint32_t keep_name(struct records *records, struct row_text name)
{
    if (!name.text)
        return 0;
    if (records->last_name > 0 && !records->names_mixed) {
        const char *last = records->texts + records->last_name;
        records->names_mixed = name.bytes < records->last_bytes ||
                               (name.bytes == records->last_bytes &&
                                memcmp(name.text, last, name.bytes) <= 0);
    }
    records->last_name = keep_text(records, name);
    records->last_bytes = (uint32_t)name.bytes;
    return records->last_name;
}

/* Whether two of their hashes are equal: then two names may be. */
static bool may_have_double(const struct records *records)
{
    double *hashes = memory_checked(malloc((2 * (size_t)records->count + 1) * 8));
    uint32_t count = 0;
    for (uint32_t i = 0; i < records->count; i++)
        if (records->items[i].name)
            hashes[count++] =
                (double)(hash_text(records->texts + records->items[i].name) >> 11);
    sort_numbers(hashes, hashes + records->count, count);
    bool found = false;
    for (uint32_t i = 1; i < count && !found; i++)
        found = hashes[i] == hashes[i - 1];
    free(hashes);
    return found;
}

/* The first job with the name of one before it, or NULL. */
static const struct trace_record *find_double(const struct records *records)
{
    if (!records->names_mixed || !may_have_double(records))
        return NULL;
    const struct trace_record *found = NULL;
    struct map names = { 0 };
    for (uint32_t i = 0; i < records->count && !found; i++) {
        const struct trace_record *record = &records->items[i];
        if (record->name == 0)
            continue;
        uint64_t key = hash_text(records->texts + record->name);
        uint32_t other = map_find(&names, key);
        if (other == MAP_NONE)
            map_put(&names, key, i);
        else if (strcmp(records->texts + records->items[other].name,
                        records->texts + record->name) == 0)
            found = record;
    }
    map_release(&names);
    return found;
}

/* Keep a copy of a row; -EFBIG at the ceiling. */
static int records_add(struct records *records, const struct trace_row *row,
                       uint64_t line, struct error *err)
{
    const struct job_spec *spec = &row->spec;
    struct row_text name = measure_text(spec->name), user = measure_text(spec->user),
                    entity = measure_text(spec->entity),
                    types = measure_text(spec->types);
    size_t bytes = name.bytes + user.bytes + entity.bytes + types.bytes + 4;
    if (records->count == RECORDS_MAX || records->texts_count + bytes >= TEXTS_MAX)
        return error_set(err, -EFBIG,
                         "more than %u jobs or 2 GiB of names in a file that "
                         "has to be sorted",
                         RECORDS_MAX);
    records->items = make_room(records->items, &records->room, records->count + 1,
                               sizeof *records->items);
    if (records->count > 0 &&
        spec->submit_ns < records->items[records->count - 1].submit_ns)
        records->times_mixed = true;
    records->items[records->count++] = (struct trace_record){
        .submit_ns = spec->submit_ns,
        .run_ns = row->run_ns,
        .deadline_ns = spec->deadline_ns,
        .gpu_milli = row->gpu_milli,
        .gpus = spec->gpus,
        .nodes = spec->nodes,
        .cpu_milli = spec->cpu_milli,
        .mem_mib = spec->mem_mib,
        .name = keep_name(records, name),
        .user = keep_word(records, user),
        .entity = keep_word(records, entity),
        .types = keep_word(records, types),
        .line = line < UINT32_MAX ? (uint32_t)line : UINT32_MAX,
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

/* Put them in order of submission; equal ones stay in the order of the file. */
static void records_sort(struct records *records)
{
    map_release(&records->words);
    if (!records->times_mixed)
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

/* The nth in that order; its texts live as long as the records. */
static const struct trace_record *records_get(const struct records *records, uint32_t n,
                                              struct job_spec *ret_spec)
{
    const struct trace_record *record =
        &records->items[records->order ? records->order[n] : n];
    const char *texts = records->texts;
    *ret_spec = (struct job_spec){
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
        .steps = steps_of_run(record->run_ns),
    };
    return record;
}

void source_skip(struct source *source, const char *reason)
{
    struct workload_facts *facts = source->facts;
    facts->skipped++;
    uint32_t i = 0;
    while (i < facts->reason_count && strcmp(facts->reasons[i].reason, reason) != 0)
        i++;
    if (i == sizeof facts->reasons / sizeof *facts->reasons)
        return;
    facts->reasons[i].reason = reason;
    facts->reasons[i].count++;
    facts->reason_count += i == facts->reason_count;
}

void trace_row_set_run(struct trace_row *row, int64_t run_ns)
{
    row->run_ns = run_ns;
    row->spec.steps = steps_of_run(run_ns);
}

void format_first_line(const char *bytes, size_t count, char *line, size_t size)
{
    size_t max = count < size - 1 ? count : size - 1;
    size_t n = 0; /* what is held need not end with a NUL */
    while (n < max && bytes[n] != '\0' && bytes[n] != '\r' && bytes[n] != '\n')
        n++;
    memcpy(line, bytes, n);
    line[n] = '\0';
}

bool format_has(const char *bytes, size_t count, char separator,
                const char *const *names)
{
    char line[4096];
    struct table_cell fields[TABLE_COLUMNS_MAX];
    format_first_line(bytes, count, line, sizeof line);
    uint32_t field_count = table_split(line, strlen(line), separator,
                                       /* quoted= */ true, fields, TABLE_COLUMNS_MAX);
    if (field_count > TABLE_COLUMNS_MAX)
        return false;
    for (; *names; names++) {
        uint32_t i = 0;
        while (i < field_count && strcmp(fields[i].text, *names) != 0)
            i++;
        if (i == field_count)
            return false;
    }
    return true;
}

static int find_format(const char *name, const struct format **ret_format,
                       struct error *err)
{
    const char *names[NAMES_MAX + 1] = { "auto" };
    for (uint32_t i = 0; format_list[i]; i++) {
        if (strcmp(format_list[i]->name, name) == 0) {
            *ret_format = format_list[i];
            return 0;
        }
        names[i + 1] = format_list[i]->name;
    }
    char hint[128];
    char all[160] = "";
    size_t used = 0;
    for (uint32_t i = 0; names[i] && used < sizeof all; i++) {
        int n =
            snprintf(all + used, sizeof all - used, "%s%s", i ? ", " : "", names[i]);
        used += n > 0 ? (size_t)n : 0;
    }
    return error_set(err, -EINVAL, "no format '%.40s'%s; want one of: %s", name,
                     suggest_names(hint, sizeof hint, name, names), all);
}

/* Recognise the format by the first bytes. */
static int recognise_format(struct workload *w, struct error *err)
{
    struct reader *reader = &w->source.reader;
    int r = reader_peek(reader, SNIFF_BYTES, err);
    if (r < 0)
        return r;
    size_t count = reader->end - reader->start;
    char *bytes = reader->bytes + reader->start;
    count = count < SNIFF_BYTES ? count : SNIFF_BYTES;
    if (memchr(bytes, '\0', count))
        return error_set(err, -EINVAL, "%s:1: NUL bytes, want text: the file is binary",
                         reader->name);
    char after = bytes[count];
    bytes[count] = '\0';
    for (uint32_t i = 0; format_list[i] && !w->format; i++)
        if (format_list[i]->sniff(bytes, count))
            w->format = format_list[i];
    bytes[count] = after;
    if (!w->format)
        return error_set(err, -EINVAL,
                         "%s:1: not a format that is known, and no header "
                         "that names arrival, duration and GPUs; --format overrides",
                         reader->name);
    return 0;
}

/* No two jobs may have one name; the line to blame is that of the second. */
static int check_names(struct workload *w, struct error *err)
{
    const struct trace_record *record =
        w->format->unique ? find_double(&w->records) : NULL;
    if (!record)
        return 0;
    const char *name = w->records.texts + record->name;
    w->source.reader.line = record->line;
    return reader_wrong(&w->source.reader, "job id", name, strlen(name),
                        "one that no job before has", err);
}

/* Read a file that is not in order. */
static int read_whole(struct workload *w, struct error *err)
{
    int r = 1;
    while (r > 0) {
        struct trace_row row = { 0 };
        r = w->format->next(w->self, &w->source, &row, err);
        if (r > 0 && records_add(&w->records, &row, w->source.reader.line, err) < 0)
            r = -EFBIG;
    }
    int names = check_names(w, err); /* in a line above that of another error */
    if (r < 0 || names < 0)
        return names < 0 ? names : r;
    records_sort(&w->records);
    w->facts.unsorted = true;
    w->facts.expected = w->records.count;
    return 0;
}

/* The file is open; find out what it is and read what comes before the jobs. */
static int open_format(struct workload *w, const char *format, struct error *err)
{
    int r = format && strcmp(format, "auto") != 0 ? find_format(format, &w->format, err)
                                                  : recognise_format(w, err);
    if (r < 0)
        return r;
    w->facts.format = w->format->name;
    w->facts.columns = w->format->columns;
    w->self =
        memory_checked(calloc(1, w->format->self_size ? w->format->self_size : 1));
    if (w->format->open)
        r = w->format->open(w->self, &w->source, err);
    if (r == 0 && !w->format->sorted)
        r = read_whole(w, err);
    return r;
}

static struct workload *workload_new(const char *path)
{
    struct workload *w = memory_checked(calloc(1, sizeof *w));
    w->path = memory_text(path);
    w->facts.gpu_time_known = true;
    w->source.facts = &w->facts;
    return w;
}

static int open_preset(struct workload *w, const struct preset *preset,
                       const char *settings, uint64_t seed, uint32_t gpus,
                       struct error *err)
{
    w->preset = preset;
    w->facts.format = preset->name;
    w->facts.columns = preset->columns;
    w->self = memory_checked(calloc(1, preset->self_size));
    param_defaults(preset->params, w->self);
    int r = param_parse(preset->params, w->self, preset->name, settings, err);
    if (r == 0)
        r = preset->open(w->self, seed, gpus, &w->facts, err);
    if (r == 0 && w->facts.enough > 0)
        w->limit = w->facts.expected = w->facts.enough;
    return r;
}

/*
 * A file that does not exist may be meant as a preset: with a misspelt name or setting, or
 * together with a format, which only a file can have.
 */
static int no_such_file(const char *text, const char *format, struct error *err)
{
    const char *names[NAMES_MAX + 1] = { NULL };
    for (uint32_t i = 0; preset_list[i] && i < NAMES_MAX; i++)
        names[i] = preset_list[i]->name;
    char word[64];
    snprintf(word, sizeof word, "%.*s", (int)strcspn(text, ":, ="), text);
    const struct preset *preset = preset_find(word);
    if (preset && format)
        return error_set(
            err, -ENOENT,
            "%.200s: %s is a preset, want a file with a format; 'berth gen' "
            "writes one",
            text, word);
    if (preset)
        return error_set(
            err, -ENOENT,
            "%.200s: no such file; a preset's settings follow a colon, as in "
            "%s:setting=value",
            text, word);
    if (format)
        return error_set(err, -ENOENT, "%.200s: no such file", text);
    char hint[128];
    return error_set(err, -ENOENT, "%.200s: no such file, and no preset of that name%s",
                     text, suggest_names(hint, sizeof hint, word, names));
}

int workload_open(struct workload **ret_workload, const char *text, const char *format,
                  uint64_t seed, uint32_t gpus, struct error *err)
{
    size_t name_bytes = strcspn(text, ":");
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)name_bytes, text);
    const struct preset *preset = format ? NULL : preset_find(name);

    struct workload *w = workload_new(text);
    int r;
    if (preset) {
        const char *settings = text[name_bytes] ? text + name_bytes + 1 : NULL;
        r = open_preset(w, preset, settings, seed, gpus, err);
    } else {
        r = reader_open(&w->source.reader, w->path, err);
        if (r == -ENOENT)
            r = no_such_file(text, format, err);
        if (r == 0)
            r = open_format(w, format, err);
    }
    if (r < 0) {
        workload_close(w);
        return r;
    }
    *ret_workload = w;
    return 0;
}

int workload_open_memory(struct workload **ret_workload, const char *name,
                         const void *bytes, size_t count, const char *format,
                         struct error *err)
{
    struct workload *w = workload_new(name);
    int r = reader_open_memory(&w->source.reader, w->path, bytes, count, err);
    if (r == 0)
        r = open_format(w, format, err);
    if (r < 0) {
        workload_close(w);
        return r;
    }
    *ret_workload = w;
    return 0;
}

/* What the facts need to know of a job besides its description. */
struct job_use {
    int64_t run_ns;     /* -1: not known                             */
    uint64_t gpu_milli; /* what it really used; 0: all of its GPUs   */
};

/* The next job of a file, in order of submission, by the file's own clock. */
static int next_of_file(struct workload *w, struct job_spec *ret_spec,
                        struct job_use *ret_use, struct error *err)
{
    if (w->format->sorted) {
        struct trace_row row = { 0 };
        int r = w->format->next(w->self, &w->source, &row, err);
        *ret_spec = row.spec;
        *ret_use = (struct job_use){ row.run_ns, row.gpu_milli };
        return r;
    }
    if (w->next_record == w->records.count)
        return 0;
    const struct trace_record *record =
        records_get(&w->records, w->next_record++, ret_spec);
    *ret_use = (struct job_use){ record->run_ns, record->gpu_milli };
    return 1;
}

static int next_of_preset(struct workload *w, struct job_spec *ret_spec,
                          struct job_use *ret_use, struct error *err)
{
    *ret_spec = (struct job_spec){ 0 };
    int r = w->preset->next(w->self, ret_spec, err);
    ret_use->run_ns = ret_spec->kind ? -1 : units_ns(ret_spec->steps);
    ret_use->gpu_milli = 0;
    return r;
}

/* Add a job to the facts. */
static void count_job(struct workload_facts *facts, const struct job_spec *spec,
                      const struct job_use *use)
{
    if (facts->job_count == 0)
        facts->first_submit_ns = spec->submit_ns;
    facts->last_submit_ns = spec->submit_ns;
    facts->job_count++;
    if (spec->gpus > facts->max_gpus)
        facts->max_gpus = spec->gpus;
    if (use->run_ns < 0)
        facts->gpu_time_known = false;
    else
        facts->gpu_milli_ns +=
            (__int128)use->run_ns *
            (use->gpu_milli ? use->gpu_milli : spec->gpus * UINT64_C(1000));
}

int workload_next(struct workload *w, struct job_spec *ret_spec, struct error *err)
{
    struct job_use use;
    if (w->limit > 0 && w->facts.job_count == w->limit)
        return 0;
    int r = w->preset ? next_of_preset(w, ret_spec, &use, err)
                      : next_of_file(w, ret_spec, &use, err);
    if (r <= 0)
        return r;
    if (w->facts.job_count > 0 && ret_spec->submit_ns < w->facts.last_submit_ns)
        return error_set(
            err, -EINVAL,
            "%s:%llu: submitted %.9g s before the line above it, want order", w->path,
            (unsigned long long)w->source.reader.line,
            (double)(w->facts.last_submit_ns - ret_spec->submit_ns) / 1e9);
    if (w->facts.job_count == 0 && w->format && !w->format->keeps_clock)
        w->zero_ns = ret_spec->submit_ns;
    count_job(&w->facts, ret_spec, &use);
    ret_spec->submit_ns -= w->zero_ns;
    if (ret_spec->deadline_ns)
        ret_spec->deadline_ns -= w->zero_ns;
    return 1;
}

void workload_go_on(struct workload *w)
{
    if (w->limit > 0)
        w->limit = w->facts.expected = 0;
}

const struct workload_facts *workload_facts(const struct workload *w)
{
    return &w->facts;
}

void workload_close(struct workload *w)
{
    if (!w)
        return;
    if (w->self && w->preset && w->preset->close)
        w->preset->close(w->self);
    if (w->self && w->format && w->format->close)
        w->format->close(w->self);
    records_release(&w->records);
    table_release(&w->source.table);
    reader_release(&w->source.reader);
    free(w->self);
    free(w->path);
    free(w);
}
