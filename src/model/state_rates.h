/*
 * state_rates.h - what the state learns of rates from reports of progress.
 *
 * Between two reports of an attempt lies an interval with a rate.  What comes before the
 * first report is the start; the interval after it may hold a warm-up and counts only while
 * its kind has nothing better there.  So the rates of a kind (rate_table.h) are those of steady
 * training.
 *
 * Jobs of one kind are rarely all alike.  One that is steadily faster or slower than its
 * kind, by more than the kind's own spread, has a pace of its own: a factor on the kind's
 * rates on all types.  Its reports count without that factor on types that it moves to, so
 * that the kind's types are compared by what the same job made on both.
 */
#pragma once

#include "model/event.h"
#include "model/job.h"

struct arena;
struct state;

/* The newest reports of a job, by slot. */
struct rate_track {
    int64_t last_ns;
    double last_steps;
    uint32_t reports;    /* of the attempt, that began or ended an interval     */
    uint32_t own_count;  /* intervals in 'own'                                  */
    double own;          /* mean of ln(steps per second) where it is now        */
    double base;         /* ln of its pace when it came there                   */
    int64_t sent_ns;     /* when 'sent_bytes' were counted; 0: not yet           */
    double sent_bytes;   /* at the end of the last interval                     */
    uint32_t sent_count; /* of intervals                                        */
    uint64_t beside;     /* the job it shares GPUs with, by public id; 0: none  */
};

/*
 * From now on rates are learned: of jobs with a 'learned' kind.  Without it reports change
 * only what is known of their own job.
 */
void state_learn(struct state *state, struct arena *run);

/* A report: 'made_ns' is when the steps were made.  False: the job is not of a kind. */
bool state_learn_report(struct state *state, job_id job, double steps, int64_t made_ns);

/* Its hosts have counted what it sent: evidence of its speed, if it reports nothing. */
void state_learn_sent(struct state *state, job_id job, const struct event *event);

/* What its processes do with a GPU: the memory, and how busy it is with the job alone. */
void state_learn_gpu_use(struct state *state, job_id job, const struct event *event);

/* Whether something tells how fast the job is; otherwise a step counts as a second. */
bool state_knows_rate(const struct state *state, job_id job);

/* The expected rates of all jobs of a kind have changed. */
void state_mark_kind(struct state *state, uint32_t kind);

/* The jobs whose expected rates have changed since the last call get them anew. */
typedef void state_rated(void *context, job_id job);
void state_rate_jobs(struct state *state, state_rated *rated, void *context);
