/* fuzz_param.c - settings of a preset as text. */
#include "fuzz.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/param.h"
#include "workload/preset.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    const struct preset *preset = preset_find("synthetic");
    char text[512];
    size_t used = count < sizeof text ? count : sizeof text - 1;
    memcpy(text, bytes, used);
    text[used] = '\0';
    void *self = calloc(1, preset->self_size);
    assert(self);
    struct error err = { "" };
    param_defaults(preset->params, self);
    int r = param_parse(preset->params, self, preset->name, text, &err);
    assert(r == 0 || err.text[0]);
    free(self);
    return 0;
}
