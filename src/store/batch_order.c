#include "store/batch_order.h"

#include <endian.h>
#include <stdlib.h>

enum {
    FEW = 8,             /* so many are compared as whole keys */
    DEPTH_MAX = 16,      /* of recursion, which goes eight bytes of the key further each time */
    DISTRIBUTE_FROM = 96 /* so many are distributed by their bytes, if few bytes differ */
};

static uint64_t head_of(slice key, size_t skip) {
    uint64_t head = 0;
    slice rest = slice_skip(key, skip);
    if (rest.n >= sizeof head) {
        memcpy(&head, rest.p, sizeof head);
    } else {
        memcpy(&head, rest.p, rest.n);
    }
    return be64toh(head);
}

/* ---- by whole keys ---- */

static int compare(const void *a, const void *b, void *context) {
    const store_change *changes = context;
    uint32_t i = ((const batch_point *)a)->index, j = ((const batch_point *)b)->index;
    int c = slice_cmp(changes[i].key, changes[j].key);
    return c ? c : (i > j) - (i < j);
}

static void sort_few(const store_change *changes, batch_point *list, size_t n) {
    for (size_t i = 1; i < n; i++) {
        batch_point one = list[i];
        size_t j = i;
        for (; j > 0 && slice_cmp(changes[one.index].key, changes[list[j - 1].index].key) < 0; j--) {
            list[j] = list[j - 1];
        }
        list[j] = one;
    }
}

static void sort_keys(const store_change *changes, batch_point *list, size_t n) {
    if (n <= FEW) {
        sort_few(changes, list, n);
    } else {
        qsort_r(list, n, sizeof *list, compare, (void *)(uintptr_t)changes);
    }
}

/* ---- by heads: a merge sort or a distribution, which keep the order of equal heads ---- */

static void sort_few_heads(batch_point *list, size_t n) {
    for (size_t i = 1; i < n; i++) {
        batch_point one = list[i];
        size_t j = i;
        for (; j > 0 && one.head < list[j - 1].head; j--) {
            list[j] = list[j - 1];
        }
        list[j] = one;
    }
}

static void merge_heads(const batch_point *a, size_t a_n, const batch_point *b, size_t b_n, batch_point *into) {
    if (a_n && b_n && a[a_n - 1].head <= b->head) {
        memcpy(into, a, (a_n + b_n) * sizeof *a); /* they are neighbours */
        return;
    }
    while (a_n && b_n) {
        bool second = b->head < a->head;
        *into++ = second ? *b : *a;
        b += second, b_n -= second;
        a += !second, a_n -= !second;
    }
    memcpy(into, a, a_n * sizeof *a);
    memcpy(into + a_n, b, b_n * sizeof *b);
}

static uint64_t bits_that_differ(const batch_point *list, size_t n) {
    uint64_t bits = 0;
    for (size_t i = 1; i < n; i++) {
        bits |= list[i].head ^ list[0].head;
    }
    return bits;
}

/* Sorts by one byte after the other, from the lowest on; those that do not differ are skipped. */
static void distribute(batch_point *list, batch_point *spare, size_t n, uint64_t bits) {
    batch_point *from = list, *to = spare;
    for (unsigned shift = 0; shift < 64; shift += 8) {
        uint32_t places[256] = {0}, next = 0;
        if ((bits >> shift & 0xFF) == 0) {
            continue;
        }
        for (size_t i = 0; i < n; i++) {
            places[from[i].head >> shift & 0xFF]++;
        }
        for (unsigned byte = 0; byte < 256; byte++) {
            uint32_t count = places[byte];
            places[byte] = next;
            next += count;
        }
        for (size_t i = 0; i < n; i++) {
            to[places[from[i].head >> shift & 0xFF]++] = from[i];
        }
        batch_point *swap = from;
        from = to;
        to = swap;
    }
    if (from != list) {
        memcpy(list, from, n * sizeof *list);
    }
}

/* Whether that takes less than merging: each byte takes about as long as merging once, and as counting some hundred more. */
static bool is_distributed(size_t n, uint64_t bits) {
    size_t bytes = 0, merges = 0;
    for (unsigned shift = 0; shift < 64; shift += 8) {
        bytes += (bits >> shift & 0xFF) != 0;
    }
    for (size_t width = FEW; width < n; width *= 2) {
        merges++;
    }
    return bytes * (n + DISTRIBUTE_FROM) < merges * n;
}

static void sort_heads(batch_point *list, batch_point *spare, size_t n) {
    uint64_t bits = n < DISTRIBUTE_FROM ? 0 : bits_that_differ(list, n);
    if (n >= DISTRIBUTE_FROM && is_distributed(n, bits)) {
        distribute(list, spare, n, bits);
        return;
    }
    batch_point *from = list, *to = spare;
    for (size_t i = 0; i < n; i += FEW) {
        sort_few_heads(list + i, n - i < FEW ? n - i : FEW);
    }
    for (size_t width = FEW; width < n; width *= 2) {
        for (size_t i = 0; i < n; i += 2 * width) {
            size_t a_n = n - i < width ? n - i : width;
            size_t b_n = n - i - a_n < width ? n - i - a_n : width;
            merge_heads(from + i, a_n, from + i + a_n, b_n, to + i);
        }
        batch_point *swap = from;
        from = to;
        to = swap;
    }
    if (from != list) {
        memcpy(list, from, n * sizeof *list);
    }
}

/* ---- eight bytes after eight bytes ---- */

/* How many bytes both have in common, up to `most`; the first `same` are known to be. */
static size_t common_bytes(slice a, slice b, size_t same, size_t most) {
    size_t shorter = a.n < b.n ? a.n : b.n;
    for (; same < most && same + sizeof(uint64_t) <= shorter; same += sizeof(uint64_t)) {
        uint64_t differ = head_of(a, same) ^ head_of(b, same);
        if (differ) {
            same += (unsigned)__builtin_clzll(differ) / 8;
            return same < most ? same : most;
        }
    }
    most = shorter < most ? shorter : most;
    while (same < most && a.p[same] == b.p[same]) {
        same++;
    }
    return same < most ? same : most;
}

/* How many bytes all keys have in common, at least `known` of which are known to be. */
static size_t common_of(const store_change *changes, const batch_point *list, size_t n, size_t known) {
    slice first = changes[list[0].index].key;
    size_t most = first.n;
    for (size_t i = 1; i < n && most > known; i++) {
        most = common_bytes(changes[list[i].index].key, first, known, most);
    }
    return most;
}

static void order(const store_change *changes, batch_point *list, batch_point *spare, size_t n, size_t known, int depth);

/* Keys with the same head. A short key's head ends with zeros, as a longer key's may. */
static void order_alike(const store_change *changes, batch_point *list, batch_point *spare, size_t n, size_t skip, int depth) {
    bool long_enough = n > FEW && depth < DEPTH_MAX;
    for (size_t i = 0; i < n && long_enough; i++) {
        long_enough = changes[list[i].index].key.n >= skip + sizeof list->head;
    }
    if (long_enough) {
        order(changes, list, spare, n, skip + sizeof list->head, depth + 1);
    } else if (n > 1) {
        sort_keys(changes, list, n);
    }
}

static void order(const store_change *changes, batch_point *list, batch_point *spare, size_t n, size_t known, int depth) {
    size_t skip = common_of(changes, list, n, known);
    for (size_t i = 0; i < n; i++) {
        list[i].head = head_of(changes[list[i].index].key, skip);
    }
    sort_heads(list, spare, n);
    for (size_t from = 0, to; from < n; from = to) {
        for (to = from + 1; to < n && list[to].head == list[from].head; to++) {
        }
        order_alike(changes, list + from, spare + from, to - from, skip, depth);
    }
}

void store_batch_order(const store_change *changes, batch_point *list, batch_point *spare, size_t n) {
    if (n) {
        order(changes, list, spare, n, 0, 0);
    }
}
