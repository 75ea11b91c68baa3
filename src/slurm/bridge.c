/*
 * bridge.c - three threads: one reads requests of berthd, one executes them, one polls.
 *
 *     in ──► read ──► queue ──► worker ──► Slurm
 *             │                   │ a verb was executed
 *             └── poll verb ──► poller ◄── bell, timer
 *     out ◄── done ─────────┴─────┘ what changed
 *
 * A call to Slurm can block for many seconds when slurmctld is down, and for most of a
 * minute when munge is.  With a thread each, neither polls nor verbs delay noticing the end
 * of 'in', and the reader reports a poll that takes too long.
 */
#include "slurm/bridge.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/grow.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/named_pipe.h"
#include "slurm/bridge_messages.h"
#include "slurm/bridge_request.h"
#include "slurm/job_scope.h"
#include "slurm/site_check.h"
#include "slurm/slurm_driver.h"

#define NODE_KEY (UINT64_C(1) << 63)
#define NOT_REPORTED 0
#define QUEUE_MAX 16384
#define POLLS_MAX 1024
#define MS_PER_S 1000
#define POLL_SLOW_MS 1000 /* pause when nothing happens                        */
#define POLL_FAST_MS 20   /* pause after a change: doubled from poll to poll    */
#define POLL_SHORT_MS 10  /* a poll that costs next to nothing                 */
#define POLL_LATE_MS 5000 /* a poll that takes longer counts as no answer      */
#define DRAIN_MS 5000     /* time for queued requests after the end of 'in'    */

struct queued_request {
    struct queued_request *next;
    struct arena arena;
    struct bridge_request request;
};

struct slurm_bridge {
    const struct bridge_setup *setup;
    void *driver; /* its private state */

    pthread_mutex_t out_lock;

    pthread_mutex_t lock; /* guards all that follows */
    pthread_cond_t changed;
    struct queued_request *first, *last;
    uint32_t queued;          /* with the one that is executed now      */
    bool away;                /* Slurm did not answer the last poll     */
    int64_t poll_ms;          /* when the running poll began; 0: none   */
    int64_t polls[POLLS_MAX]; /* 'seq' of the requests that wait for a poll */
    uint32_t poll_count;
    struct job_scope scope;   /* jobs of the last poll that brought any */
    uint64_t begun, finished; /* number of the last poll that has       */

    int kick; /* an eventfd: poll now */
    int bell; /* a named pipe; -1: none */
};

/* --- writing lines ------------------------------------------------------------------ */

/* Write one line at a time.  Without a reader, the program ends. */
static void write_line(struct slurm_bridge *bridge, const struct buf *line)
{
    struct buf whole;
    buf_init(&whole, BRIDGE_LINE_MAX + 1);
    buf_add(&whole, line->bytes, line->count);
    buf_add(&whole, "\n", 1);
    pthread_mutex_lock(&bridge->out_lock);
    for (size_t done = 0; done < whole.count;) {
        ssize_t n = write(bridge->setup->out, whole.bytes + done, whole.count - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            _exit(0);
        done += (size_t)n;
    }
    pthread_mutex_unlock(&bridge->out_lock);
    buf_release(&whole);
}

static void write_text(struct slurm_bridge *bridge, const char *key, const char *text)
{
    struct buf line;
    buf_init(&line, BRIDGE_LINE_MAX - 1);
    bridge_message_text(&line, key, text);
    write_line(bridge, &line);
    buf_release(&line);
}

static void write_flag(struct slurm_bridge *bridge, const char *key)
{
    struct buf line;
    buf_init(&line, BRIDGE_LINE_MAX - 1);
    bridge_message_flag(&line, key);
    write_line(bridge, &line);
    buf_release(&line);
}

static void write_done(struct slurm_bridge *bridge, int64_t seq,
                       const struct verb_result *result, const char *text)
{
    struct buf line;
    buf_init(&line, BRIDGE_LINE_MAX - 1);
    bridge_message_done(&line, seq, result, text);
    write_line(bridge, &line);
    buf_release(&line);
}

void verb_result_fail(struct verb_result *result, int code, bool transient,
                      const char *fmt, ...)
{
    va_list words;
    va_start(words, fmt);
    *result = (struct verb_result){ .code = code, .transient = transient };
    vsnprintf(result->error, sizeof(result->error), fmt, words);
    va_end(words);
}

/*
 * --- changes since the last poll ------------------------------------------------------
 *
 * Slurm reports everything or nothing; berthd wants the changes.  So each record becomes a
 * line, and a line is written when it differs from the last one of its job or node.
 */

/* A job or a node of the last poll. */
struct seen_record {
    uint64_t key;
    uint64_t line; /* hash of the last line */
    uint64_t poll; /* the last one that reported it */
    uint32_t id;   /* of a job; 0: a node */
    char *name;    /* of a node           */
};

struct poll_diff {
    struct slurm_bridge *bridge;
    struct map indices; /* key to an index of 'records' */
    struct seen_record *records;
    uint32_t count;
    uint32_t room;
    uint64_t poll;
    uint32_t reported;      /* lines since poll_diff_begin() */
    bool synced;            /* a whole list was reported */
    struct job_scope scope; /* of the jobs of this poll  */
    struct buf line;
    struct arena scratch;
};

/* The hash of a line; never NOT_REPORTED. */
static uint64_t hash_line(const void *bytes, size_t count)
{
    uint64_t hash = hash_bytes(HASH_BYTES_START, bytes, count);
    return hash != NOT_REPORTED ? hash : 1;
}

static void poll_diff_init(struct poll_diff *diff, struct slurm_bridge *bridge)
{
    *diff = (struct poll_diff){ .bridge = bridge };
    buf_init(&diff->line, BRIDGE_LINE_MAX - 1);
    arena_init(&diff->scratch, 65536);
}

/* Whether one of these ("a,b") is managed by Berth. */
static bool is_our_partition(const struct poll_diff *diff, const char *partitions)
{
    const struct bridge_setup *setup = diff->bridge->setup;
    for (uint32_t i = 0; i < setup->partition_count; i++)
        if (site_check_has_word(partitions, setup->partitions[i]))
            return true;
    return setup->partition_count == 0;
}

static struct seen_record *find_or_add_record(struct poll_diff *diff, uint64_t key,
                                              uint32_t id)
{
    uint32_t index = map_find(&diff->indices, key);
    if (index == MAP_NONE) {
        if (diff->count == diff->room)
            diff->records = grow_array(diff->records, &diff->room, diff->count + 1,
                                       sizeof(*diff->records));
        index = diff->count++;
        diff->records[index] = (struct seen_record){ .key = key, .id = id };
        map_put(&diff->indices, key, index);
    }
    diff->records[index].poll = diff->poll;
    return &diff->records[index];
}

static void report_line(struct poll_diff *diff)
{
    if (!diff->line.full)
        write_line(diff->bridge, &diff->line);
    diff->reported++;
}

/* Write the line unless it is the last one of this record. */
static void report_if_changed(struct poll_diff *diff, struct seen_record *record)
{
    uint64_t line = hash_line(diff->line.bytes, diff->line.count);
    if (record->line != line)
        report_line(diff);
    record->line = line;
}

static void observe_job(void *self, const struct slurm_job *job)
{
    struct poll_diff *diff = self;
    bool managed = is_our_partition(diff, job->partition);
    job_scope_add(&diff->scope, job, managed);
    if (!managed)
        return;
    struct seen_record *record = find_or_add_record(diff, job->id, job->id);
    buf_reset(&diff->line);
    bridge_message_job(&diff->line, job, &diff->scratch);
    arena_reset(&diff->scratch);
    report_if_changed(diff, record);
}

static void observe_node(void *self, const struct slurm_node *node)
{
    struct poll_diff *diff = self;
    if (!is_our_partition(diff, node->partitions) || !json_can_say(node->name))
        return;
    uint64_t key = NODE_KEY | hash_text(node->name);
    struct seen_record *record = find_or_add_record(diff, key, 0);
    if (!record->name)
        record->name = memory_text(node->name);
    buf_reset(&diff->line);
    bridge_message_node(&diff->line, node);
    report_if_changed(diff, record);
}

/* A job with an untrusted record stays as it was, which is reported once. */
static void observe_unreadable(void *self, uint32_t id, const char *why)
{
    struct poll_diff *diff = self;
    uint64_t hash = hash_line(why, strlen(why));
    if (id == 0)
        return;
    /* Only the poller changes the bridge's scope, and this is the poller. */
    job_scope_keep(&diff->scope, &diff->bridge->scope, id);
    struct seen_record *record = find_or_add_record(diff, id, id);
    if (record->line == hash)
        return;
    record->line = hash;
    buf_reset(&diff->line);
    bridge_message_text(&diff->line, "wrong", why);
    report_line(diff);
}

/* The observer for the driver. */
static struct slurm_observer poll_diff_begin(struct poll_diff *diff)
{
    diff->poll++;
    diff->reported = 0;
    job_scope_release(&diff->scope);
    return (struct slurm_observer){ .self = diff,
                                    .node = observe_node,
                                    .job = observe_job,
                                    .unreadable = observe_unreadable };
}

/* Remove a record; the last one takes its index. */
static void remove_record(struct poll_diff *diff, uint32_t index)
{
    free(diff->records[index].name);
    map_remove(&diff->indices, diff->records[index].key);
    struct seen_record *last = &diff->records[--diff->count];
    if (index == diff->count)
        return;
    diff->records[index] = *last;
    map_put(&diff->indices, last->key, index);
}

/* From now on requests may be about the jobs of this poll. */
static void publish_scope(struct poll_diff *diff)
{
    struct slurm_bridge *bridge = diff->bridge;
    pthread_mutex_lock(&bridge->lock);
    struct job_scope earlier = bridge->scope;
    bridge->scope = diff->scope;
    pthread_mutex_unlock(&bridge->lock);
    diff->scope = earlier;
}

/* Report what is gone, and after the first whole list that it is whole. */
static void poll_diff_end(struct poll_diff *diff, const struct slurm_poll *poll)
{
    for (uint32_t i = 0; i < diff->count;) {
        const struct seen_record *record = &diff->records[i];
        bool shown = record->id != 0 ? poll->jobs : poll->nodes;
        if (!shown || record->poll == diff->poll) {
            i++;
            continue;
        }
        buf_reset(&diff->line);
        if (record->id != 0)
            bridge_message_gone(&diff->line, record->id);
        else /* it left the partitions, so that nothing can start there */
            bridge_message_node(&diff->line,
                                &(struct slurm_node){ .name = record->name });
        report_line(diff);
        remove_record(diff, i);
    }
    if (!diff->synced) {
        buf_reset(&diff->line);
        bridge_message_flag(&diff->line, "synced");
        report_line(diff);
    }
    diff->synced = true;
}

/* After a failure: report everything again at the next poll. */
static void poll_diff_forget(struct poll_diff *diff)
{
    for (uint32_t i = 0; i < diff->count; i++)
        diff->records[i].line = NOT_REPORTED;
    diff->synced = false;
}

/* --- polling ------------------------------------------------------------------------ */

static void poll_soon(struct slurm_bridge *bridge)
{
    uint64_t one = 1;
    ssize_t n = write(bridge->kick, &one, sizeof(one));
    (void)n; /* full: a poll is requested already */
}

/* Wait; true: the bell rang or a poll was requested. */
static bool wait_for_event(struct slurm_bridge *bridge, int64_t ms)
{
    struct pollfd wait[2] = { { .fd = bridge->kick, .events = POLLIN },
                              { .fd = bridge->bell, .events = POLLIN } };
    if (poll(wait, 2, ms > 0 ? (int)ms : 0) <= 0)
        return false;
    char rung[512];
    uint64_t kicked;
    while (bridge->bell >= 0 && read(bridge->bell, rung, sizeof(rung)) > 0)
        continue;
    ssize_t n = read(bridge->kick, &kicked, sizeof(kicked));
    (void)n;
    return true;
}

/* Report once that Slurm does not answer, by the thread that notices it first. */
static void report_away(struct slurm_bridge *bridge, const char *why)
{
    pthread_mutex_lock(&bridge->lock);
    bool news = !bridge->away;
    bridge->away = true;
    pthread_cond_broadcast(&bridge->changed);
    pthread_mutex_unlock(&bridge->lock);
    if (news)
        write_text(bridge, "away", why);
}

static bool is_away(struct slurm_bridge *bridge)
{
    pthread_mutex_lock(&bridge->lock);
    bool away = bridge->away;
    pthread_mutex_unlock(&bridge->lock);
    return away;
}

static void report_back(struct slurm_bridge *bridge)
{
    write_flag(bridge, "back");
    pthread_mutex_lock(&bridge->lock);
    bridge->away = false;
    pthread_mutex_unlock(&bridge->lock);
}

static void begin_poll(struct slurm_bridge *bridge, int64_t now_ms)
{
    pthread_mutex_lock(&bridge->lock);
    bridge->poll_ms = now_ms;
    bridge->begun++;
    pthread_mutex_unlock(&bridge->lock);
}

static void end_poll(struct slurm_bridge *bridge)
{
    pthread_mutex_lock(&bridge->lock);
    bridge->poll_ms = 0;
    bridge->finished = bridge->begun;
    pthread_cond_broadcast(&bridge->changed);
    pthread_mutex_unlock(&bridge->lock);
}

/* Called by the reader: the poller itself may be blocked. */
static void check_slow_poll(struct slurm_bridge *bridge)
{
    pthread_mutex_lock(&bridge->lock);
    int64_t begun = bridge->poll_ms;
    pthread_mutex_unlock(&bridge->lock);
    if (begun != 0 && clock_now_ms() - begun > POLL_LATE_MS)
        report_away(bridge, "Slurm takes long to answer");
}

/* Requests that arrived before this poll began are answered after it. */
static uint32_t count_polls(struct slurm_bridge *bridge)
{
    pthread_mutex_lock(&bridge->lock);
    uint32_t count = bridge->poll_count;
    pthread_mutex_unlock(&bridge->lock);
    return count;
}

static void answer_polls(struct slurm_bridge *bridge, uint32_t count,
                         const struct verb_result *result)
{
    int64_t seqs[POLLS_MAX];
    pthread_mutex_lock(&bridge->lock);
    memcpy(seqs, bridge->polls, count * sizeof(seqs[0]));
    bridge->poll_count -= count;
    memmove(bridge->polls, bridge->polls + count, bridge->poll_count * sizeof(seqs[0]));
    pthread_mutex_unlock(&bridge->lock);
    for (uint32_t i = 0; i < count; i++)
        write_done(bridge, seqs[i], result, NULL);
}

static void write_hello(struct slurm_bridge *bridge, const struct slurm_site *site)
{
    struct buf line;
    buf_init(&line, BRIDGE_LINE_MAX - 1);
    bridge_message_hello(&line, site, bridge->setup->driver->name, (int64_t)time(NULL));
    write_line(bridge, &line);
    buf_release(&line);
}

/* The state of the polling thread. */
struct poller {
    struct poll_diff diff;
    struct arena scratch;
    bool said_hello;
    int64_t pause_ms; /* until the next poll, if nothing happens */
};

/* Write the first line, for which Slurm has to be asked for the name of the cluster. */
static int write_hello_once(struct slurm_bridge *bridge, struct poller *poller,
                            struct error *err)
{
    struct slurm_site site = { 0 };
    if (poller->said_hello)
        return 0;
    int r = bridge->setup->driver->site(bridge->driver, &site, err);
    if (r < 0)
        return r;
    if (site_check_library_is_newer(&site))
        fprintf(stderr, "berth-slurm: libslurm %s is newer than slurmctld %s\n",
                site.built, site.version);
    write_hello(bridge, &site);
    poller->said_hello = true;
    return 0;
}

static int poll_once(struct slurm_bridge *bridge, struct poller *poller,
                     struct error *err)
{
    const struct slurm_driver *driver = bridge->setup->driver;
    struct slurm_poll poll = { 0 };
    int r = write_hello_once(bridge, poller, err);
    if (r < 0)
        return r;
    if (is_away(bridge)) {
        /* "back" comes before any record: so ask Slurm something small first. */
        struct slurm_site site = { 0 };
        r = driver->site(bridge->driver, &site, err);
        if (r < 0)
            return r;
        report_back(bridge);
    }
    struct slurm_observer observer = poll_diff_begin(&poller->diff);
    r = driver->poll(bridge->driver, !poller->diff.synced, &observer, &poll,
                     &poller->scratch, err);
    arena_reset(&poller->scratch);
    if (r == 0 && is_away(bridge)) /* the answer came too late */
        return error_set(err, -EAGAIN, "Slurm takes long to answer");
    if (r == 0 && poll.jobs)
        publish_scope(&poller->diff);
    if (r == 0)
        poll_diff_end(&poller->diff, &poll);
    return r;
}

/* The pause is short after a change and then grows. */
static int64_t next_pause(const struct poller *poller, bool away)
{
    if (away)
        return POLL_SLOW_MS;
    if (poller->diff.reported > 0 || poller->pause_ms <= 0)
        return POLL_FAST_MS;
    return 2 * poller->pause_ms < POLL_SLOW_MS ? 2 * poller->pause_ms : POLL_SLOW_MS;
}

static void sleep_ms(int64_t ms)
{
    struct timespec nap = { ms / MS_PER_S, ms % MS_PER_S * 1000000 };
    if (ms > 0)
        nanosleep(&nap, NULL);
}

static void *run_poller(void *self)
{
    struct slurm_bridge *bridge = self;
    struct poller poller = { .pause_ms = 0 };
    poll_diff_init(&poller.diff, bridge);
    arena_init(&poller.scratch, 1 << 20);
    for (;;) {
        struct error err = { "" };
        struct verb_result result = { .ok = true };
        uint32_t waiting = count_polls(bridge);
        int64_t begun = clock_now_ms();
        begin_poll(bridge, begun);
        int r = poll_once(bridge, &poller, &err);
        if (r < 0) {
            report_away(bridge, err.text);
            poll_diff_forget(&poller.diff);
            verb_result_fail(&result, 0, true, "%s", err.text);
        }
        end_poll(bridge);
        answer_polls(bridge, waiting, &result);
        poller.pause_ms = next_pause(&poller, r < 0);
        /* Polls take at most a third of the time of slurmctld, or half of it where a poll
         * takes only milliseconds. */
        int64_t least = clock_now_ms() - begun;
        if (least > POLL_SHORT_MS)
            least *= 2;
        if (least > POLL_SLOW_MS)
            least = POLL_SLOW_MS;
        sleep_ms(least);
        if (wait_for_event(bridge, poller.pause_ms - least))
            poller.pause_ms = POLL_FAST_MS / 2;
    }
    return NULL;
}

/* --- executing requests ------------------------------------------------------------- */

static struct queued_request *next_request(struct slurm_bridge *bridge, bool *ret_away)
{
    pthread_mutex_lock(&bridge->lock);
    while (!bridge->first)
        pthread_cond_wait(&bridge->changed, &bridge->lock);
    struct queued_request *queued = bridge->first;
    bridge->first = queued->next;
    if (!bridge->first)
        bridge->last = NULL;
    *ret_away = bridge->away;
    pthread_mutex_unlock(&bridge->lock);
    return queued;
}

static void finish_request(struct slurm_bridge *bridge, struct queued_request *queued)
{
    arena_release(&queued->arena);
    free(queued);
    pthread_mutex_lock(&bridge->lock);
    assert(bridge->queued > 0);
    bridge->queued--;
    pthread_cond_broadcast(&bridge->changed);
    pthread_mutex_unlock(&bridge->lock);
}

static enum job_scope_answer find_in_scope(struct slurm_bridge *bridge, const char *job,
                                           bool *ret_away)
{
    pthread_mutex_lock(&bridge->lock);
    enum job_scope_answer answer = job_scope_find(&bridge->scope, job);
    *ret_away = bridge->away;
    pthread_mutex_unlock(&bridge->lock);
    return answer;
}

/* Wait until a poll that begins from now on is over, or Slurm does not answer. */
static void wait_for_poll(struct slurm_bridge *bridge)
{
    poll_soon(bridge);
    pthread_mutex_lock(&bridge->lock);
    uint64_t before = bridge->begun;
    while (bridge->finished <= before && !bridge->away)
        pthread_cond_wait(&bridge->changed, &bridge->lock);
    pthread_mutex_unlock(&bridge->lock);
}

/*
 * Refuse a request about a job outside the managed partitions.  A job that was submitted
 * after the last poll is looked for once more.
 */
static bool check_scope(struct slurm_bridge *bridge, const char *job,
                        struct verb_result *result)
{
    bool away;
    if (bridge->setup->partition_count == 0)
        return true;
    enum job_scope_answer answer = find_in_scope(bridge, job, &away);
    if (answer == SCOPE_UNKNOWN) {
        wait_for_poll(bridge);
        answer = find_in_scope(bridge, job, &away);
    }
    if (answer == SCOPE_UNKNOWN && away)
        verb_result_fail(result, 0, true, "Slurm does not answer now");
    else if (answer != SCOPE_MANAGED)
        verb_result_fail(result, EPERM, false,
                         "there is no job %s in the partitions that Berth manages",
                         job);
    return answer == SCOPE_MANAGED;
}

/* A script may be in any encoding, JSON is UTF-8. */
static void replace_non_ascii(struct buf *text)
{
    for (size_t i = 0; i < text->count; i++)
        if ((unsigned char)text->bytes[i] >= 0x80 || text->bytes[i] == '\0')
            text->bytes[i] = '?';
}

static void *run_worker(void *self)
{
    struct slurm_bridge *bridge = self;
    struct buf text;
    /* Each byte may take six in JSON; the #SBATCH lines are at the start of a script. */
    buf_init(&text, BRIDGE_LINE_MAX / 8);
    for (;;) {
        bool away;
        struct queued_request *queued = next_request(bridge, &away);
        struct verb_result result = { .ok = true };
        buf_reset(&text);
        if (away)
            verb_result_fail(&result, 0, true, "Slurm does not answer now");
        else if (check_scope(bridge, queued->request.job, &result))
            bridge->setup->driver->execute(bridge->driver, &queued->request, &result,
                                           &text, &queued->arena);
        replace_non_ascii(&text);
        bool script = queued->request.verb == VERB_SCRIPT && result.ok;
        write_done(bridge, queued->request.seq, &result,
                   script ? text.count > 0 ? text.bytes : "" : NULL);
        finish_request(bridge, queued);
        poll_soon(bridge);
    }
    return NULL;
}

/* --- reading requests --------------------------------------------------------------- */

static void queue_poll(struct slurm_bridge *bridge, int64_t seq)
{
    struct verb_result result;
    pthread_mutex_lock(&bridge->lock);
    bool room = bridge->poll_count < POLLS_MAX;
    if (room)
        bridge->polls[bridge->poll_count++] = seq;
    pthread_mutex_unlock(&bridge->lock);
    if (!room) {
        verb_result_fail(&result, 0, true, "%d others wait for a look already",
                         POLLS_MAX);
        write_done(bridge, seq, &result, NULL);
    }
    poll_soon(bridge);
}

static void queue_request(struct slurm_bridge *bridge, struct queued_request *queued)
{
    pthread_mutex_lock(&bridge->lock);
    while (bridge->queued ==
           QUEUE_MAX) /* the queue is full: the next line is not read yet */
        pthread_cond_wait(&bridge->changed, &bridge->lock);
    if (bridge->last)
        bridge->last->next = queued;
    else
        bridge->first = queued;
    bridge->last = queued;
    bridge->queued++;
    pthread_cond_broadcast(&bridge->changed);
    pthread_mutex_unlock(&bridge->lock);
}

static void handle_line(struct slurm_bridge *bridge, const char *line, size_t count)
{
    struct error err = { "" };
    struct queued_request *queued = memory_checked(calloc(1, sizeof(*queued)));
    arena_init(&queued->arena, 1024);
    int r = bridge_request_read(line, count, &queued->arena, &queued->request, &err);
    if (r == 0 && queued->request.verb != VERB_POLL) {
        queue_request(bridge, queued);
        return;
    }
    if (r == 0)
        queue_poll(bridge, queued->request.seq);
    else if (queued->request.seq < 0)
        write_text(bridge, "wrong", err.text);
    else {
        struct verb_result result;
        verb_result_fail(&result, EINVAL, false, "%s", err.text);
        write_done(bridge, queued->request.seq, &result, NULL);
    }
    arena_release(&queued->arena);
    free(queued);
}

/* Read lines until the end of 'in'; the rest of a line that is too long is skipped. */
static void read_lines(struct slurm_bridge *bridge)
{
    struct buf line;
    char bytes[65536];
    bool skip = false;
    buf_init(&line, BRIDGE_LINE_MAX);
    for (;;) {
        struct pollfd wait = { .fd = bridge->setup->in, .events = POLLIN };
        int ready = poll(&wait, 1, POLL_LATE_MS / 10);
        check_slow_poll(bridge);
        if (ready == 0 || (ready < 0 && errno == EINTR))
            continue;
        ssize_t n = read(bridge->setup->in, bytes, sizeof(bytes));
        if (n < 0 && errno == EINTR)
            continue;
        if (n == 0)
            break;
        if (n < 0)
            break;
        for (const char *at = bytes, *end = bytes + n; at < end;) {
            const char *stop = memchr(at, '\n', (size_t)(end - at));
            size_t count = (size_t)((stop ? stop : end) - at);
            if (!skip)
                buf_add(&line, at, count);
            if (line.full && !skip)
                write_text(bridge, "wrong", "a line is longer than 1 MiB");
            skip = skip || line.full;
            if (stop && !skip && line.count > 0)
                handle_line(bridge, line.bytes, line.count);
            if (stop) {
                buf_reset(&line);
                skip = false;
            }
            at += count + (stop ? 1 : 0);
        }
    }
    buf_release(&line);
}

/* Wait, for a limited time, until the queued requests are executed. */
static void wait_for_queue(struct slurm_bridge *bridge)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += DRAIN_MS / MS_PER_S;
    pthread_mutex_lock(&bridge->lock);
    while (bridge->queued > 0)
        if (pthread_cond_timedwait(&bridge->changed, &bridge->lock, &until) != 0)
            break;
    pthread_mutex_unlock(&bridge->lock);
}

/* --- start -------------------------------------------------------------------------- */

static int open_bell(struct slurm_bridge *bridge, struct error *err)
{
    const struct bridge_setup *setup = bridge->setup;
    bridge->bell = setup->bell ? named_pipe_make(setup->bell, err) : setup->bell_fd;
    return setup->bell && bridge->bell < 0 ? bridge->bell : 0;
}

int bridge_run(const struct bridge_setup *setup, struct error *err)
{
    static struct slurm_bridge bridge = { .out_lock = PTHREAD_MUTEX_INITIALIZER,
                                          .lock = PTHREAD_MUTEX_INITIALIZER,
                                          .changed = PTHREAD_COND_INITIALIZER };
    pthread_t polling, working;
    bridge.setup = setup;
    bridge.driver = memory_checked(calloc(1, setup->driver->self_size));
    bridge.kick = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (bridge.kick < 0)
        abort();
    int r = open_bell(&bridge, err);
    if (r == 0)
        r = setup->driver->open(bridge.driver, err);
    if (r < 0)
        return r;
    if (pthread_create(&polling, NULL, run_poller, &bridge) != 0 ||
        pthread_create(&working, NULL, run_worker, &bridge) != 0)
        return error_set(err, -EAGAIN, "cannot start a thread");
    read_lines(&bridge);
    wait_for_queue(&bridge);
    if (setup->bell)
        named_pipe_remove(setup->bell, bridge.bell);
    return 0;
}
