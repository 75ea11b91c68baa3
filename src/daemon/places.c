/* places.c - the folders of a berthd, and its socket. */
#include "daemon/places.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/paths.h"
#include "base/error.h"
#include "daemon/privileges.h"
#include "executor/local/local.h"

/*
 * Make the last folder ours: not through a link, and only if it is ours or the service's
 * already.
 */
static int own_folder(const char *path, mode_t mode, const struct service_user *service,
                      struct error *err)
{
    struct stat found;
    int fd =
        open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | (service ? O_NOFOLLOW : 0));
    if (fd < 0 || fstat(fd, &found) < 0) {
        int code = errno;
        if (fd >= 0)
            close(fd);
        return error_set(err, -code, "%s: %s", path, strerror(code));
    }
    int r = 0;
    if (found.st_uid != geteuid() && !(service && found.st_uid == service->uid))
        r = error_set(err, -EPERM, "%s belongs to user %u, not to user %u", path,
                      (unsigned)found.st_uid, (unsigned)geteuid());
    else if (((found.st_mode & 0777) != mode && fchmod(fd, mode) < 0) ||
             (service && fchown(fd, service->uid, service->gid) < 0))
        r = error_set(err, -errno, "%s: %s", path, strerror(errno));
    close(fd);
    return r;
}

/* Make a folder for this user or for the service, and those above it. */
static int make_folder(const char *path, mode_t mode,
                       const struct service_user *service, struct error *err)
{
    char part[4096];
    snprintf(part, sizeof part, "%s", path);
    for (char *c = part + 1; *c; c++) {
        if (*c != '/')
            continue;
        *c = '\0';
        if (mkdir(part, 0755) < 0 && errno != EEXIST && errno != EROFS &&
            errno != EACCES)
            return error_set(err, -errno, "%s: %s", part, strerror(errno));
        *c = '/';
    }
    if (mkdir(part, mode) < 0 && errno != EEXIST)
        return error_set(err, -errno, "%s: %s", part, strerror(errno));
    return own_folder(part, mode, service, err);
}

static int find_state(struct places *places, const char *state, bool system,
                      const struct service_user *service, struct error *err)
{
    char given[4096];
    int r = 0;
    if (state)
        snprintf(given, sizeof given, "%s", state);
    else if (system)
        snprintf(given, sizeof given, "/var/lib/berth");
    else
        r = paths_state(given, sizeof given, err);
    if (r < 0)
        return r;
    struct error inner;
    if (make_folder(given, system ? 0711 : 0700, service, &inner) < 0)
        r = error_set(
            err, -EACCES, "no place for jobs and logs: %.150s; %s", inner.text,
            state ? "see --state" : "XDG_STATE_HOME or --state says where else");
    if (r == 0 && !realpath(given, places->state_dir))
        r = error_set(err, -errno, "%s: %s", given, strerror(errno));
    return r;
}

/* The state folder is too long for sockets below it: use one in /tmp, always the same. */
static int find_short(struct places *places, struct error *err)
{
    char link[4200];
    snprintf(link, sizeof link, "%s/run.path", places->state_dir);
    FILE *file = fopen(link, "re");
    if (file) {
        bool read = fgets(places->run_dir, sizeof places->run_dir, file) != NULL;
        fclose(file);
        if (read) {
            places->run_dir[strcspn(places->run_dir, "\n")] = '\0';
            return 0;
        }
    }
    snprintf(places->run_dir, sizeof places->run_dir, "/tmp/berth-XXXXXX");
    if (!mkdtemp(places->run_dir))
        return error_set(err, -errno, "%s: %s", places->run_dir, strerror(errno));
    file = fopen(link, "we");
    bool kept = file && fprintf(file, "%s\n", places->run_dir) > 0;
    if (file && fclose(file) != 0)
        kept = false;
    if (kept)
        return 0;
    int code = errno;
    unlink(link); /* a part of a path is another path */
    rmdir(places->run_dir);
    return error_set(err, -code, "%s: %s", link, strerror(code));
}

static int find_run(struct places *places, bool named, bool system,
                    const struct service_user *service, struct error *err)
{
    int r = 0;
    if (named) {
        bool fits = strlen(places->state_dir) + strlen("/run") <= LOCAL_RUN_DIR_MAX;
        if (!fits && service) {
            r = error_set(err, -EINVAL, "--state: want a path of at most %zu bytes",
                          LOCAL_RUN_DIR_MAX - strlen("/run"));
        } else if (!fits) {
            r = find_short(places, err);
        } else {
            snprintf(places->run_dir, sizeof places->run_dir, "%.4000s/run",
                     places->state_dir);
        }
    } else if (system) {
        snprintf(places->run_dir, sizeof places->run_dir, "/run/berth");
    } else {
        r = paths_run(places->run_dir, sizeof places->run_dir, err);
    }
    if (r == 0 && !service)
        r = paths_check(places->run_dir, err);
    return r < 0 ? r : make_folder(places->run_dir, system ? 0711 : 0700, service, err);
}

int places_make(struct places *places, const char *state, const char *socket,
                bool system, const struct service_user *service, struct error *err)
{
    int r = find_state(places, state, system, service, err);
    if (r == 0)
        r = find_run(places, state != NULL, system, service, err);
    if (r < 0)
        return r;
    int length = socket ? snprintf(places->socket, sizeof places->socket, "%s", socket)
                        : snprintf(places->socket, sizeof places->socket, "%s/api.sock",
                                   places->run_dir);
    if (length < 0 || (size_t)length >= sizeof places->socket)
        return error_set(err, -EINVAL, "--socket: longer than %zu bytes",
                         sizeof places->socket - 1);
    return 0;
}
