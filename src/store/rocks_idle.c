/* A pool of iterators of STORE_TERMS. Creating and destroying an iterator costs RocksDB more than the lookup of a single term. Iterators
 * can be reused because the family changes only when a tail is flushed. Changes are counted by the *edition*, which is odd during a change;
 * an iterator shows the family as of its edition. Iterators keep files alive that RocksDB would delete, so none is kept for longer than a
 * second. */
#include <stdio.h>
#include <stdlib.h>

#include "store/rocks_int.h"

enum { AGE_US_MAX = 1000000, STEM_REST = 8, LEVELS = 7 };

/* ---- stems: the prefixes of RocksDB's filters ---- */

static char *stem_of(void *state, const char *key, size_t n, size_t *stem_n) {
    (void)state;
    *stem_n = n - STEM_REST;
    return (char *)(uintptr_t)key;
}

static unsigned char has_stem(void *state, const char *key, size_t n) {
    (void)state, (void)key;
    return n > STEM_REST;
}

static const char *stem_name(void *state) {
    (void)state;
    return "tesela.stem";
}

static void no_state(void *state) {
    (void)state;
}

rocksdb_slicetransform_t *store__stems(void) {
    return rocksdb_slicetransform_create(NULL, no_state, stem_of, has_stem, has_stem, stem_name);
}

/* ---- editions ---- */

void store__terms_edition_advance(rocks *r) {
    atomic_fetch_add(&r->idle.edition, 1);
}

uint64_t store__terms_edition(rocks *r) {
    return atomic_load(&r->idle.edition);
}

/* ---- the pool ---- */

void store__idle_open(rocks *r) {
    pthread_mutex_init(&r->idle.lock, NULL);
    r->idle.read = rocksdb_readoptions_create();
    rocksdb_readoptions_set_prefix_same_as_start(r->idle.read, 1);
    r->idle.read_unfiltered = rocksdb_readoptions_create();
    rocksdb_readoptions_set_prefix_same_as_start(r->idle.read_unfiltered, 1);
    rocksdb_readoptions_set_total_order_seek(r->idle.read_unfiltered, 1);
}

void store__idle_close(rocks *r) {
    store__idle_drop(r, INT64_MAX);
    rocksdb_readoptions_destroy(r->idle.read);
    rocksdb_readoptions_destroy(r->idle.read_unfiltered);
    pthread_mutex_destroy(&r->idle.lock);
}

static bool is_fresh(rocks *r, const idle_iterator *i, int64_t now) {
    return i->edition == store__terms_edition(r) && now - i->made_us < AGE_US_MAX;
}

/* Takes the newest iterator of this edition. */
static bool take_ready(rocks *r, uint64_t edition, idle_iterator *taken_out) {
    int64_t now = store__now_us();
    bool found = false;
    pthread_mutex_lock(&r->idle.lock);
    for (size_t i = r->idle.n; i-- > 0 && !found;) {
        *taken_out = r->idle.list[i];
        found = taken_out->edition == edition && now - taken_out->made_us < AGE_US_MAX;
        if (found) {
            r->idle.list[i] = r->idle.list[--r->idle.n];
        }
    }
    pthread_mutex_unlock(&r->idle.lock);
    return found;
}

static uint64_t files_at(rocks *r, unsigned level) {
    char name[64];
    snprintf(name, sizeof name, "rocksdb.num-files-at-level%u", level);
    char *text = rocksdb_property_value_cf(r->db, r->families[STORE_TERMS], name);
    uint64_t files = text ? strtoull(text, NULL, 10) : 0;
    rocksdb_free(text);
    return files;
}

/* Filters choose among sorted sequences: each table of level 0 is one, and each level below. If all tables are merged, a filter can only
 * confirm what the search finds anyway, at a fifth of its cost. */
static bool is_merged(rocks *r) {
    uint64_t sequences = files_at(r, 0);
    for (unsigned level = 1; level < LEVELS && sequences <= 1; level++) {
        sequences += files_at(r, level) > 0;
    }
    return sequences <= 1;
}

bool store__idle_take(rocks *r, uint64_t edition, idle_iterator *taken_out) {
    if (edition % 2 || edition != store__terms_edition(r)) {
        return false;
    }
    if (take_ready(r, edition, taken_out)) {
        return true;
    }
    *taken_out = (idle_iterator){.edition = edition, .made_us = store__now_us()};
    const rocksdb_readoptions_t *read = is_merged(r) ? r->idle.read_unfiltered : r->idle.read;
    taken_out->iterator = rocksdb_create_iterator_cf(r->db, read, r->families[STORE_TERMS]);
    if (store__terms_edition(r) != edition) { /* it may show all or part of the change */
        rocksdb_iter_destroy(taken_out->iterator);
        return false;
    }
    return true;
}

void store__idle_give(rocks *r, idle_iterator given) {
    bool unwatched = false, kept = false;
    if (is_fresh(r, &given, store__now_us())) {
        pthread_mutex_lock(&r->idle.lock);
        kept = r->idle.n < IDLE_MAX;
        if (kept) {
            r->idle.list[r->idle.n++] = given;
            unwatched = !r->idle.watched;
            r->idle.watched = true;
        }
        pthread_mutex_unlock(&r->idle.lock);
    }
    if (!kept) {
        rocksdb_iter_destroy(given.iterator);
    } else if (unwatched) {
        store__wake_reclaimer(r);
    }
}

bool store__idle_drop(rocks *r, int64_t at_us) {
    idle_iterator old[IDLE_MAX];
    size_t n = 0, left = 0;
    int64_t now = at_us ? at_us : store__now_us();
    pthread_mutex_lock(&r->idle.lock);
    for (size_t i = 0; i < r->idle.n; i++) {
        if (is_fresh(r, &r->idle.list[i], now)) {
            r->idle.list[left++] = r->idle.list[i];
        } else {
            old[n++] = r->idle.list[i];
        }
    }
    r->idle.n = left;
    r->idle.watched = left > 0;
    pthread_mutex_unlock(&r->idle.lock);
    for (size_t i = 0; i < n; i++) {
        rocksdb_iter_destroy(old[i].iterator);
    }
    return left > 0;
}
