/* flag_values.h - parsing the values of job flags, in sbatch's forms and in our own. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct error;

#define FLAG_VALUE_JOBS_MAX 10000 /* of an array or a grid */

/*
 * A time limit: "10" (minutes), "10:30", "1:00:00", "1-12", "1-12:30", "1-12:30:00", or
 * with a unit "90s", "10m", "2h".  0 for none: "0", "UNLIMITED".
 */
int flag_value_limit(const char *text, double *ret_s, struct error *err);

/*
 * A moment: "now+1hour", "now+90" (seconds), "now+10m", "16:30", "16:30:10", "noon",
 * "midnight", "tomorrow", "2031-02-28", "2031-02-28T16:30[:10]", in local time; a time of
 * day that has passed today is tomorrow's.  'now_s' is the present.
 */
int flag_value_time(const char *text, int64_t now_s, double *ret_s, struct error *err);

/* "2", "v100:2", "gpu:v100:2" (with 'gres'): how many, and of which type, or NULL. */
int flag_value_gpus(struct arena *arena, const char *text, bool gres,
                    uint32_t *ret_gpus, const char **ret_type, struct error *err);

/* "20G", "512M"; without a unit MiB. */
int flag_value_memory(const char *text, uint64_t *ret_bytes, struct error *err);

/* "USR1", "B:USR1@60", "10@120". */
struct flag_value_signal {
    char name[16];
    double warn_s;
    bool warns; /* '@' was there */
};
int flag_value_signal(const char *text, struct flag_value_signal *ret_signal,
                      struct error *err);

/* "0-9", "1,3,5-7", "0-20:5", "0-9%2": which, in order, and how many at once (0: all). */
struct flag_value_array {
    uint32_t *indices;
    uint32_t count;
    uint32_t limit;
};
int flag_value_array(struct arena *arena, const char *text,
                     struct flag_value_array *ret_array, struct error *err);

/* "lr=1e-3,1e-4", "seed=1..5": a name and its values. */
struct flag_value_param {
    const char *name;
    const char **values;
    uint32_t count;
};
int flag_value_param(struct arena *arena, const char *text,
                     struct flag_value_param *ret_param, struct error *err);

/* The words of a line as a shell splits them: blanks, quotes, backslashes.  -EINVAL if a
 * quote is open at its end or there are more than 'max' words. */
int flag_value_words(struct arena *arena, const char *line, char **words, uint32_t max,
                     uint32_t *ret_count, struct error *err);

/* A whole number and nothing else. */
bool flag_value_count(const char *text, uint64_t max, uint64_t *ret_count);
