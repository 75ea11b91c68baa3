/* site_check.c - compare a site's settings with those of docs/guide/slurm.md. */
#include "slurm/site_check.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/memory.h"
#include "host/heartbeat.h"
#include "slurm/plugin_check.h"
#include "slurm/slurm_driver.h"

#define NAMES_MAX 256
#define WATCHDOG_DIR "/run/berth-slurm-watchdog"
#define WATCHDOG_S 180 /* it runs several times in that time */

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
    wrong |=
        print_row(file, site_check_has_word(site->submit_plugins, "lua"),
                  "a plugin sees every submission",
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

/*
 * --- what happens while berthd is away ---------------------------------------------------
 *
 * That is advice: a site may want its jobs to wait for berthd.
 */

/* The plugin lies beside slurm.conf on the host of slurmctld, which may be another one. */
static bool read_plugin(struct plugin_check *ret)
{
    char path[PLUGIN_PATH_MAX];
    const char *conf = getenv("SLURM_CONF");
    if (!conf || !*conf)
        conf = "/etc/slurm/slurm.conf";
    const char *slash = strrchr(conf, '/');
    int length = slash ? (int)(slash - conf) : 0;
    if (snprintf(path, sizeof(path), "%.*s/job_submit.lua", length, conf) >=
        (int)sizeof(path))
        return false;
    return plugin_check_read(ret, path);
}

static void print_heartbeat(const struct plugin_check *plugin, FILE *file)
{
    const char *what = "new jobs are left to Slurm while berthd is away";
    struct heartbeat heartbeat;
    struct error err = { "" };
    char text[300];
    if (!*plugin->heartbeat) {
        print_row(file, false, what, "name the heartbeat of berthd in job_submit.lua");
        return;
    }
    if (heartbeat_read(plugin->heartbeat, &heartbeat, &err) < 0)
        snprintf(text, sizeof(text), "%.200s; jobs are not held now", err.text);
    else if (heartbeat.limit_s == 0)
        snprintf(text, sizeof(text), "fail_open_s is 0 in berthd.yaml");
    else
        snprintf(text, sizeof(text),
                 "berthd was there %lld s ago; jobs are not held now",
                 (long long)heartbeat.silent_s);
    print_row(file, err.text[0] == '\0' && heartbeat.limit_s > 0 && !heartbeat.away,
              what, text);
}

/* The watchdog leaves a file whenever it runs. */
static void print_watchdog(FILE *file)
{
    const char *folder = getenv("BERTH_WATCHDOG_DIR");
    char path[PLUGIN_PATH_MAX];
    struct stat last;
    snprintf(path, sizeof(path), "%s/last", folder ? folder : WATCHDOG_DIR);
    bool there = stat(path, &last) == 0 && last.st_mtime + WATCHDOG_S > time(NULL);
    print_row(file, there, "waiting jobs are left to Slurm while berthd is away",
              "start berth-slurm-watchdog.timer on the host of slurmctld");
}

/* Berth's own plugin, or one that a site has made of it, is known by its table. */
static int print_plugin(const struct site_survey *survey, FILE *file)
{
    struct plugin_check plugin;
    int wrong = 0;
    if (!read_plugin(&plugin) || !plugin.managed) {
        fputs("     which partitions are held job_submit.lua says, and it is not here, "
              "or not Berth's\n",
              file);
        plugin_check_release(&plugin);
        return 0;
    }
    for (uint32_t i = 0; i < survey->partition_count && i < NAMES_MAX; i++) {
        char what[128];
        snprintf(what, sizeof(what), "jobs of partition %.80s arrive held",
                 survey->partitions[i]);
        wrong |= print_row(file, plugin_check_manages(&plugin, survey->partitions[i]),
                           what, "name it in 'managed' of job_submit.lua");
    }
    print_heartbeat(&plugin, file);
    print_watchdog(file);
    plugin_check_release(&plugin);
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
    wrong |= print_plugin(survey, file);
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
