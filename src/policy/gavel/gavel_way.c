/*
 * gavel_way.c - move jobs off nodes that a chosen job needs.
 *
 * Rounds are chosen by counting GPUs of a type, and a job that stays keeps its GPUs.
 * So a job that may only run on node 3 can be chosen, and find that another, which
 * could run anywhere, has been chosen as well and stays on node 3.
 *
 *     n2 [. .]  n3 [A A]     X may use n3 only, A any:  A goes to n2, X gets n3
 *
 * The job in the way is placed again elsewhere.  If it fits nowhere else it is
 * preempted only for a job that is owed more; otherwise all stays as it was.
 */
#include "model/node_set.h"
#include "policy/gavel/gavel_common.h"

#define MOVERS_MAX 64

struct movers {
    job_id jobs[MOVERS_MAX];
    uint32_t count;
};

static bool grant_on_type(const struct gavel_common *common, struct plan *plan,
                          job_id job, uint32_t column, job_id beside)
{
    struct ask ask = ASK_DEFAULT;
    ask.types = (uint32_t)1 << common->types[column];
    ask.beside = beside;
    return plan_grant(plan, job, &ask);
}

static bool may_move(const struct gavel_common *common, const struct view *view,
                     const struct plan *plan, job_id id)
{
    const struct job *job = &view->jobs[id];
    return job_is_preemptible(job) && !job->leaving && job->coming == JOB_NONE &&
           !plan_changes(plan, id) && !gavel_is_spared(common, view, job);
}

/* It, and who shares with it, off the newcomer's nodes. */
static bool move_off(const struct gavel_common *common, const struct view *view,
                     struct plan *plan, job_id id, job_id newcomer,
                     struct movers *movers)
{
    job_id two[2] = { id, view->jobs[id].partner };
    uint32_t count = two[1] == JOB_NONE ? 1 : 2;
    for (uint32_t i = 0; i < count; i++)
        if (!may_move(common, view, plan, two[i]))
            return false;
    if (movers->count + count > MOVERS_MAX)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        plan_revoke(plan, two[i], RULE_ROUND, newcomer);
        movers->jobs[movers->count++] = two[i];
    }
    return true;
}

/*
 * Where it was, if its GPUs are not taken; else elsewhere, beside its partner or
 * alone.
 */
static bool seat_again(const struct gavel_common *common, const struct view *view,
                       struct plan *plan, job_id id)
{
    const struct job *job = &view->jobs[id];
    uint32_t column = common->column_of[job->type_now];
    return (job->partner != JOB_NONE &&
            grant_on_type(common, plan, id, column, job->partner)) ||
           grant_on_type(common, plan, id, column, JOB_NONE);
}

bool gavel_make_way(const struct gavel_common *common, const struct view *view,
                    struct plan *plan, job_id newcomer, uint32_t column,
                    gavel_is_owed_more *is_owed_more)
{
    const struct node_set *set = view->jobs[newcomer].set;
    size_t mark = plan_mark(plan);
    struct movers movers = { .count = 0 };
    bool seated = false;
    for (uint32_t i = common->job_count; set && i-- > 0 && !seated;) {
        job_id id = common->jobs[i];
        const struct job *job = &view->jobs[id];
        if (job_runs(job) && job->type_now == common->types[column] &&
            node_set_touches(set, view_seats(view, id), job->seats.count) &&
            move_off(common, view, plan, id, newcomer, &movers))
            seated = grant_on_type(common, plan, newcomer, column, JOB_NONE);
    }
    for (uint32_t i = 0; seated && i < movers.count; i++)
        seated = seat_again(common, view, plan, movers.jobs[i]) ||
                 is_owed_more(common, view, newcomer, movers.jobs[i]);
    if (!seated)
        plan_undo(plan, mark);
    return seated;
}
