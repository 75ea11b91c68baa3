/* fuzz_berth.c - the format 'berth'. */
#include "fuzz/format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_format("berth", data, size);
    return 0;
}
