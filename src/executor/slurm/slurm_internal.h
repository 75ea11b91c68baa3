/*
 * slurm_internal.h - what is kept of every job and node that Slurm reports, for the
 * files of this executor: slurm.c (orders and observations), slurm_drive.c (the next request),
 * slurm_newcomers.c (jobs not known yet), slurm_room.c (the owners of GPUs).
 */
#pragma once

#include <uv.h>

#include "base/map.h"
#include "base/units.h"
#include "executor/slurm/slurm.h"
#include "model/event.h"

struct buf;
struct slurm_link;

/* Where a job stands in Slurm. */
enum stands {
    STANDS_PENDING,
    STANDS_RUNNING, /* or suspended: its GPUs are its own */
    STANDS_ENDED,
};

/* What we want of it. */
enum wish {
    WISH_NONE,  /* it is not ours, or no longer, or not yet */
    WISH_WAIT,  /* held, until it is its turn */
    WISH_RUN,   /* on the nodes of its lease */
    WISH_LEAVE, /* saved, and back to the queue */
    WISH_END,   /* gone */
};

/* A lease of ours, kept. */
struct hold {
    uint32_t attempt;
    struct seat *seats;
    uint32_t count;
    job_id *after; /* with what generation they have */
    uint32_t *after_generation;
    uint32_t after_count;
    uint64_t steps_max;
};

struct slurm_entry {
    struct slurm *slurm;
    struct slurm_entry *prev, *next; /* of those that are under way */

    /* as Slurm says */
    uint64_t id;
    bool seen;       /* since berth-slurm was started */
    bool changed;    /* since something was asked for */
    bool sure;       /* nothing was asked for since Slurm was looked at */
    bool identified; /* the next two are so */
    uint32_t uid;
    int64_t submit_s;  /* of its first submission; 0: not known */
    struct json *heir; /* another job that has its number now: Slurm forgot us */
    int64_t task; /* the array's number is its own: so it has to be named; -1: not */
    enum stands stands;
    bool outside;   /* held in Slurm by a dependency or its owner */
    bool gate_told; /* what it waits for, since berthd was started */
    uint32_t restarts;
    int exit_code, signal;
    bool held, completing, requeue, batch, dependent, parked;
    bool active;    /* it is under way */
    bool adopting;  /* its seats are not in the engine's books yet */
    bool own_steps; /* it says how far it is */
    char state[24], reason[64];
    node_id *nodes; /* it holds now */
    uint64_t *gpus; /* of each: Slurm's numbers, as bits */
    uint32_t node_count;

    /* a newcomer */
    uint32_t tasks_split; /* of 'tasks': asked for */
    char *tasks;          /* of an array that have no record of their own */
    struct json *news;    /* what was said of it, until it has arrived */
    char *script;
    bool asked_script;
    bool left_alone;
    bool arriving; /* the engine has been told of it */
    bool let_go;   /* Slurm is to start it, once its hold is lifted */
    bool reused;   /* its number was that of another job before */
    bool unsaid;   /* 'why' is to stand in its comment */

    /* as we want it */
    enum wish wish;
    job_id slot; /* JOB_NONE: not in the engine's books */
    uint32_t generation;
    struct hold now, then; /* its lease; the one after it has left */
    bool told_started, loaded, leased;
    bool released;          /* we have asked for its start */
    bool guarded;           /* it would come back held */
    bool signalled;         /* and Slurm has passed it on */
    bool unheard;           /* there was no process to be signalled */
    bool evicting;          /* its requeue has been asked for, or its end */
    bool died;              /* it ended by the signal: what it did is not kept */
    bool reviving;          /* to be put back has been asked for */
    bool revived;           /* or that was refused for good */
    bool by_itself;         /* it leaves without having been told */
    uint32_t left_count;    /* of 'left' */
    uint32_t fruitless;     /* starts in a row that came to nothing */
    uint32_t restarts_then; /* when we asked for its start */
    int64_t started_ns, loaded_at_ns;
    int64_t released_ns; /* or when the last of those before it left */
    int64_t evict_ns;    /* when its grace is over, or it is asked again */
    int64_t left_ns;     /* its nodes */
    struct seat *left;   /* these */
    int64_t fence_ns;    /* not to start before: it may still run where it was */

    /* progress */
    double steps, steps_kept, saved, lease_end, rate_per_s, loss, total;
    int64_t reported_ns;

    /* asking */
    int64_t seq; /* of what it waits for; 0: nothing */
    const char *verb;
    int64_t not_before_ns; /* to ask again */
    int64_t due_ns;
    char start_reason[64]; /* why Slurm has not started it, before it was held again */
    char why[160];
};

struct slurm_host {
    char *features;
    uint32_t shards; /* of all its GPUs */
    uint64_t used;   /* Slurm's numbers, as bits */
    bool up, drain;
    bool seen; /* since berth-slurm was started */
    bool down_told;
    uint64_t foreign_told; /* our bits */
    uint32_t foreign_seen; /* how many, at the last look */
    int64_t foreign_ns;    /* since when */
    char reason[120];      /* Slurm's reason for its state */
};

struct slurm {
    struct slurm_setup setup;
    struct slurm_link *link;
    uv_timer_t timer;
    int64_t timer_ns;
    int64_t look_ns; /* at the nodes again */
    int64_t poke_ns; /* Slurm, for those that depend on others */
    int64_t born_ns; /* when it was first synced; 0: not yet */
    bool closing, synced, outgrown;
    bool nodes_changed; /* to be looked at */
    char trouble[200];

    struct slurm_entry **entries;
    uint32_t entry_count, entry_room;
    struct map by_id;
    struct slurm_entry **slots; /* by the engine's slot */
    struct slurm_entry *first;  /* under way */
    uint32_t active_count;
    struct map by_seq; /* to a place in 'entries' */
    int64_t seq_last;

    struct slurm_host *hosts; /* by node */
    uint32_t host_count;
    struct map host_by_name; /* hash to node */
};

/* slurm.c */
int64_t slurm_now(const struct slurm *slurm);
void slurm_set_timer(struct slurm *slurm, int64_t at_ns);
void slurm_poke_soon(struct slurm *slurm);
void slurm_set_active(struct slurm_entry *entry, bool active);
void slurm_due(struct slurm_entry *entry, int64_t at_ns);
static inline struct slurm_entry *slurm_at(const struct slurm *slurm, job_id slot)
{
    return slot == JOB_NONE ? NULL : slurm->slots[slot];
}
struct slurm_entry *slurm_find(const struct slurm *slurm, uint64_t id);

/* The job that shares its GPU in the books, or is to share it; NULL: none does. */
static inline struct slurm_entry *slurm_partner(const struct slurm_entry *entry)
{
    const struct slurm *slurm = entry->slurm;
    return entry->slot == JOB_NONE
               ? NULL
               : slurm_at(slurm, slurm->setup.view->jobs[entry->slot].partner);
}

void slurm_take_over(struct slurm_entry *entry); /* its heir does */

/* It stays held, and says why: its owner can change it or cancel it. */
void slurm_give_up(struct slurm_entry *entry, const char *why);

/* slurm_newcomers.c: a job that is not known yet. */
void slurm_meet(struct slurm_entry *entry);

/* slurm_drive.c */
void slurm_drive(struct slurm_entry *entry);
void slurm_done(struct slurm_entry *entry, const struct json *done);
void slurm_unasked(struct slurm_entry *entry);
bool slurm_has_signal(const struct slurm_entry *entry);

#define AGAIN_NS (NS_PER_S / 4)  /* after a refusal that may pass */
#define LATER_NS (10 * NS_PER_S) /* after another one */

/* To the engine, of the attempt in its seats. */
struct event *slurm_emit(struct slurm *slurm, enum event_kind kind);
struct event *slurm_tell(struct slurm_entry *entry, enum event_kind kind);
double slurm_steps_now(const struct slurm_entry *entry);
void slurm_tell_loaded(struct slurm_entry *entry);
void slurm_check_lease(struct slurm_entry *entry);

/* To Slurm; the entry waits for the answer.  'more' adds what the verb needs. */
typedef void slurm_more(struct buf *line, const struct slurm_entry *entry);
void slurm_ask(struct slurm_entry *entry, const char *verb, slurm_more *more);
void slurm_ask_as(struct slurm_entry *entry, const char *verb, const char *job,
                  slurm_more *more);

/* slurm_room.c: the owners of GPUs. */
/* 'sure': GPUs held by no job we know count as foreign from this moment on. */
void slurm_look_at_nodes(struct slurm *slurm, bool sure);

/* It has ended, and has not left its nodes yet. */
static inline bool slurm_is_leaving(const struct slurm_entry *entry)
{
    return entry->stands == STANDS_ENDED && entry->completing;
}

/*
 * Which shards of which GPU a job gets is Slurm's choice: whether it shares its GPU with the
 * job that the books name, and with no other that we know.  Only then do its reports say how
 * fast it is alone, or beside that one.
 */
bool slurm_is_as_booked(const struct slurm_entry *entry);

/* A job is still vacating a node that this one is to start on. */
bool slurm_tidies_up(const struct slurm_entry *entry);

/*
 * It runs although the engine has not said so: into its books, as this attempt.  False: there is
 * no room.
 */
bool slurm_adopt(struct slurm_entry *entry, uint32_t attempt);

/* Whether there would be, if it left the seats it has been given. */
bool slurm_has_room(struct slurm_entry *entry);
