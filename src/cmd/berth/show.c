/* show.c - berth show: everything berthd knows about one job. */
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "cmd/berth/connection.h"
#include "cmd/berth/expected_times.h"
#include "cmd/berth/format.h"
#include "cmd/berth/terminal.h"

#define SHARING_MAX 10 /* lines of times that it shared GPUs */

static const struct flag show_flags[] = {
    FLAG_JSON,
    CONNECTION_FLAGS,
    { 0 },
};

static void print_line(const char *what, const char *text)
{
    if (!text || !*text)
        return;
    printf("%-12s ", what);
    terminal_print_safely(text);
    putchar('\n');
}

static void print_time(const char *what, const struct json *job, const char *key)
{
    char text[64];
    print_line(what, format_time(text, sizeof text, json_number_or(job, key, NAN)));
}

/* When it is expected to start or to end, and how that is known. */
static void print_expected(const struct json *job, const char *key, const char *verb)
{
    struct buf text;
    buf_init(&text, 4096);
    expected_times_explain(&text, verb, json_get(job, key), (double)time(NULL));
    if (text.count > 0) {
        printf("%-12s ", verb);
        terminal_make_safe(text.bytes);
        terminal_print_wrapped(text.bytes, 13, stdout);
    }
    buf_release(&text);
}

static void print_number(const char *what, const struct json *object, const char *key,
                         const char *unit)
{
    double number = json_number_or(object, key, NAN);
    if (!isnan(number))
        printf("%-12s %.0f%s\n", what, number, unit);
}

/* A measured value, with as many digits as are useful. */
static void print_measure(const char *what, const struct json *object, const char *key,
                          const char *unit)
{
    double number = json_number_or(object, key, NAN);
    if (!isnan(number))
        printf("%-12s %.*g%s\n", what, fabs(number) >= 1000 ? 10 : 4,
               fabs(number) >= 1000 ? round(number) : number, unit);
}

static void print_command(const struct json *job)
{
    const struct json *words = json_get(job, "command");
    if (json_count(words) == 0)
        return;
    printf("%-12s", "command");
    for (size_t i = 0; i < json_count(words); i++) {
        const char *word = json_as_text(json_item(words, i));
        bool plain = word && *word && !strpbrk(word, " \t\n'\"\\$*?;&|<>()[]{}`#~!");
        fputs(plain ? " " : " '", stdout);
        terminal_print_safely(word ? word : "");
        fputs(plain ? "" : "'", stdout);
    }
    putchar('\n');
}

static void print_placement(const struct json *job)
{
    const struct json *placement = json_get(job, "placement");
    for (size_t i = 0; i < json_count(placement); i++) {
        const struct json *part = json_item(placement, i);
        const struct json *gpus = json_get(part, "gpus");
        printf("%-12s %s %s", i ? "" : "on", json_text_or(part, "node", ""),
               json_text_or(part, "type", ""));
        for (size_t g = 0; g < json_count(gpus); g++) {
            int64_t gpu = 0;
            json_as_count(json_item(gpus, g), &gpu);
            printf("%s%" PRId64, g ? "," : " gpu ", gpu);
        }
        putchar('\n');
    }
}

/* For which job, by which rule, at what cost. */
static void print_preemptions(const struct json *job)
{
    const struct json *list = json_get(job, "preempted_by");
    for (size_t i = 0; i < json_count(list); i++) {
        const struct json *one = json_item(list, i);
        double predicted = json_number_or(one, "predicted_cost_gpu_s", NAN);
        double actual = json_number_or(one, "actual_cost_gpu_s", NAN);
        char text[64];
        printf("%-12s", i ? "" : "preempted");
        double by = json_number_or(one, "job", NAN);
        if (!isnan(by))
            printf(" for job %.0f", by);
        printf(" by %s", json_text_or(one, "rule", "its policy"));
        if (format_time(text, sizeof text, json_number_or(one, "at", NAN))[0])
            printf(" at %s", text);
        if (!isnan(predicted))
            printf(", believed to cost %.3g GPU-s", predicted);
        if (!isnan(actual))
            printf(", cost %.3g GPU-s", actual);
        putchar('\n');
    }
}

/* Steps per second on each type, and what is known of them. */
static void print_rates(const struct json *job)
{
    const struct json *rates = json_get(job, "rates");
    print_line("kind", json_text_or(job, "kind", NULL));
    for (size_t i = 0; i < json_count(rates); i++) {
        const struct json *rate = json_item(rates, i);
        const char *basis = json_text_or(rate, "basis", "unknown");
        double per_s = json_number_or(rate, "steps_per_s", NAN);
        double low = json_number_or(rate, "low", NAN);
        printf("%-12s %-8s", i ? "" : "rates", json_text_or(rate, "type", ""));
        if (!isnan(per_s))
            printf(" %.4g steps/s", per_s);
        if (!isnan(low))
            printf(" (%.4g to %.4g)", low, json_number_or(rate, "high", NAN));
        printf(" %s\n", basis);
    }
}

/* Memory of a GPU: what it had, beside what it declared or is taken to need. */
static void print_gpu_use(const struct json *job)
{
    double used = json_number_or(job, "gpu_memory_used_bytes", NAN);
    double declared = json_number_or(job, "gpu_memory_bytes", NAN);
    double expected = json_number_or(job, "gpu_memory_expected_bytes", NAN);
    double busy = json_number_or(job, "gpu_busy", NAN);
    char first[40] = "", second[80] = "";
    if (!isnan(used))
        snprintf(first, sizeof first, "%.3g GiB at most", used / 0x1p30);
    if (!isnan(declared))
        snprintf(second, sizeof second, "%s%.3g GiB declared",
                 used > declared ? "more than the " : "", declared / 0x1p30);
    else if (!isnan(expected))
        snprintf(second, sizeof second, "%.3g GiB expected, as jobs of its kind had",
                 expected / 0x1p30);
    if (*first || *second)
        printf("%-12s %s%s%s\n", "gpu memory", first, *first && *second ? ", " : "",
               second);
    if (!isnan(busy))
        printf("%-12s %.0f %% of the time\n", "gpu busy", 100 * busy);
}

/* What a job kept of its speed beside another: ", keeps 83 % of its speed (job 7: 71 %)". */
static void print_kept(const struct json *pair, const char *verb, double beside)
{
    double kept = json_number_or(pair, "kept", NAN);
    double other = json_number_or(pair, "beside_kept", NAN);
    if (!isnan(kept))
        printf(", %s %.0f %% of its speed", verb, 100 * kept);
    if (!isnan(kept) && !isnan(other))
        printf(" (job %.0f: %.0f %%)", beside, 100 * other);
}

/* The job that it shares its GPUs with now. */
static void print_partner(const struct json *job)
{
    double beside = json_number_or(job, "beside", NAN);
    const struct json *pair = json_item(json_get(job, "sharing"), 0);
    if (isnan(beside))
        return;
    printf("%-12s job %.0f", "beside", beside);
    if (json_number_or(pair, "beside", NAN) == beside && !json_get(pair, "to"))
        print_kept(pair, "keeps", beside);
    putchar('\n');
}

/* The times that it shared GPUs, newest first. */
static void print_sharing(const struct json *job)
{
    const struct json *list = json_get(job, "sharing");
    char text[64];
    size_t count = json_count(list);
    for (size_t i = 0; i < count && i < SHARING_MAX; i++) {
        const struct json *pair = json_item(list, i);
        double beside = json_number_or(pair, "beside", 0);
        printf("%-12s %s beside job %.0f", i ? "" : "shared",
               format_duration(text, sizeof text, json_number_or(pair, "shared_s", 0)),
               beside);
        print_kept(pair, "kept", beside);
        printf(", gained %.3g GPU-s", json_number_or(pair, "gained_gpu_s", 0));
        if (json_number_or(pair, "lost_gpu_s", 0) > 0)
            printf(", lost %.3g by stops", json_number_or(pair, "lost_gpu_s", 0));
        putchar('\n');
    }
    if (count > SHARING_MAX)
        printf("%-12s and %zu times before\n", "", count - SHARING_MAX);
}

static void print_job(const struct json *job)
{
    char text[64];
    const struct json *progress = json_get(job, "progress");
    const char *state = json_text_or(job, "state", "");
    const char *colour =
        terminal_has_colours(stdout) ? format_state_colour(state) : NULL;
    printf("%-12s %.0f\n", "job", json_number_or(job, "id", 0));
    print_line("name", json_text_or(job, "name", NULL));
    print_line("user", json_text_or(job, "user", NULL));
    print_line("class", json_text_or(job, "class", NULL));
    printf("%-12s %s%s%s%s%s\n", "state", colour ? "\033[" : "", colour ? colour : "",
           colour ? "m" : "", state, colour ? "\033[0m" : "");
    print_line("reason", json_text_or(job, "reason", NULL));
    print_expected(job, "expected_start", "start");
    print_expected(job, "expected_end", "end");
    print_number("gpus", job, "gpus", "");
    print_line("types", json_text_or(job, "types", NULL));
    print_placement(job);
    print_partner(job);
    print_line("progress", format_progress(text, sizeof text, job));
    print_number("step", progress, "step", "");
    print_number("steps", progress, "steps", "");
    print_measure("loss", progress, "loss", "");
    print_measure("speed", progress, "steps_per_s", " steps/s");
    print_rates(job);
    print_gpu_use(job);
    print_time("submitted", job, "submit");
    print_time("started", job, "start");
    print_time("ended", job, "end");
    print_line("waited", format_duration(text, sizeof text,
                                         json_number_or(job, "waited_s", NAN)));
    print_measure("served", job, "served_gpu_s", " GPU-s");
    print_number("attempt", job, "attempt", "");
    print_number("preemptions", job, "preemptions", "");
    print_preemptions(job);
    print_sharing(job);
    print_number("exit code", job, "exit_code", "");
    print_line("entity", json_text_or(job, "entity", NULL));
    if (json_number_or(job, "array_id", 0) > 0)
        print_line("task", format_job_id(text, sizeof text, job));
    print_command(job);
    print_line("folder", json_text_or(job, "cwd", NULL));
    print_line("output", json_text_or(job, "output", NULL));
}

static int show_run(const struct flags *flags)
{
    uint64_t id;
    char path[64];
    int status = connection_job_id(flags, &id);
    if (status)
        return status;
    snprintf(path, sizeof path, "/v1/jobs/%" PRIu64, id);
    return connection_show(flags, path, print_job);
}

const struct command command_show = {
    .name = "show",
    .group = "Use",
    .brief = "all there is to know of one job",
    .usage = "ID [--json]",
    .flags = show_flags,
    .run = show_run,
};
