/* why_sharing.c - why a waiting job that may share its GPUs does not. */
#include "daemon/why_sharing.h"

#include <inttypes.h>
#include <string.h>

#include "base/field.h"
#include "engine/engine.h"
#include "model/cluster.h"
#include "model/reasons.h"
#include "model/sharing.h"
#include "model/throughput.h"
#include "policy/policy.h"

#define ASKS "it may share its GPUs, but "

/* The running job that is nearest to sharing with it. */
struct nearest {
    job_id job; /* JOB_NONE: none is of its size and on its types */
    enum sharing_obstacle obstacle;
};

/* By its setting 'sharing', whatever that is of; none: it makes no pairs. */
static bool makes_pairs(const struct engine *engine)
{
    for (const struct field *param = engine->policy->params; param && param->name;
         param++)
        if (strcmp(param->name, "sharing") == 0)
            return field_get_whole(param, engine->policy_self) != 0;
    return false;
}

static struct nearest find_nearest(const struct state *state, job_id id)
{
    const struct view *view = &state->view;
    const struct job *job = &view->jobs[id];
    struct nearest nearest = { JOB_NONE, SHARING_FORBIDDEN };
    for (job_id other = 0; other < state->job_count; other++) {
        const struct job *runs = &view->jobs[other];
        if (!job_runs(runs) || runs->gpus_now != job->gpus ||
            runs->partner != JOB_NONE || !(job->types >> runs->type_now & 1))
            continue;
        enum sharing_obstacle obstacle =
            sharing_obstacle(view->rates, job, runs, runs->type_now, runs->gpus_now);
        if (nearest.job == JOB_NONE || obstacle > nearest.obstacle)
            nearest = (struct nearest){ other, obstacle };
    }
    return nearest;
}

static void explain_memory(struct reasons *reasons, const struct view *view,
                           const struct job *job, const struct job *other)
{
    const struct sharing_rules *rules = &view->rates->rules;
    const char *type = view->cluster->types[other->type_now].name;
    if (job->gpu_mib == 0 || other->gpu_mib == 0) {
        reasons_add(reasons, "sharing",
                    ASKS "%s%" PRIu64 " does not say how much memory of a GPU it needs",
                    job->gpu_mib == 0 ? "it, job " : "job ",
                    job->gpu_mib == 0 ? job->id : other->id);
        return;
    }
    reasons_add(reasons, "sharing",
                ASKS "it and job %" PRIu64
                     " do not fit together: they need %.3g and %.3g GiB of memory, "
                     "and a %s has %.3g GiB for jobs",
                other->id, job->gpu_mib / 1024.0, other->gpu_mib / 1024.0, type,
                (rules->gpu_mib[other->type_now] - rules->reserve_mib) / 1024.0);
}

static void explain_unknown(struct reasons *reasons, const struct view *view,
                            const struct job *job, const struct job *other)
{
    uint32_t type = other->type_now;
    bool own = !sharing_is_measured_alone(view->rates, job, type);
    bool others = !sharing_is_measured_alone(view->rates, other, type);
    reasons_add(reasons, "sharing",
                ASKS "no job of %s was measured alone on a %s yet, which comes before "
                     "it runs beside job %" PRIu64,
                own && others ? "its kind, or of the other's,"
                : own         ? "its kind"
                              : "the other's kind",
                view->cluster->types[type].name, other->id);
}

static void explain_harm(struct reasons *reasons, const struct view *view,
                         const struct job *job, const struct job *other)
{
    static const char *const bases[] = { [SHARING_UNKNOWN] = "known",
                                         [SHARING_ESTIMATED] = "estimated",
                                         [SHARING_MEASURED] = "measured" };
    struct sharing_part own = sharing_part(view->rates, job, other, other->type_now);
    struct sharing_part others = sharing_part(view->rates, other, job, other->type_now);
    if (own.basis == SHARING_UNKNOWN || others.basis == SHARING_UNKNOWN) {
        reasons_add(reasons, "sharing",
                    ASKS "its kind and that of job %" PRIu64
                         " do not run beside each other",
                    other->id);
        return;
    }
    reasons_add(reasons, "sharing",
                ASKS "beside job %" PRIu64
                     " it would keep %.0f %% of its speed and the other %.0f %%, as %s "
                     "of their kinds: less than %.0f %% together",
                other->id, 100 * own.kept, 100 * others.kept, bases[own.basis],
                100 * SHARED_WORTH);
}

static void explain_nearest(struct reasons *reasons, const struct view *view, job_id id,
                            const struct nearest *nearest)
{
    const struct job *job = &view->jobs[id];
    const struct job *other = &view->jobs[nearest->job];
    switch (nearest->obstacle) {
    case SHARING_FORBIDDEN:
        reasons_add(reasons, "sharing",
                    ASKS "the administrator lets no jobs share theirs");
        break;
    case SHARING_NO_CONSENT:
        reasons_add(reasons, "sharing",
                    ASKS "no running job that could be beside it was submitted with "
                         "--shared");
        break;
    case SHARING_OTHER_USER:
        reasons_add(reasons, "sharing",
                    ASKS
                    "job %" PRIu64
                    ", which may as well, is another user's, and the administrator "
                    "lets jobs of one user share only",
                    other->id);
        break;
    case SHARING_ONE_PROCESS:
        reasons_add(reasons, "sharing", ASKS "only one process may use a %s here",
                    view->cluster->types[other->type_now].name);
        break;
    case SHARING_NO_MEMORY:
        explain_memory(reasons, view, job, other);
        break;
    case SHARING_NOT_KNOWN:
        explain_unknown(reasons, view, job, other);
        break;
    case SHARING_HARMFUL:
        explain_harm(reasons, view, job, other);
        break;
    case SHARING_MAY:
        reasons_add(reasons, "sharing",
                    "it may run beside job %" PRIu64
                    ": the policy has not chosen that yet, or expects no gain from it",
                    other->id);
        break;
    }
}

void why_sharing_explain(struct reasons *reasons, const struct engine *engine,
                         job_id id)
{
    const struct view *view = &engine->state.view;
    const struct job *job = &view->jobs[id];
    if (!job->shares || job->gpus == 0)
        return;
    struct nearest nearest = find_nearest(&engine->state, id);
    if (!makes_pairs(engine))
        reasons_add(reasons, "sharing",
                    ASKS "the policy %s makes no pairs as it is set",
                    engine->policy->name);
    else if (view->rates->rules.forbidden)
        explain_nearest(reasons, view, id, &(struct nearest){ id, SHARING_FORBIDDEN });
    else if (nearest.job == JOB_NONE)
        reasons_add(reasons, "sharing",
                    ASKS "no job of %u GPU%s runs alone on a type that it may use",
                    job->gpus, job->gpus == 1 ? "" : "s");
    else
        explain_nearest(reasons, view, id, &nearest);
}
