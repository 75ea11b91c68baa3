/* berth.c - the command line: finds the subcommand. */
#include <getopt.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <errno.h>

#include "base/error.h"
#include "base/suggest.h"
#include "base/units.h"
#include "cmd/berth/command.h"
#include "version.h"

extern const struct command command_sim, command_compare, command_gen, command_import,
    command_solve, command_fit, command_policies, command_reproduce, command_bench;

const struct command *const command_list[] = {
    &command_sim,      &command_compare,
    &command_gen,      &command_import,
    &command_solve,    &command_fit,
    &command_policies, &command_reproduce,
    &command_bench,    NULL,
};

#define COMMANDS_MAX 64
#define FLAGS_MAX 64

static void say(const struct flags *flags, const char *fmt, va_list args)
{
    fprintf(stderr, "berth %s: ", flags->command->name);
    vfprintf(stderr, fmt, args);
    fputc('\n', stderr);
}

int command_wrong(const struct flags *flags, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    say(flags, fmt, args);
    va_end(args);
    return 2;
}

int command_failed(const struct flags *flags, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    say(flags, fmt, args);
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

static void print_help(const struct command *command)
{
    printf("Usage: berth %s %s\n\n%s.\n\n", command->name, command->usage,
           command->brief);
    for (const struct flag *flag = command->flags; flag && flag->name; flag++) {
        char left[64];
        snprintf(left, sizeof left, "%c%c%s--%s%s%s", flag->letter ? '-' : ' ',
                 flag->letter ? flag->letter : ' ', flag->letter ? ", " : "  ",
                 flag->name, flag->value ? " " : "", flag->value ? flag->value : "");
        printf("  %-30s %s\n", left, flag->brief);
    }
    printf("  %-30s %s\n", "    --help", "show this");
    if (command->more)
        printf("\n%s\n", command->more);
}

static const struct flag *flag_by_letter(const struct command *command, int letter)
{
    for (const struct flag *flag = command->flags; flag->name; flag++)
        if (flag->letter == letter)
            return flag;
    return NULL;
}

static int unknown_flag(const struct flags *flags, const char *word)
{
    for (const struct flag *flag = flags->command->flags; flag->name; flag++) {
        size_t length = strlen(flag->name);
        if (strncmp(word, "--", 2) == 0 && strncmp(word + 2, flag->name, length) == 0 &&
            word[2 + length] == '=')
            return command_wrong(flags, "--%s takes no value; see 'berth %s --help'",
                                 flag->name, flags->command->name);
    }
    const char *names[FLAGS_MAX + 1] = { NULL };
    uint32_t count = 0;
    for (const struct flag *flag = flags->command->flags; flag->name; flag++)
        names[count++] = flag->name;
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(word, "="), word);
    char hint[160];
    const char *bare = name + strspn(name, "-");
    return command_wrong(flags, "no flag '%s'%s; see 'berth %s --help'", name,
                         suggest(hint, sizeof hint, bare, names), flags->command->name);
}

/* Fill 'flags'; 0, or the exit status after a message, or -1 after --help. */
static int read_flags(struct flags *flags, int argc, char **argv)
{
    struct option options[FLAGS_MAX + 2] = { 0 };
    char letters[2 * FLAGS_MAX + 3] = ":";
    uint32_t count = 0;
    for (const struct flag *flag = flags->command->flags; flag->name; flag++, count++) {
        options[count].name = flag->name;
        options[count].has_arg = flag->value ? required_argument : no_argument;
        if (flag->letter) {
            char text[3] = { flag->letter, flag->value ? ':' : '\0', '\0' };
            snprintf(letters + strlen(letters), sizeof letters - strlen(letters), "%s",
                     text);
        }
    }
    options[count].name = "help";

    opterr = 0;
    for (;;) {
        int index = -1;
        int c = getopt_long(argc, argv, letters, options, &index);
        if (c == -1)
            break;
        if (c == 0 && (uint32_t)index == count) {
            print_help(flags->command);
            return -1;
        }
        if (c == ':')
            return command_wrong(flags, "%s needs a value; see 'berth %s --help'",
                                 argv[optind - 1], flags->command->name);
        const struct flag *flag = c == 0     ? &flags->command->flags[index]
                                  : c == '?' ? NULL
                                             : flag_by_letter(flags->command, c);
        if (!flag) {
            char letter[3] = { '-', (char)optopt, '\0' }; /* 0 unless it was a letter */
            return unknown_flag(flags, optopt ? letter : argv[optind - 1]);
        }
        if (flags->given_count == FLAGS_GIVEN_MAX)
            return command_wrong(flags, "more than %d flags", FLAGS_GIVEN_MAX);
        flags->given[flags->given_count].flag = flag;
        flags->given[flags->given_count++].value = optarg ? optarg : "";
    }
    flags->words = argv + optind;
    flags->word_count = (uint32_t)(argc - optind);
    return 0;
}

static void print_overview(FILE *file)
{
    fprintf(file, "Usage: berth COMMAND [flags]\n\n"
                  "Shares GPUs among people who train models.\n");
    const char *const groups[] = { "Study", "Use" };
    for (size_t g = 0; g < 2; g++) {
        bool any = false;
        for (const struct command *const *c = command_list; *c; c++)
            if (strcmp((*c)->group, groups[g]) == 0) {
                if (!any)
                    fprintf(file, "\n%s\n", groups[g]);
                any = true;
                fprintf(file, "  %-11s %s\n", (*c)->name, (*c)->brief);
            }
    }
    fprintf(file, "\n'berth COMMAND --help' shows a command's flags; 'berth --version' "
                  "the version.\n");
}

/* What was printed has to arrive: a full disk is not a success. */
static int finish(int status)
{
    bool lost = ferror(stdout) != 0;
    if ((fflush(stdout) == 0 && !lost) || status != 0)
        return status;
    fprintf(stderr, "berth: cannot write: %s\n", strerror(errno));
    return 1;
}

int main(int argc, char **argv)
{
    signal(SIGPIPE, SIG_DFL); /* 'berth … | head' ends quietly */

    if (argc < 2) {
        print_overview(stderr);
        return 2;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0) {
        print_overview(stdout);
        return finish(0);
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("berth %s\n", BERTH_VERSION);
        return finish(0);
    }
    const char *names[COMMANDS_MAX + 1] = { NULL };
    for (uint32_t i = 0; command_list[i]; i++) {
        names[i] = command_list[i]->name;
        if (strcmp(argv[1], names[i]) != 0)
            continue;
        static struct flags flags;
        flags.command = command_list[i];
        int r = read_flags(&flags, argc - 1, argv + 1);
        return finish(r == 0 ? flags.command->run(&flags) : r < 0 ? 0 : r);
    }
    char hint[160];
    fprintf(stderr, "berth: no command '%.40s'%s; see 'berth --help'\n", argv[1],
            suggest(hint, sizeof hint, argv[1], names));
    return 2;
}
