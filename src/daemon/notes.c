/* notes.c - what jobs on other hosts say of themselves. */
#include "daemon/notes.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uv.h>

#include "base/as_user.h"
#include "base/grow.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/units.h"
#include "daemon/daemon_internal.h"
#include "executor/executor.h"

#define LOOK_MS 1000
#define TAIL_BYTES 65536 /* of a file, at a time: what is older is of no interest */

/* One job that has spoken, or may. */
struct entry {
    uint64_t id;
    char badge[NOTES_BADGE_CHARS + 1]; /* "": not asked for */
    struct note note;                  /* the newest       */
    bool waiting;                      /* to be passed on  */
    int64_t said_ns;                   /* when it last was */
    char *path;                        /* of its file, or NULL */
    uint32_t uid, gid;
    int64_t position; /* read up to here */
};

/* A look at one file, for the thread. */
struct sight {
    uint64_t id;
    char *path;
    uint32_t uid, gid;
    int64_t position;
    struct note note;
    bool found;
};

struct notes {
    struct daemon *daemon;
    uv_timer_t timer;
    uv_work_t work;
    struct entry *entries;
    uint32_t count, room;
    struct map by_id;
    struct sight *sights; /* the thread's, while it looks */
    uint32_t sight_count, sight_room;
    bool looking;
    bool closing, closed; /* told to end; the timer has */
};

/* --- who ------------------------------------------------------------------------------ */

static void on_timer(uv_timer_t *timer);

static struct entry *find(const struct notes *notes, uint64_t id)
{
    uint32_t at = map_find(&notes->by_id, id);
    return at == MAP_NONE ? NULL : &notes->entries[at];
}

static struct entry *find_or_add(struct notes *notes, uint64_t id)
{
    struct entry *known = find(notes, id);
    if (known)
        return known;
    notes->entries = grow_array(notes->entries, &notes->room, notes->count + 1,
                                sizeof *notes->entries);
    map_put(&notes->by_id, id, notes->count);
    struct entry *entry = &notes->entries[notes->count++];
    *entry = (struct entry){ .id = id, .note = { NAN, NAN, NAN, NAN } };
    if (!uv_is_active((uv_handle_t *)&notes->timer))
        uv_timer_start(&notes->timer, on_timer, LOOK_MS, LOOK_MS);
    return entry;
}

static void drop(struct notes *notes, uint32_t at)
{
    struct entry *entry = &notes->entries[at];
    map_remove(&notes->by_id, entry->id);
    free(entry->path);
    explicit_bzero(entry->badge, sizeof entry->badge);
    if (at != --notes->count) {
        *entry = notes->entries[notes->count];
        map_put(&notes->by_id, entry->id, at);
    }
}

void notes_badge(struct notes *notes, uint64_t id,
                 char ret_badge[static NOTES_BADGE_CHARS + 1])
{
    struct entry *entry = find_or_add(notes, id);
    unsigned char bytes[NOTES_BADGE_CHARS / 2];
    if (!entry->badge[0]) {
        if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
            abort();
        for (size_t i = 0; i < sizeof bytes; i++)
            snprintf(entry->badge + 2 * i, 3, "%02x", bytes[i]);
    }
    memcpy(ret_badge, entry->badge, sizeof entry->badge);
}

bool notes_knows(const struct notes *notes, uint64_t id, const char *badge)
{
    const struct entry *entry = find(notes, id);
    if (!entry || !entry->badge[0] || strlen(badge) != NOTES_BADGE_CHARS)
        return false;
    unsigned char differ = 0;
    for (size_t i = 0; i < NOTES_BADGE_CHARS; i++)
        differ |= (unsigned char)(badge[i] ^ entry->badge[i]);
    return !differ;
}

/* --- passing it on ---------------------------------------------------------------------- */

static void pass_on(struct notes *notes, struct entry *entry)
{
    struct daemon *daemon = notes->daemon;
    job_id job = daemon_find(daemon, entry->id);
    const struct executor *executor = daemon->backend->executor;
    if (job == JOB_NONE || !daemon->executor_self || !executor->report)
        return;
    if (!job_runs(&daemon->engine.state.jobs[job]))
        return; /* it is ahead of us: Slurm has not told us that it runs */
    struct note *note = &entry->note;
    if (note->total > 0)
        daemon->residents[job].total = note->total;
    if (!isnan(note->saved))
        executor->saved(daemon->executor_self, job, note->saved);
    if (!isnan(note->step))
        executor->report(daemon->executor_self, job, note->step, note->loss,
                         note->total > 0 ? note->total : 0);
    entry->waiting = false;
    entry->said_ns = daemon_now_ns(daemon);
    *note = (struct note){ NAN, NAN, NAN, NAN };
}

void notes_take(struct notes *notes, uint64_t id, const struct note *note)
{
    struct entry *entry = find_or_add(notes, id);
    if (!isnan(note->step)) {
        entry->note.step = note->step;
        entry->note.loss = note->loss;
    }
    if (!isnan(note->total))
        entry->note.total = note->total;
    if (!isnan(note->saved))
        entry->note.saved = note->saved;
    entry->waiting = true;
    if (daemon_now_ns(notes->daemon) - entry->said_ns >= NS_PER_S)
        pass_on(notes, entry);
}

/* --- files -------------------------------------------------------------------------------- */

void notes_follow(struct notes *notes, uint64_t id, const char *path, uint32_t uid,
                  uint32_t gid)
{
    struct entry *entry = find_or_add(notes, id);
    free(entry->path);
    entry->path = memory_text(path);
    entry->uid = uid;
    entry->gid = gid;
}

/* A number in front of 'at', or NAN for "-"; false: neither. */
static bool read_number(const char **at, double *ret_number)
{
    const char *text = *at + strspn(*at, " \t,");
    char word[32];
    size_t count = strcspn(text, " \t,\r\n");
    if (count == 0 || count >= sizeof word)
        return false;
    snprintf(word, sizeof word, "%.*s", (int)count, text);
    *at = text + count;
    *ret_number = NAN;
    return strcmp(word, "-") == 0 || units_number(word, ret_number);
}

/* "STEP [LOSS [TOTAL]]"; what is no number is not there. */
static bool read_line(const char *line, struct note *ret_note)
{
    struct note note = { NAN, NAN, NAN, NAN };
    if (!read_number(&line, &note.step) || !(note.step >= 0 && note.step <= 1e15))
        return false;
    if (read_number(&line, &note.loss) && !isfinite(note.loss))
        note.loss = NAN;
    if (!read_number(&line, &note.total) || !(note.total > 0 && note.total <= 1e15))
        note.total = NAN;
    *ret_note = note;
    return true;
}

bool notes_read(const char *text, size_t count, struct note *ret_note)
{
    char line[128];
    const char *end = memrchr(text, '\n', count);
    while (end) {
        const char *before =
            end > text ? memrchr(text, '\n', (size_t)(end - text)) : NULL;
        const char *start = before ? before + 1 : text;
        size_t length = (size_t)(end - start);
        if (length < sizeof line && !memchr(start, '\0', length)) {
            memcpy(line, start, length);
            line[length] = '\0';
            if (read_line(line, ret_note))
                return true;
        }
        end = before;
    }
    return false;
}

/* In the thread: what has been added to a file, but for a line without its end. */
static void look_at(struct sight *sight)
{
    char text[TAIL_BYTES];
    struct stat file;
    int fd = open_as_user(sight->path, sight->uid, sight->gid, NULL);
    if (fd < 0)
        return;
    if (fstat(fd, &file) < 0 || file.st_uid != sight->uid ||
        file.st_size == sight->position) {
        close(fd);
        return;
    }
    int64_t from = file.st_size < sight->position ? 0 : sight->position;
    if (file.st_size - from > TAIL_BYTES)
        from = file.st_size - TAIL_BYTES;
    ssize_t count = pread(fd, text, sizeof text, from);
    close(fd);
    const char *end = count > 0 ? memrchr(text, '\n', (size_t)count) : NULL;
    if (!end)
        return;
    sight->position = from + (end + 1 - text);
    sight->found = notes_read(text, (size_t)(end + 1 - text), &sight->note);
}

static void look_at_all(uv_work_t *work)
{
    struct notes *notes = work->data;
    for (uint32_t i = 0; i < notes->sight_count; i++)
        look_at(&notes->sights[i]);
}

static void free_if_over(struct notes *notes)
{
    if (!notes->closed || notes->looking)
        return;
    while (notes->count > 0)
        drop(notes, notes->count - 1);
    map_release(&notes->by_id);
    free(notes->entries);
    free(notes->sights);
    free(notes);
}

static void on_looked(uv_work_t *work, int status)
{
    struct notes *notes = work->data;
    notes->looking = false;
    for (uint32_t i = 0; i < notes->sight_count; i++) {
        struct sight *sight = &notes->sights[i];
        struct entry *entry = notes->closing ? NULL : find(notes, sight->id);
        if (entry && entry->path && strcmp(entry->path, sight->path) == 0) {
            entry->position = sight->position;
            if (sight->found)
                notes_take(notes, sight->id, &sight->note);
        }
        free(sight->path);
    }
    notes->sight_count = 0;
    free_if_over(notes);
}

static void look(struct notes *notes)
{
    for (uint32_t i = 0; i < notes->count; i++) {
        const struct entry *entry = &notes->entries[i];
        if (!entry->path)
            continue;
        notes->sights = grow_array(notes->sights, &notes->sight_room,
                                   notes->sight_count + 1, sizeof *notes->sights);
        struct sight *sight = &notes->sights[notes->sight_count++];
        *sight = (struct sight){ .id = entry->id,
                                 .path = memory_text(entry->path),
                                 .uid = entry->uid,
                                 .gid = entry->gid,
                                 .position = entry->position };
    }
    if (notes->sight_count == 0)
        return;
    notes->work.data = notes;
    notes->looking =
        uv_queue_work(&notes->daemon->loop, &notes->work, look_at_all, on_looked) == 0;
}

/* --- every second --------------------------------------------------------------------------- */

static void on_timer(uv_timer_t *timer)
{
    struct notes *notes = timer->data;
    struct daemon *daemon = notes->daemon;
    if (!daemon->alive)
        return;
    for (uint32_t i = notes->count; i-- > 0;) {
        if (daemon_find(daemon, notes->entries[i].id) == JOB_NONE)
            drop(notes, i); /* it has ended */
        else if (notes->entries[i].waiting)
            pass_on(notes, &notes->entries[i]);
    }
    if (notes->count == 0)
        uv_timer_stop(timer);
    if (!notes->looking)
        look(notes);
}

/* --- beginning and end ------------------------------------------------------------------------ */

struct notes *notes_new(struct daemon *daemon)
{
    struct notes *notes = memory_checked(calloc(1, sizeof *notes));
    notes->daemon = daemon;
    uv_timer_init(&daemon->loop, &notes->timer);
    notes->timer.data = notes;
    return notes;
}

static void on_closed(uv_handle_t *handle)
{
    struct notes *notes = handle->data;
    notes->closed = true;
    free_if_over(notes);
}

void notes_free(struct notes *notes)
{
    if (!notes)
        return;
    notes->closing = true;
    uv_close((uv_handle_t *)&notes->timer, on_closed);
}
