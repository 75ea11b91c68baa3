/*
 * arrivals.h - jobs that may be submitted in the future, as they were in the past.
 *
 *     arrivals_add(&arrivals, job);                                with every submission
 *     arrival_stream_begin(&stream, &arrivals, view, id, seed);    for each replicate
 *     job = arrival_stream_next(&stream);                          in order of time
 *
 * The future is made of days that were: each day from now on is one of the last 14, drawn at random,
 * from the same hour on.  Where less than a day is known, all of it is repeated; less
 * than an hour says nothing, since it may be one burst.  Users, names, sizes
 * and declared work are those of the jobs submitted then.
 *
 * The last ARRIVALS_MAX submissions are known; fewer than ARRIVALS_LEAST say nothing.
 */
#pragma once

#include <stdint.h>

#include "base/arena.h"
#include "base/rng.h"
#include "model/job.h"

#define ARRIVALS_MAX 16384
#define ARRIVALS_LEAST 10
#define ARRIVALS_DAYS 14

struct arrivals {
    struct job *jobs; /* a ring */
    uint32_t room;
    uint64_t count; /* ever added */
};

void arrivals_release(struct arrivals *arrivals);

/* A job was submitted, not before those added so far. */
void arrivals_add(struct arrivals *arrivals, const struct job *job);

struct arrival_stream {
    const struct arrivals *arrivals;
    struct arena *arena; /* of the jobs that are returned */
    struct rng rng;
    uint64_t id_next;
    int64_t now_ns;
    int64_t day_ns;     /* length of what is repeated; 0: nothing is known */
    uint32_t day_count; /* such spans there are                            */
    int64_t shift_ns;   /* of the span that is repeated now                */
    int64_t until_ns;   /* its end, in the future                          */
    uint64_t next;      /* number of the next submission in it             */
};

/* Jobs get ids from 'id_next' on, and live in 'arena'. */
void arrival_stream_begin(struct arrival_stream *stream,
                          const struct arrivals *arrivals, struct arena *arena,
                          int64_t now_ns, uint64_t id_next, uint64_t seed);

/* The next job, or NULL: none is expected.  There is no end otherwise. */
const struct job *arrival_stream_next(struct arrival_stream *stream);
