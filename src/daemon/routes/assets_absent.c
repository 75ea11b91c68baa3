/* assets_absent.c - a build without the dashboard. */
#include "daemon/routes/assets.h"

const char *assets_find(const char *name, size_t *ret_count)
{
    (void)name;
    *ret_count = 0;
    return NULL;
}
