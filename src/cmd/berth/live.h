/* live.h - what the verbs that talk to berthd share. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "api/call.h"
#include "base/error.h"
#include "base/json.h"
#include "cmd/berth/command.h"

/* The flags themselves, for the commands' tables. */
#define LIVE_FLAGS \
    { \
        "socket", 0, "ADDR", \
            "berthd's socket or URL; BERTH_ADDR, else the usual place" \
    }
#define LIVE_JSON \
    { \
        "json", 0, NULL, "for programs: one object" \
    }

/*
 * A call to the daemon, started if nobody answers at the usual place (unless
 * BERTH_NO_START is set).  0, or an exit status after a message.
 */
int live_open(struct call **ret_call, const struct flags *flags);

/* GET something, with live_open() before; 0, or an exit status after a message. */
int live_get(const struct flags *flags, const char *path, struct json **ret);

#define LIVE_IDS_MAX 100000

/* The words as job ids: "5", "7-9", "12_3" of an array.  0, or an exit status; free(*ret_ids). */
int live_ids(const struct flags *flags, uint64_t **ret_ids, uint32_t *ret_count);

/* The only word, as a job id. */
int live_id(const struct flags *flags, uint64_t *ret_id);

/* "15", or "12_3" for a task of an array. */
const char *live_name(char *text, size_t size, const struct json *job);

/* Append "NAME=value" to a query, the value escaped; starts with '?'. */
struct buf;
void live_query(struct buf *path, const char *name, const char *value);

/* A member of an object: the fallback where it is absent. */
const char *live_text(const struct json *object, const char *key, const char *fallback);
double live_number(const struct json *object, const char *key, double fallback);

/* "04:05", or "14 Nov 04:05" on another day; "" for NAN. */
const char *live_moment(char *text, size_t size, double seconds);

/* "12 s", "4 min", "3.2 h": short; "" for NAN. */
const char *live_span(char *text, size_t size, double seconds);

/* The colour of a state, or NULL. */
const char *live_colour(const char *state);

/* "45 % · 12 min": how far a job is and how long it will take; "" if nothing is known. */
const char *live_progress(char *text, size_t size, const struct json *job);

/* Print a text that somebody else wrote: control characters as '?'. */
void live_put(const char *text);

/* Print and free; 0. */
int live_print_json(struct json *json);
