/* upkeep.c - berthd looks after what it keeps. */
#include "daemon/upkeep.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/units.h"
#include "daemon/daemon_internal.h"
#include "host/attempt.h"
#include "host/launcher_client.h"
#include "store/db.h"
#include "store/prune.h"
#include "store/store.h"
#include "store/submission_keys.h"

#define ROUND_MS 60000    /* between two rounds             */
#define ROUND_MS_MIN 1000 /* where little is kept           */
#define PRUNE_MS 3600000  /* from one pruning to the next   */
#define PIECE_MS 50       /* between two pieces             */
#define PIECE_ROWS 500    /* that are deleted at once       */
#define PIECE_NS 5000000  /* that giving them back may take  */
#define PIECE_PAGES 64    /* that are given back at once    */
#define FREE_PAGES 256    /* that stay, beside an eighth    */
#define COPY_S 86400      /* how long a copy is kept        */

/* Of a round, in this order. */
enum upkeep_stage {
    STAGE_NONE,
    STAGE_REPORTS,
    STAGE_EVENTS,
    STAGE_KEYS,
    STAGE_JOBS,
    STAGE_PAGES,
    STAGE_END,
};

struct upkeep {
    struct daemon *daemon;
    void (*failed)(void *context, const struct error *err);
    struct prune *prune;
    uv_timer_t timer;
    uv_work_t work;
    bool works;           /* files are being removed          */
    atomic_bool is_ended; /* no further piece                 */
    uint64_t prune_at_ms; /* of the loop's time: what is old  */
    enum upkeep_stage stage;
    struct prune_job
        jobs[PRUNE_JOBS_MAX]; /* whose files are gone, whose rows are next */
    uint32_t count, done;
    int64_t before_ns; /* of these jobs */
};

/* --- files of jobs ------------------------------------------------------------------------ */

/* In a thread: a checkpoint may be large. */
static void remove_files(uv_work_t *work)
{
    struct upkeep *upkeep = work->data;
    const struct daemon_setup *setup = &upkeep->daemon->setup;
    int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW;
    int state = open(setup->state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int log = openat(state, "log", flags), ckpt = openat(state, "ckpt", flags);
    for (uint32_t i = 0; i < upkeep->count && !upkeep->is_ended; i++)
        attempt_remove_kept(log, ckpt, upkeep->jobs[i].id, attempt_empty_folder, NULL);
    const int fds[] = { state, log, ckpt };
    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

static void plan_piece(struct upkeep *upkeep, uint64_t in_ms);

static void on_removed(uv_work_t *work, int status)
{
    struct upkeep *upkeep = work->data;
    (void)status;
    upkeep->works = false;
    if (!upkeep->is_ended)
        plan_piece(upkeep, 0);
}

/*
 * Files go before rows: after a crash in between the rows are still there, and the files are
 * looked for again.  With Slurm jobs have none here.
 */
static void start_removal(struct upkeep *upkeep)
{
    struct daemon *daemon = upkeep->daemon;
    if (daemon->setup.launcher) {
        for (uint32_t i = 0; i < upkeep->count; i++)
            launcher_client_forget_job(daemon->setup.launcher, upkeep->jobs[i].id);
    } else if (!daemon->setup.system) {
        upkeep->works = true;
        upkeep->work.data = upkeep;
        uv_queue_work(&daemon->loop, &upkeep->work, remove_files, on_removed);
    }
}

/* --- jobs ------------------------------------------------------------------------------- */

/* Delete rows of the jobs that were found; how many. */
static int64_t delete_rows(struct upkeep *upkeep, struct error *err)
{
    const struct start_conditions *conditions = &upkeep->daemon->scheduler.conditions;
    int64_t count = 0;
    while (upkeep->done < upkeep->count && count < PIECE_ROWS) {
        const struct prune_job *job = &upkeep->jobs[upkeep->done];
        uint32_t left = PIECE_ROWS - (uint32_t)count;
        if (conditions_need(conditions, job->id)) { /* since it was found */
            upkeep->done++;
            continue;
        }
        int64_t rows =
            prune_delete_job(upkeep->prune, job, upkeep->before_ns, left, err);
        if (rows < 0)
            return rows;
        count += rows + 1;
        upkeep->done += rows < left;
    }
    return count;
}

static int64_t prune_jobs(struct upkeep *upkeep, int64_t before_ns, struct error *err)
{
    const struct start_conditions *conditions = &upkeep->daemon->scheduler.conditions;
    uint32_t found;
    if (upkeep->done < upkeep->count)
        return delete_rows(upkeep, err);
    upkeep->before_ns = before_ns;
    upkeep->count = upkeep->done = 0;
    if (!prune_find_jobs(upkeep->prune, before_ns, upkeep->jobs, &found))
        return 0;
    for (uint32_t i = 0; i < found; i++)
        if (!conditions_need(conditions, upkeep->jobs[i].id))
            upkeep->jobs[upkeep->count++] = upkeep->jobs[i];
    if (upkeep->count > 0)
        start_removal(upkeep);
    return 1;
}

/* --- the database and its copies ---------------------------------------------------------- */

/* Some free pages stay, for what comes next. */
static int64_t shrink_file(struct upkeep *upkeep, struct error *err)
{
    int64_t pages, unused;
    struct db *db = store_writer(upkeep->daemon->store);
    db_count_pages(db, &pages, &unused);
    if (unused <= pages / 8 + FREE_PAGES)
        return 0;
    int r = db_shrink(db, PIECE_PAGES, PIECE_NS, err);
    int64_t before = unused;
    db_count_pages(db, &pages, &unused);
    return r < 0 ? r : before > unused; /* 0: an old file, which cannot shrink */
}

/* Copies that were made before a change of version have environments in them. */
static void remove_copies(const char *state_dir)
{
    static const char prefix[] = "berth.db.before-";
    DIR *dir = opendir(state_dir);
    struct stat file;
    if (!dir)
        return;
    for (struct dirent *entry; (entry = readdir(dir));)
        if (strncmp(entry->d_name, prefix, strlen(prefix)) == 0 &&
            fstatat(dirfd(dir), entry->d_name, &file, AT_SYMLINK_NOFOLLOW) == 0 &&
            time(NULL) - file.st_mtime > COPY_S)
            unlinkat(dirfd(dir), entry->d_name, 0);
    closedir(dir);
}

/* --- rounds ------------------------------------------------------------------------------ */

/* Do one piece of the present stage: how much was done; 0: the stage is over. */
static int64_t do_piece(struct upkeep *upkeep, struct error *err)
{
    struct daemon *daemon = upkeep->daemon;
    int64_t now_ns = scheduler_now_ns(&daemon->scheduler);
    int64_t jobs_before_ns = now_ns - daemon->setup.keep_jobs_ns;
    switch (upkeep->stage) {
    case STAGE_REPORTS:
        return prune_reports(upkeep->prune, now_ns - daemon->setup.keep_reports_ns,
                             PIECE_ROWS, err);
    case STAGE_EVENTS:
        return prune_events(upkeep->prune, jobs_before_ns, PIECE_ROWS, err);
    case STAGE_KEYS:
        return submission_keys_prune(daemon->submission.keys,
                                     now_ns - SUBMISSION_KEYS_KEEP_NS, PIECE_ROWS, err);
    case STAGE_JOBS:
        return prune_jobs(upkeep, jobs_before_ns, err);
    case STAGE_PAGES:
        return shrink_file(upkeep, err);
    default:
        return 0;
    }
}

/* So often, but within half the time for which something is kept. */
static uint64_t limit_ms(const struct daemon_setup *setup, uint64_t ms)
{
    int64_t keep_ns = setup->keep_jobs_ns < setup->keep_reports_ns
                          ? setup->keep_jobs_ns
                          : setup->keep_reports_ns;
    uint64_t half_ms = (uint64_t)(keep_ns / 2000000);
    uint64_t most_ms = half_ms > ROUND_MS_MIN ? half_ms : ROUND_MS_MIN;
    return ms < most_ms ? ms : most_ms;
}

static void plan_round(struct upkeep *upkeep)
{
    upkeep->count = upkeep->done = 0;
    prune_restart(upkeep->prune);
    plan_piece(upkeep, limit_ms(&upkeep->daemon->setup, ROUND_MS));
}

static void begin_round(struct upkeep *upkeep)
{
    uint64_t now_ms = uv_now(&upkeep->daemon->loop);
    upkeep->stage = now_ms < upkeep->prune_at_ms ? STAGE_END : STAGE_REPORTS;
    if (upkeep->stage != STAGE_END)
        upkeep->prune_at_ms = now_ms + limit_ms(&upkeep->daemon->setup, PRUNE_MS);
}

/* What was deleted goes from the log too; if somebody reads just now, in the next round. */
static void end_round(struct upkeep *upkeep)
{
    struct daemon *daemon = upkeep->daemon;
    if (store_has_remains(daemon->store))
        store_checkpoint(daemon->store, NULL);
    remove_copies(daemon->setup.state_dir);
    upkeep->stage = STAGE_NONE;
    plan_round(upkeep);
}

static void on_piece(uv_timer_t *timer)
{
    struct upkeep *upkeep = timer->data;
    struct daemon *daemon = upkeep->daemon;
    struct error err = { "" };
    if (!daemon->scheduler.alive || daemon->scheduler.wanted) {
        plan_piece(upkeep, PIECE_MS); /* what jobs and users wait for comes first */
        return;
    }
    if (upkeep->stage == STAGE_NONE)
        begin_round(upkeep);
    int64_t count = do_piece(upkeep, &err);
    int r = count < 0 ? (int)count : store_commit(daemon->store, &err);
    if (r < 0) {
        upkeep->stage = STAGE_NONE;
        plan_round(upkeep);
        upkeep->failed(daemon, &err);
    } else if (upkeep->stage == STAGE_END) {
        end_round(upkeep);
    } else {
        upkeep->stage += count == 0;
        if (!upkeep->works)
            plan_piece(upkeep, count > 0 ? PIECE_MS : 0);
    }
}

static void plan_piece(struct upkeep *upkeep, uint64_t in_ms)
{
    uv_timer_start(&upkeep->timer, on_piece, in_ms, 0);
}

/* --- beginning and end --------------------------------------------------------------------- */

struct upkeep *upkeep_new(struct daemon *daemon,
                          void (*failed)(void *context, const struct error *err))
{
    struct upkeep *upkeep = memory_checked(calloc(1, sizeof *upkeep));
    upkeep->daemon = daemon;
    upkeep->failed = failed;
    upkeep->prune = prune_new(daemon->store);
    uv_timer_init(&daemon->loop, &upkeep->timer);
    upkeep->timer.data = upkeep;
    plan_round(upkeep);
    return upkeep;
}

void upkeep_stop(struct upkeep *upkeep)
{
    if (!upkeep)
        return;
    upkeep->is_ended = true;
    uv_close((uv_handle_t *)&upkeep->timer, NULL);
    prune_free(upkeep->prune);
    upkeep->prune = NULL;
}

void upkeep_free(struct upkeep *upkeep)
{
    free(upkeep);
}
