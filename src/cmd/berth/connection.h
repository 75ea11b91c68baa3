/* connection.h - what the verbs that talk to berthd share: their flags, and the connection. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "api/call.h"
#include "base/error.h"
#include "base/json.h"
#include "cmd/berth/command.h"

/* The flags themselves, for the commands' tables. */
#define CONNECTION_FLAGS \
    { \
        "socket", 0, "ADDR", \
            "berthd's socket or URL; BERTH_ADDR, else the usual place" \
    }

/* For commands that submit. */
#define CONNECTION_KEY_FLAG \
    { \
        "idempotency-key", 0, "KEY", \
            "submit once, however often it is repeated (default: random)" \
    }

/*
 * Connect to berthd.  At the usual address it is started if it does not run, unless
 * BERTH_NO_START is set; the system's is waited for.  0, or an exit status after a message.
 */
int connection_open(struct call **ret_call, const struct flags *flags);

/* Wait while the system's daemon may be restarted; false: it does not answer. */
bool connection_find_system(struct call *call, const struct flags *flags);

/* How long requests are tried again while berthd has no room for them; it is said on standard
 * error.  connection_open() has set a minute. */
void connection_wait(struct call *call, const struct flags *flags, double seconds);

/* Connect, and make one call.  'body' may be NULL.  0, or an exit status after a message. */
int connection_call(const struct flags *flags, const char *method, const char *path,
                    const struct json *body, struct json **ret);

/* The same for GET. */
int connection_get(const struct flags *flags, const char *path, struct json **ret);

/* GET something and print it: as JSON with --json, else by 'print'.  An exit status. */
int connection_show(const struct flags *flags, const char *path,
                    void (*print)(const struct json *answer));

#define CONNECTION_IDS_MAX 100000

/* The words as job ids: "5", "7-9", "12_3" of an array.  0, or an exit status; free(*ret_ids). */
int connection_job_ids(const struct flags *flags, uint64_t **ret_ids,
                       uint32_t *ret_count);

/* The only word, as a job id. */
int connection_job_id(const struct flags *flags, uint64_t *ret_id);

/* Append "NAME=value" to a query, the value escaped; starts with '?'. */
struct buf;
void connection_add_query(struct buf *path, const char *name, const char *value);
