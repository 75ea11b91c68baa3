/*
 * objective.c - other objectives than completion: whose turn it is, by shares of time.
 *
 *     makespan   gavel-makespan    the last job ends as early as can be
 *     fairness   gavel-ftf         finish times in proportion to those on an equal share;
 *                gavel-hierarchical  shares by weight, where the cluster names entities
 *     cost       gavel-cost        the most work per unit of money
 *
 * Gavel's programme says what part of its time a best-effort job is due on each type, and its
 * rounds carry that out (policy/gavel/gavel_round.c).  They are told by this file
 *
 *     which jobs    trial jobs take no part and are placed as trials.c says; those beyond their
 *                   share of the GPUs do, until there is room in it
 *     what GPUs     those that trial jobs hold are not given away
 *     the price     a job keeps its GPUs until another is owed more by LEAD times what a stop
 *                   costs it, and until it has run for SPARED times that
 *     the sizes     GPUs that elastic jobs got because no job waited are given back
 *
 * A round takes turns, so preemptions are bounded by time: a job is stopped at the end of a round
 * only, and each time the other must have been owed more since.  Where stops cost nothing and
 * there are no trial jobs all this is as in Gavel's policy.
 */
#include "base/arena.h"
#include "base/error.h"
#include "base/param.h"
#include "model/cluster.h"
#include "policy/berth/berth_internal.h"

#include <errno.h>
#include <math.h>
#include <stdalign.h>
#include <stddef.h>

#define LEAD 10.0 /* times what a stop costs */
#define LEAD_MAX \
    4.0 /* rounds; credits differ by eleven at most, and moves count twice */
#define SPARED 10.0 /* times what a stop costs: the job runs for at least so long */

/* The programme's policy; NULL: the other layers decide. */
static const char *name_programme(const struct berth_policy *berth,
                                  const struct view *view)
{
    switch ((enum objective)berth->objective) {
    case OBJECTIVE_MAKESPAN:
        return "gavel-makespan";
    case OBJECTIVE_FAIRNESS:
        return view->cluster->entity_count > 0 ? "gavel-hierarchical" : "gavel-ftf";
    case OBJECTIVE_COST:
        return "gavel-cost";
    case OBJECTIVE_COMPLETION:
        break;
    }
    return NULL;
}

/* --- what the rounds are told ------------------------------------------------------------- */

static bool takes_part(const void *self, job_id id)
{
    const struct berth_policy *berth = self;
    return berth->view->jobs[id].class == CLASS_BE || berth->jobs[id].in_rounds;
}

static double lead_s(const void *self, const struct view *view, job_id id)
{
    const struct berth_policy *berth = self;
    double most_s = LEAD_MAX * (double)berth->programme_self->round_ns * 1e-9;
    if (!job_runs(&view->jobs[id]))
        return 0;
    return fmin(LEAD * price_stop_s(self, view, id), most_s);
}

static double price_gpu_s(const void *self, const struct view *view, job_id id)
{
    return price_of_stopping(self, view, id);
}

static bool spares(const void *self, const struct view *view, job_id id)
{
    double ran_s = (double)(view->now_ns - view->jobs[id].since_ns) * 1e-9;
    return ran_s < SPARED * price_stop_s(self, view, id);
}

static bool move_pays(const void *self, const struct view *view, job_id id,
                      uint32_t type)
{
    const struct berth_policy *berth = self;
    return berth->jobs[id].runs && moves_pay(berth, view, id, type);
}

static bool make_room(void *self, const struct view *view, struct plan *plan, job_id id)
{
    return resizes_make_room(self, view, plan, id);
}

int objective_start(struct berth_policy *berth, const struct view *view, uint64_t seed,
                    struct arena *run, struct error *err)
{
    const char *name = name_programme(berth, view);
    if (!name)
        return 0;
    if (berth->sharing == SHARING_ALL)
        return error_set(err, -EINVAL, "sharing=true needs objective=completion");
    berth->programme = policy_find(name);
    berth->programme_self =
        arena_alloc(run, 1, berth->programme->self_size, alignof(max_align_t));
    param_defaults(berth->programme->params, berth->programme_self);
    berth->host = (struct gavel_host){ .self = berth,
                                       .withheld = berth->withheld,
                                       .lent = berth->lent,
                                       .avoid = &berth->aside,
                                       .takes_part = takes_part,
                                       .lead_s = lead_s,
                                       .price_gpu_s = price_gpu_s,
                                       .spares = spares,
                                       .move_pays = move_pays,
                                       .make_room = make_room };
    berth->programme_self->host = &berth->host;
    berth->apart = arena_array(run, job_id, view->job_max);
    return berth->programme->init(berth->programme_self, view, seed, run, err);
}

/* --- the decision --------------------------------------------------------------------------- */

/* Trial jobs for which there is no room in their share. */
static void let_take_part(struct berth_policy *berth, const struct view *view)
{
    double most = TRIAL_SHARE * view->cluster->gpu_count;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < berth->apart_count; i++) {
        job_id id = berth->apart[i];
        struct berth_job *mine = &berth->jobs[id];
        bool waits = view->jobs[id].state == JOB_WAITING && !takes_part(berth, id);
        if (waits && berth->trial_gpus + view->jobs[id].gpus <= most) {
            berth->apart[kept++] = id;
            continue;
        }
        mine->is_apart = false;
        if (!waits)
            continue;
        mine->in_rounds = true;
        berth->programme->observe(berth->programme_self, view,
                                  &(struct event){ .kind = EVENT_RELEASED,
                                                   .job = id,
                                                   .at_ns = view->now_ns });
    }
    berth->apart_count = kept;
}

int objective_place(struct berth_policy *berth, const struct view *view,
                    struct plan *plan, struct arena *scratch, struct error *err)
{
    if (berth->freed_types)
        gavel_look_again(berth->programme_self);
    berth->freed_types = 0;
    if (plan_change_count(plan) > 0) { /* for trial jobs: the rounds see it first */
        plan_wake(plan, view->now_ns + 1);
        return 0;
    }
    let_take_part(berth, view);
    return berth->programme->decide(berth->programme_self, view, plan, scratch, err);
}
