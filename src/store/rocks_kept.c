/* Lists of the numbers of a stem, cached in memory as arrays. A step of RocksDB's iterator takes some 0.3 µs, a step through an array a
 * tenth of that. A condition on a property with few values, such as a kind or a state, scans the same long list again and again. Like
 * iterators (rocks_idle.c), a list shows the family as of its edition; all lists are dropped when a tail is flushed.
 *
 * A list is made when it pays: when earlier scans of the stem, in this edition, have together read as many entries as the list is long. So
 * making lists never costs more than the scans did. */
#include <endian.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/memory.h"
#include "store/rocks_int.h"

enum { WORK_LEAST = 64, FIRST_CAP = 256, NUMBER_BYTES = 8, NEIGHBOURS = 4 };

struct kept_list {
    atomic_uint refs;
    uint64_t edition, hash;
    bool used; /* since the clock hand last passed (CLOCK eviction) */
    size_t n;
    uint64_t *numbers;
    size_t stem_n;
    char stem[];
};

static size_t bytes_of(const kept_list *k) {
    return sizeof *k + k->stem_n + k->n * sizeof *k->numbers;
}

static void let_go(kept_list *k) {
    if (atomic_fetch_sub_explicit(&k->refs, 1, memory_order_acq_rel) == 1) {
        free(k->numbers);
        free(k);
    }
}

/* ---- the table ---- */

void store__kept_open(rocks *r, size_t bytes_max) {
    pthread_mutex_init(&r->kept.lock, NULL);
    r->kept.bytes_max = bytes_max;
}

/* Lock held. */
static void drop_at(kept_lists *t, size_t i) {
    t->bytes -= bytes_of(t->list[i]);
    let_go(t->list[i]);
    t->list[i] = t->list[--t->n];
}

void store__kept_drop(rocks *r) {
    kept_lists *t = &r->kept;
    pthread_mutex_lock(&t->lock);
    while (t->n) {
        drop_at(t, t->n - 1);
    }
    memset(t->asked, 0, sizeof t->asked);
    pthread_mutex_unlock(&t->lock);
}

void store__kept_close(rocks *r) {
    store__kept_drop(r);
    pthread_mutex_destroy(&r->kept.lock);
}

/* Lock held. There are at most some hundred lists, so a linear search is cheap compared with a scan. */
static kept_list *find(kept_lists *t, uint64_t edition, uint64_t hash, slice stem) {
    for (size_t i = 0; i < t->n; i++) {
        kept_list *k = t->list[i];
        if (k->hash == hash && k->edition == edition && slice_eq(slice_of(k->stem, k->stem_n), stem)) {
            return k;
        }
    }
    return NULL;
}

/* Lock held. CLOCK eviction: drops lists that were not used since the hand last passed. */
static void make_room(kept_lists *t, size_t bytes) {
    while (t->n && (t->n == KEPT_MAX || t->bytes + bytes > t->bytes_max)) {
        t->hand = t->hand < t->n ? t->hand : 0;
        if (t->list[t->hand]->used) {
            t->list[t->hand++]->used = false;
        } else {
            drop_at(t, t->hand);
        }
    }
}

/* Adds the list, with a reference of its own, unless it is there already or its edition has ended. */
static void add(rocks *r, kept_list *k) {
    kept_lists *t = &r->kept;
    pthread_mutex_lock(&t->lock);
    if (store__terms_edition(r) == k->edition && !find(t, k->edition, k->hash, slice_of(k->stem, k->stem_n))) {
        make_room(t, bytes_of(k));
        t->list[t->n++] = k;
        t->bytes += bytes_of(k);
        atomic_fetch_add_explicit(&k->refs, 1, memory_order_relaxed);
    }
    pthread_mutex_unlock(&t->lock);
}

/* Lock held. The entry of this hash, or the one of its bucket with the fewest entries read. */
static kept_usage *stem_usage_of(kept_lists *t, uint64_t hash) {
    kept_usage *first = &t->asked[hash % (ASKED_MAX / NEIGHBOURS) * NEIGHBOURS], *least = first;
    for (kept_usage *a = first; a < first + NEIGHBOURS; a++) {
        if (a->hash == hash) {
            return a;
        }
        least = a->walked < least->walked ? a : least;
    }
    return least;
}

void store__kept_count_reads(rocks *r, slice stem, uint64_t entries) {
    uint64_t hash = hash_bytes(stem, 0);
    pthread_mutex_lock(&r->kept.lock);
    kept_usage *a = stem_usage_of(&r->kept, hash);
    if (a->hash != hash) {
        *a = (kept_usage){.hash = hash};
    }
    a->walked += entries;
    pthread_mutex_unlock(&r->kept.lock);
}

/* Lock held. The maximum length of a list that would pay, or 0. */
static size_t pays(kept_lists *t, uint64_t hash) {
    kept_usage *a = stem_usage_of(t, hash);
    if (a->hash != hash || a->walked < WORK_LEAST || a->walked < 2 * a->tried) {
        return 0;
    }
    a->tried = a->walked;
    size_t most = t->bytes_max / 4 / sizeof(uint64_t);
    return a->walked < most ? (size_t)a->walked : most;
}

/* ---- making one ---- */

static kept_list *make_list(uint64_t edition, uint64_t hash, slice stem) {
    kept_list *k = mem_zero(sizeof *k + stem.n);
    atomic_init(&k->refs, 1);
    k->edition = edition;
    k->hash = hash;
    k->stem_n = stem.n;
    memcpy(k->stem, stem.p, stem.n);
    return k;
}

static uint64_t number_at(const char *p) {
    uint64_t number;
    memcpy(&number, p, sizeof number);
    return be64toh(number);
}

/* False: there are more than `most`, or keys that do not fit a list. */
static bool fill(kept_list *k, store_scan *scan, size_t most) {
    slice key, value;
    size_t cap = 0;
    while (store_scan_next(scan, &key, &value)) {
        if (k->n == most || key.n != k->stem_n + NUMBER_BYTES || value.n) {
            return false;
        }
        if (k->n == cap) {
            cap = cap ? 2 * cap : FIRST_CAP;
            k->numbers = mem_resize(k->numbers, cap * sizeof *k->numbers);
        }
        k->numbers[k->n++] = number_at(key.p + k->stem_n);
    }
    return true;
}

static kept_list *build(rocks *r, uint64_t edition, uint64_t hash, slice stem, slice to, size_t most) {
    kept_list *k = make_list(edition, hash, stem);
    store_scan *scan = store__plain_open(r, STORE_TERMS, NULL, stem, to, false);
    bool whole = store__terms_edition(r) == edition && fill(k, scan, most);
    if (store_scan_close(scan) != OK || !whole) {
        let_go(k);
        return NULL;
    }
    k->numbers = mem_resize(k->numbers, (k->n + 1) * sizeof *k->numbers);
    add(r, k);
    return k;
}

/* ---- scans ---- */

typedef struct kept_scan {
    store_scan base;
    kept_list *list;
    size_t at;
    char key[];
} kept_scan;

/* The list never changes during the scan. Forward only. */
static bool kept_next(store_scan *base, slice *key_out, slice *value_out) {
    kept_scan *s = (kept_scan *)base;
    const kept_list *k = s->list;
    if (s->at == k->n) {
        return false;
    }
    uint64_t be = htobe64(k->numbers[s->at++]);
    memcpy(s->key + k->stem_n, &be, sizeof be);
    *key_out = slice_of(s->key, k->stem_n + NUMBER_BYTES);
    *value_out = SLICE_EMPTY;
    return true;
}

/* Index of the first number from `least` on. Galloping search, since it is usually near. */
static size_t find_number(const kept_scan *s, uint64_t least) {
    const kept_list *k = s->list;
    size_t from = s->at && k->numbers[s->at - 1] < least ? s->at : 0, step = 1;
    while (from + step < k->n && k->numbers[from + step] < least) {
        from += step;
        step *= 2;
    }
    size_t to = from + step < k->n ? from + step : k->n;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        k->numbers[middle] < least ? (from = middle + 1) : (to = middle);
    }
    return from;
}

static void kept_seek(store_scan *base, slice key, bool backward) {
    kept_scan *s = (kept_scan *)base;
    const kept_list *k = s->list;
    char rest[NUMBER_BYTES] = {0};
    size_t common = key.n < k->stem_n ? key.n : k->stem_n;
    int order = memcmp(key.p, k->stem, common);
    if (backward || order) { /* stems are never scanned backward */
        s->at = backward || order > 0 ? k->n : 0;
        return;
    }
    size_t n = key.n - common;
    memcpy(rest, key.p + common, n < NUMBER_BYTES ? n : NUMBER_BYTES);
    uint64_t least = number_at(rest);
    s->at = n > NUMBER_BYTES && least == UINT64_MAX ? k->n : find_number(s, least + (n > NUMBER_BYTES));
}

static err kept_close(store_scan *base) {
    kept_scan *s = (kept_scan *)base;
    let_go(s->list);
    free(s);
    return OK;
}

static const store_ops kept_ops = {.name = "kept", .scan_next = kept_next, .scan_seek = kept_seek, .scan_close = kept_close};
static store kept_store = {.ops = &kept_ops};

store_scan *store__kept_scan(rocks *r, uint64_t edition, slice stem, slice to) {
    uint64_t hash = hash_bytes(stem, 0);
    if (edition % 2 || edition != store__terms_edition(r)) {
        return NULL;
    }
    pthread_mutex_lock(&r->kept.lock);
    kept_list *k = find(&r->kept, edition, hash, stem);
    size_t most = k ? 0 : pays(&r->kept, hash);
    if (k) {
        k->used = true;
        atomic_fetch_add_explicit(&k->refs, 1, memory_order_relaxed);
    }
    pthread_mutex_unlock(&r->kept.lock);
    k = k || !most ? k : build(r, edition, hash, stem, to, most);
    if (!k) {
        return NULL;
    }
    kept_scan *s = mem_zero(sizeof *s + stem.n + NUMBER_BYTES);
    s->base.owner = &kept_store;
    s->list = k;
    memcpy(s->key, stem.p, stem.n);
    return &s->base;
}
