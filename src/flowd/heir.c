/* heir.c - who clears up if we are killed. */
#include "flowd/heir.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"

struct will {
    _Atomic uint32_t count; /* 0 while it is being written */
    struct bequest list[DESIRED_JOBS_MAX];
};

struct heir {
    struct will *will;
    void (*inherit)(void *context, struct bequest *list, uint32_t count);
    void *context;
    uint32_t count;
    pid_t child; /* 0: there is none */
    int life;    /* the end of the pipe that closes when we end */
};

/* All descriptors but this one: what we hold keeps the agent's own things alive. */
static void close_others(int kept)
{
    if (dup2(kept, 3) < 0)
        _exit(1);
    syscall(SYS_close_range, 4u, ~0u, 0);
}

static _Noreturn void wait_and_inherit(struct heir *heir, int life)
{
    struct will *will = heir->will;
    char byte;
    /* Whoever ends the agent's whole group means the agent; we end with it. */
    signal(SIGTERM, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    prctl(PR_SET_NAME, "flowd-heir");
    close_others(life);
    while (read(3, &byte, 1) < 0 && errno == EINTR)
        ;
    uint32_t count = atomic_load(&will->count);
    for (uint32_t i = 0; i < count; i++) {
        struct bequest *one = &will->list[i];
        one->name[sizeof one->name - 1] = '\0';
        one->target.cgroup = one->name[0] ? one->name : NULL;
    }
    if (count > 0)
        heir->inherit(heir->context, will->list, count);
    _exit(0);
}

static int start(struct heir *heir, struct error *err)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return error_set(err, -errno, "pipe: %s", strerror(errno));
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        wait_and_inherit(heir, ends[0]);
    close(ends[0]);
    if (child < 0) {
        close(ends[1]);
        return error_set(err, -EAGAIN, "a child that clears up cannot be started");
    }
    heir->child = child;
    heir->life = ends[1];
    return 0;
}

/* Forget one that was killed. */
static bool has_gone(struct heir *heir)
{
    if (heir->child == 0 || waitpid(heir->child, NULL, WNOHANG) != heir->child)
        return heir->child == 0;
    close(heir->life);
    heir->child = 0;
    return true;
}

int heir_new(struct heir **ret_heir,
             void (*inherit)(void *context, struct bequest *list, uint32_t count),
             void *context, struct error *err)
{
    struct heir *heir = calloc(1, sizeof *heir);
    if (!heir)
        abort(); /* out of memory */
    *heir = (struct heir){ .inherit = inherit, .context = context };
    heir->will = mmap(NULL, sizeof *heir->will, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (heir->will == MAP_FAILED)
        abort();
    int r = start(heir, err);
    if (r < 0)
        heir_free(heir);
    else
        *ret_heir = heir;
    return r;
}

void heir_begin(struct heir *heir)
{
    atomic_store(&heir->will->count, 0);
    heir->count = 0;
    if (has_gone(heir))
        start(heir, NULL); /* if that fails, there is a next time */
}

void heir_add(struct heir *heir, const struct mark_target *target, uint64_t start)
{
    if (heir->count == DESIRED_JOBS_MAX)
        return;
    struct bequest *one = &heir->will->list[heir->count++];
    one->target = *target;
    one->target.cgroup = NULL;
    one->start = start;
    snprintf(one->name, sizeof one->name, "%s", target->cgroup ? target->cgroup : "");
}

void heir_end(struct heir *heir)
{
    atomic_store(&heir->will->count, heir->count);
}

void heir_free(struct heir *heir)
{
    if (!heir)
        return;
    atomic_store(&heir->will->count, 0);
    if (!has_gone(heir)) {
        close(heir->life);
        waitpid(heir->child, NULL, 0);
    }
    munmap(heir->will, sizeof *heir->will);
    free(heir);
}
