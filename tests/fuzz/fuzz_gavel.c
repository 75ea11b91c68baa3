/* fuzz_gavel.c - the format 'gavel'. */
#include "fuzz/format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_format("gavel", data, size);
    return 0;
}
