/* Progress without a client: patterns over the output, files in the checkpoint folder. */
#include "support/cases.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "run/checkpoint_watch.h"
#include "run/output_reader.h"
#include "host/pattern.h"

static void patterns_find_step_and_loss(void **state)
{
    static const struct {
        const char *pattern, *line;
        double step, loss;
    } cases[] = {
        { "step (?<step>\\d+).*loss (?<loss>[\\d.e-]+)", "step 12, loss 3.5e-1", 12,
          0.35 },
        { "(?P<loss>[0-9.]+) at (?P<step>[0-9]+)", "0.5 at 7", 7, 0.5 },
        { "iter ([0-9]+) .* ([0-9.]+)$", "iter 3 of 9 0.25", 3, 0.25 },
        { "^(?:epoch|step)=(?<step>\\d+)", "epoch=4", 4, NAN },
        { "([0-9]+)/[0-9]+ \\[", " 50%|#####   | 40/80 [00:01", 40, NAN },
        { "(a|b)x(?<loss>-?\\d+)", "bx-2", NAN, -2 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct pattern pattern;
        struct error err;
        double step, loss;
        assert_int_equal(pattern_init(&pattern, cases[i].pattern, &err), 0);
        assert_true(pattern_match(&pattern, cases[i].line, &step, &loss));
        assert_true(isnan(cases[i].step) ? isnan(step) : step == cases[i].step);
        assert_true(isnan(cases[i].loss) ? isnan(loss)
                                         : fabs(loss - cases[i].loss) < 1e-12);
        assert_false(pattern_match(&pattern, "nothing", &step, &loss));
        pattern_release(&pattern);
    }
}

static void bad_patterns_are_refused(void **state)
{
    static char huge[2000];
    memset(huge, 'a', sizeof huge - 1);
    const char *const bad[] = { "",         "no group", "([0-9]+",
                                "[",        "(?<step",  "(((a{99}){99}){99})",
                                "(a{201})", huge };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct pattern pattern;
        struct error err;
        if (pattern_init(&pattern, bad[i], &err) == 0)
            fail_msg("'%s' was taken", bad[i]);
    }
}

static void output_is_followed_as_it_grows(void **state)
{
    char path[] = "/tmp/berth-follow-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    struct output_reader follow;
    struct error err;
    double step = 0, loss = 0;
    dprintf(fd, "s 1\n");
    assert_int_equal(output_reader_init(&follow, "^s (\\d+)", &err), 0);
    output_reader_open(&follow, path, 4); /* after what an earlier attempt wrote */

    assert_false(output_reader_read(&follow, &step, &loss));
    dprintf(fd, "s 2\nother\ns 3\rs 4");
    assert_true(output_reader_read(&follow, &step, &loss));
    assert_near(step, 3, 0); /* the last line is not complete yet */
    dprintf(fd, "0\n");
    assert_true(output_reader_read(&follow, &step, &loss));
    assert_near(step, 40, 0);
    assert_int_equal(ftruncate(fd, 0), 0);
    lseek(fd, 0, SEEK_SET);
    dprintf(fd, "s 5\n");
    assert_true(output_reader_read(&follow, &step, &loss));
    assert_near(step, 5, 0);
    dprintf(fd, "%*d\n", OUTPUT_READER_BYTES_MAX, 1); /* more than one read takes */
    dprintf(fd, "s 6\n");
    assert_true(output_reader_read(&follow, &step, &loss));
    assert_near(step, 6, 0);

    output_reader_release(&follow);
    close(fd);
    unlink(path);
}

static void write_in(const char *folder, const char *name)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "x", 1), 1);
    close(fd);
}

static void written_checkpoints_are_noticed(void **state)
{
    char path[] = "/tmp/berth-folder-XXXXXX", inner[64], command[64];
    assert_non_null(mkdtemp(path));
    struct checkpoint_watch folder;
    write_in(path, "old");
    checkpoint_watch_open(&folder, path,
                          INT64_MAX / 2); /* existing files are older than that */

    assert_false(checkpoint_watch_poll(&folder));
    assert_false(checkpoint_watch_poll(&folder));
    write_in(path, "new");
    assert_true(checkpoint_watch_poll(&folder));
    assert_false(checkpoint_watch_poll(&folder));
    folder.newest_ns = 0;
    snprintf(inner, sizeof inner, "%s/step-100", path);
    assert_int_equal(mkdir(inner, 0700), 0);
    checkpoint_watch_poll(&folder);
    write_in(inner, "weights");
    assert_true(checkpoint_watch_poll(&folder));

    checkpoint_watch_release(&folder);
    snprintf(command, sizeof command, "rm -r %s", path);
    assert_int_equal(system(command), 0);
}

RUN_CASES(TEST(patterns_find_step_and_loss), TEST(bad_patterns_are_refused),
          TEST(output_is_followed_as_it_grows), TEST(written_checkpoints_are_noticed));
