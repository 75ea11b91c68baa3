/* buf.c - growing bytes with a ceiling. */
#include "base/buf.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"

void buf_init(struct buf *buf, size_t count_max)
{
    *buf = (struct buf){ .count_max = count_max };
}

void buf_release(struct buf *buf)
{
    free(buf->bytes);
    *buf = (struct buf){ .count_max = buf->count_max };
}

void buf_reset(struct buf *buf)
{
    buf->count = 0;
    buf->full = false;
    if (buf->bytes)
        buf->bytes[0] = '\0';
}

/* Make room for 'count' more bytes and the NUL; false at the ceiling. */
static bool reserve_bytes(struct buf *buf, size_t count)
{
    if (count > buf->count_max - buf->count) {
        buf->full = true;
        return false;
    }
    size_t want = buf->count + count + 1;
    if (want <= buf->room)
        return true;
    size_t room = buf->room ? buf->room : 256;
    while (room < want)
        room *= 2;
    char *bytes = memory_checked(realloc(buf->bytes, room));
    buf->bytes = bytes;
    buf->room = room;
    return true;
}

void buf_add(struct buf *buf, const void *bytes, size_t count)
{
    if (buf->full || !reserve_bytes(buf, count))
        return;
    memcpy(buf->bytes + buf->count, bytes, count);
    buf->count += count;
    buf->bytes[buf->count] = '\0';
}

void buf_text(struct buf *buf, const char *text)
{
    buf_add(buf, text, strlen(text));
}

void buf_print(struct buf *buf, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    char small[256];
    int count = vsnprintf(small, sizeof small, fmt, args);
    va_end(args);
    if (count < 0)
        return;
    if ((size_t)count < sizeof small) {
        buf_add(buf, small, (size_t)count);
        return;
    }
    if (buf->full || !reserve_bytes(buf, (size_t)count))
        return;
    va_start(args, fmt);
    vsnprintf(buf->bytes + buf->count, (size_t)count + 1, fmt, args);
    va_end(args);
    buf->count += (size_t)count;
}

/* The ceiling as text: "16 MiB". */
static int past_the_ceiling(const struct buf *buf, const char *name, struct error *err)
{
    bool large = buf->count_max >= 1 << 20;
    return error_set(err, -EINVAL, "%.200s: more than %zu %s", name,
                     buf->count_max >> (large ? 20 : 10), large ? "MiB" : "KiB");
}

int buf_read(struct buf *buf, const char *path, struct error *err)
{
    bool standard = strcmp(path, "-") == 0;
    const char *name = standard ? "standard input" : path;
    FILE *file = standard ? stdin : fopen(path, "re");
    if (!file)
        return error_set(err, -errno, "%.200s: %s", name, strerror(errno));
    char piece[8192];
    size_t count;
    buf_add(buf, "", 0); /* a text, however short */
    while (!buf->full && (count = fread(piece, 1, sizeof piece, file)) > 0)
        buf_add(buf, piece, count);
    int r = 0;
    if (ferror(file))
        r = error_set(err, -errno, "%.200s: %s", name, strerror(errno));
    else if (buf->full)
        r = past_the_ceiling(buf, name, err);
    if (!standard)
        fclose(file);
    return r;
}
