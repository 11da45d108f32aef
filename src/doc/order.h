/* order.h — one total order over all BSON values, and an encoding ("spelling") of values as bytes that sort in that order.
 *
 * Values are ordered by bracket, then within it:
 *
 *   MinKey, undefined, null, false, true, MaxKey   one value each
 *   numbers      exactly, whatever their type: int32 1, int64 1, double 1.0 and Decimal128 1 or 1.00 are one value, 2^53 + 1 and the double
 *                2^53 are two. NaN (any) comes first and equals itself, then -Infinity; -0 equals 0
 *   strings, symbols, code                         by bytes, a prefix first
 *   arrays       element by element, the shorter first
 *   objects      member by member in document order, as MongoDB does: by bracket (false and true share one here), then name, then
 *                value; the shorter first
 *   binary       by length, subtype, bytes, as MongoDB does; a UUID is subtype 4
 *   ObjectIds    by bytes
 *   dates        by signed milliseconds
 *   timestamps   by seconds, increment, both unsigned
 *   regular expressions   by pattern, then options
 *   DBPointers   by name, then id
 *   code with scope       by code, then scope
 *
 * A spelling is a bracket byte followed by the bytes of the value. It is self-delimiting, so that several in a row sort as a tuple. A
 * descending spelling has each byte inverted and sorts the other way. Two values have the same spelling exactly when doc_order_compare
 * returns 0, so a key made of spellings is unique in the sense of MongoDB's `_id`, where 1 and 1.0 collide.
 *
 * Sizes: 10 bytes for a number that equals some double, 27 for others; 1 + n + 2 for text and names, plus one for each 00 byte in them. All
 * functions take time linear in their input, and are safe for any bytes that doc_walk accepts. */
#pragma once

#include "base/buf.h"
#include "doc/walk.h"

/* The first byte of a spelling. All values of a bracket b sort in [b, b + 1), so a front end that orders types differently can scan the
 * brackets in its own order. */
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
    DOC_ORDER_DEPTH = 128,       /* deepest nesting of arrays and objects that can be spelled */
    DOC_ORDER_NUMBER_BYTES = 27, /* longest spelling of a number */
};

/* The double nearest to a number of any type, ties to even; `exact_out`: whether the two are equal. */
double doc_order_nearest(const doc_element *number, bool *exact_out);

/* Appends the spelling of `e`'s value; its key is ignored. If the value is nested deeper than DOC_ORDER_DEPTH, has malformed inner
 * documents or does not fit, `out` keeps its bytes and only sets `overflow`. Check with buf_ok. */
void doc_order_spell(buf *out, const doc_element *e, bool descending);

/* Reads the value at the beginning of `spelled`. Stores its type in `*type_out` and the number of bytes read in `*n_out`, and appends the
 * value's bytes, as they follow the key in a document, to `value`. A number comes back in the first of int32, int64, double and Decimal128
 * (without trailing zeros) that represents it exactly; elements of arrays get the keys "0", "1", …; all else comes back unchanged. Returns
 * false, with `value` unchanged, if the bytes are not a spelling that doc_order_spell makes or `value` has no room. Any bytes are safe. If
 * `value` is NULL, the spelling is only checked and measured. */
bool doc_order_read(slice spelled, bool descending, buf *value, bson_type_t *type_out, size_t *n_out);

/* Compares two values without spelling them: < 0, 0, > 0. A total order over everything that doc_walk accepts: arrays and objects nested
 * deeper than DOC_ORDER_DEPTH compare as bytes. */
int doc_order_compare(const doc_element *a, const doc_element *b);
