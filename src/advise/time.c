/* What the sample says about time: whether a key takes all writes of a moment, and whether new items go to new keys.
 *
 * Both are measured twice: with the sampled items in the order of time, and shuffled. What the shuffled ones show is due to the keys' sizes
 * and to the size of the sample; only the difference is due to time. */
#include "advise/advise_int.h"

#include <stdlib.h>

enum { WINDOW = 64 };

typedef struct order {
    double time;
    uint32_t tie, at;
} order;

static int earlier_first(const void *a, const void *b) {
    const order *left = a, *right = b;
    int by_time = (left->time > right->time) - (left->time < right->time);
    return by_time ? by_time : (left->tie > right->tie) - (left->tie < right->tie);
}

static int smaller_first(const void *a, const void *b) {
    const uint64_t *left = a, *right = b;
    return (*left > *right) - (*left < *right);
}

/* The mean, over windows of consecutive items, of the part that the most frequent key has; 0 if all keys differ, 1 if all are the same. */
static double concentration(const uint64_t *ids, size_t n) {
    double sum = 0;
    size_t windows = 0;
    for (size_t from = 0; from + WINDOW <= n; from += WINDOW, windows++) {
        uint64_t sorted[WINDOW];
        size_t most = 1, run = 1;
        memcpy(sorted, ids + from, sizeof sorted);
        qsort(sorted, WINDOW, sizeof *sorted, smaller_first);
        for (size_t i = 1; i < WINDOW; i++) {
            run = sorted[i] == sorted[i - 1] ? run + 1 : 1;
            most = run > most ? run : most;
        }
        sum += (double)(most - 1) / (WINDOW - 1);
    }
    return windows ? sum / (double)windows : 0;
}

/* The part of the second half whose keys are not in the first half. */
static double newness(const uint64_t *ids, size_t n, uint64_t *room) {
    size_t half = n / 2, new = 0;
    memcpy(room, ids, half * sizeof *ids);
    qsort(room, half, sizeof *room, smaller_first);
    for (size_t i = half; i < n; i++) {
        new += bsearch(&ids[i], room, half, sizeof *room, smaller_first) == NULL;
    }
    return n > half ? (double)new / (double)(n - half) : 0;
}

static void column(const advise *a, size_t candidate, const order *by, uint64_t *ids) {
    for (size_t i = 0; i < a->sample_n; i++) {
        ids[i] = a->sample[by[i].at].ids[candidate];
    }
}

static double within_one(double x) {
    return x < 0 ? 0 : x > 1 ? 1 : x;
}

static void look(advise *a, size_t i, const order *timed, const order *shuffled, uint64_t *ids, uint64_t *room) {
    advise_candidate *c = a->candidates[i];
    column(a, i, timed, ids);
    double together = concentration(ids, a->sample_n), fresh = newness(ids, a->sample_n, room);
    column(a, i, shuffled, ids);
    double by_chance = concentration(ids, a->sample_n), fresh_by_chance = newness(ids, a->sample_n, room);
    double excess = by_chance < 1 ? within_one((together - by_chance) / (1 - by_chance)) : 0;
    c->excess = excess < 0.03 ? 0 : excess;
    c->novelty = fresh_by_chance > 0.9 ? 1 : within_one((fresh - fresh_by_chance) / (1 - fresh_by_chance));
}

void advise__look_at_time(advise *a) {
    size_t n = a->sample_n;
    if (n < 2 * WINDOW || a->from == a->to) {
        return;
    }
    order *timed = calloc(2 * n, sizeof *timed), *shuffled = timed + n;
    uint64_t *ids = calloc(2 * n, sizeof *ids);
    if (!timed || !ids) {
        abort();
    }
    for (size_t i = 0; i < n; i++) {
        timed[i] = (order){a->sample[i].time, (uint32_t)random_u64(&a->random), (uint32_t)i};
        shuffled[i] = (order){0, (uint32_t)random_u64(&a->random), (uint32_t)i};
    }
    qsort(timed, n, sizeof *timed, earlier_first);
    qsort(shuffled, n, sizeof *shuffled, earlier_first);
    for (size_t i = 0; i < a->candidates_n; i++) {
        look(a, i, timed, shuffled, ids, ids + n);
    }
    free(timed);
    free(ids);
}
