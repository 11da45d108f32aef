/* schema.h — tables and keyspaces as this front end keeps them, and their cache.
 *
 * A table is a container with the API `cassandra`. Its columns, indexes and options are in the container's memo:
 *
 *   {"id": uuid, "columns": [{"n": name, "m": member, "t": type, "k": kind, "d": descending, "x": dropped_us}, …],
 *    "indexes": [{"n": name, "c": column, "t": target}, …], "options": {name: value, …}, "dropped": [{"n", "t", "k", "us"}, …]}
 *
 * A column's value is in the item's member `m`, which is the column's first name: renaming a key column changes only `n`. A key column
 * whose BSON does not sort (clustering) or identify (partition) has its key text in the member _key too (cql/value.h).
 *
 * A keyspace is a database; its user types and options are in the database's memo under "cassandra". A cass_table is one immutable version
 * of a table, counted; the cache holds the newest. Any thread. */
#pragma once

#include "api/cassandra/cassandra_int.h"

#define CASS_META "_cql" /* the item's member with timestamps and times to live: row.h */
#define CASS_KEYS "_key" /* key texts */
#define CASS_TTL "_ttl"  /* seconds until the core removes the item */

/* ---- definitions: what the memo holds ---- */

typedef struct cass_column_definition {
    slice name, member;
    slice type; /* text; user types by name */
    cql_column_kind kind;
    bool descending;
    int64_t dropped_us; /* cells written up to then belong to a column of the same name that was dropped; INT64_MIN: none */
} cass_column_definition;

typedef struct cass_index_definition {
    slice name, column;
    cql_index_target target;
} cass_index_definition;

typedef struct cass_dropped {
    slice name, type;
    cql_column_kind kind;
    int64_t us;
} cass_dropped;

enum { CASS_COLUMNS_MAX = 1024, CASS_INDEXES_MAX = 128, CASS_DROPPED_MAX = 256 };

typedef struct cass_definition {
    slice id;                        /* 16 bytes */
    cass_column_definition *columns; /* partition columns first, then clustering columns, then the rest by name */
    uint32_t columns_n;
    cass_index_definition *indexes;
    uint32_t indexes_n;
    cass_dropped *dropped;
    uint32_t dropped_n;
    slice options; /* BSON */
} cass_definition;

/* Reads a memo; there is room for one more column, index and dropped column. False: it is not one. */
bool cass_definition_read(arena *a, slice memo, cass_definition *definition_out);
MUST_CHECK err cass_definition_write(op *o, const cass_definition *d, slice *memo_out);

/* The container's settings and rows for a definition. */
MUST_CHECK err cass_settings_of(op *o, const cql_type_source *types, slice name, const cass_definition *d, slice *settings_out);
MUST_CHECK err cass_rows_of(op *o, const cql_type_source *types, const cass_definition *d, slice *rows_out);

/* ---- keyspaces ---- */

typedef struct cass_keyspace {
    bool durable_writes;
    slice types; /* BSON: {name: [{"n": field, "t": type}, …]} */
} cass_keyspace;

cass_keyspace cass_keyspace_of(const database *d);
slice cass_keyspace_write(arena *a, const database *d, const cass_keyspace *k); /* the memo: what other front ends keep in it stays */

/* A user type may have several of another, which has several of a third: each is made once and shared, but to walk through one, or to send
 * it, takes all its parts. So the parts are counted. */
enum { CASS_TYPE_PARTS_MAX = 32768 };

/* Finds user types in the memo of a keyspace; types are in the arena. One thread at a time. */
typedef struct cass_types {
    cql_type_source source; /* first */
    arena *arena;
    slice types;
    struct cass_user_type *made;
    unsigned depth;
    uint32_t parts; /* of the types that were found since the last cass_types_check */
} cass_types;
void cass_types_init(cass_types *t, arena *a, slice keyspace, slice types);

/* E_BAD_REQUEST if a type is unknown or has too many parts: any user type of the keyspace, or the column types of a definition together. */
MUST_CHECK err cass_types_check_all(op *o, cass_types *t);
MUST_CHECK err cass_types_check(op *o, cass_types *t, const cass_definition *d);

/* ---- tables ---- */

typedef struct cass_stored {
    slice member;
    bool as_text; /* a key column: its key text is in _key */
    int64_t dropped_us;
} cass_stored;

struct cass_table {
    atomic_uint refs;
    arena arena;
    cql_table table;
    const cass_stored *stored; /* beside table.columns */
    cass_definition definition;
    bool has_static, counters, uses_types;
    bool plain; /* it has neither static nor dropped columns: rows may be plain (plain.h) */
    int32_t default_ttl;
    int32_t gc_grace_s;
    uint64_t serial;        /* of the container's settings */
    uint64_t types_version; /* of the database, if uses_types */
    unsigned char rid[8];
    cass_types types;
    const struct cass_system *system; /* a table of the system's; else NULL */
};

void cass_table_give(const cass_table *t);
const cass_table *cass_table_take(const cass_table *t);

/* Makes a table from a definition, in its own arena. */
MUST_CHECK err cass_table_new(op *o, slice keyspace, slice name, slice memo, slice types, cass_table **table_out);

/* A table from a CREATE TABLE statement of our own, which is correct. */
cass_table *cass_table_of_text(arena *scratch, slice text);

static inline uint32_t cass_column_index(const cass_table *t, const cql_column *c) {
    return (uint32_t)(c - t->table.columns);
}

cass_schemas *cass_schemas_new(void);
void cass_schemas_free(cass_schemas *s);

/* The table of a container, from the cache or its memo, without the user types of its keyspace: E_BAD_REQUEST if it has any. The caller
 * releases it. */
MUST_CHECK err cass_table_of_container(cass_schemas *s, op *o, const container *c, const cass_table **table_out);

/* Finds a table and its container; the caller releases both. E_BAD_REQUEST: "keyspace ks does not exist", "unconfigured table t". A table
 * of the system's has no container. `keyspace` empty: the current one. */
MUST_CHECK err cass_table_find(cass_front *front, op *o, slice keyspace, slice name, const cass_table **table_out,
                               container **container_out);
MUST_CHECK err cass_container_find(cass_front *front, op *o, slice keyspace, slice name, container **container_out); /* as above */

/* Visits the tables of a keyspace until the visitor returns false. Under the account's lock they are only listed: so a visitor may take
 * long. */
void cass_each_table(cass_front *front, const database *d, bool (*visit)(void *context, const container *c), void *context);

/* ---- options ---- */

int64_t cass_option_int(slice options, const char *name, int64_t otherwise);

/* ---- BSON ---- */

slice cass_bson_copy(arena *a, bson_t *b); /* copies to the arena and destroys it */
bool cass_member(slice document, const char *name, doc_element *e);
slice cass_member_text(slice document, const char *name); /* empty: not a string */
