/*
 * alloc_count.h - how often memory is asked for or given back, while somebody counts: deciding
 * is to do neither.  Linked with --wrap, see tests/meson.build.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

extern bool alloc_count_on;
extern uint64_t alloc_count_calls;
