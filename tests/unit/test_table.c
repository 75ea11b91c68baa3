/* Tables: as wide as they need to be, cut where they may be, empty columns left out. */
#include "support/cases.h"

#include <string.h>

#include "cmd/berth/table.h"

static const struct table_column columns[] = {
    { "ID", .right = true }, { "NAME", .min = 4 }, { "LOSS" }, { "REASON", .min = 6 }
};

static void print(const struct table *table, uint32_t width, bool colour, char *text,
                  size_t size)
{
    FILE *file = fmemopen(text, size, "w");
    table_print(table, file, width, colour);
    fclose(file);
}

static void fill(struct table *table)
{
    table_init(table, columns, 4);
    table_add(table, "%d", 7);
    table_add(table, "%s", "größer");
    table_add(table, "%s", "");
    table_add(table, "%s", "waits for room");
    table_add(table, "%d", 12);
    table_colour(table, "31");
    table_add(table, "%s", "a\033[31mb");
    table_add(table, "%s", "");
    table_add(table, "%s", "");
}

static void columns_line_up_and_empty_ones_are_left_out(void **state)
{
    struct table table;
    char text[512] = "";
    fill(&table);
    print(&table, 0, false, text, sizeof text);
    assert_string_equal(text, "ID  NAME     REASON\n"
                              " 7  größer   waits for room\n"
                              "12  a?[31mb  \n" +
                                  0);
    table_release(&table);
}

static void what_is_too_wide_is_cut(void **state)
{
    struct table table;
    char text[512] = "";
    fill(&table);
    print(&table, 20, false, text, sizeof text);
    for (char *save, *line = strtok_r(text, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save))
        assert_true(table_length(line) <= 20);
    table_release(&table);
}

static void colours_are_only_there_when_wanted(void **state)
{
    struct table table;
    char text[512] = "";
    fill(&table);
    print(&table, 0, true, text, sizeof text);
    assert_non_null(strstr(text, "\033[31m12\033[0m"));
    table_release(&table);
}

#define CASE(name) cmocka_unit_test(name)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(columns_line_up_and_empty_ones_are_left_out),
        CASE(what_is_too_wide_is_cut),
        CASE(colours_are_only_there_when_wanted),
    };
    return cmocka_run_group_tests_name("table", tests, NULL, NULL);
}
