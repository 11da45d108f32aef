/* hash.h — a hash of bytes for tables in memory. Not secret: where a client can choose keys that collide, use another. */
#pragma once

#include "base/slice.h"

/* Eight bytes at a time, each word multiplied and folded. Another `seed` gives another hash of the same bytes. */
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
