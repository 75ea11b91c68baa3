/* clock.h - what the system's clocks say.  Policies and the simulation get the time as data. */
#pragma once

#include <stdint.h>
#include <time.h>

int64_t clock_read_ns(clockid_t clock);
double clock_read_s(clockid_t clock);

/* The monotonic clock: it never goes back, and says nothing about the time of day. */
int64_t clock_now_ns(void);
int64_t clock_now_ms(void);
double clock_now_s(void);

/* Processor time of this process. */
double clock_cpu_s(void);
