/* Any bytes as a pattern, up to the first line end, and as a line after it: read, or refused. */
#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "host/pattern.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void match_line(const struct pattern *pattern, const char *line)
{
    double step = 0, loss = 0;
    if (!pattern_match(pattern, line, &step, &loss))
        return;
    assert(isnan(step) || (isfinite(step) && step >= 0));
    assert(isnan(loss) || isfinite(loss));
    assert(!isnan(step) || !isnan(loss));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    assert(text);
    memcpy(text, data, size);
    text[size] = '\0';
    char *line = text + strcspn(text, "\n");
    if (*line)
        *line++ = '\0';

    struct pattern pattern;
    struct error err = { "" };
    int r = pattern_init(&pattern, text, &err);
    assert(r == 0 || err.text[0] != '\0');
    assert(r == pattern_check(text, NULL));
    if (r == 0) {
        match_line(&pattern, line);
        pattern_release(&pattern);
    }
    free(text);
    return 0;
}
