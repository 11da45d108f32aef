#include "histogram.h"

#include <stdio.h>

/* Values under 64 have a bucket each; above, the six bits after the first one choose the bucket within the power of two. */
static unsigned bucket_of(uint64_t v) {
    if (v < 64) {
        return (unsigned)v;
    }
    unsigned power = 63 - (unsigned)__builtin_clzll(v), bucket = (power - 5) * 64 + (unsigned)(v >> (power - 6) & 63);
    return bucket < HISTOGRAM_BUCKETS ? bucket : HISTOGRAM_BUCKETS - 1;
}

static uint64_t value_of(unsigned bucket) {
    return bucket < 64 ? bucket : (64 + (uint64_t)(bucket & 63)) << (bucket / 64 - 1);
}

void histogram_add(histogram *h, uint64_t nanoseconds) {
    h->counts[bucket_of(nanoseconds)]++;
    h->total++;
    if (nanoseconds > h->max) {
        h->max = nanoseconds;
    }
}

void histogram_merge(histogram *into, const histogram *from) {
    for (int i = 0; i < HISTOGRAM_BUCKETS; i++) {
        into->counts[i] += from->counts[i];
    }
    into->total += from->total;
    if (from->max > into->max) {
        into->max = from->max;
    }
}

uint64_t histogram_at(const histogram *h, double fraction) {
    uint64_t wanted = (uint64_t)(fraction * (double)h->total), seen = 0;
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
        if ((seen += h->counts[i]) > wanted) {
            return value_of(i);
        }
    }
    return h->max;
}

void histogram_print(const histogram *h) {
    static const char *const names[] = {"p50", "p90", "p99", "p99.9"};
    static const double fractions[] = {0.5, 0.9, 0.99, 0.999};
    printf("\"microseconds\":{");
    for (int i = 0; i < 4; i++) {
        printf("\"%s\":%.1f,", names[i], (double)histogram_at(h, fractions[i]) / 1e3);
    }
    printf("\"max\":%.1f}", (double)h->max / 1e3);
}
