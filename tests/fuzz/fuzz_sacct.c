/* fuzz_sacct.c - the format 'sacct'. */
#include "fuzz/format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_format("sacct", data, size);
    return 0;
}
