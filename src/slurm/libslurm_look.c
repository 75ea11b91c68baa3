/* libslurm_look.c - jobs, nodes and partitions as Slurm's library shows them, in our words. */
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "slurm/hostlist.h"
#include "slurm/libslurm_internal.h"
#include "slurm/output_path.h"

static const char *const states[] = {
    [JOB_PENDING] = "PENDING",     [JOB_RUNNING] = "RUNNING",
    [JOB_SUSPENDED] = "SUSPENDED", [JOB_COMPLETE] = "COMPLETED",
    [JOB_CANCELLED] = "CANCELLED", [JOB_FAILED] = "FAILED",
    [JOB_TIMEOUT] = "TIMEOUT",     [JOB_NODE_FAIL] = "NODE_FAIL",
    [JOB_PREEMPTED] = "PREEMPTED", [JOB_BOOT_FAIL] = "BOOT_FAIL",
    [JOB_DEADLINE] = "DEADLINE",   [JOB_OOM] = "OUT_OF_MEMORY",
};

/* The library knows these names too, but no header says so. */
static const struct {
    uint32_t reason;
    const char *name;
} reasons[] = {
    { WAIT_NO_REASON, "None" },
    { WAIT_PRIORITY, "Priority" },
    { WAIT_DEPENDENCY, "Dependency" },
    { WAIT_RESOURCES, "Resources" },
    { WAIT_PART_NODE_LIMIT, "PartitionNodeLimit" },
    { WAIT_PART_TIME_LIMIT, "PartitionTimeLimit" },
    { WAIT_PART_DOWN, "PartitionDown" },
    { WAIT_PART_INACTIVE, "PartitionInactive" },
    { WAIT_HELD, "JobHeldAdmin" },
    { WAIT_HELD_USER, "JobHeldUser" },
    { WAIT_TIME, "BeginTime" },
    { WAIT_LICENSES, "Licenses" },
    { WAIT_RESERVATION, "Reservation" },
    { WAIT_NODE_NOT_AVAIL, "ReqNodeNotAvail" },
    { WAIT_CLEANING, "Cleaning" },
    { WAIT_PROLOG, "Prolog" },
    { WAIT_QOS, "QOSNotAllowed" },
    { WAIT_ACCOUNT, "AccountNotAllowed" },
    { WAIT_DEP_INVALID, "DependencyNeverSatisfied" },
    { WAIT_MAX_REQUEUE, "JobHoldMaxRequeue" },
    { WAIT_ARRAY_TASK_LIMIT, "JobArrayTaskLimit" },
    { WAIT_PART_CONFIG, "PartitionConfig" },
    { FAIL_DOWN_PARTITION, "PartitionDown" },
    { FAIL_DOWN_NODE, "NodeDown" },
    { FAIL_BAD_CONSTRAINTS, "BadConstraints" },
    { FAIL_SYSTEM, "SystemFailure" },
    { FAIL_LAUNCH, "JobLaunchFailure" },
    { FAIL_EXIT_CODE, "NonZeroExitCode" },
    { FAIL_TIMEOUT, "TimeLimit" },
    { FAIL_INACTIVE_LIMIT, "InactiveLimit" },
    { FAIL_ACCOUNT, "InvalidAccount" },
    { FAIL_QOS, "InvalidQOS" },
    { FAIL_DEADLINE, "DeadLine" },
    { FAIL_OOM, "OutOfMemory" },
};

/* As scontrol writes it: the sentence, if there is one, in one word. */
static const char *reason_of(const slurm_job_info_t *job, struct arena *scratch)
{
    if (job->state_desc && *job->state_desc) {
        char *word = arena_text(scratch, job->state_desc);
        for (char *at = word; *at; at++)
            if (*at == ' ')
                *at = '_';
        return word;
    }
    for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
        if (reasons[i].reason == job->state_reason)
            return reasons[i].name;
    char number[32];
    snprintf(number, sizeof(number), "Reason%u", (unsigned)job->state_reason);
    return arena_text(scratch, number);
}

static const char *user_name(struct libslurm *self, const slurm_job_info_t *job)
{
    if (job->user_name && *job->user_name)
        return job->user_name;
    uint32_t known = map_find(&self->user_of, job->user_id);
    if (known != MAP_NONE)
        return self->user[known];
    struct passwd about, *found = NULL;
    char room[4096], number[32];
    getpwuid_r(job->user_id, &about, room, sizeof(room), &found);
    snprintf(number, sizeof(number), "%u", (unsigned)job->user_id);
    const char *name = arena_text(&self->users, found ? found->pw_name : number);
    if (self->user_count < sizeof(self->user) / sizeof(self->user[0])) {
        map_put(&self->user_of, job->user_id, self->user_count);
        self->user[self->user_count++] = name;
    }
    return name;
}

/* 0 where Slurm says "none" in one of its ways. */
static uint32_t number_of(uint32_t number)
{
    return number == NO_VAL || number == INFINITE ? 0 : number;
}

static uint32_t small_number_of(uint16_t number)
{
    return number == NO_VAL16 || number == INFINITE16 ? 0 : number;
}

/* What it holds, node by node; the library gives both lists in the same order. */
static void fill_held(struct slurm_job *job, const slurm_job_info_t *info,
                      struct arena *scratch)
{
    struct hostlist nodes;
    if (!info->nodes || info->gres_detail_cnt == 0 || !info->gres_detail_str ||
        hostlist_expand(info->nodes, scratch, &nodes, NULL) < 0)
        return;
    uint32_t count =
        nodes.count < info->gres_detail_cnt ? nodes.count : info->gres_detail_cnt;
    struct slurm_held *held = arena_array(scratch, struct slurm_held, count);
    for (uint32_t i = 0; i < count; i++)
        held[i] = (struct slurm_held){ nodes.names[i], info->gres_detail_str[i] };
    job->held = held;
    job->held_count = count;
}

static void fill_wishes(struct slurm_job *job, const slurm_job_info_t *info)
{
    job->time_limit_s = (int64_t)number_of(info->time_limit) * 60;
    job->min_nodes = number_of(info->num_nodes);
    job->max_nodes = number_of(info->max_nodes);
    job->tasks = number_of(info->num_tasks);
    job->tasks_per_node = small_number_of(info->ntasks_per_node);
    job->sockets_per_node = small_number_of(info->sockets_per_node);
    job->cpus = number_of(info->num_cpus);
    job->mem_per_cpu = (info->pn_min_memory & MEM_PER_CPU) != 0;
    job->mem_mib =
        info->pn_min_memory == NO_VAL64 ? 0 : info->pn_min_memory & ~MEM_PER_CPU;
    job->tres_per_job = info->tres_per_job;
    job->tres_per_node = info->tres_per_node;
    job->tres_per_socket = info->tres_per_socket;
    job->tres_per_task = info->tres_per_task;
    job->req_nodes = info->req_nodes;
    job->exc_nodes = info->exc_nodes;
    job->features = info->features;
    job->dependency = info->dependency;
    job->comment = info->comment;
    job->admin_comment = info->admin_comment;
}

static void fill_output(struct slurm_job *job, const slurm_job_info_t *info,
                        struct arena *scratch)
{
    const struct output_fields names = { .id = job->id,
                                         .array_id = job->array_id,
                                         .array_task = job->array_task,
                                         .name = job->name,
                                         .user = job->user,
                                         .nodes = job->nodes,
                                         .folder = info->work_dir };
    const char *pattern = info->std_out;
    job->command = info->command;
    job->folder = info->work_dir;
    if (!job->batch)
        return;
    if (!pattern || *pattern == '\0')
        pattern = job->array_id ? "slurm-%A_%a.out" : "slurm-%j.out";
    job->output = output_path_expand(pattern, &names, scratch);
    if (info->std_err && *info->std_err)
        job->errors = output_path_expand(info->std_err, &names, scratch);
}

static void show_job(struct libslurm *self, const slurm_job_info_t *info,
                     const struct slurm_observer *eyes, struct arena *scratch)
{
    uint32_t state = info->job_state & JOB_STATE_BASE;
    struct slurm_job job = {
        .id = JOB_ID(info),
        .array_id = info->array_job_id,
        .array_task = info->array_job_id ? info->array_task_id : NO_VAL,
        .array_limit = info->array_job_id ? number_of(info->array_max_tasks) : 0,
        .array_tasks = info->array_task_str,
        .het_id = number_of(info->het_job_id),
        .name = info->name,
        .user = user_name(self, info),
        .uid = info->user_id,
        .partition = info->partition,
        .state = state < sizeof(states) / sizeof(states[0]) ? states[state] : "UNKNOWN",
        .reason = reason_of(info, scratch),
        .priority = info->priority,
        .completing = (info->job_state & JOB_COMPLETING) != 0,
        .requeue = info->requeue != 0,
        .batch = info->batch_flag != 0,
        .restarts = info->restart_cnt,
        .submit = info->submit_time,
        .start = info->start_time,
        .end = info->end_time,
        .nodes = info->nodes,
    };
    if (job.array_task == NO_VAL)
        job.array_task = SLURM_NONE;
    if (info->exit_code != NO_VAL) {
        job.exit_code = (uint32_t)WEXITSTATUS(info->exit_code);
        job.signal =
            WIFSIGNALED(info->exit_code) ? (uint32_t)WTERMSIG(info->exit_code) : 0;
    }
    fill_wishes(&job, info);
    fill_output(&job, info, scratch);
    fill_held(&job, info, scratch);
    eyes->job(eyes->self, &job);
}

static bool has_run(const slurm_job_info_t *job)
{
    return job->restart_cnt > 0 || (job->job_state & JOB_COMPLETING) != 0 ||
           (job->job_state & JOB_STATE_BASE) != JOB_PENDING;
}

/* A job that never ran cannot be leaving, and need not be asked about before its start. */
static void remember_who_ran(struct libslurm *self, const job_info_msg_t *list)
{
    pthread_mutex_lock(&self->lock);
    map_release(&self->ran);
    self->ran = (struct map){ 0 };
    for (uint32_t i = 0; i < list->record_count; i++)
        if (has_run(&list->job_array[i]))
            map_put(&self->ran, JOB_ID(&list->job_array[i]), 1);
    pthread_mutex_unlock(&self->lock);
}

static int look_at_jobs(struct libslurm *self, const struct slurm_observer *eyes,
                        struct slurm_poll *look, struct arena *scratch,
                        struct error *err)
{
    job_info_msg_t *list = NULL;
    if (slurm_load_jobs(self->jobs_at, &list, SHOW_ALL | SHOW_DETAIL | SHOW_LOCAL) != 0)
        return errno == SLURM_NO_CHANGE_IN_DATA ? 0 : ask_again(err, "jobs");
    remember_who_ran(self, list);
    for (uint32_t i = 0; i < list->record_count; i++)
        if (JOB_ID(&list->job_array[i]) != 0)
            show_job(self, &list->job_array[i], eyes, scratch);
    self->jobs_at = list->last_update;
    look->jobs = true;
    slurm_free_job_info_msg(list);
    return 0;
}

static void add_partition(struct libslurm *self, const char *node, const char *name)
{
    uint64_t key = hash_text(node);
    uint32_t place = map_find(&self->partition_of, key);
    if (place == MAP_NONE) {
        place = self->of_count++;
        map_put(&self->partition_of, key, place);
        self->of[place] = arena_text(&self->partitions, name);
        return;
    }
    size_t room = strlen(self->of[place]) + strlen(name) + 2;
    char *both = arena_array(&self->partitions, char, room);
    snprintf(both, room, "%s,%s", self->of[place], name);
    self->of[place] = both;
}

/* Which node is in which partition; nodes themselves do not say. */
static int look_at_partitions(struct libslurm *self, struct arena *scratch,
                              struct error *err)
{
    partition_info_msg_t *list = NULL;
    time_t now = time(NULL);
    if (self->partitions_at != 0 && self->partitions_asked == now)
        return 0; /* they seldom change: not at every look after something happened */
    self->partitions_asked = now;
    if (slurm_load_partitions(self->partitions_at, &list, SHOW_ALL | SHOW_LOCAL) != 0)
        return errno == SLURM_NO_CHANGE_IN_DATA ? 0 : ask_again(err, "partitions");
    map_release(&self->partition_of);
    self->partition_of = (struct map){ 0 };
    arena_reset(&self->partitions);
    self->of = arena_array(&self->partitions, const char *, HOSTLIST_MAX);
    self->of_count = 0;
    for (uint32_t i = 0; i < list->record_count; i++) {
        const partition_info_t *partition = &list->partition_array[i];
        struct hostlist nodes;
        if (!partition->name || !partition->nodes ||
            hostlist_expand(partition->nodes, scratch, &nodes, NULL) < 0)
            continue;
        for (uint32_t n = 0; n < nodes.count && self->of_count < HOSTLIST_MAX; n++)
            add_partition(self, nodes.names[n], partition->name);
    }
    self->partitions_at = list->last_update;
    self->nodes_at = 0; /* nodes may be in others now: all of them again */
    slurm_free_partition_info_msg(list);
    return 0;
}

static bool is_up(uint32_t state)
{
    uint32_t base = state & NODE_STATE_BASE;
    if (base != NODE_STATE_IDLE && base != NODE_STATE_ALLOCATED &&
        base != NODE_STATE_MIXED)
        return false;
    return (state & (NODE_STATE_NO_RESPOND | NODE_STATE_FAIL | NODE_STATE_POWERED_DOWN |
                     NODE_STATE_POWERING_DOWN | NODE_STATE_INVALID_REG)) == 0;
}

static void show_node(struct libslurm *self, const node_info_t *info,
                      const struct slurm_observer *eyes)
{
    uint32_t place = map_find(&self->partition_of, hash_text(info->name));
    struct slurm_node node = {
        .name = info->name,
        .partitions = place == MAP_NONE ? "" : self->of[place],
        .gres = info->gres,
        .gres_used = info->gres_used,
        .cpus = info->cpus,
        .mem_mib = info->real_memory,
        .up = is_up(info->node_state),
        .drain = (info->node_state & (NODE_STATE_DRAIN | NODE_STATE_MAINT)) != 0,
        .reason = info->reason && *info->reason ? info->reason : NULL,
        .features = info->features_act,
    };
    eyes->node(eyes->self, &node);
}

static int look_at_nodes(struct libslurm *self, const struct slurm_observer *eyes,
                         struct slurm_poll *look, struct error *err)
{
    node_info_msg_t *list = NULL;
    if (slurm_load_node(self->nodes_at, &list, SHOW_ALL | SHOW_DETAIL | SHOW_LOCAL) !=
        0)
        return errno == SLURM_NO_CHANGE_IN_DATA ? 0 : ask_again(err, "nodes");
    for (uint32_t i = 0; i < list->record_count; i++)
        if (list->node_array[i].name)
            show_node(self, &list->node_array[i], eyes);
    self->nodes_at = list->last_update;
    look->nodes = true;
    slurm_free_node_info_msg(list);
    return 0;
}

int libslurm_poll(void *own, bool afresh, const struct slurm_observer *eyes,
                  struct slurm_poll *ret_look, struct arena *scratch, struct error *err)
{
    struct libslurm *self = own;
    if (afresh)
        self->jobs_at = self->nodes_at = self->partitions_at = 0;
    int r = look_at_partitions(self, scratch, err);
    if (r == 0)
        r = look_at_nodes(self, eyes, ret_look, err);
    if (r == 0)
        r = look_at_jobs(self, eyes, ret_look, scratch, err);
    if (r < 0)
        self->jobs_at = self->nodes_at = self->partitions_at = 0;
    return r;
}
