/* Waiting jobs in order of submission. */
#include "support/world.h"

#include "policy/shared/fifo_queue.h"

static void assert_order(const struct fifo_queue *queue, const job_id *jobs,
                         uint32_t count)
{
    job_id at = queue->first;
    for (uint32_t i = 0; i < count; i++, at = fifo_queue_next(queue, at))
        assert_int_equal(at, jobs[i]);
    assert_int_equal(at, JOB_NONE);
    assert_int_equal(queue->count, count);
    assert_int_equal(queue->last, count ? jobs[count - 1] : JOB_NONE);
}

static void a_job_that_comes_back_gets_its_old_place(void **state)
{
    struct world w;
    struct fifo_queue queue;
    job_id jobs[5];
    world_init(&w, 1, 1);
    fifo_queue_init(&queue, &w.arena, WORLD_JOBS_MAX);
    assert_order(&queue, NULL, 0);
    for (int i = 0; i < 5; i++) {
        jobs[i] = world_queued(&w, (struct job){ .gpus = 1 });
        world_pass(&w, i == 1 ? 0 : 1); /* the second and the third arrive together */
        fifo_queue_add(&queue, &w.state.view, jobs[i]);
    }
    assert_order(&queue, jobs, 5);
    for (int i = 0; i < 5; i++) {
        fifo_queue_remove(&queue, jobs[i]);
        fifo_queue_remove(&queue, jobs[i]); /* changes nothing */
        assert_int_equal(queue.count, 4);
        fifo_queue_add(&queue, &w.state.view, jobs[i]);
        fifo_queue_add(&queue, &w.state.view, jobs[i]);
        assert_order(&queue, jobs, 5);
    }
    for (int i = 4; i >= 0; i--) {
        fifo_queue_remove(&queue, jobs[i]);
        assert_order(&queue, jobs, (uint32_t)i);
    }
    world_release(&w);
}

RUN_CASES(TEST(a_job_that_comes_back_gets_its_old_place));
