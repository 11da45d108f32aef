#include "partition/split_merge.h"

#include <math.h>

/* Wide arithmetic on weights; gcc and clang have it on every 64-bit machine. */
__extension__ typedef unsigned __int128 u128;

static const double merge_share = 0.3; /* ranges with a share below this fraction of t may merge */
static const double merge_bytes = 0.4; /* a merged range may have this fraction of the storage limit */
static const double nearly = 0.1;      /* tolerance: data is never cut quite evenly */
static const double rounding = 1e-9;   /* 3 × 0.1 is not 0.3 */
static const plan_step nothing = {.reason = PLAN_NOTHING};

static const char *const reason_texts[] = {
    [PLAN_NOTHING] = "nothing",       [PLAN_THROUGHPUT] = "throughput", [PLAN_STORAGE] = "storage",
    [PLAN_SCALE_DOWN] = "scale-down", [PLAN_COMMAND] = "command",       [PLAN_UNDO] = "undo-of-manual-split",
};

const char *plan_reason_text(plan_reason reason) {
    return reason_texts[reason];
}

/* ---- storage ---- */

/* Parts get half to three quarters of the limit: not soon full again, and too large to be merged again. */
static plan_step split_for_storage(const plan_limits *limits, const plan_range *ranges, size_t n) {
    size_t fullest = n;
    for (size_t i = 0; i < n; i++) {
        bool over = ranges[i].bytes > limits->range_bytes && ranges[i].partitions > 1;
        if (over && (fullest == n || ranges[i].bytes > ranges[fullest].bytes)) {
            fullest = i;
        }
    }
    if (fullest == n || n >= limits->ranges_max) {
        return nothing;
    }
    double parts = floor(2 * (double)ranges[fullest].bytes / (double)limits->range_bytes + rounding);
    parts = fmax(parts, 2);
    parts = fmin(parts, (double)ranges[fullest].partitions);
    parts = fmin(parts, (double)(limits->ranges_max - n + 1));
    return (plan_step){.reason = PLAN_STORAGE, .first = fullest, .n = 1, .parts = (uint32_t)parts};
}

/* ---- throughput ---- */

uint32_t plan_ranges_for(double throughput, double range_most, uint32_t ranges_max) {
    double wanted = throughput > 0 ? ceil(throughput / range_most - rounding) : 1;
    return (uint32_t)fmax(fmin(wanted, ranges_max), 1);
}

static size_t ranges_wanted(const plan_limits *limits) {
    return plan_ranges_for(limits->throughput, limits->range_most, limits->ranges_max);
}

/* Which ranges to split first: those where both sides get data, then empty ranges, last those with a single logical partition. */
static int rank(const plan_range *range) {
    return range->partitions > 1 ? 2 : range->partitions == 0 ? 1 : 0;
}

static bool goes_before(const plan_range *a, const plan_range *b) {
    if (rank(a) != rank(b)) {
        return rank(a) > rank(b);
    }
    return a->bytes != b->bytes && rank(a) == 2 ? a->bytes > b->bytes : a->width > b->width;
}

/* The weight that splits of ranges like `top` balance: their data, or their width if there is no data to divide. */
static double weight(const plan_range *top, const plan_range *range) {
    if (rank(range) != rank(top)) {
        return 0;
    }
    return rank(top) == 2 && top->bytes > 0 ? (double)range->bytes : range->width;
}

/* The number of parts for `top`, the heaviest of its rank. Ranges lighter than the final average stay whole; the others divide the
 * remaining places by weight. The result is rounded up, and computed again for each step, so that the total comes out right: ten equal
 * ranges that must become 25 give five times three and five times two; two that are not quite equal become two each. */
static double parts_of(const plan_range *top, const plan_range *ranges, size_t n, size_t missing) {
    double total = 0;
    double places = (double)missing;
    for (size_t i = 0; i < n; i++) {
        total += weight(top, &ranges[i]);
        places += rank(&ranges[i]) == rank(top);
    }
    double heavy = 0;
    double heavy_places = (double)missing;
    for (size_t i = 0; i < n; i++) {
        double w = weight(top, &ranges[i]);
        if (w * places > total) {
            heavy += w;
            heavy_places++;
        }
    }
    return heavy > 0 ? ceil(heavy_places * weight(top, top) / heavy - nearly) : (double)missing + 1;
}

static plan_step split_for_throughput(const plan_range *ranges, size_t n, size_t missing) {
    size_t top = 0;
    for (size_t i = 1; i < n; i++) {
        top = goes_before(&ranges[i], &ranges[top]) ? i : top;
    }
    double parts = parts_of(&ranges[top], ranges, n, missing);
    parts = fmin(parts, (double)missing + 1);
    parts = ranges[top].partitions > 1 ? fmin(parts, (double)ranges[top].partitions) : parts;
    parts = fmax(parts, 2);
    return (plan_step){.reason = PLAN_THROUGHPUT, .first = top, .n = 1, .parts = (uint32_t)parts};
}

/* ---- scaling down ---- */

/* A candidate for a merge: adjacent ranges. */
typedef struct run {
    size_t first, n;
    double bytes, width;
} run;

static run with(run r, const plan_range *ranges, size_t i) {
    return (run){
        .first = i < r.first ? i : r.first, .n = r.n + 1, .bytes = r.bytes + (double)ranges[i].bytes, .width = r.width + ranges[i].width};
}

static bool lighter(run a, run b) {
    return a.bytes != b.bytes ? a.bytes < b.bytes : a.width < b.width;
}

static run lightest_pair(const plan_range *ranges, size_t n, double bytes_most) {
    run best = {0};
    for (size_t i = 0; i + 1 < n; i++) {
        run pair = with(with((run){.first = i}, ranges, i), ranges, i + 1);
        bool together = ranges[i].home == ranges[i + 1].home && pair.bytes <= bytes_most;
        if (together && (best.n == 0 || lighter(pair, best))) {
            best = pair;
        }
    }
    return best;
}

/* Adds neighbours, the lighter side first, up to the average size of the final ranges, so that clients see one change instead of
 * several. */
static run grown(run r, const plan_range *ranges, size_t n, size_t n_most, double bytes_most, double width_most) {
    uint32_t home = ranges[r.first].home;
    while (r.n < n_most) {
        run left = r.first > 0 && ranges[r.first - 1].home == home ? with(r, ranges, r.first - 1) : r;
        run right = r.first + r.n < n && ranges[r.first + r.n].home == home ? with(r, ranges, r.first + r.n) : r;
        run next = left.n == r.n || (right.n > r.n && !lighter(left, right)) ? right : left;
        if (next.n == r.n || next.bytes > bytes_most || next.width > width_most) {
            return r;
        }
        r = next;
    }
    return r;
}

static plan_step merge(const plan_limits *limits, const plan_range *ranges, size_t n) {
    /* the number of ranges at which no share is below the merge limit; never fewer than wanted, since 0.3 t is less than t */
    double enough = floor(limits->throughput / (merge_share * limits->range_most) + rounding);
    size_t fewest = (size_t)fmax(fmin(enough, (double)n), (double)ranges_wanted(limits));
    if (n <= fewest) {
        return nothing;
    }
    double bytes_most = limits->range_bytes ? merge_bytes * (double)limits->range_bytes : INFINITY;
    run r = lightest_pair(ranges, n, bytes_most);
    if (r.n == 0) {
        return nothing;
    }
    double total = 0;
    for (size_t i = 0; i < n; i++) {
        total += (double)ranges[i].bytes;
    }
    double average = total / (double)fewest;
    r = grown(r, ranges, n, n - fewest + 1, fmin(bytes_most, average), (1 + rounding) / (double)fewest);
    return (plan_step){.reason = PLAN_SCALE_DOWN, .first = r.first, .n = r.n, .parts = 1};
}

plan_step plan_next(const plan_limits *limits, const plan_range *ranges, size_t n) {
    if (limits->fixed || n == 0) {
        return nothing;
    }
    plan_step step = limits->range_bytes ? split_for_storage(limits, ranges, n) : nothing;
    if (step.reason != PLAN_NOTHING) {
        return step;
    }
    size_t wanted = ranges_wanted(limits);
    if (wanted > n) {
        return split_for_throughput(ranges, n, wanted - n);
    }
    return limits->merges ? merge(limits, ranges, n) : nothing;
}

/* ---- cutting ---- */

/* The ideal place of cut number `cut`, doubled so that halves are integers. */
static u128 place_doubled(const plan_cutter *c, uint32_t cut) {
    uint64_t rest = c->total > c->base ? c->total - c->base : 0;
    return 2 * ((u128)c->base + (u128)rest * (cut - c->base_cuts) / (c->parts - c->base_cuts));
}

bool plan_cut_here(plan_cutter *c, uint64_t weight_here) {
    u128 middle_doubled = 2 * (u128)c->sum + weight_here; /* this partition's middle decides whether to cut before or after it */
    bool cut = c->in_piece && c->cuts + 1 < c->parts && place_doubled(c, c->cuts + 1) <= middle_doubled;
    if (cut) {
        c->cuts++;
        if (c->cuts + 1 < c->parts && 2 * (u128)c->sum >= place_doubled(c, c->cuts + 1)) {
            c->base = c->sum; /* a heavy partition also took the next piece's share: divide the rest anew */
            c->base_cuts = c->cuts;
        }
    }
    c->in_piece = true;
    c->sum += weight_here;
    return cut;
}
