/*
 * gavel_released_units.c - the published rounds: who may run.
 *
 * Units are jobs and pairs of jobs of equal gangs, in order of arrival: a job, then the
 * pairs it makes with those before it.  Pairs that can run nowhere count in the sums of
 * time and are not kept.  What happens in the middle of a round is noted here and means
 * something when it is over.
 */
#include <math.h>
#include <string.h>

#include "policy/gavel/gavel_released.h"

/* --- units --------------------------------------------------------------------------- */

static uint32_t row_new(struct gavel_released *r)
{
    return r->row_free_count > 0 ? r->rows_free[--r->row_free_count] : r->row_used++;
}

/* A pair begins without the half round that a job begins with. */
static void add_unit(struct gavel_common *common, job_id first, job_id second,
                     double rates[][2])
{
    struct gavel_released *r = common->released;
    struct released_unit *unit = &r->units[r->unit_count++];
    *unit = (struct released_unit){ .jobs = { first, second }, .row = row_new(r) };
    struct account *accounts = released_accounts(common, unit);
    for (uint32_t c = 0; c < common->type_count; c++)
        accounts[c] =
            (struct account){ .time_s = unit_is_pair(unit) ? 0 : r->round_s / 2,
                              .rate = { rates[c][0], rates[c][1] } };
    released_stir(r, unit->row);
}

static void admit_job(struct gavel_common *common, const struct view *view, job_id id)
{
    struct gavel_released *r = common->released;
    double rates[TYPES_MAX][2];
    gavel_enroll(common, view, id);
    for (uint32_t c = 0; c < common->type_count; c++) {
        rates[c][0] = gavel_rates(common, id)[c];
        rates[c][1] = INFINITY;
    }
    add_unit(common, id, JOB_NONE, rates);
    r->need = true;
    for (uint32_t i = 0; common->gavel->sharing && i + 1 < common->job_count; i++) {
        job_id other = common->jobs[i];
        if (view->jobs[other].gpus != view->jobs[id].gpus)
            continue;
        if (r->unit_count < common->pair_max &&
            gavel_pair_rates(common, view, other, id, rates))
            add_unit(common, other, id, rates);
        else
            r->hidden++;
    }
}

void released_admit(struct gavel_common *common, const struct view *view)
{
    struct gavel_released *r = common->released;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < r->pending_count; i++) {
        job_id id = r->pending[i];
        if ((double)view->jobs[id].submit_ns / 1e9 > r->now_s) {
            r->pending[kept++] = id;
            continue;
        }
        r->pages[id].pending = false;
        admit_job(common, view, id);
    }
    r->pending_count = kept;
}

static void forget_units(struct gavel_common *common, const struct view *view,
                         job_id id)
{
    struct gavel_released *r = common->released;
    uint32_t kept = 0;
    uint32_t pairs = 0;
    r->due_count = 0;
    for (uint32_t i = 0; i < r->unit_count; i++) {
        const struct released_unit *unit = &r->units[i];
        if (unit->jobs[0] != id && unit->jobs[1] != id) {
            if (unit->due)
                r->due[r->due_count++] = kept;
            r->units[kept++] = *unit;
            continue;
        }
        r->rows_free[r->row_free_count++] = unit->row;
        pairs += unit_is_pair(unit);
    }
    r->unit_count = kept;
    uint32_t others = 0;
    for (uint32_t i = 0; common->gavel->sharing && i < common->job_count; i++)
        others += common->jobs[i] != id &&
                  common->entries[common->jobs[i]].gang == common->entries[id].gang;
    r->hidden -= others - pairs;
}

static void remove_from_list(job_id *jobs, uint32_t *count, job_id id)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < *count; i++)
        if (jobs[i] != id)
            jobs[kept++] = jobs[i];
    *count = kept;
}

/* It is over, or held: as if it had never come. */
void released_forget(struct gavel_common *common, const struct view *view, job_id id)
{
    struct gavel_released *r = common->released;
    struct released_job *page = &r->pages[id];
    remove_from_list(r->hopeless, &r->hopeless_count, id);
    if (page->pending) {
        remove_from_list(r->pending, &r->pending_count, id);
        page->pending = false;
    } else if (common->entries[id].ticket) {
        forget_units(common, view, id);
        gavel_strike(common, id);
        r->need = true;
    }
    if (page->task != NONE) {
        struct task *task = &r->tasks[page->task];
        task->ended[task->unit.jobs[1] == id] = true;
        page->task = NONE;
    }
}

/* --- what happens ---------------------------------------------------------------------- */

static void set_busy(struct gavel_released *r, job_id id, bool busy)
{
    if (r->pages[id].busy == busy)
        return;
    r->pages[id].busy = busy;
    r->busy_count += busy ? 1 : UINT32_MAX;
}

static void note_arrival(struct gavel_common *common, const struct view *view,
                         job_id id)
{
    struct gavel_released *r = common->released;
    const struct job *job = &view->jobs[id];
    double left = job->steps_total > 0 ? job->steps_total - job->steps : NAN;
    r->pages[id] = (struct released_job){ .task = NONE, .pending = true, .left = left };
    r->pending[r->pending_count++] = id;
}

static bool is_order(enum event_kind kind)
{
    return kind == EVENT_PLACED || kind == EVENT_RENEWED || kind == EVENT_RESIZING;
}

void released_observe(struct gavel_common *common, const struct view *view,
                      const struct event *event)
{
    struct gavel_released *r = common->released;
    job_id id = event->job;
    enum job_state state = view->jobs[id].state;
    if (gavel_comes(view, event)) {
        note_arrival(common, view, id);
        return;
    }
    if (is_order(event->kind)) {
        r->ordered_count++;
        set_busy(r, id, true);
    } else if (state == JOB_WAITING || state == JOB_IDLE || state == JOB_HELD ||
               state == JOB_FREE) {
        set_busy(r, id, false);
    }
    if (state == JOB_FREE || state == JOB_HELD)
        released_forget(common, view, id);
}
