/* order.c — the order of BSON values: comparing and spelling; order_read.c reads spellings, order_number.c knows numbers.
 *
 * After the bracket byte:
 *
 *   number                  order_number.c
 *   string, code, symbol    its bytes (00 as 00 FF), then 00 01
 *   array                   its elements, then DOC_BRACKET_END
 *   object                  its members, each as bracket (that of false for true too), name, 00, value; then DOC_BRACKET_END
 *   binary                  length (4 bytes, big-endian), subtype, bytes
 *   ObjectId                12 bytes
 *   date, timestamp         8 bytes, big-endian; a date has its sign bit inverted
 *   regular expression      pattern, 00, options, 00
 *   DBPointer               name as a string, 12 bytes
 *   code with scope         code as a string, scope as an object without its bracket */
#include <endian.h>

#include "doc/order_int.h"

enum { OID_BYTES = 12 };

static const uint8_t brackets[256] = {
    [BSON_TYPE_MINKEY] = DOC_BRACKET_MIN_KEY,
    [BSON_TYPE_UNDEFINED] = DOC_BRACKET_UNDEFINED,
    [BSON_TYPE_NULL] = DOC_BRACKET_NULL,
    [BSON_TYPE_BOOL] = DOC_BRACKET_FALSE,
    [BSON_TYPE_INT32] = DOC_BRACKET_NUMBER,
    [BSON_TYPE_INT64] = DOC_BRACKET_NUMBER,
    [BSON_TYPE_DOUBLE] = DOC_BRACKET_NUMBER,
    [BSON_TYPE_DECIMAL128] = DOC_BRACKET_NUMBER,
    [BSON_TYPE_UTF8] = DOC_BRACKET_STRING,
    [BSON_TYPE_ARRAY] = DOC_BRACKET_ARRAY,
    [BSON_TYPE_DOCUMENT] = DOC_BRACKET_OBJECT,
    [BSON_TYPE_BINARY] = DOC_BRACKET_BINARY,
    [BSON_TYPE_OID] = DOC_BRACKET_OBJECT_ID,
    [BSON_TYPE_DATE_TIME] = DOC_BRACKET_DATE,
    [BSON_TYPE_TIMESTAMP] = DOC_BRACKET_TIMESTAMP,
    [BSON_TYPE_REGEX] = DOC_BRACKET_REGEX,
    [BSON_TYPE_DBPOINTER] = DOC_BRACKET_DB_POINTER,
    [BSON_TYPE_CODE] = DOC_BRACKET_CODE,
    [BSON_TYPE_SYMBOL] = DOC_BRACKET_SYMBOL,
    [BSON_TYPE_CODEWSCOPE] = DOC_BRACKET_SCOPED_CODE,
    [BSON_TYPE_MAXKEY] = DOC_BRACKET_MAX_KEY,
};

doc_bracket doc_order_bracket(const doc_element *e) {
    doc_bracket bracket = (doc_bracket)brackets[(uint8_t)e->type];
    return e->type == BSON_TYPE_BOOL && e->value.p[0] ? DOC_BRACKET_TRUE : bracket;
}

/* The bracket that a member's spelling begins with: false and true share one there. */
static doc_bracket member_bracket(const doc_element *e) {
    return (doc_bracket)brackets[(uint8_t)e->type];
}

/* Code with scope is an int32 (its whole length), a string and a document. */
static bool scope_parts(slice value, slice *code_out, slice *scope_out) {
    uint32_t n = (uint32_t)doc_load_i32(value.p + 4);
    slice rest = slice_skip(value, 8);
    doc_walk w;
    if (n == 0 || n > rest.n || rest.p[n - 1] != 0) {
        return false;
    }
    *code_out = slice_of(rest.p, n - 1);
    *scope_out = slice_skip(rest, n);
    return doc_walk_init(&w, *scope_out) && w.end + 1 == value.p + value.n;
}

/* ---- spelling ---- */

static void spell(buf *out, const doc_element *e, unsigned depth);

static void spell_text(buf *out, slice text) {
    for (const char *zero; text.n && (zero = memchr(text.p, 0, text.n));) {
        size_t n = (size_t)(zero - text.p) + 1;
        buf_add(out, text.p, n);
        buf_add_byte(out, (char)0xFF);
        text = slice_skip(text, n);
    }
    buf_add(out, text.p, text.n);
    buf_add(out, "\0\1", 2);
}

static void spell_members(buf *out, slice document, bool named, unsigned depth) {
    doc_walk w;
    doc_element e;
    if (depth > DOC_ORDER_DEPTH || !doc_walk_init(&w, document)) {
        out->overflow = true;
        return;
    }
    while (!out->overflow && doc_walk_next(&w, &e)) {
        if (named) {
            buf_add_byte(out, (char)member_bracket(&e));
            buf_add(out, e.key.p, e.key.n + 1);
        }
        spell(out, &e, depth);
    }
    buf_add_byte(out, DOC_BRACKET_END);
    out->overflow |= w.corrupt;
}

static void spell_binary(buf *out, slice value) {
    buf_add_be32(out, (uint32_t)(value.n - 5));
    buf_add(out, value.p + 4, value.n - 4);
}

static void spell_scoped_code(buf *out, slice value, unsigned depth) {
    slice code, scope;
    if (!scope_parts(value, &code, &scope)) {
        out->overflow = true;
        return;
    }
    spell_text(out, code);
    spell_members(out, scope, true, depth + 1);
}

static void spell(buf *out, const doc_element *e, unsigned depth) {
    char number[DOC_ORDER_NUMBER_BYTES];
    doc_bracket bracket = doc_order_bracket(e);
    buf_add_byte(out, (char)bracket);
    switch (bracket) {
    case DOC_BRACKET_NUMBER:
        buf_add(out, number, doc__order_spell_number(number, e));
        break;
    case DOC_BRACKET_STRING:
    case DOC_BRACKET_CODE:
    case DOC_BRACKET_SYMBOL:
        spell_text(out, doc_element_text(e));
        break;
    case DOC_BRACKET_ARRAY:
    case DOC_BRACKET_OBJECT:
        spell_members(out, e->value, bracket == DOC_BRACKET_OBJECT, depth + 1);
        break;
    case DOC_BRACKET_BINARY:
        spell_binary(out, e->value);
        break;
    case DOC_BRACKET_DATE:
        buf_add_be64(out, (uint64_t)doc_load_i64(e->value.p) ^ (uint64_t)1 << 63);
        break;
    case DOC_BRACKET_TIMESTAMP:
        buf_add_be64(out, (uint64_t)doc_load_i64(e->value.p));
        break;
    case DOC_BRACKET_OBJECT_ID:
    case DOC_BRACKET_REGEX: /* a regex is two zero-terminated texts */
        buf_add_slice(out, e->value);
        break;
    case DOC_BRACKET_DB_POINTER:
        spell_text(out, slice_of(e->value.p + 4, e->value.n - 5 - OID_BYTES));
        buf_add(out, e->value.p + e->value.n - OID_BYTES, OID_BYTES);
        break;
    case DOC_BRACKET_SCOPED_CODE:
        spell_scoped_code(out, e->value, depth);
        break;
    default:
        break;
    }
}

void doc_order_spell(buf *out, const doc_element *e, bool descending) {
    size_t from = out->n;
    spell(out, e, 0);
    if (out->overflow) {
        out->n = from;
    }
    for (size_t i = from; descending && i < out->n; i++) {
        out->p[i] = (char)~out->p[i];
    }
}

/* ---- comparing ---- */

static int compare(const doc_element *a, const doc_element *b, unsigned depth);

static int sign_of(uint64_t a, uint64_t b) {
    return (a > b) - (a < b);
}

static int compare_member(const doc_element *a, const doc_element *b, bool named, unsigned depth) {
    int c = named ? (int)member_bracket(a) - (int)member_bracket(b) : 0;
    c = c || !named ? c : slice_cmp(a->key, b->key);
    return c ? c : compare(a, b, depth);
}

static int compare_members(slice a, slice b, bool named, unsigned depth) {
    doc_walk wa, wb;
    doc_element ea, eb;
    if (depth > DOC_ORDER_DEPTH) {
        return slice_cmp(a, b);
    }
    doc_walk_init(&wa, a);
    doc_walk_init(&wb, b);
    for (;;) {
        bool more_a = doc_walk_next(&wa, &ea), more_b = doc_walk_next(&wb, &eb);
        if (!more_a || !more_b) {
            return more_a - more_b;
        }
        int c = compare_member(&ea, &eb, named, depth);
        if (c) {
            return c;
        }
    }
}

static int compare_binary(slice a, slice b) {
    int c = sign_of(a.n, b.n);
    return c ? c : memcmp(a.p + 4, b.p + 4, a.n - 4);
}

static int compare_pointers(slice a, slice b) {
    int c = slice_cmp(slice_of(a.p + 4, a.n - 5 - OID_BYTES), slice_of(b.p + 4, b.n - 5 - OID_BYTES));
    return c ? c : memcmp(a.p + a.n - OID_BYTES, b.p + b.n - OID_BYTES, OID_BYTES);
}

/* Malformed values sort before well-formed ones, and compare as bytes. */
static int compare_scoped_code(slice a, slice b, unsigned depth) {
    slice code_a, code_b, scope_a, scope_b;
    bool good_a = scope_parts(a, &code_a, &scope_a), good_b = scope_parts(b, &code_b, &scope_b);
    if (!good_a || !good_b) {
        return good_a != good_b ? good_a - good_b : slice_cmp(a, b);
    }
    int c = slice_cmp(code_a, code_b);
    return c ? c : compare_members(scope_a, scope_b, true, depth);
}

static int compare(const doc_element *a, const doc_element *b, unsigned depth) {
    doc_bracket bracket = doc_order_bracket(a);
    int c = (int)bracket - (int)doc_order_bracket(b);
    if (c) {
        return c;
    }
    switch (bracket) {
    case DOC_BRACKET_NUMBER:
        return doc__order_compare_numbers(a, b);
    case DOC_BRACKET_STRING:
    case DOC_BRACKET_CODE:
    case DOC_BRACKET_SYMBOL:
        return slice_cmp(doc_element_text(a), doc_element_text(b));
    case DOC_BRACKET_ARRAY:
    case DOC_BRACKET_OBJECT:
        return compare_members(a->value, b->value, bracket == DOC_BRACKET_OBJECT, depth + 1);
    case DOC_BRACKET_BINARY:
        return compare_binary(a->value, b->value);
    case DOC_BRACKET_DATE:
        return sign_of((uint64_t)doc_load_i64(a->value.p) ^ (uint64_t)1 << 63, (uint64_t)doc_load_i64(b->value.p) ^ (uint64_t)1 << 63);
    case DOC_BRACKET_TIMESTAMP:
        return sign_of((uint64_t)doc_load_i64(a->value.p), (uint64_t)doc_load_i64(b->value.p));
    case DOC_BRACKET_OBJECT_ID:
    case DOC_BRACKET_REGEX:
        return slice_cmp(a->value, b->value);
    case DOC_BRACKET_DB_POINTER:
        return compare_pointers(a->value, b->value);
    case DOC_BRACKET_SCOPED_CODE:
        return compare_scoped_code(a->value, b->value, depth + 1);
    default:
        return 0;
    }
}

int doc_order_compare(const doc_element *a, const doc_element *b) {
    return compare(a, b, 0);
}
