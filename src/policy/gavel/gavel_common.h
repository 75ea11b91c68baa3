/*
 * gavel_common.h - what the mechanisms of gavel.h stand on: who is there, what there is,
 * and asking the policy.  For gavel*.c.
 */
#pragma once

#include "model/event.h"
#include "policy/gavel/gavel.h"
#include "policy/shared/fifo_queue.h"

struct gavel_released;
struct gavel_rounds;
struct estimate;
struct node_set;

/*
 * A mechanism: how shares become rounds.  Ours is gavel_round.c; that of the published
 * system, gavel_released*.c.
 */
struct gavel_mechanism {
    bool by_name; /* columns are in order of the types' names */
    bool replays; /* can carry out recorded shares */

    int (*init)(struct gavel_common *common, const struct view *view, struct arena *run,
                struct error *err);

    /* Something happened to a job that asks for accelerators. */
    void (*observe)(struct gavel_common *common, const struct view *view,
                    const struct event *event);

    int (*decide)(struct gavel_common *common, const struct view *view,
                  struct plan *plan, struct arena *scratch, struct error *err);

    /* Optional.  It takes no part from now on. */
    void (*leave)(struct gavel_common *common, const struct view *view, job_id job);

    /* Optional. GPUs may be free now that none of our jobs has left. */
    void (*room)(struct gavel_common *common);

    /* Optional.  What a job that waits is due; false: nothing of when a round begins. */
    bool (*explain)(const struct gavel_common *common, const struct view *view,
                    job_id job, struct reasons *reasons);

    /* Optional.  Give back what is not in the run's memory. */
    void (*fini)(struct gavel_common *common);
};

extern const struct gavel_mechanism gavel_mechanism_rounds;
extern const struct gavel_mechanism gavel_mechanism_released;

#define GAVEL_NONE UINT32_MAX /* no column */

/* A job's pages, by slot. */
struct gavel_entry {
    uint64_t ticket; /* in order of arrival; 0: not on the roll */
    uint64_t number; /* jobs that were submitted before it */
    double gang, weight;
    const struct node_set *set; /* nodes it may use; NULL: any */
    double alone_s;             /* what it has done would have taken so long alone */
    double alone_done;          /* steps that are counted in it */
    double alone_rate;          /* since then */
};

struct gavel_common {
    struct gavel_policy *gavel;
    void *self; /* the policy's */

    /* what there is; columns are types that the cluster has accelerators of */
    uint32_t type_count;
    uint32_t types[TYPES_MAX];     /* [column] number in the cluster */
    uint32_t column_of[TYPES_MAX]; /* and back */
    double capacity[TYPES_MAX];    /* [column] on nodes that are up */
    double offered[TYPES_MAX];     /* of them, what shares are made of */
    bool *up;                      /* by node */
    uint32_t fill[TYPES_MAX];      /* columns in the order in which types are filled */

    /* who is there */
    job_id *jobs; /* in order of arrival */
    uint32_t job_count;
    struct gavel_entry *entries; /* by slot */
    double *rates;               /* [slot][column], true ones */
    uint64_t ticket_next, seen;
    struct fifo_queue waiting_cpu_only;
    bool changed; /* shares are to be made again */

    /* the call's arrays */
    double *count, *gang, *weight, *rate, *steps, *done, *age_s, *alone_s, *left_s;
    double *x;
    struct programme_pair *pairs;
    double *pair_rate;
    uint32_t pair_max;
    uint32_t *pair_of; /* [job of the call] see gavel_pair() */

    uint32_t set_jobs; /* who may use some nodes only */

    struct estimate *estimate; /* rates of pairs are estimated; NULL: they are known */
    uint64_t seed;
    const struct gavel_mechanism *mechanism; /* and its own state, of one of them */
    struct gavel_released *released;
    struct gavel_rounds *rounds;
};

static inline double *gavel_rates(const struct gavel_common *common, job_id job)
{
    return &common->rates[(size_t)job * common->type_count];
}

static inline const struct gavel_entry *gavel_entry(const struct gavel_common *common,
                                                    job_id job)
{
    return &common->entries[job];
}

/* Put a job on the roll, at its end; take it off.  Neither minds a second time. */
void gavel_enroll(struct gavel_common *common, const struct view *view, job_id job);
void gavel_strike(struct gavel_common *common, job_id job);

/* What a mechanism knows better than the view. */
struct gavel_times {
    double now_s;
    const double *left; /* [slot] steps left; NULL: ask the view */
    bool unfit; /* rates also on types too small for the gang, as they are now */
};

/* The jobs that the policy is asked about, and for how many each of them stands. */
struct gavel_rows {
    const job_id *jobs;
    uint32_t count;
    const double *members; /* NULL: 1 */
};

/*
 * Fill in a call for these; pairs, and room for their shares, are the caller's to add.
 * Lives until the next.
 */
void gavel_prepare(struct gavel_common *common, const struct view *view,
                   const struct gavel_times *times, const struct gavel_rows *rows,
                   struct arena *scratch, struct gavel_call *ret_call);

/* Put a pair at the end of the call's list; its place, or UINT32_MAX if that is full. */
uint32_t gavel_add_pair(struct gavel_call *call, uint32_t first, uint32_t second,
                        double rates[][2]);

/*
 * Preempted now it would lose what it has done, or has done hardly anything for what
 * its start and its checkpoint cost: with short rounds and dear preemptions no job
 * would make progress.
 */
bool gavel_is_spared(const struct gavel_common *common, const struct view *view,
                     const struct job *job);

/* Rounds by which another job must be owed more for this one to be stopped; 0: no host. */
double gavel_lead(const struct gavel_common *common, const struct view *view,
                  job_id job);

/* It is there from now on: submitted, let go or found, and not held. */
static inline bool gavel_comes(const struct view *view, const struct event *event)
{
    return (event->kind == EVENT_SUBMITTED || event->kind == EVENT_RELEASED ||
            event->kind == EVENT_ADOPTED) &&
           view->jobs[event->job].state != JOB_HELD;
}

/* The column of the seats it has or is promised, or GAVEL_NONE. */
uint32_t gavel_column_now(const struct gavel_common *common, const struct view *view,
                          const struct job *job);

/* Where it runs already ('now'), else where it runs fastest, of the types with room. */
uint32_t gavel_spare_column(const struct gavel_common *common, job_id job, uint32_t now,
                            const double *room);

/* No type has room. */
static inline bool gavel_is_full(const struct gavel_common *common, const double *room)
{
    for (uint32_t c = 0; c < common->type_count; c++)
        if (room[c] > 0)
            return false;
    return true;
}

/* --- rates of two that share, as the policy knows them (gavel.c) --------------------- */

/* What a plan refuses tells that two do not get on. */
void gavel_pairs_refused(struct gavel_common *common, const struct view *view, job_id a,
                         job_id b, uint32_t column);

/* [column][2] steps per second, 0: not there; false if they can nowhere. */
bool gavel_pair_rates(struct gavel_common *common, const struct view *view, job_id a,
                      job_id b, double rates[][2]);
