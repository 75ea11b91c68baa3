/* up.c - berth up, berth down: start and stop this user's berthd. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "api/paths.h"
#include "api/programs.h"
#include "cmd/berth/connection.h"
#include "cmd/berth/format.h"

#define WAIT_TRIES 600 /* until it has ended, 50 ms apart */

static const struct flag up_flags[] = {
    { "state", 0, "DIR", "where it keeps jobs, logs and checkpoints" },
    { "executor", 0, "NAME", "what carries orders out: local, slurm[:partition=…]" },
    { "fake-gpus", 0, "TYPE:N,…", "slots that stand in for accelerators" },
    { "policy", 'p', "P", "NAME[,setting=value…]; see 'berth policies'" },
    { "flow", 0, "F", "whose packets go first" },
    { "listen", 0, "HOST:PORT", "HTTP over TCP as well, with a token" },
    FLAG_JSON,
    CONNECTION_FLAGS,
    { 0 },
};

static const struct flag down_flags[] = {
    { "kill", 0, NULL, "end the jobs too" },
    CONNECTION_FLAGS,
    { 0 },
};

/* How other commands find berthd if it is not at the usual address. */
static void print_address_hint(const struct call *call)
{
    struct call *usual = NULL;
    if (call_open(&usual, NULL, NULL) < 0)
        return;
    if (strcmp(call_address(usual), call_address(call)) != 0)
        printf("For other commands to find it: export BERTH_ADDR=%s\n",
               call_address(call));
    call_close(usual);
}

static int print_status(const struct flags *flags, struct call *call, bool started)
{
    struct json *server = NULL;
    struct error err;
    int r = call_json(call, "GET", "/v1/server", NULL, &server, &err);
    if (r < 0)
        return command_status(flags, r, &err);
    if (flags_get(flags, "json")) {
        json_put_text(server, "socket", call_address(call));
        json_put_flag(server, "was_started", started);
        return format_print_json(server);
    }
    double total = json_number_or(json_get(server, "gpus"), "total", 0);
    printf("berthd %s at %s: %s, %.0f accelerator%s\n", started ? "is up" : "was up",
           call_address(call), json_text_or(server, "policy", "?"), total,
           total == 1 ? "" : "s");
    print_address_hint(call);
    json_free(server);
    return 0;
}

/* The arguments for berthd: those of our flags that it has as well. */
static void make_arguments(const struct flags *flags, const char *state,
                           const char **args)
{
    static const char *const passed[] = { "--executor", "--fake-gpus", "--policy",
                                          "--flow",     "--listen",    "--socket" };
    uint32_t count = 0;
    if (state) {
        args[count++] = "--state";
        args[count++] = state;
    }
    for (size_t i = 0; i < sizeof passed / sizeof *passed; i++) {
        const char *value = flags_get(flags, passed[i] + 2);
        if (value) {
            args[count++] = passed[i];
            args[count++] = value;
        }
    }
    args[count] = NULL;
}

static bool has_daemon_flags(const struct flags *flags)
{
    for (uint32_t i = 0; i < flags->given_count; i++)
        if (strcmp(flags->given[i].flag->name, "json") != 0 &&
            strcmp(flags->given[i].flag->name, "socket") != 0 &&
            strcmp(flags->given[i].flag->name, "state") != 0)
            return true;
    return false;
}

/* The absolute path of a folder, whether it exists or not. */
static int make_absolute(const struct flags *flags, const char *path, char *whole,
                         size_t size)
{
    char here[PATH_MAX];
    if (!*path)
        return command_wrong(flags, "--state is empty");
    if (path[0] == '/')
        snprintf(whole, size, "%s", path);
    else if (getcwd(here, sizeof here))
        snprintf(whole, size, "%s/%s", here, path);
    else
        return command_failed(flags, "the present folder: %s", strerror(errno));
    return 0;
}

/* A named state folder has its own socket. */
static int find_berthd(const struct flags *flags, const char *state,
                       struct call **ret_call)
{
    char path[PATHS_MAX];
    struct error err;
    const char *address = flags_get(flags, "socket");
    int r = 0;
    if (!address && state) {
        r = paths_socket_of(path, sizeof path, state, &err);
        address = path;
    }
    if (r == 0)
        r = call_open(ret_call, address, &err);
    if (r == 0 && call_is_systems(*ret_call) &&
        !connection_find_system(*ret_call, flags)) {
        call_close(*ret_call); /* one of this user's own is wanted all the same */
        r = paths_socket(path, sizeof path, &err);
        if (r == 0)
            r = call_open(ret_call, path, &err);
    }
    return command_status(flags, r, &err);
}

static int up_run(const struct flags *flags)
{
    const char *args[32], *state = flags_get(flags, "state");
    char whole[2 * PATH_MAX];
    struct call *call = NULL;
    struct error err;
    if (command_refuse_words(flags))
        return 2;
    int status = state ? make_absolute(flags, state, whole, sizeof whole) : 0;
    state = state ? whole : NULL;
    if (status == 0)
        status = find_berthd(flags, state, &call);
    if (status)
        return status;
    bool there = call_answers(call);
    if (there && has_daemon_flags(flags)) {
        status = command_failed(flags,
                                "berthd is up already at %s; 'berth down' first, "
                                "or 'berth set --policy'",
                                call_address(call));
        call_close(call);
        return status;
    }
    if (!there) {
        make_arguments(flags, state, args);
        int r = programs_start_berthd(call, state, args, &err);
        if (r < 0) {
            call_close(call);
            return command_failed(flags, "%s", err.text);
        }
    }
    status = print_status(flags, call, !there);
    call_close(call);
    return status;
}

static bool wait_until_gone(struct call *call)
{
    int tries = 0;
    while (tries < WAIT_TRIES && call_answers(call)) {
        nanosleep(&(struct timespec){ .tv_nsec = 50000000 }, NULL);
        tries++;
    }
    return tries < WAIT_TRIES;
}

/* Whether jobs run without a berthd: their supervisors have a folder each. */
static bool has_running_jobs(void)
{
    char run[PATHS_MAX], path[PATHS_MAX + 8];
    if (paths_run(run, sizeof run, NULL) < 0)
        return false;
    snprintf(path, sizeof path, "%s/jobs", run);
    DIR *folder = opendir(path);
    bool left = false;
    for (struct dirent *entry; folder && !left && (entry = readdir(folder));)
        left = entry->d_name[0] != '.';
    if (folder)
        closedir(folder);
    return left;
}

static int request_stop(struct call *call, bool kill, struct error *err)
{
    return call_json(call, "DELETE", kill ? "/v1/server?kill=true" : "/v1/server", NULL,
                     NULL, err);
}

static int down_run(const struct flags *flags)
{
    struct call *call = NULL;
    struct error err;
    if (command_refuse_words(flags))
        return 2;
    int r = call_open(&call, flags_get(flags, "socket"), &err);
    if (r < 0)
        return command_status(flags, r, &err);
    bool kill = flags_get(flags, "kill") != NULL;
    r = request_stop(call, kill, &err);
    if (r < 0 && !call_answers(call)) /* it has just ended, for whatever reason */
        r = -ECONNREFUSED;
    if (r == -ECONNREFUSED && kill && call_is_standard(call) && has_running_jobs()) {
        r = programs_start_berthd(call, NULL, NULL, &err) < 0 ? -EIO : 0;
        if (r == 0) /* only berthd can end them */
            r = request_stop(call, kill, &err);
    }
    int status = 0;
    if (r == -ECONNREFUSED)
        printf("No berthd runs at %s.\n", call_address(call));
    else if (r < 0)
        status = command_status(flags, r, &err);
    if (r == 0 && !wait_until_gone(call))
        status =
            command_failed(flags, "berthd at %s was told to stop and is still there%s",
                           call_address(call),
                           kill ? ": it waits for jobs to end; 'berth down' does "
                                  "not wait for them"
                                : "");
    call_close(call);
    return status;
}

const struct command command_up = {
    .name = "up",
    .group = "Use",
    .brief = "start berthd for this user",
    .usage = "[flags]",
    .flags = up_flags,
    .run = up_run,
};

const struct command command_down = {
    .name = "down",
    .group = "Use",
    .brief = "stop it; jobs go on, unless --kill",
    .usage = "[--kill]",
    .flags = down_flags,
    .run = down_run,
};
