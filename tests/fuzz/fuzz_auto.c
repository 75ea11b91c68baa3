/* fuzz_auto.c - recognising a format by content. */
#include "fuzz/format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_format("auto", data, size);
    return 0;
}
