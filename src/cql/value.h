/* value.h — values of CQL: the bytes that the native protocol carries, and their other forms.
 *
 * A value is its wire bytes; the type is always given beside it. From there lead four roads, each both ways:
 *
 *   text     the literals of CQL, and what cqlsh shows        '2024-02-29', 0xcafe, {1, 2}       cql_value_write
 *   JSON     INSERT JSON, SELECT JSON, toJson, fromJson        "2024-02-29", "0xcafe", [1, 2]     cql_json_write, cql_json_read
 *   BSON     a column's place in an item, seen by other APIs                                      cql_bson_add, cql_bson_read
 *   order    Cassandra's order, and bytes or text that sort in it                                 cql_compare, cql_sortable
 *
 * The BSON of each type. "sorts": the encoding of doc/order.h puts the values into Cassandra's order, and values that are equal there are
 * one value in Cassandra. So the column itself can be a path of a row key or a partition key.
 *
 *   ascii, text                   string                                                                    sorts
 *   tinyint, smallint, int        int32                                                                     sorts
 *   bigint, counter               int64                                                                     sorts
 *   boolean                       boolean                                                                   sorts
 *   timestamp, date               date (a date at midnight UTC)                                             sorts
 *   time                          string of 18 bytes, "12:34:56.789000000"                                  sorts
 *   uuid, timeuuid, inet          string, as CQL writes it                                                  identifies
 *   varint                        int64; a string of digits if it does not fit                              identifies
 *   duration                      string, "1mo2d3ns"                                                        identifies
 *   blob, custom                  binary                                                                    identifies
 *   float, double                 double; a float as the double with the same shortest decimal digits
 *   decimal                       Decimal128 with its scale; a string of more than 34 digits ("-1.5E-7000")
 *   list, set, tuple, vector      array; a set in its order; a null inside a tuple is null
 *   map                           object; keys as text, those with inner types as their bytes ("0x…")
 *   user type                     object; null fields are null, fields missing at the end are left out
 *   empty value                   undefined, for all types but texts and blobs
 *
 * A column that is part of a key and does not sort (clustering) or identify (partition) is stored twice: in its natural form under its
 * name, and as its key text (cql_key_text) in a member that the key's path names. Reading never needs the second one.
 *
 * Values may come from anyone: check them with cql_value_check first. The other functions expect checked values, and are safe for all
 * bytes. Pure functions, any thread; results live in the operation's arena. */
#pragma once

#include "cql/type.h"
#include "doc/walk.h"

typedef struct cql_value {
    slice bytes;
    bool null;
    bool unset; /* of a bound variable only: leaves the column as it is */
} cql_value;

enum {
    CQL_VALUE_DEPTH = CQL_TYPE_DEPTH,
    CQL_DIGITS_MAX = 39000, /* digits of a varint or decimal in text or arithmetic; beyond that the client gets an error */
};

static inline cql_value cql_value_of(slice bytes) {
    return (cql_value){.bytes = bytes};
}
static inline cql_value cql_value_null(void) {
    return (cql_value){.null = true};
}
static inline bool cql_value_is_null(cql_value v) { /* null or unset */
    return v.null || v.unset;
}

/* ---- making; bytes in the arena ---- */

cql_value cql_value_bool(bool truth);
cql_value cql_value_int(arena *a, int32_t number); /* int, date */
cql_value cql_value_smallint(arena *a, int16_t number);
cql_value cql_value_tinyint(arena *a, int8_t number);
cql_value cql_value_bigint(arena *a, int64_t number); /* bigint, counter, timestamp, time */
cql_value cql_value_double(arena *a, double number);
cql_value cql_value_float(arena *a, float number);
static inline cql_value cql_value_text(slice text) {
    return cql_value_of(text);
}

/* ---- reading; false: null or not of that size ---- */

bool cql_as_bool(cql_value v, bool *truth_out);
bool cql_as_int(cql_value v, int32_t *number_out);
bool cql_as_bigint(cql_value v, int64_t *number_out); /* any integer of 1, 2, 4 or 8 bytes */
bool cql_as_double(cql_value v, double *number_out);  /* of 8 bytes, or of 4 (a float) */

/* ---- the wire ---- */

void cql_value_encode(buf *out, cql_value v);             /* [bytes]: length and bytes; null is -1 */
bool cql_value_decode(slice *rest, cql_value *value_out); /* [value]: -1 null, -2 unset; false: not one */

/* Checks the bytes of a value, in depth. E_BAD_REQUEST with Cassandra's message: "Expected 4 or 0 byte int (3)". Null is fine. */
MUST_CHECK err cql_value_check(op *o, const cql_type *type, cql_value v);

/* Sorts the elements of sets and the keys of maps, at any depth, and drops duplicates (of a map's keys the last wins). Clients send them
 * in any order. For a checked value. */
MUST_CHECK err cql_value_normalise(op *o, const cql_type *type, cql_value v, cql_value *value_out);

/* Elements of a collection, tuple, user type or vector. Maps alternate keys and values. For a tuple or user type, `n` counts the elements
 * that are there.
 *
 *   cql_elements e;
 *   for (cql_elements_init(&e, type, v); cql_elements_next(&e, &element, &element_type);) … */
typedef struct cql_elements {
    const cql_type *type;
    slice rest;
    uint32_t n, at; /* number of values (of a map twice the entries), and how many were returned */
} cql_elements;

bool cql_elements_init(cql_elements *e, const cql_type *type, cql_value v); /* false, and nothing follows: null, or malformed */
bool cql_elements_next(cql_elements *e, cql_value *value_out, const cql_type **type_out);

/* The value of a collection, tuple, user type or vector made of `n` values; of a map, keys and values in turn. Does not sort. False: the
 * arena has no room. */
bool cql_value_collect(arena *a, const cql_type *type, const cql_value *values, uint32_t n, cql_value *value_out);

/* ---- order ---- */

/* As Cassandra compares: empty values first, texts and blobs by bytes, timeuuids by time, uuids by version first, NaN last and -0 before 0,
 * collections element by element and then by length, nulls in tuples first. */
int cql_compare(const cql_type *type, cql_value a, cql_value b);

/* Appends bytes that sort in that order, and that are equal exactly if cql_compare returns 0. They are self-delimiting, so several in a
 * row sort as a tuple. */
void cql_sortable(buf *out, const cql_type *type, cql_value v);

bool cql_type_sorts(const cql_type *type);      /* the BSON form can be a clustering column; see above */
bool cql_type_identifies(const cql_type *type); /* the BSON form can be a partition key column */

/* The text for a key whose column does not sort (clustering: cql_sortable) or identify (partition: the wire bytes), in 64 printable
 * characters whose order is ASCII's. */
MUST_CHECK err cql_key_text(op *o, const cql_type *type, cql_value v, bool clustering, slice *text_out);

/* ---- text ---- */

/* Appends the value as a literal of CQL, which parses to the same value. Null is `null`. */
void cql_value_write(buf *out, const cql_type *type, cql_value v);

/* Appends the bare text without quotes, as `cast(x AS text)` gives it; only for types without inner types. */
void cql_value_write_bare(buf *out, const cql_type *type, cql_value v);

/* The value of a string in CQL ('…') for a type that is written so: texts, dates, inet, uuid in quotes and so on. E_BAD_REQUEST with
 * Cassandra's message: "Unable to coerce 'x' to a formatted date (long)". */
MUST_CHECK err cql_value_of_text(op *o, const cql_type *type, slice text, cql_value *value_out);

/* ---- JSON, as Cassandra writes and reads it ---- */

void cql_json_write(buf *out, const cql_type *type, cql_value v); /* as toJson does */

/* One JSON text. E_BAD_REQUEST: "Unable to make int from '\"x\"'", "Error decoding JSON value for v: …". */
MUST_CHECK err cql_json_read(op *o, const cql_type *type, slice json, cql_value *value_out);

/* The row of INSERT JSON: parses a JSON object once, into BSON whose members are read by cql_json_value. Numbers of any size stay exact, in
 * a form of this library's own; so the BSON is for nothing else. E_BAD_REQUEST: not a JSON object. */
MUST_CHECK err cql_json_document(op *o, slice json, slice *bson_out);
MUST_CHECK err cql_json_value(op *o, const cql_type *type, const doc_element *e, cql_value *value_out);

/* ---- BSON ---- */

/* Appends an element, key and value, to an open document. A null value is BSON null. If it does not fit, `out` overflows. */
void cql_bson_add(buf *out, slice key, const cql_type *type, cql_value v);

/* The value of an element of an item. Accepts more than cql_bson_add writes, because other APIs may have written the item: any number for a
 * numeric column if it is exact. Undefined is the empty value. E_BAD_REQUEST: no value of this type. */
MUST_CHECK err cql_bson_read(op *o, const cql_type *type, const doc_element *e, cql_value *value_out);
