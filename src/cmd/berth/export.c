/* export.c - berth export: what berthd has run, as a workload in Berth's own format. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/keyed_hash.h"
#include "base/output.h"
#include "base/units.h"
#include "cmd/berth/connection.h"
#include "cmd/berth/format.h"
#include "workload/csv.h"

#define WORK_MIN_S 1e-6 /* of a job that never ran */
#define NAME_LETTERS 12 /* of a hashed name: 48 bits */

static const struct flag export_flags[] = {
    { "last", 0, "TIME", "jobs submitted in this time until now: 30d (default: all)" },
    { "hash-names", 0, NULL,
      "replace names, users, entities and kinds by keyed hashes" },
    { "output", 'o', "FILE",
      "write the jobs there; - is standard output (default: -)" },
    CONNECTION_FLAGS,
    { 0 },
};

#define COLUMNS \
    (COLUMNS_BASIC | COLUMN_BIT(COLUMN_ID) | COLUMN_BIT(COLUMN_NAME) | \
     COLUMN_BIT(COLUMN_USER) | COLUMN_BIT(COLUMN_ENTITY) | COLUMN_BIT(COLUMN_CLASS) | \
     COLUMN_BIT(COLUMN_KIND) | COLUMN_BIT(COLUMN_GPUS_MIN) | \
     COLUMN_BIT(COLUMN_GPUS_MAX) | COLUMN_BIT(COLUMN_NODES) | \
     COLUMN_BIT(COLUMN_SPREAD) | COLUMN_BIT(COLUMN_TYPES) | \
     COLUMN_BIT(COLUMN_NODELIST) | COLUMN_BIT(COLUMN_EXCLUDE) | \
     COLUMN_BIT(COLUMN_CPUS) | COLUMN_BIT(COLUMN_MEM) | COLUMN_BIT(COLUMN_STEPS) | \
     COLUMN_BIT(COLUMN_STEP) | COLUMN_BIT(COLUMN_DECLARED) | \
     COLUMN_BIT(COLUMN_DECLARED_WORK) | COLUMN_BIT(COLUMN_GRACE) | \
     COLUMN_BIT(COLUMN_PAUSE) | COLUMN_BIT(COLUMN_LOAD) | COLUMN_BIT(COLUMN_CKPT) | \
     COLUMN_BIT(COLUMN_WEIGHT) | COLUMN_BIT(COLUMN_DEADLINE) | \
     COLUMN_BIT(COLUMN_ELIGIBLE) | COLUMN_BIT(COLUMN_CANCEL) | \
     COLUMN_BIT(COLUMN_FAILS) | COLUMN_BIT(COLUMN_START) | COLUMN_BIT(COLUMN_END) | \
     COLUMN_BIT(COLUMN_STATE) | COLUMN_BIT(COLUMN_CANCELLED_BY) | \
     COLUMN_BIT(COLUMN_ATTEMPTS) | COLUMN_BIT(COLUMN_PREEMPTIONS) | \
     COLUMN_BIT(COLUMN_LIMIT) | COLUMN_BIT(COLUMN_SHARED))

/* The file that is being written. */
struct exported {
    FILE *file;
    bool hashes;
    struct keyed_hash hash;
    struct arena texts; /* of one page */
    double zero_s;      /* the first submission, since 1970 */
    double last_s;
    uint64_t jobs, live, rejected;
    struct json *policies; /* that decided meanwhile */
};

/* ---- names ---- */

/* Letters only: digits of a name tell runs of one program apart. */
static void write_letters(char *text, uint64_t hash)
{
    for (int i = 0; i < NAME_LETTERS; i++, hash >>= 4)
        text[i] = (char)('a' + (hash & 15));
    text[NAME_LETTERS] = '\0';
}

static const char *hide(struct exported *exported, const char *text)
{
    if (!text || !exported->hashes)
        return text;
    char *hidden = arena_alloc(&exported->texts, NAME_LETTERS + 1, 1, 1);
    write_letters(hidden, keyed_hash_bytes(&exported->hash, text, strlen(text)));
    return hidden;
}

/*
 * Policies take names that differ in their numbers alone for runs of one program: letters for
 * the name without its digits, and digits for the whole name if it has any.
 */
static const char *hide_name(struct exported *exported, const char *text)
{
    if (!text || !exported->hashes)
        return text;
    size_t bytes = strlen(text);
    char *stem = arena_alloc(&exported->texts, bytes + 1, 1, 1);
    size_t count = 0;
    for (const char *c = text; *c; c++)
        if (*c < '0' || *c > '9')
            stem[count++] = *c;
    char *hidden = arena_alloc(&exported->texts, NAME_LETTERS + 32, 1, 1);
    write_letters(hidden, keyed_hash_bytes(&exported->hash, stem, count));
    if (count < bytes)
        snprintf(hidden + NAME_LETTERS, 32, "-%" PRIu64,
                 keyed_hash_bytes(&exported->hash, text, bytes));
    return hidden;
}

/* ---- a job ---- */

/* Since the first submission, to the microsecond; 0 where it is absent. */
static int64_t time_of(const struct exported *exported, const struct json *job,
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

/* Steps where the job reported them, and then its kind is worth telling; else seconds. */
static void read_work(struct exported *exported, const struct json *job,
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

static void read_times(const struct exported *exported, const struct json *job,
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
    spec->past.start_ns = time_of(exported, job, "start");
    spec->past.end_ns = time_of(exported, job, "end");
    spec->past.limit_ns = duration_of(job, "time_limit_s");
}

static struct job_spec read_job(struct exported *exported, const struct json *job)
{
    struct job_spec spec = {
        .id = (uint64_t)json_count_at(job, "id"),
        .name = hide_name(exported, text_of(job, "name")),
        .user = hide(exported, text_of(job, "user")),
        .entity = hide(exported, text_of(job, "entity")),
        .types = text_of(job, "types"),
        .nodelist = text_of(job, "nodelist"),
        .exclude = text_of(job, "exclude"),
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
    spec.fails = spec.past.end == ENDED_FAILED;
    read_work(exported, job, &spec);
    read_times(exported, job, &spec);
    return spec;
}

static void write_page(struct exported *exported, const struct json *page)
{
    const struct json *jobs = json_get(page, "jobs");
    arena_reset(&exported->texts);
    for (size_t i = 0; i < json_count(jobs); i++) {
        const struct json *job = json_item(jobs, i);
        exported->last_s = json_number_or(job, "submit", 0);
        if (exported->jobs++ == 0) {
            exported->zero_s = exported->last_s;
            csv_write_header(exported->file, COLUMNS);
        }
        struct job_spec spec = read_job(exported, job);
        csv_write_job(exported->file, COLUMNS, &spec);
    }
    if (!exported->policies)
        exported->policies = json_copy_of(json_get(page, "policies"));
    exported->live += (uint64_t)json_count_at(page, "live");
    exported->rejected += (uint64_t)json_count_at(page, "rejected");
}

/* ---- all of them ---- */

static int read_pages(struct exported *exported, struct call *call, double since_s,
                      double *ret_history_from, struct error *err)
{
    struct buf path;
    struct json *page = NULL;
    char since[32];
    int r = 0;
    buf_init(&path, 4096);
    snprintf(since, sizeof since, "%.3f", since_s);
    do {
        const char *next = json_as_text(json_get(page, "next"));
        buf_reset(&path);
        buf_text(&path, "/v1/export");
        connection_add_query(&path, "since", since);
        if (next)
            connection_add_query(&path, "page", next);
        json_free(page);
        page = NULL;
        r = call_json(call, "GET", path.bytes, NULL, &page, err);
        if (r < 0)
            break;
        write_page(exported, page);
        *ret_history_from = json_number_or(page, "history_from", 0);
    } while (json_get(page, "next"));
    json_free(page);
    buf_release(&path);
    return r;
}

static void say_left_out(const struct exported *exported)
{
    if (exported->live > 0)
        fprintf(stderr, "%" PRIu64 " that %s not ended yet %s left out.\n",
                exported->live, exported->live == 1 ? "has" : "have",
                exported->live == 1 ? "is" : "are");
    if (exported->rejected > 0)
        fprintf(stderr, "%" PRIu64 " that could never run %s left out.\n",
                exported->rejected, exported->rejected == 1 ? "is" : "are");
}

/* A replay begins with the policy that was in charge. */
static void say_policies(const struct exported *exported)
{
    char from[64];
    for (size_t i = 0; i < json_count(exported->policies); i++) {
        const struct json *policy = json_item(exported->policies, i);
        double since_s = json_number_or(policy, "since", 0);
        fprintf(stderr, "The policy was %s", json_text_or(policy, "policy", ""));
        if (i > 0 || since_s > exported->zero_s)
            fprintf(stderr, " from %s on", format_time(from, sizeof from, since_s));
        fputs(".\n", stderr);
    }
}

static void say_exported(const struct exported *exported, double since_s,
                         double history_from)
{
    char first[64];
    char last[64];
    fprintf(stderr,
            "%" PRIu64 " job%s, submitted from %s to %s; time 0 is %.6f s "
            "since 1970.\n",
            exported->jobs, exported->jobs == 1 ? "" : "s",
            format_time(first, sizeof first, exported->zero_s),
            format_time(last, sizeof last, exported->last_s), exported->zero_s);
    say_policies(exported);
    say_left_out(exported);
    if (history_from > since_s)
        fprintf(stderr,
                "History goes back to %s; jobs that ended before are no longer "
                "kept.\n",
                format_time(first, sizeof first, history_from));
}

static int export_all(const struct flags *flags, struct call *call, double since_s)
{
    struct error err;
    struct output output = { 0 };
    struct exported exported = { .hashes = flags_get(flags, "hash-names") };
    double history_from = 0;
    if (exported.hashes)
        keyed_hash_init(&exported.hash);
    arena_init(&exported.texts, 0);
    int r = output_open(&output, flags_get(flags, "output"), &err);
    if (r == 0) {
        exported.file = output.file;
        r = read_pages(&exported, call, since_s, &history_from, &err);
    }
    if (r == 0 && exported.jobs == 0) {
        say_left_out(&exported);
        r = error_set(&err, -EIO,
                      "no job that was submitted %s has ended: there is nothing to "
                      "export",
                      since_s > 0 ? "in this time" : "here");
    } else if (r == 0) {
        r = output_commit(&output, &err);
    }
    if (r == 0)
        say_exported(&exported, since_s, history_from);
    output_release(&output);
    json_free(exported.policies);
    arena_release(&exported.texts);
    return command_status(flags, r, &err);
}

static int export_run(const struct flags *flags)
{
    struct call *call = NULL;
    const char *last = flags_get(flags, "last");
    int64_t last_ns = 0;
    if (command_refuse_words(flags))
        return 2;
    if (last && (!units_time(last, &last_ns) || last_ns <= 0))
        return command_wrong(
            flags, "--last is \"%.40s\", want a time such as 12h or 30d", last);
    double since_s = last ? (double)time(NULL) - (double)last_ns * 1e-9 : 0;
    int status = connection_open(&call, flags);
    if (status)
        return status;
    status = export_all(flags, call, since_s > 0 ? since_s : 0);
    call_close(call);
    return status;
}

const struct command command_export = {
    .name = "export",
    .group = "Use",
    .brief = "what berthd has run, as a workload for 'berth sim' and 'berth compare'",
    .usage = "[--last 30d] [--hash-names] [-o FILE.csv]",
    .flags = export_flags,
    .more = "Jobs that have ended, with the work they truly were and what starting and "
            "stopping\nthem took.  Of other users' jobs only what lists of jobs show "
            "is written.",
    .run = export_run,
};
