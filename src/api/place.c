/* place.c - the usual places, from the environment. */
#include "api/place.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/error.h"

static int printed(int count, size_t size, struct error *err)
{
    if (count < 0 || (size_t)count >= size)
        return error_set(err, -ENAMETOOLONG, "a path is longer than %zu bytes", size);
    return 0;
}

/* A folder that a variable names; relative ones do not count. */
static const char *folder(const char *variable)
{
    const char *path = getenv(variable);
    return path && path[0] == '/' ? path : NULL;
}

int place_state(char *path, size_t size, struct error *err)
{
    const char *state = folder("XDG_STATE_HOME");
    if (state)
        return printed(snprintf(path, size, "%s/berth", state), size, err);
    const char *home = folder("HOME");
    struct passwd *user = home ? NULL : getpwuid(getuid());
    home = home ? home : user ? user->pw_dir : NULL;
    if (!home)
        return error_set(err, -ENOENT, "HOME is not set, and user %u has no home",
                         (unsigned)getuid());
    return printed(snprintf(path, size, "%s/.local/state/berth", home), size, err);
}

int place_socket(char *path, size_t size, struct error *err)
{
    const char *runtime = folder("XDG_RUNTIME_DIR");
    return printed(
        runtime ? snprintf(path, size, "%s/berth/api.sock", runtime)
                : snprintf(path, size, "/tmp/berth-%u/api.sock", (unsigned)getuid()),
        size, err);
}

/* Where the folder's own path is too long for a socket, run.path names another. */
int place_socket_of(char *path, size_t size, const char *state, struct error *err)
{
    struct sockaddr_un address;
    int r = printed(snprintf(path, size, "%s/run/api.sock", state), size, err);
    if (r < 0 || strlen(path) < sizeof address.sun_path)
        return r;
    char other[PLACE_MAX];
    r = printed(snprintf(other, sizeof other, "%s/run.path", state), sizeof other, err);
    FILE *file = r == 0 ? fopen(other, "re") : NULL;
    if (!file)
        return 0; /* not there yet: whoever connects will say so */
    if (fgets(other, sizeof other, file)) {
        other[strcspn(other, "\n")] = '\0';
        r = printed(snprintf(path, size, "%s/api.sock", other), size, err);
    }
    fclose(file);
    return r;
}
