/*
 * published.h - the rates that were published with Gavel, as they ship with Berth.
 *
 * Steps per second of the 26 configurations that Gavel (Narayanan et al., OSDI '20) was
 * measured with, alone on their accelerators.  The figures are in data/gavel-rates.csv,
 * from which the table is made when Berth is built; their order is the published one,
 * which the generator of its workloads needs.  How two of them share is our own fit, in
 * data/gavel-sharing.csv.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define PUBLISHED_KINDS 26
#define PUBLISHED_SIZES 4 /* gangs of 1, 2, 4, 8 */

enum published_type {
    PUBLISHED_V100,
    PUBLISHED_P100,
    PUBLISHED_K80,
    PUBLISHED_TYPES,
};

/* How a kind behaves beside another on the same accelerator; see model/sharing.h. */
struct sharing {
    double pressure;    /* what it does to others                 */
    double sensitivity; /* what others do to it                   */
    uint32_t memory;    /* percent it takes; 0: nothing is known  */
};

struct published_kind {
    const char *name;
    bool distributes; /* was measured with more than one GPU */
    double rate[PUBLISHED_TYPES][PUBLISHED_SIZES]
               [2]; /* [type][log2 size][spread]; -1: not measured */
    struct sharing sharing[PUBLISHED_TYPES];
};

extern const struct published_kind published_kinds[PUBLISHED_KINDS];
