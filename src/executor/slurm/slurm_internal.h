/*
 * slurm_internal.h - what is kept of every job and node that Slurm reports, for the files of
 * this executor: slurm.c (orders), slurm_records.c (what berth-slurm reports), slurm_action.c
 * (the state machine), slurm_drive.c (its actions), slurm_reports.c (events for the engine),
 * slurm_requests.c (requests to Slurm), slurm_submission.c (jobs that are new) and
 * slurm_inventory.c (the owners of GPUs).
 */
#pragma once

#include <uv.h>

#include "base/map.h"
#include "base/units.h"
#include "executor/slurm/slurm.h"
#include "executor/slurm/slurm_action.h"
#include "model/event.h"

struct slurm_link;

/* A lease of ours, kept. */
struct slurm_lease {
    uint32_t attempt;
    struct seat *seats;
    uint32_t count;
    job_id *after; /* with what generation they have */
    uint32_t *after_generation;
    uint32_t after_count;
    uint64_t steps_max;
    bool
        unbooked; /* of a job that was adopted: the engine's books do not have it yet */
};

/* How a job left that was running: whether it keeps what it did. */
enum slurm_departure {
    DEPARTURE_KILLED,    /* it was not asked to save anything */
    DEPARTURE_SIGNALLED, /* it was, and Slurm passed that on  */
    DEPARTURE_BY_ITSELF,
    DEPARTURE_DIED, /* by the signal: what it did is not kept */
};

/* One attempt: all of it begins anew with the next lease. */
struct slurm_attempt {
    enum slurm_progress progress;
    enum slurm_departure departure;
    enum slurm_revival revival;
    bool guarded;        /* if it is requeued it comes back held */
    uint32_t restarts;   /* of the job, when its start was asked for */
    double lease_end;    /* steps; INFINITY: it is open, or its end was reported */
    int64_t released_ns; /* or when the last of those before it left */
    int64_t started_ns, loaded_at_ns;
    char start_reason[64]; /* why Slurm has not started it, before it was held again */
};

/* What is known of a job in Slurm since something was asked for it. */
enum slurm_news {
    NEWS_NONE,
    NEWS_CHANGED,
    NEWS_POLLED, /* Slurm was polled, and nothing was asked for after that */
};

/* What the engine was told of that which the job waits for in Slurm. */
enum slurm_gate {
    GATE_UNKNOWN,
    GATE_OPEN,
    GATE_CLOSED,
};

#define SUBMIT_UNKNOWN (-1)

struct slurm_entry {
    struct slurm *slurm;
    struct slurm_entry *prev, *next; /* of those that are under way */
    bool active;                     /* it is one of them */

    /* as Slurm says */
    uint64_t id;
    uint32_t seen_in; /* the connection that reported it last */
    uint32_t uid;
    int64_t submit_s; /* of its first submission; 0: not told; or SUBMIT_UNKNOWN */
    int64_t task; /* the array's number is its own: so it has to be named; -1: not */
    enum bridge_state state;
    bool held, completing, requeue, batch;
    bool dependent; /* it waits for other jobs */
    bool parked;    /* and we have asked Slurm to look at them */
    uint32_t restarts;
    int exit_code, signal;
    char reason[64];
    node_id *nodes; /* it holds now */
    uint64_t *gpus; /* of each: Slurm's numbers, as bits */
    uint32_t node_count;
    struct json
        *reissued; /* another job that has its number now: Slurm forgot this one */

    /* until it is submitted */
    struct json *record;  /* what was last said of it */
    char *tasks;          /* of an array that have no record of their own */
    uint32_t tasks_split; /* of these: asked for */
    char *script;
    bool reused; /* its number was that of another job before */

    /* as we want it */
    enum slurm_stage stage;
    enum slurm_news news;
    enum slurm_gate gate;
    job_id slot; /* JOB_NONE: not in the engine's books */
    uint32_t generation;
    struct slurm_lease now, then; /* its lease; the one after it has left */
    struct slurm_attempt run;
    int64_t evict_ns;   /* when its grace is over, or it is asked again */
    uint32_t fruitless; /* starts in a row that came to nothing */
    int64_t fence_ns;   /* not to start before: it may still run where it was */
    int64_t left_ns;    /* its nodes */
    struct seat *left;  /* these */
    uint32_t left_count;

    /* progress */
    double steps, steps_kept, saved, rate_per_s, loss, total;
    int64_t reported_ns; /* 0: it does not say how far it is */

    /* the request under way */
    int64_t seq; /* 0: none */
    enum bridge_verb verb;
    int64_t not_before_ns; /* to ask again */
    int64_t due_ns;        /* to look at it again */
    char why[160];
    bool comment_due; /* 'why' is to stand in its comment */
};

struct slurm_host {
    char *features;
    uint32_t shards;  /* of all its GPUs */
    uint64_t used;    /* Slurm's numbers, as bits */
    uint32_t seen_in; /* the connection that reported it last */
    bool up, drain;
    bool down_told;
    uint64_t foreign_told; /* our bits */
    uint32_t foreign_seen; /* how many, at the last look */
    int64_t foreign_ns;    /* since when */
    char reason[120];      /* Slurm's reason for its state */
};

struct slurm {
    struct slurm_setup setup;
    struct slurm_link *link;
    struct slurm_heartbeat *heartbeat; /* NULL: nobody is to see one */
    uv_timer_t timer;
    int64_t timer_ns;
    int64_t look_ns;     /* at the nodes again */
    int64_t poke_ns;     /* Slurm, for those that depend on others */
    int64_t born_ns;     /* when it was first synced; 0: not yet */
    uint32_t connection; /* number of the connection to Slurm, from 1 */
    bool closing, synced, outgrown;
    bool nodes_changed; /* to be looked at */
    bool types_mixed;   /* there are nodes with several types of GPU */
    char trouble[200];

    struct slurm_entry **entries;
    uint32_t entry_count, entry_room;
    struct map by_id;
    struct slurm_entry **slots; /* by the engine's slot */
    struct slurm_entry *first;  /* under way */
    struct map by_seq;          /* to the number of its job */
    int64_t seq_last;

    struct slurm_host *hosts; /* by node */
    uint32_t host_count;
    struct map host_by_name; /* hash to node */
};

#define AGAIN_NS (NS_PER_S / 4)  /* after a refusal that may pass */
#define LATER_NS (10 * NS_PER_S) /* after another one */

/* --- slurm.c: entries, and time ------------------------------------------------------ */

int64_t slurm_now(const struct slurm *slurm);
void slurm_set_timer(struct slurm *slurm, int64_t at_ns);
void slurm_poke_soon(struct slurm *slurm);
void slurm_set_active(struct slurm_entry *entry, bool active);
void slurm_due(struct slurm_entry *entry, int64_t at_ns);
struct slurm_entry *slurm_find(const struct slurm *slurm, uint64_t id);
struct slurm_entry *slurm_add(struct slurm *slurm, uint64_t id);
void slurm_forget(struct slurm_entry *entry);
void slurm_free_lease(struct slurm_lease *lease);

/* It stays held, and says why: its owner can change it or cancel it. */
void slurm_give_up(struct slurm_entry *entry, const char *why);

static inline struct slurm_entry *slurm_at(const struct slurm *slurm, job_id slot)
{
    return slot == JOB_NONE ? NULL : slurm->slots[slot];
}

/* The job that shares its GPU in the books, or is to share it; NULL: none does. */
static inline struct slurm_entry *slurm_partner(const struct slurm_entry *entry)
{
    const struct slurm *slurm = entry->slurm;
    return entry->slot == JOB_NONE
               ? NULL
               : slurm_at(slurm, slurm->setup.view->jobs[entry->slot].partner);
}

static inline bool slurm_is_seen(const struct slurm_entry *entry)
{
    return entry->seen_in == entry->slurm->connection;
}

static inline bool slurm_is_running(const struct slurm_entry *entry)
{
    return bridge_state_runs(entry->state);
}

static inline bool slurm_has_ended(const struct slurm_entry *entry)
{
    return bridge_state_has_ended(entry->state);
}

/* It has ended, and has not left its nodes yet. */
static inline bool slurm_is_leaving(const struct slurm_entry *entry)
{
    return slurm_has_ended(entry) && entry->completing;
}

/* The engine knows that its attempt has started. */
static inline bool slurm_has_begun(const struct slurm_entry *entry)
{
    return entry->run.progress >= PROGRESS_LOADING;
}

/* --- slurm_records.c: what berth-slurm reports ------------------------------------------ */

void slurm_records_line(void *context, const struct json *line);
void slurm_records_broken(void *context); /* berth-slurm has ended */
void slurm_records_index_nodes(struct slurm *slurm);
void slurm_records_take_over(struct slurm_entry *entry); /* by 'reissued' */

/* --- slurm_drive.c: one action after the other -------------------------------------------- */

void slurm_drive(struct slurm_entry *entry);

/* Its GPUs are free, or those of its next lease. */
void slurm_drive_next_lease(struct slurm_entry *entry);

/* A start that Slurm did not make, or refused. */
void slurm_drive_start_failed(struct slurm_entry *entry, const char *why);

/* --- slurm_reports.c: events for the engine ------------------------------------------------ */

struct event *slurm_report(struct slurm *slurm, enum event_kind kind);
struct event *slurm_report_job(struct slurm_entry *entry, enum event_kind kind);
void slurm_report_started(struct slurm_entry *entry);
void slurm_report_loaded(struct slurm_entry *entry);
void slurm_report_lease(struct slurm_entry *entry); /* its end, if it has come */

/* How it ended, or left; it keeps what it has reached only if it has saved it. */
void slurm_report_end(struct slurm_entry *entry, enum event_kind kind, bool kept);

/* An attempt came to nothing before it began, or with its node. */
void slurm_report_lost(struct slurm_entry *entry, const char *why);
double slurm_report_steps(const struct slurm_entry *entry); /* now */

/* --- slurm_requests.c: requests to Slurm, and their answers -------------------------------- */

void slurm_request(struct slurm_entry *entry, enum bridge_verb verb);
void slurm_request_task(struct slurm_entry *entry, uint32_t task); /* to be held */
void slurm_request_done(struct slurm_entry *entry, const struct json *done);
void slurm_request_lost(
    struct slurm_entry *entry); /* it is not known what came of it */
bool slurm_request_has_signal(const struct slurm_entry *entry);

/* --- slurm_submission.c: jobs that are new ------------------------------------------------- */

void slurm_submission_split(struct slurm_entry *entry);
void slurm_submission_make(struct slurm_entry *entry);

/* --- slurm_inventory.c: the owners of GPUs -------------------------------------------------- */

/* 'sure': GPUs held by no job we know count as foreign from this moment on. */
void slurm_inventory_take(struct slurm *slurm, bool sure);

/*
 * Which shards of which GPU a job gets is Slurm's choice: whether it shares its GPU with the
 * job that the books name, and with no other that we know.  Only then do its reports say how
 * fast it is alone, or beside that one.
 */
bool slurm_inventory_is_as_booked(const struct slurm_entry *entry);

/* A job is still vacating a node that this one is to start on. */
bool slurm_inventory_awaits(const struct slurm_entry *entry);

/*
 * It runs although the engine has not said so: into its books, as this attempt.  False: there is
 * no room.
 */
bool slurm_inventory_adopt(struct slurm_entry *entry, uint32_t attempt);

/* Whether there would be, if it left the seats it has been given. */
bool slurm_inventory_has_room(struct slurm_entry *entry);
