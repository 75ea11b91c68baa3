/* fuzz_pai.c - the format 'pai'. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    fuzz_format("pai", bytes, count);
    return 0;
}
