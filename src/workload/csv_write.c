/*
 * csv_write.c - Berth's own format for jobs: writing it.
 *
 * Which columns there are is settled before the first job, by what the source of the
 * jobs can say (struct format, struct preset), so that nothing is read twice.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/number.h"
#include "base/units.h"
#include "workload/csv.h"
#include "workload/workload.h"

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

static void put_count(FILE *file, uint64_t count)
{
    if (count)
        fprintf(file, "%" PRIu64, count);
}

static void put_field(FILE *file, enum column column, const struct job_spec *job)
{
    switch (column) {
    case COLUMN_ID:
        put_count(file, job->id);
        break;
    case COLUMN_NAME:
        put_text(file, job->name);
        break;
    case COLUMN_USER:
        put_text(file, job->user);
        break;
    case COLUMN_ENTITY:
        put_text(file, job->entity);
        break;
    case COLUMN_CLASS:
        fputs(job->class == CLASS_TE ? "te" : "be", file);
        break;
    case COLUMN_SUBMIT:
        put_time(file, job->submit_ns);
        break;
    case COLUMN_GPUS:
        fprintf(file, "%u", job->gpus);
        break;
    case COLUMN_GPUS_MIN:
        put_count(file, job->gpus_min);
        break;
    case COLUMN_GPUS_MAX:
        put_count(file, job->gpus_max);
        break;
    case COLUMN_NODES:
        put_count(file, job->nodes);
        break;
    case COLUMN_SPREAD:
        fputc('0' + job->spread, file);
        break;
    case COLUMN_TYPES:
        put_text(file, job->types);
        break;
    case COLUMN_CPUS:
        if (job->cpu_milli)
            fprintf(file, "%.10g", job->cpu_milli / 1000.0);
        break;
    case COLUMN_MEM:
        if (job->mem_mib)
            fprintf(file, "%.17g", job->mem_mib / 1024.0);
        break;
    case COLUMN_WORK:
        if (!job->kind && !(job->step_s > 0))
            put_real(file, job->steps);
        break;
    case COLUMN_KIND:
        put_text(file, job->kind);
        break;
    case COLUMN_STEPS:
        if (job->kind || job->step_s > 0)
            put_real(file, job->steps);
        break;
    case COLUMN_GRACE:
        put_time(file, job->grace_ns);
        break;
    case COLUMN_PAUSE:
        put_time(file, job->pause_ns);
        break;
    case COLUMN_LOAD:
        put_time(file, job->load_ns);
        break;
    case COLUMN_CKPT:
        put_time(file, job->ckpt_ns);
        break;
    case COLUMN_WEIGHT:
        if (job->weight > 0)
            put_real(file, job->weight);
        break;
    case COLUMN_DEADLINE:
        if (job->deadline_ns)
            put_time(file, job->deadline_ns);
        break;
    case COLUMN_STEP:
        if (job->step_s > 0)
            put_real(file, job->step_s);
        break;
    case COLUMN_FIXED:
        if (job->fixed_s > 0)
            put_real(file, job->fixed_s);
        break;
    case COLUMN_BYTES:
        put_count(file, job->bytes_per_step);
        break;
    case COLUMN_SYNC:
        if (job->bytes_per_step)
            fputs(job->sync == SYNC_RING ? "ring" : "ps", file);
        break;
    case COLUMN_OVERLAP:
        if (job->overlap > 0)
            put_real(file, job->overlap);
        break;
    case COLUMN_CURVE: {
        char text[LEARNING_TEXT_BYTES];
        if (job->curve.family != LEARNING_NONE)
            put_text(file, learning_text(&job->curve, text));
        break;
    }
    case COLUMN_FAILS:
        fputc('0' + job->fails, file);
        break;
    case COLUMN_NODELIST:
        put_text(file, job->nodelist);
        break;
    case COLUMN_EXCLUDE:
        put_text(file, job->exclude);
        break;
    case COLUMN_COUNT:
        break;
    }
}

static void put_line(FILE *file, uint32_t columns, const struct job_spec *job)
{
    bool first = true;
    for (uint32_t c = 0; c < COLUMN_COUNT; c++) {
        if (!(columns & COLUMN_BIT(c)))
            continue;
        if (!first)
            fputc(',', file);
        first = false;
        if (job)
            put_field(file, (enum column)c, job);
        else
            fputs(csv_names[c], file);
    }
    fputc('\n', file);
}

int workload_write(struct workload *workload, FILE *file, struct error *err)
{
    uint32_t columns = workload_facts(workload)->columns;
    fputs("#berth-jobs 1\n", file);
    put_line(file, columns, NULL);
    struct job_spec job;
    int r;
    while ((r = workload_next(workload, &job, err)) > 0)
        put_line(file, columns, &job);
    if (r == 0 && ferror(file))
        r = error_set(err, -EIO, "cannot write: %s", strerror(errno));
    return r;
}
