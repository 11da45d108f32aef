/* expression_bits.c — bits of integers. */
#include "mql/expression_int.h"
#include "mql/number.h"

static bool is_integer(mql_value v) {
    return v.type == BSON_TYPE_INT32 || v.type == BSON_TYPE_INT64;
}

enum { AND, OR, XOR };

static err combine(const mql__call *c, mql_value *value_out) {
    int which = c->e->operator->variant;
    int64_t bits = which == AND ? -1 : 0, next;
    bson_type_t type = BSON_TYPE_INT32;
    for (size_t i = 0; i < c->n; i++) {
        if (mql_is_nullish(c->args[i])) {
            *value_out = mql_null();
            return OK;
        }
        if (!is_integer(c->args[i])) {
            return mql__fail(c, 14, "%s only supports int and long operands.", mql__name(c));
        }
        mql_as_integer(c->args[i], &next);
        bits = which == AND ? bits & next : which == OR ? bits | next : bits ^ next;
        type = c->args[i].type == BSON_TYPE_INT64 ? BSON_TYPE_INT64 : type;
    }
    *value_out = mql_integer(c->run->arena, type, bits);
    return OK;
}

static err invert(const mql__call *c, mql_value *value_out) {
    int64_t bits;
    if (!mql_is_number(c->args[0])) {
        return mql__fail(c, 28765, "$bitNot only supports numeric types, not %s", mql_type_name(c->args[0].type));
    }
    if (!is_integer(c->args[0])) {
        return mql__fail(c, 14, "$bitNot only supports int and long, not: %s.", mql_type_name(c->args[0].type));
    }
    mql_as_integer(c->args[0], &bits);
    *value_out = mql_integer(c->run->arena, c->args[0].type, ~bits);
    return OK;
}

static const mql__operator rows[] = {
    {"$bitAnd", 0, MQL__ANY, 0, .function = combine, .variant = AND},
    {"$bitOr", 0, MQL__ANY, 0, .function = combine, .variant = OR},
    {"$bitXor", 0, MQL__ANY, 0, .function = combine, .variant = XOR},
    {"$bitNot", 1, 1, MQL__NULLS, .function = invert},
};
const mql__operators mql__bits_operators = MQL__OPERATORS(rows);
