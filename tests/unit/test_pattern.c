/* Patterns that users write: what is found, what is refused, and what hostile ones cost. */
#include "support/cases.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/rng.h"
#include "host/pattern.h"

#define LINE_BYTES 20000
#define CPU_SECONDS_MAX 2 /* that the kernel grants; milliseconds are used */
#define MEMORY_MAX (64l << 20)
#ifdef __SANITIZE_ADDRESS__
#define MANY_LINES_MAX (320l << 20) /* it keeps 256 MiB of what was freed */
#else
#define MANY_LINES_MAX (8l << 20)
#endif

static void groups_are_counted_named_or_neither(void **state)
{
    static const struct {
        const char *pattern, *line;
        double step, loss;
    } cases[] = {
        { "(?:epoch|step) ([0-9]+)", "step 4", 4, NAN }, /* (?:...) is not counted */
        { "[(?<]x([0-9]+)", "<x8", 8, NAN },
        { "[](?<[:space:]]+([0-9]+)", " ]9", 9, NAN },
        { "[\\](]([0-9]+)", "(9", 9, NAN },
        { "\\(?<step>([0-9]+)", "<step>3", 3, NAN }, /* an escaped bracket is none */
        { "(s|step) *([0-9]+)", "step 5", NAN, 5 },
        { "(?<loss>[0-9.]+)", "0.5", NAN, 0.5 },
        { "(a+|a+b+)([0-9]*)c(?<step>[0-9]+)", "aabb1c7", 7, NAN },
        { "x{2,3}(\\d+)", "xxx6", 6, NAN },
        { "\xe2\x96\x88 (\\d+)", "\xff\xe2\x96\x88 6", 6, NAN }, /* bytes */
        { "a.b (\\d+)",
          "a\xff"
          "b 2",
          2, NAN },
        { "(\\d+)$", "1 2", 2, NAN },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct pattern pattern;
        struct error err = { "" };
        double step = 0, loss = 0;
        if (pattern_init(&pattern, cases[i].pattern, &err) < 0)
            fail_msg("%s", err.text);
        if (!pattern_match(&pattern, cases[i].line, &step, &loss))
            fail_msg("'%s' is not found in '%s'", cases[i].pattern, cases[i].line);
        assert_true(isnan(cases[i].step) ? isnan(step) : step == cases[i].step);
        assert_true(isnan(cases[i].loss) ? isnan(loss) : loss == cases[i].loss);
        pattern_release(&pattern);
    }
}

static void of_all_matches_the_longest_counts(void **state)
{
    struct pattern pattern;
    double step, loss;
    assert_int_equal(pattern_init(&pattern, "(1|12|123)", NULL), 0);
    assert_true(pattern_match(&pattern, "123", &step, &loss));
    assert_near(step, 123, 0);
    pattern_release(&pattern);
}

static void errors_say_what_is_wrong(void **state)
{
    static char long_one[PATTERN_MAX + 2];
    memset(long_one, 'a', sizeof long_one - 1);
    const struct {
        const char *pattern, *says;
    } cases[] = {
        { "", "no group for the step" },
        { "step", "no group for the step" },
        { "([0-9]+", "missing )" },
        { "([0-9]+))", "unexpected )" },
        { "([0-9)", "missing ]" },
        { "*(a)", "repetition operator: *" },
        { "(?<step", "named" },
        { "(a)\\1", "\\1" },
        { "(a)(?=b)", "(?=: want" },
        { "(\\pL)", "\\p: want" },
        { "((((((((((((((((a))))))))))))))))", "16 groups: at most 15" },
        { "(a{201})", "more than 200" },
        { "(a{9999999999999999999})", "more than 200" },
        { "(a{1,150})b{51}", "more than 200" },
        { "((((a{10}){10}){10}){10})", "more than 1000" },
        { "((([^a]x*y*){8}){8}){8}", "steps" },
        { long_one, "longer than 512 bytes" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct error err = { "" };
        if (pattern_check(cases[i].pattern, &err) != -EINVAL)
            fail_msg("'%s' was taken", cases[i].pattern);
        if (!strstr(err.text, cases[i].says))
            fail_msg("'%s' does not say '%s'", err.text, cases[i].says);
    }
}

/* In a process of its own, which the kernel ends if it takes too much. */
static void try_in_child(const char *text, const char *line)
{
    setrlimit(RLIMIT_CPU, &(struct rlimit){ CPU_SECONDS_MAX, CPU_SECONDS_MAX + 1 });
#ifndef __SANITIZE_ADDRESS__ /* which reserves terabytes */
    setrlimit(RLIMIT_AS, &(struct rlimit){ 4 * MEMORY_MAX, 4 * MEMORY_MAX });
#endif
    struct pattern pattern;
    double step, loss;
    if (pattern_init(&pattern, text, NULL) == 0) {
        pattern_match(&pattern, line, &step, &loss);
        pattern_release(&pattern);
    }
    _exit(0);
}

/* Now, and not at most: that counts what a process had before it executed this program. */
static long memory_used(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%*d %ld", &pages), 1);
    fclose(file);
    return pages * sysconf(_SC_PAGESIZE);
}

static void take_little(const char *text, const char *line)
{
    int status;
    struct rusage usage;
    long before = memory_used();
    pid_t child = fork();
    if (child == 0)
        try_in_child(text, line);
    assert_int_equal(wait4(child, &status, 0, &usage), child);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        fail_msg("'%.80s' ended its process: status %d", text, status);
    if (usage.ru_maxrss * 1024 - before > MEMORY_MAX)
        fail_msg("'%.80s' took %ld kB", text, usage.ru_maxrss);
}

static void fill_repeated(char *text, size_t size, const char *before, const char *part,
                          const char *after)
{
    size_t count = (size_t)snprintf(text, size, "%s", before);
    while (count + strlen(part) + strlen(after) < size)
        count += (size_t)snprintf(text + count, size - count, "%s", part);
    snprintf(text + count, size - count, "%s", after);
}

static void hostile_patterns_take_little(void **state)
{
    static char line[LINE_BYTES + 1], text[PATTERN_MAX + 1];
    static const char *const patterns[] = {
        "((a{1,100}){1,100}){1,100}",
        "(a|aa)+[bd]",
        "(a*)*b",
        "(((((((((((((a*)*)*)*)*)*)*)*)*)*)*)*)*)b",
        "(.*a.{190}b)",
        "((a|b)*a(a|b){190})c",
        "((((a{1,10}){1,10}){1,10})(((a{1,10}){1,10}){1,10}))b",
    };
    static const char *const parts[][3] = {
        { "a", "+", "" },       { "(", "a*|", ")" },    { "(", "(?:a*)*", ")b" },
        { "(", "[^\\d]", ")" }, { "(", "(?:", ")" },    { "(", "a?", ")b" },
        { "([", "\\pL", "])" }, { "(", "a{1,9}", ")" }, { "(", "(?:a|b|c)*", ")d" },
        { "(", "(?<x>", "" },   { "", "[", "" },        { "", "\\", "" },
    };
    memset(line, 'a', LINE_BYTES);
    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++)
        take_little(patterns[i], line);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        fill_repeated(text, 34 + 1, parts[i][0], parts[i][1], parts[i][2]);
        take_little(text, line);
        fill_repeated(text, sizeof text, parts[i][0], parts[i][1], parts[i][2]);
        take_little(text, line);
    }
}

/* The matcher keeps a state for all that a line has begun; those of many lines add up. */
static void many_lines_take_no_more_than_one(void **state)
{
    char line[1024];
    double step, loss;
    struct pattern pattern;
    struct rng rng;
    assert_int_equal(pattern_init(&pattern, "(?<step>(a|b)*a(a|b){190})c", NULL), 0);
    long before = memory_used();
    rng_init(&rng, 1, "lines");
    for (int i = 0; i < 60; i++) {
        for (size_t c = 0; c < sizeof line - 1; c++)
            line[c] = rng_below(&rng, 2) ? 'a' : 'b';
        line[sizeof line - 1] = '\0';
        assert_false(pattern_match(&pattern, line, &step, &loss));
    }
    assert_true(memory_used() < before + MANY_LINES_MAX);
    pattern_release(&pattern);
}

static void a_line_is_read_up_to_its_limit(void **state)
{
    static char line[PATTERN_LINE_MAX + 16];
    struct pattern pattern;
    double step, loss;
    memset(line, ' ', sizeof line - 1);
    assert_int_equal(pattern_init(&pattern, "step ([0-9]+)", NULL), 0);
    memcpy(line + PATTERN_LINE_MAX - 6, "step 12", 7);
    assert_true(pattern_match(&pattern, line, &step, &loss));
    assert_near(step, 1, 0); /* the second digit is beyond */
    pattern_release(&pattern);
}

RUN_CASES(TEST(groups_are_counted_named_or_neither),
          TEST(of_all_matches_the_longest_counts), TEST(errors_say_what_is_wrong),
          TEST(hostile_patterns_take_little), TEST(many_lines_take_no_more_than_one),
          TEST(a_line_is_read_up_to_its_limit));
