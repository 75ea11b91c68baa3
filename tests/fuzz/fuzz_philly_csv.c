/* fuzz_philly_csv.c - the format 'philly-csv'. */
#include "fuzz/format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_format("philly-csv", data, size);
    return 0;
}
