/*
 * alloc_count.h - count calls of malloc() and free() while switched on: a decision makes
 * none.  Linked with --wrap, see tests/meson.build.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

extern bool alloc_count_on;
extern uint64_t alloc_count_calls;
