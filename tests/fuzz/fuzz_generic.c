/* fuzz_generic.c - the format 'generic'. */
#include "fuzz/format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_format("generic", data, size);
    return 0;
}
