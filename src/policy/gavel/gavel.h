/*
 * gavel.h - shares of time, carried out in rounds: what the gavel policies have in common.
 *
 * Such a policy answers one question, how much of which type each job is due; its file
 * has that and nothing else.  Its private state begins with a struct gavel_policy, and its
 * table names gavel_observe and gavel_decide, which see to the rest: when to ask again,
 * who runs in the next round, and where.
 *
 *     struct gavel_las { struct gavel_policy gavel; struct solver *solver; };
 *
 *     static int las_init(void *self, view, seed, run, err)
 *     {
 *         return gavel_init(self, &las_rule, view, seed, run, err);
 *     }
 *
 * Two mechanisms carry shares out (gavel_common.h): ours (gavel_round.c), and with
 * compat=released that of the published system with all its rules (gavel_released.c).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/param.h"
#include "policy/shared/cost_test.h"
#include "policy/policy.h"
#include "policy/shared/instance_rule.h"
#include "solve/solve.h"

struct gavel_common; /* the mechanism's own state */

/* The question, and where the answer goes. */
struct gavel_call {
    const struct view *view;
    /* active jobs in order of arrival; or classes of equal jobs, one of each */
    uint32_t job_count;
    const job_id *jobs;
    const double *count; /* [job] equal jobs that it stands for, itself too */
    double total;        /* of them all */

    /*
     * Columns are the types that the cluster has accelerators of, in the order of the
     * mechanism: by name, or that of the cluster.
     */
    uint32_t type_count;
    const uint32_t *types;  /* [type] its number in the cluster */
    const double *capacity; /* [type] accelerators there are */
    uint32_t type_first;    /* the one that is filled first */

    const double *gang;    /* [job] */
    const double *weight;  /* [job] > 0 */
    const double *rate;    /* [job][type] steps per second; 0: cannot run there */
    const double *steps;   /* [job] left, > 0; a guess where the work is unknown */
    const double *done;    /* [job] steps made */
    const double *age_s;   /* [job] since it came */
    const double *alone_s; /* [job] what is done would have taken alone; see rule */
    const double *left_s;  /* [job] until its deadline; INFINITY: it has none */

    /* with sharing: the pairs that may share; in order of second, then first */
    bool listed; /* all of them are here: gavel_pair() adds none */
    uint32_t pair_count;
    const struct programme_pair *pairs; /* places in 'jobs' */
    const double *pair_rate;            /* [pair][type][2] */

    double *x;    /* [job, then pair][type]: zeroed, to be filled */
    double level; /* the least that any job has, in GPUs per weight, or of its
                     demand(); 0: it is unknown */
    struct arena *scratch;
    struct gavel_common *common; /* for gavel_pair() */
};

/*
 * The place of two jobs (first < second, of equal gang) among the pairs.  A rule that
 * pairs jobs itself finds none there and adds those it wants by this; UINT32_MAX if the
 * two must not share, or there are too many pairs.
 */
uint32_t gavel_pair(struct gavel_call *call, uint32_t first, uint32_t second);

/*
 * What a job is to get, for shares that are made by classes of jobs that are alike: at
 * least need z / (1 - ahead z) steps per second with z as large as can be (pairs.h), or
 * what makes the sum of rates over prices, or the sum of rates over that of prices paid,
 * as large as can be, 'floor' at least.
 */
enum gavel_aim { AIM_LEVEL, AIM_FILL, AIM_SUM, AIM_RATIO };

struct gavel_demand {
    enum gavel_aim aim;      /* the same for all */
    double need, ahead;      /* AIM_LEVEL, AIM_FILL (ahead: 0) */
    double price[TYPES_MAX]; /* AIM_SUM, AIM_RATIO: [type] */
    double floor;            /* AIM_SUM, AIM_RATIO */
};

struct gavel_rule {
    /* Fill call->x.  On failure the shares stay as they were. */
    int (*shares)(void *self, struct gavel_call *call, struct error *err);

    /* Optional: the programme whose solution the shares are (gavel_lp.h). */
    struct programme (*programme)(void *self, const struct gavel_call *call);

    /* Optional: what the published system answers instead, where it has no programme. */
    int (*published)(void *self, struct gavel_call *call, struct error *err);

    /* Optional: the demand of a job, so that sharing scales (gavel_shares.c). */
    void (*demand)(void *self, const struct gavel_call *call, uint32_t at,
                   struct gavel_demand *ret_demand);

    /*
     * Optional, where no more jobs can get a share than fit: the order in which waiting
     * jobs of equal demand get one, the smallest first.  Such a rule is asked about the
     * jobs that do not wait, and of those that wait with equal demands, about the first
     * that fit and 'waiting_min' at least.
     */
    double (*key)(const struct gavel_call *call, uint32_t at);
    uint32_t waiting_min;

    bool by_class; /* equal jobs get equal shares, whatever each has done: see count */
    bool deadlines_apart;      /* but who has a deadline is not equal to others */
    enum instance_blind blind; /* aware=false */
    double patience_s;         /* ours: shares are not made again so soon */
    bool by_entity;            /* demands depend on the job's entity */
    bool in_order; /* shares go to jobs in order of arrival until one does not fit */
    bool strict;   /* who has no share does not run, even where there is room */
    bool pairs_itself; /* no pairs are listed, it adds those it wants */
    bool alone; /* wants call->alone_s: done/rate under an equal split, added up */
};

enum gavel_compat { COMPAT_NONE, COMPAT_RELEASED };
extern const char *const gavel_compats[];

/* First come, first served in the published system; for the rule of gavel_fifo.c. */
int gavel_published_fifo(void *self, struct gavel_call *call, struct error *err);

/* Rates of jobs that share: as they are, or from a few trials (predict/estimate.h). */
enum gavel_known { KNOWN_TRUE, KNOWN_ESTIMATED };
extern const char *const gavel_knowns[];

/* Who gets what the latest job leaves: see gavel_ftf.c. */
enum gavel_spare { SPARE_CENTRE, SPARE_EVEN };

/*
 * A policy around the rounds, which has layers of its own (policy/berth/objective.c): it says
 * which jobs they are about, what GPUs others have, and what it costs to stop a job.
 */
struct gavel_host {
    void *self;
    const uint32_t *withheld; /* [type of the cluster] GPUs of jobs that take no part */
    const uint32_t *lent;     /* the same: GPUs that jobs have beyond their gang */
    const struct bits *avoid; /* nodes that are kept for jobs that take no part */

    bool (*takes_part)(const void *self, job_id job);

    /* Seconds by which another job must be owed more for this one to be stopped. */
    double (*lead_s)(const void *self, const struct view *view, job_id job);

    /* GPU-seconds that stopping it wastes, for explain(). */
    double (*price_gpu_s)(const void *self, const struct view *view, job_id job);

    /* It has run for too short a time to be stopped again. */
    bool (*spares)(const void *self, const struct view *view, job_id job);

    /* To move it into free room of a faster type is worth the stop. */
    bool (*move_pays)(const void *self, const struct view *view, job_id job,
                      uint32_t type);

    /* Have jobs give back what they were lent, and grant it to this one. */
    bool (*make_room)(void *self, const struct view *view, struct plan *plan,
                      job_id job);
};

/* What the private state of every such policy begins with. */
struct gavel_policy {
    const struct gavel_rule *rule;
    struct gavel_common *common;
    const struct gavel_host *host; /* NULL: the policy stands alone */

    /* settings */
    bool aware;        /* rates of the types are known and used */
    bool sharing;      /* two jobs may share accelerators */
    uint32_t known;    /* enum gavel_known */
    bool global_queue; /* all types are filled from one order */
    uint32_t compat;   /* enum gavel_compat: which mechanism */
    uint32_t spare;    /* enum gavel_spare; compat=released */
    int64_t round_ns;
    struct field_buffer allocations; /* recorded shares, a file; "": the policy's own */
    struct cost_test cost_test;
};

/*
 * Rows for a policy's table of settings.  A policy that cannot be blind, or never shares,
 * leaves out the row and sets the field before gavel_init().
 */
#define GAVEL_PARAM_AWARE \
    { \
        "aware", FIELD_FLAG, offsetof(struct gavel_policy, aware), "true", NULL, \
            "knows how fast each job runs on each type" \
    }
#define GAVEL_PARAM_SHARING \
    { "sharing", FIELD_FLAG, offsetof(struct gavel_policy, sharing), \
      "false",   NULL,       "two jobs may share accelerators" }, \
    { \
        "rates", FIELD_CHOICE, offsetof(struct gavel_policy, known), "true", NULL, \
            "of jobs that share: as they are, or from a few trials", 0, 0, \
            gavel_knowns \
    }
#define GAVEL_PARAMS \
    { "round", FIELD_TIME, offsetof(struct gavel_policy, round_ns), \
      "360s",  NULL,       "length of a round", \
      1,       86400 }, \
        { "global_queue", FIELD_FLAG, offsetof(struct gavel_policy, global_queue), \
          "false",        NULL,       "fill all types from one order, not type by type" }, \
        { "allocations", \
          FIELD_BUFFER, \
          offsetof(struct gavel_policy, allocations), \
          "", \
          NULL, \
          "file of recorded shares that replace the policy's own" }, \
        COST_TEST_PARAM(struct gavel_policy, cost_test.choice), \
    { \
        "compat", FIELD_CHOICE, offsetof(struct gavel_policy, compat), "none", NULL, \
            "whose rules the rounds follow", 0, 0, gavel_compats \
    }

/* Tables of settings: GAVEL_PARAMS alone, and with the other rows. */
extern const struct field gavel_params[];
extern const struct field gavel_sharing_params[];

int gavel_init(struct gavel_policy *gavel, const struct gavel_rule *rule,
               const struct view *view, uint64_t seed, struct arena *run,
               struct error *err);

/* Functions of every such policy; GAVEL_FUNCTIONS are their members of its table. */
void gavel_observe(void *self, const struct view *view, const struct event *event);
void gavel_explain(const void *self, const struct view *view, job_id job,
                   struct reasons *reasons);
int gavel_decide(void *self, const struct view *view, struct plan *plan,
                 struct arena *scratch, struct error *err);
#define GAVEL_FUNCTIONS \
    .observe = gavel_observe, .decide = gavel_decide, .explain = gavel_explain

void gavel_fini(void *self);

/* For a host: GPUs that took no part may be free, or jobs wait whose GPUs others got. */
void gavel_look_again(struct gavel_policy *gavel);
