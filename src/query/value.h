/* value.h — the values of expressions. Small, and copied by value; the bytes that a value points to live in the row's item or in an arena.
 *
 * Types are ordered as on the service: undefined < null < bool < number < string < array < object; BSON types that JSON lacks come after
 * objects. Arrays and objects are BSON documents (doc/walk.h walks them). Numbers are doubles. Integers that were stored as 64-bit integers
 * keep their exact value and are returned unchanged, but arithmetic and comparison use doubles. */
#pragma once

#include <bson/bson.h>

#include "base/arena.h"
#include "base/buf.h"
#include "doc/walk.h"

typedef enum query_type { TYPE_UNDEFINED, TYPE_NULL, TYPE_BOOL, TYPE_NUMBER, TYPE_STRING, TYPE_ARRAY, TYPE_OBJECT } query_type;

typedef struct query_value {
    query_type type;
    bool truth;      /* TYPE_BOOL */
    bool is_integer; /* TYPE_NUMBER: `integer` is the exact value */
    /* TYPE_OBJECT with a BSON type that JSON lacks (written by another API): that type; `bytes` is then its value as it lies in the
     * document. It is returned unchanged. If its members are needed, it is the object that docs/json.md shows, such as {"$oid":"…"}. */
    uint8_t extended;
    bool holes;    /* TYPE_ARRAY: value_array was given undefined values, and stored them as such for functions that skip them */
    double number; /* TYPE_NUMBER */
    int64_t integer;
    slice bytes;                   /* TYPE_STRING: UTF-8; TYPE_ARRAY, TYPE_OBJECT: a BSON document */
    const struct query_item *item; /* TYPE_OBJECT that is a whole item: it also has the system properties (_rid, _ts, …) */
} query_value;

static inline query_value value_undefined(void) {
    return (query_value){.type = TYPE_UNDEFINED};
}
static inline query_value value_null(void) {
    return (query_value){.type = TYPE_NULL};
}
static inline query_value value_bool(bool truth) {
    return (query_value){.type = TYPE_BOOL, .truth = truth};
}
static inline query_value value_number(double number) {
    return (query_value){.type = TYPE_NUMBER, .number = number};
}
static inline query_value value_integer(int64_t integer) {
    return (query_value){.type = TYPE_NUMBER, .is_integer = true, .number = (double)integer, .integer = integer};
}
static inline query_value value_string(slice text) {
    return (query_value){.type = TYPE_STRING, .bytes = text};
}
static inline query_value value_document(query_type type, slice bson) { /* TYPE_ARRAY or TYPE_OBJECT */
    return (query_value){.type = type, .bytes = bson};
}
static inline bool value_is_true(const query_value *v) {
    return v->type == TYPE_BOOL && v->truth;
}
static inline bool value_is_defined(const query_value *v) {
    return v->type != TYPE_UNDEFINED;
}

query_value value_of_element(const doc_element *e);
query_value value_of_iter(const bson_iter_t *it);

/* A member of an object, or an element of an array; undefined if there is none or the type is wrong. System properties of a whole item are
 * found too; their strings are made in the arena. */
query_value value_member(arena *a, const query_value *v, slice name);
query_value value_element(const query_value *v, int64_t index);

/* The same, adding the number of members or elements visited to *looked, for callers that limit their time. */
query_value value_member_counted(arena *a, const query_value *v, slice name, uint64_t *looked);
query_value value_element_counted(const query_value *v, int64_t index, uint64_t *looked);
size_t value_length(const query_value *array);

/* The value as a document that can be walked and copied: a whole item with its system properties, an extended value as its object, holes as
 * null. Other values are returned unchanged. Undefined if the arena's budget has no room. */
query_value value_plain(arena *a, const query_value *v);

/* The value of a non-JSON type that this extended-JSON object stands for; a value of such a type is returned unchanged. False: none, or one
 * of the few types that are not supported (value_typed.c). In the arena. */
bool value_typed(arena *a, const query_value *v, query_value *typed_out);
bool value_may_be_typed(const query_value *v); /* false: certainly not an extended-JSON object */

/* A total order of all values: by type, then by value. Strings by bytes; arrays element by element; objects by their properties in byte
 * order of names; non-JSON types as in doc/order.h: MinKey, Decimal128, binary, ObjectId, date, timestamp, regular expression, DBPointer,
 * code, symbol, code with scope, MaxKey. NaN comes before all numbers and equals itself, so that ORDER BY, DISTINCT and GROUP BY have a
 * total order. Numbers compare as doubles, as on the service; doc_order_compare compares them exactly. */
int value_compare(const query_value *a, const query_value *b);
bool value_same(const query_value *a, const query_value *b); /* value_compare gives 0: 1 and 1.0, or objects with another property order */

/* Equality of the operator =: value_same, or, at any depth, a value of a non-JSON type and its extended-JSON object, {"$oid":"…"}. */
bool value_equal(const query_value *a, const query_value *b);
uint64_t value_hash(const query_value *v, uint64_t seed); /* the same for equal values (value_same); keyed by a secret of the process, so
                                                             that clients cannot choose values that collide */

/* Appends JSON. Undefined appends nothing; numbers that are not finite become null. */
void value_write(buf *out, const query_value *v);

/* Appends to a BSON document. Undefined is left out of objects, and becomes null in arrays, as on the service. */
void value_append(bson_t *to, const char *key, int key_n, const query_value *v, bool in_array);

/* For lists that are read back later: undefined and numbers that are not finite are preserved. False: an array with holes, which would be
 * read back as nulls. */
bool value_append_exact(bson_t *list, size_t index, const query_value *v);
query_value value_of_exact(const bson_iter_t *it);

/* Makes an array of these values, or an object with these names (undefined values are left out), in the arena. Returns undefined, without
 * allocating, if it would be larger than VALUE_BYTES_MAX or the arena's budget has no room. */
enum { VALUE_BYTES_MAX = 16 * 1024 * 1024 }; /* for any value that a query makes */
query_value value_array(arena *a, const query_value *items, size_t n);
query_value value_object(arena *a, const slice *names, const query_value *values, size_t n);

/* A copy with its bytes in the arena, for a value that outlives its row. Undefined if the arena's budget has no room; budget.exceeded is
 * then set. */
query_value value_keep(arena *a, const query_value *v);

/* The item of a row. */
typedef struct query_item {
    slice body; /* BSON */
    uint64_t number, version;
    uint32_t ts;
    unsigned char container_rid[8];
    const struct item_owner *shows_id; /* it shows an id that is not stored (item/foreign.h); mostly NULL */
} query_item;
query_value value_of_item(const query_item *item);
