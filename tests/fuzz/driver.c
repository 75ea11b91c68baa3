/*
 * driver.c - run one fuzz target on its corpus and on mutants of it.
 *
 *     fuzz_NAME [FILE | FOLDER]...
 *
 * A target is the function libFuzzer knows; tools/fuzz runs it with that, in 'make soak'.
 * Without libFuzzer this main() takes every file as it is and then BERTH_FUZZ_RUNS (2000)
 * mutants, the same for the same BERTH_SEED.  The input that ends the program is left in
 * the file fuzz_NAME.input of the working folder; give it as FILE to see it again.
 *
 * With BERTH_EVIDENCE_OUT set to a file, a line of JSON with the counts is added to it.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/rng.h"

#define INPUTS_MAX 4096
#define BYTES_MAX (1u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

struct input {
    uint8_t *bytes;
    size_t count;
};

static struct input inputs[INPUTS_MAX];
static uint32_t input_count;
static struct input now; /* the input of the target */
static char left_behind[256];

static void leave_input(void)
{
    int file = open(left_behind, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (file < 0)
        return;
    if (write(file, now.bytes, now.count) == (ssize_t)now.count)
        dprintf(STDERR_FILENO, "the input is in %s\n", left_behind);
    close(file);
}

static void on_abort(int number)
{
    leave_input();
    signal(number, SIG_DFL);
    raise(number);
}

static void try_input(const uint8_t *bytes, size_t count)
{
    /* Exactly as long as it is, so that reading past its end is noticed. */
    now.bytes = malloc(count ? count : 1);
    now.count = count;
    if (!now.bytes)
        abort();
    memcpy(now.bytes, bytes, count);
    LLVMFuzzerTestOneInput(now.bytes, now.count);
    free(now.bytes);
}

static void read_file(const char *path)
{
    FILE *file = fopen(path, "re");
    if (!file || input_count == INPUTS_MAX) {
        fprintf(stderr, "%s: %s\n", path, file ? "too many files" : strerror(errno));
        exit(2);
    }
    struct input *input = &inputs[input_count++];
    input->bytes = malloc(BYTES_MAX);
    if (!input->bytes)
        abort();
    input->count = fread(input->bytes, 1, BYTES_MAX, file);
    fclose(file);
}

static void read_path(const char *path)
{
    struct dirent **entries;
    int count = scandir(path, &entries, NULL, alphasort); /* sorted: repeatable */
    if (count < 0) {
        read_file(path);
        return;
    }
    for (int i = 0; i < count; i++) {
        char name[4096];
        snprintf(name, sizeof name, "%s/%s", path, entries[i]->d_name);
        struct stat stat_of;
        if (stat(name, &stat_of) == 0 && S_ISREG(stat_of.st_mode))
            read_file(name);
        free(entries[i]);
    }
    free(entries);
}

/* What parsers stumble over. */
static const char *const tokens[] = {
    "",
    "0",
    "-1",
    "nan",
    "inf",
    "1e309",
    "18446744073709551616",
    ",",
    "\n",
    "\r\n",
    "\"",
    "\"\"",
    "\\",
    "{",
    "}",
    "[",
    "]",
    ":",
    "=",
    "%s",
    "\xff\xfe",
    "\xef\xbb\xbf",
    " ",
    "\t",
    "-0.0",
    "99999999999999999999999999",
    "null",
    "1970-01-01",
};

/* One small change in place; returns the new count. */
static size_t mutate(struct rng *rng, uint8_t *bytes, size_t count)
{
    size_t at = rng_below(rng, (uint32_t)count + 1);
    size_t span = 1 + rng_below(rng, 1u << rng_below(rng, 10));

    switch (rng_below(rng, 6)) {
    case 0: /* a bit flips */
        if (at < count)
            bytes[at] ^= (uint8_t)(1 << rng_below(rng, 8));
        return count;
    case 1: /* a byte becomes another */
        if (at < count)
            bytes[at] = (uint8_t)rng_below(rng, 256);
        return count;
    case 2: /* the rest is lost */
        return at;
    case 3: /* a piece is lost */
        if (span > count - at)
            span = count - at;
        memmove(bytes + at, bytes + at + span, count - at - span);
        return count - span;
    case 4: /* a piece is there twice */
        if (span > count - at)
            span = count - at;
        if (count + span > BYTES_MAX)
            return count;
        memmove(bytes + at + span, bytes + at, count - at);
        return count + span;
    default: { /* a token comes in */
        const char *token = tokens[rng_below(rng, sizeof tokens / sizeof *tokens)];
        size_t length = strlen(token) ? strlen(token) : 1; /* "": a NUL */
        if (count + length > BYTES_MAX)
            return count;
        memmove(bytes + at + length, bytes + at, count - at);
        memcpy(bytes + at, token, length);
        return count + length;
    }
    }
}

static void try_mutants(uint64_t seed, uint64_t run_count)
{
    struct rng rng;
    rng_init(&rng, seed, "fuzz");
    uint8_t *bytes = malloc(BYTES_MAX);
    if (!bytes)
        abort();
    for (uint64_t run = 0; run < run_count; run++) {
        const struct input *from = &inputs[rng_below(&rng, input_count)];
        size_t count = from->count;
        memcpy(bytes, from->bytes, count);
        for (uint32_t i = 1 + rng_below(&rng, 4); i > 0; i--)
            count = mutate(&rng, bytes, count);
        try_input(bytes, count);
    }
    free(bytes);
}

static uint64_t number_from(const char *name, uint64_t fallback)
{
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : fallback;
}

static void tell_survived(const char *name, uint64_t seed, uint64_t mutants)
{
    const char *path = getenv("BERTH_EVIDENCE_OUT");
    FILE *file = path ? fopen(path, "ae") : NULL;
    if (!file)
        return;
    fprintf(file,
            "{\"target\": \"%s\", \"files\": %u, \"mutants\": %llu, \"seed\": %llu, "
            "\"sanitizers\": %s}\n",
            name, input_count, (unsigned long long)mutants, (unsigned long long)seed,
            __sanitizer_set_death_callback ? "true" : "false");
    fclose(file);
}

int main(int argc, char **argv)
{
    const char *slash = strrchr(argv[0], '/');
    const char *name = slash ? slash + 1 : argv[0];
    snprintf(left_behind, sizeof left_behind, "%.200s.input", name);
    if (__sanitizer_set_death_callback)
        __sanitizer_set_death_callback(leave_input);
    signal(SIGABRT, on_abort);
    signal(SIGSEGV, on_abort);

    for (int i = 1; i < argc; i++)
        read_path(argv[i]);
    uint64_t seed = number_from("BERTH_SEED", 1);
    uint64_t run_count =
        number_from("BERTH_FUZZ_RUNS", getenv("BERTH_SOAK") ? 200000 : 2000);

    printf("1..2\n# BERTH_SEED=%llu\n", (unsigned long long)seed);
    fflush(stdout);
    for (uint32_t i = 0; i < input_count; i++)
        try_input(inputs[i].bytes, inputs[i].count);
    printf("ok 1 - corpus of %u\n", input_count);
    fflush(stdout);
    if (input_count > 0)
        try_mutants(seed, run_count);
    printf("ok 2 - %llu mutants%s\n", (unsigned long long)run_count,
           input_count > 0 ? "" : " # SKIP the corpus is empty");
    tell_survived(name, seed, input_count > 0 ? run_count : 0);
    for (uint32_t i = 0; i < input_count; i++)
        free(inputs[i].bytes);
    return 0;
}
