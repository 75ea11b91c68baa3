/*
 * batch_pass.h - the pass over a batch, written once and compiled for several vector
 * units.
 *
 * Included by batch.c with these macros defined: TARGET (an attribute), ENTRY, LANES,
 * vec, mask, load, store, same, add, sub, mul, quotient, less, equal, pick, both, any,
 * NAME().
 *
 * The cheapest way to a due d at prices p is where the lower hull of the points (rate,
 * price), the origin among them, passes over d.  Mostly that is on its first edge: one
 * type, that of the least price per rate.  A type that is too slow alone is mixed with
 * a faster one, found by walking along the hull.  With i = 1/rate, the next type after
 * t is the u of least
 *     (p_u - p_t) / (rate_u - rate_t)  ~  (p_u - p_t) i_u / (i_t - i_u)
 * which is compared crosswise, without a division.
 */

struct NAME(prices) {
    vec price[BATCH_TYPES_MAX], number[BATCH_TYPES_MAX];
    bool open[BATCH_TYPES_MAX];
};

/* The jobs of one vector on their walk along the hull. */
struct NAME(walk) {
    vec type, inverse; /* their current type, and 1/rate on it */
    vec x, fast;       /* share of the faster type, and which           */
    vec worth;         /* slope of the edge                             */
};

TARGET static inline vec NAME(price_of)(const struct NAME(prices) * prices, uint32_t k,
                                        vec type)
{
    vec price = prices->price[0];
    for (uint32_t t = 1; t < k; t++)
        price = pick(equal(type, prices->number[t]), prices->price[t], price);
    return price;
}

TARGET static inline void NAME(walk_on)(struct NAME(walk) * walk,
                                        const struct NAME(prices) * prices,
                                        const double *at, uint32_t k, vec due,
                                        mask short_of)
{
    vec zero = same(0), one = same(1);
    vec price = NAME(price_of)(prices, k, walk->type);
    walk->x = zero;
    walk->fast = walk->type;
    for (uint32_t step = 1; step < k; step++) {
        vec up = one, along = zero, type = walk->type, inverse = zero, next = zero;
        for (uint32_t t = 0; t < k; t++) {
            if (!prices->open[t])
                continue;
            vec i = load(at + t * BATCH_LANES);
            vec length = sub(walk->inverse, i);
            vec height = mul(sub(prices->price[t], price), i);
            mask better =
                both(less(zero, length), less(mul(height, along), mul(up, length)));
            up = pick(better, height, up);
            along = pick(better, length, along);
            type = pick(better, prices->number[t], type);
            inverse = pick(better, i, inverse);
            next = pick(better, prices->price[t], next);
        }
        mask found = both(short_of, less(zero, along));
        mask missed = both(found, less(one, mul(due, inverse)));
        vec x = quotient(mul(inverse, sub(mul(due, walk->inverse), one)), along);
        vec worth = quotient(mul(up, walk->inverse), along);
        walk->worth = pick(found, worth, walk->worth);
        walk->x = pick(found, x, walk->x);
        walk->fast = pick(found, type, walk->fast);
        if (!any(missed))
            return;
        walk->x = pick(missed, zero, walk->x);
        walk->type = pick(missed, type, walk->type);
        walk->inverse = pick(missed, inverse, walk->inverse);
        price = pick(missed, next, price);
        short_of = missed;
    }
}

TARGET static inline void NAME(sweep)(const double *at, uint32_t blocks,
                                      const uint32_t k, const enum batch_due due,
                                      const struct NAME(prices) * prices, double level,
                                      uint32_t lane, struct batch_sums *sums)
{
    vec usage[BATCH_TYPES_MAX], slope = load(sums->slope + lane);
    vec zero = same(0), one = same(1), z = same(level);
    for (uint32_t t = 0; t < k; t++)
        usage[t] = load(sums->usage[t] + lane);
    at += lane;
    for (uint32_t b = 0; b < blocks; b++, at += batch_stride(k)) {
        vec inverse = load(at), type = zero;
        vec best = mul(prices->price[0], inverse);
        for (uint32_t t = 1; t < k; t++) {
            vec i = load(at + t * BATCH_LANES);
            vec cost = mul(prices->price[t], i);
            mask less_cost = less(cost, best);
            best = pick(less_cost, cost, best);
            inverse = pick(less_cost, i, inverse);
            type = pick(less_cost, prices->number[t], type);
        }
        vec gang = load(at + k * BATCH_LANES), want = z, pull = gang;
        if (due == DUE_CONVEX) {
            vec bend = load(at + (k + 1) * BATCH_LANES);
            vec stretch = quotient(one, sub(one, mul(bend, z)));
            want = mul(z, stretch);
            pull = mul(gang, mul(stretch, stretch));
        } else if (due == DUE_CAPPED) {
            vec cap = load(at + (k + 1) * BATCH_LANES);
            mask held = less(cap, z);
            want = pick(held, cap, z);
            pull = pick(held, zero, gang);
        }
        vec x = mul(want, inverse);
        mask short_of = less(one, x);
        if (any(short_of)) {
            struct NAME(walk)
                walk = { .type = type, .inverse = inverse, .worth = best };
            NAME(walk_on)(&walk, prices, at, k, want, short_of);
            vec fast = pick(short_of, mul(gang, walk.x), zero);
            for (uint32_t t = 0; t < k; t++)
                usage[t] = add(usage[t],
                               pick(equal(walk.fast, prices->number[t]), fast, zero));
            x = pick(short_of, sub(one, walk.x), x);
            type = pick(short_of, walk.type, type);
            best = pick(short_of, walk.worth, best);
        }
        x = mul(gang, x);
        for (uint32_t t = 0; t < k; t++)
            usage[t] = add(usage[t], pick(equal(type, prices->number[t]), x, zero));
        slope = add(slope, mul(pull, best));
    }
    for (uint32_t t = 0; t < k; t++)
        store(sums->usage[t] + lane, usage[t]);
    store(sums->slope + lane, slope);
}

/* Tiles stay in the nearest cache while each group of lanes is swept in turn. */
TARGET static inline void NAME(tiles)(const struct job_batch *batch, const uint32_t k,
                                      const enum batch_due due,
                                      const struct NAME(prices) * prices, double level,
                                      struct batch_sums *sums)
{
    uint32_t blocks = (batch->count + BATCH_LANES - 1) / BATCH_LANES;
    uint32_t tile = LANES == BATCH_LANES ? blocks : TILE_BLOCKS;
    for (uint32_t b = 0; b < blocks; b += tile) {
        const double *at = batch->blocks + (uint64_t)b * batch_stride(k);
        uint32_t count = blocks - b < tile ? blocks - b : tile;
        for (uint32_t lane = 0; lane < BATCH_LANES; lane += LANES)
            NAME(sweep)(at, count, k, due, prices, level, lane, sums);
    }
}

/* A few numbers of types known to the compiler: sums stay in registers. */
TARGET static inline void NAME(by_types)(const struct job_batch *batch,
                                         const enum batch_due due,
                                         const struct NAME(prices) * prices,
                                         double level, struct batch_sums *sums)
{
    switch (batch->type_count) {
    case 2:
        NAME(tiles)(batch, 2, due, prices, level, sums);
        break;
    case 3:
        NAME(tiles)(batch, 3, due, prices, level, sums);
        break;
    case 4:
        NAME(tiles)(batch, 4, due, prices, level, sums);
        break;
    default:
        NAME(tiles)(batch, batch->type_count, due, prices, level, sums);
    }
}

ENTRY static void NAME(pass)(const struct job_batch *batch, enum batch_due due,
                             const double *price, double level, struct batch_sums *sums)
{
    struct NAME(prices) prices;
    for (uint32_t t = 0; t < batch->type_count; t++) {
        prices.price[t] = same(price[t]);
        prices.number[t] = same(t);
        prices.open[t] = price[t] < BATCH_CLOSED;
    }
    if (due == DUE_LINEAR)
        NAME(by_types)(batch, DUE_LINEAR, &prices, level, sums);
    else if (due == DUE_CONVEX)
        NAME(by_types)(batch, DUE_CONVEX, &prices, level, sums);
    else
        NAME(by_types)(batch, DUE_CAPPED, &prices, level, sums);
}

/* The next vector unit defines its own. */
#undef NAME
#undef TARGET
#undef ENTRY
#undef LANES
#undef vec
#undef mask
#undef load
#undef store
#undef same
#undef add
#undef sub
#undef mul
#undef quotient
#undef less
#undef equal
#undef both
#undef pick
#undef any
