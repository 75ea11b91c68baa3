/* reader.h - the bytes of a trace, plain or compressed, and the lines in them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct error;
struct reader_source;

#define READER_LINE_MAX (1024 * 1024)

/*
 * A file is read in chunks and unpacked on the way if its first bytes are those of
 * gzip or zstd.  Lines are handed out where they lie in the buffer: nothing is copied
 * but the rest of a line that a chunk cuts in two.
 */
struct reader {
    const char *name; /* for messages: the path as given                      */
    uint64_t line;    /* number of the line handed out last, from 1           */
    bool cut;         /* that line had no newline at its end                  */

    char *bytes; /* held: from 'start' to 'end'; NUMBER_PAD more may be read  */
    size_t start, end, room;
    bool ended;  /* nothing follows what is held                              */
    bool quotes; /* a double quote was seen                                   */
    bool binary; /* a NUL was seen                                            */
    struct reader_source *source;
};

/* 'path' may be "-" for standard input; it is borrowed until the release. */
int reader_open(struct reader *reader, const char *path, struct error *err);

/* Read from memory, which is borrowed, as if it were a file of that name. */
int reader_open_memory(struct reader *reader, const char *name, const void *bytes,
                       size_t count, struct error *err);
void reader_release(struct reader *reader);

/*
 * The next line without its end (LF or CRLF), with a NUL after it; it may be written to
 * and lives until the next call.  Returns 1, 0 at the end of the file, or a negative
 * errno: unreadable, cut short, binary, or a line beyond the ceiling.
 */
int reader_line(struct reader *reader, char **ret_line, size_t *ret_bytes,
                struct error *err);

/* Hold at least 'want' bytes, or all there are; they stay unread. */
int reader_peek(struct reader *reader, size_t want, struct error *err);

/* Hold more than now: 1, or 0 if there is no more. */
int reader_fill(struct reader *reader, struct error *err);

/* "FILE:LINE: FIELD is "VALUE", want WANT"; returns -EINVAL.  Odd bytes show as '?'. */
int reader_wrong(const struct reader *reader, const char *field, const char *value,
                 size_t value_bytes, const char *want, struct error *err);
