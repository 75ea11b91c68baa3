/*
 * forecaster.h - what jobs will learn and how fast, from what they report.
 *
 *     forecaster_init(&forecaster, view->job_max, run);
 *     forecaster_observe(&forecaster, view, event);                with every event
 *     struct outlook o = forecaster_outlook(&forecaster, view, job);
 *     struct outlook_gain g = outlook_gain(&o, 60, 8);             8 GPUs for a minute
 *
 * For any policy: the learning gain of a job is what it takes off its normalised loss
 * (curve_ahead.h) in the next so many seconds on so many GPUs, by the curve fitted to its
 * losses (curve.h) and by the time of a step at the sizes it has had (rate.h).
 *
 * An outlook is a plain value.  A curve is fitted again only if there are new reports: some
 * microseconds; otherwise an outlook costs nanoseconds.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/view.h"
#include "predict/curve_ahead.h"
#include "predict/rate.h"

struct arena;
struct event;

#define FORECASTER_POINTS_LEAST 4 /* reports needed to fit a curve */
#define FORECASTER_POINTS_ENOUGH \
    12 /* a curve without a trend is not expected to get one */

/* What is known about a job's learning. */
enum outlook_state {
    OUTLOOK_SILENT,    /* it reports no losses           */
    OUTLOOK_YOUNG,     /* too few reports                */
    OUTLOOK_UNSETTLED, /* no trend yet, it may come      */
    OUTLOOK_FLAT,      /* many reports, and no trend     */
    OUTLOOK_FITTED,    /* 'ahead' is the rest of its curve */
};

struct outlook {
    enum outlook_state state;
    struct curve_ahead ahead; /* FAMILY_FLAT unless it is fitted */
    double half; /* half the width of its level's interval, four times in five */
    double work_s, fixed_s; /* of a step: divided by the GPUs, and constant */
    bool scaled; /* measured at two sizes or more: how they divide is known */
    bool paced;  /* the last two were measured; otherwise they are 0 */
};

struct outlook_gain {
    double value, low, high;
};

/* The reports of one job. */
struct forecaster_job {
    struct curve curve;
    struct curve_fit fit;
    struct rate_model pace;
    double first;   /* loss of the first report */
    bool stale;     /* new reports since the fit */
    bool inherited; /* from another forecaster, and not adopted yet */
    uint32_t next_free;
};

struct forecaster {
    uint32_t *of_job; /* by slot: 1 + index of its reports; 0: none */
    struct forecaster_job *jobs;
    uint32_t used, room;
    uint32_t free; /* 1 + the first unused entry */
};

void forecaster_init(struct forecaster *forecaster, uint32_t job_max,
                     struct arena *run);
void forecaster_release(struct forecaster *forecaster);

/* Know what another one knows of these jobs, which are adopted next. */
void forecaster_inherit(struct forecaster *forecaster, const struct view *view,
                        const struct forecaster *from);
void forecaster_observe(struct forecaster *forecaster, const struct view *view,
                        const struct event *event);

struct outlook forecaster_outlook(struct forecaster *forecaster,
                                  const struct view *view, job_id job);

/* The time of a step on so many GPUs. */
double outlook_step_s(const struct outlook *outlook, double gpus);

/* The learning gain of so many seconds, with its interval; all 0 unless fitted and paced. */
struct outlook_gain outlook_gain(const struct outlook *outlook, double seconds,
                                 double gpus);
