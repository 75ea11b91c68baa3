/* sweep.c - many runs over settings, one engine per thread. */
#include "sim/sweep.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/sort.h"

#define THREADS_MAX 256

struct sweep_pool {
    struct sweep_run *runs;
    uint32_t count;
    struct sort_item *order;
    uint32_t next;  /* in that order */
    double *shares; /* how far each run is */
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
        run->status = sim_run(&run->setup, &run->result, &run->err);
        show_progress(pool, index, 1);
    }
}

/* The longest first, so that all threads are done at about the same time. */
static void order_runs(struct sweep_pool *pool)
{
    for (uint32_t i = 0; i < pool->count; i++)
        pool->order[i] = (struct sort_item){ -pool->runs[i].effort, i };
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
