/*
 * bench.h - real processes in a test: executor/local on a loop of its own, jobs by hand.
 *
 *     struct bench *b = bench_new();
 *     job_id job = bench_job(b, "echo hello");
 *     bench_start(b, job);
 *     struct event end = bench_until(b, job, EVENT_FINISHED);
 *
 * There is no engine: the test gives the orders, and every event is remembered.
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

#define BENCH_JOBS 32
#define BENCH_ENV 16

struct bench_job {
    struct launch launch;
    const char *argv[8];
    const char *env[BENCH_ENV + 1];
    char command[1024];
    job_id after[8];
    uint32_t after_count;
    uint64_t steps_max;
    struct seat seat;
};

struct bench {
    uv_loop_t loop;
    uv_timer_t watchdog;
    struct local *local;
    struct outbox outbox, *outbox_now;
    struct event *events; /* all that were told, oldest first */
    uint32_t event_count, event_room;
    struct cluster cluster;
    struct node node;
    struct view view;
    struct job jobs[BENCH_JOBS];
    struct bench_job more[BENCH_JOBS];
    uint32_t job_count;
    char dir[64], state_dir[80], run_dir[80], program[512];
    double total; /* that the last job said */
    bool late, system;
    bool uncollected; /* ends are not recorded, as when berthd dies before it could */
};

struct bench *bench_new(void);
struct bench *bench_new_system(void); /* as root: jobs run as their users */
void bench_free(struct bench *b);     /* ends all that still runs */

/* A job that runs "sh -c command"; change it before it is started. */
job_id bench_job(struct bench *b, const char *command);
struct launch *bench_launch(struct bench *b, job_id job);

void bench_start(struct bench *b, job_id job);
void bench_reopen(struct bench *b); /* as if berthd had been restarted */
void bench_reattach(struct bench *b, job_id job, bool stopping);

/* Wait for an event of this kind; the test fails if it ends in another way, or late. */
struct event bench_until(struct bench *b, job_id job, enum event_kind kind);
uint32_t bench_count(const struct bench *b, job_id job, enum event_kind kind);
void bench_pass(struct bench *b, uint64_t ms); /* let time pass */

/* What a job wrote, or the text of a file; "" if there is none. */
const char *bench_output(struct bench *b, job_id job);
const char *bench_read(const char *path);
void bench_wait_for_output(struct bench *b, job_id job, const char *text);

/* A line of its own in what the job wrote: "pid 123" gives 123 for "pid". */
int bench_number(struct bench *b, job_id job, const char *word);
bool bench_lives(int pid);
