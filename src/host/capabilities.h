/* capabilities.h - which capabilities we hold, and giving up those not needed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct error;

bool capabilities_hold(int capability);

/*
 * Give up, for good and in every set, all capabilities but those in 'lists', each ended
 * by -1.  No program that we start can have more.
 */
int capabilities_keep(const int *const *lists, size_t count, struct error *err);

/*
 * Give up all capabilities but those in 'list', ended by -1, and only in this process:
 * programs that it starts have what their users and files give them.
 */
int capabilities_limit(const int *list, struct error *err);

/* "cap_net_admin, cap_sys_ptrace"; "none", "all". */
void capabilities_describe(char *text, size_t size);
