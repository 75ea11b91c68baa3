/* mark_target.c - find a job on this host: its cgroup and its network namespace. */
#include "flowd/mark_target.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "flowd/dscp.h"
#include "flowd/procs.h"
#include "flowd/desired.h"

#define CGROUP2_MAGIC 0x63677270
#define PATH_BYTES 1024
#define PROCESSES_MAX \
    8 /* processes of a job to check: in a container, one of the first is inside */

/* A search for a process of a job in another network namespace. */
struct namespace_search {
    uint64_t own; /* our network namespace */
    uint32_t left;
    bool elsewhere;
};

/* Slurm's default, its place without systemd, and two that sites use. */
const struct cgroup_patterns cgroup_patterns_standard = {
    .list = { "system.slice/slurmstepd.scope/job_%j", "slurmstepd.scope/job_%j",
              "slurm/job_%j", "system.slice/slurmd.service/job_%j" },
    .count = 4,
};

bool mark_target_pattern_is_valid(const char *pattern)
{
    const char *at = strstr(pattern, "%j");
    return at && !strchr(at + 1, '%') && strchr(pattern, '%') == at &&
           desired_path_is_plain(pattern) && strlen(pattern) < DESIRED_CGROUP_MAX - 20;
}

const char *mark_target_hierarchy(void)
{
    struct statfs fs;
    if (statfs(CGROUP_ROOT, &fs) == 0 && fs.f_type == CGROUP2_MAGIC)
        return "";
    if (statfs(CGROUP_ROOT "/unified", &fs) == 0 && fs.f_type == CGROUP2_MAGIC)
        return "unified/";
    return NULL;
}

/* Depth below the root of version 2; 0: not below it, or the root itself. */
static uint32_t depth_of(const char *path, const char *hierarchy)
{
    size_t prefix = strlen(hierarchy);
    if (strncmp(path, hierarchy, prefix) != 0 || !path[prefix])
        return 0;
    uint32_t depth = 1;
    for (path += prefix; *path; path++)
        depth += *path == '/';
    return depth;
}

/* Whether there is a cgroup at this path; sets its number and depth. */
static bool find_cgroup(struct mark_target *target, const char *path,
                        const char *hierarchy)
{
    char whole[PATH_BYTES];
    struct stat status;
    uint32_t depth = depth_of(path, hierarchy);
    snprintf(whole, sizeof whole, "%s/%s", CGROUP_ROOT, path);
    if (depth == 0 || depth > MARK_TARGET_DEPTH_MAX || lstat(whole, &status) < 0 ||
        !S_ISDIR(status.st_mode))
        return false;
    target->depth = depth;
    target->group = status.st_ino;
    return true;
}

static struct arena *current_arena(struct mark_targets *targets)
{
    return &targets->arenas[targets->arena];
}

static void find_slurm_cgroup(struct mark_targets *targets, struct mark_target *target,
                              const struct cgroup_patterns *patterns,
                              const char *hierarchy)
{
    for (uint32_t i = 0; i < patterns->count && target->group == 0; i++) {
        const char *pattern = patterns->list[i], *at = strstr(pattern, "%j");
        char path[PATH_BYTES];
        snprintf(path, sizeof path, "%s%.*s%" PRIu64 "%s", hierarchy,
                 (int)(at - pattern), pattern, target->id, at + 2);
        if (find_cgroup(target, path, hierarchy))
            target->cgroup = arena_text(current_arena(targets), path);
    }
}

static void find_target_cgroup(struct mark_targets *targets, struct mark_target *target,
                               const struct cgroup_patterns *patterns,
                               const char *hierarchy)
{
    target->group = 0;
    if (!hierarchy)
        return;
    if (target->cgroup)
        find_cgroup(target, target->cgroup, hierarchy);
    else if (target->slurm)
        find_slurm_cgroup(targets, target, patterns, hierarchy);
}

void mark_targets_init(struct mark_targets *targets)
{
    *targets = (struct mark_targets){ .count = 0 };
    arena_init(&targets->arenas[0], 64 * 1024);
    arena_init(&targets->arenas[1], 64 * 1024);
}

void mark_targets_release(struct mark_targets *targets)
{
    arena_release(&targets->arenas[0]);
    arena_release(&targets->arenas[1]);
}

static int compare_groups(const void *a, const void *b)
{
    const struct mark_target *x = *(struct mark_target *const *)a;
    const struct mark_target *y = *(struct mark_target *const *)b;
    if (x->group != y->group)
        return x->group < y->group ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

/* A cgroup belongs to one job: of several that name it, the one with the smallest id. */
static void drop_shared_cgroups(struct mark_targets *targets)
{
    struct mark_target **order =
        arena_array(current_arena(targets), struct mark_target *, targets->count + 1);
    for (uint32_t i = 0; i < targets->count; i++)
        order[i] = &targets->list[i];
    qsort(order, targets->count, sizeof *order, compare_groups);
    for (uint32_t i = 1, first = 0; i < targets->count; i++)
        if (order[i]->group != order[first]->group)
            first = i;
        else
            order[i]->group = 0;
}

/* Keep what is known of jobs that stay.  Both lists are sorted by id. */
static void keep_namespaces(struct mark_targets *targets, const struct mark_target *old,
                            uint32_t count)
{
    uint32_t a = 0;
    for (uint32_t i = 0; i < targets->count; i++) {
        struct mark_target *target = &targets->list[i];
        while (a < count && old[a].id < target->id)
            a++;
        if (a < count && old[a].id == target->id && old[a].group == target->group)
            target->elsewhere = old[a].elsewhere;
    }
}

void mark_targets_fill(struct mark_targets *targets,
                       const struct desired_marks *desired,
                       const struct dscp_levels *levels,
                       const struct cgroup_patterns *patterns)
{
    const char *hierarchy = mark_target_hierarchy();
    const struct mark_target *old = targets->list;
    uint32_t old_count = targets->count;
    targets->arena = !targets->arena;
    arena_reset(current_arena(targets));
    targets->list =
        arena_array(current_arena(targets), struct mark_target, desired->count + 1);
    targets->count = desired->count;
    for (uint32_t i = 0; i < desired->count; i++) {
        const struct desired_job *job = &desired->jobs[i];
        struct mark_target *target = &targets->list[i];
        *target = (struct mark_target){
            .id = job->id,
            .attempt = job->attempt,
            .level = job->level,
            .point = dscp_levels_point(levels, desired->levels, job->level),
            .pid = job->pid,
            .slurm = job->slurm,
            .cgroup =
                job->cgroup ? arena_text(current_arena(targets), job->cgroup) : NULL,
        };
        find_target_cgroup(targets, target, patterns, hierarchy);
    }
    drop_shared_cgroups(targets);
    keep_namespaces(targets, old, old_count);
}

bool mark_targets_find_missing(struct mark_targets *targets,
                               const struct cgroup_patterns *patterns)
{
    const char *hierarchy = mark_target_hierarchy();
    bool found = false;
    for (uint32_t i = 0; i < targets->count; i++) {
        struct mark_target *target = &targets->list[i];
        if (target->group == 0) {
            find_target_cgroup(targets, target, patterns, hierarchy);
            found = found || target->group != 0;
        }
    }
    if (found)
        drop_shared_cgroups(targets);
    return found;
}

/* The number of the network namespace of a process ("self": ours), or 0. */
static uint64_t network_namespace(const char *process)
{
    char path[64];
    struct stat status;
    snprintf(path, sizeof path, "/proc/%s/ns/net", process);
    return stat(path, &status) == 0 ? status.st_ino : 0;
}

static bool check_process(void *context, int pid, int handle)
{
    struct namespace_search *search = context;
    char process[16];
    snprintf(process, sizeof process, "%d", pid);
    uint64_t network = network_namespace(process);
    search->elsewhere = network && network != search->own;
    return !search->elsewhere && --search->left > 0;
}

bool mark_targets_check_namespaces(struct mark_targets *targets)
{
    uint64_t own = network_namespace("self");
    bool found = false;
    for (uint32_t i = 0; i < targets->count; i++) {
        struct mark_target *target = &targets->list[i];
        struct namespace_search search = { .own = own, .left = PROCESSES_MAX };
        if (target->group == 0 || target->elsewhere)
            continue; /* moving back to the other marker would lose counts */
        procs_for_each(NULL, target, NULL, check_process, &search);
        target->elsewhere = search.elsewhere;
        found = found || search.elsewhere;
    }
    return found;
}
