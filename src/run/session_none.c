/* session_none.c - no sessions: for programs that never start jobs of other users. */
#include <stdlib.h>

#include "run/session.h"

bool session_is_needed(void)
{
    return false;
}

bool session_open(struct job_session **ret_session, const char *user, struct error *err)
{
    (void)user;
    (void)err;
    *ret_session = NULL;
    return true;
}

void session_close(struct job_session *session)
{
    (void)session;
}
