/* Any bytes as words of a supervisor, as an order, as a pattern: read, or refused. */
#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "host/launch_order.h"
#include "host/run_protocol.h"
#include "host/pattern.h"

static bool as_line(void *context, char *text)
{
    struct run_end end;
    if (run_end_read(&end, text)) {
        char again[RUN_LINE_MAX];
        struct run_end same;
        run_end_write(&end, again, sizeof again);
        assert(run_end_read(&same, again));
        assert(same.how == end.how && same.code == end.code);
        assert(isfinite(end.steps) && isfinite(end.saved));
    }
    struct pattern pattern;
    struct error err = { "" };
    double step, loss;
    if (pattern_init(&pattern, text, &err) == 0) {
        pattern_match(&pattern, "step 12 of 100, loss 0.5", &step, &loss);
        pattern_release(&pattern);
    } else {
        assert(err.text[0] != '\0');
    }
    return true;
}

static void as_order(char *bytes, size_t size)
{
    struct launch_order order;
    struct error err = { "" };
    if (launch_order_read(&order, bytes, size, &err) < 0) {
        assert(err.text[0] != '\0');
        return;
    }
    assert(order.launch.script || order.launch.argv[0]);
    assert(order.denied_count <= LAUNCH_DENIED_MAX);
    launch_order_release(&order);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct run_lines lines = { .count = 0 };
    run_lines_add(&lines, (const char *)data, size, RUN_LINE_MAX, as_line, NULL);
    char *bytes = malloc(size + 1);
    assert(bytes);
    memcpy(bytes, data, size);
    bytes[size] = '\0';
    as_order(bytes, size);
    free(bytes);
    return 0;
}
