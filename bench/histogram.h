/* histogram.h — latencies in buckets a 64th apart, so a percentile is right to 1.6 %, whatever its size. */
#pragma once

#include <stdint.h>

enum { HISTOGRAM_BUCKETS = 64 * 40 };

typedef struct histogram {
    uint64_t counts[HISTOGRAM_BUCKETS], total, max;
} histogram;

void histogram_add(histogram *h, uint64_t nanoseconds);
void histogram_merge(histogram *into, const histogram *from);
uint64_t histogram_at(const histogram *h, double fraction); /* 0.99 → the 99th percentile, in nanoseconds */
void histogram_print(const histogram *h);                   /* "microseconds":{"p50":…,…} on standard output */
