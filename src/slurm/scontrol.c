/* scontrol.c - parse the output of scontrol. */
#include "slurm/scontrol.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/arena.h"
#include "base/map.h"
#include "slurm/slurm_driver.h"

/* Keys with values of one word.  Those before KEY_MUST_COUNT must occur exactly once. */
enum scontrol_key {
    KEY_USER,
    KEY_PRIORITY,
    KEY_STATE,
    KEY_REASON,
    KEY_DEPENDENCY,
    KEY_REQUEUE,
    KEY_RESTARTS,
    KEY_BATCH,
    KEY_EXIT,
    KEY_TIME_LIMIT,
    KEY_SUBMIT,
    KEY_START,
    KEY_END,
    KEY_PARTITION,
    KEY_REQ_NODES,
    KEY_EXC_NODES,
    KEY_NODES,
    KEY_NUM_NODES,
    KEY_CPUS,
    KEY_TASKS,
    KEY_MUST_COUNT,
    KEY_ARRAY_ID = KEY_MUST_COUNT,
    KEY_ARRAY_TASK,
    KEY_ARRAY_LIMIT,
    KEY_HET,
    KEY_SOCKETS,
    KEY_PER_NODE,
    KEY_MEM_NODE,
    KEY_MEM_CPU,
    KEY_FEATURES,
    KEY_TRES_JOB,
    KEY_TRES_NODE,
    KEY_TRES_SOCKET,
    KEY_TRES_TASK,
    KEY_COUNT,
};

static const char *const key_names[KEY_COUNT] = {
    [KEY_USER] = "UserId",
    [KEY_PRIORITY] = "Priority",
    [KEY_STATE] = "JobState",
    [KEY_REASON] = "Reason",
    [KEY_DEPENDENCY] = "Dependency",
    [KEY_REQUEUE] = "Requeue",
    [KEY_RESTARTS] = "Restarts",
    [KEY_BATCH] = "BatchFlag",
    [KEY_EXIT] = "ExitCode",
    [KEY_TIME_LIMIT] = "TimeLimit",
    [KEY_SUBMIT] = "SubmitTime",
    [KEY_START] = "StartTime",
    [KEY_END] = "EndTime",
    [KEY_PARTITION] = "Partition",
    [KEY_REQ_NODES] = "ReqNodeList",
    [KEY_EXC_NODES] = "ExcNodeList",
    [KEY_NODES] = "NodeList",
    [KEY_NUM_NODES] = "NumNodes",
    [KEY_CPUS] = "NumCPUs",
    [KEY_TASKS] = "NumTasks",
    [KEY_ARRAY_ID] = "ArrayJobId",
    [KEY_ARRAY_TASK] = "ArrayTaskId",
    [KEY_ARRAY_LIMIT] = "ArrayTaskThrottle",
    [KEY_HET] = "HetJobId",
    [KEY_SOCKETS] = "Socks/Node",
    [KEY_PER_NODE] = "NtasksPerN:B:S:C",
    [KEY_MEM_NODE] = "MinMemoryNode",
    [KEY_MEM_CPU] = "MinMemoryCPU",
    [KEY_FEATURES] = "Features",
    [KEY_TRES_JOB] = "TresPerJob",
    [KEY_TRES_NODE] = "TresPerNode",
    [KEY_TRES_SOCKET] = "TresPerSocket",
    [KEY_TRES_TASK] = "TresPerTask",
};

/* A value that may contain blanks ends before one of these keys. */
static const char *const keys_after_text[] = {
    "UserId",        "SLUID",         "Comment",     "AdminComment", "SystemComment",
    "Extra",         "StdErr",        "StdIn",       "StdOut",       "Power",
    "WorkDir",       "MailUser",      "MailType",    "TresPerJob",   "TresPerNode",
    "TresPerSocket", "TresPerTask",   "CpusPerTres", "MemPerTres",   "TresBind",
    "TresFreq",      "NtasksPerTRES", "Switches",    "Nodes",        "SubmitLine",
};
#define AFTER_TEXT_COUNT (sizeof(keys_after_text) / sizeof(keys_after_text[0]))

/* --- owners ------------------------------------------------------------------------- */

/* The owner of each job: "JOB UID" on each line, from squeue. */
struct job_owners {
    struct map uid_of;
};

static void read_owners(const char *text, size_t count, struct job_owners *owners)
{
    const char *end = text + count;
    *owners = (struct job_owners){ 0 };
    while (text < end) {
        unsigned long id, uid;
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        char line[64];
        size_t length = (size_t)((stop ? stop : end) - text);
        if (length < sizeof(line)) {
            memcpy(line, text, length);
            line[length] = '\0';
            if (sscanf(line, "%lu %lu", &id, &uid) == 2 && id < SLURM_NONE &&
                uid < MAP_NONE)
                map_put(&owners->uid_of, id, (uint32_t)uid);
        }
        text += length + 1;
    }
}

/* --- finding values ----------------------------------------------------------------- */

/* Find the next "KEY=" at the start of a word; returns what follows it, or NULL. */
static char *find_key(char *text, const char *key)
{
    size_t length = strlen(key);
    for (char *at = text; (at = strstr(at, key)) != NULL; at += length)
        if ((at == text || isspace((unsigned char)at[-1])) && at[length] == '=')
            return at + length + 1;
    return NULL;
}

/* Copy one word; NULL where Slurm prints "(null)" or "N/A". */
static const char *copy_word(const char *value, struct arena *scratch)
{
    size_t length = strcspn(value, " \t\n");
    if (length == 0 || (length == 6 && memcmp(value, "(null)", 6) == 0) ||
        (length == 3 && memcmp(value, "N/A", 3) == 0))
        return NULL;
    char *word = arena_array(scratch, char, length + 1);
    memcpy(word, value, length);
    return word;
}

/* Copy a value that may contain blanks. */
static const char *copy_text(char *value, struct arena *scratch)
{
    char *end = value + strlen(value);
    for (size_t i = 0; i < AFTER_TEXT_COUNT; i++) {
        char *next = find_key(value, keys_after_text[i]);
        if (next && next - strlen(keys_after_text[i]) - 1 < end && next > value)
            end = next - strlen(keys_after_text[i]) - 1;
    }
    while (end > value && isspace((unsigned char)end[-1]))
        end--;
    if (end == value || (end - value == 6 && memcmp(value, "(null)", 6) == 0))
        return NULL;
    char *text = arena_array(scratch, char, (size_t)(end - value) + 1);
    memcpy(text, value, (size_t)(end - value));
    return text;
}

/* Copy a path.  Only the owner sees it, so a forged one does no harm. */
static const char *copy_path(char *record, const char *key, struct arena *scratch)
{
    char *value = find_key(record, key);
    return value ? copy_text(value, scratch) : NULL;
}

static uint32_t parse_number(const char *text)
{
    unsigned long number = text ? strtoul(text, NULL, 10) : 0;
    return number < SLURM_NONE ? (uint32_t)number : 0;
}

/* Parse seconds since 1970, or a date in local time. */
static int64_t parse_time(const char *text)
{
    struct tm date = { .tm_isdst = -1 };
    if (!text || !isdigit((unsigned char)*text))
        return 0;
    if (!strchr(text, '-'))
        return strtoll(text, NULL, 10);
    if (!strptime(text, "%Y-%m-%dT%H:%M:%S", &date))
        return 0;
    return (int64_t)mktime(&date);
}

/* Parse "10:00", "1:00:00", "2-00:00:00"; 0 for UNLIMITED. */
static int64_t parse_duration(const char *text)
{
    int64_t days = 0, parts[3] = { 0, 0, 0 };
    int count = 0;
    if (!text || !isdigit((unsigned char)*text))
        return 0;
    const char *dash = strchr(text, '-');
    if (dash) {
        days = strtol(text, NULL, 10);
        text = dash + 1;
    }
    for (; count < 3 && isdigit((unsigned char)*text); count++) {
        char *end;
        parts[count] = strtol(text, &end, 10);
        text = *end == ':' ? end + 1 : "";
    }
    if (days > 36500 || parts[0] > 1000000 || parts[1] > 1000000 || parts[2] > 1000000)
        return 0;
    if (count == 2)
        return days * 86400 + parts[0] * 60 + parts[1];
    return days * 86400 + parts[0] * 3600 + parts[1] * 60 + parts[2];
}

/* Parse "5G", "100M", "0"; numbers without a unit are mebibytes. */
static uint64_t parse_mebibytes(const char *text)
{
    char *end;
    double number = text ? strtod(text, &end) : 0;
    if (!text || !(number >= 0) || number > 1e12)
        return 0;
    switch (toupper((unsigned char)*end)) {
    case 'K':
        return (uint64_t)(number / 1024);
    case 'G':
        return (uint64_t)(number * 1024);
    case 'T':
        return (uint64_t)(number * 1024 * 1024);
    default:
        return (uint64_t)number;
    }
}

/* --- jobs --------------------------------------------------------------------------- */

/* Read the state; while a job is leaving, scontrol does not print what it will be. */
static void read_state(struct slurm_job *job, const char *text)
{
    static const struct {
        const char *text;
        enum bridge_state state;
    } others[] = {
        { "SPECIAL_EXIT", BRIDGE_PENDING },    { "RESV_DEL_HOLD", BRIDGE_PENDING },
        { "CONFIGURING", BRIDGE_RUNNING },     { "RESIZING", BRIDGE_RUNNING },
        { "SIGNALING", BRIDGE_RUNNING },       { "STOPPED", BRIDGE_RUNNING },
        { "STAGE_OUT", BRIDGE_RUNNING },       { "REQUEUED", BRIDGE_COMPLETING },
        { "REQUEUE_HOLD", BRIDGE_COMPLETING }, { "REQUEUE_FED", BRIDGE_COMPLETING },
    };
    job->state = bridge_state_find(text);
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        if (strcmp(text, others[i].text) == 0)
            job->state = others[i].state;
    job->completing = job->state == BRIDGE_COMPLETING;
}

/* Read "nobody(65534)". */
static bool read_user(struct slurm_job *job, const char *text, struct arena *scratch)
{
    const char *open = text ? strrchr(text, '(') : NULL;
    if (!open || open == text || !isdigit((unsigned char)open[1]))
        return false;
    char *name = arena_text(scratch, text);
    name[open - text] = '\0';
    job->user = name;
    job->uid = parse_number(open + 1);
    return true;
}

/* "3" is a task; "1-3,5-9%3" are tasks without their own record, at most 3 at once. */
static void read_array(struct slurm_job *job, const char *const *words,
                       struct arena *scratch)
{
    const char *task = words[KEY_ARRAY_TASK];
    job->array_task = SLURM_NONE;
    if (!words[KEY_ARRAY_ID])
        return;
    job->array_id = parse_number(words[KEY_ARRAY_ID]);
    job->array_limit = parse_number(words[KEY_ARRAY_LIMIT]);
    if (!task)
        return;
    const char *limit = strchr(task, '%');
    if (limit && job->array_limit == 0)
        job->array_limit = parse_number(limit + 1);
    if (task[strspn(task, "0123456789")] == '\0') {
        job->array_task = parse_number(task);
        return;
    }
    char *tasks = arena_text(scratch, task);
    tasks[strcspn(tasks, "%")] = '\0';
    job->array_tasks = tasks;
}

/* Read "Nodes=n[1-2] CPU_IDs=0 Mem=0 GRES=gpu:v100:2(IDX:0-1)", once per group of nodes. */
static void read_allocation(struct slurm_job *job, char *record, struct arena *scratch)
{
    char *at = find_key(record, "CoreSpec"), *end = find_key(record, "MinCPUsNode");
    uint32_t count = 0;
    if (!at || !end || end < at)
        return;
    for (char *next = at; (next = find_key(next, "Nodes")) && next < end;)
        count++;
    struct slurm_share *shares = arena_array(scratch, struct slurm_share, count);
    for (uint32_t i = 0; i < count; i++) {
        at = find_key(at, "Nodes");
        char *gres = find_key(at, "GRES");
        shares[i].nodes = copy_word(at, scratch);
        if (!shares[i].nodes)
            shares[i].nodes = "";
        shares[i].gres = gres && gres < end ? copy_word(gres, scratch) : NULL;
    }
    job->allocation = shares;
    job->allocation_count = count;
}

static void read_demand(struct slurm_job *job, const char *const *words)
{
    const char *range = words[KEY_NUM_NODES] ? strchr(words[KEY_NUM_NODES], '-') : NULL;
    job->time_limit_s = parse_duration(words[KEY_TIME_LIMIT]);
    job->min_nodes = parse_number(words[KEY_NUM_NODES]);
    job->max_nodes = range ? parse_number(range + 1) : 0;
    job->cpus = parse_number(words[KEY_CPUS]);
    job->tasks = parse_number(words[KEY_TASKS]);
    job->tasks_per_node = parse_number(words[KEY_PER_NODE]);
    job->sockets_per_node = parse_number(words[KEY_SOCKETS]);
    job->mem_per_cpu = words[KEY_MEM_CPU] != NULL;
    job->mem_mib =
        parse_mebibytes(job->mem_per_cpu ? words[KEY_MEM_CPU] : words[KEY_MEM_NODE]);
    job->tres_per_job = words[KEY_TRES_JOB];
    job->tres_per_node = words[KEY_TRES_NODE];
    job->tres_per_socket = words[KEY_TRES_SOCKET];
    job->tres_per_task = words[KEY_TRES_TASK];
    job->req_nodes = words[KEY_REQ_NODES];
    job->exc_nodes = words[KEY_EXC_NODES];
    job->features = words[KEY_FEATURES];
    job->dependency = words[KEY_DEPENDENCY];
}

/* Find all values of one word; false: one is missing or occurs twice. */
static bool find_words(char *record, const char **words, struct arena *scratch)
{
    for (int i = 0; i < KEY_COUNT; i++) {
        char *value = find_key(record, key_names[i]);
        words[i] = value ? copy_word(value, scratch) : NULL;
        if (value ? find_key(value, key_names[i]) != NULL : i < KEY_MUST_COUNT)
            return false;
    }
    return words[KEY_STATE] && words[KEY_PARTITION];
}

/* Read a record; false: it cannot be trusted. */
static bool read_job(char *record, struct slurm_job *job, struct arena *scratch)
{
    const char *words[KEY_COUNT];
    if (!find_words(record, words, scratch) ||
        !read_user(job, words[KEY_USER], scratch))
        return false;
    char *name = find_key(record, "JobName");
    char *comment = find_key(record, "Comment");
    char *admin = find_key(record, "AdminComment");
    job->name = name ? copy_text(name, scratch) : NULL;
    job->comment = comment ? copy_text(comment, scratch) : NULL;
    job->admin_comment = admin ? copy_text(admin, scratch) : NULL;
    job->command = copy_path(record, "Command", scratch);
    job->folder = copy_path(record, "WorkDir", scratch);
    job->output = copy_path(record, "StdOut", scratch);
    job->errors = copy_path(record, "StdErr", scratch);
    job->partition = words[KEY_PARTITION];
    job->reason = words[KEY_REASON];
    job->priority = parse_number(words[KEY_PRIORITY]);
    job->requeue = parse_number(words[KEY_REQUEUE]) != 0;
    job->batch = parse_number(words[KEY_BATCH]) != 0;
    job->restarts = parse_number(words[KEY_RESTARTS]);
    job->exit_code = parse_number(words[KEY_EXIT]);
    const char *colon = words[KEY_EXIT] ? strchr(words[KEY_EXIT], ':') : NULL;
    job->signal = colon ? parse_number(colon + 1) : 0;
    job->submit = parse_time(words[KEY_SUBMIT]);
    job->start = parse_time(words[KEY_START]);
    job->end = parse_time(words[KEY_END]);
    job->nodes = words[KEY_NODES];
    job->het_id = parse_number(words[KEY_HET]);
    read_state(job, words[KEY_STATE]);
    read_array(job, words, scratch);
    read_demand(job, words);
    read_allocation(job, record, scratch);
    return true;
}

/* Whether a record starts here: "JobId=12 " at the start of a line. */
static bool starts_record(const char *line)
{
    return strncmp(line, "JobId=", 6) == 0 && isdigit((unsigned char)line[6]);
}

static char *find_next_record(char *text)
{
    for (char *at = text; (at = strchr(at, '\n')) != NULL; at++)
        if (starts_record(at + 1))
            return at + 1;
    return NULL;
}

/* A record, and whether it can be trusted by itself. */
struct scontrol_record {
    struct slurm_job job;
    bool good;
};

/* Split the text into records; a record with another owner than the job's is left out. */
static uint32_t read_records(char *text, const struct job_owners *owners,
                             struct scontrol_record *records, struct map *seen,
                             struct arena *scratch)
{
    uint32_t count = 0;
    for (char *next; text; text = next) {
        next = find_next_record(text);
        if (next)
            next[-1] = '\0';
        struct scontrol_record *record = &records[count];
        *record = (struct scontrol_record){ .job.id = parse_number(text + 6) };
        uint32_t id = record->job.id, uid = map_find(&owners->uid_of, id);
        if (id == 0 || uid == MAP_NONE)
            continue; /* squeue does not know the job: it is gone, or forged */
        record->good = read_job(text, &record->job, scratch);
        if (record->good && record->job.uid != uid)
            continue; /* forged by another user */
        uint32_t before = map_find(seen, id);
        map_put(seen, id, before == MAP_NONE ? 1 : before + 1);
        count++;
    }
    return count;
}

void scontrol_jobs(char *text, const char *owned, size_t owned_bytes,
                   const struct slurm_observer *observer, struct arena *scratch)
{
    struct job_owners owners;
    struct map seen = { 0 }; /* how many records a job has */
    uint32_t room = 1;
    if (!starts_record(text))
        text = find_next_record(text);
    for (char *at = text; at && (at = find_next_record(at)) != NULL;)
        room++;
    struct scontrol_record *records =
        arena_array(scratch, struct scontrol_record, room);
    read_owners(owned, owned_bytes, &owners);
    uint32_t count = read_records(text, &owners, records, &seen, scratch);
    map_release(&owners.uid_of);
    for (uint32_t i = 0; i < count; i++) {
        const struct slurm_job *job = &records[i].job;
        char why[160];
        snprintf(why, sizeof(why),
                 "job %u: its name or comment looks like words of Slurm's own",
                 job->id);
        /* Of two records one was forged by the job's owner: neither is used. */
        if (records[i].good && map_find(&seen, job->id) == 1)
            observer->job(observer->self, job);
        else
            observer->unreadable(observer->self, job->id, why);
    }
    map_release(&seen);
}

/* --- nodes -------------------------------------------------------------------------- */

static bool has_flag(const char *state, const char *flag)
{
    const char *at = state ? strstr(state, flag) : NULL;
    size_t length = strlen(flag);
    return at && (at == state || at[-1] == '+') &&
           (at[length] == '\0' || strchr("+*~#!%$@^-", at[length]));
}

/* Whether a node is up: "IDLE", "MIXED+DRAIN", "DOWN*" (a star: it does not respond). */
static bool is_up(const char *state)
{
    static const char *const gone[] = { "NOT_RESPONDING", "FAIL",        "POWERED_DOWN",
                                        "POWERING_DOWN",  "INVALID_REG", NULL };
    if (!state || strchr(state, '*'))
        return false;
    for (int i = 0; gone[i]; i++)
        if (has_flag(state, gone[i]))
            return false;
    return has_flag(state, "IDLE") || has_flag(state, "ALLOCATED") ||
           has_flag(state, "MIXED") || has_flag(state, "COMPLETING");
}

static const char *find_word(char *line, const char *key, struct arena *scratch)
{
    char *value = find_key(line, key);
    return value ? copy_word(value, scratch) : NULL;
}

/* The reason without its author and date: "text [root@2026-…]". */
static const char *read_node_reason(char *line, struct arena *scratch)
{
    char *value = find_key(line, "Reason");
    if (!value)
        return NULL;
    char *text = arena_text(scratch, value), *who = strrchr(text, '[');
    if (who && who > text && who[-1] == ' ')
        who[-1] = '\0';
    return *text ? text : NULL;
}

static void read_node(char *line, const struct slurm_observer *observer,
                      struct arena *scratch)
{
    const char *state = find_word(line, "State", scratch);
    struct slurm_node node = {
        .name = find_word(line, "NodeName", scratch),
        .partitions = find_word(line, "Partitions", scratch),
        .gres = find_word(line, "Gres", scratch),
        .gres_used = find_word(line, "GresUsed", scratch),
        .cpus = parse_number(find_word(line, "CPUTot", scratch)),
        .mem_mib = parse_number(find_word(line, "RealMemory", scratch)),
        .up = is_up(state),
        .drain = has_flag(state, "DRAIN") || has_flag(state, "MAINT") ||
                 has_flag(state, "MAINTENANCE"),
        .reason = read_node_reason(line, scratch),
        .features = find_word(line, "ActiveFeatures", scratch),
    };
    if (node.name)
        observer->node(observer->self, &node);
}

void scontrol_nodes(char *text, const struct slurm_observer *observer,
                    struct arena *scratch)
{
    for (char *line = text; line && *line;) {
        char *next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        if (strncmp(line, "NodeName=", 9) == 0)
            read_node(line, observer, scratch);
        line = next;
    }
}

/* --- settings ----------------------------------------------------------------------- */

void scontrol_setting(const char *text, const char *key, char *value, size_t size)
{
    size_t length = strlen(key);
    value[0] = '\0';
    for (const char *line = text; line; line = strchr(line, '\n')) {
        if (*line == '\n')
            line++;
        const char *equals = strstr(line, "= ");
        if (strncmp(line, key, length) != 0 || !isspace((unsigned char)line[length]) ||
            !equals)
            continue;
        size_t count = strcspn(equals + 2, "\n");
        if (count >= 6 && memcmp(equals + 2, "(null)", 6) == 0)
            return;
        snprintf(value, size, "%.*s", (int)(count < 1024 ? count : 1024), equals + 2);
        return;
    }
}
