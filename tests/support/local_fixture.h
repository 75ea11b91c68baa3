/*
 * local_fixture.h - real processes in a test: executor/local on a loop of its own, jobs by hand.
 *
 *     struct local_fixture *b = local_fixture_new();
 *     job_id job = local_fixture_job(b, "echo hello");
 *     local_fixture_start(b, job);
 *     struct event end = local_fixture_wait_event(b, job, EVENT_FINISHED);
 *
 * There is no engine: the test gives the orders, and all events are kept.
 */
#pragma once

#include "support/cases.h"

#include <stdbool.h>

#include <uv.h>

#include "executor/local/local.h"
#include "model/cluster.h"
#include "model/event.h"
#include "model/launch.h"
#include "model/outbox.h"

#define FIXTURE_JOBS 32
#define FIXTURE_ENV 16

struct local_fixture_job {
    struct launch launch;
    const char *argv[8];
    const char *env[FIXTURE_ENV + 1];
    char command[1024];
    job_id after[8];
    uint32_t after_count;
    uint64_t steps_max;
    struct seat seat;
};

struct local_fixture {
    uv_loop_t loop;
    uv_timer_t watchdog;
    struct local *local;
    struct outbox outbox, *outbox_now;
    struct event *events; /* all of them, oldest first */
    uint32_t event_count, event_room;
    struct cluster cluster;
    struct node node;
    struct view view;
    struct job jobs[FIXTURE_JOBS];
    struct local_fixture_job more[FIXTURE_JOBS];
    uint32_t job_count;
    char dir[64], state_dir[80], run_dir[80], program[512];
    double total; /* reported by the last job */
    bool late;
    struct launcher_client *launcher; /* NULL: jobs are our own */
    bool uncollected; /* ends are not recorded, as when berthd crashes before */
};

struct local_fixture *local_fixture_new(void);
struct local_fixture *
local_fixture_new_system(void);                   /* as root: jobs run as their users */
void local_fixture_free(struct local_fixture *b); /* kills jobs that still run */

/* A job that runs "sh -c command"; change it before it is started. */
job_id local_fixture_job(struct local_fixture *b, const char *command);
struct launch *local_fixture_launch(struct local_fixture *b, job_id job);

void local_fixture_start(struct local_fixture *b, job_id job);
void local_fixture_reopen(struct local_fixture *b); /* as after a restart of berthd */
void local_fixture_reattach(struct local_fixture *b, job_id job, bool stopping);

/* Wait for an event of this kind; fails if the job ends otherwise, or too late. */
struct event local_fixture_wait_event(struct local_fixture *b, job_id job,
                                      enum event_kind kind);
uint32_t local_fixture_count_events(const struct local_fixture *b, job_id job,
                                    enum event_kind kind);
void local_fixture_sleep(struct local_fixture *b, uint64_t ms); /* let time pass */

/* The output of a job, or the text of a file; "" if there is none. */
const char *local_fixture_output(struct local_fixture *b, job_id job);
const char *local_fixture_read_file(const char *path);
void local_fixture_wait_for_output(struct local_fixture *b, job_id job,
                                   const char *text);

/* The number in a line of the output: "pid 123" gives 123 for "pid". */
int local_fixture_read_number(struct local_fixture *b, job_id job, const char *word);
bool local_fixture_is_alive(int pid);
