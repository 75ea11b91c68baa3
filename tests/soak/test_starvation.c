/* No job starves, with many more seeds. */
#define SEEDS 20000

#include "../property/test_starvation.c"
