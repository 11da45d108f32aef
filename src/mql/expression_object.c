/* expression_object.c — documents: members, merging, and conversion to arrays and back. */
#include <stdlib.h>

#include "mql/expression_int.h"

/* ---- documents of members ---- */

static int by_key(const void *x, const void *y) {
    const mql__member *a = x, *b = y;
    int by = slice_cmp(a->key, b->key);
    return by ? by : (a->at > b->at) - (a->at < b->at);
}

static int by_place(const void *x, const void *y) {
    const mql__member *a = x, *b = y;
    return (a->at > b->at) - (a->at < b->at);
}

/* Merges neighbours with the same name: the last value, in the first one's place. */
static size_t unite(mql__member *members, size_t n) {
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        if (kept && slice_eq(members[kept - 1].key, members[i].key)) {
            members[kept - 1].value = members[i].value;
        } else {
            members[kept++] = members[i];
        }
    }
    return kept;
}

err mql__object_of(mql_run *r, mql__member *members, size_t n, mql_value *value_out) {
    *value_out = mql_missing();
    TRY(mql_pay(r, 1 + n * 8));
    for (size_t i = 0; i < n; i++) {
        members[i].at = i;
    }
    qsort(members, n, sizeof *members, by_key);
    n = unite(members, n);
    qsort(members, n, sizeof *members, by_place);
    mql__maker m = mql__make(r);
    for (size_t i = 0; i < n; i++) {
        mql__make_member(&m, members[i].key, members[i].value);
    }
    return mql__made(r, &m, BSON_TYPE_DOCUMENT, OK, value_out);
}

size_t mql__members(mql_value document, mql__member *members) {
    doc_walk w;
    doc_element e;
    size_t n = 0;
    doc_walk_init(&w, document.bytes);
    while (doc_walk_next(&w, &e)) {
        members[n++] = (mql__member){e.key, mql_of(&e), 0};
    }
    return n;
}

static err room_for(mql_run *r, size_t n, mql__member **members_out) {
    TRY(mql__check_room(r, (n + 1) * sizeof(mql__member)));
    *members_out = arena_alloc(r->arena, (n + 1) * sizeof(mql__member));
    return OK;
}

/* ---- $mergeObjects ---- */

static err merge(const mql__call *c, mql_value *value_out) {
    mql_value *operands;
    mql__member *members;
    size_t n, total = 0, filled = 0;
    TRY(mql__operands(c, &operands, &n));
    for (size_t i = 0; i < n; i++) {
        if (!mql_is_nullish(operands[i]) && operands[i].type != BSON_TYPE_DOCUMENT) {
            return mql__fail(c, 40400, "$mergeObjects requires object inputs, but input %s is of type %s",
                             mql__show(c->run->arena, operands[i]), mql_type_name(operands[i].type));
        }
        total += operands[i].type == BSON_TYPE_DOCUMENT ? mql_length(operands[i]) : 0;
    }
    TRY(room_for(c->run, total, &members));
    for (size_t i = 0; i < n; i++) {
        filled += operands[i].type == BSON_TYPE_DOCUMENT ? mql__members(operands[i], members + filled) : 0;
    }
    return mql__object_of(c->run, members, filled, value_out);
}

/* ---- $objectToArray, $arrayToObject ---- */

static err to_array(const mql__call *c, mql_value *value_out) {
    doc_walk w;
    doc_element e;
    if (c->args[0].type != BSON_TYPE_DOCUMENT) {
        return mql__fail(c, 40390, "$objectToArray requires a document input, found: %s", mql_type_name(c->args[0].type));
    }
    TRY(mql_pay(c->run, mql__reading(c->args[0])));
    mql__maker m = mql__make(c->run);
    err bad = OK;
    arena_mark mark = arena_marked(c->run->arena);
    doc_walk_init(&w, c->args[0].bytes);
    while (bad == OK && doc_walk_next(&w, &e)) {
        mql__maker pair = mql__make(c->run);
        mql_value made;
        mql_value key = mql_text(c->run->arena, e.key);
        mql__make_member(&pair, SLICE_LIT("k"), key);
        mql__make_member(&pair, SLICE_LIT("v"), mql_of(&e));
        bad = mql__made(c->run, &pair, BSON_TYPE_DOCUMENT, mql_pay(c->run, 10), &made);
        mql__make_next(&m, made);
        arena_release(c->run->arena, mark);
    }
    return mql__made(c->run, &m, BSON_TYPE_ARRAY, bad, value_out);
}

static err take_key(const mql__call *c, mql_value key, int no_text, int embedded_zero, mql__member *member) {
    if (!mql_is_text(key)) {
        return no_text == 40395 ? mql__fail(c, no_text,
                                            "$arrayToObject requires an array of key-value pairs, where the key must be of type string. "
                                            "Found key type: %s",
                                            mql_type_name(key.type))
                                : mql__fail(c, no_text,
                                            "$arrayToObject requires an object with keys 'k' and 'v', where the value of 'k' must be of "
                                            "type string. Found type: %s",
                                            mql_type_name(key.type));
    }
    member->key = mql_as_text(key);
    if (memchr(member->key.p, 0, member->key.n)) {
        return mql__fail(c, embedded_zero, "Key field cannot contain an embedded null byte");
    }
    return OK;
}

static err member_of_array(const mql__call *c, mql_value pair, mql__member *member) {
    if (pair.type != BSON_TYPE_ARRAY) {
        return mql__fail(c, 40396,
                         "$arrayToObject requires a consistent input format. Elements mustall be arrays or all be objects. Array was "
                         "detected, now found: %s",
                         mql_type_name(pair.type));
    }
    if (mql_length(pair) != 2) {
        return mql__fail(c, 40397, "$arrayToObject requires an array of size 2 arrays,found array of size: %zu", mql_length(pair));
    }
    TRY(take_key(c, mql_element_at(pair, 0), 40395, 4940400, member));
    member->value = mql_element_at(pair, 1);
    return OK;
}

static err member_of_object(const mql__call *c, mql_value pair, mql__member *member) {
    if (pair.type != BSON_TYPE_DOCUMENT) {
        return mql__fail(c, 40391,
                         "$arrayToObject requires a consistent input format. Elements mustall be arrays or all be objects. Object was "
                         "detected, now found: %s",
                         mql_type_name(pair.type));
    }
    if (mql_length(pair) != 2) {
        return mql__fail(c, 40392, "$arrayToObject requires an object keys of 'k' and 'v'. Found incorrect number of keys:%zu",
                         mql_length(pair));
    }
    mql_value key = mql_member(pair, SLICE_LIT("k"));
    member->value = mql_member(pair, SLICE_LIT("v"));
    if (mql_is_missing(key) || mql_is_missing(member->value)) {
        return mql__fail(c, 40393, "$arrayToObject requires an object with keys 'k' and 'v'. Missing either or both keys from: %s",
                         mql__show(c->run->arena, pair));
    }
    return take_key(c, key, 40394, 4940401, member);
}

static err to_object(const mql__call *c, mql_value *value_out) {
    mql__member *members;
    doc_walk w;
    doc_element e;
    size_t n = mql_length(c->args[0]);
    if (c->args[0].type != BSON_TYPE_ARRAY) {
        return mql__fail(c, 40386, "$arrayToObject requires an array input, found: %s", mql_type_name(c->args[0].type));
    }
    TRY(room_for(c->run, n, &members));
    bson_type_t form = mql_element_at(c->args[0], 0).type;
    if (n && !doc_is_container(form)) {
        return mql__fail(c, 40398, "Unrecognised input type format for $arrayToObject: %s", mql_type_name(form));
    }
    doc_walk_init(&w, c->args[0].bytes);
    for (size_t i = 0; i < n && doc_walk_next(&w, &e); i++) {
        TRY((form == BSON_TYPE_ARRAY ? member_of_array : member_of_object)(c, mql_of(&e), &members[i]));
    }
    return mql__object_of(c->run, members, n, value_out);
}

/* ---- $getField, $setField, $unsetField: `field` is a constant, kept in `path` ---- */

typedef struct field_codes {
    int path, not_constant, not_text;
} field_codes;

static err take_field(mql_scope *s, mql_expression *node, mql_value text, const field_codes *codes) {
    const mql_expression *field;
    mql_value v;
    const char *name = node->operator->name;
    TRY(mql_expression_parse(s, text, &field));
    if (field->kind == MQL__PATH) {
        slice shown = mql_as_text(text);
        return mql_fail(s->op, codes->path,
                        "'%.*s' is a field path reference which is not allowed in this context. Did you mean {$literal: '%.*s'}?",
                        slice_shown(shown), shown.p, slice_shown(shown), shown.p);
    }
    if (!mql_expression_constant(field, &v)) {
        return mql_fail(s->op, codes->not_constant, "%s requires 'field' to evaluate to a constant, but got a non-constant argument", name);
    }
    if (!mql_is_text(v)) {
        return mql_fail(s->op, codes->not_text, "%s requires 'field' to evaluate to type String, but got %s", name, mql_type_name(v.type));
    }
    node->path = mql_as_text(v);
    return OK;
}

static err parse_two(mql_scope *s, mql_expression *node, mql_value input, mql_value value) {
    node->n = 2;
    node->args = arena_array(s->op->arena, const mql_expression *, 2);
    TRY(mql_expression_parse(s, input, &node->args[0]));
    return mql_is_missing(value) ? OK : mql_expression_parse(s, value, &node->args[1]);
}

static const field_codes get_codes = {5654600, 5654601, 5654602};
static const field_codes set_codes = {4161108, 4161106, 4161107};
static const mql__named get_arguments = {MQL__REQUIRES, 3041701, 3041701, {{"field", 3041702}, {"input", 3041703}}};
static const mql__named set_arguments = {MQL__SETS, 4161100, 4161101, {{"field", 4161102}, {"input", 4161109}, {"value", 4161103}}};
static const mql__named unset_arguments = {MQL__SETS, 4161100, 4161101, {{"field", 4161102}, {"input", 4161109}}};

static bool is_expression(mql_value v) {
    doc_walk w;
    doc_element e;
    return v.type != BSON_TYPE_DOCUMENT || (doc_walk_init(&w, v.bytes) && doc_walk_next(&w, &e) && e.key.n && e.key.p[0] == '$');
}

/* {$getField: "name"} is the short form for the current document. */
static err parse_get(mql_scope *s, mql_expression *node, mql_value argument) {
    mql_value values[MQL__NAMED_MAX];
    if (is_expression(argument)) {
        TRY(take_field(s, node, argument, &get_codes));
        return parse_two(s, node, mql_text(s->op->arena, SLICE_LIT("$$CURRENT")), mql_missing());
    }
    TRY(mql__take_named(s, "$getField", &get_arguments, argument, values));
    TRY(take_field(s, node, values[0], &get_codes));
    return parse_two(s, node, values[1], mql_missing());
}

static err parse_set(mql_scope *s, mql_expression *node, mql_value argument) {
    mql_value values[MQL__NAMED_MAX];
    TRY(mql__take_named(s, node->operator->name, node->operator->variant ? &set_arguments : & unset_arguments, argument, values));
    TRY(take_field(s, node, values[0], &set_codes));
    return parse_two(s, node, values[1], values[2]);
}

static err get_field(const mql__call *c, mql_value *value_out) {
    TRY(mql_pay(c->run, mql__reading(c->args[0])));
    bool null = mql_is_nullish(c->args[0]) && !mql_is_missing(c->args[0]);
    *value_out = null ? mql_null() : c->args[0].type == BSON_TYPE_DOCUMENT ? mql_member(c->args[0], c->e->path) : mql_missing();
    return OK;
}

static err set_field(const mql__call *c, mql_value *value_out) {
    doc_walk w;
    doc_element e;
    bool found = false;
    if (mql_is_nullish(c->args[0])) {
        *value_out = mql_null();
        return OK;
    }
    if (c->args[0].type != BSON_TYPE_DOCUMENT) {
        return mql__fail(c, 4161105, "%s requires 'input' to evaluate to type Object", mql__name(c));
    }
    mql__maker m = mql__make(c->run);
    doc_walk_init(&w, c->args[0].bytes);
    while (doc_walk_next(&w, &e)) {
        bool this = slice_eq(e.key, c->e->path);
        found |= this;
        mql__make_member(&m, e.key, this ? c->args[1] : mql_of(&e));
    }
    mql__make_member(&m, c->e->path, found ? mql_missing() : c->args[1]);
    return mql__made(c->run, &m, BSON_TYPE_DOCUMENT, mql_pay(c->run, mql__reading(c->args[0])), value_out);
}

/* ---- sizes ---- */

static err bson_size(const mql__call *c, mql_value *value_out) {
    if (c->args[0].type != BSON_TYPE_DOCUMENT) {
        return mql__fail(c, 31393, "$bsonSize requires a document input, found: %s", mql_type_name(c->args[0].type));
    }
    return mql__integer_result(c, (int64_t)c->args[0].bytes.n, value_out);
}

static err binary_size(const mql__call *c, mql_value *value_out) {
    mql_value v = c->args[0];
    if (v.type != BSON_TYPE_BINARY && !mql_is_text(v)) {
        return mql__fail(c, 51276, "$binarySize requires a string or BinData argument, found: %s", mql_type_name(v.type));
    }
    return mql__integer_result(c, (int64_t)(v.bytes.n - 5), value_out); /* strings and binary data have five bytes besides their content */
}

static const mql__operator rows[] = {
    {"$mergeObjects", 0, MQL__ANY, MQL__SERVICE, .function = merge},
    {"$objectToArray", 1, 1, MQL__SERVICE | MQL__NULLS, .function = to_array},
    {"$arrayToObject", 1, 1, MQL__SERVICE | MQL__NULLS, .function = to_object},
    {"$getField", .flags = 0, .function = get_field, .parse = parse_get},
    {"$setField", .flags = 0, .function = set_field, .parse = parse_set, .variant = true},
    {"$unsetField", .flags = 0, .function = set_field, .parse = parse_set, .variant = false},
    {"$bsonSize", 1, 1, MQL__NULLS, .function = bson_size},
    {"$binarySize", 1, 1, MQL__NULLS, .function = binary_size},
};
const mql__operators mql__object_operators = MQL__OPERATORS(rows);
