/* ast.h — the tree of a CQL statement.
 *
 * The parser makes it (cql/parse.h); nothing in it is checked against a schema. Nodes live in the arena that was given to the parser, and
 * names and texts point into it or into the statement's text. Names are folded: `Users` is "users", `"Users"` is "Users". An empty slice is
 * a name or text that was not given, NULL a node that was not given. Lists are arrays with their length beside them. */
#pragma once

#include "cql/type.h"

/* ---- terms and selectors ----
 *
 * A term is a value in a statement; a selector is what SELECT computes for each row. Both are expressions of the same nodes: columns and
 * what is made of them occur in selectors only. */

typedef enum cql_term_kind {
    CQL_TERM_NULL,
    CQL_TERM_STRING,   /* `text`: the string without quotes */
    CQL_TERM_INTEGER,  /* `text`: the digits, perhaps with a sign; of any length */
    CQL_TERM_FLOAT,    /* `text`: as written, or NaN, Infinity, -Infinity */
    CQL_TERM_BOOLEAN,  /* `text`: true or false */
    CQL_TERM_UUID,     /* `text`: as written */
    CQL_TERM_HEX,      /* `text`: the digits after 0x */
    CQL_TERM_DURATION, /* `text`: as written, with its sign */
    CQL_TERM_BIND,     /* `index`: which marker of the statement */
    CQL_TERM_LIST,     /* [a, b] */
    CQL_TERM_SET,      /* {a, b}; {} too, which may become a map */
    CQL_TERM_MAP,      /* {k: v}: `items` are keys and values in turn */
    CQL_TERM_UDT,      /* {name: v}: `names` beside `items` */
    CQL_TERM_TUPLE,    /* (a, b). One element in parentheses is a tuple too; for a receiver that is none, it is that element */
    CQL_TERM_FUNCTION, /* `keyspace`.`name`(`items`); count(*) has no items and `star` set */
    CQL_TERM_HINT,     /* (type) x: `type`, `items[0]` */
    CQL_TERM_CAST,     /* cast(x AS type): `type`, `items[0]` */
    CQL_TERM_NEGATE,   /* -x */
    CQL_TERM_ADD,      /* x + y, and so on: `items[0]`, `items[1]` */
    CQL_TERM_SUBTRACT,
    CQL_TERM_MULTIPLY,
    CQL_TERM_DIVIDE,
    CQL_TERM_MODULO,
    /* in selectors only */
    CQL_TERM_COLUMN,       /* `name` */
    CQL_TERM_FIELD,        /* x.name */
    CQL_TERM_ELEMENT,      /* x[i]: `items[0]`, `items[1]` */
    CQL_TERM_SLICE,        /* x[i..j]: `items[0]` to `items[2]`; an open end is NULL */
    CQL_TERM_WRITETIME,    /* writetime(items[0]): a column, element or field */
    CQL_TERM_MAXWRITETIME, /* maxwritetime(items[0]) */
    CQL_TERM_TTL,          /* ttl(items[0]) */
} cql_term_kind;

typedef struct cql_term cql_term;
struct cql_term {
    cql_term_kind kind;
    bool star;             /* count(*) */
    uint32_t index;        /* of a bind marker */
    uint32_t n;            /* items */
    uint32_t line, column; /* where it begins; lines from 1, columns from 0 */
    slice text;            /* of a constant */
    slice keyspace, name;
    const slice *names; /* of a user type's literal */
    const cql_term **items;
    const cql_type *type; /* unresolved */
};

typedef struct cql_selector {
    const cql_term *term;
    slice alias;
} cql_selector;

/* ---- restrictions ---- */

typedef enum cql_operator {
    CQL_EQ,
    CQL_LT,
    CQL_LE,
    CQL_GT,
    CQL_GE,
    CQL_NE,
    CQL_IN,
    CQL_CONTAINS,
    CQL_CONTAINS_KEY,
    CQL_LIKE,
    CQL_IS_NOT_NULL,
    CQL_OPERATORS
} cql_operator;

const char *cql_operator_text(cql_operator op); /* "=", "CONTAINS KEY", … */

typedef enum cql_relation_kind {
    CQL_RELATION_COLUMN,   /* c = v */
    CQL_RELATION_ELEMENT,  /* c[k] = v; in conditions also l[i] */
    CQL_RELATION_FIELD,    /* u.f = v; in conditions only */
    CQL_RELATION_TUPLE,    /* (a, b) = v */
    CQL_RELATION_TOKEN,    /* token(a, b) > v */
    CQL_RELATION_FUNCTION, /* name() = v: COSMOS_CHANGEFEED_START_TIME */
} cql_relation_kind;

/* One relation of WHERE, or one condition of IF. */
typedef struct cql_relation {
    cql_relation_kind kind;
    cql_operator op;
    uint32_t line, column;
    const slice *columns; /* one, but for tuples and tokens */
    uint32_t columns_n;
    slice field;           /* CQL_RELATION_FIELD */
    const cql_term *key;   /* CQL_RELATION_ELEMENT: what is between the brackets */
    const cql_term *value; /* the right side; of IN a bind marker for the whole list, or NULL */
    const cql_term **in;   /* IN (…): the values, if `value` is NULL */
    uint32_t in_n;
} cql_relation;

/* ---- parts of statements ---- */

typedef struct cql_table_name {
    slice keyspace; /* empty: the current one */
    slice name;
} cql_table_name;

/* WITH name = value. A map {'class': …} is a CQL_TERM_MAP of constants; everything else is one constant. */
typedef struct cql_property {
    slice name;
    const cql_term *value;
} cql_property;

typedef struct cql_properties {
    const cql_property *items;
    uint32_t n;
} cql_properties;

const cql_term *cql_property_find(const cql_properties *properties, slice name); /* NULL: not given */

/* USING TIMESTAMP t AND TTL s; each NULL if not given. */
typedef struct cql_using {
    const cql_term *timestamp;
    const cql_term *ttl;
} cql_using;

/* IF NOT EXISTS, IF EXISTS, IF condition AND …. */
typedef struct cql_if {
    bool exists, not_exists;
    const cql_relation *conditions;
    uint32_t n;
} cql_if;

/* What UPDATE sets. `left` is NULL but for the forms that have it. */
typedef enum cql_assignment_kind {
    CQL_ASSIGN,         /* c = value */
    CQL_ASSIGN_ADD,     /* c = c + value, c += value: counter, list, set, map, number */
    CQL_ASSIGN_REMOVE,  /* c = c - value, c -= value */
    CQL_ASSIGN_PREPEND, /* c = value + c: list */
    CQL_ASSIGN_ELEMENT, /* c[key] = value */
    CQL_ASSIGN_FIELD,   /* c.field = value */
} cql_assignment_kind;

typedef struct cql_assignment {
    cql_assignment_kind kind;
    slice column, field;
    const cql_term *key;
    const cql_term *value;
} cql_assignment;

/* What DELETE removes: c, c[key] or c.field. */
typedef struct cql_deletion {
    slice column, field;
    const cql_term *key;
} cql_deletion;

typedef struct cql_order {
    slice column;
    bool descending;
} cql_order;

typedef struct cql_column_definition {
    slice name;
    const cql_type *type; /* unresolved */
    bool is_static;
    bool primary_key; /* PRIMARY KEY behind the column */
} cql_column_definition;

typedef struct cql_rename {
    slice from, to;
} cql_rename;

/* ---- statements ---- */

typedef struct cql_select {
    bool json, distinct, allow_filtering;
    bool star; /* SELECT *: no selectors */
    const cql_selector *selectors;
    uint32_t selectors_n;
    cql_table_name table;
    const cql_relation *where;
    uint32_t where_n;
    const cql_term **group; /* columns; a function call is a term too */
    uint32_t group_n;
    const cql_order *order;
    uint32_t order_n;
    const cql_term *limit, *partition_limit;
} cql_select;

typedef struct cql_insert {
    cql_table_name table;
    const slice *columns;
    const cql_term **values;
    uint32_t n;
    const cql_term *json; /* INSERT JSON: a string or a marker; then there are no columns */
    bool default_unset;   /* DEFAULT UNSET: columns that the JSON lacks stay as they are */
    cql_using usings;
    cql_if ifs;
} cql_insert;

typedef struct cql_update {
    cql_table_name table;
    cql_using usings;
    const cql_assignment *assignments;
    uint32_t assignments_n;
    const cql_relation *where;
    uint32_t where_n;
    cql_if ifs;
} cql_update;

typedef struct cql_delete {
    cql_table_name table;
    cql_using usings; /* no TTL */
    const cql_deletion *deletions;
    uint32_t deletions_n; /* 0: whole rows */
    const cql_relation *where;
    uint32_t where_n;
    cql_if ifs;
} cql_delete;

typedef struct cql_statement cql_statement;

typedef enum cql_batch_kind { CQL_BATCH_LOGGED, CQL_BATCH_UNLOGGED, CQL_BATCH_COUNTER } cql_batch_kind;

typedef struct cql_batch {
    cql_batch_kind kind;
    cql_using usings;
    const cql_statement **statements; /* INSERT, UPDATE, DELETE */
    uint32_t n;
} cql_batch;

/* CREATE and ALTER KEYSPACE. */
typedef struct cql_keyspace_statement {
    slice name;
    bool if_not_exists; /* for ALTER: IF EXISTS */
    cql_properties properties;
} cql_keyspace_statement;

typedef struct cql_create_table {
    cql_table_name table;
    bool if_not_exists;
    const cql_column_definition *columns;
    uint32_t columns_n;
    const slice *partition; /* PRIMARY KEY ((a, b), c, d); a PRIMARY KEY behind a column is here too */
    uint32_t partition_n;
    const slice *clustering;
    uint32_t clustering_n;
    uint32_t primary_keys;  /* how many PRIMARY KEYs there are; not 1 is an error for the schema to report */
    const cql_order *order; /* CLUSTERING ORDER BY */
    uint32_t order_n;
    bool compact;
    cql_properties properties; /* of which `id` is one */
} cql_create_table;

typedef enum cql_alter_kind {
    CQL_ALTER_ADD,
    CQL_ALTER_DROP,
    CQL_ALTER_RENAME,
    CQL_ALTER_TYPE,
    CQL_ALTER_OPTIONS,
    CQL_ALTER_DROP_COMPACT
} cql_alter_kind;

/* ALTER TABLE, ALTER TYPE (ADD, RENAME, TYPE), ALTER MATERIALIZED VIEW (OPTIONS). */
typedef struct cql_alter {
    cql_table_name table;  /* the type's or view's name */
    bool if_exists;        /* of the table */
    bool if_not_exists;    /* ADD IF NOT EXISTS */
    bool columns_if_exist; /* DROP, RENAME IF EXISTS */
    cql_alter_kind kind;
    const cql_column_definition *columns; /* ADD; TYPE has one */
    uint32_t columns_n;
    const slice *dropped;
    uint32_t dropped_n;
    const cql_term *dropped_at; /* DROP … USING TIMESTAMP */
    const cql_rename *renames;
    uint32_t renames_n;
    cql_properties properties;
} cql_alter;

typedef struct cql_create_type {
    cql_table_name type;
    bool if_not_exists;
    const cql_column_definition *fields;
    uint32_t fields_n;
} cql_create_type;

typedef enum cql_index_target { CQL_INDEX_SIMPLE, CQL_INDEX_VALUES, CQL_INDEX_KEYS, CQL_INDEX_ENTRIES, CQL_INDEX_FULL } cql_index_target;

typedef struct cql_create_index {
    slice name; /* empty: made of table and column; its keyspace is the table's */
    bool if_not_exists, custom;
    cql_table_name table;
    const slice *columns;
    const cql_index_target *targets;
    uint32_t columns_n;
    slice class_name; /* USING '…' */
    cql_properties properties;
} cql_create_index;

typedef struct cql_create_view {
    cql_table_name view, table;
    bool if_not_exists;
    bool star;
    const cql_selector *selectors;
    uint32_t selectors_n;
    const cql_relation *where;
    uint32_t where_n;
    slice where_text; /* as system_schema.views has it */
    const slice *partition;
    uint32_t partition_n;
    const slice *clustering;
    uint32_t clustering_n;
    const cql_order *order;
    uint32_t order_n;
    cql_properties properties;
} cql_create_view;

typedef struct cql_create_function {
    cql_table_name function;
    bool or_replace, if_not_exists;
    const slice *argument_names;
    const cql_type *const *arguments;
    uint32_t arguments_n;
    bool called_on_null;
    const cql_type *returns;
    slice language, body;
} cql_create_function;

typedef struct cql_create_aggregate {
    cql_table_name aggregate;
    bool or_replace, if_not_exists;
    const cql_type *const *arguments;
    uint32_t arguments_n;
    slice state_function, final_function;
    const cql_type *state;
    const cql_term *initial;
} cql_create_aggregate;

/* DROP of anything, TRUNCATE, USE: what it names. */
typedef struct cql_drop {
    cql_table_name target; /* a keyspace is the keyspace alone; a trigger's name is `name` */
    bool if_exists;
    slice name;                       /* of a trigger, role or user */
    bool has_arguments;               /* DROP FUNCTION f(int): `arguments` count */
    const cql_type *const *arguments; /* of a function or aggregate */
    uint32_t arguments_n;
} cql_drop;

typedef struct cql_create_trigger {
    slice name;
    bool if_not_exists;
    cql_table_name table;
    slice class_name;
} cql_create_trigger;

/* CREATE and ALTER ROLE and USER. */
typedef struct cql_role_statement {
    slice name;
    bool conditional; /* IF NOT EXISTS; for ALTER, IF EXISTS */
    bool user;        /* CREATE USER: may log in */
    bool has_password, password_hashed;
    slice password;
    bool has_superuser, superuser;
    bool has_login, login;
    const cql_term *options;               /* OPTIONS = {…} */
    bool has_datacenters, all_datacenters; /* ACCESS TO … */
    const slice *datacenters;
    uint32_t datacenters_n;
} cql_role_statement;

typedef enum cql_resource_kind {
    CQL_RESOURCE_NONE,
    CQL_RESOURCE_ALL_KEYSPACES,
    CQL_RESOURCE_KEYSPACE,
    CQL_RESOURCE_ALL_TABLES, /* IN KEYSPACE */
    CQL_RESOURCE_TABLE,
    CQL_RESOURCE_ALL_ROLES,
    CQL_RESOURCE_ROLE,
    CQL_RESOURCE_ALL_FUNCTIONS,
    CQL_RESOURCE_KEYSPACE_FUNCTIONS,
    CQL_RESOURCE_FUNCTION,
    CQL_RESOURCE_ALL_MBEANS,
    CQL_RESOURCE_MBEAN,
} cql_resource_kind;

/* GRANT, REVOKE and LIST of permissions and roles. */
typedef struct cql_grant {
    bool all;                 /* ALL [PERMISSIONS] */
    const slice *permissions; /* "SELECT", in upper case */
    uint32_t permissions_n;
    cql_resource_kind resource_kind;
    cql_table_name resource; /* keyspace and table or function; `name` also of a role or MBean */
    const cql_type *const *arguments;
    uint32_t arguments_n;
    slice role;    /* what is granted, for GRANT role TO …; LIST ROLES has none */
    slice grantee; /* TO, FROM, OF */
    bool no_recursive;
} cql_grant;

typedef enum cql_describe_kind { /* DESCRIBE of Cassandra 4.0; cqlsh of 3.11 does it on the client's side */
                                 CQL_DESCRIBE_KEYSPACES,
                                 CQL_DESCRIBE_KEYSPACE,
                                 CQL_DESCRIBE_SCHEMA,
                                 CQL_DESCRIBE_TABLES,
                                 CQL_DESCRIBE_TABLE,
                                 CQL_DESCRIBE_TYPES,
                                 CQL_DESCRIBE_TYPE,
                                 CQL_DESCRIBE_INDEX,
                                 CQL_DESCRIBE_VIEW,
                                 CQL_DESCRIBE_FUNCTIONS,
                                 CQL_DESCRIBE_FUNCTION,
                                 CQL_DESCRIBE_AGGREGATES,
                                 CQL_DESCRIBE_AGGREGATE,
                                 CQL_DESCRIBE_CLUSTER,
                                 CQL_DESCRIBE_ANYTHING, /* DESCRIBE name */
} cql_describe_kind;

typedef struct cql_describe {
    cql_describe_kind kind;
    cql_table_name target;
    bool full, only, internals;
} cql_describe;

typedef enum cql_verb {
    CQL_SELECT,
    CQL_INSERT,
    CQL_UPDATE,
    CQL_DELETE,
    CQL_BATCH,
    CQL_USE,      /* `drop.target.keyspace` */
    CQL_TRUNCATE, /* `drop.target` */
    CQL_CREATE_KEYSPACE,
    CQL_ALTER_KEYSPACE,
    CQL_DROP_KEYSPACE,
    CQL_CREATE_TABLE,
    CQL_ALTER_TABLE,
    CQL_DROP_TABLE,
    CQL_CREATE_TYPE,
    CQL_ALTER_UDT,
    CQL_DROP_TYPE,
    CQL_CREATE_INDEX,
    CQL_DROP_INDEX,
    CQL_CREATE_VIEW,
    CQL_ALTER_VIEW,
    CQL_DROP_VIEW,
    CQL_CREATE_FUNCTION,
    CQL_DROP_FUNCTION,
    CQL_CREATE_AGGREGATE,
    CQL_DROP_AGGREGATE,
    CQL_CREATE_TRIGGER,
    CQL_DROP_TRIGGER,
    CQL_CREATE_ROLE,
    CQL_ALTER_ROLE,
    CQL_DROP_ROLE, /* and DROP USER */
    CQL_LIST_ROLES,
    CQL_LIST_USERS,
    CQL_GRANT_ROLE,
    CQL_REVOKE_ROLE,
    CQL_GRANT,
    CQL_REVOKE,
    CQL_LIST_PERMISSIONS,
    CQL_DESCRIBE,
    CQL_VERBS
} cql_verb;

const char *cql_verb_text(cql_verb verb); /* "CREATE TABLE" */

/* A bind marker, in order of occurrence; their index is the value's position. */
typedef struct cql_marker {
    slice name; /* of `:name`; empty for `?` */
} cql_marker;

struct cql_statement {
    cql_verb verb;
    const cql_marker *markers; /* of the whole statement; a statement inside a BATCH has none of its own */
    uint32_t markers_n;
    union {
        cql_select select;
        cql_insert insert;
        cql_update update;
        cql_delete delete;
        cql_batch batch;
        cql_keyspace_statement keyspace;
        cql_create_table create_table;
        cql_alter alter;
        cql_create_type create_type;
        cql_create_index create_index;
        cql_create_view create_view;
        cql_create_function create_function;
        cql_create_aggregate create_aggregate;
        cql_create_trigger create_trigger;
        cql_drop drop;
        cql_role_statement role;
        cql_grant grant;
        cql_describe describe;
    };
};
