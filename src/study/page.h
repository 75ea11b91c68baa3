/*
 * page.h - the report's page as it was built from web/, inside the program.
 *
 * One of two files defines it: the one made from the page by tools/embed.py, or
 * page_absent.c where the page was not built.
 */
#pragma once

#include <stddef.h>

/* The page's bytes, with a marker where the data go; NULL where there is none. */
const char *page_get(size_t *ret_count);
