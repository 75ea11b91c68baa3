/*
 * what_if.c - berth what-if: what was run, played again under other policies, on other GPUs,
 * without some of the jobs.
 *
 * berthd does none of it: the client asks for the history, and simulates on its own threads.  Only
 * the future is played by berthd (what_if_ahead.c).
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/json.h"
#include "base/output.h"
#include "base/units.h"
#include "cmd/berth/connection.h"
#include "cmd/berth/sim_options.h"
#include "cmd/berth/terminal.h"
#include "cmd/berth/what_if_ahead.h"
#include "cmd/berth/what_if_history.h"
#include "cmd/berth/what_if_print.h"
#include "lab/recorded_shares.h"
#include "policy/policy.h"
#include "study/report_page.h"
#include "study/what_if.h"
#include "study/what_if_report.h"

#define LAST_STANDARD "7d"
#define LAST_MAX_NS (3650 * 86400 * NS_PER_S)

static const struct flag what_if_flags[] = {
    { "policy", 'p', "P", "another policy: NAME[,setting=value…]; again for more" },
    { "add", 0, "TYPE:GPUS", "a node more, or NODESxTYPE:GPUS; again for more" },
    { "remove", 0, "NODE", "without this node; again for more" },
    { "without", 0, "ID|user=U", "without this job, or this user's; again for more" },
    { "ahead", 0, "TIME", "from now on instead: play the present state forward" },
    { "last", 0, "TIME", "jobs submitted in this time until now (default: 7d)" },
    { "workload", 'w', "FILE", "a trace instead of berthd's history" },
    { "format", 0, "F", "of the trace; by default recognised by its content" },
    { "cluster", 'c', "C", "with --workload: on what it was run" },
    { "policy-was", 0, "P",
      "with --workload: the policy that was in charge (default: berth)" },
    { "seed", 0, "S", "random seed (default: that of berthd, which is 1)" },
    FLAG_JSON,
    { "report", 0, "F.html", "write a page with plots" },
    CONNECTION_FLAGS,
    { 0 },
};

/* ---- flags ---- */

static int collect(const struct flags *flags, const char *name, const char **texts,
                   uint32_t *ret_count)
{
    const char *text;
    for (*ret_count = 0; (text = flags_each(flags, name, *ret_count));) {
        if (*ret_count == HISTORY_CHANGES_MAX)
            return command_wrong(flags, "--%s is given more than %d times", name,
                                 HISTORY_CHANGES_MAX);
        texts[(*ret_count)++] = text;
    }
    return 0;
}

static int read_changes(const struct flags *flags, struct history_changes *changes)
{
    int status = collect(flags, "add", changes->add, &changes->add_count);
    if (status == 0)
        status = collect(flags, "remove", changes->remove, &changes->remove_count);
    if (status == 0)
        status = collect(flags, "without", changes->without, &changes->without_count);
    return status;
}

static int check_policy(const struct flags *flags, const char *text)
{
    const struct policy *policy;
    const char *settings;
    struct error err;
    return command_status(flags, policy_parse(text, &policy, &settings, &err), &err);
}

static int check_flags(const struct flags *flags, int64_t *ret_last_ns)
{
    static const char *const of_workload[] = { "format", "cluster", "policy-was" };
    const char *last = flags_get(flags, "last");
    const char *report = flags_get(flags, "report");
    const char *text;
    bool file = flags_get(flags, "workload");
    *ret_last_ns = 0;
    if (!last && !file)
        last = LAST_STANDARD;
    if (last && (!units_time(last, ret_last_ns) || *ret_last_ns <= 0 ||
                 *ret_last_ns > LAST_MAX_NS))
        return command_wrong(
            flags, "--last is \"%.40s\", want a time such as 12h or 30d", last);
    for (uint32_t i = 0; i < sizeof of_workload / sizeof *of_workload; i++)
        if (!file && flags_get(flags, of_workload[i]))
            return command_wrong(flags, "--%s is for a trace, given by --workload",
                                 of_workload[i]);
    if (report && flags_get(flags, "json") && output_is_stdout(report))
        return command_wrong(flags, "--json and --report both want standard output");
    for (uint32_t i = 0; (text = flags_each(flags, "policy", i)); i++) {
        if (i + 1 >= WHAT_IF_CASES_MAX)
            return command_wrong(flags, "more than %d policies", WHAT_IF_CASES_MAX - 1);
        int status = check_policy(flags, text);
        if (status)
            return status;
    }
    text = flags_get(flags, "policy-was");
    return text ? check_policy(flags, text) : 0;
}

/* ---- the history ---- */

static int ask_history(const struct flags *flags, struct history *history,
                       int64_t last_ns)
{
    struct call *call = NULL;
    struct error err;
    int status = connection_open(&call, flags);
    if (status)
        return status;
    int r = history_ask(history, call, last_ns, &err);
    call_close(call);
    return command_status(flags, r, &err);
}

static int read_history(const struct flags *flags, struct history *history,
                        int64_t last_ns)
{
    const char *path = flags_get(flags, "workload");
    const char *was = flags_get(flags, "policy-was");
    struct error err;
    int status;
    if (path)
        status =
            command_status(flags,
                           history_read(history, path, flags_get(flags, "format"),
                                        flags_get(flags, "cluster"),
                                        was ? was : POLICY_STANDARD, last_ns, &err),
                           &err);
    else
        status = ask_history(flags, history, last_ns);
    history->seed = flags_count(flags, "seed", 0, UINT64_MAX, history->seed);
    if (status == 0 && history->counted_count == 0)
        return command_failed(flags,
                              path ? "%s has no job that ended"
                                   : "no job that was submitted in the last %s has "
                                     "ended: there is nothing to play again",
                              path                       ? path
                              : flags_get(flags, "last") ? flags_get(flags, "last")
                                                         : LAST_STANDARD);
    return status;
}

/* ---- cases ---- */

static void list_changes(struct buf *buf, const char *before, const char *after,
                         const char *const *texts, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        buf_print(buf, "%s%s%.60s%s", buf->count > 0 ? ", " : "", before, texts[i],
                  after);
}

/* "v100:2 more, without node n3, without job 5" */
static const char *describe_changes(struct arena *arena,
                                    const struct history_changes *changes)
{
    struct buf buf;
    buf_init(&buf, 4096);
    list_changes(&buf, "", " more", changes->add, changes->add_count);
    list_changes(&buf, "without node ", "", changes->remove, changes->remove_count);
    for (uint32_t i = 0; i < changes->without_count; i++) {
        const char *text = changes->without[i];
        bool user = strncmp(text, "user=", 5) == 0;
        const char *name = user ? text + 5 : text;
        list_changes(&buf, user ? "without jobs of " : "without job ", "", &name, 1);
    }
    const char *text = buf.count > 0 ? arena_text(arena, buf.bytes) : NULL;
    buf_release(&buf);
    return text;
}

static const struct throughput *rates_for(struct history *history,
                                          const struct cluster *cluster)
{
    struct throughput *rates = arena_new(&history->arena, struct throughput);
    throughput_init(rates, cluster);
    throughput_published(rates, &history->arena);
    return rates;
}

static struct what_if_case *add_case(struct what_if *what, const char *name,
                                     const char *policy, const struct history *history,
                                     const struct throughput *rates)
{
    struct what_if_case *added = &what->cases[what->case_count++];
    *added = (struct what_if_case){
        .name = name,
        .policy = policy,
        .cluster = &history->cluster,
        .rates = rates,
        .jobs = history->jobs,
        .job_count = history->job_count,
        .changes = history->changes,
        .change_count = history->change_count,
    };
    return added;
}

/* The policies that were in charge, one after the other. */
static void add_case_as_it_was(struct what_if *what, const char *name,
                               const struct history *history,
                               const struct throughput *rates)
{
    struct what_if_case *added =
        add_case(what, name, history->policy_first, history, rates);
    added->policies = history->policies;
    added->policy_count = history->policy_count;
}

static const char *name_was(struct history *history)
{
    struct buf buf;
    buf_init(&buf, 256);
    buf_print(&buf, "as it was (%s)", history->policy);
    const char *name = arena_text(&history->arena, buf.bytes);
    buf_release(&buf);
    return name;
}

/* As it was; and each policy that is asked for, or the same one, with all changes. */
static void make_cases(const struct flags *flags, struct what_if *what,
                       struct history *history, const struct history *changed)
{
    const struct throughput *rates = rates_for(history, &history->cluster);
    const char *policy;
    add_case_as_it_was(what, name_was(history), history, rates);
    bool differs = what->changed != NULL;
    if (differs)
        rates = rates_for(history, &changed->cluster);
    for (uint32_t i = 0; (policy = flags_each(flags, "policy", i)); i++)
        add_case(what, policy, policy, differs ? changed : history, rates);
    if (what->case_count == 1 && differs)
        add_case_as_it_was(what, history->policy, changed, rates);
}

static void describe(const struct flags *flags, struct what_if *what,
                     struct history *history)
{
    what->counted = history->counted;
    what->from_ns = history->from_ns;
    what->to_ns = history->to_ns;
    what->seed = history->seed;
    what->zero_s = history->zero_s;
    what->policy = history->policy;
    what->cluster_text = history->cluster_text;
    what->history_text = history->text;
    what->command = sim_options_command_line(&history->arena, flags);
    for (uint32_t i = 0; i < history->note_count; i++)
        what->notes[what->note_count++] = history->notes[i];
}

/* ---- results ---- */

static void print_result(const struct flags *flags, const struct what_if *what)
{
    const char *report = flags_get(flags, "report");
    FILE *file = report && output_is_stdout(report) ? stderr : stdout;
    if (flags_get(flags, "json")) {
        struct json *json = what_if_json(what);
        json_print(json, stdout, true);
        json_free(json);
        return;
    }
    what_if_print(what, file);
    if (report && file == stdout)
        printf("\n%s has the plots.\n", report);
}

static int write_page(struct output *output, const struct what_if *what,
                      struct error *err)
{
    struct json *page = what_if_page(what);
    int r = report_page_write(output, page, err);
    json_free(page);
    return r;
}

static int play(const struct flags *flags, struct what_if *what)
{
    const char *report = flags_get(flags, "report");
    struct output page = { 0 };
    struct error err;
    what->chart = report != NULL;
    int r = report ? report_page_open(&page, report, &err) : 0;
    if (r == 0)
        r = what_if_run(what, terminal_progress, NULL, &err);
    terminal_progress_end();
    if (r == 0 && report)
        r = write_page(&page, what, &err);
    if (r == 0)
        print_result(flags, what);
    output_release(&page);
    return command_status(flags, r, &err);
}

static int play_history(const struct flags *flags, struct history *history,
                        const struct history_changes *changes)
{
    struct what_if what = { 0 };
    struct history changed;
    struct error err;
    int r = history_change(history, changes, &changed, &err);
    if (r < 0)
        return command_status(flags, r, &err);
    what.changed = describe_changes(&history->arena, changes);
    describe(flags, &what, history);
    make_cases(flags, &what, history, &changed);
    int status = play(flags, &what);
    what_if_release(&what);
    return status;
}

static int what_if_command(const struct flags *flags)
{
    struct history_changes changes = { 0 };
    struct history history;
    int64_t last_ns;
    if (command_refuse_words(flags))
        return 2;
    int status = read_changes(flags, &changes);
    if (status == 0 && flags_get(flags, "ahead"))
        return what_if_ahead(flags, &changes);
    if (status == 0)
        status = check_flags(flags, &last_ns);
    if (status)
        return status;
    recorded_shares_enable();
    history_init(&history);
    status = read_history(flags, &history, last_ns);
    if (status == 0)
        status = play_history(flags, &history, &changes);
    history_release(&history);
    return status;
}

const struct command command_what_if = {
    .name = "what-if",
    .group = "Use",
    .brief = "play again what was run: under other policies, with other GPUs or jobs",
    .usage = "[--policy P] [--add v100:2] [--remove NODE] [--without ID|user=U] "
             "[--last 7d | --ahead 2d] [flags]",
    .flags = what_if_flags,
    .more =
        "First of all it is told how well a replay under the policy that was in "
        "charge agrees\nwith what happened.  Then each policy, with all changes, is "
        "compared with that replay.\n\nWith --ahead berthd plays its present state "
        "forward instead, as it is and with the\nchanges, in the same possible "
        "futures.\n\nExamples:\n  berth what-if --last 7d --policy las --policy berth "
        "--add v100:4\n  berth what-if --ahead 2d --remove n3",
    .run = what_if_command,
};
