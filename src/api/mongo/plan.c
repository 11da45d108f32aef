#include "api/mongo/plan.h"

#include "api/mongo/filter_kind.h"
#include "api/mongo/memo.h"
#include "api/mongo/mongo_int.h"
#include "mql/match_tree.h"

enum { STEPS_MAX = 4, IN_MAX = 1000, DEPTH_MAX = 8 };

typedef struct planner {
    op *op;
    mongo_memo memo;
    mql_builder *b;
} planner;

/* ---- values that an index entry can stand for ---- */

static bool is_nan(mql_value v) {
    double d = mql_is_number(v) ? mql_as_double(v) : 0;
    return d != d;
}

static bool is_indexed_value(mql_value v) {
    switch (v.type) {
    case BSON_TYPE_DOUBLE:
    case BSON_TYPE_INT32:
    case BSON_TYPE_INT64:
    case BSON_TYPE_DECIMAL128:
        return !is_nan(v);
    case BSON_TYPE_UTF8:
    case BSON_TYPE_OID:
    case BSON_TYPE_BOOL:
    case BSON_TYPE_DATE_TIME:
    case BSON_TYPE_TIMESTAMP:
        return true;
    default: /* null matches missing fields, which have no entries; arrays, documents and others have none */
        return false;
    }
}

static bool is_number_step(slice step) {
    for (size_t i = 0; i < step.n; i++) {
        if (step.p[i] < '0' || step.p[i] > '9') {
            return false;
        }
    }
    return true;
}

/* A path that an index has. A numeric step may be a position in an array, which the index does not know. */
static bool is_indexed_path(const planner *p, const mql_node *n) {
    if (n->parts_n == 0 || n->parts_n > STEPS_MAX || n->path.p[0] == '_') { /* _id and the core's own properties are not at their names */
        return false;
    }
    for (size_t i = 0; i < n->parts_n; i++) {
        if (is_number_step(n->parts[i])) {
            return false;
        }
    }
    return mongo_path_is_indexed(&p->memo, n->path);
}

/* ---- conditions ---- */

/* One way through the path: after each step whose bit is set an element of an array. */
static void add_at(planner *p, const mql_node *n, unsigned bits) {
    mongo_open_array(p->b, "at");
    for (unsigned i = 0; i < n->parts_n; i++) {
        mql_add_next(p->b, mql_text(p->op->arena, n->parts[i]));
        if (bits >> i & 1) {
            mql_add_next(p->b, mql_null());
        }
    }
    mql_close(p->b);
}

static const char *bound_name(mql_node_kind kind) {
    return kind == MQL_EQ ? "eq" : kind == MQL_LT ? "lt" : kind == MQL_LTE ? "le" : kind == MQL_GT ? "gt" : kind == MQL_GTE ? "ge" : "in";
}

/* {"or": [one for each way]}. `other`: a second bound of the same path, which only the way without arrays may combine with the first: in
 * arrays each bound may be met by another element. Two bounds are widened to closed ones, which the core's index takes as one span. */
static void add_ways(planner *p, const mql_node *n, const mql_node *other) {
    mql_open_next(p->b, BSON_TYPE_DOCUMENT);
    mongo_open_array(p->b, "or");
    for (unsigned bits = 0; bits < 1u << n->parts_n; bits++) {
        bool both = other && bits == 0;
        mql_open_next(p->b, BSON_TYPE_DOCUMENT);
        add_at(p, n, bits);
        mql_add(p->b, both ? SLICE_LIT("ge") : slice_str(bound_name(n->kind)), n->value);
        if (both) {
            mql_add(p->b, SLICE_LIT("le"), other->value);
        }
        mql_close(p->b);
    }
    mql_close(p->b);
    mql_close(p->b);
}

static bool is_plain_in(mql_value list) {
    doc_walk w;
    doc_element e;
    size_t n = 0;
    bool good = list.type == BSON_TYPE_ARRAY;
    for (doc_walk_init(&w, list.bytes); good && doc_walk_next(&w, &e); n++) {
        good = n < IN_MAX && is_indexed_value(mql_of(&e));
    }
    return good && n > 0;
}

static bool is_lower(mql_node_kind kind) {
    return kind == MQL_GT || kind == MQL_GTE;
}
static bool is_upper(mql_node_kind kind) {
    return kind == MQL_LT || kind == MQL_LTE;
}

static bool is_condition(const planner *p, const mql_node *n) {
    if (n->kind == MQL_IN) {
        return is_plain_in(n->value) && is_indexed_path(p, n);
    }
    bool bound = n->kind == MQL_EQ || is_lower(n->kind) || is_upper(n->kind);
    return bound && is_indexed_value(n->value) && n->value.type != BSON_TYPE_TIMESTAMP && is_indexed_path(p, n);
}

/* Another bound for the same path, on the other side, of the same class. */
static const mql_node *other_bound(const planner *p, const mql_node *list, const mql_node *n) {
    for (const mql_node *m = list; m; m = m->next) {
        bool opposite = (is_lower(n->kind) && is_upper(m->kind)) || (is_upper(n->kind) && is_lower(m->kind));
        if (opposite && slice_eq(m->path, n->path) && mql_class(m->value.type) == mql_class(n->value.type) && is_condition(p, m)) {
            return m;
        }
    }
    return NULL;
}

static bool is_useful(const planner *p, const mql_node *n, unsigned depth);

/* Whether every branch has something that the index can do; otherwise the disjunction needs all items. */
static bool is_useful_or(const planner *p, const mql_node *n, unsigned depth) {
    bool useful = n->first != NULL && depth < DEPTH_MAX;
    for (const mql_node *m = n->first; useful && m; m = m->next) {
        useful = is_useful(p, m, depth + 1);
    }
    return useful;
}

static bool is_useful(const planner *p, const mql_node *n, unsigned depth) {
    if (n->kind == MQL_AND && depth < DEPTH_MAX) {
        for (const mql_node *m = n->first; m; m = m->next) {
            if (is_useful(p, m, depth + 1)) {
                return true;
            }
        }
        return false;
    }
    return n->kind == MQL_OR ? is_useful_or(p, n, depth) : is_condition(p, n);
}

static void add_conditions(planner *p, const mql_node *list, const mql_node *n, unsigned depth) {
    if (!is_useful(p, n, depth)) {
        return;
    }
    if (n->kind == MQL_AND) {
        for (const mql_node *m = n->first; m; m = m->next) {
            add_conditions(p, n->first, m, depth + 1);
        }
        return;
    }
    if (n->kind == MQL_OR) {
        mql_open_next(p->b, BSON_TYPE_DOCUMENT);
        mongo_open_array(p->b, "or");
        for (const mql_node *m = n->first; m; m = m->next) {
            mql_open_next(p->b, BSON_TYPE_DOCUMENT);
            mongo_open_array(p->b, "and");
            add_conditions(p, NULL, m, depth + 1);
            mql_close(p->b);
            mql_close(p->b);
        }
        mql_close(p->b);
        mql_close(p->b);
        return;
    }
    const mql_node *other = other_bound(p, list, n);
    if (!other || is_lower(n->kind)) { /* of two bounds the lower one adds both */
        add_ways(p, n, other);
    }
}

static void add_filter(planner *p, const mongo_find *f) {
    mql_open_next(p->b, BSON_TYPE_DOCUMENT);
    mongo_add_int(p->b, "filter", QUERY_FILTER_MONGO);
    mongo_add_document(p->b, "with", mongo_filter_argument(p->op->arena, f->filter, f->variables, f->now_ms));
    mql_close(p->b);
}

/* ---- keys ---- */

/* The value that the filter's top level requires of a path: {path: value} or {path: {$eq: value}}. */
static bool required_value(slice filter, slice path, mql_value *value_out) {
    doc_element e, inner;
    doc_walk w;
    uint64_t passed = 0;
    if (!doc_find_member_counted(filter, path, &e, &passed)) {
        return false;
    }
    *value_out = mql_of(&e);
    if (e.type == BSON_TYPE_DOCUMENT && doc_walk_init(&w, e.value) && doc_walk_next(&w, &inner) && inner.key.n && inner.key.p[0] == '$') {
        *value_out = mql_of(&inner);
        return slice_eq(inner.key, SLICE_LIT("$eq")) && !doc_walk_next(&w, &inner);
    }
    return e.type != BSON_TYPE_REGEX && e.type != BSON_TYPE_UNDEFINED;
}

static slice dotted_of(arena *a, const doc_path *path) {
    buf out = buf_init(BUF_NO_LIMIT);
    for (size_t i = 0; i < path->steps_n; i++) {
        buf_add(&out, ".", i > 0);
        buf_add_slice(&out, path->steps[i]);
    }
    slice text = arena_copy(a, buf_view(&out));
    buf_free(&out);
    return text;
}

static bool partition_of(op *o, const container *c, slice filter, pkey *partition_out) {
    partition_out->n = c->key.n;
    for (size_t i = 0; i < c->key.n; i++) {
        mql_value v;
        if (!c->key.typed || !required_value(filter, dotted_of(o->arena, &c->key.paths[i]), &v) || v.type == BSON_TYPE_ARRAY) {
            return false;
        }
        partition_out->values[i] = (pkey_value){.type = PKEY_TYPED, .bson = (uint8_t)v.type, .text = v.bytes};
    }
    return true;
}

bool mongo_plan_point(op *o, const container *c, slice filter, item_key *key_out, bool *alone_out) {
    mql_value id;
    pkey partition;
    if (c->row.n != 1 || !required_value(filter, SLICE_LIT("_id"), &id) || id.type == BSON_TYPE_ARRAY ||
        !partition_of(o, c, filter, &partition)) {
        return false;
    }
    doc_element e = {.type = id.type, .value = id.bytes};
    buf row = buf_init(LIMIT_ROW_BYTES);
    row_add(&row, &c->row, 0, &e);
    bool good = buf_ok(&row);
    slice bytes = good ? arena_copy(o->arena, buf_view(&row)) : SLICE_EMPTY;
    buf_free(&row);
    *alone_out = mql_length(mql_document(filter)) == 1 + (size_t)c->key.n;
    good = good && item_check_key(o, c, c->key.n ? &partition : NULL, bytes, key_out) == OK;
    o->detail_n = 0;
    return good;
}

err mongo_key_of(op *o, const container *c, slice document, item_key *key_out) {
    item_op item = {.kind = ITEM_CREATE, .body = document};
    doc_element e;
    for (size_t i = 0; i < c->key.n; i++) {
        if (!doc_find_element(document, &c->key.paths[i], &e)) {
            return op_fail_as(o, E_BAD_REQUEST, CODE_SHARD_KEY_NOT_FOUND, "The document does not contain the shard key '%.*s'.",
                              slice_shown(c->key.paths[i].text), c->key.paths[i].text.p);
        }
    }
    TRY(item_check_body(o, c, NULL, &item));
    *key_out = item.key;
    return OK;
}

/* ---- the plan ---- */

err mongo_plan(op *o, const container *c, const mql_match *match, mongo_find *f) {
    pkey partition;
    if (!f->filter.n || !match) {
        return OK;
    }
    if (c->key.n && partition_of(o, c, f->filter, &partition)) {
        f->one_partition = item_check_key(o, c, &partition, SLICE_EMPTY, &f->partition) == OK;
        o->detail_n = 0;
    }
    buf out = buf_init(LIMIT_FIND_BYTES);
    mql_builder b = mql_build(&out);
    planner p = {.op = o, .memo = mongo_memo_of(c), .b = &b};
    mongo_open_array(&b, "and");
    add_conditions(&p, NULL, mql_match_root(match), 0);
    add_filter(&p, f);
    mql_close(&b);
    f->where = mongo_built_copy(o->arena, &b, &out);
    return f->where.n ? OK : op_fail_as(o, E_BAD_REQUEST, CODE_BAD_VALUE, "The filter is too large.");
}
