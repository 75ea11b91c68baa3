/* bridge_messages.c - encode records of Slurm as lines of JSON, with their resources. */
#include "slurm/bridge_messages.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/hash.h"
#include "base/json_write.h"
#include "base/json.h"
#include "base/map.h"
#include "slurm/slurm_driver.h"
#include "slurm/hostlist.h"

#define TEXT_MAX_BYTES 16384 /* of a name or a comment; longer ones are cut */

/* --- generic resources ------------------------------------------------------------- */

/* Far beyond any machine, and small enough that products of three of them fit. */
#define COUNT_MAX (UINT64_C(1) << 20)

/* A part of a text. */
struct gres_piece {
    const char *at;
    size_t count;
};

/* The length of an item, which ends at a comma or semicolon outside of parentheses. */
static size_t find_item_end(const char *text)
{
    size_t i = 0;
    for (bool inside = false; text[i] && (inside || (text[i] != ',' && text[i] != ';'));
         i++)
        if (text[i] == '(')
            inside = true;
        else if (text[i] == ')')
            inside = false;
    return i;
}

/* Take the part up to the next separator, which is skipped. */
static struct gres_piece next_piece(struct gres_piece *rest)
{
    struct gres_piece piece = { rest->at, 0 };
    while (piece.count < rest->count && !strchr(":=", rest->at[piece.count]))
        piece.count++;
    size_t used = piece.count + (piece.count < rest->count);
    rest->at += used;
    rest->count -= used;
    return piece;
}

static bool piece_is(struct gres_piece piece, const char *word)
{
    return strlen(word) == piece.count && memcmp(piece.at, word, piece.count) == 0;
}

/* Read "4" or "2K"; a type may start with a digit ("2080ti"), so all of it must match. */
static bool read_count(struct gres_piece piece, uint64_t *ret_count)
{
    static const char units[] = "KMGT";
    uint64_t count = 0;
    size_t i = 0;
    for (; i < piece.count && isdigit((unsigned char)piece.at[i]); i++) {
        count = count * 10 + (uint64_t)(piece.at[i] - '0');
        if (count > COUNT_MAX)
            return false;
    }
    if (i == 0)
        return false;
    if (i + 1 == piece.count) {
        const char *unit = strchr(units, toupper((unsigned char)piece.at[i]));
        if (!unit)
            return false;
        for (; unit >= units && count <= COUNT_MAX; unit--)
            count *= 1024;
        i++;
    }
    *ret_count = count;
    return i == piece.count && count <= COUNT_MAX;
}

/* Read "(IDX:0-1,3)" as bits; other parentheses, such as sockets, have no indexes. */
static uint64_t read_indexes(struct gres_piece inside)
{
    uint64_t bits = 0;
    if (inside.count < 4 || memcmp(inside.at, "IDX:", 4) != 0)
        return 0;
    const char *end = inside.at + inside.count;
    for (const char *at = inside.at + 4; at < end;) {
        unsigned first = 0, last = 0, *number = &first;
        bool range = false;
        for (; at < end && *at != ','; at++) {
            if (*at == '-' && !range) {
                range = true;
                number = &last;
            } else if (isdigit((unsigned char)*at) && *number < 1000)
                *number = *number * 10 + (unsigned)(*at - '0');
            else
                return bits;
        }
        at++;
        for (unsigned i = first; i <= (range ? last : first) && i < GRES_INDEX_MAX; i++)
            bits |= UINT64_C(1) << i;
    }
    return bits;
}

/* The type is kept as plain ASCII: it goes into JSON. */
static void add_type(struct gres *gres, struct gres_piece type)
{
    char name[GRES_TYPE_BYTES] = "";
    for (size_t i = 0; i < type.count && i < GRES_TYPE_BYTES - 1; i++)
        name[i] = isgraph((unsigned char)type.at[i]) ? type.at[i] : '?';
    if (gres->type[0] == '\0')
        memcpy(gres->type, name, sizeof(name));
    else if (strcmp(gres->type, name) != 0)
        gres->mixed = true;
}

static void add_item(struct gres *gres, const char *name, struct gres_piece item)
{
    const char *open = memchr(item.at, '(', item.count);
    if (open) {
        size_t before = (size_t)(open - item.at);
        struct gres_piece inside = { open + 1, item.count - before - 1 };
        if (inside.count > 0 && inside.at[inside.count - 1] == ')')
            inside.count--;
        item.count = before;
        struct gres_piece head = item, first = next_piece(&head);
        if (piece_is(first, name))
            gres->indexes |= read_indexes(inside);
    }
    if (item.count >= 5 && memcmp(item.at, "gres", 4) == 0 &&
        (item.at[4] == ':' || item.at[4] == '/')) {
        item.at += 5;
        item.count -= 5;
    }
    if (!piece_is(next_piece(&item), name))
        return;
    uint64_t count = 1; /* of "gpu" and "gpu:v100" */
    if (item.count > 0) {
        struct gres_piece word = next_piece(&item);
        if (!read_count(word, &count)) {
            add_type(gres, word);
            if (item.count > 0 && !read_count(next_piece(&item), &count))
                return;
        }
    }
    gres->count = count < COUNT_MAX - gres->count ? gres->count + count : COUNT_MAX;
}

void gres_read(const char *text, const char *name, struct gres *ret_gres)
{
    *ret_gres = (struct gres){ 0 };
    while (text && *text) {
        size_t length = find_item_end(text);
        add_item(ret_gres, name, (struct gres_piece){ text, length });
        text += length;
        if (*text)
            text++;
    }
}

static uint64_t count_or_one(uint32_t number)
{
    if (number == 0 || number == SLURM_NONE)
        return 1;
    return number < COUNT_MAX ? number : COUNT_MAX;
}

/* The number for the whole job, from the first field that has one. */
static uint64_t sum_for_job(const struct slurm_job *job, const char *name,
                            struct gres *said)
{
    uint64_t nodes = count_or_one(job->min_nodes);
    const struct {
        const char *text;
        uint64_t times;
    } places[] = {
        { job->tres_per_job, 1 },
        { job->tres_per_node, nodes },
        { job->tres_per_task, count_or_one(job->tasks) },
        { job->tres_per_socket, nodes * count_or_one(job->sockets_per_node) },
    };
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        gres_read(places[i].text, name, said);
        if (said->count > 0)
            return said->count * places[i].times;
    }
    return 0;
}

void gres_of_job(const struct slurm_job *job, struct job_gres *ret_gres)
{
    struct gres gpus, shards, node;
    *ret_gres = (struct job_gres){ 0 };
    ret_gres->gpus = sum_for_job(job, "gpu", &gpus);
    ret_gres->shards = sum_for_job(job, "shard", &shards);
    /* Slurm refuses jobs that ask for both. */
    const struct gres *asked = ret_gres->gpus > 0 ? &gpus : &shards;
    ret_gres->mixed = asked->mixed;
    memcpy(ret_gres->type, asked->type, sizeof(asked->type));
    gres_read(job->tres_per_node, "gpu", &node);
    ret_gres->gpus_per_node = node.count;
    if (node.count == 0 && job->tasks_per_node > 0 && !job->tres_per_job) {
        gres_read(job->tres_per_task, "gpu", &node);
        ret_gres->gpus_per_node = node.count * job->tasks_per_node;
    }
}

/* --- messages ----------------------------------------------------------------------- */

/* Text of users may be in any encoding; JSON is UTF-8. */
static void write_text(struct buf *line, const char *key, const char *text,
                       struct arena *scratch)
{
    if (!text || *text == '\0')
        return;
    if (strlen(text) > TEXT_MAX_BYTES || !json_can_say(text)) {
        size_t count = strnlen(text, TEXT_MAX_BYTES);
        char *plain = arena_array(scratch, char, count + 1);
        for (size_t i = 0; i < count; i++)
            plain[i] = (unsigned char)text[i] < 0x80 ? text[i] : '?';
        text = plain;
    }
    json_write_text(line, key, text);
}

/* A path that JSON cannot represent, or that is cut, would be another one: leave it out. */
static void write_path(struct buf *line, const char *key, const char *path)
{
    if (path && path[0] == '/' && strlen(path) < PATH_MAX && json_can_say(path))
        json_write_text(line, key, path);
}

/* 0 is left out. */
static void write_count(struct buf *line, const char *key, int64_t count)
{
    if (count > 0)
        json_write_count(line, key, count);
}

/* A hostlist as a list of names; one that cannot be parsed is left out. */
static void write_nodes(struct buf *line, const char *key, const char *text,
                        struct arena *scratch)
{
    struct hostlist list;
    if (!text || *text == '\0' || hostlist_expand(text, scratch, &list, NULL) < 0)
        return;
    json_write_open(line, key, '[');
    for (uint32_t i = 0; i < list.count; i++)
        json_write_text(line, NULL, list.names[i]);
    json_write_close(line, ']');
}

static void write_indexes(struct buf *line, const char *key, uint64_t indexes)
{
    json_write_open(line, key, '[');
    for (int i = 0; i < GRES_INDEX_MAX; i++)
        if (indexes >> i & 1)
            json_write_count(line, NULL, i);
    json_write_close(line, ']');
}

/* The GPU indexes per node, each node once: JSON keys are unique. */
static void write_gpu_indexes(struct buf *line, const struct slurm_job *job,
                              struct arena *scratch)
{
    struct map written = { 0 };
    bool open = false;
    for (uint32_t i = 0; i < job->allocation_count; i++) {
        struct gres gpus, shards;
        struct hostlist list;
        gres_read(job->allocation[i].gres, "gpu", &gpus);
        gres_read(job->allocation[i].gres, "shard", &shards);
        uint64_t indexes = gpus.indexes | shards.indexes;
        if (indexes == 0 ||
            hostlist_expand(job->allocation[i].nodes, scratch, &list, NULL) < 0)
            continue;
        if (!open)
            json_write_open(line, "gpu_index", '{');
        open = true;
        for (uint32_t n = 0; n < list.count; n++) {
            uint64_t key = hash_text(list.names[n]);
            if (map_find(&written, key) == MAP_NONE)
                write_indexes(line, list.names[n], indexes);
            map_put(&written, key, 1);
        }
    }
    if (open)
        json_write_close(line, '}');
    map_release(&written);
}

static bool has_allocation(const struct slurm_job *job)
{
    return job->state == BRIDGE_RUNNING || job->state == BRIDGE_SUSPENDED;
}

static void write_identity(struct buf *line, const struct slurm_job *job,
                           struct arena *scratch)
{
    json_write_count(line, "id", job->id);
    write_count(line, "array_id", job->array_id);
    if (job->array_task != SLURM_NONE)
        json_write_count(line, "array_task", job->array_task);
    else if (job->array_tasks) {
        char *tasks = arena_text(scratch, job->array_tasks);
        tasks[strcspn(tasks, "%")] = '\0'; /* "1-9%3": the limit has its own key */
        write_text(line, "array_tasks", tasks, scratch);
    }
    write_count(line, "array_limit", job->array_limit);
    write_count(line, "het", job->het_id);
    write_text(line, "name", job->name, scratch);
    write_text(line, "user", job->user, scratch);
    json_write_count(line, "uid", job->uid);
    write_text(line, "partition", job->partition, scratch);
}

static void write_state(struct buf *line, const struct slurm_job *job,
                        struct arena *scratch)
{
    bool pending = job->state == BRIDGE_PENDING;
    bool running = has_allocation(job);

    json_write_text(line, "state", bridge_state_name(job->state));
    if (job->reason && strcmp(job->reason, "None") != 0)
        write_text(line, "reason", job->reason, scratch);
    json_write_flag(line, "held", pending && job->priority == 0);
    if (pending) /* of other states it means nothing, and changes by itself */
        json_write_count(line, "priority", job->priority);
    json_write_flag(line, "completing", job->completing);
    json_write_flag(line, "requeue", job->requeue);
    json_write_flag(line, "batch", job->batch);
    json_write_count(line, "restarts", job->restarts);
    if (!pending && !running) {
        json_write_count(line, "exit_code", job->exit_code);
        write_count(line, "signal", job->signal);
        write_count(line, "end", job->end);
    }
    write_count(line, "submit", job->submit);
    /* Slurm also estimates when a job will start, but not for a job that is held. */
    bool limited =
        job->priority == 0 || (job->reason && strcmp(job->reason, "BeginTime") == 0);
    if (pending && job->start >= SLURM_PARKED_FROM)
        json_write_flag(line, "parked", true);
    if (pending && limited)
        write_count(line, "begin", job->start);
    else if (!pending)
        write_count(line, "start", job->start);
    if (running || job->completing)
        write_nodes(line, "nodes", job->nodes, scratch);
}

static void write_demand(struct buf *line, const struct slurm_job *job,
                         struct arena *scratch)
{
    struct job_gres gres;
    gres_of_job(job, &gres);
    write_count(line, "time_limit_s", job->time_limit_s);
    write_count(line, "min_nodes", job->min_nodes);
    write_count(line, "max_nodes",
                job->max_nodes > job->min_nodes ? job->max_nodes : job->min_nodes);
    json_write_count(line, "gpus", (int64_t)gres.gpus);
    write_count(line, "gpus_per_node", (int64_t)gres.gpus_per_node);
    write_text(line, "gpu_type", gres.type, scratch);
    if (gres.mixed)
        json_write_flag(line, "gpu_types_mixed", true);
    write_count(line, "shards", (int64_t)gres.shards);
    write_count(line, "tasks", job->tasks);
    write_count(line, "cpus", job->cpus);
    uint64_t nodes = job->min_nodes > 0 ? job->min_nodes : 1;
    uint64_t cpus = (job->cpus + nodes - 1) / nodes;
    uint64_t mem_mib = job->mem_mib < UINT64_C(1) << 40 ? job->mem_mib : 0;
    write_count(line, "mem_mib",
                (int64_t)(job->mem_per_cpu ? mem_mib * (cpus ? cpus : 1) : mem_mib) &
                    INT64_MAX);
    write_nodes(line, "req_nodes", job->req_nodes, scratch);
    write_nodes(line, "exc_nodes", job->exc_nodes, scratch);
    write_text(line, "features", job->features, scratch);
    write_text(line, "dependency", job->dependency, scratch);
    write_text(line, "comment", job->comment, scratch);
    write_text(line, "admin_comment", job->admin_comment, scratch);
    write_text(line, "command", job->command, scratch);
    write_path(line, "folder", job->folder);
    write_path(line, "output", job->output);
    if (job->errors && (!job->output || strcmp(job->output, job->errors) != 0))
        write_path(line, "errors", job->errors);
}

void bridge_message_job(struct buf *line, const struct slurm_job *job,
                        struct arena *scratch)
{
    json_write_open(line, NULL, '{');
    json_write_open(line, "job", '{');
    write_identity(line, job, scratch);
    write_state(line, job, scratch);
    write_demand(line, job, scratch);
    if (has_allocation(job) || job->completing)
        write_gpu_indexes(line, job, scratch);
    json_write_close(line, '}');
    json_write_close(line, '}');
}

void bridge_message_node(struct buf *line, const struct slurm_node *node)
{
    struct gres gpus, shards, used, used_in_part;
    gres_read(node->gres, "gpu", &gpus);
    gres_read(node->gres, "shard", &shards);
    gres_read(node->gres_used, "gpu", &used);
    gres_read(node->gres_used, "shard", &used_in_part);
    json_write_open(line, NULL, '{');
    json_write_open(line, "node", '{');
    json_write_text(line, "name", node->name);
    if (gpus.type[0])
        json_write_text(line, "type", gpus.type);
    if (gpus.mixed)
        json_write_flag(line, "gpu_types_mixed", true);
    json_write_count(line, "gpus", (int64_t)gpus.count);
    write_count(line, "shards", (int64_t)shards.count);
    write_count(line, "cpus", node->cpus);
    write_count(line, "mem_mib", (int64_t)(node->mem_mib & INT64_MAX));
    json_write_flag(line, "up", node->up);
    if (node->drain)
        json_write_flag(line, "drain", true);
    if (node->reason && json_can_say(node->reason))
        json_write_text(line, "reason", node->reason);
    if (node->features && *node->features && json_can_say(node->features))
        json_write_text(line, "features", node->features);
    if (node->gres_used)
        write_indexes(line, "used", used.indexes | used_in_part.indexes);
    json_write_close(line, '}');
    json_write_close(line, '}');
}

void bridge_message_hello(struct buf *line, const struct slurm_site *site,
                          const char *driver, int64_t now_s)
{
    json_write_open(line, NULL, '{');
    json_write_count(line, "hello", 1);
    if (json_can_say(site->version))
        json_write_text(line, "slurm", site->version);
    if (json_can_say(site->cluster))
        json_write_text(line, "cluster", site->cluster);
    json_write_text(line, "driver", driver);
    json_write_count(line, "now", now_s);
    json_write_close(line, '}');
}

void bridge_message_done(struct buf *line, int64_t seq,
                         const struct verb_result *result, const char *text)
{
    json_write_open(line, NULL, '{');
    json_write_open(line, "done", '{');
    json_write_count(line, "seq", seq);
    json_write_flag(line, "ok", result->ok);
    if (!result->ok) {
        json_write_text(line, "error",
                        json_can_say(result->error) ? result->error : "?");
        json_write_count(line, "code", result->code);
        json_write_flag(line, "transient", result->transient);
    }
    if (text)
        json_write_text(line, "text", json_can_say(text) ? text : "");
    json_write_close(line, '}');
    json_write_close(line, '}');
}

void bridge_message_gone(struct buf *line, uint32_t id)
{
    json_write_open(line, NULL, '{');
    json_write_count(line, "gone", id);
    json_write_close(line, '}');
}

void bridge_message_text(struct buf *line, const char *key, const char *text)
{
    json_write_open(line, NULL, '{');
    json_write_text(line, key, json_can_say(text) ? text : "?");
    json_write_close(line, '}');
}

void bridge_message_flag(struct buf *line, const char *key)
{
    json_write_open(line, NULL, '{');
    json_write_flag(line, key, true);
    json_write_close(line, '}');
}
