/* compare.c — equality, comparability, orderability and hashing, as "Gremlin Semantics" of TinkerPop 3.7 defines them; predicates. */
#include <math.h>
#include <stdlib.h>

#include "base/keyed_hash.h"
#include "base/memory.h"
#include "gremlin/value.h"
#include "text/regex.h"
#include "text/text.h"

/* ---- equality ---- */

static bool equal(gremlin_value a, gremlin_value b, bool nan_equals);

static bool is_wide_whole(gremlin_value v) {
    return gremlin_is_whole(v) || v.type == GREMLIN_BIGINT;
}

static int compare_doubles(double x, double y) {
    return (x > y) - (x < y);
}

static int compare_wholes(gremlin_bigint x, gremlin_bigint y) {
    return (x > y) - (x < y);
}

static const double beyond_wholes = 0x1p127;

static bool fits_whole(double d) {
    return d > -beyond_wholes && d < beyond_wholes;
}

static int compare_with_double(gremlin_bigint x, double d) {
    if (!fits_whole(d)) {
        return d > 0 ? -1 : 1;
    }
    double below = floor(d);
    int order = compare_wholes(x, (gremlin_bigint)below);
    return order == 0 && below < d ? -1 : order;
}

/* Whole numbers compare exactly, with doubles too: of those that share a double, one at most equals it. NaN is handled by the callers. */
static int compare_numbers(gremlin_value a, gremlin_value b) {
    if (is_wide_whole(a)) {
        gremlin_bigint x = gremlin_as_big(a);
        return is_wide_whole(b) ? compare_wholes(x, gremlin_as_big(b)) : compare_with_double(x, gremlin_as_double(b));
    }
    if (is_wide_whole(b)) {
        return -compare_with_double(gremlin_as_big(b), gremlin_as_double(a));
    }
    return compare_doubles(gremlin_as_double(a), gremlin_as_double(b));
}

static bool is_nan(gremlin_value v) {
    return gremlin_is_number(v) && !is_wide_whole(v) && isnan(gremlin_as_double(v));
}

static bool equal_items(const gremlin_list *a, const gremlin_list *b, bool nan_equals) {
    for (size_t i = 0; i < a->n; i++) {
        if (!equal(a->at[i], b->at[i], nan_equals)) {
            return false;
        }
    }
    return true;
}

/* The positions of values, sorted by hash: so that sets and maps compare in n log n. */
typedef struct slot {
    uint64_t hash;
    size_t at;
} slot;

static int by_hash(const void *a, const void *b) {
    uint64_t x = ((const slot *)a)->hash, y = ((const slot *)b)->hash;
    return (x > y) - (x < y);
}

static const gremlin_value *value_at(const gremlin_value *first, size_t stride, size_t i) {
    return (const gremlin_value *)(const void *)((const char *)first + i * stride);
}

static slot *sorted(const gremlin_value *first, size_t stride, size_t n) {
    slot *slots = mem_alloc(n * sizeof *slots);
    for (size_t i = 0; i < n; i++) {
        slots[i] = (slot){gremlin_hash(*value_at(first, stride, i)), i};
    }
    qsort(slots, n, sizeof *slots, by_hash);
    return slots;
}

/* The position of a value that equals `v`; n: none. */
static size_t found_at(const slot *slots, size_t n, const gremlin_value *first, size_t stride, gremlin_value v, bool nan_equals) {
    uint64_t hash = gremlin_hash(v);
    size_t low = 0, high = n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (slots[middle].hash < hash) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    for (; low < n && slots[low].hash == hash; low++) {
        if (equal(*value_at(first, stride, slots[low].at), v, nan_equals)) {
            return slots[low].at;
        }
    }
    return n;
}

static bool equal_sets(const gremlin_list *a, const gremlin_list *b, bool nan_equals) {
    bool same = true;
    slot *slots = a->n ? sorted(b->at, sizeof *b->at, b->n) : NULL;
    for (size_t i = 0; same && i < a->n; i++) {
        same = found_at(slots, b->n, b->at, sizeof *b->at, a->at[i], nan_equals) < b->n;
    }
    free(slots);
    return same;
}

static bool equal_maps(gremlin_value a, gremlin_value b, bool nan_equals) {
    size_t n = a.map->n;
    bool same = n == b.map->n;
    slot *slots = same && n ? sorted(&b.map->at->key, sizeof *b.map->at, n) : NULL;
    for (size_t i = 0; same && i < n; i++) {
        size_t at = found_at(slots, n, &b.map->at->key, sizeof *b.map->at, a.map->at[i].key, true);
        same = at < n && equal(a.map->at[i].value, b.map->at[at].value, nan_equals);
    }
    free(slots);
    return same;
}

static bool equal_paths(const gremlin_path *a, const gremlin_path *b, bool nan_equals) {
    if (a->n != b->n) {
        return false;
    }
    for (size_t i = 0; i < a->n; i++) {
        if (!equal(a->objects[i], b->objects[i], nan_equals) || a->labels[i].n != b->labels[i].n) {
            return false;
        }
        for (size_t j = 0; j < a->labels[i].n; j++) {
            if (!slice_eq(a->labels[i].at[j], b->labels[i].at[j])) {
                return false;
            }
        }
    }
    return true;
}

static bool equal_properties(gremlin_value a, gremlin_value b, bool nan_equals) {
    if (a.type == GREMLIN_VERTEX_PROPERTY) {
        return equal(a.property->id, b.property->id, nan_equals);
    }
    return slice_eq(a.property->key, b.property->key) && equal(a.property->value, b.property->value, nan_equals);
}

static bool equal_list_kinds(gremlin_value a, gremlin_value b, bool nan_equals) {
    if ((a.type == GREMLIN_SET) != (b.type == GREMLIN_SET) || a.list->n != b.list->n) {
        return false;
    }
    return a.type == GREMLIN_SET ? equal_sets(a.list, b.list, nan_equals) : equal_items(a.list, b.list, nan_equals);
}

static bool equal_same_type(gremlin_value a, gremlin_value b, bool nan_equals) {
    switch (a.type) {
    case GREMLIN_NULL:
        return true;
    case GREMLIN_BOOLEAN:
        return a.b == b.b;
    case GREMLIN_CHAR:
    case GREMLIN_DATE:
    case GREMLIN_TIMESTAMP:
        return a.i == b.i;
    case GREMLIN_STRING:
    case GREMLIN_BINARY:
        return slice_eq(gremlin_text(a), gremlin_text(b));
    case GREMLIN_UUID:
        return memcmp(a.uuid, b.uuid, 16) == 0;
    case GREMLIN_DURATION:
        return a.duration->seconds == b.duration->seconds && a.duration->nanos == b.duration->nanos;
    case GREMLIN_PATH:
        return equal_paths(a.path, b.path, nan_equals);
    case GREMLIN_VERTEX:
    case GREMLIN_EDGE:
        return a.element == b.element || (equal(a.element->id, b.element->id, nan_equals) && slice_eq(a.element->place, b.element->place));
    case GREMLIN_VERTEX_PROPERTY:
    case GREMLIN_PROPERTY:
        return equal_properties(a, b, nan_equals);
    case GREMLIN_ENUM:
        return a.family == b.family && a.n == b.n;
    case GREMLIN_TRAVERSER:
        return equal(a.traverser->value, b.traverser->value, nan_equals);
    default:
        return a.p == b.p;
    }
}

static bool equal(gremlin_value a, gremlin_value b, bool nan_equals) {
    if (gremlin_is_number(a) && gremlin_is_number(b)) {
        return is_nan(a) || is_nan(b) ? nan_equals && is_nan(a) && is_nan(b) : compare_numbers(a, b) == 0;
    }
    if (gremlin_is_list(a) && gremlin_is_list(b)) {
        return equal_list_kinds(a, b, nan_equals);
    }
    if (gremlin_is_map(a) && gremlin_is_map(b)) {
        return equal_maps(a, b, nan_equals);
    }
    return a.type == b.type && equal_same_type(a, b, nan_equals);
}

bool gremlin_equal(gremlin_value a, gremlin_value b) {
    return equal(a, b, false);
}

bool gremlin_same(gremlin_value a, gremlin_value b) {
    return equal(a, b, true);
}

/* ---- hashes: keyed, since clients choose the values ---- */

static uint64_t hash_whole(gremlin_bigint x) {
    return keyed_hash_mix(keyed_hash_mix(GREMLIN_DOUBLE, (uint64_t)x), (uint64_t)(x >> 64));
}

/* A double that is whole equals the whole number, and has its hash. */
static uint64_t hash_number(gremlin_value v) {
    if (is_wide_whole(v)) {
        return hash_whole(gremlin_as_big(v));
    }
    double d = gremlin_as_double(v);
    if (fits_whole(d) && floor(d) == d) {
        return hash_whole((gremlin_bigint)d);
    }
    uint64_t bits;
    d = isnan(d) ? (double)NAN : d;
    memcpy(&bits, &d, sizeof bits);
    return keyed_hash_mix(GREMLIN_DOUBLE, bits);
}

/* The sum does not depend on the order, as sets and maps need. */
static uint64_t hash_items(gremlin_value v) {
    uint64_t h = v.list->n;
    for (size_t i = 0; i < v.list->n; i++) {
        uint64_t item = gremlin_hash(v.list->at[i]);
        h = v.type == GREMLIN_SET ? h + item : keyed_hash_mix(h, item);
    }
    return keyed_hash_mix(h, GREMLIN_LIST);
}

static uint64_t hash_map(gremlin_value v) {
    uint64_t h = v.map->n;
    for (size_t i = 0; i < v.map->n; i++) {
        h += keyed_hash_mix(gremlin_hash(v.map->at[i].key), gremlin_hash(v.map->at[i].value));
    }
    return keyed_hash_mix(h, GREMLIN_MAP);
}

static uint64_t hash_path(const gremlin_path *p) {
    uint64_t h = p->n;
    for (size_t i = 0; i < p->n; i++) {
        h = keyed_hash_mix(h, gremlin_hash(p->objects[i]));
    }
    return h;
}

static uint64_t hash_property(gremlin_value v) {
    return v.type == GREMLIN_VERTEX_PROPERTY ? gremlin_hash(v.property->id) + 3
                                             : keyed_hash_bytes(v.property->key, gremlin_hash(v.property->value));
}

uint64_t gremlin_hash(gremlin_value v) {
    if (gremlin_is_number(v)) {
        return hash_number(v);
    }
    switch (v.type) {
    case GREMLIN_NULL:
        return 7;
    case GREMLIN_BOOLEAN:
        return v.b ? 11 : 13;
    case GREMLIN_STRING:
    case GREMLIN_BINARY:
        return keyed_hash_bytes(gremlin_text(v), v.type);
    case GREMLIN_UUID:
        return keyed_hash_bytes(slice_of(v.uuid, 16), v.type);
    case GREMLIN_DURATION:
        return keyed_hash_mix((uint64_t)v.duration->seconds, (uint64_t)v.duration->nanos);
    case GREMLIN_LIST:
    case GREMLIN_SET:
    case GREMLIN_BULKSET:
        return hash_items(v);
    case GREMLIN_MAP:
    case GREMLIN_TREE:
        return hash_map(v);
    case GREMLIN_PATH:
        return hash_path(v.path);
    case GREMLIN_VERTEX:
    case GREMLIN_EDGE:
        return gremlin_hash(v.element->id) + v.type;
    case GREMLIN_VERTEX_PROPERTY:
    case GREMLIN_PROPERTY:
        return hash_property(v);
    case GREMLIN_ENUM:
        return keyed_hash_mix(v.family, v.n);
    case GREMLIN_TRAVERSER:
        return gremlin_hash(v.traverser->value);
    default:
        return keyed_hash_mix(v.type, (uint64_t)v.i);
    }
}

/* ---- comparability ---- */

static bool is_date(gremlin_value v) {
    return v.type == GREMLIN_DATE || v.type == GREMLIN_TIMESTAMP;
}

static bool compare_lists(const gremlin_list *a, const gremlin_list *b, int *order_out) {
    for (size_t i = 0; i < a->n && i < b->n; i++) {
        if (!gremlin_compare(a->at[i], b->at[i], order_out)) {
            return false;
        }
        if (*order_out) {
            return true;
        }
    }
    *order_out = (a->n > b->n) - (a->n < b->n);
    return true;
}

static int compare_whole(int64_t a, int64_t b) {
    return (a > b) - (a < b);
}

static int compare_durations(const gremlin_duration *a, const gremlin_duration *b) {
    int order = compare_whole(a->seconds, b->seconds);
    return order ? order : compare_whole(a->nanos, b->nanos);
}

static int sign(int order) {
    return (order > 0) - (order < 0);
}

bool gremlin_compare(gremlin_value a, gremlin_value b, int *order_out) {
    if (gremlin_is_number(a) && gremlin_is_number(b)) {
        *order_out = compare_numbers(a, b);
        return true;
    }
    if (is_date(a) && is_date(b)) {
        *order_out = compare_whole(a.i, b.i);
        return true;
    }
    if (gremlin_is_list(a) && gremlin_is_list(b)) {
        return compare_lists(a.list, b.list, order_out);
    }
    if (a.type != b.type) {
        return false;
    }
    switch (a.type) {
    case GREMLIN_NULL:
        *order_out = 0;
        return true;
    case GREMLIN_BOOLEAN:
        *order_out = compare_whole(a.b, b.b);
        return true;
    case GREMLIN_CHAR:
        *order_out = compare_whole(a.i, b.i);
        return true;
    case GREMLIN_STRING:
        *order_out = sign(slice_cmp(gremlin_text(a), gremlin_text(b)));
        return true;
    case GREMLIN_UUID:
        *order_out = sign(memcmp(a.uuid, b.uuid, 16));
        return true;
    case GREMLIN_DURATION:
        *order_out = compare_durations(a.duration, b.duration);
        return true;
    case GREMLIN_ENUM:
        *order_out = compare_whole(a.n, b.n);
        return a.family == b.family;
    default:
        return false;
    }
}

/* ---- orderability ---- */

/* The order of the families, first to last. */
static int family_of(gremlin_value v) {
    static const uint8_t families[] = {
        [GREMLIN_NULL] = 0,       [GREMLIN_BOOLEAN] = 1,         [GREMLIN_BYTE] = 2,      [GREMLIN_SHORT] = 2,     [GREMLIN_INT] = 2,
        [GREMLIN_LONG] = 2,       [GREMLIN_BIGINT] = 2,          [GREMLIN_FLOAT] = 2,     [GREMLIN_DOUBLE] = 2,    [GREMLIN_DECIMAL] = 2,
        [GREMLIN_DATE] = 3,       [GREMLIN_TIMESTAMP] = 3,       [GREMLIN_STRING] = 4,    [GREMLIN_UUID] = 5,      [GREMLIN_VERTEX] = 6,
        [GREMLIN_EDGE] = 7,       [GREMLIN_VERTEX_PROPERTY] = 8, [GREMLIN_PROPERTY] = 9,  [GREMLIN_PATH] = 10,     [GREMLIN_SET] = 11,
        [GREMLIN_LIST] = 12,      [GREMLIN_BULKSET] = 12,        [GREMLIN_MAP] = 13,      [GREMLIN_TREE] = 13,     [GREMLIN_CHAR] = 14,
        [GREMLIN_DURATION] = 15,  [GREMLIN_BINARY] = 16,         [GREMLIN_ENUM] = 17,     [GREMLIN_SUBGRAPH] = 18, [GREMLIN_P] = 19,
        [GREMLIN_TRAVERSAL] = 20, [GREMLIN_TRAVERSER] = 21,      [GREMLIN_STRATEGY] = 22,
    };
    return families[v.type];
}

static int order_numbers(gremlin_value a, gremlin_value b) {
    bool x = is_nan(a), y = is_nan(b);
    return x || y ? x - y : compare_numbers(a, b);
}

static int order_items(const gremlin_value *a, size_t a_n, const gremlin_value *b, size_t b_n) {
    for (size_t i = 0; i < a_n && i < b_n; i++) {
        int order = gremlin_order(a[i], b[i]);
        if (order) {
            return order;
        }
    }
    return (a_n > b_n) - (a_n < b_n);
}

static int order_maps(const gremlin_map *a, const gremlin_map *b) {
    for (size_t i = 0; i < a->n && i < b->n; i++) {
        int order = gremlin_order(a->at[i].key, b->at[i].key);
        order = order ? order : gremlin_order(a->at[i].value, b->at[i].value);
        if (order) {
            return order;
        }
    }
    return (a->n > b->n) - (a->n < b->n);
}

static int order_properties(gremlin_value a, gremlin_value b) {
    if (a.type == GREMLIN_VERTEX_PROPERTY) {
        return gremlin_order(a.property->id, b.property->id);
    }
    int order = sign(slice_cmp(a.property->key, b.property->key));
    return order ? order : gremlin_order(a.property->value, b.property->value);
}

int gremlin_order(gremlin_value a, gremlin_value b) {
    int x = family_of(a), y = family_of(b), order = 0;
    if (x != y) {
        return x < y ? -1 : 1;
    }
    if (gremlin_is_number(a)) {
        return order_numbers(a, b);
    }
    switch (a.type) {
    case GREMLIN_VERTEX:
    case GREMLIN_EDGE:
        return gremlin_order(a.element->id, b.element->id);
    case GREMLIN_VERTEX_PROPERTY:
    case GREMLIN_PROPERTY:
        return order_properties(a, b);
    case GREMLIN_PATH:
        return order_items(a.path->objects, a.path->n, b.path->objects, b.path->n);
    case GREMLIN_LIST:
    case GREMLIN_SET:
    case GREMLIN_BULKSET:
        return order_items(a.list->at, a.list->n, b.list->at, b.list->n);
    case GREMLIN_MAP:
    case GREMLIN_TREE:
        return order_maps(a.map, b.map);
    case GREMLIN_BINARY:
        return sign(slice_cmp(gremlin_text(a), gremlin_text(b)));
    default:
        return gremlin_compare(a, b, &order) ? order : 0;
    }
}

/* ---- predicates: yes, no, or an error because the values do not compare. An error stays one under not(). ---- */

typedef enum answer { NO, YES, ERROR } answer;

static answer answer_of(bool yes) {
    return yes ? YES : NO;
}

static answer compares(gremlin_value v, gremlin_value with, gremlin_p kind) {
    int order;
    if (!gremlin_compare(v, with, &order)) {
        return ERROR;
    }
    if (is_nan(v) || is_nan(with)) {
        return NO;
    }
    return answer_of(kind == P_LT ? order < 0 : kind == P_LTE ? order <= 0 : kind == P_GT ? order > 0 : order >= 0);
}

static answer both(answer a, answer b) {
    return a == NO || b == NO ? NO : a == ERROR || b == ERROR ? ERROR : YES;
}

static answer either(answer a, answer b) {
    return a == YES || b == YES ? YES : a == ERROR || b == ERROR ? ERROR : NO;
}

static answer negated(answer a) {
    return a == ERROR ? ERROR : a == YES ? NO : YES;
}

static answer within(const gremlin_predicate *p, gremlin_value v) {
    for (size_t i = 0; i < p->n; i++) {
        if (gremlin_equal(v, p->values[i])) {
            return YES;
        }
    }
    return NO;
}

static bool ends(slice s, slice end) {
    return end.n == 0 || (s.n >= end.n && memcmp(s.p + s.n - end.n, end.p, end.n) == 0);
}

static answer matches(const gremlin_predicate *p, slice text) {
    uint64_t steps = 20 * 1000 * 1000;
    text_regex_answer found = p->regex && text_is_valid(text) ? text_regex_find(p->regex, text, 0, NULL, &steps) : REGEX_NO;
    return found == REGEX_TOO_LONG ? ERROR : answer_of(found == REGEX_YES);
}

static answer test_text(const gremlin_predicate *p, gremlin_value v) {
    if (v.type != GREMLIN_STRING || p->values[0].type != GREMLIN_STRING) {
        return ERROR;
    }
    slice text = gremlin_text(v), part = gremlin_text(p->values[0]);
    switch (p->kind) {
    case P_STARTING_WITH:
        return answer_of(slice_starts(text, part));
    case P_NOT_STARTING_WITH:
        return answer_of(!slice_starts(text, part));
    case P_ENDING_WITH:
        return answer_of(ends(text, part));
    case P_NOT_ENDING_WITH:
        return answer_of(!ends(text, part));
    case P_CONTAINING:
        return answer_of(text_find(text, part) != SIZE_MAX);
    case P_NOT_CONTAINING:
        return answer_of(text_find(text, part) == SIZE_MAX);
    case P_REGEX:
        return matches(p, text);
    default:
        return negated(matches(p, text));
    }
}

static answer test(const gremlin_predicate *p, gremlin_value v) {
    switch (p->kind) {
    case P_EQ:
        return answer_of(gremlin_equal(v, p->values[0]));
    case P_NEQ:
        return answer_of(!gremlin_equal(v, p->values[0]));
    case P_LT:
    case P_LTE:
    case P_GT:
    case P_GTE:
        return compares(v, p->values[0], p->kind);
    case P_INSIDE:
        return both(compares(v, p->values[0], P_GT), compares(v, p->values[1], P_LT));
    case P_OUTSIDE:
        return either(compares(v, p->values[0], P_LT), compares(v, p->values[1], P_GT));
    case P_BETWEEN:
        return both(compares(v, p->values[0], P_GTE), compares(v, p->values[1], P_LT));
    case P_WITHIN:
        return within(p, v);
    case P_WITHOUT:
        return negated(within(p, v));
    case P_AND:
        return both(test(p->left, v), test(p->right, v));
    case P_OR:
        return either(test(p->left, v), test(p->right, v));
    case P_NOT:
        return negated(test(p->left, v));
    default:
        return test_text(p, v);
    }
}

bool gremlin_test(const gremlin_predicate *p, gremlin_value v) {
    return test(p, v) == YES;
}
