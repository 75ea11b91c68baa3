/*
 * command.h - a subcommand of berth and its flags, as data.
 *
 * Help, error messages, man page checks and shell completion come from these tables.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct error;

/* One flag; in a table of them the last row has no name.  --help is always there. */
struct flag {
    const char *name;  /* without the dashes                                   */
    char letter;       /* short form, or 0                                     */
    const char *value; /* what its value is, in capitals; NULL: it has none    */
    const char *brief; /* one line                                             */
};

/* The flag --json, for the commands' tables. */
#define FLAG_JSON \
    { \
        "json", 0, NULL, "for programs: one object" \
    }

#define FLAGS_GIVEN_MAX 256

struct flags {
    const struct command *command;
    struct {
        const struct flag *flag;
        const char *value;
    } given[FLAGS_GIVEN_MAX];
    uint32_t given_count;
    char **words; /* what is not a flag */
    uint32_t word_count;
    bool dashes; /* "--" stands before the words */
};

struct command {
    const char *name;
    const char *alias; /* another name, or NULL                            */
    const char *group; /* "Study" or "Use": how 'berth --help' sorts them */
    const char *brief; /* one line                                        */
    const char *usage; /* what follows the name, one line                 */
    const struct flag *flags;
    const char *more; /* further paragraphs for --help, or NULL          */
    bool flags_first; /* flags end at the first word                     */

    /* Returns the exit status: 0 ok, 1 failed, 2 wrong usage or input. */
    int (*run)(const struct flags *flags);
};

/* All of them, ended by NULL. */
extern const struct command *const command_list[];

/* Read the flags: 0, an exit status after a message, or -1 if help was asked for. */
int flags_read(struct flags *flags, int argc, char **argv);

/*
 * Walk over the flags of 'table' in argv[1 …], calling 'take' for each.  Returns 0 and
 * where the words begin, FLAGS_HELP, or negative with a sentence.
 */
#define FLAGS_HELP 1
int flags_walk(const struct flag *table, bool in_front, int argc, char **argv,
               int (*take)(void *context, const struct flag *flag, const char *value,
                           struct error *err),
               void *context, uint32_t *ret_words, struct error *err);

/* The last value given for a flag, "" for one without value; NULL if it was not given. */
const char *flags_get(const struct flags *flags, const char *name);

/* Every value of a flag that may be given several times: index 0, 1, …; then NULL. */
const char *flags_each(const struct flags *flags, const char *name, uint32_t index);

/* A whole number within bounds, or 'fallback' where the flag is absent; exits with 2. */
uint64_t flags_count(const struct flags *flags, const char *name, uint64_t min,
                     uint64_t max, uint64_t fallback);

/* A number within bounds, or 'fallback'; exits with 2. */
double flags_number(const struct flags *flags, const char *name, double min, double max,
                    double fallback);

/* Print "berth NAME: message" on stderr and return 2 (wrong usage or input). */
int command_wrong(const struct flags *flags, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* 0, or 2 after a message if there are words besides the flags. */
int command_refuse_words(const struct flags *flags);

/* Print "berth NAME: message" on stderr and return 1 (failed). */
int command_failed(const struct flags *flags, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* The exit status for a negative errno, after printing 'err': 2 for wrong input, else 1. */
int command_status(const struct flags *flags, int r, const struct error *err);
