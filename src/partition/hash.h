/* hash.h — MurmurHash3, seed 0: the hash under every effective partition key (epk.h).
 *
 * Austin Appleby's public-domain function, in its x86 32-bit and x64 128-bit forms. Pure; any alignment; bytes are read as little-endian
 * on every machine. Not for anything that an attacker must not steer: keys that collide can be found. */
#pragma once

#include "base/slice.h"

typedef struct hash128 {
    uint64_t h1; /* the half that the reference writes out first */
    uint64_t h2;
} hash128;

uint32_t hash_murmur3_32(slice bytes);
hash128 hash_murmur3_128(slice bytes);
