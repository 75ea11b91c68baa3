/*
 * batch.c - jobs in blocks of eight, and the pass over them.
 *
 * The pass itself is batch_pass.h, compiled once for each vector unit from macros that
 * are defined here.  All of them do the same operations in the same order.
 */
#include "solve/prices/batch.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

#include "base/arena.h"

#define TILE_BLOCKS 32
#define PRICE_LEAST \
    1e-40 /* of the largest price: the least one, so that free is not nothing */

struct batch_sums {
    _Alignas(64) double usage[BATCH_TYPES_MAX][BATCH_LANES];
    _Alignas(64) double slope[BATCH_LANES];
};

#define INLINE __attribute__((always_inline))

#if defined(__x86_64__)
#include <immintrin.h>

/* Two lanes, as every machine of this kind has them. */
#define NAME(name) name##_portable
#define TARGET INLINE
#define ENTRY
#define LANES 2
#define vec __m128d
#define mask __m128d
#define load(p) _mm_load_pd(p)
#define store(p, a) _mm_store_pd(p, a)
#define same(a) _mm_set1_pd(a)
#define add(a, b) _mm_add_pd(a, b)
#define sub(a, b) _mm_sub_pd(a, b)
#define mul(a, b) _mm_mul_pd(a, b)
#define quotient(a, b) _mm_div_pd(a, b)
#define less(a, b) _mm_cmplt_pd(a, b)
#define equal(a, b) _mm_cmpeq_pd(a, b)
#define both(m, n) _mm_and_pd(m, n)
#define pick(m, a, b) _mm_or_pd(_mm_and_pd(m, a), _mm_andnot_pd(m, b))
#define any(m) (_mm_movemask_pd(m) != 0)
#include "solve/prices/batch_pass.h"

#define NAME(name) name##_avx2
#define TARGET __attribute__((target("avx2"), always_inline))
#define ENTRY __attribute__((target("avx2")))
#define LANES 4
#define vec __m256d
#define mask __m256d
#define load(p) _mm256_load_pd(p)
#define store(p, a) _mm256_store_pd(p, a)
#define same(a) _mm256_set1_pd(a)
#define add(a, b) _mm256_add_pd(a, b)
#define sub(a, b) _mm256_sub_pd(a, b)
#define mul(a, b) _mm256_mul_pd(a, b)
#define quotient(a, b) _mm256_div_pd(a, b)
#define less(a, b) _mm256_cmp_pd(a, b, _CMP_LT_OQ)
#define equal(a, b) _mm256_cmp_pd(a, b, _CMP_EQ_OQ)
#define both(m, n) _mm256_and_pd(m, n)
#define pick(m, a, b) _mm256_blendv_pd(b, a, m)
#define any(m) (_mm256_movemask_pd(m) != 0)
#include "solve/prices/batch_pass.h"

#define NAME(name) name##_avx512
#define TARGET __attribute__((target("avx512f"), always_inline))
#define ENTRY __attribute__((target("avx512f")))
#define LANES 8
#define vec __m512d
#define mask __mmask8
#define load(p) _mm512_load_pd(p)
#define store(p, a) _mm512_store_pd(p, a)
#define same(a) _mm512_set1_pd(a)
#define add(a, b) _mm512_add_pd(a, b)
#define sub(a, b) _mm512_sub_pd(a, b)
#define mul(a, b) _mm512_mul_pd(a, b)
#define quotient(a, b) _mm512_div_pd(a, b)
#define less(a, b) _mm512_cmp_pd_mask(a, b, _CMP_LT_OQ)
#define equal(a, b) _mm512_cmp_pd_mask(a, b, _CMP_EQ_OQ)
#define both(m, n) ((mask)((m) & (n)))
#define pick(m, a, b) _mm512_mask_blend_pd(m, b, a)
#define any(m) ((m) != 0)
#include "solve/prices/batch_pass.h"

static enum vectors widest_vectors(void)
{
    if (__builtin_cpu_supports("avx512f"))
        return VECTORS_AVX512;
    return __builtin_cpu_supports("avx2") ? VECTORS_AVX2 : VECTORS_PORTABLE;
}

#else

/* One lane, for any machine. */
#define NAME(name) name##_portable
#define TARGET INLINE
#define ENTRY
#define LANES 1
#define vec double
#define mask bool
#define load(p) (*(p))
#define store(p, a) (*(p) = (a))
#define same(a) ((double)(a))
#define add(a, b) ((a) + (b))
#define sub(a, b) ((a) - (b))
#define mul(a, b) ((a) * (b))
#define quotient(a, b) ((a) / (b))
#define less(a, b) ((a) < (b))
#define equal(a, b) ((a) == (b))
#define both(m, n) ((m) & (n))
#define pick(m, a, b) ((m) ? (a) : (b))
#define any(m) (m)
#include "solve/prices/batch_pass.h"

static enum vectors widest_vectors(void)
{
    return VECTORS_PORTABLE;
}

#endif

/* Read by every thread that solves, written by tests and bench only. */
static _Atomic(enum vectors) vectors_allowed = VECTORS_WIDEST;

static enum vectors vectors_to_use(void)
{
    enum vectors allowed = atomic_load_explicit(&vectors_allowed, memory_order_relaxed);
    enum vectors most = widest_vectors();
    return allowed < most ? allowed : most;
}

enum vectors batch_use_vectors(enum vectors vectors)
{
    atomic_store_explicit(&vectors_allowed, vectors, memory_order_relaxed);
    return vectors_to_use();
}

void batch_init(struct job_batch *batch, struct arena *arena, uint32_t type_count,
                uint32_t max)
{
    assert(type_count > 0);
    assert(type_count <= BATCH_TYPES_MAX);
    *batch = (struct job_batch){ .type_count = type_count, .max = max };
    uint64_t blocks = ((uint64_t)max + BATCH_LANES - 1) / BATCH_LANES;
    batch->blocks =
        arena_alloc(arena, blocks * batch_stride(type_count), sizeof(double), 64);
}

double batch_due(enum batch_due due, double bend, double z)
{
    if (due == DUE_CONVEX)
        return z * (1 / (1 - bend * z));
    return due == DUE_CAPPED && bend < z ? bend : z;
}

/* No price is quite 0: a type without use stays dearer than one that is free. */
static void raise_prices(uint32_t type_count, const double *price, double *ret_raised)
{
    double most = 0;
    for (uint32_t t = 0; t < type_count; t++)
        if (price[t] < BATCH_CLOSED && price[t] > most)
            most = price[t];
    for (uint32_t t = 0; t < type_count; t++)
        ret_raised[t] = price[t] > PRICE_LEAST * most ? price[t] : PRICE_LEAST * most;
}

static double sum_lanes(const double *lane)
{
    return ((lane[0] + lane[1]) + (lane[2] + lane[3])) +
           ((lane[4] + lane[5]) + (lane[6] + lane[7]));
}

void batch_pass(const struct job_batch *batch, enum batch_due due, const double *price,
                double z, struct batch_demand *ret_demand)
{
    struct batch_sums sums = { 0 };
    double raised[BATCH_TYPES_MAX];
    raise_prices(batch->type_count, price, raised);
    switch (vectors_to_use()) {
#if defined(__x86_64__)
    case VECTORS_AVX512:
        pass_avx512(batch, due, raised, z, &sums);
        break;
    case VECTORS_AVX2:
        pass_avx2(batch, due, raised, z, &sums);
        break;
#endif
    default:
        pass_portable(batch, due, raised, z, &sums);
    }
    *ret_demand = (struct batch_demand){ .slope = sum_lanes(sums.slope) };
    for (uint32_t t = 0; t < batch->type_count; t++) {
        ret_demand->usage[t] = sum_lanes(sums.usage[t]);
        if (price[t] < BATCH_CLOSED)
            ret_demand->cost += price[t] * ret_demand->usage[t];
    }
}

/* The next type along the hull from 'from', or 'from' itself where none is faster. */
static uint32_t next_on_hull(const double *at, uint32_t k, const double *price,
                             uint32_t from, double *ret_along)
{
    double up = 1, along = 0, inverse = at[from * BATCH_LANES];
    uint32_t next = from;
    for (uint32_t t = 0; t < k; t++) {
        double i = at[t * BATCH_LANES];
        double length = inverse - i, height = (price[t] - price[from]) * i;
        if (!(price[t] < BATCH_CLOSED) || !(0 < length) ||
            !(height * along < up * length))
            continue;
        up = height;
        along = length;
        next = t;
    }
    *ret_along = along;
    return next;
}

struct batch_choice batch_choose(const struct job_batch *batch, const double *at,
                                 const double *price, double due)
{
    uint32_t k = batch->type_count, slow = 0;
    double raised[BATCH_TYPES_MAX], along;
    raise_prices(k, price, raised);
    double best = raised[0] * at[0];
    for (uint32_t t = 1; t < k; t++) {
        double cost = raised[t] * at[t * BATCH_LANES];
        if (!(cost < best))
            continue;
        best = cost;
        slow = t;
    }
    double x = due * at[slow * BATCH_LANES];
    if (!(1 < x))
        return (struct batch_choice){ slow, slow, x, 0 };
    for (uint32_t step = 1; step < k; step++) {
        uint32_t fast = next_on_hull(at, k, raised, slow, &along);
        if (fast == slow)
            break;
        double i = at[fast * BATCH_LANES];
        if (!(1 < due * i)) {
            x = i * (due * at[slow * BATCH_LANES] - 1) / along;
            return (struct batch_choice){ slow, fast, 1 - x, x };
        }
        slow = fast;
    }
    return (struct batch_choice){ slow, slow, 1, 0 };
}
