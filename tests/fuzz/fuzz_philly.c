/* fuzz_philly.c - the format 'philly'. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    fuzz_format("philly", bytes, count);
    return 0;
}
