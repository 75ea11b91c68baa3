/*
 * flowd.c - the agent's one loop.
 *
 *     berthd ── event ──► wanted ──► targets ──► markers ──► kernel
 *        ▲                              ▲ once a second: what was not there yet
 *        └──────── bytes per job ◄──────┴── every two
 *
 * One thread.  The stream hands on bytes as they come and asks several times a second
 * whether to go on; that is also when the clock is looked at.
 */
#include "flowd/flowd.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api/call.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/grow.h"
#include "base/json.h"
#include "base/units.h"
#include "flowd/sse.h"
#include "flowd/marker.h"
#include "flowd/capabilities.h"
#include "flowd/desired.h"
#include "version.h"

#define MS INT64_C(1000000)
#define LOOK_NS NS_PER_S         /* between two looks for new sockets and cgroups   */
#define LOCATE_NS (5 * NS_PER_S) /* between two looks for containers */
#define TELL_NS (2 * NS_PER_S)   /* between two reports of bytes                    */
#define TELL_LATER_NS (30 * NS_PER_S) /* after one that was not taken                */
#define TELL_S 2                  /* that a report may take                          */
#define SILENT_NS (35 * NS_PER_S) /* berthd speaks every 15 s: this is no berthd     */
#define RETRY_MIN_NS (200 * MS)
#define RETRY_MAX_NS (10 * NS_PER_S)
#define PATIENCE_NS (2 * NS_PER_S) /* a job may begin after its level was said */

/* A job's bytes, and what berthd knows of them. */
struct count {
    uint64_t id, bytes, said;
    bool gone; /* the job has left; there is a last word to say */
};

struct use {
    const struct marker *marker;
    void *self;
    struct mark_target *targets;
    uint32_t count, room;
};

struct flowd {
    const struct flowd_setup *setup;
    struct call *stream, *tell;
    char path[400];
    struct sse_parser events;
    struct desired_marks desired[2]; /* the one that holds, and room for the next */
    uint32_t holds;
    struct mark_targets targets;
    struct use uses[FLOWD_MARKERS_MAX];
    uint32_t use_count;
    struct count *counts; /* by id */
    uint32_t count_count;

    int64_t heard_ns; /* when berthd last said something          */
    int64_t until_ns; /* the last word holds until; 0: none does  */
    int64_t looked_ns, located_ns, tell_ns, retry_ns;
    int64_t unreached_ns; /* since when some jobs cannot be marked  */
    uint32_t unreached;   /* how many; and of how many we have said so */
    uint32_t unreached_said;
    bool behind;    /* the kernel is not as it should be: try again */
    bool away;      /* we have said that berthd is */
    char last[320]; /* the last trouble we spoke of */
};

static volatile sig_atomic_t ended;

static void on_end(int number)
{
    ended = 1;
}

static void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void say(const char *fmt, ...)
{
    va_list words;
    va_start(words, fmt);
    fputs("berth-flowd: ", stderr);
    vfprintf(stderr, fmt, words);
    fputc('\n', stderr);
    va_end(words);
}

/* The same trouble is told once, until there is another or it has passed. */
static void say_trouble(struct flowd *flowd, const char *text)
{
    if (strcmp(flowd->last, text) == 0)
        return;
    snprintf(flowd->last, sizeof flowd->last, "%s", text);
    say("%s", text);
}

/* --- carrying out ------------------------------------------------------------------- */

/* Each job to the first marker that reaches it. */
static void deal(struct flowd *flowd)
{
    uint32_t unreached = 0;
    for (uint32_t i = 0; i < flowd->use_count; i++)
        flowd->uses[i].count = 0;
    for (uint32_t i = 0; i < flowd->targets.count; i++) {
        const struct mark_target *target = &flowd->targets.list[i];
        struct use *use = flowd->uses, *end = use + flowd->use_count;
        while (use < end && !use->marker->reaches(target))
            use++;
        if (use == end) {
            unreached++;
            continue;
        }
        use->targets =
            grow(use->targets, &use->room, use->count + 1, sizeof *use->targets);
        use->targets[use->count++] = *target;
    }
    if (unreached != flowd->unreached)
        flowd->unreached_ns = clock_now_ns();
    flowd->unreached = unreached;
}

static int apply_each(struct flowd *flowd, bool doubt, struct error *err)
{
    int64_t now = clock_now_ns();
    int r = 0;
    for (uint32_t i = 0; i < flowd->use_count; i++) {
        struct use *use = &flowd->uses[i];
        struct marking marking = {
            .targets = use->targets,
            .count = use->count,
            .now_ns = now,
            .until_ns = flowd->until_ns > now ? flowd->until_ns : now,
            .doubt = doubt,
        };
        int one = use->marker->apply(use->self, &marking, err);
        r = one < 0 ? one : r;
    }
    return r;
}

static void fill(struct flowd *flowd)
{
    mark_targets_fill(&flowd->targets, &flowd->desired[flowd->holds],
                      &flowd->setup->levels, &flowd->setup->patterns);
    deal(flowd);
}

static void apply(struct flowd *flowd)
{
    struct error err;
    int r = apply_each(flowd, flowd->behind, &err);
    if (r < 0) { /* a cgroup may have gone between a look and its use */
        fill(flowd);
        r = apply_each(flowd, true, &err);
    }
    if (r < 0)
        say_trouble(flowd, err.text);
    else if (flowd->behind)
        flowd->last[0] = '\0';
    flowd->behind = r < 0;
}

/* --- bytes -------------------------------------------------------------------------- */

static int count_by_id(const void *a, const void *b)
{
    const struct count *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

static void take_bytes(void *context, uint64_t id, uint64_t bytes)
{
    struct flowd *flowd = context;
    struct count key = { .id = id };
    struct count *count =
        flowd->count_count
            ? bsearch(&key, flowd->counts, flowd->count_count, sizeof key, count_by_id)
            : NULL;
    if (count)
        count->bytes = bytes;
}

static void read_bytes(struct flowd *flowd)
{
    for (uint32_t i = 0; i < flowd->use_count; i++)
        if (flowd->uses[i].marker->bytes)
            flowd->uses[i].marker->bytes(flowd->uses[i].self, take_bytes, flowd);
}

/* Counts for the jobs there are now, and for those that left with news.  Both by id. */
static void renew_counts(struct flowd *flowd)
{
    const struct mark_targets *targets = &flowd->targets;
    uint32_t room = 0, count = 0, a = 0, b = 0, old_count = flowd->count_count;
    struct count *counts =
        grow(NULL, &room, targets->count + old_count + 1, sizeof *counts);
    while (a < old_count || b < targets->count) {
        uint64_t old = a < old_count ? flowd->counts[a].id : UINT64_MAX;
        uint64_t new = b < targets->count ? targets->list[b].id : UINT64_MAX;
        struct count one = { .id = new };
        if (old <= new)
            one = flowd->counts[a++];
        one.gone = old < new;
        b += new <= old;
        if (!one.gone || one.bytes != one.said)
            counts[count++] = one;
    }
    free(flowd->counts);
    flowd->counts = counts;
    flowd->count_count = count;
}

/* What has changed since berthd was told; NULL: nothing has. */
static struct json *news(struct flowd *flowd)
{
    struct json *list = json_new_array();
    for (uint32_t i = 0; i < flowd->count_count; i++) {
        const struct count *count = &flowd->counts[i];
        if (count->bytes == count->said)
            continue;
        struct json *row = json_new_object();
        json_put_count(row, "id", (int64_t)count->id);
        json_put_count(row, "bytes", (int64_t)count->bytes);
        json_add(list, row);
    }
    if (json_count(list) == 0) {
        json_free(list);
        return NULL;
    }
    struct json *body = json_new_object();
    json_put_text(body, "host", flowd->desired[flowd->holds].host);
    json_put(body, "jobs", list);
    return body;
}

static void forget_gone(struct flowd *flowd)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < flowd->count_count; i++)
        if (!flowd->counts[i].gone)
            flowd->counts[kept++] = flowd->counts[i];
    flowd->count_count = kept;
}

/* Marks do not depend on it: what is not taken is told later, and not spoken of. */
static void tell(struct flowd *flowd)
{
    struct json *body = news(flowd);
    flowd->tell_ns = clock_now_ns() + TELL_NS;
    if (!body)
        return;
    if (call_json(flowd->tell, "POST", "/v1/flows", body, NULL, NULL) < 0)
        flowd->tell_ns = clock_now_ns() + TELL_LATER_NS;
    else
        for (uint32_t i = 0; i < flowd->count_count; i++)
            flowd->counts[i].said = flowd->counts[i].bytes;
    json_free(body);
    forget_gone(flowd);
}

/* --- listening ---------------------------------------------------------------------- */

static void refuse(void *context, const char *why)
{
    say("refused what berthd said, nothing has changed: %s", why);
}

/* Whether the next word is of other jobs. */
static bool has_others(const struct flowd *flowd)
{
    const struct desired_marks *now = &flowd->desired[flowd->holds];
    const struct desired_marks *next = &flowd->desired[!flowd->holds];
    if (now->count != next->count)
        return true;
    for (uint32_t i = 0; i < now->count; i++)
        if (now->jobs[i].id != next->jobs[i].id)
            return true;
    return false;
}

static void take(void *context, const char *name, const char *data, size_t count)
{
    struct flowd *flowd = context;
    struct error err;
    if (strcmp(name, "flows") != 0)
        return;
    flowd->heard_ns = clock_now_ns();
    flowd->retry_ns = RETRY_MIN_NS;
    struct desired_marks *next = &flowd->desired[!flowd->holds];
    if (desired_parse(next, data, count, &err) < 0) {
        refuse(flowd, err.text);
        return;
    }
    if (has_others(flowd)) {
        read_bytes(flowd);     /* counters go with their jobs */
        flowd->located_ns = 0; /* look where the new ones are */
    }
    if (flowd->away) {
        say("berthd answers again");
        flowd->last[0] = '\0';
    }
    flowd->away = false;
    flowd->holds = !flowd->holds;
    flowd->until_ns = clock_now_ns() + next->valid_ns;
    fill(flowd);
    apply(flowd);
    renew_counts(flowd);
    flowd->looked_ns = clock_now_ns();
}

static bool take_stream(void *context, const char *bytes, size_t count)
{
    struct flowd *flowd = context;
    const struct sse_handler ears = { take, refuse, flowd };
    sse_add(&flowd->events, bytes, count, &ears);
    return !ended;
}

/* --- time --------------------------------------------------------------------------- */

/* Nobody has confirmed the order for too long: fair again. */
static void expire(struct flowd *flowd)
{
    struct desired_marks *desired = &flowd->desired[flowd->holds];
    say("berthd has been silent for %.0f s: no job is marked",
        (double)desired->valid_ns / (double)NS_PER_S);
    flowd->away = true;
    flowd->until_ns = 0;
    desired->count = 0;
    fill(flowd);
    apply(flowd);
}

static void say_unreached(struct flowd *flowd, int64_t now)
{
    if (flowd->unreached == flowd->unreached_said ||
        now - flowd->unreached_ns < PATIENCE_NS)
        return;
    flowd->unreached_said = flowd->unreached;
    if (flowd->unreached > 0)
        say("%u of %u jobs cannot be marked: no cgroup of theirs is here%s",
            flowd->unreached, flowd->targets.count,
            flowd->use_count == 1 && !strcmp(flowd->uses[0].marker->name, "nft")
                ? "; the backend sockets may reach them"
                : ", and no process");
}

static void look(struct flowd *flowd, int64_t now)
{
    flowd->looked_ns = now;
    if (flowd->until_ns && now >= flowd->until_ns) {
        expire(flowd);
        return;
    }
    bool news = mark_targets_find_missing(&flowd->targets, &flowd->setup->patterns);
    if (flowd->use_count > 1 && now - flowd->located_ns >= LOCATE_NS) {
        flowd->located_ns = now;
        news = mark_targets_check_namespaces(&flowd->targets) || news;
    }
    if (news)
        deal(flowd);
    apply(flowd);
    say_unreached(flowd, now);
}

/* Whatever it is time for. */
static bool tick(void *context)
{
    struct flowd *flowd = context;
    int64_t now = clock_now_ns();
    if (now - flowd->looked_ns >= LOOK_NS ||
        (flowd->until_ns && now >= flowd->until_ns))
        look(flowd, now);
    if (now >= flowd->tell_ns && !flowd->away) {
        read_bytes(flowd);
        tell(flowd);
    }
    return !ended && clock_now_ns() - flowd->heard_ns < SILENT_NS;
}

static void wait_and_tick(struct flowd *flowd, int64_t ns)
{
    for (int64_t end = clock_now_ns() + ns; !ended && clock_now_ns() < end;) {
        nanosleep(&(struct timespec){ .tv_nsec = 50 * MS }, NULL);
        tick(flowd);
    }
}

static void follow(struct flowd *flowd)
{
    struct error err = { "berthd ended the stream" };
    const struct call_stream stream = { take_stream, tick, flowd };
    sse_reset(&flowd->events);
    flowd->heard_ns = clock_now_ns();
    int r = call_stream(flowd->stream, flowd->path, &stream, &err);
    if (ended)
        return;
    if (r < 0)
        say_trouble(flowd, err.text);
    flowd->away = flowd->away || r < 0;
    wait_and_tick(flowd, flowd->retry_ns);
    flowd->retry_ns *= 2;
    if (flowd->retry_ns > RETRY_MAX_NS)
        flowd->retry_ns = RETRY_MAX_NS;
}

/* --- beginning and end -------------------------------------------------------------- */

int flowd_choose(const char *backend, const struct marker *chosen[FLOWD_MARKERS_MAX],
                 struct error *err)
{
    struct error why;
    if (strcmp(backend, "auto") != 0) {
        chosen[0] = marker_find(backend);
        if (!chosen[0])
            return error_set(err, -EINVAL, "there is no backend \"%.40s\" here",
                             backend);
        if (chosen[0]->probe(&why) < 0)
            return error_set(err, -ENOTSUP, "%s: %s", backend, why.text);
        return 1;
    }
    int count = 0;
    for (size_t i = 0; marker_list[i] && count < FLOWD_MARKERS_MAX; i++) {
        bool last = !marker_list[i + 1]; /* advice: instead of others, not beside */
        if (!(last && count > 0) && marker_list[i]->probe(&why) == 0)
            chosen[count++] = marker_list[i];
    }
    return count;
}

static int open_markers(struct flowd *flowd, const struct marker *const *markers,
                        uint32_t count, struct error *err)
{
    const int *needs[FLOWD_MARKERS_MAX];
    for (uint32_t i = 0; i < count; i++)
        needs[i] = markers[i]->needs;
    int r = capabilities_keep(needs, count, err);
    for (uint32_t i = 0; r == 0 && i < count; i++) {
        struct use *use = &flowd->uses[i];
        *use = (struct use){ .marker = markers[i],
                             .self = calloc(1, markers[i]->self_size) };
        if (!use->self)
            abort();
        r = markers[i]->open(use->self, &flowd->setup->levels, err);
        if (r < 0)
            free(use->self);
        else
            flowd->use_count++;
    }
    return r;
}

static void close_markers(struct flowd *flowd)
{
    for (uint32_t i = 0; i < flowd->use_count; i++) {
        struct use *use = &flowd->uses[i];
        use->marker->close(use->self);
        free(use->self);
        free(use->targets);
    }
}

static void catch_signals(void)
{
    struct sigaction action = { .sa_handler = on_end };
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
}

static void greet(const struct flowd *flowd)
{
    char rights[200];
    capabilities_describe(rights, sizeof rights);
    printf("berth-flowd %s ready: %s%s%s, berthd at %s, capabilities: %s\n",
           BERTH_VERSION, flowd->uses[0].marker->name,
           flowd->use_count > 1 ? " and " : "",
           flowd->use_count > 1 ? flowd->uses[1].marker->name : "",
           call_address(flowd->stream), rights);
    fflush(stdout);
}

static int begin(struct flowd *flowd, const struct marker *const *markers,
                 uint32_t count, struct error *err)
{
    const struct flowd_setup *setup = flowd->setup;
    /* The token is read here, with the rights we begin with. */
    int r = call_open(&flowd->stream, setup->address, err);
    if (r == 0)
        r = call_open(&flowd->tell, setup->address, err);
    if (r == 0)
        r = open_markers(flowd, markers, count, err);
    if (r < 0)
        return r;
    call_hurry(flowd->tell, TELL_S);
    snprintf(flowd->path, sizeof flowd->path, "/v1/flows?follow=true%s%s",
             setup->host ? "&host=" : "", setup->host ? setup->host : "");
    return 0;
}

int flowd_run(const struct flowd_setup *setup, const struct marker *const *markers,
              uint32_t count, struct error *err)
{
    struct flowd flowd = { .setup = setup, .retry_ns = RETRY_MIN_NS };
    catch_signals();
    sse_init(&flowd.events);
    desired_init(&flowd.desired[0]);
    desired_init(&flowd.desired[1]);
    mark_targets_init(&flowd.targets);
    int r = begin(&flowd, markers, count, err);
    if (r == 0) {
        greet(&flowd);
        while (!ended)
            follow(&flowd);
    }
    close_markers(&flowd);
    mark_targets_release(&flowd.targets);
    desired_release(&flowd.desired[0]);
    desired_release(&flowd.desired[1]);
    sse_release(&flowd.events);
    free(flowd.counts);
    call_close(flowd.tell);
    call_close(flowd.stream);
    return r;
}
