#include "world.h"

#include <endian.h>
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"

static const double pareto = 1.2;      /* the exponent of sizes: most are small, some are huge */
static const double growing_part = 64; /* one partition in 64 grows, and gets all of the data's growth */

/* ---- rates ---- */

/* The sum of (r + 1 + flat) ^ -skew over all ranks, as an integral. */
static double zipf_sum(double n, double flat, double skew) {
    double from = flat + 0.5;
    double to = n + flat + 0.5;
    return fabs(skew - 1) < 1e-9 ? log(to / from) : (pow(to, 1 - skew) - pow(from, 1 - skew)) / (1 - skew);
}

static double hottest_of(const world_options *o, double flat) {
    return o->rate * pow(1 + flat, -o->skew) / zipf_sum(o->partitions, flat, o->skew);
}

/* How far the law's head must be flattened for the hottest partition to have the given rate. */
static double find_flat(const world_options *o) {
    double low = 0;
    double high = o->partitions;
    if (o->hottest <= 0 || hottest_of(o, low) <= o->hottest) {
        return 0;
    }
    for (int i = 0; i < 100; i++) {
        double middle = (low + high) / 2;
        if (hottest_of(o, middle) > o->hottest) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return high;
}

double world_rate(const world *w, uint32_t rank) {
    return w->scale * pow(rank + 1 + w->flat, -w->options.skew);
}

/* ---- sizes ---- */

/* Pseudo-random bits of a rank, the same on each call. */
static uint64_t bits_of(const world *w, uint32_t rank) {
    uint64_t z = (w->options.seed << 32) + rank + 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static double size_of(const world *w, uint64_t bits) {
    double u = ((double)(bits >> 11) + 0.5) * 0x1p-53;
    double smallest = w->options.size_mean * (pareto - 1) / pareto;
    return fmin(smallest * pow(u, -1 / pareto), 0.75 * w->options.size_limit);
}

static double growth_of(const world *w, uint64_t bits, double rate) {
    return bits % (uint64_t)growing_part == 0 ? growing_part * rate * w->options.bytes_per_ru : 0;
}

double world_bytes_unlimited(const world *w, uint32_t rank, double age) {
    uint64_t bits = bits_of(w, rank);
    double growth = age > 0 ? growth_of(w, bits, 1) : 0;
    return size_of(w, bits) + (growth > 0 ? growth * world_rate(w, rank) * age : 0);
}

double world_bytes(const world *w, uint32_t rank, double age) {
    return fmin(world_bytes_unlimited(w, rank, age), w->options.size_limit);
}

void world_add(world_sums *sums, const world *w, uint32_t rank) {
    uint64_t bits = bits_of(w, rank);
    double rate = world_rate(w, rank);
    sums->partitions++;
    sums->rate += rate;
    sums->size += size_of(w, bits);
    sums->growth += growth_of(w, bits, rate);
}

world_sums world_sum(const world *w, uint32_t from, uint32_t to) {
    world_sums sums = {0};
    for (uint32_t i = from; i < to; i++) {
        world_add(&sums, w, w->order[i]);
    }
    return sums;
}

/* ---- places ---- */

/* Another seed gives other keys, and so other places. */
void world_epk(const world *w, uint32_t rank, epk *epk_out) {
    double number = (double)((w->options.seed % (1u << 20) << 32) + rank);
    pkey key = {.n = 1, .values = {{.type = PKEY_NUMBER, .number = number}}};
    epk_of(&w->definition, &key, epk_out);
}

uint64_t world_head(const epk *e) {
    uint64_t head = 0;
    memcpy(&head, e->bytes, sizeof head);
    head = be64toh(head);
    head = e->n >= 8 ? head : e->n ? head >> (64 - 8 * e->n) << (64 - 8 * e->n) : 0;
    return head < (uint64_t)1 << 62 ? head : (uint64_t)1 << 62;
}

uint32_t world_seek(const world *w, const epk *e) {
    uint32_t low = 0;
    uint32_t high = w->options.partitions;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        epk at;
        world_epk(w, w->order[middle], &at);
        if (epk_cmp(&at, e) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* ---- the order: radix sort by the EPK's first bits into cells that fit the cache, by the next bits into heaps, then insertion sort
 * ---- */

enum { CELL_BITS = 12, HEAP_BITS = 11 };

typedef struct placed {
    uint64_t head;
    uint32_t rank;
} placed;

static uint64_t head_of(const world *w, uint32_t rank) {
    epk e;
    world_epk(w, rank, &e);
    return world_head(&e);
}

static bool goes_before(const world *w, const placed *a, const placed *b) {
    if (a->head != b->head) {
        return a->head < b->head;
    }
    epk x;
    epk y;
    world_epk(w, a->rank, &x);
    world_epk(w, b->rank, &y);
    return epk_cmp(&x, &y) < 0;
}

/* Distributes into heaps, so that elements are out of order only within a heap; then insertion sort moves them only a little. */
static void sort_cell(const world *w, uint32_t *ranks, uint32_t n, placed *room) {
    uint32_t ends[(1 << HEAP_BITS) + 1] = {0};
    const unsigned shift = 62 - CELL_BITS - HEAP_BITS;
    const uint64_t mask = (1 << HEAP_BITS) - 1;
    placed *sorted = room + n;
    for (uint32_t i = 0; i < n; i++) {
        room[i] = (placed){.head = head_of(w, ranks[i]), .rank = ranks[i]};
        ends[(room[i].head >> shift & mask) + 1]++;
    }
    for (uint32_t i = 0; i < 1 << HEAP_BITS; i++) {
        ends[i + 1] += ends[i];
    }
    for (uint32_t i = 0; i < n; i++) {
        sorted[ends[room[i].head >> shift & mask]++] = room[i];
    }
    for (uint32_t i = 0; i < n; i++) {
        placed p = sorted[i];
        uint32_t at = i;
        for (; at > 0 && goes_before(w, &p, &sorted[at - 1]); at--) {
            sorted[at] = sorted[at - 1];
        }
        sorted[at] = p;
    }
    for (uint32_t i = 0; i < n; i++) {
        ranks[i] = sorted[i].rank;
    }
}

static void sort_all(world *w) {
    static uint32_t ends[(1 << CELL_BITS) + 1];
    const unsigned shift = 62 - CELL_BITS;
    memset(ends, 0, sizeof ends);
    for (uint32_t rank = 0; rank < w->options.partitions; rank++) {
        ends[(head_of(w, rank) >> shift) + 1]++;
    }
    uint32_t largest = 0;
    for (uint32_t i = 0; i < 1 << CELL_BITS; i++) {
        largest = ends[i + 1] > largest ? ends[i + 1] : largest;
        ends[i + 1] += ends[i];
    }
    for (uint32_t rank = 0; rank < w->options.partitions; rank++) { /* ends[i] moves from the start of cell i to its end */
        w->order[ends[head_of(w, rank) >> shift]++] = rank;
    }
    placed *room = mem_alloc((2 * (size_t)largest + 1) * sizeof *room);
    for (uint32_t i = 0; i < 1 << CELL_BITS; i++) {
        uint32_t from = i ? ends[i - 1] : 0;
        sort_cell(w, w->order + from, ends[i] - from, room);
    }
    free(room);
}

void world_build(world *w, const world_options *options) {
    *w = (world){.options = *options, .definition = {.kind = PKEY_HASH, .version = 2, .n = 1}};
    w->flat = find_flat(options);
    w->scale = options->rate / zipf_sum(options->partitions, w->flat, options->skew);
    w->order = mem_alloc(options->partitions * sizeof *w->order);
    sort_all(w);
}

void world_free(world *w) {
    free(w->order);
}
