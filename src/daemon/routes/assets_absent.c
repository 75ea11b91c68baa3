/* assets_absent.c - a build without the dashboard. */
#include "daemon/routes/assets.h"

static const char *none(size_t *ret_count)
{
    *ret_count = 0;
    return NULL;
}

const char *asset_html(size_t *ret_count)
{
    return none(ret_count);
}

const char *asset_script(size_t *ret_count)
{
    return none(ret_count);
}

const char *asset_style(size_t *ret_count)
{
    return none(ret_count);
}

const char *asset_icon(size_t *ret_count)
{
    return none(ret_count);
}
