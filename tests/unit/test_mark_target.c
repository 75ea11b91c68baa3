/* Finding jobs on a host: patterns of cgroups, missing cgroups, processes. */
#include "support/cases.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "flowd/dscp.h"
#include "flowd/procs.h"
#include "flowd/mark_target.h"
#include "flowd/desired.h"

static void a_pattern_has_one_place_for_the_id(void **state)
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

static void a_missing_cgroup_is_not_found(void **state)
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
        assert_int_equal(targets.list[i].group, 0); /* the root belongs to no job */
    assert_false(mark_targets_find_missing(&targets, &cgroup_patterns_standard));
    mark_targets_release(&targets);
    desired_release(&desired);
}

struct visited {
    int pids[64];
    uint32_t count;
};

static bool record_process(void *context, int pid, int handle)
{
    struct visited *visited = context;
    assert_true(handle >= 0);
    if (visited->count < 64)
        visited->pids[visited->count++] = pid;
    return true;
}

static bool was_visited(const struct visited *visited, int pid)
{
    for (uint32_t i = 0; i < visited->count; i++)
        if (visited->pids[i] == pid)
            return true;
    return false;
}

static struct visited visit_processes(const struct mark_target *target, uint64_t *start)
{
    struct visited visited = { .count = 0 };
    struct procs procs;
    procs_init(&procs);
    procs_for_each(&procs, target, start, record_process, &visited);
    procs_release(&procs);
    return visited;
}

/* Start a process that waits to be killed, with a child that does so too. */
static pid_t start_process_and_child(pid_t *ret_child)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        setsid();
        pid_t child = fork();
        alarm(20); /* in case the test is killed */
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

static void a_session_is_found_without_its_leader(void **state)
{
    pid_t child, pid = start_process_and_child(&child);
    struct mark_target target = { .id = 1, .pid = pid };
    uint64_t start = 0;
    struct visited visited = visit_processes(&target, &start);
    assert_int_equal(visited.count, 2);
    assert_true(was_visited(&visited, pid));
    assert_true(was_visited(&visited, child));
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    visited = visit_processes(&target, &start);
    assert_int_equal(visited.count, 1);
    assert_true(was_visited(&visited, child));
    kill(child, SIGKILL);
    for (int i = 0; i < 500 && visit_processes(&target, &start).count > 0; i++)
        usleep(10000); /* its new parent has to reap it */
    assert_int_equal(visit_processes(&target, &start).count, 0);
}

static void a_reused_pid_is_not_the_jobs(void **state)
{
    pid_t child, pid = start_process_and_child(&child);
    struct mark_target target = { .id = 1, .pid = pid };
    uint64_t start = 1; /* the job's first process was another one */
    assert_int_equal(visit_processes(&target, &start).count, 0);
    assert_int_equal(visit_processes(&target, &start).count,
                     0); /* and it stays ended */
    kill(child, SIGKILL);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

RUN_CASES(TEST(a_pattern_has_one_place_for_the_id), TEST(a_missing_cgroup_is_not_found),
          TEST(a_session_is_found_without_its_leader),
          TEST(a_reused_pid_is_not_the_jobs));
