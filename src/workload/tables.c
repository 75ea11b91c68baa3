/*
 * tables.c - sizes, run times and arrivals of jobs in public traces.
 *
 * Sizes were published in ranges; each range is represented by its largest size, which
 * is by far its most frequent one (powers of two).  The percentiles published are 1, 5,
 * 10, 25, 50, 75, 90, 95 and 99.  Below the first a run is as long as there.  The last
 * point, 100, is not the longest run, which would make the tail too heavy, but the value
 * that gives each class its published share of the GPU time.
 */
#include "workload/tables.h"

#include <math.h>
#include <stddef.h>

const uint32_t tables_gpus[TRACE_SIZES] = { 1, 2, 4, 8, 16, 32, 64 };
const uint32_t tables_class[TRACE_SIZES] = { 0, 1, 1, 2, 3, 4, 4 };

const double tables_points[TRACE_POINTS] = { 0,    0.01, 0.05, 0.10, 0.25, 0.50,
                                             0.75, 0.90, 0.95, 0.99, 1 };

const struct trace_tables tables_traces[] = {
    {
        .name = "philly",
        .size_share = { 93.28, 2.18, 2.27, 1.93, 0.24, 0.09, 0.01 },
        .run_s = {
            { 32, 32, 55, 64, 168, 1299, 2836, 9019, 20074, 132062, 606000 },
            { 7, 7, 12, 15, 22, 408, 47350, 161459, 216909, 597733, 2750674 },
            { 38, 38, 92, 200, 1257, 21582, 160006, 267629, 414077, 804507, 2286000 },
            { 28, 28, 42, 75, 385, 32017, 160104, 247398, 340904, 1198059, 1422000 },
            { 299, 299, 345, 422, 960, 3718, 48361, 59941, 74759, 154237, 1620000 },
        },
        .hour_share = { 5.4, 4.2, 5.0, 4.9, 2.8, 4.9, 7.0, 8.8, 4.6, 4.2, 3.7, 3.3,
                        2.7, 2.8, 2.2, 2.4, 3.9, 2.9, 3.4, 3.0, 4.5, 3.9, 5.0, 4.4 },
        .hour_shape = 0.3,
        .batch_share = 0.58,
    },
    {
        .name = "helios",
        .size_share = { 51.86, 5.54, 7.41, 25.17, 4.15, 3.61, 2.24 },
        .run_s = {
            { 1, 1, 6, 17, 67, 190, 1179, 8425, 33378, 172800, 172800 },
            { 1, 1, 6, 15, 63, 193, 1837, 43907, 121997, 172800, 172800 },
            { 1, 1, 8, 26, 98, 216, 1150, 25578, 65843, 172800, 172800 },
            { 1, 1, 6, 20, 105, 414, 11870, 62150, 113307, 172800, 172800 },
            { 1, 1, 5, 6, 43, 182, 939, 29629, 99157, 172800, 172800 },
        },
        .hour_share = { 3.7, 2.7, 2.5, 1.6, 1.1, 0.9, 0.8, 0.9, 1.6, 3.3, 5.4, 6.1,
                        4.9, 5.4, 6.5, 6.9, 7.2, 7.2, 5.3, 5.5, 5.6, 5.7, 4.8, 4.3 },
        .hour_shape = 1.0,
        .batch_share = 0.26,
    },
    {
        .name = "pai",
        .size_share = { 77.01, 3.08, 2.92, 3.20, 6.23, 4.14, 3.41 },
        .run_s = {
            { 18, 18, 25, 35, 94, 467, 3186, 10792, 20166, 58458, 115800 },
            { 24, 24, 45, 57, 153, 538, 2631, 11260, 31587, 98887, 115100 },
            { 46, 46, 66, 81, 190, 1369, 6353, 19383, 39959, 146904, 146904 },
            { 59, 59, 103, 161, 331, 1294, 4520, 16336, 27988, 73073, 86700 },
            { 36, 36, 103, 185, 673, 2547, 7841, 20533, 37199, 83556, 83556 },
        },
        .hour_share = { 2.6, 3.4, 3.8, 4.0, 5.0, 3.9, 3.5, 4.9, 5.4, 4.4, 4.2, 4.2,
                        4.6, 4.3, 4.8, 4.7, 4.0, 3.9, 3.6, 2.9, 2.9, 6.2, 4.5, 4.1 },
        .hour_shape = 1.5,
        .batch_share = 0.31,
    },
};

const char *const tables_names[] = { "philly", "helios", "pai", NULL };

double tables_run_s(const struct trace_tables *trace, uint32_t class, double q)
{
    const double *run_s = trace->run_s[class];
    uint32_t i = 1;
    while (i < TRACE_POINTS - 1 && q > tables_points[i])
        i++;
    double along =
        (q - tables_points[i - 1]) / (tables_points[i] - tables_points[i - 1]);
    return run_s[i - 1] * pow(run_s[i] / run_s[i - 1], along);
}
