/*
 * slurm.c - berth slurm release-all: leave a Slurm cluster as if we had never been there.
 *
 * Every job that waits in our partitions is held or parked because of us.  It is let go, and
 * the nodes it was once started on are forgotten.  One whose owner holds it himself stays
 * held, in such a way that he can release it.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api/place.h"
#include "base/grow.h"
#include "cmd/berth/bridge.h"
#include "cmd/berth/live.h"

#define PATIENCE_MS 60000
#define AGAIN_MS 2500 /* by then a berthd somewhere would have held them again */
#define PARTITIONS_MAX 30
#define AT_ONCE_MAX 64
#define REQUEUED_S 200 /* Slurm's own delay after a requeue is shorter */

static const struct flag slurm_flags[] = {
    { "partition", 'p', "NAME", "of this partition; as berthd looked after" },
    { "driver", 0, "DRIVER", "libslurm, commands or auto" },
    { "state", 0, "DIR", "berthd's state folder" },
    LIVE_JSON,
    LIVE_FLAGS,
    { 0 },
};

struct waiting {
    int64_t id;
    int64_t begin; /* its owner's; 0: none */
    bool pinned;   /* to nodes it ran on   */
    bool theirs;   /* its owner holds it  */
    bool done;
};

struct leaving {
    const struct flags *flags;
    struct bridge bridge;
    struct waiting *jobs;
    uint32_t count, room;
    uint32_t answered, released, left_held, refused;
    uint32_t again; /* held anew by somebody */
    bool synced, watching;
};

/* ---- what there is ---- */

/* As job_submit.lua marks it. */
static bool is_theirs(const struct json *job)
{
    const char *comment = strstr(live_text(job, "comment", ""), "berth:");
    return comment && strstr(comment, "held=owner");
}

static struct waiting *find(struct leaving *leaving, int64_t id)
{
    for (uint32_t i = 0; i < leaving->count; i++)
        if (leaving->jobs[i].id == id)
            return &leaving->jobs[i];
    return NULL;
}

static void take_job(struct leaving *leaving, const struct json *job)
{
    int64_t id = 0, begin = 0;
    bool held = json_flag_at(job, "held"), parked = json_flag_at(job, "parked");
    bool pending = strcmp(live_text(job, "state", ""), "PENDING") == 0;
    json_as_count(json_get(job, "id"), &id);
    struct waiting *known = find(leaving, id);
    if (known && leaving->watching && !known->theirs && pending && held)
        leaving->again++;
    bool pinned = json_get(job, "req_nodes") && live_number(job, "restarts", 0) > 0;
    bool theirs_before = is_theirs(job) && !pinned && !parked &&
                         strcmp(live_text(job, "reason", ""), "JobHeldUser") == 0;
    if (known || leaving->synced || !pending || (!held && !parked) ||
        json_flag_at(job, "completing") || json_get(job, "het"))
        return;
    if (theirs_before) {
        leaving->left_held++; /* nothing of ours is on it */
        return;
    }
    json_as_count(json_get(job, "begin"), &begin);
    bool own = !parked && live_number(job, "restarts", 0) == 0 &&
               begin > time(NULL) + REQUEUED_S;
    leaving->jobs =
        grow(leaving->jobs, &leaving->room, leaving->count + 1, sizeof *leaving->jobs);
    leaving->jobs[leaving->count++] = (struct waiting){
        .id = id, .begin = own ? begin : 0, .pinned = pinned, .theirs = is_theirs(job)
    };
}

static void take_done(struct leaving *leaving, const struct json *done)
{
    int64_t seq = -1;
    json_as_count(json_get(done, "seq"), &seq);
    if (seq < 0 || seq >= leaving->count || leaving->jobs[seq].done)
        return;
    struct waiting *job = &leaving->jobs[seq];
    job->done = true;
    leaving->answered++;
    if (json_flag_at(done, "ok")) {
        leaving->released += !job->theirs;
        leaving->left_held += job->theirs;
        return;
    }
    leaving->refused++;
    fprintf(stderr, "berth slurm: job %" PRId64 ": %s\n", job->id,
            live_text(done, "error", "?"));
}

static int hear(struct leaving *leaving, struct error *err)
{
    struct json *word = NULL;
    int r = bridge_hear(&leaving->bridge, &word, err);
    if (r < 0)
        return r;
    if (json_get(word, "job"))
        take_job(leaving, json_get(word, "job"));
    else if (json_get(word, "done"))
        take_done(leaving, json_get(word, "done"));
    else if (json_get(word, "synced"))
        leaving->synced = true;
    else if (json_get(word, "away"))
        fprintf(stderr, "berth slurm: waiting for Slurm: %s\n",
                live_text(word, "away", ""));
    json_free(word);
    return 0;
}

/* ---- letting go ---- */

static int ask(struct leaving *leaving, uint32_t i, struct error *err)
{
    const struct waiting *job = &leaving->jobs[i];
    struct json *word = json_new_object();
    char name[24];
    snprintf(name, sizeof name, "%" PRId64, job->id);
    json_put_count(word, "seq", i);
    json_put_text(word, "verb", job->theirs ? "hold" : "release");
    json_put_text(word, "job", name);
    if (job->pinned)
        json_put_flag(word, "unpin", true);
    if (job->theirs)
        json_put_flag(word, "theirs", true);
    if (job->begin > 0)
        json_put_count(word, "begin", job->begin);
    int r = bridge_say(&leaving->bridge, word, err);
    json_free(word);
    return r;
}

static int let_go(struct leaving *leaving, struct error *err)
{
    int r = 0;
    while (r == 0 && !leaving->synced)
        r = hear(leaving, err);
    /* A few at a time: what it says meanwhile has to be read, or it stops listening. */
    uint32_t all = leaving->count;
    for (uint32_t i = 0; r == 0 && i < all; i++) {
        bridge_patience(&leaving->bridge, PATIENCE_MS);
        r = ask(leaving, i, err);
        while (r == 0 && leaving->answered + AT_ONCE_MAX <= i)
            r = hear(leaving, err);
    }
    while (r == 0 && leaving->answered < all)
        r = hear(leaving, err);
    if (r < 0 || leaving->released == 0)
        return r;
    /* Somewhere, on a host we do not know of, a berthd may still run. */
    leaving->watching = true;
    bridge_patience(&leaving->bridge, AGAIN_MS);
    struct error unused;
    while (leaving->again == 0 && hear(leaving, &unused) == 0)
        ;
    return 0;
}

/* ---- whose ---- */

/* "slurm:partition=a,b", as berthd left it in its state folder. */
static bool read_word(const char *folder, char *text, size_t size)
{
    char path[PLACE_MAX + 16];
    snprintf(path, sizeof path, "%s/executor", folder);
    FILE *file = fopen(path, "re");
    bool read = file && fgets(text, (int)size, file);
    if (file)
        fclose(file);
    text[read ? strcspn(text, "\n") : 0] = '\0';
    return read && strncmp(text, "slurm", 5) == 0;
}

static bool find_word(const struct flags *flags, char *text, size_t size)
{
    char folder[PLACE_MAX];
    if (flags_get(flags, "state"))
        return read_word(flags_get(flags, "state"), text, size);
    return (place_state(folder, sizeof folder, NULL) == 0 &&
            read_word(folder, text, size)) ||
           read_word("/var/lib/berth", text, size);
}

/* The words for berth-slurm: 0, or an exit status. */
static int write_words(const struct flags *flags, const char **words, char *text,
                       size_t size)
{
    uint32_t count = 0;
    static const char of[] = "slurm:partition=";
    words[count++] = "--driver";
    words[count++] = flags_get(flags, "driver") ? flags_get(flags, "driver") : "auto";
    for (uint32_t i = 0; flags_each(flags, "partition", i); i++) {
        if (i == PARTITIONS_MAX)
            return command_wrong(flags, "more than %d partitions", PARTITIONS_MAX);
        words[count++] = "--partition";
        words[count++] = flags_each(flags, "partition", i);
    }
    words[count] = NULL;
    if (count > 2)
        return 0;
    if (!find_word(flags, text, size))
        return command_wrong(flags,
                             "no berthd has left word which partitions it looked "
                             "after: name them with --partition");
    char *rest = strncmp(text, of, strlen(of)) == 0 ? text + strlen(of) : NULL;
    for (char *name; (name = strsep(&rest, ",")) && count < 2 * PARTITIONS_MAX;) {
        words[count++] = "--partition";
        words[count++] = name;
    }
    words[count] = NULL;
    return 0;
}

/* A berthd that runs would hold them again. */
static bool somebody_looks_after(const struct flags *flags, const char *address,
                                 char *where, size_t size)
{
    struct call *call = NULL;
    struct json *server = NULL;
    struct error err;
    if (call_open(&call, address ? address : flags_get(flags, "socket"), &err) < 0)
        return false;
    bool runs = call_json(call, "GET", "/v1/server", NULL, &server, &err) == 0 &&
                strncmp(live_text(server, "executor", ""), "slurm", 5) == 0;
    snprintf(where, size, "%s", call_address(call));
    json_free(server);
    call_close(call);
    return runs;
}

static int report(const struct leaving *leaving)
{
    const struct flags *flags = leaving->flags;
    if (flags_get(flags, "json")) {
        struct json *root = json_new_object();
        json_put_count(root, "released", leaving->released);
        json_put_count(root, "held", leaving->left_held);
        live_print_json(root);
    } else {
        printf("%u job%s released", leaving->released,
               leaving->released == 1 ? "" : "s");
        if (leaving->left_held > 0)
            printf("; %u stay%s held, as the owner wants it", leaving->left_held,
                   leaving->left_held == 1 ? "s" : "");
        putchar('\n');
    }
    if (leaving->again > 0)
        return command_failed(flags, "a berthd still looks after them and holds them "
                                     "again: stop it first");
    return leaving->refused > 0 ? 1 : 0;
}

static int release_all(const struct flags *flags)
{
    struct leaving leaving = { .flags = flags };
    const char *words[2 * PARTITIONS_MAX + 8];
    char text[1100], where[PLACE_MAX];
    struct error err = { "" };
    int status = write_words(flags, words, text, sizeof text);
    if (status)
        return status;
    if (somebody_looks_after(flags, NULL, where, sizeof where) ||
        (!flags_get(flags, "socket") &&
         somebody_looks_after(flags, PLACE_SYSTEM_SOCKET, where, sizeof where)))
        return command_failed(
            flags,
            "berthd runs at %.200s and would hold them again: stop it "
            "first",
            where);
    int r = bridge_open(&leaving.bridge, words, PATIENCE_MS, &err);
    if (r == 0)
        r = let_go(&leaving, &err);
    bridge_close(&leaving.bridge);
    status = r < 0 ? command_failed(flags, "%s", err.text) : report(&leaving);
    free(leaving.jobs);
    return status;
}

static int slurm_run(const struct flags *flags)
{
    if (flags->word_count != 1 || strcmp(flags->words[0], "release-all") != 0)
        return command_wrong(flags, "want release-all");
    return release_all(flags);
}

const struct command command_slurm = {
    .name = "slurm",
    .group = "Use",
    .brief = "leave a Slurm cluster as if Berth had never been there",
    .usage = "release-all [--partition NAME]…",
    .flags = slurm_flags,
    .more =
        "Jobs that wait are released and no longer bound to nodes. Stop berthd first.",
    .run = slurm_run,
};
