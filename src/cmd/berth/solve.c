/* solve.c - berth solve: shares of time for the instances in a file. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "base/units.h"
#include "cmd/berth/command.h"
#include "study/instance_file.h"
#include "study/instance_shares.h"

#define ROWS_SHOWN 24 /* of a table; --json has all of them */

static const struct flag solve_flags[] = {
    { "engine", 0, "NAME", "fast (prices; the standard) or clp (linear programmes)" },
    { "json", 0, NULL, "for programs: one object, every share with all its digits" },
    { 0 },
};

/* The answer to an instance, or the reason why there is none. */
struct solve_result {
    struct instance_answer answer;
    double seconds;
    struct error why; /* "": there is one */
};

static const char *status_name(const struct solve_result *solved)
{
    static const char *const words[] = { [SHARES_OPTIMAL] = "optimal",
                                         [SHARES_EMPTY] = "empty",
                                         [SHARES_FLOORS_DROPPED] = "floors_dropped" };
    return solved->why.text[0] ? "failed" : words[solved->answer.shares.status];
}

/* --- for programs --- */

static struct json *allocation_json(const struct instance *in, const double *x)
{
    struct json *rows = json_new_array();
    for (size_t line = 0; line < (size_t)in->job_count + in->pair_count; line++) {
        struct json *row = json_new_array();
        for (uint32_t t = 0; t < in->type_count; t++)
            json_add_number(row, x[line * in->type_count + t]);
        json_add(rows, row);
    }
    return rows;
}

static void put_levels(struct json *object, const struct instance *in,
                       const struct shares *shares)
{
    if (shares->level) {
        struct json *levels = json_new_array();
        for (uint32_t j = 0; j < in->job_count; j++)
            json_add_number(levels, shares->level[j]);
        json_put(object, "levels", levels);
    }
    if (shares->unserved) {
        struct json *unserved = json_new_array();
        for (uint32_t j = 0; j < in->job_count; j++)
            if (shares->unserved[j])
                json_add_text(unserved, in->jobs[j]);
        json_put(object, "unserved", unserved);
    }
}

static struct json *instance_json(const struct instance *in,
                                  const struct solve_result *solved)
{
    const struct instance_answer *answer = &solved->answer;
    struct json *object = json_new_object();
    json_put_text(object, "id", in->name);
    json_put_text(object, "status", status_name(solved));
    if (solved->why.text[0]) {
        json_put_text(object, "reason", solved->why.text);
    } else {
        if (answer->has_objective)
            json_put_number(object, "objective", answer->shares.objective);
        json_put(object, "allocation", allocation_json(in, answer->shares.x));
        put_levels(object, in, &answer->shares);
        if (answer->has_gap)
            json_put_number(object, "gap", answer->shares.gap);
    }
    json_put_number(object, "seconds", solved->seconds);
    json_put_count(object, "iterations", answer->shares.iterations);
    return object;
}

/* --- for people --- */

static void print_line(const struct instance *in, size_t line,
                       const struct shares *shares)
{
    char name[64];
    if (line < in->job_count)
        snprintf(name, sizeof name, "%s", in->jobs[line]);
    else
        snprintf(name, sizeof name, "%s + %s",
                 in->jobs[in->pairs[line - in->job_count].first],
                 in->jobs[in->pairs[line - in->job_count].second]);
    printf("  %-14s", name);
    for (uint32_t t = 0; t < in->type_count; t++) {
        double share = shares->x[line * in->type_count + t];
        if (share > 0)
            printf(" %9.4f", share);
        else
            printf(" %9s", "-");
    }
    if (shares->level && line < in->job_count)
        printf(" %9.4f", shares->level[line]);
    if (shares->unserved && line < in->job_count && shares->unserved[line])
        printf("  deadline not kept");
    putchar('\n');
}

/* Jobs are always shown; pairs only if they have a share. */
static bool is_shown(const struct instance *in, size_t line, const double *x)
{
    bool any = line < in->job_count;
    for (uint32_t t = 0; t < in->type_count; t++)
        any = any || x[line * in->type_count + t] > 0;
    return any;
}

static void print_shares(const struct instance *in, const struct shares *shares)
{
    size_t lines = (size_t)in->job_count + in->pair_count, shown = 0, left = 0;
    printf("  %-14s", "job");
    for (uint32_t t = 0; t < in->type_count; t++)
        printf(" %9.9s", in->types[t]);
    printf("%s\n", shares->level ? "     level" : "");
    for (size_t line = 0; line < lines; line++) {
        if (!is_shown(in, line, shares->x))
            continue;
        if (shown < ROWS_SHOWN)
            print_line(in, line, shares);
        shown++;
        left = shown > ROWS_SHOWN ? shown - ROWS_SHOWN : 0;
    }
    if (left > 0)
        printf("  and %zu more; --json has them all\n", left);
}

static void print_instance(const struct instance *in, const struct solve_result *solved)
{
    const struct instance_answer *answer = &solved->answer;
    char time[32];
    printf("%s: %s", in->name, status_name(solved));
    if (solved->why.text[0]) {
        printf(", %s\n", solved->why.text);
        return;
    }
    if (answer->has_objective)
        printf(", objective %.9g", answer->shares.objective);
    if (answer->has_gap)
        printf(", gap %.1e", answer->shares.gap);
    printf(", %s\n", units_show_time(time, sizeof time,
                                     solved->seconds > 0 ? solved->seconds : 0));
    if (in->job_count > 0)
        print_shares(in, &answer->shares);
    putchar('\n');
}

/* --- the command --- */

static int parse_engine(const struct flags *flags, enum solve_engine *ret_engine)
{
    const char *name = flags_get(flags, "engine");
    if (name && strcmp(name, "fast") != 0 && strcmp(name, "clp") != 0)
        return command_wrong(flags, "--engine is \"%.60s\", want fast or clp", name);
    *ret_engine = name && strcmp(name, "clp") == 0 ? SOLVE_CLP : SOLVE_FAST;
    return 0;
}

/* Solve all instances; if the solver gives up on one, the others are still solved. */
static int solve_all(const struct instance_policy *asked,
                     const struct instance_file *file, enum solve_engine engine,
                     struct arena *arena, struct solve_result *solved,
                     struct error *err)
{
    for (uint32_t i = 0; i < file->count; i++) {
        double start = clock_cpu_s();
        int r = instance_policy_solve(asked, &file->instances[i], engine, NULL, arena,
                                      &solved[i].answer, err);
        solved[i].seconds = clock_cpu_s() - start;
        if (r == -EDOM)
            solved[i].why = *err;
        else if (r < 0)
            return r;
    }
    return 0;
}

static int print_all(const struct flags *flags, const struct instance_file *file,
                     const struct solve_result *solved)
{
    int status = 0;
    struct json *root = json_new_object(), *list = json_new_array();
    bool json = flags_get(flags, "json");
    for (uint32_t i = 0; i < file->count; i++) {
        if (json)
            json_add(list, instance_json(&file->instances[i], &solved[i]));
        else
            print_instance(&file->instances[i], &solved[i]);
        if (solved[i].why.text[0])
            status = command_failed(flags, "%s: %s", file->instances[i].name,
                                    solved[i].why.text);
    }
    json_put(root, "instances", list);
    if (json)
        json_print_exact(root, stdout);
    json_free(root);
    return status;
}

static int solve_run(const struct flags *flags)
{
    enum solve_engine engine = SOLVE_FAST;
    struct instance_policy asked;
    struct error err;
    if (flags->word_count != 2)
        return command_wrong(flags,
                             "want a policy and a file; see 'berth solve --help'");
    int status = parse_engine(flags, &engine);
    if (status)
        return status;

    struct arena arena;
    struct instance_file file = { 0 };
    arena_init(&arena, 0);
    int r = instance_policy_parse(&asked, flags->words[0], &err);
    if (r == 0)
        r = instance_file_read(&file, &arena, flags->words[1], &err);
    if (r == 0)
        r = instance_policy_check(&asked, &file, &err);
    struct solve_result *solved = arena_array(&arena, struct solve_result, file.count);
    if (r == 0)
        r = solve_all(&asked, &file, engine, &arena, solved, &err);
    status = command_status(flags, r, &err);
    if (r == 0)
        status = print_all(flags, &file, solved);
    arena_release(&arena);
    return status;
}

const struct command command_solve = {
    .name = "solve",
    .group = "Study",
    .brief = "turn jobs and accelerators into shares of time, as a policy does",
    .usage = "POLICY FILE.json [--engine fast|clp] [--json]",
    .flags = solve_flags,
    .more =
        "POLICY is NAME[,setting=value...].  Names: gavel-las, gavel-fifo,\n"
        "gavel-makespan, gavel-ftf, gavel-cost, gavel-cost-slo, gavel-throughput,\n"
        "gavel-hierarchical, isolated, proportional, allox; or those of the published\n"
        "system, such as max_min_fairness_perf.\n\n"
        "Settings: aware (default: true) and sharing (false) for gavel-*; tidy (true) "
        "for\n"
        "all of these but gavel-fifo; water_filling (false) for gavel-las;\n"
        "form=paper|released for gavel-cost and gavel-cost-slo; compat=none|released "
        "and\n"
        "seed for gavel-fifo.\n\n"
        "FILE.json is {\"instances\": [...]}; berth-solve(1) says what is in one.",
    .run = solve_run,
};
