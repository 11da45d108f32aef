/* distinct.h — how many different hashes there were: HyperLogLog, 4 KB, a standard error of 1.6 %; small numbers are nearly exact. */
#pragma once

#include <stdint.h>

enum { DISTINCT_REGISTERS = 4096 };

typedef struct distinct {
    uint8_t registers[DISTINCT_REGISTERS];
} distinct;

void distinct_add(distinct *d, uint64_t hash); /* well-mixed bits */
double distinct_count(const distinct *d);
