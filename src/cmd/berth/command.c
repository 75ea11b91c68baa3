/* command.c - reading a command's flags, and messages about them. */
#include "cmd/berth/command.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/suggest.h"
#include "base/units.h"

#define FLAGS_MAX 96

static void print_message(const struct flags *flags, const char *fmt, va_list args)
{
    fprintf(stderr, "berth %s: ", flags->command->name);
    vfprintf(stderr, fmt, args);
    fputc('\n', stderr);
}

int command_wrong(const struct flags *flags, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    print_message(flags, fmt, args);
    va_end(args);
    return 2;
}

int command_refuse_words(const struct flags *flags)
{
    if (flags->word_count == 0)
        return 0;
    return command_wrong(flags, "unexpected \"%.60s\"", flags->words[0]);
}

int command_failed(const struct flags *flags, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    print_message(flags, fmt, args);
    va_end(args);
    return 1;
}

int command_status(const struct flags *flags, int r, const struct error *err)
{
    if (r >= 0)
        return 0;
    fprintf(stderr, "berth %s: %s\n", flags->command->name, err->text);
    bool input = r == -EINVAL || r == -ENOENT || r == -ERANGE || r == -EISDIR;
    return input ? 2 : 1;
}

const char *flags_get(const struct flags *flags, const char *name)
{
    for (uint32_t i = flags->given_count; i-- > 0;)
        if (strcmp(flags->given[i].flag->name, name) == 0)
            return flags->given[i].value;
    return NULL;
}

const char *flags_each(const struct flags *flags, const char *name, uint32_t index)
{
    for (uint32_t i = 0; i < flags->given_count; i++)
        if (strcmp(flags->given[i].flag->name, name) == 0 && index-- == 0)
            return flags->given[i].value;
    return NULL;
}

uint64_t flags_count(const struct flags *flags, const char *name, uint64_t min,
                     uint64_t max, uint64_t fallback)
{
    const char *text = flags_get(flags, name);
    if (!text)
        return fallback;
    char *end;
    errno = 0;
    uint64_t count = strtoull(text, &end, 10);
    if (!(*text >= '0' && *text <= '9') || *end || errno || count < min || count > max)
        exit(command_wrong(
            flags, "--%s is \"%.60s\", want a whole number from %llu to %llu", name,
            text, (unsigned long long)min, (unsigned long long)max));
    return count;
}

double flags_number(const struct flags *flags, const char *name, double min, double max,
                    double fallback)
{
    const char *text = flags_get(flags, name);
    if (!text)
        return fallback;
    double number;
    if (!units_number(text, &number) || number < min || number > max)
        exit(command_wrong(flags, "--%s is \"%.60s\", want a number from %g to %g",
                           name, text, min, max));
    return number;
}

static const struct flag *flag_by_letter(const struct flag *table, int letter)
{
    for (const struct flag *flag = table; flag->name; flag++)
        if (flag->letter == letter)
            return flag;
    return NULL;
}

static int set_unknown_flag(const struct flag *table, const char *word,
                            struct error *err)
{
    for (const struct flag *flag = table; flag->name; flag++) {
        size_t length = strlen(flag->name);
        if (strncmp(word, "--", 2) == 0 && strncmp(word + 2, flag->name, length) == 0 &&
            word[2 + length] == '=')
            return error_set(err, -EINVAL, "--%s takes no value", flag->name);
    }
    const char *names[FLAGS_MAX + 1] = { NULL };
    uint32_t count = 0;
    for (const struct flag *flag = table; flag->name; flag++)
        names[count++] = flag->name;
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(word, "="), word);
    char hint[160];
    const char *bare = name + strspn(name, "-");
    return error_set(err, -EINVAL, "no flag '%s'%s", name,
                     suggest_names(hint, sizeof hint, bare, names));
}

/* The same table in getopt's form. */
static void getopt_tables(const struct flag *table, bool in_front,
                          struct option options[FLAGS_MAX + 2],
                          char letters[2 * FLAGS_MAX + 4])
{
    size_t at = 0;
    if (in_front)
        letters[at++] = '+';
    letters[at++] = ':';
    uint32_t count = 0;
    for (const struct flag *flag = table; flag->name; flag++, count++) {
        options[count].name = flag->name;
        options[count].has_arg = flag->value ? required_argument : no_argument;
        if (flag->letter)
            letters[at++] = flag->letter;
        if (flag->letter && flag->value)
            letters[at++] = ':';
    }
    options[count].name = "help";
}

int flags_walk(const struct flag *table, bool in_front, int argc, char **argv,
               int (*take)(void *context, const struct flag *flag, const char *value,
                           struct error *err),
               void *context, uint32_t *ret_words, struct error *err)
{
    struct option options[FLAGS_MAX + 2] = { 0 };
    char letters[2 * FLAGS_MAX + 4] = "";
    uint32_t count = 0;
    getopt_tables(table, in_front, options, letters);
    while (table[count].name)
        count++;

    opterr = 0;
    optind = 0; /* glibc: start anew, whatever was parsed before */
    for (;;) {
        int index = -1;
        int c = getopt_long(argc, argv, letters, options, &index);
        if (c == -1)
            break;
        if (c == 0 && (uint32_t)index == count)
            return FLAGS_HELP;
        if (c == ':')
            return error_set(err, -EINVAL, "%s needs a value", argv[optind - 1]);
        const struct flag *flag = c == 0     ? &table[index]
                                  : c == '?' ? NULL
                                             : flag_by_letter(table, c);
        if (!flag) {
            char letter[3] = { '-', (char)optopt, '\0' }; /* 0 unless it was a letter */
            return set_unknown_flag(table, optopt ? letter : argv[optind - 1], err);
        }
        int r = take(context, flag, optarg ? optarg : "", err);
        if (r < 0)
            return r;
    }
    *ret_words = (uint32_t)optind;
    return 0;
}

static int take_flag(void *context, const struct flag *flag, const char *value,
                     struct error *err)
{
    struct flags *flags = context;
    if (flags->given_count == FLAGS_GIVEN_MAX)
        return error_set(err, -EINVAL, "more than %d flags", FLAGS_GIVEN_MAX);
    flags->given[flags->given_count].flag = flag;
    flags->given[flags->given_count++].value = value;
    return 0;
}

int flags_read(struct flags *flags, int argc, char **argv)
{
    struct error err;
    uint32_t words = 0;
    int r = flags_walk(flags->command->flags, flags->command->flags_first, argc, argv,
                       take_flag, flags, &words, &err);
    if (r < 0)
        return command_wrong(flags, "%s; see 'berth %s --help'", err.text,
                             flags->command->name);
    if (r == FLAGS_HELP)
        return -1;
    flags->words = argv + words;
    flags->dashes = words > 1 && strcmp(argv[words - 1], "--") == 0;
    flags->word_count = (uint32_t)argc - words;
    return 0;
}
