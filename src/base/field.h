/*
 * field.h - members of a struct by name: one row of a table for each.
 *
 * A row says what a member is called outside, of which type it is, where it stands and what it
 * may be.  Settings (base/param), YAML files, CSV (workload/csv), JSON (api/request), SQL
 * (store/rows) and launch files (host/launch_file) are read and written by such tables: a new
 * member is a new row.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct error;

enum field_type {
    FIELD_COUNT,  /* uint32_t                                            */
    FIELD_NUMBER, /* double                                              */
    FIELD_FLAG,   /* bool                                                */
    FIELD_TIME,   /* int64_t nanoseconds                                 */
    FIELD_CHOICE, /* uint32_t or an enum: place in 'choices'             */
    FIELD_BUFFER, /* struct field_buffer                                 */
    FIELD_TEXT,   /* const char *                                        */
    FIELD_WORD,   /* const char * without control characters             */
    FIELD_ID,     /* uint64_t                                            */
    FIELD_INT,    /* int                                                 */
    FIELD_CPUS,   /* uint32_t, thousandths of a CPU                      */
    FIELD_MEMORY, /* uint32_t, MiB                                       */
    FIELD_OTHER,  /* only its user knows how it is read and written      */
};

#define FIELD_BUFFER_MAX 512

struct field_buffer {
    char text[FIELD_BUFFER_MAX];
};

/* One member; a table of settings ends with a row without a name. */
struct field {
    const char *name;
    enum field_type type;
    size_t offset;              /* of the member in its struct              */
    const char *standard;       /* settings: the value unless set, as text  */
    const char *unit;           /* for people; NULL where there is none     */
    const char *brief;          /* settings: one line of help               */
    double min, max;            /* both 0: no bounds but the type's         */
    const char *const *choices; /* FIELD_CHOICE: names, ended by NULL       */
};

/* A bound or a value as people write it: 1e8, not 1e+08. */
const char *field_show_number(char *text, size_t size, double value);

/* What a value has to be, for a sentence: "a whole number from 1 to 8". */
const char *field_describe(const struct field *field, char *text, size_t size);

/*
 * Read 'text' as people write it (10, 0.5, true, 90s, a choice) into the member, or only check
 * it where 'self' is NULL.  -EINVAL with "OWNER: NAME is …, want …".  'arena' keeps copies for
 * FIELD_TEXT.
 */
int field_read(const struct field *field, void *self, const char *text,
               const char *owner, struct arena *arena, struct error *err);

/*
 * Members that are whole numbers, for files: flags are 0 and 1, times nanoseconds, choices
 * their places, ids have the same bits.  Setting one returns false if the value does not fit the type.
 */
bool field_is_whole(const struct field *field);
int64_t field_get_whole(const struct field *field, const void *self);
bool field_set_whole(const struct field *field, void *self, int64_t value);
