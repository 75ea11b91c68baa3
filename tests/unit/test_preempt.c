/* Making room for one job by preempting others: which ones, and which not. */
#include "support/world.h"

#include "policy/shared/preempt.h"

/* Candidates are jobs with more steps than the claim, the most first. */
static job_id next_by_work(const void *self, job_id last, int64_t claim)
{
    const struct world *w = self;
    job_id best = JOB_NONE;
    for (job_id job = 0; job < w->state.job_count; job++) {
        const struct job *j = &w->state.jobs[job];
        double limit = last == JOB_NONE ? 1e18 : w->state.jobs[last].steps_total;
        if (job_is_preemptible(j) && j->steps_total > (double)claim &&
            j->steps_total < limit &&
            (best == JOB_NONE || j->steps_total > w->state.jobs[best].steps_total))
            best = job;
    }
    return best;
}

static bool has_more_work(const void *self, job_id job, int64_t claim)
{
    const struct world *w = self;
    return job_is_preemptible(&w->state.jobs[job]) &&
           w->state.jobs[job].steps_total > (double)claim;
}

static const struct preempt_rule by_work = { RULE_ORDER, next_by_work, has_more_work };

struct scene {
    struct world w;
    struct preempt preempt;
};

static struct scene *open_scene(const char *cluster)
{
    static struct scene scene;
    world_init_as(&scene.w, cluster);
    preempt_init(&scene.preempt, &scene.w.arena, &scene.w.state.view, &by_work,
                 &scene.w);
    return &scene;
}

static job_id runs_on(struct scene *scene, node_id node, uint32_t gpus, double work)
{
    job_id job = world_running_on(&scene->w, node,
                                  (struct job){ .gpus = gpus, .steps_total = work });
    struct event event = { .kind = EVENT_ADOPTED, .job = job };
    preempt_observe(&scene->preempt, &scene->w.state.view, &event);
    return job;
}

static bool make_room(struct scene *scene, job_id job, int64_t claim)
{
    return preempt_for(&scene->preempt, &scene->w.state.view, scene->w.plan, job,
                       claim);
}

static void jobs_with_the_most_work_are_preempted_first(void **state)
{
    struct scene *s = open_scene("2xv100:4");
    job_id a = runs_on(s, 0, 4, 100);
    job_id b = runs_on(s, 1, 4, 200);
    job_id new = world_queued(&s->w, (struct job){ .gpus = 4 });
    world_plan(&s->w);
    assert_true(make_room(s, new, 50));
    assert_true(world_waits_for(&s->w, new, b));
    assert_false(plan_changes(s->w.plan, a));
    world_release(&s->w);
}

static void jobs_below_the_claim_are_not_preempted(void **state)
{
    struct scene *s = open_scene("1xv100:4");
    runs_on(s, 0, 2, 100);
    runs_on(s, 0, 2, 40);
    job_id new = world_queued(&s->w, (struct job){ .gpus = 4 });
    world_plan(&s->w);
    assert_false(make_room(
        s, new, 50)); /* one of them would have to be preempted, and need not */
    assert_int_equal(plan_change_count(s->w.plan), 0);
    world_release(&s->w);
}

static void jobs_that_would_not_help_are_not_preempted(void **state)
{
    struct scene *s = open_scene("2xv100:4");
    job_id far = runs_on(s, 1, 2, 900);
    runs_on(s, 1, 2, 10);
    job_id big = runs_on(s, 0, 3, 500);
    job_id small = runs_on(s, 0, 1, 400);
    job_id new = world_queued(&s->w, (struct job){ .gpus = 3 });
    world_plan(&s->w);
    assert_true(make_room(s, new, 50));
    assert_false(plan_holds(s->w.plan, big));
    assert_false(plan_changes(s->w.plan, far));
    assert_false(plan_changes(s->w.plan, small));
    world_release(&s->w);
}

static void a_gang_gets_nodes_of_several_victims(void **state)
{
    struct scene *s = open_scene("3xv100:4");
    job_id a = runs_on(s, 0, 1, 100);
    job_id b = runs_on(s, 1, 1, 200);
    job_id c = runs_on(s, 2, 1, 300);
    job_id new = world_queued(&s->w, (struct job){ .gpus = 8 });
    world_plan(&s->w);
    assert_true(make_room(s, new, 50));
    assert_false(plan_holds(s->w.plan, c));
    assert_false(plan_holds(s->w.plan, b));
    assert_true(plan_holds(s->w.plan, a));
    world_release(&s->w);
}

static void a_failed_search_is_repeated_when_a_job_has_left(void **state)
{
    struct scene *s = open_scene("1xv100:4");
    job_id a = runs_on(s, 0, 2, 100);
    job_id b = runs_on(s, 0, 2, 40);
    job_id new = world_queued(&s->w, (struct job){ .gpus = 4 });
    world_plan(&s->w);
    assert_false(make_room(s, new, 50));
    assert_false(make_room(s, new, 60)); /* remembered */
    assert_true(make_room(s, new, 30));  /* a stronger claim */
    world_plan(&s->w);
    assert_false(make_room(s, new, 50));

    struct event ended = { .kind = EVENT_FINISHED, .job = b };
    world_apply(&s->w, ended);
    preempt_observe(&s->preempt, &s->w.state.view, &ended);
    world_plan(&s->w);
    assert_true(make_room(s, new, 50)); /* a job has left */
    assert_true(world_waits_for(&s->w, new, a));
    world_release(&s->w);
}

static void a_job_revoked_already_is_no_candidate(void **state)
{
    struct scene *s = open_scene("1xv100:4");
    job_id a = runs_on(s, 0, 4, 100);
    job_id first = world_queued(&s->w, (struct job){ .gpus = 4 });
    job_id second = world_queued(&s->w, (struct job){ .gpus = 1 });
    world_plan(&s->w);
    assert_true(make_room(s, first, 50));
    assert_false(make_room(s, second, 50));
    assert_false(plan_holds(s->w.plan, a));
    assert_true(plan_holds(s->w.plan, first));
    world_release(&s->w);
}

/* --- some nodes only ------------------------------------------------------------------ */

static job_id queued_for(struct scene *s, const char *node, uint32_t gpus)
{
    return world_queued(
        &s->w, (struct job){ .gpus = gpus, .set = world_set(&s->w, node, NULL, true) });
}

static void only_jobs_on_its_nodes_are_preempted(void **state)
{
    struct scene *s = open_scene("3xv100:4");
    job_id far = runs_on(s, 0, 4, 900);
    job_id there = runs_on(s, 1, 4, 100);
    runs_on(s, 2, 4, 800);
    job_id new = queued_for(s, "n1", 2);
    world_plan(&s->w);
    assert_true(make_room(s, new, 50));
    assert_true(world_waits_for(&s->w, new, there));
    assert_false(plan_changes(s->w.plan, far));
    assert_int_equal(plan_change_count(s->w.plan), 2);
    world_release(&s->w);
}

static void no_job_is_preempted_on_other_nodes(void **state)
{
    struct scene *s = open_scene("2xv100:4");
    runs_on(s, 0, 4, 900);
    runs_on(s, 1, 4, 10); /* not for this claim */
    job_id new = queued_for(s, "n1", 2);
    world_plan(&s->w);
    assert_false(make_room(s, new, 50));
    assert_int_equal(plan_change_count(s->w.plan), 0);
    world_release(&s->w);
}

static void a_failed_search_says_nothing_of_other_nodes(void **state)
{
    struct scene *s = open_scene("2xv100:4");
    job_id there = runs_on(s, 0, 4, 900);
    runs_on(s, 1, 4, 10);
    job_id in_vain = queued_for(s, "n1", 4);
    job_id other = queued_for(s, "n0", 4);
    job_id any = world_queued(&s->w, (struct job){ .gpus = 4 });
    world_plan(&s->w);
    assert_false(make_room(s, in_vain, 50));
    assert_false(make_room(s, in_vain, 50)); /* remembered */
    size_t mark = plan_mark(s->w.plan);
    assert_true(make_room(s, other, 50));
    assert_true(world_waits_for(&s->w, other, there));
    plan_undo(s->w.plan, mark);
    assert_true(make_room(s, any, 50));
    world_release(&s->w);
}

static void a_gang_gets_the_node_that_must_be_among_its_own(void **state)
{
    struct scene *s = open_scene("3xv100:4");
    job_id last = runs_on(s, 2, 4, 100);
    job_id first = runs_on(s, 0, 4, 900);
    job_id second = runs_on(s, 1, 4, 800);
    struct job two = { .gpus = 8,
                       .nodes = 2,
                       .set = world_set(&s->w, "n2", NULL, false) };
    job_id new = world_queued(&s->w, two);
    world_plan(&s->w);
    assert_true(make_room(s, new, 50));
    assert_true(world_waits_for(&s->w, new, last));
    assert_int_equal(!plan_holds(s->w.plan, first) + !plan_holds(s->w.plan, second), 1);
    assert_int_equal(plan_check(s->w.plan, NULL), 0);
    world_release(&s->w);
}

static job_id runs_beside(struct scene *scene, job_id host, uint32_t gpus, double work)
{
    job_id job = world_beside(&scene->w, host,
                              (struct job){ .gpus = gpus, .steps_total = work });
    struct event event = { .kind = EVENT_ADOPTED, .job = job };
    preempt_observe(&scene->preempt, &scene->w.state.view, &event);
    return job;
}

static void two_that_share_gpus_are_preempted_together(void **state)
{
    struct scene *s = open_scene("2xv100:4");
    job_id host = runs_on(s, 0, 4, 300);
    job_id second = runs_beside(s, host, 4, 100);
    job_id other = runs_on(s, 1, 4, 90);
    job_id new = world_queued(&s->w, (struct job){ .gpus = 4 });
    world_plan(&s->w);
    assert_true(make_room(s, new, 80));
    assert_true(world_waits_for(&s->w, new, host));
    assert_true(world_waits_for(&s->w, new, second));
    assert_false(plan_changes(s->w.plan, other));
    world_release(&s->w);
}

static void one_of_two_that_share_gpus_is_not_preempted_alone(void **state)
{
    struct scene *s = open_scene("2xv100:4");
    job_id host = runs_on(s, 0, 4, 300);
    runs_beside(s, host, 4, 40);
    job_id other = runs_on(s, 1, 4, 100);
    job_id new = world_queued(&s->w, (struct job){ .gpus = 4 });
    world_plan(&s->w);
    assert_true(make_room(s, new, 50));
    assert_false(plan_changes(s->w.plan, host));
    assert_true(world_waits_for(&s->w, new, other));
    world_release(&s->w);
}

RUN_CASES(TEST(jobs_with_the_most_work_are_preempted_first),
          TEST(jobs_below_the_claim_are_not_preempted),
          TEST(jobs_that_would_not_help_are_not_preempted),
          TEST(a_gang_gets_nodes_of_several_victims),
          TEST(a_failed_search_is_repeated_when_a_job_has_left),
          TEST(a_job_revoked_already_is_no_candidate),
          TEST(only_jobs_on_its_nodes_are_preempted),
          TEST(no_job_is_preempted_on_other_nodes),
          TEST(a_failed_search_says_nothing_of_other_nodes),
          TEST(a_gang_gets_the_node_that_must_be_among_its_own),
          TEST(two_that_share_gpus_are_preempted_together),
          TEST(one_of_two_that_share_gpus_is_not_preempted_alone));
