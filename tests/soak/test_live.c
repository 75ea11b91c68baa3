/* Worlds in which people interfere, with many more seeds. */
#define SEEDS 500

#include "../property/test_live.c"
