/* Files whose path was chosen by somebody else, with and without openat2(). */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/plain_file.h"
#include "support/cases.h"

static char folder[] = "/tmp/berth-plain-XXXXXX";
static char path[64];

static const char *path_of(const char *name)
{
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void make_files(void)
{
    snprintf(folder, sizeof folder, "/tmp/berth-plain-XXXXXX");
    assert_non_null(mkdtemp(folder));
    int fd = open(path_of("file"), O_CREAT | O_WRONLY, 0600);
    assert_int_equal(write(fd, "hello", 5), 5);
    close(fd);
    assert_int_equal(symlink("file", path_of("link")), 0);
    assert_int_equal(mkfifo(path_of("pipe"), 0600), 0);
}

static void remove_files(void)
{
    static const char *const names[] = { "file", "link", "pipe", "" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        remove(path_of(names[i]));
}

/* As systemd's RestrictSUIDSGID does it. */
static bool forbid_openat2(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = { sizeof filter / sizeof *filter, filter };
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* In the child: 0, or the number of what is wrong. */
static int open_each(bool mounted)
{
    char text[8] = "";
    struct error err = { "" };
    int fd = plain_file_open_own(path_of("file"), &err);
    if (mounted)
        return fd == -EXDEV ? 0 : 1;
    if (fd < 0 || read(fd, text, sizeof text) != 5 || strcmp(text, "hello") != 0)
        return 2;
    if (fcntl(fd, F_GETFL) & (O_WRONLY | O_RDWR))
        return 3;
    if (plain_file_open_own(path_of("link"), &err) != -ELOOP)
        return 4;
    if (plain_file_open_own(path_of("pipe"), &err) != -EINVAL)
        return 5;
    return plain_file_open_own(path_of("absent"), &err) == -ENOENT ? 0 : 6;
}

/* Status of a child that opens each; 77: it cannot do what it should before. */
static int run_child(bool openat2, bool mounted)
{
    make_files();
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        if (mounted && (unshare(CLONE_NEWNS) < 0 ||
                        mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
                        mount("/etc/passwd", path_of("file"), NULL, MS_BIND, NULL) < 0))
            _exit(77);
        _exit(openat2 || forbid_openat2() ? open_each(mounted) : 77);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    remove_files();
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void only_plain_files_are_opened(void **state)
{
    assert_int_equal(run_child(true, false), 0);
}

static void the_same_holds_where_openat2_is_forbidden(void **state)
{
    int status = run_child(false, false);
    if (status == 77)
        SKIP("seccomp is not there");
    assert_int_equal(status, 0);
}

static void what_is_mounted_over_a_file_is_not_opened(void **state)
{
    int status = run_child(true, true);
    if (status == 77)
        SKIP("needs root, to mount something");
    assert_int_equal(status, 0);
    status = run_child(false, true);
    if (status == 77)
        SKIP("seccomp is not there");
    assert_int_equal(status, 0);
}

RUN_CASES(TEST(only_plain_files_are_opened),
          TEST(the_same_holds_where_openat2_is_forbidden),
          TEST(what_is_mounted_over_a_file_is_not_opened));
