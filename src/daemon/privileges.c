/* privileges.c - giving up root's rights. */
#include "daemon/privileges.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"

int privileges_find_user(struct service_user *user, const char *name, struct error *err)
{
    user->name = name ? name : PRIVILEGES_USER;
    const struct passwd *found = getpwnam(user->name);
    if (!found)
        return error_set(err, -EINVAL,
                         "there is no user %.60s for berthd to run as: create it with "
                         "'useradd --system %.60s', or name another with --user",
                         user->name, user->name);
    if (found->pw_uid == 0)
        return error_set(err, -EINVAL, "--user: want a user other than root");
    user->uid = found->pw_uid;
    user->gid = found->pw_gid;
    return 0;
}

/* Only a plain file of root's that has no other name. */
static void hand_over_file(int dir, const char *name, const struct service_user *user)
{
    struct stat file;
    int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return;
    if (fstat(fd, &file) == 0 && S_ISREG(file.st_mode) && file.st_uid == 0 &&
        file.st_nlink == 1)
        (void)!fchown(fd, user->uid, user->gid);
    close(fd);
}

void privileges_hand_over(const char *state_dir, const struct service_user *user)
{
    DIR *dir = opendir(state_dir);
    if (!dir)
        return;
    for (struct dirent *entry; (entry = readdir(dir));)
        if (entry->d_name[0] != '.')
            hand_over_file(dirfd(dir), entry->d_name, user);
    closedir(dir);
}

int privileges_drop(const struct service_user *user, struct error *err)
{
    if (initgroups(user->name, user->gid) < 0 ||
        setresgid(user->gid, user->gid, user->gid) < 0 ||
        setresuid(user->uid, user->uid, user->uid) < 0 || setuid(0) == 0)
        return error_set(err, -EPERM, "cannot become user %s: %s", user->name,
                         strerror(errno));
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    prctl(PR_SET_DUMPABLE, 0); /* secrets of users are in our memory */
    return 0;
}
