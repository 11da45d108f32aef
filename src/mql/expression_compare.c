/* expression_compare.c — comparisons and boolean operators. */
#include "mql/expression_int.h"

/* ---- comparisons ---- */

enum { LESS = 1, EQUAL = 2, GREATER = 4 }; /* the outcomes of a comparison for which the operator is true, as a set */

static err compare(const mql__call *c, mql_value *value_out) {
    TRY(mql_pay(c->run, mql__reading(c->args[0])));
    int by = mql__compare(c->run, c->args[0], c->args[1]);
    int outcome = by < 0 ? LESS : by > 0 ? GREATER : EQUAL;
    *value_out = mql_bool(c->e->operator->variant & outcome);
    return OK;
}

static err three_way(const mql__call *c, mql_value *value_out) {
    TRY(mql_pay(c->run, mql__reading(c->args[0])));
    int by = mql__compare(c->run, c->args[0], c->args[1]);
    *value_out = mql_int32(c->run->arena, by < 0 ? -1 : by > 0);
    return OK;
}

/* ---- booleans ---- */

/* $and and $or: `variant` is the value of an operand that ends the evaluation. */
static err decide(const mql__call *c, mql_value *value_out) {
    bool decisive = c->e->operator->variant;
    for (size_t i = 0; i < c->n; i++) {
        mql_value v;
        TRY(mql__argument(c, i, &v));
        if (mql_truth(v) == decisive) {
            *value_out = mql_bool(decisive);
            return OK;
        }
    }
    *value_out = mql_bool(!decisive);
    return OK;
}

static err negate(const mql__call *c, mql_value *value_out) {
    *value_out = mql_bool(!mql_truth(c->args[0]));
    return OK;
}

static const mql__operator rows[] = {
    {"$eq", 2, 2, MQL__SERVICE, .function = compare, .variant = EQUAL},
    {"$ne", 2, 2, MQL__SERVICE, .function = compare, .variant = LESS | GREATER},
    {"$lt", 2, 2, MQL__SERVICE, .function = compare, .variant = LESS},
    {"$lte", 2, 2, MQL__SERVICE, .function = compare, .variant = LESS | EQUAL},
    {"$gt", 2, 2, MQL__SERVICE, .function = compare, .variant = GREATER},
    {"$gte", 2, 2, MQL__SERVICE, .function = compare, .variant = GREATER | EQUAL},
    {"$cmp", 2, 2, MQL__SERVICE, .function = three_way},
    {"$and", 0, MQL__ANY, MQL__SERVICE | MQL__LAZY, .function = decide, .variant = false},
    {"$or", 0, MQL__ANY, MQL__SERVICE | MQL__LAZY, .function = decide, .variant = true},
    {"$not", 1, 1, MQL__SERVICE, .function = negate},
};
const mql__operators mql__compare_operators = MQL__OPERATORS(rows);
