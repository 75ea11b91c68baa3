/* format.h - values of the API as text for people. */
#pragma once

#include <stddef.h>

struct json;

/* A job's id: "15", or "12_3" for a task of an array. */
const char *format_job_id(char *text, size_t size, const struct json *job);

/* A time: "04:05:06", or "14 Nov 04:05" on another day; "" for NAN. */
const char *format_time(char *text, size_t size, double seconds);

/* A duration: "12 s", "4 min", "3.2 h"; "" for NAN. */
const char *format_duration(char *text, size_t size, double seconds);

/* The colour of a job's state, as in "31", or NULL. */
const char *format_state_colour(const char *state);

/* A job's progress and the time it still needs: "45 % · 12 min"; "" if nothing is known. */
const char *format_progress(char *text, size_t size, const struct json *job);

/* Print JSON and free it; returns 0. */
int format_print_json(struct json *json);
