/* pair_ledger.c - what jobs that shared GPUs gained and lost by it. */
#include "metrics/pair_ledger.h"

#include <math.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/grow.h"
#include "model/throughput.h"

#define NONE UINT32_MAX
#define KEPT_LEAST_NS 1000000000 /* of less time no part is known */
#define LOSS_MAX_NS 1e18         /* GPU-time; jobs may report any number of steps */

/* What is remembered of a live job; all zero where it does not share. */
struct pair_ledger_job {
    uint32_t open;       /* 1 + its open entry; 0: none                          */
    uint32_t parted;     /* 1 + the entry that its stop has closed; 0: none      */
    bool owes;           /* its stop formed or parted a pair, and it has to load */
    int64_t loads_ns;    /* since then; -1: it waits                             */
    int64_t unbooked_ns; /* GPU-time of its stops, for the next pair             */
};

void pair_ledger_init(struct pair_ledger *ledger, struct arena *run,
                      const struct view *view)
{
    *ledger = (struct pair_ledger){ .entry_free = NONE };
    ledger->jobs = arena_array(run, struct pair_ledger_job, view->job_max);
}

void pair_ledger_release(struct pair_ledger *ledger)
{
    free(ledger->entries);
    ledger->entries = NULL;
}

/* --- figures ----------------------------------------------------------------------- */

double pair_entry_kept(const struct pair_entry *entry, int which)
{
    return entry->shared_ns >= KEPT_LEAST_NS
               ? entry->alone_s[which] / ((double)entry->shared_ns * 1e-9)
               : NAN;
}

double pair_entry_gained_gpu_s(const struct pair_entry *entry)
{
    double shared_s = (double)entry->shared_ns * 1e-9;
    return (entry->alone_s[0] + entry->alone_s[1] - shared_s) * entry->gpus;
}

/* Book the time up to now; the jobs have made so many steps in all. */
static void book_steps(struct pair_entry *entry, int64_t now_ns, const double steps[2])
{
    if (entry->since_ns < 0)
        return;
    entry->shared_ns += now_ns - entry->since_ns;
    for (int i = 0; i < 2; i++)
        entry->alone_s[i] += fmax(0, steps[i] - entry->steps[i]) / entry->rates[i];
    entry->since_ns = -1;
}

/* What is booked and what is not, as if both stopped now. */
static struct pair_entry entry_now(const struct view *view,
                                   const struct pair_entry *entry)
{
    struct pair_entry now = *entry;
    if (entry->since_ns >= 0) {
        double steps[2];
        for (int i = 0; i < 2; i++)
            steps[i] = job_steps(&view->jobs[entry->slots[i]], view->now_ns);
        book_steps(&now, view->now_ns, steps);
    }
    now.since_ns = entry->since_ns;
    return now;
}

static void add_figures(struct pair_totals *totals, const struct pair_entry *entry,
                        const struct pair_entry *before)
{
    totals->shared_gpu_s +=
        (double)(entry->shared_ns - before->shared_ns) * 1e-9 * entry->gpus;
    totals->gained_gpu_s +=
        pair_entry_gained_gpu_s(entry) - pair_entry_gained_gpu_s(before);
}

void pair_ledger_totals(const struct pair_ledger *ledger, const struct view *view,
                        struct pair_totals *ret_totals)
{
    *ret_totals = ledger->booked;
    for (uint32_t at = 0; at < ledger->entry_used; at++) {
        const struct pair_entry *entry = &ledger->entries[at];
        if (entry->to_ns >= 0 || entry->since_ns < 0)
            continue;
        struct pair_entry now = entry_now(view, entry);
        add_figures(ret_totals, &now, entry);
        ret_totals->running++;
    }
}

bool pair_ledger_find(const struct pair_ledger *ledger, const struct view *view,
                      job_id job, struct pair_entry *ret_entry)
{
    uint32_t open = ledger->jobs[job].open;
    if (open)
        *ret_entry = entry_now(view, &ledger->entries[open - 1]);
    return open != 0;
}

/* --- entries ----------------------------------------------------------------------- */

static void notify_observer(const struct pair_ledger *ledger,
                            const struct pair_entry *entry)
{
    if (ledger->observe)
        ledger->observe(ledger->context, entry);
}

static uint32_t take_entry(struct pair_ledger *ledger)
{
    uint32_t at = ledger->entry_free;
    if (at != NONE) {
        ledger->entry_free = ledger->entries[at].next_free;
        return at;
    }
    ledger->entries = grow_array(ledger->entries, &ledger->entry_room,
                                 ledger->entry_used + 1, sizeof *ledger->entries);
    return ledger->entry_used++;
}

static void return_entry(struct pair_ledger *ledger, uint32_t at)
{
    ledger->entries[at].next_free = ledger->entry_free;
    ledger->entry_free = at;
}

/* Steps that the job has made by this event, which may have ended its attempt. */
static double steps_made(const struct view *view, job_id id, const struct event *event)
{
    const struct job *job = &view->jobs[id];
    bool stopped = event->kind == EVENT_STOPPED || event->kind == EVENT_LOST;
    if (event->job != id)
        return job_steps(job, event->at_ns);
    if (stopped && event->steps_reached > event->steps)
        return event->steps_reached;
    if (event->kind == EVENT_FAILED) /* its record is as it was at the last report */
        return job->steps + (double)(event->at_ns - job->anchor_ns) * 1e-9 *
                                fmax(0, job->rate_per_s);
    return job_steps(job, event->at_ns);
}

static bool hold_the_same(const struct view *view, job_id a, job_id b)
{
    return view->jobs[a].partner == b && view->jobs[b].partner == a &&
           job_holds_seats(&view->jobs[a]) && job_holds_seats(&view->jobs[b]);
}

static bool make_steps(const struct view *view, job_id a, job_id b)
{
    return hold_the_same(view, a, b) && view->jobs[a].state == JOB_RUNNING &&
           view->jobs[b].state == JOB_RUNNING;
}

static void begin_counting(struct pair_entry *entry, const struct view *view)
{
    entry->since_ns = view->now_ns;
    for (int i = 0; i < 2; i++)
        entry->steps[i] = job_steps(&view->jobs[entry->slots[i]], view->now_ns);
}

static void end_counting(struct pair_ledger *ledger, const struct view *view,
                         struct pair_entry *entry, const struct event *event)
{
    struct pair_entry before = *entry;
    double steps[2];
    for (int i = 0; i < 2; i++)
        steps[i] = steps_made(view, entry->slots[i], event);
    book_steps(entry, event->at_ns, steps);
    add_figures(&ledger->booked, entry, &before);
}

static void open_entry(struct pair_ledger *ledger, const struct view *view, job_id id)
{
    const struct job *job = &view->jobs[id];
    job_id slots[2] = { id, job->partner };
    if (view->jobs[slots[1]].id < job->id) {
        slots[0] = job->partner;
        slots[1] = id;
    }
    struct pair_entry entry = { .from_ns = view->now_ns,
                                .to_ns = -1,
                                .gpus = job->gpus_now,
                                .slots = { slots[0], slots[1] } };
    for (int i = 0; i < 2; i++) {
        const struct job *one = &view->jobs[slots[i]];
        entry.jobs[i] = one->id;
        entry.rates[i] = throughput_rate(view->rates, one, one->type_now, one->gpus_now,
                                         one->spread_now);
        if (!(entry.rates[i] > 0))
            return; /* nothing tells what it would make alone */
    }
    begin_counting(&entry, view);
    uint32_t at = take_entry(ledger);
    for (int i = 0; i < 2; i++) {
        struct pair_ledger_job *one = &ledger->jobs[slots[i]];
        entry.lost_ns += one->unbooked_ns; /* of the stop that formed this pair */
        one->unbooked_ns = 0;
        one->open = at + 1;
    }
    ledger->entries[at] = entry;
    ledger->busy_count += 2;
    ledger->booked.pairs++;
    notify_observer(ledger, &entry);
}

/* Its record stays where the stop of the job that has left is to be booked to it. */
static void close_entry(struct pair_ledger *ledger, const struct view *view,
                        uint32_t at, const struct event *event)
{
    struct pair_entry *entry = &ledger->entries[at];
    job_id leaver = event->job;
    job_id other = entry->slots[entry->slots[0] == leaver];
    bool parted = event->kind == EVENT_STOPPED &&
                  view->jobs[leaver].state != JOB_FREE && job_runs(&view->jobs[other]);
    entry->to_ns = event->at_ns;
    for (int i = 0; i < 2; i++)
        ledger->jobs[entry->slots[i]].open = 0;
    ledger->busy_count -= 2;
    notify_observer(ledger, entry);
    if (parted)
        ledger->jobs[leaver].parted = at + 1;
    else
        return_entry(ledger, at);
}

static void update_entry(struct pair_ledger *ledger, const struct view *view,
                         const struct event *event)
{
    job_id id = event->job;
    uint32_t open = ledger->jobs[id].open;
    if (!open) {
        job_id partner = view->jobs[id].partner;
        if (partner != JOB_NONE && make_steps(view, id, partner))
            open_entry(ledger, view, id);
        return;
    }
    struct pair_entry *entry = &ledger->entries[open - 1];
    bool counts = make_steps(view, entry->slots[0], entry->slots[1]);
    if (entry->since_ns >= 0 && !counts) {
        end_counting(ledger, view, entry, event);
        if (hold_the_same(view, entry->slots[0], entry->slots[1]))
            notify_observer(ledger, entry);
    } else if (entry->since_ns < 0 && counts) {
        begin_counting(entry, view);
        notify_observer(ledger, entry);
    }
    if (!hold_the_same(view, entry->slots[0], entry->slots[1]))
        close_entry(ledger, view, open - 1, event);
}

/* --- stops ------------------------------------------------------------------------- */

/* To the pair that the stop has parted, or to the next one. */
static void book_loss(struct pair_ledger *ledger, struct pair_ledger_job *job,
                      double gpu_ns)
{
    int64_t loss_ns = (int64_t)fmin(gpu_ns, LOSS_MAX_NS);
    ledger->booked.lost_gpu_s += (double)loss_ns * 1e-9;
    if (!job->parted) {
        job->unbooked_ns += loss_ns;
        return;
    }
    ledger->entries[job->parted - 1].lost_ns += loss_ns;
    notify_observer(ledger, &ledger->entries[job->parted - 1]);
}

/* The job has loaded, or will not: what its stop has cost is known. */
static void end_stop(struct pair_ledger *ledger, const struct view *view,
                     const struct event *event)
{
    struct pair_ledger_job *job = &ledger->jobs[event->job];
    if (!job->owes)
        return;
    if (job->loads_ns >= 0 && event->kind != EVENT_LOST)
        book_loss(ledger, job,
                  (double)(event->at_ns - job->loads_ns) *
                      view->jobs[event->job].gpus_now);
    if (job->parted)
        return_entry(ledger, job->parted - 1);
    job->parted = 0;
    job->owes = false;
    ledger->busy_count--;
}

/* A stop that neither forms nor parts a pair is in the ledger of preemptions only. */
static void begin_stop(struct pair_ledger *ledger, const struct view *view,
                       const struct event *event)
{
    struct pair_ledger_job *job = &ledger->jobs[event->job];
    const struct job *now = &view->jobs[event->job];
    bool forms = now->state == JOB_PLACED && now->partner != JOB_NONE;
    if (!job->parted && !forms)
        return;
    uint32_t gpus = job->parted ? ledger->entries[job->parted - 1].gpus : now->gpus_now;
    double redo_s = event->rate_per_s > 0
                        ? (event->steps_reached - event->steps) / event->rate_per_s
                        : 0;
    job->owes = true;
    job->loads_ns = -1;
    ledger->busy_count++;
    book_loss(ledger, job,
              ((double)(event->at_ns - now->recalled_ns) + fmax(0, redo_s) * 1e9) *
                  gpus);
}

static void apply_started(struct pair_ledger *ledger, const struct view *view,
                          const struct event *event)
{
    struct pair_ledger_job *job = &ledger->jobs[event->job];
    if (!job->owes)
        return;
    job->loads_ns = event->at_ns;
    if (event->loaded)
        end_stop(ledger, view, event);
}

/* --- events ------------------------------------------------------------------------ */

#define PAIR_KINDS \
    (1u << EVENT_STARTED | 1u << EVENT_LOADED | 1u << EVENT_LEASE_DONE | \
     1u << EVENT_RENEWED | 1u << EVENT_RECALLED | 1u << EVENT_RESIZING | \
     1u << EVENT_RESIZED | 1u << EVENT_STOPPED | 1u << EVENT_LOST | \
     1u << EVENT_FINISHED | 1u << EVENT_FAILED | 1u << EVENT_CANCELLED | \
     1u << EVENT_DROPPED)

/* Of jobs that never share, no more is read than what every observer reads. */
static bool concerns_pairs(const struct pair_ledger *ledger, const struct view *view,
                           const struct event *event)
{
    return ledger->busy_count > 0 || view->jobs[event->job].partner != JOB_NONE;
}

void pair_ledger_event(struct pair_ledger *ledger, const struct view *view,
                       const struct event *event)
{
    if (!(PAIR_KINDS >> event->kind & 1) || !concerns_pairs(ledger, view, event))
        return;
    struct pair_ledger_job *job = &ledger->jobs[event->job];
    const struct job *now = &view->jobs[event->job];
    if (event->kind == EVENT_STARTED)
        apply_started(ledger, view, event);
    else if (event->kind == EVENT_LOADED || event->kind == EVENT_RECALLED ||
             event->kind == EVENT_LOST || now->state == JOB_FREE)
        end_stop(ledger, view, event);
    update_entry(ledger, view, event);
    if (event->kind == EVENT_STOPPED && now->state != JOB_FREE)
        begin_stop(ledger, view, event);
    if (now->state == JOB_FREE)
        job->unbooked_ns = 0;
}

/* --- the begin and the end ----------------------------------------------------------- */

void pair_ledger_restore_totals(struct pair_ledger *ledger,
                                const struct pair_totals *booked)
{
    ledger->booked = *booked;
    ledger->booked.running = 0;
}

void pair_ledger_restore(struct pair_ledger *ledger, const struct view *view,
                         const job_id slots[2], const struct pair_entry *kept)
{
    struct pair_entry entry = *kept;
    bool shares = slots[0] != JOB_NONE && slots[1] != JOB_NONE &&
                  hold_the_same(view, slots[0], slots[1]);
    if (!shares) {
        entry.to_ns = entry.since_ns >= 0 ? entry.since_ns : view->now_ns;
        entry.since_ns = -1;
        notify_observer(ledger, &entry);
        return;
    }
    uint32_t at = take_entry(ledger);
    for (int i = 0; i < 2; i++) {
        entry.slots[i] = slots[i];
        ledger->jobs[slots[i]].open = at + 1;
    }
    ledger->entries[at] = entry;
    ledger->busy_count += 2;
}

void pair_ledger_end(struct pair_ledger *ledger, const struct view *view)
{
    struct event none = { .job = JOB_NONE, .at_ns = view->now_ns };
    for (uint32_t at = 0; at < ledger->entry_used; at++) {
        struct pair_entry *entry = &ledger->entries[at];
        if (entry->to_ns < 0 && entry->since_ns >= 0)
            end_counting(ledger, view, entry, &none);
    }
}
