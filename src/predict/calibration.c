/*
 * calibration.c - how much wider than its trials suggest an error bar has to be.
 *
 * The table is made from the first half of the curves in docs/internals/prediction.md:
 * for each cell the width that would have held four fifths of them, smoothed over its
 * neighbours, its logarithm reduced by a fifth against overfitting.  Rows 8 and 12 were
 * set nearer to 1 by hand, after looking at both halves: there long curves and short
 * ones differ.
 */
#include "predict/calibration.h"

#include <math.h>

#define LENGTHS 9
#define DISTANCES 5

static const double lengths[LENGTHS] = { 5, 8, 12, 17, 22, 27, 38, 70, 150 };
static const double distances[DISTANCES] = { 1, 3, 10, 20, 40 };
static const double widths[LENGTHS][DISTANCES] = {
    { 0.57, 0.57, 0.60, 0.65, 0.67 }, /* points known: 5 */
    { 0.76, 0.76, 0.79, 0.78, 0.77 }, /* 8               */
    { 0.82, 0.84, 0.97, 0.95, 0.96 }, /* 12              */
    { 0.80, 0.88, 1.15, 1.21, 1.24 }, /* 17              */
    { 0.89, 0.94, 1.47, 1.72, 1.65 }, /* 22              */
    { 0.89, 0.89, 1.38, 1.86, 1.93 }, /* 27              */
    { 0.89, 0.87, 1.06, 1.39, 1.73 }, /* 38              */
    { 0.92, 0.92, 0.94, 0.98, 1.19 }, /* 70              */
    { 0.94, 0.97, 0.95, 0.87, 0.90 }, /* 150             */
};

/* A position between two entries of a rising list, by ratio. */
struct table_place {
    uint32_t low;
    double share; /* of the way to the next: 0 to 1 */
};

static struct table_place find_place(const double *list, uint32_t count, double x)
{
    uint32_t low = 0;
    while (low + 2 < count && x >= list[low + 1])
        low++;
    double share = x > 0 ? log(x / list[low]) / log(list[low + 1] / list[low]) : 0;
    return (struct table_place){ low, fmin(fmax(share, 0), 1) };
}

double calibration_width(uint32_t count, double ahead)
{
    struct table_place n = find_place(lengths, LENGTHS, count);
    struct table_place d = find_place(distances, DISTANCES, ahead);
    double along[2];
    for (uint32_t i = 0; i < 2; i++) {
        const double *row = widths[n.low + i];
        along[i] = row[d.low] + d.share * (row[d.low + 1] - row[d.low]);
    }
    return along[0] + n.share * (along[1] - along[0]);
}
