/* Flow policies beside job policies, with many more seeds. */
#define SEEDS 1000

#include "../property/test_flows.c"
