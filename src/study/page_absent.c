/* page_absent.c - a build without the report's page. */
#include "study/page.h"

const char *page_get(size_t *ret_count)
{
    *ret_count = 0;
    return NULL;
}
