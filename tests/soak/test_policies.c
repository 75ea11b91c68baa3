/* The properties of policies, with many more seeds. */
#define SEEDS 3000

#include "../property/test_policies.c"
