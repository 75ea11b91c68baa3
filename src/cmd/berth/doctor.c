/* doctor.c - berth doctor: what this machine offers, and what is missing. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/paths.h"
#include "api/programs.h"
#include "base/arena.h"
#include "base/clock.h"
#include "cmd/berth/connection.h"
#include "cmd/berth/format.h"
#include "cmd/berth/terminal.h"
#include "cmd/berth/text_table.h"
#include "host/gpus.h"
#include "version.h"

#define SLURM_S 30 /* longest wait for Slurm's answer */

extern char **environ;

static const struct flag doctor_flags[] = {
    FLAG_JSON,
    CONNECTION_FLAGS,
    { 0 },
};

#define FLOWD_CHECK_MS 5000

/* As it should be; works with less; does not work. */
enum doctor_verdict { FINE, LESS, BAD };

static const char *const verdicts[] = { [FINE] = "ok", [LESS] = "less", [BAD] = "bad" };

static void add_check(struct json *checks, const char *what,
                      enum doctor_verdict verdict, const char *text, const char *hint)
{
    struct json *row = json_new_object();
    json_put_text(row, "what", what);
    json_put_text(row, "verdict", verdicts[verdict]);
    json_put_text(row, "text", text);
    if (verdict != FINE && hint)
        json_put_text(row, "hint", hint);
    json_add(checks, row);
}

static int spawn_program(const char *const *argv, int out, pid_t *ret_pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, out, STDERR_FILENO);
    int r =
        posix_spawnp(ret_pid, argv[0], &actions, NULL, (char *const *)argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    return -r;
}

/* Read until the end of the output, or the time limit; what does not fit is dropped. */
static bool read_output(int fd, int64_t end_ms, char *text, size_t size)
{
    size_t used = 0;
    for (;;) {
        char more[1024];
        int64_t left_ms = end_ms - clock_now_ms();
        struct pollfd one = { .fd = fd, .events = POLLIN };
        if (left_ms <= 0 || poll(&one, 1, (int)left_ms) == 0)
            return false;
        ssize_t count = read(fd, more, sizeof more);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return true;
        for (ssize_t i = 0; i < count && used + 1 < size; i++)
            text[used++] = more[i];
        text[used] = '\0';
    }
}

/*
 * Run a program (found by PATH; 'argv' is ended by NULL) and keep the beginning of its output
 * and errors.  Returns its exit status, or negative: -ENOENT if there is no such program,
 * -ETIMEDOUT if it took too long and was killed, another errno if it could not be run or was
 * killed by a signal.
 */
static int run_program(const char *const *argv, int limit_ms, char *text, size_t size)
{
    int ends[2], status;
    pid_t pid;
    text[0] = '\0';
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    int r = spawn_program(argv, ends[1], &pid);
    close(ends[1]);
    bool done = r == 0 && read_output(ends[0], clock_now_ms() + limit_ms, text, size);
    close(ends[0]);
    if (r < 0)
        return r;
    if (!done)
        kill(pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return -errno;
    if (!done)
        return -ETIMEDOUT;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -ECANCELED;
}

static void check_programs(struct json *checks)
{
    static const char *const names[] = { "berthd", "berth-run" };
    for (size_t i = 0; i < 2; i++) {
        const char *path = programs_find(names[i]);
        char text[200];
        snprintf(text, sizeof text, "%.190s", path ? path : "not beside berth");
        add_check(
            checks, names[i], path ? FINE : LESS, text,
            "it is looked for in PATH; the package berthd has it, 'make install' too");
    }
}

/* Add one line of berth-slurm --check: "ok   what", "NO   what: advice", or a remark. */
static void add_slurm_line(struct json *checks, char *line)
{
    char *advice = strstr(line, ": ");
    line[strcspn(line, "\n")] = '\0';
    if (strlen(line) < 6)
        return;
    bool no = strncmp(line, "NO", 2) == 0;
    if (no && advice) {
        *advice = '\0';
        advice += 2;
    }
    add_check(checks, "Slurm", no ? LESS : FINE, line + 5, no && advice ? advice : "");
}

/* 'executor' is as berthd reports it: "slurm:partition=a,b". */
static void check_slurm(struct json *checks, const char *executor)
{
    static const char of[] = "slurm:partition=";
    const char *program = programs_find("berth-slurm");
    const char *words[70] = { program ? program : "berth-slurm", "--check" };
    char names[1024] = "", line[400];
    uint32_t count = 2;
    int out[2], status = 0;
    if (strncmp(executor, of, strlen(of)) == 0)
        snprintf(names, sizeof names, "%s", executor + strlen(of));
    char *rest = names;
    for (char *name; (name = strsep(&rest, ",")) && *name && count < 66;) {
        words[count++] = "--partition";
        words[count++] = name;
    }
    if (pipe(out) < 0)
        return;
    pid_t pid = fork();
    if (pid == 0) {
        dup2(out[1], STDOUT_FILENO);
        close(out[0]);
        alarm(SLURM_S); /* outlives the exec */
        execvp(words[0], (char *const *)(uintptr_t)words);
        _exit(127);
    }
    close(out[1]);
    FILE *file = fdopen(out[0], "r");
    while (file && fgets(line, sizeof line, file))
        add_slurm_line(checks, line);
    if (file)
        fclose(file);
    if (pid > 0)
        waitpid(pid, &status, 0);
    if (pid < 0 || status != 0)
        add_check(checks, "Slurm", BAD,
                  WIFSIGNALED(status) ? "does not answer"
                                      : "berth-slurm --check is not content",
                  "see docs/guide/slurm.md");
}

/* Whether this host belongs to a Slurm cluster. */
static bool has_slurm(void)
{
    const char *conf = getenv("SLURM_CONF");
    return access(conf ? conf : "/etc/slurm/slurm.conf", R_OK) == 0;
}

/* What the kernel enforces for each job of the berthd that runs. */
static void check_isolation(struct json *checks, const struct json *server)
{
    static const char *const wanted[] = { "processes", "memory", "pids", "cpu",
                                          "devices" };
    const struct json *enforced = json_get(server, "enforced");
    char has[200] = "", lacks[200] = "";
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        bool found = false;
        for (size_t k = 0; k < json_count(enforced); k++) {
            const char *name = json_as_text(json_item(enforced, k));
            found = found || (name && strcmp(name, wanted[i]) == 0);
        }
        char *text = found ? has : lacks;
        size_t used = strlen(text);
        snprintf(text + used, sizeof has - used, "%s%s", used ? ", " : "", wanted[i]);
    }
    const char *why = json_text_or(server, "not_enforced_because", "");
    char text[900];
    snprintf(text, sizeof text, "enforced for each job: %s%s%s%s%s",
             *has ? has : "nothing", *lacks ? "; not enforced: " : "", lacks,
             *lacks && *why ? ", because: " : "", *lacks ? why : "");
    if (enforced)
        add_check(checks, "isolation", *lacks ? LESS : FINE, text,
                  "see 'What is enforced where' in docs/guide/security.md");
}

/* What matters to other checks of the berthd that runs. */
struct doctor_daemon {
    char mps[400];     /* folder of MPS that it tells jobs   */
    bool serves_slurm; /* its jobs run on nodes of Slurm's   */
};

static void check_daemon(struct json *checks, const struct flags *flags,
                         struct doctor_daemon *daemon)
{
    struct call *call = NULL;
    struct json *server = NULL;
    struct error err;
    char text[400];
    int r = call_open(&call, flags_get(flags, "socket"), &err);
    if (r < 0) {
        add_check(checks, "daemon", BAD, err.text, "see --socket and BERTH_ADDR");
        return;
    }
    r = call_json(call, "GET", "/v1/server", NULL, &server, &err);
    if (r < 0) {
        add_check(
            checks, "daemon", r == -ECONNREFUSED ? LESS : BAD, err.text,
            call_is_systems(call)
                ? "it is this machine's, for all users: 'systemctl start berthd', "
                  "as root; 'berth up' starts one of your own"
                : "'berth up' starts it, and so does the first verb that needs it");
        if (has_slurm())
            check_slurm(checks, "slurm");
    } else {
        const char *version = json_text_or(server, "version", "?");
        snprintf(text, sizeof text, "runs at %.200s, policy %.60s", call_address(call),
                 json_text_or(server, "policy", "?"));
        add_check(checks, "daemon", FINE, text, NULL);
        snprintf(text, sizeof text, "berth %s, berthd %.40s", BERTH_VERSION, version);
        add_check(checks, "versions", strcmp(version, BERTH_VERSION) == 0 ? FINE : LESS,
                  text, "'berth down' and 'berth up': jobs go on meanwhile");
        check_isolation(checks, server);
        snprintf(daemon->mps, sizeof daemon->mps, "%s",
                 json_text_or(server, "mps", ""));
        daemon->serves_slurm =
            strncmp(json_text_or(server, "executor", ""), "slurm", 5) == 0;
        if (daemon->serves_slurm)
            check_slurm(checks, json_text_or(server, "executor", ""));
        if (json_get(server, "store_trouble"))
            add_check(checks, "store", BAD, json_text_or(server, "store_trouble", ""),
                      "nothing is accepted until it can be written; what runs goes on");
        if (json_get(server, "start_trouble"))
            add_check(checks, "starts", BAD, json_text_or(server, "start_trouble", ""),
                      "no job starts until that is mended; what runs goes on");
        if (json_get(server, "trouble"))
            add_check(checks, "Slurm", BAD, json_text_or(server, "trouble", ""),
                      "nothing starts until it answers; what runs goes on");
        json_free(server);
    }
    call_close(call);
}

/* "2 v100 with 15.5 GiB, 1 rtx2080ti with 10.8 GiB". */
static void list_gpus(const struct gpus *gpus, char *text, size_t size)
{
    size_t used = 0;
    for (uint32_t i = 0, count; i < gpus->count && used < size; i += count) {
        const struct gpu *gpu = &gpus->items[i];
        count = 1;
        while (i + count < gpus->count && gpus->items[i + count].type == gpu->type &&
               gpus->items[i + count].bytes == gpu->bytes)
            count++;
        used += (size_t)snprintf(text + used, size - used, "%s%u %s", i ? ", " : "",
                                 (unsigned)count, gpu->type);
        if (gpu->bytes > 0 && used < size)
            used += (size_t)snprintf(text + used, size - used, " with %.1f GiB",
                                     (double)gpu->bytes / 0x1p30);
    }
}

/* Whether jobs can have one of NVIDIA's GPUs together; 'mps': a control daemon's folder. */
static void check_sharing(struct json *checks, const struct gpus *gpus, const char *mps)
{
    bool exclusive = false;
    char text[300];
    for (uint32_t i = 0; i < gpus->count; i++)
        exclusive = exclusive || gpus->items[i].exclusive;
    if (mps)
        snprintf(text, sizeof text,
                 "jobs that share a GPU compute at once, by MPS (%.200s)", mps);
    else if (exclusive)
        snprintf(text, sizeof text,
                 "jobs do not share GPUs of a compute mode that lets one process at a "
                 "time use them: no control daemon of MPS runs");
    else
        snprintf(text, sizeof text,
                 "jobs that share a GPU take turns: no control daemon of MPS runs");
    add_check(checks, "sharing", !mps && exclusive ? LESS : FINE, text,
              "start 'nvidia-cuda-mps-control -d' and then berthd, or leave that mode "
              "with 'nvidia-smi -c DEFAULT'");
}

static void check_gpus(struct json *checks, const char *mps)
{
    char text[400] = "none";
    struct arena arena;
    struct gpus gpus;
    struct error err;
    arena_init(&arena, 0);
    gpus_find(&gpus, &arena, &(struct gpus_setup){ 0 }, &err);
    bool real = gpus.source == GPUS_NVML || gpus.source == GPUS_ROCM;
    if (real)
        list_gpus(&gpus, text, sizeof text);
    add_check(
        checks, "accelerators", real ? FINE : LESS, text,
        "jobs run on CPUs; 'berth up --fake-gpus v100:4' makes slots that stand in");
    for (uint32_t i = 0; i < gpus.left_out_count; i++)
        add_check(checks, "accelerators", LESS, gpus.left_out[i], NULL);
    bool nvml = gpus.source == GPUS_NVML || gpus.left_out_count > 0;
    add_check(
        checks, "NVML", nvml ? FINE : LESS,
        nvml ? "libnvidia-ml.so.1" : "not found, or it finds no driver",
        "needed to see NVIDIA's accelerators and who uses them: comes with the driver");
    if (gpus.source == GPUS_NVML)
        check_sharing(checks, &gpus, gpus_mps_runs(mps) ? mps : gpus_mps_folder(NULL));
    gpus_release(&gpus);
    arena_release(&arena);
}

/* Whether this process may create cgroups below its own, in the unified hierarchy. */
static void check_cgroups(struct json *checks)
{
    char line[512] = "", path[600];
    FILE *file = fopen("/proc/self/cgroup", "re");
    bool unified = false;
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, "0::", 3) == 0) {
            unified = true;
            break;
        }
    if (file)
        fclose(file);
    line[strcspn(line, "\n")] = '\0';
    snprintf(path, sizeof path, "/sys/fs/cgroup%s", unified ? line + 3 : "");
    bool ours = unified && access(path, W_OK) == 0;
    add_check(
        checks, "cgroups", ours ? FINE : LESS,
        ours      ? "version 2, ours to divide"
        : unified ? "version 2, not delegated to us"
                  : "no version 2",
        "without them a job's processes are found by their session and environment; "
        "'systemd-run --user --scope -p Delegate=yes berth up' gives them");
}

/* The rest of the line that begins with this word, or the first line. */
static const char *find_line(char *text, const char *word)
{
    char *rest = text, *first = text;
    for (char *line; (line = strsep(&rest, "\n"));) {
        line += strspn(line, " ");
        if (strncmp(line, word, strlen(word)) == 0)
            return line + strlen(word) + strspn(line + strlen(word), " ");
    }
    return first + strspn(first, " ");
}

/* Ask berth-flowd which way of marking packets works on this host. */
static void check_marking(struct json *checks, const struct flags *flags)
{
    static const char hint[] =
        "levels of 'berth flows' are advice; berth-flowd, as root or with "
        "CAP_NET_ADMIN, marks packets";
    const char *path = programs_find("berth-flowd");
    const char *server = flags_get(flags, "socket");
    const char *argv[] = { path ? path : "berth-flowd", "--check",
                           server ? "--server" : NULL, server, NULL };
    char said[4000], text[400];
    int status = run_program(argv, FLOWD_CHECK_MS, said, sizeof said);
    snprintf(text, sizeof text, "packets are marked by %.300s",
             find_line(said, "used"));
    if (status == -ENOENT)
        snprintf(text, sizeof text, "berth-flowd is not installed");
    else if (status == -ETIMEDOUT)
        snprintf(text, sizeof text, "berth-flowd --check did not end within %d s",
                 FLOWD_CHECK_MS / 1000);
    else if (status != 0)
        snprintf(text, sizeof text, "no packets can be marked here");
    add_check(checks, "flows", status == 0 ? FINE : LESS, text, hint);
}

static void check_rights(struct json *checks)
{
    char text[120];
    snprintf(text, sizeof text, "user %u%s", (unsigned)getuid(),
             geteuid() == 0 ? ", root: may serve all users (berthd --system)"
                            : ": serves this user alone");
    add_check(checks, "rights", FINE, text, NULL);
    struct utsname name;
    if (uname(&name) == 0) {
        snprintf(text, sizeof text, "%.30s %.60s", name.sysname, name.release);
        add_check(checks, "kernel", FINE, text, NULL);
    }
    struct sysinfo info;
    if (sysinfo(&info) == 0) {
        snprintf(text, sizeof text, "%ld CPUs, %.1f GiB", sysconf(_SC_NPROCESSORS_ONLN),
                 (double)info.totalram * info.mem_unit / 0x1p30);
        add_check(checks, "machine", FINE, text, NULL);
    }
}

/* Check the nearest existing folder of a path. */
static void check_folder(struct json *checks, const char *what, const char *folder)
{
    char path[PATHS_MAX], text[400];
    struct statvfs space;
    snprintf(path, sizeof path, "%s", folder);
    while (access(path, F_OK) < 0 && strrchr(path, '/') && strrchr(path, '/') != path)
        *strrchr(path, '/') = '\0';
    if (access(path, W_OK) < 0 || statvfs(path, &space) < 0) {
        snprintf(text, sizeof text, "%.200s: %s", path, strerror(errno));
        add_check(checks, what, BAD, text,
                  "berthd has to write there; or 'berth up --state'");
        return;
    }
    double free_bytes = (double)space.f_bavail * (double)space.f_frsize;
    snprintf(text, sizeof text, "%.200s, %.1f GiB free", folder, free_bytes / 0x1p30);
    add_check(checks, what, free_bytes > 0x1p30 ? FINE : LESS, text,
              "jobs' output and checkpoints go there: make room");
}

static void check_places(struct json *checks)
{
    char path[PATHS_MAX];
    struct error err;
    if (paths_state(path, sizeof path, &err) == 0)
        check_folder(checks, "state", path);
    else
        add_check(checks, "state", BAD, err.text, "set HOME or XDG_STATE_HOME");
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    add_check(checks, "runtime", runtime ? FINE : LESS,
              runtime ? runtime : "XDG_RUNTIME_DIR is not set",
              "sockets go to a folder in /tmp instead");
}

static void print_checks(const struct json *checks)
{
    static const struct text_table_column columns[] = { { "" }, { "" }, { "" } };
    struct text_table table;
    text_table_init(&table, columns, 3);
    for (size_t i = 0; i < json_count(checks); i++) {
        const struct json *row = json_item(checks, i);
        const char *verdict = json_text_or(row, "verdict", "");
        const char *hint = json_as_text(json_get(row, "hint"));
        text_table_add(&table, "%s", verdict);
        text_table_set_colour(&table, verdict[0] == 'o'   ? "32"
                                      : verdict[0] == 'l' ? "33"
                                                          : "31");
        text_table_add(&table, "%s", json_text_or(row, "what", ""));
        text_table_add(&table, "%s%s%s", json_text_or(row, "text", ""),
                       hint ? "; " : "", hint ? hint : "");
    }
    text_table_print(&table, stdout, 0, terminal_has_colours(stdout));
    text_table_release(&table);
}

static int doctor_run(const struct flags *flags)
{
    if (command_refuse_words(flags))
        return 2;
    struct doctor_daemon daemon = { .serves_slurm = false };
    struct json *checks = json_new_array();
    check_programs(checks);
    check_daemon(checks, flags, &daemon);
    if (daemon.serves_slurm) /* what this host has does not matter to its jobs */
        add_check(checks, "accelerators", FINE,
                  "those of Slurm's nodes, as 'berth nodes' lists them", NULL);
    else {
        check_gpus(checks, daemon.mps[0] ? daemon.mps : NULL);
        check_cgroups(checks);
    }
    check_marking(checks, flags);
    check_rights(checks);
    check_places(checks);
    bool bad = false;
    for (size_t i = 0; i < json_count(checks); i++)
        bad |= json_text_or(json_item(checks, i), "verdict", "")[0] == 'b';
    if (flags_get(flags, "json")) {
        struct json *root = json_new_object();
        json_put(root, "checks", checks);
        format_print_json(root);
    } else {
        print_checks(checks);
        json_free(checks);
    }
    return bad ? 1 : 0;
}

const struct command command_doctor = {
    .name = "doctor",
    .group = "Use",
    .brief = "what this machine offers, and what is missing",
    .usage = "[--json]",
    .flags = doctor_flags,
    .run = doctor_run,
};
