/* gres.c - parse generic resources. */
#include "slurm/gres.h"

#include <ctype.h>
#include <string.h>

#include "slurm/slurm_record.h"

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
    ret_gres->mixed = gpus.mixed;
    memcpy(ret_gres->type, gpus.type, sizeof(gpus.type));
    gres_read(job->tres_per_node, "gpu", &node);
    ret_gres->gpus_per_node = node.count;
    if (node.count == 0 && job->tasks_per_node > 0 && !job->tres_per_job) {
        gres_read(job->tres_per_task, "gpu", &node);
        ret_gres->gpus_per_node = node.count * job->tasks_per_node;
    }
}
