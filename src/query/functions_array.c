/* functions_array.c — arrays, and arrays as sets. Undefined elements of array literals are skipped by functions that look at values. */
#include <stdlib.h>

#include "query/function_int.h"

/* ---- length, concatenation, slices ---- */

static query_value array_length(query_context *c, const query_value *args, size_t n) {
    (void)n;
    if (args[0].type != TYPE_ARRAY) {
        return value_undefined();
    }
    size_t length = value_length(&args[0]);
    return function_spend(c, length / 4) ? value_integer((int64_t)length) : value_undefined();
}

static query_value array_concat(query_context *c, const query_value *args, size_t n) {
    size_t count = 0, bytes = 0;
    for (size_t i = 0; i < n; i++) {
        if (args[i].type != TYPE_ARRAY) {
            return value_undefined();
        }
        count += value_length(&args[i]);
        bytes += args[i].bytes.n;
    }
    if (function_too_large(c, bytes) || !function_spend_memory(c, bytes + count * sizeof(query_value))) {
        return value_undefined();
    }
    query_value *list = arena_alloc(c->arena, (count + 1) * sizeof *list);
    size_t made = 0;
    for (size_t i = 0; i < n; i++) {
        doc_walk w;
        doc_element e;
        doc_walk_init(&w, args[i].bytes);
        while (made < count && doc_walk_next(&w, &e)) {
            list[made++] = value_of_element(&e);
        }
    }
    return function_array(c, list, made);
}

static query_value array_slice(query_context *c, const query_value *args, size_t n) {
    int64_t start, length = INT64_MAX;
    if (args[0].type != TYPE_ARRAY || !function_whole(&args[1], &start) || (n > 2 && !function_whole(&args[2], &length))) {
        return value_undefined();
    }
    size_t count;
    query_value *list = function_elements(c, &args[0], &count);
    if (!list) {
        return value_undefined();
    }
    int64_t whole = (int64_t)count;
    start = start >= 0 ? start : start >= -whole ? start + whole : 0;
    start = start < whole ? start : whole;
    length = length < 0 ? 0 : length < whole - start ? length : whole - start;
    return function_array(c, list + start, (size_t)length);
}

/* ---- sets ---- */

/* A hash set that keeps insertion order. */
typedef struct value_set {
    query_value *list;
    uint64_t *hashes;
    size_t n;
    uint32_t *slots; /* index + 1 into the list; 0: empty slot */
    size_t slots_n;  /* a power of two, at least twice the values */
    uint64_t seed;   /* secret, so that clients cannot choose values that collide */
} value_set;

static bool set_init(query_context *c, arena *a, value_set *s, size_t most) {
    s->n = 0;
    s->seed = c->random ? *c->random : 0;
    for (s->slots_n = 8; s->slots_n < 2 * most; s->slots_n *= 2) {
    }
    if (!function_spend_memory(c, most * (sizeof *s->list + sizeof *s->hashes) + s->slots_n * sizeof *s->slots)) {
        return false;
    }
    s->list = arena_alloc(a, (most + 1) * sizeof *s->list);
    s->hashes = arena_alloc(a, (most + 1) * sizeof *s->hashes);
    s->slots = arena_array(a, uint32_t, s->slots_n);
    return true;
}

/* The slot of a value, or the empty slot for it. */
static size_t set_slot(const value_set *s, const query_value *v, uint64_t hash) {
    size_t at = hash & (s->slots_n - 1);
    while (s->slots[at] && !(s->hashes[s->slots[at] - 1] == hash && value_same(&s->list[s->slots[at] - 1], v))) {
        at = (at + 1) & (s->slots_n - 1);
    }
    return at;
}

static bool set_has(const value_set *s, const query_value *v) {
    return s->slots[set_slot(s, v, value_hash(v, s->seed))] != 0;
}

static void set_add(value_set *s, const query_value *v) {
    uint64_t hash = value_hash(v, s->seed);
    size_t at = set_slot(s, v, hash);
    if (s->slots[at] == 0) {
        s->list[s->n] = *v;
        s->hashes[s->n] = hash;
        s->slots[at] = (uint32_t)++s->n;
    }
}

/* ---- searching for a value ---- */

/* Whether each property of `part` is in `object` with an equal value. */
static bool has_part(const query_value *object, const query_value *part) {
    doc_walk w;
    doc_element e;
    arena *none = NULL;
    for (doc_walk_init(&w, part->bytes); doc_walk_next(&w, &e);) {
        query_value wanted = value_of_element(&e), found = value_member(none, object, e.key);
        if (!value_is_defined(&found) || !value_equal(&found, &wanted)) {
            return false;
        }
    }
    return true;
}

static bool contains(query_context *c, const query_value *array, const query_value *wanted, bool partly) {
    size_t scans = partly ? 1 + wanted->bytes.n / 8 : 1; /* each property is searched for in an object */
    doc_walk w;
    doc_element e;
    for (doc_walk_init(&w, array->bytes); doc_walk_next(&w, &e);) {
        query_value each = value_of_element(&e);
        if (each.type != wanted->type) {
            continue;
        }
        if (!function_spend(c, 1 + (each.type >= TYPE_ARRAY ? each.bytes.n / 16 * scans : 0))) {
            return false;
        }
        if (partly && each.type == TYPE_OBJECT) {
            each = value_plain(c->arena, &each);
            if (has_part(&each, wanted)) {
                return true;
            }
        } else if (value_equal(&each, wanted)) {
            return true;
        }
    }
    return false;
}

/* The array of a call as a set, if it is long. Such an array is mostly the same in all rows, so the first row's set is cached. */
typedef struct known_array {
    slice bytes;
    value_set set;
} known_array;

static known_array *know(query_context *c, const query_value *array, size_t n) {
    known_array *known = arena_new(c->keep, known_array);
    if (!set_init(c, c->keep, &known->set, n)) {
        return known; /* without bytes, so no array equals it */
    }
    query_value kept = value_keep(c->keep, array);
    known->bytes = kept.bytes;
    doc_walk w;
    doc_element e;
    for (doc_walk_init(&w, kept.bytes); doc_walk_next(&w, &e);) {
        query_value each = value_of_element(&e);
        each = value_plain(c->keep, &each); /* the values searched for are plain too */
        set_add(&known->set, &each);
    }
    return known;
}

/* The cached set; NULL: the array is short, or not the cached one. */
static const value_set *known_set(query_context *c, const query_value *array) {
    enum { FEW_BYTES = 256 };
    if (!c->prepared || !c->keep || array->bytes.n < FEW_BYTES) {
        return NULL;
    }
    if (!*c->prepared) {
        *c->prepared = know(c, array, value_length(array));
    }
    const known_array *known = *c->prepared;
    return slice_eq(known->bytes, array->bytes) && function_spend(c, array->bytes.n / 256) ? &known->set : NULL;
}

static query_value array_contains(query_context *c, const query_value *args, size_t n) {
    bool partly = n > 2 && value_is_true(&args[2]);
    if (args[0].type != TYPE_ARRAY || !value_is_defined(&args[1]) || (n > 2 && args[2].type != TYPE_BOOL && value_is_defined(&args[2]))) {
        return value_undefined();
    }
    query_value wanted = value_plain(c->arena, &args[1]);
    const value_set *set = partly ? NULL : known_set(c, &args[0]);
    return value_bool(set ? set_has(set, &wanted) : contains(c, &args[0], &wanted, partly));
}

/* A chain of ARRAY_CONTAINS joined by OR (any) or AND: an undefined argument decides only if no other does. */
static query_value contains_several(query_context *c, const query_value *args, size_t n, bool any) {
    bool some_undefined = false;
    if (args[0].type != TYPE_ARRAY) {
        return value_undefined();
    }
    for (size_t i = 1; i < n; i++) {
        if (!value_is_defined(&args[i])) {
            some_undefined = true;
        } else {
            query_value wanted = value_plain(c->arena, &args[i]);
            if (contains(c, &args[0], &wanted, false) == any) {
                return value_bool(any);
            }
        }
    }
    return some_undefined ? value_undefined() : value_bool(!any);
}

static query_value array_contains_all(query_context *c, const query_value *args, size_t n) {
    return contains_several(c, args, n, false);
}

static query_value array_contains_any(query_context *c, const query_value *args, size_t n) {
    return contains_several(c, args, n, true);
}

/* ---- sums and extremes ---- */

/* The numbers of an array; NULL if it is empty or has other values. */
static double *numbers(query_context *c, const query_value *array, size_t *n_out) {
    size_t n = array->type == TYPE_ARRAY ? value_length(array) : 0;
    *n_out = 0;
    if (n == 0 || !function_spend_memory(c, n * sizeof(double))) {
        return NULL;
    }
    double *list = arena_alloc(c->arena, n * sizeof *list);
    doc_walk w;
    doc_element e;
    for (doc_walk_init(&w, array->bytes); doc_walk_next(&w, &e);) {
        query_value each = value_of_element(&e);
        if (each.type == TYPE_NUMBER) {
            list[(*n_out)++] = each.number;
        } else if (value_is_defined(&each)) {
            return NULL;
        }
    }
    return *n_out ? list : NULL;
}

static double sum(const double *list, size_t n) {
    double total = 0;
    for (size_t i = 0; i < n; i++) {
        total += list[i];
    }
    return total;
}

static query_value array_sum(query_context *c, const query_value *args, size_t n) {
    size_t count;
    double *list = numbers(c, &args[0], &count);
    (void)n;
    if (!list && args[0].type == TYPE_ARRAY && value_length(&args[0]) == 0) {
        return value_integer(0);
    }
    return list ? value_number(sum(list, count)) : value_undefined();
}

static query_value array_avg(query_context *c, const query_value *args, size_t n) {
    size_t count;
    double *list = numbers(c, &args[0], &count);
    (void)n;
    return list ? value_number(sum(list, count) / (double)count) : value_undefined();
}

static int by_number(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static query_value array_median(query_context *c, const query_value *args, size_t n) {
    size_t count;
    double *list = numbers(c, &args[0], &count);
    (void)n;
    if (!list) {
        return value_undefined();
    }
    qsort(list, count, sizeof *list, by_number);
    double upper = list[count / 2];
    return value_number(count % 2 ? upper : (list[count / 2 - 1] + upper) / 2);
}

/* The least (sign -1) or greatest (sign 1) value: null < booleans < numbers < strings. */
static query_value extreme(query_context *c, const query_value *array, int sign) {
    query_value best = value_undefined();
    doc_walk w;
    doc_element e;
    if (array->type != TYPE_ARRAY) {
        return best;
    }
    for (doc_walk_init(&w, array->bytes); doc_walk_next(&w, &e);) {
        query_value each = value_of_element(&e);
        if (each.type >= TYPE_ARRAY || !function_spend(c, 1)) {
            return value_undefined();
        }
        if (value_is_defined(&each) && (!value_is_defined(&best) || value_compare(&each, &best) * sign > 0)) {
            best = each;
        }
    }
    return best;
}

static query_value array_max(query_context *c, const query_value *args, size_t n) {
    (void)n;
    return extreme(c, &args[0], 1);
}

static query_value array_min(query_context *c, const query_value *args, size_t n) {
    (void)n;
    return extreme(c, &args[0], -1);
}

/* ---- operations on sets ---- */

/* Adds the values of an array that are in `also` and not in `but`; either may be NULL. */
static void set_add_all(value_set *s, const query_value *array, const value_set *also, const value_set *but) {
    doc_walk w;
    doc_element e;
    for (doc_walk_init(&w, array->bytes); doc_walk_next(&w, &e);) {
        query_value each = value_of_element(&e);
        if (value_is_defined(&each) && (!also || set_has(also, &each)) && (!but || !set_has(but, &each))) {
            set_add(s, &each);
        }
    }
}

typedef struct two_sets {
    value_set first, second, result;
} two_sets;

/* Makes sets of both arguments, and an empty one with room for all values. */
static bool sets_init(query_context *c, const query_value *args, two_sets *sets) {
    if (args[0].type != TYPE_ARRAY || args[1].type != TYPE_ARRAY) {
        return false;
    }
    size_t a = value_length(&args[0]), b = value_length(&args[1]);
    if (!set_init(c, c->arena, &sets->first, a) || !set_init(c, c->arena, &sets->second, b) ||
        !set_init(c, c->arena, &sets->result, a + b) || !function_spend(c, (args[0].bytes.n + args[1].bytes.n) / 8)) {
        return false;
    }
    set_add_all(&sets->first, &args[0], NULL, NULL);
    set_add_all(&sets->second, &args[1], NULL, NULL);
    return true;
}

static query_value set_result(query_context *c, const value_set *s) {
    return function_array(c, s->list, s->n);
}

static query_value set_difference(query_context *c, const query_value *args, size_t n) {
    two_sets sets;
    (void)n;
    if (!sets_init(c, args, &sets)) {
        return value_undefined();
    }
    set_add_all(&sets.result, &args[0], NULL, &sets.second);
    return set_result(c, &sets.result);
}

static query_value set_equal(query_context *c, const query_value *args, size_t n) {
    two_sets sets;
    (void)n;
    if (!sets_init(c, args, &sets)) {
        return value_undefined();
    }
    set_add_all(&sets.result, &args[0], &sets.second, NULL);
    return value_bool(sets.result.n == sets.first.n && sets.first.n == sets.second.n);
}

/* In the order of the second array, as in the service's documentation. */
static query_value set_intersect(query_context *c, const query_value *args, size_t n) {
    two_sets sets;
    (void)n;
    if (!sets_init(c, args, &sets)) {
        return value_undefined();
    }
    set_add_all(&sets.result, &args[1], &sets.first, NULL);
    return set_result(c, &sets.result);
}

static query_value set_union(query_context *c, const query_value *args, size_t n) {
    two_sets sets;
    (void)n;
    if (!sets_init(c, args, &sets)) {
        return value_undefined();
    }
    set_add_all(&sets.result, &args[0], NULL, NULL);
    set_add_all(&sets.result, &args[1], NULL, NULL);
    return set_result(c, &sets.result);
}

/* ---- others ---- */

static query_value array_choose(query_context *c, const query_value *args, size_t n) {
    int64_t index;
    (void)c;
    return function_whole(&args[0], &index) && index >= 1 && index < (int64_t)n ? args[index] : value_undefined();
}

/* Keys have C0 80 for NUL (doc/json.h). */
static slice name_of_key(arena *a, slice key) {
    if (!memmem(key.p, key.n, "\xC0\x80", 2)) {
        return key;
    }
    char *name = arena_alloc_aligned(a, key.n, 1);
    size_t n = 0;
    for (size_t i = 0; i < key.n; i++) {
        bool nul = key.p[i] == '\xC0' && i + 1 < key.n && key.p[i + 1] == '\x80';
        name[n++] = nul ? 0 : key.p[i];
        i += nul;
    }
    return slice_of(name, n);
}

static query_value object_to_array(query_context *c, const query_value *args, size_t n) {
    if (args[0].type != TYPE_OBJECT || !function_texts(args + 1, n - 1)) {
        return value_undefined();
    }
    query_value object = value_plain(c->arena, &args[0]);
    slice names[2] = {n > 1 ? args[1].bytes : SLICE_LIT("k"), n > 2 ? args[2].bytes : SLICE_LIT("v")};
    object.type = TYPE_ARRAY; /* to count and walk its members */
    size_t count = value_length(&object), made = 0;
    if (!function_spend_memory(c, count * (sizeof(query_value) + names[0].n + names[1].n) + 2 * object.bytes.n)) {
        return value_undefined();
    }
    query_value *list = arena_alloc(c->arena, (count + 1) * sizeof *list);
    doc_walk w;
    doc_element e;
    for (doc_walk_init(&w, object.bytes); made < count && doc_walk_next(&w, &e);) {
        query_value pair[2] = {value_string(name_of_key(c->arena, e.key)), value_of_element(&e)};
        list[made++] = value_object(c->arena, names, pair, 2);
    }
    return function_array(c, list, made);
}

const query_function query_functions_array[] = {
    {"ARRAY_AVG", 1, 1, false, true, array_avg},
    {"ARRAY_CONCAT", 2, QUERY_ANY_NUMBER, false, true, array_concat},
    {"ARRAY_CONTAINS", 2, 3, true, true, array_contains},
    {"_TRY_ARRAY_CONTAINS", 2, 3, true, true, array_contains}, /* not documented; the service has it */
    {"ARRAY_CONTAINS_ALL", 2, QUERY_ANY_NUMBER, true, true, array_contains_all},
    {"ARRAY_CONTAINS_ANY", 2, QUERY_ANY_NUMBER, true, true, array_contains_any},
    {"ARRAY_LENGTH", 1, 1, false, true, array_length},
    {"ARRAY_MAX", 1, 1, false, true, array_max},
    {"ARRAY_MEDIAN", 1, 1, false, true, array_median},
    {"ARRAY_MIN", 1, 1, false, true, array_min},
    {"ARRAY_SLICE", 2, 3, false, true, array_slice},
    {"ARRAY_SUM", 1, 1, false, true, array_sum},
    {"CHOOSE", 2, QUERY_ANY_NUMBER, true, true, array_choose},
    {"ObjectToArray", 1, 3, false, true, object_to_array},
    {"OBJECT_TO_ARRAY", 1, 3, false, true, object_to_array},
    {"SetDifference", 2, 2, false, true, set_difference},
    {"SET_DIFFERENCE", 2, 2, false, true, set_difference},
    {"SetEqual", 2, 2, false, true, set_equal},
    {"SET_EQUAL", 2, 2, false, true, set_equal},
    {"SetIntersect", 2, 2, false, true, set_intersect},
    {"SET_INTERSECT", 2, 2, false, true, set_intersect},
    {"SetUnion", 2, 2, false, true, set_union},
    {"SET_UNION", 2, 2, false, true, set_union},
    {0},
};
