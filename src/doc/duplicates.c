#include "doc/duplicates.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/random.h"
#include "doc/walk.h"

/* A hash table of keys with open addressing. `first` and `last` are offsets of keys in the document; 0 marks an empty slot. */
typedef struct slot {
    uint32_t hash;
    uint32_t first;
    uint32_t last;
} slot;

typedef struct table {
    slot *slots;
    size_t mask;
} table;

static uint64_t seeds[2];
static pthread_once_t seeded = PTHREAD_ONCE_INIT;

static void make_seeds(void) {
    random_source r;
    random_seed_system(&r);
    seeds[0] = random_u64(&r);
    seeds[1] = random_u64(&r) | 1;
}

static uint64_t mixed(uint64_t a, uint64_t b) {
    unsigned __int128 x = (unsigned __int128)a * b;
    return (uint64_t)x ^ (uint64_t)(x >> 64);
}

static uint32_t hash_of(slice key) {
    uint64_t h = seeds[0] ^ key.n;
    for (; key.n >= 8; key = slice_skip(key, 8)) {
        uint64_t word;
        memcpy(&word, key.p, sizeof word);
        h = mixed(h ^ word, seeds[1]);
    }
    uint64_t rest = 0;
    memcpy(&rest, key.p, key.n);
    return (uint32_t)mixed(h ^ rest, seeds[1] ^ seeds[0]);
}

/* Returns the key's slot, or the empty slot where it belongs. The comparison includes the zero byte after the key, so it fails if the
 * lengths differ; the known key comes earlier in the document, so the comparison stays inside it. */
static slot *find(const table *t, slice document, slice key, uint32_t hash) {
    for (size_t i = hash & t->mask;; i = (i + 1) & t->mask) {
        slot *s = &t->slots[i];
        if (s->first == 0 || (s->hash == hash && memcmp(document.p + s->first, key.p, key.n + 1) == 0)) {
            return s;
        }
    }
}

static size_t count_elements(slice document) {
    doc_walk w;
    doc_element e;
    size_t n = 0;
    for (doc_walk_init(&w, document); doc_walk_next(&w, &e);) {
        n++;
    }
    assert(!w.corrupt);
    return n;
}

/* Fills the table with the object's keys; true if a key occurs twice. The caller frees the slots. */
static bool fill(table *t, slice object) {
    pthread_once(&seeded, make_seeds);
    size_t n = count_elements(object);
    size_t slots = 16;
    while (slots < n * 2) {
        slots *= 2;
    }
    t->slots = mem_zero(slots * sizeof *t->slots);
    t->mask = slots - 1;
    bool twice = false;
    doc_walk w;
    doc_element e;
    for (doc_walk_init(&w, object); doc_walk_next(&w, &e);) {
        uint32_t hash = hash_of(e.key);
        slot *s = find(t, object, e.key, hash);
        uint32_t position = (uint32_t)(e.key.p - object.p);
        twice |= s->first != 0;
        *s = (slot){.hash = hash, .first = s->first ? s->first : position, .last = position};
    }
    return twice;
}

bool doc__has_duplicates(slice object) {
    table t;
    bool twice = fill(&t, object);
    free(t.slots);
    return twice;
}

static void copy_element(const doc_element *e, buf *out) {
    if (!doc_is_container(e->type)) {
        buf_add_slice(out, doc_element_bytes(e));
        return;
    }
    buf_add(out, e->key.p - 1, 1 + e->key.n + 1);
    doc__drop_duplicates(e->value, e->type == BSON_TYPE_ARRAY, out);
}

/* The element whose key begins at offset `position`. */
static doc_element element_at(slice object, uint32_t position) {
    doc_walk w;
    doc_element e = {0};
    doc_walk_init(&w, object);
    w.at = object.p + position - 1;
    bool there = doc_walk_next(&w, &e);
    assert(there);
    return e;
}

static void copy_object(slice object, buf *out) {
    table t;
    fill(&t, object);
    doc_walk w;
    doc_element e;
    for (doc_walk_init(&w, object); doc_walk_next(&w, &e);) {
        const slot *s = find(&t, object, e.key, hash_of(e.key));
        if (object.p + s->first == e.key.p) {
            e = element_at(object, s->last);
            copy_element(&e, out);
        }
    }
    free(t.slots);
}

void doc__drop_duplicates(slice document, bool is_array, buf *out) {
    size_t start = out->n;
    buf_add(out, "\0\0\0", 4);
    if (is_array) {
        doc_walk w;
        doc_element e;
        for (doc_walk_init(&w, document); doc_walk_next(&w, &e);) {
            copy_element(&e, out);
        }
    } else {
        copy_object(document, out);
    }
    buf_add_byte(out, 0);
    if (buf_ok(out)) {
        doc_store_i32(out->p + start, (int32_t)(out->n - start));
    }
}
