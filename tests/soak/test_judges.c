/* The judges, with many more seeds. */
#define SEEDS 3000

#include "../property/test_judges.c"
