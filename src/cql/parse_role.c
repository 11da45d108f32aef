/* parse_role.c — roles and users; GRANT, REVOKE and LIST. */
#include "cql/parse_int.h"

/* ---- roles ---- */

static bool boolean(cql__parser *p, bool *truth_out) {
    *truth_out = cql__is_word(p, "true");
    return *truth_out || cql__is_word(p, "false") ? cql__advance(p) : cql__fail_expecting(p, "BOOLEAN");
}

/* ALL DATACENTERS, or DATACENTERS {'a', 'b'} */
static bool access_to(cql__parser *p, cql_role_statement *s) {
    cql__list list = {0};
    s->has_datacenters = true;
    if (!cql__expect_word(p, "TO")) {
        return false;
    }
    s->all_datacenters = cql__accept_word(p, "ALL");
    if (!cql__expect_word(p, "DATACENTERS") || s->all_datacenters) {
        return p->code == OK;
    }
    if (!cql__expect(p, "{")) {
        return false;
    }
    do {
        slice *name = cql__push(p, &list, sizeof *name);
        if (!name || !cql__string(p, name)) {
            return false;
        }
    } while (cql__accept(p, ","));
    s->datacenters = list.items;
    s->datacenters_n = list.n;
    return cql__expect(p, "}");
}

static bool role_option(cql__parser *p, cql_role_statement *s) {
    if (cql__accept_word(p, "ACCESS")) {
        return access_to(p, s);
    }
    if (cql__accept_word(p, "OPTIONS")) {
        return cql__expect(p, "=") && cql__simple_term(p, &s->options);
    }
    if (cql__accept_word(p, "SUPERUSER")) {
        s->has_superuser = true;
        return cql__expect(p, "=") && boolean(p, &s->superuser);
    }
    if (cql__accept_word(p, "LOGIN")) {
        s->has_login = true;
        return cql__expect(p, "=") && boolean(p, &s->login);
    }
    s->password_hashed = cql__accept_word(p, "HASHED");
    s->has_password = true;
    return cql__expect_word(p, "PASSWORD") && cql__expect(p, "=") && cql__string(p, &s->password);
}

static bool role_options(cql__parser *p, cql_role_statement *s) {
    if (!cql__accept_word(p, "WITH")) {
        return p->code == OK;
    }
    do {
        if (!role_option(p, s)) {
            return false;
        }
    } while (cql__accept_word(p, "AND"));
    return p->code == OK;
}

static bool user_options(cql__parser *p, cql_role_statement *s) {
    s->user = s->has_login = s->login = true;
    if (cql__accept_word(p, "WITH")) {
        s->password_hashed = cql__accept_word(p, "HASHED");
        s->has_password = true;
        if (!cql__expect_word(p, "PASSWORD") || !cql__string(p, &s->password)) {
            return false;
        }
    }
    s->superuser = cql__is_word(p, "SUPERUSER");
    s->has_superuser = s->superuser || cql__is_word(p, "NOSUPERUSER");
    return p->code == OK && (!s->has_superuser || cql__advance(p));
}

bool cql__create_role(cql__parser *p, cql_statement *statement, bool user) {
    cql_role_statement *s = &statement->role;
    statement->verb = CQL_CREATE_ROLE;
    return cql__if_not_exists(p, &s->conditional) && cql__role_name(p, &s->name) && (user ? user_options(p, s) : role_options(p, s));
}

bool cql__alter_role(cql__parser *p, cql_statement *statement, bool user) {
    cql_role_statement *s = &statement->role;
    statement->verb = CQL_ALTER_ROLE;
    return cql__if_exists(p, &s->conditional) && cql__role_name(p, &s->name) && (user ? user_options(p, s) : role_options(p, s));
}

/* ---- permissions ---- */

static slice permission_at(const cql__parser *p) {
    static const char *const words[] = {"CREATE", "ALTER", "DROP", "SELECT", "MODIFY", "AUTHORIZE", "DESCRIBE", "EXECUTE"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (cql__is_word(p, words[i])) {
            return slice_str(words[i]);
        }
    }
    return SLICE_EMPTY;
}

static bool permissions(cql__parser *p, cql_grant *s) {
    cql__list list = {0};
    if (cql__accept_word(p, "ALL")) {
        s->all = true;
        cql__accept_word(p, "PERMISSIONS");
        return p->code == OK;
    }
    do {
        slice word = permission_at(p), *permission = cql__push(p, &list, sizeof *permission);
        if (!word.n || !permission) {
            return cql__fail_input(p);
        }
        *permission = word;
        if (!cql__advance(p)) {
            return false;
        }
        cql__accept_word(p, "PERMISSION");
    } while (cql__accept(p, ","));
    s->permissions = list.items;
    s->permissions_n = list.n;
    return p->code == OK;
}

static bool all_functions(cql__parser *p, cql_grant *s) {
    s->resource_kind = CQL_RESOURCE_ALL_FUNCTIONS;
    if (!cql__accept_words(p, "IN", "KEYSPACE")) {
        return p->code == OK;
    }
    s->resource_kind = CQL_RESOURCE_KEYSPACE_FUNCTIONS;
    return cql__name(p, &s->resource.keyspace);
}

static bool all_resource(cql__parser *p, cql_grant *s) {
    if (cql__accept_word(p, "KEYSPACES")) {
        s->resource_kind = CQL_RESOURCE_ALL_KEYSPACES;
        return p->code == OK;
    }
    if (cql__accept_word(p, "ROLES")) {
        s->resource_kind = CQL_RESOURCE_ALL_ROLES;
        return p->code == OK;
    }
    if (cql__accept_word(p, "MBEANS")) {
        s->resource_kind = CQL_RESOURCE_ALL_MBEANS;
        return p->code == OK;
    }
    if (cql__accept_word(p, "FUNCTIONS")) {
        return all_functions(p, s);
    }
    s->resource_kind = CQL_RESOURCE_ALL_TABLES;
    return cql__expect_word(p, "TABLES") && cql__expect_word(p, "IN") && cql__expect_word(p, "KEYSPACE") &&
           cql__name(p, &s->resource.keyspace);
}

static bool function_resource(cql__parser *p, cql_grant *s) {
    s->resource_kind = CQL_RESOURCE_FUNCTION;
    return cql__table_name(p, &s->resource) && cql__expect(p, "(") && cql__types(p, &s->arguments, &s->arguments_n) && cql__expect(p, ")");
}

static bool resource(cql__parser *p, cql_grant *s) {
    if (cql__accept_word(p, "ALL")) {
        return all_resource(p, s);
    }
    if (cql__accept_word(p, "KEYSPACE")) {
        s->resource_kind = CQL_RESOURCE_KEYSPACE;
        return cql__name(p, &s->resource.keyspace);
    }
    if (cql__accept_word(p, "ROLE")) {
        s->resource_kind = CQL_RESOURCE_ROLE;
        return cql__role_name(p, &s->resource.name);
    }
    if (cql__accept_word(p, "FUNCTION")) {
        return function_resource(p, s);
    }
    if (cql__accept_word(p, "MBEAN") || cql__accept_word(p, "MBEANS")) {
        s->resource_kind = CQL_RESOURCE_MBEAN;
        return cql__string(p, &s->resource.name);
    }
    s->resource_kind = CQL_RESOURCE_TABLE;
    if (cql__is_word(p, "TABLE") || cql__is_word(p, "COLUMNFAMILY")) {
        cql__advance(p);
    }
    return p->code == OK && cql__table_name(p, &s->resource);
}

/* Whether permissions follow, rather than the name of a role. */
static bool at_permissions(const cql__parser *p) {
    bool word = cql__is_word(p, "ALL") || permission_at(p).n;
    return word && (cql__next_is_word(p, "ON") || cql__next_is_word(p, "PERMISSION") || cql__next_is_word(p, "PERMISSIONS") ||
                    cql__next_is(p, ","));
}

bool cql__grant(cql__parser *p, cql_statement *statement, bool revoke) {
    cql_grant *s = &statement->grant;
    const char *preposition = revoke ? "FROM" : "TO";
    if (!at_permissions(p)) {
        statement->verb = revoke ? CQL_REVOKE_ROLE : CQL_GRANT_ROLE;
        return cql__role_name(p, &s->role) && cql__expect_word(p, preposition) && cql__role_name(p, &s->grantee);
    }
    statement->verb = revoke ? CQL_REVOKE : CQL_GRANT;
    return permissions(p, s) && cql__expect_word(p, "ON") && resource(p, s) && cql__expect_word(p, preposition) &&
           cql__role_name(p, &s->grantee);
}

static bool list_end(cql__parser *p, cql_grant *s) {
    if (cql__accept_word(p, "OF") && !cql__role_name(p, &s->grantee)) {
        return false;
    }
    s->no_recursive = cql__accept_word(p, "NORECURSIVE");
    return p->code == OK;
}

bool cql__list_statement(cql__parser *p, cql_statement *statement) {
    cql_grant *s = &statement->grant;
    if (cql__accept_word(p, "USERS")) {
        statement->verb = CQL_LIST_USERS;
        return p->code == OK;
    }
    if (cql__accept_word(p, "ROLES")) {
        statement->verb = CQL_LIST_ROLES;
        return list_end(p, s);
    }
    statement->verb = CQL_LIST_PERMISSIONS;
    return permissions(p, s) && (!cql__accept_word(p, "ON") || resource(p, s)) && list_end(p, s);
}
