/* schema.h - the tables of the store, as schema.sql has them. */
#pragma once

#include <stddef.h>

/* Not ended by a NUL. */
const char *store_schema(size_t *ret_count);
