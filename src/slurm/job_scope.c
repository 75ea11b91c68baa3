/* job_scope.c - which jobs a request may be about. */
#include "slurm/job_scope.h"

#include <stdlib.h>
#include <string.h>

#include "slurm/slurm_record.h"

static uint64_t task_key(uint32_t array, uint32_t task)
{
    return (uint64_t)array << 32 | task;
}

static enum job_scope_answer answer_of(const struct map *map, uint64_t key)
{
    uint32_t found = map_find(map, key);
    return found == MAP_NONE ? SCOPE_UNKNOWN : (enum job_scope_answer)found;
}

void job_scope_release(struct job_scope *scope)
{
    map_release(&scope->jobs);
    map_release(&scope->arrays);
    map_release(&scope->tasks);
    *scope = (struct job_scope){ 0 };
}

void job_scope_add(struct job_scope *scope, const struct slurm_job *job, bool managed)
{
    enum job_scope_answer answer = managed ? SCOPE_MANAGED : SCOPE_FOREIGN;
    map_put(&scope->jobs, job->id, answer);
    if (job->array_id == 0)
        return;
    if (answer_of(&scope->arrays, job->array_id) != SCOPE_FOREIGN)
        map_put(&scope->arrays, job->array_id, answer);
    if (job->array_task != SLURM_NONE)
        map_put(&scope->tasks, task_key(job->array_id, job->array_task), answer);
}

void job_scope_keep(struct job_scope *scope, const struct job_scope *earlier,
                    uint32_t id)
{
    enum job_scope_answer job = answer_of(&earlier->jobs, id);
    enum job_scope_answer array = answer_of(&earlier->arrays, id);
    if (job != SCOPE_UNKNOWN)
        map_put(&scope->jobs, id, job);
    if (array != SCOPE_UNKNOWN && answer_of(&scope->arrays, id) != SCOPE_FOREIGN)
        map_put(&scope->arrays, id, array);
}

enum job_scope_answer job_scope_find(const struct job_scope *scope, const char *job)
{
    char *end;
    uint64_t id = strtoull(job, &end, 10);
    if (*end == '\0') {
        enum job_scope_answer array = answer_of(&scope->arrays, id);
        return array != SCOPE_UNKNOWN ? array : answer_of(&scope->jobs, id);
    }
    uint32_t task = (uint32_t)strtoul(end + 1, NULL, 10);
    enum job_scope_answer own = answer_of(&scope->tasks, task_key((uint32_t)id, task));
    /* A task without a record of its own is part of the array's. */
    return own != SCOPE_UNKNOWN ? own : answer_of(&scope->jobs, id);
}
