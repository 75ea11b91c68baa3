/* capabilities.c - capabilities, through libcap. */
#include "host/capabilities.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

#include <sys/capability.h>

#include "base/error.h"
#include "base/memory.h"

bool capabilities_hold(int capability)
{
    cap_flag_value_t value = CAP_CLEAR;
    cap_t held = cap_get_proc();
    if (held)
        cap_get_flag(held, capability, CAP_EFFECTIVE, &value);
    cap_free(held);
    return value == CAP_SET;
}

static bool is_listed(int capability, const int *const *lists, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (const int *one = lists[i]; *one >= 0; one++)
            if (*one == capability)
                return true;
    return false;
}

/*
 * Limit what programs that we start can have.  Without CAP_SETPCAP the bounds stay, and
 * no_new_privs keeps programs from gaining anything.
 */
static void narrow_bounds(const int *const *lists, size_t count)
{
    for (int i = 0; i < cap_max_bits(); i++)
        if (!is_listed(i, lists, count))
            cap_drop_bound(i);
    cap_reset_ambient();
}

/* Those in the lists, as far as we hold them. */
static int set_capabilities(const int *const *lists, size_t count, struct error *err)
{
    cap_t kept = cap_init();
    if (!kept)
        memory_exhausted();
    for (int i = 0; i < cap_max_bits(); i++) {
        if (!is_listed(i, lists, count) || !capabilities_hold(i))
            continue;
        cap_set_flag(kept, CAP_PERMITTED, 1, &i, CAP_SET);
        cap_set_flag(kept, CAP_EFFECTIVE, 1, &i, CAP_SET);
    }
    int r = cap_set_proc(kept) < 0
                ? error_set(err, -errno, "capabilities cannot be given up: %s",
                            strerror(errno))
                : 0;
    cap_free(kept);
    return r;
}

int capabilities_keep(const int *const *lists, size_t count, struct error *err)
{
    narrow_bounds(lists, count);
    int r = set_capabilities(lists, count, err);
    if (r == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        r = error_set(err, -errno, "capabilities cannot be given up: %s",
                      strerror(errno));
    return r;
}

int capabilities_limit(const int *list, struct error *err)
{
    return set_capabilities(&list, 1, err);
}

void capabilities_describe(char *text, size_t size)
{
    size_t used = 0;
    int held = 0, all = cap_max_bits();
    snprintf(text, size, "none");
    for (int i = 0; i < all; i++) {
        if (!capabilities_hold(i))
            continue;
        char *name = cap_to_name(i);
        int length = used < size ? snprintf(text + used, size - used, "%s%s",
                                            held ? ", " : "", name ? name : "?")
                                 : 0;
        cap_free(name);
        used += length > 0 ? (size_t)length : 0;
        held++;
    }
    if (held > 6)
        snprintf(text, size, held == all ? "all" : "%d of %d", held, all);
}
