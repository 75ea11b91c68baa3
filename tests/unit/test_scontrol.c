/* What scontrol prints, read with care: values, jobs that are leaving, forged records. */
#include "support/cases.h"

#include <string.h>

#include "base/arena.h"
#include "slurm/slurm_driver.h"
#include "slurm/slurm_record.h"
#include "slurm/scontrol.h"

#define SEEN_MAX 8

/* A record as scontrol prints it; the name, the state, what comes after the state, and what
 * comes at the end are put in. */
#define RECORD(id, name, state, more, end) \
    "JobId=" id " JobName=" name " UserId=ann(1001) GroupId=ann(1001) MCS_label=N/A " \
    "Priority=0 Nice=0 Account=(null) QOS=(null) JobState=" state \
    " Reason=JobHeldUser " \
    "Dependency=(null) Requeue=1 Restarts=2 BatchFlag=1 Reboot=0 ExitCode=3:9 " \
    "DerivedExitCode=0:0 RunTime=00:00:00 TimeLimit=1-02:00:00 TimeMin=N/A " \
    "SubmitTime=1700000000 EligibleTime=Unknown StartTime=Unknown EndTime=Unknown " \
    "Partition=gpu ReqNodeList=(null) ExcNodeList=n[3-4] NodeList=" more " " \
    "NumNodes=1-3 NumCPUs=4 NumTasks=4 CPUs/Task=1 Socks/Node=* " \
    "NtasksPerN:B:S:C=2:0:*:* CoreSpec=*   Nodes=n[1-2] CPU_IDs=0 Mem=0 " \
    "GRES=gpu:v100:1(IDX:3) MinCPUsNode=1 MinMemoryNode=5G Features=(null) " \
    "Command=(null) WorkDir=/tmp " end "StdErr=/dev/null StdIn=/dev/null " \
    "StdOut=/dev/null Power= TresPerNode=gres:gpu:2 \n"

static struct arena arena;
static struct slurm_job seen[SEEN_MAX];
static struct slurm_node nodes[SEEN_MAX];
static uint32_t seen_count, node_count, unreadable, unreadable_id;

static void store_job(void *self, const struct slurm_job *job)
{
    assert_true(seen_count < SEEN_MAX);
    seen[seen_count++] = *job;
}

static void store_node(void *self, const struct slurm_node *node)
{
    assert_true(node_count < SEEN_MAX);
    nodes[node_count++] = *node;
}

static void count_unreadable(void *self, uint32_t id, const char *why)
{
    unreadable++;
    unreadable_id = id;
}

static const struct slurm_observer observer = { NULL, store_node, store_job,
                                                count_unreadable };

static void read_jobs(const char *text, const char *owned)
{
    scontrol_jobs(arena_text(&arena, text), owned, strlen(owned), &observer, &arena);
}

static void a_record_is_read(void **state)
{
    read_jobs(RECORD("7", "na me=x", "PENDING", "", "Comment=berth:a=b c  "),
              "7 1001\n");
    assert_int_equal(seen_count, 1);
    const struct slurm_job *job = &seen[0];
    assert_int_equal(job->id, 7);
    assert_string_equal(job->name, "na me=x");
    assert_string_equal(job->user, "ann");
    assert_int_equal(job->uid, 1001);
    assert_int_equal(job->state, BRIDGE_PENDING);
    assert_string_equal(job->reason, "JobHeldUser");
    assert_string_equal(job->comment, "berth:a=b c");
    assert_null(job->admin_comment);
    assert_null(job->dependency);
    assert_null(job->req_nodes);
    assert_null(job->nodes);
    assert_string_equal(job->exc_nodes, "n[3-4]");
    assert_int_equal(job->restarts, 2);
    assert_int_equal(job->exit_code, 3);
    assert_int_equal(job->signal, 9);
    assert_int_equal(job->submit, 1700000000);
    assert_int_equal(job->time_limit_s, 93600);
    assert_int_equal(job->min_nodes, 1);
    assert_int_equal(job->max_nodes, 3);
    assert_int_equal(job->tasks_per_node, 2);
    assert_int_equal(job->mem_mib, 5120);
    assert_string_equal(job->tres_per_node, "gres:gpu:2");
    assert_int_equal(job->allocation_count, 1);
    assert_string_equal(job->allocation[0].gres, "gpu:v100:1(IDX:3)");
}

/* The plain record with a piece of it replaced, read. */
static const struct slurm_job *read_with(const char *piece, const char *other)
{
    static const char plain[] = RECORD("7", "x", "PENDING", "", "");
    char text[2048];
    const char *at = strstr(plain, piece);
    assert_non_null(at);
    snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - plain), plain, other,
             at + strlen(piece));
    seen_count = unreadable = 0;
    read_jobs(text, "7 1001\n");
    return seen_count == 1 ? &seen[0] : NULL;
}

/* Slurm 26.05 prints it between the name and the user. */
static void a_sluid_is_no_part_of_the_name(void **state)
{
    const struct slurm_job *job = read_with("UserId=", "SLUID=s1A2B3C4D5E6F UserId=");
    assert_non_null(job);
    assert_string_equal(job->name, "x");
    assert_int_equal(job->uid, 1001);
}

static void times_and_sizes_are_read_as_slurm_writes_them(void **state)
{
    static const struct {
        const char *limit;
        int64_t seconds;
    } limits[] = {
        { "10:00", 600 },       { "1:00:00", 3600 },      { "UNLIMITED", 0 },
        { "N/A", 0 },           { "36501-00:00:00", 0 },  { "1000001:00:00", 0 },
        { "00:1000001:00", 0 }, { "2-00:00:1000001", 0 }, { "2-00:00:01", 172801 },
    };
    static const struct {
        const char *memory;
        uint64_t mib;
    } sizes[] = { { "100M", 100 },   { "2048K", 2 }, { "1.5G", 1536 },
                  { "2T", 2 << 20 }, { "0", 0 },     { "-1", 0 },
                  { "1e13", 0 },     { "nan", 0 },   { "(null)", 0 } };
    char text[64];
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        snprintf(text, sizeof(text), "TimeLimit=%s", limits[i].limit);
        assert_int_equal(read_with("TimeLimit=1-02:00:00", text)->time_limit_s,
                         limits[i].seconds);
    }
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        snprintf(text, sizeof(text), "MinMemoryNode=%s", sizes[i].memory);
        assert_int_equal(read_with("MinMemoryNode=5G", text)->mem_mib, sizes[i].mib);
    }
    assert_true(read_with("MinMemoryNode=5G", "MinMemoryCPU=3G")->mem_per_cpu);
    assert_int_equal(read_with("NumCPUs=4", "NumCPUs=4294967295")->cpus, 0);
    assert_int_equal(read_with("NumNodes=1-3", "NumNodes=2")->max_nodes, 0);
    assert_int_equal(read_with("SubmitTime=1700000000", "SubmitTime=yesterday")->submit,
                     0);
    assert_int_equal(
        read_with("SubmitTime=1700000000", "SubmitTime=2024-99-01")->submit, 0);
    assert_true(
        read_with("SubmitTime=1700000000", "SubmitTime=2024-01-02T00:00:00")->submit >
        1704060000);
}

static void a_state_says_what_a_job_will_be(void **state)
{
    assert_int_equal(read_with("=PENDING", "=SPECIAL_EXIT")->state, BRIDGE_PENDING);
    assert_int_equal(read_with("=PENDING", "=RESV_DEL_HOLD")->state, BRIDGE_PENDING);
    assert_int_equal(read_with("=PENDING", "=STAGE_OUT")->state, BRIDGE_RUNNING);
    assert_true(read_with("=PENDING", "=REQUEUE_HOLD")->completing);
    assert_int_equal(read_with("=PENDING", "=TIMEOUT")->state, BRIDGE_TIMEOUT);
}

/* What has to be there and is not makes a record none. */
static void a_record_with_holes_is_doubted(void **state)
{
    static const char *const must[] = { " JobState=PENDING", " Partition=gpu",
                                        " UserId=ann(1001)" };
    for (size_t i = 0; i < sizeof(must) / sizeof(must[0]); i++) {
        print_message("without%s\n", must[i]);
        assert_null(read_with(must[i], ""));
        assert_int_equal(unreadable, 1);
    }
    assert_null(read_with("JobState=PENDING", "JobState=(null)"));
    assert_null(read_with("Partition=gpu", "Partition=N/A"));
    assert_null(read_with("UserId=ann(1001)", "UserId=ann"));
    assert_null(read_with("UserId=ann(1001)", "UserId=(1001)"));
    assert_null(read_with("UserId=ann(1001)", "UserId=ann(x)"));
    assert_null(
        read_with("UserId=ann(1001)", "UserId=eve(1002)")); /* squeue says 1001 */
}

static void seats_are_those_between_two_words(void **state)
{
    assert_int_equal(read_with("CoreSpec=*   Nodes=n[1-2] CPU_IDs=0 Mem=0 "
                               "GRES=gpu:v100:1(IDX:3) ",
                               "CoreSpec=* ")
                         ->allocation_count,
                     0);
    const struct slurm_job *job =
        read_with("GRES=gpu:v100:1(IDX:3) ", "Nodes=(null) CPU_IDs=1 Mem=0 ");
    assert_int_equal(job->allocation_count, 2);
    assert_null(job->allocation[0].gres);
    assert_string_equal(job->allocation[1].nodes, "");
    assert_int_equal(read_with("CoreSpec=*", "Core=*")->allocation_count, 0);
    assert_int_equal(read_with("MinCPUsNode=1", "")->allocation_count, 0);
    assert_int_equal(read_with("ExitCode=3:9", "ExitCode=3")->signal, 0);
}

static void both_comments_are_told_apart(void **state)
{
    read_jobs(RECORD("7", "x", "PENDING", "", "AdminComment=ours  Comment=theirs  "),
              "7 1001\n");
    assert_string_equal(seen[0].comment, "theirs");
    assert_string_equal(seen[0].admin_comment, "ours");
}

static void a_job_that_leaves_is_leaving(void **state)
{
    read_jobs(RECORD("7", "x", "COMPLETING", "n1", "")
                  RECORD("8", "x", "CONFIGURING", "n1", ""),
              "7 1001\n8 1001\n");
    assert_true(seen[0].completing);
    assert_int_equal(seen[1].state, BRIDGE_RUNNING);
    assert_false(seen[1].completing);
}

static void a_name_cannot_make_up_the_state(void **state)
{
    read_jobs(RECORD("7", "x JobState=RUNNING", "PENDING", "", ""), "7 1001\n");
    assert_int_equal(seen_count, 0);
    assert_int_equal(unreadable, 1);
    assert_int_equal(unreadable_id, 7);
}

static void a_name_cannot_make_up_another_job(void **state)
{
    /* Job 9 is bob's; ann's job 7 pretends to be it in its second line. */
    read_jobs(RECORD("7", "x\nJobId=9 JobName=y", "PENDING", "", ""),
              "7 1001\n9 1002\n");
    assert_int_equal(seen_count, 0);
    assert_int_equal(unreadable_id, 7);
}

static void nor_a_second_record_of_ones_own(void **state)
{
    read_jobs(RECORD("7", "x\nJobId=9 JobName=y", "PENDING", "", "")
                  RECORD("9", "z", "PENDING", "", ""),
              "7 1001\n9 1001\n");
    assert_int_equal(seen_count, 0);
    assert_int_equal(unreadable, 3);
}

static void a_job_nobody_knows_does_not_count(void **state)
{
    read_jobs(RECORD("7", "x", "PENDING", "", ""), "8 1001\n");
    assert_int_equal(seen_count + unreadable, 0);
    read_jobs("No jobs in the system\n", "");
    assert_int_equal(seen_count + unreadable, 0);
}

static void nodes_are_read_with_their_states(void **state)
{
    static const struct {
        const char *state;
        bool up, drain;
    } states[] = {
        { "IDLE", true, false },       { "MIXED+DRAIN", true, true },
        { "DOWN*", false, false },     { "IDLE*", false, false },
        { "ALLOCATED", true, false },  { "IDLE+NOT_RESPONDING", false, false },
        { "DOWN+DRAIN", false, true }, { "UNKNOWN", false, false },
        { "MIXED+MAINT", true, true }, { "IDLE+MAINTENANCE", true, true },
        { "COMPLETING", true, false },
    };
    for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
        char text[512];
        node_count = 0;
        snprintf(text, sizeof(text),
                 "NodeName=n1 Arch=x86_64 CPUTot=64 Gres=gpu:v100:4 "
                 "GresUsed=gpu:v100:1(IDX:2)"
                 " RealMemory=1000 State=%s Partitions=gpu,wide  Reason=a b=c "
                 "[root@2026-01-01]\n",
                 states[i].state);
        print_message("%s\n", states[i].state);
        scontrol_nodes(arena_text(&arena, text), &observer, &arena);
        assert_int_equal(node_count, 1);
        assert_int_equal(nodes[0].up, states[i].up);
        assert_int_equal(nodes[0].drain, states[i].drain);
        assert_string_equal(nodes[0].reason, "a b=c");
        assert_string_equal(nodes[0].partitions, "gpu,wide");
    }
}

static void a_node_has_a_reason_or_none(void **state)
{
    static const struct {
        const char *reason, *read;
    } rows[] = {
        { "", NULL },
        { "Reason=", NULL },
        { "Reason=burnt [out]", "burnt" },
        { "Reason=burnt", "burnt" },
        { "Reason=[root@2026-01-01]", "[root@2026-01-01]" },
        { "Reason=burnt[out]", "burnt[out]" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[200];
        node_count = 0;
        snprintf(text, sizeof(text), "NodeName=n1 State=IDLE %s", rows[i].reason);
        scontrol_nodes(arena_text(&arena, text), &observer, &arena);
        assert_int_equal(node_count, 1);
        if (rows[i].read)
            assert_string_equal(nodes[0].reason, rows[i].read);
        else
            assert_null(nodes[0].reason);
    }
    node_count = 0;
    scontrol_nodes(arena_text(&arena, "No nodes in the system\n"), &observer, &arena);
    scontrol_nodes(arena_text(&arena, "NodeName= State=IDLE\n"), &observer, &arena);
    assert_int_equal(node_count, 0);
}

static void settings_are_found(void **state)
{
    static const char text[] =
        "Configuration data as of 2026\nKillWait                = 30 "
        "sec\nJobSubmitPlugins        = (null)\n"
        "KillWaitLonger          = 9\n";
    char value[64];
    scontrol_setting(text, "KillWait", value, sizeof(value));
    assert_string_equal(value, "30 sec");
    scontrol_setting(text, "JobSubmitPlugins", value, sizeof(value));
    assert_string_equal(value, "");
    scontrol_setting(text, "Nothing", value, sizeof(value));
    assert_string_equal(value, "");
}

static int setup(void **state)
{
    arena_init(&arena, 4096);
    seen_count = node_count = unreadable = unreadable_id = 0;
    return 0;
}

static int teardown(void **state)
{
    arena_release(&arena);
    return 0;
}

RUN_CASES(CASE(a_record_is_read), CASE(a_sluid_is_no_part_of_the_name),
          CASE(times_and_sizes_are_read_as_slurm_writes_them),
          CASE(a_state_says_what_a_job_will_be), CASE(a_record_with_holes_is_doubted),
          CASE(seats_are_those_between_two_words), CASE(a_node_has_a_reason_or_none),
          CASE(both_comments_are_told_apart), CASE(a_job_that_leaves_is_leaving),
          CASE(a_name_cannot_make_up_the_state),
          CASE(a_name_cannot_make_up_another_job),
          CASE(nor_a_second_record_of_ones_own),
          CASE(a_job_nobody_knows_does_not_count),
          CASE(nodes_are_read_with_their_states), CASE(settings_are_found));
