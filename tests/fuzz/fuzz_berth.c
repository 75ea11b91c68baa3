/* fuzz_berth.c - the format 'berth'. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    fuzz_format("berth", bytes, count);
    return 0;
}
