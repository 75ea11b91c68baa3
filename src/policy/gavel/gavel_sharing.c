/*
 * gavel_sharing.c - rounds by our own rules, where two jobs may share GPUs.
 *
 * There are too many pairs of jobs to list them.  Jobs that are alike are a class: of
 * the same kind, gang, types and weight.  Shares are made by classes
 * (gavel_sharing_classes.c); what comes out are lines: "so many of class A alone on
 * this type", "so many of A beside B there". At the end of a round each line has a key,
 * as a job has in gavel_round.c:
 *
 *     key = credit + units R - R for each unit it has been given already
 *
 * where the credit is what it was due and did not have.  Units go to lines in the order
 * of their keys, and within a line to the members that are furthest behind what they
 * are due in steps; a job that is in the line already is ahead by a round, with the
 * partner it has.  GPUs that are left go to any job that can use them, alone.
 *
 * So a round costs what is sorted, jobs and units, and never what could be paired.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/sort.h"
#include "model/free_index.h"
#include "policy/gavel/gavel_sharing_classes.h"
#include "policy/gavel/gavel_common.h"

#define NONE UINT32_MAX
#define STAYS 1.0          /* rounds that who is there is ahead by */
#define BEHIND_MAX 10.0    /* rounds that a job can be behind */
#define AHEAD_MAX (-2.0)   /* rounds that a job can have had too much */
#define CREDIT_MAX 2.0     /* rounds that a line can be owed of each unit */
#define CHOOSY 1e9         /* more than any gang */
#define WHOLE 1e-6         /* a line of so nearly whole units is whole */
#define DECIDE_LINES 65536 /* units listed at most */

/* By slot. */
struct sharing_job {
    uint32_t class;
    double behind;   /* steps it is due and has not made, when it was last counted */
    double steps;    /* it had made then */
    double behind_s; /* the same as time, for this round */

    /* the line it sits in, and since when that is not paid for */
    int64_t since_ns; /* -1: it does not sit */
    struct line_name line;
    double part; /* of the line's unit: half where two share */

    /* the next round */
    uint32_t want; /* column, or NONE */
    job_id mate;   /* shares there, or JOB_NONE */
    job_id next_of_class, next_of_line;
    bool taken, keeps;
};

/* Members in the order of how far they are behind. */
struct members {
    job_id first, last;
};

struct sharing_unit {
    job_id jobs[2]; /* the second may be JOB_NONE */
    uint32_t column;
};

struct gavel_sharing {
    double round_s;
    struct gavel_classes *classes;
    struct sharing_job *pages;
    int64_t counted_ns; /* what is due is counted up to then */
    int64_t end_ns;     /* of the round */
    bool room;          /* a job came or went: what is free may be given away */
    bool stale;         /* shares are to be made again at the end of the round */
    bool restless;
    uint32_t without; /* chosen, but their nodes are others' still */

    struct sort_item *items, *item_scratch; /* jobs, or units of lines */
    job_id *order;                          /* jobs, those furthest behind first */
    uint32_t order_count;
    struct members *of_class; /* [class] */
    struct members *of_line;  /* [line][side] */
    struct sharing_unit *units;
    uint32_t unit_count;
};

/* --- accounts ----------------------------------------------------------------------- */

/* What a job's time in its line was is paid for up to now; then see where it is. */
static void update_account(struct gavel_common *common, const struct view *view,
                           job_id id)
{
    struct gavel_sharing *s = common->sharing;
    struct sharing_job *page = &s->pages[id];
    const struct job *job = &view->jobs[id];
    if (page->since_ns >= 0)
        gavel_classes_pay(s->classes, &page->line,
                          (double)(view->now_ns - page->since_ns) * 1e-9 * page->part);
    page->since_ns = -1;
    if (job->state == JOB_FREE || !job_holds_seats(job) || page->class == NONE)
        return;
    job_id partner = job->partner;
    bool shared = partner != JOB_NONE && view->jobs[partner].partner == id &&
                  job_holds_seats(&view->jobs[partner]) &&
                  s->pages[partner].class != NONE;
    page->since_ns = view->now_ns;
    page->part = shared ? 0.5 : 1;
    page->line = gavel_line_name(common->column_of[job->type_now], page->class,
                                 shared ? s->pages[partner].class : NONE);
}

/* What each job was due since it was counted last, less the steps it made. */
static void count_due(struct gavel_common *common, const struct view *view)
{
    struct gavel_sharing *s = common->sharing;
    double passed_s = (double)(view->now_ns - s->counted_ns) * 1e-9;
    s->counted_ns = view->now_ns;
    for (uint32_t i = 0; i < common->job_count; i++) {
        job_id id = common->jobs[i];
        struct sharing_job *page = &s->pages[id];
        double due = gavel_classes_due(s->classes, page->class);
        double steps = job_steps(&view->jobs[id], view->now_ns);
        page->behind += due * passed_s - (steps - page->steps);
        page->steps = steps;
        page->behind_s = due > 0 ? page->behind / due : 0;
        page->behind_s =
            fmin(fmax(page->behind_s, AHEAD_MAX * s->round_s), BEHIND_MAX * s->round_s);
        page->behind = page->behind_s * due;
        update_account(common, view, id);
    }
    gavel_classes_earn(s->classes, passed_s, CREDIT_MAX * s->round_s);
}

/* --- what happens ---------------------------------------------------------------------- */

static void note_arrival(struct gavel_common *common, const struct view *view,
                         job_id id)
{
    struct gavel_sharing *s = common->sharing;
    gavel_enroll(common, view, id);
    s->pages[id] = (struct sharing_job){
        .class = gavel_classes_add(s->classes, common, view, id),
        .steps = job_steps(&view->jobs[id], view->now_ns),
        .since_ns = -1,
        .want = NONE,
        .mate = JOB_NONE,
    };
    update_account(common, view, id);
    s->room = s->stale = true;
}

static void note_departure(struct gavel_common *common, const struct view *view,
                           job_id id)
{
    struct gavel_sharing *s = common->sharing;
    update_account(common, view, id);
    gavel_strike(common, id);
    gavel_classes_remove(s->classes, s->pages[id].class, id);
    s->pages[id].class = NONE;
    s->room = s->stale = true;
}

static void sharing_observe(struct gavel_common *common, const struct view *view,
                            const struct event *event)
{
    struct gavel_sharing *s = common->sharing;
    enum job_state state = view->jobs[event->job].state;
    if (gavel_comes(view, event)) {
        note_arrival(common, view, event->job);
        return;
    }
    if (!common->entries[event->job].ticket)
        return;
    /* Jobs that share with it, or did, have another line from now on. */
    struct sharing_job *page = &s->pages[event->job];
    bool was_seated = page->since_ns >= 0;
    bool is_seated = state != JOB_FREE && job_holds_seats(&view->jobs[event->job]);
    if (was_seated != is_seated || event->kind == EVENT_RESIZED) {
        job_id mate = page->mate;
        update_account(common, view, event->job);
        if (mate != JOB_NONE && common->entries[mate].ticket)
            update_account(common, view, mate);
        s->room = s->room || was_seated;
    }
    if (state == JOB_WAITING)
        s->room = true;
    if (state == JOB_FREE || state == JOB_HELD)
        note_departure(common, view, event->job);
}

/* --- who is there ------------------------------------------------------------------------ */

/* The column of the seats it has or is promised, or NONE. */
/* It is on its way, to seats or out, or had better stay. */
static bool is_bound(const struct gavel_common *common, const struct view *view,
                     const struct job *job)
{
    return job->next.count > 0 || job->leaving || job->coming != JOB_NONE ||
           gavel_is_spared(common, view, job);
}

/* The same, or its partner is. */
static bool is_fixed(const struct gavel_common *common, const struct view *view,
                     const struct job *job)
{
    return is_bound(common, view, job) ||
           (job->partner != JOB_NONE && job_runs(job) &&
            is_bound(common, view, &view->jobs[job->partner]));
}

/* Capacity without what is held by jobs that cannot be changed now. */
static void room_for_others(struct gavel_common *common, const struct view *view,
                            double *room)
{
    struct gavel_sharing *s = common->sharing;
    memcpy(room, common->capacity, sizeof *room * TYPES_MAX);
    for (uint32_t i = 0; i < common->job_count; i++) {
        job_id id = common->jobs[i];
        const struct job *job = &view->jobs[id];
        struct sharing_job *page = &s->pages[id];
        page->want = NONE;
        page->mate = JOB_NONE;
        page->taken = is_fixed(common, view, job);
        page->keeps = false;
        uint32_t now = gavel_column_now(common, view, job);
        if (!page->taken || now == NONE)
            continue;
        page->want = now;
        page->mate = job->next.count > 0 && job->seats.count > 0 ? job->next_partner
                                                                 : job->partner;
        bool counted = page->mate != JOB_NONE && page->mate < id &&
                       is_fixed(common, view, &view->jobs[page->mate]);
        room[now] -= counted ? 0 : common->entries[id].gang;
    }
}

static void append_member(struct gavel_sharing *s, struct members *members, job_id id,
                          bool of_line)
{
    job_id *link = members->first == JOB_NONE ? &members->first
                   : of_line                  ? &s->pages[members->last].next_of_line
                                              : &s->pages[members->last].next_of_class;
    *link = id;
    members->last = id;
}

/* Members of classes, and those who are in lines now, furthest behind first. */
static void line_up(struct gavel_common *common, const struct view *view)
{
    struct gavel_sharing *s = common->sharing;
    uint32_t count = 0;
    for (uint32_t i = 0; i < common->job_count; i++)
        if (!s->pages[common->jobs[i]].taken)
            s->items[count++] = (struct sort_item){ -s->pages[common->jobs[i]].behind_s,
                                                    common->jobs[i] };
    sort_items(s->items, s->item_scratch, count);
    s->order_count = count;
    for (uint32_t i = 0; i < CLASSES_MAX; i++)
        s->of_class[i].first = JOB_NONE;
    uint32_t lines = gavel_classes_line_count(s->classes);
    for (uint32_t i = 0; i < 2 * lines; i++)
        s->of_line[i].first = JOB_NONE;
    for (uint32_t i = 0; i < count; i++) {
        job_id id = s->order[i] = s->items[i].value;
        struct sharing_job *page = &s->pages[id];
        page->next_of_class = page->next_of_line = JOB_NONE;
        append_member(s, &s->of_class[page->class], id, false);
        uint32_t at = page->since_ns >= 0 && job_runs(&view->jobs[id])
                          ? gavel_classes_line_at(s->classes, &page->line)
                          : NONE;
        if (at == NONE)
            continue;
        const struct gavel_line *line = gavel_classes_line(s->classes, at);
        append_member(s, &s->of_line[2 * at + (page->class != line->name.a)], id, true);
    }
}

/* --- who is to run ------------------------------------------------------------------------ */

static job_id first_free(struct gavel_sharing *s, struct members *members, bool of_line)
{
    while (members->first != JOB_NONE && s->pages[members->first].taken)
        members->first = of_line ? s->pages[members->first].next_of_line
                                 : s->pages[members->first].next_of_class;
    return members->first;
}

/* The member furthest behind, unless one who is there already is not much less so. */
static job_id pick_member(struct gavel_sharing *s, uint32_t line, uint32_t side,
                          uint32_t class, job_id preferred)
{
    job_id best = first_free(s, &s->of_class[class], false);
    job_id there = preferred != JOB_NONE && !s->pages[preferred].taken
                       ? preferred
                       : first_free(s, &s->of_line[2 * line + side], true);
    if (there != JOB_NONE && best != JOB_NONE &&
        s->pages[there].behind_s + STAYS * s->round_s >= s->pages[best].behind_s)
        best = there;
    if (best != JOB_NONE)
        s->pages[best].taken = true;
    return best;
}

static void add_unit(struct gavel_common *common, job_id a, job_id b, uint32_t column)
{
    struct gavel_sharing *s = common->sharing;
    s->units[s->unit_count++] = (struct sharing_unit){ { a, b }, column };
    const job_id jobs[2] = { a, b };
    for (uint32_t i = 0; i < 2 && jobs[i] != JOB_NONE; i++) {
        s->pages[jobs[i]].want = column;
        s->pages[jobs[i]].mate = jobs[!i];
        s->pages[jobs[i]].taken = true;
    }
}

/* One unit of a line, if there are members for it; one without the other runs alone. */
static bool give_unit(struct gavel_common *common, const struct view *view, uint32_t at)
{
    struct gavel_sharing *s = common->sharing;
    const struct gavel_line *line = gavel_classes_line(s->classes, at);
    job_id a = pick_member(s, at, 0, line->name.a, JOB_NONE);
    if (a == JOB_NONE)
        return false;
    job_id b = JOB_NONE;
    if (line->name.b != NONE) {
        bool there = s->pages[a].since_ns >= 0 &&
                     gavel_classes_line_at(s->classes, &s->pages[a].line) == at;
        b = pick_member(s, at, line->name.a != line->name.b, line->name.b,
                        there ? view->jobs[a].partner : JOB_NONE);
    }
    add_unit(common, a, b, line->name.column);
    return true;
}

/* Keys of the units that lines are due, into 'items'; returns how many. */
static uint32_t list_units(struct gavel_common *common)
{
    struct gavel_sharing *s = common->sharing;
    uint32_t count = 0;
    for (uint32_t l = 0; l < gavel_classes_line_count(s->classes); l++) {
        const struct gavel_line *line = gavel_classes_line(s->classes, l);
        double key = gavel_classes_credit(s->classes, line) + line->units * s->round_s;
        uint32_t running = 0;
        for (uint32_t side = 0; side < 2; side++)
            for (job_id id = s->of_line[2 * l + side].first; id != JOB_NONE;
                 id = s->pages[id].next_of_line)
                running++;
        running = line->name.b == NONE ? running : running / 2;
        double most = common->capacity[line->name.column] / line->gang;
        for (uint32_t u = 0; u < most && count < DECIDE_LINES; u++) {
            double here = key - u * s->round_s + (u < running ? STAYS * s->round_s : 0);
            if (here <= 0)
                break;
            s->items[count++] = (struct sort_item){ -here, l };
        }
    }
    return count;
}

static void choose_units(struct gavel_common *common, const struct view *view)
{
    struct gavel_sharing *s = common->sharing;
    double room[TYPES_MAX];
    room_for_others(common, view, room);
    line_up(common, view);
    s->unit_count = 0;
    uint32_t count = list_units(common);
    sort_items(s->items, s->item_scratch, count);
    for (uint32_t i = 0; i < count && !gavel_is_full(common, room); i++) {
        const struct gavel_line *line =
            gavel_classes_line(s->classes, s->items[i].value);
        if (line->gang <= room[line->name.column] &&
            give_unit(common, view, s->items[i].value))
            room[line->name.column] -= line->gang;
    }
    if (common->gavel->rule->strict)
        return;
    for (uint32_t i = 0; i < s->order_count && !gavel_is_full(common, room); i++) {
        job_id id = s->order[i];
        if (s->pages[id].taken)
            continue;
        uint32_t now = gavel_column_now(common, view, &view->jobs[id]);
        uint32_t column = gavel_spare_column(common, id, now, room);
        if (column == NONE)
            continue;
        add_unit(common, id, JOB_NONE, column);
        room[column] -= common->entries[id].gang;
    }
}

/* --- where they run --------------------------------------------------------------------- */

/* Of two who sat together one at most keeps the seats, unless they stay together. */
static bool may_keep(const struct gavel_common *common, const struct view *view,
                     job_id id, uint32_t column)
{
    const struct job *job = &view->jobs[id];
    const struct sharing_job *pages = common->sharing->pages;
    if (id == JOB_NONE || !job_is_preemptible(job) ||
        gavel_column_now(common, view, job) != column)
        return false;
    return job->partner == JOB_NONE || job->partner == pages[id].mate ||
           !pages[job->partner].keeps;
}

/*
 * Jobs that stay where they are; the host of each unit comes first in it from now on.
 */
static void settle_hosts(struct gavel_common *common, const struct view *view)
{
    struct gavel_sharing *s = common->sharing;
    for (uint32_t i = 0; i < s->unit_count; i++) {
        struct sharing_unit *unit = &s->units[i];
        job_id a = unit->jobs[0];
        job_id b = unit->jobs[1];
        if (may_keep(common, view, a, unit->column)) {
            s->pages[a].keeps = true;
            if (b != JOB_NONE && view->jobs[a].partner == b &&
                job_is_preemptible(&view->jobs[b]))
                s->pages[b].keeps = true;
        } else if (b != JOB_NONE && may_keep(common, view, b, unit->column)) {
            s->pages[b].keeps = true;
            unit->jobs[0] = b;
            unit->jobs[1] = a;
        }
    }
}

static void send_away(struct gavel_common *common, const struct view *view,
                      struct plan *plan)
{
    struct gavel_sharing *s = common->sharing;
    for (uint32_t i = 0; i < common->job_count; i++) {
        job_id id = common->jobs[i];
        const struct sharing_job *page = &s->pages[id];
        const struct job *job = &view->jobs[id];
        if (page->keeps || is_fixed(common, view, job) || !job_is_preemptible(job))
            continue;
        if (page->want == NONE)
            plan_revoke(plan, id, RULE_ROUND, JOB_NONE);
        else
            plan_revoke(plan, id, RULE_RESIZE, id);
    }
}

static bool grant_on_type(struct gavel_common *common, struct plan *plan, job_id job,
                          uint32_t column, job_id beside)
{
    struct ask ask = ASK_DEFAULT;
    ask.types = (uint32_t)1 << common->types[column];
    ask.beside = beside;
    return plan_grant(plan, job, &ask);
}

static void seat_unit(struct gavel_common *common, const struct view *view,
                      struct plan *plan, const struct sharing_unit *unit)
{
    const struct sharing_job *pages = common->sharing->pages;
    job_id host = unit->jobs[0];
    job_id guest = unit->jobs[1];
    bool seated =
        pages[host].keeps || grant_on_type(common, plan, host, unit->column, JOB_NONE);
    if (guest == JOB_NONE || pages[guest].keeps)
        return;
    if (seated && grant_on_type(common, plan, guest, unit->column, host))
        return;
    if (seated)
        gavel_pairs_refused(common, view, host, guest, unit->column);
    grant_on_type(common, plan, guest, unit->column, JOB_NONE);
}

/* By more than what who sits is ahead by. */
static bool is_owed_more(const struct gavel_common *common, job_id newcomer,
                         job_id other, uint32_t column)
{
    const struct gavel_sharing *s = common->sharing;
    return s->pages[newcomer].behind_s > s->pages[other].behind_s + STAYS * s->round_s;
}

/* Those who may use some nodes only, where others stay there; how many are still without. */
static uint32_t make_way(struct gavel_common *common, const struct view *view,
                         struct plan *plan)
{
    const struct gavel_sharing *s = common->sharing;
    uint32_t without = 0;
    for (uint32_t i = 0; i < s->unit_count; i++)
        for (uint32_t side = 0; side < 2; side++) {
            job_id id = s->units[i].jobs[side];
            if (id != JOB_NONE && common->entries[id].set && !plan_holds(plan, id))
                without += !gavel_make_way(common, view, plan, id, s->units[i].column,
                                           is_owed_more);
        }
    return without;
}

/*
 * Larger gangs first, before them those that may use some nodes only; then jobs that
 * were not replaced stay, or go where they fit.
 */
static void seat_all(struct gavel_common *common, const struct view *view,
                     struct plan *plan)
{
    struct gavel_sharing *s = common->sharing;
    settle_hosts(common, view);
    send_away(common, view, plan);
    for (uint32_t i = 0; i < s->unit_count; i++) {
        const struct gavel_entry *entry = &common->entries[s->units[i].jobs[0]];
        s->items[i] = (struct sort_item){ -entry->gang - (entry->set ? CHOOSY : 0), i };
    }
    sort_items(s->items, s->item_scratch, s->unit_count);
    for (uint32_t i = 0; i < s->unit_count; i++)
        seat_unit(common, view, plan, &s->units[s->items[i].value]);
    s->without = make_way(common, view, plan);
    for (uint32_t i = 0; i < common->job_count && !common->gavel->rule->strict; i++) {
        job_id id = common->jobs[i];
        const struct job *job = &view->jobs[id];
        if (job_is_preemptible(job) && plan_changes(plan, id) && !plan_holds(plan, id))
            grant_on_type(common, plan, id, gavel_column_now(common, view, job),
                          JOB_NONE);
    }
}

/* --- in the middle of a round -------------------------------------------------------------- */

/* What is free goes to waiting jobs, alone; no job is preempted. */
static void give_what_is_free(struct gavel_common *common, const struct view *view,
                              struct plan *plan)
{
    struct gavel_sharing *s = common->sharing;
    double room[TYPES_MAX] = { 0 };
    uint32_t count = 0;
    s->room = false;
    if (view->free->gpu_count == 0 || common->gavel->rule->strict)
        return;
    for (uint32_t c = 0; c < common->type_count; c++)
        room[c] = view->free->shelves[common->types[c]].gpu_count;
    count_due(common, view);
    for (uint32_t i = 0; i < common->job_count; i++)
        if (view->jobs[common->jobs[i]].state == JOB_WAITING &&
            !plan_changes(plan, common->jobs[i]))
            s->items[count++] = (struct sort_item){ -s->pages[common->jobs[i]].behind_s,
                                                    common->jobs[i] };
    sort_items(s->items, s->item_scratch, count);
    for (uint32_t i = 0; i < count && !gavel_is_full(common, room); i++) {
        job_id id = s->items[i].value;
        double tried[TYPES_MAX];
        memcpy(tried, room, sizeof tried);
        for (uint32_t c; (c = gavel_spare_column(common, id, NONE, tried)) != NONE;) {
            tried[c] = 0;
            if (!grant_on_type(common, plan, id, c, JOB_NONE))
                continue;
            room[c] -= common->entries[id].gang;
            break;
        }
    }
}

/* --- deciding ------------------------------------------------------------------------------ */

/* A job waits, or some line is not of whole units: the next round may differ. */
static bool is_restless(const struct gavel_common *common, const struct view *view,
                        const struct plan *plan)
{
    const struct gavel_sharing *s = common->sharing;
    if (plan_change_count(plan) > 0)
        return true;
    for (uint32_t i = 0; i < common->job_count; i++)
        if (!job_runs(&view->jobs[common->jobs[i]]))
            return true;
    for (uint32_t l = 0; l < gavel_classes_line_count(s->classes); l++) {
        double units = gavel_classes_line(s->classes, l)->units;
        if (fabs(units - round(units)) > WHOLE)
            return true;
    }
    return false;
}

static int end_round(struct gavel_common *common, const struct view *view,
                     struct plan *plan, struct arena *scratch, struct error *err)
{
    struct gavel_sharing *s = common->sharing;
    count_due(common, view);
    if (s->stale || common->changed) {
        struct gavel_call call;
        struct gavel_times times = { .now_s = (double)view->now_ns / 1e9 };
        s->stale = common->changed = false;
        gavel_prepare(common, view, &times, scratch, &call);
        uint32_t *class_of = arena_array(scratch, uint32_t, call.job_count);
        for (uint32_t i = 0; i < call.job_count; i++)
            class_of[i] = s->pages[call.jobs[i]].class;
        int r = gavel_classes_solve(s->classes, common, &call, class_of, err);
        if (r < 0) {
            plan_wake(plan, view->now_ns + 1); /* then go on with those there are */
            return r;
        }
    }
    choose_units(common, view);
    seat_all(common, view, plan);
    if (s->without > 0)
        give_what_is_free(common, view, plan); /* it must not idle meanwhile */
    s->end_ns = view->now_ns + common->gavel->round_ns;
    s->room = true; /* GPUs that no job was chosen for may still fit one */
    s->restless = is_restless(common, view, plan);
    return 0;
}

static int sharing_decide(struct gavel_common *common, const struct view *view,
                          struct plan *plan, struct arena *scratch, struct error *err)
{
    struct gavel_sharing *s = common->sharing;
    int r = 0;
    if (common->job_count == 0)
        return 0;
    bool due = s->restless || s->stale || common->changed;
    if (due && view->now_ns >= s->end_ns)
        r = end_round(common, view, plan, scratch, err);
    else if (s->room)
        give_what_is_free(common, view, plan);
    if (r == 0 && (s->restless || s->stale || common->changed))
        plan_wake(plan, s->end_ns);
    return r;
}

static int sharing_init(struct gavel_common *common, const struct view *view,
                        struct arena *run, struct error *err)
{
    if (common->gavel->cost_test.choice != COST_TEST_NONE)
        return error_set(err, -EINVAL,
                         "worth asks about one job in the place of others, which "
                         "sharing=true does not decide by");
    struct gavel_sharing *s = arena_new(run, struct gavel_sharing);
    uint32_t max = view->job_max;
    size_t items = max > DECIDE_LINES ? max : DECIDE_LINES;
    common->sharing = s;
    s->round_s = (double)common->gavel->round_ns / 1e9;
    s->classes = gavel_classes_new(run, common, view);
    s->pages = arena_array(run, struct sharing_job, max);
    s->items = arena_array(run, struct sort_item, items);
    s->item_scratch = arena_array(run, struct sort_item, items);
    s->order = arena_array(run, job_id, max);
    s->of_class = arena_array(run, struct members, CLASSES_MAX);
    s->of_line = arena_array(run, struct members, 2 * (size_t)LINES_MAX);
    s->units = arena_array(run, struct sharing_unit, max);
    return 0;
}

static void sharing_fini(struct gavel_common *common)
{
    if (common->sharing) /* else it was refused */
        gavel_classes_free(common->sharing->classes);
}

const struct gavel_mechanism gavel_mechanism_sharing = {
    .init = sharing_init,
    .observe = sharing_observe,
    .decide = sharing_decide,
    .fini = sharing_fini,
};
