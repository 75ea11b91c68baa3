/*
 * munge.h - authenticate a caller on another host by a credential of munge.
 *
 * Every host of a Slurm cluster has munge: a process gets a credential from its own munged
 * that names its user, and the munged of this host reads it.  A credential is valid once and
 * for minutes.  It is read by 'unmunge', a child process, so that the loop does not wait.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct error;
struct munge;
struct uv_loop_s;

#define MUNGE_CREDENTIAL_MAX 4096 /* bytes */

struct munge_word {
    bool good;
    uint32_t uid;
    const char *payload; /* the text in the credential */
};

/* 'socket': of munged; NULL: where it usually is. */
struct munge *munge_new(struct uv_loop_s *loop, const char *socket);

/* Credentials being read are forgotten.  The loop has to run on. */
void munge_free(struct munge *munge);

/*
 * Read a credential; 'done' is called once, later, and not after munge_forget().  -EAGAIN: too
 * many are being read.
 */
struct munge_question;
int munge_ask(struct munge *munge, const char *credential,
              void (*done)(void *context, const struct munge_word *word), void *context,
              struct munge_question **ret_question, struct error *err);
void munge_forget(struct munge_question *question);
