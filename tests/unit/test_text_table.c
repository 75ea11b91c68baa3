/* Tables of text: their width, columns that are cut, empty columns that are left out. */
#include "support/cases.h"

#include <string.h>

#include "cmd/berth/terminal.h"
#include "cmd/berth/text_table.h"

static const struct text_table_column columns[] = {
    { "ID", .right = true }, { "NAME", .min = 4 }, { "LOSS" }, { "REASON", .min = 6 }
};

static void print(struct text_table *table, uint32_t width, bool colour, char *text,
                  size_t size)
{
    FILE *file = fmemopen(text, size, "w");
    text_table_print(table, file, width, colour);
    fclose(file);
}

static void fill(struct text_table *table)
{
    text_table_init(table, columns, 4);
    text_table_add(table, "%d", 7);
    text_table_add(table, "%s", "größer");
    text_table_add(table, "%s", "");
    text_table_add(table, "%s", "waits for room");
    text_table_add(table, "%d", 12);
    text_table_set_colour(table, "31");
    text_table_add(table, "%s", "a\033[31mb");
    text_table_add(table, "%s", "");
    text_table_add(table, "%s", "");
}

static void columns_line_up_and_empty_ones_are_left_out(void **state)
{
    struct text_table table;
    char text[512] = "";
    fill(&table);
    print(&table, 0, false, text, sizeof text);
    assert_string_equal(text, "ID  NAME     REASON\n"
                              " 7  größer   waits for room\n"
                              "12  a?[31mb\n");
    text_table_release(&table);
}

static void a_name_controls_no_terminal(void **state)
{
    static const struct {
        const char *text, *safe;
    } names[] = {
        { "a\033[31mb\rc\177", "a?[31mb?c?" },
        { "a\302\23331mb", "a?31mb" },
        { "\u202eevil\u2069.", "?evil?." },
        { "gr\u00f6\u00dfer \u20ac\u2026\u00a0",
          "gr\u00f6\u00dfer \u20ac\u2026\u00a0" },
        { "cut \xe2\x80", "cut \xe2\x80" },
        { "", "" },
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char text[64];
        snprintf(text, sizeof text, "%s", names[i].text);
        terminal_make_safe(text);
        assert_string_equal(text, names[i].safe);
    }
}

static void wide_tables_are_cut(void **state)
{
    struct text_table table;
    char text[512] = "";
    fill(&table);
    print(&table, 20, false, text, sizeof text);
    for (char *save, *line = strtok_r(text, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save))
        assert_true(terminal_text_length(line) <= 20);
    text_table_release(&table);
}

static void spare_columns_are_left_out_before_lines_break(void **state)
{
    static const struct text_table_column spared[] = {
        { "ID" }, { "USER", .spare = 1 }, { "CLASS", .spare = 2 }, { "STATE", .min = 4 }
    };
    struct text_table table;
    char text[512] = "";
    text_table_init(&table, spared, 4);
    for (int i = 0; i < 4; i++)
        text_table_add(&table, "%s", i < 3 ? "word" : "RUNNING");
    print(&table, 20, false, text, sizeof text);
    assert_string_equal(text, "ID    USER  STATE\n"
                              "word  word  RUNNING\n");
    memset(text, 0, sizeof text);
    print(&table, 11, false, text, sizeof text);
    assert_string_equal(text, "ID    STATE\n"
                              "word  RUNN…\n");
    text_table_release(&table);
}

static void colours_are_used_on_request(void **state)
{
    struct text_table table;
    char text[512] = "";
    fill(&table);
    print(&table, 0, true, text, sizeof text);
    assert_non_null(strstr(text, "\033[31m12\033[0m"));
    text_table_release(&table);
}

static void add_row(struct text_table *table, int id, const char *name)
{
    text_table_clear(table);
    text_table_add(table, "%d", id);
    text_table_add(table, "%s", name);
    text_table_add(table, "%s", "");
    text_table_add(table, "%s", "");
}

static void a_long_table_says_its_titles_again_where_it_becomes_wider(void **state)
{
    struct text_table table;
    char text[512] = "";
    text_table_init(&table, columns, 4);
    add_row(&table, 1, "name");
    print(&table, 0, false, text, sizeof text);
    assert_string_equal(text, "ID  NAME\n 1  name\n");
    add_row(&table, 2, "x");
    print(&table, 0, false, text, sizeof text);
    assert_string_equal(text, " 2  x\n");
    add_row(&table, 300, "x");
    print(&table, 0, false, text, sizeof text);
    assert_string_equal(text, " ID  NAME\n300  x\n");
    add_row(&table, 4, "x");
    print(&table, 0, false, text, sizeof text);
    assert_string_equal(text, "  4  x\n");
    text_table_release(&table);
}

RUN_CASES(TEST(a_long_table_says_its_titles_again_where_it_becomes_wider),
          TEST(columns_line_up_and_empty_ones_are_left_out),
          TEST(a_name_controls_no_terminal), TEST(wide_tables_are_cut),
          TEST(spare_columns_are_left_out_before_lines_break),
          TEST(colours_are_used_on_request));
