/*
 * run_cases.c - plays the *.case files of a folder and compares what happens.
 *
 *     # What it shows.
 *     cluster  2 nodes x 4 gpus
 *     policy   las quantum=300s
 *     job 0    at 0s  work 1000s  gpus 4  grace 20s  pause 5s  load 10s  ckpt 60s
 *     node 1   down at 100s  up at 200s
 *     expect
 *          0s  submitted 0
 *          0s  started   0
 *
 * A job takes all of its grace to leave unless 'pause' says otherwise.  Further words of
 * a job: 'nodes 2', 'on n1', 'not n0,n2', 'spread', 'min 1', 'max 8', 'says 500s' (the work
 * it declares; 0s: it does not say), 'trial', 'fails'.  Expected are all events of these kinds: submitted, rejected,
 * started, stopped, finished, failed, lost, dropped, node_down, node_up.
 */
#include "support/engine_run.h"

#include <dirent.h>
#include <inttypes.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/units.h"

#define JOBS_MAX 64
#define OUTAGES_MAX 16
#define WORDS_MAX 32

struct golden {
    const char *path;
    uint32_t line;
    struct arena arena;
    char cluster[64];
    char policy[128];
    struct job_spec specs[JOBS_MAX];
    double beliefs[JOBS_MAX];
    uint32_t job_count;
    struct outage outages[OUTAGES_MAX];
    uint32_t outage_count;
    bool expecting;
    struct buf expected, happened;
};

/* --- reading --------------------------------------------------------------------------- */

static void bad(const struct golden *golden, const char *what, const char *word)
{
    fail_msg("%s:%u: %s '%s'", golden->path, golden->line, what, word ? word : "");
}

static int64_t time_of(const struct golden *golden, const char *word)
{
    int64_t ns = 0;
    if (!word || !units_time(word, &ns))
        bad(golden, "want a time, not", word);
    return ns;
}

static uint32_t count_of(const struct golden *golden, const char *word)
{
    char *end = NULL;
    unsigned long count = word ? strtoul(word, &end, 10) : 0;
    if (!word || end == word || *end)
        bad(golden, "want a number, not", word);
    return (uint32_t)count;
}

static void read_cluster(struct golden *golden, char **words)
{
    if (!words[4] || strcmp(words[2], "x") != 0)
        bad(golden, "want 'N nodes x N gpus', not", words[0]);
    snprintf(golden->cluster, sizeof golden->cluster, "%uxv100:%u",
             count_of(golden, words[0]), count_of(golden, words[3]));
}

static void read_job(struct golden *golden, char **words)
{
    if (golden->job_count == JOBS_MAX ||
        count_of(golden, words[0]) != golden->job_count)
        bad(golden, "jobs are numbered from 0; this is", words[0]);
    uint32_t number = golden->job_count++;
    struct job_spec *spec = &golden->specs[number];
    double says_s = -1;
    int64_t pause_ns = -1;
    *spec = (struct job_spec){ .id = number + 1, .gpus = 1 };
    for (words++; *words; words++) {
        const char *key = *words;
        if (strcmp(key, "spread") == 0) {
            spec->spread = true;
            continue;
        }
        if (strcmp(key, "trial") == 0) {
            spec->class = CLASS_TE;
            continue;
        }
        if (strcmp(key, "fails") == 0) {
            spec->fails = true;
            continue;
        }
        const char *value = *++words;
        if (strcmp(key, "at") == 0)
            spec->submit_ns = time_of(golden, value);
        else if (strcmp(key, "work") == 0)
            spec->steps = (double)time_of(golden, value) * 1e-9;
        else if (strcmp(key, "says") == 0)
            says_s = (double)time_of(golden, value) * 1e-9;
        else if (strcmp(key, "grace") == 0)
            spec->grace_ns = time_of(golden, value);
        else if (strcmp(key, "pause") == 0)
            pause_ns = time_of(golden, value);
        else if (strcmp(key, "load") == 0)
            spec->load_ns = time_of(golden, value);
        else if (strcmp(key, "ckpt") == 0)
            spec->ckpt_ns = time_of(golden, value);
        else if (strcmp(key, "gpus") == 0)
            spec->gpus = count_of(golden, value);
        else if (strcmp(key, "nodes") == 0)
            spec->nodes = count_of(golden, value);
        else if (strcmp(key, "on") == 0)
            spec->nodelist = value ? arena_text(&golden->arena, value) : NULL;
        else if (strcmp(key, "not") == 0)
            spec->exclude = value ? arena_text(&golden->arena, value) : NULL;
        else if (strcmp(key, "min") == 0)
            spec->gpus_min = count_of(golden, value);
        else if (strcmp(key, "max") == 0)
            spec->gpus_max = count_of(golden, value);
        else
            bad(golden, "a job has no", key);
    }
    spec->pause_ns = pause_ns >= 0 ? pause_ns : spec->grace_ns;
    golden->beliefs[number] = says_s >= 0 && spec->steps > 0 ? says_s / spec->steps : 1;
}

static void read_outage(struct golden *golden, char **words)
{
    if (golden->outage_count == OUTAGES_MAX)
        bad(golden, "too many outages at node", words[0]);
    struct outage *outage = &golden->outages[golden->outage_count++];
    *outage = (struct outage){ .node = count_of(golden, words[0]) };
    if (!words[1] || strcmp(words[1], "down") != 0)
        bad(golden, "want 'down at TIME', not", words[1]);
    outage->down_ns = time_of(golden, words[3]);
    if (words[4])
        outage->up_ns = time_of(golden, words[6]);
}

static void put_line(struct buf *buf, int64_t at_ns, const char *name, uint32_t number)
{
    buf_print(buf, "%9.9gs  %s %u\n", (double)at_ns * 1e-9, name, number);
}

static void read_line(struct golden *golden, char *line)
{
    char *words[WORDS_MAX + 8] = { NULL };
    uint32_t count = 0;
    for (char *word = strtok(line, " \t\n"); word && *word != '#' && count < WORDS_MAX;
         word = strtok(NULL, " \t\n"))
        words[count++] = word;
    if (count == 0)
        return;
    if (golden->expecting)
        put_line(&golden->expected, time_of(golden, words[0]), words[1],
                 count_of(golden, words[2]));
    else if (strcmp(words[0], "cluster") == 0)
        read_cluster(golden, words + 1);
    else if (strcmp(words[0], "policy") == 0)
        for (uint32_t i = 1; i < count; i++)
            snprintf(golden->policy + strlen(golden->policy),
                     sizeof golden->policy - strlen(golden->policy), "%s%s",
                     i > 1 ? "," : "", words[i]);
    else if (strcmp(words[0], "job") == 0)
        read_job(golden, words + 1);
    else if (strcmp(words[0], "node") == 0)
        read_outage(golden, words + 1);
    else if (strcmp(words[0], "expect") == 0)
        golden->expecting = true;
    else
        bad(golden, "unknown word", words[0]);
}

static void read_case(struct golden *golden, const char *path)
{
    char line[512];
    FILE *file = fopen(path, "re");
    if (!file)
        fail_msg("%s cannot be opened", path);
    golden->path = path;
    while (fgets(line, sizeof line, file)) {
        golden->line++;
        read_line(golden, line);
    }
    fclose(file);
    if (golden->expected.count == 0)
        bad(golden, "nothing is expected", "");
}

/* --- playing ---------------------------------------------------------------------------- */

static void note(void *self, const struct view *view, const struct event *event)
{
    struct golden *golden = self;
    switch (event->kind) {
    case EVENT_NODE_DOWN:
    case EVENT_NODE_UP:
        put_line(&golden->happened, event->at_ns, event_name(event->kind), event->node);
        break;
    case EVENT_REJECTED:
        put_line(&golden->happened, event->at_ns, "rejected",
                 (uint32_t)event->spec->id - 1);
        break;
    case EVENT_SUBMITTED:
    case EVENT_STARTED:
    case EVENT_STOPPED:
    case EVENT_FINISHED:
    case EVENT_FAILED:
    case EVENT_LOST:
    case EVENT_DROPPED:
        put_line(&golden->happened, event->at_ns, event_name(event->kind),
                 (uint32_t)view->jobs[event->job].id - 1);
        break;
    default:
        break;
    }
}

static void play(void **state)
{
    struct golden *golden = calloc(1, sizeof *golden);
    struct error err = { "" };
    struct cluster cluster;
    const struct policy *policy = NULL;
    const char *settings = NULL;
    struct engine_run run;
    assert_non_null(golden);
    arena_init(&golden->arena, 0);
    buf_init(&golden->expected, 1 << 16);
    buf_init(&golden->happened, 1 << 16);
    read_case(golden, *state);
    if (cluster_load(&cluster, &golden->arena, golden->cluster, &err) < 0 ||
        policy_parse(golden->policy, &policy, &settings, &err) < 0)
        fail_msg("%s: %s", golden->path, err.text);

    engine_run_play(&run, &(struct engine_run_setup){
                              .cluster = &cluster,
                              .policy = policy,
                              .settings = settings,
                              .specs = golden->specs,
                              .spec_count = golden->job_count,
                              .beliefs = golden->beliefs,
                              .outages = golden->outages,
                              .outage_count = golden->outage_count,
                              .observer = { .event = note, .self = golden } });

    if (strcmp(golden->happened.bytes, golden->expected.bytes) != 0)
        fail_msg("%s: expected\n%sbut it was\n%s", golden->path, golden->expected.bytes,
                 golden->happened.bytes);
    engine_run_release(&run);
    buf_release(&golden->expected);
    buf_release(&golden->happened);
    arena_release(&golden->arena);
    free(golden);
}

/* --- all of them ------------------------------------------------------------------------- */

static int is_case(const struct dirent *entry)
{
    const char *dot = strrchr(entry->d_name, '.');
    return dot && strcmp(dot, ".case") == 0;
}

int main(int argc, char **argv)
{
    struct dirent **entries;
    int count = argc == 2 ? scandir(argv[1], &entries, is_case, alphasort) : -1;
    if (count <= 0) {
        fprintf(stderr, "usage: %s FOLDER, with *.case files in it\n", argv[0]);
        return 2;
    }
    struct CMUnitTest *tests = calloc((size_t)count, sizeof *tests);
    char(*paths)[512] = calloc((size_t)count, sizeof *paths);
    if (!tests || !paths)
        return 2;
    for (int i = 0; i < count; i++) {
        snprintf(paths[i], sizeof paths[i], "%s/%s", argv[1], entries[i]->d_name);
        tests[i] = (struct CMUnitTest){ .name = entries[i]->d_name,
                                        .test_func = play,
                                        .initial_state = paths[i] };
    }
    int failed = _cmocka_run_group_tests("cases", tests, (size_t)count, NULL, NULL);
    for (int i = 0; i < count; i++)
        free(entries[i]);
    free(entries);
    free(paths);
    free(tests);
    return failed;
}
