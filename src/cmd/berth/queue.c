/* queue.c - berth queue: running and waiting jobs, and why they wait. */
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "cmd/berth/connection.h"
#include "cmd/berth/format.h"
#include "cmd/berth/job_table.h"
#include "cmd/berth/terminal.h"

static const struct flag queue_flags[] = {
    { "user", 'u', "NAME", "whose jobs; everybody's" },
    { "state", 't', "LIST", "in these states; all that have not ended" },
    { "name", 'n', "NAME", "of this name" },
    { "watch", 'w', NULL, "again every two seconds, until Ctrl-C" },
    FLAG_JSON,
    CONNECTION_FLAGS,
    { 0 },
};

static int show_once(const struct flags *flags, struct call *call, const char *path)
{
    struct json *answer = NULL;
    struct error err;
    int r = call_json(call, "GET", path, NULL, &answer, &err);
    if (r < 0)
        return command_status(flags, r, &err);
    if (flags_get(flags, "json"))
        return format_print_json(answer);
    const struct json *jobs = json_get(answer, "jobs");
    const char *trouble = json_as_text(json_get(answer, "trouble"));
    if (flags_get(flags, "watch"))
        fputs("\033[H\033[2J", stdout);
    if (json_count(jobs) == 0)
        puts("Nothing runs and nothing waits.");
    else
        job_table_print(jobs, stdout, terminal_width(stdout),
                        terminal_has_colours(stdout));
    fflush(stdout);
    if (json_flag_at(answer, "limited"))
        fprintf(stderr,
                "berth queue: only the first %zu jobs are shown; --user, --state and "
                "--name select others\n",
                json_count(jobs));
    if (trouble)
        fprintf(stderr,
                "Slurm does not answer, and nothing starts until it does: %.150s\n",
                trouble);
    json_free(answer);
    return 0;
}

static int queue_run(const struct flags *flags)
{
    static const char *const filters[] = { "user", "state", "name" };
    struct call *call = NULL;
    struct buf path;
    bool watch = flags_get(flags, "watch") != NULL;
    if (command_refuse_words(flags))
        return 2;
    if (watch && (!isatty(STDOUT_FILENO) || flags_get(flags, "json")))
        return command_wrong(flags, "--watch wants a terminal, and no --json");
    int status = connection_open(&call, flags);
    if (status)
        return status;
    buf_init(&path, 1 << 16);
    buf_text(&path, "/v1/jobs");
    for (size_t i = 0; i < sizeof filters / sizeof *filters; i++)
        if (flags_get(flags, filters[i]))
            connection_add_query(&path, filters[i], flags_get(flags, filters[i]));
    do {
        status = show_once(flags, call, path.bytes);
        fflush(stdout);
        if (watch && status == 0)
            nanosleep(&(struct timespec){ .tv_sec = 2 }, NULL);
    } while (watch && status == 0);
    buf_release(&path);
    call_close(call);
    return status;
}

const struct command command_queue = {
    .name = "queue",
    .alias = "q",
    .group = "Use",
    .brief = "what runs, how far it is; what waits, and why",
    .usage = "[flags]",
    .flags = queue_flags,
    .run = queue_run,
};
