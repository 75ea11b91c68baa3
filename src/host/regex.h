/*
 * regex.h - regular expressions in time that grows with the text and in memory that does not.
 *
 * Users write them, so none may be expensive: one that is too large is refused when it is
 * compiled.  A text is bytes, whatever its encoding; a match is the leftmost, and of those
 * the longest, as in POSIX.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct error;
struct regex;

#define REGEX_MEMORY_MAX (1 << 20) /* bytes, of one expression and its caches */
#define REGEX_STEPS_MAX 1024       /* of its program: each may be tried at each byte */

/* Where a group matched: from 'start' to before 'end'; -1: it did not. */
struct regex_span {
    int start, end;
};

/* Compile 'text', for regex_free(); -EINVAL with a sentence, or -ENOMEM. */
int regex_compile(struct regex **ret_regex, const char *text, struct error *err);
void regex_free(struct regex *regex);

/* How many groups it has, and which one carries this name; 0: none. */
int regex_group_count(const struct regex *regex);
int regex_group_named(const struct regex *regex, const char *name);

/*
 * Look for it in a text.  The first 'span_count' groups are told, of which the first, number
 * 0, is the whole match.  False: it is not there, or memory has run out.
 */
bool regex_search(const struct regex *regex, const char *text, size_t length,
                  struct regex_span *ret_spans, int span_count);
