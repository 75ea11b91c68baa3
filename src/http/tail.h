/*
 * tail.h - a job's output as a stream: what has been written, and what follows.
 *
 * New bytes are found by inotify in berthd's own folder, and by a check four times a second
 * elsewhere: users' files may be on file systems that do not answer, so all that is done with
 * them is done outside the loop.  A tail waits for a file that does not exist yet, starts over in one that
 * was truncated, and ends when its job has ended and all was sent.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct error;
struct http_reply;
struct tails;
struct uv_loop_s;

struct tail_setup {
    const char *path; /* absolute                                       */
    uint32_t uid;     /* owner of the file                              */
    uint64_t job;     /* for tails_wake()                               */
    int64_t offset;   /* bytes to skip; negative: so many from the end      */
    bool follow;      /* until the job has ended                            */
    bool ours; /* in a folder of berthd: opened with its rights if the user owns it */
};

/*
 * Opens files with their user's rights, where berthd does not have them.  'open' calls
 * 'done' once, later, with a descriptor or a negative errno, unless it fails itself or is
 * closed before.
 */
struct tail_opener {
    int (*open)(void *self, uint32_t uid, const char *path,
                void (*done)(void *context, int fd), void *context);
    void *self;
};

/* 'ended' says whether a job will write no more; it is called before the last read. */
void tails_open(struct tails **ret_tails, struct uv_loop_s *loop,
                bool (*ended)(void *context, uint64_t job), void *context);

/* Files that are not ours are opened by this from now on. */
void tails_set_opener(struct tails *tails, const struct tail_opener *opener);

/* After http_close(); the opener calls 'done' no more.  Freed when the loop has run. */
void tails_close(struct tails *tails);

/*
 * Answer with a file.  -ENOENT if it is not there (unless following), -EACCES, -ELOOP,
 * -EINVAL if it cannot or must not be read; then the reply is as it was.  The reply with a
 * user's file comes later, and says so itself; -EAGAIN: this user has too many open.
 */
int tail_reply(struct tails *tails, const struct tail_setup *setup,
               struct http_reply *reply, struct error *err);

/* Something happened to this job: check its output at once. */
void tails_wake(struct tails *tails, uint64_t job);

uint32_t tails_count(const struct tails *tails);
