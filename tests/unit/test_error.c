/* Errors: a code and a sentence. */
#include "support/cases.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"

static void failing_is_one_statement(void **state)
{
    struct error err;
    assert_int_equal(error_set(&err, -EINVAL, "node %u: no such GPU type", 7), -EINVAL);
    assert_string_equal(err.text, "node 7: no such GPU type");
}

static void nobody_has_to_read_it(void **state)
{
    assert_int_equal(error_set(NULL, -ENOENT, "%s", "unread"), -ENOENT);
}

static void a_long_sentence_is_cut_not_spilled(void **state)
{
    struct error err;
    error_set(&err, -EINVAL, "%0*d", (int)sizeof err.text * 2, 1);
    assert_int_equal(strlen(err.text), sizeof err.text - 1);
}

RUN_CASES(TEST(failing_is_one_statement), TEST(nobody_has_to_read_it),
          TEST(a_long_sentence_is_cut_not_spilled));
