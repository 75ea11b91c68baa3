/* Places: what the environment says, and what holds without it. */
#include "support/cases.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/paths.h"
#include "base/error.h"

static char path[PATHS_MAX];
static struct error err;

static void the_state_folder_is_where_others_put_theirs(void **state)
{
    setenv("XDG_STATE_HOME", "/x/state", 1);
    assert_int_equal(paths_state(path, sizeof path, &err), 0);
    assert_string_equal(path, "/x/state/berth");
    setenv("XDG_STATE_HOME", "relative", 1); /* does not count */
    setenv("HOME", "/x/ada", 1);
    assert_int_equal(paths_state(path, sizeof path, &err), 0);
    assert_string_equal(path, "/x/ada/.local/state/berth");
}

static void the_socket_is_in_the_runtime_folder(void **state)
{
    char want[64];
    setenv("XDG_RUNTIME_DIR", "/x/run", 1);
    assert_int_equal(paths_socket(path, sizeof path, &err), 0);
    assert_string_equal(path, "/x/run/berth/api.sock");
    unsetenv("XDG_RUNTIME_DIR");
    snprintf(want, sizeof want, "/tmp/berth-%u/api.sock", (unsigned)getuid());
    assert_int_equal(paths_socket(path, sizeof path, &err), 0);
    assert_string_equal(path, want);
}

static void a_path_that_is_too_long_is_refused(void **state)
{
    setenv("XDG_RUNTIME_DIR", "/x/run", 1);
    assert_int_equal(paths_socket(path, 8, &err), -ENAMETOOLONG);
}

static void a_state_folder_of_ones_own_has_its_own_socket(void **state)
{
    assert_int_equal(paths_socket_of(path, sizeof path, "/x/s", &err), 0);
    assert_string_equal(path, "/x/s/run/api.sock");
}

static void a_long_state_folder_names_another_socket(void **state)
{
    char folder[160] = "/tmp/berth-place-XXXXXX", file[200], name[121];
    assert_non_null(mkdtemp(folder));
    memset(name, 'n', 120);
    name[120] = '\0';
    size_t count = strlen(folder);
    snprintf(folder + count, sizeof folder - count, "/%s", name);
    assert_int_equal(mkdir(folder, 0700), 0);
    snprintf(file, sizeof file, "%s/run.path", folder);
    FILE *out = fopen(file, "we");
    fputs("/tmp/short\n", out);
    fclose(out);
    assert_int_equal(paths_socket_of(path, sizeof path, folder, &err), 0);
    assert_string_equal(path, "/tmp/short/api.sock");
    unlink(file);
    rmdir(folder);
    folder[count] = '\0';
    rmdir(folder);
}

RUN_CASES(TEST(the_state_folder_is_where_others_put_theirs),
          TEST(the_socket_is_in_the_runtime_folder),
          TEST(a_path_that_is_too_long_is_refused),
          TEST(a_state_folder_of_ones_own_has_its_own_socket),
          TEST(a_long_state_folder_names_another_socket));
