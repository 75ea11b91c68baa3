/*
 * driver.c - runs a fuzz target without a fuzzer: the corpus as it is, then each file
 * changed at random, from a fixed seed.
 *
 *     fuzz_swf CORPUS_FOLDER [CHANGES_PER_FILE]
 *
 * With clang the same targets link against libFuzzer instead.
 */
#include "fuzz.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"

#define BYTES_MAX 65536
#define CHANGES_MAX 8

/* Bytes that parsers stumble over. */
static const char odd[] = "\0\n\r\t ,;|:\"'-+.eE09{}[]#\xff\xc3";

static size_t change(struct rng *rng, uint8_t *bytes, size_t count)
{
    size_t at = count ? rng_below(rng, (uint32_t)count) : 0;
    size_t span = count > at ? rng_below(rng, (uint32_t)(count - at)) + 1 : 0;
    span = span > 32 ? 32 : span;
    switch (rng_below(rng, 6)) {
    case 0: /* another byte */
        if (count)
            bytes[at] = (uint8_t)rng_below(rng, 256);
        return count;
    case 1: /* an odd one */
        if (count)
            bytes[at] = (uint8_t)odd[rng_below(rng, sizeof odd - 1)];
        return count;
    case 2: /* something is gone */
        memmove(bytes + at, bytes + at + span, count - at - span);
        return count - span;
    case 3: /* something is there twice */
        if (count + span > BYTES_MAX)
            return count;
        memmove(bytes + at + span, bytes + at, count - at);
        return count + span;
    case 4: /* cut short */
        return at;
    default: /* an odd byte more */
        if (count == BYTES_MAX)
            return count;
        memmove(bytes + at + 1, bytes + at, count - at);
        bytes[at] = (uint8_t)odd[rng_below(rng, sizeof odd - 1)];
        return count + 1;
    }
}

/* A copy of exact size, so that a byte read too far is seen. */
static void run(const uint8_t *bytes, size_t count)
{
    uint8_t *copy = malloc(count ? count : 1);
    if (!copy)
        abort();
    memcpy(copy, bytes, count);
    LLVMFuzzerTestOneInput(copy, count);
    free(copy);
}

static uint32_t run_file(const char *path, uint32_t changes)
{
    static uint8_t original[BYTES_MAX];
    static uint8_t bytes[BYTES_MAX];
    FILE *file = fopen(path, "rb");
    if (!file)
        return 0;
    size_t count = fread(original, 1, BYTES_MAX, file);
    fclose(file);
    run(original, count);
    struct rng rng;
    rng_init(&rng, 1, path + (strrchr(path, '/') ? strrchr(path, '/') - path : 0));
    for (uint32_t i = 0; i < changes; i++) {
        size_t n = count;
        memcpy(bytes, original, count);
        for (uint32_t c = rng_below(&rng, CHANGES_MAX) + 1; c > 0; c--)
            n = change(&rng, bytes, n);
        run(bytes, n);
    }
    return 1 + changes;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: %s CORPUS_FOLDER [CHANGES_PER_FILE]\n", argv[0]);
        return 2;
    }
    uint32_t changes = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 1000;
    struct dirent **entries;
    int count = scandir(argv[1], &entries, NULL, alphasort);
    if (count < 0) {
        perror(argv[1]);
        return 1;
    }
    uint32_t runs = 0;
    for (int i = 0; i < count; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", argv[1], entries[i]->d_name);
        if (entries[i]->d_name[0] != '.')
            runs += run_file(path, changes);
        free(entries[i]);
    }
    free(entries);
    printf("%u inputs\n", runs);
    return runs > 0 ? 0 : 1;
}
