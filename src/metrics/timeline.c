/* timeline.c - a simulation's spans for the report and for Perfetto. */
#include "metrics/timeline.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/json_write.h"
#include "base/memory.h"
#include "metrics/pair_ledger.h"
#include "model/cluster.h"
#include "model/event_record.h"

#define ENTRY_MAX 1024 /* bytes of an entry of the trace */

/* A GPU has two tracks, since two jobs may share it. */
static uint32_t track_of(const struct timeline *timeline,
                         const struct occupancy_span *span, uint32_t gpu)
{
    return 2 * (timeline->first_gpu[span->node] + gpu) + (span->shared >> gpu & 1);
}

/* Each entry of the trace is a line. */
static struct buf *begin_entry(struct timeline *timeline, const char *phase,
                               node_id node)
{
    struct buf *line = &timeline->line;
    buf_reset(line);
    json_write_open(line, NULL, '{');
    json_write_text(line, "ph", phase);
    json_write_count(line, "pid", node + 1);
    return line;
}

static void end_entry(struct timeline *timeline)
{
    json_write_close(&timeline->line, '}');
    if (timeline->has_written)
        fputs(",\n", timeline->trace);
    fwrite(timeline->line.bytes, 1, timeline->line.count, timeline->trace);
    timeline->has_written = true;
}

static void write_name(struct timeline *timeline, const char *kind, const char *name)
{
    struct buf *line = &timeline->line;
    json_write_text(line, "name", kind);
    json_write_open(line, "args", '{');
    json_write_text(line, "name", name);
    json_write_close(line, '}');
    end_entry(timeline);
}

/* The second track of a GPU gets a name when it is needed: most GPUs are never shared. */
static void name_second_track(struct timeline *timeline,
                              const struct occupancy_span *span, uint32_t gpu)
{
    uint32_t number = timeline->first_gpu[span->node] + gpu;
    char name[64];
    if (!(span->shared >> gpu & 1) || timeline->has_second_track[number])
        return;
    timeline->has_second_track[number] = true;
    json_write_count(begin_entry(timeline, "M", span->node), "tid",
                     track_of(timeline, span, gpu) + 1);
    snprintf(name, sizeof name, "gpu %u, second job", gpu);
    write_name(timeline, "thread_name", name);
}

static void write_tracks(struct timeline *timeline)
{
    const struct cluster *cluster = timeline->cluster;
    fputs("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n", timeline->trace);
    for (node_id n = 0; n < cluster->node_count; n++) {
        char name[64];
        begin_entry(timeline, "M", n);
        write_name(timeline, "process_name",
                   cluster_node_name(cluster, n, name, sizeof name));
        for (uint32_t g = 0; g < cluster->nodes[n].gpu_count; g++) {
            snprintf(name, sizeof name, "gpu %u", g);
            json_write_count(begin_entry(timeline, "M", n), "tid",
                             2 * (timeline->first_gpu[n] + g) + 1);
            write_name(timeline, "thread_name", name);
        }
    }
}

static enum timeline_end end_of(const struct occupancy_span *span)
{
    switch (span->end) {
    case OCCUPANCY_FINISHED:
        return TIMELINE_FINISHED;
    case OCCUPANCY_PREEMPTED:
    case OCCUPANCY_CANCELLED:
        return TIMELINE_PREEMPTED;
    case OCCUPANCY_FAILED:
    case OCCUPANCY_LOST:
        return TIMELINE_LOST;
    default:
        return TIMELINE_RUNNING;
    }
}

static void write_bar(struct timeline *timeline, const struct occupancy_span *span,
                      uint32_t gpu, uint32_t attempt)
{
    static const char *const ends[] = { "finished", "preempted", "lost", "running" };
    name_second_track(timeline, span, gpu);
    struct buf *line = begin_entry(timeline, "X", span->node);
    char name[32];
    snprintf(name, sizeof name, "job %" PRIu64, span->job);
    json_write_count(line, "tid", track_of(timeline, span, gpu) + 1);
    json_write_fixed(line, "ts", (double)span->start_ns * 1e-3, 3);
    json_write_fixed(line, "dur", (double)(span->end_ns - span->start_ns) * 1e-3, 3);
    json_write_text(line, "name", name);
    json_write_text(line, "cat", span->class == CLASS_TE ? "te" : "be");
    json_write_open(line, "args", '{');
    json_write_count(line, "attempt", attempt);
    json_write_text(line, "end", ends[end_of(span)]);
    json_write_close(line, '}');
    end_entry(timeline);
}

static void keep_bar(struct timeline *timeline, const struct occupancy_span *span,
                     uint32_t gpu)
{
    uint32_t track = track_of(timeline, span, gpu);
    if (track / 2 >= TIMELINE_GPUS)
        return;
    if (timeline->bar_count == TIMELINE_BARS) {
        timeline->is_full = true;
        return;
    }
    timeline->bars[timeline->bar_count++] =
        (struct timeline_bar){ .gpu = track / 2,
                               .lane = track % 2,
                               .class = span->class,
                               .end = end_of(span),
                               .job = span->job,
                               .start_s = (double)span->start_ns * 1e-9,
                               .end_s = (double)span->end_ns * 1e-9 };
}

static void on_closed(void *self, const struct occupancy_span *span,
                      const struct event_record *cause)
{
    struct timeline *timeline = self;
    for (uint64_t left = span->gpus; left;) {
        uint32_t gpu = 63 - (uint32_t)__builtin_clzll(left);
        left &= ~(UINT64_C(1) << gpu);
        if (timeline->trace)
            write_bar(timeline, span, gpu, cause->event.attempt);
        if (timeline->bars)
            keep_bar(timeline, span, gpu);
    }
}

void timeline_init(struct timeline *timeline, struct arena *run,
                   const struct view *view, FILE *trace, bool chart)
{
    const struct cluster *cluster = view->cluster;
    *timeline = (struct timeline){ .trace = trace, .cluster = cluster };
    buf_init(&timeline->line, ENTRY_MAX);
    occupancy_init(&timeline->occupancy, 0);
    timeline->occupancy.closed = on_closed;
    timeline->occupancy.self = timeline;
    timeline->first_gpu = arena_array(run, uint32_t, cluster->node_count);
    timeline->has_second_track = arena_array(run, bool, cluster->gpu_count);
    for (node_id n = 1; n < cluster->node_count; n++)
        timeline->first_gpu[n] =
            timeline->first_gpu[n - 1] + cluster->nodes[n - 1].gpu_count;
    if (chart) {
        timeline->bars = arena_array(run, struct timeline_bar, TIMELINE_BARS);
        timeline->pairs = arena_array(run, struct timeline_pair, TIMELINE_PAIRS);
    }
    if (trace)
        write_tracks(timeline);
}

void timeline_event(void *self, const struct view *view, const struct event *event)
{
    struct timeline *timeline = self;
    struct event_record record = event_record_make(0, view, event);
    occupancy_apply(&timeline->occupancy, &record);
}

void timeline_add_pair(void *self, const struct pair_entry *entry)
{
    struct timeline *timeline = self;
    double kept[2] = { pair_entry_kept(entry, 0), pair_entry_kept(entry, 1) };
    const struct timeline_pair *last =
        timeline->pair_count ? &timeline->pairs[timeline->pair_count - 1] : NULL;
    double from_s = (double)entry->from_ns * 1e-9;
    bool is_told = last && last->from_s == from_s && last->jobs[0] == entry->jobs[0] &&
                   last->jobs[1] == entry->jobs[1];
    if (entry->to_ns < 0 || isnan(kept[0]) || is_told ||
        timeline->pair_count == TIMELINE_PAIRS)
        return;
    timeline->pairs[timeline->pair_count++] =
        (struct timeline_pair){ .jobs = { entry->jobs[0], entry->jobs[1] },
                                .from_s = from_s,
                                .kept = { kept[0], kept[1] } };
}

/* Write the spans of a job that still holds GPUs, and clear its tracks. */
static void end_job(struct timeline *timeline, uint64_t *holders, uint64_t job,
                    int64_t now_ns)
{
    const struct occupancy *occupancy = &timeline->occupancy;
    for (const struct occupancy_span *span = occupancy_held(occupancy, job); span;
         span = occupancy_next(occupancy, span)) {
        struct occupancy_span last = *span;
        struct event_record cause = { .job = job, .event.attempt = span->attempt };
        last.end_ns = now_ns;
        on_closed(timeline, &last, &cause);
        for (uint64_t left = span->gpus; left; left &= left - 1)
            holders[track_of(timeline, span, (uint32_t)__builtin_ctzll(left))] = 0;
    }
}

/* In the order of the tracks, so that the trace does not depend on the order of numbers. */
void timeline_end(struct timeline *timeline, int64_t now_ns)
{
    const struct occupancy *occupancy = &timeline->occupancy;
    uint32_t track_count = 2 * timeline->cluster->gpu_count;
    uint64_t *holders = memory_checked(calloc(track_count + 1, sizeof *holders));
    for (uint32_t i = 0; i < occupancy->count; i++) {
        const struct occupancy_span *span = occupancy_at(occupancy, i);
        bool is_held = span->job && span->start_ns >= 0;
        for (uint64_t left = is_held ? span->gpus : 0; left; left &= left - 1)
            holders[track_of(timeline, span, (uint32_t)__builtin_ctzll(left))] =
                span->job;
    }
    for (uint32_t track = 0; track < track_count; track++)
        if (holders[track])
            end_job(timeline, holders, holders[track], now_ns);
    free(holders);
    if (timeline->trace)
        fputs("\n]}\n", timeline->trace);
}

void timeline_release(struct timeline *timeline)
{
    occupancy_release(&timeline->occupancy);
    buf_release(&timeline->line);
}
