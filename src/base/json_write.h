/*
 * json_write.h - the streaming JSON writer: values appended to a buffer.
 *
 * Bytes of texts that are not UTF-8 are replaced by U+FFFD.
 *
 * The writer adds commas by itself: a value needs none right after an opening brace, a
 * bracket or a colon.  Keys are constants of the program and are not escaped; a NULL key
 * writes an item of an array.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct buf;

void json_write_open(struct buf *buf, const char *key, char brace); /* '{' or '[' */
void json_write_close(struct buf *buf, char brace);                 /* '}' or ']' */

void json_write_text(struct buf *buf, const char *key, const char *text);
void json_write_text_if(struct buf *buf, const char *key,
                        const char *text); /* nothing if NULL */
void json_write_count(struct buf *buf, const char *key, int64_t count);
void json_write_flag(struct buf *buf, const char *key, bool flag);
void json_write_raw(struct buf *buf, const char *key, const char *json); /* verbatim */

/* The positions of the bits of a set, as an array: the GPUs of a node. */
void json_write_bits(struct buf *buf, const char *key, uint64_t bits);

/* 12 significant digits; the number must be finite. */
void json_write_number(struct buf *buf, const char *key, double number);

/* This many digits after the point; the number must be finite. */
void json_write_fixed(struct buf *buf, const char *key, double number, int digits);

/* All digits, so that reading gives an equal number; null if it is not finite. */
void json_write_exact(struct buf *buf, const char *key, double number);

/* A time >= 0 in seconds, with microseconds or nanoseconds after the point. */
void json_write_time(struct buf *buf, const char *key, int64_t ns);
void json_write_time_ns(struct buf *buf, const char *key, int64_t ns);
