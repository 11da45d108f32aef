/* schema_test.c — tests values against a $jsonSchema. Objects compare without regard to the order of their members. */
#include <stdlib.h>

#include "base/keyed_hash.h"
#include "mql/number.h"
#include "mql/schema_int.h"
#include "text/text.h"

static err test_schema(mql_run *r, const mql__schema *s, mql_value v, bool *valid_out);

/* ---- equality ---- */

static bool equal(mql_run *r, mql_value a, mql_value b);

static bool pay(mql_run *r, uint64_t steps) {
    return mql_pay(r, steps) == OK; /* if no steps are left, the caller reports it */
}

static bool equal_members(mql_run *r, mql_value a, mql_value b) {
    doc_walk w;
    doc_element e;
    bool same = mql_length(a) == mql_length(b);
    for (doc_walk_init(&w, a.bytes); same && doc_walk_next(&w, &e);) {
        same = pay(r, 1 + b.bytes.n / 128) && equal(r, mql_of(&e), mql_member(b, e.key));
    }
    return same;
}

static bool equal_elements(mql_run *r, mql_value a, mql_value b) {
    doc_walk wa, wb;
    doc_element ea, eb;
    doc_walk_init(&wa, a.bytes);
    doc_walk_init(&wb, b.bytes);
    for (;;) {
        bool more_a = doc_walk_next(&wa, &ea), more_b = doc_walk_next(&wb, &eb);
        if (!more_a || !more_b) {
            return more_a == more_b;
        }
        if (!pay(r, 1) || !equal(r, mql_of(&ea), mql_of(&eb))) {
            return false;
        }
    }
}

static bool equal(mql_run *r, mql_value a, mql_value b) {
    if (a.type != b.type || !doc_is_container(a.type)) {
        return !mql_is_missing(b) && pay(r, 1 + a.bytes.n / 64) && mql_same(a, b);
    }
    return a.type == BSON_TYPE_DOCUMENT ? equal_members(r, a, b) : equal_elements(r, a, b);
}

/* A hash that is equal for equal values, in the sense above. */
static uint64_t hash(mql_value v) {
    doc_walk w;
    doc_element e;
    uint64_t h = 0;
    if (!doc_is_container(v.type)) {
        return mql_hash(NULL, v);
    }
    for (doc_walk_init(&w, v.bytes); doc_walk_next(&w, &e);) {
        uint64_t member = hash(mql_of(&e));
        h = v.type == BSON_TYPE_ARRAY ? keyed_hash_mix(h, member) : h + keyed_hash_bytes(e.key, member);
    }
    return keyed_hash_mix(h, (uint64_t)v.type);
}

static err test_enum(mql_run *r, const mql__schema *s, mql_value v, bool *valid_out) {
    doc_walk w;
    doc_element e;
    *valid_out = false;
    for (doc_walk_init(&w, s->enumeration.bytes); !*valid_out && doc_walk_next(&w, &e);) {
        *valid_out = pay(r, 1) && equal(r, v, mql_of(&e));
    }
    return r->steps ? OK : E_QUERY_TOO_LONG;
}

/* ---- numbers and strings ---- */

static bool is_multiple(mql_value v, mql_value of) {
    int64_t a, b;
    if (mql_as_integer(v, &a) && mql_as_integer(of, &b)) {
        return a % b == 0;
    }
    bson_decimal128_t x = mql_to_decimal(v), y = mql_to_decimal(of), rest = mql_decimal_remainder(&x, &y);
    return mql_decimal_is_zero(&rest);
}

static bool test_number(const mql__schema *s, mql_value v) {
    if (!mql_is_missing(s->minimum) && mql_compare(v, s->minimum) < (s->above_minimum ? 1 : 0)) {
        return false;
    }
    if (!mql_is_missing(s->maximum) && mql_compare(v, s->maximum) > (s->below_maximum ? -1 : 0)) {
        return false;
    }
    return mql_is_missing(s->multiple_of) || is_multiple(v, s->multiple_of);
}

static int64_t characters(slice text) {
    int64_t n = 0;
    for (size_t i = 0; i < text.n; i++) {
        n += ((unsigned char)text.p[i] & 0xC0) != 0x80;
    }
    return n;
}

static err find_pattern(mql_run *r, const text_regex *pattern, slice text, bool *found_out) {
    TRY(mql_pay(r, 2 + text.n / 16));
    text_regex_answer answer = text_is_valid(text) ? text_regex_find(pattern, text, 0, NULL, &r->steps) : REGEX_NO;
    *found_out = answer == REGEX_YES;
    return answer != REGEX_TOO_LONG ? OK
           : r->steps               ? mql_fail(r->op, 51156, "Error occurred while executing regular expression: match limit exceeded")
                                    : E_QUERY_TOO_LONG;
}

static err test_string(mql_run *r, const mql__schema *s, slice text, bool *valid_out) {
    int64_t n = s->min_length > 0 || s->max_length < INT64_MAX ? characters(text) : 0;
    TRY(mql_pay(r, text.n / 32));
    *valid_out = n >= s->min_length && n <= s->max_length;
    return *valid_out && s->pattern ? find_pattern(r, s->pattern, text, valid_out) : OK;
}

/* ---- arrays ---- */

typedef struct hashed {
    uint64_t hash;
    mql_value value;
} hashed;

static int by_hash(const void *a, const void *b) {
    const hashed *x = a, *y = b;
    return (x->hash > y->hash) - (x->hash < y->hash);
}

static err are_unique(mql_run *r, mql_value array, size_t n, bool *unique_out) {
    arena_mark mark = arena_marked(r->arena);
    doc_walk w;
    doc_element e;
    size_t i = 0;
    TRY(mql_pay(r, n * 8 + array.bytes.n / 8));
    if (!arena_fits(r->arena, n * sizeof(hashed))) {
        return budget_error(r->arena->budget);
    }
    hashed *all = arena_alloc(r->arena, (n + 1) * sizeof *all);
    for (doc_walk_init(&w, array.bytes); i < n && doc_walk_next(&w, &e); i++) {
        all[i] = (hashed){hash(mql_of(&e)), mql_of(&e)};
    }
    qsort(all, n, sizeof *all, by_hash);
    *unique_out = true;
    for (i = 1; i < n && *unique_out; i++) {
        *unique_out = all[i - 1].hash != all[i].hash || !equal(r, all[i - 1].value, all[i].value);
    }
    arena_release(r->arena, mark);
    return r->steps ? OK : E_QUERY_TOO_LONG;
}

/* The schema of the element at a position; NULL: any value. */
static const mql__schema *schema_at(const mql__schema *s, size_t position, bool *forbidden) {
    *forbidden = false;
    if (s->items) {
        return s->items;
    }
    if (position < s->items_at.n) {
        return s->items_at.all[position];
    }
    if (!s->items_at.n) {
        return NULL;
    }
    *forbidden = s->no_additional_items;
    return s->additional_items;
}

static err test_array(mql_run *r, const mql__schema *s, mql_value v, bool *valid_out) {
    doc_walk w;
    doc_element e;
    size_t n = mql_length(v), i = 0;
    TRY(mql_pay(r, 1 + n / 2));
    *valid_out = (int64_t)n >= s->min_items && (int64_t)n <= s->max_items;
    for (doc_walk_init(&w, v.bytes); *valid_out && doc_walk_next(&w, &e); i++) {
        bool forbidden;
        const mql__schema *of = schema_at(s, i, &forbidden);
        *valid_out = !forbidden;
        TRY(of ? test_schema(r, of, mql_of(&e), valid_out) : OK);
    }
    return *valid_out && s->unique_items ? are_unique(r, v, n, valid_out) : OK;
}

/* ---- objects ---- */

static int by_name(const void *a, const void *b) {
    return slice_cmp(((const mql__property *)a)->name, ((const mql__property *)b)->name);
}

void mql__sort_properties(mql__properties *properties) {
    qsort(properties->all, properties->n, sizeof *properties->all, by_name);
}

static const mql__property *find_property(const mql__properties *properties, slice name) {
    mql__property key = {.name = name};
    return properties->n ? bsearch(&key, properties->all, properties->n, sizeof key, by_name) : NULL;
}

static err test_member(mql_run *r, const mql__schema *s, const doc_element *e, bool *valid_out) {
    const mql__property *property = find_property(&s->properties, e->key);
    bool covered = property != NULL;
    *valid_out = true;
    TRY(property ? test_schema(r, property->schema, mql_of(e), valid_out) : OK);
    for (size_t i = 0; i < s->pattern_properties.n && *valid_out; i++) {
        bool found;
        TRY(find_pattern(r, s->pattern_properties.all[i].pattern, e->key, &found));
        covered |= found;
        TRY(found ? test_schema(r, s->pattern_properties.all[i].schema, mql_of(e), valid_out) : OK);
    }
    if (covered || !*valid_out) {
        return OK;
    }
    *valid_out = !s->no_additional_properties;
    return s->additional_properties ? test_schema(r, s->additional_properties, mql_of(e), valid_out) : OK;
}

static err has_all(mql_run *r, mql_value object, const mql__names *names, bool *valid_out) {
    *valid_out = true;
    for (size_t i = 0; i < names->n && *valid_out; i++) {
        TRY(mql_pay(r, 1 + object.bytes.n / 128));
        *valid_out = !mql_is_missing(mql_member(object, names->all[i]));
    }
    return OK;
}

static err test_dependencies(mql_run *r, const mql__schema *s, mql_value object, bool *valid_out) {
    for (size_t i = 0; i < s->dependencies.n && *valid_out; i++) {
        const mql__property *row = &s->dependencies.all[i];
        TRY(mql_pay(r, 1 + object.bytes.n / 128));
        if (!mql_is_missing(mql_member(object, row->name))) {
            TRY(row->schema ? test_schema(r, row->schema, object, valid_out) : has_all(r, object, &row->names, valid_out));
        }
    }
    return OK;
}

static err test_object(mql_run *r, const mql__schema *s, mql_value v, bool *valid_out) {
    doc_walk w;
    doc_element e;
    int64_t n = 0;
    TRY(has_all(r, v, &s->required, valid_out));
    for (doc_walk_init(&w, v.bytes); *valid_out && doc_walk_next(&w, &e); n++) {
        TRY(mql_pay(r, 2));
        TRY(test_member(r, s, &e, valid_out));
    }
    *valid_out = *valid_out && n >= s->min_properties && n <= s->max_properties;
    return *valid_out ? test_dependencies(r, s, v, valid_out) : OK;
}

/* ---- schemas ---- */

/* How many of the schemas hold, at most `enough`. */
static err count_valid(mql_run *r, const mql__schemas *schemas, mql_value v, size_t enough, size_t *count_out) {
    *count_out = 0;
    for (size_t i = 0; i < schemas->n && *count_out < enough; i++) {
        bool valid;
        TRY(test_schema(r, schemas->all[i], v, &valid));
        *count_out += valid;
    }
    return OK;
}

static err test_logic(mql_run *r, const mql__schema *s, mql_value v, bool *valid_out) {
    size_t all = 0, any = 1, one = 1;
    bool refused = false;
    TRY(count_valid(r, &s->all_of, v, s->all_of.n, &all));
    TRY(s->any_of.n ? count_valid(r, &s->any_of, v, 1, &any) : OK);
    TRY(s->one_of.n ? count_valid(r, &s->one_of, v, 2, &one) : OK);
    TRY(s->negated ? test_schema(r, s->negated, v, &refused) : OK);
    *valid_out = all == s->all_of.n && any == 1 && one == 1 && !refused;
    return OK;
}

static err test_by_type(mql_run *r, const mql__schema *s, mql_value v, bool *valid_out) {
    *valid_out = true;
    switch (v.type) {
    case BSON_TYPE_UTF8:
        return test_string(r, s, mql_as_text(v), valid_out);
    case BSON_TYPE_ARRAY:
        return test_array(r, s, v, valid_out);
    case BSON_TYPE_DOCUMENT:
        return test_object(r, s, v, valid_out);
    default:
        *valid_out = !mql_is_number(v) || test_number(s, v);
        return OK;
    }
}

static err test_schema(mql_run *r, const mql__schema *s, mql_value v, bool *valid_out) {
    TRY(mql_pay(r, 3));
    *valid_out = !s->typed || mql__types_have(&s->types, v.type);
    if (*valid_out && !mql_is_missing(s->enumeration)) {
        TRY(test_enum(r, s, v, valid_out));
    }
    TRY(*valid_out ? test_by_type(r, s, v, valid_out) : OK);
    return *valid_out ? test_logic(r, s, v, valid_out) : OK;
}

err mql__test_json_schema(const mql__test *t, const mql_node *n, mql_value v, bool *matches_out) {
    return test_schema(t->run, n->detail, v, matches_out);
}
