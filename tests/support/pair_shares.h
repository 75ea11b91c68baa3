/* pair_shares.h - what the shares of pairs mean for their members. */
#pragma once

#include "solve/solve.h"

/*
 * From how many pairs run at a time to the part of its time that one member of 'first'
 * (place 0) or 'second' (place 1) spends in it.
 */
static inline double pairs_member_share(const struct pairs_input *pairing,
                                        uint32_t pair, uint32_t place, double running)
{
    const struct programme_pair *ends = &pairing->pairs[pair];
    uint32_t class = place == 0 ? ends->first : ends->second;
    double count = pairing->count ? pairing->count[class] : 1;
    return running * (ends->first == ends->second ? 2 : 1) / count;
}

/* And to the part of the time that two given members run together. */
static inline double pairs_couple_share(const struct pairs_input *pairing,
                                        uint32_t pair, double running)
{
    const struct programme_pair *ends = &pairing->pairs[pair];
    double first = pairing->count ? pairing->count[ends->first] : 1;
    double second = pairing->count ? pairing->count[ends->second] : 1;
    if (ends->first == ends->second)
        return 2 * running / (first * (first - 1));
    return running / (first * second);
}
