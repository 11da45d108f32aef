/* demand_keys.c — demands of a WHERE on key indexes (index/policy.h), whose entries are keys in MongoDB's order (mql/key.h): for SQL texts
 * over containers of the MongoDB API.
 *
 * A property that equals a value, or is an element of an array that does, has a key that begins with this value in each index whose first
 * field is its path. So a condition becomes a span of such keys. It is never exact: an array has the keys of its elements, and a missing
 * field that of null. */
#include <math.h>

#include "base/limits.h"
#include "query/demand_int.h"
#include "query/key.h"
#include "query/like.h"

typedef query__demand_reader reader;

/* ---- the index ---- */

static bool is_number(slice name) {
    for (size_t i = 0; i < name.n; i++) {
        if (name.p[i] < '0' || name.p[i] > '9') {
            return false;
        }
    }
    return true;
}

/* The path as MongoDB writes it, in which elements of arrays have no step. The id of SQL need not be a field of the document. */
static bool dotted_path(const find_path *p, buf *out) {
    bool good = p->n > 0 && !index_is_system(p->steps[0]) && !slice_eq(p->steps[0].name, SLICE_LIT("id"));
    for (size_t i = 0; i < p->n && good; i++) {
        const index_step *s = &p->steps[i];
        if (s->element) {
            good = !p->steps[i - 1].element;
            continue;
        }
        good = s->name.n && !is_number(s->name) && !memchr(s->name.p, '.', s->name.n) && s->name.p[0] != '$' && !s->key;
        buf_add(out, ".", i > 0);
        buf_add_slice(out, s->name);
    }
    return good && buf_ok(out);
}

/* Whether every document has a key, and strings sort by bytes. */
static bool is_plain(const index_key *k) {
    slice stem, place;
    doc_element e;
    uint64_t passed = 0;
    bool partial = doc_find_member_counted(k->spec, SLICE_LIT("partialFilterExpression"), &e, &passed),
         sparse = doc_find_member_counted(k->spec, SLICE_LIT("sparse"), &e, &passed);
    return !partial && !sparse && !mql_index_collation(k->index) && !mql_index_is_wildcard(k->index, &stem) &&
           mql_index_kind_of(k->index, &place) == MQL_INDEX_VALUES;
}

/* The index with the fewest fields whose first one is the path; NULL: none. */
static const index_key *index_of(const reader *r, const query_select *s, const query_expr *e) {
    find_path p;
    const index_key *best = NULL;
    buf path = buf_init(LIMIT_FIND_BYTES);
    if (r->policy->keys_n && !r->policy->off && query__demand_path(s, e, &p) && dotted_path(&p, &path)) {
        for (size_t i = 0; i < r->policy->keys_n; i++) {
            const index_key *k = &r->policy->keys[i];
            bool shorter = !best || mql_index_pattern(k->index)->n < mql_index_pattern(best->index)->n;
            if (shorter && is_plain(k) && slice_eq(mql_index_pattern(k->index)->parts[0].path, buf_view(&path))) {
                best = k;
            }
        }
    }
    buf_free(&path);
    return best;
}

/* ---- keys ---- */

/* A constant as a value of MongoDB. False: its keys are not known, or do not tell it. */
static bool constant(reader *r, const query_expr *e, mql_value *out) {
    query_value v, typed;
    if (!query__demand_constant(r, e, &v)) {
        return false;
    }
    switch (v.type) {
    case TYPE_NULL:
        *out = mql_null();
        return true;
    case TYPE_BOOL:
        *out = mql_bool(v.truth);
        return true;
    case TYPE_NUMBER:
        *out = mql_double(r->arena, v.number);
        return fabs(v.number) < INDEX_NUMBER_EXACT;
    case TYPE_STRING:
        *out = mql_text(r->arena, v.bytes);
        return true;
    case TYPE_OBJECT:
        if (value_typed(r->arena, &v, &typed)) {
            *out = (mql_value){(bson_type_t)typed.extended, typed.bytes};
            return true;
        }
        return false;
    default:
        return false;
    }
}

static slice spelled(reader *r, mql_value v) {
    buf out = buf_init(BUF_NO_LIMIT);
    mql_key_add(&out, NULL, v, false);
    slice key = arena_copy(r->arena, buf_view(&out));
    buf_free(&out);
    return key;
}

static slice class_start(reader *r, bson_type_t type) {
    char byte = (char)mql_key_class(mql_class(type));
    return arena_copy(r->arena, slice_of(&byte, 1));
}

static slice inverted(reader *r, slice key) {
    char *out = arena_array(r->arena, char, key.n + 1);
    for (size_t i = 0; i < key.n; i++) {
        out[i] = (char)~key.p[i];
    }
    return slice_of(out, key.n);
}

static void start(reader *r, find_demand *c, const query_expr *e, const index_key *k, size_t spans) {
    slice name;
    doc_element given;
    uint64_t passed = 0;
    bool named = doc_find_member_counted(k->spec, SLICE_LIT("name"), &given, &passed) && given.type == BSON_TYPE_UTF8;
    name = named ? doc_element_text(&given) : SLICE_LIT("keys");
    index_step *step = arena_new(r->arena, index_step);
    *step = (index_step){.name = name, .key = k->id};
    *c = (find_demand){.spans = arena_array(r->arena, find_span, 2 * spans + 1), .condition = e, .steps = step, .steps_n = 1};
}

/* All keys that begin with a key from `from` on and before `to`; `value`: with `from`. */
static void add(reader *r, find_demand *c, const index_key *k, slice from, slice to, bool value) {
    query_key_span span = {.from = from, .to = to};
    if (mql_index_pattern(k->index)->parts[0].descending) {
        slice low = inverted(r, to), high = inverted(r, from);
        span.from = value ? high : low;
        span.to = find_prefix_end(r->arena, high);
    }
    query__demand_add_keys(r, c, &span);
}

/* An object that spells a value of a type that JSON lacks equals this value; and, if a document has it so, the object. */
static void add_equal(reader *r, find_demand *c, const index_key *k, mql_value v) {
    bool of_json = v.type == BSON_TYPE_NULL || v.type == BSON_TYPE_BOOL || v.type == BSON_TYPE_DOUBLE || v.type == BSON_TYPE_UTF8;
    slice key = spelled(r, v);
    add(r, c, k, key, find_prefix_end(r->arena, key), true);
    if (!of_json) {
        slice objects = class_start(r, BSON_TYPE_DOCUMENT);
        add(r, c, k, objects, find_prefix_end(r->arena, objects), false);
    }
}

/* ---- conditions ---- */

static bool read_equal(reader *r, const query_select *s, const query_expr *e, find_demand *c) {
    mql_value v;
    for (int side = 0; side < 2; side++) {
        const index_key *k = index_of(r, s, e->items[side]);
        if (k && constant(r, e->items[1 - side], &v)) {
            start(r, c, e, k, 2);
            add_equal(r, c, k, v);
            return true;
        }
    }
    return false;
}

static bool read_in(reader *r, const query_select *s, const query_expr *e, find_demand *c) {
    const index_key *k = !e->negated && e->items_n <= DEMAND_SPANS_MAX / 2 ? index_of(r, s, e->items[0]) : NULL;
    if (!k) {
        return false;
    }
    start(r, c, e, k, 2 * e->items_n);
    for (size_t i = 1; i < e->items_n; i++) {
        mql_value v;
        if (!constant(r, e->items[i], &v)) {
            return false;
        }
        add_equal(r, c, k, v);
    }
    return true;
}

typedef struct bounds {
    const mql_value *low, *high; /* NULL: none */
    bool above, below;           /* without the bound itself */
} bounds;

/* Values of the bounds' type from one to the other. */
static bool add_range(reader *r, find_demand *c, const index_key *k, const bounds *b) {
    bson_type_t type = b->low ? b->low->type : b->high->type;
    bool ordered = type == BSON_TYPE_DOUBLE || type == BSON_TYPE_UTF8 || type == BSON_TYPE_OID || type == BSON_TYPE_DATE_TIME;
    slice class = class_start(r, type);
    if (!ordered || (b->low && b->high && b->low->type != b->high->type)) {
        return false;
    }
    slice from = b->low ? spelled(r, *b->low) : class, to = b->high ? spelled(r, *b->high) : class;
    from = b->above ? find_prefix_end(r->arena, from) : from;
    to = b->below ? to : find_prefix_end(r->arena, to);
    if (slice_cmp(from, to) < 0) {
        add(r, c, k, from, to, false);
    }
    return true;
}

static bool read_comparison(reader *r, const query_select *s, const query_expr *e, find_demand *c) {
    bool up = e->op == OP_GREATER || e->op == OP_GREATER_EQUAL, strict = e->op == OP_GREATER || e->op == OP_LESS;
    mql_value v;
    for (int side = 0; side < 2; side++) {
        const index_key *k = index_of(r, s, e->items[side]);
        bool lower = side ? !up : up;
        if (k && constant(r, e->items[1 - side], &v)) {
            bounds b = lower ? (bounds){.low = &v, .above = strict} : (bounds){.high = &v, .below = strict};
            start(r, c, e, k, 1);
            return add_range(r, c, k, &b);
        }
    }
    return false;
}

static bool read_between(reader *r, const query_select *s, const query_expr *e, find_demand *c) {
    const index_key *k = e->negated ? NULL : index_of(r, s, e->items[0]);
    mql_value low, high;
    if (!k || !constant(r, e->items[1], &low) || !constant(r, e->items[2], &high)) {
        return false;
    }
    bounds b = {.low = &low, .high = &high};
    start(r, c, e, k, 1);
    return add_range(r, c, k, &b);
}

static bool add_text_prefix(reader *r, find_demand *c, const query_expr *e, const index_key *k, slice text) {
    enum { END_BYTES = 2 }; /* of a string's spelling */
    slice key = spelled(r, mql_text(r->arena, text));
    key.n -= END_BYTES;
    start(r, c, e, k, 1);
    add(r, c, k, key, find_prefix_end(r->arena, key), true);
    return true;
}

static bool read_like(reader *r, const query_select *s, const query_expr *e, find_demand *c) {
    const index_key *k = e->negated || e->items_n > 2 ? NULL : index_of(r, s, e->items[0]);
    query_value pattern;
    bool whole;
    if (!k || !query__demand_constant(r, e->items[1], &pattern) || pattern.type != TYPE_STRING) {
        return false;
    }
    query_like_pattern *compiled = query_like_compile(r->arena, pattern.bytes, SLICE_EMPTY);
    slice prefix = compiled ? query_like_prefix(compiled, &whole) : SLICE_EMPTY;
    return prefix.n && add_text_prefix(r, c, e, k, prefix);
}

static bool read_call(reader *r, const query_select *s, const query_expr *e, find_demand *c) {
    slice name = !e->udf && e->function && e->items_n == 2 ? slice_str(e->function->name) : SLICE_EMPTY;
    bool starts = slice_eq_nocase(name, SLICE_LIT("STARTSWITH")), contains = slice_eq_nocase(name, SLICE_LIT("ARRAY_CONTAINS"));
    const index_key *k = starts || contains ? index_of(r, s, e->items[0]) : NULL;
    mql_value v;
    if (!k || !constant(r, e->items[1], &v) || (starts && v.type != BSON_TYPE_UTF8)) {
        return false;
    }
    if (starts) {
        return v.bytes.n > 5 && add_text_prefix(r, c, e, k, mql_as_text(v));
    }
    start(r, c, e, k, 2);
    add_equal(r, c, k, v);
    return true;
}

bool query__demand_keys(reader *r, const query_select *s, const query_expr *e, find_demand *c) {
    if (!r->policy->keys_n) {
        return false;
    }
    switch (e->kind) {
    case EXPR_BINARY:
        return e->op == OP_EQUAL ? read_equal(r, s, e, c)
                                 : (e->op == OP_LESS || e->op == OP_LESS_EQUAL || e->op == OP_GREATER || e->op == OP_GREATER_EQUAL) &&
                                       read_comparison(r, s, e, c);
    case EXPR_IN:
        return read_in(r, s, e, c);
    case EXPR_BETWEEN:
        return read_between(r, s, e, c);
    case EXPR_LIKE:
        return read_like(r, s, e, c);
    case EXPR_CALL:
        return read_call(r, s, e, c);
    default:
        return false;
    }
}
