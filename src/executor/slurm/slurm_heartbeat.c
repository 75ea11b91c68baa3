/* slurm_heartbeat.c - tell others that berthd can place jobs, as long as that is so. */
#include "executor/slurm/slurm_heartbeat.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <uv.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/json_write.h"
#include "base/memory.h"
#include "executor/slurm/slurm_internal.h"
#include "executor/slurm/slurm_link.h"
#include "host/heartbeat.h"
#include "model/cluster.h"

#define LINE_BYTES_MAX 256
#define MORE_BYTES_MAX 3500 /* job_submit.lua reads 4,000 */
#define PERIODS 5           /* within the limit: one that comes late does no harm */
#define PERIOD_MAX_MS 10000
#define FIRST_MS 100

struct slurm_heartbeat {
    struct slurm *slurm; /* NULL: closed */
    uv_timer_t timer;
    bool timer_closed;
    uv_work_t work;
    bool writing;
    int64_t seq; /* of the poll under way; 0: none */
    char *path;
    struct buf more; /* what the nodes have, for the write under way */
    uint32_t limit_s;
    struct error err; /* of the last write */
    bool failed;      /* the one before did, which was said */
};

static void free_if_unused(struct slurm_heartbeat *heartbeat)
{
    if (!heartbeat->timer_closed || heartbeat->writing)
        return;
    free(heartbeat->path);
    buf_release(&heartbeat->more);
    free(heartbeat);
}

/* --- writing the file ---------------------------------------------------------------- */

static void write_beat(uv_work_t *work)
{
    struct slurm_heartbeat *heartbeat = work->data;
    heartbeat->err.text[0] = '\0';
    heartbeat_write(heartbeat->path, (int64_t)time(NULL), heartbeat->limit_s,
                    heartbeat->more.count > 0 ? heartbeat->more.bytes : "",
                    &heartbeat->err);
}

/* A failure is said once, and not again until it has been written. */
static void handle_written(uv_work_t *work, int status)
{
    struct slurm_heartbeat *heartbeat = work->data;
    bool failed = heartbeat->err.text[0] != '\0';
    heartbeat->writing = false;
    if (failed && !heartbeat->failed)
        fprintf(stderr,
                "berthd: no heartbeat for Slurm, so that new jobs are not held: %s\n",
                heartbeat->err.text);
    heartbeat->failed = failed;
    free_if_unused(heartbeat);
}

/*
 * With this job_submit.lua refuses what no node can ever give.  Nodes that are down count; of one
 * with several types not all is known, and nothing is refused then.
 */
static void list_gpus(struct slurm_heartbeat *heartbeat)
{
    const struct cluster *cluster = heartbeat->slurm->setup.view->cluster;
    buf_reset(&heartbeat->more);
    for (uint32_t i = 0; i < cluster->shape_count; i++) {
        const struct shape *shape = &cluster->shapes[i];
        if (shape->node.type != TYPE_NONE && !heartbeat->slurm->types_mixed)
            buf_print(&heartbeat->more, "%s %u %u\n",
                      cluster->types[shape->node.type].name, shape->node.gpu_count,
                      shape->count);
    }
    if (heartbeat->more.full)
        buf_reset(&heartbeat->more);
}

static void begin_write(struct slurm_heartbeat *heartbeat)
{
    if (heartbeat->writing) /* the file system hangs */
        return;
    list_gpus(heartbeat);
    heartbeat->work.data = heartbeat;
    heartbeat->writing = uv_queue_work(heartbeat->slurm->setup.loop, &heartbeat->work,
                                       write_beat, handle_written) == 0;
}

/* --- asking Slurm --------------------------------------------------------------------- */

static void ask_for_poll(uv_timer_t *timer)
{
    struct slurm_heartbeat *heartbeat = timer->data;
    struct slurm *slurm = heartbeat->slurm;
    struct buf line;
    if (heartbeat->seq || !slurm->synced)
        return;
    buf_init(&line, LINE_BYTES_MAX);
    heartbeat->seq = ++slurm->seq_last;
    json_write_open(&line, NULL, '{');
    json_write_count(&line, "seq", heartbeat->seq);
    json_write_text(&line, "verb", bridge_verb_name(VERB_POLL));
    json_write_close(&line, '}');
    slurm_link_say(slurm->link, &line);
    buf_release(&line);
}

/* Each costs Slurm a few polls. */
static uint64_t find_period_ms(const struct slurm_heartbeat *heartbeat)
{
    uint64_t period_ms = (uint64_t)heartbeat->limit_s * 1000 / PERIODS;
    return period_ms > 0 && period_ms < PERIOD_MAX_MS ? period_ms : PERIOD_MAX_MS;
}

void slurm_heartbeat_soon(struct slurm_heartbeat *heartbeat)
{
    if (heartbeat)
        uv_timer_start(&heartbeat->timer, ask_for_poll, FIRST_MS,
                       find_period_ms(heartbeat));
}

bool slurm_heartbeat_answer(struct slurm_heartbeat *heartbeat, int64_t seq, bool ok)
{
    if (!heartbeat || heartbeat->seq != seq)
        return false;
    heartbeat->seq = 0;
    if (ok && heartbeat->slurm->synced)
        begin_write(heartbeat);
    return true;
}

void slurm_heartbeat_lost(struct slurm_heartbeat *heartbeat)
{
    if (heartbeat)
        heartbeat->seq = 0;
}

/* --- beginning and end ---------------------------------------------------------------- */

struct slurm_heartbeat *slurm_heartbeat_open(struct slurm *slurm, const char *path,
                                             uint32_t limit_s)
{
    struct slurm_heartbeat *heartbeat = memory_checked(calloc(1, sizeof *heartbeat));
    heartbeat->slurm = slurm;
    heartbeat->path = memory_text(path);
    buf_init(&heartbeat->more, MORE_BYTES_MAX);
    heartbeat->limit_s = limit_s;
    uv_timer_init(slurm->setup.loop, &heartbeat->timer);
    heartbeat->timer.data = heartbeat;
    return heartbeat;
}

static void handle_timer_closed(uv_handle_t *handle)
{
    struct slurm_heartbeat *heartbeat = handle->data;
    heartbeat->timer_closed = true;
    free_if_unused(heartbeat);
}

void slurm_heartbeat_close(struct slurm_heartbeat *heartbeat)
{
    if (!heartbeat)
        return;
    heartbeat->slurm = NULL;
    uv_close((uv_handle_t *)&heartbeat->timer, handle_timer_closed);
}
