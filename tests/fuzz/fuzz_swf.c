/* fuzz_swf.c - the format 'swf'. */
#include "fuzz/format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_format("swf", data, size);
    return 0;
}
