/* joblog.c - a line per job, as it ends. */
#include "metrics/joblog.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/memory.h"
#include "model/cluster.h"

void joblog_begin(struct joblog *log, FILE *file)
{
    *log = (struct joblog){ .file = file };
    fputs("id,class,gpus,type,state,submit_s,first_start_s,end_s,jct_s,wait_s,gpu_s,"
          "preemptions,failures,attempts,slowdown,name\n",
          file);
}

void joblog_release(struct joblog *log)
{
    for (uint32_t i = 0; i < log->name_room; i++)
        free(log->names[i]);
    free(log->names);
    *log = (struct joblog){ 0 };
}

void joblog_name(struct joblog *log, job_id job, const char *name)
{
    log->names = grow_array(log->names, &log->name_room, job + 1, sizeof *log->names);
    free(log->names[job]);
    log->names[job] = memory_text(name);
}

/* A CSV cell: in quotes if it has a comma or a quote in it. */
static void write_name(FILE *file, const char *name)
{
    if (!name)
        return;
    if (!strpbrk(name, ",\"")) {
        fputs(name, file);
        return;
    }
    fputc('"', file);
    for (; *name; name++) {
        if (*name == '"')
            fputc('"', file);
        fputc(*name, file);
    }
    fputc('"', file);
}

/* Seconds with as many digits as nanoseconds have, or nothing. */
static void write_time(FILE *file, int64_t ns, bool known)
{
    if (known)
        fprintf(file, "%" PRId64 ".%09" PRId64 ",", ns / 1000000000, ns % 1000000000);
    else
        fputc(',', file);
}

static void write_job(const struct joblog *log, const struct view *view, job_id id,
                      const char *state, int64_t end_ns, double steps)
{
    FILE *file = log->file;
    const struct job *job = &view->jobs[id];
    const char *type = job->type_now < view->cluster->type_count
                           ? view->cluster->types[job->type_now].name
                           : "";
    bool ended = end_ns >= 0;
    fprintf(file, "%" PRIu64 ",%s,%u,%s,%s,", job->id,
            job->class == CLASS_TE ? "te" : "be", job->gpus, type, state);
    write_time(file, job->submit_ns, true);
    write_time(file, job->first_start_ns, job->first_start_ns >= 0);
    write_time(file, end_ns, ended);
    write_time(file, end_ns - job->submit_ns, ended);
    write_time(file, job->waited_ns, true);
    write_time(file, job->served_ns, true);
    fprintf(file, "%u,%u,%u,", job->preemptions, job->failures, job->attempt + 1);
    double alone_ns = steps / job->rate_best_per_s * 1e9;
    if (ended && alone_ns > 0)
        fprintf(file, "%.9g", (double)(end_ns - job->submit_ns) / alone_ns);
    fputc(',', file);
    write_name(file, id < log->name_room ? log->names[id] : NULL);
    fputc('\n', file);
}

void joblog_event(void *self, const struct view *view, const struct event *event)
{
    struct joblog *log = self;
    switch (event->kind) {
    case EVENT_FINISHED:
        write_job(log, view, event->job, "completed", event->at_ns, event->steps);
        break;
    case EVENT_FAILED:
        write_job(log, view, event->job,
                  view->jobs[event->job].leaving ? "cancelled" : "failed", event->at_ns,
                  0);
        break;
    case EVENT_CANCELLED:
    case EVENT_STOPPED:
    case EVENT_LOST:
        if (view->jobs[event->job].state == JOB_FREE)
            write_job(log, view, event->job, "cancelled", event->at_ns, 0);
        break;
    case EVENT_DROPPED:
        write_job(log, view, event->job, "dropped", -1, 0);
        break;
    case EVENT_REJECTED:
        fprintf(log->file, "%" PRIu64 ",%s,%u,,rejected,", event->spec->id,
                event->spec->class == CLASS_TE ? "te" : "be", event->spec->gpus);
        write_time(log->file, event->at_ns, true);
        fputs(",,,,,,,,,\n", log->file);
        break;
    default:
        break;
    }
}

void joblog_end(struct joblog *log, const struct view *view, uint32_t slot_count)
{
    for (uint32_t i = 0; i < slot_count; i++)
        if (view->jobs[i].state != JOB_FREE)
            write_job(log, view, i, "unfinished", -1, 0);
}
