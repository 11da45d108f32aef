#include "advise/distinct.h"

#include <math.h>

enum { INDEX_BITS = 12 };

/* The first bits choose a register; it keeps the longest run of zero bits, plus one, that the others began with. */
void distinct_add(distinct *d, uint64_t hash) {
    uint8_t *kept = &d->registers[hash >> (64 - INDEX_BITS)];
    uint8_t run = (uint8_t)(__builtin_clzll(hash << INDEX_BITS | 1) + 1);
    *kept = run > *kept ? run : *kept;
}

/* While registers are empty, their number tells more than the runs do (linear counting). */
double distinct_count(const distinct *d) {
    double sum = 0, n = DISTINCT_REGISTERS;
    unsigned empty = 0;
    for (unsigned i = 0; i < DISTINCT_REGISTERS; i++) {
        sum += ldexp(1, -d->registers[i]);
        empty += d->registers[i] == 0;
    }
    double estimate = 0.7213 / (1 + 1.079 / n) * n * n / sum;
    return empty && estimate <= 2.5 * n ? round(n * log(n / empty)) : round(estimate);
}
