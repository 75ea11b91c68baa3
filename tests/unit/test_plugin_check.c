/* What a job_submit.lua says of itself: the partitions it holds, and the heartbeat it reads. */
#include "support/cases.h"

#include <stdio.h>
#include <string.h>

#include "slurm/plugin_check.h"

static struct plugin_check plugin;

static int setup(void **state)
{
    return 0;
}

static int teardown(void **state)
{
    plugin_check_release(&plugin);
    return 0;
}

static void our_own_says_both(void **state)
{
    char path[4096];
    snprintf(path, sizeof path, "%.*s../../contrib/slurm/job_submit.lua",
             (int)(strrchr(__FILE__, '/') + 1 - __FILE__), __FILE__);
    assert_true(plugin_check_read(&plugin, path));
    assert_true(plugin_check_manages(&plugin, "gpu"));
    assert_false(plugin_check_manages(&plugin, "gp"));
    assert_string_equal(plugin.heartbeat, "/run/berth/slurm.heartbeat");
}

static void names_are_whole_and_true(void **state)
{
    plugin_check_parse(&plugin,
                       "x = 1\nlocal managed = {\n  gpu = true, -- old = true\n"
                       "  [\"a-b\"] = true, off = false, gpu2=true,\n}\n");
    assert_true(plugin_check_manages(&plugin, "gpu"));
    assert_true(plugin_check_manages(&plugin, "gpu2"));
    assert_true(plugin_check_manages(&plugin, "a-b"));
    static const char *const others[] = {
        "a", "b", "gp", "gpu3", "off", "old", "true"
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_false(plugin_check_manages(&plugin, others[i]));
}

static void lines_that_are_not_there_are_none(void **state)
{
    static const char *const texts[] = {
        "",
        "managed = { gpu = true }",
        "-- local managed = { gpu = true }",
        "local managed = other",
        "local managed = { gpu = true",
        "local managed2 = { gpu = true }",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        plugin_check_parse(&plugin, texts[i]);
        assert_false(plugin_check_manages(&plugin, "gpu"));
        assert_null(plugin.managed);
        assert_false(plugin.has_heartbeat);
        plugin_check_release(&plugin);
    }
}

static void a_heartbeat_may_be_left_out(void **state)
{
    plugin_check_parse(&plugin, "local heartbeat = nil\n");
    assert_true(plugin.has_heartbeat);
    assert_string_equal(plugin.heartbeat, "");
    plugin_check_parse(&plugin, "local heartbeat= \"/a b/c\" -- here\n");
    assert_string_equal(plugin.heartbeat, "/a b/c");
    char text[PLUGIN_PATH_MAX + 100] = "local heartbeat = \"";
    memset(text + strlen(text), 'x', PLUGIN_PATH_MAX + 10);
    plugin_check_parse(&plugin, text);
    assert_string_equal(plugin.heartbeat, "");
    assert_false(plugin_check_read(&plugin, "/nowhere/job_submit.lua"));
    assert_false(plugin_check_read(&plugin, "/"));
}

RUN_CASES(CASE(our_own_says_both), CASE(names_are_whole_and_true),
          CASE(lines_that_are_not_there_are_none), CASE(a_heartbeat_may_be_left_out));
