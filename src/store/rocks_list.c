/* The numbers of one stem as an array, and scans over it. Lists are immutable and reference-counted, so that a scan keeps its list while
 * the caches of rocks_kept.c and rocks_short.c drop it. */
#include <endian.h>
#include <stdlib.h>

#include "base/memory.h"
#include "store/rocks_int.h"

stem_list *store__list_make(uint64_t hash, uint64_t as_of, slice stem, size_t n) {
    stem_list *l = mem_alloc(sizeof *l + n * sizeof *l->own + stem.n);
    *l = (stem_list){.hash = hash, .as_of = as_of, .n = n, .numbers = n ? l->own : NULL, .stem_n = stem.n};
    atomic_init(&l->refs, 1);
    l->stem = (char *)(l->own + n);
    memcpy(l->stem, stem.p, stem.n);
    return l;
}

size_t store__list_bytes(const stem_list *l) {
    return sizeof *l + l->stem_n + l->n * sizeof *l->numbers;
}

void store__list_give(stem_list *l) {
    if (atomic_fetch_sub_explicit(&l->refs, 1, memory_order_acq_rel) == 1) {
        if (l->numbers != l->own) {
            free(l->numbers);
        }
        free(l);
    }
}

uint64_t store__stem_number(const char *p) {
    uint64_t number;
    memcpy(&number, p, sizeof number);
    return be64toh(number);
}

/* ---- scans ---- */

typedef struct list_scan {
    store_scan base;
    stem_list *list;
    size_t at;
    char key[];
} list_scan;

static bool list_next(store_scan *base, slice *key_out, slice *value_out) {
    list_scan *s = (list_scan *)base;
    const stem_list *l = s->list;
    if (s->at == l->n) {
        return false;
    }
    uint64_t be = htobe64(l->numbers[s->at++]);
    memcpy(s->key + l->stem_n, &be, sizeof be);
    *key_out = slice_of(s->key, l->stem_n + STEM_NUMBER_BYTES);
    *value_out = SLICE_EMPTY;
    return true;
}

/* Index of the first number from `least` on. Galloping search, since it is usually near. */
static size_t find_number(const list_scan *s, uint64_t least) {
    const stem_list *l = s->list;
    size_t from = s->at && l->numbers[s->at - 1] < least ? s->at : 0, step = 1;
    while (from + step < l->n && l->numbers[from + step] < least) {
        from += step;
        step *= 2;
    }
    size_t to = from + step < l->n ? from + step : l->n;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        l->numbers[middle] < least ? (from = middle + 1) : (to = middle);
    }
    return from;
}

static void list_seek(store_scan *base, slice key, bool backward) {
    list_scan *s = (list_scan *)base;
    const stem_list *l = s->list;
    char rest[STEM_NUMBER_BYTES] = {0};
    size_t common = key.n < l->stem_n ? key.n : l->stem_n;
    int order = memcmp(key.p, l->stem, common);
    if (backward || order) { /* stems are never scanned backward */
        s->at = backward || order > 0 ? l->n : 0;
        return;
    }
    size_t n = key.n - common;
    memcpy(rest, key.p + common, n < STEM_NUMBER_BYTES ? n : STEM_NUMBER_BYTES);
    uint64_t least = store__stem_number(rest);
    s->at = n > STEM_NUMBER_BYTES && least == UINT64_MAX ? l->n : find_number(s, least + (n > STEM_NUMBER_BYTES));
}

static err list_close(store_scan *base) {
    list_scan *s = (list_scan *)base;
    store__list_give(s->list);
    free(s);
    return OK;
}

static const store_ops list_ops = {.name = "list", .scan_next = list_next, .scan_seek = list_seek, .scan_close = list_close};
static store list_store = {.ops = &list_ops};

store_scan *store__list_scan(stem_list *l) {
    list_scan *s = mem_alloc(sizeof *s + l->stem_n + STEM_NUMBER_BYTES);
    s->base.owner = &list_store;
    s->list = l;
    s->at = 0;
    memcpy(s->key, l->stem, l->stem_n);
    return &s->base;
}
