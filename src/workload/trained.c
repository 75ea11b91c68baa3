/* trained.c - learning curves of training that really was. */
#include "workload/trained.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/grow.h"
#include "base/rng.h"
#include "workload/curves.h"

#define POINTS_LEAST 20
#define LOSS_MAX 1e30F

struct trained_curve {
    uint32_t kind, point_count;
    float points[LEARNING_POINTS_MAX];
};

struct trained_kind {
    char name[CURVES_NAME_MAX];
    uint32_t curve_count;
};

static bool loss_falls(const struct curves_one *one)
{
    double low = INFINITY;
    double high = -INFINITY;
    for (uint32_t i = 0; i < one->count; i++) {
        low = fmin(low, one->value[i]);
        high = fmax(high, one->value[i]);
    }
    double by = one->value[0] - one->value[one->count - 1];
    return high <= LOSS_MAX && low >= -LOSS_MAX && by > 0 && by >= (high - low) / 2;
}

static uint32_t kind_of(struct trained *trained, const char *name)
{
    for (uint32_t i = 0; i < trained->kind_count; i++)
        if (strcmp(trained->kinds[i].name, name) == 0)
            return i;
    uint32_t at = trained->kind_count++;
    trained->kinds = grow_array(trained->kinds, &trained->kind_room,
                                trained->kind_count, sizeof *trained->kinds);
    snprintf(trained->kinds[at].name, sizeof trained->kinds[at].name, "%s", name);
    trained->kinds[at].curve_count = 0;
    return at;
}

/* The first and the last point are always kept. */
static void add_curve(struct trained *trained, const struct curves_one *one)
{
    uint32_t at = trained->count++;
    trained->curves = grow_array(trained->curves, &trained->room, trained->count,
                                 sizeof *trained->curves);
    struct trained_curve *curve = &trained->curves[at];
    curve->kind = kind_of(trained, one->algo);
    trained->kinds[curve->kind].curve_count++;
    uint32_t last = one->count - 1;
    uint32_t kept = one->count < LEARNING_POINTS_MAX ? one->count : LEARNING_POINTS_MAX;
    curve->point_count = kept;
    for (uint32_t i = 0; i < kept; i++)
        curve->points[i] = (float)one->value[(uint64_t)i * last / (kept - 1)];
}

/* Losses so near to each other that they are one as they are kept do not count either. */
static bool is_kept_falling(const struct curves_one *one)
{
    return (float)one->value[0] > (float)one->value[one->count - 1];
}

int trained_load_file(struct trained *trained, const char *path, struct error *err)
{
    *trained = (struct trained){ 0 };
    struct curves curves;
    struct curves_one one;
    int r = curves_open(&curves, path, err);
    if (r < 0)
        return r;
    while ((r = curves_next(&curves, &one, err)) > 0)
        if (one.count >= POINTS_LEAST && loss_falls(&one) && is_kept_falling(&one))
            add_curve(trained, &one);
    curves_release(&curves);
    if (r == 0 && trained->count == 0)
        r = error_set(err, -EINVAL, "%s: no loss that falls over %d points or more",
                      path, POINTS_LEAST);
    if (r < 0)
        trained_release(trained);
    return r;
}

int trained_load(struct trained *trained, struct error *err)
{
    const char *data = getenv("BERTH_DATA");
    if (!data || !*data)
        return error_set(err, -EINVAL,
                         "curves of real training need BERTH_DATA, a folder with "
                         "curves/curves.csv.gz in it");
    char path[4096];
    int bytes = snprintf(path, sizeof path, "%s/curves/curves.csv.gz", data);
    if (bytes < 0 || (size_t)bytes >= sizeof path)
        return error_set(err, -EINVAL, "BERTH_DATA is longer than 4,000 bytes");
    int r = trained_load_file(trained, path, err);
    return r == -ENOENT ? -EINVAL : r;
}

void trained_release(struct trained *trained)
{
    free(trained->curves);
    free(trained->kinds);
    *trained = (struct trained){ 0 };
}

struct learning trained_draw(const struct trained *trained, struct rng *rng)
{
    uint32_t kind = rng_below(rng, trained->kind_count);
    uint32_t nth = rng_below(rng, trained->kinds[kind].curve_count);
    const struct trained_curve *curve = trained->curves;
    while (curve->kind != kind || nth-- > 0)
        curve++;
    return (struct learning){ .family = LEARNING_POINTS,
                              .first = curve->points[0],
                              .last = curve->points[curve->point_count - 1],
                              .kmax = curve->point_count - 1,
                              .points = curve->points,
                              .point_count = curve->point_count };
}
