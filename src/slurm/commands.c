/*
 * commands.c - Slurm through scontrol, squeue and scancel.
 *
 * For sites that cannot build against their Slurm.  Each verb costs a process or two, each
 * look three; and a job that is leaving is only seen to be leaving, not what it will be.
 */
#include "slurm/slurm_driver.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "slurm/hostlist.h"
#include "slurm/bridge_request.h"
#include "slurm/scontrol.h"
#include "slurm/spawn.h"

#define OUTPUT_MAX_BYTES (256u << 20)
#define PATIENCE_S 30
#define PARKED_UNTIL "2036-12-31T00:00:00"

struct commands {
    struct buf jobs, owners, nodes; /* what was printed last */
};

/* What Slurm says, with its number in slurm_errno.h. */
static const struct {
    const char *says;
    int code;
    bool transient;
} sayings[] = {
    { "Unable to contact slurm controller", 1800, true },
    { "Protocol authentication error", 1007, true },
    { "Zero Bytes were transmitted", 5000, true },
    { "Socket timed out", 5004, true },
    { "Connection re", 104, true },
    { "Access/permission denied", 2002, false },
    { "Invalid user id", 2010, false },
    { "Invalid job id", 2017, false },
    { "can not be altered now", 2020, true },
    { "already completing or completed", 2021, false },
    { "Job is pending execution", 2024, false },
    { "presently disabled", 2037, false },
    { "no longer pending execution", 2073, false },
    { "already finished", 2084, false },
    { "batch jobs", 2039, false },
};

enum {
    SAYS_ALTERED = 2020,
    SAYS_DONE = 2021,
    SAYS_PENDING = 2024,
    SAYS_NOT_PENDING = 2073,
    SAYS_FINISHED = 2084,
};

/* --- looking ------------------------------------------------------------------------ */

static int ask(const char *const *words, struct buf *output, struct error *err)
{
    char said[200];
    buf_reset(output);
    int r = spawn_wait(words, PATIENCE_S, output, said, sizeof(said), err);
    if (r < 0)
        return r == -ENOENT ? r : -EAGAIN;
    if (r != 0)
        return error_set(err, -EAGAIN, "%s: %s", words[0], said[0] ? said : "failed");
    if (output->full)
        return error_set(err, -EAGAIN, "%s printed too much", words[0]);
    return 0;
}

static int commands_look(void *own, bool afresh, const struct slurm_observer *eyes,
                         struct slurm_poll *ret_look, struct arena *scratch,
                         struct error *err)
{
    static const char *const nodes[] = { "scontrol", "-o",   "-d", "-a",
                                         "show",     "node", NULL };
    static const char *const jobs[] = { "scontrol", "-o",  "-d", "-a",
                                        "show",     "job", NULL };
    /* After the jobs, so that it knows them all. */
    static const char *const owners[] = { "squeue", "-h", "-a",    "-r", "-t",
                                          "all",    "-o", "%A %U", NULL };
    struct commands *self = own;
    struct job_owners whose;
    int r = ask(nodes, &self->nodes, err);
    if (r == 0)
        r = ask(jobs, &self->jobs, err);
    if (r == 0)
        r = ask(owners, &self->owners, err);
    if (r < 0)
        return r;
    job_owners_read(self->owners.bytes ? self->owners.bytes : "", self->owners.count,
                    &whose);
    if (self->nodes.count > 0)
        scontrol_nodes(self->nodes.bytes, eyes, scratch);
    if (self->jobs.count > 0)
        scontrol_jobs(self->jobs.bytes, &whose, eyes, scratch);
    job_owners_release(&whose);
    ret_look->jobs = ret_look->nodes = true;
    return 0;
}

/* --- verbs -------------------------------------------------------------------------- */

/* Run it; what went wrong is in the answer. */
static void order(const char *const *words, struct verb_result *answer,
                  struct buf *output)
{
    char said[200];
    struct error err = { "" };
    struct buf unwanted;
    buf_init(&unwanted, 65536);
    int r = spawn_wait(words, PATIENCE_S, output ? output : &unwanted, said,
                       sizeof(said), &err);
    buf_release(&unwanted);
    *answer = (struct verb_result){ .ok = true };
    if (r < 0)
        verb_result_fail(answer, 0, r == -ETIMEDOUT, "%s", err.text);
    else if (r != 0) {
        verb_result_fail(answer, 0, false, "%s", said[0] ? said : "it failed");
        for (size_t i = 0; i < sizeof(sayings) / sizeof(sayings[0]); i++)
            if (strstr(said, sayings[i].says)) {
                answer->code = sayings[i].code;
                answer->transient = sayings[i].transient;
                break;
            }
    }
}

static void forgive(struct verb_result *answer, int code)
{
    if (!answer->ok && answer->code == code)
        *answer = (struct verb_result){ .ok = true };
}

/* One job, as the parser saw it. */
struct sight {
    const struct bridge_request *request;
    struct arena *scratch;
    bool seen;
    bool pending;
    bool running;
    bool cancelled;
    bool completing;
    bool runs_there;
    bool bad_constraints;
};

static bool same_nodes(const char *nodes, const struct bridge_request *request,
                       struct arena *scratch)
{
    struct hostlist has, wants;
    if (!nodes || !request->nodes || hostlist_expand(nodes, scratch, &has, NULL) < 0 ||
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

static void see_job(void *self, const struct slurm_job *job)
{
    struct sight *sight = self;
    const char *task = strchr(sight->request->job, '_');
    if (task ? job->array_task != strtoul(task + 1, NULL, 10)
             : job->id != bridge_request_job_id(sight->request))
        return;
    sight->seen = true;
    sight->pending = strcmp(job->state, "PENDING") == 0;
    sight->running = strcmp(job->state, "RUNNING") == 0;
    sight->cancelled = strcmp(job->state, "CANCELLED") == 0;
    sight->completing = job->completing;
    sight->runs_there =
        sight->running && same_nodes(job->nodes, sight->request, sight->scratch);
    sight->bad_constraints = job->reason && strcmp(job->reason, "BadConstraints") == 0;
}

static void see_doubt(void *self, uint32_t id, const char *why)
{
}

/* The state of one job, for the verbs that depend on it. */
static struct sight peek(const struct bridge_request *request, struct arena *scratch)
{
    struct sight sight = { .request = request, .scratch = scratch };
    const struct slurm_observer eyes = { .self = &sight,
                                         .job = see_job,
                                         .doubt = see_doubt };
    const char *const show[] = { "scontrol", "-o",         "-d", "show",
                                 "job",      request->job, NULL };
    const char *const owner[] = { "squeue", "-h",         "-a", "-r",    "-t", "all",
                                  "-j",     request->job, "-o", "%A %U", NULL };
    struct buf jobs, owners;
    struct job_owners whose;
    buf_init(&jobs, 1 << 24);
    buf_init(&owners, 1 << 20);
    if (ask(show, &jobs, NULL) == 0 && ask(owner, &owners, NULL) == 0 &&
        jobs.count > 0 && owners.count > 0) {
        job_owners_read(owners.bytes, owners.count, &whose);
        scontrol_jobs(jobs.bytes, &whose, &eyes, scratch);
        job_owners_release(&whose);
    }
    buf_release(&jobs);
    buf_release(&owners);
    return sight;
}

#define WORDS_MAX 16

struct command_words {
    const char *list[WORDS_MAX];
    uint32_t count;
    struct arena *scratch;
};

static void add_word(struct command_words *words, const char *key, const char *value)
{
    size_t room = strlen(key) + strlen(value) + 1;
    char *word = arena_array(words->scratch, char, room);
    snprintf(word, room, "%s%s", key, value);
    words->list[words->count++] = word;
}

static void add_number(struct command_words *words, const char *key, uint32_t number)
{
    char text[16];
    snprintf(text, sizeof(text), "%u", number);
    if (number > 0)
        add_word(words, key, text);
}

static struct command_words update_of(const struct bridge_request *request,
                                      struct arena *scratch)
{
    struct command_words words = { .list = { "scontrol", "update" },
                                   .count = 2,
                                   .scratch = scratch };
    add_word(&words, "JobId=", request->job);
    return words;
}

static void release(const struct bridge_request *request, struct verb_result *answer)
{
    const char *const words[] = { "scontrol", "release", request->job, NULL };
    order(words, answer, NULL);
}

/*
 * scontrol cannot lift a hold and say where in one request.  First the place, with the hold
 * confirmed: a job with bad constraints would come alive too early otherwise.
 */
static void pin(const struct bridge_request *request, const char *begin,
                struct verb_result *answer, struct arena *scratch)
{
    struct command_words words = update_of(request, scratch);
    char range[40];
    add_word(&words, "Priority=", "0");
    add_word(&words, "StartTime=", begin);
    if (request->nodes) {
        snprintf(range, sizeof(range), "%u-%u", request->node_count,
                 request->node_count);
        add_word(&words, "ReqNodeList=", request->nodes);
        add_word(&words, "NumNodes=", range);
    } else if (request->unpin)
        add_word(&words, "ReqNodeList=", "");
    add_number(&words, "Gres=gpu:", request->gpus_per_node);
    add_number(&words, "NumTasks=", request->tasks);
    add_number(&words, "NumCPUs=", request->cpus);
    order(words.list, answer, NULL);
}

static void start(const struct bridge_request *request, struct verb_result *answer,
                  struct arena *scratch)
{
    struct sight sight = peek(request, scratch);
    if (sight.runs_there)
        return;
    if (sight.completing) {
        verb_result_fail(answer, SAYS_ALTERED, true,
                         "the job has not left its last nodes yet");
        return;
    }
    pin(request, "now", answer, scratch);
    if (answer->ok)
        release(request, answer);
}

static void evict(const struct bridge_request *request, struct verb_result *answer)
{
    /* Incomplete: never bring back a job that has ended or was cancelled. */
    const char *const words[] = { "scontrol", "requeuehold", "Incomplete", request->job,
                                  NULL };
    order(words, answer, NULL);
    forgive(answer, SAYS_PENDING);
    forgive(answer, SAYS_DONE);
    forgive(answer, SAYS_FINISHED);
    forgive(answer, SAYS_ALTERED);
}

/* Only one that has ended, and not because somebody wanted it gone. */
static void revive(const struct bridge_request *request, struct verb_result *answer,
                   struct arena *scratch)
{
    struct sight sight = peek(request, scratch);
    if (sight.running || sight.pending)
        return;
    if (sight.completing) {
        verb_result_fail(answer, SAYS_ALTERED, true,
                         "the job has not left its nodes yet");
        return;
    }
    if (!sight.seen || sight.cancelled) {
        verb_result_fail(answer, 0, false, "the job is gone for good");
        return;
    }
    const char *const words[] = { "scontrol", "requeuehold", request->job, NULL };
    order(words, answer, NULL);
    forgive(answer, SAYS_PENDING);
}

/* scancel tries again for half a minute where there is nobody to be told. */
static void signal_job(const struct bridge_request *request, struct verb_result *answer,
                       struct arena *scratch)
{
    static const char *const flags[] = {
        [SIGNAL_BATCH] = "--batch", [SIGNAL_STEPS] = "--quiet", [SIGNAL_ALL] = "--full"
    };
    char number[32];
    if (!peek(request, scratch).running) {
        verb_result_fail(answer, SAYS_ALTERED, true, "the job does not run");
        return;
    }
    snprintf(number, sizeof(number), "--signal=%d", request->signal);
    const char *const words[] = { "scancel", number, flags[request->to], request->job,
                                  NULL };
    order(words, answer, NULL);
}

static void cancel(const struct bridge_request *request, struct verb_result *answer)
{
    const char *const words[] = { "scancel", request->job, NULL };
    order(words, answer, NULL);
    forgive(answer, SAYS_DONE);
    forgive(answer, SAYS_FINISHED);
}

static void comment(const struct bridge_request *request, struct verb_result *answer,
                    struct arena *scratch)
{
    struct command_words words = update_of(request, scratch);
    if (peek(request, scratch).bad_constraints)
        add_word(&words, "Priority=", "0");
    add_word(&words, "AdminComment=", request->text);
    order(words.list, answer, NULL);
}

static void script(const struct bridge_request *request, struct verb_result *answer,
                   struct buf *text)
{
    const char *const words[] = { "scontrol",   "write", "batch_script",
                                  request->job, "-",     NULL };
    order(words, answer, text);
    if (answer->ok && text->count == 0) /* scontrol says why, and that all is well */
        verb_result_fail(answer, 0, false, "there is no script of job %s",
                         request->job);
}

static void hold(const struct bridge_request *request, struct verb_result *answer,
                 struct arena *scratch)
{
    struct command_words words = update_of(request, scratch);
    add_word(&words, "Priority=", "0");
    if (request->unpin)
        add_word(&words, "ReqNodeList=", "");
    order(words.list, answer, NULL);
    if (!answer->ok || !request->theirs)
        return;
    const char *const theirs[] = { "scontrol", "uhold", request->job, NULL };
    order(theirs, answer, NULL);
}

/* As scontrol reads a time. */
static const char *begin_of(const struct bridge_request *request, struct arena *scratch)
{
    time_t at = (time_t)request->begin;
    struct tm date;
    char *text = arena_array(scratch, char, 32);
    if (at == 0 || !localtime_r(&at, &date))
        return "now";
    strftime(text, 32, "%Y-%m-%dT%H:%M:%S", &date);
    return text;
}

static void commands_carry_out(void *own, const struct bridge_request *request,
                               struct verb_result *answer, struct buf *text,
                               struct arena *scratch)
{
    switch (request->verb) {
    case VERB_START:
        start(request, answer, scratch);
        break;
    case VERB_SIGNAL:
        signal_job(request, answer, scratch);
        break;
    case VERB_EVICT:
        evict(request, answer);
        break;
    case VERB_REVIVE:
        revive(request, answer, scratch);
        break;
    case VERB_HOLD:
        hold(request, answer, scratch);
        break;
    case VERB_RELEASE:
        pin(request, begin_of(request, scratch), answer, scratch);
        if (answer->ok)
            release(request, answer);
        forgive(answer, SAYS_NOT_PENDING); /* it runs: nothing is left to release */
        break;
    case VERB_PARK:
        pin(request, PARKED_UNTIL, answer, scratch);
        if (answer->ok)
            release(request, answer);
        break;
    case VERB_CANCEL:
        cancel(request, answer);
        break;
    case VERB_COMMENT:
        comment(request, answer, scratch);
        break;
    case VERB_SCRIPT:
        script(request, answer, text);
        break;
    case VERB_POLL:
        break; /* not for drivers */
    }
}

/* --- beginning ---------------------------------------------------------------------- */

static int commands_site(void *own, struct slurm_site *ret_site, struct error *err)
{
    static const char *const words[] = { "scontrol", "show", "config", NULL };
    struct buf text;
    char number[64];
    buf_init(&text, 1 << 20);
    int r = ask(words, &text, err);
    if (r == 0 && text.count > 0) {
        const char *said = text.bytes;
        scontrol_setting(said, "SLURM_VERSION", ret_site->version,
                         sizeof(ret_site->version));
        scontrol_setting(said, "ClusterName", ret_site->cluster,
                         sizeof(ret_site->cluster));
        scontrol_setting(said, "PriorityType", ret_site->priority_type,
                         sizeof(ret_site->priority_type));
        scontrol_setting(said, "SchedulerParameters", ret_site->scheduler,
                         sizeof(ret_site->scheduler));
        scontrol_setting(said, "JobSubmitPlugins", ret_site->submit_plugins,
                         sizeof(ret_site->submit_plugins));
        scontrol_setting(said, "KillWait", number, sizeof(number));
        ret_site->kill_wait_s = strtol(number, NULL, 10);
        scontrol_setting(said, "MinJobAge", number, sizeof(number));
        ret_site->min_job_age_s = strtol(number, NULL, 10);
        scontrol_setting(said, "JobRequeue", number, sizeof(number));
        ret_site->requeue = strtol(number, NULL, 10) != 0;
        scontrol_setting(said, "JobFileAppend", number, sizeof(number));
        ret_site->file_append = strtol(number, NULL, 10) != 0;
    }
    buf_release(&text);
    return r;
}

/* What the user has set for himself must not change what we read. */
static int commands_open(void *own, struct error *err)
{
    static const char *const unset[] = {
        "SQUEUE_FORMAT",  "SQUEUE_STATES",     "SQUEUE_USERS",  "SQUEUE_PARTITION",
        "SQUEUE_ARRAY",   "SQUEUE_SORT",       "SQUEUE_NAMES",  "SQUEUE_QOS",
        "SQUEUE_ACCOUNT", "SQUEUE_FEDERATION", "SCANCEL_CTLD",  "SCANCEL_INTERACTIVE",
        "SCANCEL_NAME",   "SCANCEL_PARTITION", "SCANCEL_STATE", "SCANCEL_USER",
        "SCANCEL_QOS",    "SCANCEL_ACCOUNT",   "SCANCEL_HURRY", "SCANCEL_VERBOSE",
        "SLURM_CLUSTERS", "SCONTROL_ALL"
    };
    struct commands *self = own;
    const char *conf = getenv("SLURM_CONF");
    FILE *file = conf ? fopen(conf, "re") : NULL;
    if (conf && !file)
        return error_set(err, -errno, "SLURM_CONF=%s: %s", conf, strerror(errno));
    if (file)
        fclose(file);
    for (size_t i = 0; i < sizeof(unset) / sizeof(unset[0]); i++)
        unsetenv(unset[i]);
    setenv("LC_ALL", "C", 1);
    setenv("SLURM_TIME_FORMAT", "%s", 1);
    setenv("SLURM_BITSTR_LEN", "0", 1); /* task numbers in full */
    buf_init(&self->jobs, OUTPUT_MAX_BYTES);
    buf_init(&self->owners, OUTPUT_MAX_BYTES);
    buf_init(&self->nodes, OUTPUT_MAX_BYTES);
    return 0;
}

const struct slurm_driver slurm_driver_commands = {
    .name = "commands",
    .self_size = sizeof(struct commands),
    .open = commands_open,
    .site = commands_site,
    .look = commands_look,
    .carry_out = commands_carry_out,
};
