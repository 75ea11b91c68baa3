/* session_pam.c - a login session for a job, by PAM. */
#include <errno.h>
#include <security/pam_appl.h>
#include <stdlib.h>
#include <unistd.h>

#include "run/session.h"

#define SERVICE "berth"

/* Nobody is there to answer a question. */
static int refuse_questions(int count, const struct pam_message **messages,
                            struct pam_response **ret_replies, void *context)
{
    (void)messages;
    (void)context;
    *ret_replies = calloc(count > 0 ? (size_t)count : 1, sizeof **ret_replies);
    return *ret_replies ? PAM_SUCCESS : PAM_BUF_ERR;
}

/*
 * The session is not closed: the process that opened it becomes the job.  Modules that
 * only set limits or check the account, as those of our service file, need no end.
 */
bool session_open(const char *user)
{
    const struct pam_conv conversation = { .conv = refuse_questions };
    pam_handle_t *pam = NULL;
    if (access("/etc/pam.d/" SERVICE, R_OK) < 0)
        return true;
    int r = pam_start(SERVICE, user, &conversation, &pam);
    if (r == PAM_SUCCESS)
        r = pam_acct_mgmt(pam, PAM_SILENT);
    if (r == PAM_SUCCESS)
        r = pam_setcred(pam, PAM_ESTABLISH_CRED | PAM_SILENT);
    if (r == PAM_SUCCESS)
        r = pam_open_session(pam, PAM_SILENT);
    errno = EACCES;
    return r == PAM_SUCCESS;
}
