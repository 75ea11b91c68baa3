/* fuzz_helios.c - the format 'helios'. */
#include "fuzz/format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_format("helios", data, size);
    return 0;
}
