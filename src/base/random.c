/* xoroshiro128+ by Blackman and Vigna: small, fast, good enough for identifiers and tests. */
#include "base/random.h"

#include <string.h>
#include <sys/random.h>
#include <time.h>

static uint64_t splitmix(uint64_t *x) {
    uint64_t z = (*x += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

void random_seed(random_source *r, uint64_t seed) {
    r->state[0] = splitmix(&seed);
    r->state[1] = splitmix(&seed);
}

void random_seed_system(random_source *r) {
    uint64_t seed;
    if (getrandom(&seed, sizeof seed, 0) != sizeof seed) {
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        seed = (uint64_t)t.tv_nsec ^ ((uint64_t)t.tv_sec << 32) ^ (uintptr_t)r;
    }
    random_seed(r, seed);
}

static uint64_t rotate(uint64_t x, int k) {
    return (x << k) | (x >> (64 - k));
}

uint64_t random_u64(random_source *r) {
    uint64_t a = r->state[0], b = r->state[1], sum = a + b;
    b ^= a;
    r->state[0] = rotate(a, 24) ^ b ^ (b << 16);
    r->state[1] = rotate(b, 37);
    return sum;
}

void random_fork(random_source *from, random_source *to) {
    to->state[0] = random_u64(from);
    to->state[1] = random_u64(from) | 1; /* not all zeros */
}

uint64_t random_below(random_source *r, uint64_t bound) {
    return (uint64_t)(((unsigned __int128)random_u64(r) * bound) >> 64);
}

void random_bytes(random_source *r, void *p, size_t n) {
    for (char *at = p; n;) {
        uint64_t x = random_u64(r);
        size_t k = n < sizeof x ? n : sizeof x;
        memcpy(at, &x, k);
        at += k;
        n -= k;
    }
}
