/* fuzz_acme.c - the format 'acme'. */
#include "fuzz/format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_format("acme", data, size);
    return 0;
}
