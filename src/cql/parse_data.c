/* parse_data.c — SELECT, INSERT, UPDATE, DELETE, BATCH. */
#include "cql/parse_int.h"

/* ---- shared ---- */

/* A whole number or a marker, for LIMIT, TTL and TIMESTAMP. */
static bool int_value(cql__parser *p, const cql_term **term_out) {
    if (p->now.kind != CQL_TOKEN_INTEGER && !cql__is_marker(p) && !cql__is(p, "-")) {
        return cql__fail_input(p);
    }
    return cql__simple_term(p, term_out) &&
           ((*term_out)->kind == CQL_TERM_INTEGER || (*term_out)->kind == CQL_TERM_BIND || cql__fail_input(p));
}

static bool using_options(cql__parser *p, cql_using *u, bool ttl_allowed) {
    if (!cql__accept_word(p, "USING")) {
        return p->code == OK;
    }
    do {
        if (cql__accept_word(p, "TIMESTAMP")) {
            if (!int_value(p, &u->timestamp)) {
                return false;
            }
        } else if (ttl_allowed && cql__accept_word(p, "TTL")) {
            if (!int_value(p, &u->ttl)) {
                return false;
            }
        } else {
            return cql__fail_input(p);
        }
    } while (ttl_allowed && cql__accept_word(p, "AND"));
    return p->code == OK;
}

static bool where_opt(cql__parser *p, const cql_relation **where_out, uint32_t *n_out) {
    return cql__accept_word(p, "WHERE") ? cql__where(p, where_out, n_out) : p->code == OK;
}

/* IF EXISTS, or IF with conditions. */
static bool if_opt(cql__parser *p, cql_if *ifs) {
    if (!cql__accept_word(p, "IF")) {
        return p->code == OK;
    }
    if (cql__is_word(p, "EXISTS") && (p->next.kind != CQL_TOKEN_SYMBOL || cql__next_is(p, ";"))) {
        ifs->exists = true;
        return cql__advance(p);
    }
    return cql__conditions(p, &ifs->conditions, &ifs->n);
}

/* ---- SELECT ---- */

bool cql__selectors(cql__parser *p, const cql_selector **selectors_out, uint32_t *n_out, bool *star_out) {
    cql__list list = {0};
    *star_out = cql__is(p, "*");
    if (*star_out) {
        return cql__advance(p);
    }
    do {
        cql_selector *s = cql__push(p, &list, sizeof *s);
        if (!s || !cql__selector_term(p, &s->term) || (cql__accept_word(p, "AS") && !cql__name(p, &s->alias))) {
            return false;
        }
    } while (cql__accept(p, ","));
    *selectors_out = list.items;
    *n_out = list.n;
    return p->code == OK;
}

/* JSON and DISTINCT are also names of columns: they are modifiers if something to select follows. */
static bool accept_modifier(cql__parser *p, const char *word) {
    if (!cql__is_word(p, word)) {
        return false;
    }
    bool name = p->next.kind == CQL_TOKEN_NAME && !cql__next_is_word(p, "FROM") && !cql__next_is_word(p, "AS");
    bool other = p->next.kind != CQL_TOKEN_NAME && p->next.kind != CQL_TOKEN_SYMBOL && p->next.kind != CQL_TOKEN_END;
    return (name || other || cql__next_is(p, "*")) && cql__advance(p);
}

bool cql__order_by(cql__parser *p, const cql_order **order_out, uint32_t *n_out) {
    cql__list list = {0};
    do {
        cql_order *order = cql__push(p, &list, sizeof *order);
        if (!order || !cql__name(p, &order->column)) {
            return false;
        }
        order->descending = cql__is_word(p, "DESC");
        if ((order->descending || cql__is_word(p, "ASC")) && !cql__advance(p)) {
            return false;
        }
    } while (cql__accept(p, ","));
    *order_out = list.items;
    *n_out = list.n;
    return p->code == OK;
}

static bool group_by(cql__parser *p, cql_select *s) {
    cql__list list = {0};
    if (!cql__accept_words(p, "GROUP", "BY")) {
        return p->code == OK;
    }
    do {
        const cql_term **term = cql__push(p, &list, sizeof *term);
        if (!term || !cql__selector_term(p, term)) {
            return false;
        }
    } while (cql__accept(p, ","));
    s->group = list.items;
    s->group_n = list.n;
    return p->code == OK;
}

static bool limits(cql__parser *p, cql_select *s) {
    if (cql__accept_words(p, "PER", "PARTITION") && !(cql__expect_word(p, "LIMIT") && int_value(p, &s->partition_limit))) {
        return false;
    }
    if (cql__accept_word(p, "LIMIT") && !int_value(p, &s->limit)) {
        return false;
    }
    s->allow_filtering = cql__accept_word(p, "ALLOW");
    return p->code == OK && (!s->allow_filtering || cql__expect_word(p, "FILTERING"));
}

bool cql__select(cql__parser *p, cql_statement *statement) {
    cql_select *s = &statement->select;
    statement->verb = CQL_SELECT;
    s->json = accept_modifier(p, "JSON");
    s->distinct = accept_modifier(p, "DISTINCT");
    return p->code == OK && cql__selectors(p, &s->selectors, &s->selectors_n, &s->star) && cql__expect_word(p, "FROM") &&
           cql__table_name(p, &s->table) && where_opt(p, &s->where, &s->where_n) && group_by(p, s) &&
           (!cql__accept_words(p, "ORDER", "BY") || cql__order_by(p, &s->order, &s->order_n)) && limits(p, s);
}

/* ---- INSERT ---- */

static bool insert_json(cql__parser *p, cql_insert *s) {
    if (!(cql__is_marker(p) ? cql__marker(p, &s->json) : p->now.kind == CQL_TOKEN_STRING && cql__simple_term(p, &s->json))) {
        return cql__fail_input(p);
    }
    if (!cql__accept_word(p, "DEFAULT")) {
        return p->code == OK;
    }
    s->default_unset = cql__is_word(p, "UNSET");
    return s->default_unset ? cql__advance(p) : cql__expect_word(p, "NULL");
}

static bool insert_values(cql__parser *p, cql_insert *s) {
    cql__list values = {0};
    if (!cql__expect(p, "(") || !cql__names(p, &s->columns, &s->n) || !cql__expect(p, ")") || !cql__expect_word(p, "VALUES") ||
        !cql__expect(p, "(")) {
        return false;
    }
    do {
        const cql_term **value = cql__push(p, &values, sizeof *value);
        if (!value || !cql__term(p, value)) {
            return false;
        }
    } while (cql__accept(p, ","));
    if (!cql__expect(p, ")")) {
        return false;
    }
    s->values = values.items;
    return values.n == s->n || cql__fail_invalid(p, "Unmatched column names/values");
}

bool cql__insert(cql__parser *p, cql_statement *statement) {
    cql_insert *s = &statement->insert;
    statement->verb = CQL_INSERT;
    if (!cql__expect_word(p, "INTO") || !cql__table_name(p, &s->table)) {
        return false;
    }
    bool json = cql__accept_word(p, "JSON");
    return p->code == OK && (json ? insert_json(p, s) : insert_values(p, s)) && cql__if_not_exists(p, &s->ifs.not_exists) &&
           using_options(p, &s->usings, true);
}

/* ---- UPDATE ---- */

static bool is_column(const cql__parser *p) {
    return cql__is_name(p) && !cql__is_word(p, "true") && !cql__is_word(p, "false") && !cql__next_is(p, "(") && !cql__next_is(p, ".");
}

/* c = c + value, c = c - value */
static bool assign_operation(cql__parser *p, cql_assignment *a) {
    slice column;
    if (!cql__name(p, &column)) {
        return false;
    }
    bool minus = cql__is(p, "-");
    if (!minus && !cql__is(p, "+")) {
        return cql__fail_input(p);
    }
    a->kind = minus ? CQL_ASSIGN_REMOVE : CQL_ASSIGN_ADD;
    if (!slice_eq(column, a->column)) {
        return cql__fail_invalid(p, "Only expressions of the form X = X %s <value> are supported.", minus ? "-" : "+");
    }
    return cql__advance(p) && cql__term(p, &a->value);
}

/* c = value, c = value + c */
static bool assign_value(cql__parser *p, cql_assignment *a) {
    slice column;
    p->assigning = true;
    bool ok = cql__term(p, &a->value);
    p->assigning = false;
    if (!ok || !cql__is(p, "+")) {
        return ok;
    }
    a->kind = CQL_ASSIGN_PREPEND;
    if (!cql__advance(p) || !cql__name(p, &column)) {
        return false;
    }
    return slice_eq(column, a->column) || cql__fail_invalid(p, "Only expressions of the form X = <value> + X are supported.");
}

static bool assignment(cql__parser *p, cql_assignment *a) {
    if (!cql__name(p, &a->column)) {
        return false;
    }
    if (cql__is(p, "+=") || cql__is(p, "-=")) {
        a->kind = cql__is(p, "+=") ? CQL_ASSIGN_ADD : CQL_ASSIGN_REMOVE;
        return cql__advance(p) && cql__term(p, &a->value);
    }
    if (cql__accept(p, "[")) {
        a->kind = CQL_ASSIGN_ELEMENT;
        return cql__term(p, &a->key) && cql__expect(p, "]") && cql__expect(p, "=") && cql__term(p, &a->value);
    }
    if (cql__accept(p, ".")) {
        a->kind = CQL_ASSIGN_FIELD;
        return cql__name(p, &a->field) && cql__expect(p, "=") && cql__term(p, &a->value);
    }
    return cql__expect(p, "=") && (is_column(p) ? assign_operation(p, a) : assign_value(p, a));
}

bool cql__update(cql__parser *p, cql_statement *statement) {
    cql_update *s = &statement->update;
    cql__list list = {0};
    statement->verb = CQL_UPDATE;
    if (!cql__table_name(p, &s->table) || !using_options(p, &s->usings, true) || !cql__expect_word(p, "SET")) {
        return false;
    }
    do {
        cql_assignment *a = cql__push(p, &list, sizeof *a);
        if (!a || !assignment(p, a)) {
            return false;
        }
    } while (cql__accept(p, ","));
    s->assignments = list.items;
    s->assignments_n = list.n;
    return p->code == OK && cql__expect_word(p, "WHERE") && cql__where(p, &s->where, &s->where_n) && if_opt(p, &s->ifs);
}

/* ---- DELETE ---- */

static bool deletion(cql__parser *p, cql_deletion *d) {
    if (!cql__name(p, &d->column)) {
        return false;
    }
    if (cql__accept(p, "[")) {
        return cql__term(p, &d->key) && cql__expect(p, "]");
    }
    return cql__accept(p, ".") ? cql__name(p, &d->field) : p->code == OK;
}

bool cql__delete(cql__parser *p, cql_statement *statement) {
    cql_delete *s = &statement->delete;
    cql__list list = {0};
    statement->verb = CQL_DELETE;
    while (!cql__is_word(p, "FROM")) {
        cql_deletion *d = cql__push(p, &list, sizeof *d);
        if ((list.n > 1 && !cql__expect(p, ",")) || !d || !deletion(p, d)) {
            return false;
        }
    }
    s->deletions = list.items;
    s->deletions_n = list.n;
    return cql__expect_word(p, "FROM") && cql__table_name(p, &s->table) && using_options(p, &s->usings, false) &&
           cql__expect_word(p, "WHERE") && cql__where(p, &s->where, &s->where_n) && if_opt(p, &s->ifs);
}

/* ---- BATCH ---- */

static bool batched(cql__parser *p, const cql_statement **statement_out) {
    cql_statement *s = arena_new(p->memory, cql_statement);
    *statement_out = s;
    if (cql__accept_word(p, "INSERT")) {
        return cql__insert(p, s);
    }
    if (cql__accept_word(p, "UPDATE")) {
        return cql__update(p, s);
    }
    return cql__accept_word(p, "DELETE") ? cql__delete(p, s) : cql__fail_input(p);
}

bool cql__batch(cql__parser *p, cql_statement *statement) {
    enum { STATEMENTS_MAX = 65535 };
    cql_batch *s = &statement->batch;
    cql__list list = {0};
    statement->verb = CQL_BATCH;
    if (cql__is_word(p, "UNLOGGED") || cql__is_word(p, "COUNTER")) {
        s->kind = cql__is_word(p, "COUNTER") ? CQL_BATCH_COUNTER : CQL_BATCH_UNLOGGED;
        cql__advance(p);
    }
    if (!cql__expect_word(p, "BATCH") || !using_options(p, &s->usings, false)) {
        return false;
    }
    while (!cql__is_word(p, "APPLY")) {
        const cql_statement **inner = list.n < STATEMENTS_MAX ? cql__push(p, &list, sizeof *inner) : NULL;
        if (!inner || !batched(p, inner)) {
            return cql__fail_input(p);
        }
        cql__accept(p, ";");
    }
    s->statements = list.items;
    s->n = list.n;
    return cql__expect_word(p, "APPLY") && cql__expect_word(p, "BATCH");
}
