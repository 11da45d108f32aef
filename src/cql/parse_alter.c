/* parse_alter.c — ALTER and DROP. */
#include "cql/parse_int.h"

/* ---- ALTER ---- */

/* a int, b text STATIC: with or without parentheses. */
static bool added(cql__parser *p, cql_alter *s) {
    cql__list list = {0};
    s->kind = CQL_ALTER_ADD;
    if (!cql__if_not_exists(p, &s->if_not_exists)) {
        return false;
    }
    bool parentheses = cql__accept(p, "(");
    do {
        cql_column_definition *c = cql__push(p, &list, sizeof *c);
        if (!c || !cql__name(p, &c->name) || !cql__type(p, &c->type)) {
            return false;
        }
        c->is_static = cql__accept_word(p, "STATIC");
    } while (cql__accept(p, ","));
    s->columns = list.items;
    s->columns_n = list.n;
    return p->code == OK && (!parentheses || cql__expect(p, ")"));
}

static bool dropped(cql__parser *p, cql_alter *s) {
    s->kind = CQL_ALTER_DROP;
    if (cql__accept_words(p, "COMPACT", "STORAGE")) {
        s->kind = CQL_ALTER_DROP_COMPACT;
        return p->code == OK;
    }
    if (!cql__if_exists(p, &s->columns_if_exist)) {
        return false;
    }
    bool parentheses = cql__accept(p, "(");
    if (!cql__names(p, &s->dropped, &s->dropped_n) || (parentheses && !cql__expect(p, ")"))) {
        return false;
    }
    return !cql__accept_word(p, "USING") ? p->code == OK : cql__expect_word(p, "TIMESTAMP") && cql__simple_term(p, &s->dropped_at);
}

static bool renamed(cql__parser *p, cql_alter *s) {
    cql__list list = {0};
    s->kind = CQL_ALTER_RENAME;
    if (!cql__if_exists(p, &s->columns_if_exist)) {
        return false;
    }
    do {
        cql_rename *r = cql__push(p, &list, sizeof *r);
        if (!r || !cql__name(p, &r->from) || !cql__expect_word(p, "TO") || !cql__name(p, &r->to)) {
            return false;
        }
    } while (cql__accept_word(p, "AND"));
    s->renames = list.items;
    s->renames_n = list.n;
    return p->code == OK;
}

static bool retyped(cql__parser *p, cql_alter *s) {
    cql_column_definition *c = arena_new(p->memory, cql_column_definition);
    s->kind = CQL_ALTER_TYPE;
    s->columns = c;
    s->columns_n = 1;
    return cql__name(p, &c->name) && cql__expect_word(p, "TYPE") && cql__type(p, &c->type);
}

static bool alteration(cql__parser *p, cql_alter *s, bool table) {
    if (cql__accept_word(p, "ADD")) {
        return added(p, s);
    }
    if (cql__accept_word(p, "RENAME")) {
        return renamed(p, s);
    }
    if (cql__accept_word(p, "ALTER")) {
        return retyped(p, s);
    }
    if (table && cql__accept_word(p, "DROP")) {
        return dropped(p, s);
    }
    s->kind = CQL_ALTER_OPTIONS;
    return table && cql__accept_word(p, "WITH") ? cql__properties(p, &s->properties) : cql__fail_input(p);
}

static bool alter_keyspace(cql__parser *p, cql_statement *s) {
    s->verb = CQL_ALTER_KEYSPACE;
    return cql__if_exists(p, &s->keyspace.if_not_exists) && cql__name(p, &s->keyspace.name) && cql__expect_word(p, "WITH") &&
           cql__properties(p, &s->keyspace.properties);
}

static bool alter_named(cql__parser *p, cql_statement *s, cql_verb verb) {
    s->verb = verb;
    return cql__if_exists(p, &s->alter.if_exists) && cql__table_name(p, &s->alter.table) &&
           alteration(p, &s->alter, verb == CQL_ALTER_TABLE);
}

static bool alter_view(cql__parser *p, cql_statement *s) {
    s->verb = CQL_ALTER_VIEW;
    s->alter.kind = CQL_ALTER_OPTIONS;
    return cql__expect_word(p, "VIEW") && cql__if_exists(p, &s->alter.if_exists) && cql__table_name(p, &s->alter.table) &&
           cql__expect_word(p, "WITH") && cql__properties(p, &s->alter.properties);
}

bool cql__alter(cql__parser *p, cql_statement *s) {
    if (cql__accept_word(p, "KEYSPACE") || cql__accept_word(p, "SCHEMA")) {
        return alter_keyspace(p, s);
    }
    if (cql__accept_word(p, "TABLE") || cql__accept_word(p, "COLUMNFAMILY")) {
        return alter_named(p, s, CQL_ALTER_TABLE);
    }
    if (cql__accept_word(p, "TYPE")) {
        return alter_named(p, s, CQL_ALTER_UDT);
    }
    if (cql__accept_word(p, "MATERIALIZED")) {
        return alter_view(p, s);
    }
    if (cql__is_word(p, "ROLE") || cql__is_word(p, "USER")) {
        bool user = cql__is_word(p, "USER");
        return cql__advance(p) && cql__alter_role(p, s, user);
    }
    return cql__fail_input(p);
}

/* ---- DROP ---- */

static bool drop_callable(cql__parser *p, cql_drop *s) {
    if (!cql__table_name(p, &s->target)) {
        return false;
    }
    s->has_arguments = cql__accept(p, "(");
    return p->code == OK && (!s->has_arguments || (cql__types(p, &s->arguments, &s->arguments_n) && cql__expect(p, ")")));
}

static bool drop_trigger(cql__parser *p, cql_drop *s) {
    return cql__name(p, &s->name) && cql__expect_word(p, "ON") && cql__table_name(p, &s->target);
}

static bool drop_what(cql__parser *p, cql_statement *s) {
    switch (s->verb) {
    case CQL_DROP_KEYSPACE:
        return cql__name(p, &s->drop.target.keyspace);
    case CQL_DROP_FUNCTION:
    case CQL_DROP_AGGREGATE:
        return drop_callable(p, &s->drop);
    case CQL_DROP_TRIGGER:
        return drop_trigger(p, &s->drop);
    case CQL_DROP_ROLE:
        return cql__role_name(p, &s->drop.name);
    default:
        return cql__table_name(p, &s->drop.target);
    }
}

bool cql__drop(cql__parser *p, cql_statement *s) {
    static const struct {
        const char *word;
        cql_verb verb;
    } kinds[] = {{"KEYSPACE", CQL_DROP_KEYSPACE},  {"SCHEMA", CQL_DROP_KEYSPACE},   {"TABLE", CQL_DROP_TABLE},
                 {"COLUMNFAMILY", CQL_DROP_TABLE}, {"TYPE", CQL_DROP_TYPE},         {"INDEX", CQL_DROP_INDEX},
                 {"MATERIALIZED", CQL_DROP_VIEW},  {"FUNCTION", CQL_DROP_FUNCTION}, {"AGGREGATE", CQL_DROP_AGGREGATE},
                 {"TRIGGER", CQL_DROP_TRIGGER},    {"ROLE", CQL_DROP_ROLE},         {"USER", CQL_DROP_ROLE}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (cql__is_word(p, kinds[i].word)) {
            s->verb = kinds[i].verb;
            return cql__advance(p) && (s->verb != CQL_DROP_VIEW || cql__expect_word(p, "VIEW")) && cql__if_exists(p, &s->drop.if_exists) &&
                   drop_what(p, s);
        }
    }
    return cql__fail_input(p);
}
