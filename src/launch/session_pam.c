/* session_pam.c - a login session for a job, by PAM. */
#include <errno.h>
#include <security/pam_appl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/error.h"
#include "run/session.h"

#define SERVICE "berth"

struct job_session {
    pam_handle_t *pam;
};

/* Nobody is there to answer a question. */
static int refuse_questions(int count, const struct pam_message **messages,
                            struct pam_response **ret_replies, void *context)
{
    (void)messages;
    (void)context;
    *ret_replies = calloc(count > 0 ? (size_t)count : 1, sizeof **ret_replies);
    return *ret_replies ? PAM_SUCCESS : PAM_BUF_ERR;
}

bool session_is_needed(void)
{
    return access("/etc/pam.d/" SERVICE, R_OK) == 0;
}

/* In the order of their opening: an account that is closed gets no credentials. */
static int open_with(pam_handle_t *pam)
{
    int r = pam_acct_mgmt(pam, PAM_SILENT);
    if (r == PAM_SUCCESS)
        r = pam_setcred(pam, PAM_ESTABLISH_CRED | PAM_SILENT);
    if (r != PAM_SUCCESS)
        return r;
    r = pam_open_session(pam, PAM_SILENT);
    if (r != PAM_SUCCESS)
        pam_setcred(pam, PAM_DELETE_CRED | PAM_SILENT);
    return r;
}

bool session_open(struct job_session **ret_session, const char *user, struct error *err)
{
    static struct job_session session;
    const struct pam_conv conversation = { .conv = refuse_questions };
    int r = pam_start(SERVICE, user, &conversation, &session.pam);
    bool started = r == PAM_SUCCESS;
    if (started)
        r = open_with(session.pam);
    if (r != PAM_SUCCESS)
        error_set(err, -EACCES,
                  "PAM (/etc/pam.d/" SERVICE ") opens no session for %s: %s", user,
                  pam_strerror(started ? session.pam : NULL, r));
    if (started && r != PAM_SUCCESS)
        pam_end(session.pam, r);
    *ret_session = &session;
    return r == PAM_SUCCESS;
}

void session_close(struct job_session *session)
{
    int r = pam_close_session(session->pam, PAM_SILENT);
    pam_setcred(session->pam, PAM_DELETE_CRED | PAM_SILENT);
    pam_end(session->pam, r);
}
