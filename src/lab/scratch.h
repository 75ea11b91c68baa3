/*
 * scratch.h - a berthd of one's own, in a folder that is thrown away.
 *
 * For 'berth check-ckpt' and 'berth bench live': nothing of it is left behind, and the
 * user's own daemon does not hear of it.
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
    char runtime[64]; /* folder for sockets and orders; "": in the state folder */
    const char *const *args; /* of berthd, besides the folder; ended by NULL */
    pid_t pid;               /* -1: it does not run */
    struct call *call;
};

/* Make the folder below TMPDIR; 'args' must live as long as this.  Nothing runs yet. */
int scratch_open(struct scratch *scratch, const char *const *args, struct error *err);

/*
 * Before it is started: the runtime folder in memory, as it is for somebody who has logged
 * in, in XDG_RUNTIME_DIR or /dev/shm; left where it is if neither can be used.
 */
void scratch_use_memory(struct scratch *scratch);

/* Start it, and wait until it is ready. */
int scratch_start(struct scratch *scratch, struct error *err);

/* Send it a signal and wait until it has ended. */
void scratch_stop(struct scratch *scratch, int signal_number);

/* End all jobs, and then berthd: what it knows of them stays. */
void scratch_end_jobs(struct scratch *scratch);

/* The same, and remove the folder. */
void scratch_close(struct scratch *scratch);

/* Submit one request; its id. */
int scratch_submit(struct scratch *scratch, const struct json *request,
                   uint64_t *ret_id, struct error *err);

/* Jobs that wait or run, as berthd counts them. */
int scratch_count_jobs(struct scratch *scratch, int64_t *ret_count, struct error *err);

/* A value of /metrics, by how its line begins; NAN if there is none. */
double scratch_metric(struct scratch *scratch, const char *line);
