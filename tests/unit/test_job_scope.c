/* Which jobs a request may be about: numbers, arrays and tasks of the managed partitions. */
#include "support/cases.h"

#include "slurm/job_scope.h"
#include "slurm/slurm_record.h"

static struct job_scope scope;

static int setup(void **state)
{
    return 0;
}

static int teardown(void **state)
{
    job_scope_release(&scope);
    return 0;
}

static void add_job(uint32_t id, uint32_t array, uint32_t task, bool managed)
{
    job_scope_add(
        &scope, &(struct slurm_job){ .id = id, .array_id = array, .array_task = task },
        managed);
}

static void a_job_is_managed_foreign_or_unknown(void **state)
{
    add_job(7, 0, SLURM_NONE, true);
    add_job(8, 0, SLURM_NONE, false);
    assert_int_equal(job_scope_find(&scope, "7"), SCOPE_MANAGED);
    assert_int_equal(job_scope_find(&scope, "8"), SCOPE_FOREIGN);
    assert_int_equal(job_scope_find(&scope, "9"), SCOPE_UNKNOWN);
    assert_int_equal(job_scope_find(&scope, "9_7"), SCOPE_UNKNOWN);
}

static void tasks_without_a_record_are_part_of_their_array(void **state)
{
    add_job(20, 20, SLURM_NONE, true); /* tasks 2 to 9 */
    add_job(21, 20, 1, true);
    assert_int_equal(job_scope_find(&scope, "20"), SCOPE_MANAGED);
    assert_int_equal(job_scope_find(&scope, "20_1"), SCOPE_MANAGED);
    assert_int_equal(job_scope_find(&scope, "20_5"), SCOPE_MANAGED);
}

static void a_task_that_was_moved_away_is_foreign_by_any_name(void **state)
{
    add_job(21, 20, 1, false);
    add_job(20, 20, SLURM_NONE, true);
    assert_int_equal(job_scope_find(&scope, "21"), SCOPE_FOREIGN);
    assert_int_equal(job_scope_find(&scope, "20_1"), SCOPE_FOREIGN);
    assert_int_equal(job_scope_find(&scope, "20_5"), SCOPE_MANAGED);
    /* The number alone means all tasks. */
    assert_int_equal(job_scope_find(&scope, "20"), SCOPE_FOREIGN);
}

static void a_job_that_cannot_be_read_stays_what_it_was(void **state)
{
    struct job_scope earlier;
    add_job(7, 0, SLURM_NONE, true);
    add_job(8, 8, SLURM_NONE, false);
    earlier = scope;
    scope = (struct job_scope){ 0 };
    for (uint32_t id = 7; id <= 9; id++)
        job_scope_keep(&scope, &earlier, id);
    job_scope_release(&earlier);
    assert_int_equal(job_scope_find(&scope, "7"), SCOPE_MANAGED);
    assert_int_equal(job_scope_find(&scope, "8"), SCOPE_FOREIGN);
    assert_int_equal(job_scope_find(&scope, "9"), SCOPE_UNKNOWN);
}

RUN_CASES(CASE(a_job_is_managed_foreign_or_unknown),
          CASE(tasks_without_a_record_are_part_of_their_array),
          CASE(a_task_that_was_moved_away_is_foreign_by_any_name),
          CASE(a_job_that_cannot_be_read_stays_what_it_was));
