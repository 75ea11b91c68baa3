/* fuzz_helios.c - the format 'helios'. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    fuzz_format("helios", bytes, count);
    return 0;
}
