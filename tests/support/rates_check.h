/* rates_check.h - assert that the rates of a network are max-min fair. */
#pragma once

struct rates;

/* No link carries more than its capacity, and no bundle could have more. */
void rates_check(const struct rates *rates);
