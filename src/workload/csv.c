/*
 * csv.c - Berth's own format for jobs, by a table of fields.
 *
 * An empty field means the same as a column that is not there.  Jobs stand in order of
 * submission, so the file streams however long it is.  Which columns are written is settled
 * before the first job, by what the source of the jobs can say (struct format, struct preset).
 */
#include "workload/csv.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/field.h"
#include "base/map.h"
#include "base/number.h"
#include "base/suggest.h"
#include "base/units.h"
#include "workload/format.h"
#include "workload/workload.h"

#define MAGIC "#berth-jobs"
#define STEPS_MAX 1e18
#define WEIGHT_MAX 1e9
#define CPUS_MAX 1000000
#define MEM_GIB_MAX 1000000
#define COUNT_MAX 1000000000

#define SECONDS_MAX ((double)TIME_MAX_NS / 1e9)
#define AT(member) offsetof(struct job_spec, member)

static const struct field fields[COLUMN_COUNT] = {
    [COLUMN_ID] = { "id", FIELD_ID, AT(id) },
    [COLUMN_NAME] = { "name", FIELD_WORD, AT(name) },
    [COLUMN_USER] = { "user", FIELD_WORD, AT(user) },
    [COLUMN_ENTITY] = { "entity", FIELD_WORD, AT(entity) },
    [COLUMN_CLASS] = { "class", FIELD_CHOICE, AT(class), .choices = job_classes },
    [COLUMN_SUBMIT] = { "submit_s", FIELD_TIME, AT(submit_ns) },
    [COLUMN_GPUS] = { "gpus", FIELD_COUNT, AT(gpus), .max = FORMAT_GPUS_MAX },
    [COLUMN_GPUS_MIN] = { "gpus_min", FIELD_COUNT, AT(gpus_min),
                          .max = FORMAT_GPUS_MAX },
    [COLUMN_GPUS_MAX] = { "gpus_max", FIELD_COUNT, AT(gpus_max),
                          .max = FORMAT_GPUS_MAX },
    [COLUMN_NODES] = { "nodes", FIELD_COUNT, AT(nodes), .max = FORMAT_GPUS_MAX },
    [COLUMN_SPREAD] = { "spread", FIELD_FLAG, AT(spread) },
    [COLUMN_TYPES] = { "types", FIELD_WORD, AT(types) },
    [COLUMN_CPUS] = { "cpus", FIELD_CPUS, AT(cpu_milli), .max = CPUS_MAX },
    [COLUMN_MEM] = { "mem_gib", FIELD_MEMORY, AT(mem_mib), .max = MEM_GIB_MAX },
    [COLUMN_WORK] = { "work_s", FIELD_OTHER, AT(steps), .max = SECONDS_MAX },
    [COLUMN_KIND] = { "kind", FIELD_WORD, AT(kind) },
    [COLUMN_STEPS] = { "steps", FIELD_NUMBER, AT(steps), .max = STEPS_MAX },
    [COLUMN_GRACE] = { "grace_s", FIELD_TIME, AT(grace_ns) },
    [COLUMN_PAUSE] = { "pause_s", FIELD_TIME, AT(pause_ns) },
    [COLUMN_LOAD] = { "load_s", FIELD_TIME, AT(load_ns) },
    [COLUMN_CKPT] = { "ckpt_s", FIELD_TIME, AT(ckpt_ns) },
    [COLUMN_WEIGHT] = { "weight", FIELD_NUMBER, AT(weight), .max = WEIGHT_MAX },
    [COLUMN_DEADLINE] = { "deadline_s", FIELD_TIME, AT(deadline_ns) },
    [COLUMN_STEP] = { "step_s", FIELD_NUMBER, AT(step_s), .max = SECONDS_MAX },
    [COLUMN_FIXED] = { "fixed_s", FIELD_NUMBER, AT(fixed_s), .max = SECONDS_MAX },
    [COLUMN_BYTES] = { "bytes_per_step", FIELD_ID, AT(bytes_per_step), .max = 0x1p60 },
    [COLUMN_SYNC] = { "sync", FIELD_CHOICE, AT(sync), .choices = job_syncs },
    [COLUMN_OVERLAP] = { "overlap", FIELD_OTHER, AT(overlap) },
    [COLUMN_CURVE] = { "curve", FIELD_OTHER, AT(curve) },
    [COLUMN_FAILS] = { "fails", FIELD_FLAG, AT(fails) },
    [COLUMN_NODELIST] = { "nodelist", FIELD_WORD, AT(nodelist) },
    [COLUMN_EXCLUDE] = { "exclude", FIELD_WORD, AT(exclude) },
    [COLUMN_DECLARED] = { "declared", FIELD_OTHER, AT(undeclared) },
    [COLUMN_SHARED] = { "shared", FIELD_FLAG, AT(shares) },
    [COLUMN_DECLARED_WORK] = { "declared_work", FIELD_NUMBER, AT(steps_declared),
                               .max = STEPS_MAX },
    [COLUMN_ELIGIBLE] = { "eligible_s", FIELD_TIME, AT(eligible_ns) },
    [COLUMN_CANCEL] = { "cancel_s", FIELD_TIME, AT(cancel_ns) },
    [COLUMN_AFTER] = { "after", FIELD_WORD, AT(after) },
    [COLUMN_KEEPS] = { "keeps", FIELD_OTHER, AT(keeps_nothing) },
    [COLUMN_SAVES] = { "saves", FIELD_OTHER, AT(loses_work) },
    [COLUMN_DECLARED_PAUSE] = { "declared_pause_s", FIELD_TIME, AT(pause_told_ns) },
    [COLUMN_DECLARED_LOAD] = { "declared_load_s", FIELD_TIME, AT(load_told_ns) },
    [COLUMN_START] = { "start_s", FIELD_TIME, AT(past.start_ns) },
    [COLUMN_END] = { "end_s", FIELD_TIME, AT(past.end_ns) },
    [COLUMN_STATE] = { "state", FIELD_CHOICE, AT(past.end), .choices = job_ends },
    [COLUMN_CANCELLED_BY] = { "cancelled_by", FIELD_CHOICE, AT(past.cancelled_by),
                              .choices = job_cancellers },
    [COLUMN_ATTEMPTS] = { "attempts", FIELD_COUNT, AT(past.attempts),
                          .max = COUNT_MAX },
    [COLUMN_PREEMPTIONS] = { "preemptions", FIELD_COUNT, AT(past.preemptions),
                             .max = COUNT_MAX },
    [COLUMN_LIMIT] = { "limit_s", FIELD_TIME, AT(past.limit_ns) },
    [COLUMN_WAITED] = { "waited_s", FIELD_TIME, AT(past.waited_ns) },
    [COLUMN_SAME_AS] = { "same_as", FIELD_ID, AT(past.same_as) },
    [COLUMN_REDONE] = { "redone_s", FIELD_TIME, AT(past.redone_ns) },
};

/* Written even where they are 0; the others are empty then. */
#define COLUMNS_WITH_ZERO \
    (COLUMN_BIT(COLUMN_SUBMIT) | COLUMN_BIT(COLUMN_GPUS) | COLUMN_BIT(COLUMN_GRACE) | \
     COLUMN_BIT(COLUMN_PAUSE) | COLUMN_BIT(COLUMN_LOAD) | COLUMN_BIT(COLUMN_CKPT) | \
     COLUMN_BIT(COLUMN_ATTEMPTS) | COLUMN_BIT(COLUMN_PREEMPTIONS) | \
     COLUMN_BIT(COLUMN_DECLARED_PAUSE) | COLUMN_BIT(COLUMN_DECLARED_LOAD))

/* --- reading ----------------------------------------------------------------------- */

struct csv {
    enum csv_column columns[TABLE_COLUMNS_MAX]; /* by position */
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
    const char *names[COLUMN_COUNT + 1] = { NULL };
    for (uint32_t i = 0; i < COLUMN_COUNT; i++)
        names[i] = fields[i].name;
    bool clean = table_clean(name, strlen(name));
    return error_set(err, -EINVAL, "%s:2: no column '%.40s' in Berth's format%s",
                     source->reader.name, clean ? name : "?",
                     clean ? suggest_names(hint, sizeof hint, name, names) : "");
}

static int check_columns(struct source *source, uint64_t seen, struct error *err)
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
    uint64_t seen = 0;
    for (uint32_t i = 0; i < table->name_count; i++) {
        uint32_t column = 0;
        while (column < COLUMN_COUNT &&
               strcmp(fields[column].name, table->names[i].text) != 0)
            column++;
        if (column == COLUMN_COUNT)
            return unknown_column(source, table->names[i].text, err);
        if (seen & COLUMN_BIT(column))
            return error_set(err, -EINVAL, "%s:2: column %s stands there twice",
                             source->reader.name, fields[column].name);
        seen |= COLUMN_BIT(column);
        csv->columns[i] = (enum csv_column)column;
    }
    source->facts->columns = seen;
    return check_columns(source, seen, err);
}

/* Add an id to those seen; -EINVAL if a job before had it. */
static int add_id(struct csv *csv, const struct table *table, uint32_t at, uint64_t id,
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

/* More than 0. */
static int read_number(const struct table *table, uint32_t at, double max,
                       double *ret_number, struct error *err)
{
    const struct table_cell *cell = &table->fields[at];
    double number;
    if (!number_real_padded(cell->text, cell->bytes, &number))
        return table_wrong(table, at, "a number", err);
    if (!(number > 0 && number <= max)) {
        char want[64];
        snprintf(want, sizeof want, "more than 0 and at most %g", max);
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

/* The column says what is declared, kept or saved, the description what is not: 1 is the
 * default. */
static int read_negation(const struct table *table, uint32_t at, bool *ret_not,
                         struct error *err)
{
    bool is_so = true;
    int r = read_flag(table, at, &is_so, err);
    if (r == 0)
        *ret_not = !is_so;
    return r;
}

static int read_choice(const struct table *table, uint32_t at,
                       const struct field *field, struct job_spec *spec,
                       struct error *err)
{
    char want[64];
    return field_read(field, spec, table->fields[at].text, "", NULL, NULL) == 0
               ? 0
               : table_wrong(table, at, field_describe(field, want, sizeof want), err);
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

static int check_order(struct csv *csv, const struct table *table, uint32_t at,
                       int64_t submit_ns, struct error *err)
{
    if (submit_ns < csv->last_submit_ns)
        return table_wrong(table, at, "no earlier than the line before", err);
    csv->last_submit_ns = submit_ns;
    return 0;
}

static int read_other(struct csv *csv, const struct table *table, uint32_t at,
                      struct job_spec *spec, double *work, struct error *err)
{
    switch (csv->columns[at]) {
    case COLUMN_WORK:
        return read_number(table, at, SECONDS_MAX, work, err);
    case COLUMN_OVERLAP:
        return read_overlap(table, at, &spec->overlap, err);
    case COLUMN_DECLARED:
    case COLUMN_KEEPS:
    case COLUMN_SAVES:
        return read_negation(
            table, at, (bool *)((char *)spec + fields[csv->columns[at]].offset), err);
    default:
        return read_curve(table, at, &spec->curve, csv->points, err);
    }
}

static int read_field(struct csv *csv, const struct table *table, uint32_t at,
                      struct job_spec *spec, double *work, struct error *err)
{
    enum csv_column column = csv->columns[at];
    const struct field *field = &fields[column];
    void *member = (char *)spec + field->offset;
    int r;
    switch (field->type) {
    case FIELD_WORD:
        return table_text(table, at, member, err);
    case FIELD_TIME:
        r = table_time(table, at, NS_PER_S, member, err);
        return r < 0 || column != COLUMN_SUBMIT
                   ? r
                   : check_order(csv, table, at, spec->submit_ns, err);
    case FIELD_ID:
        r = table_count(table, at, field->max > 0 ? (uint64_t)field->max : UINT64_MAX,
                        member, err);
        return r < 0 || column != COLUMN_ID ? r : add_id(csv, table, at, spec->id, err);
    case FIELD_COUNT:
        return read_small(table, at, (uint32_t)field->max, member, err);
    case FIELD_FLAG:
        return read_flag(table, at, member, err);
    case FIELD_CHOICE:
        return read_choice(table, at, field, spec, err);
    case FIELD_CPUS:
        return read_parts(table, at, 1000, (int64_t)field->max, member, err);
    case FIELD_MEMORY:
        return read_parts(table, at, 1024, (int64_t)field->max, member, err);
    case FIELD_NUMBER:
        return read_number(table, at, field->max, member, err);
    default:
        return read_other(csv, table, at, spec, work, err);
    }
}

/* A time that is given is not before the job's submission. */
static int check_not_before(const struct reader *reader, const struct job_spec *spec,
                            enum csv_column column, struct error *err)
{
    int64_t at_ns = field_get_whole(&fields[column], spec);
    if (at_ns == 0 || at_ns >= spec->submit_ns)
        return 0;
    return error_set(
        err, -EINVAL, "%s:%llu: %s is %.9g, want no time before submit_s, %.9g",
        reader->name, (unsigned long long)reader->line, fields[column].name,
        (double)at_ns * 1e-9, (double)spec->submit_ns * 1e-9);
}

/* "12|15": numbers of jobs. */
static int check_after(const struct reader *reader, const char *after,
                       struct error *err)
{
    static const char digits[] = "0123456789";
    const char *at = after;
    for (; after && *at; at += *at == '|') {
        size_t count = strspn(at, digits);
        at += count;
        if (count == 0 || count > 19 || (*at && (*at != '|' || !at[1])))
            return reader_wrong(reader, "after", after, strlen(after),
                                "numbers of jobs such as 12|15", err);
    }
    return 0;
}

/* What is not told of pause and load is told as it is. */
static void complete_told(struct job_spec *spec, uint64_t given)
{
    bool pause = given & COLUMN_BIT(COLUMN_DECLARED_PAUSE);
    bool load = given & COLUMN_BIT(COLUMN_DECLARED_LOAD);
    spec->costs_told = pause || load;
    if (spec->costs_told && !pause)
        spec->pause_told_ns = spec->pause_ns;
    if (spec->costs_told && !load)
        spec->load_told_ns = spec->load_ns;
}

/* Check rules about several fields; 'given' are the columns that are not empty. */
static int check_row(const struct table *table, struct trace_row *row, uint64_t given,
                     double work, struct error *err)
{
    const struct job_spec *spec = &row->spec;
    const struct reader *reader = table->reader;
    if (!(given & COLUMN_BIT(COLUMN_SUBMIT)))
        return reader_wrong(reader, "submit_s", "", 0, "a number of seconds", err);
    if (!(given & COLUMN_BIT(COLUMN_GPUS)))
        return reader_wrong(reader, "gpus", "", 0, "a whole number", err);
    bool paced = spec->kind || spec->step_s > 0;
    int r;
    if (paced && !(given & COLUMN_BIT(COLUMN_STEPS)))
        return reader_wrong(reader, "steps", "", 0,
                            spec->kind ? "a number, as there is a kind"
                                       : "a number, as there is step_s",
                            err);
    if (!paced && !(given & COLUMN_BIT(COLUMN_WORK)))
        return reader_wrong(reader, "work_s", "", 0, "a number, as there is no kind",
                            err);
    if (spec->fixed_s > 0 && spec->fixed_s > spec->step_s)
        return reader_wrong(reader, "fixed_s", "", 0, "at most step_s", err);
    bool elastic = given & (COLUMN_BIT(COLUMN_GPUS_MIN) | COLUMN_BIT(COLUMN_GPUS_MAX));
    if (elastic && (spec->gpus_min > spec->gpus || spec->gpus_max < spec->gpus) &&
        (spec->gpus_min || spec->gpus_max))
        return error_set(err, -EINVAL,
                         "%s:%llu: gpus is %u, want it from gpus_min %u to gpus_max %u",
                         reader->name, (unsigned long long)reader->line, spec->gpus,
                         spec->gpus_min, spec->gpus_max);
    r = check_not_before(reader, spec, COLUMN_ELIGIBLE, err);
    if (r == 0)
        r = check_not_before(reader, spec, COLUMN_CANCEL, err);
    if (r == 0)
        r = check_after(reader, spec->after, err);
    if (r < 0)
        return r;
    complete_told(&row->spec, given);
    if (!paced) {
        row->spec.steps = work;
        row->run_ns = (int64_t)(work * 1e9 + 0.5);
    } else if (spec->step_s > 0) {
        double run_ns = spec->steps * spec->step_s * 1e9;
        if (run_ns > (double)TIME_MAX_NS)
            return reader_wrong(reader, "steps", "", 0, "a run of at most 100 years",
                                err);
        row->run_ns = (int64_t)(run_ns + 0.5);
    }
    return 0;
}

static int csv_next(void *self, struct source *source, struct trace_row *row,
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
    uint64_t given = 0;
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

/* --- writing ----------------------------------------------------------------------- */

/* Nanoseconds as seconds, trailing zeros cut. */
static void put_time(FILE *file, int64_t ns)
{
    char text[NUMBER_TEXT_BYTES];
    int count = snprintf(text, sizeof text, "%" PRId64, ns / NS_PER_S);
    int64_t rest = ns % NS_PER_S;
    if (rest) {
        count +=
            snprintf(text + count, sizeof text - (size_t)count, ".%09" PRId64, rest);
        while (text[count - 1] == '0')
            text[--count] = '\0';
    }
    fputs(text, file);
}

static void put_real(FILE *file, double number)
{
    char text[NUMBER_TEXT_BYTES];
    number_shortest(text, number, 15);
    fputs(text, file);
}

/* In quotes where it has to be. */
static void put_text(FILE *file, const char *text)
{
    if (!text)
        return;
    size_t bytes = strlen(text);
    bool blanks = bytes > 0 && (*text == ' ' || text[bytes - 1] == ' ');
    if (!blanks && !strpbrk(text, ",\"")) {
        fputs(text, file);
        return;
    }
    fputc('"', file);
    for (; *text; text++) {
        if (*text == '"')
            fputc('"', file);
        fputc(*text, file);
    }
    fputc('"', file);
}

static void put_other(FILE *file, enum csv_column column, const struct job_spec *job)
{
    char text[LEARNING_TEXT_BYTES];
    bool paced = job->kind || job->step_s > 0;
    if (column == COLUMN_WORK && !paced)
        put_real(file, job->steps);
    if (column == COLUMN_OVERLAP && job->overlap > 0)
        put_real(file, job->overlap);
    if (column == COLUMN_DECLARED || column == COLUMN_KEEPS || column == COLUMN_SAVES)
        fputc(*(const bool *)((const char *)job + fields[column].offset) ? '0' : '1',
              file);
    if (column == COLUMN_CURVE && job->curve.family != LEARNING_NONE)
        put_text(file, learning_text(&job->curve, text));
}

/* Whether the field is left empty, as its value follows from the others or is none. */
static bool is_left_out(enum csv_column column, const struct job_spec *job)
{
    const struct field *field = &fields[column];
    if (column == COLUMN_STEPS)
        return !job->kind && !(job->step_s > 0);
    if (column == COLUMN_SYNC)
        return job->bytes_per_step == 0;
    if (column == COLUMN_STATE || column == COLUMN_CANCELLED_BY)
        return field_get_whole(field, job) == 0;
    if (column == COLUMN_ATTEMPTS || column == COLUMN_PREEMPTIONS)
        return job->past.end == ENDED_UNKNOWN;
    if (column == COLUMN_DECLARED_PAUSE || column == COLUMN_DECLARED_LOAD)
        return !job->costs_told;
    if (field->type == FIELD_NUMBER)
        return !(*(const double *)((const char *)job + field->offset) > 0);
    return field_is_whole(field) && field->type != FIELD_CHOICE &&
           field->type != FIELD_FLAG && !(COLUMN_BIT(column) & COLUMNS_WITH_ZERO) &&
           field_get_whole(field, job) == 0;
}

static void put_field(FILE *file, enum csv_column column, const struct job_spec *job)
{
    const struct field *field = &fields[column];
    const void *member = (const char *)job + field->offset;
    if (is_left_out(column, job))
        return;
    switch (field->type) {
    case FIELD_WORD:
        put_text(file, *(const char *const *)member);
        break;
    case FIELD_TIME:
        put_time(file, *(const int64_t *)member);
        break;
    case FIELD_CHOICE:
        fputs(field->choices[field_get_whole(field, job)], file);
        break;
    case FIELD_CPUS:
        fprintf(file, "%.10g", *(const uint32_t *)member / 1000.0);
        break;
    case FIELD_MEMORY:
        fprintf(file, "%.17g", *(const uint32_t *)member / 1024.0);
        break;
    case FIELD_NUMBER:
        put_real(file, *(const double *)member);
        break;
    case FIELD_OTHER:
        put_other(file, column, job);
        break;
    default:
        fprintf(file, "%" PRIu64, (uint64_t)field_get_whole(field, job));
        break;
    }
}

static void put_line(FILE *file, uint64_t columns, const struct job_spec *job)
{
    bool first = true;
    for (uint32_t c = 0; c < COLUMN_COUNT; c++) {
        if (!(columns & COLUMN_BIT(c)))
            continue;
        if (!first)
            fputc(',', file);
        first = false;
        if (job)
            put_field(file, (enum csv_column)c, job);
        else
            fputs(fields[c].name, file);
    }
    fputc('\n', file);
}

void csv_write_header(FILE *file, uint64_t columns)
{
    fputs("#berth-jobs 1\n", file);
    put_line(file, columns, NULL);
}

void csv_write_job(FILE *file, uint64_t columns, const struct job_spec *job)
{
    put_line(file, columns, job);
}

int workload_write(struct workload *workload, FILE *file, struct error *err)
{
    uint64_t columns = workload_facts(workload)->columns;
    csv_write_header(file, columns);
    struct job_spec job;
    int r;
    while ((r = workload_next(workload, &job, err)) > 0)
        put_line(file, columns, &job);
    if (r == 0 && ferror(file))
        r = error_set(err, -EIO, "cannot write: %s", strerror(errno));
    return r;
}
