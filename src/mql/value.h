/* value.h — values of the MongoDB language: a BSON type and the value's bytes.
 *
 * A value is small and copied freely; its bytes are those that follow the key in a BSON document, and live in a document or in an arena. A
 * missing field is a value too, of type BSON_TYPE_EOD. Bytes must be well formed (doc_is_well_formed): check what comes from outside before
 * making values of it. Any thread. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "doc/walk.h"

typedef struct mql_value {
    bson_type_t type; /* BSON_TYPE_EOD: missing */
    slice bytes;
} mql_value;

enum { MQL_DEPTH_MAX = 180 }; /* nesting of documents; MongoDB refuses more than 180 levels on writes */

/* ---- making ---- */

static inline mql_value mql_of(const doc_element *e) {
    return (mql_value){e->type, e->value};
}
static inline mql_value mql_missing(void) {
    return (mql_value){BSON_TYPE_EOD, {"", 0}};
}
static inline mql_value mql_null(void) {
    return (mql_value){BSON_TYPE_NULL, {"", 0}};
}
static inline mql_value mql_document(slice bson) {
    return (mql_value){BSON_TYPE_DOCUMENT, bson};
}
static inline mql_value mql_array(slice bson) {
    return (mql_value){BSON_TYPE_ARRAY, bson};
}
mql_value mql_bool(bool truth);
mql_value mql_int32(arena *a, int32_t number);
mql_value mql_int64(arena *a, int64_t number);
mql_value mql_double(arena *a, double number);
mql_value mql_decimal(arena *a, const bson_decimal128_t *number);
mql_value mql_date(arena *a, int64_t ms);
mql_value mql_timestamp(arena *a, uint32_t seconds, uint32_t increment);
mql_value mql_object_id(arena *a, const uint8_t bytes[static 12]);
mql_value mql_text(arena *a, slice text); /* UTF-8; a copy. Missing, with the budget exceeded, if the arena has no room */

/* ---- reading ---- */

static inline bool mql_is_missing(mql_value v) {
    return v.type == BSON_TYPE_EOD;
}
static inline bool mql_is_nullish(mql_value v) { /* null, undefined or missing */
    return v.type == BSON_TYPE_EOD || v.type == BSON_TYPE_NULL || v.type == BSON_TYPE_UNDEFINED;
}
static inline bool mql_is_number(mql_value v) { /* of any of the four types */
    return doc_is_number(v.type) || v.type == BSON_TYPE_DECIMAL128;
}
static inline bool mql_is_text(mql_value v) {
    return v.type == BSON_TYPE_UTF8;
}
static inline slice mql_as_text(mql_value v) { /* of UTF8, CODE or SYMBOL */
    return slice_of(v.bytes.p + 4, v.bytes.n - 5);
}
static inline bool mql_as_bool(mql_value v) {
    return v.bytes.p[0] != 0;
}
static inline int64_t mql_as_date(mql_value v) {
    return doc_load_i64(v.bytes.p);
}
bson_decimal128_t mql_as_decimal(mql_value v);
bool mql_truth(mql_value v); /* as expressions see it: false, null, undefined, missing and zero are false, everything else is true */

/* A number of any type as an integer: false if it is not a number, not integral, or out of range. */
bool mql_as_integer(mql_value v, int64_t *integer_out);
/* The double nearest to a number of any type. */
double mql_as_double(mql_value v);

/* A member of a document by name, or an element of an array by its position; missing if there is none or the type is wrong. */
mql_value mql_member(mql_value document, slice name);
mql_value mql_element_at(mql_value array, size_t position);
size_t mql_length(mql_value container); /* number of members or elements */

const char *mql_type_name(bson_type_t type); /* "double", "string", …, as $type returns it; "missing" */

/* ---- order ---- */

/* MongoDB's order of types: MinKey, missing and undefined, null, numbers, strings and symbols, objects, arrays, binary, ObjectIds,
 * booleans, dates, timestamps, regular expressions, DBPointers, code, code with scope, MaxKey. Two values of the same class can be compared
 * by $lt and the others. */
int mql_class(bson_type_t type);

/* A total order: by class, then by value, numbers exactly whatever their type. */
int mql_compare(mql_value a, mql_value b);

/* The same, with strings compared by a collation, also inside objects and arrays; NULL: by bytes. */
typedef struct mql_collation mql_collation; /* mql/collation.h */
int mql_compare_by(const mql_collation *collation, mql_value a, mql_value b);

/* A hash that is equal for values that compare as equal; keyed (base/keyed_hash.h). */
uint64_t mql_hash(const mql_collation *collation, mql_value v);

static inline bool mql_same(mql_value a, mql_value b) {
    return mql_compare(a, b) == 0;
}

/* ---- building documents ----
 *
 *   mql_builder b = mql_build(&out);               appends one document to the buffer
 *   mql_add(&b, SLICE_LIT("a"), value);                a missing value adds nothing
 *   mql_open(&b, SLICE_LIT("list"), BSON_TYPE_ARRAY);  members added now are the list's, until mql_close
 *   mql_add_next(&b, value);                       … with the keys "0", "1", …
 *   mql_close(&b);
 *   slice document = mql_built(&b);                valid until the next append to the buffer; check buf_ok first
 */
typedef struct mql_builder {
    buf *out;
    size_t start; /* where the document begins in the buffer */
    unsigned depth;
    size_t opened[MQL_DEPTH_MAX + 1];     /* where the open documents begin */
    uint32_t elements[MQL_DEPTH_MAX + 1]; /* number of elements that each has from mql_add_next and mql_open_next */
} mql_builder;

mql_builder mql_build(buf *out);
void mql_begin(mql_builder *b, buf *out); /* the same, without copying the builder, which is large */
void mql_add(mql_builder *b, slice key, mql_value v);
void mql_add_next(mql_builder *b, mql_value v);
void mql_add_element(mql_builder *b, const doc_element *e); /* key and value */
void mql_open(mql_builder *b, slice key, bson_type_t type); /* nested deeper than MQL_DEPTH_MAX: the buffer overflows */
void mql_open_next(mql_builder *b, bson_type_t type);
void mql_close(mql_builder *b);
slice mql_built(mql_builder *b);

/* The built document as a copy in the arena. False: the buffer overflowed or the arena has no room; budget_error says which. */
bool mql_keep(arena *a, mql_builder *b, slice *document_out);
