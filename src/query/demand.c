#include "query/demand_int.h"

#include <math.h>

#include "query/filter.h"
#include "query/key.h"
#include "query/like.h"

enum { SHAPE_STEPS = 4000000 };

typedef query__demand_reader reader;

/* ---- paths ---- */

static bool add_step(find_path *p, slice name, bool element) {
    if (p->n == LIMIT_PATH_DEPTH) {
        return false;
    }
    p->steps[p->n++] = (index_step){.name = name, .element = element};
    return true;
}

/* The source of a slot, in this select or an enclosing one. */
static const query_source *source_of(const query_select *s, int slot) {
    for (; s; s = s->outer) {
        if (slot >= s->first_slot && slot < s->first_slot + (int)s->sources_n) {
            return &s->sources[slot - s->first_slot];
        }
    }
    return NULL;
}

static bool path_within(const query_select *s, const query_expr *e, find_path *p) {
    if (e->kind == EXPR_KEY || e->kind == EXPR_WITHIN) {
        p->steps[p->n++] = (index_step){.name = e->key->name, .key = e->key->of};
        return true;
    }
    if (e->kind == EXPR_MEMBER && !e->computed) {
        return path_within(s, e->items[0], p) && add_step(p, e->name, false);
    }
    if (e->kind == EXPR_INDEX && e->items[1]->kind == EXPR_LITERAL && e->items[1]->value.type == TYPE_NUMBER) {
        p->single = false; /* the index has one path for all elements of an array */
        return path_within(s, e->items[0], p) && add_step(p, SLICE_EMPTY, true);
    }
    if (e->kind != EXPR_NAME) {
        return false;
    }
    if (e->slot < 0) { /* the item itself */
        return true;
    }
    const query_source *source = source_of(s, e->slot);
    if (!source || source->kind == SOURCE_SUBQUERY || (source->from && !path_within(s, source->from, p))) {
        return false;
    }
    p->single = p->single && source->kind == SOURCE_ROOT;
    return source->kind == SOURCE_ROOT || add_step(p, SLICE_EMPTY, true);
}

bool query__demand_path(const query_select *s, const query_expr *e, find_path *path_out) {
    path_out->n = 0;
    path_out->single = true;
    return path_within(s, e, path_out);
}

bool query_path_of(const query *q, const query_expr *e, find_path *path_out) {
    return query__demand_path(q->select, e, path_out);
}

/* ---- constants ---- */

bool query__is_constant(const query_expr *e) {
    if (e->kind == EXPR_NAME || e->select || e->udf || (e->kind == EXPR_CALL && (!e->function || !e->function->deterministic)) ||
        e->computed) {
        return false;
    }
    for (size_t i = 0; i < e->items_n; i++) {
        if (!query__is_constant(e->items[i])) {
            return false;
        }
    }
    return true;
}

bool query__demand_constant(reader *r, const query_expr *e, query_value *value_out) {
    if (!query__is_constant(e)) {
        return false;
    }
    query_value v = query_eval(r->runner, e);
    *value_out = value_keep(r->arena, &v);
    return r->runner->code == OK;
}

/* ---- encoding ---- */

bool query_index_encode(buf *out, const query_value *v) {
    switch (v->type) {
    case TYPE_UNDEFINED:
        index_spell_type(out, INDEX_UNDEFINED);
        return true;
    case TYPE_NULL:
        index_spell_type(out, INDEX_NULL);
        return true;
    case TYPE_BOOL:
        index_spell_type(out, v->truth ? INDEX_TRUE : INDEX_FALSE);
        return true;
    case TYPE_NUMBER:
        index_spell_number(out, v->number);
        return fabs(v->number) < INDEX_NUMBER_EXACT;
    case TYPE_STRING:
        if (v->bytes.n > INDEX_STRING_BYTES) {
            index_spell_prefix(out, v->bytes);
            return false;
        }
        index_spell_string(out, v->bytes);
        return true;
    default:
        if (v->extended) {
            doc_element e = {.type = (bson_type_t)v->extended, .value = v->bytes};
            return index_spell_equal_prefix(out, &e);
        }
        index_spell_type(out, v->type == TYPE_ARRAY ? INDEX_ARRAY : INDEX_OBJECT);
        return false;
    }
}

static slice spelled(reader *r, const query_value *v, bool *whole_out) {
    char space[INDEX_VALUE_BYTES_MAX];
    buf b = {.p = space, .cap = sizeof space, .max = sizeof space};
    *whole_out = query_index_encode(&b, v);
    return arena_copy(r->arena, buf_view(&b));
}

static slice type_start(reader *r, unsigned type) {
    char byte = (char)type;
    return arena_copy(r->arena, slice_of(&byte, 1));
}

/* ---- demands on one path ---- */

/* The path of an expression, if the policy indexes it. */
static bool indexed_path(reader *r, const query_select *s, const query_expr *e, find_path *p) {
    return query__demand_path(s, e, p) && index_policy_covers(r->policy, p->steps, p->n);
}

static void start(reader *r, find_demand *c, const query_expr *e, const find_path *p, size_t spans) {
    index_step *steps = arena_array(r->arena, index_step, p->n + 1);
    memcpy(steps, p->steps, p->n * sizeof *steps);
    *c = (find_demand){
        .spans = arena_array(r->arena, find_span, 2 * spans + 1), .exact = p->single, .condition = e, .steps = steps, .steps_n = p->n};
}

static void add_span(find_demand *c, slice from, slice to, bool point) {
    c->spans[c->n++] = (find_span){index_path_of(c->steps, c->steps_n), from, to, point};
}

/* An object also equals a value of a non-JSON type that has this extended-JSON form: {"$oid":"…"} equals that ObjectId. */
static void add_typed(reader *r, find_demand *c, const query_value *object) {
    bool whole;
    query_value typed;
    c->exact = false;
    add_span(c, type_start(r, INDEX_OBJECT), type_start(r, INDEX_OBJECT + 1), false);
    if (value_typed(r->arena, object, &typed)) {
        slice from = spelled(r, &typed, &whole);
        add_span(c, from, find_prefix_end(r->arena, from), whole);
    } else if (value_may_be_typed(object)) {
        add_span(c, type_start(r, INDEX_OBJECT + 1), type_start(r, INDEX_TYPE_END), false);
    }
}

/* undefined is not equal to any value. */
static void add_point(reader *r, find_demand *c, const query_value *v) {
    bool whole;
    if (v->type == TYPE_UNDEFINED) {
        return;
    }
    if (v->type == TYPE_OBJECT) {
        add_typed(r, c, v);
        return;
    }
    slice from = spelled(r, v, &whole);
    c->exact = c->exact && whole;
    add_span(c, from, find_prefix_end(r->arena, from), whole);
}

static bool read_equal(reader *r, const query_select *s, const query_expr *e, find_demand *c) {
    find_path p;
    query_value v;
    for (int side = 0; side < 2; side++) {
        if (indexed_path(r, s, e->items[side], &p) && query__demand_constant(r, e->items[1 - side], &v)) {
            start(r, c, e, &p, 1);
            add_point(r, c, &v);
            return true;
        }
    }
    return false;
}

static bool read_in(reader *r, const query_select *s, const query_expr *e, find_demand *c) {
    find_path p;
    if (e->negated || e->items_n > DEMAND_SPANS_MAX || !indexed_path(r, s, e->items[0], &p)) {
        return false;
    }
    start(r, c, e, &p, e->items_n);
    for (size_t i = 1; i < e->items_n; i++) {
        query_value v;
        if (!query__demand_constant(r, e->items[i], &v)) {
            return false;
        }
        add_point(r, c, &v);
    }
    return true;
}

/* The values of the bound's type on one side of it. False for null, booleans and arrays, and for NaN: the rows are tested instead. */
static bool bound(reader *r, const query_value *v, query_operator op, slice *from, slice *to, bool *exact) {
    bool whole;
    query_value typed = *v;
    if (v->type == TYPE_OBJECT ? !value_typed(r->arena, v, &typed)
                               : (v->type != TYPE_NUMBER && v->type != TYPE_STRING) || (v->type == TYPE_NUMBER && isnan(v->number))) {
        return false;
    }
    slice at = spelled(r, &typed, &whole);
    unsigned type = (unsigned char)at.p[0];
    bool up = op == OP_GREATER || op == OP_GREATER_EQUAL, inclusive = op == OP_LESS_EQUAL || op == OP_GREATER_EQUAL;
    *exact = whole;
    *from = !up ? type_start(r, type) : inclusive || !whole ? at : find_prefix_end(r->arena, at);
    *to = up ? type_start(r, type + 1) : inclusive || !whole ? find_prefix_end(r->arena, at) : at;
    return true;
}

static const query_operator turned[] = {
    [OP_LESS] = OP_GREATER, [OP_LESS_EQUAL] = OP_GREATER_EQUAL, [OP_GREATER] = OP_LESS, [OP_GREATER_EQUAL] = OP_LESS_EQUAL};

static bool read_comparison(reader *r, const query_select *s, const query_expr *e, find_demand *c) {
    find_path p;
    query_value v;
    slice from, to;
    bool exact;
    for (int side = 0; side < 2; side++) {
        query_operator op = side ? turned[e->op] : e->op;
        if (indexed_path(r, s, e->items[side], &p) && query__demand_constant(r, e->items[1 - side], &v) &&
            bound(r, &v, op, &from, &to, &exact)) {
            start(r, c, e, &p, 1);
            c->exact = c->exact && exact;
            add_span(c, from, to, false);
            return true;
        }
        bool below = op == OP_LESS || op == OP_LESS_EQUAL;
        if (below && query__demand_distance(r, s, e->items[side], e->items[1 - side], e, c)) {
            return true;
        }
    }
    return false;
}

static bool read_between(reader *r, const query_select *s, const query_expr *e, find_demand *c) {
    find_path p;
    query_value low, high;
    slice from, to, unused;
    bool exact_low, exact_high;
    if (e->negated || !indexed_path(r, s, e->items[0], &p) || !query__demand_constant(r, e->items[1], &low) ||
        !query__demand_constant(r, e->items[2], &high) || low.type != high.type ||
        !bound(r, &low, OP_GREATER_EQUAL, &from, &unused, &exact_low) || !bound(r, &high, OP_LESS_EQUAL, &unused, &to, &exact_high) ||
        unused.p[0] != from.p[0]) {
        return false;
    }
    start(r, c, e, &p, 1);
    c->exact = c->exact && exact_low && exact_high;
    if (slice_cmp(from, to) < 0) {
        add_span(c, from, to, false);
    }
    return true;
}

/* ---- prefixes ---- */

static void add_prefix(reader *r, find_demand *c, slice text) {
    char space[INDEX_VALUE_BYTES_MAX];
    buf b = {.p = space, .cap = sizeof space, .max = sizeof space};
    index_spell_prefix(&b, text);
    slice from = arena_copy(r->arena, buf_view(&b));
    c->exact = c->exact && text.n <= INDEX_STRING_BYTES;
    add_span(c, from, find_prefix_end(r->arena, from), false);
}

static bool read_like(reader *r, const query_select *s, const query_expr *e, find_demand *c) {
    find_path p;
    query_value pattern, escape = value_string(SLICE_EMPTY);
    bool whole;
    if (e->negated || !indexed_path(r, s, e->items[0], &p) || !query__demand_constant(r, e->items[1], &pattern) ||
        pattern.type != TYPE_STRING ||
        (e->items_n > 2 && (!query__demand_constant(r, e->items[2], &escape) || escape.type != TYPE_STRING))) {
        return false;
    }
    query_like_pattern *compiled = query_like_compile(r->arena, pattern.bytes, escape.bytes);
    slice prefix = compiled ? query_like_prefix(compiled, &whole) : SLICE_EMPTY;
    if (prefix.n == 0) {
        return false;
    }
    start(r, c, e, &p, 1);
    add_prefix(r, c, prefix);
    c->exact = false;
    return true;
}

/* ---- keys ---- */

/* All keys with the prefix `key` have the result as a prefix of their spelling; *whole_out: only they have. */
static slice spelled_key(reader *r, slice key, bool *whole_out) {
    char space[INDEX_VALUE_BYTES_MAX];
    buf b = {.p = space, .cap = sizeof space, .max = sizeof space};
    index_spell_prefix(&b, key);
    *whole_out = key.n <= INDEX_STRING_BYTES;
    return arena_copy(r->arena, buf_view(&b));
}

void query__demand_add_keys(reader *r, find_demand *c, const query_key_span *span) {
    bool from_whole, to_whole = true;
    slice from = spelled_key(r, span->from, &from_whole);
    slice to = span->to.n ? spelled_key(r, span->to, &to_whole) : type_start(r, INDEX_STRING + 1);
    to = to_whole ? to : find_prefix_end(r->arena, to);
    c->exact = c->exact && from_whole && to_whole;
    if (slice_cmp(from, to) < 0) {
        add_span(c, from, to, false);
    }
}

static void start_keys(reader *r, find_demand *c, const query_expr *e, const find_path *p, const query_key_span *spans, size_t n) {
    start(r, c, e, p, n);
    for (size_t i = 0; i < n; i++) {
        query_value key = value_string(spans[i].from);
        spans[i].point ? add_point(r, c, &key) : query__demand_add_keys(r, c, &spans[i]);
    }
}

static bool read_within(reader *r, const query_select *s, const query_expr *e, find_demand *c) {
    find_path p;
    const query_key *k = e->key;
    if (k->spans_n > DEMAND_SPANS_MAX || !indexed_path(r, s, e, &p)) {
        return false;
    }
    start_keys(r, c, e, &p, k->spans, k->spans_n);
    if (k->alone_n && k->alone_n <= DEMAND_SPANS_MAX) {
        find_demand *alone = arena_new(r->arena, find_demand);
        start_keys(r, alone, e, &p, k->alone, k->alone_n);
        c->alone = alone;
        c->exact = false;
    }
    return true;
}

/* ---- functions ---- */

static bool is_named(const query_expr *e, const char *name) {
    return e->function && slice_eq_nocase(slice_str(e->function->name), slice_str(name));
}

/* f(path, text[, ignore_case]) that is case-sensitive. */
static bool text_test(reader *r, const query_select *s, const query_expr *e, find_path *p, query_value *text) {
    query_value ignore_case = value_bool(false);
    return indexed_path(r, s, e->items[0], p) && query__demand_constant(r, e->items[1], text) && text->type == TYPE_STRING &&
           (e->items_n <= 2 || query__demand_constant(r, e->items[2], &ignore_case)) && ignore_case.type == TYPE_BOOL && !ignore_case.truth;
}

static bool read_starts_with(reader *r, const query_select *s, const query_expr *e, find_demand *c) {
    find_path p;
    query_value text;
    if (!text_test(r, s, e, &p, &text)) {
        return false;
    }
    start(r, c, e, &p, 1);
    add_prefix(r, c, text.bytes);
    return true;
}

static bool read_string_equals(reader *r, const query_select *s, const query_expr *e, find_demand *c) {
    find_path p;
    query_value text;
    if (!text_test(r, s, e, &p, &text)) {
        return false;
    }
    start(r, c, e, &p, 1);
    add_point(r, c, &text);
    return true;
}

static bool read_array_contains(reader *r, const query_select *s, const query_expr *e, find_demand *c) {
    find_path p;
    query_value v;
    if (!query__demand_path(s, e->items[0], &p) || !add_step(&p, SLICE_EMPTY, true) || !index_policy_covers(r->policy, p.steps, p.n) ||
        !query__demand_constant(r, e->items[1], &v) || v.type == TYPE_ARRAY || v.type == TYPE_OBJECT) {
        return false;
    }
    start(r, c, e, &p, 1);
    add_point(r, c, &v);
    return true;
}

typedef struct type_test {
    const char *name;
    unsigned from, to; /* index types */
} type_test;

static const type_test type_tests[] = {
    {"IS_DEFINED", INDEX_NULL, INDEX_TYPE_END},  {"IS_NULL", INDEX_NULL, INDEX_FALSE},      {"IS_BOOL", INDEX_FALSE, INDEX_NUMBER},
    {"IS_NUMBER", INDEX_NUMBER, INDEX_STRING},   {"IS_STRING", INDEX_STRING, INDEX_ARRAY},  {"IS_ARRAY", INDEX_ARRAY, INDEX_OBJECT},
    {"IS_OBJECT", INDEX_OBJECT, INDEX_TYPE_END}, {"IS_PRIMITIVE", INDEX_NULL, INDEX_ARRAY},
};

static bool read_type_test(reader *r, const query_select *s, const query_expr *e, find_demand *c) {
    find_path p;
    for (size_t i = 0; i < sizeof type_tests / sizeof *type_tests; i++) {
        if (is_named(e, type_tests[i].name) && indexed_path(r, s, e->items[0], &p)) {
            start(r, c, e, &p, 1);
            add_span(c, type_start(r, type_tests[i].from), type_start(r, type_tests[i].to), false);
            return true;
        }
    }
    return false;
}

static bool read_call(reader *r, const query_select *s, const query_expr *e, find_demand *c) {
    if (e->udf || !e->function || e->items_n == 0) {
        return false;
    }
    if (is_named(e, "STARTSWITH")) {
        return read_starts_with(r, s, e, c);
    }
    if (is_named(e, "StringEquals")) {
        return read_string_equals(r, s, e, c);
    }
    if (is_named(e, "ARRAY_CONTAINS")) {
        return read_array_contains(r, s, e, c);
    }
    if (query__demand_shapes(r, s, e, c) || query__demand_words(r, s, e, c)) {
        return true;
    }
    return read_type_test(r, s, e, c);
}

/* ---- operands of WHERE ---- */

static bool read_part(reader *r, const query_select *s, const query_expr *e, find_demand *c);

/* A OR B: the spans of both. An item may have entries in both, so counts must not count its number twice. */
static bool read_or(reader *r, const query_select *s, const query_expr *e, find_demand *c) {
    find_demand a, b;
    if (!read_part(r, s, e->items[0], &a) || !read_part(r, s, e->items[1], &b) || a.n + b.n > DEMAND_SPANS_MAX) {
        return false;
    }
    *c = (find_demand){
        .spans = arena_array(r->arena, find_span, a.n + b.n + 1), .n = a.n + b.n, .exact = a.exact && b.exact, .condition = e};
    memcpy(c->spans, a.spans, a.n * sizeof *a.spans);
    memcpy(c->spans + a.n, b.spans, b.n * sizeof *b.spans);
    if (a.steps && b.steps && index_path_of(a.steps, a.steps_n) == index_path_of(b.steps, b.steps_n)) {
        c->steps = a.steps;
        c->steps_n = a.steps_n;
    }
    return true;
}

/* A AND B within an OR: every matching item fulfils the demands of both, so either may be used; it is not exact. */
static bool read_either(reader *r, const query_select *s, const query_expr *e, find_demand *c) {
    bool read = read_part(r, s, e->items[0], c) || read_part(r, s, e->items[1], c);
    c->exact = false;
    return read;
}

/* Some element must have an entry that fulfils the subquery's WHERE. */
static bool read_exists(reader *r, const query_expr *e, find_demand *c) {
    const query_select *inner = e->select;
    if (!inner->where || inner->aggregates_n || inner->group_n || inner->sources_n == 0 || !read_part(r, inner, inner->where, c)) {
        return false;
    }
    c->exact = false;
    c->condition = e; /* the inner condition is about elements, and cannot be evaluated here */
    return true;
}

static bool read_path_alone(reader *r, const query_select *s, const query_expr *e, find_demand *c) {
    find_path p;
    query_value yes = value_bool(true);
    if (!indexed_path(r, s, e, &p)) {
        return false;
    }
    start(r, c, e, &p, 1);
    add_point(r, c, &yes);
    return true;
}

static bool read_binary(reader *r, const query_select *s, const query_expr *e, find_demand *c) {
    switch (e->op) {
    case OP_EQUAL:
        return read_equal(r, s, e, c);
    case OP_LESS:
    case OP_LESS_EQUAL:
    case OP_GREATER:
    case OP_GREATER_EQUAL:
        return read_comparison(r, s, e, c);
    case OP_OR:
        return read_or(r, s, e, c);
    case OP_AND:
        return read_either(r, s, e, c);
    default:
        return false;
    }
}

static bool read_path_part(reader *r, const query_select *s, const query_expr *e, find_demand *c) {
    switch (e->kind) {
    case EXPR_BINARY:
        return read_binary(r, s, e, c);
    case EXPR_IN:
        return read_in(r, s, e, c);
    case EXPR_BETWEEN:
        return read_between(r, s, e, c) || (!e->negated && query__demand_distance(r, s, e->items[0], e->items[2], e, c));
    case EXPR_LIKE:
        return read_like(r, s, e, c);
    case EXPR_CALL:
        return read_call(r, s, e, c);
    case EXPR_EXISTS:
        return read_exists(r, e, c);
    case EXPR_WITHIN:
        return read_within(r, s, e, c);
    case EXPR_MEMBER:
    case EXPR_NAME:
        return read_path_alone(r, s, e, c);
    default:
        return false;
    }
}

static bool read_part(reader *r, const query_select *s, const query_expr *e, find_demand *c) {
    return read_path_part(r, s, e, c) || query__demand_keys(r, s, e, c);
}

static void read_all(reader *r, const query_expr *e, find_demands *all) {
    if (e->kind == EXPR_BINARY && e->op == OP_AND) {
        read_all(r, e->items[0], all);
        read_all(r, e->items[1], all);
    } else if (e->kind == EXPR_FILTER && e->filter->implied) {
        return; /* the other operands decide it */
    } else if (all->n < FIND_DEMANDS_MAX && read_part(r, r->query->select, e, &all->list[all->n])) {
        all->n++;
        all->n += query__demand_more_words(r, r->query->select, e, all->list + all->n, FIND_DEMANDS_MAX - all->n);
    } else {
        all->whole = false;
    }
}

find_demands query_demands_in(query_runner *r, const index_policy *policy, const query_expr *condition) {
    reader reading = {.runner = r, .query = r->query, .policy = policy, .arena = r->op->arena, .steps = SHAPE_STEPS};
    find_demands all = {.list = arena_array(r->op->arena, find_demand, FIND_DEMANDS_MAX), .whole = true};
    if (condition) {
        read_all(&reading, condition, &all);
    }
    return all;
}

find_demands query_demands_of(query_runner *r, const index_policy *policy) {
    return query_demands_in(r, policy, r->query->select->where);
}
