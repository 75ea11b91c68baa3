/* fuzz_swf.c - the format 'swf'. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    fuzz_format("swf", bytes, count);
    return 0;
}
