/* flowd.yaml: what it may say, and what is refused. */
#include "support/cases.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/error.h"
#include "flowd/flowd_config.h"

static struct arena arena;
static struct flowd_config config;
static struct error err;
static char path[64];

static int setup(void **state)
{
    arena_init(&arena, 0);
    config = (struct flowd_config){ 0 };
    return 0;
}

static int teardown(void **state)
{
    arena_release(&arena);
    return 0;
}

static int load(const char *text)
{
    snprintf(path, sizeof path, "/tmp/berth-flowd-XXXXXX");
    int file = mkstemp(path);
    assert_true(file >= 0);
    assert_int_equal(write(file, text, strlen(text)), strlen(text));
    close(file);
    int r = flowd_config_load(&config, &arena, path, &err);
    unlink(path);
    return r;
}

static void everything_can_be_said(void **state)
{
    config.backend = "nft"; /* by a flag */
    assert_int_equal(load("server: /run/berthd.sock\nhost: n1\nbackend: sockets\n"
                          "levels: 46,0\ntoken_file: /t\n"
                          "cgroup: [slurm/job_%j, berth/%j]\n"),
                     0);
    assert_string_equal(config.server, "/run/berthd.sock");
    assert_string_equal(config.host, "n1");
    assert_string_equal(config.backend, "nft");
    assert_int_equal(config.patterns.count, 2);
    assert_string_equal(config.patterns.list[1], "berth/%j");
    assert_int_equal(load("cgroup: other/%j\n"), 0); /* said already */
    assert_int_equal(config.patterns.count, 2);
}

static void one_pattern_needs_no_list(void **state)
{
    assert_int_equal(load("cgroup: slurm/job_%j\n"), 0);
    assert_int_equal(config.patterns.count, 1);
}

static void what_is_wrong_is_named_by_line_and_key(void **state)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        { "host: n1\nhots: n2\n", ":2: hots: there is no such key" },
        { "host: [n1]\n", ":1: host: want a text" },
        { "host: ''\n", ":1: host is \"\", want a text" },
        { "cgroup: 7\n", ":1: cgroup: want a path below" },
        { "cgroup: [ap/%j, /b/%j]\n", ":1: cgroup: want a path below" },
        { "cgroup: [p/%j, p/%j, p/%j, p/%j, p/%j, p/%j, p/%j, p/%j, p/%j, p/%j, p/%j, "
          "p/%j, p/%j, p/%j, "
          "p/%j, p/%j, /%j]\n",
          ":1: cgroup: too many patterns" },
        { "n1\n", ":1: want lines of KEY: VALUE" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        config = (struct flowd_config){ 0 };
        assert_int_equal(load(cases[i].text), -EINVAL);
        if (strncmp(err.text, path, strlen(path)) != 0 ||
            !strstr(err.text, cases[i].says))
            fail_msg("\"%s\", want \"%s\"", err.text, cases[i].says);
    }
    assert_int_equal(flowd_config_load(&config, &arena, "/nowhere/f.yaml", &err),
                     -EINVAL);
    assert_string_equal(err.text, "/nowhere/f.yaml: No such file or directory");
    assert_int_equal(flowd_config_load(&config, &arena, "/dev/zero", &err), -EINVAL);
    assert_string_equal(err.text, "/dev/zero: more than 64 KiB");
}

RUN_CASES(CASE(everything_can_be_said), CASE(one_pattern_needs_no_list),
          CASE(what_is_wrong_is_named_by_line_and_key));
