/*
 * traffic.h - what each job has sent, as its hosts count it.
 *
 * A host says how much a job has sent since it began; a count that goes back means that
 * counting began anew.  What is kept per job is the sum over its hosts and a rate, smoothed
 * over some seconds since jobs send in bursts.
 *
 * Policies need not hear of every count: traffic_news() says when it is worth telling.  A job
 * that sends less than TRAFFIC_LEAST_PER_S talks, but does not exchange gradients: its rate is
 * told as 0.  One that was once told to send is never told to have stopped, since a job that
 * is held up by others sends little as well.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct error;
struct traffic;

#define TRAFFIC_LEAST_PER_S 100e3 /* bytes: less is talk                              */
#define TRAFFIC_COUNTS_MAX 65536  /* jobs times hosts */
#define TRAFFIC_HOST_MAX 256      /* of a name, with its end */
#define TRAFFIC_BYTES_MAX (INT64_C(1) << 60)

struct traffic_total {
    bool counted;       /* some host has said something */
    double bytes;       /* since it began               */
    double bytes_per_s; /* lately                       */
};

struct traffic *traffic_new(void);
void traffic_free(struct traffic *traffic);

/* A host counts, whatever it says of which job.  -ENOBUFS: there are too many. */
int traffic_host(struct traffic *traffic, const char *host, int64_t now_ns,
                 struct error *err);

/* A host says that a job has sent so many bytes.  -ENOBUFS: there are too many of both. */
int traffic_count(struct traffic *traffic, uint64_t job, const char *host,
                  int64_t bytes, int64_t now_ns, struct error *err);

struct traffic_total traffic_look(const struct traffic *traffic, uint64_t job,
                                  int64_t now_ns);

/*
 * Is there something that policies should know?  Then what it is, and it counts as told.
 * Never before a rate is known.
 */
bool traffic_news(struct traffic *traffic, uint64_t job, int64_t now_ns,
                  struct traffic_total *ret_facts);

/* It has ended: what was counted of it goes. */
void traffic_drop(struct traffic *traffic, uint64_t job);

/* All of it. */
void traffic_clear(struct traffic *traffic);

/* When a host was first heard of; INT64_MAX: never. */
int64_t traffic_since_ns(const struct traffic *traffic, const char *host);

/* Counts that are kept, for tests and metrics. */
uint32_t traffic_size(const struct traffic *traffic);
