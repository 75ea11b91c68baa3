/*
 * munge.h - who somebody on another host is, by munge's word.
 *
 * Every host of a Slurm cluster has munge: whoever asks his own munged for a credential gets
 * one that says who he is, and ours reads it.  A credential is good once and for minutes.
 * It is read by 'unmunge', a process beside us, so that nothing waits for it.
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
    const char *payload; /* what he wanted said with it */
};

/* 'socket': of munged; NULL: where it usually is. */
struct munge *munge_new(struct uv_loop_s *loop, const char *socket);

/* Those who were asked for are told nothing more.  The loop has to run on. */
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
