/* value.h — what expressions come to. Small, copied by value; what it points to lives in the row's item or in an arena.
 *
 * Types have an order (undefined < null < bool < number < string < array < object), as on the service; behind objects come the types that
 * JSON has not. Arrays and objects are BSON
 * documents (doc/walk.h walks them). Numbers are doubles; whole ones that were stored as 64-bit integers remember that, so that they come
 * out as they went in; arithmetic and comparison see doubles. */
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
    /* TYPE_OBJECT of a BSON type that JSON has not (another API wrote it): that type, and `bytes` is its value as it lies in the document.
     * It comes out as it went in; where its members are wanted it is what docs/json.md shows, e.g. {"$oid":"…"}. */
    uint8_t extended;
    bool holes;    /* TYPE_ARRAY that value_array made of some undefined values: they are in it, for functions that skip them */
    double number; /* TYPE_NUMBER */
    int64_t integer;
    slice bytes;                   /* TYPE_STRING: UTF-8; TYPE_ARRAY, TYPE_OBJECT: a BSON document */
    const struct query_item *item; /* TYPE_OBJECT that is a whole item: it has the system's properties too (_rid, _ts, …) */
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

/* From an element of a document. */
query_value value_of_element(const doc_element *e);
query_value value_of_iter(const bson_iter_t *it);

/* A property of an object or an element of an array; undefined if there is none, or it is neither. System properties of a whole item are
 * found too: strings are made in the arena. */
query_value value_member(arena *a, const query_value *v, slice name);
query_value value_element(const query_value *v, int64_t index);

/* The same for those who must bound their time: how many members or elements were looked at is added to *looked. */
query_value value_member_counted(arena *a, const query_value *v, slice name, uint64_t *looked);
query_value value_element_counted(const query_value *v, int64_t index, uint64_t *looked);
size_t value_length(const query_value *array);

/* The same value as a document that can be walked and copied as it is: a whole item gets its system properties, an extended value its
 * members, holes become null. Others are returned as they are. Undefined when the arena's budget has no room for it. */
query_value value_plain(arena *a, const query_value *v);

/* The value of a type that JSON has not which is seen as this object; one of such a type itself. False: there is none, or it is one of a
 * few that are not made (value_typed.c). In the arena. */
bool value_typed(arena *a, const query_value *v, query_value *typed_out);
bool value_may_be_typed(const query_value *v); /* false: no such value is seen as this one */

/* The order of all values: by type, then by value; strings by bytes; arrays element by element, objects by their properties in byte order
 * of names; types that JSON has not as doc/order.h has them: MinKey, Decimal128, binary, ObjectId, date, timestamp, regular expression,
 * DBPointer, code, symbol, code with scope, MaxKey. A total order (NaN comes before all numbers and is equal to itself), so that ORDER BY,
 * DISTINCT and GROUP BY have one. Numbers compare as doubles, as on the service; doc_order_compare compares them exactly. */
int value_compare(const query_value *a, const query_value *b);
bool value_same(const query_value *a, const query_value *b); /* value_compare says 0: 1 and 1.0 are, and property order does not matter */

/* As = has it: values that are the same, and also, at any depth, a value of a type that JSON has not and the object that it is seen as,
 * {"$oid":"…"}. */
bool value_equal(const query_value *a, const query_value *b);
uint64_t value_hash(const query_value *v, uint64_t seed); /* the same values hash alike; differently in each process, so that
                                                                 nobody can choose values that hash alike */

/* As JSON text; undefined writes nothing (callers decide), numbers that are not finite write null. */
void value_write(buf *out, const query_value *v);

/* Appends to a BSON document under construction; undefined is left out of objects and is null in arrays, as on the service. */
void value_append(bson_t *to, const char *key, int key_n, const query_value *v, bool in_array);

/* For lists that are read again later: what is undefined or not finite stays so. False: an array with holes, which would come back as
 * nulls. */
bool value_append_exact(bson_t *list, size_t index, const query_value *v);
query_value value_of_exact(const bson_iter_t *it);

/* An array of these values, and an object of them under these names (undefined ones left out), made in the arena at once. Undefined, and
 * nothing allocated, when they would have more than VALUE_BYTES_MAX or the arena's budget has no room for them. */
enum { VALUE_BYTES_MAX = 16 * 1024 * 1024 }; /* of any one value that a query makes */
query_value value_array(arena *a, const query_value *items, size_t n);
query_value value_object(arena *a, const slice *names, const query_value *values, size_t n);

/* A copy whose bytes are in the arena, for values that outlive their row. Undefined when the arena's budget has no room for it, which the
 * caller notices by budget.exceeded. */
query_value value_keep(arena *a, const query_value *v);

/* The item of a row. */
typedef struct query_item {
    slice body; /* BSON */
    uint64_t number, version;
    uint32_t ts;
    unsigned char container_rid[8];
} query_item;
query_value value_of_item(const query_item *item);
