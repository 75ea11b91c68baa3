/*
 * cases.h - what every test includes: cmocka, main() and the seeds of a property.
 *
 *     static void an_empty_heap_has_no_top(void **state) { … }
 *
 *     RUN_CASES(TEST(an_empty_heap_has_no_top), CASE(the_smallest_key_is_the_top));
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

/* A case as it is, and one between the setup() and the teardown() of its file. */
#define TEST(name) cmocka_unit_test(name)
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/*
 * main() of a test program: run these cases, or those that BERTH_CASE names ('*' and '?' are
 * wildcards).  RUN_GROUP has functions that run before the first case and after the last one.
 */
#define RUN_CASES(...) RUN_GROUP(NULL, NULL, __VA_ARGS__)
#define RUN_GROUP(before, after, ...) \
    int main(void) \
    { \
        const struct CMUnitTest cases[] = { __VA_ARGS__ }; \
        cmocka_set_test_filter(getenv("BERTH_CASE")); \
        return cmocka_run_group_tests_name(__FILE__, cases, before, after); \
    } \
    int main(void)

/* setup() and teardown() that make an arena of this name and release it (base/arena.h). */
#define ARENA_FIXTURE(arena) \
    static struct arena arena; \
    static int setup(void **state) \
    { \
        arena_init(&arena, 0); \
        return 0; \
    } \
    static int teardown(void **state) \
    { \
        arena_release(&arena); \
        return 0; \
    } \
    static int teardown(void **state)

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
