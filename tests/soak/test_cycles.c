/* Preemptions do not go round in circles, in many more worlds. */
#define SEEDS 100000

#include "../property/test_cycles.c"
