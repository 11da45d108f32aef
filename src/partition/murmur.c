#include "partition/murmur.h"

static inline uint32_t rotate32(uint32_t x, int r) {
    return x << r | x >> (32 - r);
}

static inline uint64_t rotate64(uint64_t x, int r) {
    return x << r | x >> (64 - r);
}

/* Loads n ≤ 8 bytes, little-endian. With a constant n this compiles to one load where possible. */
static inline uint64_t load(const unsigned char *p, size_t n) {
    uint64_t v = 0;
    for (size_t i = 0; i < n; i++) {
        v |= (uint64_t)p[i] << (8 * i);
    }
    return v;
}

static inline uint32_t mix32(uint32_t k) {
    return rotate32(k * 0xcc9e2d51u, 15) * 0x1b873593u;
}

uint32_t hash_murmur3_32(slice bytes) {
    const unsigned char *p = (const unsigned char *)bytes.p;
    size_t blocks = bytes.n / 4;
    size_t rest = bytes.n % 4;
    uint32_t h = 0;
    for (size_t i = 0; i < blocks; i++) {
        h ^= mix32((uint32_t)load(p + 4 * i, 4));
        h = rotate32(h, 13) * 5 + 0xe6546b64u;
    }
    if (rest) {
        h ^= mix32((uint32_t)load(p + 4 * blocks, rest));
    }
    h ^= (uint32_t)bytes.n;
    h = (h ^ h >> 16) * 0x85ebca6bu;
    h = (h ^ h >> 13) * 0xc2b2ae35u;
    return h ^ h >> 16;
}

static const uint64_t c1 = 0x87c37b91114253d5u;
static const uint64_t c2 = 0x4cf5ad432745937fu;

static inline uint64_t mix_first(uint64_t k) {
    return rotate64(k * c1, 31) * c2;
}

static inline uint64_t mix_second(uint64_t k) {
    return rotate64(k * c2, 33) * c1;
}

static inline uint64_t finish(uint64_t h) {
    h = (h ^ h >> 33) * 0xff51afd7ed558ccdu;
    h = (h ^ h >> 33) * 0xc4ceb9fe1a85ec53u;
    return h ^ h >> 33;
}

hash128 hash_murmur3_128(slice bytes) {
    const unsigned char *p = (const unsigned char *)bytes.p;
    size_t blocks = bytes.n / 16;
    size_t rest = bytes.n % 16;
    uint64_t h1 = 0;
    uint64_t h2 = 0;
    for (size_t i = 0; i < blocks; i++, p += 16) {
        h1 = (rotate64(h1 ^ mix_first(load(p, 8)), 27) + h2) * 5 + 0x52dce729u;
        h2 = (rotate64(h2 ^ mix_second(load(p + 8, 8)), 31) + h1) * 5 + 0x38495ab5u;
    }
    if (rest > 8) {
        h2 ^= mix_second(load(p + 8, rest - 8));
    }
    if (rest) {
        h1 ^= mix_first(load(p, rest < 8 ? rest : 8));
    }
    h1 ^= bytes.n;
    h2 ^= bytes.n;
    h1 += h2;
    h2 += h1;
    h1 = finish(h1);
    h2 = finish(h2);
    h1 += h2;
    h2 += h1;
    return (hash128){h1, h2};
}
