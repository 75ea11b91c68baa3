/* Members of an object as they stand in its text. */
#include "support/cases.h"

#include <string.h>

#include "base/json_piece.h"

static void assert_piece(const struct json_piece *piece, const char *key,
                         const char *value)
{
    assert_int_equal(piece->key_count, strlen(key));
    assert_memory_equal(piece->key, key, strlen(key));
    assert_int_equal(piece->value_count, strlen(value));
    assert_memory_equal(piece->value, value, strlen(value));
}

static void members_are_found_in_order(void **state)
{
    struct json_piece piece;
    const char *at = " { \"a\" : 1.5 ,\"b\":\"x,\\\"}\", \"c\":{\"d\":[\"]\",{}]},"
                     "\"\\u0065\":null}\n";
    at = json_piece_next(at, &piece);
    assert_piece(&piece, "a", "1.5");
    at = json_piece_next(at, &piece);
    assert_piece(&piece, "b", "\"x,\\\"}\"");
    at = json_piece_next(at, &piece);
    assert_piece(&piece, "c", "{\"d\":[\"]\",{}]}");
    at = json_piece_next(at, &piece);
    assert_piece(&piece, "\\u0065", "null");
    assert_null(json_piece_next(at, &piece));
}

static void an_empty_object_has_none(void **state)
{
    struct json_piece piece;
    assert_null(json_piece_next("{}", &piece));
    assert_null(json_piece_next(" { } ", &piece));
}

RUN_CASES(TEST(members_are_found_in_order), TEST(an_empty_object_has_none));
