/* queue.c - berth queue: running and waiting jobs, and why they wait. */
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "cmd/berth/connection.h"
#include "cmd/berth/job_pages.h"
#include "cmd/berth/job_table.h"
#include "cmd/berth/text_table.h"

static const struct flag queue_flags[] = {
    { "user", 'u', "NAME", "whose jobs; everybody's" },
    { "state", 't', "LIST", "in these states; all that have not ended" },
    { "name", 'n', "NAME", "of this name" },
    { "watch", 'w', NULL, "again every two seconds, until Ctrl-C" },
    FLAG_JSON,
    CONNECTION_FLAGS,
    { 0 },
};

static void print_page(void *context, const struct json *jobs)
{
    struct text_table *table = context;
    if (json_count(jobs) == 0)
        return;
    job_table_add(table, jobs);
    text_table_show(table, stdout);
    text_table_clear(table);
}

static int show_once(const struct flags *flags, struct call *call, const char *path)
{
    struct text_table table;
    struct job_pages pages = { .flags = flags,
                               .path = path,
                               .json = flags_get(flags, "json"),
                               .print = print_page,
                               .context = &table };
    if (flags_get(flags, "watch"))
        fputs("\033[H\033[2J", stdout);
    job_table_init(&table);
    int status = job_pages_read(&pages, call);
    if (status == 0 && pages.count == 0 && !pages.json)
        puts("Nothing runs and nothing waits.");
    fflush(stdout);
    if (pages.trouble && !pages.json)
        fprintf(stderr,
                "Slurm does not answer, and nothing starts until it does: %.150s\n",
                pages.trouble);
    job_pages_release(&pages);
    text_table_release(&table);
    return status;
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
