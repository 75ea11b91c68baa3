/*
 * calibration.h - how much wider than its trials say an error bar has to be.
 *
 * A curve is put to the test at its own earlier points, so it knows the surprises it has
 * had, not those that curves of its length usually have next: many are told to learn more
 * slowly after some thirty points, and then drop.  A very short one is less of a surprise
 * than the doubt about it.  How much the one and the other matter was measured on real
 * curves, by how many points are known and how far ahead is asked.
 */
#pragma once

#include <stdint.h>

/* A factor for the width of a bar that is to hold the truth four times in five. */
double calibration_width(uint32_t count, double ahead);
