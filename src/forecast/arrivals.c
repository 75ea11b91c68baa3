/* arrivals.c - jobs that may be submitted in the future, as they were in the past. */
#include "forecast/arrivals.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define DAY_NS INT64_C(86400000000000)
#define SPAN_LEAST_NS INT64_C(3600000000000)
#define ROOM_FIRST 256

void arrivals_release(struct arrivals *arrivals)
{
    free(arrivals->jobs);
    *arrivals = (struct arrivals){ 0 };
}

void arrivals_add(struct arrivals *arrivals, const struct job *job)
{
    if (arrivals->count == arrivals->room && arrivals->room < ARRIVALS_MAX) {
        uint32_t room = arrivals->room ? 2 * arrivals->room : ROOM_FIRST;
        struct job *jobs = memory_checked(malloc(room * sizeof *jobs));
        if (arrivals->room)
            memcpy(jobs, arrivals->jobs, arrivals->room * sizeof *jobs);
        free(arrivals->jobs);
        arrivals->jobs = jobs;
        arrivals->room = room;
    }
    struct job *kept = &arrivals->jobs[arrivals->count++ % arrivals->room];
    *kept = *job;
    kept->set = NULL; /* another job's by then */
    kept->curve.points = NULL;
    kept->curve.family = LEARNING_NONE;
}

static const struct job *job_at(const struct arrivals *arrivals, uint64_t number)
{
    return &arrivals->jobs[number % arrivals->room];
}

/* Number of the oldest that is known. */
static uint64_t first_known(const struct arrivals *arrivals)
{
    return arrivals->count > arrivals->room ? arrivals->count - arrivals->room : 0;
}

/* Number of the first that was submitted at this time or later. */
static uint64_t find_first(const struct arrivals *arrivals, int64_t from_ns)
{
    uint64_t low = first_known(arrivals);
    uint64_t high = arrivals->count;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (job_at(arrivals, middle)->submit_ns < from_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Draw the span that is repeated from 'from_ns' on. */
static void draw_span(struct arrival_stream *stream, int64_t from_ns)
{
    int64_t back = 1 + rng_below(&stream->rng, stream->day_count);
    int64_t source_ns = stream->now_ns - back * stream->day_ns;
    stream->shift_ns = from_ns - source_ns;
    stream->until_ns = from_ns + stream->day_ns;
    stream->next = find_first(stream->arrivals, source_ns);
}

void arrival_stream_begin(struct arrival_stream *stream,
                          const struct arrivals *arrivals, struct arena *arena,
                          int64_t now_ns, uint64_t id_next, uint64_t seed)
{
    *stream = (struct arrival_stream){
        .arrivals = arrivals, .arena = arena, .now_ns = now_ns, .id_next = id_next
    };
    rng_init(&stream->rng, seed, "arrivals");
    uint64_t first = first_known(arrivals);
    if (arrivals->count - first < ARRIVALS_LEAST)
        return;
    int64_t known_ns = now_ns - job_at(arrivals, first)->submit_ns;
    if (known_ns < SPAN_LEAST_NS)
        return;
    stream->day_ns = known_ns < DAY_NS ? known_ns : DAY_NS;
    int64_t days = known_ns / stream->day_ns;
    stream->day_count = days < ARRIVALS_DAYS ? (uint32_t)days : ARRIVALS_DAYS;
    draw_span(stream, now_ns);
}

const struct job *arrival_stream_next(struct arrival_stream *stream)
{
    if (stream->day_count == 0)
        return NULL;
    /* A span in which nothing was submitted is one of many, or the others are as empty. */
    for (uint32_t empty = 0; empty < 4 * ARRIVALS_DAYS; empty++) {
        if (stream->next < stream->arrivals->count) {
            const struct job *past = job_at(stream->arrivals, stream->next);
            int64_t at_ns = past->submit_ns + stream->shift_ns;
            if (at_ns < stream->until_ns) {
                struct job *job = arena_new(stream->arena, struct job);
                *job = *past;
                job->id = stream->id_next++;
                job->submit_ns = at_ns;
                if (job->deadline_ns > 0)
                    job->deadline_ns += stream->shift_ns;
                stream->next++;
                return job;
            }
        }
        draw_span(stream, stream->until_ns);
    }
    return NULL;
}
