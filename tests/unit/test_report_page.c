/* The report page: data in place of the marker, escaped, written as a whole or not at all. */
#include "support/cases.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/json.h"
#include "base/output.h"
#include "study/page.h"
#include "study/report_page.h"

static const char *page; /* stands in for the page that was built */

const char *page_get(size_t *ret_count)
{
    *ret_count = page ? strlen(page) : 0;
    return page;
}

struct scratch {
    char dir[32];
    char path[64];
    char text[1024];
    struct json *data;
    struct error err;
};

static const char *written(struct scratch *s)
{
    FILE *file = fopen(s->path, "re");
    if (!file)
        return NULL;
    size_t count = fread(s->text, 1, sizeof s->text - 1, file);
    s->text[count] = '\0';
    fclose(file);
    return s->text;
}

static int files_in(const char *path)
{
    DIR *dir = opendir(path);
    assert_non_null(dir);
    int count = 0;
    for (struct dirent *entry; (entry = readdir(dir));)
        count += entry->d_name[0] != '.';
    closedir(dir);
    return count;
}

static int write_to(struct scratch *s, const char *path)
{
    struct output output;
    int r = report_page_open(&output, path, &s->err);
    if (r == 0)
        r = report_page_write(&output, s->data, &s->err);
    output_release(&output);
    return r;
}

static void the_data_stand_where_the_marker_was(void **state)
{
    struct scratch *s = *state;
    json_put_count(s->data, "jobs", 3);

    assert_int_equal(write_to(s, s->path), 0);

    assert_string_equal(written(s), "<p>before</p>{\"jobs\":3}<p>after</p>");
    assert_int_equal(files_in(s->dir), 1);
}

static void markup_in_the_data_ends_no_element(void **state)
{
    struct scratch *s = *state;
    json_put_text(s->data, "a", "</script><script>alert(1)</script>");
    json_put_text(s->data, "b", "<!--");
    page = "@DATA@";

    assert_int_equal(write_to(s, s->path), 0);

    assert_null(strchr(written(s), '<'));
    struct json *read = NULL;
    assert_int_equal(json_parse(s->text, strlen(s->text), &read, &s->err), 0);
    assert_string_equal(json_as_text(json_get(read, "a")),
                        "</script><script>alert(1)</script>");
    assert_string_equal(json_as_text(json_get(read, "b")), "<!--");
    json_free(read);
}

static void a_marker_in_the_data_is_data(void **state)
{
    struct scratch *s = *state;
    json_put_text(s->data, "name", "@DATA@");

    assert_int_equal(write_to(s, s->path), 0);

    assert_string_equal(written(s), "<p>before</p>{\"name\":\"@DATA@\"}<p>after</p>");
}

static void an_older_report_is_replaced(void **state)
{
    struct scratch *s = *state;
    assert_int_equal(write_to(s, s->path), 0);
    json_put_flag(s->data, "new", true);

    assert_int_equal(write_to(s, s->path), 0);

    assert_non_null(strstr(written(s), "\"new\":true"));
    assert_int_equal(files_in(s->dir), 1);
}

static void a_failure_leaves_nothing_behind(void **state)
{
    struct scratch *s = *state;
    char into[96];
    snprintf(into, sizeof into, "%s/none/report.html", s->dir);
    assert_int_equal(write_to(s, into), -ENOENT);
    assert_non_null(strstr(s->err.text, "report.html: No such file"));

    assert_int_equal(write_to(s, s->dir), -EISDIR); /* no file's name */

    assert_int_equal(files_in(s->dir), 0);
    assert_int_equal(access(s->dir, F_OK), 0);
}

static void a_link_is_written_through(void **state)
{
    struct scratch *s = *state;
    char into[96];
    snprintf(into, sizeof into, "%s/behind.html", s->dir);
    assert_int_equal(symlink(into, s->path), 0);

    assert_int_equal(write_to(s, s->path), 0);
    assert_int_equal(write_to(s, s->path), 0);

    struct stat at;
    assert_int_equal(lstat(s->path, &at), 0);
    assert_true(S_ISLNK(at.st_mode));
    assert_string_equal(written(s), "<p>before</p>{}<p>after</p>");
    unlink(into);
}

/* By a link, so that a failure of this test does not cost the machine its device. */
static void a_device_is_written_to_and_its_errors_are_reported(void **state)
{
    struct scratch *s = *state;
    assert_int_equal(symlink("/dev/full", s->path), 0);

    assert_int_equal(write_to(s, s->path), -ENOSPC);

    struct stat at;
    assert_int_equal(stat(s->path, &at), 0);
    assert_true(S_ISCHR(at.st_mode));
    assert_int_equal(files_in(s->dir), 1);
}

static void without_a_page_it_says_what_to_install(void **state)
{
    struct scratch *s = *state;
    page = NULL;

    assert_int_equal(write_to(s, s->path), -ENOTSUP);
    assert_non_null(strstr(s->err.text, "nodejs and npm"));
    assert_int_equal(files_in(s->dir), 0);
}

static int setup(void **state)
{
    static struct scratch s;
    snprintf(s.dir, sizeof s.dir, "/tmp/berth-report-XXXXXX");
    if (!mkdtemp(s.dir))
        return -1;
    snprintf(s.path, sizeof s.path, "%s/report.html", s.dir);
    s.data = json_new_object();
    page = "<p>before</p>@DATA@<p>after</p>";
    *state = &s;
    return 0;
}

static int teardown(void **state)
{
    struct scratch *s = *state;
    unlink(s->path);
    json_free(s->data);
    return rmdir(s->dir);
}

RUN_CASES(CASE(the_data_stand_where_the_marker_was),
          CASE(markup_in_the_data_ends_no_element), CASE(a_marker_in_the_data_is_data),
          CASE(an_older_report_is_replaced), CASE(a_failure_leaves_nothing_behind),
          CASE(a_link_is_written_through),
          CASE(a_device_is_written_to_and_its_errors_are_reported),
          CASE(without_a_page_it_says_what_to_install));
