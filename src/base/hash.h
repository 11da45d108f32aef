/* hash.h — a hash of bytes for tables in memory. Not keyed: do not use it where clients could choose keys that collide. */
#pragma once

#include "base/slice.h"

/* Multiplies and folds eight bytes at a time. A different `seed` gives a different hash. */
static inline uint64_t hash_bytes(slice bytes, uint64_t seed) {
    uint64_t hash = 0xCBF29CE484222325u ^ seed;
    size_t i = 0;
    for (; i + 8 <= bytes.n; i += 8) {
        uint64_t word;
        memcpy(&word, bytes.p + i, 8);
        hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
        hash ^= hash >> 32;
    }
    for (; i < bytes.n; i++) {
        hash = (hash ^ (unsigned char)bytes.p[i]) * 0x100000001B3u;
    }
    return hash ^ hash >> 29;
}
