/* clock.c - what the system's clocks say. */
#include "base/clock.h"

#include "base/units.h"

int64_t clock_read_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}

double clock_read_s(clockid_t clock)
{
    return (double)clock_read_ns(clock) * 1e-9;
}

int64_t clock_now_ns(void)
{
    return clock_read_ns(CLOCK_MONOTONIC);
}

int64_t clock_now_ms(void)
{
    return clock_now_ns() / 1000000;
}

double clock_now_s(void)
{
    return clock_read_s(CLOCK_MONOTONIC);
}

double clock_cpu_s(void)
{
    return clock_read_s(CLOCK_PROCESS_CPUTIME_ID);
}
