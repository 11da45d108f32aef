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

enum { WORK_LEAST = 64, FIRST_CAP = 256, NEIGHBOURS = 4 };

/* ---- the table ---- */

void store__kept_open(rocks *r, size_t bytes_max) {
    pthread_mutex_init(&r->kept.lock, NULL);
    r->kept.bytes_max = bytes_max;
}

/* Lock held. */
static void drop_at(kept_lists *t, size_t i) {
    t->bytes -= store__list_bytes(t->list[i]);
    store__list_give(t->list[i]);
    t->list[i] = t->list[--t->n];
    t->hashes[i] = t->hashes[t->n];
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
static stem_list *find(kept_lists *t, uint64_t edition, uint64_t hash, slice stem) {
    for (size_t i = 0; i < t->n; i++) {
        stem_list *k = t->list[i];
        if (t->hashes[i] == hash && k->as_of == edition && slice_eq(slice_of(k->stem, k->stem_n), stem)) {
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
static void add(rocks *r, stem_list *k) {
    kept_lists *t = &r->kept;
    pthread_mutex_lock(&t->lock);
    if (store__terms_edition(r) == k->as_of && !find(t, k->as_of, k->hash, slice_of(k->stem, k->stem_n))) {
        make_room(t, store__list_bytes(k));
        t->hashes[t->n] = k->hash;
        t->list[t->n++] = k;
        t->bytes += store__list_bytes(k);
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

/* False: there are more than `most`, or keys that do not fit a list. */
static bool fill(stem_list *k, store_scan *scan, size_t most) {
    slice key, value;
    size_t cap = 0;
    while (store_scan_next(scan, &key, &value)) {
        if (k->n == most || key.n != k->stem_n + STEM_NUMBER_BYTES || value.n) {
            return false;
        }
        if (k->n == cap) {
            cap = cap ? 2 * cap : FIRST_CAP;
            k->numbers = mem_resize(k->numbers, cap * sizeof *k->numbers);
        }
        k->numbers[k->n++] = store__stem_number(key.p + k->stem_n);
    }
    return true;
}

static stem_list *build(rocks *r, uint64_t edition, uint64_t hash, slice stem, slice to, size_t most) {
    stem_list *k = store__list_make(hash, edition, stem, 0);
    store_scan *scan = store__plain_open(r, STORE_TERMS, NULL, stem, to, false);
    bool whole = store__terms_edition(r) == edition && fill(k, scan, most);
    if (store_scan_close(scan) != OK || !whole) {
        store__list_give(k);
        return NULL;
    }
    k->numbers = mem_resize(k->numbers, (k->n + 1) * sizeof *k->numbers);
    add(r, k);
    return k;
}

/* ---- scans ---- */

store_scan *store__kept_scan(rocks *r, uint64_t edition, slice stem, slice to, bool may_make) {
    uint64_t hash = hash_bytes(stem, 0);
    if (edition % 2 || edition != store__terms_edition(r)) {
        return NULL;
    }
    pthread_mutex_lock(&r->kept.lock);
    stem_list *k = find(&r->kept, edition, hash, stem);
    size_t most = k || !may_make ? 0 : pays(&r->kept, hash);
    if (k) {
        k->used = true;
        atomic_fetch_add_explicit(&k->refs, 1, memory_order_relaxed);
    }
    pthread_mutex_unlock(&r->kept.lock);
    k = k || !most ? k : build(r, edition, hash, stem, to, most);
    return k ? store__list_scan(k) : NULL;
}
