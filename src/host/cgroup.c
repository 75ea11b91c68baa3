/* cgroup.c - a cgroup per job, in version 2, version 1 or both. */
#include "host/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/bpf.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#define CGROUP2_MAGIC 0x63677270
#define PARENT_PREFIX "berth-"
#define JOBS_UNIT "berth-jobs.service" /* delegated to a user for jobs */
#define DEPTH_MAX 64 /* of cgroups that a job may have made in its own */
#define KILL_ROUNDS 100
#define LOCK_TRIES 20
#define SWEEP_TRIES 100 /* 2 ms each */

static const char *const v1_names[CGROUP_V1_COUNT] = { "memory", "pids", "cpu",
                                                       "devices" };

/* --- files ------------------------------------------------------------------------- */

static bool join_path(char path[CGROUP_PATH_MAX], const char *folder, const char *name)
{
    int length = snprintf(path, CGROUP_PATH_MAX, "%s/%s", folder, name);
    return length > 0 && length < CGROUP_PATH_MAX;
}

static bool write_file(const char *folder, const char *name, const char *text)
{
    char path[CGROUP_PATH_MAX];
    int fd = join_path(path, folder, name)
                 ? open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW)
                 : -1;
    if (fd < 0)
        return false;
    bool written = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    close(fd);
    return written;
}

static bool write_number(const char *folder, const char *name, uint64_t number)
{
    char text[32];
    snprintf(text, sizeof text, "%" PRIu64, number);
    return write_file(folder, name, text);
}

static bool read_file(const char *folder, const char *name, char *text, size_t size)
{
    char path[CGROUP_PATH_MAX];
    int fd = join_path(path, folder, name) ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        return false;
    ssize_t count = read(fd, text, size - 1);
    close(fd);
    text[count > 0 ? count : 0] = '\0';
    return count >= 0;
}

/* Add a reason why something is not enforced. */
static void add_reason(struct cgroup_tree *tree, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static void add_reason(struct cgroup_tree *tree, const char *fmt, ...)
{
    size_t used = strlen(tree->why);
    if (used > 0 && used + 2 < sizeof tree->why) {
        memcpy(tree->why + used, "; ", 3);
        used += 2;
    }
    va_list args;
    va_start(args, fmt);
    vsnprintf(tree->why + used, sizeof tree->why - used, fmt, args);
    va_end(args);
}

static bool has_word(const char *text, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = text; (at = strstr(at, word)); at += length)
        if ((at == text || at[-1] == ' ') && strchr(" \n", at[length]))
            return true;
    return false;
}

/* Remove a cgroup and those below it, as far as they are empty. */
static bool remove_tree(const char *path, int depth)
{
    if (rmdir(path) == 0 || errno == ENOENT)
        return true;
    DIR *dir = depth < DEPTH_MAX ? opendir(path) : NULL;
    if (!dir)
        return false;
    for (struct dirent *entry; (entry = readdir(dir));) {
        char inner[CGROUP_PATH_MAX];
        if (entry->d_type == DT_DIR && entry->d_name[0] != '.' &&
            join_path(inner, path, entry->d_name))
            remove_tree(inner, depth + 1);
    }
    closedir(dir);
    return rmdir(path) == 0 || errno == ENOENT;
}

/* --- devices --------------------------------------------------------------------------- */

/*
 * Version 2 has no device controller: a program in the kernel is asked at every open().
 * Ours knows the denied devices by number and permits everything else.
 */
#define DENIED_MAX 64
#define INSTRUCTIONS_MAX (8 + 4 * DENIED_MAX)

#define LOAD(to, member) \
    ((struct bpf_insn){ .code = BPF_LDX | BPF_MEM | BPF_W, \
                        .dst_reg = (to), \
                        .src_reg = BPF_REG_1, \
                        .off = offsetof(struct bpf_cgroup_dev_ctx, member) })
#define SKIP_UNLESS(reg, value, count) \
    ((struct bpf_insn){ .code = BPF_JMP | BPF_JNE | BPF_K, \
                        .dst_reg = (reg), \
                        .off = (count), \
                        .imm = (int32_t)(value) })
#define RETURN_VALUE(value) \
    ((struct bpf_insn){ .code = BPF_ALU64 | BPF_MOV | BPF_K, .imm = (value) })
#define EXIT_PROGRAM ((struct bpf_insn){ .code = BPF_JMP | BPF_EXIT })

/* r2 and r3 are the device's numbers; r0 is the answer: 0 denies. */
static uint32_t write_program(struct bpf_insn *code, const struct cgroup_device *denied,
                              uint32_t count)
{
    uint32_t used = 0;
    code[used++] = LOAD(BPF_REG_2, major);
    code[used++] = LOAD(BPF_REG_3, minor);
    for (uint32_t i = 0; i < count; i++) {
        code[used++] = SKIP_UNLESS(BPF_REG_2, denied[i].major, 3);
        code[used++] = SKIP_UNLESS(BPF_REG_3, denied[i].minor, 2);
        code[used++] = RETURN_VALUE(0);
        code[used++] = EXIT_PROGRAM;
    }
    code[used++] = RETURN_VALUE(1);
    code[used++] = EXIT_PROGRAM;
    return used;
}

static int load_program(const struct cgroup_device *denied, uint32_t count)
{
    struct bpf_insn code[INSTRUCTIONS_MAX];
    union bpf_attr attr;
    memset(&attr, 0, sizeof attr);
    attr.prog_type = BPF_PROG_TYPE_CGROUP_DEVICE;
    attr.insns = (uint64_t)(uintptr_t)code;
    attr.insn_cnt = write_program(code, denied, count);
    attr.license = (uint64_t)(uintptr_t) "MIT";
    return (int)syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof attr);
}

/* Whether this process may load such a program. */
static bool can_deny_devices(void)
{
    int fd = load_program(NULL, 0);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static bool deny_devices(const char *path, const struct cgroup_device *denied,
                         uint32_t count)
{
    int program = count <= DENIED_MAX ? load_program(denied, count) : -1;
    int group = open(path, O_DIRECTORY | O_CLOEXEC);
    union bpf_attr attr;
    memset(&attr, 0, sizeof attr);
    attr.target_fd = (uint32_t)group;
    attr.attach_bpf_fd = (uint32_t)program;
    attr.attach_type = BPF_CGROUP_DEVICE;
    attr.attach_flags = BPF_F_ALLOW_MULTI;
    bool attached = program >= 0 && group >= 0 &&
                    syscall(SYS_bpf, BPF_PROG_ATTACH, &attr, sizeof attr) == 0;
    if (program >= 0)
        close(program);
    if (group >= 0)
        close(group);
    return attached;
}

/* --- where the hierarchies are ------------------------------------------------------- */

/* Where version 2 is mounted: alone, or beside version 1. */
static const char *find_v2_mount(void)
{
    static const char *const places[] = { "/sys/fs/cgroup", "/sys/fs/cgroup/unified" };
    struct statfs fs;
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
        if (statfs(places[i], &fs) == 0 && fs.f_type == CGROUP2_MAGIC)
            return places[i];
    return NULL;
}

/* Does "3:cpu,cpuacct:/a/b" name this controller ("": version 2)?  Sets the path. */
static bool names_controller(char *line, const char *controller, const char **ret_path)
{
    char *names = strchr(line, ':');
    char *path = names ? strchr(names + 1, ':') : NULL;
    if (!path)
        return false;
    *path++ = '\0';
    *ret_path = strcmp(path, "/") == 0 ? "" : path;
    char *rest = names + 1;
    for (char *name; (name = strsep(&rest, ","));)
        if (strcmp(name, controller) == 0)
            return true;
    return false;
}

/* The cgroup of this process, below the mount; "": the top. */
static bool find_own_group(const char *controller, char path[CGROUP_PATH_MAX])
{
    FILE *file = fopen("/proc/self/cgroup", "re");
    if (!file)
        return false;
    bool found = false;
    char line[CGROUP_PATH_MAX + 64];
    while (!found && fgets(line, sizeof line, file)) {
        const char *group;
        line[strcspn(line, "\n")] = '\0';
        found = names_controller(line, controller, &group);
        if (found)
            found = snprintf(path, CGROUP_PATH_MAX, "%s", group) < CGROUP_PATH_MAX;
    }
    fclose(file);
    return found;
}

/*
 * Whether no berthd uses this parent: the lock on it is free.  Sets the descriptor that has
 * the lock then.
 */
static bool is_unused(const char *path, int *ret_lock)
{
    *ret_lock = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (*ret_lock >= 0 && flock(*ret_lock, LOCK_EX | LOCK_NB) == 0)
        return true;
    if (*ret_lock >= 0)
        close(*ret_lock);
    return false;
}

/* A parent of some berthd: the prefix and eight hexadecimal digits. */
static bool is_parent_name(const char *name)
{
    size_t prefix = strlen(PARENT_PREFIX);
    return strncmp(name, PARENT_PREFIX, prefix) == 0 &&
           strspn(name + prefix, "0123456789abcdef") == 8 && name[prefix + 8] == '\0';
}

/* Remove what berthds left behind that did not get to clean up. */
static void remove_empty_parents(const char *folder, const char *own)
{
    DIR *dir = opendir(folder);
    int lock;
    if (!dir)
        return;
    for (struct dirent *entry; (entry = readdir(dir));) {
        char path[CGROUP_PATH_MAX];
        if (!is_parent_name(entry->d_name) || strcmp(entry->d_name, own) == 0 ||
            !join_path(path, folder, entry->d_name) || !is_unused(path, &lock))
            continue;
        remove_tree(path, 0);
        close(lock);
    }
    closedir(dir);
}

/*
 * Make the folder and hold a lock on it; again, if another berthd removed it in between.
 * -1: it cannot be had.
 */
static int make_locked(const char *parent)
{
    for (int tries = 0; tries < LOCK_TRIES; tries++) {
        struct stat held, named;
        if (mkdir(parent, 0755) < 0 && errno != EEXIST)
            return -1;
        int lock = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (lock < 0)
            continue;
        if (flock(lock, LOCK_SH) == 0 && fstat(lock, &held) == 0 &&
            stat(parent, &named) == 0 && held.st_ino == named.st_ino &&
            access(parent, W_OK) == 0)
            return lock;
        close(lock);
    }
    return -1;
}

/* Move the processes of a cgroup into a child of it, so that it can be divided. */
static void vacate_group(const char *folder)
{
    char keeper[CGROUP_PATH_MAX], name[CGROUP_PATH_MAX];
    if (!join_path(keeper, folder, "keeper") ||
        !join_path(name, folder, "cgroup.procs") ||
        (mkdir(keeper, 0755) < 0 && errno != EEXIST))
        return;
    FILE *file = fopen(name, "re");
    if (!file)
        return;
    for (unsigned pid; fscanf(file, "%u", &pid) == 1;)
        write_number(keeper, "cgroup.procs", pid);
    fclose(file);
}

/*
 * A service of one user cannot limit jobs in its own cgroup: the processes in there forbid
 * that controllers are passed on to its children, and if it moved them, the service manager
 * could not start the service again while jobs run.  So jobs have a service beside it,
 * whose one process only keeps the cgroup.  Sets 'folder' to it, or to our own cgroup.
 */
static bool find_divisible(char folder[CGROUP_PATH_MAX], const char *mount,
                           const char *own)
{
    const char *last = strrchr(own, '/');
    int length = snprintf(folder, CGROUP_PATH_MAX, "%s%.*s/" JOBS_UNIT, mount,
                          last ? (int)(last - own) : 0, own);
    if (length > 0 && length < CGROUP_PATH_MAX && access(folder, W_OK) == 0) {
        vacate_group(folder);
        return true;
    }
    length = snprintf(folder, CGROUP_PATH_MAX, "%s%s", mount, own);
    return length > 0 && length < CGROUP_PATH_MAX;
}

/* Make the parent in a hierarchy; -1: it cannot be had, else a lock on it. */
static int open_parent(struct cgroup_tree *tree, char parent[CGROUP_PATH_MAX],
                       const char *mount, const char *controller, const char *name,
                       bool at_top)
{
    char own[CGROUP_PATH_MAX] = "", folder[CGROUP_PATH_MAX];
    parent[0] = '\0';
    /* Below our own group in version 1: a container has no other place there. */
    if ((!at_top || *controller) && !find_own_group(controller, own))
        return -1;
    if (!find_divisible(folder, mount, own) ||
        strlen(folder) >= sizeof folder - CGROUP_NAME_MAX * 2)
        return -1;
    remove_empty_parents(folder, name);
    int lock = join_path(parent, folder, name) ? make_locked(parent) : -1;
    if (lock < 0 && !*controller)
        add_reason(tree, "this user may not make cgroups in %s (%s)", folder,
                   strerror(errno));
    if (lock < 0)
        parent[0] = '\0';
    return lock;
}

static const struct {
    const char *name, *add;
    uint32_t feature;
} v2_controllers[] = { { "memory", "+memory", CGROUP_MEMORY },
                       { "pids", "+pids", CGROUP_PIDS },
                       { "cpu", "+cpu", CGROUP_CPU } };
#define V2_CONTROLLERS (sizeof v2_controllers / sizeof v2_controllers[0])

static void find_above(const char *parent, char above[CGROUP_PATH_MAX])
{
    snprintf(above, CGROUP_PATH_MAX, "%s", parent);
    *strrchr(above, '/') = '\0';
}

/* The top of the hierarchy, which has no type, may have processes and children with limits. */
static bool has_processes(const char *path)
{
    char text[64];
    return read_file(path, "cgroup.type", text, sizeof text) &&
           read_file(path, "cgroup.procs", text, sizeof text) && text[0];
}

/*
 * Version 2 gives a controller to children only when the parent passes it on.  From a
 * cgroup with processes none may be taken: the kernel refuses "memory", but it accepts
 * "pids" and "cpu", and then refuses every process in the children.
 */
static uint32_t enable_v2_controllers(const char *parent)
{
    char above[CGROUP_PATH_MAX], given[256];
    uint32_t features = 0;
    find_above(parent, above);
    bool divisible = !has_processes(above);
    for (size_t i = 0; i < V2_CONTROLLERS && divisible; i++) {
        write_file(above, "cgroup.subtree_control", v2_controllers[i].add);
        write_file(parent, "cgroup.subtree_control", v2_controllers[i].add);
        if (read_file(parent, "cgroup.subtree_control", given, sizeof given) &&
            has_word(given, v2_controllers[i].name))
            features |= v2_controllers[i].feature;
    }
    return features;
}

/* Say why the limits that are missing after all are not enforced. */
static void explain_limits(struct cgroup_tree *tree)
{
    char above[CGROUP_PATH_MAX], names[64] = "";
    for (size_t i = 0; i < V2_CONTROLLERS; i++)
        if (!(tree->features & v2_controllers[i].feature)) {
            size_t used = strlen(names);
            snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "",
                     v2_controllers[i].name);
        }
    if (!names[0] || !tree->v2[0])
        return;
    find_above(tree->v2, above);
    if (has_processes(above))
        add_reason(tree, "%s has processes, so it passes no controller on (%s)", above,
                   names);
    else
        add_reason(tree, "%s does not have or pass on: %s", above, names);
}

static void open_v1(struct cgroup_tree *tree, const char *name, bool at_top)
{
    static const uint32_t features[CGROUP_V1_COUNT] = { CGROUP_MEMORY, CGROUP_PIDS,
                                                        CGROUP_CPU, CGROUP_DEVICES };
    for (int i = 0; i < CGROUP_V1_COUNT; i++) {
        char mount[64];
        snprintf(mount, sizeof mount, "/sys/fs/cgroup/%s", v1_names[i]);
        if (tree->features & features[i])
            continue;
        tree->locks[1 + i] =
            open_parent(tree, tree->v1[i], mount, v1_names[i], name, at_top);
        if (tree->locks[1 + i] >= 0)
            tree->features |= features[i];
    }
}

void cgroup_tree_open(struct cgroup_tree *tree, const char *name, bool at_top)
{
    *tree = (struct cgroup_tree){ .locks = { -1, -1, -1, -1, -1 } };
    const char *mount = find_v2_mount();
    if (!mount)
        add_reason(tree, "no cgroups of version 2 are mounted at /sys/fs/cgroup");
    else if ((tree->locks[0] = open_parent(tree, tree->v2, mount, "", name, at_top)) >=
             0) {
        tree->features = CGROUP_KILL | enable_v2_controllers(tree->v2);
        if (can_deny_devices())
            tree->features |= CGROUP_DEVICES;
    }
    open_v1(tree, name, at_top);
    explain_limits(tree);
    if (tree->v2[0] && !(tree->features & CGROUP_DEVICES))
        add_reason(tree, "only root may filter devices");
}

/* Every parent that there is. */
static const char *next_parent(const struct cgroup_tree *tree, int *at)
{
    while (*at <= CGROUP_V1_COUNT) {
        const char *parent = *at == 0 ? tree->v2 : tree->v1[*at - 1];
        (*at)++;
        if (parent[0])
            return parent;
    }
    return NULL;
}

void cgroup_tree_close(struct cgroup_tree *tree)
{
    const char *parent;
    for (int at = 0; (parent = next_parent(tree, &at));)
        rmdir(parent); /* only if no job is left in it */
    for (int i = 0; i < CGROUP_PARENTS; i++)
        if (tree->locks[i] > 0) /* 0: there never was one */
            close(tree->locks[i]);
    *tree = (struct cgroup_tree){ .features = 0 };
}

static bool is_limited(enum cgroup_v1 controller, const struct cgroup_limits *limits)
{
    const bool limited[CGROUP_V1_COUNT] = {
        [CGROUP_V1_MEMORY] = limits->memory_bytes > 0,
        [CGROUP_V1_PIDS] = limits->pids > 0,
        [CGROUP_V1_CPU] = limits->cpu_milli > 0,
        [CGROUP_V1_DEVICES] = limits->denied_count > 0,
    };
    return limited[controller];
}

void cgroup_tree_list(const struct cgroup_tree *tree,
                      const struct cgroup_limits *limits,
                      const char *parents[CGROUP_PARENTS])
{
    parents[0] = tree->v2[0] ? tree->v2 : NULL;
    for (int i = 0; i < CGROUP_V1_COUNT; i++)
        parents[1 + i] = tree->v1[i][0] && is_limited((enum cgroup_v1)i, limits)
                             ? tree->v1[i]
                             : NULL;
}

void cgroup_tree_join(struct cgroup_tree *tree,
                      const char *const parents[CGROUP_PARENTS])
{
    *tree = (struct cgroup_tree){ .features = parents[0] ? CGROUP_KILL : 0 };
    for (int i = 0; i < CGROUP_PARENTS; i++)
        if (parents[i])
            snprintf(i == 0 ? tree->v2 : tree->v1[i - 1], CGROUP_PATH_MAX, "%s",
                     parents[i]);
}

/* --- one job --------------------------------------------------------------------------- */

static bool make_group(const struct cgroup_tree *tree, const char *parent,
                       const char *job, char path[CGROUP_PATH_MAX])
{
    if (!parent[0] || !join_path(path, parent, job))
        return false;
    if (mkdir(path, 0755) == 0 || errno == EEXIST)
        return true;
    /* An administrator, or an older berthd, has removed the empty parent. */
    if (errno != ENOENT || mkdir(parent, 0755) < 0)
        return false;
    if (parent == tree->v2)
        enable_v2_controllers(parent);
    return mkdir(path, 0755) == 0;
}

/*
 * A share, not a cap: idle processors are anybody's, and under contention each job gets
 * processors in proportion to those that it asked for.  One processor is 100.
 */
static uint64_t cpu_weight(uint32_t cpu_milli, uint64_t max)
{
    uint64_t weight = cpu_milli / 10;
    return weight < 1 ? 1 : weight > max ? max : weight;
}

static void limit_v2(const char *path, const struct cgroup_limits *limits)
{
    if (limits->memory_bytes) {
        write_number(path, "memory.max", limits->memory_bytes);
        write_number(path, "memory.swap.max", 0);
        write_file(path, "memory.oom.group", "1");
    }
    if (limits->pids)
        write_number(path, "pids.max", limits->pids);
    if (limits->cpu_milli)
        write_number(path, "cpu.weight", cpu_weight(limits->cpu_milli, 10000));
    if (limits->denied_count)
        deny_devices(path, limits->denied, limits->denied_count);
}

/* A group of version 1 is made only for a limit: to join one takes milliseconds. */
static void limit_v1(enum cgroup_v1 controller, const char *path,
                     const struct cgroup_limits *limits)
{
    char text[64];
    switch (controller) {
    case CGROUP_V1_MEMORY:
        write_number(path, "memory.limit_in_bytes", limits->memory_bytes);
        break;
    case CGROUP_V1_PIDS:
        write_number(path, "pids.max", limits->pids);
        break;
    case CGROUP_V1_CPU:
        write_number(path, "cpu.shares", cpu_weight(limits->cpu_milli, 26214) * 10);
        break;
    case CGROUP_V1_DEVICES:
        for (uint32_t i = 0; i < limits->denied_count; i++) {
            snprintf(text, sizeof text, "c %u:%u rwm", limits->denied[i].major,
                     limits->denied[i].minor);
            write_file(path, "devices.deny", text);
        }
        break;
    }
}

bool cgroup_make(const struct cgroup_tree *tree, const char *job,
                 const struct cgroup_limits *limits)
{
    char path[CGROUP_PATH_MAX];
    bool made = make_group(tree, tree->v2, job, path);
    if (made)
        limit_v2(path, limits);
    for (int i = 0; i < CGROUP_V1_COUNT; i++)
        if (is_limited((enum cgroup_v1)i, limits) &&
            make_group(tree, tree->v1[i], job, path)) {
            made = true;
            limit_v1((enum cgroup_v1)i, path, limits);
        }
    return made;
}

bool cgroup_path(const struct cgroup_tree *tree, const char *job,
                 char path[CGROUP_PATH_MAX])
{
    return tree->v2[0] && join_path(path, tree->v2, job);
}

/* In the child: join the groups of version 1.  Those that were not made are passed over. */
static bool enter_v1(const struct cgroup_tree *tree, const char *job)
{
    for (int i = 0; i < CGROUP_V1_COUNT; i++) {
        char path[CGROUP_PATH_MAX];
        if (tree->v1[i][0] && join_path(path, tree->v1[i], job) &&
            access(path, F_OK) == 0 && !write_file(path, "cgroup.procs", "0"))
            return false;
    }
    return true;
}

static const uint64_t clone_flags[] = { [CGROUP_FORK_SIBLING] = CLONE_PARENT };
static const int exit_signals
    [] = { [CGROUP_FORK_CHILD] = SIGCHLD, [CGROUP_FORK_SIBLING] = 0 /* as ours */ };

static pid_t fork_plainly(enum cgroup_fork_kind kind)
{
    return (pid_t)syscall(SYS_clone, clone_flags[kind] | (uint64_t)exit_signals[kind],
                          0ul, 0ul, 0ul, 0ul);
}

/*
 * Moving a process into a cgroup of version 2 later waits for the whole machine; creating
 * it there does not.  Old kernels cannot.
 */
static pid_t fork_into(const char *path, enum cgroup_fork_kind kind)
{
    int fd = open(path, O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -1; /* a job that cannot be ended is not started */
    struct clone_args args = { .flags = CLONE_INTO_CGROUP | clone_flags[kind],
                               .exit_signal = (uint64_t)exit_signals[kind],
                               .cgroup = (uint64_t)fd };
    pid_t pid = (pid_t)syscall(SYS_clone3, &args, sizeof args);
    if (pid < 0 && (errno == ENOSYS || errno == E2BIG || errno == EINVAL)) {
        pid = fork_plainly(kind);
        if (pid == 0 && !write_file(path, "cgroup.procs", "0"))
            _exit(126);
    }
    int code = errno;
    close(fd);
    errno = code;
    return pid;
}

int cgroup_fork(const struct cgroup_tree *tree, const char *job,
                enum cgroup_fork_kind kind)
{
    char path[CGROUP_PATH_MAX];
    pid_t pid =
        cgroup_path(tree, job, path) ? fork_into(path, kind) : fork_plainly(kind);
    if (pid == 0 && !enter_v1(tree, job))
        _exit(126);
    return pid;
}

/* A child that shares our memory, on a stack of its own. */
struct spawned {
    const struct cgroup_tree *tree;
    const char *job;
    void (*run)(void *context);
    void *context;
};

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__)
static _Noreturn __attribute__((used)) void run_spawned(struct spawned *spawned)
{
    if (enter_v1(spawned->tree, spawned->job))
        spawned->run(spawned->context);
    _exit(126);
}

/* clone3() returns twice on two stacks, which no function in C can. */
static pid_t clone_spawned(const struct clone_args *args, struct spawned *spawned)
{
    long r;
    register struct spawned *at __asm__("r12") = spawned;
    __asm__ volatile("syscall\n\t"
                     "test %%rax, %%rax\n\t"
                     "jnz 1f\n\t"
                     "mov %%r12, %%rdi\n\t"
                     "call *%[run]\n\t"
                     "hlt\n"
                     "1:"
                     : "=a"(r)
                     : "0"(SYS_clone3), "D"(args), "S"(sizeof *args),
                       "r"(at), [run] "r"(run_spawned)
                     : "rcx", "r11", "memory");
    errno = r < 0 ? (int)-r : errno;
    return r < 0 ? -1 : (pid_t)r;
}

static pid_t spawn_into(int cgroup, struct spawned *spawned)
{
    static _Alignas(16) char stack[CGROUP_STACK_BYTES];
    const struct clone_args args = { .flags = CLONE_VM | CLONE_VFORK |
                                              (cgroup >= 0 ? CLONE_INTO_CGROUP : 0),
                                     .exit_signal = SIGCHLD,
                                     .stack = (uint64_t)(uintptr_t)stack,
                                     .stack_size = sizeof stack,
                                     .cgroup = (uint64_t)(cgroup >= 0 ? cgroup : 0) };
    return clone_spawned(&args, spawned);
}
#else
static pid_t spawn_into(int cgroup, struct spawned *spawned)
{
    (void)cgroup;
    (void)spawned;
    errno = ENOSYS;
    return -1;
}
#endif

int cgroup_spawn(const struct cgroup_tree *tree, const char *job,
                 void (*run)(void *context), void *context)
{
    char path[CGROUP_PATH_MAX];
    struct spawned spawned = { tree, job, run, context };
    bool grouped = cgroup_path(tree, job, path);
    int fd = grouped ? open(path, O_DIRECTORY | O_CLOEXEC) : -1;
    if (grouped && fd < 0)
        return -1; /* a job that cannot be ended is not started */
    pid_t pid = spawn_into(fd, &spawned);
    int code = errno;
    if (fd >= 0)
        close(fd);
    if (pid < 0 && (code == ENOSYS || code == E2BIG || code == EINVAL)) {
        pid = cgroup_fork(tree, job, CGROUP_FORK_CHILD);
        if (pid == 0) {
            run(context);
            _exit(126);
        }
        return pid;
    }
    errno = code;
    return pid;
}

/* --- ending it ----------------------------------------------------------------------------- */

int cgroup_open_kill(const struct cgroup_tree *tree, const char *job)
{
    char path[CGROUP_PATH_MAX], name[CGROUP_PATH_MAX];
    if (!cgroup_path(tree, job, path) || !join_path(name, path, "cgroup.kill"))
        return -1;
    return open(name, O_WRONLY | O_CLOEXEC);
}

int cgroup_open_oom(const struct cgroup_tree *tree, const char *job)
{
    char path[CGROUP_PATH_MAX], name[CGROUP_PATH_MAX];
    const char *v1 = tree->v1[CGROUP_V1_MEMORY];
    int fd = -1;
    if (cgroup_path(tree, job, path) && join_path(name, path, "memory.events"))
        fd = open(name, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && v1[0] && join_path(path, v1, job) &&
        join_path(name, path, "memory.oom_control"))
        fd = open(name, O_RDONLY | O_CLOEXEC);
    return fd;
}

/* "oom_kill 3" is a line of the file in both versions. */
uint64_t cgroup_count_oom_kills(int fd)
{
    static const char key[] = "oom_kill ";
    char text[512];
    ssize_t count = fd < 0 ? -1 : pread(fd, text, sizeof text - 1, 0);
    text[count > 0 ? count : 0] = '\0';
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, strlen(key)) == 0)
            return strtoull(line + strlen(key), NULL, 10);
    }
    return 0;
}

/* One by one, until none is left: a process that forks quickly is met again. */
static bool kill_each(const char *path)
{
    char name[CGROUP_PATH_MAX];
    bool any = false;
    if (!join_path(name, path, "cgroup.procs"))
        return false;
    for (int round = 0; round < KILL_ROUNDS; round++) {
        FILE *file = fopen(name, "re");
        bool found = false;
        if (!file)
            return any;
        for (int pid; fscanf(file, "%d", &pid) == 1;)
            found = (pid > 1 && kill(pid, SIGKILL) == 0) || found;
        fclose(file);
        if (!found)
            return any;
        any = true;
    }
    return any;
}

static bool is_populated(const char *path)
{
    char text[128];
    return read_file(path, "cgroup.events", text, sizeof text) &&
           strstr(text, "populated 1");
}

static bool kill_v2(const char *path)
{
    if (!is_populated(path))
        return false;
    return write_file(path, "cgroup.kill", "1") || kill_each(path);
}

bool cgroup_kill(const struct cgroup_tree *tree, const char *job)
{
    char path[CGROUP_PATH_MAX];
    if (cgroup_path(tree, job, path))
        return kill_v2(path);
    for (int i = 0; i < CGROUP_V1_COUNT; i++)
        if (tree->v1[i][0] && join_path(path, tree->v1[i], job))
            return kill_each(path);
    return false;
}

bool cgroup_remove(const struct cgroup_tree *tree, const char *job)
{
    const char *parent;
    char path[CGROUP_PATH_MAX];
    bool gone = true;
    for (int at = 0; (parent = next_parent(tree, &at));)
        gone = (join_path(path, parent, job) && remove_tree(path, 0)) && gone;
    return gone;
}

/* Processes that were killed are gone after a moment. */
static void remove_soon(const struct cgroup_tree *tree, const char *job)
{
    const struct timespec pause = { .tv_nsec = 2000000 };
    for (int i = 0; i < SWEEP_TRIES && !cgroup_remove(tree, job); i++)
        nanosleep(&pause, NULL);
}

void cgroup_sweep(const struct cgroup_tree *tree,
                  bool (*is_known)(void *context, const char *job), void *context)
{
    const char *parent;
    for (int at = 0; (parent = next_parent(tree, &at));) {
        DIR *dir = opendir(parent);
        if (!dir)
            continue;
        for (struct dirent *entry; (entry = readdir(dir));)
            if (entry->d_type == DT_DIR && entry->d_name[0] != '.' &&
                !is_known(context, entry->d_name)) {
                cgroup_kill(tree, entry->d_name);
                remove_soon(tree, entry->d_name);
            }
        closedir(dir);
    }
}
