/*
 * daemon_internal.h - berthd's own state, for the files that are berthd: daemon.c (the loop),
 * life.c (the engine, from what is on disk), desk.c (what people ask for).
 */
#pragma once

#include <uv.h>

#include "api/request.h"
#include "base/arena.h"
#include "daemon/daemon.h"
#include "daemon/gates.h"
#include "daemon/machine.h"
#include "engine/engine.h"
#include "metrics/ledger.h"
#include "model/intake.h"
#include "model/outbox.h"
#include "model/throughput.h"

struct executor;
struct flow_policy;
struct notes;
struct routes;
struct sent;

/* What we know of a live job and no policy needs. */
struct resident {
    uint32_t uid;
    uint32_t retries;
    bool requeue;
    uint64_t array_id;
    bool limited;    /* its array is */
    double total;    /* steps it says it will make; 0: has not said */
    uint32_t losses; /* in a row, each soon after its start */
};

/* What berthd can drive: a kind of cluster, and the executor for it. */
struct backend {
    const struct executor *executor;
    int (*find_cluster)(struct daemon *daemon, struct error *err);
    int (*open)(struct daemon *daemon, struct error *err);
};
extern const struct backend backend_local, backend_slurm;

struct daemon {
    struct daemon_setup setup;
    uv_loop_t loop;
    uv_check_t check;
    uv_idle_t due;
    uv_timer_t wake, retry, foreign, prune;
    uv_signal_t signals[2];

    struct arena fixed; /* the machine */
    struct machine machine;
    struct throughput rates;

    struct store *store;
    struct http *http;
    struct routes *routes;
    struct notes *notes;

    /* What is built again from the store after it could not be written. */
    struct arena life;
    struct engine engine;
    struct ledger ledger;
    struct intake intake;
    const struct backend *backend;
    void *executor_self; /* NULL: not open */
    struct gates gates;
    struct resident *residents; /* by slot */
    struct outbox outboxes[2];
    struct outbox *outbox; /* what is filled now */
    uint32_t coming;       /* jobs in 'outbox': submitted and not yet applied */
    uint64_t id_next;
    int64_t gates_ns; /* when to ask them again */
    bool ask_gates;
    bool alive;

    struct arena pass;   /* emptied when it has been committed */
    struct arena launch; /* of the last job that was looked up */
    struct request launch_request;
    char *policy_text;
    char *flow_text; /* or NULL */
    struct sent *sent;

    int64_t wall_ns, steady_ns; /* at the start */
    int64_t started_ns;
    uint64_t pass_count, failures;
    bool wanted; /* a pass */
    bool stopping, killing;
    bool outgrown; /* Slurm has nodes that our cluster has not */
};

/* The wall clock at the start, carried on by one that never goes back. */
int64_t daemon_now_ns(const struct daemon *daemon);

/* Ask for a pass: everything that has come in by then is taken at once. */
void daemon_want_pass(struct daemon *daemon);

/* Something happened to a job, or to nobody (JOB_NONE); asks for a pass. */
struct event *daemon_add_event(struct daemon *daemon, enum event_kind kind, job_id job);

/* The store cannot be written: nothing of this pass happened.  Begins again, later. */
void daemon_fall_back(struct daemon *daemon, const struct error *err);

/* desk.c: or a sentence why not. */
int desk_need_life(const struct daemon *daemon, struct error *err);
int desk_need_rights(const struct caller *caller, struct error *err);
void desk_kill_all(struct daemon *daemon); /* those who are not on their way out yet */

/* desk_flows.c: whose packets go first. */
#define DESK_FLOW_TEXT_MAX 1000
#define DESK_FLOW_MAX (DESK_FLOW_TEXT_MAX + 24)
int desk_choose_flow(struct daemon *daemon, struct error *err);
int desk_read_flow(const char *text, const struct flow_policy **ret_flow,
                   char settings[DESK_FLOW_MAX], struct error *err);
int desk_mark(void *context, job_id job);
void desk_flows_begin(struct daemon *daemon);

/* life.c: the engine, the executor and all they know, from what is on disk. */
int life_begin(struct daemon *daemon, struct error *err);
void life_end(struct daemon *daemon);

/*
 * desk.c: somebody arrives, as 'request' says and 'text' will say again.  'held': not to be
 * placed before something else is known of it.  Negative: the store cannot be written.
 */
int desk_take(struct daemon *daemon, const char *user, struct request *request,
              const char *text, bool held, struct error *ret_rejected,
              struct error *err);

/* For an executor; the context is the daemon. */
int64_t life_now(void *context);
void life_wake(void *context);
int life_launch(void *context, uint64_t id, const struct launch **ret_launch,
                struct error *err);

/* How another job stands, for those who depend on it; the context is the daemon. */
enum outcome life_outcome(void *context, uint64_t id);

/* Jobs that wait for leave are asked after: those that have it are released. */
void life_ask_gates(struct daemon *daemon);
