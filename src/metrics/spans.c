/* spans.c - who held which accelerator from when to when. */
#include "metrics/spans.h"

#include <inttypes.h>

#include "base/arena.h"
#include "model/cluster.h"

void spans_init(struct spans *spans, struct arena *run, const struct view *view,
                FILE *trace, bool chart)
{
    *spans = (struct spans){ .trace = trace, .view = view };
    spans->first_gpu = arena_array(run, uint32_t, view->cluster->node_count);
    for (node_id n = 0; n < view->cluster->node_count; n++) {
        spans->first_gpu[n] = spans->gpu_count;
        spans->gpu_count += view->cluster->nodes[n].gpu_count;
    }
    spans->first_of = arena_array(run, uint32_t, view->job_max);
    spans->tracks = arena_array(run, struct span_track, 2 * (size_t)spans->gpu_count);
    for (uint32_t i = 0; i < 2 * spans->gpu_count; i++)
        spans->tracks[i].job = JOB_NONE;
    if (chart)
        spans->chart = arena_array(run, struct span, GANTT_SPANS);
    if (!trace)
        return;

    fputs("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n", trace);
    for (node_id n = 0; n < view->cluster->node_count; n++) {
        char name[64];
        fprintf(
            trace,
            "%s{\"ph\":\"M\",\"pid\":%u,\"name\":\"process_name\",\"args\":{\"name\":"
            "\"%s\"}}",
            spans->any ? ",\n" : "", n + 1,
            cluster_node_name(view->cluster, n, name, sizeof name));
        spans->any = true;
        for (uint32_t g = 0; g < view->cluster->nodes[n].gpu_count; g++)
            fprintf(trace,
                    ",\n{\"ph\":\"M\",\"pid\":%u,\"tid\":%u,\"name\":\"thread_name\","
                    "\"args\":{\"name\":\"gpu %u\"}}",
                    n + 1, 2 * (spans->first_gpu[n] + g) + 1, g);
    }
}

/* The node an accelerator is on: the last one that starts at or before it. */
static node_id node_of(const struct spans *spans, uint32_t gpu)
{
    uint32_t low = 0;
    uint32_t high = spans->view->cluster->node_count;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (spans->first_gpu[middle] <= gpu)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static void write_span(struct spans *spans, uint32_t track, const struct job *job,
                       int64_t end_ns, enum span_end end)
{
    static const char *const ends[] = { "finished", "preempted", "lost", "running" };
    int64_t start_ns = spans->tracks[track].start_ns;
    fprintf(spans->trace,
            "%s{\"ph\":\"X\",\"pid\":%u,\"tid\":%u,\"ts\":%.3f,\"dur\":%.3f,"
            "\"name\":\"job %" PRIu64
            "\",\"cat\":\"%s\",\"args\":{\"attempt\":%u,\"end\":"
            "\"%s\"}}",
            spans->any ? ",\n" : "", node_of(spans, track / 2) + 1, track + 1,
            (double)start_ns * 1e-3, (double)(end_ns - start_ns) * 1e-3, job->id,
            job->class == CLASS_TE ? "te" : "be", job->attempt, ends[end]);
    spans->any = true;
}

static void chart_span(struct spans *spans, uint32_t track, const struct job *job,
                       int64_t end_ns, enum span_end end)
{
    if (track / 2 >= GANTT_GPUS)
        return;
    if (spans->chart_count == GANTT_SPANS) {
        spans->chart_full = true;
        return;
    }
    spans->chart[spans->chart_count++] =
        (struct span){ .gpu = track / 2,
                       .lane = track % 2,
                       .class = job->class,
                       .end = end,
                       .job = job->id,
                       .start_s = (double)spans->tracks[track].start_ns * 1e-9,
                       .end_s = (double)end_ns * 1e-9 };
}

static void take(struct spans *spans, job_id id, int64_t now_ns)
{
    const struct job *job = &spans->view->jobs[id];
    const struct seat *seats = view_seats(spans->view, id);
    spans->first_of[id] = 0;
    for (uint32_t i = 0; i < job->seats.count; i++)
        for (uint64_t left = seats[i].gpus; left; left &= left - 1) {
            uint32_t gpu =
                spans->first_gpu[seats[i].node] + (uint32_t)__builtin_ctzll(left);
            uint32_t track = 2 * gpu;
            if (spans->tracks[track].job != JOB_NONE)
                track++;
            spans->tracks[track] = (struct span_track){ .job = id,
                                                        .next = spans->first_of[id],
                                                        .start_ns = now_ns };
            spans->first_of[id] = track + 1;
        }
}

static void leave(struct spans *spans, job_id id, int64_t now_ns, enum span_end end)
{
    for (uint32_t at = spans->first_of[id]; at;) {
        uint32_t track = at - 1;
        at = spans->tracks[track].next;
        if (spans->trace)
            write_span(spans, track, &spans->view->jobs[id], now_ns, end);
        if (spans->chart)
            chart_span(spans, track, &spans->view->jobs[id], now_ns, end);
        spans->tracks[track].job = JOB_NONE;
    }
    spans->first_of[id] = 0;
}

void spans_event(void *self, const struct view *view, const struct event *event)
{
    struct spans *spans = self;
    switch (event->kind) {
    case EVENT_STARTED:
        take(spans, event->job, event->at_ns);
        break;
    case EVENT_RESIZED:
        leave(spans, event->job, event->at_ns, SPAN_RUNNING);
        take(spans, event->job, event->at_ns);
        break;
    case EVENT_STOPPED:
        leave(spans, event->job, event->at_ns, SPAN_PREEMPTED);
        break;
    case EVENT_LOST:
        if (job_seated(&view->jobs[event->job]))
            break; /* only where it was to go is lost */
        leave(spans, event->job, event->at_ns, SPAN_LOST);
        break;
    case EVENT_FAILED:
        leave(spans, event->job, event->at_ns, SPAN_LOST);
        break;
    case EVENT_FINISHED:
        leave(spans, event->job, event->at_ns, SPAN_FINISHED);
        break;
    default:
        break;
    }
}

void spans_end(struct spans *spans, int64_t now_ns)
{
    for (uint32_t track = 0; track < 2 * spans->gpu_count; track++)
        if (spans->tracks[track].job != JOB_NONE)
            leave(spans, spans->tracks[track].job, now_ns, SPAN_RUNNING);
    if (spans->trace)
        fputs("\n]}\n", spans->trace);
}
