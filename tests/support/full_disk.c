/*
 * full_disk.c - a disk that is full at the n-th call which needs space, for tests.
 *
 * Preloaded into a program, it counts the calls that can fail for want of space below one
 * folder: writes, truncations, syncs and the creation of files, folders, links and sockets.
 * Which one fails, and how, is in a file that BERTH_FULL_DISK names.  All processes share it,
 * so that a test can follow a count through berthd and its supervisors, and can say at any
 * moment that there is space again.
 */
/* The functions by their own names, which the C library's headers would change. */
#undef _FILE_OFFSET_BITS
#undef _FORTIFY_SOURCE

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

/* What a call does to the disk. */
enum disk_call { CALL_WRITE, CALL_CREATE, CALL_RESIZE, CALL_SYNC };

enum disk_fault {
    FAULT_NONE,
    FAULT_ONCE,  /* the n-th call: ENOSPC                                     */
    FAULT_FULL,  /* the n-th call and all that follow: ENOSPC                 */
    FAULT_SHORT, /* the n-th write writes a half, and all calls after it fail */
    FAULT_SYNC,  /* the n-th sync: EIO                                        */
};

/* Shared with tests/e2e/test_full_disk.py, which writes 'fault' last. */
struct disk_control {
    _Atomic uint32_t fault, at, count, hit_count, process_count;
    char folder[492];
};

static struct disk_control *control;

__attribute__((constructor)) static void open_control(void)
{
    const char *path = getenv("BERTH_FULL_DISK");
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    void *shared =
        fd < 0 ? MAP_FAILED
               : mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0)
        close(fd);
    if (shared == MAP_FAILED)
        return;
    control = shared;
    control->process_count++;
}

/* --- which calls count ------------------------------------------------------------ */

static bool is_below(const char *path)
{
    size_t length = strlen(control->folder);
    return strncmp(path, control->folder, length) == 0 &&
           (path[length] == '/' || path[length] == '\0');
}

static bool is_fd_below(int fd)
{
    char link[64], path[PATH_MAX];
    if (fd == AT_FDCWD)
        snprintf(link, sizeof link, "/proc/self/cwd");
    else
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t count = readlink(link, path, sizeof path - 1);
    path[count < 0 ? 0 : count] = '\0';
    return is_below(path);
}

static bool is_path_below(int dir, const char *path)
{
    return *path == '/' ? is_below(path) : is_fd_below(dir);
}

/* 0: go on; SHORT: write a half; else the error that the call returns. */
#define SHORT (-1)

static int find_fault(enum disk_call call)
{
    uint32_t fault = control->fault;
    if (fault == FAULT_SYNC && call != CALL_SYNC)
        return 0;
    uint32_t count = ++control->count, at = control->at;
    bool on = fault == FAULT_FULL || fault == FAULT_SHORT ? count >= at : count == at;
    if (!on)
        return 0;
    control->hit_count++;
    if (fault == FAULT_SHORT && count == at && call == CALL_WRITE)
        return SHORT;
    return fault == FAULT_SYNC ? EIO : ENOSPC;
}

static int fault_of_fd(enum disk_call call, int fd)
{
    int kept = errno;
    bool counts = control && control->fault != FAULT_NONE && is_fd_below(fd);
    errno = kept;
    return counts ? find_fault(call) : 0;
}

static int fault_of_path(enum disk_call call, int dir, const char *path)
{
    int kept = errno;
    bool counts = control && control->fault != FAULT_NONE && is_path_below(dir, path);
    errno = kept;
    int fault = counts ? find_fault(call) : 0;
    return fault == SHORT ? ENOSPC : fault;
}

static int fail_with(int error)
{
    errno = error;
    return -1;
}

/* --- writing ------------------------------------------------------------------------ */

ssize_t write(int fd, const void *bytes, size_t count)
{
    int fault = fault_of_fd(CALL_WRITE, fd);
    if (fault > 0 || (fault == SHORT && count < 2))
        return fail_with(ENOSPC);
    return syscall(SYS_write, fd, bytes, fault == SHORT ? count / 2 : count);
}

ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t at)
{
    int fault = fault_of_fd(CALL_WRITE, fd);
    if (fault > 0 || (fault == SHORT && count < 2))
        return fail_with(ENOSPC);
    return syscall(SYS_pwrite64, fd, bytes, fault == SHORT ? count / 2 : count, at);
}

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t at)
{
    return pwrite64(fd, bytes, count, at);
}

ssize_t writev(int fd, const struct iovec *parts, int count)
{
    if (fault_of_fd(CALL_WRITE, fd))
        return fail_with(ENOSPC);
    return syscall(SYS_writev, fd, parts, count);
}

static int print_to(int fd, const char *fmt, va_list args)
{
    char text[4096];
    int length = vsnprintf(text, sizeof text, fmt, args);
    if (length < 0 || (size_t)length >= sizeof text)
        abort();                         /* no caller prints that much */
    for (int done = 0; done < length;) { /* as the C library does */
        ssize_t count = write(fd, text + done, (size_t)(length - done));
        if (count < 0)
            return -1;
        done += (int)count;
    }
    return length;
}

int dprintf(int fd, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int written = print_to(fd, fmt, args);
    va_end(args);
    return written;
}

int __dprintf_chk(int fd, int flag, const char *fmt, ...);

int __dprintf_chk(int fd, int flag, const char *fmt, ...)
{
    va_list args;
    (void)flag;
    va_start(args, fmt);
    int written = print_to(fd, fmt, args);
    va_end(args);
    return written;
}

/* What is buffered is written here at the latest. */
int fclose(FILE *file)
{
    int (*next)(FILE *) = (int (*)(FILE *))dlsym(RTLD_NEXT, "fclose");
    int fd = fileno(file);
    bool written = fd >= 0 && (fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDONLY;
    int fault = written ? fault_of_fd(CALL_WRITE, fd) : 0;
    int r = next(file);
    return fault ? fail_with(ENOSPC) : r;
}

/* --- sizes and syncs ---------------------------------------------------------------- */

int ftruncate64(int fd, off64_t size)
{
    int fault = fault_of_fd(CALL_RESIZE, fd);
    return fault ? fail_with(ENOSPC) : (int)syscall(SYS_ftruncate, fd, size);
}

int ftruncate(int fd, off_t size)
{
    return ftruncate64(fd, size);
}

int fallocate64(int fd, int mode, off64_t at, off64_t size)
{
    int fault = fault_of_fd(CALL_RESIZE, fd);
    return fault ? fail_with(ENOSPC) : (int)syscall(SYS_fallocate, fd, mode, at, size);
}

int fallocate(int fd, int mode, off_t at, off_t size)
{
    return fallocate64(fd, mode, at, size);
}

int fsync(int fd)
{
    int fault = fault_of_fd(CALL_SYNC, fd);
    return fault ? fail_with(fault) : (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd)
{
    int fault = fault_of_fd(CALL_SYNC, fd);
    return fault ? fail_with(fault) : (int)syscall(SYS_fdatasync, fd);
}

/* --- creating ------------------------------------------------------------------------ */

/* A file that is there needs no space to be opened. */
static int open_file(int dir, const char *path, int flags, mode_t mode)
{
    int kept = errno;
    bool creates =
        flags & O_CREAT && faccessat(dir, path, F_OK, AT_SYMLINK_NOFOLLOW) < 0;
    errno = kept;
    int fault = creates ? fault_of_path(CALL_CREATE, dir, path) : 0;
    return fault ? fail_with(fault) : (int)syscall(SYS_openat, dir, path, flags, mode);
}

#define OPEN_WITH_MODE(dir, path, flags) \
    do { \
        va_list args; \
        va_start(args, flags); \
        mode_t mode = (flags) & (O_CREAT | O_TMPFILE) ? va_arg(args, mode_t) : 0; \
        va_end(args); \
        return open_file(dir, path, flags, mode); \
    } while (0)

int open(const char *path, int flags, ...)
{
    OPEN_WITH_MODE(AT_FDCWD, path, flags);
}

int open64(const char *path, int flags, ...)
{
    OPEN_WITH_MODE(AT_FDCWD, path, flags);
}

int openat(int dir, const char *path, int flags, ...)
{
    OPEN_WITH_MODE(dir, path, flags);
}

int openat64(int dir, const char *path, int flags, ...)
{
    OPEN_WITH_MODE(dir, path, flags);
}

FILE *fopen64(const char *path, const char *mode)
{
    FILE *(*next)(const char *, const char *) =
        (FILE * (*)(const char *, const char *)) dlsym(RTLD_NEXT, "fopen64");
    int fault = *mode == 'r' ? 0 : fault_of_path(CALL_CREATE, AT_FDCWD, path);
    if (!fault)
        return next(path, mode);
    errno = fault;
    return NULL;
}

FILE *fopen(const char *path, const char *mode)
{
    return fopen64(path, mode);
}

int mkdirat(int dir, const char *path, mode_t mode)
{
    int kept = errno;
    bool there = faccessat(dir, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
    errno = kept;
    int fault = there ? 0 : fault_of_path(CALL_CREATE, dir, path);
    return fault ? fail_with(fault) : (int)syscall(SYS_mkdirat, dir, path, mode);
}

int mkdir(const char *path, mode_t mode)
{
    return mkdirat(AT_FDCWD, path, mode);
}

int renameat2(int from_dir, const char *from, int to_dir, const char *to,
              unsigned int flags)
{
    int fault = fault_of_path(CALL_CREATE, to_dir, to);
    return fault ? fail_with(fault)
                 : (int)syscall(SYS_renameat2, from_dir, from, to_dir, to, flags);
}

int renameat(int from_dir, const char *from, int to_dir, const char *to)
{
    return renameat2(from_dir, from, to_dir, to, 0);
}

int rename(const char *from, const char *to)
{
    return renameat2(AT_FDCWD, from, AT_FDCWD, to, 0);
}

int linkat(int from_dir, const char *from, int to_dir, const char *to, int flags)
{
    int fault = fault_of_path(CALL_CREATE, to_dir, to);
    return fault ? fail_with(fault)
                 : (int)syscall(SYS_linkat, from_dir, from, to_dir, to, flags);
}

int link(const char *from, const char *to)
{
    return linkat(AT_FDCWD, from, AT_FDCWD, to, 0);
}

/* A socket with a name is a file too. */
int bind(int fd, const struct sockaddr *address, socklen_t size)
{
    const struct sockaddr_un *at = (const struct sockaddr_un *)(const void *)address;
    bool named = address->sa_family == AF_UNIX && size > sizeof(sa_family_t) &&
                 at->sun_path[0] != '\0';
    int fault = named ? fault_of_path(CALL_CREATE, AT_FDCWD, at->sun_path) : 0;
    return fault ? fail_with(fault) : (int)syscall(SYS_bind, fd, address, size);
}
