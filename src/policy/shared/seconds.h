/*
 * seconds.h - what a second of a job's time is worth, by what it will learn in it.
 *
 * Each job is valued by l, its loss between 1 at first and 0 at its end, by the curve fitted
 * to the losses it has reported (forecaster.h).  A second that a job is ahead of time is worth
 *
 *     v = P(before its goal) + l/2 + finish sqrt(mean time left / its time left)
 *
 * since a loss of l lasts a second less, the goal, nine tenths of the way, is reached a
 * second sooner, and so is the end.  GPUs go where they save the most worth of time: each
 * job has sqrt(v w/t0) of them, if a step takes w/a + t0 on a GPUs (gains.h).  A job whose
 * forecast is uncertain may be on either side of its goal, and P, a probability, is between
 * 0 and 1: the interval keeps a job from getting little because of a poor forecast.
 *
 * It values the jobs of an elastic.h that were gathered, whichever they are:
 *
 *     seconds_forecast(&seconds, &elastic, view);    their curves and the least they get
 *     seconds_value(&seconds, &elastic, view);       and what their time is worth
 *     seconds_share(&elastic, view, horizon_s);      GPUs where they are worth most
 */
#pragma once

#include "policy/shared/elastic.h"
#include "predict/forecaster.h"

struct seconds {
    /* settings */
    double floor;  /* part of an equal share that nobody falls below            */
    double young;  /* part of what is left that a step brings, until reports say */
    double goal;   /* part of its improvement at which a model is good           */
    double finish; /* worth of a second to the end, against one to the goal      */
    bool declared; /* curves that jobs declared are believed                     */

    struct forecaster *forecaster;
    double half_gpus; /* of gains.h: the mean, once it is known of a job */
    double left_s;    /* time left on an equal share: the mean */
};

void seconds_forecast(struct seconds *seconds, struct elastic *elastic,
                      const struct view *view);
void seconds_value(struct seconds *seconds, struct elastic *elastic,
                   const struct view *view);

/* Where the least that jobs get is more than there is, they get less, from the last on. */
void seconds_share(struct elastic *elastic, const struct view *view, double horizon_s);
