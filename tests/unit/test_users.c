/* Users by their number, as this system has them. */
#include "support/cases.h"

#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <uv.h>

#include "daemon/users.h"

static uv_loop_t loop;
#define OTHER 1 /* a user of every system, with a group of its own */

static struct users *users;
static int loads;

static void on_loaded(void *context)
{
    loads++;
}

static int setup(void **state)
{
    loads = 0;
    uv_loop_init(&loop);
    users = users_new(&loop, on_loaded, NULL);
    return 0;
}

static int teardown(void **state)
{
    users_free(users);
    uv_run(&loop, UV_RUN_DEFAULT);
    return uv_loop_close(&loop);
}

static void a_user_is_in_its_groups_and_in_no_others(void **state)
{
    users_load(users, OTHER);
    const struct group *own = getgrgid(getpwuid(OTHER)->pw_gid);
    assert_non_null(own);
    char longer[80], shorter[80];
    snprintf(longer, sizeof longer, "%sx", own->gr_name);
    snprintf(shorter, sizeof shorter, "%.*s", (int)strlen(own->gr_name) - 1,
             own->gr_name);
    assert_true(users_in_group(users, OTHER, own->gr_name));
    assert_false(users_in_group(users, OTHER, longer));
    assert_false(users_in_group(users, OTHER, shorter));
    assert_false(users_in_group(users, OTHER, own->gr_name + 1));
    assert_false(users_in_group(users, OTHER, ""));
}

static void groups_are_looked_up_outside_the_loop(void **state)
{
    const struct group *own = getgrgid(getpwuid(OTHER)->pw_gid);
    assert_false(users_ready(users, OTHER));
    assert_false(users_in_group(users, OTHER, own->gr_name)); /* not known yet */
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(loads, 1);
    assert_true(users_ready(users, OTHER));
    assert_true(users_in_group(users, OTHER, own->gr_name));
    assert_string_equal(users_find(users, OTHER).name, getpwuid(OTHER)->pw_name);
}

static void nobody_asks_for_the_groups_of_root(void **state)
{
    users_load(users, 0);
    assert_string_equal(users_find(users, 0).name, getpwuid(0)->pw_name);
    assert_false(users_in_group(users, 0, getgrgid(getpwuid(0)->pw_gid)->gr_name));
}

static void a_number_without_a_user_has_no_groups(void **state)
{
    users_load(users, 4000000000u);
    assert_false(users_find(users, 4000000000u).named);
    assert_string_equal(users_find(users, 4000000000u).name, "4000000000");
    assert_false(users_in_group(users, 4000000000u, getgrgid(0)->gr_name));
}

RUN_CASES(CASE(a_user_is_in_its_groups_and_in_no_others),
          CASE(groups_are_looked_up_outside_the_loop),
          CASE(nobody_asks_for_the_groups_of_root),
          CASE(a_number_without_a_user_has_no_groups));
