/* admission.h - check a submitted job and turn its description into what the scheduler keeps. */
#pragma once

#include "base/arena.h"
#include "base/map.h"
#include "model/job.h"
#include "model/node_set.h"

struct cluster;
struct error;
struct rate_table;
struct throughput;

/* Names of entities and of users, numbered as they are met; 0 is none. */
struct admission {
    const struct cluster *cluster;
    const struct throughput *rates;
    struct rate_table
        *learned; /* kinds that rates are learned of; NULL: no rates are */
    struct arena names;
    struct map entities; /* hash of the name to its number */
    uint32_t entity_count;
    struct map users; /* the same of users */
    uint32_t user_count;
    struct node_sets sets; /* of jobs that may run on some nodes only */
};

void admission_init(struct admission *admission, const struct cluster *cluster,
                    const struct throughput *rates);

/*
 * From now on jobs without a row in the table of throughputs are of a learned kind: the one
 * they declare, or one by their name without numbers, their program, user and GPUs.
 */
void admission_learn(struct admission *admission, const struct throughput *rates,
                     struct rate_table *learned);
void admission_release(struct admission *admission);

/* The number of a user (job.user); 0: NULL or no name. */
uint32_t admission_user(struct admission *admission, const char *name);

/* The same of one who was met before; 0: there is none. */
uint32_t admission_find_user(const struct admission *admission, const char *name);

/*
 * Write the job that 'spec' describes.  -ERANGE with the reason if it can never run on
 * this cluster, however empty: such a job is rejected, not waited for.  The state gives
 * back what the job holds here when it is over, so it must not outlive this.
 */
int admission_make_job(struct admission *admission, const struct job_spec *spec,
                       struct job *ret_job, struct error *err);
