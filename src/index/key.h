/* key.h — values and paths as the index spells them, so that byte order is the query language's order.
 *
 * A *path* is a hash of its steps: names, and "any element" for arrays. A *value* is a type byte and then:
 *
 *   undefined, null, false, true    nothing more
 *   number                          eight bytes; all numbers compare as doubles
 *   string                          its bytes (00 as 00 FF), then 00 01; of a long one the first INDEX_STRING_BYTES, 00 02, a hash
 *   array, object                   nothing more: that there is one
 *
 * Types that JSON has not come behind those, each in its own order, which is that of doc/order.h:
 *
 *   MinKey, MaxKey                  nothing more
 *   Decimal128                      as doc/order.h spells it: 1.0 and 1.00 alike
 *   binary                          length (4 bytes), subtype, bytes; of a long one the first INDEX_STRING_BYTES and a hash
 *   ObjectId                        12 bytes
 *   date, timestamp                 8 bytes
 *   regular expression              pattern, 00, options, as a string
 *   code, symbol                    as a string
 *   DBPointer, code with scope      nothing more
 *
 * Every spelling ends itself, so several in a row still sort; spelled *downward* (each byte inverted) they sort the other way. Where a
 * value is not told whole (long strings, arrays, objects, integers beyond 2^53) the item must be asked.
 *
 * All values of a type t sort in [t, t + 1): whoever orders types otherwise walks them in its own order. */
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
    INDEX_VALUE_BYTES_MAX = 2 * INDEX_STRING_BYTES + 8, /* of one spelled value */
    INDEX_PATH_BYTES = 8
};

/* ---- paths ---- */

typedef uint64_t index_path;

#define INDEX_PATH_ROOT ((index_path)0x746573656c61u)
#define INDEX_PATH_SHAPES ((index_path)0) /* values are shapes: which paths an item has */
#define INDEX_PATH_LARGE ((index_path)1)  /* items with too many terms to be indexed */

index_path index_path_member(index_path of, slice name);
index_path index_path_element(index_path of);             /* of an array */
index_path index_path_mixed(index_path a, uint64_t with); /* composite and special ones */

/* ---- values ---- */

void index_spell_type(buf *out, index_type type); /* undefined, null, false, true, array, object */
void index_spell_number(buf *out, double number);
void index_spell_string(buf *out, slice text);
void index_spell_prefix(buf *out, slice text); /* what all strings that begin so begin with; of a long one a part of it */
void index_spell_element(buf *out, const doc_element *e);
void index_spell_downward(buf *out, size_t from); /* inverts what was added since */

/* For a condition: spells what the spellings of all values begin with that the index does not tell apart from this one. True: those are
 * the values equal to it, and no others, so that its entries are a point. */
bool index_spell_sought(buf *out, const doc_element *e);

/* The place of a number, of any of BSON's four types, among those of INDEX_NUMBER or of INDEX_DECIMAL: for whoever takes both types for
 * one. What is less than it is spelled no higher, what is greater no lower, what is equal alike. True: nothing else is spelled alike. */
bool index_spell_among(buf *out, index_type type, const doc_element *number);

/* A spelled value taken apart. */
typedef struct index_value {
    index_type type;
    double number; /* INDEX_NUMBER */
    slice text;  /* INDEX_STRING, INDEX_REGEX, INDEX_CODE, INDEX_SYMBOL: as spelled, without its end; index_unescape makes it what it was */
    bool whole;  /* all of the value is here */
    bool placed; /* the entry stands where the value belongs: equal spellings are of equal values. So whole ones, and Decimal128s */
    size_t n;    /* bytes it takes */
    size_t plain_n; /* of them, those before the hash: values that share them are not told apart, unless they are placed */
} index_value;

bool index_value_read(slice spelled, index_value *value_out); /* false: not one */
void index_unescape(buf *out, slice text);

/* The BSON type and bytes (appended to `value`) of a spelled value of a type that JSON has not, if it is placed: of a Decimal128, which is
 * not whole, those of one that is equal to it. False: it is of another type, or not placed. */
bool index_value_typed(slice spelled, const index_value *v, buf *value, bson_type_t *type_out);

/* Whole numbers from here on are not told apart by a double. */
#define INDEX_NUMBER_EXACT 9007199254740992.0
