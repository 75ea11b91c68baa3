/* error.h - how a function reports what went wrong. */
#pragma once

/*
 * A function that can fail returns 0 or a negative errno, and writes the reason as a
 * sentence.  The code is for the caller to branch on, the text is for people.  'err' may be
 * NULL.
 */
struct error {
    char text[320];
};

/*
 * Write the reason and return 'code', so that failing is one statement:
 *     return error_set(err, -EINVAL, "node %u: no such GPU type", node);
 */
int error_set(struct error *err, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
