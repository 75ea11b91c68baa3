/* job.h - a training job as the scheduler sees it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"
#include "base/prefetch.h"
#include "model/learning.h"

struct node_set;

/* A slot in the state.  Slots are used again; a job's public id never is. */
typedef uint32_t job_id;
typedef uint32_t node_id;

#define JOB_NONE UINT32_MAX
#define NODE_NONE UINT32_MAX
#define KIND_NONE UINT32_MAX
#define TYPES_MAX 16 /* accelerator types in a cluster */

enum job_class {
    CLASS_BE, /* best effort: may be preempted for trial jobs          */
    CLASS_TE, /* trial and error: its user waits for it to start       */
};

enum job_state {
    JOB_FREE,     /* the slot is empty                                            */
    JOB_HELD,     /* waits for its owner to release it                            */
    JOB_WAITING,  /* waits for seats                                              */
    JOB_PLACED,   /* has a pending allocation: victims are stopping, or it starts */
    JOB_LOADING,  /* in its seats, not yet making steps                           */
    JOB_RUNNING,  /* making steps                                                 */
    JOB_IDLE,     /* its lease is done; keeps its seats until the next decision   */
    JOB_STOPPING, /* told to stop; keeps its seats until it has                   */
};

/* How the workers of a distributed job agree on a step. */
enum sync {
    SYNC_RING,   /* ring all-reduce                                      */
    SYNC_SERVER, /* a parameter server on one of its hosts, workers on the others */
};

/* How a job ended that has run on a real cluster, and who cancelled it. */
enum job_end { ENDED_UNKNOWN, ENDED_COMPLETED, ENDED_FAILED, ENDED_CANCELLED };
enum job_canceller {
    CANCELLED_BY_NONE,
    CANCELLED_BY_OWNER,
    CANCELLED_BY_ADMIN,
    CANCELLED_BY_DEPENDENCY, /* what it depended on ended otherwise */
};

/* Their names, ended by NULL. */
extern const char *const job_classes[];
extern const char *const job_syncs[];
extern const char *const job_ends[];
extern const char *const job_cancellers[];

/* What became of a job on the cluster that it was recorded on; a simulation ignores it. */
struct job_past {
    int64_t start_ns, end_ns; /* 0: never                              */
    enum job_end end;
    enum job_canceller cancelled_by;
    uint32_t attempts, preemptions;
    int64_t limit_ns;  /* longest run of an attempt; 0: none     */
    int64_t redone_ns; /* work that it lost and made again       */
    int64_t waited_ns; /* without GPUs; 0: not known             */
    uint64_t same_as;  /* first job with the same command; 0: none before it */
    uint32_t stops;    /* that its pause was measured at         */
};

/*
 * The description of a job as it is submitted: what a workload yields, a user writes and a
 * trace holds.  In a simulation it is also the truth, known to the simulated executor only:
 * policies see it with the errors asked for.
 */
struct job_spec {
    uint64_t id;      /* public, never used again; 0: give it the next one      */
    const char *name; /* texts are borrowed until the next job is read; or NULL */
    const char *user;
    const char *entity;   /* group for two-level sharing; or NULL                   */
    const char *kind;     /* row of the throughput table; NULL: 1 step = 1 s alone  */
    const char *program;  /* what it runs, to tell kinds apart; or NULL             */
    const char *types;    /* accelerator types allowed: "v100|p100"; NULL: any      */
    const char *nodelist; /* nodes that are among its own: "n2,n3"; or NULL       */
    const char *exclude;  /* nodes that never are; or NULL                        */
    const char *after;    /* simulated: waits until these jobs have ended, "12|15" */
    const char *within;   /* no nodes but these; NULL: any                        */
    int64_t submit_ns;
    enum job_class class;
    uint32_t gpus;               /* the gang; 0: CPU only                           */
    uint32_t gpus_min, gpus_max; /* elastic gangs; both 0: always 'gpus'            */
    uint32_t nodes;              /* exactly so many nodes; 0: as few as can be      */
    bool spread;                 /* may be spread over more nodes than needed       */
    uint32_t cpu_milli;          /* of the whole gang, shared out by GPUs           */
    uint32_t mem_mib;            /* of the whole gang                               */
    double steps;                /* work; 0: unknown                                */
    bool undeclared;             /* simulated: no policy is told its work           */
    double steps_declared;       /* simulated: what policies are told; 0: its work  */
    int64_t eligible_ns;         /* simulated: may not start before; 0: at once     */
    int64_t cancel_ns;           /* simulated: is cancelled then; 0: never          */
    int64_t grace_ns;            /* grace period: time to save before it is killed  */
    int64_t pause_ns;            /* time it takes to checkpoint                     */
    int64_t load_ns;             /* time to resume: from its start to its first step */
    int64_t ckpt_ns;             /* checkpoints by itself so often; 0: never        */
    bool keeps_nothing;          /* simulated: loses its work when it is stopped    */
    bool costs_told;             /* simulated: policies are told other costs:       */
    int64_t pause_told_ns,
        load_told_ns;        /* these, and nothing of what they turn out to be */
    double weight;           /* share relative to others; 0: as 1               */
    int64_t deadline_ns;     /* absolute; 0: none                               */
    double step_s;           /* a step alone, for jobs without a kind; 0: 1 s   */
    double fixed_s;          /* of step_s: not divided among more GPUs          */
    uint64_t bytes_per_step; /* gradients of a step; 0: uses no network         */
    enum sync sync;          /* how they are exchanged                          */
    double overlap;          /* share of computing beside communication         */
    bool may_send;           /* nothing is known of its traffic before it runs  */
    struct learning curve;   /* how its loss goes down; LEARNING_NONE: silent   */
    bool loses_work;         /* nothing says that it saves before it stops      */
    bool stays;              /* never preempted once it runs                    */
    bool shares;             /* may share its GPUs with another job, if that is asked */
    uint32_t gpu_mib;        /* memory that it needs of each GPU; 0: not said   */
    bool fails;              /* ends in failure when its work is done           */
    struct job_past past;
};

/* A job's share of one node; all its seats are its allocation. */
struct seat {
    node_id node;
    uint32_t cpu_milli;
    uint32_t mem_mib;
    uint32_t reserved;
    uint64_t gpus; /* which of the node's accelerators, as bits */
};

static inline uint32_t seat_gpu_count(const struct seat *seat)
{
    return bits_count(seat->gpus);
}

/* A row of seats in the state's pool. */
struct seat_row {
    uint32_t first;
    uint32_t count;
};

/*
 * A live job.  Progress is an anchor (time, steps) and a rate: between anchors steps
 * are a straight line.  Work and costs are what was declared, measured or estimated.
 *
 * What every start and every end of a job reads comes first, in JOB_HOT_BYTES: of a queue that
 * is longer than the caches hold, only that is fetched again.
 */
struct job {
    uint64_t id;
    uint32_t generation; /* of the slot: distinguishes jobs that used it */
    uint32_t attempt;    /* starts so far, less one; of the seats it holds         */
    enum job_state state;
    enum job_class class;
    uint32_t gpus, gpus_min, gpus_max; /* asked for; elastic where min < max */
    uint32_t nodes;
    uint32_t cpu_milli, mem_mib;
    uint32_t types; /* bits: types it may use and can run on */
    bool spread;
    bool spread_now;      /* in more nodes than needed               */
    bool leaving;         /* cancelled; ends once it has stopped */
    bool stays;           /* once it runs, until it ends */
    struct node_set *set; /* nodes it may use; NULL: any */

    /* seats */
    struct seat_row seats; /* held now                                       */
    struct seat_row next;  /* pending: while it stops or before it starts    */
    uint32_t gpus_now;     /* size of 'seats', or of 'next' while PLACED     */
    uint32_t type_now;
    job_id partner;        /* shares its GPUs, or JOB_NONE                   */
    job_id coming;         /* will share them when its partner has stopped   */
    job_id next_partner;   /* will share the GPUs it moves to                */
    uint32_t pending_from; /* first share of others that is pending for it   */
    uint32_t pending_to;   /* first share of its own pending for another job */
    uint32_t loss_ring;    /* history of its loss, or UINT32_MAX             */

    /* work */
    double steps_total; /* 0: unknown                                     */
    double steps;       /* at the anchor                                  */
    double rate_per_s;  /* steps per second since the anchor; 0: none     */
    int64_t anchor_ns;
    uint64_t steps_max;     /* of the lease; 0: open                          */
    uint32_t kind;          /* row of the throughput table, or KIND_NONE */
    uint32_t user;          /* who submitted it, by a number; 0: not known */
    double step_s;          /* computing time of a step, without a row for its kind */
    double fixed_s;         /* of step_s: the part that more GPUs do not shorten */
    double rate_best_per_s; /* at the size it asks for, on 'type_best'       */

    /* time */
    int64_t submit_ns;
    int64_t since_ns;       /* of the present state of having seats or not    */
    int64_t first_start_ns; /* -1: not yet                                 */
    int64_t waited_ns;      /* without seats, before 'since_ns'               */
    int64_t served_ns;      /* GPU-time in seats, before 'since_ns'           */
    int64_t deadline_ns;
    uint32_t preemptions;
    uint32_t learned; /* 1 + its kind in the learned rates (rate_table.h); 0: none */
    double pace;      /* its rates beside those learned of its kind           */

    /* what fewer events need */
    uint32_t failures;
    uint32_t type_best; /* the type it runs fastest on, at the size it asks for */
    uint32_t entity;    /* 0: none */
    uint32_t name;      /* hash of its name without numbers; 0: none   */
    bool loses_work;    /* when it is stopped: it did, or nothing says that it saves */
    bool paced;         /* its rate was declared, told or reported              */
    bool shares;        /* it said that it may share its GPUs                   */
    bool gpu_mib_known; /* from jobs of its kind: it did not say               */
    uint32_t gpu_mib;   /* memory that it needs of each; 0: not known          */
    double steps_saved; /* in the last checkpoint it reported; 0: none    */
    double loss;        /* last reported; NAN: none                       */
    double weight;
    int64_t recalled_ns; /* when it was told to stop                       */

    /* costs, as declared or measured */
    int64_t grace_ns, pause_ns, load_ns, ckpt_ns;

    /* network */
    uint64_t bytes_per_step;
    double overlap;
    double
        sends_per_s;   /* bytes that its hosts count; NAN: not counted yet            */
    double sent_bytes; /* counted so far                                              */
    enum sync sync;
    uint32_t level; /* of its packets: 0 goes first */

    struct learning curve; /* declared; LEARNING_NONE: none */
};

#define JOB_HOT_BYTES 256

/* This job is looked at soon. */
static inline void job_prefetch(const struct job *job)
{
    prefetch_bytes(job, JOB_HOT_BYTES);
}

static inline bool job_is_elastic(const struct job *job)
{
    return job->gpus_min < job->gpus_max;
}

/* It holds its seats, whether it makes steps or not. */
static inline bool job_holds_seats(const struct job *job)
{
    return job->state >= JOB_LOADING;
}

/* It holds its seats and was not told to stop. */
static inline bool job_runs(const struct job *job)
{
    return job->state >= JOB_LOADING && job->state <= JOB_IDLE;
}

/* It runs and is not about to move or change its size. */
static inline bool job_can_be_stopped(const struct job *job)
{
    return job_runs(job) && job->next.count == 0;
}

/* A policy may stop it. */
static inline bool job_is_preemptible(const struct job *job)
{
    return job_can_be_stopped(job) && !job->stays;
}

/* Steps done by 'now_ns'. */
static inline double job_steps(const struct job *job, int64_t now_ns)
{
    double steps = job->steps;
    if (job->state == JOB_RUNNING && now_ns > job->anchor_ns)
        steps += (double)(now_ns - job->anchor_ns) * 1e-9 * job->rate_per_s;
    return steps;
}

/* GPU-time in seats by 'now_ns'. */
static inline int64_t job_served_ns(const struct job *job, int64_t now_ns)
{
    int64_t served_ns = job->served_ns;
    if (job_holds_seats(job))
        served_ns += (now_ns - job->since_ns) * job->gpus_now;
    return served_ns;
}
