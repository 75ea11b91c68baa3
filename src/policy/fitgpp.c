/*
 * fitgpp.c - trial jobs start at once, at the least cost to the others.
 *
 * Two queues (trial.h).  A trial job (TE) that does not fit takes the GPUs of one
 * running best-effort job (BE), the best of those that make enough room when preempted
 * alone:
 *
 *     K        = { j running BE : D_te <= F_node(j) + D_j for CPU, memory and GPUs, c_j < P }
 *     Score(j) = Size(D_j) / max Size(D_k) + s * GP_j / max GP_k      k over all running BE
 *     Size(D)  = sqrt( sum over resources of (D_r / C_r)^2 )          C: its node
 *
 * and the lowest score is preempted, of equals the lowest id.  A small victim soon fits
 * somewhere again; a short grace period GP keeps the trial job waiting little; the cap
 * P on its preemptions c_j keeps one job from being the victim over and over.  The
 * victim's part of its node, and what the trial job needs besides, is a pending
 * allocation from now on.
 *
 * If K is empty, running BE with c_j < P are drawn at random until some node can hold
 * the trial job; where that never happens it waits, and no BE starts before it.
 *
 *     node 0: [A A A A A A B B]  GP_A = 60 s, GP_B = 600 s, s = 4, the trial job wants 2:
 *     Score(A) = 1 + 4 * 0.1 = 1.4 and Score(B) = 0.33 + 4 = 4.33, so A is preempted.
 *
 * Source: Yabuuchi, Taniwaki, Omura, "Low-latency job scheduling with preemption for
 * the development of deep learning", OpML 2019.
 *
 * Where we depart: jobs drawn in vain are spared ('fallback=paper': are not); two trial
 * jobs of one instant may share what one victim leaves; gangs over several nodes, which
 * the paper leaves out, take as many victims as they need, lowest score first, and a
 * gang that is a victim is preempted whole.  'normalise=fixed' replaces the running
 * maxima by a full node and 'grace_max': scores are then constant and a choice is
 * quicker.  With 'worth=xion' (cost_test.h) the costs of the first few by score are
 * estimated and the cheapest is preempted; none is if GPUs become free before it would
 * have stopped.
 *
 * Not for clusters where most jobs call themselves trials: trial jobs are never
 * preempted.
 */
#include "policy/policy.h"

#include <math.h>

#include "model/node_set.h"
#include "policy/shared/trial.h"
#include "policy/shared/victims.h"

enum { FALLBACK_SPARE, FALLBACK_PAPER };
enum { NORMALISE_RUNNING, NORMALISE_FIXED };

#define PROBES_MAX 64 /* with worth=xion: candidates tried for room, by score */
#define ASKED_MAX 8   /* and of those that make room, priced by the cost model */

struct fitgpp_policy {
    struct trial_queues trial;
    double s;
    uint32_t fallback, normalise;
    int64_t grace_max_ns;
    struct victims victims;
};

static job_id next_by_score(void *self, job_id last)
{
    struct fitgpp_policy *fitgpp = self;
    return victims_next(&fitgpp->victims, last);
}

static void fitgpp_observe(void *self, const struct view *view,
                           const struct event *event)
{
    struct fitgpp_policy *fitgpp = self;
    victims_observe(&fitgpp->victims, view, event);
    trial_observe(self, view, event);
}

static bool fits_a_node(const struct view *view, const struct job *job)
{
    uint32_t gpus_max = 0;
    for (uint32_t type = 0; type < view->cluster->type_count; type++)
        if ((job->types >> type & 1) &&
            node_set_gpus_max(job->set, view->cluster, type) > gpus_max)
            gpus_max = node_set_gpus_max(job->set, view->cluster, type);
    return job->gpus <= gpus_max && job->nodes <= 1;
}

static bool makes_room(struct plan *plan, job_id victim, job_id beneficiary)
{
    size_t mark = plan_mark(plan);
    plan_revoke(plan, victim, RULE_TRIAL, beneficiary);
    bool fits = plan_grant(plan, beneficiary, NULL);
    plan_undo(plan, mark);
    return fits;
}

/* Of the first few by score, the victim that costs the other jobs least. */
static job_id find_cheapest_victim(struct fitgpp_policy *fitgpp,
                                   const struct view *view, struct plan *plan,
                                   job_id beneficiary)
{
    struct trial_queues *trial = &fitgpp->trial;
    struct cost_model *model = &trial->cost_test.model;
    job_id best = JOB_NONE;
    double best_s = -INFINITY;
    uint32_t asked = 0;
    victims_sort(&fitgpp->victims, view, trial->running, trial->running_count);
    job_id victim = victims_next(&fitgpp->victims, JOB_NONE);
    for (uint32_t probe = 0; victim != JOB_NONE && probe < PROBES_MAX; probe++) {
        struct preemption_price price;
        if (!plan_changes(plan, victim) && makes_room(plan, victim, beneficiary)) {
            cost_model_pays(model, view, plan, beneficiary, &victim, 1, &price);
            double net_s = price.gain_s - model->settings.theta * price.cost_gpu_s;
            best = net_s > best_s ? victim : best;
            best_s = net_s > best_s ? net_s : best_s;
            if (++asked == ASKED_MAX)
                break;
        }
        victim = victims_next(&fitgpp->victims, victim);
    }
    return best;
}

/* By score; or, with the cost test, by expected cost. */
static job_id choose_victim(struct fitgpp_policy *fitgpp, const struct view *view,
                            struct plan *plan, job_id beneficiary)
{
    job_id victim = JOB_NONE;
    if (fitgpp->trial.cost_test.choice == COST_TEST_XION &&
        view->jobs[beneficiary].steps_total > 0)
        victim = find_cheapest_victim(fitgpp, view, plan, beneficiary);
    if (victim == JOB_NONE)
        victim = victims_best(&fitgpp->victims, view, plan, &view->jobs[beneficiary]);
    return victim;
}

static bool preempt_one(struct fitgpp_policy *fitgpp, const struct view *view,
                        struct plan *plan, job_id beneficiary)
{
    job_id victim = choose_victim(fitgpp, view, plan, beneficiary);
    if (victim == JOB_NONE)
        return false;
    size_t mark = plan_mark(plan);
    plan_revoke(plan, victim, RULE_TRIAL, beneficiary);
    if (plan_grant(plan, beneficiary, NULL))
        return true;
    plan_undo(plan, mark);
    return false;
}

static bool make_room(void *self, const struct view *view, struct plan *plan,
                      job_id job)
{
    struct fitgpp_policy *fitgpp = self;
    struct trial_queues *trial = &fitgpp->trial;
    bool gang = !fits_a_node(view, &view->jobs[job]);
    if (!gang && preempt_one(fitgpp, view, plan, job))
        return true;
    if (gang)
        victims_sort(&fitgpp->victims, view, trial->running, trial->running_count);
    trial->order = gang ? next_by_score : trial_draw;
    trial->spare = gang || fitgpp->fallback == FALLBACK_SPARE;
    return trial_preempt_until_fits(trial, view, plan, job);
}

static int fitgpp_init(void *self, const struct view *view, uint64_t seed,
                       struct arena *run, struct error *err)
{
    struct fitgpp_policy *fitgpp = self;
    fitgpp->victims = (struct victims){ .s = fitgpp->s,
                                        .preempt_max = fitgpp->trial.preempt_max,
                                        .fixed = fitgpp->normalise == NORMALISE_FIXED,
                                        .grace_max_ns = fitgpp->grace_max_ns };
    victims_init(&fitgpp->victims, run, view);
    trial_init(&fitgpp->trial, trial_draw, make_room, run, view, seed);
    return 0;
}

static int fitgpp_decide(void *self, const struct view *view, struct plan *plan,
                         struct arena *scratch, struct error *err)
{
    struct fitgpp_policy *fitgpp = self;
    victims_begin(&fitgpp->victims);
    return trial_decide(self, view, plan, scratch, err);
}

static const char *const fallbacks[] = { "spare", "paper", NULL };
static const char *const normalisers[] = { "running", "fixed", NULL };

#define AT(field) .offset = offsetof(struct fitgpp_policy, field)

static const struct field fitgpp_params[] = {
    { "s", FIELD_NUMBER, AT(s), "4.0", NULL,
      "weight of the grace period against the size", 0, 1e6 },
    { "max_preemptions", FIELD_COUNT, AT(trial.preempt_max), "1", NULL,
      "P: times a job may be preempted in its life; 0: no limit", 0, 0 },
    { "fallback", FIELD_CHOICE, AT(fallback), "spare", NULL,
      "whoever was drawn at random in vain: spare, or paper: leaves too", 0, 0,
      fallbacks },
    { "normalise", FIELD_CHOICE, AT(normalise), "running", NULL,
      "maxima in the score: running jobs', or fixed: a node and grace_max", 0, 0,
      normalisers },
    { "grace_max", FIELD_TIME, AT(grace_max_ns), "20m", NULL,
      "with normalise=fixed: the longest grace period", 0, 0 },
    COST_TEST_PARAM(struct fitgpp_policy, trial.cost_test.choice),
    { 0 },
};

const struct policy policy_fitgpp = {
    .name = "fitgpp",
    .brief = "trial jobs start at once, at the least cost to the others",
    .source = "Yabuuchi, Taniwaki, Omura, OpML 2019 (arXiv 1902.01613)",
    .params = fitgpp_params,
    .self_size = sizeof(struct fitgpp_policy),
    .init = fitgpp_init,
    .observe = fitgpp_observe,
    .decide = fitgpp_decide,
    .explain = trial_explain,
    .fini = trial_fini,
};
