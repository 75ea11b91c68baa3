/*
 * launcher_client.h - berth-launch as berthd sees it: started while berthd still is root,
 * and asked for all that needs root's rights from then on.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct error;
struct job_users;
struct launcher_client;
struct uv_loop_s;

struct launcher_client_setup {
    const char *program;     /* path of berth-launch                       */
    const char *run_program; /* path of berth-run; NULL: no jobs are run   */
    const char *run_dir, *state_dir;
    const char *bridge_program; /* path of berth-slurm; NULL: it is not started */
    const char *bridge_user;    /* NULL: root                                 */
    const char *const
        *partitions; /* up to a NULL that berth-slurm may manage; NULL: all */
    uint32_t service_uid, service_gid; /* who berthd will be        */
    bool root_jobs;                    /* run jobs of root as well  */
    uint32_t min_uid; /* smallest user number of others; 0: the system's */
};

/* Start it, as root, and wait until it is ready. */
int launcher_client_open(struct launcher_client **ret_client,
                         const struct launcher_client_setup *setup, struct error *err);
/* Connect to one that a service manager has started; we are the service's user. */
int launcher_client_connect(struct launcher_client **ret_client, const char *path,
                            struct error *err);
void launcher_client_close(struct launcher_client *client); /* it ends */

/* Features of cgroups that are enforced, and their parent ("": none). */
uint32_t launcher_client_features(const struct launcher_client *client);
const char *launcher_client_cgroup(const struct launcher_client *client);
/* Why some are not enforced; "": all are. */
const char *launcher_client_why(const struct launcher_client *client);

/* Whose jobs it starts. */
const struct job_users *launcher_client_users(const struct launcher_client *client);

/* Start an attempt; -EEXIST: it was started before. */
int launcher_client_start(struct launcher_client *client, uint64_t id, uint32_t attempt,
                          int order, int link, struct error *err);
/* Kill it, with its supervisor; true: no process is left. */
bool launcher_client_kill(struct launcher_client *client, uint64_t id,
                          uint32_t attempt);
void launcher_client_kill_job(struct launcher_client *client, uint64_t id,
                              uint32_t attempt);
void launcher_client_remove(struct launcher_client *client, uint64_t id,
                            uint32_t attempt);

/*
 * Start berth-slurm, with 'link' as its input and output.  'driver', 'partitions' (up to a
 * NULL): NULL for the default; 'bell': -1 for none.
 */
int launcher_client_start_bridge(struct launcher_client *client, const char *driver,
                                 const char *const *partitions, int link, int bell,
                                 struct error *err);
/* Remove the output and the checkpoints that Berth keeps of an ended job. */
void launcher_client_forget_job(struct launcher_client *client, uint64_t id);

/* Files are opened in the loop from now on; 'gone' is called if berth-launch has ended. */
void launcher_client_watch(struct launcher_client *client, struct uv_loop_s *loop,
                           void (*gone)(void *context), void *context);
void launcher_client_unwatch(struct launcher_client *client);

/*
 * Open a user's file to read; 'done' is called once, later, with a descriptor that it owns
 * or a negative errno, and not after launcher_client_forget() for that context.  Negative:
 * it cannot be asked for now.
 */
int launcher_client_open_file(void *client, uint32_t uid, const char *path,
                              void (*done)(void *context, int fd), void *context);
void launcher_client_forget(void *client, const void *context);
