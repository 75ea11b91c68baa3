/*
 * What the indices buy: srtf as it is, and srtf that sorts all live jobs anew at every
 * decision and looks at each, on the same jobs through the same engine.
 *
 *     make bench        prints both and their ratio, as 'berth bench' prints its rows
 */
#include "support/engine_run.h"

#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/error.h"
#include "workload/workload.h"

#define JOBS 40000

extern const struct policy policy_srtf;

/* --- the stupid version ---------------------------------------------------------------- */

struct resort {
    bool *live;        /* by slot */
    uint32_t slot_top; /* slots ever used */
    struct rank {
        int64_t left_ns;
        uint64_t id;
        job_id job;
    } * ranks;
};

static int resort_init(void *self, const struct view *view, uint64_t seed,
                       struct arena *run, struct error *err)
{
    struct resort *resort = self;
    resort->live = arena_array(run, bool, view->job_max);
    resort->ranks = arena_array(run, struct rank, view->job_max);
    return 0;
}

static void resort_observe(void *self, const struct view *view,
                           const struct event *event)
{
    struct resort *resort = self;
    if (event->kind == EVENT_SUBMITTED) {
        resort->live[event->job] = true;
        if (event->job >= resort->slot_top)
            resort->slot_top = event->job + 1;
    } else if (event->kind == EVENT_FINISHED || event->kind == EVENT_FAILED) {
        resort->live[event->job] = false;
    }
}

static int by_time_left(const void *a, const void *b)
{
    const struct rank *x = a;
    const struct rank *y = b;
    if (x->left_ns != y->left_ns)
        return x->left_ns < y->left_ns ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

/* Shortest first: who runs stays, who waits gets room, if need be from the longest. */
static int resort_decide(void *self, const struct view *view, struct plan *plan,
                         struct arena *scratch, struct error *err)
{
    struct resort *resort = self;
    uint32_t count = 0;
    for (job_id job = 0; job < resort->slot_top; job++)
        if (resort->live[job])
            resort->ranks[count++] =
                (struct rank){ view_work_left_ns(view, job), view->jobs[job].id, job };
    qsort(resort->ranks, count, sizeof *resort->ranks, by_time_left);

    uint32_t last = count; /* candidates for revoking, from the longest down */
    for (uint32_t i = 0; i < count; i++) {
        job_id job = resort->ranks[i].job;
        if (view->jobs[job].state != JOB_WAITING || plan_grant(plan, job, NULL))
            continue;
        size_t mark = plan_mark(plan);
        uint32_t from = last;
        bool granted = false;
        while (!granted && from > i + 1) {
            job_id victim = resort->ranks[--from].job;
            if (!job_runs(&view->jobs[victim]) || plan_changes(plan, victim))
                continue;
            plan_revoke(plan, victim, RULE_ORDER, job);
            granted = plan_grant(plan, job, NULL);
        }
        if (granted)
            last = from;
        else
            plan_undo(plan, mark);
    }
    return 0;
}

static const struct policy policy_resort = {
    .name = "resort",
    .self_size = sizeof(struct resort),
    .init = resort_init,
    .observe = resort_observe,
    .decide = resort_decide,
};

/* --- both ------------------------------------------------------------------------------ */

static double time_of(struct engine_run_setup *setup, const struct policy *policy)
{
    struct engine_run run;
    setup->policy = policy;
    double begin_s = clock_cpu_s();
    engine_run_play(&run, setup);
    double took_s = clock_cpu_s() - begin_s;
    if (run.ended != run.accepted)
        printf("%s: only %u of %u jobs ended\n", policy->name, run.ended, run.accepted);
    engine_run_release(&run);
    return took_s;
}

int main(void)
{
    struct arena arena;
    struct cluster cluster;
    struct error err;
    struct workload *workload;
    arena_init(&arena, 0);
    struct job_spec *specs = arena_array(&arena, struct job_spec, JOBS);
    uint32_t count = 0;
    if (cluster_load(&cluster, &arena, "125xv100:8", &err) < 0 ||
        workload_open(&workload, "synthetic:jobs=40000,load=1.2,trace=helios", NULL, 1,
                      cluster.gpu_count, &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    while (count < JOBS && workload_next(workload, &specs[count], &err) > 0) {
        struct job_spec *spec = &specs[count++];
        spec->name = spec->user = spec->entity = spec->kind = spec->types = NULL;
        spec->id = count;
    }
    workload_close(workload);
    struct engine_run_setup setup = { .cluster = &cluster,
                                      .specs = specs,
                                      .spec_count = count,
                                      .seed = 1,
                                      .unchecked = true,
                                      .turns_max = UINT32_MAX };
    double indexed_s = time_of(&setup, &policy_srtf);
    double resort_s = time_of(&setup, &policy_resort);
    printf("%-34s %12.4g %-12s\n", "replay_40k.srtf", indexed_s, "s");
    printf("%-34s %12.4g %-12s %8.3g x %s\n", "replay_40k.srtf_resorting", resort_s,
           "s", resort_s / indexed_s, "replay_40k.srtf");
    arena_release(&arena);
    return 0;
}
