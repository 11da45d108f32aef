/* parse_schema.c — CREATE, but for functions and roles. */
#include "cql/parse_int.h"

/* ---- properties ---- */

static bool property_value(cql__parser *p, const cql_term **value_out) {
    bool word = p->now.kind == CQL_TOKEN_NAME && !cql__is_word(p, "true") && !cql__is_word(p, "false") && !cql__is_word(p, "NaN") &&
                !cql__is_word(p, "Infinity");
    if (!word) {
        return cql__simple_term(p, value_out);
    }
    cql_term *t = arena_new(p->memory, cql_term); /* a bare word is a string: WITH compression = none */
    *value_out = t;
    *t = (cql_term){.kind = CQL_TERM_STRING, .text = p->now.text, .line = p->now.line, .column = p->now.column};
    return cql__is_name(p) ? cql__advance(p) : cql__fail_input(p);
}

bool cql__property(cql__parser *p, cql__list *list) {
    cql_property *property = cql__push(p, list, sizeof *property);
    return property && cql__name(p, &property->name) && cql__expect(p, "=") && property_value(p, &property->value);
}

bool cql__properties(cql__parser *p, cql_properties *properties_out) {
    cql__list list = {0};
    do {
        if (!cql__property(p, &list)) {
            return false;
        }
    } while (cql__accept_word(p, "AND"));
    properties_out->items = list.items;
    properties_out->n = list.n;
    return p->code == OK;
}

/* ---- keyspaces ---- */

static bool create_keyspace(cql__parser *p, cql_statement *s) {
    s->verb = CQL_CREATE_KEYSPACE;
    return cql__if_not_exists(p, &s->keyspace.if_not_exists) && cql__name(p, &s->keyspace.name) &&
           (!cql__accept_word(p, "WITH") || cql__properties(p, &s->keyspace.properties)) && p->code == OK;
}

/* ---- tables ---- */

typedef struct primary_key {
    const slice *partition, *clustering;
    uint32_t partition_n, clustering_n;
} primary_key;

/* ((a, b), c, d) after PRIMARY KEY */
static bool key_columns(cql__parser *p, primary_key *key) {
    if (!cql__expect(p, "(")) {
        return false;
    }
    if (cql__accept(p, "(")) {
        if (!cql__names(p, &key->partition, &key->partition_n) || !cql__expect(p, ")")) {
            return false;
        }
    } else {
        slice *name = arena_array(p->memory, slice, 1);
        key->partition = name;
        key->partition_n = 1;
        if (!cql__name(p, name)) {
            return false;
        }
    }
    return (!cql__accept(p, ",") || cql__names(p, &key->clustering, &key->clustering_n)) && cql__expect(p, ")");
}

static bool column_definition(cql__parser *p, cql_create_table *s, cql__list *columns, primary_key *key) {
    cql_column_definition *c = cql__push(p, columns, sizeof *c);
    if (!c || !cql__name(p, &c->name) || !cql__type(p, &c->type)) {
        return false;
    }
    c->is_static = cql__accept_word(p, "STATIC");
    if (cql__accept_words(p, "PRIMARY", "KEY")) {
        c->primary_key = true;
        slice *name = arena_array(p->memory, slice, 1);
        *name = c->name;
        *key = (primary_key){.partition = name, .partition_n = 1};
        s->primary_keys++;
    }
    return p->code == OK;
}

static bool table_columns(cql__parser *p, cql_create_table *s) {
    cql__list columns = {0};
    primary_key key = {0};
    if (!cql__expect(p, "(")) {
        return false;
    }
    do {
        if (cql__accept_words(p, "PRIMARY", "KEY")) {
            s->primary_keys++;
            if (!key_columns(p, &key)) {
                return false;
            }
        } else if (p->code != OK || !column_definition(p, s, &columns, &key)) {
            return false;
        }
    } while (cql__accept(p, ","));
    s->columns = columns.items;
    s->columns_n = columns.n;
    s->partition = key.partition;
    s->partition_n = key.partition_n;
    s->clustering = key.clustering;
    s->clustering_n = key.clustering_n;
    return cql__expect(p, ")");
}

typedef struct table_options {
    const cql_order *order;
    uint32_t order_n;
    bool compact;
    cql_properties properties;
} table_options;

static bool table_option(cql__parser *p, table_options *options, cql__list *properties) {
    if (cql__accept_words(p, "COMPACT", "STORAGE")) {
        options->compact = true;
        return p->code == OK;
    }
    if (cql__accept_words(p, "CLUSTERING", "ORDER")) {
        return cql__expect_word(p, "BY") && cql__expect(p, "(") && cql__order_by(p, &options->order, &options->order_n) &&
               cql__expect(p, ")");
    }
    return p->code == OK && cql__property(p, properties);
}

static bool with_table_options(cql__parser *p, table_options *options) {
    cql__list list = {0};
    if (!cql__accept_word(p, "WITH")) {
        return p->code == OK;
    }
    do {
        if (!table_option(p, options, &list)) {
            return false;
        }
    } while (cql__accept_word(p, "AND"));
    options->properties.items = list.items;
    options->properties.n = list.n;
    return p->code == OK;
}

static bool create_table(cql__parser *p, cql_statement *statement) {
    cql_create_table *s = &statement->create_table;
    table_options options = {0};
    statement->verb = CQL_CREATE_TABLE;
    if (!cql__if_not_exists(p, &s->if_not_exists) || !cql__table_name(p, &s->table) || !table_columns(p, s) ||
        !with_table_options(p, &options)) {
        return false;
    }
    s->order = options.order;
    s->order_n = options.order_n;
    s->compact = options.compact;
    s->properties = options.properties;
    return true;
}

/* ---- views ---- */

static bool view_select(cql__parser *p, cql_create_view *s) {
    if (!cql__expect_word(p, "AS") || !cql__expect_word(p, "SELECT") || !cql__selectors(p, &s->selectors, &s->selectors_n, &s->star) ||
        !cql__expect_word(p, "FROM") || !cql__table_name(p, &s->table)) {
        return false;
    }
    if (!cql__accept_word(p, "WHERE")) {
        return p->code == OK;
    }
    const char *from = p->now.text.p;
    if (!cql__where(p, &s->where, &s->where_n)) {
        return false;
    }
    s->where_text = slice_trim(slice_of(from, (size_t)(p->now.text.p - from)));
    return true;
}

static bool create_view(cql__parser *p, cql_statement *statement) {
    cql_create_view *s = &statement->create_view;
    primary_key key = {0};
    table_options options = {0};
    statement->verb = CQL_CREATE_VIEW;
    if (!cql__expect_word(p, "VIEW") || !cql__if_not_exists(p, &s->if_not_exists) || !cql__table_name(p, &s->view) || !view_select(p, s) ||
        !cql__expect_word(p, "PRIMARY") || !cql__expect_word(p, "KEY") || !key_columns(p, &key) || !with_table_options(p, &options)) {
        return false;
    }
    s->partition = key.partition;
    s->partition_n = key.partition_n;
    s->clustering = key.clustering;
    s->clustering_n = key.clustering_n;
    s->order = options.order;
    s->order_n = options.order_n;
    s->properties = options.properties;
    return true;
}

/* ---- types, indexes, triggers ---- */

static bool create_type(cql__parser *p, cql_statement *statement) {
    cql_create_type *s = &statement->create_type;
    cql__list list = {0};
    statement->verb = CQL_CREATE_TYPE;
    if (!cql__if_not_exists(p, &s->if_not_exists) || !cql__table_name(p, &s->type) || !cql__expect(p, "(")) {
        return false;
    }
    do {
        cql_column_definition *field = cql__push(p, &list, sizeof *field);
        if (!field || !cql__name(p, &field->name) || !cql__type(p, &field->type)) {
            return false;
        }
    } while (cql__accept(p, ","));
    s->fields = list.items;
    s->fields_n = list.n;
    return cql__expect(p, ")");
}

static bool index_target(cql__parser *p, slice *column, cql_index_target *target) {
    static const char *const words[] = {NULL, "VALUES", "KEYS", "ENTRIES", "FULL"};
    for (size_t i = 1; i < sizeof words / sizeof *words; i++) {
        if (cql__is_word(p, words[i]) && cql__next_is(p, "(")) {
            *target = (cql_index_target)i;
            return cql__advance(p) && cql__advance(p) && cql__name(p, column) && cql__expect(p, ")");
        }
    }
    return cql__name(p, column);
}

static bool index_targets(cql__parser *p, cql_create_index *s) {
    cql__list columns = {0}, targets = {0};
    if (!cql__expect(p, "(")) {
        return false;
    }
    while (!cql__is(p, ")")) {
        slice *column = cql__push(p, &columns, sizeof *column);
        cql_index_target *target = cql__push(p, &targets, sizeof *target);
        if (!column || !target || (columns.n > 1 && !cql__expect(p, ",")) || !index_target(p, column, target)) {
            return false;
        }
    }
    s->columns = columns.items;
    s->targets = targets.items;
    s->columns_n = columns.n;
    return cql__expect(p, ")");
}

static bool create_index(cql__parser *p, cql_statement *statement, bool custom) {
    cql_create_index *s = &statement->create_index;
    statement->verb = CQL_CREATE_INDEX;
    s->custom = custom;
    if (!cql__if_not_exists(p, &s->if_not_exists) || (!cql__is_word(p, "ON") && !cql__name(p, &s->name)) || !cql__expect_word(p, "ON") ||
        !cql__table_name(p, &s->table) || !index_targets(p, s)) {
        return false;
    }
    return (!cql__accept_word(p, "USING") || cql__string(p, &s->class_name)) &&
           (!cql__accept_word(p, "WITH") || cql__properties(p, &s->properties)) && p->code == OK;
}

static bool create_trigger(cql__parser *p, cql_statement *statement) {
    cql_create_trigger *s = &statement->create_trigger;
    statement->verb = CQL_CREATE_TRIGGER;
    return cql__if_not_exists(p, &s->if_not_exists) && cql__name(p, &s->name) && cql__expect_word(p, "ON") &&
           cql__table_name(p, &s->table) && cql__expect_word(p, "USING") && cql__string(p, &s->class_name);
}

static bool create_replaceable(cql__parser *p, cql_statement *s) {
    bool replace = cql__accept_words(p, "OR", "REPLACE");
    if (cql__accept_word(p, "FUNCTION")) {
        return cql__create_function(p, s, replace);
    }
    return cql__accept_word(p, "AGGREGATE") ? cql__create_aggregate(p, s, replace) : cql__fail_input(p);
}

bool cql__create(cql__parser *p, cql_statement *s) {
    if (cql__accept_word(p, "KEYSPACE") || cql__accept_word(p, "SCHEMA")) {
        return create_keyspace(p, s);
    }
    if (cql__accept_word(p, "TABLE") || cql__accept_word(p, "COLUMNFAMILY")) {
        return create_table(p, s);
    }
    if (cql__accept_word(p, "TYPE")) {
        return create_type(p, s);
    }
    if (cql__accept_words(p, "CUSTOM", "INDEX")) {
        return create_index(p, s, true);
    }
    if (cql__accept_word(p, "INDEX")) {
        return create_index(p, s, false);
    }
    if (cql__accept_word(p, "MATERIALIZED")) {
        return create_view(p, s);
    }
    if (cql__accept_word(p, "TRIGGER")) {
        return create_trigger(p, s);
    }
    if (cql__is_word(p, "ROLE") || cql__is_word(p, "USER")) {
        bool user = cql__is_word(p, "USER");
        return cql__advance(p) && cql__create_role(p, s, user);
    }
    return create_replaceable(p, s);
}
