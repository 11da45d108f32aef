/* cql_show.h — a statement's tree as text, for the cases of the parser: one spelling for what was understood. */
#pragma once

#include "cql/parse.h"

static void show_name(buf *out, const cql_table_name *name) {
    if (name->keyspace.n) {
        cql_name_write(out, name->keyspace);
        buf_add_slice(out, name->name.n ? SLICE_LIT(".") : SLICE_EMPTY);
    }
    if (name->name.n) {
        cql_name_write(out, name->name);
    }
}

static void show_names(buf *out, const slice *names, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        buf_add_slice(out, i ? SLICE_LIT(", ") : SLICE_EMPTY);
        cql_name_write(out, names[i]);
    }
}

static void show_relations(buf *out, const char *before, const cql_relation *relations, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        buf_add_slice(out, i ? SLICE_LIT(" AND ") : slice_str(before));
        cql_relation_write(out, &relations[i]);
    }
}

static void show_if(buf *out, const cql_if *ifs) {
    buf_add_slice(out, ifs->exists ? SLICE_LIT(" IF EXISTS") : ifs->not_exists ? SLICE_LIT(" IF NOT EXISTS") : SLICE_EMPTY);
    show_relations(out, " IF ", ifs->conditions, ifs->n);
}

static void show_term(buf *out, const char *before, const cql_term *t) {
    if (t) {
        buf_add_slice(out, slice_str(before));
        cql_term_write(out, t);
    }
}

static void show_using(buf *out, const cql_using *u) {
    show_term(out, " USING TIMESTAMP ", u->timestamp);
    show_term(out, " USING TTL ", u->ttl);
}

static void show_order(buf *out, const char *before, const cql_order *order, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        buf_add_slice(out, i ? SLICE_LIT(", ") : slice_str(before));
        cql_name_write(out, order[i].column);
        buf_add_slice(out, order[i].descending ? SLICE_LIT(" DESC") : SLICE_LIT(" ASC"));
    }
}

static void show_properties(buf *out, const cql_properties *properties) {
    for (uint32_t i = 0; i < properties->n; i++) {
        buf_addf(out, "%s%.*s = ", i ? " AND " : " WITH ", (int)properties->items[i].name.n, properties->items[i].name.p);
        cql_term_write(out, properties->items[i].value);
    }
}

static void show_select(buf *out, const cql_select *s) {
    buf_addf(out, "%s%s%s", s->json ? " JSON" : "", s->distinct ? " DISTINCT" : "", s->star ? " *" : " ");
    for (uint32_t i = 0; i < s->selectors_n; i++) {
        buf_add_slice(out, i ? SLICE_LIT(", ") : SLICE_EMPTY);
        cql_term_write(out, s->selectors[i].term);
        if (s->selectors[i].alias.n) {
            buf_add_lit(out, " AS ");
            cql_name_write(out, s->selectors[i].alias);
        }
    }
    buf_add_lit(out, " FROM ");
    show_name(out, &s->table);
    show_relations(out, " WHERE ", s->where, s->where_n);
    for (uint32_t i = 0; i < s->group_n; i++) {
        show_term(out, i ? ", " : " GROUP BY ", s->group[i]);
    }
    show_order(out, " ORDER BY ", s->order, s->order_n);
    show_term(out, " PER PARTITION LIMIT ", s->partition_limit);
    show_term(out, " LIMIT ", s->limit);
    buf_add_slice(out, s->allow_filtering ? SLICE_LIT(" ALLOW FILTERING") : SLICE_EMPTY);
}

static void show_insert(buf *out, const cql_insert *s) {
    buf_add_lit(out, " INTO ");
    show_name(out, &s->table);
    show_term(out, " JSON ", s->json);
    buf_add_slice(out, s->default_unset ? SLICE_LIT(" DEFAULT UNSET") : SLICE_EMPTY);
    for (uint32_t i = 0; i < s->n; i++) {
        buf_add_slice(out, i ? SLICE_LIT(", ") : SLICE_LIT(" "));
        cql_name_write(out, s->columns[i]);
        show_term(out, " = ", s->values[i]);
    }
    show_if(out, &s->ifs);
    show_using(out, &s->usings);
}

static void show_assignment(buf *out, const cql_assignment *a) {
    static const char *const operators[] = {" = ", " += ", " -= ", " =+ ", " = ", " = "};
    cql_name_write(out, a->column);
    if (a->key) {
        show_term(out, "[", a->key);
        buf_add_byte(out, ']');
    }
    if (a->field.n) {
        buf_add_byte(out, '.');
        cql_name_write(out, a->field);
    }
    show_term(out, operators[a->kind], a->value);
}

static void show_update(buf *out, const cql_update *s) {
    buf_add_byte(out, ' ');
    show_name(out, &s->table);
    show_using(out, &s->usings);
    for (uint32_t i = 0; i < s->assignments_n; i++) {
        buf_add_slice(out, i ? SLICE_LIT(", ") : SLICE_LIT(" SET "));
        show_assignment(out, &s->assignments[i]);
    }
    show_relations(out, " WHERE ", s->where, s->where_n);
    show_if(out, &s->ifs);
}

static void show_delete(buf *out, const cql_delete *s) {
    for (uint32_t i = 0; i < s->deletions_n; i++) {
        const cql_deletion *d = &s->deletions[i];
        buf_add_slice(out, i ? SLICE_LIT(", ") : SLICE_LIT(" "));
        cql_name_write(out, d->column);
        if (d->key) {
            show_term(out, "[", d->key);
            buf_add_byte(out, ']');
        }
        buf_addf(out, "%s%.*s", d->field.n ? "." : "", (int)d->field.n, d->field.p);
    }
    buf_add_lit(out, " FROM ");
    show_name(out, &s->table);
    show_using(out, &s->usings);
    show_relations(out, " WHERE ", s->where, s->where_n);
    show_if(out, &s->ifs);
}

static void show_statement(buf *out, const cql_statement *s);

static void show_batch(buf *out, const cql_batch *s) {
    static const char *const kinds[] = {"", " UNLOGGED", " COUNTER"};
    buf_add_slice(out, slice_str(kinds[s->kind]));
    show_using(out, &s->usings);
    for (uint32_t i = 0; i < s->n; i++) {
        buf_add_lit(out, "; ");
        show_statement(out, s->statements[i]);
    }
}

static void show_columns(buf *out, const cql_column_definition *columns, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        buf_add_slice(out, i ? SLICE_LIT(", ") : SLICE_EMPTY);
        cql_name_write(out, columns[i].name);
        buf_add_byte(out, ' ');
        cql_type_write(out, columns[i].type);
        buf_add_slice(out, columns[i].is_static ? SLICE_LIT(" STATIC") : SLICE_EMPTY);
    }
}

static void show_key(buf *out, const slice *partition, uint32_t partition_n, const slice *clustering, uint32_t clustering_n) {
    buf_add_lit(out, " KEY ((");
    show_names(out, partition, partition_n);
    buf_add_slice(out, clustering_n ? SLICE_LIT("), ") : SLICE_LIT(")"));
    show_names(out, clustering, clustering_n);
    buf_add_byte(out, ')');
}

static void show_create_table(buf *out, const cql_create_table *s) {
    buf_addf(out, "%s ", s->if_not_exists ? " IF NOT EXISTS" : "");
    show_name(out, &s->table);
    buf_add_lit(out, " (");
    show_columns(out, s->columns, s->columns_n);
    buf_add_byte(out, ')');
    show_key(out, s->partition, s->partition_n, s->clustering, s->clustering_n);
    show_order(out, " ORDER ", s->order, s->order_n);
    buf_add_slice(out, s->compact ? SLICE_LIT(" COMPACT") : SLICE_EMPTY);
    show_properties(out, &s->properties);
}

static void show_alter(buf *out, const cql_alter *s) {
    static const char *const kinds[] = {" ADD ", " DROP ", " RENAME ", " TYPE ", "", " DROP COMPACT"};
    buf_add_byte(out, ' ');
    show_name(out, &s->table);
    buf_add_slice(out, slice_str(kinds[s->kind]));
    show_columns(out, s->columns, s->columns_n);
    show_names(out, s->dropped, s->dropped_n);
    show_term(out, " USING TIMESTAMP ", s->dropped_at);
    for (uint32_t i = 0; i < s->renames_n; i++) {
        buf_addf(out, "%s%.*s TO %.*s", i ? ", " : "", (int)s->renames[i].from.n, s->renames[i].from.p, (int)s->renames[i].to.n,
                 s->renames[i].to.p);
    }
    show_properties(out, &s->properties);
}

static void show_index(buf *out, const cql_create_index *s) {
    static const char *const targets[] = {"", "values ", "keys ", "entries ", "full "};
    buf_addf(out, "%s%s %.*s ON ", s->custom ? " CUSTOM" : "", s->if_not_exists ? " IF NOT EXISTS" : "", (int)s->name.n, s->name.p);
    show_name(out, &s->table);
    for (uint32_t i = 0; i < s->columns_n; i++) {
        buf_addf(out, "%s%s%.*s", i ? ", " : " ", targets[s->targets[i]], (int)s->columns[i].n, s->columns[i].p);
    }
    buf_addf(out, "%s%.*s", s->class_name.n ? " USING " : "", (int)s->class_name.n, s->class_name.p);
    show_properties(out, &s->properties);
}

static void show_view(buf *out, const cql_create_view *s) {
    buf_add_byte(out, ' ');
    show_name(out, &s->view);
    buf_add_lit(out, " OF ");
    show_name(out, &s->table);
    buf_addf(out, " WHERE [%.*s]", (int)s->where_text.n, s->where_text.p);
    show_key(out, s->partition, s->partition_n, s->clustering, s->clustering_n);
    show_order(out, " ORDER ", s->order, s->order_n);
    show_properties(out, &s->properties);
}

static void show_types(buf *out, const cql_type *const *types, uint32_t n) {
    buf_add_byte(out, '(');
    for (uint32_t i = 0; i < n; i++) {
        buf_add_slice(out, i ? SLICE_LIT(", ") : SLICE_EMPTY);
        cql_type_write(out, types[i]);
    }
    buf_add_byte(out, ')');
}

static void show_function(buf *out, const cql_create_function *s) {
    buf_addf(out, "%s ", s->or_replace ? " OR REPLACE" : "");
    show_name(out, &s->function);
    show_types(out, s->arguments, s->arguments_n);
    buf_addf(out, "%s RETURNS ", s->called_on_null ? " CALLED" : "");
    cql_type_write(out, s->returns);
    buf_addf(out, " %.*s [%.*s]", (int)s->language.n, s->language.p, (int)s->body.n, s->body.p);
}

static void show_aggregate(buf *out, const cql_create_aggregate *s) {
    buf_add_byte(out, ' ');
    show_name(out, &s->aggregate);
    show_types(out, s->arguments, s->arguments_n);
    buf_addf(out, " %.*s ", (int)s->state_function.n, s->state_function.p);
    cql_type_write(out, s->state);
    buf_addf(out, " %.*s", (int)s->final_function.n, s->final_function.p);
    show_term(out, " ", s->initial);
}

static void show_drop(buf *out, const cql_drop *s) {
    buf_addf(out, "%s ", s->if_exists ? " IF EXISTS" : "");
    buf_addf(out, "%.*s%s", (int)s->name.n, s->name.p, s->name.n && s->target.name.n ? " ON " : "");
    show_name(out, &s->target);
    if (s->has_arguments) {
        show_types(out, s->arguments, s->arguments_n);
    }
}

static void show_role(buf *out, const cql_role_statement *s) {
    buf_addf(out, "%s %.*s%s%.*s", s->conditional ? " IF" : "", (int)s->name.n, s->name.p, s->has_password ? " PASSWORD " : "",
             (int)s->password.n, s->password.p);
    buf_addf(out, "%s%s", s->has_superuser ? (s->superuser ? " SUPERUSER" : " NOSUPERUSER") : "",
             s->has_login ? (s->login ? " LOGIN" : " NOLOGIN") : "");
    show_names(out, s->datacenters, s->datacenters_n);
    show_term(out, " ", s->options);
}

static void show_grant(buf *out, const cql_grant *s) {
    buf_addf(out, "%s", s->all ? " ALL" : "");
    for (uint32_t i = 0; i < s->permissions_n; i++) {
        buf_addf(out, " %.*s", (int)s->permissions[i].n, s->permissions[i].p);
    }
    buf_addf(out, " %d ", s->resource_kind);
    show_name(out, &s->resource);
    buf_addf(out, " [%.*s] [%.*s]%s", (int)s->role.n, s->role.p, (int)s->grantee.n, s->grantee.p, s->no_recursive ? " NORECURSIVE" : "");
}

static void show_keyspace(buf *out, const cql_keyspace_statement *s) {
    buf_addf(out, "%s ", s->if_not_exists ? " IF" : "");
    cql_name_write(out, s->name);
    show_properties(out, &s->properties);
}

static void show_statement(buf *out, const cql_statement *s) {
    buf_add_slice(out, slice_str(cql_verb_text(s->verb)));
    switch (s->verb) {
    case CQL_SELECT:
        show_select(out, &s->select);
        break;
    case CQL_INSERT:
        show_insert(out, &s->insert);
        break;
    case CQL_UPDATE:
        show_update(out, &s->update);
        break;
    case CQL_DELETE:
        show_delete(out, &s->delete);
        break;
    case CQL_BATCH:
        show_batch(out, &s->batch);
        break;
    case CQL_CREATE_KEYSPACE:
    case CQL_ALTER_KEYSPACE:
        show_keyspace(out, &s->keyspace);
        break;
    case CQL_CREATE_TABLE:
        show_create_table(out, &s->create_table);
        break;
    case CQL_ALTER_TABLE:
    case CQL_ALTER_UDT:
    case CQL_ALTER_VIEW:
        show_alter(out, &s->alter);
        break;
    case CQL_CREATE_TYPE:
        buf_add_byte(out, ' ');
        show_name(out, &s->create_type.type);
        buf_add_lit(out, " (");
        show_columns(out, s->create_type.fields, s->create_type.fields_n);
        buf_add_byte(out, ')');
        break;
    case CQL_CREATE_INDEX:
        show_index(out, &s->create_index);
        break;
    case CQL_CREATE_VIEW:
        show_view(out, &s->create_view);
        break;
    case CQL_CREATE_FUNCTION:
        show_function(out, &s->create_function);
        break;
    case CQL_CREATE_AGGREGATE:
        show_aggregate(out, &s->create_aggregate);
        break;
    case CQL_CREATE_TRIGGER:
        buf_addf(out, " %.*s ON ", (int)s->create_trigger.name.n, s->create_trigger.name.p);
        show_name(out, &s->create_trigger.table);
        buf_addf(out, " %.*s", (int)s->create_trigger.class_name.n, s->create_trigger.class_name.p);
        break;
    case CQL_CREATE_ROLE:
    case CQL_ALTER_ROLE:
        show_role(out, &s->role);
        break;
    case CQL_LIST_ROLES:
    case CQL_LIST_USERS:
    case CQL_GRANT_ROLE:
    case CQL_REVOKE_ROLE:
    case CQL_GRANT:
    case CQL_REVOKE:
    case CQL_LIST_PERMISSIONS:
        show_grant(out, &s->grant);
        break;
    case CQL_DESCRIBE:
        buf_addf(out, " %d ", s->describe.kind);
        show_name(out, &s->describe.target);
        break;
    default:
        show_drop(out, &s->drop);
    }
}
