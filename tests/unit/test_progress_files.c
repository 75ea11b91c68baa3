/* Progress without a client: patterns over the output, files in the checkpoint folder. */
#include "support/cases.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "host/pattern.h"
#include "run/progress_reader.h"

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

#define OUTPUT_MAX (1 << 20) /* bytes: more than one read takes */

/* A reader for a folder of its own, with an output and a folder for checkpoints in it. */
struct reading_fixture {
    char folder[32], output[64], checkpoints[64];
    int fd, listener;
    struct progress_reader reader;
};

static void write_in(const char *folder, const char *name)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "x", 1), 1);
    close(fd);
}

static int setup(void **state)
{
    static struct reading_fixture f;
    f = (struct reading_fixture){ .folder = "/tmp/berth-reading-XXXXXX" };
    assert_non_null(mkdtemp(f.folder));
    snprintf(f.output, sizeof f.output, "%s/output", f.folder);
    snprintf(f.checkpoints, sizeof f.checkpoints, "%s/checkpoints", f.folder);
    assert_int_equal(mkdir(f.checkpoints, 0700), 0);
    write_in(f.checkpoints, "old");
    f.fd = open(f.output, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    f.listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(f.fd >= 0 && f.listener >= 0);
    dprintf(f.fd, "s 1\n"); /* of an earlier attempt */
    struct progress_reader_setup how = {
        .pattern = "^s (\\d+)",
        .output_path = f.output,
        .output_bytes = 4,
        .ckpt_dir = f.checkpoints,
        .since_ns = INT64_MAX / 2, /* existing files are older than that */
        .listener = f.listener
    };
    assert_true(progress_reader_start(&f.reader, &how));
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct reading_fixture *f = *state;
    char command[64];
    progress_reader_stop(&f->reader);
    close(f->fd);
    close(f->listener);
    snprintf(command, sizeof command, "rm -r %s", f->folder);
    assert_int_equal(system(command), 0);
    return 0;
}

/* What it has read until now and not said before. */
static struct progress_record ask_reader(struct reading_fixture *f)
{
    struct progress_record all = { .step = NAN }, record;
    uint32_t number = progress_reader_ask(&f->reader, (struct progress_warning){ 0 });
    assert_true(number > 0);
    do {
        struct pollfd ready = { f->reader.fd, POLLIN, 0 };
        assert_int_equal(poll(&ready, 1, -1), 1);
        assert_int_equal(progress_reader_receive(&f->reader, &record), 1);
        all.flags |= record.flags;
        all.step = record.flags & PROGRESS_REPORTED ? record.step : all.step;
    } while (record.answers != number);
    return all;
}

static void output_is_followed_as_it_grows(void **state)
{
    struct reading_fixture *f = *state;
    assert_false(ask_reader(f).flags & PROGRESS_REPORTED);
    dprintf(f->fd, "s 2\nother\ns 3\rs 4");
    assert_near(ask_reader(f).step, 3, 0); /* the last line is not complete yet */
    dprintf(f->fd, "0\n");
    assert_near(ask_reader(f).step, 40, 0);
    assert_int_equal(ftruncate(f->fd, 0), 0);
    lseek(f->fd, 0, SEEK_SET);
    dprintf(f->fd, "s 5\n");
    assert_near(ask_reader(f).step, 5, 0);
    dprintf(f->fd, "%*d\n", OUTPUT_MAX, 1);
    dprintf(f->fd, "s 6\n");
    assert_near(ask_reader(f).step, 6, 0);
}

static void written_checkpoints_are_noticed(void **state)
{
    struct reading_fixture *f = *state;
    char inner[80];
    assert_false(ask_reader(f).flags & PROGRESS_WRITTEN);
    assert_false(ask_reader(f).flags & PROGRESS_WRITTEN);
    write_in(f->checkpoints, "new");
    assert_true(ask_reader(f).flags & PROGRESS_WRITTEN);
    assert_false(ask_reader(f).flags & PROGRESS_WRITTEN);
    snprintf(inner, sizeof inner, "%s/step-100", f->checkpoints);
    assert_int_equal(mkdir(inner, 0700), 0);
    ask_reader(f); /* it watches the new folder from now on */
    write_in(inner, "weights");
    assert_true(ask_reader(f).flags & PROGRESS_WRITTEN);
}

RUN_CASES(TEST(patterns_find_step_and_loss), TEST(bad_patterns_are_refused),
          CASE(output_is_followed_as_it_grows), CASE(written_checkpoints_are_noticed));
