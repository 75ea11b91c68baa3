/* state_check.h - assert that every account of a state adds up. */
#pragma once

struct state;

/* Counts everything again: slow. */
void state_check(const struct state *state);
