/* cases.h - what every test includes: cmocka, and the seeds of a property. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

/* Leave a case out and say why: the reason stands in the list at the end of a run. */
#define SKIP(...) (printf("SKIP: " __VA_ARGS__), puts(""), skip())

/* Equal but for rounding; NAN is near nothing. */
static inline void near_or_fail(double a, double b, double tolerance, const char *file,
                                int line)
{
    double distance = a < b ? b - a : a - b;
    if (distance <= tolerance)
        return;
    print_error("%.17g is not near %.17g\n", a, b);
    _fail(file, line);
}
#define assert_near(a, b, tolerance) near_or_fail(a, b, tolerance, __FILE__, __LINE__)

/*
 * Seeds to try: 1 … count, or only BERTH_SEED where that is set.  Each is printed before
 * it is used, so the last one printed before a failure brings the failure back.  With
 * sanitizers, which take ten times as long, a quarter of them; all of them in a soak.
 */
struct seeds {
    uint64_t now, last;
};

static inline struct seeds seeds_every(uint64_t count)
{
    const char *text = getenv("BERTH_SEED");
    uint64_t only = text ? strtoull(text, NULL, 10) : 0;
    return text ? (struct seeds){ only, only } : (struct seeds){ 1, count };
}

static inline struct seeds seeds_first(uint64_t count)
{
#ifdef __SANITIZE_ADDRESS__
    if (!getenv("BERTH_SOAK"))
        count = count < 4 ? 1 : count / 4;
#endif
    return seeds_every(count);
}

static inline int seeds_more(const struct seeds *seeds)
{
    if (seeds->now > seeds->last)
        return 0;
    printf("# BERTH_SEED=%llu\n", (unsigned long long)seeds->now);
    fflush(stdout);
    return 1;
}

#define FOR_EACH_SEED(seed, count) \
    for (struct seeds seed = seeds_first(count); seeds_more(&seed); seed.now++)

/* All of them, also with sanitizers: for a test that counts what turned up. */
#define FOR_EVERY_SEED(seed, count) \
    for (struct seeds seed = seeds_every(count); seeds_more(&seed); seed.now++)
