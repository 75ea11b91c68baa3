/*
 * fuzz_instance.c - files of instances, read and solved.
 *
 * Solving takes a hundred times as long as reading.  So one policy is asked about a file, which
 * one depends on its bytes, and instances of many jobs are only read.
 */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/hash.h"
#include "study/instance_file.h"
#include "study/instance_shares.h"

#define SOLVED_JOBS_MAX 16

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const policies[] = {
    "gavel-las",
    "gavel-las,aware=false",
    "gavel-las,water_filling=true",
    "gavel-makespan",
    "gavel-ftf",
    "gavel-cost",
    "gavel-cost-slo",
    "gavel-cost-slo,form=released",
    "gavel-throughput",
    "gavel-las,sharing=true",
    "gavel-hierarchical",
    "isolated",
    "proportional",
    "gavel-fifo,sharing=true",
    "allox",
};

/* Whatever is read can be asked of any policy: an answer that fits, or a sentence. */
static void solve(const char *policy, const struct instance_file *file,
                  enum solve_engine engine, struct arena *arena)
{
    struct instance_policy asked;
    struct error err = { "" };
    int r = instance_policy_parse(&asked, policy, &err);
    assert(r == 0);
    if (instance_policy_check(&asked, file, &err) < 0) {
        assert(err.text[0]);
        return;
    }
    for (uint32_t i = 0; i < file->count; i++) {
        const struct instance *in = &file->instances[i];
        struct instance_answer answer;
        if (in->job_count > SOLVED_JOBS_MAX)
            continue;
        r = instance_policy_solve(&asked, in, engine, NULL, arena, &answer, &err);
        assert(r == 0 || err.text[0]);
        if (r == 0)
            for (size_t c = 0; c < (size_t)in->job_count * in->type_count; c++)
                assert(answer.shares.x[c] >= 0 && answer.shares.x[c] <= 1 + 1e-9);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena;
    struct instance_file file;
    struct error err = { "" };
    arena_init(&arena, 0);
    int r = instance_file_parse(&file, &arena, "input", (const char *)data, size, &err);
    assert(r == 0 || err.text[0]);
    if (r == 0) {
        uint64_t hash = hash_bytes(HASH_BYTES_START, data, size);
        const char *policy = policies[hash % (sizeof policies / sizeof *policies)];
        solve(policy, &file, SOLVE_FAST, &arena);
        solve(policy, &file, SOLVE_CLP, &arena);
    }
    arena_release(&arena);
    return 0;
}
