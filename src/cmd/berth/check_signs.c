/* check_signs.c - a job's files and lines, looked at from outside. */
#include "cmd/berth/check_signs.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"

#define STANDARD_PATTERN "[Ss]tep[ :=#]+([0-9]+)"
#define LINE_BYTES_MAX 4096
#define FOLDERS_MAX 256
#define MASK (IN_CLOSE_WRITE | IN_MOVED_TO | IN_ACCESS | IN_CREATE)

int signs_open(struct signs *signs, const char *folder, const char *output,
               const char *pattern, struct error *err)
{
    *signs = (struct signs){ .watch = -1 };
    snprintf(signs->folder, sizeof signs->folder, "%s", folder);
    snprintf(signs->output, sizeof signs->output, "%s", output);
    int r =
        regcomp(&signs->pattern, pattern ? pattern : STANDARD_PATTERN, REG_EXTENDED);
    if (r != 0) {
        char text[100];
        regerror(r, &signs->pattern, text, sizeof text);
        return error_set(err, -EINVAL, "--pattern: %s", text);
    }
    signs->compiled = true;
    if (signs->pattern.re_nsub < 1)
        return error_set(err, -EINVAL, "--pattern: want a (group) that is the step");
    return 0;
}

void signs_close(struct signs *signs)
{
    if (signs->compiled)
        regfree(&signs->pattern);
    if (signs->watch >= 0)
        close(signs->watch);
    signs->compiled = false;
    signs->watch = -1;
}

/* The folder and those in it: some save each checkpoint into a folder of its own. */
static void watch_folders(struct signs *signs)
{
    inotify_add_watch(signs->watch, signs->folder, MASK);
    DIR *dir = opendir(signs->folder);
    uint32_t count = 0;
    for (struct dirent *entry; dir && count < FOLDERS_MAX && (entry = readdir(dir));) {
        char path[PATH_MAX + 256];
        if (entry->d_name[0] == '.' || entry->d_type != DT_DIR)
            continue;
        snprintf(path, sizeof path, "%s/%s", signs->folder, entry->d_name);
        inotify_add_watch(signs->watch, path, MASK);
        count++;
    }
    if (dir)
        closedir(dir);
}

void signs_watch(struct signs *signs)
{
    if (signs->watch < 0)
        signs->watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (signs->watch >= 0)
        watch_folders(signs);
}

void signs_begin(struct signs *signs)
{
    signs_look(signs);
    signs->written = signs->read = 0;
    signs->written_name[0] = signs->read_name[0] = '\0';
}

static void note(struct signs *signs, const struct inotify_event *event)
{
    const char *name = event->len ? event->name : "a file";
    if (event->mask & IN_ISDIR)
        return;
    if (event->mask & (IN_CLOSE_WRITE | IN_MOVED_TO)) {
        signs->written++;
        snprintf(signs->written_name, SIGNS_NAME_MAX, "%s", name);
    }
    if (event->mask & IN_ACCESS) {
        signs->read++;
        snprintf(signs->read_name, SIGNS_NAME_MAX, "%s", name);
    }
}

void signs_look(struct signs *signs)
{
    char bytes[16384] __attribute__((aligned(8)));
    bool folders = false;
    ssize_t count;
    while (signs->watch >= 0 && (count = read(signs->watch, bytes, sizeof bytes)) > 0)
        for (ssize_t at = 0; at < count;) {
            const struct inotify_event *event = (const void *)(bytes + at);
            note(signs, event);
            folders = folders || (event->mask & IN_ISDIR &&
                                  event->mask & (IN_CREATE | IN_MOVED_TO));
            at += (ssize_t)(sizeof *event + event->len);
        }
    if (folders)
        watch_folders(signs);
}

int64_t signs_output_bytes(const struct signs *signs)
{
    struct stat status;
    return stat(signs->output, &status) == 0 ? status.st_size : 0;
}

bool signs_steps(const struct signs *signs, int64_t from, int64_t to, double *ret_first,
                 double *ret_last)
{
    char line[LINE_BYTES_MAX];
    bool any = false;
    FILE *file = fopen(signs->output, "re");
    if (!file)
        return false;
    fseeko(file, from, SEEK_SET);
    while (ftello(file) < to && fgets(line, sizeof line, file)) {
        regmatch_t found[2];
        if (!strchr(line, '\n') || regexec(&signs->pattern, line, 2, found, 0) != 0 ||
            found[1].rm_so < 0)
            continue; /* or it is not whole yet */
        double step = strtod(line + found[1].rm_so, NULL);
        if (!any)
            *ret_first = step;
        *ret_last = step;
        any = true;
    }
    fclose(file);
    return any;
}

void signs_last_line(const struct signs *signs, char *line, size_t size)
{
    char next[LINE_BYTES_MAX];
    FILE *file = fopen(signs->output, "re");
    line[0] = '\0';
    while (file && fgets(next, sizeof next, file))
        if (next[0] != '\n')
            snprintf(line, size, "%.*s", (int)strcspn(next, "\n"), next);
    if (file)
        fclose(file);
    for (char *c = line; *c; c++)
        if ((unsigned char)*c < ' ')
            *c = ' ';
}
