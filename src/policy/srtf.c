/*
 * srtf.c - shortest remaining time first, preemptive.
 *
 *     key(j) = time that the rest of j's work takes on the fastest type it may use,
 *              without its time to resume
 *
 * The jobs with the least work left run; a job that arrives with less left than a
 * running one preempts it.  It minimises mean completion time if preemption is free,
 * and decides as if it were; the engine charges what a preemption really costs, so with
 * dear ones it can lose to sjf, even to fifo.  xion tests the cost first.  Jobs of
 * unknown work come last.
 *
 * Jobs that do not fit are passed over.  While a job makes steps, its expected end does
 * not change, and while it waits or resumes, its remaining time does not.  So the first
 * are kept in order of expected end and the others in order of remaining time, and no
 * order changes as time goes by.  The time to resume,
 * and the speed of the type a job happens to run on, are left out on both sides:
 * counted for one side only, two jobs would displace each other for ever.  (A job on a
 * slower type is therefore taken for shorter than it is, until it reports progress.)
 */
#include "policy/policy.h"

#include "base/arena.h"
#include "base/tree.h"
#include "policy/shared/preempt.h"
#include "policy/shared/cost_test.h"
#include "policy/shared/sizes.h"

struct srtf {
    struct sizes waiting; /* by remaining time */
    struct tree_pool pool;
    struct tree running; /* those that make steps, by expected end */
    struct tree loading; /* those that resume, by remaining time */
    struct tree **in;    /* by slot: the tree it is in; NULL: none */
    int64_t now_ns;      /* of the decision */
    struct preempt preempt;
    struct cost_test cost_test;
};

static void leave_running(struct srtf *srtf, job_id job)
{
    if (srtf->in[job])
        tree_remove(&srtf->pool, srtf->in[job], job);
    srtf->in[job] = NULL;
}

static void enter_running(struct srtf *srtf, const struct view *view, job_id id)
{
    const struct job *job = &view->jobs[id];
    if (!job_is_preemptible(job))
        return; /* it is about to continue with another size */
    struct tree *tree = job->state == JOB_LOADING ? &srtf->loading : &srtf->running;
    int64_t key = view_work_left_ns(view, id);
    if (tree == &srtf->running && key < INT64_MAX)
        key += view->now_ns;
    if (srtf->in[id] == tree && srtf->pool.nodes[id].key == key)
        return;
    bool again = srtf->in[id] != NULL;
    leave_running(srtf, id);
    tree_insert(&srtf->pool, tree, id, key, job->id, 0);
    srtf->in[id] = tree;
    if (again) /* it may take longer than expected before */
        preempt_touch(&srtf->preempt, id);
}

static void srtf_observe(void *self, const struct view *view, const struct event *event)
{
    struct srtf *srtf = self;

    if (event_makes_running(event, view) || event_changes_running(event, view))
        enter_running(srtf, view, event->job);
    else if (event_ends_running(event, view))
        leave_running(srtf, event->job);
    preempt_observe(&srtf->preempt, view, event);
    cost_test_observe(&srtf->cost_test, view, event);

    if (event_rates_waiting(event, view))
        sizes_remove(&srtf->waiting, view, event->job);
    if (event_makes_waiting(event, view) || event_rates_waiting(event, view))
        sizes_push(&srtf->waiting, view, event->job,
                   view_work_left_ns(view, event->job), 0);
    else if (event_ends_waiting(event, view))
        sizes_remove(&srtf->waiting, view, event->job);
}

/* When it would end if it made steps from now on. */
static int64_t end_ns(const struct srtf *srtf, job_id job)
{
    int64_t key = srtf->pool.nodes[job].key;
    return srtf->in[job] == &srtf->loading && key < INT64_MAX ? srtf->now_ns + key
                                                              : key;
}

/* Candidates are jobs that would end later than the waiting job would: 'claim'. */
static bool needs_longer(const void *self, job_id job, int64_t claim_ns)
{
    const struct srtf *srtf = self;
    return srtf->in[job] && end_ns(srtf, job) > claim_ns;
}

/* The job of a tree that ends next before 'last' does. */
static job_id next_in(const struct srtf *srtf, const struct tree *tree, job_id last)
{
    if (last == JOB_NONE)
        return tree_last(&srtf->pool, tree);
    if (srtf->in[last] == tree)
        return tree_prev(&srtf->pool, last);
    int64_t key = end_ns(srtf, last);
    if (tree == &srtf->loading && key < INT64_MAX)
        key -= srtf->now_ns;
    return tree_last_before(&srtf->pool, tree, key, srtf->pool.nodes[last].tie);
}

static job_id next_longest(const void *self, job_id last, int64_t claim_ns)
{
    const struct srtf *srtf = self;
    job_id job = next_in(srtf, &srtf->running, last);
    job_id other = next_in(srtf, &srtf->loading, last);
    if (job == TREE_NONE ||
        (other != TREE_NONE &&
         (end_ns(srtf, other) > end_ns(srtf, job) ||
          (end_ns(srtf, other) == end_ns(srtf, job) &&
           srtf->pool.nodes[other].tie > srtf->pool.nodes[job].tie))))
        job = other;
    return job != TREE_NONE && needs_longer(self, job, claim_ns) ? job : JOB_NONE;
}

static const struct preempt_rule longest_first = { RULE_ORDER, next_longest,
                                                   needs_longer };

static int srtf_init(void *self, const struct view *view, uint64_t seed,
                     struct arena *run, struct error *err)
{
    struct srtf *srtf = self;
    sizes_init(&srtf->waiting, run, view->job_max);
    tree_pool_init(&srtf->pool, run, view->job_max);
    tree_init(&srtf->running);
    tree_init(&srtf->loading);
    srtf->in = arena_array(run, struct tree *, view->job_max);
    preempt_init(&srtf->preempt, run, view, &longest_first, srtf);
    cost_test_init(&srtf->cost_test, view, run);
    return 0;
}

/*
 * A job that resumes gets no nearer to its end: what it could not be preempted for a
 * while ago, it may be now.
 */
static void set_time(struct srtf *srtf, int64_t now_ns)
{
    if (now_ns != srtf->now_ns)
        for (job_id job = tree_first(&srtf->pool, &srtf->loading); job != TREE_NONE;
             job = tree_next(&srtf->pool, job))
            preempt_touch(&srtf->preempt, job);
    srtf->now_ns = now_ns;
}

/* Start a job that does not fit by preempting others, or skip it. */
static void preempt_or_skip(struct srtf *srtf, const struct view *view,
                            struct plan *plan, job_id job, int64_t claim_ns)
{
    size_t mark = plan_mark(plan);
    bool found = preempt_for(&srtf->preempt, view, plan, job, claim_ns);
    if (found && cost_test_pass(&srtf->cost_test, view, plan, mark, job)) {
        sizes_vacated(&srtf->waiting, job);
        sizes_take(&srtf->waiting, view, job);
    } else if (!found && srtf->preempt.lacks_room) {
        sizes_skip_larger(&srtf->waiting, view, job);
    } else {
        sizes_skip(&srtf->waiting, job);
    }
}

static int srtf_decide(void *self, const struct view *view, struct plan *plan,
                       struct arena *scratch, struct error *err)
{
    struct srtf *srtf = self;

    set_time(srtf, view->now_ns);
    sizes_begin(&srtf->waiting, view);
    for (job_id job; (job = sizes_best(&srtf->waiting)) != JOB_NONE;) {
        int64_t left_ns = sizes_key(&srtf->waiting, job);
        int64_t claim_ns = left_ns == INT64_MAX ? left_ns : view->now_ns + left_ns;
        bool can_preempt = next_longest(srtf, JOB_NONE, claim_ns) != JOB_NONE;
        if (!can_preempt && plan_is_full(plan) && srtf->waiting.cpu_only_count == 0)
            break; /* nothing is free, and all further jobs need longer still */
        if (plan_grant(plan, job, NULL))
            sizes_take(&srtf->waiting, view, job);
        else if (!can_preempt)
            sizes_skip_larger(&srtf->waiting, view, job);
        else
            preempt_or_skip(srtf, view, plan, job, claim_ns);
    }
    sizes_unskip(&srtf->waiting);
    return 0;
}

static void srtf_explain(const void *self, const struct view *view, job_id job,
                         struct reasons *reasons)
{
    const struct srtf *srtf = self;
    sizes_explain_left(&srtf->waiting, view, job, reasons);
    cost_test_explain(&srtf->cost_test, view, job, reasons);
}

static const struct field srtf_params[] = {
    COST_TEST_PARAM(struct srtf, cost_test.choice),
    { NULL },
};

const struct policy policy_srtf = {
    .name = "srtf",
    .brief = "shortest remaining time first, preempting as if it were free",
    .source = "Schrage, Operations Research 16 (1968)",
    .params = srtf_params,
    .self_size = sizeof(struct srtf),
    .init = srtf_init,
    .observe = srtf_observe,
    .decide = srtf_decide,
    .explain = srtf_explain,
    .fini = sizes_release,
};
