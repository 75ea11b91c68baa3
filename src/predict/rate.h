/*
 * rate.h - a job's speed: now, and with another number of GPUs.
 *
 * struct rate computes a steady throughput from uneven progress reports.  struct
 * rate_model is the run time of an iteration on a GPUs,
 *
 *     t(a) = w/a + t0      w, t0 >= 0
 *
 * by least squares over the measurements: w is work that is divided, t0 what is not,
 * such as synchronisation.  With t0 = 0 it is the model of SLAQ (SoCC 2017).
 *
 * Neither allocates; both are plain values and may be copied.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* --- throughput --------------------------------------------------------------------- */

struct rate {
    double memory_s; /* older reports count e times less, and so on */
    double weighted; /* steps per second, weighted, …                      */
    double weight;   /* … and the weights                                  */
    int64_t last_ns; /* time and step of the last report that was counted  */
    double last_step;
    bool begun; /* there was a report */
};

/* 'memory_s' is above 0. */
void rate_init(struct rate *rate, double memory_s);

/*
 * The job had made so many steps at that time.  Between two reports it is assumed to
 * progress evenly, so it does not matter how often it reports.  Steps that go back are
 * a restart: counting begins anew there.  A report of a time already seen changes
 * nothing.
 */
void rate_report(struct rate *rate, int64_t time_ns, double step);

/* Steps per second; 0 while nothing is known. */
double rate_per_s(const struct rate *rate);

/* --- time by size ------------------------------------------------------------------- */

#define RATE_SIZES_MAX 8

struct rate_size {
    double gpus;
    double mean_s; /* of an iteration, newer ones weighing more */
    double weight; /* iterations' worth, at most a few          */
};

struct rate_model {
    struct rate_size sizes[RATE_SIZES_MAX];
    uint32_t size_count;
    double work_s, fixed_s; /* w and t0 */
};

static inline void rate_model_init(struct rate_model *model)
{
    *model = (struct rate_model){ 0 };
}

/*
 * An iteration took 'seconds' on that many GPUs.  One that took many times as long as
 * usual, as while a checkpoint is written, counts as a few times.  With one size seen, all
 * is taken to be divided.  Returns false, and changes nothing, unless both are finite and
 * above 0.
 */
bool rate_model_add(struct rate_model *model, double gpus, double seconds);
