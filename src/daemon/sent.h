/*
 * sent.h - what each job has sent, as its hosts count it.
 *
 * A host says how much a job has sent since it began; a count that goes back means that
 * counting began anew.  What is kept per job is the sum over its hosts and a rate, smoothed
 * over some seconds since jobs send in bursts.
 *
 * Policies need not hear of every count: sent_news() says when it is worth telling.  A job
 * that sends less than SENT_LEAST_PER_S talks, but does not exchange gradients: its rate is
 * told as 0.  One that was once told to send is never told to have stopped, since a job that
 * is held up by others sends little as well.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct error;
struct sent;

#define SENT_LEAST_PER_S 100e3 /* bytes: less is talk                              */
#define SENT_COUNTS_MAX 65536  /* jobs times hosts */
#define SENT_HOST_MAX 256      /* of a name, with its end */
#define SENT_BYTES_MAX (INT64_C(1) << 60)

struct sent_facts {
    bool counted;       /* some host has said something */
    double bytes;       /* since it began               */
    double bytes_per_s; /* lately                       */
};

struct sent *sent_new(void);
void sent_free(struct sent *sent);

/* A host counts, whatever it says of which job.  -ENOBUFS: there are too many. */
int sent_host(struct sent *sent, const char *host, int64_t now_ns, struct error *err);

/* A host says that a job has sent so many bytes.  -ENOBUFS: there are too many of both. */
int sent_count(struct sent *sent, uint64_t job, const char *host, int64_t bytes,
               int64_t now_ns, struct error *err);

struct sent_facts sent_look(const struct sent *sent, uint64_t job, int64_t now_ns);

/*
 * Is there something that policies should know?  Then what it is, and it counts as told.
 * Never before a rate is known.
 */
bool sent_news(struct sent *sent, uint64_t job, int64_t now_ns,
               struct sent_facts *ret_facts);

/* It has ended: what was counted of it goes. */
void sent_drop(struct sent *sent, uint64_t job);

/* All of it. */
void sent_clear(struct sent *sent);

/* When a host was first heard of; INT64_MAX: never. */
int64_t sent_since_ns(const struct sent *sent, const char *host);

/* Counts that are kept, for tests and metrics. */
uint32_t sent_size(const struct sent *sent);
