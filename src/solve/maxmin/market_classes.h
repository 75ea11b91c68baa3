/*
 * market_classes.h - identical jobs as one buyer in a market.
 *
 * Jobs with the same rates, gang and demand have equal shares in some optimal answer,
 * so they are one buyer in the market, with a gang as many times as large.  A hundred
 * thousand jobs of a table with two hundred rows are a market of two hundred.
 *
 * A class that the next programme has too stays in the market, which then continues
 * from its last prices.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct buyer;
struct market_classes;
struct market;

struct market_classes *market_classes_new(void);
void market_classes_free(struct market_classes *classes);

/*
 * Begin a programme with up to 'job_max' jobs.  With 'apart' every job is a buyer of
 * its own and only the prices are kept from the last programme: less work where hardly
 * two jobs are identical, or where they change from one programme to the next.
 */
void market_classes_begin(struct market_classes *classes, uint32_t type_count,
                          const double *capacity, uint32_t job_max, bool apart);

/* Add a job; returns its slot in the market. */
uint32_t market_classes_put(struct market_classes *classes, const struct buyer *buyer);

/* All jobs are added: the market, ready to be solved; owned by 'classes'. */
struct market *market_classes_end(struct market_classes *classes);
