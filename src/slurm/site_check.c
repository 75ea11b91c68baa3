/* site_check.c - compare a site's settings with those of docs/guide/slurm.md. */
#include "slurm/site_check.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/memory.h"
#include "slurm/slurm_driver.h"

#define NAMES_MAX 256

/* What a poll of the nodes and jobs found. */
struct site_survey {
    const char *const *partitions;
    uint32_t partition_count;
    bool found[NAMES_MAX];
    uint32_t nodes, jobs, unheld;
};

bool site_check_has_word(const char *list, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = list; at && *at;) {
        size_t word = strcspn(at, ",");
        if (word == length && memcmp(at, name, length) == 0)
            return true;
        at += word + (at[word] == ',');
    }
    return false;
}

static bool is_our_partition(struct site_survey *survey, const char *partitions)
{
    bool ours = survey->partition_count == 0;
    for (uint32_t i = 0; i < survey->partition_count && i < NAMES_MAX; i++)
        if (site_check_has_word(partitions, survey->partitions[i]))
            ours = survey->found[i] = true;
    return ours;
}

static void count_node(void *self, const struct slurm_node *node)
{
    struct site_survey *survey = self;
    survey->nodes += is_our_partition(survey, node->partitions);
}

static void count_job(void *self, const struct slurm_job *job)
{
    struct site_survey *survey = self;
    if (!is_our_partition(survey, job->partition))
        return;
    survey->jobs++;
    bool parked = job->start >= SLURM_PARKED_FROM; /* by Berth */
    survey->unheld += job->state == BRIDGE_PENDING && job->priority != 0 && !parked;
}

static void ignore_unreadable(void *self, uint32_t id, const char *why)
{
}

static int print_row(FILE *file, bool good, const char *what, const char *advice)
{
    fprintf(file, "%-4s %s%s%s\n", good ? "ok" : "NO", what, good ? "" : ": ",
            good ? "" : advice);
    return good ? 0 : 1;
}

bool site_check_library_is_newer(const struct slurm_site *site)
{
    int major, minor, built_major, built_minor;
    return sscanf(site->version, "%d.%d", &major, &minor) == 2 &&
           sscanf(site->built, "%d.%d", &built_major, &built_minor) == 2 &&
           built_major * 100 + built_minor > major * 100 + minor;
}

static int print_settings(const struct slurm_site *site, FILE *file)
{
    int wrong = 0;
    if (site->built[0])
        wrong |= print_row(file, !site_check_library_is_newer(site),
                           "slurmctld knows our library",
                           "libslurm is newer than slurmctld; take --driver commands");
    wrong |= print_row(
        file, site_check_has_word(site->submit_plugins, "lua"), "jobs arrive held",
        "set JobSubmitPlugins=lua, and put job_submit.lua beside slurm.conf");
    wrong |= print_row(file, strstr(site->priority_type, "multifactor") != NULL,
                       "a hold cannot be lifted by a change of nice",
                       "set PriorityType=priority/multifactor");
    wrong |= print_row(file, site->requeue, "jobs can be requeued", "set JobRequeue=1");
    print_row(file, site_check_has_word(site->scheduler, "batch_sched_delay=0"),
              "jobs start within a second",
              "set SchedulerParameters=batch_sched_delay=0 (now up to 3 s)");
    print_row(file, !site_check_has_word(site->scheduler, "defer"),
              "the end of a job starts the next",
              "remove defer from SchedulerParameters");
    print_row(file, site->file_append, "output survives a restart",
              "set JobFileAppend=1");
    print_row(file, site->min_job_age_s >= 300, "ended jobs are remembered long enough",
              "set MinJobAge=300");
    return wrong;
}

static int print_partitions(const struct site_survey *survey, FILE *file)
{
    int wrong = 0;
    for (uint32_t i = 0; i < survey->partition_count && i < NAMES_MAX; i++) {
        char what[128];
        snprintf(what, sizeof(what), "partition %.80s has nodes",
                 survey->partitions[i]);
        wrong |= print_row(file, survey->found[i], what, "there is none of that name");
    }
    fprintf(file, "     %u nodes, %u jobs", survey->nodes, survey->jobs);
    if (survey->unheld > 0)
        fprintf(file, "; %u wait without a hold, and Berth will hold them",
                survey->unheld);
    fputc('\n', file);
    return wrong;
}

int site_check_run(const struct slurm_driver *driver, const char *const *partitions,
                   uint32_t count, FILE *file)
{
    struct site_survey survey = { .partitions = partitions, .partition_count = count };
    const struct slurm_observer observer = { &survey, count_node, count_job,
                                             ignore_unreadable };
    struct slurm_site site = { 0 };
    struct arena scratch;
    struct slurm_poll poll = { 0 };
    struct error err = { "" };
    void *self = memory_checked(calloc(1, driver->self_size));
    arena_init(&scratch, 1 << 20);
    int wrong = 1;
    if (driver->open(self, &err) < 0 || driver->site(self, &site, &err) < 0 ||
        driver->poll(self, true, &observer, &poll, &scratch, &err) < 0)
        fprintf(stderr, "berth-slurm: %s\n", err.text);
    else {
        fprintf(file, "     Slurm %s, cluster %s, through %s\n", site.version,
                site.cluster, driver->name);
        wrong = print_settings(&site, file) | print_partitions(&survey, file);
    }
    arena_release(&scratch);
    free(self);
    return wrong;
}
