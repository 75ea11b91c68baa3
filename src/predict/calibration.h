/*
 * calibration.h - how much wider than its trials suggest an error bar has to be.
 *
 * A curve is tested at its own earlier points, so its trials show the surprises it has
 * had, not those that curves of its length usually have next: the learning rate of many
 * is lowered after some thirty points, and they drop.  The trials of a very short curve
 * suggest too wide a bar.  How much both matter was measured on real curves, by the
 * number of known points and the distance ahead.
 */
#pragma once

#include <stdint.h>

/* A factor for the width of a bar that should hold the truth four times in five. */
double calibration_width(uint32_t count, double ahead);
