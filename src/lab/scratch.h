/*
 * scratch.h - a berthd in a temporary folder.
 *
 * For 'berth check-ckpt' and the benchmarks: nothing of it is left behind, and it has no
 * connection to the user's own berthd.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

struct call;
struct error;
struct json;

struct scratch {
    char dir[256];
    char state[280];
    char socket[320];
    char runtime[64]; /* folder for sockets and launch files; "": in the state folder */
    const char *const *args; /* of berthd, besides the folder; ended by NULL */
    pid_t pid;               /* -1: it does not run */
    struct call *call;
};

/* Make the folder below TMPDIR; 'args' must live as long as this.  Nothing runs yet. */
int scratch_open(struct scratch *scratch, const char *const *args, struct error *err);

/*
 * Put the runtime folder into memory, as after a login: below
 * XDG_RUNTIME_DIR or /dev/shm, if one of them can be used.  Call it before scratch_start().
 */
void scratch_use_memory(struct scratch *scratch);

/* Start berthd, and wait until it is ready. */
int scratch_start(struct scratch *scratch, struct error *err);

/* Send berthd a signal and wait until it has ended. */
void scratch_stop(struct scratch *scratch, int signal_number);

/* End all jobs, and then berthd; its state folder stays. */
void scratch_end_jobs(struct scratch *scratch);

/* The same, and remove the folder. */
void scratch_close(struct scratch *scratch);

/* Submit one request, and return the job's id. */
int scratch_submit(struct scratch *scratch, const struct json *request,
                   uint64_t *ret_id, struct error *err);

/* Jobs that wait or run, as berthd counts them. */
int scratch_count_jobs(struct scratch *scratch, int64_t *ret_count, struct error *err);

/* A value of /metrics, by how its line begins; NAN if there is none. */
double scratch_metric(struct scratch *scratch, const char *line);
