/* sessions.c - browser sessions and the passes that open them. */
#include "http/sessions.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_secret(const char *text)
{
    return strlen(text) == TOKEN_CHARS &&
           strspn(text, "0123456789abcdef") == TOKEN_CHARS;
}

/* ---- on disk ---- */

static FILE *open_private(const char *path)
{
    struct stat there;
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    bool ours = fstat(fd, &there) == 0 && S_ISREG(there.st_mode) &&
                there.st_uid == geteuid() && !(there.st_mode & 077);
    FILE *file = ours ? fdopen(fd, "r") : NULL;
    if (!file)
        close(fd);
    return file;
}

void sessions_open(struct sessions *sessions, const char *dir, int64_t now_s)
{
    *sessions = (struct sessions){ 0 };
    snprintf(sessions->path, sizeof sessions->path, "%s/sessions", dir);
    FILE *file = open_private(sessions->path);
    if (!file)
        return;
    unsigned port;
    if (fscanf(file, "port %5u\n", &port) == 1 && port <= UINT16_MAX)
        sessions->port = (uint16_t)port;
    for (uint32_t i = 0; i < SESSIONS_MAX;) {
        struct session one = { "" };
        if (fscanf(file, "%64s %" SCNu32 " %" SCNu32 " %" SCNd64 "\n", one.secret,
                   &one.uid, &one.gid, &one.until_s) != 4)
            break;
        one.number = sessions->last + 1;
        if (is_secret(one.secret) && one.until_s > now_s) {
            sessions->sessions[i++] = one;
            sessions->last++;
        }
    }
    fclose(file);
}

/* Replace the file as a whole.  If that fails, pages have to be opened again after a
 * restart, which is no error now. */
static void save_sessions(const struct sessions *sessions)
{
    char path[sizeof sessions->path + 8];
    snprintf(path, sizeof path, "%s.new", sessions->path);
    unlink(path);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (!file) {
        if (fd >= 0)
            close(fd);
        return;
    }
    fprintf(file, "port %u\n", sessions->port);
    for (uint32_t i = 0; i < SESSIONS_MAX; i++) {
        const struct session *one = &sessions->sessions[i];
        if (one->secret[0])
            fprintf(file, "%s %" PRIu32 " %" PRIu32 " %" PRId64 "\n", one->secret,
                    one->uid, one->gid, one->until_s);
    }
    if (fclose(file) != 0 || rename(path, sessions->path) < 0)
        unlink(path);
}

/* ---- places ---- */

static bool has_ended(const struct session *one, int64_t now_s)
{
    return !one->secret[0] || one->until_s <= now_s;
}

/* Where to store one more of this user: in place of the user's oldest if there are
 * 'per_user' already, else in a free place, else in place of the oldest of all. */
static struct session *find_place(struct session *list, uint32_t count, uint32_t uid,
                                  uint32_t per_user, int64_t now_s)
{
    struct session *free = NULL, *own = NULL, *oldest = &list[0];
    uint32_t owned = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct session *one = &list[i];
        if (has_ended(one, now_s)) {
            free = free ? free : one;
            continue;
        }
        if (one->until_s < oldest->until_s)
            oldest = one;
        if (one->uid != uid)
            continue;
        owned++;
        if (!own || one->until_s < own->until_s)
            own = one;
    }
    if (owned >= per_user)
        return own;
    return free ? free : oldest;
}

/* Compare with all, so that the time taken does not depend on which one matches. */
static struct session *find_secret(const struct session *list, uint32_t count,
                                   const char *secret, int64_t now_s)
{
    const struct session *found = NULL;
    for (uint32_t i = 0; i < count; i++)
        if (token_equals(secret, list[i].secret) && !has_ended(&list[i], now_s))
            found = &list[i];
    return (struct session *)found;
}

int sessions_make_pass(struct sessions *sessions, uint32_t uid, uint32_t gid,
                       int64_t now_s, char ret_pass[static TOKEN_CHARS + 1],
                       struct error *err)
{
    struct session pass = { .uid = uid, .gid = gid, .until_s = now_s + PASS_S };
    int r = token_generate(pass.secret, err);
    if (r < 0)
        return r;
    *find_place(sessions->passes, PASSES_MAX, uid, PASSES_PER_USER_MAX, now_s) = pass;
    snprintf(ret_pass, TOKEN_CHARS + 1, "%s", pass.secret);
    return 0;
}

const struct session *sessions_redeem_pass(struct sessions *sessions, const char *pass,
                                           int64_t now_s)
{
    struct session *given = find_secret(sessions->passes, PASSES_MAX, pass, now_s);
    if (!given)
        return NULL;
    struct session one = { .uid = given->uid,
                           .gid = given->gid,
                           .until_s = now_s + SESSION_S,
                           .number = ++sessions->last };
    *given = (struct session){ "" };
    if (token_generate(one.secret, NULL) < 0)
        return NULL;
    struct session *place = find_place(sessions->sessions, SESSIONS_MAX, one.uid,
                                       SESSIONS_PER_USER_MAX, now_s);
    *place = one;
    save_sessions(sessions);
    return place;
}

const struct session *sessions_find(const struct sessions *sessions, const char *secret,
                                    int64_t now_s)
{
    return find_secret(sessions->sessions, SESSIONS_MAX, secret, now_s);
}

bool sessions_holds(const struct sessions *sessions, uint64_t number, int64_t now_s)
{
    for (uint32_t i = 0; i < SESSIONS_MAX; i++)
        if (sessions->sessions[i].number == number)
            return !has_ended(&sessions->sessions[i], now_s);
    return false;
}

void sessions_end(struct sessions *sessions, const char *secret)
{
    struct session *one =
        find_secret(sessions->sessions, SESSIONS_MAX, secret, INT64_MIN);
    if (!one)
        return;
    *one = (struct session){ "" };
    save_sessions(sessions);
}

bool sessions_any(const struct sessions *sessions)
{
    for (uint32_t i = 0; i < SESSIONS_MAX; i++)
        if (sessions->sessions[i].secret[0])
            return true;
    return false;
}

void sessions_set_port(struct sessions *sessions, uint16_t port)
{
    if (sessions->port == port)
        return;
    sessions->port = port;
    save_sessions(sessions);
}
