/* order_read.c — reads the spellings that order.c writes back to BSON. Accepts only canonical spellings, so each value has exactly one. */
#include <stdio.h>

#include "doc/order_int.h"

enum { OID_BYTES = 12, LENGTH_BYTES = 4 };

typedef struct reader {
    slice rest;
    unsigned char flip; /* XORed with each byte: FF if spelled descending, else 0 */
    buf *out;           /* NULL: only check the spelling */
} reader;

static bool read_value(reader *r, bson_type_t *type_out, unsigned depth);

/* ---- bytes in and out ---- */

static unsigned char peek(const reader *r, size_t i) {
    return (unsigned char)r->rest.p[i] ^ r->flip;
}

static void emit(reader *r, const void *p, size_t n) {
    if (r->out) {
        buf_add(r->out, p, n);
    }
}

static void emit_byte(reader *r, unsigned char byte) {
    emit(r, &byte, 1);
}

/* Copies the next n bytes to the output. */
static bool pass(reader *r, size_t n) {
    if (r->rest.n < n) {
        return false;
    }
    if (r->out && buf_reserve(r->out, n)) {
        char *to = r->out->p + r->out->n;
        for (size_t i = 0; i < n; i++) {
            to[i] = (char)peek(r, i);
        }
        r->out->n += n;
    }
    r->rest = slice_skip(r->rest, n);
    return true;
}

/* Copies a zero-terminated text, with its zero byte. */
static bool pass_name(reader *r) {
    const char *end = r->rest.n ? memchr(r->rest.p, r->flip, r->rest.n) : NULL;
    return end && pass(r, (size_t)(end - r->rest.p) + 1);
}

static size_t mark(const reader *r) {
    return r->out ? r->out->n : 0;
}

static void skip_length(reader *r) {
    emit(r, "\0\0\0\0", LENGTH_BYTES);
}

/* Fills in the length prefix at `at`, for all bytes written after it. `itself`: the length counts its own four bytes, as a document's
 * does. */
static void fill_length(reader *r, size_t at, bool itself) {
    if (r->out && !r->out->overflow) {
        size_t n = r->out->n - at - (itself ? 0 : LENGTH_BYTES);
        r->out->overflow |= n > INT32_MAX;
        doc_store_i32(r->out->p + at, (int32_t)n);
    }
}

/* ---- values ---- */

/* Writes a BSON string: length, bytes, 00. */
static bool read_text(reader *r) {
    size_t at = mark(r);
    skip_length(r);
    for (;;) {
        const char *zero = r->rest.n ? memchr(r->rest.p, r->flip, r->rest.n) : NULL;
        size_t n = zero ? (size_t)(zero - r->rest.p) : 0;
        if (!zero || r->rest.n < n + 2 || !pass(r, n)) {
            return false;
        }
        unsigned char next = peek(r, 1);
        r->rest = slice_skip(r->rest, 2);
        emit_byte(r, 0); /* a zero byte of the text, or its terminator */
        if (next != 0xFF) {
            fill_length(r, at, false);
            return next == 1;
        }
    }
}

static doc_bracket member_bracket(doc_bracket of) {
    return of == DOC_BRACKET_TRUE ? DOC_BRACKET_FALSE : of;
}

/* The type byte is filled in after the value, since a number's type is known only then. */
static bool read_member(reader *r, bool named, size_t index, unsigned depth) {
    bson_type_t type;
    doc_bracket bracket = (doc_bracket)peek(r, 0);
    size_t at = mark(r);
    emit_byte(r, 0);
    if (named) {
        r->rest = slice_skip(r->rest, 1);
        if (!pass_name(r) || r->rest.n == 0 || member_bracket((doc_bracket)peek(r, 0)) != bracket) {
            return false;
        }
    } else {
        char key[24];
        emit(r, key, (size_t)snprintf(key, sizeof key, "%zu", index) + 1);
    }
    if (!read_value(r, &type, depth)) {
        return false;
    }
    if (r->out && !r->out->overflow) {
        r->out->p[at] = (char)type;
    }
    return true;
}

static bool read_members(reader *r, bool named, unsigned depth) {
    size_t at = mark(r);
    if (depth > DOC_ORDER_DEPTH) {
        return false;
    }
    skip_length(r);
    for (size_t i = 0; r->rest.n && peek(r, 0) != DOC_BRACKET_END; i++) {
        if (!read_member(r, named, i, depth)) {
            return false;
        }
    }
    if (r->rest.n == 0) {
        return false;
    }
    r->rest = slice_skip(r->rest, 1);
    emit_byte(r, 0);
    fill_length(r, at, true);
    return true;
}

static bool read_number(reader *r, bson_type_t *type_out) {
    char spelled[DOC_ORDER_NUMBER_BYTES], value[16];
    size_t n = r->rest.n < sizeof spelled ? r->rest.n : sizeof spelled;
    for (size_t i = 0; i < n; i++) {
        spelled[i] = (char)peek(r, i);
    }
    n = doc__order_read_number(slice_of(spelled, n), value, type_out);
    emit(r, value, *type_out == BSON_TYPE_DECIMAL128 ? 16 : *type_out == BSON_TYPE_INT32 ? 4 : 8);
    r->rest = slice_skip(r->rest, n);
    return n != 0;
}

/* Writes a BSON binary: length, subtype, bytes. */
static bool read_binary(reader *r) {
    uint32_t n = 0;
    char length[LENGTH_BYTES];
    if (r->rest.n < LENGTH_BYTES) {
        return false;
    }
    for (size_t i = 0; i < LENGTH_BYTES; i++) {
        n = n << 8 | peek(r, i);
    }
    r->rest = slice_skip(r->rest, LENGTH_BYTES);
    doc_store_i32(length, (int32_t)n);
    if (n > INT32_MAX || r->rest.n < (size_t)n + 1) {
        return false;
    }
    emit(r, length, sizeof length);
    return pass(r, (size_t)n + 1);
}

static bool read_integer(reader *r, uint64_t flip_sign) {
    uint64_t bits = 0;
    char value[8];
    if (r->rest.n < sizeof value) {
        return false;
    }
    for (size_t i = 0; i < sizeof value; i++) {
        bits = bits << 8 | peek(r, i);
    }
    doc_store_i64(value, (int64_t)(bits ^ flip_sign));
    emit(r, value, sizeof value);
    r->rest = slice_skip(r->rest, sizeof value);
    return true;
}

static bool read_scoped_code(reader *r, unsigned depth) {
    size_t at = mark(r);
    skip_length(r);
    bool good = read_text(r) && read_members(r, true, depth);
    fill_length(r, at, true);
    return good;
}

static bool read_bool(reader *r, unsigned char truth) {
    emit_byte(r, truth);
    return true;
}

static bool read_value(reader *r, bson_type_t *type_out, unsigned depth) {
    static const uint8_t types[DOC_BRACKETS] = {
        [DOC_BRACKET_MIN_KEY] = BSON_TYPE_MINKEY,
        [DOC_BRACKET_UNDEFINED] = BSON_TYPE_UNDEFINED,
        [DOC_BRACKET_NULL] = BSON_TYPE_NULL,
        [DOC_BRACKET_FALSE] = BSON_TYPE_BOOL,
        [DOC_BRACKET_TRUE] = BSON_TYPE_BOOL,
        [DOC_BRACKET_STRING] = BSON_TYPE_UTF8,
        [DOC_BRACKET_ARRAY] = BSON_TYPE_ARRAY,
        [DOC_BRACKET_OBJECT] = BSON_TYPE_DOCUMENT,
        [DOC_BRACKET_BINARY] = BSON_TYPE_BINARY,
        [DOC_BRACKET_OBJECT_ID] = BSON_TYPE_OID,
        [DOC_BRACKET_DATE] = BSON_TYPE_DATE_TIME,
        [DOC_BRACKET_TIMESTAMP] = BSON_TYPE_TIMESTAMP,
        [DOC_BRACKET_REGEX] = BSON_TYPE_REGEX,
        [DOC_BRACKET_DB_POINTER] = BSON_TYPE_DBPOINTER,
        [DOC_BRACKET_CODE] = BSON_TYPE_CODE,
        [DOC_BRACKET_SYMBOL] = BSON_TYPE_SYMBOL,
        [DOC_BRACKET_SCOPED_CODE] = BSON_TYPE_CODEWSCOPE,
        [DOC_BRACKET_MAX_KEY] = BSON_TYPE_MAXKEY,
    };
    if (r->rest.n == 0 || peek(r, 0) == DOC_BRACKET_END || peek(r, 0) >= DOC_BRACKETS) {
        return false;
    }
    doc_bracket bracket = (doc_bracket)peek(r, 0);
    r->rest = slice_skip(r->rest, 1);
    *type_out = (bson_type_t)types[bracket];
    switch (bracket) {
    case DOC_BRACKET_FALSE:
    case DOC_BRACKET_TRUE:
        return read_bool(r, bracket == DOC_BRACKET_TRUE);
    case DOC_BRACKET_NUMBER:
        return read_number(r, type_out);
    case DOC_BRACKET_STRING:
    case DOC_BRACKET_CODE:
    case DOC_BRACKET_SYMBOL:
        return read_text(r);
    case DOC_BRACKET_ARRAY:
    case DOC_BRACKET_OBJECT:
        return read_members(r, bracket == DOC_BRACKET_OBJECT, depth + 1);
    case DOC_BRACKET_BINARY:
        return read_binary(r);
    case DOC_BRACKET_DATE:
    case DOC_BRACKET_TIMESTAMP:
        return read_integer(r, bracket == DOC_BRACKET_DATE ? (uint64_t)1 << 63 : 0);
    case DOC_BRACKET_OBJECT_ID:
        return pass(r, OID_BYTES);
    case DOC_BRACKET_REGEX:
        return pass_name(r) && pass_name(r);
    case DOC_BRACKET_DB_POINTER:
        return read_text(r) && pass(r, OID_BYTES);
    case DOC_BRACKET_SCOPED_CODE:
        return read_scoped_code(r, depth + 1);
    default:
        return true;
    }
}

bool doc_order_read(slice spelled, bool descending, buf *value, bson_type_t *type_out, size_t *n_out) {
    reader r = {.rest = spelled, .flip = descending ? 0xFF : 0, .out = value};
    size_t from = mark(&r);
    if (!read_value(&r, type_out, 0) || (value && !buf_ok(value))) {
        if (value) {
            value->n = from;
        }
        return false;
    }
    *n_out = spelled.n - r.rest.n;
    return true;
}
