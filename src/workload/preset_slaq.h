/*
 * preset_slaq.h - learning curves of training that really was, as curves of simulated jobs.
 *
 * They come from a file as curves.h reads it, and are not part of Berth.  One is taken if
 * it has twenty points or more and ends at least half of its range below where it begins:
 * losses that fall, noise and all, but no accuracies and no training that diverged.  A
 * point becomes a step; longer ones are thinned out evenly.
 */
#pragma once

#include <stdint.h>

#include "model/learning.h"

struct error;
struct rng;

struct trained {
    struct trained_curve *curves; /* in the order of the file */
    uint32_t count, room;
    struct trained_kind *kinds; /* of training */
    uint32_t kind_count, kind_room;
};

/* Those of a file of curves. */
int trained_load_file(struct trained *trained, const char *path, struct error *err);
void trained_release(struct trained *trained);

/* One of them, each kind of training as likely as any other.  Points live as long. */
struct learning trained_draw(const struct trained *trained, struct rng *rng);
