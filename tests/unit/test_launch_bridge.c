/* What berthd may have berth-slurm started with. */
#include "support/cases.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "host/launcher_protocol.h"
#include "launch/launch_bridge.h"

static const struct launch_bridge_setup any = { .program = "/usr/bin/berth-slurm" };
static const struct launch_bridge_setup two = { .program = "/usr/bin/berth-slurm",
                                                .partitions = { "gpu", "wide" },
                                                .partition_count = 2 };

static int setup(void **state)
{
    return 0;
}

static int teardown(void **state)
{
    return 0;
}

/* The arguments with blanks between, or the error. */
static const char *read_request(const struct launch_bridge_setup *known,
                                const char *driver, const char *partitions)
{
    static char joined[2048];
    struct launcher_bridge_request request = { .request.kind = LAUNCHER_BRIDGE };
    struct launch_bridge_words words;
    struct error err = { "" };
    snprintf(request.driver, sizeof request.driver, "%s", driver);
    snprintf(request.partitions, sizeof request.partitions, "%s", partitions);
    if (launch_bridge_read(known, &request, &words, &err) < 0) {
        assert_true(err.text[0]);
        return "refused";
    }
    joined[0] = '\0';
    for (size_t i = 1, used = 0; i < words.count; i++)
        used += (size_t)snprintf(joined + used, sizeof joined - used, "%s%s",
                                 i > 1 ? " " : "", words.list[i]);
    assert_null(words.list[words.count]);
    assert_string_equal(words.list[0], "berth-slurm");
    return joined;
}

static void a_driver_and_partitions_become_arguments(void **state)
{
    assert_string_equal(read_request(&any, "", ""), "");
    assert_string_equal(read_request(&any, "commands", "a.b,c_d-1"),
                        "--driver commands --partition a.b --partition c_d-1");
}

static void nothing_but_names_is_accepted(void **state)
{
    static const char *const wrong[] = { "-x",  "--bell", "a,",   ",a",      "a,,b",
                                         "a b", "a;b",    "a/b",  "a=b",     "a\nb",
                                         "*",   "$(id)",  "gpu,", "\xc3\xa4" };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        print_message("%s\n", wrong[i]);
        assert_string_equal(read_request(&any, "", wrong[i]), "refused");
    }
    char name[100];
    memset(name, 'n', sizeof name);
    name[64] = '\0';
    assert_string_not_equal(read_request(&any, "", name), "refused");
    memset(name, 'n', 65);
    name[65] = '\0';
    assert_string_equal(read_request(&any, "", name), "refused");
    assert_string_equal(read_request(&any, "--check", ""), "refused");
    assert_string_equal(read_request(&any, "/bin/sh", ""), "refused");
}

static void only_partitions_of_its_own_command_line_are_allowed(void **state)
{
    assert_string_equal(read_request(&two, "", "wide"), "--partition wide");
    assert_string_equal(read_request(&two, "", "other"), "refused");
    assert_string_equal(read_request(&two, "", "gpu,other"), "refused");
    /* To name none is not to have all of them. */
    assert_string_equal(read_request(&two, "", ""), "--partition gpu --partition wide");
}

static void so_many_partitions_and_no_more(void **state)
{
    char names[200];
    size_t used = 0;
    for (int i = 0; i < LAUNCH_BRIDGE_PARTITIONS_MAX; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%sp%d",
                                 i ? "," : "", i);
    assert_string_not_equal(read_request(&any, "libslurm", names), "refused");
    snprintf(names + used, sizeof names - used, ",more");
    assert_string_equal(read_request(&any, "libslurm", names), "refused");
}

static void texts_without_an_end_are_refused(void **state)
{
    struct launcher_bridge_request request = { .request.kind = LAUNCHER_BRIDGE };
    struct launch_bridge_words words;
    struct error err;
    memset(request.partitions, 'a', sizeof request.partitions);
    assert_int_equal(launch_bridge_read(&any, &request, &words, &err), -EINVAL);
    memset(request.partitions, 0, sizeof request.partitions);
    memset(request.driver, 'a', sizeof request.driver);
    assert_int_equal(launch_bridge_read(&any, &request, &words, &err), -EINVAL);
}

static void without_a_program_nothing_is_started(void **state)
{
    const struct launch_bridge_setup none = { 0 };
    assert_string_equal(read_request(&none, "", "gpu"), "refused");
}

RUN_CASES(CASE(a_driver_and_partitions_become_arguments),
          CASE(nothing_but_names_is_accepted),
          CASE(only_partitions_of_its_own_command_line_are_allowed),
          CASE(so_many_partitions_and_no_more), CASE(texts_without_an_end_are_refused),
          CASE(without_a_program_nothing_is_started));
