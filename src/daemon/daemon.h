/*
 * daemon.h - the engine, fed from the real world.
 *
 * Whatever comes in, a request or the end of a process, becomes an event in the outbox and
 * asks for a pass.  A pass takes all of them at once: the engine applies them, decides,
 * writes everything down, and only then are orders carried out and requests answered.
 *
 * If the store cannot be written, nothing of the pass is acknowledged; the engine is thrown
 * away and built again from what is on disk, as after a crash.  Jobs go on meanwhile.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/job.h"

struct daemon;
struct engine;
struct error;
struct executor;
struct http;
struct gates;
struct machine;
struct notes;
struct request;
struct sent;
struct store;

/* What is said of a type of accelerator; 0: nothing. */
struct daemon_type {
    const char *name;
    double usd_per_hour;
    double speed; /* relative to others, of jobs whose rates are not known */
};

struct daemon_setup {
    const char *state_dir; /* absolute; exists                                     */
    const char *run_dir;   /* absolute; exists                                     */
    const char *socket;    /* of the API                                           */
    const char *listen;    /* HOST:PORT, or NULL                                   */
    const char *fake_gpus; /* TYPE:N,…; NULL: what the machine has                 */
    const char *policy;    /* NULL: as before, else the standard one               */
    const char *flow;      /* or NULL                                              */
    const char *executor;  /* "local", "slurm", "slurm:partition=NAME,…"           */
    const char *run_program;
    const char *slurm_program;
    const char *slurm_driver; /* "auto"                                            */
    const char *throughputs;  /* file of them, by kind and type; NULL: none known  */
    const char *slurm_bell;   /* path of a named pipe; NULL: below run_dir         */
    const char *munge_socket; /* of munged; NULL: where it usually is             */
    const char *const *partitions; /* up to a NULL: all                             */
    bool slurm;
    uint32_t fence_s;   /* after a node was lost, before its jobs may start elsewhere */
    bool system;        /* root: everybody's jobs, each as himself */
    uint32_t job_max;   /* waiting and running at once                  */
    uint32_t keep_days; /* how long reports of ended jobs stay in the log */
    struct daemon_type types[TYPES_MAX];
    uint32_t type_count;
};

int daemon_new(struct daemon **ret_daemon, const struct daemon_setup *setup,
               struct error *err);
void daemon_free(struct daemon *daemon);

/* Until it is told to stop. */
int daemon_run(struct daemon *daemon, struct error *err);

/* --- what people may ask for ------------------------------------------------------ */

/* Whose word it is: the kernel's (SO_PEERCRED), or whoever holds the token. */
struct caller {
    uint32_t uid;
    uint32_t gid;
};

/* One's own jobs; everybody's for root and for the user whom berthd runs as. */
bool daemon_may(const struct daemon *daemon, const struct caller *caller,
                uint32_t owner);

/*
 * Take these in, all or none.  'texts' are the requests as JSON.  Ids are given at once and
 * are good when the pass has been committed: reply after_commit.  One that can never run is
 * recorded as rejected, and 'ret_rejected', if it is the only one, says why ("" else).
 */
int daemon_submit(struct daemon *daemon, const struct caller *caller,
                  struct request *requests, const char *const *texts, uint32_t count,
                  uint64_t *ret_ids, struct error *ret_rejected, struct error *err);

/* -ENOENT: no such live job; -EPERM: somebody else's; -EALREADY: not in this state. */
int daemon_cancel(struct daemon *daemon, const struct caller *caller, uint64_t id,
                  struct error *err);
int daemon_hold(struct daemon *daemon, const struct caller *caller, uint64_t id,
                bool held, struct error *err);

/* What may be said anew of a waiting job; NULL or NAN: as it is. */
struct daemon_change {
    const char *class; /* "te", "be" */
    double weight, deadline_s, grace_s, steps;
};
int daemon_change(struct daemon *daemon, const struct caller *caller, uint64_t id,
                  const struct daemon_change *change, struct error *err);

/* For whoever runs berthd. */
int daemon_set_policy(struct daemon *daemon, const struct caller *caller,
                      const char *text, struct error *err);
int daemon_set_flow(struct daemon *daemon, const struct caller *caller,
                    const char *text, struct error *err);
int daemon_check_flow(const char *text, struct error *err);
int daemon_stop(struct daemon *daemon, const struct caller *caller, bool kill,
                struct error *err);

/* So many bytes has a job sent since it began, as a host counts them. */
struct daemon_bytes {
    uint64_t job; /* public id */
    int64_t bytes;
};

/* For agents, who have the rights of whoever runs berthd.  Unknown jobs are passed over. */
int daemon_count(struct daemon *daemon, const struct caller *caller, const char *host,
                 const struct daemon_bytes *list, uint32_t count, struct error *err);

/* --- what there is to see ------------------------------------------------------------ */

struct daemon_facts {
    const struct daemon_setup *setup;
    const struct machine *machine;
    struct engine *engine;
    struct store *store;
    struct gates *gates;
    struct http *http;
    const struct executor *executor;
    void *executor_self; /* NULL: it is not open */
    struct sent *sent;   /* what hosts have counted         */
    const char *policy;  /* as it was written, settings included */
    const char *flow;    /* the same, or NULL: none              */
    int64_t started_ns;
    int64_t now_ns;
    uint32_t attempts;   /* processes under way           */
    uint64_t pass_count; /* since the start               */
    const char *trouble; /* why the cluster manager does not answer, or NULL */
    uint64_t failures;   /* times the store could not be written             */
};
void daemon_look(struct daemon *daemon, struct daemon_facts *facts);

/* The live job of that id, or JOB_NONE; and whose it is. */
job_id daemon_find(const struct daemon *daemon, uint64_t id);
uint32_t daemon_owner(const struct daemon *daemon, job_id job);

/*
 * Is this job on a host of that name?  Jobs that are processes here are on this machine,
 * and so is whoever asks, by whatever name: a network namespace may have its own.
 */
bool daemon_on_host(const struct daemon *daemon, job_id job, const char *host);

/* What jobs on other hosts say. */
struct notes *daemon_notes(const struct daemon *daemon);
