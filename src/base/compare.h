/* compare.h — comparisons for qsort and bsearch. */
#pragma once

#include <stdint.h>

static inline int order_u64(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}
