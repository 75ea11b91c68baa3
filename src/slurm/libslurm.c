/*
 * libslurm.c - Slurm through its library.
 *
 * The library ends the process it lives in when its configuration is bad, blocks for
 * MessageTimeout while slurmctld is away, and changes with every release: the reasons why
 * this is a program of its own.  One source serves 21.08 to 26.05:
 *
 *   25.11  job_id lives in step_id
 *   26.05  calls take a step_id; SLURM_BACKWARD_COMPAT brings the numbers back
 *   23.11  "gres:gpu:2" is "gres/gpu:2"
 */
#include "slurm/driver.h"

#include <errno.h>
#include <pthread.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SLURM_BACKWARD_COMPAT 1
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wundef"
#pragma GCC diagnostic ignored "-Wstrict-prototypes"
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#pragma GCC diagnostic pop

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/map.h"
#include "slurm/hash.h"
#include "slurm/hostlist.h"
#include "slurm/output.h"
#include "slurm/request.h"

#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(25, 11, 0)
#define JOB_ID(p) ((p)->step_id.job_id)
#else
#define JOB_ID(p) ((p)->job_id)
#endif
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(23, 11, 0)
#define GRES_GPU "gres/gpu"
#else
#define GRES_GPU "gres:gpu"
#endif

/* Never: far enough that nothing starts, near enough for 32 bits. */
#define PARKED_UNTIL ((time_t)2114380800) /* 2037-01-01 */

struct libslurm {
    time_t jobs_at, nodes_at, partitions_at; /* of the last look */
    time_t partitions_asked;
    struct arena partitions; /* their names and nodes, while they stay as they are */
    struct map partition_of; /* hash of a node's name to an index of 'of' */
    const char **of;         /* "gpu,wide"                                 */
    uint32_t of_count;
    struct arena users; /* names of users, for ever */
    struct map user_of; /* uid to an index of 'user' */
    const char *user[4096];
    uint32_t user_count;
    pthread_mutex_t lock;
    struct map ran; /* jobs that have been started before; both threads ask */
};

/* --- what Slurm answers ------------------------------------------------------------- */

/* Whether it did not answer at all, rather than say no. */
static bool is_away(int code)
{
    switch (code) {
    case SLURM_COMMUNICATIONS_CONNECTION_ERROR:
    case SLURM_COMMUNICATIONS_SEND_ERROR:
    case SLURM_COMMUNICATIONS_RECEIVE_ERROR:
    case SLURM_COMMUNICATIONS_SHUTDOWN_ERROR:
    case SLURMCTLD_COMMUNICATIONS_CONNECTION_ERROR:
    case SLURMCTLD_COMMUNICATIONS_SEND_ERROR:
    case SLURMCTLD_COMMUNICATIONS_RECEIVE_ERROR:
    case SLURMCTLD_COMMUNICATIONS_SHUTDOWN_ERROR:
    case SLURM_PROTOCOL_AUTHENTICATION_ERROR:
    case ESLURM_IN_STANDBY_MODE:
        return true;
    default:
        /* The system's own, a connection that was cut; and Slurm's about sockets. */
        return (code > 0 && code < 1000) || (code >= 5000 && code < 5100);
    }
}

static bool is_transient(int code)
{
    return is_away(code) || code == ESLURM_TRANSITION_STATE_NO_UPDATE;
}

static int ask_again(struct error *err, const char *what)
{
    return error_set(err, -EAGAIN, "%s: %s", what, slurm_strerror(errno));
}

/* --- looking ------------------------------------------------------------------------ */

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
    const struct output_names names = { .id = job->id,
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
    job->output = output_name(pattern, &names, scratch);
    if (info->std_err && *info->std_err)
        job->errors = output_name(info->std_err, &names, scratch);
}

static void show_job(struct libslurm *self, const slurm_job_info_t *info,
                     const struct eyes *eyes, struct arena *scratch)
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

static int look_at_jobs(struct libslurm *self, const struct eyes *eyes,
                        struct look *look, struct arena *scratch, struct error *err)
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
    uint64_t key = hash_of(node, strlen(node));
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
                      const struct eyes *eyes)
{
    uint32_t place =
        map_find(&self->partition_of, hash_of(info->name, strlen(info->name)));
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

static int look_at_nodes(struct libslurm *self, const struct eyes *eyes,
                         struct look *look, struct error *err)
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

static int libslurm_look(void *own, bool afresh, const struct eyes *eyes,
                         struct look *ret_look, struct arena *scratch,
                         struct error *err)
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

/* --- verbs -------------------------------------------------------------------------- */

static void say_no(struct answer *answer, int code)
{
    answer_no(answer, code, is_transient(code), "%s", slurm_strerror(code));
}

/* An update answers for each task of an array that it touched; the worst counts. */
static int update(job_desc_msg_t *wish, const struct request *request)
{
    job_array_resp_msg_t *answers = NULL;
    int code = 0;
    wish->job_id_str = (char *)(uintptr_t)request->job;
    if (slurm_update_job2(wish, &answers) != 0)
        code = errno;
    if (answers) {
        for (uint32_t i = 0; i < answers->job_array_count; i++)
            if (answers->error_code[i] != 0)
                code = (int)answers->error_code[i];
        slurm_free_job_array_resp(answers);
    }
    return code;
}

/* What is true of the job now; NULL: nothing is known.  Free the message. */
static const slurm_job_info_t *peek(const struct request *request,
                                    job_info_msg_t **ret_message)
{
    *ret_message = NULL;
    if (slurm_load_job(ret_message, request_id(request), SHOW_ALL | SHOW_DETAIL) != 0)
        return NULL;
    const char *task = strchr(request->job, '_');
    for (uint32_t i = 0; i < (*ret_message)->record_count; i++) {
        const slurm_job_info_t *job = &(*ret_message)->job_array[i];
        if (task ? job->array_task_id == strtoul(task + 1, NULL, 10)
                 : JOB_ID(job) == request_id(request))
            return job;
    }
    return NULL;
}

static bool holds_exactly(const char *nodes, const struct request *request,
                          struct arena *scratch)
{
    struct hostlist has, wants;
    if (!nodes || hostlist_expand(nodes, scratch, &has, NULL) < 0 ||
        hostlist_expand(request->nodes, scratch, &wants, NULL) < 0 ||
        has.count != wants.count)
        return false;
    for (uint32_t i = 0; i < has.count; i++) {
        uint32_t k = 0;
        while (k < wants.count && strcmp(has.names[i], wants.names[k]) != 0)
            k++;
        if (k == wants.count)
            return false;
    }
    return true;
}

/* Slurm would set its delay after a requeue again, and the job would lie there for it. */
static bool still_leaving(struct libslurm *self, const struct request *request)
{
    job_info_msg_t *message;
    pthread_mutex_lock(&self->lock);
    bool ran = strchr(request->job, '_') ||
               map_find(&self->ran, request_id(request)) != MAP_NONE;
    pthread_mutex_unlock(&self->lock);
    if (!ran)
        return false;
    const slurm_job_info_t *job = peek(request, &message);
    bool leaving = job && (job->job_state & JOB_COMPLETING) != 0;
    if (message)
        slurm_free_job_info_msg(message);
    return leaving;
}

static bool runs_there(const struct request *request, struct arena *scratch)
{
    job_info_msg_t *message;
    const slurm_job_info_t *job = peek(request, &message);
    bool there = job && (job->job_state & JOB_STATE_BASE) == JOB_RUNNING &&
                 holds_exactly(job->nodes, request, scratch);
    if (message)
        slurm_free_job_info_msg(message);
    return there;
}

/*
 * Exactly these nodes, now, and no longer held: one request.  As many nodes as are named:
 * with fewer Slurm would add some of its own choice.
 */
static void start(struct libslurm *self, const struct request *request,
                  struct answer *answer, struct arena *scratch)
{
    job_desc_msg_t wish;
    char gpus[64];
    if (still_leaving(self, request)) {
        answer_no(answer, ESLURM_TRANSITION_STATE_NO_UPDATE, true,
                  "the job has not left its last nodes yet");
        return;
    }
    slurm_init_job_desc_msg(&wish);
    wish.req_nodes = (char *)(uintptr_t)request->nodes;
    wish.min_nodes = wish.max_nodes = request->node_count;
    wish.begin_time = time(NULL);
    wish.priority = INFINITE;
    if (request->gpus_per_node > 0) {
        snprintf(gpus, sizeof(gpus), GRES_GPU ":%u", (unsigned)request->gpus_per_node);
        wish.tres_per_node = gpus;
    }
    if (request->tasks > 0)
        wish.num_tasks = request->tasks;
    if (request->cpus > 0)
        wish.min_cpus = wish.max_cpus = request->cpus;
    int code = update(&wish, request);
    if (code == ESLURM_JOB_NOT_PENDING && runs_there(request, scratch))
        code = 0; /* it was said twice */
    if (code != 0)
        say_no(answer, code);
}

static void set_priority(const struct request *request, uint32_t priority, time_t begin,
                         struct answer *answer)
{
    job_desc_msg_t wish;
    slurm_init_job_desc_msg(&wish);
    wish.priority = priority;
    if (request->theirs)
        wish.alloc_sid = ALLOC_SID_USER_HOLD;
    if (begin != 0)
        wish.begin_time = begin;
    if (request->nodes) {
        wish.req_nodes = (char *)(uintptr_t)request->nodes;
        wish.min_nodes = wish.max_nodes = request->node_count;
    } else if (request->unpin)
        wish.req_nodes = (char *)(uintptr_t) "";
    int code = update(&wish, request);
    if (code == ESLURM_JOB_NOT_PENDING && priority == INFINITE && begin < PARKED_UNTIL)
        code = 0; /* it runs: nothing is left to release */
    if (code != 0)
        say_no(answer, code);
}

/* Ours is the administrator's comment.  A job with bad constraints would come alive. */
static void comment(const struct request *request, struct answer *answer)
{
    job_desc_msg_t wish;
    job_info_msg_t *message;
    slurm_init_job_desc_msg(&wish);
    const slurm_job_info_t *job = peek(request, &message);
    if (job && (job->job_state & JOB_STATE_BASE) == JOB_PENDING &&
        job->state_reason == FAIL_BAD_CONSTRAINTS)
        wish.priority = 0;
    if (message)
        slurm_free_job_info_msg(message);
    wish.admin_comment = (char *)(uintptr_t)request->text;
    int code = update(&wish, request);
    if (code != 0)
        say_no(answer, code);
}

static int requeue(const struct request *request, uint32_t flags)
{
    job_array_resp_msg_t *answers = NULL;
    int code = 0;
    if (slurm_requeue2((char *)(uintptr_t)request->job, flags, &answers) != 0)
        code = errno;
    if (answers) {
        for (uint32_t i = 0; i < answers->job_array_count; i++)
            if (answers->error_code[i] != 0)
                code = (int)answers->error_code[i];
        slurm_free_job_array_resp(answers);
    }
    return code;
}

/* JOB_RUNNING: never bring back a job that has ended or was cancelled. */
static void evict(const struct request *request, struct answer *answer)
{
    int code = requeue(request, JOB_REQUEUE_HOLD | JOB_RUNNING);
    /* It does not run, or will not for long: that was asked for. */
    if (code == ESLURM_JOB_PENDING || code == ESLURM_ALREADY_DONE ||
        code == ESLURM_JOB_FINISHED || code == ESLURM_TRANSITION_STATE_NO_UPDATE)
        code = 0;
    if (code != 0)
        say_no(answer, code);
}

/* The other way round: only one that has ended, and not because somebody wanted it gone. */
static void revive(const struct request *request, struct answer *answer)
{
    job_info_msg_t *message;
    const slurm_job_info_t *job = peek(request, &message);
    uint32_t state = job ? job->job_state : JOB_CANCELLED;
    bool gone = !job || (state & JOB_STATE_BASE) == JOB_CANCELLED;
    bool alive = (state & JOB_STATE_BASE) < JOB_COMPLETE;
    if (message)
        slurm_free_job_info_msg(message);
    if (gone)
        answer_no(answer, ESLURM_INVALID_JOB_ID, false, "the job is gone for good");
    if (gone || alive)
        return;
    int code = requeue(request, JOB_REQUEUE_HOLD);
    if (code == ESLURM_JOB_PENDING)
        code = 0;
    if (code != 0)
        say_no(answer, code);
}

static void signal_job(const struct request *request, int number, uint16_t flags,
                       struct answer *answer)
{
    if (slurm_kill_job2(request->job, (uint16_t)number, flags, NULL) != 0)
        say_no(answer, errno);
}

static void cancel(const struct request *request, struct answer *answer)
{
    signal_job(request, SIGKILL, 0, answer);
    if (answer->code == ESLURM_ALREADY_DONE || answer->code == ESLURM_JOB_FINISHED)
        *answer = (struct answer){ .ok = true };
}

static void script(const struct request *request, struct answer *answer,
                   struct buf *text)
{
    char *bytes = NULL;
    size_t count = 0;
    FILE *file = open_memstream(&bytes, &count);
    if (!file)
        abort();
    int r = slurm_job_batch_script(file, request_id(request)) != 0 ? errno : 0;
    fclose(file);
    if (r != 0)
        say_no(answer, r);
    else
        buf_add(text, bytes,
                count < text->count_max ? count : text->count_max); /* its beginning */
    free(bytes);
}

static void libslurm_carry_out(void *own, const struct request *request,
                               struct answer *answer, struct buf *text,
                               struct arena *scratch)
{
    static const uint16_t flags[] = {
        [WHOM_BATCH] = KILL_JOB_BATCH, [WHOM_STEPS] = 0, [WHOM_ALL] = KILL_FULL_JOB
    };
    switch (request->verb) {
    case VERB_START:
        start(own, request, answer, scratch);
        break;
    case VERB_SIGNAL:
        signal_job(request, request->signal, flags[request->to], answer);
        break;
    case VERB_EVICT:
        evict(request, answer);
        break;
    case VERB_REVIVE:
        revive(request, answer);
        break;
    case VERB_HOLD:
        set_priority(request, 0, 0, answer);
        break;
    case VERB_RELEASE:
        set_priority(request, INFINITE,
                     request->begin > 0 ? (time_t)request->begin : time(NULL), answer);
        break;
    case VERB_PARK:
        set_priority(request, INFINITE, PARKED_UNTIL, answer);
        break;
    case VERB_CANCEL:
        cancel(request, answer);
        break;
    case VERB_COMMENT:
        comment(request, answer);
        break;
    case VERB_SCRIPT:
        script(request, answer, text);
        break;
    case VERB_POLL:
        break; /* not for drivers */
    }
}

/* --- beginning ---------------------------------------------------------------------- */

static void copy(char *to, size_t size, const char *from)
{
    snprintf(to, size, "%s", from ? from : "");
}

static int libslurm_site(void *own, struct slurm_site *ret_site, struct error *err)
{
    slurm_conf_t *conf = NULL;
    if (slurm_load_ctl_conf(0, &conf) != 0)
        return ask_again(err, "slurmctld");
    copy(ret_site->version, sizeof(ret_site->version), conf->version);
    snprintf(ret_site->built, sizeof(ret_site->built), "%d.%02d",
             (int)SLURM_VERSION_MAJOR(SLURM_VERSION_NUMBER),
             (int)SLURM_VERSION_MINOR(SLURM_VERSION_NUMBER));
    copy(ret_site->cluster, sizeof(ret_site->cluster), conf->cluster_name);
    copy(ret_site->priority_type, sizeof(ret_site->priority_type), conf->priority_type);
    copy(ret_site->scheduler, sizeof(ret_site->scheduler), conf->sched_params);
    copy(ret_site->submit_plugins, sizeof(ret_site->submit_plugins),
         conf->job_submit_plugins);
    ret_site->kill_wait_s = conf->kill_wait;
    ret_site->min_job_age_s = conf->min_job_age;
    ret_site->requeue = conf->job_requeue != 0;
    ret_site->file_append = conf->job_file_append != 0;
#if SLURM_VERSION_NUMBER < SLURM_VERSION_NUM(25, 11, 0)
    slurm_free_ctl_conf(
        conf); /* later ones have no such call: it is asked for rarely */
#endif
    return 0;
}

/* The library would end the process without a word of ours. */
static int libslurm_open(void *own, struct error *err)
{
    struct libslurm *self = own;
    const char *conf = getenv("SLURM_CONF");
    if (conf && access(conf, R_OK) != 0)
        return error_set(err, -errno, "SLURM_CONF=%s: %s", conf, strerror(errno));
    pthread_mutex_init(&self->lock, NULL);
    arena_init(&self->partitions, 65536);
    arena_init(&self->users, 4096);
    setenv("SLURM_BITSTR_LEN", "0", 1); /* task numbers in full */
    slurm_init(NULL);
    return 0;
}

const struct driver driver_libslurm = {
    .name = "libslurm",
    .self_size = sizeof(struct libslurm),
    .open = libslurm_open,
    .site = libslurm_site,
    .look = libslurm_look,
    .carry_out = libslurm_carry_out,
};
