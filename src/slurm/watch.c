/* watch.c - lines that differ from the last ones. */
#include "slurm/watch.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/hash.h"
#include "base/json.h"
#include "slurm/bridge_request.h"
#include "slurm/bridge_messages.h"

#define NODE_KEY (UINT64_C(1) << 63)
#define UNSAID 0

/* Of a line; never UNSAID. */
static uint64_t line_hash(const void *bytes, size_t count)
{
    uint64_t hash = hash_bytes(HASH_BYTES_START, bytes, count);
    return hash != UNSAID ? hash : 1;
}

void poll_diff_init(struct poll_diff *watch, const char *const *partitions,
                    uint32_t count, void (*say)(void *self, const struct buf *line),
                    void *self)
{
    *watch = (struct poll_diff){
        .partitions = partitions, .partition_count = count, .say = say, .self = self
    };
    buf_init(&watch->line, BRIDGE_LINE_MAX - 1);
    arena_init(&watch->scratch, 65536);
}

/* Whether one of these ("a,b") is ours. */
static bool is_managed(const struct poll_diff *watch, const char *partitions)
{
    if (watch->partition_count == 0)
        return true;
    for (const char *at = partitions; at && *at;) {
        size_t length = strcspn(at, ",");
        for (uint32_t i = 0; i < watch->partition_count; i++)
            if (strlen(watch->partitions[i]) == length &&
                memcmp(watch->partitions[i], at, length) == 0)
                return true;
        at += length + (at[length] == ',');
    }
    return false;
}

static struct seen_record *meet(struct poll_diff *watch, uint64_t key, uint32_t id)
{
    uint32_t place = map_find(&watch->places, key);
    if (place == MAP_NONE) {
        if (watch->known_count == watch->known_room)
            watch->known = grow(watch->known, &watch->known_room,
                                watch->known_count + 1, sizeof(*watch->known));
        place = watch->known_count++;
        watch->known[place] = (struct seen_record){ .key = key, .id = id };
        map_put(&watch->places, key, place);
    }
    watch->known[place].round = watch->round;
    return &watch->known[place];
}

static void say_line(struct poll_diff *watch)
{
    if (!watch->line.full)
        watch->say(watch->self, &watch->line);
    watch->said++;
}

/* Say the line unless it is the one that was said last. */
static void say_if_new(struct poll_diff *watch, struct seen_record *known)
{
    uint64_t line = line_hash(watch->line.bytes, watch->line.count);
    if (known->line != line)
        say_line(watch);
    known->line = line;
}

static void see_job(void *self, const struct slurm_job *job)
{
    struct poll_diff *watch = self;
    if (!is_managed(watch, job->partition))
        return;
    struct seen_record *known = meet(watch, job->id, job->id);
    buf_reset(&watch->line);
    bridge_message_job(&watch->line, job, &watch->scratch);
    arena_reset(&watch->scratch);
    say_if_new(watch, known);
}

static void see_node(void *self, const struct slurm_node *node)
{
    struct poll_diff *watch = self;
    if (!is_managed(watch, node->partitions) || !json_can_say(node->name))
        return;
    uint64_t key = NODE_KEY | hash_text(node->name);
    struct seen_record *known = meet(watch, key, 0);
    if (!known->name && !(known->name = strdup(node->name)))
        abort();
    buf_reset(&watch->line);
    bridge_message_node(&watch->line, node);
    say_if_new(watch, known);
}

/* A job we cannot trust what is said of stays as it was; that much is said, once. */
static void see_doubt(void *self, uint32_t id, const char *why)
{
    struct poll_diff *watch = self;
    uint64_t hash = line_hash(why, strlen(why));
    if (id == 0)
        return;
    struct seen_record *known = meet(watch, id, id);
    if (known->line == hash)
        return;
    known->line = hash;
    buf_reset(&watch->line);
    bridge_message_text(&watch->line, "wrong", why);
    say_line(watch);
}

struct slurm_observer poll_diff_begin(struct poll_diff *watch)
{
    watch->round++;
    watch->said = 0;
    return (struct slurm_observer){
        .self = watch, .node = see_node, .job = see_job, .doubt = see_doubt
    };
}

/* Forget one; the last takes its place. */
static void drop(struct poll_diff *watch, uint32_t place)
{
    free(watch->known[place].name);
    map_remove(&watch->places, watch->known[place].key);
    struct seen_record *last = &watch->known[--watch->known_count];
    if (place == watch->known_count)
        return;
    watch->known[place] = *last;
    map_put(&watch->places, last->key, place);
}

void poll_diff_end(struct poll_diff *watch, const struct slurm_poll *look)
{
    for (uint32_t i = 0; i < watch->known_count;) {
        const struct seen_record *known = &watch->known[i];
        bool shown = known->id != 0 ? look->jobs : look->nodes;
        if (!shown || known->round == watch->round) {
            i++;
            continue;
        }
        buf_reset(&watch->line);
        if (known->id != 0)
            bridge_message_gone(&watch->line, known->id);
        else /* it has left the partitions: nothing can start there */
            bridge_message_node(&watch->line,
                                &(struct slurm_node){ .name = known->name });
        say_line(watch);
        drop(watch, i);
    }
    if (!watch->synced) {
        buf_reset(&watch->line);
        bridge_message_flag(&watch->line, "synced");
        say_line(watch);
    }
    watch->synced = true;
}

void poll_diff_forget(struct poll_diff *watch)
{
    for (uint32_t i = 0; i < watch->known_count; i++)
        watch->known[i].line = UNSAID;
    watch->synced = false;
}
