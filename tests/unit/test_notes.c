/* What a job writes down of its progress: the newest line that makes sense. */
#include "support/cases.h"

#include <math.h>
#include <string.h>

#include "daemon/notes.h"

static bool read_text(const char *text, struct note *note)
{
    return notes_read(text, strlen(text), note);
}

static void the_newest_line_counts(void **state)
{
    struct note note;
    assert_true(read_text("5 2.5\n40 0.25 100\n", &note));
    assert_true(note.step == 40 && note.loss == 0.25 && note.total == 100);
    assert_true(isnan(note.saved));
    assert_true(read_text("7\n", &note));
    assert_true(note.step == 7 && isnan(note.loss) && isnan(note.total));
    assert_true(read_text("7,-,20\r\n", &note));
    assert_true(note.step == 7 && isnan(note.loss) && note.total == 20);
}

static void a_line_without_its_end_is_not_there_yet(void **state)
{
    struct note note;
    assert_true(read_text("5 2.5\n40 0.2", &note));
    assert_true(note.step == 5);
    assert_false(read_text("5 2.5", &note));
    assert_false(read_text("", &note));
}

static void what_makes_no_sense_is_passed_over(void **state)
{
    struct note note;
    assert_true(read_text("3 1\nloss is nan\n-4 1\n1e99 2\n\n", &note));
    assert_true(note.step == 3);
    assert_true(read_text("3 inf 0\n", &note));
    assert_true(note.step == 3 && isnan(note.loss) && isnan(note.total));
    assert_false(notes_read("3\0 1\n", 6, &note));
    static char longer[1000];
    memset(longer, '1', sizeof longer - 2);
    longer[sizeof longer - 2] = '\n';
    assert_false(read_text(longer, &note));
}

RUN_CASES(TEST(the_newest_line_counts), TEST(a_line_without_its_end_is_not_there_yet),
          TEST(what_makes_no_sense_is_passed_over));
