/* pair_figures.c - what jobs gained and lost by sharing GPUs, for users. */
#include "daemon/routes/pair_figures.h"

#include <math.h>

#include "api/api_json.h"
#include "base/json_write.h"
#include "daemon/daemon.h"
#include "daemon/scheduler.h"
#include "engine/engine.h"
#include "metrics/prometheus.h"
#include "store/db.h"
#include "store/rows.h"
#include "store/store.h"

#define PAIRS_MAX 1000 /* of one job, the newest */

/* The state's view at the present; between two events it is the time of the last. */
static struct view view_now(const struct daemon_view *facts)
{
    struct view view = facts->engine->state.view;
    if (facts->now_ns > view.now_ns)
        view.now_ns = facts->now_ns;
    return view;
}

static bool find_pair(const struct daemon_view *facts, job_id job,
                      struct pair_entry *ret_entry)
{
    struct view view = view_now(facts);
    return pair_ledger_find(&facts->scheduler->ledger.pairs, &view, job, ret_entry);
}

void pair_figures_set_partner(const struct daemon_view *facts, job_id id,
                              struct api_job *words)
{
    const struct view *view = &facts->engine->state.view;
    const struct job *job = &view->jobs[id];
    struct pair_entry entry;
    words->kept = NAN;
    if (job->partner == JOB_NONE || !job_holds_seats(job))
        return;
    words->beside = view->jobs[job->partner].id;
    if (find_pair(facts, id, &entry))
        words->kept = pair_entry_kept(&entry, entry.jobs[1] == job->id);
}

static void write_pair(struct buf *body, const struct pair_entry *entry, uint64_t id)
{
    int which = entry->jobs[1] == id;
    json_write_open(body, NULL, '{');
    json_write_count(body, "beside", (int64_t)entry->jobs[1 - which]);
    json_write_time(body, "from", entry->from_ns);
    if (entry->to_ns >= 0)
        json_write_time(body, "to", entry->to_ns);
    json_write_count(body, "gpus", entry->gpus);
    json_write_number(body, "shared_s", (double)entry->shared_ns * 1e-9);
    if (!isnan(pair_entry_kept(entry, which))) {
        json_write_number(body, "kept", pair_entry_kept(entry, which));
        json_write_number(body, "beside_kept", pair_entry_kept(entry, 1 - which));
    }
    json_write_number(body, "gained_gpu_s", pair_entry_gained_gpu_s(entry));
    json_write_number(body, "lost_gpu_s", (double)entry->lost_ns * 1e-9);
    json_write_close(body, '}');
}

void pair_figures_write_job(const struct daemon_view *facts, uint64_t id,
                            struct buf *body)
{
    struct db_query *query =
        rows_select_pairs_of(store_reader(facts->store), id, PAIRS_MAX);
    struct pair_entry entry;
    bool any = false;
    while (rows_read_pair(query, &entry, NULL) == 1) {
        job_id job = entry.to_ns < 0 ? scheduler_find(facts->scheduler, id) : JOB_NONE;
        struct pair_entry now;
        if (job != JOB_NONE && find_pair(facts, job, &now) &&
            now.from_ns == entry.from_ns)
            entry = now;
        if (!any)
            json_write_open(body, "sharing", '[');
        any = true;
        write_pair(body, &entry, id);
    }
    if (any)
        json_write_close(body, ']');
    db_finish(query);
}

static void find_totals(const struct daemon_view *facts, struct pair_totals *totals)
{
    struct view view = view_now(facts);
    pair_ledger_totals(&facts->scheduler->ledger.pairs, &view, totals);
}

void pair_figures_write_totals(const struct daemon_view *facts, struct buf *body)
{
    struct pair_totals totals = { 0 };
    if (facts->engine)
        find_totals(facts, &totals);
    if (totals.pairs == 0)
        return;
    json_write_open(body, "sharing", '{');
    json_write_count(body, "pairs", (int64_t)totals.pairs);
    json_write_count(body, "running", (int64_t)totals.running);
    json_write_number(body, "shared_gpu_s", totals.shared_gpu_s);
    json_write_number(body, "gained_gpu_s", totals.gained_gpu_s);
    json_write_number(body, "lost_gpu_s", totals.lost_gpu_s);
    json_write_close(body, '}');
}

void pair_figures_write_metrics(const struct daemon_view *facts, struct prometheus *out)
{
    struct pair_totals totals;
    find_totals(facts, &totals);
    prometheus_gauge(out, "berth_pairs", NULL,
                     "Pairs of jobs that share GPUs and both make steps.");
    prometheus_count(out, NULL, totals.running);
    prometheus_counter(out, "berth_pairs_formed", NULL,
                       "Pairs of jobs that have shared GPUs.");
    prometheus_count(out, NULL, totals.pairs);
    prometheus_counter(out, "berth_shared_gpu_seconds", "seconds",
                       "GPU-time in which two jobs made steps on the same GPUs.");
    prometheus_value(out, NULL, totals.shared_gpu_s);
    /* A pair that is slower than one job alone takes from it. */
    prometheus_gauge(out, "berth_sharing_gained_gpu_seconds", "seconds",
                     "GPU-time that the same steps would have taken in addition, had "
                     "each job run alone.");
    prometheus_value(out, NULL, totals.gained_gpu_s);
    prometheus_counter(out, "berth_sharing_lost_gpu_seconds", "seconds",
                       "GPU-time of stops by which pairs were formed or parted.");
    prometheus_value(out, NULL, totals.lost_gpu_s);
}
