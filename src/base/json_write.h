/*
 * json_write.h - JSON written straight into a buffer, for replies with many rows.
 *
 * Commas come by themselves: whatever follows an opening brace, bracket or colon needs
 * none.  Keys are ours and not escaped; NULL stands for an item of an array.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct buf;

void json_write_open(struct buf *buf, const char *key, char brace); /* '{' or '[' */
void json_write_close(struct buf *buf, char brace);                 /* '}' or ']' */

void json_write_text(struct buf *buf, const char *key, const char *text);
void json_write_count(struct buf *buf, const char *key, int64_t count);
void json_write_number(struct buf *buf, const char *key,
                       double number); /* 12 digits; finite */
void json_write_flag(struct buf *buf, const char *key, bool flag);
void json_write_time(struct buf *buf, const char *key,
                     int64_t ns); /* seconds, to 1 us; >= 0 */
void json_write_raw(struct buf *buf, const char *key, const char *json); /* as it is */

/* The same, but absent where there is nothing to say: NULL. */
void json_write_text_if(struct buf *buf, const char *key, const char *text);
