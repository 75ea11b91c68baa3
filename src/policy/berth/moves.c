/*
 * moves.c - jobs move to faster GPUs, and trade places, where that pays.
 *
 * A move goes into free room of a type on which the job runs faster; jobs with the least time
 * left are looked at first.  With r the time left where it is, r' there,
 *
 *     saved = r - (pause + load + lost + r')        must exceed theta x waste
 *
 * An elastic job has the size there that it asks for, whatever it has here.
 *
 * A trade exchanges the places of two gangs of equal size on different types.  Besides that
 * the sum of 1/r over both must rise: 1/r is how soon a job ends, its sum over all running
 * jobs is a potential that only trades change and that every trade raises, so trades cannot
 * go round in circles, even where they cost nothing.
 *
 * This is Gavel's point, that a job should run where it gains most over the others, without
 * rounds: something is looked at only where GPUs became free, a job began to run, or the guess of
 * what is left of a running job grew.  Without the last, a long job whose work is unknown stays on
 * slow GPUs while the cluster empties: no more GPUs become free when it is known to be long.
 */
#include <math.h>

#include "model/cluster.h"
#include "model/free_index.h"
#include "model/placement.h"
#include "policy/berth/berth_internal.h"
#include "policy/berth/pairs.h"

#define MOVES_SCANNED 24  /* running jobs of a type that are looked at for a move */
#define TRADES_SCANNED 48 /* and for a trade */
#define MOVES_MAX 8       /* in one decision */

/* Seconds until the job ends on that type, from its first step there on. */
static double left_there_s(const struct berth_policy *berth, const struct view *view,
                           job_id id, uint32_t to)
{
    const struct job *job = &view->jobs[id];
    double slowness = berth_slowness(berth, id, job->type_now);
    if (job->gpus_now != job->gpus && job->rate_per_s > 0)
        slowness =
            job->rate_best_per_s / job->rate_per_s; /* there it has its own size */
    return berth_left_s(berth, view, id) * berth_slowness(berth, id, to) / slowness;
}

/* It makes steps, and may be stopped to go on elsewhere. */
static bool can_move(const struct view *view, const struct plan *plan, job_id id)
{
    const struct job *job = &view->jobs[id];
    return job->state == JOB_RUNNING && job_is_preemptible(job) &&
           !plan_changes(plan, id) && job->partner == JOB_NONE &&
           job->coming == JOB_NONE;
}

static bool can_trade(const struct view *view, const struct plan *plan, job_id id)
{
    return can_move(view, plan, id) && view->jobs[id].gpus_now == view->jobs[id].gpus;
}

static bool is_faster_on(const struct berth_policy *berth, const struct view *view,
                         job_id id, uint32_t type)
{
    return berth_slowness(berth, id, type) <
           berth_slowness(berth, id, view->jobs[id].type_now);
}

bool moves_pay(const struct berth_policy *berth, const struct view *view, job_id id,
               uint32_t type)
{
    if (!is_faster_on(berth, view, id, type))
        return false;
    double saved_s = berth_left_s(berth, view, id) - price_stop_s(berth, view, id) -
                     left_there_s(berth, view, id, type);
    return saved_s > berth->theta * price_of_stopping(berth, view, id);
}

static bool move_job(const struct berth_policy *berth, const struct view *view,
                     struct plan *plan, job_id id, uint32_t type)
{
    struct ask ask = ASK_DEFAULT;
    ask.types = 1u << type;
    ask.avoid = berth_nodes_to_avoid(berth);
    return plan_grant_free(plan, id, &ask);
}

/* What stopping the job costs at least: when it has just saved, and nothing waits. */
static double least_cost_s(const struct berth_policy *berth, const struct view *view,
                           job_id id)
{
    double stop_s = price_stop_s(berth, view, id);
    double saved_s = stop_s - price_lost_s(berth, view, id);
    return stop_s > 0 ? saved_s + price_of_stopping(berth, view, id) * saved_s / stop_s
                      : 0;
}

/*
 * Until when a move can pay: what it saves, a part of what is left, falls as the job goes on.
 * INT64_MIN: it runs on its fastest type.
 */
static int64_t moves_until_ns(const struct berth_policy *berth, const struct view *view,
                              job_id id)
{
    const struct job *job = &view->jobs[id];
    double left_s = berth_left_s(berth, view, id);
    double most_s = 0;
    for (uint32_t type = 0; type < view->cluster->type_count; type++)
        if ((job->types >> type & 1) &&
            berth_slowness(berth, id, type) < berth_slowness(berth, id, job->type_now))
            most_s = fmax(most_s, left_s - left_there_s(berth, view, id, type));
    if (most_s <= 0)
        return INT64_MIN;
    double needed_s = least_cost_s(berth, view, id) * left_s / most_s;
    int64_t end_ns = lazy_trees_key(berth->running, id);
    return needed_s < 4e9 && end_ns > INT64_MIN / 2 ? end_ns - (int64_t)(needed_s * 1e9)
                                                    : INT64_MIN;
}

static bool move_can_pay(const struct berth_policy *berth, const struct view *view,
                         job_id id)
{
    const struct job *job = &view->jobs[id];
    struct berth_job *mine = &berth->jobs[id];
    if (job->state != JOB_RUNNING && job->gpus_now != job->gpus)
        return true; /* its rate is not known yet */
    if (mine->moves_until_ns == 0)
        mine->moves_until_ns = moves_until_ns(berth, view, id);
    return view->now_ns < mine->moves_until_ns;
}

/* The first one from this job on for which a move can pay; others are no more. */
static uint32_t drop_candidates(struct berth_policy *berth, const struct view *view,
                                uint32_t id)
{
    while (id != TREE_NONE && !move_can_pay(berth, view, id)) {
        lazy_trees_drop(berth->movers, id);
        id = lazy_trees_next(berth->movers, id);
    }
    return id;
}

/* The first candidate of this type after 'last' (TREE_NONE: of all). */
static inline uint32_t next_candidate(struct berth_policy *berth,
                                      const struct view *view, uint32_t type,
                                      uint32_t last)
{
    uint32_t id = last == TREE_NONE ? lazy_trees_first(berth->movers, type)
                                    : lazy_trees_next(berth->movers, last);
    if (id == TREE_NONE || view->now_ns < berth->jobs[id].moves_until_ns)
        return id;
    return drop_candidates(berth, view, id);
}

/* Move jobs of type 'from' into free GPUs of type 'to'; returns how many. */
static uint32_t move_between(struct berth_policy *berth, const struct view *view,
                             struct plan *plan, uint32_t from, uint32_t to)
{
    uint32_t moved = 0;
    uint32_t id = next_candidate(berth, view, from, TREE_NONE);
    for (uint32_t i = 0; id != TREE_NONE && i < MOVES_SCANNED; i++) {
        const struct job *job = &view->jobs[id];
        if (view->free->shelves[to].gpu_count == 0)
            break;
        if ((job->types >> to & 1) && is_faster_on(berth, view, id, to) &&
            can_move(view, plan, id) && placement_has_nodes(view->free, job, to) &&
            moves_pay(berth, view, id, to) && move_job(berth, view, plan, id, to))
            moved++;
        id = next_candidate(berth, view, from, id);
    }
    return moved;
}

/* What both jobs together save by exchanging their places; at most 0: do not. */
static double trade_gain_s(const struct berth_policy *berth, const struct view *view,
                           job_id a, job_id b)
{
    uint32_t type_a = view->jobs[a].type_now;
    uint32_t type_b = view->jobs[b].type_now;
    if (!(view->jobs[a].types >> type_b & 1) || !(view->jobs[b].types >> type_a & 1))
        return 0;
    double a_here = berth_left_s(berth, view, a);
    double b_here = berth_left_s(berth, view, b);
    double a_there = left_there_s(berth, view, a, type_b);
    double b_there = left_there_s(berth, view, b, type_a);
    if (!(1 / a_there + 1 / b_there > 1 / a_here + 1 / b_here))
        return 0;
    double stop = fmax(cost_model_pause_s(&berth->cost_test.model, view, a),
                       cost_model_pause_s(&berth->cost_test.model, view, b));
    double saved_s = a_here + b_here - a_there - b_there - 2 * stop -
                     cost_model_load_s(&berth->cost_test.model, view, a) -
                     cost_model_load_s(&berth->cost_test.model, view, b) -
                     price_lost_s(berth, view, a) - price_lost_s(berth, view, b);
    return saved_s - berth->theta * (price_of_stopping(berth, view, a) +
                                     price_of_stopping(berth, view, b));
}

/*
 * The next job of a type to trade with after 'last'.  Where the one that looks for it does not
 * gain by a trade itself, the other one has to: then a move may pay for it.
 */
static uint32_t next_partner(struct berth_policy *berth, const struct view *view,
                             uint32_t type, bool gains, uint32_t last)
{
    if (!gains)
        return next_candidate(berth, view, type, last);
    return last == TREE_NONE ? lazy_trees_first(berth->running, type)
                             : lazy_trees_next(berth->running, last);
}

static job_id find_trade(struct berth_policy *berth, const struct view *view,
                         const struct plan *plan, job_id id)
{
    double best_s = 0;
    job_id best = JOB_NONE;
    for (uint32_t type = 0; type < view->cluster->type_count; type++) {
        if (type == view->jobs[id].type_now || !(view->jobs[id].types >> type & 1) ||
            (berth->kept_types >> type & 1))
            continue;
        bool gains = berth_slowness(berth, id, type) <
                     berth_slowness(berth, id, view->jobs[id].type_now);
        uint32_t other = next_partner(berth, view, type, gains, TREE_NONE);
        for (uint32_t i = 0; other != TREE_NONE && i < TRADES_SCANNED; i++) {
            if (view->jobs[other].gpus == view->jobs[id].gpus &&
                can_trade(view, plan, other)) {
                double gain_s = trade_gain_s(berth, view, id, other);
                best = gain_s > best_s ? other : best;
                best_s = gain_s > best_s ? gain_s : best_s;
            }
            other = next_partner(berth, view, type, gains, other);
        }
    }
    return best;
}

static void trade_places(struct plan *plan, const struct view *view, job_id a, job_id b)
{
    size_t mark = plan_mark(plan);
    struct ask ask_a = ASK_DEFAULT;
    struct ask ask_b = ASK_DEFAULT;
    ask_a.types = 1u << view->jobs[b].type_now;
    ask_b.types = 1u << view->jobs[a].type_now;
    plan_revoke(plan, a, RULE_RESIZE, b);
    plan_revoke(plan, b, RULE_RESIZE, a);
    if (!plan_grant(plan, a, &ask_a) || !plan_grant(plan, b, &ask_b))
        plan_undo(plan, mark);
}

static void make_trades(struct berth_policy *berth, const struct view *view,
                        struct plan *plan)
{
    for (uint32_t i = 0; i < berth->fresh_count; i++) {
        job_id id = berth->fresh[i];
        if (!berth->jobs[id].runs || !can_trade(view, plan, id) ||
            (berth->kept_types >> view->jobs[id].type_now & 1))
            continue;
        job_id other = find_trade(berth, view, plan, id);
        if (other != JOB_NONE)
            trade_places(plan, view, id, other);
    }
    berth->fresh_count = 0;
}

/* Types on which jobs run that may gain by a faster one. */
static uint32_t types_with_movers(struct berth_policy *berth, const struct view *view)
{
    uint32_t types = 0;
    for (uint32_t type = 0; type < view->cluster->type_count; type++)
        if (lazy_trees_first(berth->movers, type) != TREE_NONE)
            types |= 1u << type;
    return types;
}

void moves_make(struct berth_policy *berth, const struct view *view, struct plan *plan)
{
    uint32_t moved = 0;
    uint32_t types = berth->freed_types | berth->grown_types;
    uint32_t sources = types ? types_with_movers(berth, view) : 0;
    for (uint32_t to = 0; to < view->cluster->type_count && sources; to++) {
        if (!(types >> to & 1) || view->free->shelves[to].gpu_count == 0)
            continue;
        for (uint32_t left = sources & ~(1u << to); left && moved < MOVES_MAX;
             left &= left - 1)
            moved += move_between(berth, view, plan, (uint32_t)__builtin_ctz(left), to);
    }
    if (berth->sharing_count >= 2 || berth->harmful_count > 0)
        pairs_move(berth, view, plan, berth->freed_types != 0);
    berth->freed_types = berth->grown_types = 0;
    make_trades(berth, view, plan);
}
