/* How wide error bars have to be: a table, and what lies between its fields. */
#include "support/cases.h"

#include <math.h>

#include "predict/forecast.h"

static void surprises_come_to_curves_of_a_middling_length(void **state)
{
    for (double ahead = 10; ahead <= 40; ahead += 10) {
        double young = forecast_width(5, ahead);
        double middling = forecast_width(25, ahead);
        double old = forecast_width(200, ahead);
        assert_true(middling > 1.2);
        assert_true(young < old && old < middling);
    }
    assert_true(forecast_width(25, 10) < forecast_width(25, 40));
}

static void there_are_no_jumps(void **state)
{
    for (double ahead = 0.5; ahead < 100; ahead *= 1.05)
        for (uint32_t count = 2; count < 600; count++) {
            double here = forecast_width(count, ahead);
            assert_true(here >= 0.5 && here <= 2);
            assert_near(forecast_width(count + 1, ahead), here, 0.15);
            assert_near(forecast_width(count, ahead * 1.05), here, 0.06);
        }
}

static void beyond_the_table_its_edge_holds(void **state)
{
    assert_near(forecast_width(0, 10), forecast_width(5, 10), 0);
    assert_near(forecast_width(1, 0), forecast_width(5, 1), 0);
    assert_near(forecast_width(512, 1e9), forecast_width(150, 40), 0);
    assert_near(forecast_width(UINT32_MAX, 1), forecast_width(150, 1), 0);
}

RUN_CASES(TEST(surprises_come_to_curves_of_a_middling_length), TEST(there_are_no_jumps),
          TEST(beyond_the_table_its_edge_holds));
