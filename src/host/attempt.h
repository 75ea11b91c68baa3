/*
 * attempt.h - the attempts of jobs on this machine: their folders, cgroups and supervisors.
 *
 *     RUN/jobs/ID.ATTEMPT/          only berthd's side may write here
 *         claim                     the supervisor's process; locked while it is alive
 *         status                    how the job ended; its space is taken before the start
 *         run.sock                  for berthd
 *         job/                      the job's own
 *             sock, preempt, script
 *     STATE/log/ID.out              its output, unless it names a file
 *     STATE/ckpt/ID/                its checkpoints, unless it names a folder
 *
 * With several users all of it is root's, but for job/ and ckpt/ID, which are the user's,
 * and for the output, which the user owns.  The service's group may read.  Folders are
 * held open from the start on and never looked up by path again, and nothing in job/ is
 * touched except with the user's rights.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "host/cgroup.h"

struct error;
struct run_end;

#define ATTEMPT_NAME_MAX 40  /* "ID.ATTEMPT" */
#define ATTEMPT_PATH_MAX 108 /* limit of a socket's path */
#define ATTEMPT_SPARES_MAX 64

struct attempts {
    char jobs_path[80];                /* RUN/jobs    */
    char state_path[512];              /* STATE       */
    int jobs, log, ckpt;               /* their folders */
    bool system;                       /* jobs of several users: we are root */
    uint32_t service_uid, service_gid; /* of berthd, if so */
    struct cgroup_tree cgroups;
    uint32_t spare_count; /* empty checkpoint folders kept for reuse */
};

/*
 * Open what is in a folder of ours, not through a link.  A user who owns it may have mounted
 * something over it, which might never answer: that is refused, with EXDEV.
 */
int attempt_open_own(int folder, const char *name, int flags, mode_t mode);

/* What the claim of an attempt tells. */
struct attempt_claim {
    bool begun; /* a supervisor was started */
    bool alive; /* it still is              */
    pid_t pid;
    uint64_t started; /* as in /proc/PID/stat: tells it from a later process */
};

enum attempts_mode {
    ATTEMPTS_OWN,  /* make the folders and the parents of cgroups                  */
    ATTEMPTS_JOIN, /* for one attempt: folders are there; 'cgroups' is set after it */
    ATTEMPTS_READ, /* only claims and statuses are read                            */
};

/* Open the folders; 'system' and what belongs to it are set. */
int attempts_open(struct attempts *attempts, const char *run_dir, const char *state_dir,
                  enum attempts_mode mode, struct error *err);
void attempts_close(struct attempts *attempts);

void attempt_name(char name[ATTEMPT_NAME_MAX], uint64_t id, uint32_t attempt);
bool attempt_parse_name(const char *name, uint64_t *ret_id, uint32_t *ret_attempt);
void attempt_path(const struct attempts *attempts, const char *name,
                  char path[ATTEMPT_PATH_MAX]);

/* The name of a berthd's cgroups. */
void attempt_cgroup_name(const char *run_dir, char name[CGROUP_NAME_MAX]);

/* A process by its number and start; -1 if that process is gone. */
uint64_t attempt_process_start(pid_t pid);
int attempt_open_process(pid_t pid, uint64_t started);

void attempt_read_claim(const struct attempts *attempts, const char *name,
                        struct attempt_claim *claim);
bool attempt_read_status(const struct attempts *attempts, const char *name,
                         struct run_end *end);

/* Send SIGKILL to the job's processes and to its supervisor; true: none is left. */
bool attempt_kill(const struct attempts *attempts, const char *name);
/*
 * The same as far as cgroups and the claim name them, and the rest: those that are found by
 * their environment, which may take as long as the users of all processes want.
 */
bool attempt_kill_known(const struct attempts *attempts, const char *name);
bool attempt_kill_marked(const struct attempts *attempts, const char *name);
/* To the job's processes alone: the supervisor reports the end. */
void attempt_kill_job(const struct attempts *attempts, const char *name);

/*
 * Remove its folder and cgroups.  False: something is mounted in the folder, which stays and
 * is not touched beyond the mount point; stderr is told.
 */
bool attempt_remove(struct attempts *attempts, const char *name);

/*
 * Remove its job's checkpoint folder if that is empty.  The next attempt may need it.  Call
 * it before attempt_remove(): a sweep finds what is left of an attempt by its folder.
 */
void attempt_release_ckpt(struct attempts *attempts, const char *name);

/*
 * Remove what is kept of an ended job: its output and its checkpoints, in the folders 'log' and
 * 'ckpt'.  'empty' is called with a checkpoint folder that is not empty.  One over which
 * something is mounted stays, and stderr is told.
 */
void attempt_remove_kept(int log, int ckpt, uint64_t id,
                         void (*empty)(void *context, int folder), void *context);
/* For it: remove all that is in the folder, or, in a child, with the rights of its owner. */
void attempt_empty_folder(void *context, int folder);
void attempt_empty_as_owner(void *attempts, int folder);

/* Kill and remove all attempts for which 'is_known' is false. */
void attempts_sweep(struct attempts *attempts,
                    bool (*is_known)(void *context, const char *name), void *context);

/* Make a job's checkpoint folder, or find the one that it has, which must be its own. */
int attempt_make_ckpt(struct attempts *attempts, uint64_t id, uint32_t uid,
                      uint32_t gid, struct error *err);
