/* value_order.c — compares and hashes values, deeply, without copying them; only lists of members are made, for sorting.
 *
 * Documents nest as deep as JSON may (LIMIT_JSON_DEPTH), plus a query's literals around them. Deeper levels than DEPTH_MAX, which only
 * foreign bytes can have, compare as bytes. */
#include <stdlib.h>

#include "base/keyed_hash.h"
#include "base/memory.h"
#include "doc/order.h"
#include "query/value.h"

enum { DEPTH_MAX = 600, MEMBERS_ON_STACK = 16 };

static int compare(const query_value *a, const query_value *b, unsigned depth);
static bool equal(const query_value *a, const query_value *b, bool seen, unsigned depth);

static int compare_numbers(double a, double b) {
    if (a < b || a > b) {
        return a < b ? -1 : 1;
    }
    return (a == a) - (b == b); /* NaN comes before all other numbers */
}

/* ---- arrays ---- */

static int compare_arrays(slice a, slice b, unsigned depth) {
    doc_walk wa, wb;
    doc_element ea, eb;
    doc_walk_init(&wa, a);
    doc_walk_init(&wb, b);
    for (;;) {
        bool more_a = doc_walk_next(&wa, &ea), more_b = doc_walk_next(&wb, &eb);
        if (!more_a || !more_b) {
            return more_a - more_b;
        }
        query_value va = value_of_element(&ea), vb = value_of_element(&eb);
        int c = compare(&va, &vb, depth);
        if (c) {
            return c;
        }
    }
}

/* ---- objects: by sorted members ---- */

typedef struct members {
    doc_element *list;
    size_t n;
    doc_element few[MEMBERS_ON_STACK];
} members;

static int by_key(const void *a, const void *b) {
    return slice_cmp(((const doc_element *)a)->key, ((const doc_element *)b)->key);
}

static void members_sort(members *m, slice bson) {
    doc_walk w;
    doc_element e;
    size_t cap = MEMBERS_ON_STACK;
    m->list = m->few;
    m->n = 0;
    for (doc_walk_init(&w, bson); doc_walk_next(&w, &e); m->list[m->n++] = e) {
        if (m->n == cap) {
            doc_element *old = m->list;
            m->list = mem_alloc(2 * cap * sizeof *m->list);
            memcpy(m->list, old, cap * sizeof *m->list);
            if (old != m->few) {
                free(old);
            }
            cap *= 2;
        }
    }
    qsort(m->list, m->n, sizeof *m->list, by_key);
}

static void members_free(members *m) {
    if (m->list != m->few) {
        free(m->list);
    }
}

static int compare_members(const members *a, const members *b, unsigned depth) {
    size_t n = a->n < b->n ? a->n : b->n;
    for (size_t i = 0; i < n; i++) {
        int c = slice_cmp(a->list[i].key, b->list[i].key);
        if (c == 0) {
            query_value va = value_of_element(&a->list[i]), vb = value_of_element(&b->list[i]);
            c = compare(&va, &vb, depth);
        }
        if (c) {
            return c;
        }
    }
    return (a->n > b->n) - (a->n < b->n);
}

static __attribute__((noinline)) int compare_objects(slice a, slice b, unsigned depth) {
    members ma, mb;
    members_sort(&ma, a);
    members_sort(&mb, b);
    int c = compare_members(&ma, &mb, depth);
    members_free(&ma);
    members_free(&mb);
    return c;
}

/* ---- any value ---- */

static doc_element element_of(const query_value *extended) {
    return (doc_element){.type = (bson_type_t)extended->extended, .value = extended->bytes};
}

/* Types that JSON lacks come after objects, in the order of doc/order.h. */
static int compare_extended(const query_value *a, const query_value *b) {
    if (!a->extended || !b->extended) {
        return !b->extended - !a->extended;
    }
    doc_element ea = element_of(a), eb = element_of(b);
    return doc_order_compare(&ea, &eb);
}

/* Compares whole items, or an extended value with an object. Rare, so it uses a temporary arena. */
static __attribute__((noinline)) int compare_plain(const query_value *a, const query_value *b, unsigned depth) {
    arena temporary = arena_init_small();
    query_value pa = value_plain(&temporary, a), pb = value_plain(&temporary, b);
    int c = compare(&pa, &pb, depth);
    arena_free(&temporary);
    return c;
}

static int compare(const query_value *a, const query_value *b, unsigned depth) {
    if (a->type != b->type) {
        return a->type < b->type ? -1 : 1;
    }
    switch (a->type) {
    case TYPE_BOOL:
        return a->truth - b->truth;
    case TYPE_NUMBER:
        return compare_numbers(a->number, b->number);
    case TYPE_STRING:
        return slice_cmp(a->bytes, b->bytes);
    case TYPE_ARRAY:
    case TYPE_OBJECT:
        if (depth >= DEPTH_MAX) {
            return slice_cmp(a->bytes, b->bytes);
        }
        if (a->extended || b->extended) {
            return compare_extended(a, b);
        }
        if (a->item || b->item) {
            return compare_plain(a, b, depth + 1);
        }
        return (a->type == TYPE_ARRAY ? compare_arrays : compare_objects)(a->bytes, b->bytes, depth + 1);
    default:
        return 0;
    }
}

int value_compare(const query_value *a, const query_value *b) {
    return compare(a, b, 0);
}

/* Compares two documents member by member while their keys agree, as they mostly do. *order_out: the keys are in another order. */
static bool equal_in_order(slice a, slice b, bool keyed, bool seen, unsigned depth, bool *order_out) {
    doc_walk wa, wb;
    doc_element ea, eb;
    doc_walk_init(&wa, a);
    doc_walk_init(&wb, b);
    for (;;) {
        bool more_a = doc_walk_next(&wa, &ea), more_b = doc_walk_next(&wb, &eb);
        if (!more_a || !more_b) {
            return more_a == more_b;
        }
        if (keyed && !slice_eq(ea.key, eb.key)) {
            *order_out = true;
            return false;
        }
        query_value va = value_of_element(&ea), vb = value_of_element(&eb);
        if (!equal(&va, &vb, seen, depth)) {
            return false;
        }
    }
}

/* Compares two objects with members in different order. */
static __attribute__((noinline)) bool equal_sorted(slice a, slice b, bool seen, unsigned depth) {
    members ma, mb;
    members_sort(&ma, a);
    members_sort(&mb, b);
    bool same = ma.n == mb.n;
    for (size_t i = 0; i < ma.n && same; i++) {
        query_value va = value_of_element(&ma.list[i]), vb = value_of_element(&mb.list[i]);
        same = slice_eq(ma.list[i].key, mb.list[i].key) && equal(&va, &vb, seen, depth);
    }
    members_free(&ma);
    members_free(&mb);
    return same;
}

static bool equal_extended(const query_value *a, const query_value *b, bool seen, unsigned depth) {
    bool both = a->extended && b->extended;
    return both || !seen ? compare_extended(a, b) == 0 : compare_plain(a, b, depth) == 0;
}

static __attribute__((noinline)) bool equal_items(const query_value *a, const query_value *b, bool seen, unsigned depth) {
    arena temporary = arena_init_small();
    query_value pa = value_plain(&temporary, a), pb = value_plain(&temporary, b);
    bool same = equal(&pa, &pb, seen, depth);
    arena_free(&temporary);
    return same;
}

static bool equal_documents(const query_value *a, const query_value *b, bool seen, unsigned depth) {
    bool other_order = false;
    if (a->extended || b->extended) {
        return equal_extended(a, b, seen, depth + 1);
    }
    if (depth >= DEPTH_MAX) {
        return slice_eq(a->bytes, b->bytes);
    }
    if (a->item || b->item) {
        return equal_items(a, b, seen, depth + 1);
    }
    return equal_in_order(a->bytes, b->bytes, a->type == TYPE_OBJECT, seen, depth + 1, &other_order) ||
           (other_order && equal_sorted(a->bytes, b->bytes, seen, depth + 1));
}

static bool equal(const query_value *a, const query_value *b, bool seen, unsigned depth) {
    if (a->type != b->type) {
        return false;
    }
    return a->type >= TYPE_ARRAY ? equal_documents(a, b, seen, depth) : compare(a, b, depth) == 0;
}

bool value_equal(const query_value *a, const query_value *b) {
    return equal(a, b, true, 0);
}

bool value_same(const query_value *a, const query_value *b) {
    return equal(a, b, false, 0);
}

/* ---- hashing ---- */

static uint64_t hash_number(double number, uint64_t h) {
    uint64_t bits = 0;
    if (number != number) {
        bits = 1;
    } else if (number != 0) { /* -0 equals 0 */
        memcpy(&bits, &number, sizeof bits);
    }
    return keyed_hash_mix(h, bits);
}

static uint64_t hash(const query_value *v, uint64_t h, unsigned depth);

/* The order of members in an object does not matter, so their hashes are added. */
static uint64_t hash_document(const query_value *v, uint64_t h, unsigned depth) {
    doc_walk w;
    doc_element e;
    uint64_t sum = 0;
    if (depth >= DEPTH_MAX) {
        return h;
    }
    for (doc_walk_init(&w, v->bytes); doc_walk_next(&w, &e);) {
        query_value member = value_of_element(&e);
        if (v->type == TYPE_ARRAY) {
            h = hash(&member, h, depth + 1);
        } else {
            sum += hash(&member, keyed_hash_bytes(e.key, 0), depth + 1);
        }
    }
    return keyed_hash_mix(h, sum);
}

static __attribute__((noinline)) uint64_t hash_item(const query_value *v, uint64_t h, unsigned depth) {
    arena temporary = arena_init_small();
    query_value plain = value_plain(&temporary, v);
    h = hash_document(&plain, h, depth);
    arena_free(&temporary);
    return h;
}

/* Equal values have the same encoding (doc_order_spell); a value without encoding is hashed by its type. */
static __attribute__((noinline)) uint64_t hash_extended(const query_value *v, uint64_t h) {
    buf spelled = buf_init(BUF_NO_LIMIT);
    doc_element e = element_of(v);
    doc_order_spell(&spelled, &e, false);
    h = keyed_hash_bytes(buf_view(&spelled), keyed_hash_mix(h, v->extended));
    buf_free(&spelled);
    return h;
}

static uint64_t hash(const query_value *v, uint64_t h, unsigned depth) {
    h = keyed_hash_mix(h, v->type);
    switch (v->type) {
    case TYPE_BOOL:
        return keyed_hash_mix(h, v->truth);
    case TYPE_NUMBER:
        return hash_number(v->number, h);
    case TYPE_STRING:
        return keyed_hash_bytes(v->bytes, h);
    case TYPE_ARRAY:
    case TYPE_OBJECT:
        return v->extended ? hash_extended(v, h) : v->item ? hash_item(v, h, depth) : hash_document(v, h, depth);
    default:
        return h;
    }
}

uint64_t value_hash(const query_value *v, uint64_t seed) {
    return hash(v, seed, 0);
}
