/* loss_groups.c - GPU-time by how much the jobs that hold it have left to learn. */
#include "metrics/loss_groups.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"

#define CLASSES_PER_OCTAVE 4
#define JOBS_LEAST 4 /* at once, so that a quarter of them is a job */

static const double quota[LOSS_GROUPS] = {
    [LOSS_HIGH] = 0.25, [LOSS_MEDIUM] = 0.25, [LOSS_LOW] = 0.5
};

void loss_groups_init(struct loss_groups *groups)
{
    *groups = (struct loss_groups){ .bin_ns = 1000000000 };
}

void loss_groups_release(struct loss_groups *groups)
{
    free(groups->bins);
    groups->bins = NULL;
}

/* The highest losses are in class 0. */
static uint32_t class_of(double loss)
{
    if (!(loss > 0))
        return LOSS_CLASSES - 1;
    double at = floor(-log2(loss) * CLASSES_PER_OCTAVE);
    return (uint32_t)fmin(fmax(at, 0), LOSS_CLASSES - 1);
}

/* Each two bins become one. */
static void merge_bins(struct loss_groups *groups)
{
    for (uint32_t i = 0; i < LOSS_BINS; i++)
        for (uint32_t c = 0; c < LOSS_CLASSES; c++) {
            struct loss_cell cell = groups->bins[i][c];
            groups->bins[i][c] = (struct loss_cell){ 0, 0 };
            groups->bins[i / 2][c].job_s += cell.job_s;
            groups->bins[i / 2][c].gpu_s += cell.gpu_s;
        }
    groups->bin_ns *= 2;
}

static void extend_bins(struct loss_groups *groups, int64_t to_ns)
{
    if (!groups->bins)
        groups->bins = memory_checked(calloc(LOSS_BINS, sizeof *groups->bins));
    while (to_ns > groups->bin_ns * LOSS_BINS)
        merge_bins(groups);
}

void loss_groups_add(struct loss_groups *groups, int64_t from_ns, int64_t to_ns,
                     double loss_from, double loss_to, double gpus)
{
    double span_ns = (double)(to_ns - from_ns);
    extend_bins(groups, to_ns);
    for (int64_t at_ns = from_ns; at_ns < to_ns;) {
        int64_t bin = at_ns / groups->bin_ns;
        int64_t end_ns = (bin + 1) * groups->bin_ns;
        end_ns = end_ns < to_ns ? end_ns : to_ns;
        double middle = ((double)(at_ns - from_ns) + (double)(end_ns - from_ns)) / 2;
        double loss = loss_from + (loss_to - loss_from) * middle / span_ns;
        struct loss_cell *cell = &groups->bins[bin][class_of(loss)];
        double s = (double)(end_ns - at_ns) * 1e-9;
        cell->job_s += s;
        cell->gpu_s += gpus * s;
        at_ns = end_ns;
    }
}

/* Divide the GPU-time of one bin among the groups; a class may be in more than one. */
static void share_bin(const struct loss_cell cells[LOSS_CLASSES], double job_s,
                      double gpu_s[LOSS_GROUPS])
{
    uint32_t group = 0;
    double room_s = quota[0] * job_s;
    for (uint32_t c = 0; c < LOSS_CLASSES; c++) {
        double left_s = cells[c].job_s;
        while (left_s > 0) {
            bool last = group + 1 == LOSS_GROUPS;
            double take_s = last ? left_s : fmin(left_s, room_s);
            gpu_s[group] += cells[c].gpu_s * (take_s / cells[c].job_s);
            left_s -= take_s;
            room_s -= take_s;
            if (!last && room_s <= 0)
                room_s = quota[++group] * job_s;
        }
    }
}

bool loss_groups_shares(const struct loss_groups *groups, double shares[LOSS_GROUPS])
{
    double gpu_s[LOSS_GROUPS] = { 0 };
    for (uint32_t i = 0; groups->bins && i < LOSS_BINS; i++) {
        double job_s = 0;
        for (uint32_t c = 0; c < LOSS_CLASSES; c++)
            job_s += groups->bins[i][c].job_s;
        if (job_s >= JOBS_LEAST * (double)groups->bin_ns * 1e-9)
            share_bin(groups->bins[i], job_s, gpu_s);
    }
    double sum_s = 0;
    for (uint32_t g = 0; g < LOSS_GROUPS; g++)
        sum_s += gpu_s[g];
    for (uint32_t g = 0; g < LOSS_GROUPS && sum_s > 0; g++)
        shares[g] = gpu_s[g] / sum_s;
    return sum_s > 0;
}
