/* Any text as a list of settings: set as a whole, or refused with a sentence. */
#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/error.h"
#include "base/param.h"

struct settings {
    uint32_t queues;
    double weight;
    bool aware;
    int64_t round_ns;
    uint32_t order;
};

static const char *const orders[] = { "fifo", "sjf", NULL };

static const struct field params[] = {
    { "queues", FIELD_COUNT, offsetof(struct settings, queues), "2", .min = 1,
      .max = 16 },
    { "weight", FIELD_NUMBER, offsetof(struct settings, weight), "1.5" },
    { "aware", FIELD_FLAG, offsetof(struct settings, aware), "true" },
    { "round", FIELD_TIME, offsetof(struct settings, round_ns), "6m" },
    { "order", FIELD_CHOICE, offsetof(struct settings, order), "fifo",
      .choices = orders },
    { NULL },
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[4096];
    if (size >= sizeof text)
        size = sizeof text - 1;
    memcpy(text, data, size);
    text[size] = '\0';

    struct settings standard, got;
    memset(&standard, 0, sizeof standard);
    param_defaults(params, &standard);
    memcpy(&got, &standard, sizeof got);
    struct error err = { "" };
    if (param_parse(params, &got, "fuzz", text, &err) < 0) {
        assert(err.text[0] != '\0');
        assert(memcmp(&got, &standard, sizeof got) == 0);
    } else {
        assert(got.queues >= 1 && got.queues <= 16);
        assert(got.round_ns >= 0);
        assert(got.order < 2);
    }
    return 0;
}
