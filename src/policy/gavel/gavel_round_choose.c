/*
 * gavel_round_choose.c - our own rounds: who is to run in the next one, and on which type.
 *
 * Places go to who is owed most; then who is due a slower type moves up to a faster one
 * with room; what is left goes to anybody who can use it; and two who would share are
 * parted while there is room for each.
 */
#include <string.h>

#include "model/cluster.h"
#include "policy/gavel/gavel_round.h"

#define STAYS 1.0 /* rounds that who is there is ahead of who is not       */
#define MOVES 2.0 /* and behind where it would have to move to             */

/* --- who is to run ------------------------------------------------------------------------ */

static bool is_bound(const struct gavel_common *common, const struct view *view,
                     const struct job *job)
{
    return job->next.count > 0 || job->leaving || gavel_is_spared(common, view, job);
}

/* It, or who shares with it, is on its way, to seats or out, or had better stay. */
static bool is_fixed(const struct gavel_common *common, const struct view *view,
                     const struct job *job)
{
    return is_bound(common, view, job) ||
           (job->partner != JOB_NONE &&
            is_bound(common, view, &view->jobs[job->partner]));
}

/* Units are jobs, and after them duos. */
static void list_unit(struct gavel_common *common, uint32_t unit, const double *x,
                      const double *credit_s, uint32_t now)
{
    struct gavel_rounds *rounds = common->rounds;
    for (uint32_t c = 0; c < common->type_count; c++) {
        if (x[c] <= 0)
            continue;
        double key = credit_s[c] + x[c] * rounds->round_s;
        if (c == now)
            key += STAYS * rounds->round_s;
        else if (now != NONE)
            key -= MOVES * rounds->round_s;
        rounds->items[rounds->item_count++] =
            (struct sort_item){ .key = -key, .value = unit * common->type_count + c };
    }
}

void rounds_list_job(struct gavel_common *common, job_id job, uint32_t now)
{
    list_unit(common, job, rounds_shares(common, job), rounds_credits(common, job),
              now);
}

static void list_duos(struct gavel_common *common, const struct view *view)
{
    struct gavel_rounds *rounds = common->rounds;
    for (uint32_t d = 0; d < rounds->duo_count; d++) {
        const struct duo *duo = &rounds->duos[d];
        const struct job *first = &view->jobs[duo->jobs[0]];
        const struct job *second = &view->jobs[duo->jobs[1]];
        if (!duo_is_whole(common, duo) || is_fixed(common, view, first) ||
            is_fixed(common, view, second))
            continue;
        bool share_now = first->partner == duo->jobs[1];
        size_t cell = (size_t)d * common->type_count;
        list_unit(common, rounds->job_max + d, &rounds->duo_x[cell],
                  &rounds->duo_credit_s[cell],
                  share_now ? gavel_column_now(common, view, first) : NONE);
    }
}

/* The jobs of a unit, and how many they are. */
static uint32_t jobs_of(const struct gavel_rounds *rounds, uint32_t unit,
                        job_id ret_jobs[2])
{
    ret_jobs[0] = unit;
    ret_jobs[1] = JOB_NONE;
    if (unit < rounds->job_max)
        return 1;
    memcpy(ret_jobs, rounds->duos[unit - rounds->job_max].jobs, 2 * sizeof *ret_jobs);
    return 2;
}

/* A unit takes its place, if its jobs have none yet and there is room. */
static void place_unit(struct gavel_common *common, uint32_t unit, uint32_t column,
                       double *room)
{
    struct gavel_rounds *rounds = common->rounds;
    job_id jobs[2];
    uint32_t count = jobs_of(rounds, unit, jobs);
    double gang = common->entries[jobs[0]].gang;
    if (gang > room[column] || rounds->pages[jobs[0]].want != NONE ||
        (count == 2 && rounds->pages[jobs[1]].want != NONE))
        return;
    room[column] -= gang;
    for (uint32_t i = 0; i < count; i++) {
        rounds->pages[jobs[i]].want = column;
        rounds->pages[jobs[i]].with = jobs[!i];
    }
}

/* Give room to who is owed most. */
static void choose_due(struct gavel_common *common, double *room)
{
    struct gavel_rounds *rounds = common->rounds;
    uint32_t k = common->type_count;
    sort_items(rounds->items, rounds->item_scratch, rounds->item_count);
    for (uint32_t i = 0; i < rounds->item_count && !gavel_is_full(common, room); i++)
        place_unit(common, rounds->items[i].value / k, rounds->items[i].value % k,
                   room);
}

/* The job of the i-th item, then all on the roll; JOB_NONE for a duo. */
static job_id job_in_order(const struct gavel_common *common, uint32_t i)
{
    const struct gavel_rounds *rounds = common->rounds;
    if (i >= rounds->item_count)
        return common->jobs[i - rounds->item_count];
    uint32_t unit = rounds->items[i].value / common->type_count;
    return unit < rounds->job_max ? unit : JOB_NONE;
}

/* Who is due a slower type need not use it while there is room on a faster one. */
static void move_up(struct gavel_common *common, const struct view *view, double *room)
{
    struct gavel_rounds *rounds = common->rounds;
    for (uint32_t i = 0; i < rounds->item_count && !gavel_is_full(common, room); i++) {
        job_id job = job_in_order(common, i);
        if (job == JOB_NONE || rounds->pages[job].want == NONE ||
            rounds->pages[job].with != JOB_NONE)
            continue;
        uint32_t want = rounds->pages[job].want;
        uint32_t best = gavel_spare_column(common, job, NONE, room);
        const double *rates = gavel_rates(common, job);
        if (best == NONE || rates[best] <= rates[want])
            continue;
        room[want] += common->entries[job].gang;
        room[best] -= common->entries[job].gang;
        rounds->pages[job].want = best;
    }
}

/* What is left over goes to anybody who can use it. */
static void choose_rest(struct gavel_common *common, const struct view *view,
                        double *room, bool running)
{
    struct gavel_rounds *rounds = common->rounds;
    for (uint32_t i = 0; i < rounds->item_count + common->job_count; i++) {
        if (gavel_is_full(common, room))
            return;
        job_id id = job_in_order(common, i);
        const struct job *job = id == JOB_NONE ? NULL : &view->jobs[id];
        if (!job || rounds->pages[id].want != NONE || is_fixed(common, view, job) ||
            (!running && job->state != JOB_WAITING))
            continue;
        uint32_t column =
            gavel_spare_column(common, id, gavel_column_now(common, view, job), room);
        if (column != NONE)
            place_unit(common, id, column, room);
    }
}

void rounds_choose(struct gavel_common *common, const struct view *view, double *room,
                   bool running)
{
    choose_due(common, room);
    if (common->gavel->rule->strict)
        return;
    if (common->gavel->aware)
        move_up(common, view, room);
    choose_rest(common, view, room, running);
}

/* Two need not share while there is room for each; least due first. */
static void part_duos(struct gavel_common *common, double *room)
{
    struct gavel_rounds *rounds = common->rounds;
    uint32_t k = common->type_count;
    for (uint32_t i = rounds->item_count; i-- > 0 && !gavel_is_full(common, room);) {
        uint32_t unit = rounds->items[i].value / k;
        if (unit < rounds->job_max)
            continue;
        const struct duo *duo = &rounds->duos[unit - rounds->job_max];
        struct round_job *first = &rounds->pages[duo->jobs[0]];
        struct round_job *second = &rounds->pages[duo->jobs[1]];
        if (first->with != duo->jobs[1])
            continue;
        uint32_t column = gavel_spare_column(common, duo->jobs[1], NONE, room);
        double alone = column == NONE ? 0 : gavel_rates(common, duo->jobs[1])[column];
        if (alone < gavel_rates(common, duo->jobs[1])[second->want] / 2)
            continue; /* it is better off where it is */
        room[column] -= common->entries[duo->jobs[1]].gang;
        first->with = second->with = JOB_NONE;
        second->want = column;
    }
}

/* Who is to have what in the next round, into the pages. */
void rounds_choose_all(struct gavel_common *common, const struct view *view)
{
    struct gavel_rounds *rounds = common->rounds;
    double room[TYPES_MAX];
    memcpy(room, common->capacity, sizeof room);
    rounds->item_count = 0;
    for (uint32_t i = 0; i < common->job_count; i++) {
        job_id id = common->jobs[i];
        const struct job *job = &view->jobs[id];
        uint32_t now = gavel_column_now(common, view, job);
        rounds->pages[id].want = NONE;
        rounds->pages[id].with = JOB_NONE;
        if (!is_fixed(common, view, job)) {
            rounds_list_job(common, id, now);
        } else if (now != NONE) {
            rounds->pages[id].want = now;
            rounds->pages[id].with = job->partner;
            if (job->partner == JOB_NONE || id < job->partner)
                room[now] -= common->entries[id].gang;
        }
    }
    list_duos(common, view);
    rounds_choose(common, view, room, /* running= */ true);
    if (rounds->duo_count > 0 && !common->gavel->rule->strict)
        part_duos(common, room);
}
