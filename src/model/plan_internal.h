/*
 * plan_internal.h - what a plan is made of, for plan.c (changes and undo) and plan_grant.c
 * (where a job can run).
 */
#pragma once

#include "model/free_index.h"
#include "model/plan.h"
#include "model/state.h"

#define NONE UINT32_MAX

/* What a revoked job frees on one node and no job has been granted yet. */
struct vacancy {
    job_id victim;
    struct room_part left;
    uint32_t next; /* on the same node */
};

enum step_kind { STEP_REVOKE, STEP_UNREVOKE, STEP_GRANT, STEP_RENEW, STEP_DROP };

/* One thing done, so that it can be undone. */
struct step {
    enum step_kind kind;
    uint32_t change;
    uint32_t last_change;   /* what was known of the job before, for plan->of_job */
    uint32_t vacancy_first; /* of a revocation                                    */
    job_id gpus_of; /* of a revocation taken back: the job that had them vacant */
};

struct plan {
    struct state *state;
    const struct job *jobs;
    const struct cluster *cluster;
    struct free_index *free;   /* the state's */
    struct free_index vacated; /* nodes with vacancies: free and vacated together */

    struct change *changes;
    uint32_t change_count;
    struct step *steps;
    uint32_t step_count;
    struct seat *seats;
    uint32_t seat_count;
    struct pending_part *pending_shares;
    uint32_t pending_count;
    struct vacancy *vacancies;
    uint32_t vacancy_count;
    uint32_t seat_max;
    uint32_t change_max;

    uint32_t *of_job;     /* 1 + its last change in this plan; 0: none */
    bool *revoked;        /* by this plan, whether it is granted others or not */
    uint32_t *guest;      /* 1 + the job that is granted its seats beside it; 0: none */
    uint32_t *of_node;    /* first vacancy, or NONE                    */
    struct room *on_node; /* vacated there in all                      */
    uint32_t vacated_gpu_count;
    int64_t wake_ns;
    job_id wrong_job; /* revoked or dropped against the rules; JOB_NONE: none */
    bool wrong_drop;
};

static inline const struct change *last_change(const struct plan *plan, job_id job)
{
    uint32_t at = plan->of_job[job];
    return at ? &plan->changes[at - 1] : NULL;
}

/* It will give up the seats it holds now. */
static inline bool job_leaves(const struct plan *plan, job_id job)
{
    return plan->revoked[job] || plan->jobs[job].state == JOB_STOPPING;
}

/* It has a partner that stays, or one to come; a partner that moves to it counts as well. */
static inline bool has_partner(const struct plan *plan, job_id id)
{
    const struct job *job = &plan->jobs[id];
    if (job->coming != JOB_NONE)
        return true;
    if (job->partner == JOB_NONE)
        return false;
    return plan->jobs[job->partner].partner != id || !job_leaves(plan, job->partner);
}

/* Another job uses the same GPUs and stays, or will: they are not vacated. */
static inline bool shares_gpus(const struct plan *plan, job_id id)
{
    return plan->guest[id] || has_partner(plan, id);
}

static inline struct vacancy *find_vacancy(const struct plan *plan, node_id node,
                                           job_id victim)
{
    uint32_t v = plan->of_node[node];
    while (v != NONE && plan->vacancies[v].victim != victim)
        v = plan->vacancies[v].next; /* the newest is first */
    return v == NONE ? NULL : &plan->vacancies[v];
}

/* A seat's GPUs that will be free: those in use outside of Berth will not. */
static inline uint64_t plan_left_behind(const struct plan *plan,
                                        const struct seat *seat)
{
    return seat->gpus & ~plan->state->foreign[seat->node];
}

/* Take what is free, or put it back; the same with a vacancy; with all vacancies of a job. */
void plan_free_change(struct plan *plan, const struct room_part *part, bool taken);
void plan_vacancy_change(struct plan *plan, struct vacancy *vacancy,
                         const struct room_part *part, bool taken);
void plan_vacancies_change(struct plan *plan, job_id id, job_id gpus_of, bool taken);

/* A new change; and, once it is written, the step that makes it the last of its job. */
struct change *plan_change_add(struct plan *plan, enum change_kind kind, job_id job);
struct step *plan_step_add(struct plan *plan, enum step_kind kind, uint32_t change);

/* A job's seats once the plan is carried out; 'granted' NULL: those it holds. */
struct final_seats {
    const struct change *granted;
    const struct seat *seats;
    uint32_t count;
};

/* False if it will hold none. */
bool plan_find_final(const struct plan *plan, job_id id, struct final_seats *ret_stand);
