/* export.c - berth export: what berthd has run, as a workload in Berth's own format. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/output.h"
#include "base/units.h"
#include "cmd/berth/connection.h"
#include "cmd/berth/exported_jobs.h"
#include "cmd/berth/format.h"
#include "workload/csv.h"

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
     COLUMN_BIT(COLUMN_AFTER) | COLUMN_BIT(COLUMN_KEEPS) | COLUMN_BIT(COLUMN_SAVES) | \
     COLUMN_BIT(COLUMN_DECLARED_PAUSE) | COLUMN_BIT(COLUMN_DECLARED_LOAD) | \
     COLUMN_BIT(COLUMN_ELIGIBLE) | COLUMN_BIT(COLUMN_CANCEL) | \
     COLUMN_BIT(COLUMN_FAILS) | COLUMN_BIT(COLUMN_START) | COLUMN_BIT(COLUMN_END) | \
     COLUMN_BIT(COLUMN_STATE) | COLUMN_BIT(COLUMN_CANCELLED_BY) | \
     COLUMN_BIT(COLUMN_ATTEMPTS) | COLUMN_BIT(COLUMN_PREEMPTIONS) | \
     COLUMN_BIT(COLUMN_LIMIT) | COLUMN_BIT(COLUMN_WAITED) | \
     COLUMN_BIT(COLUMN_REDONE) | COLUMN_BIT(COLUMN_SAME_AS) | \
     COLUMN_BIT(COLUMN_SHARED))

/* The file that is being written. */
struct exported {
    FILE *file;
    struct exported_jobs reader; /* time 0 is the first submission */
    struct arena texts;          /* of one page                    */
    double last_s, history_from;
    uint64_t jobs, live, rejected;
    struct json *policies; /* that decided meanwhile */
};

static void write_page(void *context, const struct json *page)
{
    struct exported *exported = context;
    const struct json *jobs = json_get(page, "jobs");
    arena_reset(&exported->texts);
    for (size_t i = 0; i < json_count(jobs); i++) {
        const struct json *job = json_item(jobs, i);
        exported->last_s = json_number_or(job, "submit", 0);
        if (exported->jobs++ == 0) {
            exported->reader.zero_s = exported->last_s;
            csv_write_header(exported->file, COLUMNS);
        }
        struct job_spec spec = exported_job_read(&exported->reader, job);
        csv_write_job(exported->file, COLUMNS, &spec);
    }
    if (!exported->policies)
        exported->policies = json_copy_of(json_get(page, "policies"));
    exported->live += (uint64_t)json_count_at(page, "live");
    exported->rejected += (uint64_t)json_count_at(page, "rejected");
    exported->history_from = json_number_or(page, "history_from", 0);
}

/* ---- all of them ---- */

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
        if (i > 0 || since_s > exported->reader.zero_s)
            fprintf(stderr, " from %s on", format_time(from, sizeof from, since_s));
        fputs(".\n", stderr);
    }
}

static void say_exported(const struct exported *exported, double since_s)
{
    char first[64];
    char last[64];
    fprintf(stderr,
            "%" PRIu64 " job%s, submitted from %s to %s; time 0 is %.6f s "
            "since 1970.\n",
            exported->jobs, exported->jobs == 1 ? "" : "s",
            format_time(first, sizeof first, exported->reader.zero_s),
            format_time(last, sizeof last, exported->last_s), exported->reader.zero_s);
    say_policies(exported);
    say_left_out(exported);
    if (exported->history_from > since_s)
        fprintf(stderr,
                "History goes back to %s; jobs that ended before are no longer "
                "kept.\n",
                format_time(first, sizeof first, exported->history_from));
}

static int export_all(const struct flags *flags, struct call *call, double since_s)
{
    struct error err;
    struct output output = { 0 };
    struct exported exported = { .reader.hashes = flags_get(flags, "hash-names") };
    if (exported.reader.hashes)
        keyed_hash_init(&exported.reader.hash);
    arena_init(&exported.texts, 0);
    exported.reader.texts = &exported.texts;
    int r = output_open(&output, flags_get(flags, "output"), &err);
    if (r == 0) {
        exported.file = output.file;
        r = exported_pages_read(call, since_s, false, write_page, &exported, &err);
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
        say_exported(&exported, since_s);
    output_release(&output);
    json_free(exported.policies);
    exported_jobs_release(&exported.reader);
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
