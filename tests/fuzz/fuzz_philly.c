/* fuzz_philly.c - the format 'philly'. */
#include "fuzz/format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_format("philly", data, size);
    return 0;
}
