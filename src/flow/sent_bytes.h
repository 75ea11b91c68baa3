/*
 * sent_bytes.h - what each job has sent, as its hosts count it.
 *
 * A host says how much a job has sent since it began; a count that goes back means that
 * counting began anew.  What is kept per job is the sum over its hosts and a rate, smoothed
 * over some seconds since jobs send in bursts.
 *
 * Policies need not hear of every count: sent_bytes_changed() says when it is worth telling.  A job
 * that sends less than SENT_BYTES_LEAST_PER_S talks, but does not exchange gradients: its rate is
 * told as 0.  One that was once told to send is never told to have stopped, since a job that
 * is held up by others sends little as well.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct error;
struct sent_bytes;

#define SENT_BYTES_LEAST_PER_S \
    100e3 /* bytes: less is talk                              */
#define SENT_BYTES_COUNTS_MAX 65536 /* jobs times hosts */
#define SENT_BYTES_HOST_MAX 256     /* of a name, with its end */
#define SENT_BYTES_MAX (INT64_C(1) << 60)

struct sent_bytes_total {
    bool counted;       /* some host has said something */
    double bytes;       /* since it began               */
    double bytes_per_s; /* lately                       */
};

struct sent_bytes *sent_bytes_new(void);
void sent_bytes_free(struct sent_bytes *sent);

/* A host counts, whatever it says of which job.  -ENOBUFS: there are too many. */
int sent_bytes_host(struct sent_bytes *sent, const char *host, int64_t now_ns,
                    struct error *err);

/* A host says that a job has sent so many bytes.  -ENOBUFS: there are too many of both. */
int sent_bytes_count(struct sent_bytes *sent, uint64_t job, const char *host,
                     int64_t bytes, int64_t now_ns, struct error *err);

struct sent_bytes_total sent_bytes_find(const struct sent_bytes *sent, uint64_t job,
                                        int64_t now_ns);

/*
 * Is there something that policies should know?  Then what it is, and it counts as told.
 * Never before a rate is known.
 */
bool sent_bytes_changed(struct sent_bytes *sent, uint64_t job, int64_t now_ns,
                        struct sent_bytes_total *ret_facts);

/* It has ended: what was counted of it goes. */
void sent_bytes_drop(struct sent_bytes *sent, uint64_t job);

/* All of it. */
void sent_bytes_clear(struct sent_bytes *sent);

/* When a host was first heard of; INT64_MAX: never. */
int64_t sent_bytes_since_ns(const struct sent_bytes *sent, const char *host);

/* Counts that are kept, for tests and metrics. */
uint32_t sent_bytes_size(const struct sent_bytes *sent);
