/*
 * reasons.h - why a job waits: a few sentences, each with a token for programs, the jobs ahead
 * of it, and the victims that were considered for it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define REASONS_MAX 16
#define AHEAD_MAX 100 /* jobs ahead that are listed; the others are counted */
#define CONSIDERED_MAX 16

struct reason {
    const char
        *token;     /* for programs, never changed: "order", "resources"; not copied */
    char text[240]; /* a sentence without a full stop */
};

struct reasons {
    struct reason list[REASONS_MAX];
    uint32_t count;
    struct reasons_ahead {
        int64_t key;
        uint64_t id; /* public */
    } ahead[AHEAD_MAX];
    uint32_t ahead_count;
    uint32_t ahead_more; /* not listed */
    struct reasons_considered {
        uint64_t id;         /* public; of a job that could have been preempted     */
        double price_gpu_s;  /* what stopping it wastes                             */
        double benefit_s;    /* what preempting it, and those with it, saves in all */
        const char *verdict; /* not copied                                          */
    } considered[CONSIDERED_MAX];
    uint32_t considered_count;
};

void reasons_reset(struct reasons *reasons);

/* What does not fit any more is left out. */
void reasons_add(struct reasons *reasons, const char *token, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/*
 * Add a job that is ahead and was not added before.  Those with the smallest keys are listed,
 * in that order, then by id.
 */
void reasons_add_ahead(struct reasons *reasons, int64_t key, uint64_t id);

/* Add a victim that was considered; what does not fit any more is left out. */
void reasons_add_considered(struct reasons *reasons,
                            struct reasons_considered considered);

static inline uint32_t reasons_ahead_total(const struct reasons *reasons)
{
    return reasons->ahead_count + reasons->ahead_more;
}
