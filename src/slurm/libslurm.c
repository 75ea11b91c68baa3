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
#include "slurm/slurm_driver.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "slurm/hostlist.h"
#include "slurm/libslurm_internal.h"
#include "slurm/bridge_request.h"

#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(23, 11, 0)
#define GRES_GPU "gres/gpu"
#else
#define GRES_GPU "gres:gpu"
#endif

/* Never: far enough that nothing starts, near enough for 32 bits. */
#define PARKED_UNTIL ((time_t)2114380800) /* 2037-01-01 */

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

/* --- verbs -------------------------------------------------------------------------- */

static void say_no(struct verb_result *answer, int code)
{
    verb_result_fail(answer, code, is_transient(code), "%s", slurm_strerror(code));
}

/* An update answers for each task of an array that it touched; the worst counts. */
static int update(job_desc_msg_t *wish, const struct bridge_request *request)
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
static const slurm_job_info_t *peek(const struct bridge_request *request,
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

static bool holds_exactly(const char *nodes, const struct bridge_request *request,
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
static bool still_leaving(struct libslurm *self, const struct bridge_request *request)
{
    job_info_msg_t *message;
    pthread_mutex_lock(&self->lock);
    bool ran = strchr(request->job, '_') ||
               map_find(&self->ran, bridge_request_job_id(request)) != MAP_NONE;
    pthread_mutex_unlock(&self->lock);
    if (!ran)
        return false;
    const slurm_job_info_t *job = peek(request, &message);
    bool leaving = job && (job->job_state & JOB_COMPLETING) != 0;
    if (message)
        slurm_free_job_info_msg(message);
    return leaving;
}

static bool runs_there(const struct bridge_request *request, struct arena *scratch)
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
static void start(struct libslurm *self, const struct bridge_request *request,
                  struct verb_result *answer, struct arena *scratch)
{
    job_desc_msg_t wish;
    char gpus[64];
    if (still_leaving(self, request)) {
        verb_result_fail(answer, ESLURM_TRANSITION_STATE_NO_UPDATE, true,
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

static void set_priority(const struct bridge_request *request, uint32_t priority,
                         time_t begin, struct verb_result *answer)
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
static void comment(const struct bridge_request *request, struct verb_result *answer)
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

static int requeue(const struct bridge_request *request, uint32_t flags)
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
static void evict(const struct bridge_request *request, struct verb_result *answer)
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
static void revive(const struct bridge_request *request, struct verb_result *answer)
{
    job_info_msg_t *message;
    const slurm_job_info_t *job = peek(request, &message);
    uint32_t state = job ? job->job_state : JOB_CANCELLED;
    bool gone = !job || (state & JOB_STATE_BASE) == JOB_CANCELLED;
    bool alive = (state & JOB_STATE_BASE) < JOB_COMPLETE;
    if (message)
        slurm_free_job_info_msg(message);
    if (gone)
        verb_result_fail(answer, ESLURM_INVALID_JOB_ID, false,
                         "the job is gone for good");
    if (gone || alive)
        return;
    int code = requeue(request, JOB_REQUEUE_HOLD);
    if (code == ESLURM_JOB_PENDING)
        code = 0;
    if (code != 0)
        say_no(answer, code);
}

static void signal_job(const struct bridge_request *request, int number, uint16_t flags,
                       struct verb_result *answer)
{
    if (slurm_kill_job2(request->job, (uint16_t)number, flags, NULL) != 0)
        say_no(answer, errno);
}

static void cancel(const struct bridge_request *request, struct verb_result *answer)
{
    signal_job(request, SIGKILL, 0, answer);
    if (answer->code == ESLURM_ALREADY_DONE || answer->code == ESLURM_JOB_FINISHED)
        *answer = (struct verb_result){ .ok = true };
}

static void script(const struct bridge_request *request, struct verb_result *answer,
                   struct buf *text)
{
    char *bytes = NULL;
    size_t count = 0;
    FILE *file = open_memstream(&bytes, &count);
    if (!file)
        abort();
    int r =
        slurm_job_batch_script(file, bridge_request_job_id(request)) != 0 ? errno : 0;
    fclose(file);
    if (r != 0)
        say_no(answer, r);
    else
        buf_add(text, bytes,
                count < text->count_max ? count : text->count_max); /* its beginning */
    free(bytes);
}

static void libslurm_carry_out(void *own, const struct bridge_request *request,
                               struct verb_result *answer, struct buf *text,
                               struct arena *scratch)
{
    static const uint16_t flags[] = { [SIGNAL_BATCH] = KILL_JOB_BATCH,
                                      [SIGNAL_STEPS] = 0,
                                      [SIGNAL_ALL] = KILL_FULL_JOB };
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

/* With settings it cannot use, the library ends the process: this is the last word. */
static bool opened;

static void say_settings(void)
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
    atexit(say_settings);
    slurm_init(NULL);
    opened = true;
    return 0;
}

const struct slurm_driver slurm_driver_libslurm = {
    .name = "libslurm",
    .self_size = sizeof(struct libslurm),
    .open = libslurm_open,
    .site = libslurm_site,
    .look = libslurm_poll,
    .carry_out = libslurm_carry_out,
};
