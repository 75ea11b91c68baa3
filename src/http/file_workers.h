/*
 * file_workers.h - operations on users' files outside the loop.
 *
 * A file system may take for ever to answer, and a user may have made it.  So each user has
 * one thread at most, and what is to be done for that user waits for it: whoever has a slow
 * file system waits alone.  The threads are not joined.  The process ends when the kernel can end
 * one that hangs: at once, or for FUSE when its server answers or the mount is aborted.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct file_workers;
struct uv_loop_s;

/* Part of a larger structure that stays until 'done' was called. */
struct file_task {
    uint32_t uid;                         /* for whom                   */
    void (*work)(struct file_task *task); /* in a thread                */
    void (*done)(struct file_task *task); /* in the loop, afterwards    */
    struct file_task *next;
};

void file_workers_open(struct file_workers **ret_workers, struct uv_loop_s *loop);

/*
 * Tasks that have not begun are dropped, others are waited for, but not long: 'done' is not
 * called any more.  Freed when the loop has run.
 */
void file_workers_close(struct file_workers *workers,
                        void (*dropped)(struct file_task *task));

void file_workers_add(struct file_workers *workers, struct file_task *task);
