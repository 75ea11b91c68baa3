/* paths.c - standard paths of folders and sockets, from the environment. */
#include "api/paths.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/error.h"
#include "executor/local/local.h"

static int check_length(int count, size_t size, struct error *err)
{
    if (count < 0 || (size_t)count >= size)
        return error_set(err, -ENAMETOOLONG, "a path is longer than %zu bytes", size);
    return 0;
}

/* The folder that a variable names; relative paths do not count. */
static const char *read_folder(const char *variable)
{
    const char *path = getenv(variable);
    return path && path[0] == '/' ? path : NULL;
}

int paths_state(char *path, size_t size, struct error *err)
{
    const char *state = read_folder("XDG_STATE_HOME");
    if (state)
        return check_length(snprintf(path, size, "%s/berth", state), size, err);
    const char *home = read_folder("HOME");
    struct passwd *user = home ? NULL : getpwuid(getuid());
    home = home ? home : user ? user->pw_dir : NULL;
    if (!home)
        return error_set(err, -ENOENT, "HOME is not set, and user %u has no home",
                         (unsigned)getuid());
    return check_length(snprintf(path, size, "%s/.local/state/berth", home), size, err);
}

int paths_run(char *path, size_t size, struct error *err)
{
    const char *runtime = read_folder("XDG_RUNTIME_DIR");
    if (runtime && strlen(runtime) + strlen("/berth") <= LOCAL_RUN_DIR_MAX)
        return check_length(snprintf(path, size, "%s/berth", runtime), size, err);
    return check_length(snprintf(path, size, "/tmp/berth-%u", (unsigned)geteuid()),
                        size, err);
}

int paths_check(const char *path, struct error *err)
{
    static const char hint[] = "have it removed, or set XDG_RUNTIME_DIR to a folder of "
                               "your own";
    struct stat found;
    if (lstat(path, &found) < 0)
        return errno == ENOENT
                   ? 0
                   : error_set(err, -errno, "%.150s: %s", path, strerror(errno));
    if (S_ISLNK(found.st_mode) || !S_ISDIR(found.st_mode))
        return error_set(err, -EPERM, "%.150s is %s and not a folder: %s", path,
                         S_ISLNK(found.st_mode) ? "a link" : "a file", hint);
    if (found.st_uid != geteuid())
        return error_set(err, -EPERM,
                         "%.150s belongs to user %u and is not trusted: %s", path,
                         (unsigned)found.st_uid, hint);
    return 0;
}

int paths_socket(char *path, size_t size, struct error *err)
{
    char run[PATHS_MAX];
    int r = paths_run(run, sizeof run, err);
    if (r == 0)
        r = paths_check(run, err);
    return r < 0 ? r
                 : check_length(snprintf(path, size, "%s/api.sock", run), size, err);
}

/* Where the folder's own path is too long for a socket, run.path names another. */
int paths_socket_of(char *path, size_t size, const char *state, struct error *err)
{
    struct sockaddr_un address;
    int r = check_length(snprintf(path, size, "%s/run/api.sock", state), size, err);
    if (r < 0 || strlen(path) < sizeof address.sun_path)
        return r;
    char other[PATHS_MAX];
    r = check_length(snprintf(other, sizeof other, "%s/run.path", state), sizeof other,
                     err);
    FILE *file = r == 0 ? fopen(other, "re") : NULL;
    if (!file)
        return 0; /* not there yet: connecting to it fails with a sentence */
    if (fgets(other, sizeof other, file)) {
        other[strcspn(other, "\n")] = '\0';
        r = paths_check(other, err);
        if (r == 0)
            r = check_length(snprintf(path, size, "%s/api.sock", other), size, err);
    }
    fclose(file);
    return r;
}
