/*
 * sweep.c - many runs over settings, one engine per thread.
 *
 * Runs of the same jobs, under other policies or settings, read or draw them once: the first
 * that begins keeps them for the others, the last that ends frees them.  All that are kept at a
 * time are JOBS_KEPT_MAX at most; jobs beyond that are read by each run for itself, as if it
 * were alone.
 */
#include "sim/sweep.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/memory.h"
#include "base/sort.h"
#include "model/cluster.h"
#include "workload/preset.h"
#include "workload/workload.h"

#define THREADS_MAX 256
#define JOBS_KEPT_MAX 500000 /* 150 MB */

/* Jobs of several runs. */
struct sweep_jobs {
    pthread_mutex_t lock; /* while they are read */
    bool was_read;
    uint32_t runs_left;
    struct arena arena;
    struct job_spec *jobs; /* NULL: every run reads its own */
    uint64_t count, skipped;
};

struct sweep_pool {
    struct sweep_run *runs;
    uint32_t count;
    struct sort_item *order;
    uint32_t next;  /* in that order */
    double *shares; /* how far each run is */
    struct sweep_jobs *groups;
    uint32_t group_count;
    uint32_t *group_of; /* by run; NO_GROUP: it is the only one with its jobs */
    uint64_t jobs_kept;
    pthread_mutex_t lock;
    void (*progress)(void *context, double share);
    void *context;
};

/* Where a run reports how far it is. */
struct sweep_slot {
    struct sweep_pool *pool;
    uint32_t index;
};

uint32_t sweep_threads(void)
{
    cpu_set_t set;
    int count = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    return count < 1 ? 1 : count > THREADS_MAX ? THREADS_MAX : (uint32_t)count;
}

static void show_progress(struct sweep_pool *pool, uint32_t index, double share)
{
    if (!pool->progress)
        return;
    pthread_mutex_lock(&pool->lock);
    pool->shares[index] = share;
    double sum = 0;
    for (uint32_t i = 0; i < pool->count; i++)
        sum += pool->shares[i];
    pool->progress(pool->context, sum / pool->count);
    pthread_mutex_unlock(&pool->lock);
}

static void run_progress(void *context, uint64_t done, uint64_t expected)
{
    const struct sweep_slot *place = context;
    if (expected > 0)
        show_progress(place->pool, place->index, (double)done / (double)expected);
}

/* --- jobs of several runs ------------------------------------------------------------- */

#define NO_GROUP UINT32_MAX

static bool is_same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* A file is the same for every seed. */
static bool depends_on_seed(const struct sim_setup *setup)
{
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(setup->workload, ":"),
             setup->workload);
    return !setup->format && preset_find(name);
}

/* Whether jobs can be kept: all of a workload that ends, without a list of jobs. */
static bool can_share(const struct sim_setup *setup)
{
    return !setup->jobs && setup->workload && setup->window_to == 0 && !setup->jobs_out;
}

static bool have_same_jobs(const struct sim_setup *a, const struct sim_setup *b)
{
    return can_share(a) && can_share(b) && is_same_text(a->workload, b->workload) &&
           is_same_text(a->format, b->format) &&
           a->cluster->gpu_count == b->cluster->gpu_count &&
           (a->seed == b->seed || !depends_on_seed(a));
}

/* Runs by their jobs, and in this order for those of equal effort. */
static void group_runs(struct sweep_pool *pool)
{
    uint32_t placed = 0;
    for (uint32_t i = 0; i < pool->count; i++)
        pool->group_of[i] = NO_GROUP;
    bool *done = memory_checked(calloc(pool->count + 1, sizeof *done));
    for (uint32_t i = 0; i < pool->count; i++) {
        if (done[i])
            continue;
        struct sweep_jobs *group = &pool->groups[pool->group_count];
        pthread_mutex_init(&group->lock, NULL);
        for (uint32_t k = i; k < pool->count; k++) {
            if (done[k] ||
                (k > i && !have_same_jobs(&pool->runs[i].setup, &pool->runs[k].setup)))
                continue;
            done[k] = true;
            group->runs_left++;
            pool->group_of[k] = pool->group_count;
            pool->order[placed++] = (struct sort_item){ -pool->runs[k].effort, k };
        }
        if (group->runs_left == 1)
            pool->group_of[i] = NO_GROUP;
        pool->group_count++;
    }
    free(done);
}

static const char *copy_text(struct arena *arena, const char *text)
{
    return text ? arena_text(arena, text) : NULL;
}

/* A job with texts of its own; policies guess by name and user, so both are kept. */
static void copy_job(struct arena *arena, const struct job_spec *job,
                     struct job_spec *copy)
{
    *copy = *job;
    copy->name = copy_text(arena, job->name);
    copy->user = copy_text(arena, job->user);
    copy->entity = copy_text(arena, job->entity);
    copy->kind = copy_text(arena, job->kind);
    copy->types = copy_text(arena, job->types);
    copy->nodelist = copy_text(arena, job->nodelist);
    copy->exclude = copy_text(arena, job->exclude);
    copy->after = copy_text(arena, job->after);
    copy->within = copy_text(arena, job->within);
    if (job->curve.point_count > 0) {
        size_t bytes = job->curve.point_count * sizeof *job->curve.points;
        copy->curve.points = memcpy(arena_array(arena, float, job->curve.point_count),
                                    job->curve.points, bytes);
    }
}

/* Jobs that may be kept beside those of other groups; what is not used is given back. */
static uint64_t claim_jobs(struct sweep_pool *pool, uint64_t count)
{
    pthread_mutex_lock(&pool->lock);
    uint64_t free_count = JOBS_KEPT_MAX - pool->jobs_kept;
    uint64_t claimed = count < free_count ? count : free_count;
    pool->jobs_kept += claimed;
    pthread_mutex_unlock(&pool->lock);
    return claimed;
}

static void return_jobs(struct sweep_pool *pool, uint64_t count)
{
    pthread_mutex_lock(&pool->lock);
    pool->jobs_kept -= count;
    pthread_mutex_unlock(&pool->lock);
}

/* Where anything is wrong nothing is kept, and each run finds out what it is. */
static void read_jobs(struct sweep_pool *pool, struct sweep_jobs *group,
                      const struct sim_setup *setup)
{
    struct workload *workload;
    arena_init(&group->arena, 0);
    if (workload_open(&workload, setup->workload, setup->format, setup->seed,
                      setup->cluster->gpu_count, NULL) < 0)
        return;
    uint64_t expected = workload_facts(workload)->expected;
    uint64_t room = claim_jobs(pool, expected > 0 ? expected : JOBS_KEPT_MAX);
    int r = room > 0 && room >= expected ? 1 : -1;
    struct job_spec job;
    if (r > 0) /* taken from the system only as it is used */
        group->jobs = arena_array(&group->arena, struct job_spec, room + 1);
    while (r > 0 && (r = workload_next(workload, &job, NULL)) > 0) {
        if (group->count == room)
            r = -1;
        else
            copy_job(&group->arena, &job, &group->jobs[group->count++]);
    }
    group->skipped = workload_facts(workload)->skipped;
    workload_close(workload);
    if (r < 0) {
        group->jobs = NULL;
        group->count = 0;
        arena_release(&group->arena);
    }
    return_jobs(pool, room - group->count);
}

static void leave_group(struct sweep_pool *pool, struct sweep_jobs *group)
{
    pthread_mutex_lock(&group->lock);
    bool last = --group->runs_left == 0;
    pthread_mutex_unlock(&group->lock);
    if (!last)
        return;
    arena_release(&group->arena);
    return_jobs(pool, group->count);
}

static void do_run(struct sweep_pool *pool, uint32_t index)
{
    struct sweep_run *run = &pool->runs[index];
    struct sim_setup setup = run->setup;
    struct sweep_jobs *group =
        pool->group_of[index] == NO_GROUP ? NULL : &pool->groups[pool->group_of[index]];
    if (group) {
        pthread_mutex_lock(&group->lock);
        if (!group->was_read)
            read_jobs(pool, group, &setup);
        group->was_read = true;
        pthread_mutex_unlock(&group->lock);
        setup.jobs = group->jobs;
        setup.job_count = group->count;
    }
    run->status = sim_run(&setup, &run->result, &run->err);
    if (group && group->jobs)
        run->result.cost.skipped = group->skipped;
    if (group)
        leave_group(pool, group);
}

static void *run_worker(void *argument)
{
    struct sweep_pool *pool = argument;
    for (;;) {
        pthread_mutex_lock(&pool->lock);
        uint32_t index =
            pool->next < pool->count ? pool->order[pool->next++].value : UINT32_MAX;
        pthread_mutex_unlock(&pool->lock);
        if (index == UINT32_MAX)
            return NULL;
        struct sweep_run *run = &pool->runs[index];
        struct sweep_slot place = { pool, index };
        run->setup.progress = run_progress;
        run->setup.context = &place;
        do_run(pool, index);
        show_progress(pool, index, 1);
    }
}

/* The longest first, so that all threads are done at about the same time. */
static void order_runs(struct sweep_pool *pool)
{
    group_runs(pool);
    sort_items(pool->order, pool->order + pool->count, pool->count);
}

int sweep_run_all(struct sweep_run *runs, uint32_t count, uint32_t threads,
                  void (*progress)(void *context, double share), void *context,
                  struct error *err)
{
    struct sweep_pool pool = { .runs = runs,
                               .count = count,
                               .lock = PTHREAD_MUTEX_INITIALIZER,
                               .progress = progress,
                               .context = context };
    pthread_t ids[THREADS_MAX];
    uint32_t started = 0;
    pool.shares = memory_checked(calloc(count + 1, sizeof *pool.shares));
    pool.order = memory_checked(calloc(2 * (size_t)count + 1, sizeof *pool.order));
    pool.groups = memory_checked(calloc(count + 1, sizeof *pool.groups));
    pool.group_of = memory_checked(calloc(count + 1, sizeof *pool.group_of));
    order_runs(&pool);
    if (threads > count)
        threads = count;
    if (threads > THREADS_MAX)
        threads = THREADS_MAX;
    for (; started + 1 < threads; started++)
        if (pthread_create(&ids[started], NULL, run_worker, &pool) != 0)
            break;
    run_worker(&pool); /* this thread is one of them */
    for (uint32_t i = 0; i < started; i++)
        pthread_join(ids[i], NULL);
    for (uint32_t i = 0; i < pool.group_count; i++)
        pthread_mutex_destroy(&pool.groups[i].lock);
    free(pool.groups);
    free(pool.group_of);
    free(pool.shares);
    free(pool.order);

    for (uint32_t i = 0; i < count; i++)
        if (runs[i].status < 0) {
            if (err)
                *err = runs[i].err;
            return runs[i].status;
        }
    return 0;
}
