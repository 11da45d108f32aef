/* entry_key.h — how the index encodes ("spells") values and paths, so that byte order is the query language's order.
 *
 * A *path* is a hash of its steps: names, and "any element" for arrays. A *value* is a type byte and then:
 *
 *   undefined, null, false, true    nothing more
 *   number                          eight bytes; all numbers compare as doubles
 *   string                          its bytes (00 as 00 FF), then 00 01; a long one is cut to INDEX_STRING_BYTES, then 00 02 and a hash
 *   array, object                   nothing more: the entry only says that there is one
 *
 * Types that JSON lacks sort after those. Within a type the order is that of doc/order.h:
 *
 *   MinKey, MaxKey                  nothing more
 *   Decimal128                      as doc/order.h spells it: 1.0 and 1.00 alike
 *   binary                          length (4 bytes), subtype, bytes; a long one is cut to INDEX_STRING_BYTES, then a hash
 *   ObjectId                        12 bytes
 *   date, timestamp                 8 bytes
 *   regular expression              pattern, 00, options, as a string
 *   code, symbol                    as a string
 *   DBPointer, code with scope      nothing more
 *
 * Every spelling is self-delimiting, so several in a row still sort. Spelled *downward* (each byte inverted) they sort the other way. Some
 * values are not in the entry in full (long strings, arrays, objects, integers beyond 2^53); for these the item must be read.
 *
 * All values of a type t sort in [t, t + 1), so a caller that orders types differently can scan the types in its own order. */
#pragma once

#include "base/buf.h"
#include "doc/walk.h"

typedef enum index_type {
    INDEX_UNDEFINED = 1,
    INDEX_NULL,
    INDEX_FALSE,
    INDEX_TRUE,
    INDEX_NUMBER,
    INDEX_STRING,
    INDEX_ARRAY,
    INDEX_OBJECT,
    INDEX_MIN_KEY,
    INDEX_DECIMAL,
    INDEX_BINARY,
    INDEX_OBJECT_ID,
    INDEX_DATE,
    INDEX_TIMESTAMP,
    INDEX_REGEX,
    INDEX_DB_POINTER,
    INDEX_CODE,
    INDEX_SYMBOL,
    INDEX_SCOPED_CODE,
    INDEX_MAX_KEY,
    INDEX_TYPE_END
} index_type;

enum {
    INDEX_STRING_BYTES = 64,
    INDEX_VALUE_BYTES_MAX = 2 * INDEX_STRING_BYTES + 8, /* longest spelling of a value */
    INDEX_PATH_BYTES = 8
};

/* ---- paths ---- */

typedef uint64_t index_path;

#define INDEX_PATH_ROOT ((index_path)0x746573656c61u)
#define INDEX_PATH_SHAPES ((index_path)0) /* its values are items' shapes (the set of paths an item has, see terms.h) */
#define INDEX_PATH_LARGE ((index_path)1)  /* items with too many terms to be indexed */

index_path index_path_member(index_path of, slice name);
index_path index_path_element(index_path of);             /* any element of an array */
index_path index_path_mixed(index_path a, uint64_t with); /* for composite indexes, cells and words */

/* ---- values ---- */

void index_spell_type(buf *out, index_type type); /* undefined, null, false, true, array, object */
void index_spell_number(buf *out, double number);
void index_spell_string(buf *out, slice text);
void index_spell_prefix(buf *out, slice text); /* the common prefix of the spellings of all strings that begin with `text` */
void index_spell_element(buf *out, const doc_element *e);
void index_spell_downward(buf *out, size_t from); /* inverts the bytes from `from` on */

/* For a condition: appends the common prefix of the spellings of all values that the index cannot distinguish from this one. True: only
 * equal values have that prefix, so the entries found are exact. */
bool index_spell_equal_prefix(buf *out, const doc_element *e);

/* A decoded spelling. */
typedef struct index_value {
    index_type type;
    double number; /* INDEX_NUMBER */
    slice text;    /* INDEX_STRING, INDEX_REGEX, INDEX_CODE, INDEX_SYMBOL: as spelled, without the terminator; decode with index_unescape */
    bool whole;    /* the spelling contains the full value */
    bool placed;   /* only equal values have the same spelling: true for whole values and for Decimal128s */
    size_t n;      /* length of the spelling */
    size_t plain_n; /* its length without the hash: unless `placed`, different values may share these bytes */
} index_value;

bool index_value_read(slice spelled, index_value *value_out); /* false: not a spelled value */
void index_unescape(buf *out, slice text);

/* For a placed value of a type that JSON lacks: appends its BSON bytes to `value`. For a Decimal128, these are of one that is equal but may
 * have another number of trailing zeros. False: another type, or not placed. */
bool index_value_typed(slice spelled, const index_value *v, buf *value, bson_type_t *type_out);

/* From here on, different integers may have the same double. */
#define INDEX_NUMBER_EXACT 9007199254740992.0
