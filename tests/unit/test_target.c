/* Addresses and ids: what is taken, what is refused; and the token's file. */
#include "support/cases.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/error.h"
#include "http/target.h"
#include "http/token.h"

static void a_target_is_decoded(void **state)
{
    struct arena arena;
    arena_init(&arena, 4096);
    struct target target;
    struct error err;
    assert_int_equal(
        target_read(&target, &arena,
                    "/v1/jobs/%C3%A4/x?state=PENDING%2CRUNNING&name=a+b%26c&&k", &err),
        0);
    assert_string_equal(target.path, "/v1/jobs/\xc3\xa4/x");
    assert_string_equal(target_query(&target, "state"), "PENDING,RUNNING");
    assert_string_equal(target_query(&target, "name"), "a b&c");
    assert_string_equal(target_query(&target, "k"), "");
    assert_null(target_query(&target, "other"));
    assert_int_equal(target_read(&target, &arena, "/", &err), 0);
    assert_int_equal(target_read(&target, &arena, "/a?", &err), 0);
    assert_int_equal(target_read(&target, &arena, "/a/", &err), 0);
    assert_int_equal(target_read(&target, &arena, "/a/...", &err), 0);
    arena_release(&arena);
}

static void ids_are_digits_and_nothing_else(void **state)
{
    static const char *const bad[] = {
        "",
        "0",
        "01",
        "-1",
        "+1",
        " 1",
        "1 ",
        "1x",
        "0x1",
        "1e3",
        "1.0",
        "..",
        "9223372036854775808",
        "18446744073709551617",
        "99999999999999999999",
        "\xd9\xa1",
    };
    uint64_t id = 42;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(target_id(bad[i], strlen(bad[i]), &id));
    assert_int_equal(id, 42);
    assert_true(target_id("1", 1, &id));
    assert_int_equal(id, 1);
    assert_true(target_id("9223372036854775807", 19, &id));
    assert_int_equal(id, INT64_MAX);
    assert_true(target_id("12/why", 2, &id));
    assert_int_equal(id, 12);
}

static void a_token_is_made_once_and_is_private(void **state)
{
    char folder[] = "/tmp/berth-test-XXXXXX";
    assert_non_null(mkdtemp(folder));
    char path[64], first[TOKEN_CHARS + 1], second[TOKEN_CHARS + 1];
    struct error err;
    snprintf(path, sizeof path, "%s/token", folder);

    assert_int_equal(token_load(folder, first, &err), 0);
    assert_int_equal(strlen(first), TOKEN_CHARS);
    struct stat file;
    assert_int_equal(stat(path, &file), 0);
    assert_int_equal(file.st_mode & 0777, 0600);
    assert_int_equal(token_load(folder, second, &err), 0);
    assert_string_equal(first, second);

    chmod(path, 0640); /* others could have read it */
    assert_int_equal(token_load(folder, second, &err), -EPERM);
    unlink(path);
    assert_int_equal(symlink("/etc/passwd", path), 0);
    assert_int_equal(token_load(folder, second, &err), -ELOOP);
    unlink(path);
    FILE *text = fopen(path, "w");
    fputs("short\n", text);
    fclose(text);
    chmod(path, 0600);
    assert_int_equal(token_load(folder, second, &err), -EINVAL);
    unlink(path);
    assert_int_equal(token_load(folder, second, &err), 0);
    assert_string_not_equal(first, second);
    unlink(path);
    rmdir(folder);
    assert_int_equal(token_load(folder, second, &err), -ENOENT);
}

static void tasks_of_arrays_go_by_two_numbers(void **state)
{
    static const char *const bad[] = {
        "12",  "_3",   "12_",   "12_3_4", "0_3",
        "a_3", "12_x", "12_-1", "12_03",  "12_4294967296"
    };
    uint64_t array = 0;
    uint32_t index = 0;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(target_task(bad[i], strlen(bad[i]), &array, &index));
    assert_true(target_task("12_0", 4, &array, &index));
    assert_int_equal(array, 12);
    assert_int_equal(index, 0);
    assert_true(target_task("7_4294967295/why", 12, &array, &index));
    assert_int_equal(array, 7);
    assert_int_equal(index, UINT32_MAX);
}

RUN_CASES(TEST(a_target_is_decoded), TEST(ids_are_digits_and_nothing_else),
          TEST(tasks_of_arrays_go_by_two_numbers),
          TEST(a_token_is_made_once_and_is_private));
