/* A day of mixed load with faults, with more seeds. */
#define SEEDS 300

#include "../property/test_day.c"
