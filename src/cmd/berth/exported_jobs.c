/* exported_jobs.c - jobs as GET /v1/export tells them, as a workload has them. */
#include "cmd/berth/exported_jobs.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/grow.h"
#include "base/json.h"
#include "base/units.h"
#include "cmd/berth/connection.h"

#define WORK_MIN_S 1e-6 /* of a job that never ran */
#define NAME_LETTERS 12 /* of a hashed name: 48 bits */

/* ---- names ---- */

/* Letters only: digits of a name tell runs of one program apart. */
static void write_letters(char *text, uint64_t hash)
{
    for (int i = 0; i < NAME_LETTERS; i++, hash >>= 4)
        text[i] = (char)('a' + (hash & 15));
    text[NAME_LETTERS] = '\0';
}

static const char *hide(struct exported_jobs *exported, const char *text)
{
    if (!text || !exported->hashes)
        return text;
    char *hidden = arena_alloc(exported->texts, NAME_LETTERS + 1, 1, 1);
    write_letters(hidden, keyed_hash_bytes(&exported->hash, text, strlen(text)));
    return hidden;
}

/*
 * Policies take names that differ in their numbers alone for runs of one program: letters for
 * the name without its digits, and digits for the whole name if it has any.
 */
static const char *hide_name(struct exported_jobs *exported, const char *text)
{
    if (!text || !exported->hashes)
        return text;
    size_t bytes = strlen(text);
    char *stem = arena_alloc(exported->texts, bytes + 1, 1, 1);
    size_t count = 0;
    for (const char *c = text; *c; c++)
        if (*c < '0' || *c > '9')
            stem[count++] = *c;
    char *hidden = arena_alloc(exported->texts, NAME_LETTERS + 32, 1, 1);
    write_letters(hidden, keyed_hash_bytes(&exported->hash, stem, count));
    if (count < bytes)
        snprintf(hidden + NAME_LETTERS, 32, "-%" PRIu64,
                 keyed_hash_bytes(&exported->hash, text, bytes));
    return hidden;
}

/* ---- a job ---- */

/* Since the first submission, to the microsecond; 0 where it is absent. */
static int64_t time_of(const struct exported_jobs *exported, const struct json *job,
                       const char *key)
{
    double at_s = json_number_or(job, key, NAN);
    double since_s = at_s - exported->zero_s;
    return since_s > 0 ? units_round(since_s * 1e6) * 1000 : 0;
}

static int64_t duration_of(const struct json *job, const char *key)
{
    return units_ns(json_number_or(job, key, 0));
}

static uint32_t count_of(const struct json *job, const char *key)
{
    return (uint32_t)json_count_at(job, key);
}

/* The place of a member's text in a list of names; 0: it is none of them. */
static uint32_t choice_of(const struct json *job, const char *key,
                          const char *const *choices)
{
    const char *text = json_text_at(job, key);
    for (uint32_t i = 0; choices[i]; i++)
        if (strcmp(choices[i], text) == 0)
            return i;
    return 0;
}

static const char *text_of(const struct json *job, const char *key)
{
    return json_as_text(json_get(job, key));
}

static bool is_denied(const struct json *job, const char *key)
{
    return json_get(job, key) && !json_flag_at(job, key);
}

/* Steps where the job reported them, and then its kind is worth telling; else seconds. */
static void read_work(struct exported_jobs *exported, const struct json *job,
                      struct job_spec *spec)
{
    spec->step_s = json_number_or(job, "step_s", 0);
    spec->steps = json_number_or(job, spec->step_s > 0 ? "steps" : "work_s", 0);
    if (spec->step_s > 0)
        spec->kind = hide(exported, text_of(job, "kind"));
    if (!(spec->steps > 0))
        spec->steps = WORK_MIN_S;
    spec->undeclared = !json_flag_at(job, "declared");
    spec->steps_declared = json_number_or(job, "declared_work", 0);
}

static void read_times(const struct exported_jobs *exported, const struct json *job,
                       struct job_spec *spec)
{
    spec->submit_ns = time_of(exported, job, "submit");
    spec->eligible_ns = time_of(exported, job, "eligible");
    spec->cancel_ns = time_of(exported, job, "cancel");
    spec->deadline_ns = time_of(exported, job, "deadline");
    spec->grace_ns = duration_of(job, "grace_s");
    spec->pause_ns = duration_of(job, "pause_s");
    spec->load_ns = duration_of(job, "load_s");
    spec->ckpt_ns = duration_of(job, "ckpt_s");
    spec->costs_told = json_get(job, "declared_pause_s") != NULL;
    spec->pause_told_ns = duration_of(job, "declared_pause_s");
    spec->load_told_ns = duration_of(job, "declared_load_s");
    spec->keeps_nothing = is_denied(job, "keeps");
    spec->loses_work = is_denied(job, "saves");
    spec->past.stops = count_of(job, "stops");
    spec->past.redone_ns = duration_of(job, "redone_s");
    spec->past.waited_ns = duration_of(job, "wait_s");
    spec->past.start_ns = time_of(exported, job, "start");
    spec->past.end_ns = time_of(exported, job, "end");
    spec->past.limit_ns = duration_of(job, "time_limit_s");
}

/* The first job with the same command; 0: it is this one. */
static uint64_t find_same(struct exported_jobs *exported, const struct json *job)
{
    const char *command = json_text_or(job, "command", "");
    uint64_t id = (uint64_t)json_count_at(job, "id");
    uint64_t hash = strtoull(command, NULL, 16);
    if (!*command)
        return 0;
    uint32_t at = map_find(&exported->commands, hash);
    if (at != MAP_NONE)
        return exported->firsts[at];
    at = exported->commands.count;
    exported->firsts = grow_array(exported->firsts, &exported->first_room, at + 1,
                                  sizeof *exported->firsts);
    exported->firsts[at] = id;
    map_put(&exported->commands, hash, at);
    return 0;
}

void exported_jobs_release(struct exported_jobs *exported)
{
    map_release(&exported->commands);
    free(exported->firsts);
}

struct job_spec exported_job_read(struct exported_jobs *exported,
                                  const struct json *job)
{
    struct job_spec spec = {
        .id = (uint64_t)json_count_at(job, "id"),
        .name = hide_name(exported, text_of(job, "name")),
        .user = hide(exported, text_of(job, "user")),
        .entity = hide(exported, text_of(job, "entity")),
        .types = text_of(job, "types"),
        .nodelist = text_of(job, "nodelist"),
        .exclude = text_of(job, "exclude"),
        .after = text_of(job, "after"),
        .class = (enum job_class)choice_of(job, "class", job_classes),
        .gpus = count_of(job, "gpus"),
        .gpus_min = count_of(job, "gpus_min"),
        .gpus_max = count_of(job, "gpus_max"),
        .nodes = count_of(job, "nodes"),
        .spread = json_flag_at(job, "spread"),
        .shares = json_flag_at(job, "shared"),
        .cpu_milli = (uint32_t)(json_number_or(job, "cpus", 0) * 1000 + 0.5),
        .mem_mib = (uint32_t)(json_number_or(job, "mem_bytes", 0) / 0x1p20),
        .weight = json_number_or(job, "weight", 0),
        .past = { .end = (enum job_end)choice_of(job, "state", job_ends),
                  .cancelled_by = (enum job_canceller)choice_of(job, "cancelled_by",
                                                                job_cancellers),
                  .attempts = count_of(job, "attempts"),
                  .preemptions = count_of(job, "preemptions") },
    };
    spec.past.same_as = find_same(exported, job);
    spec.fails = spec.past.end == ENDED_FAILED;
    read_work(exported, job, &spec);
    read_times(exported, job, &spec);
    return spec;
}

/* ---- pages ---- */

int exported_pages_read(struct call *call, double since_s, bool live,
                        void (*take)(void *context, const struct json *page),
                        void *context, struct error *err)
{
    struct buf path;
    struct json *page = NULL;
    char since[32];
    int r = 0;
    buf_init(&path, 4096);
    snprintf(since, sizeof since, "%.3f", since_s > 0 ? since_s : 0);
    do {
        const char *next = json_as_text(json_get(page, "next"));
        buf_reset(&path);
        buf_text(&path, "/v1/export");
        connection_add_query(&path, "since", since);
        if (live)
            connection_add_query(&path, "live", "true");
        if (next)
            connection_add_query(&path, "page", next);
        json_free(page);
        page = NULL;
        r = call_json(call, "GET", path.bytes, NULL, &page, err);
        if (r == 0)
            take(context, page);
    } while (r == 0 && json_get(page, "next"));
    json_free(page);
    buf_release(&path);
    return r;
}
