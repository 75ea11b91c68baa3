/*
 * hostlist.c - expand "n[1-3,07]" to "n1 n2 n3 n07".
 *
 * A name may contain several brackets, "r[1-2]n[1-2]", which are expanded from the left.
 * Numbers keep their width.
 */
#include "slurm/hostlist.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/grow.h"

#define NAME_MAX_BYTES 256
#define DIGITS_MAX 9

struct hostlist_work {
    struct arena *arena;
    const char **names; /* freed at the end */
    uint32_t count;
    uint32_t room;
};

struct hostlist_range {
    uint64_t first, last;
    int width;
};

static int add_name(struct hostlist_work *work, const char *name)
{
    if (work->count == HOSTLIST_MAX)
        return -E2BIG;
    if (work->count == work->room)
        work->names =
            grow_array(work->names, &work->room, work->count + 1, sizeof(char *));
    work->names[work->count++] = arena_text(work->arena, name);
    return 0;
}

static bool read_number(const char **at, uint64_t *ret_number, int *ret_width)
{
    const char *from = *at;
    uint64_t number = 0;
    while (isdigit((unsigned char)**at) && *at - from < DIGITS_MAX)
        number = number * 10 + (uint64_t)(*(*at)++ - '0');
    *ret_number = number;
    *ret_width = (int)(*at - from);
    return *at > from;
}

/* Read "1" or "1-3", followed by a comma or the end of the bracket. */
static bool read_range(const char **at, struct hostlist_range *range)
{
    int width;
    if (!read_number(at, &range->first, &range->width))
        return false;
    range->last = range->first;
    if (**at == '-') {
        (*at)++;
        if (!read_number(at, &range->last, &width) || range->last < range->first)
            return false;
    }
    return **at == ',' || **at == ']';
}

/* Names must be plain ASCII: they become parts of lists, commands and JSON. */
static bool is_plain_name(const char *word, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!isalnum((unsigned char)word[i]) && !strchr("-._:", word[i]))
            return false;
    return true;
}

/* Add all names of 'word' (of 'count' bytes), each after the 'used' bytes of 'name'. */
static int expand_word(struct hostlist_work *work, char *name, size_t used,
                       const char *word, size_t count)
{
    const char *open = memchr(word, '[', count);
    size_t plain = open ? (size_t)(open - word) : count;
    if (used + plain + DIGITS_MAX >= NAME_MAX_BYTES || !is_plain_name(word, plain))
        return -EINVAL;
    memcpy(name + used, word, plain);
    used += plain;
    name[used] = '\0';
    if (!open)
        return used > 0 ? add_name(work, name) : -EINVAL;

    const char *close = memchr(open, ']', count - plain);
    if (!close)
        return -EINVAL;
    size_t rest = count - (size_t)(close + 1 - word);
    for (const char *at = open + 1;; at++) {
        struct hostlist_range range;
        if (!read_range(&at, &range) || at > close)
            return -EINVAL;
        for (uint64_t i = range.first; i <= range.last; i++) {
            int wrote = snprintf(name + used, NAME_MAX_BYTES - used, "%0*" PRIu64,
                                 range.width, i);
            int r = expand_word(work, name, used + (size_t)wrote, close + 1, rest);
            if (r < 0)
                return r;
        }
        if (at == close)
            return 0;
    }
}

/* The length of a word, which ends at a comma outside of brackets. */
static size_t find_word_end(const char *text)
{
    size_t depth = 0, i = 0;
    for (; text[i] && (text[i] != ',' || depth > 0); i++)
        if (text[i] == '[')
            depth++;
        else if (text[i] == ']' && depth > 0)
            depth--;
    return i;
}

static int expand_all(struct hostlist_work *work, const char *text)
{
    char name[NAME_MAX_BYTES];
    while (*text) {
        size_t length = find_word_end(text);
        int r = expand_word(work, name, 0, text, length);
        if (r < 0)
            return r;
        text += length;
        if (*text == ',' && *++text == '\0')
            return -EINVAL;
    }
    return 0;
}

int hostlist_expand(const char *text, struct arena *arena, struct hostlist *ret_list,
                    struct error *err)
{
    struct hostlist_work work = { .arena = arena };
    int r = expand_all(&work, text);
    if (r == 0) {
        ret_list->names = arena_array(arena, const char *, work.count);
        ret_list->count = work.count;
        if (work.count > 0)
            memcpy(ret_list->names, work.names, work.count * sizeof(char *));
    }
    free(work.names);
    if (r == -E2BIG)
        return error_set(err, r, "more than %d nodes in a list", HOSTLIST_MAX);
    if (r < 0)
        return error_set(err, r, "'%.80s' is no list of nodes", text);
    return 0;
}

bool hostlist_same(const char *a, const char *b, struct arena *scratch)
{
    struct hostlist x, y;
    if (!a || !b || hostlist_expand(a, scratch, &x, NULL) < 0 ||
        hostlist_expand(b, scratch, &y, NULL) < 0 || x.count != y.count)
        return false;
    for (uint32_t i = 0; i < x.count; i++) {
        uint32_t k = 0;
        while (k < y.count && strcmp(x.names[i], y.names[k]) != 0)
            k++;
        if (k == y.count)
            return false;
    }
    return true;
}
