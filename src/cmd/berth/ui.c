/* ui.c - berth ui: the dashboard in a browser. */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <unistd.h>

#include "cmd/berth/connection.h"

static const struct flag ui_flags[] = {
    { "print-url", 0, NULL, "print the address and open nothing" },
    CONNECTION_FLAGS,
    { 0 },
};

extern char **environ;

/*
 * Write a file that redirects to the address.  The browser gets this file and not the address
 * itself, because all users of the machine can read command lines.
 */
static int write_redirect(const char *url, char *path, size_t size)
{
    const char *dir = getenv("XDG_RUNTIME_DIR");
    int fd;
    if (dir && *dir == '/') {
        snprintf(path, size, "%s/berth-ui.html", dir);
        unlink(path);
        fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    } else {
        snprintf(path, size, "/tmp/berth-ui-XXXXXX.html");
        fd = mkostemps(path, 5, O_CLOEXEC);
    }
    if (fd < 0)
        return -errno;
    int count = dprintf(fd,
                        "<!doctype html><meta charset=utf-8>"
                        "<meta http-equiv=refresh content=\"0;url=%s\">"
                        "<title>Berth</title><a href=\"%s\">Berth</a>\n",
                        url, url);
    return close(fd) == 0 && count > 0 ? 0 : -EIO;
}

static bool is_set(const char *name)
{
    const char *value = getenv(name);
    return value && *value;
}

/* The program that opens files: BROWSER, or that of the desktop; NULL: there is none. */
static const char *find_browser(void)
{
    if (is_set("BROWSER"))
        return getenv("BROWSER");
    return is_set("DISPLAY") || is_set("WAYLAND_DISPLAY") ? "xdg-open" : NULL;
}

static bool start_browser(const char *program, const char *path)
{
    char *const argv[] = { (char *)program, (char *)path, NULL };
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, 1, 2);
    pid_t pid;
    int r = posix_spawnp(&pid, program, &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    return r == 0;
}

/* The file stays: the browser reads it after this process has ended.  It works only once. */
static bool open_browser(const char *url)
{
    const char *program = find_browser();
    char path[4096];
    if (!program || write_redirect(url, path, sizeof path) < 0)
        return false;
    if (start_browser(program, path))
        return true;
    unlink(path);
    return false;
}

static int ui_run(const struct flags *flags)
{
    struct json *answer = NULL;
    if (command_refuse_words(flags))
        return 2;
    int status = connection_call(flags, "POST", "/v1/ui", NULL, &answer);
    if (status)
        return status;
    const char *url = json_text_or(answer, "url", "");
    if (flags_get(flags, "print-url"))
        puts(url);
    else if (open_browser(url))
        puts("opened in your browser");
    else
        printf("no browser to be found here; open this one, within ten minutes and "
               "once:\n%s\n",
               url);
    json_free(answer);
    return 0;
}

const struct command command_ui = {
    .name = "ui",
    .group = "Use",
    .brief = "the dashboard in a browser",
    .usage = "[--print-url]",
    .flags = ui_flags,
    .run = ui_run,
};
