/* type.h — the types of CQL: reading them from text, writing them as text and as options of the native protocol.
 *
 * A type is an immutable tree in an arena. It comes from three places:
 *
 *   CQL text        `frozen<map<text, list<int>>>`, in statements and in system_schema: cql_type_read, or the parser (cql/parse.h)
 *   Java's classes  `org.apache.cassandra.db.marshal.ReversedType(…UTF8Type)`, in quotes in CQL: read into the same tree where the class
 *                   is one of CQL's own, a custom type otherwise
 *   your code       cql_type_of(CQL_INT), and the makers below
 *
 * A user type in text is only a name. cql_type_resolve replaces it by its definition, and applies the rules on nesting and freezing.
 * Types are at most CQL_TYPE_DEPTH deep. Pure functions, any thread. Errors are stored in the operation, in Cassandra's words. */
#pragma once

#include "base/buf.h"
#include "base/op.h"

/* The values are the ids of [option] in native_protocol_v5.spec, section 4.2.5.2. */
typedef enum cql_kind {
    CQL_CUSTOM = 0x00, /* `name` is the Java class; values are bytes */
    CQL_ASCII = 0x01,
    CQL_BIGINT = 0x02,
    CQL_BLOB = 0x03,
    CQL_BOOLEAN = 0x04,
    CQL_COUNTER = 0x05,
    CQL_DECIMAL = 0x06,
    CQL_DOUBLE = 0x07,
    CQL_FLOAT = 0x08,
    CQL_INT = 0x09,
    CQL_TIMESTAMP = 0x0B,
    CQL_UUID = 0x0C,
    CQL_TEXT = 0x0D, /* also called varchar */
    CQL_VARINT = 0x0E,
    CQL_TIMEUUID = 0x0F,
    CQL_INET = 0x10,
    CQL_DATE = 0x11,
    CQL_TIME = 0x12,
    CQL_SMALLINT = 0x13,
    CQL_TINYINT = 0x14,
    CQL_DURATION = 0x15,
    CQL_LIST = 0x20,
    CQL_MAP = 0x21,
    CQL_SET = 0x22,
    CQL_UDT = 0x30,
    CQL_TUPLE = 0x31,
    CQL_VECTOR = 0x80, /* of this library: the protocol has it as a custom type */
    CQL_EMPTY = 0x81,  /* of this library: Cassandra's EmptyType, in old tables; a custom type in the protocol */
    CQL_KINDS = 0x82,
} cql_kind;

typedef struct cql_type cql_type;
struct cql_type {
    cql_kind kind;
    bool frozen;                  /* of collections and user types; tuples and vectors are always frozen */
    uint32_t n;                   /* number of inner types: list, set, vector 1; map 2; tuple, user type any */
    uint32_t dimension;           /* of a vector */
    const cql_type *const *inner; /* element; key and value; elements; types of the fields */
    slice keyspace;               /* of a user type; empty: the current keyspace */
    slice name;                   /* of a user type; of a custom type: the Java class */
    const slice *fields;          /* names of a user type's fields; NULL: not resolved yet */
};

enum {
    CQL_TYPE_DEPTH = 16,       /* levels of nesting */
    CQL_TYPE_INNER_MAX = 1024, /* elements of a tuple, fields of a user type; Cassandra's limit is 32768 */
    CQL_VECTOR_MAX = 8192,     /* dimension */
};

/* ---- making ---- */

const cql_type *cql_type_of(cql_kind kind); /* a type without inner types; static */
const cql_type *cql_type_list(arena *a, const cql_type *element, bool frozen);
const cql_type *cql_type_set(arena *a, const cql_type *element, bool frozen);
const cql_type *cql_type_map(arena *a, const cql_type *key, const cql_type *value, bool frozen);
const cql_type *cql_type_tuple(arena *a, const cql_type *const *elements, uint32_t n); /* keeps the array */
const cql_type *cql_type_freeze(arena *a, const cql_type *type); /* frozen<type>: inner collections and user types are frozen too */
const cql_type *cql_type_copy(arena *a, const cql_type *type);   /* with all names; for types that outlive their text */

/* ---- text ---- */

/* Reads a whole type, as CQL or as a Java class name. User types are unresolved. E_BAD_QUERY with a message. */
MUST_CHECK err cql_type_read(op *o, slice text, const cql_type **type_out);

/* A type by a native name (int, varchar, …) in any case; NULL: there is none, so it is a user type's. */
const cql_type *cql_type_by_name(slice name);

/* A type as one of Java's class names; NULL if the text is not a well-formed one. Classes that CQL has no name for are custom types. */
const cql_type *cql_type_by_class(arena *a, slice name);

/* Appends the type as Cassandra and system_schema print it: `frozen<map<text, int>>`, text for varchar, user types without a keyspace. */
void cql_type_write(buf *out, const cql_type *type);
void cql_type_write_class(buf *out, const cql_type *type); /* org.apache.cassandra.db.marshal.… */
slice cql_type_text(arena *a, const cql_type *type);       /* cql_type_write, as a copy in the arena */

/* Appends an identifier as CQL prints it: in double quotes if it needs them (capitals, reserved words, other characters). */
void cql_name_write(buf *out, slice name);

/* ---- user types ---- */

/* Finds user types by name. `find` returns NULL if there is none, or if it is refused; the keyspace is never empty. */
typedef struct cql_type_source {
    const cql_type *(*find)(const struct cql_type_source *source, slice keyspace, slice name);
    slice keyspace; /* where names without a keyspace are looked up */
    slice refusal;  /* why the last one was refused; empty: it was found, or there is none */
} cql_type_source;

/* Replaces the names of user types by their definitions and checks the type. E_BAD_REQUEST: unknown user type, a user type of another
 * keyspace, a non-frozen collection or user type inside another type, a counter in a collection, a duration in a set or as a map's key. */
MUST_CHECK err cql_type_resolve(op *o, const cql_type_source *source, const cql_type *type, const cql_type **type_out);

/* Whether the type contains the user type, at any depth: then DROP TYPE is refused. */
bool cql_type_uses(const cql_type *type, slice keyspace, slice name);

/* ---- properties ---- */

bool cql_type_same(const cql_type *a, const cql_type *b); /* frozen or not counts */
static inline bool cql_type_is_collection(const cql_type *t) {
    return t->kind == CQL_LIST || t->kind == CQL_SET || t->kind == CQL_MAP;
}
/* Whether its parts are cells of their own, which can be written singly: a collection or user type that is not frozen. */
static inline bool cql_type_is_multicell(const cql_type *t) {
    return !t->frozen && (cql_type_is_collection(t) || t->kind == CQL_UDT);
}
bool cql_type_is_number(const cql_type *t);    /* tinyint to varint, float, double, decimal, counter */
bool cql_type_has_duration(const cql_type *t); /* at any depth: such a type cannot be ordered */
int cql_type_fixed_bytes(const cql_type *t);   /* size of every value that is not empty; -1: varies */

/* ---- the native protocol ---- */

/* Appends the [option] for a protocol version, 3 to 5. What a version lacks is sent as a custom type with its Java class: duration before
 * version 5; date, time, smallint and tinyint in version 3; vectors always. */
void cql_type_encode(buf *out, const cql_type *type, unsigned version);

/* Reads an [option] and moves `rest` beyond it. E_BAD_REQUEST: malformed, or too deep. */
MUST_CHECK err cql_type_decode(op *o, slice *rest, const cql_type **type_out);
