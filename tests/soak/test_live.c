/* Users interfere in random worlds, with many more seeds. */
#define SEEDS 500

#include "../property/test_live.c"
