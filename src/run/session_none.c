/* session_none.c - no sessions: for programs that never start jobs of other users. */
#include "run/session.h"

bool session_open(const char *user)
{
    (void)user;
    return true;
}
