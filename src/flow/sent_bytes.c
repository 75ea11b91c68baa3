/* sent_bytes.c - what each job has sent, as its hosts count it. */
#include "flow/sent_bytes.h"

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

#define SMOOTH_S 10.0    /* time constant of the smoothed rate            */
#define AT_LEAST_S 0.5   /* between two counts that give a rate           */
#define TELL_EVERY_S 1.5 /* between reports, unless the rate changed so much: */
#define TELL_RATIO 1.25
#define HELD_UP_PER_S 1.0 /* reported of a job that sent before and does not now */
#define HOSTS_MAX 8192
#define NONE UINT32_MAX

/* What one host has counted of one job. */
struct sent_bytes_count {
    uint32_t next; /* of the same job, or of the free ones; NONE: the last */
    uint32_t host;
    int64_t bytes;   /* the newest count                      */
    int64_t at_ns;   /* its time                              */
    double per_s;    /* smoothed; NAN: not known before the next count */
    int64_t rate_ns; /* when the rate was computed            */
    int64_t base;    /* bytes then                            */
};

struct sent_bytes_job {
    uint32_t first; /* count */
    uint32_t next_free;
    double bytes;
    double told_per_s; /* NAN: nothing */
    double told_bytes;
    int64_t told_ns;
};

struct sent_bytes_host {
    char name[SENT_BYTES_HOST_MAX];
    int64_t since_ns;
};

struct sent_bytes {
    struct map jobs; /* public id to total */
    struct sent_bytes_job *totals;
    uint32_t total_used, total_room, total_free;
    struct sent_bytes_count *counts;
    uint32_t count_used, count_room, count_free;
    uint32_t size;
    struct sent_bytes_host *hosts;
    uint32_t host_count, host_room;
};

struct sent_bytes *sent_bytes_new(void)
{
    struct sent_bytes *sent = memory_checked(calloc(1, sizeof *sent));
    sent->total_free = sent->count_free = NONE;
    return sent;
}

void sent_bytes_clear(struct sent_bytes *sent)
{
    map_release(&sent->jobs);
    sent->jobs = (struct map){ 0 };
    sent->total_used = sent->count_used = sent->size = sent->host_count = 0;
    sent->total_free = sent->count_free = NONE;
}

void sent_bytes_free(struct sent_bytes *sent)
{
    if (!sent)
        return;
    map_release(&sent->jobs);
    free(sent->totals);
    free(sent->counts);
    free(sent->hosts);
    free(sent);
}

uint32_t sent_bytes_size(const struct sent_bytes *sent)
{
    return sent->size;
}

/* --- finding ------------------------------------------------------------------------ */

static uint32_t find_host(const struct sent_bytes *sent, const char *name)
{
    for (uint32_t i = 0; i < sent->host_count; i++)
        if (strcmp(sent->hosts[i].name, name) == 0)
            return i;
    return NONE;
}

/* A new host gets a number, which it keeps until all is cleared. */
int sent_bytes_host(struct sent_bytes *sent, const char *name, int64_t now_ns,
                    struct error *err)
{
    assert(strlen(name) < SENT_BYTES_HOST_MAX);
    if (find_host(sent, name) != NONE)
        return 0;
    if (sent->host_count == HOSTS_MAX)
        return error_set(err, -ENOBUFS, "more than %d hosts count", HOSTS_MAX);
    sent->hosts = grow_array(sent->hosts, &sent->host_room, sent->host_count + 1,
                             sizeof *sent->hosts);
    struct sent_bytes_host *host = &sent->hosts[sent->host_count++];
    snprintf(host->name, sizeof host->name, "%s", name);
    host->since_ns = now_ns;
    return 0;
}

int64_t sent_bytes_since_ns(const struct sent_bytes *sent, const char *name)
{
    uint32_t host = find_host(sent, name);
    return host == NONE ? INT64_MAX : sent->hosts[host].since_ns;
}

static struct sent_bytes_job *total_of(struct sent_bytes *sent, uint64_t job)
{
    uint32_t at = map_find(&sent->jobs, job);
    if (at != MAP_NONE)
        return &sent->totals[at];
    at = sent->total_free;
    if (at != NONE)
        sent->total_free = sent->totals[at].next_free;
    else
        at = sent->total_used++;
    sent->totals = grow_array(sent->totals, &sent->total_room, sent->total_used,
                              sizeof *sent->totals);
    sent->totals[at] = (struct sent_bytes_job){ .first = NONE, .told_per_s = NAN };
    map_put(&sent->jobs, job, at);
    return &sent->totals[at];
}

static struct sent_bytes_count *count_of(struct sent_bytes *sent,
                                         struct sent_bytes_job *total, uint32_t host)
{
    for (uint32_t at = total->first; at != NONE; at = sent->counts[at].next)
        if (sent->counts[at].host == host)
            return &sent->counts[at];
    uint32_t at = sent->count_free;
    if (at != NONE)
        sent->count_free = sent->counts[at].next;
    else
        at = sent->count_used++;
    sent->counts = grow_array(sent->counts, &sent->count_room, sent->count_used,
                              sizeof *sent->counts);
    sent->counts[at] = (struct sent_bytes_count){
        .next = total->first, .host = host, .bytes = -1, .per_s = NAN
    };
    total->first = at;
    sent->size++;
    return &sent->counts[at];
}

void sent_bytes_drop(struct sent_bytes *sent, uint64_t job)
{
    uint32_t at = map_find(&sent->jobs, job);
    if (at == MAP_NONE)
        return;
    struct sent_bytes_job *total = &sent->totals[at];
    while (total->first != NONE) {
        struct sent_bytes_count *count = &sent->counts[total->first];
        uint32_t next = count->next;
        count->next = sent->count_free;
        sent->count_free = total->first;
        total->first = next;
        sent->size--;
    }
    total->next_free = sent->total_free;
    sent->total_free = at;
    map_remove(&sent->jobs, job);
}

/* --- counting ------------------------------------------------------------------------- */

/* Smooth the rate, weighted by the time since it was last computed. */
static void update_rate(struct sent_bytes_count *count, int64_t now_ns)
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

int sent_bytes_count(struct sent_bytes *sent, uint64_t job, const char *host,
                     int64_t bytes, int64_t now_ns, struct error *err)
{
    assert(bytes >= 0 && bytes <= SENT_BYTES_MAX);
    int r = sent_bytes_host(sent, host, now_ns, err);
    if (r < 0)
        return r;
    if (sent->size >= SENT_BYTES_COUNTS_MAX)
        return error_set(err, -ENOBUFS, "more than %d counts of jobs on hosts",
                         SENT_BYTES_COUNTS_MAX);
    struct sent_bytes_job *total = total_of(sent, job);
    struct sent_bytes_count *count = count_of(sent, total, find_host(sent, host));
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

/* Hosts report nothing while nothing is sent: the rate decays with every second. */
static double rate_now(const struct sent_bytes_count *count, int64_t now_ns)
{
    double seconds = (double)(now_ns - count->at_ns) * 1e-9;
    return count->per_s * (seconds > SMOOTH_S ? exp(1 - seconds / SMOOTH_S) : 1);
}

struct sent_bytes_total sent_bytes_find(const struct sent_bytes *sent, uint64_t job,
                                        int64_t now_ns)
{
    uint32_t at = map_find(&sent->jobs, job);
    if (at == MAP_NONE)
        return (struct sent_bytes_total){ .counted = false, .bytes_per_s = NAN };
    const struct sent_bytes_job *total = &sent->totals[at];
    double per_s = NAN;
    for (uint32_t c = total->first; c != NONE; c = sent->counts[c].next) {
        double one = rate_now(&sent->counts[c], now_ns);
        if (!isnan(one))
            per_s = isnan(per_s) ? one : per_s + one;
    }
    return (struct sent_bytes_total){ .counted = true,
                                      .bytes = total->bytes,
                                      .bytes_per_s = per_s };
}

bool sent_bytes_changed(struct sent_bytes *sent, uint64_t job, int64_t now_ns,
                        struct sent_bytes_total *ret_facts)
{
    struct sent_bytes_total facts = sent_bytes_find(sent, job, now_ns);
    if (!facts.counted || isnan(facts.bytes_per_s))
        return false;
    struct sent_bytes_job *total = &sent->totals[map_find(&sent->jobs, job)];
    double told = total->told_per_s;
    double per_s = facts.bytes_per_s >= SENT_BYTES_LEAST_PER_S ? facts.bytes_per_s : 0;
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
