/* Keyed hashes: those of the published test vectors, and of random keys. */
#include "support/cases.h"

#include <string.h>

#include "base/keyed_hash.h"

/* Key 00 01 … 0f, texts 00 01 … of so many bytes. */
static void hashes_are_those_that_were_published(void **state)
{
    static const struct {
        size_t count;
        uint64_t hash;
    } known[] = { { 0, UINT64_C(0x726fdb47dd0e0e31) },
                  { 1, UINT64_C(0x74f839c593dc67fd) },
                  { 8, UINT64_C(0x93f5f5799a932462) },
                  { 15, UINT64_C(0xa129ca6149be45e5) } };
    struct keyed_hash hash = { { UINT64_C(0x0706050403020100),
                                 UINT64_C(0x0f0e0d0c0b0a0908) } };
    unsigned char bytes[16];
    for (unsigned char i = 0; i < sizeof bytes; i++)
        bytes[i] = i;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        assert_int_equal(keyed_hash_bytes(&hash, bytes, known[i].count), known[i].hash);
}

static void two_keys_give_two_hashes(void **state)
{
    struct keyed_hash one, other;
    keyed_hash_init(&one);
    keyed_hash_init(&other);
    assert_int_equal(keyed_hash_bytes(&one, "ada", 3),
                     keyed_hash_bytes(&one, "ada", 3));
    assert_int_not_equal(keyed_hash_bytes(&one, "ada", 3),
                         keyed_hash_bytes(&other, "ada", 3));
}

RUN_CASES(TEST(hashes_are_those_that_were_published), TEST(two_keys_give_two_hashes));
