/* bench_live.h - what the parts of 'berth bench live' share. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lab/scratch.h"

struct bench;
struct json;

#define SAMPLES_MAX 20000

/* Times of one kind, in milliseconds. */
struct samples {
    double ms[SAMPLES_MAX];
    uint32_t count;
};

void samples_add(struct samples *samples, double ms);

/* The q-th of them, 0..1; sorts them. */
double samples_at(struct samples *samples, double q);

/* Rows "ID.p50" and "ID.p99", in milliseconds. */
void samples_rows(struct samples *samples, struct bench *bench, const char *id);

/* A berthd with so many slots ("slot:8"), started. */
int live_bench_open(struct scratch *scratch, const char *const *args,
                    struct error *err);

/* A request: best effort, one slot, with these words. */
struct json *live_bench_request(const char *const *words);

/* The same request so many times, at once. */
int live_bench_batch(struct scratch *scratch, const char *const *words, uint32_t count,
                     struct error *err);

/* Wait until so many are waiting or running, looking every 2 ms. */
int live_bench_settle(struct scratch *scratch, uint32_t left, double within_s,
                      struct error *err);

/* The second half: jobs that really run. */
int bench_live_jobs(struct bench *bench, struct error *err);
