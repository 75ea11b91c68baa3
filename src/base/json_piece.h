/*
 * json_piece.h - the members of an object as they stand in its text.
 *
 * To keep or move a large member, its text is copied; nothing is built and printed again.
 */
#pragma once

#include <stddef.h>

/* One member; neither text is ended by a NUL.  The key is without its quotes, as it stands. */
struct json_piece {
    const char *key, *value;
    size_t key_count, value_count;
};

/*
 * The next member of an object: 'at' is the text, which json_parse() has accepted, and then
 * what the last call returned.  NULL: there are no more.
 */
const char *json_piece_next(const char *at, struct json_piece *piece);
