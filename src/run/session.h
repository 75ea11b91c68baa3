/*
 * session.h - a login session for a job, by PAM: limits, accounts that are closed.
 *
 * Only where the site has a service "berth" in /etc/pam.d: PAM's fallback for services
 * without one is meant for logins, and may move the process to another cgroup.
 *
 * The process that opens it starts the job's processes, which inherit what it sets, stays
 * root, and closes it when the job is over.
 */
#pragma once

#include <stdbool.h>

struct error;
struct job_session;

bool session_is_needed(void);

/* As root.  False: not permitted; 'err' says why. */
bool session_open(struct job_session **ret_session, const char *user,
                  struct error *err);
void session_close(struct job_session *session);
