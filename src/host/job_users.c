/* job_users.c - whose jobs a berthd for several users runs. */
#include "host/job_users.h"

#include <errno.h>

#include "base/error.h"

int job_users_check(const struct job_users *users, uint32_t uid, struct error *err)
{
    if (uid == 0 && !users->root_jobs)
        return error_set(err, -EPERM,
                         "jobs of root are not run here: submit it as another user, or "
                         "set root_jobs in berthd.yaml");
    if (uid == users->service_uid && uid != 0)
        return error_set(err, -EPERM, "jobs of berthd's own user are not run here");
    if (uid < users->min_uid && uid != 0)
        return error_set(err, -EPERM,
                         "user %u is one of the system's: jobs are run for users from "
                         "%u on (min_uid in berthd.yaml, or --min-uid)",
                         uid, users->min_uid);
    return 0;
}
