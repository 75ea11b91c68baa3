/* fuzz_curves.c - learning curves in CSV, and what is made of them. */
#include <assert.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/error.h"
#include "predict/curve.h"
#include "workload/curves.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_one(const struct curves_one *one)
{
    static struct curve curve;
    bool predictable;
    curve_init(&curve, NULL);
    for (uint32_t i = 0; i < one->count; i++) {
        bool good = curve_add(&curve, one->step[i], one->value[i]);
        assert(good);
    }
    curve_check(&curve);
    struct forecast forecast = curve_forecast(&curve, 10, &predictable);
    assert(isfinite(forecast.value));
    assert(isfinite(forecast.low));
    assert(isfinite(forecast.high));
    assert(forecast.low <= forecast.high);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct curves curves;
    struct curves_one one;
    struct error err = { "" };
    int r = curves_open_memory(&curves, "input", data, size, &err);
    if (r == 0) {
        while ((r = curves_next(&curves, &one, &err)) > 0)
            try_one(&one);
        curves_release(&curves);
    }
    assert(r == 0 || err.text[0] != '\0');
    assert(!strchr(err.text, '\n'));
    return 0;
}
