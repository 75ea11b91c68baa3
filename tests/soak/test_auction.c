/* Auctions against the general solver, with many more seeds. */
#define SEEDS 20000

#include "../property/test_auction.c"
