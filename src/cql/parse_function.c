/* parse_function.c — CREATE FUNCTION, CREATE AGGREGATE, DESCRIBE. */
#include "cql/parse_int.h"

static bool function_arguments(cql__parser *p, cql_create_function *s) {
    cql__list names = {0}, types = {0};
    if (!cql__expect(p, "(")) {
        return false;
    }
    while (!cql__is(p, ")")) {
        slice *name = cql__push(p, &names, sizeof *name);
        const cql_type **type = cql__push(p, &types, sizeof *type);
        if (!name || !type || (names.n > 1 && !cql__expect(p, ",")) || !cql__name(p, name) || !cql__type(p, type)) {
            return false;
        }
    }
    s->argument_names = names.items;
    s->arguments = types.items;
    s->arguments_n = names.n;
    return cql__expect(p, ")");
}

/* CALLED ON NULL INPUT, or RETURNS NULL ON NULL INPUT. */
static bool null_input(cql__parser *p, cql_create_function *s) {
    s->called_on_null = cql__accept_word(p, "CALLED");
    return p->code == OK && (s->called_on_null || (cql__expect_word(p, "RETURNS") && cql__expect_word(p, "NULL"))) &&
           cql__expect_word(p, "ON") && cql__expect_word(p, "NULL") && cql__expect_word(p, "INPUT");
}

bool cql__create_function(cql__parser *p, cql_statement *statement, bool replace) {
    cql_create_function *s = &statement->create_function;
    statement->verb = CQL_CREATE_FUNCTION;
    s->or_replace = replace;
    return cql__if_not_exists(p, &s->if_not_exists) && cql__table_name(p, &s->function) && function_arguments(p, s) && null_input(p, s) &&
           cql__expect_word(p, "RETURNS") && cql__type(p, &s->returns) && cql__expect_word(p, "LANGUAGE") && cql__name(p, &s->language) &&
           cql__expect_word(p, "AS") && cql__string(p, &s->body);
}

bool cql__create_aggregate(cql__parser *p, cql_statement *statement, bool replace) {
    cql_create_aggregate *s = &statement->create_aggregate;
    statement->verb = CQL_CREATE_AGGREGATE;
    s->or_replace = replace;
    if (!cql__if_not_exists(p, &s->if_not_exists) || !cql__table_name(p, &s->aggregate) || !cql__expect(p, "(") ||
        !cql__types(p, &s->arguments, &s->arguments_n) || !cql__expect(p, ")") || !cql__expect_word(p, "SFUNC") ||
        !cql__name(p, &s->state_function) || !cql__expect_word(p, "STYPE") || !cql__type(p, &s->state)) {
        return false;
    }
    return (!cql__accept_word(p, "FINALFUNC") || cql__name(p, &s->final_function)) &&
           (!cql__accept_word(p, "INITCOND") || cql__term(p, &s->initial)) && p->code == OK;
}

/* ---- DESCRIBE ---- */

static bool describe_options(cql__parser *p, cql_describe *s) {
    if (cql__accept_words(p, "WITH", "INTERNALS")) {
        s->internals = true;
    }
    return p->code == OK;
}

static bool describe_keyspace(cql__parser *p, cql_describe *s) {
    s->only = cql__accept_word(p, "ONLY");
    if (p->code == OK && (cql__is_word(p, "KEYSPACE") || cql__is_word(p, "SCHEMA"))) {
        cql__advance(p);
    }
    return p->code == OK && (!cql__is_name(p) || cql__name(p, &s->target.keyspace)) && describe_options(p, s);
}

static bool describe_named(cql__parser *p, cql_describe *s) {
    static const struct {
        const char *word;
        cql_describe_kind kind;
    } kinds[] = {{"TABLE", CQL_DESCRIBE_TABLE}, {"COLUMNFAMILY", CQL_DESCRIBE_TABLE}, {"TYPE", CQL_DESCRIBE_TYPE},
                 {"INDEX", CQL_DESCRIBE_INDEX}, {"FUNCTION", CQL_DESCRIBE_FUNCTION},  {"AGGREGATE", CQL_DESCRIBE_AGGREGATE}};
    s->kind = CQL_DESCRIBE_ANYTHING;
    if (cql__accept_words(p, "MATERIALIZED", "VIEW")) {
        s->kind = CQL_DESCRIBE_VIEW;
    }
    for (size_t i = 0; s->kind == CQL_DESCRIBE_ANYTHING && i < sizeof kinds / sizeof *kinds; i++) {
        if (cql__accept_word(p, kinds[i].word)) {
            s->kind = kinds[i].kind;
        }
    }
    return p->code == OK && cql__table_name(p, &s->target) && describe_options(p, s);
}

bool cql__describe(cql__parser *p, cql_statement *statement) {
    static const struct {
        const char *word;
        cql_describe_kind kind;
    } lists[] = {{"CLUSTER", CQL_DESCRIBE_CLUSTER},     {"KEYSPACES", CQL_DESCRIBE_KEYSPACES},   {"SCHEMAS", CQL_DESCRIBE_KEYSPACES},
                 {"TABLES", CQL_DESCRIBE_TABLES},       {"COLUMNFAMILIES", CQL_DESCRIBE_TABLES}, {"TYPES", CQL_DESCRIBE_TYPES},
                 {"FUNCTIONS", CQL_DESCRIBE_FUNCTIONS}, {"AGGREGATES", CQL_DESCRIBE_AGGREGATES}};
    cql_describe *s = &statement->describe;
    statement->verb = CQL_DESCRIBE;
    s->full = cql__is_word(p, "FULL") && cql__next_is_word(p, "SCHEMA") && cql__advance(p);
    if (cql__is_word(p, "SCHEMA") && (s->full || p->next.kind == CQL_TOKEN_END || cql__next_is_word(p, "WITH") || cql__next_is(p, ";"))) {
        s->kind = CQL_DESCRIBE_SCHEMA;
        return cql__advance(p) && describe_options(p, s);
    }
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        if (cql__accept_word(p, lists[i].word)) {
            s->kind = lists[i].kind;
            return describe_options(p, s);
        }
    }
    if (cql__is_word(p, "KEYSPACE") || cql__is_word(p, "SCHEMA") || cql__is_word(p, "ONLY")) {
        s->kind = CQL_DESCRIBE_KEYSPACE;
        return describe_keyspace(p, s);
    }
    return describe_named(p, s);
}
