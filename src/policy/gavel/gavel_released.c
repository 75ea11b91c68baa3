/*
 * gavel_released.c - rounds by the rules of the system that was released with Gavel.
 *
 * For setting results beside the published ones; as a scheduler ours (gavel_round.c) is
 * the better.  The rules in short, R the length of a round:
 *
 *   - All of a round start together, each for min(int(rate R), what is left) steps; the
 *     next round starts when the last has made them.  A job that is done early leaves its
 *     GPUs idle.  A job that arrives waits for the next round.
 *   - Shares x are made again when a job came or went, but not within 1920 s of the
 *     last time (unless that was time 0), nor while they would bring nothing to run:
 *     when no more jobs are to come and none runs, they are.  A job without a share yet does
 *     not run, though it may take up room.
 *   - With the time that a job had on a type since then, and R/2 to begin with,
 *         priority = x / (its time / that of all)
 *     and types are filled one after the other in order of (priority, deficit, x), where
 *     the deficit is what was due and not had before the shares were last made.  Jobs of
 *     priority 0 fill what is left, except under a strict rule.
 *   - Of two jobs that share, each does its steps at the pair's pace, and both are done
 *     when the later one is.  All pairs of equal gangs stand in the queues beside the
 *     jobs.
 *   - The steps of a gang are dealt out evenly; where some would get none the attempt
 *     fails, and after the fifth in a row the job is dropped.
 *
 * Times are doubles here, kept apart from the engine's: priorities that should be equal
 * differ in their last digits, and these decide.  Where the two clocks differ by more
 * than rounding (on a cluster that takes time to start a job), the engine's is right.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "policy/gavel/gavel_released.h"

#define RESET_MIN_S 1920.0
#define FAILURES_MAX 5
#define CLOCK_SLACK_S 1e-6
#define SEED_SHUFFLE 5 /* the stream is the run's seed and so much */

/* --- shares, from a policy or a record ----------------------------------------------------------------------------- */

/* An account of this row is no longer as it is after settling. */
static void released_stir(struct gavel_released *r, uint32_t row)
{
    if (!r->is_stirred[row])
        r->stirred[r->stirred_count++] = row;
    r->is_stirred[row] = true;
}

/*
 * What was due and not had is kept; every job starts again with half a round.  For a
 * job that is due nothing and had nothing since the last time, nothing changes.
 */
static void settle_accounts(struct gavel_common *common)
{
    struct gavel_released *r = common->released;
    double half_s = r->round_s / 2;
    double elapsed_s = r->now_s - r->reset_s;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < r->stirred_count; i++) {
        uint32_t row = r->stirred[i];
        struct account *accounts = &r->accounts[(size_t)row * common->type_count];
        bool any = false;
        for (uint32_t c = 0; c < common->type_count; c++) {
            struct account *account = &accounts[c];
            double due_s = account->x * elapsed_s;
            account->deficit_s += due_s - (account->time_s - half_s);
            account->time_s = half_s;
            any = any || account->x != 0;
        }
        r->is_stirred[row] = any;
        if (any)
            r->stirred[kept++] = row;
    }
    r->stirred_count = kept;
    for (uint32_t c = 0; c < common->type_count; c++)
        r->worker_time_s[c] = half_s * (double)(r->unit_count + r->hidden);
    r->reset_s = r->now_s;
}

/* Note who is due something, unit by unit in their order. */
static void note_due(struct gavel_common *common, uint32_t at)
{
    struct gavel_released *r = common->released;
    struct released_unit *unit = &r->units[at];
    const struct account *accounts = released_accounts(common, unit);
    bool any = false;
    unit->due = false;
    for (uint32_t c = 0; c < common->type_count; c++) {
        any = any || accounts[c].x != 0;
        unit->due = unit->due || accounts[c].x > 0;
    }
    if (any)
        released_stir(r, unit->row);
    if (unit->due)
        r->due[r->due_count++] = at;
}

static void list_pairs(struct gavel_common *common, struct gavel_call *call)
{
    struct gavel_released *r = common->released;
    call->listed = true;
    for (uint32_t i = 0; i < common->job_count; i++)
        r->place[common->jobs[i]] = i;
    for (uint32_t i = 0; i < r->unit_count; i++) {
        const struct released_unit *unit = &r->units[i];
        const struct account *accounts = released_accounts(common, unit);
        double rates[TYPES_MAX][2];
        if (!unit_is_pair(unit))
            continue;
        for (uint32_t c = 0; c < common->type_count; c++)
            memcpy(rates[c], accounts[c].rate, sizeof rates[c]);
        gavel_add_pair(call, r->place[unit->jobs[0]], r->place[unit->jobs[1]], rates);
    }
}

/* Units stand in order of arrival, and so do the rows of jobs and of pairs. */
static void take_shares(struct gavel_common *common, const struct gavel_call *call)
{
    struct gavel_released *r = common->released;
    uint32_t k = common->type_count;
    uint32_t jobs = 0;
    uint32_t pairs = common->job_count;
    r->due_count = 0;
    for (uint32_t i = 0; i < r->unit_count; i++) {
        struct released_unit *unit = &r->units[i];
        uint32_t row = unit_is_pair(unit) ? pairs++ : jobs++;
        struct account *accounts = released_accounts(common, unit);
        unit->known = row < common->job_count + call->pair_count;
        for (uint32_t c = 0; c < k; c++)
            accounts[c].x = unit->known ? call->x[(size_t)row * k + c] : 0;
        note_due(common, i);
    }
}

static const struct gavel_share *find_share(const struct gavel_record *record,
                                            uint64_t first, uint64_t second)
{
    for (uint32_t i = 0; i < record->share_count; i++)
        if (record->shares[i].first == first && record->shares[i].second == second)
            return &record->shares[i];
    return NULL;
}

/* Two jobs that the record does not name as a pair may share if it names both. */
static int take_recorded(struct gavel_common *common, struct error *err)
{
    struct gavel_released *r = common->released;
    const struct gavel_recorded *recorded = &r->recorded;
    if (r->record_next == recorded->count)
        return error_set(err, -EINVAL,
                         "%.100s: no more shares, but round %" PRIu64 " needs some",
                         recorded->path, r->round);
    const struct gavel_record *record = &recorded->records[r->record_next++];
    if (record->round != r->round ||
        fabs(record->at_s - r->now_s) > 1e-6 * fmax(1, r->now_s))
        return error_set(err, -EINVAL,
                         "%.100s:%" PRIu64 ": shares of round %" PRIu64
                         " at %.3f s, but this is round %" PRIu64 " at %.3f s",
                         recorded->path, record->line, record->round, record->at_s,
                         r->round, r->now_s);
    r->due_count = 0;
    for (uint32_t i = 0; i < r->unit_count; i++) {
        struct released_unit *unit = &r->units[i];
        struct account *accounts = released_accounts(common, unit);
        uint64_t numbers[2] = { RECORDED_ALONE, RECORDED_ALONE };
        for (uint32_t side = 0; side < 1u + unit_is_pair(unit); side++)
            numbers[side] = common->entries[unit->jobs[side]].number;
        const struct gavel_share *share = find_share(record, numbers[0], numbers[1]);
        unit->known = share || (unit_is_pair(unit) &&
                                find_share(record, numbers[0], RECORDED_ALONE) &&
                                find_share(record, numbers[1], RECORDED_ALONE));
        for (uint32_t c = 0; c < common->type_count; c++)
            accounts[c].x = share ? share->x[c] : 0;
        note_due(common, i);
    }
    return 0;
}

/* Close the accounts, and ask the policy or the record for new shares. */
static int released_make_shares(struct gavel_common *common, const struct view *view,
                                struct arena *scratch, struct error *err)
{
    struct gavel_released *r = common->released;
    struct gavel_call call;
    settle_accounts(common);
    r->need = r->force = false;
    if (r->recorded.path) {
        int broken = take_recorded(common, &r->broken);
        return broken < 0 ? error_set(err, broken, "%s", r->broken.text) : 0;
    }
    struct gavel_times times = { .now_s = r->now_s, .left = r->left, .unfit = true };
    for (uint32_t i = 0; i < common->job_count; i++)
        r->left[common->jobs[i]] = r->pages[common->jobs[i]].left;
    struct gavel_rows rows = { .jobs = common->jobs, .count = common->job_count };
    gavel_prepare(common, view, &times, &rows, scratch, &call);
    list_pairs(common, &call);
    int result = released_shares(common, &call, err);
    if (result == 0)
        take_shares(common, &call);
    return result;
}

/* --- units --------------------------------------------------------------------------- */
/*
 * Units are jobs and pairs of jobs of equal gangs, in order of arrival: a job, then the
 * pairs it makes with those before it.  Pairs that can run nowhere count in the sums of
 * time and are not kept.  What happens in the middle of a round is noted here and means
 * something when it is over.
 */

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

/* Who came by now is in from now on. */
static void released_admit(struct gavel_common *common, const struct view *view)
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
static void released_forget(struct gavel_common *common, const struct view *view,
                            job_id id)
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

/* For the mechanism: what happens to jobs. */
static void released_observe(struct gavel_common *common, const struct view *view,
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

/* --- where they run ------------------------------------------------------------------------ */

/* It is on the chosen type already, with the chosen partner or alone. */
static bool stays_in_place(const struct gavel_common *common, const struct view *view,
                           const struct task *task)
{
    uint32_t type = common->types[task->column];
    for (uint32_t side = 0; side < 1u + unit_is_pair(&task->unit); side++) {
        const struct job *job = &view->jobs[task->unit.jobs[side]];
        if (job->stays && job_can_be_stopped(job))
            continue;
        if (!job_is_preemptible(job) || job->type_now != type ||
            job->gpus_now != job->gpus || job->partner != task->unit.jobs[!side])
            return false;
    }
    return !task->doomed;
}

/* Who sits and does not stay has to go first: room is found with theirs. */
static void send_away(struct gavel_common *common, const struct view *view,
                      struct plan *plan)
{
    struct gavel_released *r = common->released;
    for (uint32_t i = 0; i < common->job_count; i++) {
        job_id id = common->jobs[i];
        if (!job_is_preemptible(&view->jobs[id]))
            continue;
        uint32_t at = r->pages[id].task;
        const struct task *task = at != NONE ? &r->tasks[at] : NULL;
        if (!task || task->doomed)
            plan_revoke(plan, id, RULE_ROUND, JOB_NONE);
        else if (!stays_in_place(common, view, task))
            plan_revoke(plan, id, RULE_RESIZE, id);
    }
}

static bool seat_task(struct gavel_common *common, const struct view *view,
                      struct plan *plan, const struct task *task)
{
    const struct account *account =
        &released_accounts(common, &task->unit)[task->column];
    size_t mark = plan_mark(plan);
    for (uint32_t side = 0; side < 1u + unit_is_pair(&task->unit); side++) {
        job_id id = task->unit.jobs[side];
        struct ask ask = ASK_DEFAULT;
        ask.types = (uint32_t)1 << common->types[task->column];
        ask.anywhere = true; /* places make no difference to this mechanism */
        ask.steps_max =
            (uint64_t)floor(account->rate[side] * common->released->round_s);
        ask.together = unit_is_pair(&task->unit);
        if (side == 1)
            ask.beside = task->unit.jobs[0];
        if (!plan_grant(plan, id, &ask)) {
            plan_undo(plan, mark);
            return false;
        }
    }
    return true;
}

static void leave_out(struct gavel_released *r, struct task *task)
{
    task->absent = true;
    for (uint32_t side = 0; side < 1u + unit_is_pair(&task->unit); side++)
        r->pages[task->unit.jobs[side]].task = NONE;
}

/* Larger gangs first; of equal ones those who stay, then in the order they were chosen. */
static void seat_all(struct gavel_common *common, const struct view *view,
                     struct plan *plan, struct arena *scratch)
{
    struct gavel_released *r = common->released;
    for (uint32_t i = 0; i < r->task_count; i++) {
        const struct task *task = &r->tasks[i];
        double gang = common->entries[task->unit.jobs[0]].gang;
        r->order[i].key = -2 * gang - stays_in_place(common, view, task);
        r->order[i].value = i;
    }
    sort_items(r->order, r->order_scratch, r->task_count);
    r->order_count = r->ordered_count = 0;
    for (uint32_t i = 0; i < r->task_count; i++) {
        struct task *task = &r->tasks[r->order[i].value];
        if (task->doomed)
            continue;
        if (seat_task(common, view, plan, task))
            r->order_count += 1u + unit_is_pair(&task->unit);
        else
            leave_out(r, task);
    }
}

static void link_tasks(struct gavel_common *common, bool linked)
{
    struct gavel_released *r = common->released;
    for (uint32_t i = 0; i < r->task_count; i++)
        for (uint32_t side = 0; side < 1u + unit_is_pair(&r->tasks[i].unit); side++)
            if (!r->tasks[i].ended[side] && !r->tasks[i].absent)
                r->pages[r->tasks[i].unit.jobs[side]].task = linked ? i : NONE;
}

/*
 * None of the chosen jobs fits as it is: nodes have shapes, CPUs and memory, which
 * these rules do not know.  So that time goes on, any job that fits runs, alone.
 */
static void start_any_job(struct gavel_common *common, const struct view *view,
                          struct plan *plan)
{
    struct gavel_released *r = common->released;
    r->task_count = 0;
    for (uint32_t i = 0; i < r->unit_count; i++) {
        const struct released_unit *unit = &r->units[i];
        for (uint32_t f = 0; f < common->type_count && !unit_is_pair(unit); f++) {
            uint32_t column = common->fill[f];
            if (!account_runs(&released_accounts(common, unit)[column]))
                continue;
            released_add_task(common, unit, column);
            if (!r->tasks[r->task_count - 1].doomed &&
                seat_task(common, view, plan, &r->tasks[r->task_count - 1])) {
                r->order_count++;
                break;
            }
            r->task_count--;
        }
    }
}

/* --- a round ---------------------------------------------------------------------------- */

/* The job's own word counts where it is not what was expected. */
static void made_steps(struct gavel_released *r, const struct view *view, job_id id,
                       double steps)
{
    struct released_job *page = &r->pages[id];
    const struct job *job = &view->jobs[id];
    page->failures = 0;
    page->left -= steps;
    if (job->steps_total <= 0)
        return;
    double left = job->steps_total - job_steps(job, view->now_ns);
    if (fabs(left - page->left) > 1e-3 + 1e-9 * job->steps_total)
        page->left = left;
}

static void fail_task(struct gavel_common *common, const struct task *task)
{
    struct gavel_released *r = common->released;
    r->need = true;
    if (!unit_is_pair(&task->unit) && !task->ended[0])
        r->pages[task->unit.jobs[0]].failures++;
}

static void close_task(struct gavel_common *common, const struct view *view,
                       const struct task *task)
{
    struct gavel_released *r = common->released;
    double had_s = task->finish_s - r->round_end_s;
    if (task->absent)
        return;
    if (task->doomed || had_s <= 0) {
        fail_task(common, task);
        return;
    }
    bool whole = true;
    for (uint32_t side = 0; side < 1u + unit_is_pair(&task->unit); side++) {
        if (task->ended[side])
            whole = false;
        else
            made_steps(r, view, task->unit.jobs[side], task->steps[side]);
    }
    if (whole) { /* otherwise its account is never read */
        released_accounts(common, &task->unit)[task->column].time_s += had_s;
        released_stir(r, task->unit.row);
    }
    r->worker_time_s[task->column] += had_s;
}

static bool closes_before(const struct task *a, const struct task *b)
{
    if (a->finish_s != b->finish_s)
        return a->finish_s > b->finish_s;
    if (unit_is_pair(&a->unit) != unit_is_pair(&b->unit))
        return unit_is_pair(&b->unit);
    return a->number < b->number;
}

/* Latest first; then jobs before pairs, then by number: sums depend on it. */
static void sort_tasks(struct gavel_released *r)
{
    for (uint32_t i = 0; i < r->task_count; i++)
        r->order[i] = (struct sort_item){ -r->tasks[i].finish_s, i };
    sort_items(r->order, r->order_scratch, r->task_count);
    for (uint32_t i = 1; i < r->task_count; i++) { /* few end at the same time */
        struct sort_item item = r->order[i];
        uint32_t at = i;
        for (; at > 0 &&
               closes_before(&r->tasks[item.value], &r->tasks[r->order[at - 1].value]);
             at--)
            r->order[at] = r->order[at - 1];
        r->order[at] = item;
    }
}

static void set_clock(struct gavel_released *r, const struct view *view, double now_s)
{
    double engine_s = (double)view->now_ns / 1e9;
    r->now_s = fabs(engine_s - now_s) <= CLOCK_SLACK_S ? now_s : engine_s;
}

static void end_round(struct gavel_common *common, const struct view *view)
{
    struct gavel_released *r = common->released;
    set_clock(r, view, r->end_s);
    sort_tasks(r);
    for (uint32_t i = 0; i < r->task_count; i++)
        close_task(common, view, &r->tasks[r->order[i].value]);
    link_tasks(common, false);
    r->task_count = 0;
    r->round_end_s = r->now_s;
    r->under_way = false;
}

/* Who has failed too often is off the roll, and dropped as soon as it waits. */
static void give_up(struct gavel_common *common, const struct view *view)
{
    struct gavel_released *r = common->released;
    for (uint32_t i = 0; i < common->job_count;) {
        job_id id = common->jobs[i];
        if (r->pages[id].failures < FAILURES_MAX) {
            i++;
            continue;
        }
        released_forget(common, view, id); /* which moves the next to this place */
        r->hopeless[r->hopeless_count++] = id;
    }
}

static void drop_hopeless(const struct gavel_released *r, const struct view *view,
                          struct plan *plan)
{
    for (uint32_t i = 0; i < r->hopeless_count; i++) {
        const struct job *job = &view->jobs[r->hopeless[i]];
        if (job->state == JOB_WAITING)
            plan_drop(plan, r->hopeless[i]);
        else if (job_is_preemptible(job))
            plan_revoke(plan, r->hopeless[i], RULE_ROUND, JOB_NONE);
    }
}

static void forget_round(struct gavel_common *common)
{
    link_tasks(common, false);
    common->released->task_count = 0;
    common->released->under_way = false;
}

/* Those who can only fail are among the chosen: that, too, takes its time or has an end. */
static bool has_doomed(const struct gavel_released *r)
{
    for (uint32_t i = 0; i < r->task_count; i++) {
        const struct task *task = &r->tasks[i];
        if (task->doomed && (!unit_is_pair(&task->unit) || task->finish_s > r->now_s))
            return true;
    }
    return false;
}

static int begin_round(struct gavel_common *common, const struct view *view,
                       struct plan *plan, struct arena *scratch, struct error *err)
{
    struct gavel_released *r = common->released;
    bool in_time = r->now_s - r->reset_s >= RESET_MIN_S || r->reset_s == 0;
    if (r->force || (r->need && in_time)) {
        int result = released_make_shares(common, view, scratch, err);
        if (result < 0) {
            plan_wake(plan, view->now_ns + 1); /* then go on with those there are */
            return result;
        }
    }
    released_choose(common);
    r->round++;
    if (r->task_count == 0)
        return 0;
    link_tasks(common, true);
    send_away(common, view, plan);
    seat_all(common, view, plan, scratch);
    if (r->order_count == 0 && !has_doomed(r))
        start_any_job(common, view, plan);
    link_tasks(common, true);
    r->end_s = r->now_s;
    for (uint32_t i = 0; i < r->task_count; i++)
        if (!r->tasks[i].absent)
            r->end_s = fmax(r->end_s, r->tasks[i].finish_s);
    r->under_way = r->order_count > 0 || has_doomed(r);
    if (!r->under_way)
        forget_round(common);     /* until something happens */
    else if (r->order_count == 0) /* no event will say that the doomed are done */
        plan_wake(plan, (int64_t)llround(r->end_s * 1e9));
    return 0;
}

/* The plan was not carried out: as if it had never been made. */
static bool was_thrown_away(const struct gavel_released *r)
{
    return r->order_count > 0 && r->ordered_count == 0;
}

static int start_rounds(struct gavel_common *common, const struct view *view,
                        struct plan *plan, struct arena *scratch, struct error *err)
{
    struct gavel_released *r = common->released;
    released_admit(common, view);
    int result = 0;
    if (common->job_count > 0)
        result = begin_round(common, view, plan, scratch, err);
    if (result < 0 || r->under_way || common->job_count == 0)
        return result;
    if (view->closed && r->pending_count == 0) {
        r->force = true;
        result = begin_round(common, view, plan, scratch, err);
    }
    return result;
}

static int released_decide(struct gavel_common *common, const struct view *view,
                           struct plan *plan, struct arena *scratch, struct error *err)
{
    struct gavel_released *r = common->released;
    if (r->broken.text[0]) /* nothing that follows would mean anything */
        return error_set(err, -EINVAL, "%s", r->broken.text);
    if (r->under_way && was_thrown_away(r)) {
        forget_round(common);
        r->round--;
    }
    if (r->under_way) {
        int64_t end_ns = (int64_t)llround(r->end_s * 1e9);
        if (r->busy_count > 0)
            return 0;
        if (view->now_ns < end_ns) {
            plan_wake(plan, end_ns);
            return 0;
        }
        end_round(common, view);
        give_up(common, view);
    } else {
        set_clock(r, view, r->now_s);
    }
    drop_hopeless(r, view, plan);
    return start_rounds(common, view, plan, scratch, err);
}

static gavel_recorded_reader *read_recorded; /* NULL: this program replays nothing */

void gavel_recorded_install(gavel_recorded_reader *reader)
{
    read_recorded = reader;
}

static int released_init(struct gavel_common *common, const struct view *view,
                         struct arena *run, struct error *err)
{
    struct gavel_released *r = arena_new(run, struct gavel_released);
    size_t k = common->type_count;
    if (common->gavel->cost_test.choice != COST_TEST_NONE)
        return error_set(err, -EINVAL,
                         "worth asks before a swap, which compat=released never does");
    common->released = r;
    r->round_s = (double)common->gavel->round_ns / 1e9;
    mt_init(&r->shuffle, common->seed + SEED_SHUFFLE);
    mt_init(&r->draws, common->seed);
    r->solver = solver_new();
    r->holders = arena_array(run, struct fifo_holder, view->job_max);
    r->pages = arena_array(run, struct released_job, view->job_max);
    r->left = arena_array(run, double, view->job_max);
    r->pending = arena_array(run, job_id, view->job_max);
    r->hopeless = arena_array(run, job_id, view->job_max);
    r->unit_max = view->job_max + common->pair_max;
    r->units = arena_array(run, struct released_unit, r->unit_max);
    r->accounts = arena_array(run, struct account, (size_t)r->unit_max * k);
    r->rows_free = arena_array(run, uint32_t, r->unit_max);
    r->due = arena_array(run, uint32_t, r->unit_max);
    r->stirred = arena_array(run, uint32_t, r->unit_max);
    r->is_stirred = arena_array(run, bool, r->unit_max);
    r->tasks = arena_array(run, struct task, view->job_max);
    r->candidates = arena_array(run, struct candidate, (size_t)r->unit_max * k);
    r->order = arena_array(run, struct sort_item, view->job_max);
    r->order_scratch = arena_array(run, struct sort_item, view->job_max);
    r->taken = arena_array(run, uint32_t, view->job_max);
    r->place = arena_array(run, uint32_t, view->job_max);
    if (!common->gavel->allocations.text[0])
        return 0;
    if (!read_recorded)
        return error_set(err, -EINVAL,
                         "allocations: only 'berth sim' replays recorded shares");
    return read_recorded(&r->recorded, common->gavel->allocations.text,
                         common->type_count, run, err);
}

static void released_fini(struct gavel_common *common)
{
    if (common->released)
        solver_free(common->released->solver);
}

const struct gavel_mechanism gavel_mechanism_released = {
    .by_name = true,
    .replays = true,
    .init = released_init,
    .observe = released_observe,
    .decide = released_decide,
    .fini = released_fini,
};
