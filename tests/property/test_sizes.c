/*
 * The order of waiting jobs against a look at all of them, and what it relies on: that a job
 * that needs no less than one that does not fit does not fit as well.
 */
#include "support/world.h"

#include "base/rng.h"
#include "model/calendar.h"
#include "policy/shared/preempt.h"
#include "policy/shared/sizes.h"

/* --- the order ------------------------------------------------------------------------ */

#define JOBS 120
#define DECISIONS 60
#define AMOUNTS 12

/* The plain version: what was said of jobs in this decision, and the jobs. */
struct plain {
    struct job jobs[JOBS];
    int64_t keys[JOBS], values[JOBS], limits[JOBS];
    bool in[JOBS], taken[JOBS], skipped[JOBS];
    struct job beyond[JOBS]; /* demands of which all larger ones are passed over */
    uint32_t beyond_count;
};

static bool is_of_group(const struct job *a, const struct job *b)
{
    return a->gpus == b->gpus && a->nodes == b->nodes;
}

static bool is_of_size(const struct job *a, const struct job *b)
{
    return is_of_group(a, b) && a->cpu_milli == b->cpu_milli &&
           a->mem_mib == b->mem_mib;
}

static bool is_beyond(const struct plain *plain, const struct job *job)
{
    for (uint32_t i = 0; i < plain->beyond_count; i++)
        if (is_of_group(job, &plain->beyond[i]) &&
            job->cpu_milli >= plain->beyond[i].cpu_milli &&
            job->mem_mib >= plain->beyond[i].mem_mib)
            return true;
    return false;
}

static bool is_ahead(const struct plain *plain, job_id a, job_id b)
{
    return plain->keys[a] != plain->keys[b] ? plain->keys[a] < plain->keys[b]
                                            : plain->jobs[a].id < plain->jobs[b].id;
}

static job_id find_best(const struct plain *plain)
{
    job_id best = JOB_NONE;
    for (job_id id = 0; id < JOBS; id++)
        if (plain->in[id] && !plain->skipped[id] &&
            plain->values[id] <= plain->limits[id] &&
            !is_beyond(plain, &plain->jobs[id]) &&
            (best == JOB_NONE || is_ahead(plain, id, best)))
            best = id;
    return best;
}

static void skip_plainly(struct plain *plain, job_id job)
{
    for (job_id id = 0; id < JOBS; id++)
        plain->skipped[id] |= is_of_size(&plain->jobs[id], &plain->jobs[job]);
}

/* Sizes of which the first job comes before this one had their turn. */
static void vacate_plainly(struct plain *plain, job_id job)
{
    for (job_id id = 0; id < JOBS; id++)
        if (plain->in[id] && plain->values[id] <= plain->limits[id] &&
            is_beyond(plain, &plain->jobs[id]) && is_ahead(plain, id, job))
            skip_plainly(plain, id);
    plain->beyond_count = 0;
}

static void decide_one(struct plain *plain, struct sizes *sizes,
                       const struct view *view, struct rng *rng, job_id job)
{
    uint32_t what = rng_below(rng, 12);
    int64_t limit = plain->values[job] - 1 - rng_below(rng, 3);
    if (what < 3) {
        sizes_skip(sizes, job);
        skip_plainly(plain, job);
    } else if (what < 7) {
        sizes_skip_larger(sizes, view, job);
        plain->beyond[plain->beyond_count++] = plain->jobs[job];
        skip_plainly(plain, job);
    } else if (what < 9) {
        sizes_narrow(sizes, job, limit);
        for (job_id id = 0; id < JOBS; id++)
            if (is_of_size(&plain->jobs[id], &plain->jobs[job]))
                plain->limits[id] = limit;
    } else {
        if (what == 11) {
            sizes_vacated(sizes, job);
            vacate_plainly(plain, job);
        }
        sizes_take(sizes, view, job);
        plain->in[job] = false;
        plain->taken[job] = true;
    }
}

/* Jobs come and go; some of those that were taken were not placed, and are back. */
static void change_jobs(struct plain *plain, struct sizes *sizes,
                        const struct view *view, struct rng *rng)
{
    for (job_id id = 0; id < JOBS; id++) {
        bool back = plain->taken[id] && rng_below(rng, 2);
        plain->jobs[id].state = plain->taken[id] && !back ? JOB_PLACED : JOB_WAITING;
        plain->in[id] |= back;
        plain->taken[id] = plain->skipped[id] = false;
        plain->limits[id] = INT64_MAX;
    }
    plain->beyond_count = 0;
    sizes_begin(sizes, view);
    for (uint32_t i = 0; i < JOBS / 4; i++) {
        job_id id = rng_below(rng, JOBS);
        struct job *job = &plain->jobs[id];
        if (plain->in[id]) {
            sizes_remove(sizes, view, id);
            plain->in[id] = false;
            continue;
        }
        *job = (struct job){ .id = job->id,
                             .state = JOB_WAITING,
                             .generation = job->generation + 1,
                             .gpus = 1 + rng_below(rng, 2),
                             .nodes = rng_below(rng, 4) == 0,
                             .cpu_milli = rng_below(rng, AMOUNTS),
                             .mem_mib = rng_below(rng, AMOUNTS) };
        plain->keys[id] = rng_below(rng, 200);
        plain->values[id] = rng_below(rng, 10);
        plain->in[id] = true;
        sizes_push(sizes, view, id, plain->keys[id], plain->values[id]);
    }
}

static void the_next_job_is_that_of_a_look_at_all_of_them(void **state)
{
    FOR_EACH_SEED(seed, 60)
    {
        static struct plain plain;
        struct calendar calendar = { 0 };
        struct view view = { .jobs = plain.jobs,
                             .job_max = JOBS,
                             .calendar = &calendar };
        struct sizes sizes;
        struct arena arena;
        struct rng rng;
        rng_init(&rng, seed.now, "sizes");
        arena_init(&arena, 0);
        plain = (struct plain){ 0 };
        for (job_id id = 0; id < JOBS; id++)
            plain.jobs[id].id = 1 + (id * 7) % JOBS;
        sizes_init(&sizes, &arena, JOBS);
        for (uint32_t i = 0; i < DECISIONS; i++) {
            change_jobs(&plain, &sizes, &view, &rng);
            for (uint32_t tries = rng_below(&rng, 3 * JOBS); tries > 0; tries--) {
                job_id job = sizes_best(&sizes);
                assert_int_equal(job, find_best(&plain));
                if (job == JOB_NONE)
                    break;
                decide_one(&plain, &sizes, &view, &rng, job);
            }
            sizes_unskip(&sizes);
        }
        sizes_release(&sizes);
        arena_release(&arena);
    }
}

/* --- what needs no less --------------------------------------------------------------- */

/* Candidates are jobs with more steps than the claim, the most first. */
static bool has_more_work(const void *self, job_id job, int64_t claim)
{
    const struct world *w = self;
    return job_is_preemptible(&w->state.jobs[job]) &&
           w->state.jobs[job].steps_total > (double)claim;
}

static job_id next_by_work(const void *self, job_id last, int64_t claim)
{
    const struct world *w = self;
    const struct job *jobs = w->state.jobs;
    job_id best = JOB_NONE;
    for (job_id job = 0; job < w->state.job_count; job++)
        if (has_more_work(self, job, claim) &&
            (last == JOB_NONE || jobs[job].steps_total < jobs[last].steps_total) &&
            (best == JOB_NONE || jobs[job].steps_total > jobs[best].steps_total))
            best = job;
    return best;
}

static const struct preempt_rule by_work = { RULE_ORDER, next_by_work, has_more_work };

/* Nodes that it must have, and nodes that it must not. */
static const char *const sets[][2] = { { NULL, "n1,n4" },
                                       { "n2", NULL },
                                       { "n3,n4", NULL } };

static struct node_set *take_set(struct world *w, uint32_t which)
{
    return which < 3 ? world_set(w, sets[which][0], sets[which][1], false) : NULL;
}

static struct job draw_demand(struct rng *rng)
{
    struct job job = { .gpus = rng_below(rng, 10),
                       .cpu_milli = 1000 * rng_below(rng, 9),
                       .mem_mib = 1000 * rng_below(rng, 9),
                       .types = 1 + rng_below(rng, 3) };
    if (job.gpus > 1 && rng_below(rng, 3) == 0)
        job.nodes = 1 + rng_below(rng, job.gpus < 4 ? job.gpus : 4);
    job.spread = job.gpus > 1 && rng_below(rng, 4) == 0;
    return job;
}

static void fill(struct world *w, struct preempt *preempt, struct rng *rng)
{
    for (uint32_t i = 0; i < 24; i++) {
        struct job job = { .gpus = rng_below(rng, 3),
                           .cpu_milli = 500 * rng_below(rng, 5),
                           .mem_mib = 500 * rng_below(rng, 5),
                           .steps_total = 100 + i * 37 % 24 };
        job_id id = world_queued(w, job);
        if (plan_grant(world_plan(w), id, NULL)) {
            world_carry_out(w);
            world_apply(w, (struct event){ .kind = EVENT_STARTED, .job = id });
            struct event event = { .kind = EVENT_ADOPTED, .job = id };
            preempt_observe(preempt, &w->state.view, &event);
        } else {
            world_apply(w, (struct event){ .kind = EVENT_CANCELLED, .job = id });
        }
    }
}

static void what_needs_no_less_than_a_job_that_does_not_fit_does_not_fit(void **state)
{
    uint32_t lacking = 0;
    uint32_t fitting = 0;
    FOR_EVERY_SEED(seed, 150)
    {
        struct world w;
        struct preempt preempt;
        struct rng rng;
        rng_init(&rng, seed.now, "larger");
        world_init_roomy(&w, "3xv100:4,2xp100:4", 8000, 8000);
        preempt_init(&preempt, &w.arena, &w.state.view, &by_work, &w);
        fill(&w, &preempt, &rng);
        for (uint32_t i = 0; i < 16; i++) {
            struct job demand = draw_demand(&rng);
            struct job larger = demand;
            uint32_t which = rng_below(&rng, 8);
            demand.set = take_set(&w, which);
            larger.set = take_set(&w, which);
            larger.cpu_milli += 500 * rng_below(&rng, 4);
            larger.mem_mib += 500 * rng_below(&rng, 4);
            int64_t claim = 100 + rng_below(&rng, 24);
            job_id a = world_queued(&w, demand);
            job_id b = world_queued(&w, larger);
            job_id first = world_queued(&w, draw_demand(&rng));
            struct plan *plan = world_plan(&w);
            if (rng_below(&rng, 2)) /* of what it gets vacated some may be left */
                preempt_for(&preempt, &w.state.view, plan, first, 100);
            size_t mark = plan_mark(plan);
            bool fits = plan_grant(plan, a, NULL);
            plan_undo(plan, mark);
            bool fits_larger = plan_grant(plan, b, NULL);
            plan_undo(plan, mark);
            assert_true(fits || !fits_larger);

            bool room = preempt_for(&preempt, &w.state.view, plan, a, claim);
            bool lacks_room = !room && preempt.lacks_room;
            plan_undo(plan, mark);
            bool room_larger = preempt_for(&preempt, &w.state.view, plan, b,
                                           claim + rng_below(&rng, 3));
            assert_false(lacks_room && room_larger);
            lacking += lacks_room;
            fitting += fits + room_larger;
            for (job_id id = 0; id < w.state.job_count; id++)
                if (w.state.jobs[id].state == JOB_WAITING)
                    world_apply(&w,
                                (struct event){ .kind = EVENT_CANCELLED, .job = id });
        }
        world_release(&w);
    }
    assert_true(getenv("BERTH_SEED") || (lacking > 500 && fitting > 500));
}

RUN_CASES(TEST(the_next_job_is_that_of_a_look_at_all_of_them),
          TEST(what_needs_no_less_than_a_job_that_does_not_fit_does_not_fit));
