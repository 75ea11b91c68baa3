/*
 * programme_fast.h - goals by prices: few types, many jobs.
 *
 * 0; -ENOTSUP where the structure does not cover the programme; -EDOM with a sentence
 * when the search does not end.  In both cases the general solver is there.
 */
#pragma once

#include "solve/frame.h"

struct classes;

/* 'classes' keeps what was found for the next programme. */
int fast_solve(const struct frame *frame, struct classes *classes, bool keeps,
               struct shares *shares, struct error *err);
