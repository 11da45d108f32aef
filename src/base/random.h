/* random.h — random numbers, seeded by the system, or by a given seed so that a failing run can be repeated. Not for keys: those come from
 * OpenSSL. One generator per thread. */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef struct random_source {
    uint64_t state[2];
} random_source;

void random_seed(random_source *r, uint64_t seed);
void random_seed_system(random_source *r);
void random_fork(random_source *from, random_source *to); /* makes a generator for another thread */

uint64_t random_u64(random_source *r);
uint64_t random_below(random_source *r, uint64_t bound); /* 0 ≤ x < bound; bound > 0 */
void random_bytes(random_source *r, void *p, size_t n);
