/*
 * assets.h - the dashboard's files as they were built from web/, inside the program.
 *
 * Either all of these are made by tools/embed.py, or assets_absent.c stands for them where
 * the page was not built.
 */
#pragma once

#include <stddef.h>

/* The bytes of each; NULL where there are none. */
const char *asset_html(size_t *ret_count);
const char *asset_script(size_t *ret_count);
const char *asset_style(size_t *ret_count);
const char *asset_icon(size_t *ret_count);
