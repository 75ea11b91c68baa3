/* From words to numbers, and what can never run is turned away with a reason. */
#include "support/world.h"

#include <errno.h>
#include <string.h>

#include "model/intake.h"

struct desk {
    struct world w;
    struct intake intake;
};

static void open_desk(struct desk *desk, const char *cluster)
{
    world_init_as(&desk->w, cluster);
    intake_init(&desk->intake, &desk->w.cluster, &desk->w.rates);
}

static void close_desk(struct desk *desk)
{
    intake_release(&desk->intake);
    world_release(&desk->w);
}

static struct job accept(struct desk *desk, struct job_spec spec)
{
    struct job job;
    struct error err = { "" };
    if (intake_job(&desk->intake, &spec, &job, &err) < 0)
        fail_msg("%s", err.text);
    return job;
}

static void refuse(struct desk *desk, struct job_spec spec, const char *why)
{
    struct job job = { .id = 77 };
    struct error err = { "" };
    assert_int_equal(intake_job(&desk->intake, &spec, &job, &err), -ERANGE);
    assert_non_null(strstr(err.text, why));
    assert_int_equal(job.id, 77); /* nothing is written */
}

static void what_is_left_out_has_a_default(void **state)
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

static void entities_are_numbered_as_they_are_met(void **state)
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
    assert_int_equal(desk.intake.entity_count, 2);
    close_desk(&desk);
}

static void only_types_it_fits_on_are_kept(void **state)
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

static void what_can_never_run_is_refused_with_the_reason(void **state)
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

static void what_just_fits_is_accepted(void **state)
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

static void a_small_node_helps_those_who_may_be_spread(void **state)
{
    struct desk desk;
    open_desk(&desk, "1xv100:8,2xv100:4");
    refuse(&desk, (struct job_spec){ .gpus = 16 }, "shape");
    accept(&desk, (struct job_spec){ .gpus = 16, .spread = true });
    accept(&desk, (struct job_spec){ .gpus = 12 }); /* a full node and a rest of four */
    refuse(&desk, (struct job_spec){ .gpus = 17, .spread = true }, "accelerators");
    close_desk(&desk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_left_out_has_a_default),
        cmocka_unit_test(an_elastic_job_has_one_on_each_of_its_nodes),
        cmocka_unit_test(entities_are_numbered_as_they_are_met),
        cmocka_unit_test(only_types_it_fits_on_are_kept),
        cmocka_unit_test(what_can_never_run_is_refused_with_the_reason),
        cmocka_unit_test(what_just_fits_is_accepted),
        cmocka_unit_test(a_small_node_helps_those_who_may_be_spread),
    };
    return cmocka_run_group_tests_name("intake", tests, NULL, NULL);
}
