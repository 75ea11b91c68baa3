/* Space sharing against the whole programme, with many more seeds. */
#define SEEDS 7000

#include "../property/test_pairs.c"
