/*
 * call.h - a request to berthd, and its answer; for the command line.
 *
 * A call is the address of a daemon and a connection to it that is kept open.  A request waits
 * for its answer; a stream is handed to the caller as it arrives.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct call;
struct error;
struct json;
struct patience;

/*
 * Find the daemon: 'address' (a socket's path or a URL; NULL: BERTH_ADDR, else this user's
 * own, else the system's, also while that one is away).  Only the address is settled here;
 * nothing is sent.  For URLs the token is in BERTH_TOKEN, or in the file that BERTH_TOKEN_FILE
 * names, or, for one of this machine, where this user's own daemon puts it, in the state folder.
 *
 * http:// is accepted for loopback only.  With https:// berthd proves itself by its key: that
 * of the fingerprint behind the address (https://HOST:PORT#FINGERPRINT), else of the one in
 * the token; where neither has one, by a certificate that this machine trusts.
 */
int call_open(struct call **ret_call, const char *address, struct error *err);
void call_close(struct call *call);

/* Send this token to a URL from now on, instead of what call_open() found; NULL: none. */
void call_set_token(struct call *call, const char *token);

/* The address, for messages; and whether it is the standard one, so that a daemon may be
 * started there. */
const char *call_address(const struct call *call);
bool call_is_standard(const struct call *call);

/* Whether it is the system's, found because this user has none. */
bool call_is_systems(const struct call *call);

/* Whether a daemon answers there. */
bool call_answers(struct call *call);

/*
 * Send 'body' (NULL: none) and read the answer, which the caller frees (NULL 'ret': it is
 * not wanted).  What berthd refuses comes back with its sentence: -EINVAL (400), -EACCES
 * (401, 403), -ESRCH (404), -EBUSY (409), -E2BIG (413), else -EIO; -ECONNREFUSED if
 * no daemon answers.
 */
int call_json(struct call *call, const char *method, const char *path,
              const struct json *body, struct json **ret, struct error *err);

/* How long to try again while berthd has no room for a request (patience.h); not at all
 * unless it is changed. */
struct patience *call_patience(struct call *call);

/* Close the connection until the next request: users may have a limited number of them. */
void call_rest(struct call *call);
/*
 * Submit jobs under a key (NULL: a random one).  If the connection is closed before the answer
 * has come, the same is sent again under the same key until berthd answers, for half a minute:
 * berthd accepts it once.
 */
int call_submit(struct call *call, const struct json *body, const char *key,
                struct json **ret, struct error *err);

/* Do not wait longer than this for an answer. */
void call_hurry(struct call *call, long seconds);

/*
 * GET a stream.  'take' gets the bytes as they arrive and returns false to end it; 'idle', if
 * not NULL, is called several times a second and returns false to end it.  0 when the stream
 * has ended, by either side; errors as above.
 */
struct call_stream {
    bool (*take)(void *context, const char *bytes, size_t count);
    bool (*idle)(void *context);
    void *context;
};
int call_stream(struct call *call, const char *path, const struct call_stream *stream,
                struct error *err);
