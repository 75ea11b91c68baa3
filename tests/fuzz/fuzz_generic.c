/* fuzz_generic.c - the format 'generic'. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    fuzz_format("generic", bytes, count);
    return 0;
}
