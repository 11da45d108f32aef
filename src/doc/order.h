/* order.h — one order over all BSON values, and a spelling of values as bytes that sort in it.
 *
 * Values are ordered by bracket, then within it:
 *
 *   MinKey, undefined, null, false, true, MaxKey   one value each
 *   numbers      exactly, whatever their type: int32 1, int64 1, double 1.0 and Decimal128 1 or 1.00 are one value, 2^53 + 1 and the double
 *                2^53 are two. NaN (any) comes first and equals itself, then -Infinity; -0 equals 0
 *   strings, symbols, code                         by bytes, a prefix first
 *   arrays       element by element, the shorter first
 *   objects      member by member in the order they have, as MongoDB does: bracket (false and true have one here), then name,
 *                then value; the shorter first
 *   binary       by length, subtype, bytes, as MongoDB does; a UUID is subtype 4
 *   ObjectIds    by bytes
 *   dates        by signed milliseconds
 *   timestamps   by seconds, increment, both unsigned
 *   regular expressions   by pattern, then options
 *   DBPointers   by name, then id
 *   code with scope       by code, then scope
 *
 * A spelling is a bracket byte and then what the value needs. It ends itself, so that several in a row sort as a tuple. Spelled descending
 * (each byte inverted) it sorts the other way. Two values have the same spelling exactly when doc_order_compare says 0: a key made of
 * spellings is unique as MongoDB's `_id` is, where 1 and 1.0 collide.
 *
 * Sizes: 10 bytes for a number that some double is equal to, 27 for others; text and names 1 + n + 2, and one more for each 00 in them.
 * All functions are linear in the bytes they are given, and safe for any bytes that doc_walk accepts. */
#pragma once

#include "base/buf.h"
#include "doc/walk.h"

/* The first byte of a spelling. All values of a bracket b sort in [b, b + 1), so a front end that orders brackets otherwise walks them in
 * its own order. */
typedef enum doc_bracket {
    DOC_BRACKET_END = 0, /* no value: ends an array or object */
    DOC_BRACKET_MIN_KEY,
    DOC_BRACKET_UNDEFINED,
    DOC_BRACKET_NULL,
    DOC_BRACKET_FALSE,
    DOC_BRACKET_TRUE,
    DOC_BRACKET_NUMBER,
    DOC_BRACKET_STRING,
    DOC_BRACKET_ARRAY,
    DOC_BRACKET_OBJECT,
    DOC_BRACKET_BINARY,
    DOC_BRACKET_OBJECT_ID,
    DOC_BRACKET_DATE,
    DOC_BRACKET_TIMESTAMP,
    DOC_BRACKET_REGEX,
    DOC_BRACKET_DB_POINTER,
    DOC_BRACKET_CODE,
    DOC_BRACKET_SYMBOL,
    DOC_BRACKET_SCOPED_CODE,
    DOC_BRACKET_MAX_KEY,
    DOC_BRACKETS
} doc_bracket;

doc_bracket doc_order_bracket(const doc_element *e);

enum {
    DOC_ORDER_DEPTH = 128,       /* arrays and objects inside each other that can be spelled */
    DOC_ORDER_NUMBER_BYTES = 27, /* of a spelled number, at most */
};

/* The double nearest to a number of any type, ties to even; `exact_out`: it is equal to it. */
double doc_order_nearest(const doc_element *number, bool *exact_out);

/* Appends the spelling of `e`, whose key does not matter. A value that is nested deeper than DOC_ORDER_DEPTH or whose inner documents are
 * not well-formed is not spelled: `out` is as it was but for `overflow`, as when its limit is reached. Check with buf_ok. */
void doc_order_spell(buf *out, const doc_element *e, bool descending);

/* Reads the value that `spelled` begins with. Its type is `*type_out`, its bytes (as they lie in a document after the key) are appended to
 * `value`, and `*n_out` bytes of `spelled` were read. Numbers come back in the narrowest type that has them exactly, of int32, int64,
 * double and Decimal128 without trailing zeros; elements of arrays get the keys "0", "1", …; all else comes back as it was. False: not a
 * spelling that doc_order_spell makes, or `value` has no room; `value` is then as it was. Any bytes may be given. With `value` NULL the
 * value is checked and measured only. */
bool doc_order_read(slice spelled, bool descending, buf *value, bson_type_t *type_out, size_t *n_out);

/* The order of two values without spelling them: < 0, 0, > 0. A total order over whatever doc_walk accepts: below DOC_ORDER_DEPTH, arrays
 * and objects compare as bytes. */
int doc_order_compare(const doc_element *a, const doc_element *b);
