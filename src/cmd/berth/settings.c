/* settings.c - printing the settings of policies and of workload presets. */
#include "cmd/berth/settings.h"

#include "base/buf.h"
#include "base/param.h"
#include "cmd/berth/terminal.h"
#include "workload/preset.h"

void settings_print_headline(const char *name, const char *brief, FILE *file)
{
    char line[256];
    snprintf(line, sizeof line, "%s - %s", name, brief);
    terminal_print_wrapped(line, 0, file);
}

void settings_print(const struct field *params, FILE *file)
{
    for (const struct field *p = params; p && p->name; p++) {
        struct buf text;
        char left[64];
        char min[24];
        char max[24];
        buf_init(&text, 4096);
        snprintf(left, sizeof left, "%s=%s", p->name, p->standard);
        buf_text(&text, p->brief);
        if (p->unit)
            buf_print(&text, " (%s)", p->unit);
        if (p->min != 0 || p->max != 0)
            buf_print(&text, ", %s to %s", field_show_number(min, sizeof min, p->min),
                      field_show_number(max, sizeof max, p->max));
        for (uint32_t i = 0; p->type == FIELD_CHOICE && p->choices[i]; i++)
            buf_print(&text, "%s%s", i ? "|" : ": ", p->choices[i]);
        fprintf(file, "  %-22s ", left);
        terminal_print_wrapped(text.bytes, 25, file);
        buf_release(&text);
    }
}

void settings_print_presets(FILE *file)
{
    for (const struct preset *const *p = preset_list; *p; p++) {
        if (p != preset_list)
            fputc('\n', file);
        settings_print_headline((*p)->name, (*p)->brief, file);
        settings_print((*p)->params, file);
    }
}
