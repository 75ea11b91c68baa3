/*
 * pairs.c - two jobs on the same GPUs, where both are served better together than in turn.
 *
 * Two jobs that share GPUs run at parts of their rates alone, p for the job that is there (the
 * host) and q for the one beside it (the second).  A pair is made only if
 *
 *     p + q  >=  PAIR_LEAST
 *
 * so that it does more than the two would by turns, and only of jobs with known rates together
 * (model/sharing.h).  From the time that both have left alone follows when each ends if the
 * pair lasts until the first of them does:
 *
 *     host:    [ p ............ ][ 1 ....... ]      the second ends first, or
 *     second:  [stop][ q ................. ][ 1 . ]  the host does
 *
 * A waiting job joins a host, in the order of value, if with weights V of the host and W of its own
 *
 *     W x (end otherwise - end beside it) + (theta - 1) x GPU-seconds spared  >  V x (host later)
 *
 * 'End otherwise' is after so many ends of running jobs as jobs wait before it.  What is spared is
 * what it needs by itself, less the time by which the GPUs are held longer: (theta - 1) is what
 * other jobs lose by a GPU-second that is wasted, and gain by one that is spared.
 *
 * A running job moves beside another, out of a pair into free GPUs, or exchanges its place with
 * another job of which one is in a pair, if all four jobs concerned together end earlier by
 *
 *     seconds saved  >  theta x price + HELD x (seconds that its host's GPUs are held longer)
 *                       + MOVE_LEAST x (time until it ends)
 *
 * GPUs are held longer at the cost of jobs that would go there otherwise, which need not be
 * those that wait: they may run on slower ones.  Moves take place where a job began to run or its
 * rate changed, or GPUs became free.
 *
 * No cycles.  The sum of the expected ends of all running jobs is a potential: it stays as it is
 * while jobs run as expected, and each move here, and each move and trade of moves.c, lowers it.
 * With MOVE_LEAST at 0, jobs alike changed places forever for what rounding made of no gain.
 *
 * Trial jobs, jobs that started because they waited too long, elastic jobs and jobs that stay
 * until they end take no part; nor does a job that would miss its deadline by it.
 *
 * Two jobs that turn out to slow each other too much (model/sharing.h) are parted: the one of less
 * value goes to free GPUs, or back to the queue.  Their kinds are not paired again.
 *
 * After Gavel (OSDI 2020): its programmes choose shares of time for pairs.
 */
#include "policy/berth/pairs.h"

#include <math.h>

#include "model/cluster.h"
#include "model/free_index.h"
#include "model/sharing.h"
#include "model/throughput.h"
#include "policy/berth/berth_internal.h"

/*
 * Chosen on seeds 1 to 6 of the workloads gavel and mixed; docs/policies/berth.md says what others
 * would do.
 */
#define PAIR_LEAST 1.2  /* what both do together, in parts of their rates alone */
#define ROUNDING 1e-9   /* of that sum */
#define MOVE_LEAST 0.02 /* of the time until a job ends that a move has to save */
#define HELD 0.5 /* seconds that one counts by which a host's GPUs are held longer */
#define SECONDS_SCANNED 16 /* waiting jobs that are looked at */
#define HOSTS_SCANNED 48   /* running jobs of a type that are looked at for one job */
#define MOVES_MAX 8        /* in one decision */

/* A place on GPUs of a type, beside a job or alone. */
struct pair_place {
    uint32_t type;
    job_id host;   /* JOB_NONE: alone */
    double host_s; /* until it ends if it stays alone */
};

/* Seconds until both end. */
struct ends {
    double host_s, second_s;
};

/* A running job as it is now. */
struct runner {
    job_id id;
    double left_s;           /* of work, on its fastest type */
    double end_s;            /* until it ends */
    double partner_s;        /* and until its partner does; 0: it has none */
    struct pair_place place; /* without it */
};

/* --- two jobs together ---------------------------------------------------------------- */

/* The parts of their rates alone that both keep, if that is known and enough. */
static bool find_parts(const struct view *view, job_id host, job_id second,
                       uint32_t type, uint32_t gpus, double ret_parts[2])
{
    const struct job *jobs[2] = { &view->jobs[host], &view->jobs[second] };
    bool spread = jobs[0]->spread_now;
    double rates[2];
    if (!sharing_is_known(view->rates, jobs[0], jobs[1], type, gpus) ||
        !sharing_rates(view->rates, jobs[0], jobs[1], type, gpus, spread, rates))
        return false;
    for (uint32_t i = 0; i < 2; i++) {
        double alone = throughput_rate(view->rates, jobs[i], type, gpus, spread);
        ret_parts[i] = alone > 0 ? rates[i] / alone : 0;
    }
    return ret_parts[0] + ret_parts[1] >= PAIR_LEAST - ROUNDING;
}

/* With the time that both have left alone; the second makes its first step after 'stop_s'. */
static struct ends pair_ends(double host_s, double second_s, double stop_s,
                             const double parts[2])
{
    double host_end_s = host_s / parts[0];
    double second_end_s = stop_s + second_s / parts[1];
    if (second_end_s <= host_end_s)
        return (struct ends){ second_end_s + host_s - parts[0] * second_end_s,
                              second_end_s };
    double together_s = fmax(host_end_s - stop_s, 0);
    return (struct ends){ host_end_s,
                          fmax(host_end_s, stop_s) + second_s - parts[1] * together_s };
}

/* It has no deadline, or keeps it, or would not keep it otherwise either. */
static bool keeps_deadline(const struct view *view, job_id id, double otherwise_s,
                           double end_s)
{
    double left_s = (double)(view->jobs[id].deadline_ns - view->now_ns) * 1e-9;
    return left_s <= 0 || end_s <= left_s || otherwise_s > left_s;
}

/* If this job goes there; false: it must not. */
static bool find_ends(const struct berth_policy *berth, const struct view *view,
                      const struct pair_place *place, job_id id, double left_s,
                      double stop_s, struct ends *ret_ends)
{
    double second_s = left_s * berth_slowness(berth, id, place->type);
    double parts[2];
    *ret_ends = (struct ends){ 0, stop_s + second_s };
    if (place->host == JOB_NONE)
        return true;
    if (!find_parts(view, place->host, id, place->type, view->jobs[id].gpus, parts))
        return false;
    *ret_ends = pair_ends(place->host_s, second_s, stop_s, parts);
    return keeps_deadline(view, place->host, place->host_s, ret_ends->host_s);
}

/* It said so, or that is not asked. */
static bool is_willing(const struct berth_policy *berth, const struct job *job)
{
    bool all = berth->sharing == SHARING_ALL && !berth->view->rates->rules.by_consent;
    return all || (job->shares && berth->sharing != SHARING_NONE);
}

/* It may share GPUs with a job if it is known how fast both then run. */
static bool may_share(const struct berth_policy *berth, const struct job *job,
                      job_id id)
{
    return is_willing(berth, job) && job->class == CLASS_BE && job->gpus > 0 &&
           (job->kind != KIND_NONE || job->learned) && !job->stays &&
           !job_is_elastic(job) && !berth->jobs[id].by_age;
}

/* It makes steps, and will for longer than what is left of a job is rounded up to. */
static bool runs_on(const struct berth_policy *berth, const struct view *view,
                    const struct plan *plan, job_id id)
{
    const struct job *job = &view->jobs[id];
    return berth->jobs[id].runs && job->state == JOB_RUNNING &&
           job->coming == JOB_NONE && !plan_changes(plan, id) &&
           berth_left_s(berth, view, id) > 1;
}

static bool may_be_host(const struct berth_policy *berth, const struct view *view,
                        const struct plan *plan, job_id id)
{
    const struct job *job = &view->jobs[id];
    return job->partner == JOB_NONE && job_is_preemptible(job) &&
           may_share(berth, job, id) && runs_on(berth, view, plan, id);
}

static struct pair_place place_beside(const struct berth_policy *berth,
                                      const struct view *view, job_id host)
{
    return (struct pair_place){ view->jobs[host].type_now, host,
                                berth_left_s(berth, view, host) };
}

/* --- a waiting job beside a running one ------------------------------------------------ */

/* The ends of running jobs, for those that wait in their order. */
struct ends_to_come {
    uint32_t next; /* TREE_NONE: no more are known */
    uint32_t gpus; /* of those passed, that no job has been given */
    uint32_t type; /* of the last */
    double at_s;
};

/* A waiting job and what becomes of it otherwise. */
struct waiter {
    job_id id;
    double left_s, load_s;
    double apart_s; /* it runs so long by itself   */
    double end_s;   /* and ends then */
    double weight;
};

static void pass_ends(const struct berth_policy *berth, const struct view *view,
                      uint32_t gpus, struct ends_to_come *ends)
{
    const struct cost_model *model = &berth->cost_test.model;
    while (ends->gpus < gpus && ends->next != TREE_NONE) {
        const struct job *job = &view->jobs[ends->next];
        if (cost_model_frees_gpus(model, view, ends->next)) {
            int64_t at_ns = lazy_trees_key(model->running, ends->next);
            ends->at_s = fmax((double)(at_ns - view->now_ns) * 1e-9, 0);
            ends->gpus += job->gpus_now;
            ends->type = job->type_now;
        }
        ends->next = lazy_trees_next(model->running, ends->next);
    }
    ends->gpus = ends->gpus > gpus ? ends->gpus - gpus : 0;
}

static struct waiter look_at_waiting(const struct berth_policy *berth,
                                     const struct view *view, job_id id,
                                     const struct ends_to_come *ends)
{
    struct waiter waiter = { .id = id,
                             .left_s = value_left_s(berth, view, id),
                             .load_s =
                                 cost_model_load_s(&berth->cost_test.model, view, id),
                             .weight = value_estimates.value(berth, view, id).weight };
    double slowness = ends->at_s > 0 && ends->type < view->cluster->type_count
                          ? berth_slowness(berth, id, ends->type)
                          : 1;
    waiter.apart_s =
        waiter.load_s + waiter.left_s * (slowness < INFINITY ? slowness : 1);
    waiter.end_s = ends->at_s + waiter.apart_s;
    return waiter;
}

static double join_gain_s(const struct berth_policy *berth, const struct view *view,
                          const struct waiter *waiter, job_id host)
{
    struct pair_place place = place_beside(berth, view, host);
    struct ends ends;
    if (!find_ends(berth, view, &place, waiter->id, waiter->left_s, waiter->load_s,
                   &ends) ||
        !keeps_deadline(view, waiter->id, waiter->end_s, ends.second_s))
        return 0;
    double held_s = fmax(ends.host_s, ends.second_s) - place.host_s;
    double spared_gpu_s = view->jobs[waiter->id].gpus * (waiter->apart_s - held_s);
    return waiter->weight * (waiter->end_s - ends.second_s) +
           (berth->theta - 1) * spared_gpu_s -
           value_estimates.value(berth, view, host).weight *
               (ends.host_s - place.host_s);
}

/* The host beside which it gains most; JOB_NONE: it gains beside none. */
static job_id find_host(const struct berth_policy *berth, const struct view *view,
                        const struct plan *plan, const struct waiter *waiter)
{
    const struct job *job = &view->jobs[waiter->id];
    double best_s = 0;
    job_id best = JOB_NONE;
    for (uint32_t type = 0; type < view->cluster->type_count; type++) {
        if (!(job->types >> type & 1))
            continue;
        uint32_t id = lazy_trees_first(berth->running, type);
        for (uint32_t i = 0; id != TREE_NONE && i < HOSTS_SCANNED; i++) {
            if (view->jobs[id].gpus_now == job->gpus &&
                may_be_host(berth, view, plan, id)) {
                double gain = join_gain_s(berth, view, waiter, id);
                best = gain > best_s ? id : best;
                best_s = gain > best_s ? gain : best_s;
            }
            id = lazy_trees_next(berth->running, id);
        }
    }
    return best;
}

void pairs_start(struct berth_policy *berth, const struct view *view, struct plan *plan)
{
    const struct cost_model *model = &berth->cost_test.model;
    struct ends_to_come ends = { .next = lazy_trees_first(model->running, 0),
                                 .type = TYPE_NONE };
    uint32_t id = lazy_trees_first(model->waiting, 0);
    for (uint32_t i = 0; id != TREE_NONE && i < SECONDS_SCANNED; i++) {
        const struct job *job = &view->jobs[id];
        if (!plan_changes(plan, id)) {
            pass_ends(berth, view, job->gpus, &ends);
            struct waiter waiter = look_at_waiting(berth, view, id, &ends);
            job_id host = may_share(berth, job, id)
                              ? find_host(berth, view, plan, &waiter)
                              : JOB_NONE;
            struct ask ask = ASK_DEFAULT;
            ask.beside = host;
            ask.avoid = aged_kept_from(berth, view, id);
            if (host != JOB_NONE)
                plan_grant_free(plan, id, &ask);
        }
        id = lazy_trees_next(model->waiting, id);
    }
}

/* --- running jobs ---------------------------------------------------------------------- */

/* It may be stopped to go on elsewhere, and what becomes of its partner is known. */
static bool can_move(const struct berth_policy *berth, const struct view *view,
                     const struct plan *plan, job_id id)
{
    const struct job *job = &view->jobs[id];
    if (job->gpus_now != job->gpus || !job_is_preemptible(job) ||
        !may_share(berth, job, id) || !runs_on(berth, view, plan, id))
        return false;
    return job->partner == JOB_NONE || (view->jobs[job->partner].next.count == 0 &&
                                        runs_on(berth, view, plan, job->partner));
}

static bool look_at_running(const struct berth_policy *berth, const struct view *view,
                            const struct plan *plan, job_id id,
                            struct runner *ret_runner)
{
    const struct job *job = &view->jobs[id];
    double parts[2] = { job->partner == JOB_NONE, job->partner == JOB_NONE };
    if (!can_move(berth, view, plan, id))
        return false;
    struct pair_place place = { job->type_now, job->partner, 0 };
    if (place.host != JOB_NONE) {
        find_parts(view, place.host, id, place.type, job->gpus, parts);
        place.host_s = berth_left_s(berth, view, place.host) * parts[0];
    }
    double alone_s = berth_left_s(berth, view, id) * parts[1];
    struct ends ends = place.host == JOB_NONE
                           ? (struct ends){ 0, alone_s }
                           : pair_ends(place.host_s, alone_s, 0, parts);
    *ret_runner = (struct runner){ id, alone_s / berth_slowness(berth, id, place.type),
                                   ends.second_s, ends.host_s, place };
    return parts[0] > 0 && parts[1] > 0;
}

/* What all jobs concerned gain if it goes there, once the job that is there has gone. */
static double move_gain_s(const struct berth_policy *berth, const struct view *view,
                          const struct runner *runner, const struct pair_place *to,
                          double pause_s)
{
    const struct cost_model *model = &berth->cost_test.model;
    job_id id = runner->id;
    double stop_s = fmax(pause_s, cost_model_pause_s(model, view, id)) +
                    cost_model_load_s(model, view, id) + price_lost_s(berth, view, id);
    struct ends ends;
    if (!(view->jobs[id].types >> to->type & 1) ||
        !find_ends(berth, view, to, id, runner->left_s, stop_s, &ends) ||
        !keeps_deadline(view, id, runner->end_s, ends.second_s))
        return -INFINITY;
    double leaving_s = runner->partner_s - runner->place.host_s;
    double held_s =
        to->host == JOB_NONE ? 0 : fmax(ends.host_s, ends.second_s) - to->host_s;
    return runner->end_s - ends.second_s + leaving_s - (ends.host_s - to->host_s) -
           berth->theta * price_of_stopping(berth, view, id) - HELD * held_s -
           MOVE_LEAST * runner->end_s;
}

/* Revoked first, or one of a pair would be granted the GPUs that it has. */
static bool move_to(const struct berth_policy *berth, const struct view *view,
                    struct plan *plan, job_id id, const struct pair_place *to)
{
    struct ask ask = ASK_DEFAULT;
    size_t mark = plan_mark(plan);
    ask.types = 1u << to->type;
    ask.beside = to->host;
    ask.avoid = berth_nodes_to_avoid(berth);
    plan_revoke(plan, id, RULE_RESIZE, id);
    if (plan_grant_free(plan, id, &ask))
        return true;
    plan_undo(plan, mark);
    return false;
}

/* One of a pair goes to free GPUs, where both gain most by it. */
static bool leave_pair(const struct berth_policy *berth, const struct view *view,
                       struct plan *plan, job_id id)
{
    struct runner runner;
    struct pair_place best = { .host = JOB_NONE };
    double best_s = 0;
    if (view->jobs[id].partner == JOB_NONE ||
        !look_at_running(berth, view, plan, id, &runner))
        return false;
    for (uint32_t type = 0; type < view->cluster->type_count; type++) {
        struct pair_place to = { type, JOB_NONE, 0 };
        double gain = view->free->shelves[type].gpu_count >= view->jobs[id].gpus
                          ? move_gain_s(berth, view, &runner, &to, 0)
                          : 0;
        best = gain > best_s ? to : best;
        best_s = gain > best_s ? gain : best_s;
    }
    return best_s > 0 && move_to(berth, view, plan, id, &best);
}

static void leave_pairs(const struct berth_policy *berth, const struct view *view,
                        struct plan *plan)
{
    uint32_t moved = 0;
    for (uint32_t type = 0; type < view->cluster->type_count; type++) {
        uint32_t id = lazy_trees_first(berth->running, type);
        for (uint32_t i = 0; id != TREE_NONE && i < HOSTS_SCANNED; i++) {
            if (view->free->gpu_count == 0 || moved >= MOVES_MAX)
                return;
            moved += leave_pair(berth, view, plan, id);
            id = lazy_trees_next(berth->running, id);
        }
    }
}

/* The best that one running job can do with another. */
struct best_move {
    job_id other;
    enum { JOINS, IS_JOINED, EXCHANGES } how;
    double gain_s;
};

static void try_move(struct best_move *best, job_id other, int how, double gain_s)
{
    if (gain_s > best->gain_s)
        *best = (struct best_move){ other, how, gain_s };
}

static void try_other(const struct berth_policy *berth, const struct view *view,
                      const struct plan *plan, const struct runner *mine, job_id id,
                      struct best_move *best)
{
    const struct cost_model *model = &berth->cost_test.model;
    struct runner other;
    if (!look_at_running(berth, view, plan, id, &other))
        return;
    bool mine_alone = mine->place.host == JOB_NONE;
    bool other_alone = other.place.host == JOB_NONE;
    if (other_alone) {
        struct pair_place beside = place_beside(berth, view, id);
        try_move(best, id, JOINS, move_gain_s(berth, view, mine, &beside, 0));
    }
    if (mine_alone) {
        struct pair_place beside = place_beside(berth, view, mine->id);
        try_move(best, id, IS_JOINED, move_gain_s(berth, view, &other, &beside, 0));
    }
    if (mine_alone && other_alone)
        return; /* moves.c */
    double pause_s = fmax(cost_model_pause_s(model, view, id),
                          cost_model_pause_s(model, view, mine->id));
    double gain_s = move_gain_s(berth, view, mine, &other.place, pause_s);
    if (gain_s > -INFINITY)
        try_move(best, id, EXCHANGES,
                 gain_s + move_gain_s(berth, view, &other, &mine->place, pause_s));
}

static bool exchange_places(const struct view *view, struct plan *plan, job_id a,
                            job_id b)
{
    const struct job *jobs[2] = { &view->jobs[a], &view->jobs[b] };
    size_t mark = plan_mark(plan);
    struct ask asks[2] = { ASK_DEFAULT, ASK_DEFAULT };
    for (uint32_t i = 0; i < 2; i++) {
        asks[i].types = 1u << jobs[!i]->type_now;
        asks[i].beside = jobs[!i]->partner;
    }
    plan_revoke(plan, a, RULE_RESIZE, b);
    plan_revoke(plan, b, RULE_RESIZE, a);
    if (plan_grant(plan, a, &asks[0]) && plan_grant(plan, b, &asks[1]))
        return true;
    plan_undo(plan, mark);
    return false;
}

static bool move_running(const struct berth_policy *berth, const struct view *view,
                         struct plan *plan, job_id id)
{
    struct runner mine;
    struct best_move best = { .other = JOB_NONE };
    if (!look_at_running(berth, view, plan, id, &mine))
        return false;
    for (uint32_t type = 0; type < view->cluster->type_count; type++) {
        if (!(view->jobs[id].types >> type & 1) || (berth->kept_types >> type & 1))
            continue;
        uint32_t other = lazy_trees_first(berth->running, type);
        for (uint32_t i = 0; other != TREE_NONE && i < HOSTS_SCANNED; i++) {
            if (other != id && other != view->jobs[id].partner &&
                view->jobs[other].gpus_now == view->jobs[id].gpus_now)
                try_other(berth, view, plan, &mine, other, &best);
            other = lazy_trees_next(berth->running, other);
        }
    }
    if (best.other == JOB_NONE)
        return false;
    if (best.how == EXCHANGES)
        return exchange_places(view, plan, id, best.other);
    job_id host = best.how == JOINS ? best.other : id;
    struct pair_place place = place_beside(berth, view, host);
    return move_to(berth, view, plan, best.how == JOINS ? id : best.other, &place);
}

/* --- pairs that do harm ------------------------------------------------------------------ */

static bool does_harm(const struct view *view, job_id id)
{
    const struct job *job = &view->jobs[id];
    double rates[2];
    return job->partner != JOB_NONE && job->type_now != TYPE_NONE &&
           !sharing_rates(view->rates, job, &view->jobs[job->partner], job->type_now,
                          job->gpus_now, job->spread_now, rates);
}

/* It leaves its partner, for free GPUs if there are any. */
static bool leave_partner(const struct berth_policy *berth, const struct view *view,
                          struct plan *plan, job_id id)
{
    struct ask ask = ASK_DEFAULT;
    size_t mark = plan_mark(plan);
    if (!job_is_preemptible(&view->jobs[id]) || !runs_on(berth, view, plan, id))
        return false;
    ask.avoid = berth_nodes_to_avoid(berth);
    plan_revoke(plan, id, RULE_RESIZE, id);
    if (plan_grant_free(plan, id, &ask))
        return true;
    plan_undo(plan, mark);
    plan_revoke(plan, id, RULE_ORDER, view->jobs[id].partner);
    return true;
}

static void part_harmful(struct berth_policy *berth, const struct view *view,
                         struct plan *plan)
{
    for (uint32_t i = 0; i < berth->harmful_count; i++) {
        job_id id = berth->harmful[i];
        job_id other = view->jobs[id].partner;
        if (!does_harm(view, id) || plan_changes(plan, id) || plan_changes(plan, other))
            continue;
        bool is_first =
            value_of(berth, view, id).key_ns < value_of(berth, view, other).key_ns;
        job_id leaving[2] = { is_first ? other : id, is_first ? id : other };
        if (!leave_partner(berth, view, plan, leaving[0]))
            leave_partner(berth, view, plan, leaving[1]);
    }
    berth->harmful_count = 0;
}

void pairs_move(struct berth_policy *berth, const struct view *view, struct plan *plan,
                bool freed)
{
    uint32_t moved = 0;
    part_harmful(berth, view, plan);
    if (berth->sharing_count < 2)
        return;
    if (freed && view->free->gpu_count > 0)
        leave_pairs(berth, view, plan);
    for (uint32_t i = 0; i < berth->fresh_count && moved < MOVES_MAX; i++)
        if (berth->jobs[berth->fresh[i]].runs &&
            !(berth->kept_types >> view->jobs[berth->fresh[i]].type_now & 1))
            moved += move_running(berth, view, plan, berth->fresh[i]);
}

void pairs_observe(struct berth_policy *berth, const struct view *view, job_id id)
{
    const struct job *job = &view->jobs[id];
    struct berth_job *mine = &berth->jobs[id];
    bool shares = job->state >= JOB_WAITING && may_share(berth, job, id);
    berth->sharing_count += shares - mine->shares;
    mine->shares = shares;
    if (job->partner != JOB_NONE && berth->harmful_count < FRESH_MAX && mine->runs &&
        does_harm(view, id)) {
        berth->harmful[berth->harmful_count++] = id;
        berth->stirred = true;
    }
}
