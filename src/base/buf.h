/* buf.h - growing bytes with a ceiling. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct error;

/*
 * Text or bytes put together piece by piece.  Past the ceiling nothing more is added
 * and 'full' is set, so that a caller checks once, at the end.  The bytes are always
 * followed by a NUL.
 */
struct buf {
    char *bytes;
    size_t count;
    size_t room;
    size_t count_max;
    bool full;
};

void buf_init(struct buf *buf, size_t count_max);
void buf_release(struct buf *buf);
void buf_reset(struct buf *buf);

void buf_add(struct buf *buf, const void *bytes, size_t count);
void buf_text(struct buf *buf, const char *text);
void buf_print(struct buf *buf, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/*
 * Adds all of a file, or of standard input where 'path' is "-".  What cannot be read, or goes
 * past the ceiling, is an error that names the file.
 */
int buf_read(struct buf *buf, const char *path, struct error *err);
