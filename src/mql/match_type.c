/* match_type.c — $exists and $type. */
#include "mql/match_int.h"

/* ---- $exists ---- */

err mql__parse_exists(mql__filter_parser *p, const mql__operand *of, mql_node **node_out) {
    *node_out = mql__node(p, MQL_EXISTS, of->path, mql_missing());
    if (!mql_truth(mql_of(of->e))) {
        *node_out = mql__negated(p, *node_out);
    }
    return OK;
}

err mql__test_exists(const mql__test *t, const mql_node *n, mql_value v, bool *matches_out) {
    (void)t;
    (void)n;
    *matches_out = !mql_is_missing(v);
    return OK;
}

/* ---- sets of types ---- */

static void add_type(mql__types *types, bson_type_t type) {
    types->bits[(uint8_t)type / 64] |= 1ull << (uint8_t)type % 64;
}

bool mql__types_have(const mql__types *types, bson_type_t type) {
    return types->bits[(uint8_t)type / 64] >> (uint8_t)type % 64 & 1;
}

static bool is_type(int64_t number) {
    return (number >= BSON_TYPE_DOUBLE && number <= BSON_TYPE_DECIMAL128) || number == BSON_TYPE_MAXKEY;
}

bool mql__types_add(mql__types *types, slice alias) {
    if (slice_eq(alias, SLICE_LIT("number"))) {
        add_type(types, BSON_TYPE_DOUBLE);
        add_type(types, BSON_TYPE_INT32);
        add_type(types, BSON_TYPE_INT64);
        add_type(types, BSON_TYPE_DECIMAL128);
        return true;
    }
    for (unsigned i = BSON_TYPE_DOUBLE; i <= BSON_TYPE_MINKEY; i++) {
        if ((is_type(i) || i == BSON_TYPE_MINKEY) && slice_eq(alias, slice_str(mql_type_name((bson_type_t)i)))) {
            add_type(types, (bson_type_t)i);
            return true;
        }
    }
    return false;
}

static err add_type_operand(mql__filter_parser *p, const doc_element *e, mql__types *types) {
    mql_value v = mql_of(e);
    int64_t number;
    if (v.type == BSON_TYPE_UTF8) {
        slice alias = mql_as_text(v);
        return mql__types_add(types, alias) ? OK : mql_fail(mql__op(p), 2, "Unknown type name alias: %.*s", slice_shown(alias), alias.p);
    }
    if (!mql_is_number(v)) {
        return mql_fail(mql__op(p), 14, "type must be represented as a number or a string");
    }
    if (!mql_as_integer(v, &number) || (number != -1 && !is_type(number))) {
        return mql_fail(mql__op(p), 2, "Invalid numerical type code: %g%s", mql_as_double(v),
                        mql_as_double(v) == 0 ? ". Instead use {$exists:false}." : "");
    }
    add_type(types, number == -1 ? BSON_TYPE_MINKEY : (bson_type_t)number);
    return OK;
}

err mql__parse_types(mql__filter_parser *p, const doc_element *e, mql__types *types_out) {
    doc_walk w;
    doc_element each;
    *types_out = (mql__types){0};
    if (e->type != BSON_TYPE_ARRAY) {
        return add_type_operand(p, e, types_out);
    }
    for (doc_walk_init(&w, e->value); doc_walk_next(&w, &each);) {
        TRY(add_type_operand(p, &each, types_out));
    }
    return OK;
}

/* ---- $type ---- */

err mql__parse_type(mql__filter_parser *p, const mql__operand *of, mql_node **node_out) {
    static const mql__types none;
    mql__types *types = arena_new(mql__arena(p), mql__types);
    TRY(mql__parse_types(p, of->e, types));
    if (memcmp(types, &none, sizeof none) == 0) {
        return mql_fail(mql__op(p), 9, "%.*s must match at least one type", slice_shown(of->path), of->path.p ? of->path.p : "");
    }
    *node_out = mql__node(p, MQL_TYPE, of->path, mql_of(of->e));
    (*node_out)->detail = types;
    return OK;
}

err mql__test_type(const mql__test *t, const mql_node *n, mql_value v, bool *matches_out) {
    (void)t;
    *matches_out = !mql_is_missing(v) && mql__types_have(n->detail, v.type);
    return OK;
}
