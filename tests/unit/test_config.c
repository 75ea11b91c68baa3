/* berthd.yaml: what it may say, what the command line says before it, what is refused. */
#include "support/cases.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/error.h"
#include "daemon/config.h"
#include "daemon/daemon.h"
#include "model/cluster.h"

static struct arena arena;
static struct daemon_setup given;
static struct error err;
static char path[64];

static int setup(void **state)
{
    arena_init(&arena, 0);
    given = (struct daemon_setup){ 0 };
    return 0;
}

static int teardown(void **state)
{
    arena_release(&arena);
    return 0;
}

static int load(const char *text)
{
    snprintf(path, sizeof path, "/tmp/berth-config-XXXXXX");
    int file = mkstemp(path);
    assert_true(file >= 0);
    assert_int_equal(write(file, text, strlen(text)), strlen(text));
    close(file);
    err.text[0] = '\0';
    int r = config_load(&given, &arena, path, &err);
    unlink(path);
    return r;
}

static void groups_and_users_have_weights(void **state)
{
    assert_int_equal(load("entities:\n"
                          "  - {name: vision, weight: 2}\n"
                          "  - {name: speech, inside: fifo}\n"
                          "  - {user: ada, weight: 0.5}\n"),
                     0);
    assert_int_equal(given.group_count, 2);
    assert_int_equal(given.user_count, 1);
    assert_string_equal(given.groups[0].name, "vision");
    assert_true(given.groups[0].weight == 2);
    assert_true(given.groups[1].weight == 1 && given.groups[1].fifo);
    assert_string_equal(given.users[0].name, "ada");
    assert_true(given.users[0].weight == 0.5);
}

static void wrong_entities_are_refused_with_their_line(void **state)
{
    static const struct {
        const char *text, *complaint;
    } wrong[] = {
        { "entities: {vision: 2}\n", ":1: entities: want a list" },
        { "entities: [vision]\n", ":1:" },
        { "entities:\n- {name: a, weight: 0}\n", ":2:" },
        { "entities:\n- {name: a}\n- {weight: 2}\n", ":3: want either name" },
        { "entities:\n- {name: a, user: b}\n", ":2: want either name" },
        { "entities:\n- {name: a}\n- {name: a}\n", ":3: entity \"a\" again" },
        { "entities:\n- {user: a}\n- {user: a}\n", ":3: user \"a\" again" },
        { "entities:\n- {user: a, inside: fifo}\n", ":2: inside:" },
        { "entities:\n- {name: a, share: 1}\n", ":2:" },
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(load(wrong[i].text), -EINVAL);
        if (!strstr(err.text, wrong[i].complaint))
            fail_msg("%s: %s", wrong[i].text, err.text);
    }
}

static void everything_can_be_said(void **state)
{
    assert_int_equal(load("# of the lab\n"
                          "policy: fitgpp,worth=xion\n"
                          "listen: 127.0.0.1:7600\n"
                          "system: true\n"
                          "max_jobs: 50000\n"
                          "keep_days: 36500\n"
                          "keep_reports: 90s\n"
                          "keep_jobs: 36500d\n"
                          "prices: {v100: 2.48, k80: 0.45}\n"
                          "speeds: {v100: 1, a100: 1.5}\n"),
                     0);
    assert_string_equal(given.policy, "fitgpp,worth=xion");
    assert_string_equal(given.listen, "127.0.0.1:7600");
    assert_true(given.system);
    assert_int_equal(given.job_max, 50000);
    assert_int_equal(given.keep_days, 36500);
    assert_int_equal(given.keep_reports_ns, INT64_C(90000000000));
    assert_int_equal(given.keep_jobs_ns, 36500 * INT64_C(86400000000000));
    assert_int_equal(given.type_count, 3);
    assert_string_equal(given.types[0].name, "v100");
    assert_near(given.types[0].usd_per_hour, 2.48, 0);
    assert_near(given.types[0].speed, 1, 0);
    assert_string_equal(given.types[2].name, "a100");
    assert_near(given.types[2].speed, 1.5, 0);
}

static void the_command_line_goes_before_the_file(void **state)
{
    given.policy = "las";
    given.job_max = 7;
    given.system = true;
    assert_int_equal(load("policy: fifo\nmax_jobs: 9\nsystem: false\nsocket: /s\n"), 0);
    assert_string_equal(given.policy, "las");
    assert_int_equal(given.job_max, 7);
    assert_true(given.system);
    assert_string_equal(given.socket, "/s");
}

static void a_file_that_says_nothing_is_fine(void **state)
{
    assert_int_equal(load(""), 0);
    assert_int_equal(load("\n  \t\r\n# policy: las\n\n   # more"), 0);
    assert_int_equal(load("#"), 0);
    assert_null(given.policy);
}

static void what_is_wrong_is_named_by_line_and_key(void **state)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        { "\npolice: las\n", ":2: police: there is no such key" },
        { "policy: [las]\n", ":1: policy: want a text" },
        { "policy: ''\n", ":1: policy is \"\", want a text" },
        { "system: maybe\n", ":1: system is \"maybe\", want true or false" },
        { "max_jobs: 0\n", ":1: max_jobs is \"0\", want a whole number from 1 to 1e6" },
        { "max_jobs: 1000001\n", "max_jobs is \"1000001\", want a whole number" },
        { "max_jobs: 1.5\n", "max_jobs is \"1.5\", want a whole number" },
        { "max_jobs: many\n", "max_jobs is \"many\", want a whole number" },
        { "prices: 5\n", ":1: prices: want {TYPE: NUMBER, …}" },
        { "prices: {v100: 0}\n", "prices: want a number above 0 for each type" },
        { "speeds: {v100: x}\n", "speeds: want a number above 0 for each type" },
        { "speeds: {v100: 1e7}\n", "speeds: want a number above 0 for each type" },
        { "prices: {a: 1, b: 1, c: 1, d: 1, e: 1, f: 1, g: 1, h: 1, i: 1, j: 1, k: 1, "
          "l: 1, m: 1, n: 1, o: 1, p: 1, q: 1}\n",
          "prices: too many types" },
        { "sharing: true\n", ":1: want lines of KEY: VALUE" },
        { "sharing:\n  allow: maybe\n", ":2: allow is \"maybe\", want one of: " },
        { "sharing: {alow: true}\n", ":1: alow: there is no such key" },
        { "sharing: {reserve_gib: -1}\n", ":1: reserve_gib is \"-1\", want a number" },
        { "sharing:\n  mps: pipes\n", ":2: mps is \"pipes\", want a whole path" },
        { "sharing: {gpu_memory_gib: {a: 0}}\n", ":1: gpu_memory_gib: want a number" },
        { "- las\n", ":1: want lines of KEY: VALUE" },
        { "policy: {\n", ":" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(load(cases[i].text), -EINVAL);
        if (strncmp(err.text, path, strlen(path)) != 0 ||
            !strstr(err.text, cases[i].says))
            fail_msg("\"%s\", want \"%s\"", err.text, cases[i].says);
        given = (struct daemon_setup){ 0 };
    }
}

static void a_file_that_cannot_be_read_is_named(void **state)
{
    assert_int_equal(config_load(&given, &arena, "/nowhere/berthd.yaml", &err),
                     -EINVAL);
    assert_string_equal(err.text, "/nowhere/berthd.yaml: No such file or directory");
    assert_int_equal(config_load(&given, &arena, "/dev/zero", &err), -EINVAL);
    assert_string_equal(err.text, "/dev/zero: more than 1 MiB");
}

RUN_CASES(CASE(groups_and_users_have_weights),
          CASE(wrong_entities_are_refused_with_their_line),
          CASE(everything_can_be_said), CASE(the_command_line_goes_before_the_file),
          CASE(a_file_that_says_nothing_is_fine),
          CASE(what_is_wrong_is_named_by_line_and_key),
          CASE(a_file_that_cannot_be_read_is_named));
