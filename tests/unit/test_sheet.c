/* Sheets: as wide as they need to be, cut where they may be, empty columns left out. */
#include "support/cases.h"

#include <string.h>

#include "cmd/berth/sheet.h"

static const struct sheet_column columns[] = {
    { "ID", .right = true }, { "NAME", .min = 4 }, { "LOSS" }, { "REASON", .min = 6 }
};

static void print(const struct sheet *sheet, uint32_t width, bool colour, char *text,
                  size_t size)
{
    FILE *file = fmemopen(text, size, "w");
    sheet_print(sheet, file, width, colour);
    fclose(file);
}

static void fill(struct sheet *sheet)
{
    sheet_init(sheet, columns, 4);
    sheet_add(sheet, "%d", 7);
    sheet_add(sheet, "%s", "größer");
    sheet_add(sheet, "%s", "");
    sheet_add(sheet, "%s", "waits for room");
    sheet_add(sheet, "%d", 12);
    sheet_colour(sheet, "31");
    sheet_add(sheet, "%s", "a\033[31mb");
    sheet_add(sheet, "%s", "");
    sheet_add(sheet, "%s", "");
}

static void columns_line_up_and_empty_ones_are_left_out(void **state)
{
    struct sheet sheet;
    char text[512] = "";
    fill(&sheet);
    print(&sheet, 0, false, text, sizeof text);
    assert_string_equal(text, "ID  NAME     REASON\n"
                              " 7  größer   waits for room\n"
                              "12  a?[31mb\n");
    sheet_release(&sheet);
}

static void what_is_too_wide_is_cut(void **state)
{
    struct sheet sheet;
    char text[512] = "";
    fill(&sheet);
    print(&sheet, 20, false, text, sizeof text);
    for (char *save, *line = strtok_r(text, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save))
        assert_true(sheet_length(line) <= 20);
    sheet_release(&sheet);
}

static void what_can_be_spared_goes_before_lines_break(void **state)
{
    static const struct sheet_column spared[] = {
        { "ID" }, { "USER", .spare = 1 }, { "CLASS", .spare = 2 }, { "STATE", .min = 4 }
    };
    struct sheet sheet;
    char text[512] = "";
    sheet_init(&sheet, spared, 4);
    for (int i = 0; i < 4; i++)
        sheet_add(&sheet, "%s", i < 3 ? "word" : "RUNNING");
    print(&sheet, 20, false, text, sizeof text);
    assert_string_equal(text, "ID    USER  STATE\n"
                              "word  word  RUNNING\n");
    memset(text, 0, sizeof text);
    print(&sheet, 11, false, text, sizeof text);
    assert_string_equal(text, "ID    STATE\n"
                              "word  RUNN…\n");
    sheet_release(&sheet);
}

static void colours_are_only_there_when_wanted(void **state)
{
    struct sheet sheet;
    char text[512] = "";
    fill(&sheet);
    print(&sheet, 0, true, text, sizeof text);
    assert_non_null(strstr(text, "\033[31m12\033[0m"));
    sheet_release(&sheet);
}

RUN_CASES(TEST(columns_line_up_and_empty_ones_are_left_out),
          TEST(what_is_too_wide_is_cut),
          TEST(what_can_be_spared_goes_before_lines_break),
          TEST(colours_are_only_there_when_wanted));
