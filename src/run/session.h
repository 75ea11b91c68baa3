/*
 * session.h - a login session for a job, by PAM: limits, accounts that are closed.
 *
 * Only where the site has a service "berth" in /etc/pam.d: PAM's fallback for services
 * without one is meant for logins, and may move the process to another cgroup.
 */
#pragma once

#include <stdbool.h>

/* In the process that will execute the job's command, as root.  False: not permitted. */
bool session_open(const char *user);
