/* site_check.c - a site's settings beside those of docs/guide/slurm.md. */
#include "slurm/site_check.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "slurm/slurm_driver.h"

#define NAMES_MAX 256

/* What a look at the nodes and jobs brought. */
struct sight {
    const char *const *partitions;
    uint32_t partition_count;
    bool found[NAMES_MAX];
    uint32_t nodes, jobs, loose;
};

static bool names(const char *list, const char *name)
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

static bool is_ours(struct sight *sight, const char *partitions)
{
    bool ours = sight->partition_count == 0;
    for (uint32_t i = 0; i < sight->partition_count && i < NAMES_MAX; i++)
        if (names(partitions, sight->partitions[i]))
            ours = sight->found[i] = true;
    return ours;
}

static void see_node(void *self, const struct slurm_node *node)
{
    struct sight *sight = self;
    sight->nodes += is_ours(sight, node->partitions);
}

static void see_job(void *self, const struct slurm_job *job)
{
    struct sight *sight = self;
    if (!is_ours(sight, job->partition))
        return;
    sight->jobs++;
    bool parked = job->start >= SLURM_PARKED_FROM; /* by us */
    sight->loose += strcmp(job->state, "PENDING") == 0 && job->priority != 0 && !parked;
}

static void see_doubt(void *self, uint32_t id, const char *why)
{
}

static int tell(FILE *file, bool good, const char *what, const char *advice)
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

static int tell_settings(const struct slurm_site *site, FILE *file)
{
    int wrong = 0;
    if (site->built[0])
        wrong |= tell(file, !site_check_library_is_newer(site),
                      "slurmctld knows our library",
                      "libslurm is newer than slurmctld; take --driver commands");
    wrong |= tell(file, names(site->submit_plugins, "lua"), "jobs arrive held",
                  "set JobSubmitPlugins=lua, and put job_submit.lua beside slurm.conf");
    wrong |= tell(file, strstr(site->priority_type, "multifactor") != NULL,
                  "a hold cannot be lifted by a change of nice",
                  "set PriorityType=priority/multifactor");
    wrong |= tell(file, site->requeue, "jobs can be requeued", "set JobRequeue=1");
    tell(file, names(site->scheduler, "batch_sched_delay=0"),
         "jobs start within a second",
         "set SchedulerParameters=batch_sched_delay=0 (now up to 3 s)");
    tell(file, !names(site->scheduler, "defer"), "the end of a job starts the next",
         "remove defer from SchedulerParameters");
    tell(file, site->file_append, "output survives a restart", "set JobFileAppend=1");
    tell(file, site->min_job_age_s >= 300, "ended jobs are remembered long enough",
         "set MinJobAge=300");
    return wrong;
}

static int tell_partitions(const struct sight *sight, FILE *file)
{
    int wrong = 0;
    for (uint32_t i = 0; i < sight->partition_count && i < NAMES_MAX; i++) {
        char what[128];
        snprintf(what, sizeof(what), "partition %.80s has nodes", sight->partitions[i]);
        wrong |= tell(file, sight->found[i], what, "there is none of that name");
    }
    fprintf(file, "     %u nodes, %u jobs", sight->nodes, sight->jobs);
    if (sight->loose > 0)
        fprintf(file, "; %u wait without a hold, and Berth will hold them",
                sight->loose);
    fputc('\n', file);
    return wrong;
}

int site_check_run(const struct slurm_driver *driver, const char *const *partitions,
                   uint32_t count, FILE *file)
{
    struct sight sight = { .partitions = partitions, .partition_count = count };
    const struct slurm_observer eyes = { &sight, see_node, see_job, see_doubt };
    struct slurm_site site = { 0 };
    struct arena scratch;
    struct slurm_poll look = { 0 };
    struct error err = { "" };
    void *self = calloc(1, driver->self_size);
    if (!self)
        abort();
    arena_init(&scratch, 1 << 20);
    int wrong = 1;
    if (driver->open(self, &err) < 0 || driver->site(self, &site, &err) < 0 ||
        driver->look(self, true, &eyes, &look, &scratch, &err) < 0)
        fprintf(stderr, "berth-slurm: %s\n", err.text);
    else {
        fprintf(file, "     Slurm %s, cluster %s, through %s\n", site.version,
                site.cluster, driver->name);
        wrong = tell_settings(&site, file) | tell_partitions(&sight, file);
    }
    arena_release(&scratch);
    free(self);
    return wrong;
}
