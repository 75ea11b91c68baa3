/*
 * assets.h - the dashboard's files as they were built from web/, inside the program.
 *
 * tools/embed.py makes the function, or assets_absent.c has it where the page was not built.
 */
#pragma once

#include <stddef.h>

/* The bytes of a file; NULL: there is none of that name. */
const char *assets_find(const char *name, size_t *ret_count);
