/*
 * sent_bytes.h - what each job has sent, as its hosts count it.
 *
 * A host reports how many bytes a job has sent since it began; a smaller count than before
 * means that counting started again.  Kept per job are the sum over its hosts and a rate,
 * smoothed over some seconds since jobs send in bursts.
 *
 * Policies are not told of every count: sent_bytes_changed() says when.  A job that sends less
 * than SENT_BYTES_LEAST_PER_S does not exchange gradients: its rate is told as 0.  A job once
 * told to send is never told to have stopped: one that is delayed by others sends little too.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct error;
struct sent_bytes;

#define SENT_BYTES_LEAST_PER_S \
    100e3 /* bytes: less is not an exchange of gradients      */
#define SENT_BYTES_COUNTS_MAX 65536 /* jobs times hosts */
#define SENT_BYTES_HOST_MAX 256     /* of a name, with its end */
#define SENT_BYTES_MAX (INT64_C(1) << 60)

struct sent_bytes_total {
    bool counted;       /* some host has reported       */
    double bytes;       /* since it began               */
    double bytes_per_s; /* lately                       */
};

struct sent_bytes *sent_bytes_new(void);
void sent_bytes_free(struct sent_bytes *sent);

/* A host counts, even if no job of it was counted yet.  -ENOBUFS: too many hosts. */
int sent_bytes_host(struct sent_bytes *sent, const char *host, int64_t now_ns,
                    struct error *err);

/* A host reports a count of a job.  -ENOBUFS: too many jobs and hosts. */
int sent_bytes_count(struct sent_bytes *sent, uint64_t job, const char *host,
                     int64_t bytes, int64_t now_ns, struct error *err);

struct sent_bytes_total sent_bytes_find(const struct sent_bytes *sent, uint64_t job,
                                        int64_t now_ns);

/*
 * Has the total changed enough for policies to be told?  Then it is returned and counts as
 * told.  False before a rate is known.
 */
bool sent_bytes_changed(struct sent_bytes *sent, uint64_t job, int64_t now_ns,
                        struct sent_bytes_total *ret_facts);

/* A job has ended: forget its counts. */
void sent_bytes_drop(struct sent_bytes *sent, uint64_t job);

/* Forget everything. */
void sent_bytes_clear(struct sent_bytes *sent);

/* When a host first reported; INT64_MAX: never. */
int64_t sent_bytes_since_ns(const struct sent_bytes *sent, const char *host);

/* Counts that are kept, for tests and metrics. */
uint32_t sent_bytes_size(const struct sent_bytes *sent);
