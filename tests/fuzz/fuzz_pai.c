/* fuzz_pai.c - the format 'pai'. */
#include "fuzz/format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_format("pai", data, size);
    return 0;
}
