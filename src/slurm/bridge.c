/*
 * bridge.c - three threads: one reads what berthd asks for, one carries it out, one looks.
 *
 *     in ──► read ──► queue ──► work ──► Slurm
 *             │                   │ something has happened
 *             └── poll ──────► look ◄── bell, clock
 *     out ◄── done ─────────┴─────┘ what changed
 *
 * A call to Slurm can block for many seconds when slurmctld is away, and for most of a
 * minute when munge is.  With a thread each, neither looking nor working keeps the end of
 * 'in' from being noticed, and the reader says so when a look takes too long.
 */
#include "slurm/bridge.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "slurm/site_check.h"
#include "slurm/slurm_driver.h"
#include "slurm/bridge_request.h"
#include "slurm/watch.h"
#include "slurm/bridge_messages.h"

#define QUEUE_MAX 16384
#define POLLS_MAX 1024
#define MS_PER_S 1000
#define LOOK_SLOW_MS 1000 /* when nothing happens                       */
#define LOOK_FAST_MS 20   /* after something has: doubled from look to look */
#define LOOK_SHORT_MS 10  /* a look that costs next to nothing          */
#define LOOK_LATE_MS 5000 /* a look that takes longer is no answer       */
#define LEAVE_MS 5000     /* for what is still to be done when 'in' ends  */

struct queued_request {
    struct queued_request *next;
    struct arena arena;
    struct bridge_request request;
};

struct slurm_bridge {
    const struct bridge_setup *setup;
    void *driver; /* its private state */

    pthread_mutex_t out_lock;

    pthread_mutex_t lock; /* all that follows */
    pthread_cond_t changed;
    struct queued_request *first, *last;
    uint32_t queued;          /* with the one that is being carried out */
    bool away;                /* Slurm did not answer the last look      */
    int64_t look_ms;          /* when the look in progress began; 0: none */
    int64_t polls[POLLS_MAX]; /* 'seq' of those who wait for a look */
    uint32_t poll_count;

    int kick; /* an eventfd: look now */
    int bell; /* -1: none             */
};

/* --- saying ------------------------------------------------------------------------- */

/* One line at a time.  Without anybody who reads there is no reason to go on. */
static void say(void *self, const struct buf *line)
{
    struct slurm_bridge *bridge = self;
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

static void say_text(struct slurm_bridge *bridge, const char *key, const char *text)
{
    struct buf line;
    buf_init(&line, BRIDGE_LINE_MAX - 1);
    bridge_message_text(&line, key, text);
    say(bridge, &line);
    buf_release(&line);
}

static void say_flag(struct slurm_bridge *bridge, const char *key)
{
    struct buf line;
    buf_init(&line, BRIDGE_LINE_MAX - 1);
    bridge_message_flag(&line, key);
    say(bridge, &line);
    buf_release(&line);
}

static void say_done(struct slurm_bridge *bridge, int64_t seq,
                     const struct verb_result *answer, const char *text)
{
    struct buf line;
    buf_init(&line, BRIDGE_LINE_MAX - 1);
    bridge_message_done(&line, seq, answer, text);
    say(bridge, &line);
    buf_release(&line);
}

void verb_result_fail(struct verb_result *answer, int code, bool transient,
                      const char *fmt, ...)
{
    va_list words;
    va_start(words, fmt);
    *answer = (struct verb_result){ .code = code, .transient = transient };
    vsnprintf(answer->error, sizeof(answer->error), fmt, words);
    va_end(words);
}

/* --- looking ------------------------------------------------------------------------ */

static void look_soon(struct slurm_bridge *bridge)
{
    uint64_t one = 1;
    ssize_t n = write(bridge->kick, &one, sizeof(one));
    (void)n; /* full: it is kicked already */
}

/* Wait; true: something has happened. */
static bool rest(struct slurm_bridge *bridge, int64_t ms)
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

/* Said once, whoever notices it first. */
static void went_away(struct slurm_bridge *bridge, const char *why)
{
    pthread_mutex_lock(&bridge->lock);
    bool news = !bridge->away;
    bridge->away = true;
    pthread_mutex_unlock(&bridge->lock);
    if (news)
        say_text(bridge, "away", why);
}

static bool is_away(struct slurm_bridge *bridge)
{
    pthread_mutex_lock(&bridge->lock);
    bool away = bridge->away;
    pthread_mutex_unlock(&bridge->lock);
    return away;
}

static void came_back(struct slurm_bridge *bridge)
{
    say_flag(bridge, "back");
    pthread_mutex_lock(&bridge->lock);
    bridge->away = false;
    pthread_mutex_unlock(&bridge->lock);
}

static void mark_look(struct slurm_bridge *bridge, int64_t begun_ms)
{
    pthread_mutex_lock(&bridge->lock);
    bridge->look_ms = begun_ms;
    pthread_mutex_unlock(&bridge->lock);
}

/* For whoever does not look himself. */
static void notice_late_look(struct slurm_bridge *bridge)
{
    pthread_mutex_lock(&bridge->lock);
    int64_t begun = bridge->look_ms;
    pthread_mutex_unlock(&bridge->lock);
    if (begun != 0 && clock_now_ms() - begun > LOOK_LATE_MS)
        went_away(bridge, "Slurm takes long to answer");
}

/* Those who asked before this look began are answered after it. */
static uint32_t polls_waiting(struct slurm_bridge *bridge)
{
    pthread_mutex_lock(&bridge->lock);
    uint32_t count = bridge->poll_count;
    pthread_mutex_unlock(&bridge->lock);
    return count;
}

static void answer_polls(struct slurm_bridge *bridge, uint32_t count,
                         const struct verb_result *answer)
{
    int64_t seqs[POLLS_MAX];
    pthread_mutex_lock(&bridge->lock);
    memcpy(seqs, bridge->polls, count * sizeof(seqs[0]));
    bridge->poll_count -= count;
    memmove(bridge->polls, bridge->polls + count, bridge->poll_count * sizeof(seqs[0]));
    pthread_mutex_unlock(&bridge->lock);
    for (uint32_t i = 0; i < count; i++)
        say_done(bridge, seqs[i], answer, NULL);
}

static void say_hello(struct slurm_bridge *bridge, const struct slurm_site *site)
{
    struct buf line;
    buf_init(&line, BRIDGE_LINE_MAX - 1);
    bridge_message_hello(&line, site, bridge->setup->driver->name, (int64_t)time(NULL));
    say(bridge, &line);
    buf_release(&line);
}

/* How the one who looks remembers. */
struct poller {
    struct poll_diff watch;
    struct arena scratch;
    bool greeted;
    int64_t pause_ms; /* until the next look, if nothing happens */
};

/* The first thing that is said; what the site is called has to be asked for. */
static int greet(struct slurm_bridge *bridge, struct poller *looker, struct error *err)
{
    struct slurm_site site = { 0 };
    if (looker->greeted)
        return 0;
    int r = bridge->setup->driver->site(bridge->driver, &site, err);
    if (r < 0)
        return r;
    if (site_check_library_is_newer(&site))
        fprintf(stderr, "berth-slurm: libslurm %s is newer than slurmctld %s\n",
                site.built, site.version);
    say_hello(bridge, &site);
    looker->greeted = true;
    return 0;
}

static int look_once(struct slurm_bridge *bridge, struct poller *looker,
                     struct error *err)
{
    const struct slurm_driver *driver = bridge->setup->driver;
    struct slurm_poll look = { 0 };
    int r = greet(bridge, looker, err);
    if (r < 0)
        return r;
    if (is_away(bridge)) {
        /* First the word that it is back, then what it shows: so ask something small. */
        struct slurm_site site = { 0 };
        r = driver->site(bridge->driver, &site, err);
        if (r < 0)
            return r;
        came_back(bridge);
    }
    struct slurm_observer eyes = poll_diff_begin(&looker->watch);
    r = driver->look(bridge->driver, !looker->watch.synced, &eyes, &look,
                     &looker->scratch, err);
    arena_reset(&looker->scratch);
    if (r == 0 && is_away(bridge)) /* it came so late that it was given up */
        return error_set(err, -EAGAIN, "Slurm takes long to answer");
    if (r == 0)
        poll_diff_end(&looker->watch, &look);
    return r;
}

/* Often after something has happened, and then more and more rarely. */
static int64_t next_pause(const struct poller *looker, bool away)
{
    if (away)
        return LOOK_SLOW_MS;
    if (looker->watch.said > 0 || looker->pause_ms <= 0)
        return LOOK_FAST_MS;
    return 2 * looker->pause_ms < LOOK_SLOW_MS ? 2 * looker->pause_ms : LOOK_SLOW_MS;
}

static void sleep_ms(int64_t ms)
{
    struct timespec nap = { ms / MS_PER_S, ms % MS_PER_S * 1000000 };
    if (ms > 0)
        nanosleep(&nap, NULL);
}

static void *keep_looking(void *self)
{
    struct slurm_bridge *bridge = self;
    struct poller looker = { .pause_ms = 0 };
    poll_diff_init(&looker.watch, bridge->setup->partitions,
                   bridge->setup->partition_count, say, bridge);
    arena_init(&looker.scratch, 1 << 20);
    for (;;) {
        struct error err = { "" };
        struct verb_result answer = { .ok = true };
        uint32_t waiting = polls_waiting(bridge);
        int64_t begun = clock_now_ms();
        mark_look(bridge, begun);
        int r = look_once(bridge, &looker, &err);
        mark_look(bridge, 0);
        if (r < 0) {
            went_away(bridge, err.text);
            poll_diff_forget(&looker.watch);
            verb_result_fail(&answer, 0, true, "%s", err.text);
        }
        answer_polls(bridge, waiting, &answer);
        looker.pause_ms = next_pause(&looker, r < 0);
        /* Looking may take a third of our time, and of slurmctld's, but no more; a half
         * where it is a matter of milliseconds. */
        int64_t least = clock_now_ms() - begun;
        if (least > LOOK_SHORT_MS)
            least *= 2;
        if (least > LOOK_SLOW_MS)
            least = LOOK_SLOW_MS;
        sleep_ms(least);
        if (rest(bridge, looker.pause_ms - least))
            looker.pause_ms = LOOK_FAST_MS / 2;
    }
    return NULL;
}

/* --- working ------------------------------------------------------------------------ */

static struct queued_request *next_item(struct slurm_bridge *bridge, bool *ret_away)
{
    pthread_mutex_lock(&bridge->lock);
    while (!bridge->first)
        pthread_cond_wait(&bridge->changed, &bridge->lock);
    struct queued_request *item = bridge->first;
    bridge->first = item->next;
    if (!bridge->first)
        bridge->last = NULL;
    *ret_away = bridge->away;
    pthread_mutex_unlock(&bridge->lock);
    return item;
}

static void finish_item(struct slurm_bridge *bridge, struct queued_request *item)
{
    arena_release(&item->arena);
    free(item);
    pthread_mutex_lock(&bridge->lock);
    assert(bridge->queued > 0);
    bridge->queued--;
    pthread_cond_broadcast(&bridge->changed);
    pthread_mutex_unlock(&bridge->lock);
}

/* A script may be in any encoding. */
static void make_plain(struct buf *text)
{
    for (size_t i = 0; i < text->count; i++)
        if ((unsigned char)text->bytes[i] >= 0x80 || text->bytes[i] == '\0')
            text->bytes[i] = '?';
}

static void *keep_working(void *self)
{
    struct slurm_bridge *bridge = self;
    struct buf text;
    /* Each byte may take six as JSON; what a job asks for stands at the beginning. */
    buf_init(&text, BRIDGE_LINE_MAX / 8);
    for (;;) {
        bool away;
        struct queued_request *item = next_item(bridge, &away);
        struct verb_result answer = { .ok = true };
        buf_reset(&text);
        if (away)
            verb_result_fail(&answer, 0, true, "Slurm does not answer now");
        else
            bridge->setup->driver->carry_out(bridge->driver, &item->request, &answer,
                                             &text, &item->arena);
        make_plain(&text);
        bool script = item->request.verb == VERB_SCRIPT && answer.ok;
        say_done(bridge, item->request.seq, &answer,
                 script ? text.count > 0 ? text.bytes : "" : NULL);
        finish_item(bridge, item);
        look_soon(bridge);
    }
    return NULL;
}

/* --- reading ------------------------------------------------------------------------ */

static void queue_poll(struct slurm_bridge *bridge, int64_t seq)
{
    struct verb_result answer;
    pthread_mutex_lock(&bridge->lock);
    bool room = bridge->poll_count < POLLS_MAX;
    if (room)
        bridge->polls[bridge->poll_count++] = seq;
    pthread_mutex_unlock(&bridge->lock);
    if (!room) {
        verb_result_fail(&answer, 0, true, "%d others wait for a look already",
                         POLLS_MAX);
        say_done(bridge, seq, &answer, NULL);
    }
    look_soon(bridge);
}

static void queue_item(struct slurm_bridge *bridge, struct queued_request *item)
{
    pthread_mutex_lock(&bridge->lock);
    while (bridge->queued == QUEUE_MAX) /* who asks too much waits with the next line */
        pthread_cond_wait(&bridge->changed, &bridge->lock);
    if (bridge->last)
        bridge->last->next = item;
    else
        bridge->first = item;
    bridge->last = item;
    bridge->queued++;
    pthread_cond_broadcast(&bridge->changed);
    pthread_mutex_unlock(&bridge->lock);
}

static void take_line(struct slurm_bridge *bridge, const char *line, size_t count)
{
    struct error err = { "" };
    struct queued_request *item = calloc(1, sizeof(*item));
    if (!item)
        abort();
    arena_init(&item->arena, 1024);
    int r = bridge_request_read(line, count, &item->arena, &item->request, &err);
    if (r == 0 && item->request.verb != VERB_POLL) {
        queue_item(bridge, item);
        return;
    }
    if (r == 0)
        queue_poll(bridge, item->request.seq);
    else if (item->request.seq < 0)
        say_text(bridge, "wrong", err.text);
    else {
        struct verb_result answer;
        verb_result_fail(&answer, EINVAL, false, "%s", err.text);
        say_done(bridge, item->request.seq, &answer, NULL);
    }
    arena_release(&item->arena);
    free(item);
}

/* What is read, up to the end of a line; the rest of one that is too long is skipped. */
static void read_all(struct slurm_bridge *bridge)
{
    struct buf line;
    char bytes[65536];
    bool skip = false;
    buf_init(&line, BRIDGE_LINE_MAX);
    for (;;) {
        struct pollfd wait = { .fd = bridge->setup->in, .events = POLLIN };
        int ready = poll(&wait, 1, LOOK_LATE_MS / 10);
        notice_late_look(bridge);
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
                say_text(bridge, "wrong", "a line is longer than 1 MiB");
            skip = skip || line.full;
            if (stop && !skip && line.count > 0)
                take_line(bridge, line.bytes, line.count);
            if (stop) {
                buf_reset(&line);
                skip = false;
            }
            at += count + (stop ? 1 : 0);
        }
    }
    buf_release(&line);
}

/* What was asked for is still done, but nobody waits for ever. */
static void drain(struct slurm_bridge *bridge)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += LEAVE_MS / MS_PER_S;
    pthread_mutex_lock(&bridge->lock);
    while (bridge->queued > 0)
        if (pthread_cond_timedwait(&bridge->changed, &bridge->lock, &until) != 0)
            break;
    pthread_mutex_unlock(&bridge->lock);
}

/* --- beginning ---------------------------------------------------------------------- */

/* Opened for writing too, so that it does not end when the last ringer leaves. */
static int open_bell(struct slurm_bridge *bridge, struct error *err)
{
    const char *path = bridge->setup->bell;
    struct stat about;
    bridge->bell = -1;
    if (!path)
        return 0;
    if (lstat(path, &about) == 0 && !S_ISFIFO(about.st_mode))
        return error_set(err, -EEXIST, "%s is there, and is no named pipe", path);
    unlink(path);
    if (mkfifo(path, 0600) < 0 || chmod(path, 0622) < 0)
        return error_set(err, -errno, "%s: %s", path, strerror(errno));
    bridge->bell = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (bridge->bell < 0)
        return error_set(err, -errno, "%s: %s", path, strerror(errno));
    return 0;
}

/* Ours, unless somebody who came after us has made another in its place. */
static void remove_bell(const struct slurm_bridge *bridge)
{
    const char *path = bridge->setup->bell;
    struct stat ours, there;
    if (path && fstat(bridge->bell, &ours) == 0 && lstat(path, &there) == 0 &&
        ours.st_ino == there.st_ino && ours.st_dev == there.st_dev)
        unlink(path);
}

int bridge_run(const struct bridge_setup *setup, struct error *err)
{
    static struct slurm_bridge bridge = { .out_lock = PTHREAD_MUTEX_INITIALIZER,
                                          .lock = PTHREAD_MUTEX_INITIALIZER,
                                          .changed = PTHREAD_COND_INITIALIZER };
    pthread_t looking, working;
    bridge.setup = setup;
    bridge.driver = calloc(1, setup->driver->self_size);
    bridge.kick = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (!bridge.driver || bridge.kick < 0)
        abort();
    int r = open_bell(&bridge, err);
    if (r == 0)
        r = setup->driver->open(bridge.driver, err);
    if (r < 0)
        return r;
    if (pthread_create(&looking, NULL, keep_looking, &bridge) != 0 ||
        pthread_create(&working, NULL, keep_working, &bridge) != 0)
        return error_set(err, -EAGAIN, "cannot start a thread");
    read_all(&bridge);
    drain(&bridge);
    remove_bell(&bridge);
    return 0;
}
