/* murmur.h — MurmurHash3 with seed 0, the hash function of effective partition keys (epk.h).
 *
 * Austin Appleby's public-domain function, in its x86 32-bit and x64 128-bit forms. Pure; any alignment; bytes are read as little-endian on
 * every machine. Not collision-resistant: an attacker can find keys that collide. */
#pragma once

#include "base/slice.h"

typedef struct hash128 {
    uint64_t h1; /* the half that the reference implementation outputs first */
    uint64_t h2;
} hash128;

uint32_t hash_murmur3_32(slice bytes);
hash128 hash_murmur3_128(slice bytes);
