/* local_run.h - one attempt under way, as executor/local keeps it; private to its files. */
#pragma once

#include <uv.h>

#include "base/units.h"
#include "executor/local/local.h"
#include "host/run_words.h"
#include "model/event.h"

#define JOB_DIR_MAX 108 /* what a socket's name may have */
#define GPU_TEXT_MAX 512
#define CGROUP_MAX JOB_CGROUP_MAX
#define LOCAL_UNHEARD_NS \
    (10 * NS_PER_S) /* an end that the engine did not want to know */

enum phase {
    PHASE_WAITS,    /* for others to leave                                     */
    PHASE_ASKED,    /* a supervisor was started, or is looked for              */
    PHASE_RUNS,     /* its processes are there                                 */
    PHASE_CLEARING, /* the supervisor is gone: what is left of the job is ended */
    PHASE_OVER,     /* its end is in the outbox                                */
    PHASE_RECORDED, /* the engine has seen it                                  */
};

/* A job's attempt. */
struct local_run {
    struct local *local;
    struct local_run *next, *prev; /* all of them           */
    struct local_run *same_slot;   /* older attempts of it  */
    enum phase phase;
    job_id job;
    uint32_t generation, attempt;
    uint64_t id;
    pid_t supervisor; /* our child, until it was waited for; 0: none */

    job_id *after; /* who has to leave first */
    uint32_t after_count;

    /* what it is given */
    char gpus[GPU_TEXT_MAX];
    uint32_t type, gpu_count, cpu_milli, mem_mib;

    /* what it was told */
    bool stopping, cancelled;
    int64_t grace_ns;

    /* what it said */
    bool started, loaded, own_steps, expects_reports;
    double steps_kept, steps, saved, rate_per_s, loss;
    int64_t started_ns, loaded_at_ns; /* when it counts as loaded without a word */

    /* the lease */
    bool leased, together, lease_done;
    job_id beside;
    double lease_end;

    int64_t due_ns; /* when it is looked after without a word; INT64_MAX: never */
    uint32_t tries; /* connections that came to nothing                         */
    char why[RUN_WHY_MAX];

    /* the wire */
    uv_poll_t link;
    int fd; /* -1: none */
    bool polled, closing;
    struct run_lines lines;
};

struct local {
    struct local_setup setup;
    char state_dir[512], run_dir[LOCAL_RUN_DIR_MAX + 1], run_program[512];
    char cgroup[CGROUP_MAX]; /* folder for groups of jobs; "": none */
    struct local_run *runs;
    struct local_run **slots; /* by job */
    uint32_t count;
    uint32_t recorded_count; /* ends that wait for the next commit */
    uv_timer_t timer;
    int64_t timer_ns;
    pid_t *zombies; /* supervisors that have been let go */
    uint32_t zombie_count, zombie_room;
    uint32_t open_handles;
    uint32_t spare_count; /* checkpoint folders that nobody put anything into */
    bool closing;
};

/* local.c: orders, and looking after what runs */
int64_t local_now(const struct local *local);
void local_due(struct local_run *run, int64_t at_ns);
void local_reap_later(struct local *local, pid_t pid);
void local_ended(struct local_run *run, const struct run_end *end);

/* local_runs.c: the attempts; local_run_in() is the one that is in its seats, or NULL */
struct local_run *local_run_in(const struct local *local, job_id job);
struct local_run *local_add_run(struct local *local, const struct lease *lease);
struct local_run *local_find_run(const struct local *local, job_id job,
                                 uint32_t generation, uint32_t attempt);
void local_drop_absent(struct local_run *run);
void local_forget(struct local_run *run);

/* local_tell.c: what it does, as events */
double local_steps_now(const struct local_run *run);
void local_tell_loaded(struct local_run *run);
void local_check_lease(struct local_run *run);
void local_plan_ahead(struct local_run *run);
void local_started(struct local_run *run, double ago_s);
void local_reported(struct local_run *run);
struct event *local_tell_end(struct local_run *run, enum event_kind kind);

/* local_start.c: the folder of an attempt, and its supervisor */
void local_drop_spares(struct local *local);
void local_dir(const struct local_run *run, char path[JOB_DIR_MAX]);
bool local_cgroup(const struct local_run *run, char path[CGROUP_MAX]);
int local_spawn(struct local_run *run, struct error *err);
void local_remove(struct local_run *run);
bool local_was_begun(const struct local_run *run, bool *ret_alive);
bool local_read_status(const struct local_run *run, struct run_end *end);

/* local_link.c: the wire to a supervisor */
void local_link_open(struct local_run *run, int fd);
bool local_link_connect(struct local_run *run);
void local_link_close(struct local_run *run);
void local_say(struct local_run *run, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
