/*
 * csv.c - Berth's own format for jobs: reading it.
 *
 * An empty field means the same as a column that is not there.  Jobs stand in order of
 * submission, so the file streams however long it is.
 */
#include "workload/csv.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/map.h"
#include "base/number.h"
#include "base/suggest.h"
#include "base/units.h"
#include "workload/format.h"

#define MAGIC "#berth-jobs"
#define STEPS_MAX 1e18
#define WEIGHT_MAX 1e9
#define CPUS_MAX 1000000
#define MEM_GIB_MAX 1000000

const char *const csv_names[COLUMN_COUNT + 1] = {
    [COLUMN_ID] = "id",
    [COLUMN_NAME] = "name",
    [COLUMN_USER] = "user",
    [COLUMN_ENTITY] = "entity",
    [COLUMN_CLASS] = "class",
    [COLUMN_SUBMIT] = "submit_s",
    [COLUMN_GPUS] = "gpus",
    [COLUMN_GPUS_MIN] = "gpus_min",
    [COLUMN_GPUS_MAX] = "gpus_max",
    [COLUMN_NODES] = "nodes",
    [COLUMN_SPREAD] = "spread",
    [COLUMN_TYPES] = "types",
    [COLUMN_CPUS] = "cpus",
    [COLUMN_MEM] = "mem_gib",
    [COLUMN_WORK] = "work_s",
    [COLUMN_KIND] = "kind",
    [COLUMN_STEPS] = "steps",
    [COLUMN_GRACE] = "grace_s",
    [COLUMN_PAUSE] = "pause_s",
    [COLUMN_LOAD] = "load_s",
    [COLUMN_CKPT] = "ckpt_s",
    [COLUMN_WEIGHT] = "weight",
    [COLUMN_DEADLINE] = "deadline_s",
    [COLUMN_STEP] = "step_s",
    [COLUMN_FIXED] = "fixed_s",
    [COLUMN_BYTES] = "bytes_per_step",
    [COLUMN_SYNC] = "sync",
    [COLUMN_OVERLAP] = "overlap",
    [COLUMN_CURVE] = "curve",
    [COLUMN_FAILS] = "fails",
    [COLUMN_NODELIST] = "nodelist",
    [COLUMN_EXCLUDE] = "exclude",
};

struct csv {
    enum column columns[TABLE_COLUMNS_MAX]; /* by position */
    int64_t last_submit_ns;

    /* Ids seen: a run without gaps costs nothing, the others stand in a map. */
    uint64_t run_first, run_end;
    struct map ids;

    float points[LEARNING_POINTS_MAX]; /* of the curve of the last job */
};

static bool csv_sniff(const char *bytes, size_t count)
{
    return strncmp(bytes, MAGIC, strlen(MAGIC)) == 0;
}

static int read_version(struct source *source, struct error *err)
{
    char *line;
    size_t bytes;
    int r = reader_line(&source->reader, &line, &bytes, err);
    if (r < 0)
        return r;
    if (r == 0 || strncmp(line, MAGIC, strlen(MAGIC)) != 0)
        return error_set(err, -EINVAL, "%s:1: no version line, want \"" MAGIC " 1\"",
                         source->reader.name);
    const char *version = line + strlen(MAGIC);
    version += *version == ' ';
    if (strcmp(version, "1") != 0)
        return reader_wrong(&source->reader, "version", version, strlen(version), "1",
                            err);
    return 0;
}

static int unknown_column(struct source *source, const char *name, struct error *err)
{
    char hint[128];
    bool clean = table_clean(name, strlen(name));
    return error_set(err, -EINVAL, "%s:2: no column '%.40s' in Berth's format%s",
                     source->reader.name, clean ? name : "?",
                     clean ? suggest(hint, sizeof hint, name, csv_names) : "");
}

static int check_columns(struct source *source, uint32_t seen, struct error *err)
{
    const char *name = source->reader.name;
    if (!(seen & COLUMN_BIT(COLUMN_SUBMIT)))
        return error_set(err, -EINVAL, "%s:2: no column submit_s", name);
    if (!(seen & COLUMN_BIT(COLUMN_GPUS)))
        return error_set(err, -EINVAL, "%s:2: no column gpus", name);
    bool paced = seen & (COLUMN_BIT(COLUMN_KIND) | COLUMN_BIT(COLUMN_STEP));
    if (!(seen & COLUMN_BIT(COLUMN_WORK)) &&
        !(paced && seen & COLUMN_BIT(COLUMN_STEPS)))
        return error_set(err, -EINVAL,
                         "%s:2: no column work_s, nor steps with kind or step_s", name);
    return 0;
}

static int csv_open(void *self, struct source *source, struct error *err)
{
    struct csv *csv = self;
    struct table *table = &source->table;
    int r = read_version(source, err);
    if (r < 0)
        return r;
    table_init(table, &source->reader, ',', /* quoted= */ true);
    r = table_header(table, err);
    if (r < 0)
        return r;
    uint32_t seen = 0;
    for (uint32_t i = 0; i < table->name_count; i++) {
        uint32_t column = 0;
        while (csv_names[column] &&
               strcmp(csv_names[column], table->names[i].text) != 0)
            column++;
        if (column == COLUMN_COUNT)
            return unknown_column(source, table->names[i].text, err);
        if (seen & COLUMN_BIT(column))
            return error_set(err, -EINVAL, "%s:2: column %s stands there twice",
                             source->reader.name, csv_names[column]);
        seen |= COLUMN_BIT(column);
        csv->columns[i] = (enum column)column;
    }
    source->facts->columns = seen;
    return check_columns(source, seen, err);
}

/* Take note of an id; -EINVAL if a job before had it. */
static int note_id(struct csv *csv, const struct table *table, uint32_t at, uint64_t id,
                   struct error *err)
{
    if (id == 0)
        return table_wrong(table, at, "a whole number from 1", err);
    if (csv->run_end == 0)
        csv->run_first = csv->run_end = id;
    bool in_run = id >= csv->run_first && id < csv->run_end;
    if (in_run || (csv->ids.count > 0 && map_find(&csv->ids, id) != MAP_NONE))
        return table_wrong(table, at, "an id that no job before has", err);
    if (id == csv->run_end && id < UINT64_MAX)
        csv->run_end++;
    else
        map_put(&csv->ids, id, 1);
    return 0;
}

static int read_number(const struct table *table, uint32_t at, double min, double max,
                       double *ret_number, struct error *err)
{
    const struct table_cell *field = &table->fields[at];
    double number;
    if (!number_real_padded(field->text, field->bytes, &number))
        return table_wrong(table, at, "a number", err);
    if (!(number > min && number <= max)) {
        char want[64];
        snprintf(want, sizeof want, "more than %g and at most %g", min, max);
        return table_wrong(table, at, want, err);
    }
    *ret_number = number;
    return 0;
}

static int read_small(const struct table *table, uint32_t at, uint32_t max,
                      uint32_t *ret_count, struct error *err)
{
    uint64_t count;
    int r = table_count(table, at, max, &count, err);
    if (r == 0)
        *ret_count = (uint32_t)count;
    return r;
}

static int read_flag(const struct table *table, uint32_t at, bool *ret_flag,
                     struct error *err)
{
    const struct table_cell *field = &table->fields[at];
    if (field->bytes != 1 || (*field->text != '0' && *field->text != '1'))
        return table_wrong(table, at, "0 or 1", err);
    *ret_flag = *field->text == '1';
    return 0;
}

static int read_class(const struct table *table, uint32_t at, enum job_class *ret_class,
                      struct error *err)
{
    const struct table_cell *field = &table->fields[at];
    if (field->bytes != 2 || field->text[1] != 'e' ||
        (*field->text != 't' && *field->text != 'b'))
        return table_wrong(table, at, "te or be", err);
    *ret_class = *field->text == 't' ? CLASS_TE : CLASS_BE;
    return 0;
}

static int read_sync(const struct table *table, uint32_t at, enum sync *ret_sync,
                     struct error *err)
{
    const struct table_cell *field = &table->fields[at];
    bool ring = field->bytes == 4 && memcmp(field->text, "ring", 4) == 0;
    if (!ring && (field->bytes != 2 || memcmp(field->text, "ps", 2) != 0))
        return table_wrong(table, at, "ring or ps", err);
    *ret_sync = ring ? SYNC_RING : SYNC_SERVER;
    return 0;
}

static int read_overlap(const struct table *table, uint32_t at, double *ret_overlap,
                        struct error *err)
{
    const struct table_cell *field = &table->fields[at];
    double number;
    if (!number_real_padded(field->text, field->bytes, &number) ||
        !(number >= 0 && number <= 1))
        return table_wrong(table, at, "a number from 0 to 1", err);
    *ret_overlap = number;
    return 0;
}

static int read_curve(const struct table *table, uint32_t at,
                      struct learning *ret_curve, float points[LEARNING_POINTS_MAX],
                      struct error *err)
{
    const char *text;
    int r = table_text(table, at, &text, err);
    if (r == 0 && learning_parse_points(ret_curve, text, points, NULL) < 0)
        return table_wrong(
            table, at, "exp:mu=…, inv:a=…,b=…, acc:tau=… or points:…, see the guide",
            err);
    return r;
}

/* A decimal with so many parts to the unit: thousandths of a CPU, MiB of a GiB. */
static int read_parts(const struct table *table, uint32_t at, int64_t parts,
                      int64_t max, uint32_t *ret_value, struct error *err)
{
    const struct table_cell *field = &table->fields[at];
    int64_t value;
    uint64_t whole;
    if (number_count(field->text, field->bytes, &whole) && whole <= (uint64_t)max) {
        *ret_value = (uint32_t)whole * (uint32_t)parts;
        return 0;
    }
    if (!number_scaled(field->text, field->bytes, parts, &value) || value < 0 ||
        value > parts * max) {
        char want[64];
        snprintf(want, sizeof want, "a number from 0 to %lld", (long long)max);
        return table_wrong(table, at, want, err);
    }
    *ret_value = (uint32_t)value;
    return 0;
}

static int read_submit(struct csv *csv, const struct table *table, uint32_t at,
                       int64_t *ret_ns, struct error *err)
{
    int r = table_time(table, at, NS_PER_S, ret_ns, err);
    if (r < 0)
        return r;
    if (*ret_ns < csv->last_submit_ns)
        return table_wrong(table, at, "no earlier than the line before", err);
    csv->last_submit_ns = *ret_ns;
    return 0;
}

static int read_field(struct csv *csv, const struct table *table, uint32_t at,
                      struct job_spec *spec, double *work, struct error *err)
{
    switch (csv->columns[at]) {
    case COLUMN_ID: {
        int r = table_count(table, at, UINT64_MAX, &spec->id, err);
        return r < 0 ? r : note_id(csv, table, at, spec->id, err);
    }
    case COLUMN_NAME:
        return table_text(table, at, &spec->name, err);
    case COLUMN_USER:
        return table_text(table, at, &spec->user, err);
    case COLUMN_ENTITY:
        return table_text(table, at, &spec->entity, err);
    case COLUMN_CLASS:
        return read_class(table, at, &spec->class, err);
    case COLUMN_SUBMIT:
        return read_submit(csv, table, at, &spec->submit_ns, err);
    case COLUMN_GPUS:
        return read_small(table, at, FORMAT_GPUS_MAX, &spec->gpus, err);
    case COLUMN_GPUS_MIN:
        return read_small(table, at, FORMAT_GPUS_MAX, &spec->gpus_min, err);
    case COLUMN_GPUS_MAX:
        return read_small(table, at, FORMAT_GPUS_MAX, &spec->gpus_max, err);
    case COLUMN_NODES:
        return read_small(table, at, FORMAT_GPUS_MAX, &spec->nodes, err);
    case COLUMN_SPREAD:
        return read_flag(table, at, &spec->spread, err);
    case COLUMN_TYPES:
        return table_text(table, at, &spec->types, err);
    case COLUMN_CPUS:
        return read_parts(table, at, 1000, CPUS_MAX, &spec->cpu_milli, err);
    case COLUMN_MEM:
        return read_parts(table, at, 1024, MEM_GIB_MAX, &spec->mem_mib, err);
    case COLUMN_WORK:
        return read_number(table, at, 0, (double)TIME_MAX_NS / 1e9, work, err);
    case COLUMN_KIND:
        return table_text(table, at, &spec->kind, err);
    case COLUMN_STEPS:
        return read_number(table, at, 0, STEPS_MAX, &spec->steps, err);
    case COLUMN_GRACE:
        return table_time(table, at, NS_PER_S, &spec->grace_ns, err);
    case COLUMN_PAUSE:
        return table_time(table, at, NS_PER_S, &spec->pause_ns, err);
    case COLUMN_LOAD:
        return table_time(table, at, NS_PER_S, &spec->load_ns, err);
    case COLUMN_CKPT:
        return table_time(table, at, NS_PER_S, &spec->ckpt_ns, err);
    case COLUMN_WEIGHT:
        return read_number(table, at, 0, WEIGHT_MAX, &spec->weight, err);
    case COLUMN_DEADLINE:
        return table_time(table, at, NS_PER_S, &spec->deadline_ns, err);
    case COLUMN_STEP:
        return read_number(table, at, 0, (double)TIME_MAX_NS / 1e9, &spec->step_s, err);
    case COLUMN_FIXED:
        return read_number(table, at, 0, (double)TIME_MAX_NS / 1e9, &spec->fixed_s,
                           err);
    case COLUMN_BYTES:
        return table_count(table, at, UINT64_C(1) << 60, &spec->bytes_per_step, err);
    case COLUMN_SYNC:
        return read_sync(table, at, &spec->sync, err);
    case COLUMN_OVERLAP:
        return read_overlap(table, at, &spec->overlap, err);
    case COLUMN_CURVE:
        return read_curve(table, at, &spec->curve, csv->points, err);
    case COLUMN_FAILS:
        return read_flag(table, at, &spec->fails, err);
    case COLUMN_NODELIST:
        return table_text(table, at, &spec->nodelist, err);
    case COLUMN_EXCLUDE:
        return table_text(table, at, &spec->exclude, err);
    case COLUMN_COUNT:
        break;
    }
    return 0;
}

/* What no single field can say; 'given' are the columns that are not empty. */
static int check_row(const struct table *table, struct row *row, uint32_t given,
                     double work, struct error *err)
{
    const struct job_spec *spec = &row->spec;
    const struct reader *reader = table->reader;
    if (!(given & COLUMN_BIT(COLUMN_SUBMIT)))
        return reader_wrong(reader, "submit_s", "", 0, "a number of seconds", err);
    if (!(given & COLUMN_BIT(COLUMN_GPUS)))
        return reader_wrong(reader, "gpus", "", 0, "a whole number", err);
    bool paced = spec->kind || spec->step_s > 0;
    if (paced && !(given & COLUMN_BIT(COLUMN_STEPS)))
        return reader_wrong(reader, "steps", "", 0,
                            spec->kind ? "a number, as there is a kind"
                                       : "a number, as there is step_s",
                            err);
    if (!paced && !(given & COLUMN_BIT(COLUMN_WORK)))
        return reader_wrong(reader, "work_s", "", 0, "a number, as there is no kind",
                            err);
    if (spec->kind && spec->step_s > 0)
        return reader_wrong(reader, "step_s", "", 0, "none, as there is a kind", err);
    if (spec->fixed_s > 0 && spec->fixed_s > spec->step_s)
        return reader_wrong(reader, "fixed_s", "", 0, "at most step_s", err);
    bool elastic = given & (COLUMN_BIT(COLUMN_GPUS_MIN) | COLUMN_BIT(COLUMN_GPUS_MAX));
    if (elastic && (spec->gpus_min > spec->gpus || spec->gpus_max < spec->gpus) &&
        (spec->gpus_min || spec->gpus_max))
        return error_set(err, -EINVAL,
                         "%s:%llu: gpus is %u, want it from gpus_min %u to gpus_max %u",
                         reader->name, (unsigned long long)reader->line, spec->gpus,
                         spec->gpus_min, spec->gpus_max);
    if (!paced) {
        row->spec.steps = work;
        row->run_ns = (int64_t)(work * 1e9 + 0.5);
    } else if (!spec->kind) {
        double run_ns = spec->steps * spec->step_s * 1e9;
        if (run_ns > (double)TIME_MAX_NS)
            return reader_wrong(reader, "steps", "", 0, "a run of at most 100 years",
                                err);
        row->run_ns = (int64_t)(run_ns + 0.5);
    }
    return 0;
}

static int csv_next(void *self, struct source *source, struct row *row,
                    struct error *err)
{
    struct csv *csv = self;
    const struct table *table = &source->table;
    int r = table_row(&source->table, err);
    if (r <= 0)
        return r;
    if (source->reader.cut)
        return error_set(err, -EINVAL,
                         "%s:%llu: the last line has no newline, want the whole file",
                         source->reader.name, (unsigned long long)source->reader.line);
    row->run_ns = -1;
    double work = 0;
    uint32_t given = 0;
    for (uint32_t i = 0; i < table->field_count; i++) {
        if (table->fields[i].bytes == 0)
            continue;
        given |= COLUMN_BIT(csv->columns[i]);
        r = read_field(csv, table, i, &row->spec, &work, err);
        if (r < 0)
            return r;
    }
    r = check_row(table, row, given, work, err);
    return r < 0 ? r : 1;
}

static void csv_close(void *self)
{
    struct csv *csv = self;
    map_release(&csv->ids);
}

const struct format format_berth = {
    .name = "berth",
    .brief = "Berth's own CSV",
    .sorted = true,
    .keeps_clock = true,
    .self_size = sizeof(struct csv),
    .sniff = csv_sniff,
    .open = csv_open,
    .next = csv_next,
    .close = csv_close,
};
