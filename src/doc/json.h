/* json.h — JSON text to BSON and back: the one place that knows both.
 *
 * Fidelity, as the service has it:
 *   - integers that fit 64 bits stay exact, as BSON int32 if they fit, else int64; all other numbers are doubles; NaN, Infinity and
 *     overflow are rejected; -0 is stored as a double and written as 0
 *   - doubles come back in the shortest text that reads as the same double, written as JavaScript writes it
 *   - key order is kept; for duplicate keys the last value wins, at the position of the first
 *   - any Unicode, strictly valid UTF-8; a lone surrogate becomes U+FFFD; NUL is kept (in keys as the two bytes C0 80, since BSON
 *     keys end at a zero byte)
 *   - depth up to `depth_max`
 * Only the output buffer is allocated, plus a short-lived table for objects of more than 32 keys and for the rare document with duplicate
 * keys. Time is linear in the length of any text. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

typedef enum json_root { JSON_OBJECT, JSON_ARRAY } json_root;

typedef struct json_options {
    unsigned depth_max; /* 0: LIMIT_JSON_DEPTH */
    const slice *drop;  /* `drop_n` top-level keys to leave out (system properties) */
    size_t drop_n;
} json_options;

typedef struct json_error {
    size_t offset;      /* byte at which reading stopped */
    const char *reason; /* static text */
} json_error;

/* Appends one BSON document to `out`. The text must be one object or one array, with only whitespace around it. `options` and `why` may be
 * NULL. On E_BAD_JSON (or E_TOO_LARGE at the buffer's limit) `out` is unchanged. */
MUST_CHECK err json_to_bson(slice text, const json_options *options, buf *out, json_root *root_out, json_error *why);

/* Appends the JSON text of a BSON document. json_from_bson_open leaves out the closing brace, so that the caller can append members; it
 * returns true if a comma is needed before them. Any bytes are safe: reading stops where they are not valid BSON, and the text is
 * well-formed anyway. Types that JSON lacks are written as MongoDB's relaxed Extended JSON. */
void json_from_bson(buf *out, slice bson);
void json_from_bson_array(buf *out, slice bson);
bool json_from_bson_open(buf *out, slice bson);

/* Append a quoted, escaped string, which must be valid UTF-8, and a number (null if it is not finite). */
void json_add_string(buf *out, slice text);
void json_add_double(buf *out, double value);
