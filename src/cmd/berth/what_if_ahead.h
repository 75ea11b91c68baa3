/* what_if_ahead.h - berth what-if --ahead: the next days, as berthd plays them forward. */
#pragma once

struct flags;
struct history_changes;

/* Ask berthd for each policy that is given, or for the one in charge, with these changes. */
int what_if_ahead(const struct flags *flags, const struct history_changes *changes);
