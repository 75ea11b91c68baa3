/* schema.h - the tables of the store, as schema.sql has them. */
#pragma once

#include <stddef.h>

/* Ended by a NUL, which is not counted. */
const char *store_schema(size_t *ret_count);
