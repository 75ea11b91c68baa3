/*
 * notes.h - what jobs on other hosts say of themselves: how far they are.
 *
 * A job speaks for itself with its badge, a random word that is good for its number alone and
 * as long as we remember it; it asks for it again after our restart.  Or it appends lines to a
 * file that we can read.  However often it speaks, the engine hears of it once a second.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct daemon;
struct notes;

#define NOTES_BADGE_CHARS 32

/* What is not said is NAN. */
struct note {
    double step, loss, total, saved;
};

struct notes *notes_new(struct daemon *daemon);
void notes_free(struct notes *notes);

/* The badge of a live job; the same one as long as it lives. */
void notes_badge(struct notes *notes, uint64_t id,
                 char ret_badge[static NOTES_BADGE_CHARS + 1]);

/* Is this the badge of that job?  Takes as long however much of it is right. */
bool notes_knows(const struct notes *notes, uint64_t id, const char *badge);

/* A job says something: it goes on at once, or when its second is over. */
void notes_take(struct notes *notes, uint64_t id, const struct note *note);

/*
 * A job runs that writes into a file: "STEP [LOSS [TOTAL]]" per line.  Read with its owner's
 * rights, in a thread of its own: a file system that hangs keeps nobody else.
 */
void notes_follow(struct notes *notes, uint64_t id, const char *path, uint32_t uid,
                  uint32_t gid);

/*
 * The newest line of such a text that can be read; false: there is none.  The last line
 * counts only with its end.
 */
bool notes_read(const char *text, size_t count, struct note *ret_note);
