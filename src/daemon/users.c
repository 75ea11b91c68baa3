/* users.c - users by their number, looked up outside the loop. */
#include "daemon/users.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/grow.h"
#include "base/map.h"
#include "base/memory.h"

#define KEEP_NS (INT64_C(300) * 1000000000) /* then a user is looked up again */
#define ENTRY_BYTES_MAX (1 << 20) /* of one user or group, as the system has it */
#define GROUPS_MAX 256            /* of one user                                */

struct user_entry {
    struct user user;
    char *groups; /* their names, each between two newlines; or NULL */
    bool known;   /* the lookup has ended at least once */
    bool pending; /* one is under way                   */
    int64_t at_ns;
};

struct users {
    struct uv_loop_s *loop;
    void (*loaded)(void *context);
    void *context;
    struct user_entry *entries;
    uint32_t count, room;
    struct map by_uid;
    uint32_t pending; /* lookups under way */
    bool closing;
};

struct user_lookup {
    uv_work_t work;
    struct users *users;
    struct user user;
    char *groups;
};

static struct user unknown_user(uint32_t uid)
{
    struct user user = { .uid = uid, .gid = uid };
    snprintf(user.name, sizeof user.name, "%u", uid);
    return user;
}

/* In a worker thread, or at the start: this may take long. */
static struct user look_up_user(uint32_t uid)
{
    struct user user = unknown_user(uid);
    struct passwd entry, *found = NULL;
    char *text = NULL;
    int r = ERANGE;
    for (size_t size = 4096; r == ERANGE && size <= ENTRY_BYTES_MAX; size *= 4) {
        text = memory_resize(text, size, 1);
        r = getpwuid_r(uid, &entry, text, size, &found);
    }
    if (found) {
        user.gid = found->pw_gid;
        user.named = true;
        snprintf(user.name, sizeof user.name, "%s", found->pw_name);
    }
    free(text);
    return user;
}

/* The name of a group into 'names', after which a newline comes. */
static void add_group(struct buf *names, gid_t gid)
{
    struct group entry, *found = NULL;
    char *text = NULL;
    int r = ERANGE;
    for (size_t size = 4096; r == ERANGE && size <= ENTRY_BYTES_MAX; size *= 4) {
        text = memory_resize(text, size, 1);
        r = getgrgid_r(gid, &entry, text, size, &found);
    }
    if (found)
        buf_print(names, "%s\n", found->gr_name);
    free(text);
}

/* In a worker thread, or at the start.  To be freed. */
static char *look_up_groups(const struct user *user)
{
    gid_t gids[GROUPS_MAX];
    int count = GROUPS_MAX;
    struct buf names;
    if (!user->named || user->uid == 0 || user->uid == geteuid())
        return NULL; /* groups are for limits, and these have none */
    if (getgrouplist(user->name, user->gid, gids, &count) < 0)
        count = GROUPS_MAX; /* there are more; these count */
    buf_init(&names, ENTRY_BYTES_MAX);
    buf_text(&names, "\n");
    for (int i = 0; i < count; i++)
        add_group(&names, gids[i]);
    return names.bytes;
}

static struct user_entry *find_entry(const struct users *users, uint32_t uid)
{
    uint32_t at = map_find(&users->by_uid, uid);
    return at == MAP_NONE ? NULL : &users->entries[at];
}

static struct user_entry *find_or_add_entry(struct users *users, uint32_t uid)
{
    struct user_entry *entry = find_entry(users, uid);
    if (entry)
        return entry;
    users->entries = grow_array(users->entries, &users->room, users->count + 1,
                                sizeof *users->entries);
    map_put(&users->by_uid, uid, users->count);
    entry = &users->entries[users->count++];
    *entry = (struct user_entry){ .user = unknown_user(uid) };
    return entry;
}

/* Keeps 'groups', which was allocated. */
static void keep_user(struct users *users, const struct user *user, char *groups)
{
    struct user_entry *entry = find_or_add_entry(users, user->uid);
    entry->user = *user;
    free(entry->groups);
    entry->groups = groups;
    entry->known = true;
    entry->pending = false;
    entry->at_ns = clock_now_ns();
}

static void free_if_idle(struct users *users)
{
    if (!users->closing || users->pending > 0)
        return;
    for (uint32_t i = 0; i < users->count; i++)
        free(users->entries[i].groups);
    map_release(&users->by_uid);
    free(users->entries);
    free(users);
}

static void run_lookup(uv_work_t *work)
{
    struct user_lookup *lookup = work->data;
    lookup->user = look_up_user(lookup->user.uid);
    lookup->groups = look_up_groups(&lookup->user);
}

static void on_looked_up(uv_work_t *work, int status)
{
    struct user_lookup *lookup = work->data;
    struct users *users = lookup->users;
    (void)status;
    keep_user(users, &lookup->user, lookup->groups);
    free(lookup);
    users->pending--;
    if (!users->closing)
        users->loaded(users->context);
    free_if_idle(users);
}

static void start_lookup(struct users *users, struct user_entry *entry)
{
    struct user_lookup *lookup = memory_checked(calloc(1, sizeof *lookup));
    *lookup = (struct user_lookup){ .work = { .data = lookup },
                                    .users = users,
                                    .user = entry->user };
    entry->pending = true;
    users->pending++;
    uv_queue_work(users->loop, &lookup->work, run_lookup, on_looked_up);
}

bool users_ready(struct users *users, uint32_t uid)
{
    struct user_entry *entry = find_or_add_entry(users, uid);
    bool old = entry->known && clock_now_ns() - entry->at_ns > KEEP_NS;
    if (!entry->pending && (!entry->known || old))
        start_lookup(users, entry);
    return entry->known;
}

void users_load(struct users *users, uint32_t uid)
{
    const struct user_entry *entry = find_entry(users, uid);
    if (entry && entry->known)
        return;
    struct user user = look_up_user(uid);
    keep_user(users, &user, look_up_groups(&user));
}

struct user users_find(const struct users *users, uint32_t uid)
{
    const struct user_entry *entry = find_entry(users, uid);
    return entry ? entry->user : unknown_user(uid);
}

bool users_in_group(const struct users *users, uint32_t uid, const char *group)
{
    const struct user_entry *entry = find_entry(users, uid);
    size_t count = strlen(group);
    for (const char *at = entry ? entry->groups : NULL;
         count > 0 && at && (at = strstr(at, group)); at += count)
        if (at[-1] == '\n' && at[count] == '\n')
            return true;
    return false;
}

struct users *users_new(struct uv_loop_s *loop, void (*loaded)(void *context),
                        void *context)
{
    struct users *users = memory_checked(calloc(1, sizeof *users));
    *users = (struct users){ .loop = loop, .loaded = loaded, .context = context };
    return users;
}

void users_free(struct users *users)
{
    if (!users)
        return;
    users->closing = true;
    free_if_idle(users);
}
