/*
 * jot.h - JSON written straight into a buffer, for replies with many rows.
 *
 * Commas come by themselves: whatever follows an opening brace, bracket or colon needs
 * none.  Keys are ours and not escaped; NULL stands for an item of an array.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct buf;

void jot_open(struct buf *buf, const char *key, char brace); /* '{' or '[' */
void jot_close(struct buf *buf, char brace);                 /* '}' or ']' */

void jot_text(struct buf *buf, const char *key, const char *text);
void jot_count(struct buf *buf, const char *key, int64_t count);
void jot_number(struct buf *buf, const char *key,
                double number); /* 12 digits; finite */
void jot_flag(struct buf *buf, const char *key, bool flag);
void jot_time(struct buf *buf, const char *key,
              int64_t ns); /* seconds, to 1 us; >= 0 */
void jot_json(struct buf *buf, const char *key, const char *json); /* as it is */

/* The same, but absent where there is nothing to say: NULL. */
void jot_text_if(struct buf *buf, const char *key, const char *text);
