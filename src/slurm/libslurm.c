/*
 * libslurm.c - Slurm through its library.
 *
 * The library ends its process when the configuration is bad, blocks for MessageTimeout
 * while slurmctld is down, and changes with every release: that is why berth-slurm is a
 * program of its own.  This source works with 21.08 to 26.05:
 *
 *   25.11  job_id moved into step_id
 *   26.05  calls take a step_id; SLURM_BACKWARD_COMPAT keeps the numbers
 *   23.11  "gres:gpu:2" is "gres/gpu:2"
 */
#include "slurm/slurm_driver.h"

#include <errno.h>
#include <pthread.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
#include "base/hash.h"
#include "base/map.h"
#include "base/memory.h"
#include "slurm/bridge_request.h"
#include "slurm/hostlist.h"
#include "slurm/output_path.h"

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

/* The begin time of a parked job: never, as far as 32 bits allow. */
#define PARKED_UNTIL ((time_t)2114380800) /* 2037-01-01 */

struct libslurm {
    time_t jobs_at, nodes_at, partitions_at; /* of the last poll */
    time_t partitions_asked;
    struct arena partitions; /* their names and nodes, until they change */
    struct map
        partition_index; /* hash of a node's name to an index of 'partition_lists' */
    const char **partition_lists; /* "gpu,wide"                                 */
    uint32_t partition_list_count;
    struct arena users;    /* names of users, never released */
    struct map user_index; /* uid to an index of 'user' */
    const char *user[4096];
    uint32_t user_count;
    pthread_mutex_t lock;
    struct map started; /* jobs that were started before; used by both threads */
};

static int no_answer(struct error *err, const char *what)
{
    return error_set(err, -EAGAIN, "%s: %s", what, slurm_strerror(errno));
}

/* --- errors ------------------------------------------------------------------------- */

/* Whether Slurm did not answer at all, rather than refuse. */
static bool is_no_answer(int code)
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
        /* Errors of the system, such as a broken connection, and Slurm's about sockets. */
        return (code > 0 && code < 1000) || (code >= 5000 && code < 5100);
    }
}

static bool is_transient(int code)
{
    return is_no_answer(code) || code == ESLURM_TRANSITION_STATE_NO_UPDATE;
}

/* --- verbs -------------------------------------------------------------------------- */

static void set_error(struct verb_result *result, int code)
{
    verb_result_fail(result, code, is_transient(code), "%s", slurm_strerror(code));
}

/* The last error of all tasks of an array, or 'code'; frees the answers. */
static int last_error(job_array_resp_msg_t *answers, int code)
{
    if (!answers)
        return code;
    for (uint32_t i = 0; i < answers->job_array_count; i++)
        if (answers->error_code[i] != 0)
            code = (int)answers->error_code[i];
    slurm_free_job_array_resp(answers);
    return code;
}

static int update_job(job_desc_msg_t *desc, const struct bridge_request *request)
{
    job_array_resp_msg_t *answers = NULL;
    desc->job_id_str = (char *)(uintptr_t)request->job;
    int code = slurm_update_job2(desc, &answers) != 0 ? errno : 0;
    return last_error(answers, code);
}

/* Query a job; NULL: it is not known.  The caller frees the message. */
static const slurm_job_info_t *query_job(const struct bridge_request *request,
                                         job_info_msg_t **ret_message)
{
    *ret_message = NULL;
    if (slurm_load_job(ret_message, bridge_request_job_id(request),
                       SHOW_ALL | SHOW_DETAIL) != 0)
        return NULL;
    const char *task = strchr(request->job, '_');
    for (uint32_t i = 0; i < (*ret_message)->record_count; i++) {
        const slurm_job_info_t *job = &(*ret_message)->job_array[i];
        if (task ? job->array_task_id == strtoul(task + 1, NULL, 10)
                 : JOB_ID(job) == bridge_request_job_id(request))
            return job;
    }
    return NULL;
}

/* Whether a job is completing: an update would make it wait for the requeue delay again. */
static bool is_still_leaving(struct libslurm *self,
                             const struct bridge_request *request)
{
    job_info_msg_t *message;
    pthread_mutex_lock(&self->lock);
    bool ran = strchr(request->job, '_') ||
               map_find(&self->started, bridge_request_job_id(request)) != MAP_NONE;
    pthread_mutex_unlock(&self->lock);
    if (!ran)
        return false;
    const slurm_job_info_t *job = query_job(request, &message);
    bool leaving = job && (job->job_state & JOB_COMPLETING) != 0;
    if (message)
        slurm_free_job_info_msg(message);
    return leaving;
}

static bool runs_on_nodes(const struct bridge_request *request, struct arena *scratch)
{
    job_info_msg_t *message;
    const slurm_job_info_t *job = query_job(request, &message);
    bool there = job && (job->job_state & JOB_STATE_BASE) == JOB_RUNNING &&
                 hostlist_same(job->nodes, request->nodes, scratch);
    if (message)
        slurm_free_job_info_msg(message);
    return there;
}

/*
 * Release the job on exactly these nodes, in one request.  The number of nodes is set to
 * that of the list: otherwise Slurm could add nodes of its own choice.
 */
static void start_job(struct libslurm *self, const struct bridge_request *request,
                      struct verb_result *result, struct arena *scratch)
{
    job_desc_msg_t desc;
    char gpus[64];
    if (is_still_leaving(self, request)) {
        verb_result_fail(result, ESLURM_TRANSITION_STATE_NO_UPDATE, true,
                         "the job has not left its last nodes yet");
        return;
    }
    slurm_init_job_desc_msg(&desc);
    desc.req_nodes = (char *)(uintptr_t)request->nodes;
    desc.min_nodes = desc.max_nodes = request->node_count;
    desc.begin_time = time(NULL);
    desc.priority = INFINITE;
    if (request->gpus_per_node > 0) {
        snprintf(gpus, sizeof(gpus), GRES_GPU ":%u", (unsigned)request->gpus_per_node);
        desc.tres_per_node = gpus;
    }
    if (request->tasks > 0)
        desc.num_tasks = request->tasks;
    if (request->cpus > 0)
        desc.min_cpus = desc.max_cpus = request->cpus;
    int code = update_job(&desc, request);
    if (code == ESLURM_JOB_NOT_PENDING && runs_on_nodes(request, scratch))
        code = 0; /* the request came twice */
    if (code != 0)
        set_error(result, code);
}

static void set_priority(const struct bridge_request *request, uint32_t priority,
                         time_t begin, struct verb_result *result)
{
    job_desc_msg_t desc;
    slurm_init_job_desc_msg(&desc);
    desc.priority = priority;
    if (request->theirs)
        desc.alloc_sid = ALLOC_SID_USER_HOLD;
    if (begin != 0)
        desc.begin_time = begin;
    if (request->nodes) {
        desc.req_nodes = (char *)(uintptr_t)request->nodes;
        desc.min_nodes = desc.max_nodes = request->node_count;
    } else if (request->unpin)
        desc.req_nodes = (char *)(uintptr_t) "";
    int code = update_job(&desc, request);
    if (code == ESLURM_JOB_NOT_PENDING && priority == INFINITE && begin < PARKED_UNTIL)
        code = 0; /* the job runs already */
    if (code != 0)
        set_error(result, code);
}

/* Set the administrator's comment.  An update would start a job with bad constraints. */
static void set_comment(const struct bridge_request *request,
                        struct verb_result *result)
{
    job_desc_msg_t desc;
    job_info_msg_t *message;
    slurm_init_job_desc_msg(&desc);
    const slurm_job_info_t *job = query_job(request, &message);
    if (job && (job->job_state & JOB_STATE_BASE) == JOB_PENDING &&
        job->state_reason == FAIL_BAD_CONSTRAINTS)
        desc.priority = 0;
    if (message)
        slurm_free_job_info_msg(message);
    desc.admin_comment = (char *)(uintptr_t)request->text;
    int code = update_job(&desc, request);
    if (code != 0)
        set_error(result, code);
}

static int requeue_with(const struct bridge_request *request, uint32_t flags)
{
    job_array_resp_msg_t *answers = NULL;
    char *job = (char *)(uintptr_t)request->job;
    int code = slurm_requeue2(job, flags, &answers) != 0 ? errno : 0;
    return last_error(answers, code);
}

/*
 * --- stopping a script before its requeue ---------------------------------------------
 *
 * slurmctld hears of the end of a script some milliseconds after it: a requeue in between is
 * accepted, and the job would run to its end twice.  So the shell of the script is stopped
 * first, by the slurmd of its node, and has to be there after that.  A requeue continues it.
 * A job of less than three seconds is not stopped, only looked for.
 */

#define STOP_TRIES 10
#define LAUNCH_S 3 /* within less a script may still be in its launch */
#define STOP_PAUSE_NS 10000000
#define OPERATOR_PAUSE_NS 100000000

enum script_state {
    SCRIPT_STOPPED, /* it cannot end any more                                */
    SCRIPT_ENDED,   /* and slurmctld knows: nothing is left to be requeued   */
    SCRIPT_HIDDEN,  /* it has not begun, or has ended a moment ago           */
    SCRIPT_UNKNOWN, /* it was not stopped                                    */
};

static void pause_ns(long ns)
{
    nanosleep(&(struct timespec){ .tv_nsec = ns }, NULL);
}

static bool has_processes(uint32_t id, const char *node)
{
    slurm_step_id_t step = { .job_id = id,
                             .step_id = SLURM_BATCH_SCRIPT,
                             .step_het_comp = NO_VAL };
    job_step_pids_response_msg_t *answer = NULL;
    bool found = false;
    if (slurm_job_step_get_pids(&step, (char *)(uintptr_t)node, &answer) != 0 ||
        !answer)
        return false;
    void *list = answer->pid_list ? slurm_list_iterator_create(answer->pid_list) : NULL;
    for (const job_step_pids_t *at; list && (at = slurm_list_next(list));)
        found = found || at->pid_cnt > 0;
    if (list)
        slurm_list_iterator_destroy(list);
    slurm_job_step_pids_response_msg_free(answer);
    return found;
}

static bool is_forbidden(int code)
{
    return code == ESLURM_USER_ID_MISSING || code == ESLURM_ACCESS_DENIED;
}

/* An operator may signal by way of slurmctld only, and that does not say what came of it. */
static enum script_state stop_as_operator(const struct bridge_request *request)
{
    if (slurm_kill_job2(request->job, SIGSTOP, KILL_JOB_BATCH, NULL) != 0)
        return SCRIPT_UNKNOWN;
    pause_ns(OPERATOR_PAUSE_NS);
    return SCRIPT_STOPPED;
}

/* Looked for twice: what is left of a process that has ended is reaped meanwhile. */
static bool keeps_processes(uint32_t id, const char *node)
{
    if (!has_processes(id, node))
        return false;
    pause_ns(STOP_PAUSE_NS);
    return has_processes(id, node);
}

/* A step that is being launched is not stopped: it could hang. */
static enum script_state stop_shell(const struct bridge_request *request,
                                    const slurm_job_info_t *job)
{
    uint32_t id = JOB_ID(job);
    bool young = time(NULL) - job->start_time < LAUNCH_S;
    int code = slurm_signal_job_step(id, SLURM_BATCH_SCRIPT, SIGCONT) != 0 ? errno : 0;
    if (is_forbidden(code))
        return young ? SCRIPT_UNKNOWN : stop_as_operator(request);
    if (code != 0 && code != ESRCH && is_no_answer(code))
        return SCRIPT_UNKNOWN;
    if (!keeps_processes(id, job->batch_host))
        return SCRIPT_HIDDEN;
    if (young)
        return SCRIPT_UNKNOWN;
    slurm_signal_job_step(id, SLURM_BATCH_SCRIPT, SIGSTOP);
    if (keeps_processes(id, job->batch_host))
        return SCRIPT_STOPPED;
    slurm_signal_job_step(id, SLURM_BATCH_SCRIPT, SIGCONT);
    return SCRIPT_HIDDEN;
}

static enum script_state stop_script_once(const struct bridge_request *request)
{
    job_info_msg_t *message;
    const slurm_job_info_t *job = query_job(request, &message);
    uint32_t state = job ? job->job_state : JOB_END;
    enum script_state answer = SCRIPT_UNKNOWN;
    if ((state & JOB_STATE_BASE) > JOB_SUSPENDED || (state & JOB_COMPLETING))
        answer = SCRIPT_ENDED;
    else if ((state & JOB_STATE_BASE) == JOB_RUNNING && job->batch_flag &&
             job->batch_host)
        answer = stop_shell(request, job);
    if (message)
        slurm_free_job_info_msg(message);
    return answer;
}

static enum script_state stop_script(const struct bridge_request *request)
{
    enum script_state state = stop_script_once(request);
    for (int i = 1; i < STOP_TRIES && state == SCRIPT_HIDDEN; i++) {
        pause_ns(STOP_PAUSE_NS);
        state = stop_script_once(request);
    }
    return state;
}

/* JOB_RUNNING: never requeue a job that has ended or was cancelled. */
static void requeue_job(const struct bridge_request *request,
                        struct verb_result *result)
{
    enum script_state script = stop_script(request);
    if (script == SCRIPT_HIDDEN)
        verb_result_fail(result, 0, true, "its script is beginning or ending");
    if (script == SCRIPT_HIDDEN || script == SCRIPT_ENDED)
        return;
    int code = requeue_with(request, JOB_REQUEUE_HOLD | JOB_RUNNING);
    /* It does not run, or is ending: that is what was requested. */
    if (code == ESLURM_JOB_PENDING || code == ESLURM_ALREADY_DONE ||
        code == ESLURM_JOB_FINISHED || code == ESLURM_TRANSITION_STATE_NO_UPDATE)
        code = 0;
    if (code != 0 && script == SCRIPT_STOPPED)
        slurm_kill_job2(request->job, SIGCONT, KILL_JOB_BATCH, NULL);
    if (code != 0)
        set_error(result, code);
}

/* Requeue a job that has ended, unless it was cancelled. */
static void requeue_ended_job(const struct bridge_request *request,
                              struct verb_result *result)
{
    job_info_msg_t *message;
    const slurm_job_info_t *job = query_job(request, &message);
    uint32_t state = job ? job->job_state : JOB_CANCELLED;
    bool gone = !job || (state & JOB_STATE_BASE) == JOB_CANCELLED;
    bool alive = (state & JOB_STATE_BASE) < JOB_COMPLETE;
    if (message)
        slurm_free_job_info_msg(message);
    if (gone)
        verb_result_fail(result, ESLURM_INVALID_JOB_ID, false,
                         "the job is gone for good");
    if (gone || alive)
        return;
    int code = requeue_with(request, JOB_REQUEUE_HOLD);
    if (code == ESLURM_JOB_PENDING)
        code = 0;
    if (code != 0)
        set_error(result, code);
}

static void signal_job(const struct bridge_request *request, int number, uint16_t flags,
                       struct verb_result *result)
{
    if (slurm_kill_job2(request->job, (uint16_t)number, flags, NULL) != 0)
        set_error(result, errno);
}

static void cancel_job(const struct bridge_request *request, struct verb_result *result)
{
    signal_job(request, SIGKILL, 0, result);
    if (result->code == ESLURM_ALREADY_DONE || result->code == ESLURM_JOB_FINISHED)
        *result = (struct verb_result){ .ok = true };
}

static void read_script(const struct bridge_request *request,
                        struct verb_result *result, struct buf *text)
{
    char *bytes = NULL;
    size_t count = 0;
    FILE *file = memory_checked(open_memstream(&bytes, &count));
    int r =
        slurm_job_batch_script(file, bridge_request_job_id(request)) != 0 ? errno : 0;
    fclose(file);
    if (r != 0)
        set_error(result, r);
    else
        buf_add(text, bytes,
                count < text->count_max ? count : text->count_max); /* its start */
    free(bytes);
}

static void libslurm_execute(void *own, const struct bridge_request *request,
                             struct verb_result *result, struct buf *text,
                             struct arena *scratch)
{
    static const uint16_t flags[] = { [SIGNAL_BATCH] = KILL_JOB_BATCH,
                                      [SIGNAL_STEPS] = 0,
                                      [SIGNAL_ALL] = KILL_FULL_JOB };
    switch (request->verb) {
    case VERB_START:
        start_job(own, request, result, scratch);
        break;
    case VERB_SIGNAL:
        signal_job(request, request->signal, flags[request->to], result);
        break;
    case VERB_EVICT:
        requeue_job(request, result);
        break;
    case VERB_REVIVE:
        requeue_ended_job(request, result);
        break;
    case VERB_HOLD:
        set_priority(request, 0, 0, result);
        break;
    case VERB_RELEASE:
        set_priority(request, INFINITE,
                     request->begin > 0 ? (time_t)request->begin : time(NULL), result);
        break;
    case VERB_PARK:
        set_priority(request, INFINITE, PARKED_UNTIL, result);
        break;
    case VERB_CANCEL:
        cancel_job(request, result);
        break;
    case VERB_COMMENT:
        set_comment(request, result);
        break;
    case VERB_SCRIPT:
        read_script(request, result, text);
        break;
    case VERB_POLL:
        break; /* not for drivers */
    }
}

/* --- polling -------------------------------------------------------------------------- */

static const enum bridge_state states[] = {
    [JOB_PENDING] = BRIDGE_PENDING,     [JOB_RUNNING] = BRIDGE_RUNNING,
    [JOB_SUSPENDED] = BRIDGE_SUSPENDED, [JOB_COMPLETE] = BRIDGE_COMPLETED,
    [JOB_CANCELLED] = BRIDGE_CANCELLED, [JOB_FAILED] = BRIDGE_FAILED,
    [JOB_TIMEOUT] = BRIDGE_TIMEOUT,     [JOB_NODE_FAIL] = BRIDGE_NODE_FAIL,
    [JOB_PREEMPTED] = BRIDGE_PREEMPTED, [JOB_BOOT_FAIL] = BRIDGE_BOOT_FAIL,
    [JOB_DEADLINE] = BRIDGE_DEADLINE,   [JOB_OOM] = BRIDGE_OUT_OF_MEMORY,
};

/* The library has these names too, but no header declares them. */
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

/* The reason as scontrol prints it: as one word. */
static const char *reason_name(const slurm_job_info_t *job, struct arena *scratch)
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

static const char *find_user_name(struct libslurm *self, const slurm_job_info_t *job)
{
    if (job->user_name && *job->user_name)
        return job->user_name;
    uint32_t known = map_find(&self->user_index, job->user_id);
    if (known != MAP_NONE)
        return self->user[known];
    struct passwd about, *found = NULL;
    char room[4096], number[32];
    getpwuid_r(job->user_id, &about, room, sizeof(room), &found);
    snprintf(number, sizeof(number), "%u", (unsigned)job->user_id);
    const char *name = arena_text(&self->users, found ? found->pw_name : number);
    if (self->user_count < sizeof(self->user) / sizeof(self->user[0])) {
        map_put(&self->user_index, job->user_id, self->user_count);
        self->user[self->user_count++] = name;
    }
    return name;
}

/* 0 for the values with which Slurm says "none". */
static uint32_t known_number(uint32_t number)
{
    return number == NO_VAL || number == INFINITE ? 0 : number;
}

static uint32_t known_small_number(uint16_t number)
{
    return number == NO_VAL16 || number == INFINITE16 ? 0 : number;
}

/* The allocation, node by node; the library has both lists in the same order. */
static void set_allocation(struct slurm_job *job, const slurm_job_info_t *info,
                           struct arena *scratch)
{
    struct hostlist nodes;
    if (!info->nodes || info->gres_detail_cnt == 0 || !info->gres_detail_str ||
        hostlist_expand(info->nodes, scratch, &nodes, NULL) < 0)
        return;
    uint32_t count =
        nodes.count < info->gres_detail_cnt ? nodes.count : info->gres_detail_cnt;
    struct slurm_share *shares = arena_array(scratch, struct slurm_share, count);
    for (uint32_t i = 0; i < count; i++)
        shares[i] = (struct slurm_share){ nodes.names[i], info->gres_detail_str[i] };
    job->allocation = shares;
    job->allocation_count = count;
}

static void set_demand(struct slurm_job *job, const slurm_job_info_t *info)
{
    job->time_limit_s = (int64_t)known_number(info->time_limit) * 60;
    job->min_nodes = known_number(info->num_nodes);
    job->max_nodes = known_number(info->max_nodes);
    job->tasks = known_number(info->num_tasks);
    job->tasks_per_node = known_small_number(info->ntasks_per_node);
    job->sockets_per_node = known_small_number(info->sockets_per_node);
    job->cpus = known_number(info->num_cpus);
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

static void set_output(struct slurm_job *job, const slurm_job_info_t *info,
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

static void report_job(struct libslurm *self, const slurm_job_info_t *info,
                       const struct slurm_observer *observer, struct arena *scratch)
{
    uint32_t state = info->job_state & JOB_STATE_BASE;
    struct slurm_job job = {
        .id = JOB_ID(info),
        .array_id = info->array_job_id,
        .array_task = info->array_job_id ? info->array_task_id : NO_VAL,
        .array_limit = info->array_job_id ? known_number(info->array_max_tasks) : 0,
        .array_tasks = info->array_task_str,
        .het_id = known_number(info->het_job_id),
        .name = info->name,
        .user = find_user_name(self, info),
        .uid = info->user_id,
        .partition = info->partition,
        .state =
            state < sizeof(states) / sizeof(states[0]) ? states[state] : BRIDGE_UNKNOWN,
        .reason = reason_name(info, scratch),
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
    set_demand(&job, info);
    set_output(&job, info, scratch);
    set_allocation(&job, info, scratch);
    observer->job(observer->self, &job);
}

static bool has_run(const slurm_job_info_t *job)
{
    return job->restart_cnt > 0 || (job->job_state & JOB_COMPLETING) != 0 ||
           (job->job_state & JOB_STATE_BASE) != JOB_PENDING;
}

/* A job that never ran cannot be completing, and need not be queried before its start. */
static void store_started_jobs(struct libslurm *self, const job_info_msg_t *list)
{
    pthread_mutex_lock(&self->lock);
    map_release(&self->started);
    self->started = (struct map){ 0 };
    for (uint32_t i = 0; i < list->record_count; i++)
        if (has_run(&list->job_array[i]))
            map_put(&self->started, JOB_ID(&list->job_array[i]), 1);
    pthread_mutex_unlock(&self->lock);
}

static int poll_jobs(struct libslurm *self, const struct slurm_observer *observer,
                     struct slurm_poll *poll, struct arena *scratch, struct error *err)
{
    job_info_msg_t *list = NULL;
    if (slurm_load_jobs(self->jobs_at, &list, SHOW_ALL | SHOW_DETAIL | SHOW_LOCAL) != 0)
        return errno == SLURM_NO_CHANGE_IN_DATA ? 0 : no_answer(err, "jobs");
    store_started_jobs(self, list);
    for (uint32_t i = 0; i < list->record_count; i++)
        if (JOB_ID(&list->job_array[i]) != 0)
            report_job(self, &list->job_array[i], observer, scratch);
    self->jobs_at = list->last_update;
    poll->jobs = true;
    slurm_free_job_info_msg(list);
    return 0;
}

static void add_partition(struct libslurm *self, const char *node, const char *name)
{
    uint64_t key = hash_text(node);
    uint32_t index = map_find(&self->partition_index, key);
    if (index == MAP_NONE) {
        index = self->partition_list_count++;
        map_put(&self->partition_index, key, index);
        self->partition_lists[index] = arena_text(&self->partitions, name);
        return;
    }
    size_t room = strlen(self->partition_lists[index]) + strlen(name) + 2;
    char *both = arena_array(&self->partitions, char, room);
    snprintf(both, room, "%s,%s", self->partition_lists[index], name);
    self->partition_lists[index] = both;
}

/* Load which node is in which partitions, which records of nodes do not have. */
static int poll_partitions(struct libslurm *self, struct arena *scratch,
                           struct error *err)
{
    partition_info_msg_t *list = NULL;
    time_t now = time(NULL);
    if (self->partitions_at != 0 && self->partitions_asked == now)
        return 0; /* they seldom change: not at every poll of one second */
    self->partitions_asked = now;
    if (slurm_load_partitions(self->partitions_at, &list, SHOW_ALL | SHOW_LOCAL) != 0)
        return errno == SLURM_NO_CHANGE_IN_DATA ? 0 : no_answer(err, "partitions");
    map_release(&self->partition_index);
    self->partition_index = (struct map){ 0 };
    arena_reset(&self->partitions);
    self->partition_lists = arena_array(&self->partitions, const char *, HOSTLIST_MAX);
    self->partition_list_count = 0;
    for (uint32_t i = 0; i < list->record_count; i++) {
        const partition_info_t *partition = &list->partition_array[i];
        struct hostlist nodes;
        if (!partition->name || !partition->nodes ||
            hostlist_expand(partition->nodes, scratch, &nodes, NULL) < 0)
            continue;
        for (uint32_t n = 0;
             n < nodes.count && self->partition_list_count < HOSTLIST_MAX; n++)
            add_partition(self, nodes.names[n], partition->name);
    }
    self->partitions_at = list->last_update;
    self->nodes_at = 0; /* load all nodes again: their partitions may have changed */
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

static void report_node(struct libslurm *self, const node_info_t *info,
                        const struct slurm_observer *observer)
{
    uint32_t index = map_find(&self->partition_index, hash_text(info->name));
    struct slurm_node node = {
        .name = info->name,
        .partitions = index == MAP_NONE ? "" : self->partition_lists[index],
        .gres = info->gres,
        .gres_used = info->gres_used,
        .cpus = info->cpus,
        .mem_mib = info->real_memory,
        .up = is_up(info->node_state),
        .drain = (info->node_state & (NODE_STATE_DRAIN | NODE_STATE_MAINT)) != 0,
        .reason = info->reason && *info->reason ? info->reason : NULL,
        .features = info->features_act,
    };
    observer->node(observer->self, &node);
}

static int poll_nodes(struct libslurm *self, const struct slurm_observer *observer,
                      struct slurm_poll *poll, struct error *err)
{
    node_info_msg_t *list = NULL;
    if (slurm_load_node(self->nodes_at, &list, SHOW_ALL | SHOW_DETAIL | SHOW_LOCAL) !=
        0)
        return errno == SLURM_NO_CHANGE_IN_DATA ? 0 : no_answer(err, "nodes");
    for (uint32_t i = 0; i < list->record_count; i++)
        if (list->node_array[i].name)
            report_node(self, &list->node_array[i], observer);
    self->nodes_at = list->last_update;
    poll->nodes = true;
    slurm_free_node_info_msg(list);
    return 0;
}

static int libslurm_poll(void *own, bool all, const struct slurm_observer *observer,
                         struct slurm_poll *ret_poll, struct arena *scratch,
                         struct error *err)
{
    struct libslurm *self = own;
    if (all)
        self->jobs_at = self->nodes_at = self->partitions_at = 0;
    int r = poll_partitions(self, scratch, err);
    if (r == 0)
        r = poll_nodes(self, observer, ret_poll, err);
    if (r == 0)
        r = poll_jobs(self, observer, ret_poll, scratch, err);
    if (r < 0)
        self->jobs_at = self->nodes_at = self->partitions_at = 0;
    return r;
}

/* --- start -------------------------------------------------------------------------- */

static void copy_text(char *to, size_t size, const char *from)
{
    snprintf(to, size, "%s", from ? from : "");
}

static int libslurm_site(void *own, struct slurm_site *ret_site, struct error *err)
{
    slurm_conf_t *conf = NULL;
    if (slurm_load_ctl_conf(0, &conf) != 0)
        return no_answer(err, "slurmctld");
    copy_text(ret_site->version, sizeof(ret_site->version), conf->version);
    snprintf(ret_site->built, sizeof(ret_site->built), "%d.%02d",
             (int)SLURM_VERSION_MAJOR(SLURM_VERSION_NUMBER),
             (int)SLURM_VERSION_MINOR(SLURM_VERSION_NUMBER));
    copy_text(ret_site->cluster, sizeof(ret_site->cluster), conf->cluster_name);
    copy_text(ret_site->priority_type, sizeof(ret_site->priority_type),
              conf->priority_type);
    copy_text(ret_site->scheduler, sizeof(ret_site->scheduler), conf->sched_params);
    copy_text(ret_site->submit_plugins, sizeof(ret_site->submit_plugins),
              conf->job_submit_plugins);
    ret_site->kill_wait_s = conf->kill_wait;
    ret_site->min_job_age_s = conf->min_job_age;
    ret_site->requeue = conf->job_requeue != 0;
    ret_site->file_append = conf->job_file_append != 0;
#if SLURM_VERSION_NUMBER < SLURM_VERSION_NUM(25, 11, 0)
    slurm_free_ctl_conf(
        conf); /* later releases have no such call; it is loaded rarely */
#endif
    return 0;
}

/* With a bad configuration the library ends the process: explain that at exit. */
static bool opened;

static void explain_exit(void)
{
    if (!opened)
        fputs("berth-slurm: Slurm's library found no settings it can use: is there a "
              "slurm.conf in /etc/slurm, or where SLURM_CONF says?\n",
              stderr);
}

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
    atexit(explain_exit);
    slurm_init(NULL);
    opened = true;
    return 0;
}

const struct slurm_driver slurm_driver_libslurm = {
    .name = "libslurm",
    .self_size = sizeof(struct libslurm),
    .open = libslurm_open,
    .site = libslurm_site,
    .poll = libslurm_poll,
    .execute = libslurm_execute,
};
