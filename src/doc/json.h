/* json.h — JSON text to BSON and back: the one place that knows both.
 *
 * Fidelity, as the service has it:
 *   - integers that fit 64 bits stay exact (BSON int32 if it fits, else int64: both read as "integer"); larger ones and all others
 *     are doubles; NaN, Infinity and overflow are refused; -0 is kept in the double and written as 0
 *   - doubles come back in the shortest text that reads as the same double, written as JavaScript writes it
 *   - key order is kept; of duplicate keys the last value wins, at the first one's place
 *   - any Unicode, strictly valid UTF-8; a lone surrogate becomes U+FFFD; NUL is kept (in keys as the two bytes C0 80, since BSON
 *     keys end at a zero byte)
 *   - depth up to `depth_max`
 * Nothing is allocated but the output buffer, except a short-lived table for objects of more than 32 keys and for the rare document
 * with duplicates. Time is linear in the text, whatever it is. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

typedef enum json_root { JSON_OBJECT, JSON_ARRAY } json_root;

typedef struct json_options {
    unsigned depth_max; /* 0: LIMIT_JSON_DEPTH */
    const slice *drop;  /* top-level keys to leave out (system properties), `drop_n` of them */
    size_t drop_n;
} json_options;

typedef struct json_error {
    size_t offset;      /* of the byte where reading stopped */
    const char *reason; /* static text */
} json_error;

/* Appends one BSON document to `out`. The text must be one object or one array with nothing but blanks around it.
 * `options` and `why` may be NULL. On E_BAD_JSON (or E_TOO_LARGE at the buffer's limit) `out` is as it was. */
MUST_CHECK err json_to_bson(slice text, const json_options *options, buf *out, json_root *root_out, json_error *why);

/* Appends the JSON text of a BSON document. json_from_bson_open leaves the closing brace out, so that members can follow; it is true
 * if a comma is due before them. Any bytes may be given: reading stops where they are no BSON, and the text is well-formed all the
 * same. Types that JSON has not are written in MongoDB's relaxed Extended JSON. */
void json_from_bson(buf *out, slice bson);
void json_from_bson_array(buf *out, slice bson);
bool json_from_bson_open(buf *out, slice bson);

/* Appends one quoted, escaped string of valid UTF-8; one number (null if it is not finite). */
void json_add_string(buf *out, slice text);
void json_add_double(buf *out, double value);
