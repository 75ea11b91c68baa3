/* fuzz_gavel.c - the format 'gavel'. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    fuzz_format("gavel", bytes, count);
    return 0;
}
