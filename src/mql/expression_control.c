/* expression_control.c — operators that choose what is evaluated, and those without arguments to evaluate. */
#include <stdlib.h>

#include "mql/expression_int.h"

/* ---- $cond ---- */

static const mql__named cond_arguments = {MQL__PARAMETER, 17084, 17083, {{"if", 17080}, {"then", 17081}, {"else", 17082}}};

static err parse_cond(mql_scope *s, mql_expression *node, mql_value argument) {
    if (argument.type == BSON_TYPE_DOCUMENT) {
        return mql__parse_named(s, node, &cond_arguments, argument);
    }
    TRY(mql__parse_list(s, node, argument));
    return node->n == 3 ? OK : mql_fail(s->op, 16020, "Expression $cond takes exactly 3 arguments. %zu were passed in.", node->n);
}

static err cond(const mql__call *c, mql_value *value_out) {
    mql_value v;
    TRY(mql__argument(c, 0, &v));
    return mql__argument(c, mql_truth(v) ? 1 : 2, value_out);
}

/* ---- $ifNull ---- */

static err parse_if_null(mql_scope *s, mql_expression *node, mql_value argument) {
    TRY(mql__parse_list(s, node, argument));
    return node->n >= 2 ? OK : mql_fail(s->op, 1257300, "$ifNull needs at least two arguments, had: %zu", node->n);
}

static err if_null(const mql__call *c, mql_value *value_out) {
    for (size_t i = 0; i < c->n; i++) {
        TRY(mql__argument(c, i, value_out));
        if (!mql_is_nullish(*value_out)) {
            return OK;
        }
    }
    return OK;
}

/* ---- $switch: case and then by turns, and the default at the end ---- */

static err parse_branch(mql_scope *s, mql_value branch, const mql_expression **pair) {
    doc_walk w;
    doc_element e;
    if (branch.type != BSON_TYPE_DOCUMENT) {
        return mql_fail(s->op, 40062, "$switch expected each branch to be an object, found: %s", mql_type_name(branch.type));
    }
    doc_walk_init(&w, branch.bytes);
    while (doc_walk_next(&w, &e)) {
        bool is_case = slice_eq(e.key, SLICE_LIT("case"));
        if (!is_case && !slice_eq(e.key, SLICE_LIT("then"))) {
            return mql_fail(s->op, 40063, "$switch found an unknown argument to a branch: %.*s", slice_shown(e.key), e.key.p);
        }
        TRY(mql_expression_parse(s, mql_of(&e), &pair[is_case ? 0 : 1]));
    }
    if (!pair[0]) {
        return mql_fail(s->op, 40064, "$switch requires each branch have a 'case' expression");
    }
    return pair[1] ? OK : mql_fail(s->op, 40065, "$switch requires each branch have a 'then' expression.");
}

static err parse_branches(mql_scope *s, mql_expression *node, mql_value branches) {
    doc_walk w;
    doc_element e;
    if (!mql_is_missing(branches) && branches.type != BSON_TYPE_ARRAY) {
        return mql_fail(s->op, 40061, "$switch expected an array for 'branches', found: %s", mql_type_name(branches.type));
    }
    size_t n = mql_length(branches);
    if (n == 0) {
        return mql_fail(s->op, 40068, "$switch requires at least one branch.");
    }
    node->n = 2 * n + 1;
    node->args = arena_array(s->op->arena, const mql_expression *, node->n);
    doc_walk_init(&w, branches.bytes);
    for (size_t i = 0; i < n && doc_walk_next(&w, &e); i++) {
        TRY(parse_branch(s, mql_of(&e), &node->args[2 * i]));
    }
    return OK;
}

static const mql__named switch_arguments = {MQL__REQUIRES, 40060, 40067, {{"branches", 0}, {"default", 0}}};

static err parse_switch(mql_scope *s, mql_expression *node, mql_value argument) {
    mql_value values[MQL__NAMED_MAX];
    TRY(mql__take_named(s, "$switch", &switch_arguments, argument, values));
    TRY(parse_branches(s, node, values[0]));
    return mql_is_missing(values[1]) ? OK : mql_expression_parse(s, values[1], &node->args[node->n - 1]);
}

static err switch_(const mql__call *c, mql_value *value_out) {
    for (size_t i = 0; i + 1 < c->n; i += 2) {
        mql_value v;
        TRY(mql__argument(c, i, &v));
        if (mql_truth(v)) {
            return mql__argument(c, i + 1, value_out);
        }
    }
    if (!c->e->args[c->n - 1]) {
        return mql__fail(c, 40066, "$switch could not find a matching branch for an input, and no default was specified.");
    }
    return mql__argument(c, c->n - 1, value_out);
}

/* ---- $literal ---- */

static err parse_literal(mql_scope *s, mql_expression *node, mql_value argument) {
    if (!arena_fits(s->op->arena, argument.bytes.n)) {
        return budget_error(s->op->budget);
    }
    node->kind = MQL__CONSTANT;
    node->constant = (mql_value){argument.type, arena_copy(s->op->arena, argument.bytes)};
    return OK;
}

/* ---- $meta ---- */

static const char *const metadata_names[] = {"textScore",       "searchScore",  "searchHighlights", "searchScoreDetails",
                                             "geoNearDistance", "geoNearPoint", "indexKey",         "recordId",
                                             "sortKey",         "randVal",      "vectorSearchScore"};

static err parse_meta(mql_scope *s, mql_expression *node, mql_value argument) {
    if (!mql_is_text(argument)) {
        return mql_fail(s->op, 17307, "$meta only supports string arguments");
    }
    slice name = mql_as_text(argument);
    for (size_t i = 0; i < sizeof metadata_names / sizeof *metadata_names; i++) {
        if (slice_eq(name, slice_str(metadata_names[i]))) {
            node->path = slice_str(metadata_names[i]);
            return OK;
        }
    }
    return mql_fail(s->op, 17308, "Unsupported argument to $meta: %.*s", slice_shown(name), name.p);
}

static err meta(const mql__call *c, mql_value *value_out) {
    *value_out = mql_member(c->run->metadata, c->e->path);
    return OK;
}

/* ---- $rand ---- */

static err parse_rand(mql_scope *s, mql_expression *node, mql_value argument) {
    (void)node;
    if (!doc_is_container(argument.type)) {
        return mql_fail(s->op, 10065, "invalid parameter: expected an object ($rand)");
    }
    return mql_length(argument) == 0 ? OK : mql_fail(s->op, 3040501, "$rand does not currently accept arguments");
}

static err rand_(const mql__call *c, mql_value *value_out) {
    uint64_t bits;
    if (c->run->random) {
        bits = random_u64(c->run->random);
    } else {
        arc4random_buf(&bits, sizeof bits);
    }
    *value_out = mql_double(c->run->arena, (double)(bits >> 11) * 0x1p-53);
    return OK;
}

/* ---- scripts ---- */

static err parse_script(mql_scope *s, mql_expression *node, mql_value argument) {
    (void)argument;
    return mql_fail(s->op, 31264, "%s not allowed without enabling server-side JavaScript", node->operator->name);
}

static const mql__operator rows[] = {
    {"$cond", .flags = MQL__SERVICE | MQL__LAZY, .function = cond, .parse = parse_cond},
    {"$ifNull", .flags = MQL__SERVICE | MQL__LAZY, .function = if_null, .parse = parse_if_null},
    {"$switch", .flags = MQL__SERVICE | MQL__LAZY, .function = switch_, .parse = parse_switch},
    {"$literal", .flags = MQL__SERVICE, .parse = parse_literal},
    {"$const", .flags = MQL__SERVICE, .parse = parse_literal},
    {"$meta", .flags = MQL__LAZY | MQL__VOLATILE, .function = meta, .parse = parse_meta},
    {"$rand", .flags = MQL__LAZY | MQL__VOLATILE, .function = rand_, .parse = parse_rand},
    {"$function", .parse = parse_script},
    {"$accumulator", .parse = parse_script},
};
const mql__operators mql__control_operators = MQL__OPERATORS(rows);
