/* keyed_hash.h — a hash with a secret that is chosen when the process starts: clients cannot choose keys that collide.
 *
 * For tables in memory only; hashes differ from process to process. Any thread. */
#pragma once

#include "base/slice.h"

extern uint64_t keyed_hash_secrets[2]; /* set before main begins; constant afterwards */

/* Combines a hash with further bits. */
static inline uint64_t keyed_hash_mix(uint64_t hash, uint64_t bits) {
    __uint128_t product = (__uint128_t)(hash ^ keyed_hash_secrets[0]) * (bits ^ keyed_hash_secrets[1]);
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Combines a hash with bytes and their number. Begin with any number. */
static inline uint64_t keyed_hash_bytes(slice bytes, uint64_t hash) {
    uint64_t rest = 0;
    hash = keyed_hash_mix(hash, bytes.n);
    for (; bytes.n >= 8; bytes = slice_skip(bytes, 8)) {
        uint64_t word;
        memcpy(&word, bytes.p, 8);
        hash = keyed_hash_mix(hash, word);
    }
    if (bytes.n) {
        memcpy(&rest, bytes.p, bytes.n);
    }
    return keyed_hash_mix(hash, rest);
}
