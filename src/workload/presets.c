/* presets.c - the list of all generators. */
#include <string.h>

#include "workload/preset.h"

extern const struct preset preset_synthetic, preset_fitgpp, preset_xion, preset_gavel,
    preset_jpas, preset_slaq, preset_mixed, preset_lab, preset_industry, preset_sweeps,
    preset_box;

const struct preset *const preset_list[] = {
    &preset_synthetic, &preset_mixed,  &preset_fitgpp, &preset_xion,
    &preset_gavel,     &preset_jpas,   &preset_slaq,   &preset_lab,
    &preset_industry,  &preset_sweeps, &preset_box,    NULL,
};

const struct preset *preset_find(const char *name)
{
    for (const struct preset *const *p = preset_list; *p; p++)
        if (strcmp((*p)->name, name) == 0)
            return *p;
    return NULL;
}
