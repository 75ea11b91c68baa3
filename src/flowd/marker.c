/* marker.c - the list of markers. */
#include "flowd/marker.h"

#include <string.h>

extern const struct marker marker_nft;
extern const struct marker marker_sockets;
extern const struct marker marker_advice;

const struct marker *const marker_list[] = {
#ifdef HAVE_NFTABLES
    &marker_nft,
#endif
    &marker_sockets,
    &marker_advice,
    NULL,
};

const struct marker *marker_find(const char *name)
{
    for (size_t i = 0; marker_list[i]; i++)
        if (strcmp(marker_list[i]->name, name) == 0)
            return marker_list[i];
    return NULL;
}
