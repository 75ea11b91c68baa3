/*
 * market_classes.h - jobs that are alike, as one buyer in a market.
 *
 * Jobs with the same rates, gang and demand have the same part in some best answer, so
 * they stand in the market as one buyer whose gang is as many times as large.  A hundred
 * thousand jobs of a table with two hundred rows are a market of two hundred.
 *
 * What stays alike from one programme to the next stays in the market, so that it goes on
 * from where it was.
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
 * Begin a programme with up to 'job_max' jobs.  With 'apart' every job is a buyer of its
 * own and only the prices are kept from the last one: less work where hardly two are
 * alike, or where they change from one programme to the next.
 */
void market_classes_begin(struct market_classes *classes, uint32_t type_count,
                          const double *capacity, uint32_t job_max, bool apart);

/* Put a job in; returns its place, by which its shares are asked for. */
uint32_t market_classes_put(struct market_classes *classes, const struct buyer *buyer);

/* All are in: the market, ready to be solved; owned by 'classes'. */
struct market *market_classes_end(struct market_classes *classes);
