/* parse_where.c — relations of WHERE, and conditions of IF. */
#include "cql/parse_int.h"

static bool comparison(cql__parser *p, cql_operator *op_out) {
    static const struct {
        const char *symbol;
        cql_operator op;
    } operators[] = {{"=", CQL_EQ}, {"<", CQL_LT}, {"<=", CQL_LE}, {">", CQL_GT}, {">=", CQL_GE}, {"!=", CQL_NE}};
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
        if (cql__is(p, operators[i].symbol)) {
            *op_out = operators[i].op;
            return cql__advance(p);
        }
    }
    return cql__fail_input(p);
}

/* After IN: a marker for the whole list, or values in parentheses. */
static bool in_values(cql__parser *p, cql_relation *r) {
    cql__list list = {0};
    r->op = CQL_IN;
    if (cql__is_marker(p)) {
        return cql__marker(p, &r->value);
    }
    if (!cql__expect(p, "(")) {
        return false;
    }
    while (!cql__is(p, ")")) {
        const cql_term **value = cql__push(p, &list, sizeof *value);
        if ((list.n > 1 && !cql__expect(p, ",")) || !value || !cql__term(p, value)) {
            return false;
        }
    }
    r->in = list.items;
    r->in_n = list.n;
    return cql__expect(p, ")");
}

/* An operator and its right side. */
static bool compared(cql__parser *p, cql_relation *r) {
    if (cql__is_word(p, "IN")) {
        return cql__advance(p) && in_values(p, r);
    }
    return comparison(p, &r->op) && cql__term(p, &r->value);
}

static bool one_column(cql__parser *p, cql_relation *r) {
    slice *name = arena_array(p->memory, slice, 1);
    r->columns = name;
    r->columns_n = 1;
    return cql__name(p, name);
}

static bool is_not_null(cql__parser *p, cql_relation *r) {
    r->op = CQL_IS_NOT_NULL;
    return cql__advance(p) && cql__expect_word(p, "NOT") && cql__expect_word(p, "NULL");
}

static bool contains(cql__parser *p, cql_relation *r) {
    bool key = cql__next_is_word(p, "KEY");
    r->op = key ? CQL_CONTAINS_KEY : CQL_CONTAINS;
    return cql__advance(p) && (!key || cql__advance(p)) && cql__term(p, &r->value);
}

static bool column_relation(cql__parser *p, cql_relation *r) {
    if (!one_column(p, r)) {
        return false;
    }
    if (cql__is_word(p, "LIKE")) {
        r->op = CQL_LIKE;
        return cql__advance(p) && cql__term(p, &r->value);
    }
    if (cql__is_word(p, "IS")) {
        return is_not_null(p, r);
    }
    if (cql__is_word(p, "CONTAINS")) {
        return contains(p, r);
    }
    if (cql__is(p, "[")) {
        r->kind = CQL_RELATION_ELEMENT;
        return cql__advance(p) && cql__term(p, &r->key) && cql__expect(p, "]") && compared(p, r);
    }
    return compared(p, r);
}

static bool token_relation(cql__parser *p, cql_relation *r) {
    r->kind = CQL_RELATION_TOKEN;
    return cql__advance(p) && cql__expect(p, "(") && cql__names(p, &r->columns, &r->columns_n) && cql__expect(p, ")") &&
           comparison(p, &r->op) && cql__term(p, &r->value);
}

/* COSMOS_CHANGEFEED_START_TIME() = '…' */
static bool function_relation(cql__parser *p, cql_relation *r) {
    r->kind = CQL_RELATION_FUNCTION;
    return one_column(p, r) && cql__expect(p, "(") && cql__expect(p, ")") && comparison(p, &r->op) && cql__term(p, &r->value);
}

static bool tuple_relation(cql__parser *p, cql_relation *r) {
    r->kind = CQL_RELATION_TUPLE;
    return cql__names(p, &r->columns, &r->columns_n) && cql__expect(p, ")") && compared(p, r);
}

static bool relation(cql__parser *p, cql_relation *r) {
    r->line = p->now.line;
    r->column = p->now.column;
    if (cql__is_word(p, "TOKEN")) {
        return token_relation(p, r);
    }
    if (cql__is(p, "(")) {
        if (!cql__enter(p) || !cql__advance(p)) {
            return false;
        }
        bool tuple = cql__is_name(p) && (cql__next_is(p, ",") || cql__next_is(p, ")"));
        return (tuple ? tuple_relation(p, r) : relation(p, r) && cql__expect(p, ")")) && cql__leave(p);
    }
    return cql__is_name(p) && cql__next_is(p, "(") ? function_relation(p, r) : column_relation(p, r);
}

static bool condition(cql__parser *p, cql_relation *r) {
    r->line = p->now.line;
    r->column = p->now.column;
    if (!one_column(p, r)) {
        return false;
    }
    if (cql__is_word(p, "CONTAINS")) {
        return contains(p, r);
    }
    if (cql__is(p, "[")) {
        r->kind = CQL_RELATION_ELEMENT;
        return cql__advance(p) && cql__term(p, &r->key) && cql__expect(p, "]") && compared(p, r);
    }
    if (cql__is(p, ".")) {
        r->kind = CQL_RELATION_FIELD;
        return cql__advance(p) && cql__name(p, &r->field) && compared(p, r);
    }
    return compared(p, r);
}

static bool joined_by_and(cql__parser *p, bool (*rule)(cql__parser *, cql_relation *), const cql_relation **relations_out,
                          uint32_t *n_out) {
    cql__list list = {0};
    do {
        cql_relation *r = cql__push(p, &list, sizeof *r);
        if (!r || !rule(p, r)) {
            return false;
        }
    } while (cql__accept_word(p, "AND"));
    *relations_out = list.items;
    *n_out = list.n;
    return p->code == OK;
}

bool cql__where(cql__parser *p, const cql_relation **where_out, uint32_t *n_out) {
    return joined_by_and(p, relation, where_out, n_out);
}

bool cql__conditions(cql__parser *p, const cql_relation **conditions_out, uint32_t *n_out) {
    return joined_by_and(p, condition, conditions_out, n_out);
}
