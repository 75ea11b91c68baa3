/* Where jobs are on a host: patterns, processes of our own, and what is not there. */
#include "support/cases.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "flowd/dscp.h"
#include "flowd/procs.h"
#include "flowd/mark_target.h"
#include "flowd/desired.h"

static void a_pattern_has_one_place_for_the_number(void **state)
{
    assert_true(mark_target_pattern_is_valid("system.slice/slurmstepd.scope/job_%j"));
    assert_true(mark_target_pattern_is_valid("%j"));
    assert_false(mark_target_pattern_is_valid(""));
    assert_false(mark_target_pattern_is_valid("job"));
    assert_false(mark_target_pattern_is_valid("/job_%j"));
    assert_false(mark_target_pattern_is_valid("../job_%j"));
    assert_false(mark_target_pattern_is_valid("%j/%j"));
    assert_false(mark_target_pattern_is_valid("%s/%j"));
    assert_false(mark_target_pattern_is_valid("%j/%n"));
    assert_false(mark_target_pattern_is_valid("a\"/%j"));
    for (uint32_t i = 0; i < cgroup_patterns_standard.count; i++)
        assert_true(mark_target_pattern_is_valid(cgroup_patterns_standard.list[i]));
}

static void a_job_keeps_its_point_and_has_no_cgroup_that_is_not_there(void **state)
{
    struct desired_marks desired;
    struct mark_targets targets;
    struct dscp_levels levels;
    static const char text[] =
        "{\"levels\":2,\"valid_s\":45,\"jobs\":["
        "{\"id\":1,\"level\":1,\"cgroup\":\"unified/no-such-group/1.0\",\"pid\":7},"
        "{\"id\":2,\"level\":0,\"cgroup\":\"unified\"},"
        "{\"id\":3,\"level\":0,\"executor\":\"slurm\"}]}";
    dscp_levels_parse(&levels, dscp_levels_standard, NULL);
    desired_init(&desired);
    mark_targets_init(&targets);
    assert_int_equal(desired_parse(&desired, text, strlen(text), NULL), 0);
    mark_targets_fill(&targets, &desired, &levels, &cgroup_patterns_standard);
    assert_int_equal(targets.count, 3);
    assert_int_equal(targets.list[0].point, 5);
    assert_int_equal(targets.list[0].pid, 7);
    assert_int_equal(targets.list[1].point, 0);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(targets.list[i].group, 0); /* the root is nobody's */
    assert_false(mark_targets_find_missing(&targets, &cgroup_patterns_standard));
    mark_targets_release(&targets);
    desired_release(&desired);
}

struct seen {
    int pids[64];
    uint32_t count;
};

static bool see(void *context, int pid, int handle)
{
    struct seen *seen = context;
    assert_true(handle >= 0);
    if (seen->count < 64)
        seen->pids[seen->count++] = pid;
    return true;
}

static bool has(const struct seen *seen, int pid)
{
    for (uint32_t i = 0; i < seen->count; i++)
        if (seen->pids[i] == pid)
            return true;
    return false;
}

static struct seen look(const struct mark_target *target, uint64_t *start)
{
    struct seen seen = { .count = 0 };
    struct procs procs;
    procs_init(&procs);
    procs_for_each(&procs, target, start, see, &seen);
    procs_release(&procs);
    return seen;
}

/* A process that waits for its end, and says the number of a child that does, too. */
static pid_t start_family(pid_t *ret_child)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        setsid();
        pid_t child = fork();
        alarm(20); /* whatever becomes of the test */
        if (child > 0 && write(ends[1], &child, sizeof child) < 0)
            _exit(1);
        for (;;)
            pause();
    }
    assert_int_equal(read(ends[0], ret_child, sizeof *ret_child), sizeof *ret_child);
    close(ends[0]);
    close(ends[1]);
    return pid;
}

static void a_family_is_found_even_without_its_head(void **state)
{
    pid_t child, pid = start_family(&child);
    struct mark_target target = { .id = 1, .pid = pid };
    uint64_t start = 0;
    struct seen seen = look(&target, &start);
    assert_int_equal(seen.count, 2);
    assert_true(has(&seen, pid));
    assert_true(has(&seen, child));
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    seen = look(&target, &start);
    assert_int_equal(seen.count, 1);
    assert_true(has(&seen, child));
    kill(child, SIGKILL);
    for (int i = 0; i < 500 && look(&target, &start).count > 0; i++)
        usleep(10000); /* somebody else has to notice */
    assert_int_equal(look(&target, &start).count, 0);
}

static void a_number_that_somebody_else_has_now_is_nobodys(void **state)
{
    pid_t child, pid = start_family(&child);
    struct mark_target target = { .id = 1, .pid = pid };
    uint64_t start = 1; /* the job's first process was another, long ago */
    assert_int_equal(look(&target, &start).count, 0);
    assert_int_equal(look(&target, &start).count, 0); /* and it stays over */
    kill(child, SIGKILL);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

RUN_CASES(TEST(a_pattern_has_one_place_for_the_number),
          TEST(a_job_keeps_its_point_and_has_no_cgroup_that_is_not_there),
          TEST(a_family_is_found_even_without_its_head),
          TEST(a_number_that_somebody_else_has_now_is_nobodys));
