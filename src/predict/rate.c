/* rate.c - a job's speed: now, and with another number of GPUs. */
#include "predict/rate.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#define WEIGHT_MAX 20.0 /* iterations a mean reaches back                           */
#define USUAL_MIN 5.0   /* iterations until one can be unusual                      */
#define UNUSUAL 4.0     /* times the mean: longer ones count as this                */
#define FADE 0.999      /* weight of other sizes, with every iteration              */

/* --- throughput --------------------------------------------------------------------- */

void rate_init(struct rate *rate, double memory_s)
{
    assert(memory_s > 0);
    *rate = (struct rate){ .memory_s = memory_s };
}

static void begin_at(struct rate *rate, int64_t time_ns, double step)
{
    rate->last_ns = time_ns;
    rate->last_step = step;
    rate->begun = true;
}

void rate_report(struct rate *rate, int64_t time_ns, double step)
{
    if (!isfinite(step))
        return;
    if (!rate->begun || step < rate->last_step) {
        begin_at(rate, time_ns, step);
        return;
    }
    if (time_ns <= rate->last_ns)
        return; /* its steps are counted with the next */
    double seconds = (double)(time_ns - rate->last_ns) * 1e-9;
    double keep = exp(-seconds / rate->memory_s);
    double per_s = (step - rate->last_step) / seconds;
    rate->weighted = rate->weighted * keep + per_s * (1 - keep);
    rate->weight = rate->weight * keep + (1 - keep);
    begin_at(rate, time_ns, step);
}

double rate_per_s(const struct rate *rate)
{
    return rate->weight > 0 ? rate->weighted / rate->weight : 0;
}

/* --- time by size ------------------------------------------------------------------- */

/* Least squares of w/a + t0 over the sizes, neither below 0. */
static void fit_sizes(struct rate_model *model)
{
    double n = 0;
    double x = 0;
    double xx = 0;
    double y = 0;
    double xy = 0;
    for (uint32_t i = 0; i < model->size_count; i++) {
        const struct rate_size *size = &model->sizes[i];
        double inverse = 1 / size->gpus;
        n += size->weight;
        x += size->weight * inverse;
        xx += size->weight * inverse * inverse;
        y += size->weight * size->mean_s;
        xy += size->weight * inverse * size->mean_s;
    }
    double det = n * xx - x * x;
    model->work_s = xy / xx;
    model->fixed_s = 0;
    if (model->size_count < 2 || !(det > 1e-12 * n * xx))
        return;
    double work_s = (n * xy - x * y) / det;
    double fixed_s = (xx * y - x * xy) / det;
    if (work_s < 0) { /* slower with more GPUs */
        work_s = 0;
        fixed_s = y / n;
    }
    if (fixed_s < 0)
        return; /* superlinear: all is divided */
    model->work_s = work_s;
    model->fixed_s = fixed_s;
}

/* The entry of that size, a free one, or that of the size known least. */
static struct rate_size *find_size(struct rate_model *model, double gpus)
{
    struct rate_size *least = &model->sizes[0];
    for (uint32_t i = 0; i < model->size_count; i++) {
        if (model->sizes[i].gpus == gpus)
            return &model->sizes[i];
        if (model->sizes[i].weight < least->weight)
            least = &model->sizes[i];
    }
    if (model->size_count < RATE_SIZES_MAX)
        least = &model->sizes[model->size_count++];
    *least = (struct rate_size){ .gpus = gpus };
    return least;
}

bool rate_model_add(struct rate_model *model, double gpus, double seconds)
{
    if (!(gpus > 0 && seconds > 0) || !isfinite(gpus) || !isfinite(seconds))
        return false;
    for (uint32_t i = 0; i < model->size_count; i++)
        model->sizes[i].weight *= FADE;
    struct rate_size *size = find_size(model, gpus);
    if (size->weight >= USUAL_MIN && seconds > UNUSUAL * size->mean_s)
        seconds = UNUSUAL * size->mean_s;
    size->weight = size->weight + 1 < WEIGHT_MAX ? size->weight + 1 : WEIGHT_MAX;
    size->mean_s += (seconds - size->mean_s) / size->weight;
    fit_sizes(model);
    return true;
}
