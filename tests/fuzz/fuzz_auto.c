/* fuzz_auto.c - recognising a format by content. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    fuzz_format("auto", bytes, count);
    return 0;
}
