/* fuzz_sacct.c - the format 'sacct'. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    fuzz_format("sacct", bytes, count);
    return 0;
}
