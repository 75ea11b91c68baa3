/* fuzz_philly_csv.c - the format 'philly-csv'. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    fuzz_format("philly-csv", bytes, count);
    return 0;
}
