/* terms_check.h — checks that the index and the order of changes match the items. The entries that a container's items must have are
 * computed again and compared with the store: none missing and none extra, in every generation in use; other generations must have no
 * entries. While an index is being built, items that the build has not reached may have entries or not, but no wrong ones. */
#pragma once

#include <endian.h>
#include <stdlib.h>

#include "account/account_int.h"
#include "item/fetch.h"
#include "item/index_entries.h"
#include "item/reindex.h"

typedef struct terms_entry {
    size_t at, n; /* offset and length in `bytes` */
    bool required;
} terms_entry;

typedef struct terms_expected {
    store *store;
    const container *container;
    const container_part *part; /* the container's part in the home being checked */
    item_place built;           /* progress of the index being built */
    buf bytes;
    terms_entry *list;
    size_t n, cap;
    size_t changes_n; /* number of change entries */
    index_list terms;
    layout_key key;
    arena arena;
} terms_expected;

static inline slice terms_key(const terms_expected *x, size_t i) {
    return slice_of(x->bytes.p + x->list[i].at, x->list[i].n);
}

static inline void terms_expect(terms_expected *x, slice key, bool required) {
    if (x->n == x->cap) {
        x->cap = x->cap ? 2 * x->cap : 1024;
        x->list = realloc(x->list, x->cap * sizeof *x->list);
        assert_non_null(x->list);
    }
    x->list[x->n++] = (terms_entry){x->bytes.n, key.n, required};
    buf_add_slice(&x->bytes, key);
}

/* ---- expected entries ---- */

static inline size_t terms_shapes(const terms_expected *x, uint8_t generation) {
    layout_key from, to;
    slice key, value;
    size_t n = 0;
    layout_shapes(&from, x->container->space->container, generation);
    to = from;
    layout_after(&to);
    store_scan *scan = store_scan_open(x->store, STORE_TERMS, NULL, layout_view(&from), layout_view(&to), false);
    for (; store_scan_next(scan, &key, &value); n++) {
        assert_int_equal(key.n, from.n + 8);
    }
    assert_int_equal(store_scan_close(scan), OK);
    return n;
}

static inline bool terms_has_path(slice paths, index_path path) {
    for (size_t i = 0; i + sizeof path <= paths.n; i += sizeof path) {
        uint64_t each;
        memcpy(&each, paths.p + i, sizeof each);
        if (be64toh(each) == path) {
            return true;
        }
    }
    return false;
}

/* Whether the shape of the listed item is stored. It must be, unless there was no room when the item was written, or its number belongs to
 * other paths. */
static inline bool terms_known(const terms_expected *x, const container_index *index, bool required) {
    layout_key k;
    store_value value;
    layout_shape(&k, x->container->space->container, index->generation, x->terms.shape);
    err code = store_get(x->store, STORE_TERMS, NULL, layout_view(&k), &value);
    if (code == E_NOT_FOUND) {
        assert_true(!required || terms_shapes(x, index->generation) >= 4096);
        return false;
    }
    assert_int_equal(code, OK);
    bool same = value.bytes.n == x->terms.paths_n * sizeof(index_path);
    for (size_t i = 0; i < x->terms.paths_n && same; i++) {
        same = terms_has_path(value.bytes, x->terms.paths[i]);
    }
    store_give(&value);
    return same;
}

static inline size_sum terms_size(const terms_expected *x, const item_key *key) {
    store_value value;
    epk unused;
    slice partition;
    size_sum size;
    layout_key k;
    layout_size(&k, x->container->space->container, &key->epk, &key->partition);
    assert_int_equal(store_get(x->store, STORE_INDEX, NULL, layout_view(&k), &value), OK);
    assert_true(layout_size_read(layout_view(&k), value.bytes, &unused, &partition, &size));
    store_give(&value);
    return size;
}

static inline bool terms_local(const terms_expected *x, const item_key *key, uint64_t number) {
    size_sum size = terms_size(x, key);
    return number <= size.local || (size.local_from && number >= size.local_from);
}

static inline void terms_of_item(terms_expected *x, container_index *index, item_place place, const item_head *head, slice body,
                                 bool required) {
    item_key key;
    if (index->policy.off || head->flags & ITEM_NOT_INDEXED) {
        return;
    }
    index_list_make(&x->terms, &index->policy, body, head->ts);
    index_list_add_shape(&x->terms, x->terms.large || x->terms.lean || terms_known(x, index, required));
    index_list_sort(&x->terms);
    assert_int_equal(item__key_of(x->container, &x->arena, body, &key), OK);
    bool local = terms_local(x, &key, place.number);
    for (size_t i = 0; i < x->terms.n; i++) {
        layout_terms(&x->key, place.segment, index->generation);
        layout_add_term(&x->key, x->key.n, index_list_term(&x->terms, i), place.number);
        terms_expect(x, layout_view(&x->key), required);
        if (local) {
            layout_local_terms(&x->key, x->container->space->container, index->generation, &key.epk);
            layout_add_term(&x->key, x->key.n, index_list_term(&x->terms, i), place.number);
            terms_expect(x, layout_view(&x->key), required);
        }
    }
}

/* Every item must be in the order of changes. */
static inline void terms_of_change(terms_expected *x, item_place place, const item_head *head, slice body) {
    item_key key;
    assert_int_equal(item__key_of(x->container, &x->arena, body, &key), OK);
    layout_change change = {head->lsn, head->ts, layout_epk_head(&key.epk), place.number};
    layout_changes(&x->key, place.segment);
    layout_add_change(&x->key, x->key.n, &change);
    terms_expect(x, layout_view(&x->key), true);
    bool local = x->container->key.n && !x->container->clustered;
    x->changes_n += local ? 2 : 1;
    if (local) {
        layout_local_changes(&x->key, x->container->space->container, &key.epk);
        layout_add_change(&x->key, x->key.n, &change);
        terms_expect(x, layout_view(&x->key), true);
    }
}

static inline bool terms_built(const terms_expected *x, item_place place) {
    return place.segment != x->built.segment ? place.segment < x->built.segment : place.number <= x->built.number;
}

static inline void terms_of_segment(terms_expected *x, uint32_t segment) {
    const container_part *part = x->part;
    layout_key from, to;
    slice key, value, body;
    item_place place;
    item_head head;
    layout_segment(&from, segment);
    to = from;
    layout_after(&to);
    store_scan *scan = store_scan_open(x->store, STORE_ITEMS, NULL, layout_view(&from), layout_view(&to), false);
    while (store_scan_next(scan, &key, &value)) {
        item_found found = {0};
        assert_true(layout_item_read(key, &found.place));
        assert_int_equal(item__fetch_value(x->store, NULL, value, &found), OK);
        place = found.place, head = found.head, body = found.body;
        terms_of_change(x, place, &head, body);
        terms_of_item(x, part->index, place, &head, body, true);
        if (part->building) {
            terms_of_item(x, part->building, place, &head, body, terms_built(x, place));
        }
        item_give(&found);
    }
    assert_int_equal(store_scan_close(scan), OK);
}

/* ---- the stored index state ---- */

/* Generation, generation being built and progress of the build, as item/reindex.c stores them; no record means generation 1 only. */
static inline void terms_state(terms_expected *x) {
    const container_part *part = x->part;
    const container_index *index = part->index, *building = part->building;
    layout_key k;
    store_value value;
    layout_index_state(&k, x->container->space->container);
    err code = store_get(x->store, STORE_META, NULL, layout_view(&k), &value);
    assert_false(part->index_switching);
    if (code == E_NOT_FOUND) {
        assert_int_equal(index->generation, 1);
        assert_null(building);
        assert_int_equal(part->index_progress, 100);
        return;
    }
    assert_int_equal(code, OK);
    assert_true(value.bytes.n >= 22);
    assert_int_equal(value.bytes.p[0], index->generation);
    assert_int_equal(value.bytes.p[1], building ? building->generation : 0);
    assert_true(layout_place_read(slice_of(value.bytes.p + 2, 12), &x->built));
    assert_true(slice_starts(slice_skip(value.bytes, 22), index->settings));
    assert_true(building ? part->index_progress < 100 : part->index_progress == 100);
    store_give(&value);
}

/* ---- comparing ---- */

static inline int terms_order(const void *a, const void *b, void *expected) {
    const terms_expected *x = expected;
    const terms_entry *i = a, *j = b;
    return slice_cmp(slice_of(x->bytes.p + i->at, i->n), slice_of(x->bytes.p + j->at, j->n));
}

static inline const char *terms_hex(slice key, char text[200]) {
    size_t n = 0;
    for (size_t i = 0; i < key.n && n + 3 < 200; i++) {
        n += (size_t)snprintf(text + n, 200 - n, "%02x", (unsigned char)key.p[i]);
    }
    return text;
}

/* Consumes the expected entries up to and including `key`, which is in the store; fails if a required one before it is missing. Empty key:
 * all remaining ones. */
static inline bool terms_meet(const terms_expected *x, size_t *next, slice key) {
    char text[200];
    bool met = false;
    while (*next < x->n && !met && (key.n == 0 || slice_cmp(terms_key(x, *next), key) <= 0)) {
        met = key.n && slice_eq(terms_key(x, *next), key);
        if (!met && x->list[*next].required) {
            fail_msg("an index entry is missing: %s", terms_hex(terms_key(x, *next), text));
        }
        (*next)++;
    }
    return met;
}

static inline uint32_t terms_number(slice key) {
    uint32_t number;
    assert_true(key.n > 5);
    memcpy(&number, key.p + 1, 4);
    return be32toh(number);
}

static inline bool terms_segment_of(const container *c, uint32_t segment) {
    uint32_t found;
    return container_tiles_segment(c->space->newest, NULL, segment, &found) && found == segment;
}

/* Whether the entry belongs to another existing container. */
static inline bool terms_of_other(const account *a, const container *c, char tag, uint32_t of) {
    for (const container_node *node = a->containers_by_rid; node; node = node->by_rid.next) {
        bool its = tag == 'g' ? terms_segment_of(node->container, of) : node->container->space->container == of;
        if (its && node->container->space != c->space) {
            return true;
        }
    }
    return false;
}

/* Shapes may outlive their items while their generation is in use. */
static inline bool terms_of_shape(const terms_expected *x, slice key) {
    const container_index *index = x->part->index, *building = x->part->building;
    uint8_t generation = (uint8_t)key.p[5];
    return key.p[0] == 'd' && terms_number(key) == x->container->space->container &&
           (generation == index->generation || (building && generation == building->generation));
}

static inline void terms_compare(terms_expected *x, const account *a) {
    slice key, value;
    size_t next = 0;
    char text[200];
    if (x->n) {
        qsort_r(x->list, x->n, sizeof *x->list, terms_order, x);
    }
    store_scan *scan = store_scan_open(x->store, STORE_TERMS, NULL, SLICE_EMPTY, SLICE_EMPTY, false);
    while (store_scan_next(scan, &key, &value)) {
        bool met = terms_meet(x, &next, key);
        if (!met && !terms_of_shape(x, key) && !terms_of_other(a, x->container, key.p[0], terms_number(key))) {
            fail_msg("an index entry is left over: %s", terms_hex(key, text));
        }
        assert_true(!met || value.n == 0);
    }
    assert_int_equal(store_scan_close(scan), OK);
    terms_meet(x, &next, SLICE_EMPTY);
}

static inline size_t terms_check_part(const account *a, const container *c, const container_part *part) {
    terms_expected x = {.store = part->home->store, .container = c, .part = part, .bytes = buf_init(BUF_NO_LIMIT), .arena = arena_init()};
    terms_state(&x);
    for (uint32_t segment = 0; container_tiles_segment(c->space->newest, part->home, segment, &segment); segment++) {
        terms_of_segment(&x, segment);
    }
    terms_compare(&x, a);
    size_t n = x.n - x.changes_n;
    index_list_free(&x.terms);
    buf_free(&x.bytes);
    free(x.list);
    arena_free(&x.arena);
    return n;
}

/* Checks every home of the container. Returns the number of index entries compared. */
static inline size_t terms_check(const account *a, const container *c) {
    size_t n = 0;
    for (size_t i = 0; i < c->space->parts_n; i++) {
        n += c->space->parts[i].home ? terms_check_part(a, c, &c->space->parts[i]) : 0;
    }
    return n;
}
