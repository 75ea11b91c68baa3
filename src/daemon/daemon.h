/*
 * daemon.h - the engine, fed from the real world.
 *
 * What comes in, a request or the end of a process, becomes an event and asks for a pass.  A
 * pass applies all of them at once (scheduler.h); when they are durable, orders are carried
 * out and requests answered.
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
struct entity;
struct error;
struct executor;
struct http;
struct launcher_client;
struct flows;
struct forecasts;
struct gpu_watch;
struct limit_setting;
struct limits;
struct machine;
struct progress;
struct scheduler;
struct start_conditions;
struct store;
struct submission;
struct users;

/* What the configuration says of a type of GPU; 0: nothing. */
struct daemon_type {
    const char *name;
    double usd_per_hour;
    double speed;   /* relative to other types, for jobs without known rates */
    double gpu_gib; /* memory of one */
};

/* Whether jobs that say so may share GPUs. */
enum daemon_sharing {
    SHARING_UNLESS_SYSTEM,
    SHARING_ALLOWED,
    SHARING_FORBIDDEN,
};

struct daemon_sharing_setup {
    enum daemon_sharing allow;
    bool across_users;
    double reserve_gib;
    const char *mps; /* folder of the pipes of NVIDIA's MPS; NULL: without */
};

/* Whether the engine is played forward all the time. */
enum daemon_forecasts { FORECASTS_MADE, FORECASTS_NOT_MADE };

struct daemon_setup {
    const char *state_dir; /* absolute; exists                                     */
    const char *run_dir;   /* absolute; exists                                     */
    const char *socket;    /* of the API                                           */
    const char *listen;    /* HOST:PORT, or NULL                                   */
    const char *tls_certificate, *tls_key; /* files of the site; NULL: our own     */
    const char *fake_gpus; /* TYPE:N,…; NULL: what the machine has                 */
    const char *policy;    /* NULL: that of the last start, or the standard one    */
    const char *flow;      /* or NULL                                              */
    const char *executor;  /* "local", "slurm", "slurm:partition=NAME,…"           */
    const char *run_program;
    const char *slurm_program;
    const char *slurm_driver;    /* "auto"                                            */
    const char *throughputs;     /* file of rates by kind and type; NULL: none known  */
    const char *slurm_bell;      /* path of a named pipe; NULL: below run_dir         */
    const char *slurm_heartbeat; /* path of a file; NULL: below run_dir            */
    uint32_t fail_open_s;   /* without it, until jobs are left to Slurm; 0: never    */
    const char *slurm_user; /* with 'system': berth-slurm runs as; NULL: root    */
    const char *munge_socket; /* of munged; NULL: where it usually is             */
    const char *const *partitions; /* up to a NULL: all                             */
    bool slurm;
    uint32_t fence_s; /* after a node was lost, before its jobs may start elsewhere */
    bool system;      /* jobs of all users, each as its user */
    const char *user; /* that berthd runs as then; NULL: the standard one */
    bool root_jobs;   /* jobs of root are run as well */
    uint32_t min_uid; /* smallest user number of others; 0: the system's */
    const char *launch_socket;        /* of a berth-launch that runs already, or NULL */
    struct launcher_client *launcher; /* with it: what starts them; NULL: we are root */
    uint32_t job_max;                 /* waiting and running at once                  */
    int64_t keep_reports_ns; /* how long after a job's end its reports stay   */
    int64_t keep_jobs_ns;    /* and everything else of it                     */
    uint32_t keep_days;      /* 0.1's name for keep_reports_ns; 0: not said   */
    enum daemon_forecasts forecasts;
    struct daemon_sharing_setup sharing;
    struct daemon_type types[TYPES_MAX];
    uint32_t type_count;
    struct limit_setting *limits; /* of users, groups and by default */
    uint32_t limit_count;
    struct entity *groups, *users; /* that have a weight of their own */
    uint32_t group_count, user_count;
};

int daemon_new(struct daemon **ret_daemon, const struct daemon_setup *setup,
               struct error *err);
void daemon_free(struct daemon *daemon);

/* Run the loop until berthd is told to stop. */
int daemon_run(struct daemon *daemon, struct error *err);

/* --- callers -------------------------------------------------------------------------- */

/* Authenticated by the kernel (SO_PEERCRED), by a token or by a session. */
struct caller {
    uint32_t uid;
    uint32_t gid;
    bool own_jobs; /* may change no others and is no administrator, whoever it is */
};

/* One's own jobs; all jobs for root and for the user that berthd runs as. */
bool caller_may(const struct caller *caller, uint32_t owner);

/* The same for changing them: with some tokens one's own only. */
bool caller_may_change(const struct caller *caller, uint32_t owner);

/* -EPERM unless the caller is root or the user that berthd runs as. */
int caller_check_admin(const struct caller *caller, struct error *err);

/* --- for administrators --------------------------------------------------------------- */

int daemon_set_policy(struct daemon *daemon, const struct caller *caller,
                      const char *text, struct error *err);
int daemon_stop(struct daemon *daemon, const struct caller *caller, bool kill,
                struct error *err);

/* --- for queries ---------------------------------------------------------------------- */

struct daemon_view {
    const struct daemon_setup *setup;
    const struct machine *machine;
    struct engine *engine; /* NULL: the store cannot be written just now */
    struct store *store;
    struct start_conditions *conditions;
    struct scheduler *scheduler;
    struct submission *submission;
    struct limits *limits;
    struct flows *flows;
    struct forecasts *forecasts;
    struct progress *progress;
    struct gpu_watch *gpu_watch;
    struct users *users;
    struct http *http;
    const struct executor *executor;
    void *executor_self; /* NULL: it is not open                                */
    const char *policy;  /* as it was written, settings included                */
    const char *flow;    /* the same, or NULL: none                             */
    int64_t started_ns;
    int64_t now_ns;
    uint32_t attempts;         /* of jobs, under way                                  */
    uint64_t pass_count;       /* since the start                                     */
    const char *store_trouble; /* why nothing is accepted, or NULL             */
    const char *trouble;       /* why the cluster manager does not answer, or NULL    */
    uint64_t failures;         /* times the store could not be written                */
};
void daemon_view_of(struct daemon *daemon, struct daemon_view *facts);

/* The live job of that id, or JOB_NONE; and its owner. */
job_id daemon_find(const struct daemon *daemon, uint64_t id);
uint32_t daemon_owner(const struct daemon *daemon, job_id job);
