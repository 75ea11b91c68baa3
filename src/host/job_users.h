/*
 * job_users.h - whose jobs a berthd for several users runs.
 *
 * berth-launch, which is root, keeps to this rule in all that it does, and tells it to berthd,
 * which refuses submissions by it: a job that cannot be started is not accepted.
 */
#pragma once

#include <stdint.h>

struct error;

struct job_users {
    uint32_t service_uid; /* who berthd is: has no jobs               */
    uint32_t min_uid;     /* smallest user number of others than root */
    uint32_t root_jobs;   /* not 0: jobs of root are run as well      */
};

/* -EPERM: jobs of this user are not run. */
int job_users_check(const struct job_users *users, uint32_t uid, struct error *err);
