/* fuzz.h - what the fuzz targets share. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* The entry that libFuzzer and driver.c call; always returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

/* Read a workload in that format to its end and check what every job must be. */
void fuzz_format(const char *format, const uint8_t *bytes, size_t count);
