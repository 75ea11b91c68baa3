/* From words to numbers, and what can never run is turned away with a reason. */
#include "support/world.h"

#include <errno.h>
#include <string.h>

#include "model/admission.h"

struct desk {
    struct world w;
    struct admission admission;
};

static void open_desk(struct desk *desk, const char *cluster)
{
    world_init_as(&desk->w, cluster);
    admission_init(&desk->admission, &desk->w.cluster, &desk->w.rates);
}

static void close_desk(struct desk *desk)
{
    admission_release(&desk->admission);
    world_release(&desk->w);
}

static struct job accept(struct desk *desk, struct job_spec spec)
{
    struct job job;
    struct error err = { "" };
    if (admission_make_job(&desk->admission, &spec, &job, &err) < 0)
        fail_msg("%s", err.text);
    return job;
}

static void refuse(struct desk *desk, struct job_spec spec, const char *why)
{
    struct job job = { .id = 77 };
    struct error err = { "" };
    assert_int_equal(admission_make_job(&desk->admission, &spec, &job, &err), -ERANGE);
    assert_non_null(strstr(err.text, why));
    assert_int_equal(job.id, 77); /* nothing is written */
}

/* The simulated executor knows how much it is; the scheduler's record does not. */
static void work_that_is_not_declared_is_unknown(void **state)
{
    struct desk desk;
    open_desk(&desk, "2xv100:4");
    struct learning curve = { .family = LEARNING_EXP, .mu = 0.9, .kmax = 9 };
    struct job_spec spec = { .gpus = 2, .steps = 9, .curve = curve };
    assert_int_equal(accept(&desk, spec).curve.family, LEARNING_EXP);
    spec.undeclared = true;
    struct job job = accept(&desk, spec);
    assert_true(job.steps_total == 0);
    assert_int_equal(job.curve.family, LEARNING_NONE); /* its end would give it away */
    close_desk(&desk);
}

static void users_are_numbered_as_they_are_met(void **state)
{
    struct desk desk;
    open_desk(&desk, "2xv100:4");
    uint32_t ada = accept(&desk, (struct job_spec){ .gpus = 1, .user = "ada" }).user;
    uint32_t ben = accept(&desk, (struct job_spec){ .gpus = 1, .user = "ben" }).user;
    assert_int_equal(ada, 1);
    assert_int_equal(ben, 2);
    assert_int_equal(accept(&desk, (struct job_spec){ .gpus = 1, .user = "ada" }).user,
                     ada);
    assert_int_equal(accept(&desk, (struct job_spec){ .gpus = 1 }).user, 0);
    close_desk(&desk);
}

static void omitted_fields_have_defaults(void **state)
{
    struct desk desk;
    open_desk(&desk, "2xv100:4,1xp100:4");
    struct job job = accept(&desk, (struct job_spec){ .id = 5, .gpus = 2, .steps = 9 });
    assert_int_equal(job.id, 5);
    assert_int_equal(job.gpus_min, 2);
    assert_int_equal(job.gpus_max, 2);
    assert_false(job_is_elastic(&job));
    assert_int_equal(job.types, 3);
    assert_int_equal(job.kind, KIND_NONE);
    assert_int_equal(job.entity, 0);
    assert_true(job.weight == 1);
    assert_true(job.rate_best_per_s == 1);
    assert_true(job.steps_total == 9);
    close_desk(&desk);
}

static void an_elastic_job_has_one_on_each_of_its_nodes(void **state)
{
    struct desk desk;
    open_desk(&desk, "2xv100:4");
    struct job_spec spec = { .gpus = 4, .gpus_min = 1, .gpus_max = 8, .steps = 9 };
    assert_int_equal(accept(&desk, spec).gpus_min, 1);
    spec.nodes = 2;
    assert_int_equal(accept(&desk, spec).gpus_min, 2);
    spec.gpus_min = 3;
    assert_int_equal(accept(&desk, spec).gpus_min, 3);
    spec = (struct job_spec){ .gpus = 0, .nodes = 1, .steps = 9 };
    assert_int_equal(accept(&desk, spec).gpus_min, 0);
    close_desk(&desk);
}

static void entities_are_numbered_in_order(void **state)
{
    struct desk desk;
    open_desk(&desk, "1xv100:4");
    assert_int_equal(
        accept(&desk, (struct job_spec){ .gpus = 1, .entity = "red" }).entity, 1);
    assert_int_equal(
        accept(&desk, (struct job_spec){ .gpus = 1, .entity = "blue" }).entity, 2);
    assert_int_equal(
        accept(&desk, (struct job_spec){ .gpus = 1, .entity = "red" }).entity, 1);
    assert_int_equal(accept(&desk, (struct job_spec){ .gpus = 1, .entity = "" }).entity,
                     0);
    assert_int_equal(desk.admission.entity_count, 2);
    close_desk(&desk);
}

static void only_types_that_fit_the_job_are_kept(void **state)
{
    struct desk desk;
    open_desk(&desk, "2xv100:4,3xp100:2,1xk80:1");
    assert_int_equal(accept(&desk, (struct job_spec){ .gpus = 6 }).types, 3);
    assert_int_equal(accept(&desk, (struct job_spec){ .gpus = 7 }).types, 1);
    assert_int_equal(
        accept(&desk, (struct job_spec){ .gpus = 1, .types = "k80|p100" }).types, 6);
    assert_int_equal(
        accept(&desk, (struct job_spec){ .gpus = 1, .types = "k80|p100" }).type_best,
        1);
    close_desk(&desk);
}

static void a_job_that_can_never_run_is_refused_with_the_reason(void **state)
{
    struct desk desk;
    open_desk(&desk, "2xv100:4,3xp100:2");
    refuse(&desk, (struct job_spec){ .gpus = 9 }, "asks for 9 accelerators");
    refuse(&desk, (struct job_spec){ .gpus = 4, .types = "h100" }, "h100");
    refuse(&desk, (struct job_spec){ .gpus = 1, .nodes = 2 }, "accelerators");
    refuse(&desk, (struct job_spec){ .gpus = 4, .nodes = 4 }, "accelerators");
    refuse(&desk, (struct job_spec){ .gpus = 0, .nodes = 2 }, "2 nodes");
    refuse(&desk, (struct job_spec){ .gpus = 0, .cpu_milli = 4000000000u }, "CPU");
    refuse(&desk, (struct job_spec){ .gpus = 1, .mem_mib = 4000000000u },
           "accelerators");
    refuse(&desk, (struct job_spec){ .gpus = 1, .kind = "resnet" }, "resnet");
    close_desk(&desk);
}

static void a_job_that_just_fits_is_accepted(void **state)
{
    struct desk desk;
    open_desk(&desk, "2xv100:4,3xp100:2");
    accept(&desk, (struct job_spec){ .gpus = 8 });
    accept(&desk, (struct job_spec){ .gpus = 3, .nodes = 3 });
    struct job wide = accept(
        &desk,
        (struct job_spec){ .gpus = 3, .gpus_min = 1, .gpus_max = 4, .nodes = 2 });
    assert_int_equal(wide.gpus_min, 2); /* one on each node at least */
    accept(&desk, (struct job_spec){ .gpus = 6, .types = "p100" });
    accept(&desk, (struct job_spec){ .gpus = 0, .cpu_milli = 1000 });
    close_desk(&desk);
}

static void a_small_node_helps_jobs_that_may_be_spread(void **state)
{
    struct desk desk;
    open_desk(&desk, "1xv100:8,2xv100:4");
    refuse(&desk, (struct job_spec){ .gpus = 16 }, "shape");
    accept(&desk, (struct job_spec){ .gpus = 16, .spread = true });
    accept(&desk, (struct job_spec){ .gpus = 12 }); /* a full node and a rest of four */
    refuse(&desk, (struct job_spec){ .gpus = 17, .spread = true }, "accelerators");
    close_desk(&desk);
}

/* --- some nodes only -------------------------------------------------------------------- */

static struct job accept_on(struct desk *desk, uint32_t gpus, uint32_t nodes,
                            const char *nodelist)
{
    return accept(
        desk, (struct job_spec){ .gpus = gpus, .nodes = nodes, .nodelist = nodelist });
}

static void named_nodes_make_up_the_gang(void **state)
{
    struct desk desk;
    open_desk(&desk, "3xv100:4,2xp100:8");
    assert_null(accept(&desk, (struct job_spec){ .gpus = 1, .nodelist = "" }).set);
    struct job job = accept_on(&desk, 4, 0, "n1");
    assert_int_equal(job.nodes, 0); /* that one, whole */
    assert_int_equal(job.set->allowed.count, 1);
    assert_int_equal(job.types, 1); /* no other type can be reached */

    job = accept_on(&desk, 4, 0, "n0,n2");
    assert_int_equal(job.nodes, 2);
    assert_int_equal(job.gpus_min, 4);
    assert_int_equal(job.set->allowed.count, 2);
    job =
        accept_on(&desk, 10, 0, "n1"); /* three nodes of four, and it is one of them */
    assert_int_equal(job.nodes, 3);
    assert_int_equal(job.set->must.count, 1);
    assert_int_equal(job.set->allowed.count, 5);
    assert_int_equal(job.types, 1);
    job = accept_on(&desk, 4, 2, "n4");
    assert_int_equal(job.types, 2);
    job = accept(&desk, (struct job_spec){ .gpus = 1, .exclude = "n0|n1|n2" });
    assert_int_equal(job.types, 2);
    close_desk(&desk);
}

static void a_job_too_large_for_its_named_nodes_is_refused(void **state)
{
    struct desk desk;
    open_desk(&desk, "3xv100:4,2xp100:8");
#define ON(...) ((struct job_spec){ __VA_ARGS__ })
    refuse(&desk, ON(.gpus = 8, .nodelist = "n7"), "node n7: not in this cluster");
    refuse(&desk, ON(.gpus = 8, .nodelist = "n0", .nodes = 1),
           "needs 8 GPUs on nodes that have 4");
    refuse(&desk, ON(.gpus = 13, .exclude = "n3,n4"),
           "needs 13 GPUs on nodes that have 12");
    refuse(&desk, ON(.gpus = 6, .nodes = 1, .exclude = "n3,n4"),
           "in a shape that the nodes it may use do not have");
    refuse(&desk, ON(.gpus = 8, .nodelist = "n0,n3"),
           "nodes n0 and n3: a job runs on one type");
    refuse(&desk, ON(.gpus = 2, .nodes = 1, .nodelist = "n0,n1"),
           "names 2 nodes and asks for 1");
    refuse(&desk, ON(.gpus = 1, .nodelist = "n0,n1"),
           "names 2 nodes and asks for 1 GPUs");
    refuse(&desk, ON(.gpus = 1, .nodelist = "n0", .types = "p100"), "GPUs");
    refuse(&desk, ON(.gpus = 1, .nodelist = "n0", .exclude = "n0"), "ruled out");
    refuse(&desk, ON(.gpus = 0, .nodelist = "n0,n1"), "asks for 0 GPUs");
#undef ON
    struct job job =
        accept(&desk, (struct job_spec){ .gpus = 0, .nodelist = "n3", .nodes = 1 });
    assert_int_equal(job.set->allowed.count, 1);
    assert_int_equal(desk.admission.sets.sets[job.set->place]->job_count, 1);
    close_desk(&desk);
}

/* Refused jobs must not hold sets for ever. */
static void a_refused_job_holds_no_set(void **state)
{
    struct desk desk;
    char words[32];
    open_desk(&desk, "3xv100:4");
    for (uint32_t i = 0; i < NODE_SETS_MAX + 10; i++) {
        snprintf(words, sizeof words, "n1%*s", (int)(i % 20 + 1), "");
        refuse(&desk, (struct job_spec){ .gpus = 13, .exclude = words }, "GPUs");
    }
    for (uint32_t i = 0; i < desk.admission.sets.count; i++)
        assert_int_equal(desk.admission.sets.sets[i]->job_count, 0);
    close_desk(&desk);
}

RUN_CASES(TEST(omitted_fields_have_defaults),
          TEST(work_that_is_not_declared_is_unknown),
          TEST(users_are_numbered_as_they_are_met),
          TEST(an_elastic_job_has_one_on_each_of_its_nodes),
          TEST(entities_are_numbered_in_order),
          TEST(only_types_that_fit_the_job_are_kept),
          TEST(a_job_that_can_never_run_is_refused_with_the_reason),
          TEST(a_job_that_just_fits_is_accepted),
          TEST(a_small_node_helps_jobs_that_may_be_spread),
          TEST(named_nodes_make_up_the_gang),
          TEST(a_job_too_large_for_its_named_nodes_is_refused),
          TEST(a_refused_job_holds_no_set));
