/* fuzz_acme.c - the format 'acme'. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    fuzz_format("acme", bytes, count);
    return 0;
}
