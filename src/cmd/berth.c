/* berth.c - the command line: finds the subcommand. */
#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/suggest.h"
#include "cmd/berth/command.h"
#include "cmd/berth/terminal.h"
#include "version.h"

extern const struct command command_sim, command_compare, command_gen, command_import,
    command_solve, command_fit, command_policies, command_reproduce, command_bench;
extern const struct command command_up, command_down, command_doctor, command_submit,
    command_run, command_queue, command_show, command_why, command_cancel, command_hold,
    command_release, command_limits, command_set, command_logs, command_top,
    command_nodes, command_history, command_ledger, command_flows, command_ui,
    command_check_ckpt, command_report, command_slurm, command_token, command_rates,
    command_export, command_forecast, command_what_if;

const struct command *const command_list[] = {
    &command_sim,      &command_compare,
    &command_gen,      &command_import,
    &command_solve,    &command_fit,
    &command_policies, &command_reproduce,
    &command_bench,    &command_run,
    &command_submit,   &command_queue,
    &command_show,     &command_why,
    &command_forecast, &command_logs,
    &command_cancel,   &command_hold,
    &command_release,  &command_limits,
    &command_set,      &command_top,
    &command_nodes,    &command_history,
    &command_ledger,   &command_export,
    &command_what_if,  &command_rates,
    &command_flows,    &command_ui,
    &command_up,       &command_down,
    &command_doctor,   &command_check_ckpt,
    &command_report,   &command_slurm,
    &command_token,    NULL,
};

#define COMMANDS_MAX 64

static void print_help(const struct command *command)
{
    printf("Usage: berth %s %s\n\n%c%s.\n\n", command->name, command->usage,
           toupper((unsigned char)command->brief[0]), command->brief + 1);
    for (const struct flag *flag = command->flags; flag && flag->name; flag++) {
        char left[64];
        snprintf(left, sizeof left, "%c%c%s--%s%s%s", flag->letter ? '-' : ' ',
                 flag->letter ? flag->letter : ' ', flag->letter ? ", " : "  ",
                 flag->name, flag->value ? " " : "", flag->value ? flag->value : "");
        uint32_t length =
            terminal_text_length(left); /* "…" is three bytes and one place */
        printf("  %s%*s ", left, length < 30 ? (int)(30 - length) : 0, "");
        terminal_print_wrapped(flag->brief, length > 30 ? 3 + length : 33, stdout);
    }
    printf("  %-30s %s\n", "    --help", "show this");
    if (command->more)
        printf("\n%s\n", command->more);
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
                fprintf(file, "  %-11s %s%s%s%s\n", (*c)->name, (*c)->brief,
                        (*c)->alias ? " (" : "", (*c)->alias ? (*c)->alias : "",
                        (*c)->alias ? ")" : "");
            }
    }
    fprintf(file, "\n'berth COMMAND --help' shows a command's flags; 'berth --version' "
                  "the version.\n");
}

/* Output that could not be written, on a full disk for instance, is a failure. */
static int flush_output(int status)
{
    bool lost = ferror(stdout) != 0;
    if ((fflush(stdout) == 0 && !lost) || status != 0)
        return status;
    fprintf(stderr, "berth: cannot write: %s\n", strerror(errno));
    return 1;
}

static bool is_named(const struct command *command, const char *word)
{
    return strcmp(word, command->name) == 0 ||
           (command->alias && strcmp(word, command->alias) == 0);
}

static int run_command(const struct command *command, int argc, char **argv)
{
    static struct flags flags;
    flags.command = command;
    int r = flags_read(&flags, argc, argv);
    if (r < 0)
        print_help(command);
    return r == 0 ? command->run(&flags) : r < 0 ? 0 : r;
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
        return flush_output(0);
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("berth %s\n", BERTH_VERSION);
        return flush_output(0);
    }
    const char *names[COMMANDS_MAX + 1] = { NULL };
    for (uint32_t i = 0; command_list[i]; i++) {
        names[i] = command_list[i]->name;
        if (is_named(command_list[i], argv[1]))
            return flush_output(run_command(command_list[i], argc - 1, argv + 1));
    }
    char hint[160];
    fprintf(stderr, "berth: no command '%.40s'%s; see 'berth --help'\n", argv[1],
            suggest_names(hint, sizeof hint, argv[1], names));
    return 2;
}
