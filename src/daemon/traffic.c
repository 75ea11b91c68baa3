/* traffic.c - what each job has sent, as its hosts count it. */
#include "daemon/traffic.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/grow.h"
#include "base/map.h"
#include "base/memory.h"

#define SMOOTH_S 10.0    /* a rate forgets in about that time             */
#define AT_LEAST_S 0.5   /* between two counts that give a rate           */
#define TELL_EVERY_S 1.5 /* and at once when the rate has changed so much: */
#define TELL_RATIO 1.25
#define HELD_UP_PER_S 1.0 /* told of one that sent before and does not now  */
#define HOSTS_MAX 8192
#define NONE UINT32_MAX

/* One host's word on one job. */
struct traffic_count {
    uint32_t next; /* of the same job, or of the free ones; NONE: the last */
    uint32_t host;
    int64_t bytes;   /* as it was said last                   */
    int64_t at_ns;   /* then                                  */
    double per_s;    /* smoothed; NAN: known once it speaks again */
    int64_t rate_ns; /* when the rate was worked out          */
    int64_t base;    /* bytes then                            */
};

struct traffic_job {
    uint32_t first; /* count */
    uint32_t next_free;
    double bytes;
    double told_per_s; /* NAN: nothing */
    double told_bytes;
    int64_t told_ns;
};

struct traffic_host {
    char name[TRAFFIC_HOST_MAX];
    int64_t since_ns;
};

struct traffic {
    struct map jobs; /* public id to total */
    struct traffic_job *totals;
    uint32_t total_used, total_room, total_free;
    struct traffic_count *counts;
    uint32_t count_used, count_room, count_free;
    uint32_t size;
    struct traffic_host *hosts;
    uint32_t host_count, host_room;
};

struct traffic *traffic_new(void)
{
    struct traffic *traffic = memory_checked(calloc(1, sizeof *traffic));
    traffic->total_free = traffic->count_free = NONE;
    return traffic;
}

void traffic_clear(struct traffic *traffic)
{
    map_release(&traffic->jobs);
    traffic->jobs = (struct map){ 0 };
    traffic->total_used = traffic->count_used = traffic->size = traffic->host_count = 0;
    traffic->total_free = traffic->count_free = NONE;
}

void traffic_free(struct traffic *traffic)
{
    if (!traffic)
        return;
    map_release(&traffic->jobs);
    free(traffic->totals);
    free(traffic->counts);
    free(traffic->hosts);
    free(traffic);
}

uint32_t traffic_size(const struct traffic *traffic)
{
    return traffic->size;
}

/* --- finding ------------------------------------------------------------------------ */

static uint32_t find_host(const struct traffic *traffic, const char *name)
{
    for (uint32_t i = 0; i < traffic->host_count; i++)
        if (strcmp(traffic->hosts[i].name, name) == 0)
            return i;
    return NONE;
}

/* One that is named for the first time gets a number; they stay until all is cleared. */
int traffic_host(struct traffic *traffic, const char *name, int64_t now_ns,
                 struct error *err)
{
    assert(strlen(name) < TRAFFIC_HOST_MAX);
    if (find_host(traffic, name) != NONE)
        return 0;
    if (traffic->host_count == HOSTS_MAX)
        return error_set(err, -ENOBUFS, "more than %d hosts count", HOSTS_MAX);
    traffic->hosts = grow_array(traffic->hosts, &traffic->host_room,
                                traffic->host_count + 1, sizeof *traffic->hosts);
    struct traffic_host *host = &traffic->hosts[traffic->host_count++];
    snprintf(host->name, sizeof host->name, "%s", name);
    host->since_ns = now_ns;
    return 0;
}

int64_t traffic_since_ns(const struct traffic *traffic, const char *name)
{
    uint32_t host = find_host(traffic, name);
    return host == NONE ? INT64_MAX : traffic->hosts[host].since_ns;
}

static struct traffic_job *total_of(struct traffic *traffic, uint64_t job)
{
    uint32_t at = map_find(&traffic->jobs, job);
    if (at != MAP_NONE)
        return &traffic->totals[at];
    at = traffic->total_free;
    if (at != NONE)
        traffic->total_free = traffic->totals[at].next_free;
    else
        at = traffic->total_used++;
    traffic->totals = grow_array(traffic->totals, &traffic->total_room,
                                 traffic->total_used, sizeof *traffic->totals);
    traffic->totals[at] = (struct traffic_job){ .first = NONE, .told_per_s = NAN };
    map_put(&traffic->jobs, job, at);
    return &traffic->totals[at];
}

static struct traffic_count *count_of(struct traffic *traffic,
                                      struct traffic_job *total, uint32_t host)
{
    for (uint32_t at = total->first; at != NONE; at = traffic->counts[at].next)
        if (traffic->counts[at].host == host)
            return &traffic->counts[at];
    uint32_t at = traffic->count_free;
    if (at != NONE)
        traffic->count_free = traffic->counts[at].next;
    else
        at = traffic->count_used++;
    traffic->counts = grow_array(traffic->counts, &traffic->count_room,
                                 traffic->count_used, sizeof *traffic->counts);
    traffic->counts[at] = (struct traffic_count){
        .next = total->first, .host = host, .bytes = -1, .per_s = NAN
    };
    total->first = at;
    traffic->size++;
    return &traffic->counts[at];
}

void traffic_drop(struct traffic *traffic, uint64_t job)
{
    uint32_t at = map_find(&traffic->jobs, job);
    if (at == MAP_NONE)
        return;
    struct traffic_job *total = &traffic->totals[at];
    while (total->first != NONE) {
        struct traffic_count *count = &traffic->counts[total->first];
        uint32_t next = count->next;
        count->next = traffic->count_free;
        traffic->count_free = total->first;
        total->first = next;
        traffic->size--;
    }
    total->next_free = traffic->total_free;
    traffic->total_free = at;
    map_remove(&traffic->jobs, job);
}

/* --- counting ------------------------------------------------------------------------- */

/* From the bytes since the last time, with a weight for how long ago that was. */
static void update_rate(struct traffic_count *count, int64_t now_ns)
{
    double seconds = (double)(now_ns - count->rate_ns) * 1e-9;
    if (seconds < AT_LEAST_S)
        return;
    double per_s = (double)(count->bytes - count->base) / seconds;
    double weight = isnan(count->per_s) ? 1 : 1 - exp(-seconds / SMOOTH_S);
    count->per_s =
        (isnan(count->per_s) ? 0 : count->per_s * (1 - weight)) + weight * per_s;
    count->rate_ns = now_ns;
    count->base = count->bytes;
}

int traffic_count(struct traffic *traffic, uint64_t job, const char *host,
                  int64_t bytes, int64_t now_ns, struct error *err)
{
    assert(bytes >= 0 && bytes <= TRAFFIC_BYTES_MAX);
    int r = traffic_host(traffic, host, now_ns, err);
    if (r < 0)
        return r;
    if (traffic->size >= TRAFFIC_COUNTS_MAX)
        return error_set(err, -ENOBUFS, "more than %d counts of jobs on hosts",
                         TRAFFIC_COUNTS_MAX);
    struct traffic_job *total = total_of(traffic, job);
    struct traffic_count *count = count_of(traffic, total, find_host(traffic, host));
    bool first = count->bytes < 0;
    bool anew = bytes < count->bytes;
    total->bytes += (double)(first || anew ? bytes : bytes - count->bytes);
    count->bytes = bytes;
    count->at_ns = now_ns;
    if (first || anew) {
        count->rate_ns = now_ns;
        count->base = bytes;
    } else {
        update_rate(count, now_ns);
    }
    return 0;
}

/* Hosts say nothing while nothing is sent: what was lately is less with every second. */
static double rate_now(const struct traffic_count *count, int64_t now_ns)
{
    double seconds = (double)(now_ns - count->at_ns) * 1e-9;
    return count->per_s * (seconds > SMOOTH_S ? exp(1 - seconds / SMOOTH_S) : 1);
}

struct traffic_total traffic_look(const struct traffic *traffic, uint64_t job,
                                  int64_t now_ns)
{
    uint32_t at = map_find(&traffic->jobs, job);
    if (at == MAP_NONE)
        return (struct traffic_total){ .counted = false, .bytes_per_s = NAN };
    const struct traffic_job *total = &traffic->totals[at];
    double per_s = NAN;
    for (uint32_t c = total->first; c != NONE; c = traffic->counts[c].next) {
        double one = rate_now(&traffic->counts[c], now_ns);
        if (!isnan(one))
            per_s = isnan(per_s) ? one : per_s + one;
    }
    return (struct traffic_total){ .counted = true,
                                   .bytes = total->bytes,
                                   .bytes_per_s = per_s };
}

bool traffic_news(struct traffic *traffic, uint64_t job, int64_t now_ns,
                  struct traffic_total *ret_facts)
{
    struct traffic_total facts = traffic_look(traffic, job, now_ns);
    if (!facts.counted || isnan(facts.bytes_per_s))
        return false;
    struct traffic_job *total = &traffic->totals[map_find(&traffic->jobs, job)];
    double told = total->told_per_s;
    double per_s = facts.bytes_per_s >= TRAFFIC_LEAST_PER_S ? facts.bytes_per_s : 0;
    if (told > 0)
        per_s = fmax(facts.bytes_per_s, HELD_UP_PER_S);
    bool first = isnan(told) || (told == 0 && per_s > 0);
    bool changed = per_s > told * TELL_RATIO || per_s * TELL_RATIO < told;
    bool grown = per_s > 0 && total->bytes != total->told_bytes &&
                 (double)(now_ns - total->told_ns) * 1e-9 >= TELL_EVERY_S;
    if (!first && !changed && !grown)
        return false;
    total->told_per_s = per_s;
    total->told_bytes = total->bytes;
    total->told_ns = now_ns;
    facts.bytes_per_s = per_s;
    *ret_facts = facts;
    return true;
}
