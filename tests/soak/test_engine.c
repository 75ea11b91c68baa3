/* The engine under a policy that does everything at random, with many more seeds. */
#define SEEDS 3000

#include "../property/test_engine.c"
