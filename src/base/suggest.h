/* suggest.h - "did you mean": the nearest of a list of names. */
#pragma once

#include <stddef.h>

/*
 * Write " (did you mean 'a' or 'b'?)" for up to two of 'names' (ended by NULL) that are
 * close to 'word', or nothing.  Returns 'text'.
 */
const char *suggest_names(char *text, size_t size, const char *word,
                          const char *const *names);
