/* show_job.c - berth show: all there is to know of one job. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "cmd/berth/live.h"
#include "cmd/berth/sheet.h"

static const struct flag show_flags[] = {
    LIVE_JSON,
    LIVE_FLAGS,
    { 0 },
};

static void line(const char *what, const char *text)
{
    if (!text || !*text)
        return;
    printf("%-12s ", what);
    live_put(text);
    putchar('\n');
}

static void line_time(const char *what, const struct json *job, const char *key)
{
    char text[64];
    line(what, live_moment(text, sizeof text, live_number(job, key, NAN)));
}

static void line_number(const char *what, const struct json *object, const char *key,
                        const char *unit)
{
    double number = live_number(object, key, NAN);
    if (!isnan(number))
        printf("%-12s %.0f%s\n", what, number, unit);
}

/* What was measured, as exactly as anybody reads it. */
static void line_measure(const char *what, const struct json *object, const char *key,
                         const char *unit)
{
    double number = live_number(object, key, NAN);
    if (!isnan(number))
        printf("%-12s %.*g%s\n", what, fabs(number) >= 1000 ? 10 : 4,
               fabs(number) >= 1000 ? round(number) : number, unit);
}

static void line_command(const struct json *job)
{
    const struct json *words = json_get(job, "command");
    if (json_count(words) == 0)
        return;
    printf("%-12s", "command");
    for (size_t i = 0; i < json_count(words); i++) {
        const char *word = json_as_text(json_item(words, i));
        bool plain = word && *word && !strpbrk(word, " \t\n'\"\\$*?;&|<>()[]{}`#~!");
        fputs(plain ? " " : " '", stdout);
        live_put(word ? word : "");
        fputs(plain ? "" : "'", stdout);
    }
    putchar('\n');
}

static void lines_placement(const struct json *job)
{
    const struct json *placement = json_get(job, "placement");
    for (size_t i = 0; i < json_count(placement); i++) {
        const struct json *part = json_item(placement, i);
        const struct json *gpus = json_get(part, "gpus");
        printf("%-12s %s %s", i ? "" : "on", live_text(part, "node", ""),
               live_text(part, "type", ""));
        for (size_t g = 0; g < json_count(gpus); g++) {
            int64_t gpu = 0;
            json_as_count(json_item(gpus, g), &gpu);
            printf("%s%" PRId64, g ? "," : " gpu ", gpu);
        }
        putchar('\n');
    }
}

/* By whom, by which rule, at what price. */
static void lines_preempted(const struct json *job)
{
    const struct json *list = json_get(job, "preempted_by");
    for (size_t i = 0; i < json_count(list); i++) {
        const struct json *one = json_item(list, i);
        double predicted = live_number(one, "predicted_cost_gpu_s", NAN);
        double actual = live_number(one, "actual_cost_gpu_s", NAN);
        char text[64];
        printf("%-12s", i ? "" : "preempted");
        double by = live_number(one, "job", NAN);
        if (!isnan(by))
            printf(" for job %.0f", by);
        printf(" by %s", live_text(one, "rule", "its policy"));
        if (live_moment(text, sizeof text, live_number(one, "at", NAN))[0])
            printf(" at %s", text);
        if (!isnan(predicted))
            printf(", believed to cost %.3g GPU-s", predicted);
        if (!isnan(actual))
            printf(", cost %.3g GPU-s", actual);
        putchar('\n');
    }
}

static void print_job(const struct json *job)
{
    char text[64];
    const struct json *progress = json_get(job, "progress");
    const char *state = live_text(job, "state", "");
    const char *colour = sheet_coloured(stdout) ? live_colour(state) : NULL;
    printf("%-12s %.0f\n", "job", live_number(job, "id", 0));
    line("name", live_text(job, "name", NULL));
    line("user", live_text(job, "user", NULL));
    line("class", live_text(job, "class", NULL));
    printf("%-12s %s%s%s%s%s\n", "state", colour ? "\033[" : "", colour ? colour : "",
           colour ? "m" : "", state, colour ? "\033[0m" : "");
    line("reason", live_text(job, "reason", NULL));
    line_number("gpus", job, "gpus", "");
    line("types", live_text(job, "types", NULL));
    lines_placement(job);
    line("progress", live_progress(text, sizeof text, job));
    line_number("step", progress, "step", "");
    line_number("steps", progress, "steps", "");
    line_measure("loss", progress, "loss", "");
    line_measure("speed", progress, "steps_per_s", " steps/s");
    line_time("submitted", job, "submit");
    line_time("started", job, "start");
    line_time("ended", job, "end");
    line("waited", live_span(text, sizeof text, live_number(job, "waited_s", NAN)));
    line_measure("served", job, "served_gpu_s", " GPU-s");
    line_number("attempt", job, "attempt", "");
    line_number("preemptions", job, "preemptions", "");
    lines_preempted(job);
    line_number("exit code", job, "exit_code", "");
    line("entity", live_text(job, "entity", NULL));
    if (live_number(job, "array_id", 0) > 0)
        line("task", live_name(text, sizeof text, job));
    line_command(job);
    line("folder", live_text(job, "cwd", NULL));
    line("output", live_text(job, "output", NULL));
}

static int show_run(const struct flags *flags)
{
    uint64_t id;
    char path[64];
    struct json *job = NULL;
    int status = live_id(flags, &id);
    snprintf(path, sizeof path, "/v1/jobs/%" PRIu64, id);
    if (status == 0)
        status = live_get(flags, path, &job);
    if (status)
        return status;
    if (flags_get(flags, "json"))
        return live_print_json(job);
    print_job(job);
    json_free(job);
    return 0;
}

const struct command command_show = {
    .name = "show",
    .group = "Use",
    .brief = "all there is to know of one job",
    .usage = "ID [--json]",
    .flags = show_flags,
    .run = show_run,
};
