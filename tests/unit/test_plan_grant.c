/* Where a plan puts a job: on free resources, on vacated ones, or where it is. */
#include "model/free_index.h"
#include "support/plan_fixture.h"

/* --- where --------------------------------------------------------------------------- */

static void a_whole_gang_or_nothing(void **state)
{
    struct world *w = *state; /* two nodes of four */
    world_running_on(w, 0, (struct job){ .gpus = 1 });
    world_running_on(w, 1, (struct job){ .gpus = 1 });
    job_id job = world_queued(w, (struct job){ .gpus = 4 });
    world_plan(w);
    uint64_t before = world_free_hash(w);

    assert_false(grant_job(w, job)); /* six are free, but no four on a node */

    assert_false(plan_holds(w->plan, job));
    assert_false(plan_changes(w->plan, job));
    assert_true(world_free_hash(w) == before);
    assert_int_equal(plan_change_count(w->plan), 0);
}

static void the_tightest_node_is_taken(void **state)
{
    struct world *w = *state;
    world_running_on(w, 1, (struct job){ .gpus = 2 });
    job_id job = world_queued(w, (struct job){ .gpus = 2 });
    world_plan(w);
    assert_true(grant_job(w, job));
    assert_int_equal(world_seat(w, job, 0)->node, 1);
}

static void
a_gang_larger_than_a_node_gets_full_nodes_and_the_tightest_rest(void **state)
{
    struct world four;
    world_init(&four, 4, 4);
    world_running_on(&four, 0, (struct job){ .gpus = 3 });
    world_running_on(&four, 1, (struct job){ .gpus = 2 });
    job_id job = world_queued(&four, (struct job){ .gpus = 9 });
    world_plan(&four);
    assert_true(grant_job(&four, job));

    assert_int_equal(world_grant(&four, job)->seat_count, 3);
    assert_int_equal(gpus_on(&four, job, 0), 4);
    assert_int_equal(gpus_on(&four, job, 1), 4);
    assert_int_equal(world_seat(&four, job, 2)->node, 0); /* one left there: tightest */
    assert_false(world_grant(&four, job)->spread);
    world_release(&four);
}

static void a_job_that_may_be_spread_takes_what_is_free(void **state)
{
    struct world *w = *state;
    world_running_on(w, 0, (struct job){ .gpus = 1 });
    world_running_on(w, 1, (struct job){ .gpus = 2 });
    job_id together = world_queued(w, (struct job){ .gpus = 4 });
    job_id apart = world_queued(w, (struct job){ .gpus = 4, .spread = true });
    world_plan(w);
    assert_false(grant_job(w, together));
    assert_true(grant_job(w, apart));

    assert_int_equal(world_grant(w, apart)->seat_count, 2);
    assert_int_equal(gpus_on(w, apart, 0), 3); /* most free first */
    assert_int_equal(gpus_on(w, apart, 1), 1);
    assert_true(world_grant(w, apart)->spread);
}

static void one_node_is_preferred_even_if_it_may_be_spread(void **state)
{
    struct world *w = *state;
    job_id job = world_queued(w, (struct job){ .gpus = 4, .spread = true });
    world_plan(w);
    assert_true(grant_job(w, job));
    assert_int_equal(world_grant(w, job)->seat_count, 1);
    assert_false(world_grant(w, job)->spread);
}

static uint32_t gpus_at(const struct world *w, job_id job, node_id node)
{
    uint32_t gpus = 0;
    for (uint32_t i = 0; i < world_grant(w, job)->seat_count; i++)
        if (world_seat(w, job, i)->node == node)
            gpus += seat_gpu_count(world_seat(w, job, i));
    return gpus;
}

/* K80s of mixed-112: nodes 8 to 11 are one rack, 12 and 13 another; uplinks are too slow. */
static void a_gang_that_sends_goes_to_the_tightest_rack(void **state)
{
    struct world w;
    world_init_as(&w, "mixed-112");
    uint32_t k80 = (uint32_t)1 << w.cluster.nodes[8].type;
    job_id silent = world_queued(&w, (struct job){ .gpus = 16, .types = k80 });
    job_id sends = world_queued(
        &w, (struct job){ .gpus = 16, .types = k80, .bytes_per_step = 1000000 });
    job_id rest = world_queued(
        &w, (struct job){ .gpus = 12, .types = k80, .bytes_per_step = 1000000 });
    world_plan(&w);
    size_t mark = plan_mark(w.plan);
    assert_true(grant_job(&w, silent));
    assert_int_equal(gpus_at(&w, silent, 8), 8);
    assert_int_equal(gpus_at(&w, silent, 9), 8);
    plan_undo(w.plan, mark);
    assert_true(grant_job(&w, sends));
    assert_int_equal(gpus_at(&w, sends, 12), 8);
    assert_int_equal(gpus_at(&w, sends, 13), 8);
    assert_true(grant_job(&w, rest)); /* eight and four, beside no other */
    assert_int_equal(gpus_at(&w, rest, 8), 8);
    assert_int_equal(gpus_at(&w, rest, 9), 4);
    world_release(&w);
}

static void a_gang_that_fits_in_no_rack_goes_to_few(void **state)
{
    struct world w;
    world_init_as(&w, "mixed-112");
    uint32_t k80 = (uint32_t)1 << w.cluster.nodes[8].type;
    world_running_on(&w, 12, (struct job){ .gpus = 1, .types = k80 });
    world_running_on(&w, 9, (struct job){ .gpus = 1, .types = k80 });
    job_id sends = world_queued(
        &w, (struct job){ .gpus = 32, .types = k80, .bytes_per_step = 1000000 });
    job_id more = world_queued(
        &w, (struct job){ .gpus = 9, .types = k80, .bytes_per_step = 1000000 });
    world_plan(&w);
    size_t mark = plan_mark(w.plan);
    assert_true(grant_job(&w, sends));
    for (node_id node = 8; node < 14; node++)
        assert_int_equal(gpus_at(&w, sends, node), node == 9 || node == 12 ? 0 : 8);
    plan_undo(w.plan, mark);
    assert_true(grant_job(&w, more)); /* its small part where there is less */
    assert_int_equal(gpus_at(&w, more, 13), 8);
    assert_int_equal(gpus_at(&w, more, 12), 1);
    world_release(&w);
}

static void a_number_of_nodes_is_filled_evenly(void **state)
{
    struct world four;
    world_init(&four, 4, 4);
    job_id job = world_queued(&four, (struct job){ .gpus = 8, .nodes = 3 });
    world_plan(&four);
    assert_true(grant_job(&four, job));
    assert_int_equal(world_grant(&four, job)->seat_count, 3);
    assert_int_equal(gpus_on(&four, job, 0), 3);
    assert_int_equal(gpus_on(&four, job, 1), 3);
    assert_int_equal(gpus_on(&four, job, 2), 2);
    world_release(&four);
}

static void only_types_it_may_use_and_the_fastest_of_them(void **state)
{
    struct world mixed;
    world_init_as(&mixed, "1xk80:4,1xv100:4,1xp100:4");
    mixed.cluster.types[0].speed = 0.2;
    mixed.cluster.types[2].speed = 0.5;
    job_id any = world_queued(&mixed, (struct job){ .gpus = 4 });
    job_id slow = world_queued(&mixed, (struct job){ .gpus = 4, .types = 1 | 4 });
    world_plan(&mixed);
    assert_true(grant_job(&mixed, any));
    assert_true(grant_job(&mixed, slow));
    assert_int_equal(world_seat(&mixed, any, 0)->node, 1);
    assert_int_equal(world_seat(&mixed, slow, 0)->node, 2);

    struct ask ask = ASK_DEFAULT;
    ask.types = 1;
    world_plan(&mixed);
    assert_true(plan_grant(mixed.plan, any, &ask));
    assert_int_equal(world_seat(&mixed, any, 0)->node, 0);
    ask.types = 2;
    assert_false(plan_grant(mixed.plan, slow, &ask)); /* may not use it */
    world_release(&mixed);
}

static void only_nodes_of_its_set_are_used(void **state)
{
    struct world w;
    world_init_as(&w, "4xv100:4,2xp100:8");
    job_id tight = world_running_on(&w, 0, (struct job){ .gpus = 3 });
    job_id one = world_queued(
        &w, (struct job){ .gpus = 1, .set = world_set(&w, NULL, "n0", false) });
    job_id two = world_queued(
        &w, (struct job){
                .gpus = 5, .nodes = 2, .set = world_set(&w, "n1,n3", NULL, true) });
    job_id gone = world_queued(
        &w, (struct job){ .gpus = 2, .set = world_set(&w, "n0", NULL, true) });
    world_plan(&w);
    assert_true(grant_job(&w, one));
    assert_int_equal(world_seat(&w, one, 0)->node, 1); /* n0 would be tighter */
    assert_true(grant_job(&w, two));
    assert_int_equal(gpus_on(&w, two, 0) + gpus_on(&w, two, 1), 5);
    assert_int_equal(world_seat(&w, two, 0)->node + world_seat(&w, two, 1)->node, 4);
    assert_false(grant_job(&w, gone));
    revoke_job(&w, tight);
    assert_true(grant_job(&w, gone)); /* room that is being left counts, there */
    assert_int_equal(plan_check(w.plan, NULL), 0);
    world_release(&w);
}

static void every_required_node_gets_a_part(void **state)
{
    struct world w;
    world_init_as(&w, "6xv100:4");
    world_running_on(&w, 3, (struct job){ .gpus = 2 });
    struct job seven = { .gpus = 7,
                         .nodes = 3,
                         .set = world_set(&w, "n3", "n1", false) };
    job_id gang = world_queued(&w, seven); /* 3, 2 and 2; n3 has room for 2 */
    world_plan(&w);
    assert_true(grant_job(&w, gang));
    uint32_t nodes = 0;
    for (uint32_t i = 0; i < 3; i++) {
        nodes |= 1u << world_seat(&w, gang, i)->node;
        if (world_seat(&w, gang, i)->node == 3)
            assert_int_equal(gpus_on(&w, gang, i), 2);
    }
    assert_true(nodes & 8 && !(nodes & 2)); /* others would be emptier */

    world_plan(&w); /* a node that is avoided, or down, cannot be among them */
    struct ask ask = ASK_DEFAULT;
    struct bits avoid;
    bits_init(&avoid, &w.arena, 6);
    bits_set(&avoid, 3);
    ask.avoid = &avoid;
    assert_false(plan_grant(w.plan, gang, &ask));
    world_plan(&w);
    plan_end(w.plan);
    w.planning = false;
    world_apply(&w,
                (struct event){ .kind = EVENT_NODE_DOWN, .job = JOB_NONE, .node = 3 });
    world_plan(&w);
    assert_false(grant_job(&w, gang));
    world_release(&w);
}

static void sharing_is_only_on_nodes_of_its_set(void **state)
{
    struct world w;
    world_init_as(&w, "2xv100:4");
    job_id host = world_running_on(&w, 0, (struct job){ .gpus = 4 });
    job_id not_there = world_queued(
        &w, (struct job){ .gpus = 4, .set = world_set(&w, NULL, "n0", false) });
    job_id there = world_queued(
        &w, (struct job){ .gpus = 4, .set = world_set(&w, "n0", NULL, true) });
    world_plan(&w);
    assert_false(grant_beside(&w, not_there, host));
    assert_true(grant_beside(&w, there, host));
    assert_int_equal(plan_check(w.plan, NULL), 0);
    world_release(&w);
}

static void avoided_nodes_are_not_used(void **state)
{
    struct world *w = *state;
    struct bits avoid = nodes_but(w, 1);
    struct ask ask = ASK_DEFAULT;
    ask.avoid = &avoid;
    job_id a = world_queued(w, (struct job){ .gpus = 2 });
    job_id b = world_queued(w, (struct job){ .gpus = 6, .spread = true });
    world_plan(w);
    assert_true(plan_grant(w->plan, a, &ask));
    assert_int_equal(world_seat(w, a, 0)->node, 1);
    assert_false(
        plan_grant(w->plan, b, &ask)); /* six are free, two of them elsewhere */
}

static void cpus_and_memory_are_counted_too(void **state)
{
    struct world roomy;
    world_init_roomy(&roomy, "2xv100:4", /* cpu_milli= */ 8000, /* mem_mib= */ 4096);
    job_id greedy = world_running_on(
        &roomy, 0, (struct job){ .gpus = 1, .cpu_milli = 7000, .mem_mib = 1000 });
    job_id job = world_queued(&roomy, (struct job){ .gpus = 1, .cpu_milli = 2000 });
    job_id big = world_queued(&roomy, (struct job){ .gpus = 1, .mem_mib = 4000 });
    world_plan(&roomy);
    assert_true(grant_job(&roomy, job));
    assert_int_equal(world_seat(&roomy, job, 0)->node,
                     1); /* not the tightest by GPUs */
    assert_true(grant_job(&roomy, big));
    assert_int_equal(world_seat(&roomy, big, 0)->node, 1);

    job_id more = world_queued(&roomy, (struct job){ .gpus = 1, .mem_mib = 3200 });
    world_plan(&roomy);
    assert_true(grant_job(&roomy, big));
    assert_false(grant_job(&roomy, more)); /* 3096 are left on node 0, 96 on node 1 */
    assert_int_equal(node_of(&roomy, greedy), 0);
    world_release(&roomy);
}

static void a_gangs_cpus_go_with_its_gpus(void **state)
{
    struct world roomy;
    world_init_roomy(&roomy, "2xv100:4", 8000, 8192);
    job_id job = world_queued(
        &roomy, (struct job){ .gpus = 6, .cpu_milli = 9000, .mem_mib = 6001 });
    world_plan(&roomy);
    assert_true(grant_job(&roomy, job));
    assert_int_equal(world_seat(&roomy, job, 0)->cpu_milli, 6000);
    assert_int_equal(world_seat(&roomy, job, 1)->cpu_milli, 3000);
    assert_int_equal(world_seat(&roomy, job, 0)->mem_mib, 4001); /* rounded up */
    assert_int_equal(world_seat(&roomy, job, 1)->mem_mib, 2001);
    world_release(&roomy);
}

static void a_job_without_gpus_goes_where_none_are_free(void **state)
{
    struct world roomy;
    world_init_roomy(&roomy, "2xv100:1", 8000, 8192);
    world_running_on(&roomy, 1, (struct job){ .gpus = 1, .cpu_milli = 1000 });
    job_id job = world_queued(&roomy, (struct job){ .gpus = 0, .cpu_milli = 7000 });
    job_id next = world_queued(&roomy, (struct job){ .gpus = 0, .cpu_milli = 7000 });
    job_id last = world_queued(&roomy, (struct job){ .gpus = 0, .cpu_milli = 7000 });
    world_plan(&roomy);
    assert_true(grant_job(&roomy, job));
    assert_int_equal(world_seat(&roomy, job, 0)->node,
                     1); /* spares the GPUs of node 0 */
    assert_true(grant_job(&roomy, next));
    assert_false(grant_job(&roomy, last));
    world_release(&roomy);
}

/* --- staying ---------------------------------------------------------------------------- */

static void a_grant_to_a_running_job_changes_nothing(void **state)
{
    struct world *w = *state;
    job_id job = world_running(w, (struct job){ .gpus = 2 });
    world_plan(w);
    assert_true(grant_job(w, job));
    assert_false(plan_changes(w->plan, job));
    assert_true(plan_holds(w->plan, job));
}

static void a_revoked_job_that_is_granted_again_stays_in_place(void **state)
{
    struct world *w = *state;
    job_id job = world_running(w, (struct job){ .gpus = 2 });
    world_plan(w);
    revoke_job(w, job);
    assert_false(plan_holds(w->plan, job));
    assert_true(grant_job(w, job));
    assert_true(plan_holds(w->plan, job));
    assert_false(plan_changes(w->plan, job));

    world_carry_out(w);
    assert_int_equal(world_job(w, job)->state, JOB_RUNNING); /* never told to leave */
}

static void a_job_cannot_stay_once_its_seats_are_granted(void **state)
{
    struct world one;
    world_init(&one, 1, 4);
    job_id old = world_running(&one, (struct job){ .gpus = 3 });
    job_id new = world_queued(&one, (struct job){ .gpus = 2 });
    world_plan(&one);
    revoke_job(&one, old);
    assert_true(grant_job(&one, new));
    assert_false(grant_job(&one, old));
    assert_false(plan_holds(one.plan, old));
    world_release(&one);
}

/* --- promises ------------------------------------------------------------------------------ */

static void free_resources_come_before_vacated_ones(void **state)
{
    struct world *w = *state;
    job_id old = world_running_on(w, 0, (struct job){ .gpus = 4 });
    job_id new = world_queued(w, (struct job){ .gpus = 3 });
    world_plan(w);
    revoke_job(w, old);
    assert_true(grant_job(w, new));
    assert_int_equal(world_seat(w, new, 0)->node, 1);
    assert_int_equal(world_grant(w, new)->pending_count, 0);
}

static void also_on_a_node_with_vacancies(void **state)
{
    struct world one;
    world_init(&one, 1, 4);
    job_id old = world_running(&one, (struct job){ .gpus = 2 });
    job_id new = world_queued(&one, (struct job){ .gpus = 2 });
    world_plan(&one);
    revoke_job(&one, old);
    assert_true(grant_job(&one, new));
    assert_int_equal(world_grant(&one, new)->pending_count, 0);
    world_release(&one);
}

static void a_job_that_has_to_wait_takes_vacated_gpus_first(void **state)
{
    struct world one;
    world_init(&one, 1, 4);
    job_id old = world_running(&one, (struct job){ .gpus = 2 });
    job_id new = world_queued(&one, (struct job){ .gpus = 3 });
    job_id small = world_queued(&one, (struct job){ .gpus = 1 });
    world_plan(&one);
    revoke_job(&one, old);
    assert_true(grant_job(&one, new)); /* both of old's, and one that is free */
    assert_true(world_waits_for(&one, new, old));
    assert_true(grant_job(&one, small));
    assert_int_equal(world_grant(&one, small)->pending_count, 0); /* can start now */
    world_release(&one);
}

static void pending_shares_go_to_the_right_successors(void **state)
{
    struct world *w = *state;
    job_id a = world_running_on(w, 0, (struct job){ .gpus = 4 });
    job_id b = world_running_on(w, 1, (struct job){ .gpus = 4 });
    job_id x = world_queued(w, (struct job){ .gpus = 4 });
    job_id y = world_queued(w, (struct job){ .gpus = 4 });
    world_plan(w);
    revoke_job(w, a);
    assert_true(grant_job(w, x));
    revoke_job(w, b);
    assert_true(grant_job(w, y));
    assert_true(world_waits_for(w, x, a));
    assert_false(world_waits_for(w, x, b));
    assert_true(world_waits_for(w, y, b));
    assert_false(world_waits_for(w, y, a));
}

static void one_victim_can_have_two_successors(void **state)
{
    struct world one;
    world_init(&one, 1, 4);
    job_id old = world_running(&one, (struct job){ .gpus = 4 });
    job_id x = world_queued(&one, (struct job){ .gpus = 3 });
    job_id y = world_queued(&one, (struct job){ .gpus = 1 });
    job_id z = world_queued(&one, (struct job){ .gpus = 1 });
    world_plan(&one);
    revoke_job(&one, old);
    assert_true(grant_job(&one, x));
    assert_true(grant_job(&one, y));
    assert_false(grant_job(&one, z));
    assert_int_equal(world_seat(&one, x, 0)->gpus & world_seat(&one, y, 0)->gpus, 0);

    world_carry_out(&one);
    world_apply(&one, (struct event){ .kind = EVENT_STOPPED, .job = old });
    start_job(&one, y);
    start_job(&one, x);
    assert_int_equal(one.state.free.gpu_count, 0);
    world_release(&one);
}

static void a_gang_can_take_free_and_vacated_nodes_together(void **state)
{
    struct world *w = *state;
    job_id old = world_running_on(w, 0, (struct job){ .gpus = 1 });
    job_id gang = world_queued(w, (struct job){ .gpus = 8 });
    world_plan(w);
    assert_false(grant_job(w, gang));
    revoke_job(w, old);
    assert_true(grant_job(w, gang));
    assert_true(world_waits_for(w, gang, old));
    assert_int_equal(world_grant(w, gang)->seat_count, 2);
}

static void vacancies_on_a_failed_node_cannot_be_granted(void **state)
{
    struct world *w = *state;
    job_id old = world_running_on(w, 0, (struct job){ .gpus = 4 });
    world_running_on(w, 1, (struct job){ .gpus = 4 });
    job_id new = world_queued(w, (struct job){ .gpus = 1 });
    world_apply(w, (struct event){ .kind = EVENT_NODE_DOWN, .node = 0 });
    world_plan(w);
    revoke_job(w, old);
    assert_false(grant_job(w, new));
}

static void what_others_use_is_not_vacated(void **state)
{
    struct world *w = *state;
    job_id victim = world_running_on(w, 0, (struct job){ .gpus = 4 });
    job_id large = world_queued(w, (struct job){ .gpus = 4 });
    job_id small = world_queued(w, (struct job){ .gpus = 3 });
    world_running_on(w, 1, (struct job){ .gpus = 4 });
    world_apply(
        w, (struct event){
               .kind = EVENT_FOREIGN, .job = JOB_NONE, .node = 0, .gpus = 1 << 1 });

    world_plan(w);
    revoke_job(w, victim);
    assert_false(grant_job(w, large));
    assert_true(grant_job(w, small));
    assert_int_equal(world_seat(w, small, 0)->gpus, 0xd);

    world_plan(w);
    revoke_job(w, victim);
    assert_true(grant_job(w, victim)); /* it may stay beside them */
    assert_false(grant_job(w, small));

    world_plan(w);
    assert_false(grant_beside(w, large, victim));
}

/* --- moving and resizing ------------------------------------------------------------------------- */

static void a_growing_job_keeps_its_own_seats_pending(void **state)
{
    struct world one;
    world_init(&one, 1, 4);
    job_id job =
        world_running(&one, (struct job){ .gpus = 2, .gpus_min = 1, .gpus_max = 4 });
    world_plan(&one);
    assert_true(grant_gpus(&one, job, 4));
    assert_true(plan_changes(one.plan, job));
    assert_true(world_waits_for(&one, job, job));
    assert_int_equal(gpus_on(&one, job, 0), 4);
    world_release(&one);
}

static void a_job_that_cannot_grow_stays_as_it_is(void **state)
{
    struct world one;
    world_init(&one, 1, 4);
    job_id job =
        world_running(&one, (struct job){ .gpus = 2, .gpus_min = 1, .gpus_max = 4 });
    world_running(&one, (struct job){ .gpus = 1 });
    world_plan(&one);
    uint64_t before = world_free_hash(&one);
    assert_false(grant_gpus(&one, job, 4));
    assert_false(plan_changes(one.plan, job));
    assert_true(plan_holds(one.plan, job));
    assert_true(world_free_hash(&one) == before);
    world_release(&one);
}

static void gpus_of_a_shrinking_job_can_be_granted(void **state)
{
    struct world one;
    world_init(&one, 1, 4);
    job_id job =
        world_running(&one, (struct job){ .gpus = 4, .gpus_min = 1, .gpus_max = 4 });
    job_id new = world_queued(&one, (struct job){ .gpus = 3 });
    world_plan(&one);
    assert_true(grant_gpus(&one, job, 1));
    assert_true(grant_job(&one, new));
    assert_true(world_waits_for(&one, new, job));
    assert_int_equal(world_seat(&one, job, 0)->gpus & world_seat(&one, new, 0)->gpus,
                     0);
    world_release(&one);
}

WORLD_FIXTURE(/* nodes= */ 2, /* gpus_per_node= */ 4);

RUN_CASES(CASE(a_whole_gang_or_nothing), CASE(the_tightest_node_is_taken),
          CASE(a_gang_larger_than_a_node_gets_full_nodes_and_the_tightest_rest),
          CASE(a_job_that_may_be_spread_takes_what_is_free),
          CASE(one_node_is_preferred_even_if_it_may_be_spread),
          CASE(a_number_of_nodes_is_filled_evenly),
          CASE(a_gang_that_sends_goes_to_the_tightest_rack),
          CASE(a_gang_that_fits_in_no_rack_goes_to_few),
          CASE(only_types_it_may_use_and_the_fastest_of_them),
          CASE(only_nodes_of_its_set_are_used), CASE(every_required_node_gets_a_part),
          CASE(sharing_is_only_on_nodes_of_its_set), CASE(avoided_nodes_are_not_used),
          CASE(cpus_and_memory_are_counted_too), CASE(a_gangs_cpus_go_with_its_gpus),
          CASE(a_job_without_gpus_goes_where_none_are_free),
          CASE(a_grant_to_a_running_job_changes_nothing),
          CASE(a_revoked_job_that_is_granted_again_stays_in_place),
          CASE(a_job_cannot_stay_once_its_seats_are_granted),
          CASE(free_resources_come_before_vacated_ones),
          CASE(also_on_a_node_with_vacancies),
          CASE(a_job_that_has_to_wait_takes_vacated_gpus_first),
          CASE(pending_shares_go_to_the_right_successors),
          CASE(one_victim_can_have_two_successors),
          CASE(a_gang_can_take_free_and_vacated_nodes_together),
          CASE(vacancies_on_a_failed_node_cannot_be_granted),
          CASE(what_others_use_is_not_vacated),
          CASE(a_growing_job_keeps_its_own_seats_pending),
          CASE(a_job_that_cannot_grow_stays_as_it_is),
          CASE(gpus_of_a_shrinking_job_can_be_granted));
